"""The one loop over rows, for one geometry and one loss."""

import copy

import numpy as np

cimport cython
from libc.math cimport INFINITY, isfinite

from onlinebregman._kernels.geometries.adaptive import AdaptiveGeometry, NormalisedGeometry
from onlinebregman._kernels.geometries.euclidean import AveragedGeometry
from onlinebregman._kernels.geometries.entropy import SimplexGeometry
from onlinebregman._kernels.geometries.euclidean cimport EuclideanGeometry
from onlinebregman._kernels.geometries.geometry cimport (
    ADAPTIVE, DENSE, LINKS, MOVES_ALL, QUADRATIC, Geometry, Workspace, open_workspace
)
from onlinebregman._kernels.learners.atomic cimport (
    NONE, PROGRESSIVE, SCORED, AtomicLearner, Block, Foresight, learn_rows_of
)
from onlinebregman._kernels.learners.atomic import check_columns
from onlinebregman._kernels.learners.descent cimport Descent, descend, is_descent
from onlinebregman._kernels.learners.rule cimport GradientRate, PowerLaw, Rule, gradient_rate, limited, rule_of
from onlinebregman._kernels.learners.mirror_step cimport mirror_step
from onlinebregman._kernels.learners.snapshot cimport Snapshot
from onlinebregman._kernels.learners.run cimport (
    EXPLICIT, FAILED, IMPLICIT, IMPORTANCE, INTERRUPTED, LEARNED, OVERFLOWED, RunState
)
from onlinebregman._kernels.losses.loss cimport Loss
from onlinebregman._kernels.matrices.matrix cimport MatrixGeometry
from onlinebregman._kernels.rows.rows cimport Row, Rows, Shape, shape_of

UPDATES = {"explicit": EXPLICIT, "implicit": IMPLICIT, "importance": IMPORTANCE, "gradient": EXPLICIT}
ABSTRACT = (AdaptiveGeometry, AveragedGeometry, NormalisedGeometry, MatrixGeometry)  # these cannot make a step


cdef int check_rule(Learner learner) except -1:
    """Check that the rules are those of the geometry; a file may contain others."""
    cdef Rule rule = learner.rule
    cdef GradientRate limit = learner.limit
    if rule is None or (isinstance(rule, GradientRate) and rule is not limit):
        raise ValueError(f"the rule of a learner must be a step-size rule, or its limit; got {rule!r}")
    if limit is not None and type(limit) is not type(gradient_rate(learner.geometry, rule)):
        raise ValueError(f"the limit of a learner must be that of its geometry; got {limit!r}")
    return 0


cdef int check_rows(Learner learner, Rows rows) except -1:
    """See `check_columns`; a row for a matrix may consist of several parts of its size."""
    cdef Py_ssize_t n = learner.n_features
    cdef bint matrix = learner.geometry.traits & QUADRATIC or isinstance(learner.geometry, MatrixGeometry)
    if learner.row_map is not None:
        return AtomicLearner.check(learner, rows)
    if rows.n_columns != n and not (matrix and rows.n_columns and rows.n_columns % n == 0):
        check_columns(rows.n_columns, n)
    return 0


cdef Geometry averaged_view(Learner learner, Rows rows):
    """A view of the averaged weights for one row or a few sparse ones; None if most averages are needed.

    This is the case from the second dense row on that is predicted without learning in between.
    """
    cdef Geometry geometry = learner.geometry, view = None
    cdef Shape shape = shape_of(learner.row_map, rows)
    if learner.run.averaged == 0 or shape.stored > geometry.n_features:
        return None
    if shape.dense:
        with cython.critical_section(learner):
            known = learner.prediction_model
            if known is not None and known[0] == learner.run.t:
                return None
            learner.prediction_model = learner.run.t, None
    if not (geometry.traits & (MOVES_ALL | QUADRATIC) or geometry.average.first or geometry.average.computed):
        view = AveragedGeometry(geometry, learner.run.averaged)
    return view if view is not None and view.average.active else None


cdef inline int inline_learn_row(AtomicLearner learner, const Row* row, Workspace* work, const double* y, double weight,
                                 double* scores) noexcept nogil:
    return learn_row_by(<Learner> learner, row, work, y, weight, scores)


