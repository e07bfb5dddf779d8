"""What the targets of the rows before say about the next one, beyond the forecast of a mixture of models.

A memory makes features, of which a `stack` learns combinations that correct the forecast p and are mixed with it:

* of labels the log odds of two forecasts by labels alone, minus those of p, with s_c the shares of all labels so far,

      p_c = (n_c + s_c) / (n + 1).

  The n_c count the labels that have followed the last label, each time the others by .999 less: a Markov chain. Or they
  count all labels, each time the others by .9 less: the recent shares. The s_c have the prior of Krichevsky and
  Trofimov, "The Performance of Universal Encoding", IEEE Trans. Inf. Theory 27, 1981, half a label of each class.
* of numbers the last two errors e of p, and the distances of p from the last two targets, the features of

      y ~ p + b_1 e_1 + b_2 e_2 + b_3 (y_1 - p) + b_4 (y_2 - p),

  an autoregression with moving averages (Box, Jenkins, "Time Series Analysis", 1970) around p, in which (0, 0, 1, 0) is
  "the same again".

The row before is the last one that was learned. Of rows that were predicted together all have the memory at the start
of the call. Where rows have no order, as in a `fit` that shuffles them, there is no row before: forecasts stay as they
are, and nothing is learned but the shares.
"""

import numpy as np

from libc.math cimport log
from libc.string cimport memcpy

from onlinebregman._kernels.learners.stack cimport Stack
from onlinebregman._kernels.learners.stack import COMBINATIONS

cdef double FORGETTING = 0.999  # of the chain
cdef double FORGETTING_RECENT = 0.9
cdef double PRIOR = 1.0         # of counts, divided by the shares of all labels
cdef double LARGEST = 1e100     # weight of a row


cdef class Memory(Undoable):
    """Base class. Its `stack` is undone by itself."""

    def __cinit__(self, *arguments, **more):
        self.ordered = 1.0
        self.fields.add("ordered", &self.ordered, sizeof(self.ordered))

    cdef void arrange(self, bint ordered) noexcept nogil:
        """Set whether the next rows follow each other."""
        self.ordered = ordered
        if not ordered:
            self.forget()

    cdef void forget(self) noexcept nogil:
        """There is no row before the next one."""


