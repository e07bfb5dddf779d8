from onlinebregman._kernels.geometries.geometry cimport Workspace
from onlinebregman._kernels.learners.atomic cimport AtomicLearner


cdef struct DensityState:
    double rows               # number of rows learned
    double weight             # sum of their weights
    double loss               # the sum of weight * -ln P(x), each row predicted before it was learned
    double log_det            # of the scatter with the prior (a Gaussian of any covariance)
    # Of an exponential family:
    double base               # sum of weight * -ln P_0(x - origin)
    double quadratic          # sum of quadratic costs, for the regret bound of a Gaussian
    double radius             # max |x - mu_1|^2 / variance
    double unweighted         # 1 if all rows had weight 1


cdef class DensityLearner(AtomicLearner):
    cdef double[::1] memory   # origin, total = sum of weight * (x - origin), and further statistics of a subclass
    cdef readonly DensityState state
    cdef double[::1] mean
    cdef bint located         # whether the first row is the origin

    cdef int allocate(self, mean, Py_ssize_t more) except -1
    cdef int declare(self) except -1
    cdef int predict_and_learn(self, const double* x, double weight, Workspace* work,
                               double* log_density) noexcept nogil
