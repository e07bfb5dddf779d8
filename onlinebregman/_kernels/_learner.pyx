"""The one loop over rows: ask the loss for c (explicit) or solve for it (implicit, importance), then step."""

import numpy as np
from scipy.sparse import csr_array, csr_matrix, issparse

cimport cython
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBuffer_Release, PyObject_GetBuffer
from libc.math cimport INFINITY, NAN, isfinite, isnan
from libc.stdlib cimport free, malloc

from onlinebregman._kernels._descent cimport (
    BAD_TARGET, BLOCKED, EXPLICIT, FAILED, GRADIENT, IMPLICIT, IMPORTANCE, LEARNED, LEFT_DOMAIN, NEGATIVE, NOT_FINITE,
    OVERFLOWED, Clockwork, count, descend, is_descent, linear_step, rate
)
from onlinebregman._kernels._geometry cimport EuclideanGeometry, Geometry, Row
from onlinebregman._kernels._loss cimport Loss
from onlinebregman._kernels._rows cimport Rows, dense_rows, sparse_rows
from onlinebregman._kernels._snapshot cimport Snapshot
from onlinebregman._kernels._solver cimport Score, implicit_step, importance_step

cdef extern from "vector_ops.h":
    double ob_nonfinite(const double* a, Py_ssize_t n) noexcept nogil

cdef type ndarray = np.ndarray

