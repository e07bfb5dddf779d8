cdef extern from "ops/hedge.h":
    double ob_least_cost(const double* costs, const double* neg_log_ratio, double rate, Py_ssize_t n) noexcept nogil
    double ob_least_rise(const double* costs, const double* neg_log_ratio, const double* losses, double rate,
                         double best, Py_ssize_t n) noexcept nogil
    void ob_weigh(double* w, const double* costs, const double* neg_log_ratio, double rate, double best,
                  Py_ssize_t n) noexcept nogil
    double ob_weigh_after(double* w, const double* costs, const double* neg_log_ratio, const double* losses,
                          double rate, double best, double rise, Py_ssize_t n) noexcept nogil
    void ob_minus_logs(double* logs, const double* costs, const double* neg_log_ratio, double rate, double best,
                       double largest, Py_ssize_t n) noexcept nogil
    void ob_costs(double* costs, const double* w, const double* ratio, const double* neg_log_ratio, double keep,
                  double part, double rate, double best, Py_ssize_t n) noexcept nogil
    double ob_soft_least(double* t, const double* a, const double* b, Py_ssize_t n) noexcept nogil
    double ob_mix_loss(const double* w, const double* losses, double* t, Py_ssize_t n) noexcept nogil
    double ob_log_odds_of_ends(const double* w, const double* z, double* t, Py_ssize_t n) noexcept nogil
    void ob_log_losses(double* losses, const double* a, double sign, Py_ssize_t n) noexcept nogil
    void ob_mix_two(const double* w, const double* a, double* t, double* above, double* below,
                    Py_ssize_t n) noexcept nogil
