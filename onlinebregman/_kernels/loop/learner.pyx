"""The one loop over rows: ask the loss for c (explicit) or solve for it (implicit, importance), then step."""

import numpy as np
from scipy.sparse import csr_array, csr_matrix, issparse

cimport cython
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBuffer_Release, PyObject_GetBuffer
from libc.math cimport INFINITY, NAN, isfinite
from libc.stdlib cimport free, malloc

from onlinebregman._kernels.loop.descent cimport (
    BAD_TARGET, BLOCKED, EXPLICIT, FAILED, GRADIENT, IMPLICIT, IMPORTANCE, INTERRUPTED, LEARNED, LEFT_DOMAIN,
    LOSS_OVERFLOWED, NEGATIVE, NOT_FINITE, OVERFLOWED, Clockwork, count, descend, is_descent, linear_step, rate
)
from onlinebregman._kernels.geometries.geometry cimport EuclideanGeometry, Geometry, Row
from onlinebregman._kernels.losses.loss cimport Loss
from onlinebregman._kernels.rows.rows cimport Rows, dense_rows, is_aligned, sparse_rows
from onlinebregman._kernels.loop.snapshot cimport Snapshot
from onlinebregman._kernels.loop.solver cimport Score, implicit_step, importance_step
from onlinebregman._kernels.loop.transaction cimport check_idle, patience, signal_raised, under_way

cdef extern from "loop/claim.h":
    bint ob_claim(long* flag) noexcept nogil
    void ob_release(long* flag) noexcept nogil

cdef extern from "ops/vector.h":
    double ob_nonfinite(const double* a, Py_ssize_t n) noexcept nogil

cdef type ndarray = np.ndarray

UPDATES = {"explicit": EXPLICIT, "implicit": IMPLICIT, "importance": IMPORTANCE, "gradient": GRADIENT}
# The history of the adaptive rate has its falls below this part of what was noted last: some thousand, whatever comes.
cdef double WORTH_NOTING = 0.9
cdef dict REASONS = {
    NOT_FINITE: "not finite",
    BAD_TARGET: "bad target",
    LEFT_DOMAIN: "left domain",
    NEGATIVE: "negative",
    OVERFLOWED: "overflowed",
    FAILED: "failed",
    LOSS_OVERFLOWED: "loss overflowed",
}


cdef object reason(int status):
    """Why a row was refused, in a word or two."""
    return REASONS[status]


cdef int make_room(Row* row, Py_ssize_t room) except -1:
    """Give a row its working memory; to be freed by the caller."""
    row.room = room
    row.buffer = <double*> malloc(max(5 * room, 1) * sizeof(double))
    if row.buffer == NULL:
        raise MemoryError()
    return 0


cdef Rows plain_rows(X):
    """The rows of X if it is an array or CSR as the kernels read it, and no subclass; else None."""
    if type(X) is ndarray:
        return dense_rows(X)
    if type(X) is csr_matrix or type(X) is csr_array:
        return sparse_rows(X)
    return None


cdef Rows open_rows(X):
    """The rows of validated X, dense or CSR."""
    cdef Rows rows = sparse_rows(X) if issparse(X) else dense_rows(X)
    if rows is None:
        raise TypeError("X has to be a C-contiguous array of float64 or float32, or CSR in canonical format")
    return rows


cdef int check_loss(Loss loss) except -1:
    """The loss of a learner may be set: to one, not to None."""
    if loss is None:
        raise TypeError("the learner has no loss: set `loss` to one")
    return 0


cdef inline double moved_by(Geometry geometry, Row* row, Score* score, double c) noexcept nogil:
    """D(w, w(c)), the intercept included."""
    cdef double whole = row.end + c
    if geometry.linear:
        return 0.5 * c * c * (score.slope + score.bias)
    return geometry.conjugate(row, c) + whole * (score.a - score.intercept) + 0.5 * score.bias * whole * whole


@cython.final
cdef class Mark:
    """A learner as it was beside its weights, and the number of its calls."""


