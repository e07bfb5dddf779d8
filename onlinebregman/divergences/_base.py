"""The interface of a divergence, and methods that follow from it for every potential."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError

from .._objects import ParametricObject
from ._numerics import EPS, SLACK, TINY, Array, as_array, check_box, check_radius, check_total, decreasing_root


class Divergence(ParametricObject, ABC):
    """Bregman divergence of a strictly convex, differentiable potential F.

    D(u, w) = F(u) - F(w) - <f(w), u - w> with the mirror map f = grad F. A subclass defines `potential`, `mirror` and
    `inverse_mirror`; everything else follows from these three. Override `divergence`, `hessian_inverse` and `step` if a
    closed form is faster or more accurate, and `domain`, `check_domain` and `step_range` if F is not defined
    everywhere. Estimators use the attributes below; their defaults are valid for every potential of vectors.

    Points w, directions x and mirror images theta are float64 arrays of one shape: (n,) for vectors, (n, n) for
    symmetric matrices. Methods return new arrays and never modify their arguments. Objects are equal if their types and
    parameters are.

    Attributes
    ----------
    lower, upper : float
        Ends of the domain of one coordinate of a vector.
    total : float or None
        The sum of every vector of the domain; None if it is not constant.
    norm : float
        Order of the norm in which comparators are measured, as in `largest_divergence`.
    homogeneous : bool
        Is F(s w) = s^2 F(w) for all s? Then D(s u, s w) = s^2 D(u, w), and weights start at 0.
    adaptive : bool
        Does the divergence change with the rows that are learned?
    constant_rate : float or None
        A suitable constant learning rate for an adaptive divergence; None for all others, whose rates have to decrease.
    rate_power : float
        With a constant rate, the steps of an adaptive divergence decrease as t^-rate_power over the rows t = 1, 2, ...

    References
    ----------
    W, "Bregman Divergences" and their properties; KB10, section 2.1.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman.divergences import Divergence
    >>> class Cosh(Divergence):
    ...     def potential(self, w):
    ...         return float(np.cosh(w).sum())
    ...     def mirror(self, w):
    ...         return np.sinh(w)
    ...     def inverse_mirror(self, theta):
    ...         return np.arcsinh(theta)
    >>> w = Cosh().project_hyperplane(np.zeros(2), np.array([1.0, 2.0]), 1.0)
    >>> round(float(w @ [1.0, 2.0]), 12)
    1.0
    """

    lower: float = -np.inf
    upper: float = np.inf
    total: float | None = None
    norm: float = 2.0
    homogeneous: bool = False
    adaptive: bool = False
    scale_free: bool = False
    constant_rate: float | None = None
    rate_power: float = 0.0

    @property
    def domain(self) -> str:
        """The set on which F is differentiable, as text for error messages; may be a class attribute in a subclass."""
        return "finite w"

    @abstractmethod
    def potential(self, w: ArrayLike) -> float:
        """F(w), a convex function."""

    @abstractmethod
    def mirror(self, w: ArrayLike) -> Array:
        """theta = f(w) = grad F(w), of the shape of w."""

    @abstractmethod
    def inverse_mirror(self, theta: ArrayLike) -> Array:
        """w = f^-1(theta), of the shape of theta."""

    def divergence(self, u: ArrayLike, w: ArrayLike) -> float:
        """D(u, w) = F(u) - F(w) - <f(w), u - w> >= 0, with 0 only at u = w.

        `u` may lie on the boundary of the domain if F is finite there; `w` may not, except that relative entropies use
        the limit for zeros of w: 0 if u = 0, infinity if u > 0.
        """
        return self._between(*self._pair(u, w))

    def _between(self, u: Array, w: Array) -> float:
        """D(u, w) of points that have been checked."""
        gap = self.potential(u) - self.potential(w) - float(np.vdot(self.mirror(w), u - w))
        return max(gap, 0.0)

    def hessian_inverse(self, w: ArrayLike, x: ArrayLike) -> Array:
        """S x with S = [hess F(w)]^-1, the derivative of f^-1(f(w) + t x) by t at 0; of the shape of w.

        S itself is never formed: the slope x'Sx of a scalar equation is `dot(hessian_inverse(w, x), x)`. Here by a
        central difference, accurate to about 1e-9.
        """
        w, x = as_array(w), self._direction(x)
        theta = self.mirror(w)
        largest = float(np.abs(x).max(initial=0.0))
        if largest == 0:
            return np.zeros_like(w)
        low, high = self.step_range(w, x)
        h = np.cbrt(EPS) * min(max(1.0, float(np.abs(theta).max())) / largest, -low, high)
        return (self.inverse_mirror(theta + h * x) - self.inverse_mirror(theta - h * x)) / (2 * h)

    def step(self, w: ArrayLike, x: ArrayLike, c: float) -> Array:
        """w(c) = f^-1(f(w) - c x), the form of every explicit or implicit update of a linear model (KB10, 2.3 and 3).

        Raises ValueError when c is outside `step_range(w, x)`. A class may keep w(c) away from the edge of the domain,
        which weights could not leave again, by about a rounding error, such as the smallest normal float: regret
        certificates hold for comparators that are no closer to the edge.
        """
        return self.inverse_mirror(self.mirror(w) - c * self._direction(x))

    def step_range(self, w: ArrayLike, x: ArrayLike) -> tuple[float, float]:
        """Open interval of the c for which `step(w, x, c)` stays in the domain; it contains 0."""
        return -np.inf, np.inf

    def dot(self, w: ArrayLike, x: ArrayLike) -> float:
        """The prediction a = <w, x>: w.x for vectors, tr(W X) for symmetric matrices."""
        return float(np.vdot(as_array(w), self._direction(x)))

    def check_domain(self, w: ArrayLike, *, closed: bool = False) -> None:
        """Raise ValueError, naming the index, the value and the remedy, unless w lies in the domain.

        `closed=True` admits the boundary points at which F is finite.
        """
        w = as_array(w)
        if not np.isfinite(w).all():
            self._refuse(w, np.isfinite(w), "remove or impute missing and infinite values")

    def _in_domain(self, w: ArrayLike, closed: bool = False) -> Array:
        """The array w, checked."""
        self.check_domain(w, closed=closed)
        return as_array(w)

    def project_hyperplane(self, w: ArrayLike, x: ArrayLike, b: float) -> Array:
        """argmin of D(u, w) over <u, x> = b: the step w(c) whose scalar c solves <w(c), x> = b.

        Raises ValueError when no step along x attains b. For every u of the hyperplane
        D(u, w) = D(u, w') + D(w', w) (W, "A Pythagorean Theorem").
        """
        w, x, b = self._in_domain(w), as_array(x), float(b)
        excess = self.dot(w, x) - b
        if not np.isfinite(excess):
            raise ValueError(f"The hyperplane <w, x> = {b:g} at <w, x> = {excess + b:g} is not finite; check x and b.")
        if abs(excess) <= 8 * EPS * max(abs(b), float(np.abs(w * self._direction(x)).sum())):
            return w.copy()
        # <w(c), x> decreases with c: search c > 0 from above the hyperplane, c < 0 from below it
        sign = 1.0 if excess > 0 else -1.0
        point, limit, speed = self._path(w, x, sign)
        slope = self.dot(self.hessian_inverse(w, x), x)

        def distance(s: float) -> float:
            return sign * (self.dot(point(s), x) - b)

        guess = abs(excess) / slope if slope > 0 else 1.0
        root = decreasing_root(distance, guess / speed, limit)
        if root is None:
            raise ValueError(
                f"No step along x takes <w, x> from {excess + b:g} to b = {b:g} within the domain {self.domain}; "
                "choose a b that a point of the domain attains."
            )
        return point(root)

    def _path(self, w: Array, x: Array, sign: float) -> tuple[Callable[[float], Array], float, float]:
        """w(c) for c of this sign as a function of s >= 0, the supremum of s, and the derivative d|c|/ds at 0."""
        low, high = self.step_range(w, x)
        return lambda s: self.step(w, x, sign * s), high if sign > 0 else -low, 1.0

    def project_halfspace(self, w: ArrayLike, x: ArrayLike, b: float) -> Array:
        """argmin of D(u, w) over <u, x> <= b: w itself, bit for bit, if it satisfies the inequality.

        For every u of the half-space D(u, w) >= D(u, w') + D(w', w) (W, "A Pythagorean Theorem").
        """
        return self._in_domain(w).copy() if self.dot(w, x) <= b else self.project_hyperplane(w, x, b)

    def default_start(self, n_features: int) -> Array:
        """The default starting point w_1, with equal weights for all features.

        0 if that is in the domain, otherwise 1/n or 1/2 for all weights.
        """
        for value in (0.0, 1.0 / n_features, 0.5):
            start = np.full(n_features, value)
            try:
                self.check_domain(start)
            except ValueError:
                continue
            return start
        raise ValueError(f"Neither 0 nor 1/{n_features} nor 1/2 is in the domain {self.domain} of {self!r}; set init.")

    def largest_divergence(self, n_features: int, u_bound: float = np.inf) -> float:
        """The largest D(u, w_1) from the default start, over the u of the domain whose norm is at most `u_bound`.

        The cost of not knowing the comparator in a regret bound; infinite if it requires a bound on the norm.
        Geometries for which it is not known raise ValueError.
        """
        raise ValueError(
            f"{self!r} has no bound on D(u, w_1). SquaredEuclidean, PNorm, SimplexEntropy and VonNeumann(trace) have "
            "one; your own class must define largest_divergence."
        )

    def smoothness(self, x_bound: float) -> float:
        """M with D(w, w(c)) <= M c^2/2 for all w, all c and all rows x of row_size(x) <= x_bound.

        The cost of a step along x in a regret bound. D(w, w(c)) is the integral of s x'S x over the w(s) with s from 0
        to c, so M is the largest x'S x. Geometries without such a bound raise ValueError.
        """
        raise self._not_smooth()

    def smoothness_below(self, x_bound: float, upper: float, move: float = 0.0) -> float:
        """The same for the w up to the largest weight to which theta, from weights <= `upper`, can rise by `move`.

        It equals `smoothness` for divergences that have one without an upper bound on the weights, for which it is
        defined here; the others override it.
        """
        return self.smoothness(x_bound)

    def row_size(self, x: ArrayLike) -> float:
        """The norm of a row x in which `smoothness` measures it."""
        raise self._not_smooth()

    def _not_smooth(self) -> ValueError:
        return ValueError(
            f"{self!r} has no bound D(w, w(c)) <= M c^2/2: its x'S x grows with w. SquaredEuclidean, SimplexEntropy, "
            "PNorm, BinaryEntropy and VonNeumann(trace) have one, Burg and RelativeEntropy for bounded weights "
            "(upper_bound, or constraint=UpperBound); your own class must define smoothness and row_size."
        )

    def _direction(self, x: ArrayLike) -> Array:
        return as_array(x)

    def _pair(self, u: ArrayLike, w: ArrayLike) -> tuple[Array, Array]:
        u, w = as_array(u), as_array(w)
        if u.shape != w.shape:
            raise ValueError(f"u and w must have the same shape; got {u.shape} and {w.shape}.")
        self.check_domain(u, closed=True)
        self.check_domain(w, closed=True)
        return u, w

    def _refuse(self, w: Array, good: NDArray[np.bool_], remedy: str, name: str = "w") -> None:
        """Raise the domain error for the first entry that is not good."""
        index = tuple(int(i) for i in np.argwhere(~good)[0])
        where = ", ".join(map(str, index))
        raise ValueError(f"{name}[{where}] = {w[index]:g} is outside the domain {self.domain} of {self!r}; {remedy}.")


class VectorDivergence(Divergence):
    """Divergence between vectors of shape (n,) whose coordinates lie between `lower` and `upper`, ends excluded.

    Examples
    --------
    >>> from onlinebregman.divergences import Burg
    >>> Burg().lower, Burg().upper
    (0.0, inf)
    """

    _closed = True  # F is finite on the boundary
    _remedy = "remove or impute missing and infinite values"

    def check_domain(self, w: ArrayLike, *, closed: bool = False) -> None:
        w = np.asarray(w, dtype=np.float64)
        if w.ndim != 1:
            raise ValueError(f"w must be a vector of shape (n,) for {self!r}; got shape {w.shape}. Pass single rows.")
        if closed and self._closed:
            good = (w >= self.lower) & (w <= self.upper) & np.isfinite(w)
        else:
            good = (w > self.lower) & (w < self.upper)
        if not good.all():
            self._refuse(w, good, self._remedy)

    def _check_meets(self, low: Array, high: Array) -> None:
        """ValueError if a box has no point in the domain."""
        meets = (high > self.lower) & (low < self.upper)
        if not meets.all():
            i = int(np.argmin(meets))
            raise ValueError(
                f"The box [{low[i]:g}, {high[i]:g}] at index {i} has no point in the domain {self.domain}; widen it."
            )


class Balls(VectorDivergence):
    """Projections onto balls, by those onto spheres of points outside."""

    _onto_l1_sphere: Callable[[Array, float, float], Array]
    _onto_l2_sphere: Callable[[Array, float, float], Array]

    def project_l1_ball(self, w: ArrayLike, radius: float = 1.0) -> Array:
        """argmin of D(u, w) over sum abs(u) <= radius: f(u) = f(w) - c sign(w), each weight stopped at 0.

        c solves one scalar equation. A w inside is returned unchanged.
        """
        w, radius = self._in_domain(w), check_radius(radius)
        norm = float(np.abs(w).sum())
        return w.copy() if norm <= radius * (1 + SLACK) else self._onto_l1_sphere(w, radius, norm)

    def project_l2_ball(self, w: ArrayLike, radius: float = 1.0) -> Array:
        """argmin of D(u, w) over norm_2(u) <= radius: f(u) = f(w) - mu u, mu from one scalar equation.

        A w inside is returned unchanged.
        """
        w, radius = self._in_domain(w), check_radius(radius)
        norm = float(np.linalg.norm(w))
        return w.copy() if norm <= radius * (1 + SLACK) else self._onto_l2_sphere(w, radius, norm)


class Quadratic(Divergence):
    """F(w) = <w, w>/2, f(w) = w; of subclasses any quadratic form."""

    def potential(self, w: ArrayLike) -> float:
        w = as_array(w)
        return float(np.vdot(w, w)) / 2

    def mirror(self, w: ArrayLike) -> Array:
        return as_array(w).copy()

    def inverse_mirror(self, theta: ArrayLike) -> Array:
        return as_array(theta).copy()

    def _between(self, u: Array, w: Array) -> float:
        return self.potential(u - w)


class EuclideanRows(Divergence):
    """Divergence whose `smoothness` measures rows by their Euclidean norm."""

    def row_size(self, x: ArrayLike) -> float:
        """norm_2(x)."""
        return float(np.linalg.norm(as_array(x)))


class SeparableDivergence(Balls):
    """Divergence of a sum F(w) = sum_i phi(w_i): projections onto boxes, simplices and balls are easy.

    Subclass it like `Divergence`; set `lower` and `upper` if phi is not defined everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman.divergences import RelativeEntropy
    >>> RelativeEntropy().project_box(np.array([0.1, 3.0]), 0.5, 2.0)
    array([0.5, 2. ])
    """

    def project_box(self, w: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> Array:
        """argmin of D(u, w) over lower <= u <= upper (scalars or shape (n,)): clipping, for every phi."""
        w = self._in_domain(w)
        low, high = check_box(lower, upper, w.shape)
        self._check_meets(low, high)
        return np.clip(w, low, high)

    def project_simplex(self, w: ArrayLike, total: float = 1.0) -> Array:
        """argmin of D(u, w) over u >= 0, sum u = total: max(w(c), 0) for x = 1, c the root of one scalar equation."""
        w, total, ones = self._in_domain(w), check_total(total), np.ones(np.shape(w))
        excess = float(np.maximum(w, 0).sum()) - total
        sign = 1.0 if excess > 0 else -1.0
        path, limit, speed = self._path(w, ones, sign)
        slope = float(self.hessian_inverse(w, ones).sum())

        def point(s: float) -> Array:
            return np.maximum(path(s), 0.0)

        root = decreasing_root(
            lambda s: sign * (float(point(s).sum()) - total), (abs(excess) / slope if slope > 0 else 1.0) / speed, limit
        )
        if root is None:
            raise ValueError(f"No point of the domain {self.domain} has sum {total:g}; choose another total.")
        return point(root)

    def _onto_l1_sphere(self, w: Array, radius: float, norm: float) -> Array:
        signs = np.sign(w)
        if self.lower < 0 < self.upper:
            return self._soft_threshold(w, radius)
        slope = float(self.hessian_inverse(w, signs) @ signs)
        guess = norm / slope * (norm / radius - 1) if slope > 0 else 1.0
        return self._on_sphere(
            lambda c: self.step(w, signs, c),
            lambda u: float(np.abs(u).sum()),
            radius,
            guess,
            self.step_range(w, signs)[1],
        )

    def _soft_threshold(self, w: Array, radius: float) -> Array:
        """f(w) moved towards f(0) by the same c in all coordinates, at most to f(0), so that sum abs(u) = radius."""
        signs, zero = np.sign(w), self.mirror(np.zeros_like(w))
        way = np.abs(self.mirror(w) - zero)
        longest = float(way.max())

        def point(rest: float) -> Array:  # rest = longest - c, as a small u is accurate in terms of it
            left = np.maximum(way - longest + min(rest, longest), 0.0)
            return np.where(left > 0, self.inverse_mirror(zero + signs * left), 0.0)

        root = decreasing_root(lambda rest: radius - float(np.abs(point(rest)).sum()), longest / 2)
        return point(longest if root is None else root)

    def _onto_l2_sphere(self, w: Array, radius: float, norm: float) -> Array:
        slope = float(self.hessian_inverse(w, w / norm) @ w) / norm

        def point(mu: float) -> Array:
            return self._shrink(w, mu) if mu > 0 else w

        guess = (norm / radius - 1) / slope if slope > 0 else 1.0
        return self._on_sphere(point, lambda u: float(np.linalg.norm(u)), radius, guess)

    def prox_elastic_net(self, w: ArrayLike, l1: float, l2: float = 0.0) -> Array:
        """argmin of D(u, w) + l1 sum abs(u) + l2 sum u^2/2 over u.

        Solves f(u) + l1 sign(u) + l2 u = f(w), with u = 0 where f would pass f(0).
        """
        w = self._in_domain(w)
        if self.lower < 0 < self.upper:
            zero = self.mirror(np.zeros_like(w))
            way = self.mirror(w) - zero
            left = np.maximum(np.abs(way) - l1, 0.0)
            u = np.where(left > 0, self.inverse_mirror(zero + np.sign(way) * left), 0.0) if l1 > 0 else w.copy()
        else:
            u = self.step(w, np.sign(w), l1)
        return self._shrink(u, l2) if l2 > 0 else u

    def _on_sphere(
        self,
        point: Callable[[float], Array],
        norm: Callable[[Array], float],
        radius: float,
        guess: float,
        limit: float = np.inf,
    ) -> Array:
        """The point(c) of norm `radius`, c > 0; the norm decreases with c.

        1 / norm is nearly linear in c, and exactly for the 2-norm in the squared Euclidean geometry.
        """
        root = decreasing_root(lambda c: 1 / radius - 1 / max(norm(point(c)), TINY), guess, limit)
        if root is None:
            raise ValueError(f"No point of the domain {self.domain} has norm {radius:g}; choose a larger radius.")
        return point(root)

    def _shrink(self, w: Array, mu: float) -> Array:
        """u with f(u) + mu u = f(w), each u_i between 0 and w_i: safeguarded Newton in all coordinates at once."""
        theta, ones, u = self.mirror(w), np.ones_like(w), w
        low, high = np.minimum(w, max(self.lower, 0.0)), np.maximum(w, min(self.upper, 0.0))
        for _ in range(200):
            image, pull = self.mirror(u), mu * u
            excess = image + pull - theta
            low, high = np.where(excess < 0, u, low), np.where(excess > 0, u, high)
            inverse = self.hessian_inverse(u, ones)  # 1 / f'
            newton = u - excess * inverse / (1 + mu * inverse)
            moved = np.where((low < newton) & (newton < high), newton, (low + high) / 2)
            solved = np.abs(excess) <= 4 * EPS * (np.abs(image) + np.abs(pull) + np.abs(theta))
            if (solved | (np.abs(moved - u) <= 4 * EPS * np.abs(u))).all():
                return u
            u = np.where(solved, u, moved)
        return u


Kind = TypeVar("Kind", bound=type[Divergence])
DIVERGENCES: dict[str, Any] = {}
_DEFAULTS: dict[str, Divergence] = {}  # objects of theirs, which cannot change


def named(name: str, *, by_size: bool = False) -> Callable[[Kind], Kind]:
    """Class decorator: register a divergence of vectors under a name; `by_size`: its default depends on their size."""

    def register(kind: Kind) -> Kind:
        DIVERGENCES[name] = kind
        if not by_size:
            _DEFAULTS[name] = kind()
        return kind

    return register


def resolve_divergence(divergence: str | Divergence, n_features: int | None = None) -> Divergence:
    """The divergence behind an estimator's parameter `divergence`.

    Parameters
    ----------
    divergence : {"squared_euclidean", "relative_entropy", "simplex_entropy", "burg", "binary_entropy", "p_norm", \
            "adagrad", "normalized_adagrad", "diagonal_newton"} or Divergence
        A name, for the divergence with its default parameters (total 1 on the simplex, and p = 2 ln n, at least 2), or
        a divergence, which is returned unchanged.
    n_features : int, default=None
        n; needed for "p_norm".

    Returns
    -------
    Divergence
        The divergence.

    Examples
    --------
    >>> from onlinebregman.divergences import resolve_divergence
    >>> resolve_divergence("burg")
    Burg()
    >>> round(resolve_divergence("p_norm", n_features=1000).p, 2)
    13.82
    """
    if isinstance(divergence, Divergence):
        return divergence
    if divergence not in DIVERGENCES:
        raise ValueError(
            f"divergence must be one of {', '.join(map(repr, DIVERGENCES))}, or a Divergence such as "
            f"onlinebregman.divergences.SimplexEntropy(total=2.0); got {divergence!r}."
        )
    if divergence in _DEFAULTS:
        return _DEFAULTS[divergence]
    return DIVERGENCES[divergence](automatic_p(n_features))


def automatic_p(n_features: int | None) -> float:
    """p = 2 ln n, at least 2: the p of the p-norm algorithm that behaves like exponentiated gradient."""
    if n_features is None:
        raise NotFittedError("p = 2 ln n depends on the number of features n, which is known once rows have been seen")
    return max(2.0, 2.0 * math.log(n_features))
