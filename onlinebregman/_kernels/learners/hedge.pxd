from onlinebregman._kernels.ops.state cimport Stateful, Undoable


cdef class History(Stateful):
    cdef int size             # how many of the last rows are recorded; EVENLY: some of all
    cdef double[:, ::1] rows
    cdef double[:, ::1] rows_before  # None if the call only adds to them
    cdef Py_ssize_t n, interval, n_before, interval_before

    cdef bint due(self, Py_ssize_t t) noexcept nogil
    cdef void record(self, const double* weights) noexcept nogil
    cdef int save(self, Py_ssize_t n_rows) except -1
    cdef void restore(self) noexcept


cdef struct Totals:
    double loss               # of the mixture
    double gap
    double rows               # their number
    double cost               # of the mixture: what of its loss is learned
    double unlearned          # the most that the mixture lost to an expert by what is not learned
    double recent_rows        # of a window, in which costs are compared with the rate
    double recent_cost        # of the mixture there
    double dropped            # what 1 / rate has lost whenever the rate was raised


cdef class Hedge(Undoable):  # what it learns are the totals, losses and costs
    cdef readonly Py_ssize_t n_experts
    cdef readonly double fixed_rate  # of the weights; NaN where it follows from `gap`
    cdef readonly double share
    cdef double evenness      # the part of it that is redistributed after the next row
    cdef readonly object prior  # None for equal weights
    cdef readonly double least_prior
    cdef double neg_log_least  # -ln of it
    cdef double[::1] ratio    # of each prior weight to that of equal ones
    cdef double[::1] neg_log_ratio  # -ln of the same
    cdef Totals totals
    cdef double[::1] losses   # of the experts
    cdef double[::1] costs    # that determine the weights: the losses, or with a share -ln(weight / prior) / rate
    cdef Py_ssize_t lanes     # n_experts, rounded up to a multiple of OB_LANES: length of vectors of experts
    cdef readonly History history  # of the weights
    cdef double[::1] buffer   # for the weights to record
    cdef Py_ssize_t held      # rows whose costs wait for `release`; -1: there are none, see `hold`
    cdef double[::1] held_costs
    cdef double held_cost

    cdef int set_history(self, History history) except -1
    cdef double current_rate(self) noexcept nogil
    cdef double least(self, double rate) noexcept nogil
    cdef void weigh(self, double* weights) noexcept nogil
    cdef void find_logs(self, const double* weights, double* logs) noexcept nogil
    cdef double log_loss(self, const double* weights, const double* losses, double* buffer) noexcept nogil
    cdef void count(self, const double* losses, double loss, double* weights, const double* costs,
                    double cost) noexcept nogil
    cdef void move(self, double* weights, const double* costs, double cost, Py_ssize_t n_rows) noexcept nogil
    cdef void raise_rate(self, double cost, Py_ssize_t n_rows) noexcept nogil
    cdef void forget(self) noexcept nogil
    cdef void leave_out(self, const double* losses, double loss, const double* costs, double cost) noexcept nogil
    cdef bint finite(self) noexcept nogil
