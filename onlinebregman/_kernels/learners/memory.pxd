from onlinebregman._kernels.learners.stack cimport Stack
from onlinebregman._kernels.ops.state cimport Undoable

cdef enum:
    LABEL_FEATURES = 2        # numbers of features
    TARGET_FEATURES = 4


cdef inline Py_ssize_t width_of(Py_ssize_t n_classes, bint separate) noexcept nogil:
    """Scores of an expert: one for two classes, unless they are to have one each."""
    return 1 if n_classes == 2 and not separate else n_classes


cdef class Memory(Undoable):
    cdef readonly Stack stack  # of corrections of the forecast
    cdef double ordered       # whether rows that are learned follow each other

    cdef void arrange(self, bint ordered) noexcept nogil
    cdef void forget(self) noexcept nogil


cdef class LabelMemory(Memory):
    cdef readonly Py_ssize_t n_classes
    cdef Py_ssize_t width     # logits of each feature
    cdef double[:, ::1] table  # counts of labels after each of them, of recent ones, and of all
    cdef double label         # the last one; -1 if there is none
    cdef double[::1] logits   # the last result of `predict`
    cdef bint known, held

    cdef bint predict(self, double* a) noexcept nogil
    cdef void count(self, Py_ssize_t row, Py_ssize_t y, double weight, double forgetting) noexcept nogil
    cdef void learn(self, Py_ssize_t y, double weight) noexcept nogil


cdef struct Lags:             # of the last two rows, the last one first
    double n                  # how many of them are known
    double origin             # that targets are distances from
    double[2] target, error   # errors of the forecasts


cdef class TargetMemory(Memory):
    cdef Lags lags
    cdef Lags held
    cdef Lags* known          # those with which the next row is predicted: the same, or those at `hold`

    cdef bint find_features(self, double origin, double p, double unit, double* x) noexcept nogil
    cdef void learn(self, double origin, double target, double p) noexcept nogil
