"""The one loop over rows: ask the loss for c (explicit) or solve for it (implicit), then step."""

import numpy as np
from scipy.sparse import issparse

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBUF_ND, PyBuffer_Release, PyObject_GetBuffer
from libc.math cimport INFINITY, fabs, isfinite, pow, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from onlinebregman._kernels._geometry cimport EuclideanGeometry, Geometry, Row, Scalars
from onlinebregman._kernels._loss cimport Loss

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


cdef struct Rows:
    const char* values        # float64 or float32, C-contiguous or the data of a CSR matrix
    const char* indices       # NULL for dense rows
    const char* indptr
    int value_size
    int index_size
    Py_ssize_t n_rows
    Py_ssize_t n_columns
    Py_ssize_t widest         # most values in a row
    Py_ssize_t stored         # values in all rows


cdef struct Clockwork:        # the learner's state beside its geometry
    double t                  # rows learned
    double intercept
    double intercept_sum      # averaging
    double averaged           # steps averaged over
    double loss               # cumulative loss, each row's taken before it was learned


cdef inline Py_ssize_t integer(const char* values, int size, Py_ssize_t i) noexcept nogil:
    return (<const int32_t*> values)[i] if size == 4 else <Py_ssize_t> (<const int64_t*> values)[i]


cdef void fetch(const Rows* rows, Py_ssize_t i, Row* row, double* x, Py_ssize_t* index) noexcept nogil:
    """Point `row` at row i; float32 values and narrow indices are widened into x and index."""
    cdef Py_ssize_t start, k
    if rows.indices == NULL:
        start, row.n = i * rows.n_columns, rows.n_columns
        row.index = NULL
    else:
        start = integer(rows.indptr, rows.index_size, i)
        row.n = integer(rows.indptr, rows.index_size, i + 1) - start
        if rows.index_size == sizeof(Py_ssize_t):
            row.index = (<const Py_ssize_t*> rows.indices) + start
        else:
            for k in range(row.n):
                index[k] = integer(rows.indices, rows.index_size, start + k)
            row.index = index
    row.stored = row.n
    if rows.value_size == 8:
        row.x = (<const double*> rows.values) + start
    else:
        for k in range(row.n):
            x[k] = (<const float*> rows.values)[start + k]
        row.x = x


