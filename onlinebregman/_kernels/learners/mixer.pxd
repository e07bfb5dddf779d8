from onlinebregman._kernels.learners.atomic cimport AtomicLearner
from onlinebregman._kernels.learners.hedge cimport Hedge
from onlinebregman._kernels.learners.memory cimport Memory
from onlinebregman._kernels.learners.quantile_tracker cimport QuantileTracker
from onlinebregman._kernels.learners.stack cimport Stack


cdef enum Phase:              # of a call
    AT_ONCE                   # each row was predicted after the one before was learned
    JUDGE                     # rows that were predicted together: first the losses of all predictions are counted,
    LEARN                     # then the rows are learned


cdef class Mixer(AtomicLearner):
    cdef readonly bint delayed          # whether the rows of a call were predicted together
    cdef Phase phase
    cdef readonly Hedge hedge           # the weights of the experts
    cdef readonly Stack stack           # of combinations in addition to the mixture, or None
    cdef readonly Memory memory         # of the targets before, which corrects the predictions, or None
    cdef readonly QuantileTracker tracker  # of the errors of the mixture's predictions, or None
    cdef tuple stacks                   # that of the combinations, and the memory's
    cdef tuple undoable                 # all of these, and the weights of the stacks
    cdef Py_ssize_t n_undoable          # their number
    cdef double error                   # of a row: |target - prediction|, or a power of -ln p; negative: none
    cdef bint clipped                   # whether not the losses of a row are learned, but `costs`
    cdef double cost                    # then the mixture's loss as it is learned
    cdef readonly bint gradient         # whether costs are the gradient of the mixture's loss, not the experts' losses
    cdef double[::1] buffer             # of which the following are parts
    cdef double* v                      # weights of the experts
    cdef double* losses                 # losses of the experts
    cdef double* costs                  # what is learned instead: linear approximations, if `gradient`, or `clipped`
    cdef double[::1] residuals          # of a row: minus the slopes of its loss at the prediction, then at a constant
    cdef bint watched                   # whether they are computed, for the trees of a `MixtureLearner`
    cdef double* work                   # 2 `lanes` numbers, and more of a subclass

    cdef int allocate(self, Hedge hedge, n_features, Py_ssize_t n_scores, Py_ssize_t more=*) except -1
    cdef void arrange(self, bint ordered) noexcept nogil
    cdef bint enter(self, Phase phase) noexcept nogil
    cdef double first_loss(self) noexcept nogil
    cdef Py_ssize_t buffer_size(self) noexcept nogil
    cdef void find_targets(self, const double* y, const double* weight, Py_ssize_t n, Py_ssize_t stride,
                           double* targets) noexcept nogil
    cdef int learn_targets(self, const double* scores, const double* y, double weight) noexcept nogil
    cdef bint some_sleep(self, const double* scores) noexcept nogil
    cdef int learn_scores(self, const double* scores, double y, double weight) noexcept nogil
    cdef double compare(self, const double* scores, double y, double weight) noexcept nogil
    cdef bint settle(self, const double* scores, double y, double weight) noexcept nogil
    cdef void weigh(self, double* buffer) noexcept nogil
    cdef void mix(self, const double* scores, double* out, double* buffer) noexcept nogil
