cdef extern from "ops/softmax.h":
    double OB_NO_CLASS
    ctypedef struct ob_softmax:  # of the scores of n classes
        Py_ssize_t classes, n, y
        double* e
    void ob_softmax_of(ob_softmax* p, const double* z) noexcept nogil
    double ob_softmax_loss(const ob_softmax* p, const double* z) noexcept nogil
    void ob_softmax_probabilities(const ob_softmax* p, double* s) noexcept nogil
    void ob_softmax_slopes(const ob_softmax* p, double* g) noexcept nogil
    double ob_softmax_curvature(const ob_softmax* p) noexcept nogil
    void ob_softmax_implicit(ob_softmax* p, const double* a, double q, double* buffer) noexcept nogil