cdef double solve(Geometry geometry, Loss loss, Row* row, double eta, double y, double intercept, double bias,
                  double a, double slope) noexcept nogil:
    """The implicit equation c = eta (h(a(c)) - y), a(c) = w(c).x + intercept - bias c, by safeguarded Newton.

    psi(c) = c + eta (y - h(a(c))) increases with slope >= 1, and its root lies between 0 and the explicit c, inside
    the domain. `a` and `slope` are a(0) and x'Sx at c = 0; `bias` is 1 if the intercept moves too, else 0.
    """
    cdef double c = 0.0, next_c, lo, hi, psi, low_end, high_end
    cdef double explicit = eta * (loss.link(a) - y)
    cdef int iteration
    if explicit == 0:
        return 0.0
    next_c = explicit / (1.0 + eta * loss.link_derivative(a) * (slope + bias))
    if geometry.linear and loss.linear:
        return next_c
    lo, hi = min(explicit, 0.0), max(explicit, 0.0)
    geometry.domain(row, &low_end, &high_end)
    lo, hi = max(lo, low_end), min(hi, high_end)
    for iteration in range(200):
        if fabs(next_c - c) <= 1e-8 * fabs(next_c):  # Newton squares the error: this step is exact to rounding
            return next_c
        if not lo < next_c < hi:
            next_c = lo + 0.5 * (hi - lo)
            if next_c == lo or next_c == hi:
                return next_c
        c = next_c
        geometry.peek(row, c, &a, &slope)
        a += intercept - bias * c
        psi = c + eta * (y - loss.link(a))
        if psi > 0:
            hi = c
        else:
            lo = c
        next_c = c - psi / (1.0 + eta * loss.link_derivative(a) * (slope + bias))
    return c


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
    cdef int update
    cdef bint fit_intercept
    cdef double rate_scale, rate_power, average_from
    cdef tuple armed          # (name, value) of the parameters that were validated and are in force
    cdef list rates           # (row number, rate) whenever the adaptive rate changed
    cdef object averaged_model

    def __init__(self, Geometry geometry, Loss loss):
        self.geometry = geometry
        self.loss = loss
        self.rates = []

    def __reduce__(self):
        return _restore, (self.geometry, type(self.loss), self.clockwork, self.rates)

    def _set_state(self, clockwork, rates):
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
        self.update = UPDATES[update]
        self.rate_scale, self.rate_power = schedule.scale, schedule.power
        self.fit_intercept = fit_intercept
        self.average_from = float(average) if average else INFINITY
        if average:
            self.geometry.start_averaging()
        self.armed = tuple(dict(armed).items())

    def in_force(self, attributes):
        """Are the estimator's attributes the very parameters this learner was configured with?"""
        return self._in_force(attributes)

    cdef bint _in_force(self, dict attributes):
        if self.armed is None:
            return False
        for name, value in self.armed:
            if attributes.get(name) is not value:
                return False
        return True

    # --- ways in ------------------------------------------------------------------------------------------------

    def learn_fast(self, dict attributes, X, y):
        """Learn a dense block, or one row, without validation; False if that is not safe and nothing was learned.

        Safe means: X and y are plain arrays of the right type and shape, the parameters are the ones in force, there
        are no feature names to compare and no callbacks to tell. What is not finite shows up in the predictions.
        """
        cdef Py_buffer x_buffer, y_buffer
        cdef Rows rows
        cdef Py_ssize_t failed = 0
        cdef bint done = False
        if type(X) is not ndarray or type(y) is not ndarray or not self._in_force(attributes):
            return False
        if "feature_names_in_" in attributes or "_skl_callbacks" in attributes:
            return False
        if not open_dense(X, &x_buffer, &rows):
            return False
        if rows.n_rows > 0 and rows.n_columns == self.geometry.n_features:
            if open_buffer(y, &y_buffer):
                if y_buffer.ndim == 1 and y_buffer.format[0] == b"d" and y_buffer.shape[0] == rows.n_rows:
                    done = self._learn(&rows, <const double*> y_buffer.buf, NULL, NULL, &failed) == LEARNED
                PyBuffer_Release(&y_buffer)
        PyBuffer_Release(&x_buffer)
        return done

    def learn(self, X, const double[::1] y, const double[::1] sample_weight=None, const Py_ssize_t[::1] order=None):
        """Learn validated rows, dense or CSR, in the order they come or in `order`.

        Returns (reason, row) of what could not be learned, or None. All rows are learned or none.
        """
        cdef Rows rows
        cdef Py_ssize_t failed = 0
        cdef int status
        cdef Py_buffer buffer
        cdef const double* weights = NULL
        cdef const Py_ssize_t* permutation = NULL
        if sample_weight is not None:
            weights = &sample_weight[0]
        if order is not None:
            permutation = &order[0]
        if issparse(X):
            arrays = open_sparse(X, &rows)
            status = self._learn(&rows, &y[0], weights, permutation, &failed)
        else:
            if not open_dense(X, &buffer, &rows):
                raise TypeError("X has to be C-contiguous float64 or float32")
            status = self._learn(&rows, &y[0], weights, permutation, &failed)
            PyBuffer_Release(&buffer)
        return None if status == LEARNED else (REASONS[status], failed)

    def predict_fast(self, dict attributes, X):
        """Predictions for a plain float array without validation, or None if that is not safe."""
        cdef Py_buffer buffer
        cdef Rows rows
        if type(X) is not ndarray or "feature_names_in_" in attributes:
            return None
        if not open_dense(X, &buffer, &rows):
            return None
        out = None
        if rows.n_columns == self.geometry.n_features and rows.n_rows > 0:
            out = self._predict(&rows)
        PyBuffer_Release(&buffer)
        return out

    def predict(self, X):
        """Predictions for validated rows, dense or CSR; None if one is not finite."""
        cdef Py_buffer buffer
        cdef Rows rows
        if issparse(X):
            arrays = open_sparse(X, &rows)
            return self._predict(&rows)
        if not open_dense(X, &buffer, &rows):
            raise TypeError("X has to be C-contiguous float64 or float32")
        out = self._predict(&rows)
        PyBuffer_Release(&buffer)
        return out

    # --- the work -----------------------------------------------------------------------------------------------

    cdef object _predict(self, Rows* rows):
        cdef Geometry geometry = self._model()
        cdef double[::1] out
        cdef double intercept = self.intercept
        cdef Row row
        cdef Py_ssize_t i
        result = np.empty(rows.n_rows)
        out = result
        geometry.reserve(rows.widest)
        x_buffer, index_buffer = widening_buffers(rows)
        cdef double* x = NULL
        cdef Py_ssize_t* index = NULL
        cdef double[::1] x_view
        cdef Py_ssize_t[::1] index_view
        if x_buffer is not None:
            x_view = x_buffer
            x = &x_view[0]
        if index_buffer is not None:
            index_view = index_buffer
            index = &index_view[0]
        with nogil:
            for i in range(rows.n_rows):
                fetch(rows, i, &row, x, index)
                geometry.load(&row)
                out[i] = geometry.dot(&row) + intercept
            if ob_nonfinite(&out[0], rows.n_rows) != 0:
                with gil:
                    return None
        return result

    cdef Geometry _model(self):
        """The geometry to predict with: the learning one, or the averaged weights (kept until the next step)."""
        if not self.clockwork.averaged:
            return self.geometry
        if self.averaged_model is None or self.averaged_model[0] != self.clockwork.t:
            self.averaged_model = (self.clockwork.t, EuclideanGeometry(self.coef))
        return self.averaged_model[1]

    cdef int _learn(self, Rows* rows, const double* y, const double* weights, const Py_ssize_t* order,
                    Py_ssize_t* failed) except -1:
        cdef Geometry geometry = self.geometry
        cdef Clockwork clockwork = self.clockwork
        cdef Scalars state = geometry.state
        cdef Py_ssize_t n_rates = len(self.rates)
        cdef int status
        cdef double* x = NULL
        cdef Py_ssize_t* index = NULL
        cdef double[::1] x_view
        cdef Py_ssize_t[::1] index_view
        cdef Snapshot snapshot = Snapshot(geometry, rows.indices == NULL or rows.stored >= geometry.n_features)
        geometry.reserve(rows.widest)
        x_buffer, index_buffer = widening_buffers(rows)
        if x_buffer is not None:
            x_view = x_buffer
            x = &x_view[0]
        if index_buffer is not None:
            index_view = index_buffer
            index = &index_view[0]
        while True:
            snapshot.save(rows)
            with nogil:
                status = self._loop(geometry, self.loss, rows, y, weights, order, failed, x, index)
                if status == LEARNED and not snapshot.finite(rows):
                    status = OVERFLOWED
                    failed[0] = rows.n_rows - 1
                if status != LEARNED:
                    snapshot.restore(rows)
                    geometry.state = state
                    self.clockwork = clockwork
            if status != LEARNED:
                del self.rates[n_rates:]
            if status != BLOCKED:
                return status
            snapshot = Snapshot(geometry, True)

    cdef int _loop(self, Geometry geometry, Loss loss, Rows* rows, const double* y, const double* weights,
                   const Py_ssize_t* order, Py_ssize_t* failed, double* x, Py_ssize_t* index) noexcept nogil:
        cdef Clockwork* state = &self.clockwork
        cdef Row row
        cdef Py_ssize_t k, i
        cdef double a, slope, c, eta, weight = 1.0, lo, hi, bias = self.fit_intercept
        cdef bint averaging
        for k in range(rows.n_rows):
            i = k if order == NULL else order[k]
            failed[0] = i
            if weights != NULL:
                weight = weights[i]
                if weight == 0:
                    continue
            fetch(rows, i, &row, x, index)
            geometry.load(&row)

            # predict; nothing is changed before the prediction has shown that the row is sound
            if self.update == IMPLICIT:
                geometry.peek(&row, 0.0, &a, &slope)
            else:
                a = geometry.dot(&row)
            a += state.intercept
            if not isfinite(a) or not isfinite(y[i]):
                return NOT_FINITE

            # the rate, and the step c of f(w') = f(w) - c x
            eta = self._rate(state.t + 1.0)
            if self.update == IMPLICIT:
                c = solve(geometry, loss, &row, weight * eta, y[i], state.intercept, bias, a, slope)
            else:
                if self.update == GRADIENT:
                    eta = self._capped_rate(geometry, &row, eta, a - y[i])
                    if eta < 0 or y[i] < 0:
                        return NEGATIVE
                c = weight * eta * (loss.link(a) - y[i])
                geometry.domain(&row, &lo, &hi)
                if not lo < c < hi:
                    return LEFT_DOMAIN if isfinite(c) else OVERFLOWED

            state.t += 1.0
            state.loss += weight * loss.value(a, y[i])
            averaging = state.t >= self.average_from
            if geometry.averaging:
                geometry.accumulate(&row)
            geometry.step(&row, c)
            geometry.store(&row)
            geometry.settle()
            if geometry.blocked:
                return BLOCKED
            state.intercept -= bias * c
            if averaging:
                state.averaged += 1.0
                state.intercept_sum += state.intercept
                geometry.state.clock += geometry.scale()
        return LEARNED

    cdef double _rate(self, double t) noexcept nogil:
        if self.rate_power == 0:
            return self.rate_scale
        if self.rate_power == 0.5:
            return self.rate_scale / sqrt(t)
        if self.rate_power == 1:
            return self.rate_scale / t
        return self.rate_scale / pow(t, self.rate_power)

    cdef double _capped_rate(self, Geometry geometry, Row* row, double eta, double residual) noexcept nogil:
        """The adaptive rate of the papers' explicit step: it never grows, and keeps the weights inside their bounds."""
        cdef double cap = geometry.rate_cap(row, residual)
        if cap < 0:
            return cap
        eta = min(eta, min(cap, geometry.state.rate))
        if eta < geometry.state.rate:
            geometry.state.rate = eta
            with gil:
                self.rates.append((self.clockwork.t + 1.0, eta))
        return eta


