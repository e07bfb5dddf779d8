"""The p-norm geometry: weights of any sign, from gradient descent (p = 2) to nearly EG (p = 2 ln n)."""

import numpy as np

cimport cython
from libc.math cimport INFINITY, NAN, exp2, frexp, isfinite, ldexp
from libc.string cimport memcpy

from onlinebregman._kernels.geometries.geometry cimport LINEAR, Geometry, Lazy, Workspace, scratch
from onlinebregman._kernels.ops.penalty cimport ob_soft_thresholds
from onlinebregman._kernels.ops.pnorm cimport ob_pow, ob_power, ob_power_sums, ob_power_total
from onlinebregman._kernels.ops.vector cimport ob_axpy, ob_dot, ob_dot_and_square, ob_range

# Up to this p the powers of numbers near their unit neither overflow nor underflow.
cdef double LARGEST_P = 500.0
# A difference of totals below this fraction of them has lost too many digits.
cdef double CANCELLED = 1e-3


cdef inline double largest(const double* a, Py_ssize_t n) noexcept nogil:
    """max |a|"""
    cdef double lo = 0.0, hi = 0.0
    ob_range(a, n, &lo, &hi)
    return max(hi, -lo)


cdef inline double power_of_two(double x) noexcept nogil:
    """The power of two nearest to x > 0 in ratio; 1 for x = 0."""
    cdef int exponent
    cdef double mantissa = frexp(x, &exponent)
    if x == 0:
        return 1.0
    return ldexp(1.0, min(max(exponent - (mantissa < 0.7071067811865476), -1022), 1022))


def mirror(w, p):
    """f(w), the gradient of norm_q(w)^2 / 2 for 1/p + 1/q = 1."""
    unit = np.abs(w).max(initial=0.0) or 1.0
    powers = np.abs(w / unit) ** (1 / (p - 1))
    total = powers @ np.abs(w / unit) or 1.0
    with np.errstate(over="ignore"):
        theta = np.copysign(unit * (total ** ((p - 2) / p) * powers), w)
    if not np.isfinite(theta).all():
        raise ValueError(
            f"init must be small enough for its image under the mirror map to be finite; got values up to {unit:g}. "
            "Scale init and targets down."
        )
    return theta


cdef struct Outside:          # the columns outside a sparse row
    double total              # their part of the total, in powers of `unit`
    double unit
    double reliable           # totals below this are recomputed: the difference has lost its digits