UPDATES = {"explicit": EXPLICIT, "implicit": IMPLICIT, "importance": IMPORTANCE, "gradient": GRADIENT}
cdef dict REASONS = {
    NOT_FINITE: "not finite",
    BAD_TARGET: "bad target",
    LEFT_DOMAIN: "left domain",
    NEGATIVE: "negative",
    OVERFLOWED: "overflowed",
    FAILED: "failed",
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


cdef inline double moved_by(Geometry geometry, Row* row, Score* score, double c) noexcept nogil:
    """D(w, w(c)), the intercept included."""
    if geometry.linear:
        return 0.5 * c * c * (score.slope + score.bias)
    return geometry.conjugate(row, c) + c * (score.a - score.intercept) + 0.5 * score.bias * c * c


@cython.final
cdef class Learner:
    """A geometry, a loss and a step: learns rows one after the other.

    Parameters
    ----------
    geometry : Geometry
    loss : Loss
    """

    def __init__(self, Geometry geometry, Loss loss):
        self.geometry = geometry
        self.loss = loss
        self.rates = []
        self.before = Snapshot()

    def __reduce__(self):
        return _restore, (self.geometry, self.loss, self.settings, self.clockwork, self.rates, self.origin)

    def _set_state(self, settings, clockwork, rates, origin):
        self.settings = settings
        self.clockwork = clockwork
        self.rates = list(rates)
        self.origin = origin

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
        if "feature_names_in_" in attributes:
            return False
        rows = plain_rows(X)
        if rows is None or rows.n_rows == 0 or rows.n_columns != self.geometry.n_features:
            return False
        try:
            PyObject_GetBuffer(y, &targets, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)
        except (BufferError, ValueError):
            return False
        try:
            if targets.ndim == 1 and targets.shape[0] == rows.n_rows and targets.format == b"d":
                done = self._learn(rows, <const double*> targets.buf, NULL, NULL, &failed, NULL) == LEARNED
        finally:
            PyBuffer_Release(&targets)
        return done

    def learn(self, X, const double[::1] y, const double[::1] sample_weight=None, const Py_ssize_t[::1] order=None,
              double[::1] scores=None):
        """Learn validated rows, dense or CSR, in the order they come or in `order`.

        Returns (reason, row) of what could not be learned, or None. All rows are learned or none. `scores`, if given,
        receives each row's score before it was learned (NaN where its weight is 0).
        """
        cdef Py_ssize_t failed = 0
        cdef const double* weights = NULL
        cdef const Py_ssize_t* permutation = NULL
        if sample_weight is not None:
            weights = &sample_weight[0]
        if order is not None:
            permutation = &order[0]
        status = self._learn(open_rows(X), &y[0], weights, permutation, &failed, NULL if scores is None else &scores[0])
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

    # --- the work -----------------------------------------------------------------------------------------------

    cdef object _predict(self, Rows rows, bint linked, bint* finite):
        cdef Geometry geometry = self._model()
        cdef Loss loss = self.loss
        cdef double intercept = self.intercept
        cdef double[::1] out
        cdef Row row
        cdef Py_ssize_t i
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
            free(row.buffer)
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
        make_room(&row, self.geometry.room(rows.widest))
        try:
            while True:
                self._begin(rows, whole)
                with nogil:
                    status = self._loop(rows, y, weights, order, &row, failed, scores)
                if status != LEARNED:
                    self._go_back(rows, order)
                if status != BLOCKED:
                    return status
                whole = True
        finally:
            free(row.buffer)

    cdef int _begin(self, Rows rows, bint whole) except -1:
        """Note what to go back to."""
        whole = whole or self.geometry.whole or rows.indices == NULL or rows.stored >= self.geometry.n_features
        self.before.take(self.geometry, rows, whole)
        self.clockwork_before, self.state_before = self.clockwork, self.geometry.state
        self.rates_before = len(self.rates)
        self.geometry.failure = None
        self.geometry.forget()
        self.plain = is_descent(self.geometry, self.loss, &self.settings)
        return 0

    cdef int _go_back(self, Rows rows, const Py_ssize_t* order) except -1:
        self.before.restore(self.geometry, rows, order)
        self.geometry.forget()
        self.geometry.state = self.state_before
        self.clockwork = self.clockwork_before
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
        """After the last row: the weights that were not looked at row by row have to be finite, too."""
        return OVERFLOWED if self.before.whole and not self.before.finite(self.geometry, NULL) else LEARNED

    cdef int _row(self, Geometry geometry, Loss loss, Row* row, double y, double weight, double* seen) noexcept nogil:
        """Predict a row and learn it; nothing is changed before the prediction has shown that the row is sound."""
        cdef Clockwork* state = &self.clockwork
        cdef int update = self.settings.update
        cdef double c, eta, lo, hi, gap = 0.0, value
        cdef Score score
        geometry.load(row)
        score.intercept, score.bias = state.intercept, self.settings.fit_intercept
        if update == IMPLICIT or update == IMPORTANCE or (geometry.linear and self.settings.track_regret):
            geometry.peek(row, 0.0, &score.a, &score.slope)
        else:
            score.a = geometry.dot(row)
        score.a += state.intercept
        if geometry.failure is not None:
            return FAILED
        if not isfinite(score.a):
            return NOT_FINITE
        if not loss.admits(y):
            return BAD_TARGET
        if seen != NULL:
            seen[0] = score.a

        # the rate, and the step c of f(w') = f(w) - c x
        eta = rate(&self.settings, state.t + 1.0)
        if update == IMPLICIT and geometry.linear and loss.linear:
            c = linear_step(score.a - y, score.slope + score.bias, weight * eta)
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
            if not lo < c < hi:
                return LEFT_DOMAIN if isfinite(c) else OVERFLOWED

        value = loss.value(score.a, y)
        if self.settings.track_regret:
            gap = moved_by(geometry, row, &score, c)
        if geometry.averaging:
            geometry.accumulate(row)
        geometry.step(row, c)
        if self.settings.track_regret:
            self._certify(row, &score, y, weight * eta, c, gap, value)
        geometry.project(row)
        geometry.store(row)
        geometry.settle(row)
        if geometry.blocked:
            return BLOCKED
        if geometry.failure is not None:
            return FAILED
        count(state, weight * value, c, score.bias)
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
        """The adaptive rate of the papers' explicit step: it never grows, and keeps the weights inside their bounds."""
        cdef double cap = geometry.rate_cap(row, residual)
        if cap < 0:
            return cap
        if isnan(cap):  # a bound is in the way of this row; the rate of the others stays
            return 0.0
        eta = min(eta, geometry.state.rate)
        if cap / weight < eta:  # the falls of a schedule are not noted: they would fill the memory
            eta = cap / weight
            with gil:
                self.rates.append((self.clockwork.t + 1.0, eta))
        geometry.state.rate = eta
        return eta


def _restore(geometry, loss, settings, clockwork, rates, origin):
    learner = Learner(geometry, loss)
    learner._set_state(settings, clockwork, rates, origin)
    return learner
