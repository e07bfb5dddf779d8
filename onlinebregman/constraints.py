"""Constraints on weights: sets onto which the weights are projected after each step.

A constraint is a convex set. `project` returns its nearest point in a divergence, argmin of D(u, w) over u in the set;
for every u of the set D(u, w) >= D(u, w') + D(w', w) (W, "A Pythagorean Theorem"), so that a projection only brings the
weights closer to every comparator which satisfies the constraint.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._objects import ForDivergences, spell
from .divergences import Divergence
from .divergences._numerics import check_box, check_radius, check_total

__all__ = ["Box", "Constraint", "L1Ball", "L2Ball", "Simplex", "UpperBound"]

Array = NDArray[np.float64]


class Constraint(ForDivergences, ABC):
    """Closed convex set of weights: the contract.

    A subclass defines `project` and `contains`, and may give bounds on all of its points as `lower`, `upper`, `total`
    and `ball`. Objects are equal if their types and parameters are.

    Attributes
    ----------
    lower, upper : float or ndarray of shape (n,)
        Bounds on each weight that hold for the whole set; infinite where none are known.
    total : float or None
        The sum of the weights; None if it differs between points of the set.
    ball : tuple (float, float) or None
        Order p and radius of a ball norm_p(w) <= radius that contains the set; None if none is known.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman.constraints import Constraint
    >>> from onlinebregman.divergences import SquaredEuclidean
    >>> class Budget(Constraint):
    ...     def __init__(self, prices, amount):
    ...         self.prices, self.amount = prices, amount
    ...     def project(self, divergence, w):
    ...         return divergence.project_halfspace(w, self.prices, self.amount)
    ...     def contains(self, w, *, tol=1e-10):
    ...         return bool(np.dot(w, self.prices) <= self.amount * (1 + tol))
    >>> Budget([1.0, 2.0], 3.0).project(SquaredEuclidean(), [1.0, 2.0])
    array([0.6, 1.2])
    """

    lower: float | Array = -np.inf
    upper: float | Array = np.inf
    total: float | None = None
    ball: tuple[float, float] | None = None

    @abstractmethod
    def project(self, divergence: Divergence, w: ArrayLike) -> Array:
        """argmin of D(u, w) over the u of the set, of shape (n,): a new array, equal to w where w lies in the set."""

    @abstractmethod
    def contains(self, w: ArrayLike, *, tol: float = 1e-10) -> bool:
        """Whether w, of shape (n,), lies in the set, up to rounding errors of relative size `tol`."""

    def why_not(self, w: ArrayLike, name: str = "w") -> str:
        """Why the set does not contain w, for error messages."""
        return f"{name} = {np.asarray(w)} is not in {self!r}"


class Box(Constraint):
    """Weights lower <= w <= upper.

    Parameters
    ----------
    lower, upper : float or array-like of shape (n,)
        The smallest and the largest admissible weights, lower <= upper; infinities for none.

    Examples
    --------
    >>> from onlinebregman.constraints import Box
    >>> from onlinebregman.divergences import SimplexEntropy
    >>> Box(0.0, 0.4).project(SimplexEntropy(), [0.7, 0.2, 0.1]).round(12)
    array([0.4, 0.4, 0.2])
    """

    def __init__(self, lower: float | ArrayLike, upper: float | ArrayLike) -> None:
        self.lower: float | Array = _ends(lower, "lower")
        self.upper: float | Array = _ends(upper, "upper")
        low, high = check_box(self.lower, self.upper, np.shape(self.lower) or np.shape(self.upper) or (1,))
        if (low == np.inf).any() or (high == -np.inf).any():
            raise ValueError(f"lower must be below infinity and upper above -infinity; got {self!r}, which is empty.")

    def project(self, divergence: Divergence, w: ArrayLike) -> Array:
        """argmin of D(u, w) over lower <= u <= upper; clipping, where D is a sum over the coordinates."""
        return self._call(divergence, "project_box", "project on", w, self.lower, self.upper)

    def contains(self, w: ArrayLike, *, tol: float = 1e-10) -> bool:
        """Whether lower <= w <= upper."""
        w = np.asarray(w, dtype=np.float64)
        slack = tol * np.abs(w)
        return bool(((self.lower - slack <= w) & (w <= self.upper + slack)).all())

    def why_not(self, w: ArrayLike, name: str = "w") -> str:
        """The coordinate that is farthest outside, for error messages."""
        return _farthest(w, self.lower, self.upper, name, self)


class UpperBound(Box):
    """Weights w <= bound.

    Parameters
    ----------
    bound : float or array-like of shape (n,)
        The largest admissible weights; infinity for none.

    Examples
    --------
    >>> from onlinebregman.constraints import UpperBound
    >>> from onlinebregman.divergences import Burg
    >>> UpperBound(1.0).project(Burg(), [0.5, 2.0])
    array([0.5, 1. ])
    """

    def __init__(self, bound: float | ArrayLike) -> None:
        self.bound: float | Array = _ends(bound, "bound")
        if (np.asarray(self.bound) == -np.inf).any():
            raise ValueError(f"bound must be numbers, or infinity for no bound; got {spell(self.bound)}.")

    @property
    def upper(self) -> float | Array:
        """The bound."""
        return self.bound


class Simplex(Constraint):
    """Weights w >= 0 with sum w = total.

    Parameters
    ----------
    total : float, default=1.0
        The sum, positive and finite.

    Examples
    --------
    >>> from onlinebregman.constraints import Simplex
    >>> from onlinebregman.divergences import SquaredEuclidean
    >>> Simplex().project(SquaredEuclidean(), [0.9, 0.5, -1.0])
    array([0.7, 0.3, 0. ])
    """

    lower: float = 0.0

    def __init__(self, total: float = 1.0) -> None:
        self.total: float = check_total(total)

    def project(self, divergence: Divergence, w: ArrayLike) -> Array:
        """argmin of D(u, w) over u >= 0, sum u = total."""
        return self._call(divergence, "project_simplex", "project on", w, self.total)

    def contains(self, w: ArrayLike, *, tol: float = 1e-10) -> bool:
        """Whether w >= 0 and sum w = total."""
        w = np.asarray(w, dtype=np.float64)
        return bool((w >= -tol * self.total).all() and abs(w.sum() - self.total) <= tol * self.total)

    def why_not(self, w: ArrayLike, name: str = "w") -> str:
        """The smallest coordinate if it is negative, or the sum, for error messages."""
        w = np.asarray(w, dtype=np.float64)
        return _farthest(w, 0.0, np.inf, name, self) if w.min() < 0 else f"{name} sums to {w.sum():g}, not in {self!r}"


class _Ball(Constraint):
    """Weights whose norm is at most a radius."""

    _order: int
    _norm: str  # of weights whose name is in the braces

    def __init__(self, radius: float = 1.0) -> None:
        self.radius: float = check_radius(radius)

    @property
    def ball(self) -> tuple[float, float]:
        """The order of the norm, and the radius."""
        return float(self._order), self.radius

    def project(self, divergence: Divergence, w: ArrayLike) -> Array:
        """argmin of D(u, w) over the u of the ball."""
        return self._call(divergence, f"project_l{self._order}_ball", "project on", w, self.radius)

    def contains(self, w: ArrayLike, *, tol: float = 1e-10) -> bool:
        """Whether the norm of w is at most the radius."""
        return bool(np.linalg.norm(np.asarray(w, dtype=np.float64), self._order) <= self.radius * (1 + tol))

    def why_not(self, w: ArrayLike, name: str = "w") -> str:
        """The norm, for error messages."""
        norm = np.linalg.norm(np.asarray(w, dtype=np.float64), self._order)
        return f"{self._norm.format(name)} = {norm:g} is not in {self!r}"


class L1Ball(_Ball):
    """Weights with sum abs(w) <= radius: few large weights, for data with many irrelevant features.

    Parameters
    ----------
    radius : float, default=1.0
        Positive and finite.

    Examples
    --------
    >>> from onlinebregman.constraints import L1Ball
    >>> from onlinebregman.divergences import SquaredEuclidean
    >>> L1Ball(radius=2.0).project(SquaredEuclidean(), [2.5, -0.5, 0.25])  # soft thresholds
    array([2., 0., 0.])
    """

    _order = 1
    _norm = "sum abs({})"


class L2Ball(_Ball):
    """Weights with norm_2(w) <= radius.

    Parameters
    ----------
    radius : float, default=1.0
        Positive and finite.

    Examples
    --------
    >>> from onlinebregman.constraints import L2Ball
    >>> from onlinebregman.divergences import SquaredEuclidean
    >>> L2Ball(radius=2.0).project(SquaredEuclidean(), [3.0, -4.0])
    array([ 1.2, -1.6])
    """

    _order = 2
    _norm = "norm_2({})"


def _farthest(w: ArrayLike, lower: float | Array, upper: float | Array, name: str, constraint: Constraint) -> str:
    """The coordinate that is farthest outside an interval."""
    w = np.asarray(w, dtype=np.float64)
    worst = int(np.argmax(np.maximum(lower - w, w - upper)))
    return f"{name}[{worst}] = {w[worst]:g} is not in {constraint!r}"


def _ends(value: float | ArrayLike, name: str) -> float | Array:
    """An end of an interval for each weight: a float, or a new float64 array of shape (n,)."""
    ends = np.array(value, dtype=np.float64)
    if ends.ndim > 1:
        raise ValueError(f"{name} has shape {ends.shape}; give a number, or one for each weight.")
    if np.isnan(ends).any():
        where = f"[{int(np.argmax(np.isnan(ends)))}]" if ends.ndim else ""
        raise ValueError(f"{name}{where} is NaN; use numbers, or infinity for no bound.")
    return ends if ends.ndim else float(ends)
