"""Adaptive squared Euclidean distances: the weight h_i of each coordinate depends on the rows learned so far."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from ..losses import Loss
from ._base import named
from ._numerics import Array, as_array
from .euclidean import SquaredEuclidean, WeightedSquaredEuclidean


class AdaptiveDivergence(SquaredEuclidean):
    """D_t(u, w) = sum h_i (u_i - w_i)^2 / 2, with weights h_i that depend on the rows up to row t: the interface.

    Row t is predicted, and the derivative g = L'(a, y) of its loss at the prediction updates h before the step w' =
    argmin D_t(w', w) + eta_t L(w'.x, y), w_i' = w_i - c x_i / h_i. Only coordinates with x_i != 0 change. The object
    itself is the squared Euclidean distance before any row; `at(metric)` is the divergence with given weights h.

    An intercept is a coordinate with value 1. A row of weight s counts s times in all sums.

    Attributes
    ----------
    constant_rate : float
        A learning rate eta that suits most data; it need not decrease, since h grows.
    """

    adaptive = True
    scale_free = False  # whether steps do not depend on the units of features
    by_deviation: tuple[int, ...] = ()  # degrees of losses whose rate is proportional to the targets' deviation
    constant_rate: float = 1.0
    rate_power: float = 0.5

    @abstractmethod
    def metric(self, X: ArrayLike, g: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
        """h after rows X (n_rows, n) whose losses had the derivatives g (n_rows,); 0 where all x_i were 0."""

    def rate(self, X: ArrayLike, y: ArrayLike, loss: Loss, sample_weight: ArrayLike | None = None) -> float:
        """Factor of the learning rate for the last of the rows X, with targets y, common to all coordinates."""
        return 1.0

    def shrunk(self, w: ArrayLike, metric: ArrayLike, m: ArrayLike, M: ArrayLike) -> Array:
        """The weights w after rescaling, with metric h, when the largest abs(x_i) grows from m > 0 to M.

        The row is predicted with the rescaled weights and learned starting from them.
        """
        return as_array(w)

    def at(self, metric: ArrayLike) -> WeightedSquaredEuclidean:
        """The divergence with these weights h, such as `metric_` of an estimator.

        Examples
        --------
        >>> from onlinebregman.divergences import AdaGrad
        >>> divergence = AdaGrad()
        >>> divergence.at(divergence.metric([[3.0, 1.0], [4.0, 0.0]], g=[1.0, -1.0]))
        WeightedSquaredEuclidean(weights=[5.0, 1.0])
        """
        return WeightedSquaredEuclidean(metric)

    def smoothness(self, x_bound: float) -> float:
        raise self._not_smooth()

    def row_size(self, x: ArrayLike) -> float:
        raise self._not_smooth()

    def _not_smooth(self) -> ValueError:
        return ValueError(f"{self!r} is adaptive, so that bounds on rows determine no rate; choose eta0.")


@named("adagrad")
class AdaGrad(AdaptiveDivergence):
    """Adaptive gradient descent: each coordinate has its own rate, which decreases with its gradients.

    h_i = sqrt(sum g^2 x_i^2): rare features keep a high rate. With bounded weights the regret is at most of the order
    of sum_i sqrt(sum g^2 x_i^2). eta is in units of the weights.

    References
    ----------
    J. Duchi, E. Hazan, Y. Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization", JMLR
    12, 2011; H. B. McMahan, M. Streeter, "Adaptive Bound Optimization for Online Convex Optimization", COLT 2010.

    Examples
    --------
    >>> from onlinebregman.divergences import AdaGrad
    >>> AdaGrad().metric([[3.0, 1.0], [4.0, 0.0]], g=[1.0, -1.0])
    array([5., 1.])
    """

    def metric(self, X: ArrayLike, g: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
        return np.sqrt((_weights(sample_weight, g) * as_array(g) ** 2) @ as_array(X) ** 2)


@named("normalized_adagrad")
class NormalizedAdaGrad(AdaptiveDivergence):
    """Normalised adaptive gradient descent: `AdaGrad` that is invariant to the units of each feature and of the target.

    h_i = M_i sqrt(sum g^2 x_i^2) with M_i the largest abs(x_i) so far, and the rate times sqrt(t / N) with N the sum of
    x_i^2 / M_i^2 over the t rows and all coordinates. Where M_i grows from m to M, w_i is multiplied by m / M: a row
    with a value larger than any before is predicted as if that value were the largest before.

    Multiplying a feature by a constant divides its weight by that constant and changes nothing else. For losses in
    units of the target, such as the squared loss, the rate is proportional to the standard deviation of the targets so
    far (to their absolute value while they are all equal), which makes learning invariant to those units. For losses of
    bounded slope, whose steps nothing else limits, estimators take the deviation of targets that are limited to ten
    mean deviations, and at most twice the mean deviation lately, so that an absurd target does not change it; for a
    quantile also at most three times the mean distance of the targets on its rarer side, where they may be dense,
    unless predictions lag behind. For all losses in units of the target the first row only moves the intercept, to the
    target, unless steps are explicit, and its g is ignored, so that a large offset of the targets does not affect the
    rates.

    References
    ----------
    S. Ross, P. Mineiro, J. Langford, "Normalized Online Learning", UAI 2013, algorithm NAG.

    Examples
    --------
    >>> from onlinebregman.divergences import NormalizedAdaGrad
    >>> NormalizedAdaGrad().metric([[3.0, 1.0], [4.0, 0.0]], g=[1.0, -1.0])
    array([20.,  1.])
    """

    scale_free = True
    by_deviation = 1, 2
    constant_rate: float = 3.0

    def metric(self, X: ArrayLike, g: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
        return np.abs(as_array(X)).max(axis=0) * AdaGrad().metric(X, g, sample_weight)

    def shrunk(self, w: ArrayLike, metric: ArrayLike, m: ArrayLike, M: ArrayLike) -> Array:
        return as_array(w) * as_array(m) / as_array(M)

    def rate(self, X: ArrayLike, y: ArrayLike, loss: Loss, sample_weight: ArrayLike | None = None) -> float:
        X = np.abs(as_array(X))
        s, largest = _weights(sample_weight, y), np.maximum.accumulate(X, axis=0)
        norms = (np.divide(X, largest, out=np.zeros_like(X), where=X > 0) ** 2).sum(axis=1)
        return float(np.sqrt(s.sum() / (s @ norms))) * (_deviation(y, s) if loss.degree in self.by_deviation else 1.0)


@named("diagonal_newton")
class DiagonalNewton(AdaptiveDivergence):
    """Diagonal second-order steps: the diagonal of the forward algorithm and of the on-line Newton step.

    h_i = M_i^2 + k sum x_i^2, with M_i the largest abs(x_i) so far and k the curvature of the loss. For a loss that is
    0 on an interval, such as the hinge beyond its margin, the sum is over the rows with g != 0; the others have no
    curvature. Where M_i grows from m to M, h_i w_i is preserved, as if the prior had been stronger from the start. As
    with `NormalizedAdaGrad`, learning is invariant to the units of features and target, and for losses in units of the
    target the first row only moves the intercept.

    Parameters
    ----------
    curvature : float, default=None
        k > 0. None: `typical_curvature` of the loss, 1 for the squared loss and the hinge, 1/4 for the log loss.

    References
    ----------
    K. S. Azoury, M. K. Warmuth, "Relative Loss Bounds for On-line Density Estimation with the Exponential Family of
    Distributions", Machine Learning 43, 2001; E. Hazan, A. Agarwal, S. Kale, "Logarithmic Regret Algorithms for Online
    Convex Optimization", Machine Learning 69, 2007.

    Examples
    --------
    >>> from onlinebregman.divergences import DiagonalNewton
    >>> DiagonalNewton(curvature=1.0).metric([[3.0, 1.0], [4.0, 0.0]], g=[1.0, -1.0])
    array([41.,  2.])
    >>> DiagonalNewton(curvature=1.0).metric([[3.0, 1.0], [4.0, 0.0]], g=[1.0, 0.0])
    array([25.,  2.])
    """

    scale_free = True
    by_deviation = (1,)  # steps on the squared loss already are
    constant_rate: float = 4.0
    rate_power: float = 1.0

    def __init__(self, curvature: float | None = None) -> None:
        if curvature is not None and not 0 < curvature < np.inf:
            raise ValueError(
                f"curvature must be a positive finite number, or None for that of the loss; got {curvature!r}."
            )
        self.curvature = curvature

    def metric(self, X: ArrayLike, g: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
        """h after rows X (n_rows, n), of which those with g = 0 only count in M; 0 where all x_i were 0.

        For losses that are not `flat`, any g other than 0 gives the same.
        """
        if self.curvature is None:
            raise ValueError("The metric depends on the loss; give its curvature, DiagonalNewton(curvature=...).")
        X, s = as_array(X), _weights(sample_weight, g) * (as_array(g) != 0)
        return np.abs(X).max(axis=0) ** 2 + self.curvature * (s @ X**2)

    def shrunk(self, w: ArrayLike, metric: ArrayLike, m: ArrayLike, M: ArrayLike) -> Array:
        h = as_array(metric)
        return as_array(w) * h / (h - as_array(m) ** 2 + as_array(M) ** 2)

    def rate(self, X: ArrayLike, y: ArrayLike, loss: Loss, sample_weight: ArrayLike | None = None) -> float:
        return _deviation(y, _weights(sample_weight, y)) if loss.degree in self.by_deviation else 1.0


def _weights(sample_weight: ArrayLike | None, like: ArrayLike) -> Array:
    return np.ones(len(as_array(like))) if sample_weight is None else as_array(sample_weight)


def _deviation(y: ArrayLike, sample_weight: Array) -> float:
    """The standard deviation of targets; their size if they are all the same."""
    y = as_array(y)
    if (y == y[0]).all():
        return float(abs(y[0]))
    return float(np.sqrt(np.average((y - np.average(y, weights=sample_weight)) ** 2, weights=sample_weight)))
