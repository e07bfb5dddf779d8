"""Learning without a learning rate: each coordinate bets a part of its wealth on its next gradients (ScInOL2).

The state of a coordinate is four numbers: the pull G = -sum g x, the sum of squares S = sum g^2 x^2, the largest |x|
so far, M, the current row included, and the wealth 1 - sum g x w won by its bets, which is stored as 0 before the first
x that is not 0, as pages of zeros take no time. With theta = G / sqrt(S + M^2), its weight is the bet

    w = sign(theta) min(|theta|, 1) / (2 sqrt(S + M^2)) wealth,

computed only when a row has a value there. As |g x| <= M, no bet can lose more than half of the wealth. Losses are
divided by their largest slope, so that |g| <= 1. Where scores have the units of the target, the initial wealth is the
absolute value of the first target that is not 0. An intercept starts at the first target, or at 0 if that target had no
loss; the other targets, and the initial wealth, are then measured from there.
"""

import numpy as np

cimport cython
from libc.math cimport fabs

from onlinebregman._kernels.geometries.adaptive cimport AdaptiveGeometry
from onlinebregman._kernels.geometries.geometry cimport Average, Geometry, Workspace
from onlinebregman._kernels.ops.adaptive cimport ob_bet, ob_bets, ob_count_new, ob_settle
from onlinebregman._kernels.ops.row cimport ob_gather_4, ob_scatter_4
from onlinebregman._kernels.ops.state import vector_of

cdef enum:                    # blocks of the state
    PULL
    SQUARES
    LARGEST
    WEALTH
    BLOCKS

cdef enum:                    # working vectors
    WEIGHTS
    BETS
    GATHERED                  # the blocks of a sparse row


