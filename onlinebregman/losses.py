"""Losses of a linear model: transfer functions h and their matching losses, and the robust losses of a residual.

A model predicts h(a) from its score a = w.x (or tr(W X)). For an increasing transfer function h with integral H the
matching loss is the Bregman divergence D_H(a, h^-1(y)), the integral of h(z) - y from h^-1(y) to a; it is convex in a
and its derivative is h(a) - y (W, "Bregman Div. Lead to Good Loss Function"). `SquaredLoss`, `LogisticLoss` and
`PoissonLoss` are matching losses, `HingeLoss` is half of one when its margin is 0. `AbsoluteLoss`,
`EpsilonInsensitiveLoss` and `HuberLoss` are not: they bound the derivative, so that no target can move the weights by
much, and predict the score itself. Nor is `BoundLoss`, whose targets are bounds on the score.

All losses are convex in a. All methods work elementwise on scalars and on arrays that broadcast, and are safe at scores
of any size: no warning, no NaN.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, xlogy

__all__ = [
    "LOSSES",
    "AbsoluteLoss",
    "BoundLoss",
    "EpsilonInsensitiveLoss",
    "HingeLoss",
    "HuberLoss",
    "LogisticLoss",
    "Loss",
    "PoissonLoss",
    "SquaredLoss",
    "resolve_loss",
]

Array = NDArray[np.float64]


def _pair(a: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    return np.asarray(a, dtype=np.float64), np.asarray(y, dtype=np.float64)


def _parameter(value: float, name: str, *, positive: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= value < np.inf or (positive and value == 0):
        needed = "> 0" if positive else ">= 0"
        raise ValueError(f"{name} = {value!r} is not a finite number {needed}; use {name} {needed}.")
    return float(value)


class Loss(ABC):
    """Convex loss L(a, y) of a score a and a target y, the matching loss of a transfer function h: the contract.

    A subclass gives `link`, `link_derivative` and `value`. One that is not a matching loss overrides `derivative` and
    `curvature` as well; one whose derivative jumps also `kinks` and `subdifferential`. Objects compare equal when type
    and parameters do.

    Attributes
    ----------
    domain : str
        The admissible targets, as said in errors.

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
    _remedy = "remove or impute missing and infinite targets"

    @abstractmethod
    def link(self, a: ArrayLike) -> Array:
        """h(a), the prediction of a target."""

    @abstractmethod
    def link_derivative(self, a: ArrayLike) -> Array:
        """h'(a) >= 0."""

    @abstractmethod
    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        """L(a, y) >= 0; D_H(a, h^-1(y)) for a matching loss."""

    def derivative(self, a: ArrayLike, y: ArrayLike) -> Array:
        """dL/da, h(a) - y for a matching loss; the gradient in w is this times x. At a kink it is a subgradient."""
        return self.link(a) - np.asarray(y, dtype=np.float64)

    def curvature(self, a: ArrayLike, y: ArrayLike) -> Array:
        """d^2L/da^2 >= 0 where it is defined, h'(a) for a matching loss; where it jumps, the value of one side."""
        a, y = np.broadcast_arrays(*_pair(a, y))
        return self.link_derivative(a)

    def kinks(self, y: ArrayLike) -> Array:
        """Scores at which dL/da jumps, ascending along the first axis, shape `(k, *y.shape)`; k = 0 without kinks."""
        return np.empty((0, *np.shape(y)))

    def subdifferential(self, a: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
        """Smallest and largest subgradient: dL/da from the left and from the right, equal except at `kinks(y)`."""
        slope = self.derivative(a, y)
        return slope, np.copy(slope)[()]

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
        return np.ones(y.shape, dtype=bool)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in vars(self).items())})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), tuple(sorted(vars(self).items()))))


class _ResidualLoss(Loss):
    """Loss of the residual a - y: the link is the identity."""

    def link(self, a: ArrayLike) -> Array:
        """The score itself."""
        return np.array(a, dtype=np.float64)[()]

    def link_derivative(self, a: ArrayLike) -> Array:
        """1, the slope of the identity."""
        return np.ones_like(np.asarray(a, dtype=np.float64))[()]