def _restore(geometry, loss, clockwork, rates):
    learner = Learner(geometry, loss())
    learner._set_state(clockwork, rates)
    return learner


cdef class Snapshot:
    """What a call has to put back if a row cannot be learned: all weights, or those of the rows' columns if fewer."""

    cdef Geometry geometry
    cdef bint whole
    cdef double* saved

    def __cinit__(self, Geometry geometry, bint whole):
        self.geometry, self.whole = geometry, whole
        geometry.backed_up, geometry.blocked = whole, False

    def __dealloc__(self):
        free(self.saved)

    cdef int save(self, Rows* rows) except -1:
        cdef Py_ssize_t vectors = 3 if self.geometry.averaging else 1
        cdef Py_ssize_t n = self.geometry.weights.shape[0] if self.whole else rows.stored * self.geometry.blocks
        self.saved = <double*> malloc(max(vectors * n, 1) * sizeof(double))
        if self.saved == NULL:
            raise MemoryError()
        self.move(rows, True)
        return 0

    cdef void restore(self, Rows* rows) noexcept nogil:
        self.move(rows, False)

    cdef void move(self, Rows* rows, bint save) noexcept nogil:
        cdef double* saved = self.saved
        saved += self.move_vector(rows, &self.geometry.weights[0], saved, save)
        if self.geometry.averaging:
            saved += self.move_vector(rows, &self.geometry.average_sum[0], saved, save)
            self.move_vector(rows, &self.geometry.stamp[0], saved, save)

    cdef Py_ssize_t move_vector(self, Rows* rows, double* state, double* saved, bint save) noexcept nogil:
        cdef Py_ssize_t b, k, j, start, d = self.geometry.n_features, n = self.geometry.weights.shape[0]
        if self.whole:
            memcpy(saved if save else state, state if save else saved, n * sizeof(double))
            return n
        start = integer(rows.indptr, rows.index_size, 0)
        for b in range(self.geometry.blocks):
            for k in range(rows.stored):
                j = b * d + integer(rows.indices, rows.index_size, start + k)
                if save:
                    saved[b * rows.stored + k] = state[j]
                else:
                    state[j] = saved[b * rows.stored + k]
        return self.geometry.blocks * rows.stored

    cdef bint finite(self, Rows* rows) noexcept nogil:
        """Are the weights that may have moved finite?"""
        cdef Py_ssize_t b, k, start
        cdef double total = 0.0
        if self.whole:
            return ob_nonfinite(&self.geometry.weights[0], self.geometry.weights.shape[0]) == 0
        start = integer(rows.indptr, rows.index_size, 0)
        for b in range(self.geometry.blocks):
            for k in range(rows.stored):
                total += 0.0 * self.geometry.weights[
                    b * self.geometry.n_features + integer(rows.indices, rows.index_size, start + k)]
        return total == 0