cdef class PNormGeometry(Geometry):
    """Half the squared q-norm, 1/p + 1/q = 1: w(c) = f^-1(theta - c x), theta = f(w), f^-1 = grad norm_p^2 / 2.

    The state is theta and, behind it, its powers v = sgn(theta) |r|^(p-1), where r = theta / unit and the unit is a
    power of two near the largest |theta|, so that nothing overflows. With total = sum |r|^p,

        w = unit total^(2/p - 1) v,    norm_p(theta)^2 = unit^2 total^(2/p),
        x'Sx = total^(2/p - 1) ((p - 1) sum |r|^(p-2) x^2 - (p - 2) (v.x)^2 / total),

    and a sparse row changes the total only by its own powers.

    Parameters
    ----------
    weights : ndarray of shape (n_features,)
        The weights to start from, or theta.
    p : float
        2 <= p <= 500.
    mirrored : bool, default=False
        Whether `weights` is theta = f(w).
    """

    cdef readonly double p
    cdef double least, most   # the unit is kept while the total lies between these
    cdef double unit, total   # of the powers
    cdef double summed        # the largest total since it was last recomputed,
    cdef double steps         # and the number of steps

    def __cinit__(self):
        self.per_feature, self.lazy = 2, PNormLazy()
        self.declare("unit", &self.unit)
        self.declare("total", &self.total)
        self.declare("summed", &self.summed)
        self.declare("steps", &self.steps)

    def __init__(self, weights, p, mirrored=False, state=None):
        if not 2 <= p <= LARGEST_P:
            raise ValueError(
                f"p must be a number from 2 to {LARGEST_P:g}; got {p:g}. Use 2 for gradient descent, 2 ln n to be near "
                "EG, n being the number of features."
            )
        theta = np.array(weights, dtype=np.float64).ravel()
        if not mirrored:
            theta = mirror(theta, p)
        super().__init__(np.concatenate([theta, np.zeros_like(theta)]))
        self.p, self.average.first = p, self.n_features
        self.traits |= LINEAR if p == 2 else 0
        self.least, self.most = exp2(-p), exp2(p) * self.n_features
        self.unit = power_of_two(largest(&self.weights[0], self.n_features))
        self.raise_powers()
        self.sum_powers()
        self._resume(state)

    def _arguments(self):
        return np.asarray(self.weights)[:self.n_features].copy(), self.p, True

    def set_state(self, state):
        super().set_state(state)
        if not (0 < self.unit < INFINITY and self.total >= 0):
            raise ValueError(f"unit must be positive, and total 0 or more; got {self.unit} and {self.total}")
        self.raise_powers()

    @property
    def state_weights(self):
        """The weights; a new array."""
        return self.coef()

    def coef(self, average_over=0.0):
        """See `Geometry.coef`. The unit comes last, as its product with a power of the total may overflow."""
        if average_over > 0:
            return super().coef(average_over)
        return np.asarray(self.weights)[self.n_features:] * self.shrinkage() * self.unit

    def _to_coef(self, weights):
        return weights[self.n_features:]

    cdef void raise_powers(self) noexcept nogil:
        """Compute the powers of all theta, in the state's unit."""
        cdef double* theta = &self.weights[0]
        ob_power(theta + self.n_features, theta, 1.0 / self.unit, self.p - 1.0, self.n_features)

    cdef void sum_powers(self) noexcept nogil:
        """Recompute the total from the powers."""
        cdef double* theta = &self.weights[0]
        self.total = self.total_of(theta, self.unit, self.n_features)
        self.summed = self.total
        self.steps = 0.0

    cdef double total_of(self, const double* theta, double unit, Py_ssize_t n) noexcept nogil:
        """sum |r|^p, from theta and its powers, stored behind it."""
        cdef double total = ob_dot(theta, theta + n, n) / unit
        cdef Py_ssize_t i
        if not isfinite(total):  # before the division
            total = 0.0
            for i in range(n):
                total += theta[i] / unit * theta[n + i]
        return total

    cdef double shrinkage(self) noexcept nogil:
        return ob_pow(self.total, 2.0 / self.p - 1.0)

    cdef double scale(self) noexcept nogil:
        return self.unit * self.shrinkage()

    cdef bint bounded(self) noexcept nogil:
        """No weight is larger than norm_q(w) = norm_p(theta)."""
        return isfinite(self.unit * ob_pow(self.total, 1.0 / self.p)) and isfinite(self.average.clock)

    cdef double norm_square(self, double unit, double total) noexcept nogil:
        return unit * unit * ob_pow(total, 2.0 / self.p)

    cdef void fetch_weights(self, Workspace* work) noexcept nogil:
        cdef Outside* outside = <Outside*> work.notes
        Geometry.fetch_weights(self, work)
        outside.total, outside.unit, outside.reliable = 0.0, self.unit, 0.0
        if work.n < self.n_features:
            outside.total = max(self.total - self.total_of(work.w, self.unit, work.n), 0.0)
            outside.reliable = CANCELLED * self.total

    cdef Py_ssize_t gap(self, Workspace* work, Py_ssize_t k, double** theta) noexcept nogil:
        """The columns between the (k-1)-th and the k-th of a sparse row: sets theta to the first, returns how many."""
        cdef Py_ssize_t start = work.row.index[k - 1] + 1 if k > 0 else 0
        theta[0] = &self.weights[start]
        return (work.row.index[k] if k < work.n else self.n_features) - start

    cdef void sum_outside(self, Workspace* work) noexcept nogil:
        """Recompute the total of all columns outside the row, in a separate unit."""
        cdef Outside* outside = <Outside*> work.notes
        cdef Py_ssize_t k, length
        cdef double* theta
        cdef double size = 0.0
        for k in range(work.n + 1):
            length = self.gap(work, k, &theta)
            size = max(size, largest(theta, length))
        outside.total, outside.unit, outside.reliable = 0.0, power_of_two(size), 0.0
        for k in range(work.n + 1):
            length = self.gap(work, k, &theta)
            outside.total += ob_power_total(theta, 1.0 / outside.unit, self.p, length)

    cdef double move(self, Workspace* work, double c, double* unit) noexcept nogil:
        """Store theta - c x and its powers in scratch 1 and return their total, in the state's unit or a better one."""
        cdef Outside* outside = <Outside*> work.notes
        cdef double* theta = scratch(work, 1)
        cdef double rest, total, size
        memcpy(theta, work.w, work.n * sizeof(double))
        ob_axpy(theta, work.x, c, work.n)
        unit[0] = self.unit
        while True:
            ob_power(theta + work.n, theta, 1.0 / unit[0], self.p - 1.0, work.n)
            rest = outside.total if outside.unit == unit[0] else outside.total * ob_pow(outside.unit / unit[0], self.p)
            total = rest + self.total_of(theta, unit[0], work.n)
            if total < outside.reliable and unit[0] == self.unit:
                self.sum_outside(work)
                continue
            if self.least < total < self.most:
                return total
            size = largest(theta, work.n)
            if outside.total > 0:
                size = max(size, outside.unit * ob_pow(outside.total, 1.0 / self.p))
            if not isfinite(size):
                return NAN
            if size == 0 or power_of_two(size) == unit[0]:
                return total
            unit[0] = power_of_two(size)

    cdef double dot(self, Workspace* work) noexcept nogil:
        return self.unit * (self.shrinkage() * ob_dot(work.w + work.n, work.x, work.n))

    cdef void evaluate(self, Workspace* work, double c, double* value, double* slope) noexcept nogil:
        cdef double* theta = work.w
        cdef double unit = self.unit, total = self.total, dot, square, factor
        if self.traits & LINEAR:
            value[0] = ob_dot_and_square(work.w, work.x, work.n, slope)
            return
        if c != 0:
            theta = scratch(work, 1)
            total = self.move(work, c, &unit)
        if total == 0:  # from w = 0 the weights move along f^-1(x), and f^-1(x).x = norm_p(x)^2
            theta = scratch(work, 2)
            unit = power_of_two(largest(work.x, work.n))
            ob_power(theta, work.x, 1.0 / unit, self.p - 1.0, work.n)
            value[0] = 0.0 * ob_dot(work.x, work.x, work.n)
            slope[0] = self.norm_square(unit, ob_dot(work.x, theta, work.n) / unit)
            return
        ob_power_sums(theta, theta + work.n, work.x, 1.0 / unit, work.n, &dot, &square)
        factor = ob_pow(total, 2.0 / self.p - 1.0)
        value[0] = unit * (factor * dot) if isfinite(total) else NAN
        slope[0] = factor * max((self.p - 1.0) * square - (self.p - 2.0) * dot * (dot / total), 0.0)

    cdef double self_concordance(self, Workspace* work, double slope) noexcept nogil:
        """No bound is known: S is not smooth where a weight is 0. At w = 0, w(c) is linear in c."""
        return 0.0 if self.traits & LINEAR or self.total == 0 else INFINITY

    cdef double conjugate(self, Workspace* work, double c) noexcept nogil:
        cdef double unit, total
        if c == 0:
            return 0.0
        total = self.move(work, c, &unit)
        return 0.5 * (self.norm_square(unit, total) - self.norm_square(self.unit, self.total))

    cdef void step(self, Workspace* work, double c) noexcept nogil:
        cdef double unit, total
        if c == 0:
            return
        total = self.move(work, c, &unit)
        if unit != self.unit:
            if not self.may_move_all():
                return
            self.unit = unit
            self.summed = 0.0  # the old one was in another unit
            if work.row.index != NULL:
                self.raise_powers()
        memcpy(work.w, scratch(work, 1), 2 * work.n * sizeof(double))
        self.total = total
        self.steps += 1.0

    cdef double soften(self, double l1) noexcept nogil:
        """A soft threshold of theta: f(w'') + l1 sgn(w'') = f(w'), and w has the signs of theta. l2 is always 0.

        D(w'', w') = F*(theta') - F*(theta'') - l1 |w''|_1.
        """
        cdef double before = self.norm_square(self.unit, self.total)
        ob_soft_thresholds(&self.weights[0], l1, self.n_features)
        self.unit = power_of_two(largest(&self.weights[0], self.n_features))
        self.raise_powers()
        self.sum_powers()
        return 0.5 * (before - self.norm_square(self.unit, self.total))

    cdef void renormalise(self, Workspace* work) noexcept nogil:
        """Recompute the total after many steps, or when it has changed so much that old rounding errors matter.

        The clock of averaging, which advances by the scale of the weights, is then restarted as well.
        """
        if 0.1 * self.summed <= self.total <= 10.0 * self.summed:
            if self.steps < max(self.n_features, 1024):
                return
        if self.average.active:
            if not self.may_move_all():
                return
            self.average.restart()
        self.sum_powers()


@cython.final
cdef class PNormLazy(Lazy):

    cdef double shrink_all(self, Geometry geometry, double eta, bint tracked) noexcept nogil:
        return (<PNormGeometry> geometry).soften(eta * self.l1)