cdef class LabelMemory(Memory):
    """Of labels.

    Parameters
    ----------
    n_classes : int
    separate : bool, default=False
        Whether features have a logarithm for each of two classes, too, up to a constant, and not one log odds.
    share : float
        Of the weights of the corrections.
    stack : Stack, default=None
    """

    def __cinit__(self, share, Stack stack=None, n_classes=2, bint separate=False, dict state=None):
        self.stack = Stack(LABEL_FEATURES, 1.0, share, COMBINATIONS[:2]) if stack is None else stack
        self.n_classes, self.width, self.label = n_classes, width_of(n_classes, separate), -1.0
        self.fields.expect("table", (n_classes + 2) * n_classes)
        self.table, self.logits = np.zeros((n_classes + 2, n_classes)), np.zeros(LABEL_FEATURES * self.width)
        self.arguments = share, self.stack, n_classes, separate
        self.fields.add("label", &self.label, sizeof(self.label))
        self.fields.add("table", &self.table[0, 0], self.table.nbytes)
        if not -1 <= self.label < n_classes:
            raise ValueError(f"the last label must be one of {n_classes} classes, or -1; got {self.label}")

    def with_classes(self, n_classes, numbers):
        """The same for more classes, with a logit for each; `numbers` are those of the present ones."""
        state, table = self.get_state(), np.zeros((n_classes + 2, n_classes))
        rows = [*numbers, n_classes, n_classes + 1]
        table[np.ix_(rows, numbers)] = self.table
        state["table"], state["label"] = table, float(numbers[int(self.label)]) if self.label >= 0 else -1.0
        return LabelMemory(*self.arguments[:2], n_classes, True, state)

    @property
    def knows(self):
        """Whether there is a label before."""
        return self.label >= 0

    def features(self):
        """The logits of both forecasts, if it `knows`, and those of the shares of all labels."""
        cdef double[::1] a = np.zeros(LABEL_FEATURES * self.width)
        self.predict(&a[0])
        shares = np.log(np.asarray(self.table)[self.n_classes + 1] + 0.5)
        return np.reshape(a, (LABEL_FEATURES, -1)), np.diff(shares) if self.width < self.n_classes else shares

    cdef void forget(self) noexcept nogil:
        self.label = -1.0

    cdef void hold(self) noexcept nogil:
        self.known, self.held = self.predict(&self.logits[0]), True

    cdef void release(self) noexcept nogil:
        self.held = False

    cdef bint predict(self, double* a) noexcept nogil:
        """Compute the logits of both forecasts of the next label; False if there is no label before."""
        cdef Py_ssize_t c, k, n = self.n_classes
        cdef double total = 0.5 * n, first = 0.0, logit
        cdef const double* counts
        if self.held:
            memcpy(a, &self.logits[0], LABEL_FEATURES * self.width * sizeof(double))
            return self.known
        if self.label < 0:
            return False
        for c in range(n):
            total += self.table[n + 1, c]
        for k in range(LABEL_FEATURES):
            counts = &self.table[<Py_ssize_t> self.label if k == 0 else n, 0]
            for c in range(n):
                logit = log(counts[c] + PRIOR * (self.table[n + 1, c] + 0.5) / total)
                if self.width == n:
                    a[k * n + c] = logit
                elif c == 0:
                    first = logit
                else:
                    a[k] = logit - first
        return True

    cdef void count(self, Py_ssize_t row, Py_ssize_t y, double weight, double forgetting) noexcept nogil:
        cdef Py_ssize_t c
        for c in range(self.n_classes):
            self.table[row, c] *= forgetting
        self.table[row, y] += weight

    cdef void learn(self, Py_ssize_t y, double weight) noexcept nogil:
        """Remember a label."""
        weight = min(weight, LARGEST)
        self.table[self.n_classes + 1, y] += weight
        if self.ordered == 0:
            return
        if self.label >= 0:
            self.count(<Py_ssize_t> self.label, y, weight, FORGETTING)
        self.count(self.n_classes, y, weight, FORGETTING_RECENT)
        self.label = y


cdef class TargetMemory(Memory):
    """Of numbers.

    Parameters
    ----------
    share : float
        Of the weight of the correction.
    stack : Stack, default=None
    """

    def __cinit__(self, share, Stack stack=None, dict state=None):
        self.stack = Stack(TARGET_FEATURES, None, share, COMBINATIONS[2:]) if stack is None else stack
        self.arguments, self.known = (share, self.stack), &self.lags
        self.fields.add("lags", &self.lags, sizeof(self.lags))

    @property
    def knows(self):
        """Whether there are two targets before."""
        return self.lags.n == 2

    def features(self, origin):
        """The features of a forecast p, a distance from the origin, are these two vectors, the second one times p."""
        targets = np.asarray(self.lags.target) + (self.lags.origin - origin)
        return np.append(self.lags.error, targets), np.array([0.0, 0.0, -1.0, -1.0])

    cdef void forget(self) noexcept nogil:
        self.lags.n = 0.0

    cdef void hold(self) noexcept nogil:
        self.held, self.known = self.lags, &self.held

    cdef void release(self) noexcept nogil:
        self.known = &self.lags

    cdef bint find_features(self, double origin, double p, double unit, double* x) noexcept nogil:
        """Features of a forecast, a distance from the origin, in this unit: zeros, and False, if they are not known."""
        cdef Py_ssize_t k
        cdef bint known = self.known.n == 2 and unit > 0
        for k in range(2):
            x[k] = self.known.error[k] / unit if known else 0.0
            x[2 + k] = (self.known.target[k] + (self.known.origin - origin) - p) / unit if known else 0.0
        return known

    cdef void learn(self, double origin, double target, double p) noexcept nogil:
        """Remember a target and its forecast, both distances from the origin."""
        cdef Lags* lags = &self.lags
        if self.ordered == 0:
            return
        lags.error[1], lags.error[0] = lags.error[0], target - p
        lags.target[1], lags.target[0] = lags.target[0] + (lags.origin - origin), target
        lags.origin, lags.n = origin, min(lags.n + 1.0, 2.0)