class SquaredLoss(_ResidualLoss):
    """Identity transfer, regression: h(a) = a, H(a) = a^2/2, L(a, y) = (a - y)^2/2.

    JKD07 and TRW04 use (a - y)^2; their learning rates are half of those for this loss.

    References
    ----------
    W, table of matching losses; KB10, section 2.2.

    Examples
    --------
    >>> loss = SquaredLoss()
    >>> float(loss.value(3.0, 1.0)), float(loss.derivative(3.0, 1.0))
    (2.0, 2.0)
    """

    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        a, y = _pair(a, y)
        with np.errstate(over="ignore"):
            return (a - y) ** 2 / 2


class LogisticLoss(Loss):
    """Sigmoid transfer, classification: h(a) = 1/(1 + e^-a), H(a) = ln(1 + e^a).

    L(a, y) = ln(1 + e^a) - y a + y ln y + (1 - y) ln(1 - y), the relative entropy between y and h(a); y is a label 0 or
    1, or a probability.

    References
    ----------
    W, table of matching losses and "Dual matching loss for sigmoid transfer func.".

    Examples
    --------
    >>> loss = LogisticLoss()
    >>> float(loss.link(0.0)), float(loss.derivative(0.0, 1.0))
    (0.5, -0.5)
    >>> float(loss.value(1000.0, 0.0))
    1000.0
    """

    domain = "0 <= y <= 1"
    _remedy = "encode the two classes as 0 and 1, or rescale targets to probabilities"

    def link(self, a: ArrayLike) -> Array:
        return expit(np.asarray(a, dtype=np.float64))

    def link_derivative(self, a: ArrayLike) -> Array:
        a = np.asarray(a, dtype=np.float64)
        return expit(a) * expit(-a)

    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        a, y = _pair(a, y)
        # y ln(1 + e^-a) + (1 - y) ln(1 + e^a): no difference of large numbers; products of 0 with infinity are avoided
        cross = y * np.logaddexp(0.0, -a) + (1 - y) * np.logaddexp(0.0, a)
        return np.maximum(cross + xlogy(y, y) + xlogy(1 - y, 1 - y), 0.0)

    def derivative(self, a: ArrayLike, y: ArrayLike) -> Array:
        """h(a) - y as (1 - y) h(a) - y h(-a), which keeps its digits where h(a) is near y = 0 or 1."""
        a, y = _pair(a, y)
        return (1 - y) * expit(a) - y * expit(-a)

    def _admits(self, y: Array) -> NDArray[np.bool_]:
        return (y >= 0) & (y <= 1)


class PoissonLoss(Loss):
    """Exponential transfer, counts: h(a) = H(a) = e^a, L(a, y) = e^a - y a + y ln y - y with minimum 0 at a = ln y.

    L is half the Poisson deviance, the unnormalised relative entropy between y and h(a). Above a = 709 h and L are
    infinite in float64.

    References
    ----------
    W, "Dual divergence for Poisson".

    Examples
    --------
    >>> import numpy as np
    >>> loss = PoissonLoss()
    >>> float(loss.value(np.log(3.0), 3.0))
    0.0
    >>> float(loss.derivative(0.0, 3.0))
    -2.0
    """

    domain = "y >= 0"
    _remedy = "use counts or other non-negative targets, or SquaredLoss"

    def link(self, a: ArrayLike) -> Array:
        with np.errstate(over="ignore"):
            return np.exp(np.asarray(a, dtype=np.float64))

    def link_derivative(self, a: ArrayLike) -> Array:
        return self.link(a)

    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        a, y = np.broadcast_arrays(*_pair(a, y))
        log_y = np.log(np.where(y > 0, y, 1.0))
        gap = a - log_y
        with np.errstate(over="ignore"):
            # y (e^gap - 1 - gap) keeps the digits near a = ln y; the direct form keeps those of tiny y and large a
            near = y * (np.expm1(np.minimum(gap, 1.0)) - gap)
            far = np.exp(a) - y - y * gap
        return np.maximum(np.where((y > 0) & (np.abs(gap) < 1), near, far), 0.0)[()]

    def _admits(self, y: Array) -> NDArray[np.bool_]:
        return y >= 0


