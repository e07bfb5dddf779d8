# The settings of a step, the state of a run besides the weights, and the result of learning a row.

cdef enum Update:
    EXPLICIT
    IMPLICIT
    IMPORTANCE


cdef enum Status:
    LEARNED
    NOT_FINITE      # the row's prediction is not finite
    BAD_TARGET      # the loss does not admit the target
    LEFT_DOMAIN     # the explicit step leaves the geometry's domain
    NEGATIVE        # the papers' gradient step needs x >= 0 and y >= 0
    OVERFLOWED      # the step or the new weights are not finite
    NEEDS_BACKUP    # the geometry has to move all weights, and not all of them are backed up
    FAILED          # a geometry in Python raised an exception
    INTERRUPTED     # a signal raised an exception
    LOSS_OVERFLOWED # the row's loss, or a sum that includes it, is not finite
    TOO_LARGE       # the sum of squares of standardised rows is not finite


cdef struct Settings:
    int update
    double fit_intercept      # the square of the intercept's feature, 0 if none is learned
    bint track_regret
    double average_from       # the row from which weights are averaged


cdef struct RunState:         # the learner's state except for its geometry
    double t                  # rows learned
    double intercept
    double intercept_sum      # averaging
    double averaged           # number of steps averaged over
    double loss               # cumulative loss, each row's taken before it was learned
    double moves              # number of rows that moved the weights
    double largest_score      # the largest |score| so far, where kinks matter: see `on_kink`
    double largest_weight     # of a row, and at least 1: bounds depend on it
    double reweighted         # number of rows whose weight is not 1
    # regret certificate:
    double weighted_loss      # the sum of eta L
    double slack              # S of its inequality
    double rate_sum           # the sum of eta, the factor of the comparator's penalty
    double plain_slack        # S with each row's term divided by its rate, for the regret itself
    double plain_rows         # number of penalised rows in it
    double first_rate         # first and last rate of its rows
    double last_rate
    double rate_rose          # whether a rate exceeded the one before


cdef inline void add_slack(RunState* run, double s, double rate) noexcept nogil:
    """A row's term of S, at the rate of a row of weight 1."""
    run.slack += s
    run.plain_slack += s / rate
    if run.first_rate == 0:
        run.first_rate = rate
    elif rate > run.last_rate:
        run.rate_rose = 1.0
    run.last_rate = rate


cdef inline double linear_step(double residual, double slope, double eta) noexcept nogil:
    """The root of c = eta (residual - c slope), in a form whose division does not depend on the residual."""
    return eta * residual * (1.0 / (1.0 + eta * slope))


cdef inline void count(RunState* run, double weight, double loss, double c, double intercept_xSx) noexcept nogil:
    """Record that a row has been learned by the step c."""
    run.t += 1.0
    if weight != 1.0:
        run.reweighted += 1.0
        run.largest_weight = max(run.largest_weight, weight)
    run.loss += loss
    run.moves += c != 0
    run.intercept -= intercept_xSx * c
