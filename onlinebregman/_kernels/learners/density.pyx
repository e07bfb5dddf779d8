"""Densities learned row by row: each row is predicted by a member of the family, and then learned.

Sums are of rows minus an `origin`, to avoid cancellation: the first row for Gaussians, 0 for other families.
"""

import numpy as np

from libc.math cimport NAN, isfinite
from libc.string cimport memcpy

from onlinebregman._kernels.geometries.geometry cimport Workspace
from onlinebregman._kernels.learners.atomic cimport AtomicLearner
from onlinebregman._kernels.learners.state cimport LEARNED, OVERFLOWED
from onlinebregman._kernels.rows.rows cimport Row


cdef class DensityLearner(AtomicLearner):
    """Base class of densities.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
        Of the prior.
    """

    def __cinit__(self, *arguments, **more):
        if not arguments and not more or type(self) is DensityLearner:
            raise TypeError("DensityLearner must be created with the arguments of a subclass, which hold the prior")

    cdef int allocate(self, mean, Py_ssize_t more) except -1:
        self.mean = np.array(mean, dtype=np.float64)
        self.n_features, self.n_scores, self.dense = self.mean.shape[0], 1, True
        if self.n_features == 0:
            raise ValueError("mean must have 1 feature or more; got an empty array")
        self.memory, self.state.unweighted = np.zeros(2 * self.n_features + more), 1.0
        return 0

    cdef int declare(self) except -1:
        """Called at the end of a constructor."""
        self.learned.add("memory", &self.memory[0], self.memory.nbytes)
        return self.learned.add("state", &self.state, sizeof(self.state))

    def replaced(self, memory, **state):
        """A learner with the same prior, with this memory and these parts of the state."""
        cdef DensityLearner learner = type(self)(*self.arguments)
        np.asarray(learner.memory)[:] = memory
        learner.state = {**self.state, **state}
        return learner

    @property
    def t(self):
        return int(self.state.rows)

    @property
    def weight(self):
        return self.state.weight

    cdef double total_loss(self) noexcept nogil:
        return self.state.loss

    @property
    def origin(self):
        return np.asarray(self.memory)[:self.n_features].copy()

    @property
    def total(self):
        """The sum of weight * (x - origin)."""
        return np.asarray(self.memory)[self.n_features:2 * self.n_features].copy()

    cdef bint scores_predict(self) noexcept:
        return True

    cdef Py_ssize_t vector_length(self, Py_ssize_t widest) noexcept:
        return self.n_features

    cdef int learn_row(self, const Row* row, Workspace* work, const double* y, double weight,
                       double* scores) noexcept nogil:
        cdef int status
        cdef double log_density
        if weight == 0:
            if scores != NULL:
                scores[0] = NAN
            return LEARNED
        if self.located and self.state.rows == 0:
            memcpy(&self.memory[0], row.x, self.n_features * sizeof(double))
        status = self.predict_and_learn(row.x, weight, work, &log_density if scores == NULL else scores)
        self.state.rows += 1.0
        self.state.weight += weight
        if weight != 1:
            self.state.unweighted = 0.0
        if status == LEARNED and not isfinite(self.state.loss):
            return OVERFLOWED
        return status

    cdef int predict_and_learn(self, const double* x, double weight, Workspace* work,
                               double* log_density) noexcept nogil:
        """Add the row's loss to that of the state, and the row to what has been learned.

        `log_density` receives its log-density, as a row of weight 1.
        """
        return LEARNED