cdef inline int learn_row_by(Learner self, const Row* row, Workspace* work, const double* y, double weight,
                             double* prior_score) noexcept nogil:
    """`Learner.learn_row`, as a function that is inlined into the loop."""
    cdef int status
    if not self.before.complete:
        self.before.log(self.geometry, row)
    if self.descent.run != NULL:
        status = descend(&self.descent, row, y[0], weight, prior_score)
    else:
        open_workspace(work, row)
        status = mirror_step(
            self.geometry, self.loss, self.rule, &self.settings, &self.run, work, y[0], weight, prior_score
        )
        if status == INTERRUPTED or status == FAILED:
            note_failure(self)
    if status == LEARNED and not self.before.complete and not self.before.finite(self.geometry, row):
        return OVERFLOWED
    return status


cdef inline double intercept_of(const RunState* run) noexcept nogil:
    """The intercept of predictions."""
    return run.intercept_sum / run.averaged if run.averaged else run.intercept


cdef inline double score_of(Geometry geometry, Workspace* work) noexcept nogil:
    """w.x of the row of the workspace."""
    geometry.load(work)
    if geometry.lazy.active:
        geometry.lazy.catch_up(geometry, work)
    return geometry.dot(work)


cdef inline void prefetch_weights(Geometry geometry, Rows rows, Py_ssize_t i) noexcept nogil:
    rows.prefetch(i, &geometry.weights[0], geometry.per_feature)
    if geometry.lazy.pending:
        rows.prefetch(i, &geometry.lazy.stamp[0], geometry.per_feature)


cdef int note_failure(Learner learner) noexcept nogil:
    """Note the exception of a rule, or of a geometry, if that ends the call; most of a geometry's refuse a row."""
    with gil:
        error = learner.rule.failure
        if error is None and not refuses_row(learner.geometry.failure):
            error = learner.geometry.failure
        learner.interrupt = error
    return 0


cdef bint refuses_row(error):
    """Whether the exception of a geometry only means that a row cannot be learned."""
    return isinstance(error, Exception) and not isinstance(error, MemoryError)


cdef Geometry prediction_geometry(Learner learner, bint dense):
    """The geometry to predict rows with: the learning one, or a Euclidean one with the same or averaged weights."""
    cdef bint behind = dense and learner.geometry.lazy.pending > 0
    cdef Geometry twin
    cdef int traits = learner.geometry.traits
    if traits & QUADRATIC or not (learner.run.averaged or traits & MOVES_ALL or behind):
        return learner.geometry
    with cython.critical_section(learner):  # without the interpreter lock, other threads may replace it
        known = learner.prediction_model
    if known is None or known[0] != learner.run.t or known[1] is None:
        if behind and traits & ADAPTIVE:  # the weights depend on values larger than any before
            twin = copy.copy(learner.geometry)
            twin.lazy.catch_up_all(twin)
        else:
            twin = EuclideanGeometry(learner.coef)
        known = learner.run.t, twin
        with cython.critical_section(learner):
            learner.prediction_model = known
    return known[1]


cdef int begin_steps(Learner learner, Rows rows, bint complete) except -1:
    """Begin a call with its settings; the rule first, as undoing the call undoes it."""
    cdef Shape shape = shape_of(learner.row_map, rows)
    cdef Geometry geometry = learner.geometry
    learner.rule.begin(learner.run.t + 1.0, rows.n_rows)
    if learner.settings.track_regret and geometry.traits & ADAPTIVE and not geometry.tracks:
        raise ValueError("the geometry of a learner with track_regret must track regret; got one that does not")
    geometry.lazy.eager = geometry.lazy.active and (
        shape.dense
        or learner.settings.track_regret
        or not geometry.lazy.composes(geometry)
        or (geometry.average.active and not geometry.lazy.averages(geometry))
    )
    if geometry.traits & MOVES_ALL or geometry.lazy.eager or shape.dense or shape.stored >= geometry.n_features:
        complete = True
    complete = complete or geometry.needs_projection()
    learner.before.begin(geometry, rows.n_rows, shape.stored, complete)
    geometry.failure = None
    if geometry.lazy.eager:
        geometry.lazy.catch_up_all(geometry)
    if geometry.needs_projection():
        geometry.project_all()
    if learner.rule.failure is not None or geometry.failure is not None:
        note_failure(learner)
    learner.descent = Descent(
        &learner.run, &learner.settings, <void*> learner.rule, &geometry.weights[0], learner.loss.logistic
    )
    if not is_descent(geometry, learner.loss, learner.rule, &learner.settings):
        learner.descent.run = NULL
    return 0