cdef bint open_buffer(array, Py_buffer* buffer):
    """Take a C-contiguous buffer; False (and nothing held) if the array has none."""
    try:
        PyObject_GetBuffer(array, buffer, PyBUF_FORMAT | PyBUF_ND | PyBUF_C_CONTIGUOUS)
    except (BufferError, ValueError):
        return False
    return True


cdef bint open_dense(X, Py_buffer* buffer, Rows* rows):
    """Describe a C-contiguous 2-D array of float64 or float32; False (and nothing held) if it is something else."""
    if not open_buffer(X, buffer):
        return False
    if buffer.ndim != 2 or not (buffer.format[0] == b"d" or buffer.format[0] == b"f") or buffer.format[1] != 0:
        PyBuffer_Release(buffer)
        return False
    rows.values, rows.value_size = <const char*> buffer.buf, buffer.itemsize
    rows.indices, rows.indptr, rows.index_size = NULL, NULL, 0
    rows.n_rows, rows.n_columns = buffer.shape[0], buffer.shape[1]
    rows.widest, rows.stored = rows.n_columns, rows.n_rows * rows.n_columns
    return True


cdef tuple open_sparse(X, Rows* rows):
    """Describe a canonical CSR matrix; the arrays returned keep its memory alive."""
    arrays = tuple(np.ascontiguousarray(values) for values in (X.data, X.indices, X.indptr))
    if arrays[1].dtype != arrays[2].dtype:
        arrays = arrays[0], arrays[1].astype(np.int64), arrays[2].astype(np.int64)
    addresses = [values.__array_interface__["data"][0] for values in arrays]
    rows.values = <const char*> <size_t> addresses[0]
    rows.indices = <const char*> <size_t> addresses[1]
    rows.indptr = <const char*> <size_t> addresses[2]
    rows.value_size, rows.index_size = arrays[0].itemsize, arrays[1].itemsize
    rows.n_rows, rows.n_columns = X.shape
    rows.stored = X.nnz
    rows.widest = np.diff(arrays[2]).max()
    return arrays


cdef tuple widening_buffers(Rows* rows):
    """Room to widen float32 values and 32-bit indices into, where there are any."""
    x = np.empty(max(rows.widest, 1)) if rows.value_size != 8 else None
    narrow = rows.indices != NULL and rows.index_size != sizeof(Py_ssize_t)
    index = np.empty(max(rows.widest, 1), dtype=np.intp) if narrow else None
    return x, index