cdef class ScaleInvariantGeometry(AdaptiveGeometry):
    """Weights that are bets; they start at 0.

    Parameters
    ----------
    n_features : int
    slope : float, default=1.0
        The largest slope of the loss, times `heaviest`.
    located : bool, default=False
        Whether scores have the units of the target.
    heaviest : float, default=1.0
        The largest weight that rows are expected to have.
    """

    cdef readonly double slope, heaviest
    cdef readonly bint located
    cdef double[::1] first    # the first |x| > 0 of each coordinate; undefined where the largest is 0
    cdef double[::1] current  # buffer for all weights, while they are averaged
    cdef readonly double unit  # the initial wealth of each coordinate; 0 before it is known
    cdef double started       # whether the intercept has been started,
    cdef readonly double origin  # and where; its bets, whose sum of squares is `intercept_sum`:
    cdef double intercept_pull, intercept_size, intercept_wealth

    def __cinit__(self):
        self.blocks, self.average = BLOCKS, AverageBet()
        self.average.computed = True
        self.declare("bets", &self.unit, False, 6 * sizeof(double))  # from `unit` to `intercept_wealth`

    def __init__(self, n_features, slope=1.0, located=False, heaviest=1.0, state=None):
        super().__init__(np.zeros(n_features))
        self.first, self.current = np.zeros(n_features), None
        self.slope, self.located, self.heaviest = slope, located, heaviest
        self.intercept_wealth = self.intercept_size = 1.0
        self.unit = 0.0 if located else 1.0
        self._resume(state)

    def get_state(self):
        return {**super().get_state(), "first": self.first_values()}

    def set_state(self, state):
        super().set_state(state)
        self.first = vector_of(state["first"], self.n_features)
        if self.average.active:
            self.current = np.zeros(2 * self.n_features)

    def first_values(self):
        largest = np.asarray(self.weights)[LARGEST * self.n_features:WEALTH * self.n_features]
        return np.where(largest > 0, self.first, 0.0)

    @property
    def state_weights(self):
        """The bets on a row without values larger than before; a new array."""
        bets = np.empty(2 * self.n_features)
        self.bet_all(bets)
        return bets[:self.n_features].copy()

    cdef void bet_all(self, double[::1] bets) noexcept nogil:
        """Write all weights into the first half of a buffer; the second half is scratch."""
        cdef Py_ssize_t n = self.n_features
        cdef double* own = &self.weights[0]
        cdef double* largest = own + LARGEST * n
        ob_bets(
            &bets[0], &bets[n], largest, own + PULL * n, own + SQUARES * n, largest, own + WEALTH * n, self.unit, n
        )

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        cdef double* own = &self.weights[j]
        cdef Py_ssize_t n = self.n_features
        return self.unit * ob_bet(own[PULL * n], own[SQUARES * n], own[LARGEST * n], own[WEALTH * n])

    def _arguments(self):
        return self.n_features, self.slope, self.located, self.heaviest

    @property
    def bets(self):
        """(pull, sum of squares, largest |x|, wealth over initial wealth, first |x| > 0) of all coordinates, the
        intercept last; a new array of shape (5, n_features + 1)."""
        blocks = np.r_[self.weights, self.first_values()].reshape(5, -1)
        blocks[WEALTH][blocks[LARGEST] == 0] = 1.0
        return np.c_[blocks, [self.intercept_pull, self.intercept_sum, self.intercept_size, self.intercept_wealth, 1.0]]

    @property
    def limits(self):
        """See `Geometry.limits`; p = abs(theta), if that is above 1, as bets on a row are min(abs(theta), 1) times."""
        pull, squares, largest = np.asarray(self.weights)[:WEALTH * self.n_features].reshape(3, -1)
        largest = np.where(largest > 0, largest, np.inf)
        sums = squares / largest / largest
        return largest, sums, np.maximum(np.abs(pull) / largest / np.sqrt(1.0 + sums), 1.0)

    @property
    def metric(self):
        raise AttributeError("a scale-invariant geometry has no metric: its weights are bets")

    @property
    def tracks(self):
        return True

    def start_tracking(self):
        """Nothing to do: the certificate needs only wealth and pull."""

    def stop_tracking(self):
        pass

    cdef void note_step(self, Workspace* work, double c, double gain) noexcept nogil:
        pass

    cdef Py_ssize_t vector_length(self, Py_ssize_t n) noexcept nogil:
        return 2 * n

    cdef double* loaded(self, Workspace* work, int number) noexcept nogil:
        """The values of a block in the columns of the loaded row."""
        if work.row.index == NULL:
            return &self.weights[number * self.n_features]
        return work.vectors + (GATHERED + number) * work.row.n

    cdef void load(self, Workspace* work) noexcept nogil:
        work.w = work.vectors
        if work.row.index != NULL:
            ob_gather_4(self.loaded(work, PULL), &self.weights[0], self.n_features, work.row.index, work.row.n)
        ob_bets(
            work.w, work.vectors + BETS * work.row.n, work.x, self.loaded(work, PULL), self.loaded(work, SQUARES),
            self.loaded(work, LARGEST), self.loaded(work, WEALTH), self.unit, work.n
        )

    cdef void store(self, Workspace* work) noexcept nogil:
        pass

    cdef void note_first(self, Workspace* work, const double* largest) noexcept nogil:
        cdef double* wealth = self.loaded(work, WEALTH)
        cdef Py_ssize_t i
        for i in range(work.n):
            if largest[i] == 0 and work.x[i] != 0:
                wealth[i] = 1.0
                self.first[i if work.row.index == NULL else work.row.index[i]] = fabs(work.x[i])

    cdef double bet_of_intercept(self) noexcept nogil:
        return ob_bet(self.intercept_pull, self.intercept_sum, self.intercept_size, self.intercept_wealth)

    cdef double adapt(self, Workspace* work, double g, double a, double y, double weight, bint exact,
                      double* slope, double* intercept_xSx) noexcept nogil:
        """Make the whole step; the intercept, a coordinate of value 1, moves by -intercept_xSx c to its next bet."""
        cdef double s = -weight * g / self.slope, one = 1.0, played = self.unit, bet, before
        cdef double* largest = self.loaded(work, LARGEST)
        if self.unit == 0:
            if intercept_xSx[0] != 0 and self.started == 0:
                self.started = 1.0
                self.origin = y if weight * g != 0 else 0.0
                intercept_xSx[0] = -y / (weight * g) if weight * g != 0 else 0.0
                slope[0] = 0.0
                return 1.0
            self.unit = fabs(y - self.origin)
        if ob_count_new(work.x, largest, work.n) > 0:
            self.note_first(work, largest)
        ob_settle(
            work.vectors + BETS * work.row.n, work.x, self.loaded(work, PULL), self.loaded(work, SQUARES), largest,
            self.loaded(work, WEALTH), s, max(weight / self.heaviest, 1.0), played, work.n
        )
        if work.row.index != NULL:
            ob_scatter_4(&self.weights[0], self.loaded(work, PULL), self.n_features, work.row.index, work.row.n)
        if intercept_xSx[0] != 0:
            bet = self.bet_of_intercept()
            before = played * bet
            ob_settle(
                &bet, &one, &self.intercept_pull, &self.intercept_sum, &self.intercept_size,
                &self.intercept_wealth, s, max(weight / self.heaviest, 1.0), played, 1
            )
            intercept_xSx[0] = (before - self.unit * self.bet_of_intercept()) / (weight * g) if g != 0 else 0.0
        slope[0] = 0.0
        return 1.0

    cdef void step(self, Workspace* work, double c) noexcept nogil:
        """Nothing to do: `adapt` has made the step."""

    # --- averaging ----------------------------------------------------------------------------------------------

    def start_averaging(self):
        super().start_averaging()
        self.current = np.zeros(2 * self.n_features)


@cython.final
cdef class AverageBet(Average):

    cdef double value(self, Geometry geometry, Py_ssize_t j) noexcept nogil:
        return (<ScaleInvariantGeometry> geometry).weight(j)

    cdef double* values(self, Geometry geometry) noexcept nogil:
        (<ScaleInvariantGeometry> geometry).bet_all((<ScaleInvariantGeometry> geometry).current)
        return &(<ScaleInvariantGeometry> geometry).current[0]
