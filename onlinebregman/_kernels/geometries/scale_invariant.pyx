"""Learning without a rate: each coordinate bets a part of its wealth on where it will be pulled (ScInOL2).

Of each coordinate: pull G = -sum g x, squares S = sum g^2 x^2, M the largest |x|, the row at hand included, and the wealth
1 - sum g x w that its bets have made. With theta = G / sqrt(S + M^2)

    w = sign(theta) min(|theta|, 1) / (2 sqrt(S + M^2)) wealth.

No bet can lose more than half of the wealth, as |g x| <= M. Losses are divided by their largest slope, so that |g| <= 1;
where scores have the units of the target, the first wealth is the size of the first target that is not 0. If an intercept
is learned, the first target is where it starts: what is bet on, and what the first wealth is the size of, are the
distances of the others from there.
"""

import numpy as np

from libc.math cimport fabs

from onlinebregman._kernels.geometries.adaptive cimport AdaptiveGeometry
from onlinebregman._kernels.geometries.geometry cimport Workspace

cdef extern from "ops/row.h":
    void ob_gather(double* v, const double* w, const Py_ssize_t* index, Py_ssize_t n) noexcept nogil

cdef extern from "ops/adaptive.h":
    double ob_bet(double pull, double squares, double m, double wealth) noexcept nogil
    void ob_bets(double* w, const double* x, const double* pull, const double* squares, const double* largest,
                 const double* wealth, double unit, Py_ssize_t n) noexcept nogil
    void ob_settle(double* w, const double* x, double* pull, double* squares, double* largest, double* wealth,
                   double* first, double s, double counted, double played, double unit, Py_ssize_t n) noexcept nogil

cdef enum:                    # blocks of the state, behind the weights
    PULL = 1
    SQUARES
    LARGEST
    WEALTH
    FIRST                     # the first |x| that was not 0
    BLOCKS


cdef class ScaleInvariantGeometry(AdaptiveGeometry):
    """Weights that are bets; they start at 0.

    Parameters
    ----------
    n_features : int
    slope : float, default=1.0
        The largest slope of the loss.
    located : bool, default=False
        Have scores the units of the target?
    """

    cdef readonly double slope
    cdef readonly bint located

    def __cinit__(self):
        self.blocks = BLOCKS

    def __init__(self, n_features, slope=1.0, located=False, state=None):
        super().__init__(np.zeros(n_features))
        np.asarray(self.weights)[WEALTH * n_features:FIRST * n_features] = 1.0
        self.slope, self.located = slope, located
        self.state.bias_wealth = self.state.bias_size = 1.0
        self.state.unit = 0.0 if located else 1.0
        self._resume(state)

    def _arguments(self):
        return self.n_features, self.slope, self.located

    @property
    def unit(self):
        """The wealth that each coordinate started with."""
        return self.state.unit

    @property
    def origin(self):
        """Where the intercept started."""
        return self.state.target_mean

    @property
    def bets(self):
        """(pull, sum of squares, largest |x|, wealth in units of the first, first |x|) of all coordinates, the last
        that of the intercept; a new array of shape (5, n_features + 1)."""
        cdef double size = self.state.bias_size
        blocks = np.asarray(self.weights)[self.n_features:BLOCKS * self.n_features].reshape(5, -1)
        bias = [self.state.bias_pull, self.state.bias_sum, size, self.state.bias_wealth, 1.0]
        return np.c_[blocks, bias]

    @property
    def metric(self):
        raise AttributeError("there is no metric: steps are bets")

    def start_tracking(self):
        """Nothing: wealth and pull are all that a certificate needs."""

    def stop_tracking(self):
        pass

    cdef void note_step(self, Workspace* work, double c, double gain) noexcept nogil:
        pass

    cdef Py_ssize_t vector_length(self, Py_ssize_t n) noexcept nogil:
        return 2 * n

    cdef double* block(self, Workspace* work, int number, int place) noexcept nogil:
        cdef double* source = &self.weights[number * self.n_features]
        if work.row.index == NULL:
            return source
        ob_gather(work.vectors + place * work.row.n, source, work.row.index, work.row.n)
        return work.vectors + place * work.row.n

    cdef void load(self, Workspace* work) noexcept nogil:
        work.w = work.vectors
        ob_bets(
            work.w, work.x, self.block(work, PULL, PULL), self.block(work, SQUARES, SQUARES),
            self.block(work, LARGEST, LARGEST), self.block(work, WEALTH, WEALTH), self.state.unit, work.n
        )

    cdef void store(self, Workspace* work) noexcept nogil:
        pass

    cdef double bet_of_intercept(self) noexcept nogil:
        return self.state.unit * ob_bet(
            self.state.bias_pull, self.state.bias_sum, self.state.bias_size, self.state.bias_wealth
        )

    cdef double adapt(self, Workspace* work, double g, double y, double weight, bint exact, double* slope,
                      double* bias) noexcept nogil:
        """All of the step; the intercept, a coordinate of value 1, moves from one bet to the next by -bias c."""
        cdef double s = -weight * g / self.slope, before = self.bet_of_intercept()
        cdef double one = 1.0, first = 1.0, bet, played = self.state.unit
        cdef double* blocks[BLOCKS]
        cdef int k
        if self.state.unit == 0:
            if bias[0] != 0 and self.state.target_weight == 0:
                self.state.target_weight, self.state.target_mean = 1.0, y
                bias[0] = -y / (weight * g) if g != 0 else 0.0
                slope[0] = 0.0
                return 1.0
            self.state.unit = fabs(y - self.state.target_mean)
        for k in range(BLOCKS):
            blocks[k] = self.block(work, k, k)
        ob_settle(
            blocks[0], work.x, blocks[PULL], blocks[SQUARES], blocks[LARGEST], blocks[WEALTH], blocks[FIRST], s,
            max(weight, 1.0), played, self.state.unit, work.n
        )
        for k in range(BLOCKS):
            self.put_back(work, k, blocks[k])
        if bias[0] != 0:
            ob_settle(
                &bet, &one, &self.state.bias_pull, &self.state.bias_sum, &self.state.bias_size,
                &self.state.bias_wealth, &first, s, max(weight, 1.0), played, self.state.unit, 1
            )
            bias[0] = (before - bet) / (weight * g) if g != 0 else 0.0
        slope[0] = 0.0
        return 1.0

    cdef void step(self, Workspace* work, double c) noexcept nogil:
        """Made by `adapt`."""
