"""The one loop over rows: ask the loss for c (explicit) or solve for it (implicit), then step."""

import numpy as np
from scipy.sparse import csr_array, csr_matrix, issparse

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBuffer_Release, PyObject_GetBuffer
from libc.math cimport INFINITY, NAN, fabs, isfinite, pow, sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from onlinebregman._kernels._geometry cimport EuclideanGeometry, Geometry, Row, Scalars
from onlinebregman._kernels._loss cimport Loss
from onlinebregman._kernels._rows cimport Rows, dense_rows, sparse_rows

cdef extern from "vector_ops.h":
    double ob_nonfinite(const double* a, Py_ssize_t n) noexcept nogil

cdef type ndarray = np.ndarray

cdef enum Update:
    EXPLICIT
    IMPLICIT
    GRADIENT

cdef enum Status:
    LEARNED
    NOT_FINITE      # the row's prediction or target is not finite
    LEFT_DOMAIN     # the explicit step leaves the geometry's domain
    NEGATIVE        # the papers' gradient step needs x >= 0 and y >= 0
    OVERFLOWED      # the step or the weights are not finite any more
    BLOCKED         # the geometry has to move all weights, and they are not all backed up

UPDATES = {"explicit": EXPLICIT, "implicit": IMPLICIT, "gradient": GRADIENT}
REASONS = {NOT_FINITE: "not finite", LEFT_DOMAIN: "left domain", NEGATIVE: "negative", OVERFLOWED: "overflowed"}


cdef struct Settings:
    int update
    bint fit_intercept
    double rate_scale         # rate of row t: rate_scale / t^rate_power
    double rate_power
    double average_from       # the row from which weights are averaged


cdef struct Clockwork:        # the learner's state beside its geometry
    double t                  # rows learned
    double intercept
    double intercept_sum      # averaging
    double averaged           # steps averaged over
    double loss               # cumulative loss, each row's taken before it was learned


cdef double solve(Geometry geometry, Loss loss, Row* row, double eta, double y, double intercept, double bias,
                  double a, double slope) noexcept nogil:
    """The implicit equation c = eta (h(a(c)) - y), a(c) = w(c).x + intercept - bias c, by safeguarded Newton.

    psi(c) = c + eta (y - h(a(c))) increases with slope >= 1, and its root lies between 0 and the explicit c, inside
    the domain. `a` and `slope` are a(0) and x'Sx at c = 0; `bias` is 1 if the intercept moves too, else 0.
    """
    cdef double explicit = eta * (loss.link(a) - y)
    cdef double c = 0.0, lo, hi, low_end, high_end, psi, rise, step, error
    cdef double last, before  # sizes of the last two steps
    cdef int iteration
    if explicit == 0:
        return 0.0
    step = explicit / (1.0 + eta * loss.link_derivative(a) * (slope + bias))
    if geometry.linear and loss.linear:
        return step
    lo, hi = min(explicit, 0.0), max(explicit, 0.0)
    geometry.domain(row, &low_end, &high_end)
    lo, hi = max(lo, low_end), min(hi, high_end)
    last = before = hi - lo
    for iteration in range(200):
        # a Newton step leaves an error of half psi''/psi' times its square, and the geometry bounds that ratio
        error = geometry.sharpness(row, slope) * fabs(step)
        if error <= 0.1 and error * fabs(step) <= 1e-15 * fabs(c + step):
            return c + step
        # halve the bracket where Newton leaves it, overflows, or creeps (down an exponential its steps hardly shrink)
        if not lo < c + step < hi or not fabs(step) <= 0.5 * before:
            step = lo + 0.5 * (hi - lo) - c
            if not lo < c + step < hi:
                return c + step
        before, last = last, fabs(step)
        c += step
        geometry.peek(row, c, &a, &slope)
        a += intercept - bias * c
        psi = c + eta * (y - loss.link(a))
        if psi > 0:
            hi = c
        else:
            lo = c
        rise = 1.0 + eta * loss.link_derivative(a) * (slope + bias)
        step = -psi / rise if isfinite(rise) and isfinite(psi) else NAN
    return c


cdef int make_room(Row* row, Py_ssize_t room) except -1:
    """Give a row its working memory; to be freed by the caller."""
    row.room = room
    row.buffer = <double*> malloc(max(3 * room, 1) * sizeof(double))
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