cdef class Learner(AtomicLearner):
    """Learns rows one after the other, by the steps of a geometry on a loss.

    Parameters
    ----------
    geometry : Geometry
    loss : Loss
    """

    def __cinit__(self, Geometry geometry not None, Loss loss not None, dict state=None):
        self.geometry, self.loss, self.rule = geometry, loss, PowerLaw(0.0, 0.0)
        self.run.largest_weight, self.total_loss = 1.0, &self.run.loss
        self.before = Snapshot()
        self.fields.add("run", &self.run, sizeof(self.run), tuple(self.run))
        self.n_features, self.n_targets, self.target_ndim, self.n_scores = geometry.n_features, 1, 1, 1
        self.traits = geometry.traits | LINKS | (DENSE if isinstance(geometry, MatrixGeometry) else 0)
        if self.given:
            self.exchange({name: self.given.pop(name) for name in self.exchange(None)})
            check_rule(self)
            if self.run.averaged != 0 and not geometry.average.active:
                raise ValueError("the geometry of a learner with averaged weights must average; got one that does not")
            if self.settings.average_from < INFINITY and not geometry.average.active:
                geometry.start_averaging()
        if type(geometry) in ABSTRACT:
            raise TypeError(f"the geometry of a learner must not be an abstract class; got {type(geometry).__name__}")

    def get_state(self):
        """See `Stateful`."""
        return {**AtomicLearner.get_state(self), **self.exchange(None)}

    @property
    def t(self):
        return int(self.run.t)

    @property
    def failure(self):
        """The exception raised by a geometry in Python, or None."""
        return self.geometry.failure

    @property
    def largest_weight(self):
        """The largest weight of a row, and at least 1."""
        return self.run.largest_weight

    @property
    def all_weight_one(self):
        """Whether all rows had weight 1."""
        return self.run.reweighted == 0

    @property
    def tracked_rates(self):
        """First and last rate of the rows since regret is tracked, and whether a rate exceeded the one before."""
        return self.run.first_rate, self.run.last_rate, self.run.rate_rose > 0

    @property
    def position(self):
        """The weights (not averaged; both halves of signed ones) and the intercept that the next step starts from."""
        return self.geometry.state_weights, self.run.intercept

    @property
    def next_rate(self):
        """The rate for the next row, as far as it is known before."""
        return self.rule.next_rate(self.run.t + 1.0)

    @property
    def intercept(self):
        return intercept_of(&self.run)

    @property
    def coef(self):
        return self.geometry.coef(self.run.averaged)

    @property
    def limits(self):
        """See `Geometry.limits`; averaged weights are the same for all rows."""
        return None if self.run.averaged else self.geometry.limits

    def shift_intercept(self, double by):
        """Add a number to the intercept, and to its average."""
        self.run.intercept += by
        self.run.intercept_sum += by * self.run.averaged

    def apply(self, *, loss=None, update=None, schedule=None, fit_intercept=False, average=False, track_regret=False,
              intercept_scaling=1.0, upper=None, sum_bound=0.0):
        """Apply settings: a loss, or an update and all that goes with it, or both.

        Parameters
        ----------
        loss : Loss
        update : {"implicit", "explicit", "importance", "gradient"}
            "gradient": explicit steps at the rates of JKD07, which the schedule limits.
        schedule : Schedule
        fit_intercept : bool
        average : bool or int
            Row after which averaging begins; True is 1.
        track_regret : bool
            Accumulate the sums of the regret certificate, starting at the current weights.
        intercept_scaling : float
            The intercept's feature.
        upper : float
            The largest weight; None: as before.
        sum_bound : float
            See `GradientRate`.
        """
        cdef Rule rule = None if update is None else rule_of(schedule)
        if update == "gradient":
            rule = limited(self.geometry, self.limit, rule, sum_bound)
        self.before.hold(self.geometry)
        self.loss = self.loss if loss is None else loss
        if update is None:
            return
        self.rule, self.settings.update = rule, UPDATES[update]
        self.limit = rule if update == "gradient" else self.limit
        self.geometry.upper = self.geometry.upper if upper is None else upper
        self.settings.fit_intercept = fit_intercept * intercept_scaling**2
        self.settings.average_from = float(average) if average else INFINITY
        if self.geometry.average.active and self.run.t < self.settings.average_from:  # it begins later
            self.geometry.stop_averaging()
            self.run.averaged = self.run.intercept_sum = 0.0
        if average:
            self.geometry.start_averaging()
        self.settings.track_regret = track_regret
        if track_regret and self.origin is None:
            self.origin = self.position
            if self.geometry.traits & ADAPTIVE:
                self.geometry.start_tracking()
        elif not track_regret:
            self.origin = None
            if self.geometry.traits & ADAPTIVE:
                self.geometry.stop_tracking()
            self.run.weighted_loss = self.run.slack = self.run.rate_sum = 0.0
            self.run.plain_slack = self.run.plain_rows = self.run.first_rate = self.run.last_rate = 0.0
            self.run.rate_rose = 0.0

    # --- entry points -------------------------------------------------------------------------------------------

    def link(self, double[::1] scores):
        """Replace scores by the predictions h(score)."""
        cdef Py_ssize_t i
        for i in range(0 if self.loss.linear else scores.shape[0]):
            scores[i] = self.loss.link(scores[i])
        return np.asarray(scores)

    # --- predictions: see `AtomicLearner` -----------------------------------------------------------------------

    cdef object scorer(self, Rows rows, bint linked):
        return averaged_view(self, rows) or prediction_geometry(self, shape_of(self.row_map, rows).dense)

    cdef void score_row(self, void* scorer, const Row* row, Workspace* work, double* scores) noexcept nogil:
        open_workspace(work, row)
        if scorer != NULL:
            scores[0] = score_of(<Geometry> scorer, work) + intercept_of(&self.run)
        elif self.run.averaged or self.traits & MOVES_ALL:  # in a team, whose learners have no scorers
            with gil:
                scores[0] = score_of(prediction_geometry(self, row.index == NULL), work) + intercept_of(&self.run)
        else:
            scores[0] = score_of(self.geometry, work) + self.run.intercept

    # --- a call: see `AtomicLearner` ----------------------------------------------------------------------------

    cdef Foresight foresight(self) noexcept:
        if self.geometry.average.active or self.traits & MOVES_ALL:
            return NONE
        # others predict by the weights that `model` has, or divide by the sum of weights in another order
        return SCORED if type(self.geometry) is SimplexGeometry else PROGRESSIVE

    cdef Py_ssize_t vector_length(self, Py_ssize_t widest, bint to_learn) noexcept:
        return self.geometry.vector_length(widest)

    cdef int check(self, Rows rows) except -1:
        if self.loss is None:  # it can be set
            raise TypeError("the learner's loss must be a Loss; got None")
        return check_rows(self, rows)

    cdef int begin(self, Rows rows, bint complete) except -1:
        self.before.save(self.geometry)
        AtomicLearner.begin(self, rows, complete)
        return begin_steps(self, rows, complete)

    cdef int undo(self) except -1:
        self.rule.undo()
        AtomicLearner.undo(self)
        self.before.restore(self.geometry)
        with cython.critical_section(self):
            self.prediction_model = None
        return 0

    cdef int loop(self, Rows rows, Block* block) noexcept nogil:
        cdef int status
        self.geometry.begin_block(rows, block.sample_weight, &block.work)
        status = learn_rows_of(self, rows, block, self.row_map, inline_learn_row)
        block.work.in_block = False
        return status

    cdef Py_ssize_t effort(self, Py_ssize_t n) noexcept nogil:
        return n * self.geometry.per_feature

    cdef void prefetch(self, Rows rows, Py_ssize_t i, void* scorer) noexcept nogil:
        if rows.n_columns == self.n_features:
            prefetch_weights(<Geometry> (<void*> self.geometry if scorer == NULL else scorer), rows, i)

    cdef int learn_row(self, const Row* row, Workspace* work, const double* y, double weight,
                       double* prior_score) noexcept nogil:
        return learn_row_by(self, row, work, y, weight, prior_score)

    cdef int check_all(self) noexcept nogil:
        if not (isfinite(self.run.intercept) and isfinite(self.run.intercept_sum)):
            return OVERFLOWED
        if not self.geometry.bounded():
            return OVERFLOWED
        return OVERFLOWED if self.before.complete and not self.before.finite(self.geometry, NULL) else LEARNED

    cdef dict exchange(self, dict others):
        held = {
            "settings": self.settings, "rule": self.rule, "limit": self.limit, "origin": self.origin, "loss": self.loss
        }
        if others is not None:
            self.settings, self.rule, self.limit = others["settings"], others["rule"], others["limit"]
            self.origin, self.loss = others["origin"], others["loss"]
        return held