class HingeLoss(Loss):
    """L(a, y) = max(0, margin - y a), y = -1 or 1: the support vector machine's loss, and the Perceptron's.

    The link is sign(a). With margin 0 L is half the matching loss of the sign, H(a) = abs(a): the Perceptron in the
    Euclidean geometry, Winnow in that of the relative entropy. With a positive margin it is not a matching loss; its
    implicit step in the Euclidean geometry is that of the Passive-Aggressive algorithm (PA-I).

    The kink is at a = margin y. There every number between -y and 0 is a subgradient, and `derivative` is 0: a row
    without loss does not move the weights. The score 0 is the exception, it is a mistake for every margin, so that the
    explicit steps of the Perceptron can begin from w = 0. (The implicit step from a kink stays there: with margin 0 it
    never leaves w = 0.)

    Parameters
    ----------
    margin : float, default=1.0
        Scores y a at least this large have no loss; >= 0.

    References
    ----------
    W, "Sigmoid in the Limit", "Motivation of linear threshold algs"; K. Crammer et al., "Online Passive-Aggressive
    Algorithms", JMLR 7, 2006.

    Examples
    --------
    >>> HingeLoss().value([-1.0, 0.0, 1.0, 2.0], 1.0)
    array([2., 1., 0., 0.])
    >>> HingeLoss().derivative([-1.0, 0.0, 1.0, 2.0], 1.0)
    array([-1., -1.,  0.,  0.])
    >>> HingeLoss(margin=0.0).derivative([-1.0, 0.0, 1.0, 2.0], 1.0)  # the Perceptron
    array([-1., -1.,  0.,  0.])
    """

    domain = "y = -1 or 1"
    _remedy = "encode the two classes as -1 and 1"

    def __init__(self, margin: float = 1.0) -> None:
        self.margin = _parameter(margin, "margin", positive=False)

    def link(self, a: ArrayLike) -> Array:
        """sign(a), 0 at a = 0."""
        return np.sign(np.asarray(a, dtype=np.float64))

    def link_derivative(self, a: ArrayLike) -> Array:
        """0, the slope of the sign on both sides of its jump."""
        return np.zeros_like(np.asarray(a, dtype=np.float64))[()]

    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        a, y = _pair(a, y)
        return np.maximum(self.margin - y * a, 0.0) + 0.0  # -0.0 becomes 0.0

    def derivative(self, a: ArrayLike, y: ArrayLike) -> Array:
        """-y where y a < margin or y a <= 0 (a mistake, the score 0 included), else 0."""
        a, y = _pair(a, y)
        return np.where((y * a < self.margin) | (y * a <= 0), -y, 0.0)[()]

    def kinks(self, y: ArrayLike) -> Array:
        return self.margin * np.asarray(y, dtype=np.float64)[np.newaxis]

    def subdifferential(self, a: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
        a, y = _pair(a, y)
        slope, kink = self.derivative(a, y), y * a == self.margin
        return np.where(kink, np.minimum(-y, 0.0), slope)[()], np.where(kink, np.maximum(-y, 0.0), slope)[()]

    def _admits(self, y: Array) -> NDArray[np.bool_]:
        return np.abs(y) == 1


class _InsensitiveLoss(_ResidualLoss):
    """max(0, abs(a - y) - epsilon)."""

    epsilon: float

    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        a, y = _pair(a, y)
        return np.maximum(np.abs(a - y) - self.epsilon, 0.0)

    def derivative(self, a: ArrayLike, y: ArrayLike) -> Array:
        """sign(a - y) where abs(a - y) > epsilon, else 0."""
        a, y = _pair(a, y)
        return np.where(np.abs(a - y) > self.epsilon, np.sign(a - y), 0.0)[()]

    def curvature(self, a: ArrayLike, y: ArrayLike) -> Array:
        """0: the loss is piecewise linear."""
        return np.zeros(np.broadcast_shapes(np.shape(a), np.shape(y)))[()]

    def subdifferential(self, a: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
        a, y = _pair(a, y)
        slope, lower, upper = self.derivative(a, y), a == y - self.epsilon, a == y + self.epsilon
        left = np.where(lower, -1.0, np.where(upper, 0.0, slope))
        right = np.where(upper, 1.0, np.where(lower, 0.0, slope))
        return left[()], right[()]


class AbsoluteLoss(_InsensitiveLoss):
    """L(a, y) = abs(a - y): regression to the median.

    The link is the identity; it is not a matching loss. `derivative` is 0 at the kink a = y.

    Examples
    --------
    >>> loss = AbsoluteLoss()
    >>> loss.value([0.0, 2.0, 5.0], 2.0), loss.derivative([0.0, 2.0, 5.0], 2.0)
    (array([2., 0., 3.]), array([-1.,  0.,  1.]))
    """

    epsilon = 0.0

    def kinks(self, y: ArrayLike) -> Array:
        return np.array(y, dtype=np.float64)[np.newaxis]


class EpsilonInsensitiveLoss(_InsensitiveLoss):
    """L(a, y) = max(0, abs(a - y) - epsilon): the support vector regression loss, no loss inside a tube.

    The link is the identity; it is not a matching loss. Its implicit step in the Euclidean geometry is that of
    Passive-Aggressive regression. `derivative` is 0 at the kinks a = y - epsilon and y + epsilon, as inside the tube.

    Parameters
    ----------
    epsilon : float, default=0.1
        Half the width of the tube, >= 0.

    References
    ----------
    K. Crammer et al., "Online Passive-Aggressive Algorithms", JMLR 7, 2006, section 5.

    Examples
    --------
    >>> loss = EpsilonInsensitiveLoss(epsilon=0.5)
    >>> loss.value([0.0, 1.75, 3.0], 2.0), loss.derivative([0.0, 1.75, 3.0], 2.0)
    (array([1.5, 0. , 0.5]), array([-1.,  0.,  1.]))
    >>> loss.kinks(2.0)
    array([1.5, 2.5])
    """

    def __init__(self, epsilon: float = 0.1) -> None:
        self.epsilon = _parameter(epsilon, "epsilon", positive=False)

    def kinks(self, y: ArrayLike) -> Array:
        y = np.asarray(y, dtype=np.float64)
        return np.stack([y - self.epsilon, y + self.epsilon])


class HuberLoss(_ResidualLoss):
    """Squared loss of small residuals, absolute loss of large ones: regression with outliers.

    L(a, y) = (a - y)^2/2 where abs(a - y) <= epsilon, else epsilon abs(a - y) - epsilon^2/2. The derivative is
    a - y cut to [-epsilon, epsilon]: without kinks. The link is the identity; it is not a matching loss.

    Parameters
    ----------
    epsilon : float, default=1.35
        Where the loss turns linear, > 0, in units of the target. The default, that of scikit-learn's HuberRegressor,
        is 95 % as efficient as the squared loss on normal noise of variance 1. (SGDRegressor has 0.1.)

    References
    ----------
    P. J. Huber, "Robust Estimation of a Location Parameter", Annals of Mathematical Statistics 35, 1964.

    Examples
    --------
    >>> loss = HuberLoss(epsilon=1.0)
    >>> loss.value([0.5, 1.0, 10.0], 0.0), loss.derivative([0.5, 1.0, 10.0], 0.0)
    (array([0.125, 0.5  , 9.5  ]), array([0.5, 1. , 1. ]))
    """

    def __init__(self, epsilon: float = 1.35) -> None:
        self.epsilon = _parameter(epsilon, "epsilon", positive=True)

    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        a, y = _pair(a, y)
        gap = np.abs(a - y)
        inner = np.minimum(gap, self.epsilon)
        return inner * (gap - inner / 2)

    def derivative(self, a: ArrayLike, y: ArrayLike) -> Array:
        """a - y cut to [-epsilon, epsilon]."""
        a, y = _pair(a, y)
        return np.clip(a - y, -self.epsilon, self.epsilon)

    def curvature(self, a: ArrayLike, y: ArrayLike) -> Array:
        """1 where abs(a - y) <= epsilon, else 0."""
        a, y = _pair(a, y)
        return np.where(np.abs(a - y) <= self.epsilon, 1.0, 0.0)[()]


class BoundLoss(_ResidualLoss):
    """Squared loss of a bound that does not hold: targets are upper or lower bounds on the score, told by their sign.

    y >= 0 asks for a <= y, L(a, y) = max(a - y, 0)^2/2; y < 0 asks for a >= abs(y), L(a, y) = max(abs(y) - a, 0)^2/2.
    -0.0 is a lower bound of 0. Both are max(s a - y, 0)^2/2 with s the sign of y, and bounds of the other sign are
    those of the negated instance: a <= -1 for X is a >= 1 for -X.

    For metrics: a pair of similar rows with y = u, of dissimilar rows with y = -l, and for relative comparisons the
    triplet X = p p' - q q' with y = -margin, p the difference of the anchor to the row that should be farther away.

    The link is the identity; it is not a matching loss.

    References
    ----------
    P. Jain, B. Kulis, I. S. Dhillon, K. Grauman, "Online Metric Learning and Fast Similarity Search", NIPS 2008.

    Examples
    --------
    >>> loss = BoundLoss()
    >>> loss.value([1.0, 2.0, 4.0], 2.0), loss.derivative([1.0, 2.0, 4.0], 2.0)  # a <= 2
    (array([0., 0., 2.]), array([0., 0., 2.]))
    >>> loss.value([1.0, 2.0, 4.0], -2.0), loss.derivative([1.0, 2.0, 4.0], -2.0)  # a >= 2
    (array([0.5, 0. , 0. ]), array([-1.,  0.,  0.]))
    """

    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        with np.errstate(over="ignore"):
            return self.derivative(a, y) ** 2 / 2

    def derivative(self, a: ArrayLike, y: ArrayLike) -> Array:
        """a - abs(y) where the bound does not hold, else 0."""
        a, y = _pair(a, y)
        return np.where(np.signbit(y), np.minimum(a + y, 0.0), np.maximum(a - y, 0.0))[()]

    def curvature(self, a: ArrayLike, y: ArrayLike) -> Array:
        """1 where the bound does not hold, else 0."""
        return np.where(self.derivative(a, y) != 0, 1.0, 0.0)[()]


LOSSES = {
    "squared_error": SquaredLoss(),
    "log_loss": LogisticLoss(),
    "poisson": PoissonLoss(),
    "absolute_error": AbsoluteLoss(),
    "epsilon_insensitive": EpsilonInsensitiveLoss(),
    "huber": HuberLoss(),
    "hinge": HingeLoss(),
    "perceptron": HingeLoss(margin=0.0),
}


def resolve_loss(loss: str | Loss) -> Loss:
    """The loss behind an estimator's parameter `loss`.

    Parameters
    ----------
    loss : {"squared_error", "log_loss", "poisson", "absolute_error", "epsilon_insensitive", "huber", "hinge", \
            "perceptron"} or Loss
        A name from the table `LOSSES`, which has scikit-learn's names, or a loss, which is returned as it is: the
        way to other parameters than the default ones. The targets of "log_loss" are 0 and 1 or probabilities, those
        of "hinge" and "perceptron" -1 and 1.

    Returns
    -------
    Loss
        The loss.

    Examples
    --------
    >>> resolve_loss("perceptron")
    HingeLoss(margin=0.0)
    >>> resolve_loss(HuberLoss(epsilon=0.5))
    HuberLoss(epsilon=0.5)
    """
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str) or loss not in LOSSES:
        raise ValueError(
            f"loss = {loss!r} is not known; use one of {', '.join(map(repr, LOSSES))} "
            "or a Loss such as onlinebregman.losses.HuberLoss(epsilon=0.5)."
        )
    return LOSSES[loss]