cdef class Learner:
    """A geometry, a loss and a step: learns rows one after the other.

    Parameters
    ----------
    geometry : Geometry
    loss : Loss
    """

    cdef readonly Geometry geometry
    cdef readonly Loss loss
    cdef Clockwork clockwork
    cdef Settings settings
    cdef tuple armed          # (name, value) of the parameters that were validated and are in force
    cdef list rates           # (row number, rate) whenever the adaptive rate changed
    cdef object averaged_model

    def __init__(self, Geometry geometry, Loss loss):
        self.geometry = geometry
        self.loss = loss
        self.rates = []

    def __reduce__(self):
        return _restore, (self.geometry, type(self.loss), self.settings, self.clockwork, self.rates)

    def _set_state(self, settings, clockwork, rates):
        self.settings = settings
        self.clockwork = clockwork
        self.rates = list(rates)

    @property
    def t(self):
        return int(self.clockwork.t)

    @property
    def cumulative_loss(self):
        return self.clockwork.loss

    @property
    def next_rate(self):
        """The schedule's rate for the next row, or the adaptive one if that is lower."""
        return min(self._rate(self.clockwork.t + 1.0), self.geometry.state.rate)

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

    def configure(self, *, update, schedule, fit_intercept=False, average=False, armed=()):
        """Set how rows are learned from now on.

        Parameters
        ----------
        update : {"implicit", "explicit", "gradient"}
        schedule : object with `scale` and `power`
            Rate of row t: scale / t^power.
        fit_intercept : bool
        average : bool or int
            Average the weights after so many rows; True is 1.
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
                done = self._learn(rows, <const double*> targets.buf, NULL, NULL, &failed) == LEARNED
        finally:
            PyBuffer_Release(&targets)
        return done

    def learn(self, X, const double[::1] y, const double[::1] sample_weight=None, const Py_ssize_t[::1] order=None):
        """Learn validated rows, dense or CSR, in the order they come or in `order`.

        Returns (reason, row) of what could not be learned, or None. All rows are learned or none.
        """
        cdef Py_ssize_t failed = 0
        cdef const double* weights = NULL
        cdef const Py_ssize_t* permutation = NULL
        if sample_weight is not None:
            weights = &sample_weight[0]
        if order is not None:
            permutation = &order[0]
        status = self._learn(open_rows(X), &y[0], weights, permutation, &failed)
        return None if status == LEARNED else (REASONS[status], failed)

    def predict_fast(self, dict attributes, X):
        """Predictions for a plain float array or CSR without validation, or None if that is not safe."""
        cdef Rows rows
        cdef bint finite
        if "feature_names_in_" in attributes:
            return None
        rows = plain_rows(X)
        if rows is None or rows.n_rows == 0 or rows.n_columns != self.geometry.n_features:
            return None
        predictions = self._predict(rows, &finite)
        return predictions if finite else None

    def predict(self, X):
        """Predictions for validated rows, dense or CSR."""
        cdef bint finite
        return self._predict(open_rows(X), &finite)

    # --- the work -----------------------------------------------------------------------------------------------

    cdef object _predict(self, Rows rows, bint* finite):
        cdef Geometry geometry = self._model()
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
                geometry.load(&row)
                out[i] = geometry.dot(&row) + intercept
            finite[0] = ob_nonfinite(&out[0], rows.n_rows) == 0
            free(row.buffer)
        return predictions

    cdef Geometry _model(self):
        """The geometry to predict with: the learning one, or the averaged weights (kept until the next step)."""
        if not self.clockwork.averaged:
            return self.geometry
        if self.averaged_model is None or self.averaged_model[0] != self.clockwork.t:
            self.averaged_model = (self.clockwork.t, EuclideanGeometry(self.coef))
        return self.averaged_model[1]

    cdef int _learn(self, Rows rows, const double* y, const double* weights, const Py_ssize_t* order,
                    Py_ssize_t* failed) except -1:
        cdef Geometry geometry = self.geometry
        cdef Clockwork clockwork = self.clockwork
        cdef Scalars state = geometry.state
        cdef Py_ssize_t n_rates = len(self.rates)
        cdef int status
        cdef Snapshot snapshot = Snapshot(geometry, rows, rows.indices == NULL or rows.stored >= geometry.n_features)
        cdef Row row
        make_room(&row, geometry.room(rows.widest))
        while True:
            with nogil:
                status = self._loop(geometry, self.loss, rows, y, weights, order, &row, failed)
                if status == LEARNED and not snapshot.finite():
                    status = OVERFLOWED
                    failed[0] = rows.n_rows - 1
            if status != LEARNED:
                snapshot.restore()
                geometry.state = state
                self.clockwork = clockwork
                del self.rates[n_rates:]
            if status != BLOCKED:
                free(row.buffer)
                return status
            snapshot = Snapshot(geometry, rows, True)

    cdef int _loop(self, Geometry geometry, Loss loss, Rows rows, const double* y, const double* weights,
                   const Py_ssize_t* order, Row* row, Py_ssize_t* failed) noexcept nogil:
        cdef Clockwork* state = &self.clockwork
        cdef Py_ssize_t k, i
        cdef double a, slope, c, eta, weight = 1.0, lo, hi, bias = self.settings.fit_intercept
        cdef bint averaging
        for k in range(rows.n_rows):
            i = k if order == NULL else order[k]
            failed[0] = i
            if weights != NULL:
                weight = weights[i]
                if weight == 0:
                    continue
            rows.fetch(i, row)
            geometry.load(row)

            # predict; nothing is changed before the prediction has shown that the row is sound
            if self.settings.update == IMPLICIT:
                geometry.peek(row, 0.0, &a, &slope)
            else:
                a = geometry.dot(row)
            a += state.intercept
            if not isfinite(a) or not isfinite(y[i]):
                return NOT_FINITE

            # the rate, and the step c of f(w') = f(w) - c x
            eta = self._rate(state.t + 1.0)
            if self.settings.update == IMPLICIT:
                c = solve(geometry, loss, row, weight * eta, y[i], state.intercept, bias, a, slope)
            else:
                if self.settings.update == GRADIENT:
                    eta = self._capped_rate(geometry, row, eta, weight, a - y[i])
                    if eta < 0 or y[i] < 0:
                        return NEGATIVE
                c = weight * eta * (loss.link(a) - y[i])
                geometry.domain(row, &lo, &hi)
                if not lo < c < hi:
                    return LEFT_DOMAIN if isfinite(c) else OVERFLOWED

            state.t += 1.0
            state.loss += weight * loss.value(a, y[i])
            averaging = state.t >= self.settings.average_from
            if geometry.averaging:
                geometry.accumulate(row)
            geometry.step(row, c)
            geometry.store(row)
            geometry.settle(row)
            if geometry.blocked:
                return BLOCKED
            state.intercept -= bias * c
            if averaging:
                state.averaged += 1.0
                state.intercept_sum += state.intercept
                geometry.state.clock += geometry.scale()
        return LEARNED

    cdef double _rate(self, double t) noexcept nogil:
        if self.settings.rate_power == 0:
            return self.settings.rate_scale
        if self.settings.rate_power == 0.5:
            return self.settings.rate_scale / sqrt(t)
        if self.settings.rate_power == 1:
            return self.settings.rate_scale / t
        return self.settings.rate_scale / pow(t, self.settings.rate_power)

    cdef double _capped_rate(self, Geometry geometry, Row* row, double eta, double weight,
                             double residual) noexcept nogil:
        """The adaptive rate of the papers' explicit step: it never grows, and keeps the weights inside their bounds."""
        cdef double cap = geometry.rate_cap(row, residual)
        if cap < 0:
            return cap
        eta = min(eta, min(cap / weight, geometry.state.rate))
        if eta < geometry.state.rate:
            geometry.state.rate = eta
            with gil:
                self.rates.append((self.clockwork.t + 1.0, eta))
        return eta


