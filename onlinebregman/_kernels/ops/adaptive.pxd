cdef extern from "ops/adaptive.h":
    double OB_UNSEEN
    double OB_KINK_ROUNDING
    double ob_size_of_terms(const double* w, const double* x, Py_ssize_t n) noexcept nogil
    double ob_normalised_dot(const double* w, const double* x, const double* r, Py_ssize_t n, double* square,
                             int* larger) noexcept nogil
    void ob_rescale_row(double* out, const double* x, const double* g, const double* r, int prior,
                        Py_ssize_t n) noexcept nogil
    void ob_update_largest(double* w, double* g, double* r, const double* x, int prior, Py_ssize_t n) noexcept nogil
    double ob_adapt(double* q, double* g, const double* x, double s, Py_ssize_t n) noexcept nogil
    double ob_adapt_normalised(double* q, double* g, const double* x, const double* r, double s,
                               Py_ssize_t n) noexcept nogil
    double ob_adapt_second_order(double* q, double* g, const double* x, const double* r, double s,
                                 Py_ssize_t n) noexcept nogil
    double ob_bet(double pull, double squares, double m, double wealth) noexcept nogil
    void ob_bets(double* w, double* bet, const double* x, const double* pull, const double* squares,
                 const double* largest, const double* wealth, double unit, Py_ssize_t n) noexcept nogil
    double ob_count_new(const double* x, const double* largest, Py_ssize_t n) noexcept nogil
    void ob_settle(const double* bet, const double* x, double* pull, double* squares, double* largest, double* wealth,
                   double s, double counted, double played, Py_ssize_t n) noexcept nogil
    double ob_reciprocal(double g, double r, int prior) noexcept nogil
    double ob_flow(double w, double t, double l1, double l2) noexcept nogil
    void ob_shrink(double* w, const double* g, const double* r, int prior, const double* t, double l1, double l2,
                   Py_ssize_t n) noexcept nogil
