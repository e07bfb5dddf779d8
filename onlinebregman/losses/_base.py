"""The interface of a loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._objects import ParametricObject

Array = NDArray[np.float64]
EPS, TINY, LARGEST = np.finfo(np.float64).eps, np.finfo(np.float64).tiny, np.finfo(np.float64).max


def as_pair(a: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    return np.asarray(a, dtype=np.float64), np.asarray(y, dtype=np.float64)


L = TypeVar("L", bound="Loss")
LOSSES: dict[str, Loss] = {}


def named(name: str, **parameters) -> Callable[[type[L]], type[L]]:
    """Class decorator: register the loss, with these parameters, under a name in the table `LOSSES`."""

    def register(kind: type[L]) -> type[L]:
        LOSSES[name] = kind(**parameters)
        return kind

    return register


class Loss(ParametricObject, ABC):
    """Convex loss L(a, y) of a score a and a target y, the matching loss of a transfer function h: the interface.

    A subclass defines `link`, `link_derivative` and `value`. A loss that is not a matching loss also overrides
    `derivative` and `curvature`; one whose derivative jumps also `kinks`, and one with pieces that meet smoothly may
    define `bends`. Estimators use the attributes below; their defaults are valid for every loss. Objects are equal if
    their types and parameters are.

    Attributes
    ----------
    domain : str
        The admissible targets, as text for error messages.
    target_range : tuple of float
        The smallest and the largest admissible target.
    tasks : tuple of {"regression", "classification"}
        The kinds of estimators that accept the loss by name.
    labels : tuple of float
        The targets of the negative and of the positive class of a classifier.
    probabilistic : bool
        Is the link an estimate of the mean of y? Then it gives the probabilities of a classifier.
    sigmoid : bool
        Is the link the sigmoid function?
    translation_invariant : bool
        Does the loss depend only on a - y?
    lipschitz : float
        A bound on abs(dL/da), for all scores and targets; infinite if there is none.
    degree : int
        How the loss scales with the units of the target (and of its parameters in these units): L(s a, s y) = s^degree
        L(a, y). 0 for targets without units, such as labels and counts.
    flat : bool
        Is the loss 0 on an interval of scores, as that of a margin is?
    curvature_range : tuple of float
        Bounds on the rate of increase of dL/da with a, including kinks: (mu, beta) for a loss that is mu-strongly
        convex and beta-smooth in its score. (1, 1) is the squared loss.

    References
    ----------
    W, "Bregman Div. Lead to Good Loss Function".

    Examples
    --------
    The implicit step of a loss with a kink can end on it, with any slope between those of the two sides:

    >>> from onlinebregman.losses import AbsoluteLoss
    >>> loss = AbsoluteLoss()
    >>> [kink] = loss.kinks(2.0)
    >>> low, high = loss.subdifferential(kink, 2.0)
    >>> float(kink), float(low), float(high)
    (2.0, -1.0, 1.0)
    """

    domain: str = "finite y"
    target_range: tuple[float, float] = (-np.inf, np.inf)
    tasks: tuple[str, ...] = ("regression",)
    labels: tuple[float, float] = (-1.0, 1.0)
    probabilistic: bool = False
    sigmoid: bool = False
    translation_invariant: bool = False
    lipschitz: float = np.inf
    degree: int = 0
    flat: bool = False
    curvature_range: tuple[float, float] = (0.0, np.inf)
    _remedy = "remove or impute missing and infinite targets"

    @property
    def parts(self) -> tuple[Loss, ...]:
        """The losses of the outputs that are learned for one target: this one, unless it stands for several."""
        return (self,)

    @property
    def typical_curvature(self) -> float:
        """The value used for L'' in a diagonal second-order metric: its bound, or 1 for losses with kinks.

        Raises ValueError if neither the curvature nor the slope is bounded.
        """
        if self.curvature_range[1] < np.inf:
            return self.curvature_range[1]
        if self.lipschitz < np.inf:
            return 1.0
        raise ValueError(f"{self!r} has neither a bound on its curvature nor on its slope; give the curvature itself.")

    @abstractmethod
    def link(self, a: ArrayLike) -> Array:
        """h(a), the prediction of a target."""

    @abstractmethod
    def link_derivative(self, a: ArrayLike) -> Array:
        """h'(a) >= 0."""

    @abstractmethod
    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        """L(a, y) >= 0; D_H(a, h^-1(y)) for a matching loss."""

    @np.errstate(over="ignore")
    def derivative(self, a: ArrayLike, y: ArrayLike) -> Array:
        """dL/da, h(a) - y for a matching loss; the gradient in w is this times x. At a kink it is a subgradient."""
        return self.link(a) - np.asarray(y, dtype=np.float64)

    def curvature(self, a: ArrayLike, y: ArrayLike) -> Array:
        """d^2L/da^2 >= 0 where it is defined, h'(a) for a matching loss; where it jumps, the value of one side."""
        a, y = np.broadcast_arrays(*as_pair(a, y))
        return self.link_derivative(a)

    def kinks(self, y: ArrayLike) -> Array:
        """Scores at which dL/da jumps, ascending along the first axis, shape `(k, *y.shape)`; k = 0 without kinks."""
        return np.empty((0, *np.shape(y)))

    def bends(self, y: ArrayLike) -> Array:
        """Scores at which d^2L/da^2 jumps and dL/da does not, in the form of `kinks`; for exact importance steps."""
        return np.empty((0, *np.shape(y)))

    @np.errstate(over="ignore")
    def subdifferential(self, a: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
        """Smallest and largest subgradient: dL/da from the left and from the right, equal except at `kinks(y)`.

        Evaluated next to the kinks, as close as the rounding of scores and targets allows.
        """
        a, y = np.broadcast_arrays(*as_pair(a, y))
        apart = 8 * EPS * np.maximum(np.maximum(np.abs(a), np.abs(y)), TINY / EPS)
        apart = np.where((a == self.kinks(y)).any(axis=0), apart, 0.0)
        return self.derivative(a - apart, y), self.derivative(a + apart, y)

    @property
    def _kinked(self) -> bool:
        """Whether `_nearest_kink` may find one."""
        return type(self).kinks is not Loss.kinks or self.flat

    def _nearest_kink(self, a: float, y: float) -> float:
        """The kink nearest to a score, or the end of an interval without loss; NaN if there is none."""
        kinks = np.ravel(self.kinks(y))
        if self.flat:
            kinks = np.r_[kinks, np.ravel(self.bends(y))]
        return kinks[np.abs(kinks - a).argmin()] if kinks.size else np.nan

    def _slope_at_kink(self, kink: float, y: float) -> float:
        """The subgradient nearest to 0 there."""
        low, high = self.subdifferential(kink, y)
        return min(max(0.0, float(low)), float(high))

    def probability(self, a: ArrayLike) -> Array:
        """Probability of the positive class, for a `probabilistic` loss: the position of h(a) between the labels."""
        low, high = self.labels
        return (self.link(a) - low) / (high - low)

    def log_probability(self, a: ArrayLike) -> Array:
        """ln of `probability`, accurate also for small probabilities if the loss has a suitable form."""
        with np.errstate(divide="ignore"):
            return np.log(self.probability(a))

    def check_target(self, y: ArrayLike) -> None:
        """Raise ValueError, naming the row, the value and the remedy, unless all targets lie in the domain."""
        y = np.atleast_1d(np.asarray(y, dtype=np.float64))
        good = np.isfinite(y) & self._admits(y)
        if not good.all():
            row = tuple(int(i) for i in np.argwhere(~good)[0])
            raise ValueError(
                f"Target y = {y[row]:g} at row {', '.join(map(str, row))} is outside the domain {self.domain} of "
                f"{self!r}; {self._remedy}."
            )

    def _admits(self, y: Array) -> NDArray[np.bool_]:
        low, high = self.target_range
        return (y >= low) & (y <= high)


class ResidualLoss(Loss):
    """Loss of the residual a - y: the link is the identity."""

    translation_invariant = True

    def link(self, a: ArrayLike) -> Array:
        """The score itself."""
        return np.array(a, dtype=np.float64)[()]

    def link_derivative(self, a: ArrayLike) -> Array:
        """1, the slope of the identity."""
        return np.ones_like(np.asarray(a, dtype=np.float64))[()]


Documented = TypeVar("Documented")


def loss_names(task: str) -> tuple[str, ...]:
    """The names of the losses for "regression" or "classification"."""
    return tuple(name for name, loss in LOSSES.items() if task in loss.tasks)


def has_positive_targets(loss: object) -> bool:
    """Whether a loss, or that of this name, has no negative targets; False for what is no loss."""
    found = LOSSES.get(loss) if isinstance(loss, str) else loss
    return getattr(found, "target_range", Loss.target_range)[0] >= 0


def list_losses(documented: Documented) -> Documented:
    """Decorator: in the docstring, put the names in place of <losses>, <regression losses>, <classification losses>."""
    for words, names in (
        ("<losses>", tuple(LOSSES)),
        ("<regression losses>", loss_names("regression")),
        ("<classification losses>", loss_names("classification")),
    ):
        documented.__doc__ = (documented.__doc__ or "").replace(words, ", ".join(f'"{name}"' for name in names))
    return documented


@list_losses
def resolve_loss(loss: str | Loss) -> Loss:
    """The loss behind an estimator's parameter `loss`.

    Parameters
    ----------
    loss : {<losses>} or Loss
        A name from the table `LOSSES`, which has scikit-learn's names, or a loss, which is returned unchanged (for
        other than the default parameters). The targets of "log_loss" are 0 and 1 or probabilities, those of losses for
        classification -1 and 1.

    Returns
    -------
    Loss
        The loss.

    Examples
    --------
    >>> from onlinebregman.losses import HuberLoss, resolve_loss
    >>> resolve_loss("perceptron")
    HingeLoss(margin=0.0)
    >>> resolve_loss(HuberLoss(epsilon=0.5))
    HuberLoss(epsilon=0.5)
    """
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str) or loss not in LOSSES:
        raise ValueError(
            f"loss must be one of {', '.join(map(repr, LOSSES))}, or a Loss such as "
            f"onlinebregman.losses.HuberLoss(epsilon=0.5); got {loss!r}."
        )
    return LOSSES[loss]