def _restore(geometry, loss, settings, clockwork, rates):
    learner = Learner(geometry, loss())
    learner._set_state(settings, clockwork, rates)
    return learner


cdef class Snapshot:
    """What a call has to put back if a row cannot be learned: all weights, or those of the rows' columns if fewer."""

    cdef Geometry geometry
    cdef Rows rows
    cdef bint whole
    cdef double* saved

    def __cinit__(self, Geometry geometry, Rows rows, bint whole):
        cdef Py_ssize_t n = geometry.weights.shape[0] if whole else rows.stored * geometry.blocks
        self.geometry, self.rows, self.whole = geometry, rows, whole
        self.saved = <double*> malloc(max((3 if geometry.averaging else 1) * n, 1) * sizeof(double))
        if self.saved == NULL:
            raise MemoryError()
        geometry.backed_up, geometry.blocked = whole, False
        self.move(True)

    def __dealloc__(self):
        free(self.saved)

    cdef void restore(self):
        self.move(False)

    cdef void move(self, bint save):
        cdef double* saved = self.saved
        saved += self.move_vector(&self.geometry.weights[0], saved, save)
        if self.geometry.averaging:
            saved += self.move_vector(&self.geometry.average_sum[0], saved, save)
            self.move_vector(&self.geometry.stamp[0], saved, save)

    cdef Py_ssize_t move_vector(self, double* state, double* saved, bint save) noexcept nogil:
        cdef Py_ssize_t b, k, j, n = self.geometry.weights.shape[0], stored = self.rows.stored
        if self.whole:
            memcpy(saved if save else state, state if save else saved, n * sizeof(double))
            return n
        for b in range(self.geometry.blocks):
            for k in range(stored):
                j = b * self.geometry.n_features + self.rows.column(k)
                if save:
                    saved[b * stored + k] = state[j]
                else:
                    state[j] = saved[b * stored + k]
        return self.geometry.blocks * stored

    cdef bint finite(self) noexcept nogil:
        """Are the weights that may have moved finite?"""
        cdef Py_ssize_t b, k
        cdef double total = 0.0
        if self.whole:
            return ob_nonfinite(&self.geometry.weights[0], self.geometry.weights.shape[0]) == 0
        for b in range(self.geometry.blocks):
            for k in range(self.rows.stored):
                total += 0.0 * self.geometry.weights[b * self.geometry.n_features + self.rows.column(k)]
        return total == 0