@cython.final
cdef class Learner:
    """A geometry, a loss and a step: learns rows one after the other.

    Parameters
    ----------
    geometry : Geometry
    loss : Loss
    state : dict, default=None
        What another learner carried beside the two, to go on as it would.
    """

    def __cinit__(self, Geometry geometry not None, Loss loss not None, dict state=None):
        self.geometry = geometry
        self.loss = loss
        self.rates = []
        self.before, self.order = Snapshot(), None
        if state is not None:
            self.settings, self.clockwork = state["settings"], state["clockwork"]
            self.rates, self.origin = list(state["rates"]), state["origin"]

    def __reduce__(self):
        check_idle(self.busy)
        state = {
            "settings": self.settings, "clockwork": self.clockwork, "rates": list(self.rates), "origin": self.origin
        }
        return type(self), (self.geometry, self.loss, state)

    @property
    def t(self):
        return int(self.clockwork.t)

    @property
    def cumulative_loss(self):
        return self.clockwork.loss

    @property
    def failure(self):
        """The exception by which a geometry in Python refused a row, or None."""
        return self.geometry.failure

    @property
    def n_moves(self):
        """Rows that moved the weights."""
        return int(self.clockwork.moves)

    @property
    def weighted_loss(self):
        """Sum of rate times weight times loss since regret is tracked."""
        return self.clockwork.weighted_loss

    @property
    def slack(self):
        """S of the regret certificate since regret is tracked."""
        return self.clockwork.slack

    @property
    def position(self):
        """The weights that the next step starts from, both halves of signed ones, and the intercept; no average."""
        return self.geometry.state_weights, self.clockwork.intercept

    @property
    def next_rate(self):
        """The schedule's rate for the next row, or the adaptive one if that is lower."""
        return min(rate(&self.settings, self.clockwork.t + 1.0), self.geometry.state.rate)

    @property
    def rate_history(self):
        """(row number, rate) where the adaptive rate had fallen by a tenth since the last entry."""
        return np.array(self.rates, dtype=np.float64).reshape(-1, 2)

    @property
    def intercept(self):
        cdef double averaged = self.clockwork.averaged
        return self.clockwork.intercept_sum / averaged if averaged else self.clockwork.intercept

    @property
    def coef(self):
        return self.geometry.coef(self.clockwork.averaged)

    def configure(self, *, update, schedule, fit_intercept=False, average=False, track_regret=False, armed=()):
        """Set how rows are learned from now on.

        Parameters
        ----------
        update : {"implicit", "explicit", "importance", "gradient"}
        schedule : object with `scale` and `power`
            Rate of row t: scale / t^power.
        fit_intercept : bool
        average : bool or int
            Average the weights after so many rows; True is 1.
        track_regret : bool
            Accumulate what the regret certificate needs, from the present weights on.
        armed : dict
            The estimator's parameters these settings follow from. The fast path is open as long as the estimator
            holds these very objects.
        """
        check_idle(self.busy)
        self.settings.update = UPDATES[update]
        self.settings.rate_scale, self.settings.rate_power = schedule.scale, schedule.power
        self.settings.fit_intercept = fit_intercept
        self.settings.average_from = float(average) if average else INFINITY
        if average:
            self.geometry.start_averaging()
        elif self.geometry.averaging:
            self.geometry.stop_averaging()
            self.clockwork.averaged = self.clockwork.intercept_sum = 0.0
        self.settings.track_regret = track_regret
        if track_regret and self.origin is None:
            self.origin = self.position
        elif not track_regret:
            self.origin = None
            self.clockwork.weighted_loss = self.clockwork.slack = 0.0
        self.armed = tuple(dict(armed).items())

    cpdef bint in_force(self, dict attributes):
        """Are the estimator's attributes the very parameters this learner was configured with?"""
        if self.armed is None:
            return False
        for name, value in self.armed:
            if attributes.get(name) is not value:
                return False
        return True

    # --- ways in ------------------------------------------------------------------------------------------------

    def learn_fast(self, dict attributes, X, y):
        """Learn a block, or one row, without validation; False if that is not safe and nothing was learned.

        Safe means: X and y are plain arrays (or X is CSR) of the right type and shape, the parameters are the ones in
        force, and there are no feature names to compare. What is not finite shows up in the predictions.
        """
        cdef Rows rows
        cdef Py_buffer targets
        cdef Py_ssize_t failed
        cdef bint done = False
        if type(y) is not ndarray or not self.in_force(attributes):
            return False
        if "feature_names_in_" in attributes or self.busy or under_way(attributes):
            return False
        rows = plain_rows(X)
        if rows is None or rows.n_rows == 0 or rows.n_columns != self.geometry.n_features:
            return False
        try:
            PyObject_GetBuffer(y, &targets, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)
        except (BufferError, ValueError):
            return False
        try:
            if targets.ndim == 1 and targets.shape[0] == rows.n_rows and targets.format == b"d" and is_aligned(&targets):
                done = self._learn(rows, <const double*> targets.buf, NULL, NULL, &failed, NULL) == LEARNED
        finally:
            PyBuffer_Release(&targets)
        return done

    def learn(self, X, const double[::1] y, const double[::1] sample_weight=None, const Py_ssize_t[::1] order=None,
              double[::1] scores=None):
        """Learn validated rows, dense or CSR, in the order they come or in `order`.

        Returns (reason, row) of what could not be learned, or None. All rows are learned or none. `scores`, if given,
        receives each row's score before it was learned, by averaged weights if they are averaged (NaN where its weight
        is 0).
        """
        cdef Py_ssize_t failed = 0
        cdef const double* weights = NULL
        cdef const Py_ssize_t* permutation = NULL
        if sample_weight is not None:
            weights = &sample_weight[0]
        if order is not None:
            permutation = &order[0]
        status = self._learn(open_rows(X), &y[0], weights, permutation, &failed, NULL if scores is None else &scores[0])
        self.order = order if self.n_marks else None
        return None if status == LEARNED else (reason(status), failed)

    def predict_fast(self, dict attributes, X, bint linked=True):
        """Predictions for a plain float array or CSR without validation, or None if that is not safe."""
        cdef Rows rows
        cdef bint finite
        if "feature_names_in_" in attributes:
            return None
        rows = plain_rows(X)
        if rows is None or rows.n_rows == 0 or rows.n_columns != self.geometry.n_features:
            return None
        predictions = self._predict(rows, linked, &finite)
        return predictions if finite else None

    def predict(self, X, *, linked=True):
        """Predictions for validated rows, dense or CSR: h(score), or the scores themselves."""
        cdef bint finite
        return self._predict(open_rows(X), linked, &finite)

    # --- one thread, all or nothing -----------------------------------------------------------------------------

    def mark(self):
        """What `go_back` needs to undo changes of the settings and the next call that learns; `commit` forgets it."""
        cdef Mark mark = Mark()
        check_idle(self.busy)
        mark.settings, mark.clockwork, mark.state = self.settings, self.clockwork, self.geometry.state
        mark.armed, mark.origin, mark.loss, mark.upper = self.armed, self.origin, self.loss, self.geometry.upper
        mark.averaging, mark.average_sum = self.geometry.averaging, self.geometry.average_sum
        mark.stamp = self.geometry.stamp
        mark.n_rates, mark.n_calls = len(self.rates), self.n_calls
        self.n_marks += 1
        return mark

    def go_back(self, Mark mark):
        """Undo what happened since the mark was made: one call that learned at most."""
        self._claim()
        try:
            if self.n_calls > mark.n_calls + 1:
                raise RuntimeError(f"{self.n_calls - mark.n_calls} calls have learned since the mark was made")
            if self.n_calls > mark.n_calls:
                self._go_back(self.rows, NULL if self.order is None else &self.order[0])
            self.settings, self.clockwork, self.geometry.state = mark.settings, mark.clockwork, mark.state
            self.armed, self.origin, self.loss, self.geometry.upper = mark.armed, mark.origin, mark.loss, mark.upper
            self.geometry.averaging, self.geometry.average_sum = mark.averaging, mark.average_sum
            self.geometry.stamp = mark.stamp
            del self.rates[mark.n_rates:]
            self.n_calls = mark.n_calls
        finally:
            self._release()

    def commit(self):
        """Let go of what the last mark kept at hand."""
        self.n_marks -= 1
        if self.n_marks == 0:
            self.rows = self.order = None

    cdef int _claim(self) except -1:
        if not ob_claim(&self.busy):
            check_idle(self.busy)
        return 0

    cdef void _release(self) noexcept:
        ob_release(&self.busy)

    cdef object _interruption(self):
        """The exception that ended the loop and is not about a row: Ctrl-C, or memory that ran out."""
        for error in (self.interrupt, self.loss.interrupt, self.geometry.failure):
            if error is not None and (not isinstance(error, Exception) or isinstance(error, MemoryError)):
                return error
        return None

    cdef bint _interrupted(self, Py_ssize_t work) noexcept nogil:
        """Has a signal raised an exception? Asked for once in a while, going by how many numbers were touched."""
        self.patience -= work
        return self.patience < 0 and self._signalled()

    cdef bint _signalled(self) noexcept nogil:
        with gil:
            self.patience = patience()
            self.interrupt = signal_raised()
            return self.interrupt is not None

    cdef void _took(self, Rows rows) noexcept:
        """All rows have been learned."""
        self.n_calls += 1
        self.rows, self.order = rows if self.n_marks else None, None

    # --- the work -----------------------------------------------------------------------------------------------

    cdef object _predict(self, Rows rows, bint linked, bint* finite):
        cdef Geometry geometry = self._model()
        cdef Loss loss = self.loss
        cdef double intercept = self.intercept
        cdef double[::1] out
        cdef Row row
        cdef Py_ssize_t i
        check_loss(loss)
        predictions = np.empty(rows.n_rows)
        out = predictions
        make_room(&row, geometry.room(rows.widest))
        with nogil:
            for i in range(rows.n_rows):
                rows.fetch(i, &row)
                if i + 1 < rows.n_rows:
                    rows.ask_for(i + 1, &geometry.weights[0], geometry.blocks)
                geometry.load(&row)
                out[i] = geometry.dot(&row) + intercept
            finite[0] = ob_nonfinite(&out[0], rows.n_rows) == 0
            if linked and not loss.linear:
                for i in range(rows.n_rows):
                    out[i] = loss.link(out[i])
                finite[0] = finite[0] and ob_nonfinite(&out[0], rows.n_rows) == 0
            free(row.buffer)
        if loss.interrupt is not None:
            error, loss.interrupt = loss.interrupt, None
            raise error
        return predictions

    cdef Geometry _model(self):
        """The geometry to predict with: the learning one, or a Euclidean one that holds the weights it amounts to."""
        if self.geometry.quadratic or not (self.clockwork.averaged or self.geometry.whole):
            return self.geometry
        if self.prediction_model is None or self.prediction_model[0] != self.clockwork.t:
            self.prediction_model = (self.clockwork.t, EuclideanGeometry(self.coef))
        return self.prediction_model[1]

    cdef int _learn(self, Rows rows, const double* y, const double* weights, const Py_ssize_t* order,
                    Py_ssize_t* failed, double* scores) except -1:
        cdef int status
        cdef bint whole = False
        cdef Row row
        self._claim()
        row.buffer = NULL
        try:
            make_room(&row, self.geometry.room(rows.widest))
            while True:
                self._begin(rows, whole)
                with nogil:
                    status = self._loop(rows, y, weights, order, &row, failed, scores)
                error = self._interruption()
                if status != LEARNED or error is not None:
                    self._go_back(rows, order)
                if error is not None:
                    raise error
                if status == LEARNED:
                    self._took(rows)
                if status != BLOCKED:
                    return status
                whole = True
        finally:
            free(row.buffer)
            self._release()

    cdef int _begin(self, Rows rows, bint whole) except -1:
        """Note what to go back to."""
        cdef bint unsettled = self.geometry.unsettled()
        check_loss(self.loss)
        whole = whole or self.geometry.whole or rows.indices == NULL or rows.stored >= self.geometry.n_features
        self.before.take(self.geometry, rows, whole or unsettled)
        self.clockwork_before, self.state_before = self.clockwork, self.geometry.state
        self.rates_before = len(self.rates)
        if unsettled:
            self.geometry.confine()
        self.geometry.failure = self.loss.interrupt = self.interrupt = None
        self.patience = patience()
        self.geometry.forget()
        self.plain = is_descent(self.geometry, self.loss, &self.settings)
        return 0

    cdef int _go_back(self, Rows rows, const Py_ssize_t* order) except -1:
        self.before.restore(self.geometry, rows, order)
        self.geometry.forget()
        self.geometry.state = self.state_before
        self.clockwork = self.clockwork_before
        self.prediction_model = None
        del self.rates[self.rates_before:]
        return 0

    cdef int _loop(self, Rows rows, const double* y, const double* weights, const Py_ssize_t* order, Row* row,
                   Py_ssize_t* failed, double* scores) noexcept nogil:
        cdef Py_ssize_t k, i
        cdef int status
        for k in range(rows.n_rows):
            i = k if order == NULL else order[k]
            failed[0] = i
            if self.geometry.foresees:
                self._foretell(rows, k, weights, order, row)
            rows.fetch(i, row)
            row.foretold = self.geometry.foresees
            if self._interrupted(row.n * self.geometry.blocks):
                return INTERRUPTED
            if rows.indices != NULL and k + 1 < rows.n_rows:
                self._ask_for(rows, k + 1 if order == NULL else order[k + 1])
            status = self._one(
                row, y[i], 1.0 if weights == NULL else weights[i], NULL if scores == NULL else &scores[i]
            )
            if status != LEARNED:
                return status
        return self._end()

    cdef void _foretell(self, Rows rows, Py_ssize_t k, const double* weights, const Py_ssize_t* order,
                        Row* row) noexcept nogil:
        """Have the geometry expect the rows from the k-th on, as far as it wants to."""
        cdef Py_ssize_t wanted = self.geometry.wants(), i
        while wanted > 0 and k < rows.n_rows:
            i = k if order == NULL else order[k]
            if weights == NULL or weights[i] != 0:
                rows.fetch(i, row)
                wanted = self.geometry.expect(row)
            k += 1

    cdef void _ask_for(self, Rows rows, Py_ssize_t i) noexcept nogil:
        rows.ask_for(i, &self.geometry.weights[0], self.geometry.blocks)

    cdef int _one(self, Row* row, double y, double weight, double* seen) noexcept nogil:
        """Learn a row in such a way that it can be undone."""
        cdef int status
        if not self.before.whole:
            self.before.log(self.geometry, row)
        if weight == 0:
            if seen != NULL:
                seen[0] = NAN
            return LEARNED
        if self.plain:
            status = descend(&self.clockwork, &self.settings, &self.geometry.weights[0], row, y, weight, seen)
        else:
            status = self._row(self.geometry, self.loss, row, y, weight, seen)
        if status == LEARNED and not self.before.whole and not self.before.finite(self.geometry, row):
            return OVERFLOWED
        return status

    cdef int _end(self) noexcept nogil:
        """After the last row: what was not looked at row by row has to be finite, too."""
        if not (isfinite(self.clockwork.intercept) and isfinite(self.clockwork.intercept_sum)):
            return OVERFLOWED
        if not self.geometry.bounded():
            return OVERFLOWED
        return OVERFLOWED if self.before.whole and not self.before.finite(self.geometry, NULL) else LEARNED

    cdef int _row(self, Geometry geometry, Loss loss, Row* row, double y, double weight, double* seen) noexcept nogil:
        """Predict a row and learn it; nothing is changed before the prediction has shown that the row is sound."""
        cdef Clockwork* state = &self.clockwork
        cdef int update = self.settings.update
        cdef double c, eta, lo, hi, gap = 0.0, value, shown
        cdef bint averaged = state.averaged > 0 and not geometry.quadratic
        cdef Score score
        row.end = 0.0
        if averaged:  # what `predict` says
            shown = (geometry.averaged_dot(row) + state.intercept_sum) / state.averaged
        geometry.load(row)
        score.intercept, score.bias = state.intercept, self.settings.fit_intercept
        if update == IMPLICIT or update == IMPORTANCE or (geometry.linear and self.settings.track_regret):
            geometry.peek(row, 0.0, &score.a, &score.slope)
        else:
            score.a = geometry.dot(row)
        score.a += state.intercept
        if geometry.failure is not None:
            return FAILED
        if not averaged:
            shown = score.a
        if not isfinite(score.a):
            return NOT_FINITE
        if not isfinite(shown):  # the weights are sound, the sum that is averaged is not
            return OVERFLOWED
        if not loss.admits(y):
            return BAD_TARGET
        if seen != NULL:
            seen[0] = shown

        # the rate, and the step c of f(w') = f(w) - c x
        eta = rate(&self.settings, state.t + 1.0)
        if update == IMPLICIT and geometry.linear and loss.linear:
            c = linear_step(score.a - y, score.slope + score.bias, weight * eta)
            if not isfinite(c):
                return OVERFLOWED
        elif update == IMPLICIT:
            c = implicit_step(geometry, loss, row, &score, weight * eta, y)
            if not isfinite(c):
                return OVERFLOWED
        elif update == IMPORTANCE:
            c = importance_step(geometry, loss, row, &score, weight * eta, y)
            if not isfinite(c):
                return OVERFLOWED
        else:
            if update == GRADIENT:
                eta = self._capped_rate(geometry, row, eta, weight, score.a - y)
                if eta < 0 or y < 0:
                    return NEGATIVE
            c = weight * eta * loss.derivative(score.a, y)
            geometry.domain(row, &lo, &hi)
            if not lo < c < hi and not (isfinite(c) and update == GRADIENT and geometry.upper < INFINITY):
                return LEFT_DOMAIN if isfinite(c) else OVERFLOWED

        value = loss.value(score.a, y)
        if self.settings.track_regret:
            gap = moved_by(geometry, row, &score, c)
        if geometry.averaging:
            geometry.accumulate(row)
        geometry.step(row, c)
        c += row.end
        if self.settings.track_regret:
            self._certify(row, &score, y, weight * eta, c, gap, value)
        geometry.project(row)
        geometry.store(row)
        geometry.settle(row)
        if geometry.blocked:
            return BLOCKED
        if geometry.failure is not None:
            return FAILED
        count(state, weight * (loss.value(shown, y) if averaged else value), c, score.bias)
        if not isfinite(state.loss + state.weighted_loss + state.slack):
            return LOSS_OVERFLOWED
        if state.t >= self.settings.average_from:
            state.averaged += 1.0
            state.intercept_sum += state.intercept
            geometry.state.clock += geometry.scale()
        return LEARNED

    cdef void _certify(self, Row* row, Score* score, double y, double eta, double c, double gap,
                       double value) noexcept nogil:
        """What a step adds to both sides of the certificate; `gap` is D(w, w(c)), and the weights are w(c) by now."""
        cdef double a, fall
        self.clockwork.weighted_loss += eta * value
        if self.settings.update == EXPLICIT or self.settings.update == GRADIENT:
            self.clockwork.slack += gap
            return
        if self.geometry.linear:
            a = score.a - c * (score.slope + score.bias)
        else:
            a = self.geometry.dot(row) + score.intercept - score.bias * c
        fall = eta * (value - self.loss.value(a, y))
        self.clockwork.slack += fall if self.settings.update == IMPORTANCE else fall + gap - c * (score.a - a)

    cdef double _capped_rate(self, Geometry geometry, Row* row, double eta, double weight,
                             double residual) noexcept nogil:
        """The adaptive rate of the papers' explicit step, which never grows.

        -1 where the step is not defined; NaN where the rate underflows, and would be 0 for ever.
        """
        cdef double cap = geometry.rate_cap(row, residual, self.settings.fit_intercept)
        if cap < 0:
            return cap
        eta = min(eta, geometry.state.rate)
        if cap / weight < eta:
            eta = cap / weight
            if eta <= WORTH_NOTING * geometry.state.noted:
                geometry.state.noted = eta
                with gil:
                    self.rates.append((self.clockwork.t + 1.0, eta))
        geometry.state.rate = eta
        return eta if eta > 0 else NAN
