cimport cython

from onlinebregman._kernels.geometries.geometry cimport Workspaces
from onlinebregman._kernels.loop.descent cimport Descent
from onlinebregman._kernels.loop.learner cimport Learner
from onlinebregman._kernels.loop.solver cimport Score
from onlinebregman._kernels.loop.state cimport Settings
from onlinebregman._kernels.rows.rows cimport Row


@cython.final
cdef class Abreast:
    cdef Py_ssize_t n         # learners, first those that descend
    cdef Py_ssize_t n_descents
    cdef bint logistic        # does one of them learn by the logistic loss?
    cdef bint complete        # are all weights noted before the call?
    cdef void** learners
    cdef Descent* descents
    cdef Py_ssize_t* place    # of each in the list that it is from
    cdef Workspaces works     # of those that do not descend,
    cdef Score* scores        # and what these say of a row
    cdef double[::1] memory   # vectors of a number for each learner, of `stride` numbers:
    cdef Py_ssize_t stride
    cdef double* y            # the targets of the next row,
    cdef double* a            # its scores,
    cdef double* value        # its losses, their slopes and curvatures,
    cdef double* slope
    cdef double* curvature
    cdef double* fall         # how fast the scores fall with c,
    cdef double* base         # the rates, and times the row's weight,
    cdef double* eta
    cdef double* c            # and the steps

    cdef int gather(self, tuple learners, Py_ssize_t length) except -1
    cdef bint has(self, Py_ssize_t k) noexcept
    cdef int learn_row(self, const Row* row, double weight, Py_ssize_t* refusing) noexcept nogil
    cdef void score_descents(self, const Row* row) noexcept nogil
    cdef void rate_descent(self, const Descent* m, Py_ssize_t k, double weight) noexcept nogil
    cdef void find_loss(self, Py_ssize_t k, bint logistic) noexcept nogil
    cdef void find_step(self, const Settings* settings, Py_ssize_t k, bint logistic) noexcept nogil
    cdef int book_descent(self, const Descent* m, Py_ssize_t k, double weight) noexcept nogil
    cdef void move_descents(self, const Row* row) noexcept nogil
    cdef int predict(self, Learner learner, Py_ssize_t k, const Row* row) noexcept nogil
    cdef void take_in(self, Learner learner, Py_ssize_t k, double weight) noexcept nogil
    cdef int move(self, Learner learner, Py_ssize_t k, double weight) noexcept nogil
