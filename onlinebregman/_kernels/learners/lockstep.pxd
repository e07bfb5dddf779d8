cimport cython

from onlinebregman._kernels.geometries.geometry cimport Workspaces
from onlinebregman._kernels.learners.descent cimport Descent
from onlinebregman._kernels.learners.learner cimport Learner
from onlinebregman._kernels.learners.solver cimport Score
from onlinebregman._kernels.learners.run cimport Settings
from onlinebregman._kernels.rows.rows cimport Row

cdef enum:
    MAX_PARTS = 64            # of learners that are divided among threads


@cython.final
cdef class Lockstep:
    cdef Py_ssize_t n         # number of learners; those with a `Descent` come first
    cdef Py_ssize_t n_descents
    cdef bint logistic        # whether one of them has the logistic loss
    cdef bint complete        # whether all weights are saved before the call
    cdef void** learners
    cdef Descent* descents
    cdef Py_ssize_t* index    # index of each in the list given to `gather`
    cdef Workspaces works     # of those without a `Descent`
    cdef Score* scores        # of the same
    cdef double[::1] memory   # of the following vectors of `stride` numbers, one for each learner
    cdef Py_ssize_t stride
    cdef double* y            # targets of the row
    cdef double* a            # its scores
    cdef double* value        # its losses, their slopes and curvatures
    cdef double* dloss
    cdef double* curvature
    cdef double* xSx         # decrease of the scores per unit of c
    cdef double* base         # rates
    cdef double* eta          # rates times the row's weight
    cdef double* c            # steps

    cdef int gather(self, tuple learners, Py_ssize_t first, Py_ssize_t end, Py_ssize_t length) except -1
    cdef bint has(self, Py_ssize_t k) noexcept
    cdef int learn_row(self, const Row* row, double weight, Py_ssize_t* refusing) noexcept nogil
    cdef void score_descents(self, const Row* row) noexcept nogil
    cdef void rate_descent(self, const Descent* m, Py_ssize_t k, double weight) noexcept nogil
    cdef void find_loss(self, Py_ssize_t k, bint logistic) noexcept nogil
    cdef void find_step(self, const Settings* settings, Py_ssize_t k, bint logistic) noexcept nogil
    cdef int record_descent(self, const Descent* m, Py_ssize_t k, double weight) noexcept nogil
    cdef void move_descents(self, const Row* row) noexcept nogil
    cdef int predict(self, Learner learner, Py_ssize_t k, const Row* row) noexcept nogil
    cdef void update_metric(self, Learner learner, Py_ssize_t k, double weight) noexcept nogil
    cdef int move(self, Learner learner, Py_ssize_t k, double weight) noexcept nogil


cdef tuple divided(tuple learners, Py_ssize_t n, Py_ssize_t length, void** parts)
