cdef class Hedge:
    cdef readonly Py_ssize_t n_experts
    cdef readonly double fixed_rate  # of the weights; NaN where it follows from `gap`
    cdef readonly double share
    cdef readonly object prior  # None for equal ones
    cdef readonly double least_prior
    cdef double choice        # -ln of it
    cdef double[::1] ratio    # of each prior weight to that of equal ones,
    cdef double[::1] prices   # and -ln of that
    cdef readonly double loss  # of the mixture
    cdef readonly double gap
    cdef double[::1] losses   # of the experts
    cdef double[::1] costs    # and what weights go by: the same but for what was dealt out,
    cdef Py_ssize_t lanes     # with room for so many, as weights and losses of a row have
    cdef double[::1] room     # for weights on their way to the record
    cdef double[::1] before   # what the last call has to put back
    cdef double loss_before, gap_before
    cdef readonly Py_ssize_t n_rows
    cdef double[:, ::1] log   # weights on record, after every `interval` rows
    cdef double[:, ::1] log_before  # None where what is on record will not be touched
    cdef Py_ssize_t n_logged, interval
    cdef Py_ssize_t n_rows_before, n_logged_before, interval_before

    cdef double current_rate(self) noexcept nogil
    cdef double least(self, double rate) noexcept nogil
    cdef void weigh(self, double* weights) noexcept nogil
    cdef void find_logs(self, const double* weights, double* logs) noexcept nogil
    cdef double log_loss(self, const double* weights, const double* losses, double* room) noexcept nogil
    cdef void count(self, const double* losses, double* weights, double loss) noexcept nogil
    cdef void move(self, const double* costs, double* weights, double cost) noexcept nogil
    cdef void add(self, const double* losses, double loss) noexcept nogil
    cdef bint finite(self) noexcept nogil
    cdef void record(self) noexcept nogil
    cdef void save(self, Py_ssize_t n_rows) noexcept
    cdef void go_back(self) noexcept
