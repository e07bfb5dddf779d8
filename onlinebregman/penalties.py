"""Penalties on weights: each step on the loss is followed by the proximal step of the penalty.

Composite mirror descent minimises sum L_t(w) + R(w): each row moves the weights by the step of its loss from w to w',
and then to w'' = argmin of D(v, w') + eta R(v) over v. For every u

    eta (R(w'') - R(u))  <=  D(u, w') - D(u, w'') - D(w'', w'),

so that a regret certificate for the losses becomes one for losses and penalty together. Adaptive divergences take the
limit of many small proximal steps, of eta / m each, with D(w'', w') on the right times e^-z, z = eta l2 / h (see
`ElasticNet`).

References
----------
J. Duchi, S. Shalev-Shwartz, Y. Singer, A. Tewari, "Composite Objective Mirror Descent", COLT 2010; J. Duchi, Y. Singer,
"Efficient Online and Batch Learning Using Forward Backward Splitting", JMLR 10, 2009.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._objects import ForDivergences, check_parameter, is_finite_number
from .divergences import Divergence

__all__ = ["L1", "L2", "PENALTIES", "ElasticNet", "ExplicitElasticNet", "Penalty", "resolve_penalty"]

Array = NDArray[np.float64]


class Penalty(ForDivergences, ABC):
    """Convex penalty R(w) of weights: the contract.

    A subclass defines `value` and `prox`. Signed weights w = w+ - w- are passed as the vector (w+, w-), and R is that
    of both halves: for a norm, R(w) is the smallest possible value of R(w+) + R(w-). Objects are equal if their types
    and parameters are.

    Examples
    --------
    The penalty sum w, for sparse positive weights:

    >>> import numpy as np
    >>> from onlinebregman.divergences import Burg
    >>> from onlinebregman.penalties import Penalty
    >>> class Cost(Penalty):
    ...     def __init__(self, prices):
    ...         self.prices = prices
    ...     def value(self, w):
    ...         return float(np.dot(w, self.prices))
    ...     def prox(self, divergence, w, eta):
    ...         return divergence.step(w, self.prices, eta)  # f(v) = f(w) - eta R'
    >>> Cost([1.0, 3.0]).prox(Burg(), [0.5, 1.0], 1.0)
    array([0.33333333, 0.25      ])
    """

    explicit: bool = False  # whether its L2 part is linearised at the weights before the row: no proximal step

    @abstractmethod
    def value(self, w: ArrayLike) -> float:
        """R(w), of weights of shape (n,)."""

    @abstractmethod
    def prox(self, divergence: Divergence, w: ArrayLike, eta: float) -> Array:
        """argmin of D(v, w) + eta R(v) over v, of shape (n,): a new array.

        Raises ValueError if the divergence has no such step.
        """


class ElasticNet(Penalty):
    """R(w) = alpha (l1_ratio sum abs(w) + (1 - l1_ratio) sum w^2 / 2), as in scikit-learn's SGD.

    Its proximal step solves f(v) + l1 sign(v) + l2 v = f(w), l1 = eta alpha l1_ratio, l2 = eta alpha (1 - l1_ratio),
    for each weight, with v = 0 where f(w) is within l1 of f(0):

    - squared Euclidean: (w - l1 sign(w)) / (1 + l2), exactly 0 where abs(w) <= l1;
    - relative entropy: w e^-l1 for l2 = 0, else W(l2 w e^-l1) / l2 with Lambert's W;
    - Burg: 1/v = 1/w + l1 + l2 v, a quadratic equation;
    - binary entropy: logit v + l2 v = logit w - l1, one scalar equation a weight;
    - p-norm: a soft threshold of f(w), only for l1_ratio = 1;
    - adaptive, with weights h of the coordinates: not its step, but the limit of many small ones, which is sgn(w)
      max((abs(w) + l1 / l2) e^(-l2 / h) - l1 / l2, 0), and sgn(w) max(abs(w) - l1 / h, 0) for l2 = 0;
    - a `SeparableDivergence` of your own: the same equation by Newton's method.

    Parameters
    ----------
    alpha : float, default=0.0001
        Strength, >= 0.
    l1_ratio : float, default=0.15
        The share of the L1 part, from 0 to 1.

    Examples
    --------
    >>> from onlinebregman.divergences import RelativeEntropy, SquaredEuclidean
    >>> from onlinebregman.penalties import ElasticNet
    >>> penalty = ElasticNet(alpha=1.0, l1_ratio=0.5)
    >>> penalty.value([1.0, -2.0])
    2.75
    >>> penalty.prox(SquaredEuclidean(), [1.0, -2.0, 0.1], 0.4).round(4)
    array([ 0.6667, -1.5   ,  0.    ])
    >>> penalty.prox(RelativeEntropy(), [1.0, 2.0, 0.1], 0.4).round(4)
    array([0.7103, 1.2701, 0.0806])
    """

    def __init__(self, alpha: float = 0.0001, l1_ratio: float = 0.15) -> None:
        self.alpha: float = check_parameter(alpha, "alpha", positive=False)
        if not is_finite_number(l1_ratio) or not 0 <= l1_ratio <= 1:
            raise ValueError(f"l1_ratio must be a number from 0 (L2) to 1 (L1); got {l1_ratio!r}.")
        self.l1_ratio: float = float(l1_ratio)

    @property
    def l1(self) -> float:
        """The factor of sum abs(w)."""
        return self.alpha * self.l1_ratio

    @property
    def l2(self) -> float:
        """The factor of sum w^2 / 2."""
        return self.alpha * (1 - self.l1_ratio)

    def value(self, w: ArrayLike) -> float:
        """R(w) = l1 sum abs(w) + l2 sum w^2 / 2."""
        w = np.asarray(w, dtype=np.float64)
        l1 = self.l1 * np.abs(w).sum() if self.l1 else 0.0  # a sum that overflows is no NaN if it does not count
        return float(l1 + (self.l2 * (w @ w) / 2 if self.l2 else 0.0))

    def prox(self, divergence: Divergence, w: ArrayLike, eta: float) -> Array:
        """argmin of D(v, w) + eta R(v) over v: `prox_elastic_net` of the divergence."""
        purpose = "make the proximal step of"
        return self._call(divergence, "prox_elastic_net", purpose, w, eta * self.l1, eta * self.l2)


class L1(ElasticNet):
    """R(w) = alpha sum abs(w): sparse weights, exactly 0 if the domain contains 0.

    Parameters
    ----------
    alpha : float, default=0.0001
        Strength, >= 0.

    Examples
    --------
    >>> from onlinebregman.divergences import PNorm, SquaredEuclidean
    >>> from onlinebregman.penalties import L1
    >>> L1(alpha=0.5).prox(SquaredEuclidean(), [1.0, -2.0, 0.1], 0.4)
    array([ 0.8, -1.8,  0. ])
    >>> L1(alpha=0.5).prox(PNorm(p=3.0), [1.0, -2.0, 0.1], 0.4).round(4)
    array([ 0.8471, -1.8424,  0.0396])
    """

    l1_ratio: float = 1.0

    def __init__(self, alpha: float = 0.0001) -> None:
        self.alpha: float = check_parameter(alpha, "alpha", positive=False)


class L2(ElasticNet):
    """R(w) = alpha sum w^2 / 2: weights shrunk towards 0 in proportion to their size.

    Parameters
    ----------
    alpha : float, default=0.0001
        Strength, >= 0.

    Examples
    --------
    >>> from onlinebregman.divergences import Burg, SquaredEuclidean
    >>> from onlinebregman.penalties import L2
    >>> L2(alpha=0.5).prox(SquaredEuclidean(), [1.0, -2.0], 0.5)
    array([ 0.8, -1.6])
    >>> L2(alpha=4.0).prox(Burg(), [1.0, 2.0], 0.5).round(4)
    array([0.5   , 0.5931])
    """

    l1_ratio: float = 0.0

    def __init__(self, alpha: float = 0.0001) -> None:
        self.alpha: float = check_parameter(alpha, "alpha", positive=False)


class ExplicitElasticNet(ElasticNet):
    """`ElasticNet` with explicit steps of its L2 part, as in scikit-learn's SGD: weights shrunk by 1 - eta l2.

    This part is linearised together with the loss, at the weights w before the row: argmin of <c x + eta l2 w, v> +
    D(v, w) over v is (1 - eta l2) w - c x in the squared Euclidean geometry, the only one that learns with it. It is
    the proximal step at the rate eta / (1 - eta l2), except that the intercept moves at the rate eta. A step that would
    overshoot, with eta l2 > 1, ends at -c x. The proximal step of the L1 part follows. For models that have to equal
    those of scikit-learn: `ElasticNet` never overshoots, and has certificates.

    Parameters
    ----------
    alpha : float, default=0.0001
        Strength, >= 0.
    l1_ratio : float, default=0.15
        The share of the L1 part, from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import SGDRegressor
    >>> from onlinebregman import MirrorDescentRegressor
    >>> from onlinebregman.penalties import ExplicitElasticNet
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 3))
    >>> y = X @ [1.0, 2.0, 3.0]
    >>> rate = {"learning_rate": "constant", "eta0": 0.01}
    >>> l2 = ExplicitElasticNet(alpha=0.1, l1_ratio=0.0)
    >>> model = MirrorDescentRegressor(divergence="squared_euclidean", update="explicit", penalty=l2, **rate)
    >>> sgd = SGDRegressor(penalty="l2", alpha=0.1, shuffle=False, **rate)
    >>> bool(np.allclose(model.partial_fit(X, y).coef_, sgd.partial_fit(X, y).coef_, rtol=1e-12))
    True
    """

    explicit = True

    def prox(self, divergence: Divergence, w: ArrayLike, eta: float) -> Array:
        """The steps of the penalty alone: f(v) = f(w) - eta l2 w, and then the proximal one of the L1 part."""
        shrunk = divergence.step(w, np.multiply(self.l2, w), eta)
        return self._call(divergence, "prox_elastic_net", "make the proximal step of", shrunk, eta * self.l1, 0.0)


PENALTIES = ("l1", "l2", "elasticnet")


def resolve_penalty(
    penalty: str | Penalty | None, alpha: float = 0.0001, l1_ratio: float | None = 0.15
) -> Penalty | None:
    """The penalty behind an estimator's parameters `penalty`, `alpha` and `l1_ratio`.

    Parameters
    ----------
    penalty : {"l1", "l2", "elasticnet"}, Penalty or None
        A name, to which the other two parameters apply; a penalty, which is returned unchanged; or None.
    alpha : float, default=0.0001
        Strength.
    l1_ratio : float, default=0.15
        The share of the L1 part in "elasticnet".

    Returns
    -------
    Penalty or None
        The penalty.

    Examples
    --------
    >>> from onlinebregman.penalties import resolve_penalty
    >>> resolve_penalty("elasticnet", alpha=0.01)
    ElasticNet(alpha=0.01, l1_ratio=0.15)
    """
    if penalty is None or isinstance(penalty, Penalty):
        return penalty
    if penalty == "elasticnet":
        if l1_ratio is None:
            raise ValueError("l1_ratio must be set when penalty is 'elasticnet', to a number from 0 to 1; got None.")
        return ElasticNet(alpha, l1_ratio)
    if penalty not in PENALTIES:
        raise ValueError(
            f"penalty must be one of {', '.join(map(repr, PENALTIES))}, None, or a Penalty such as "
            f"onlinebregman.penalties.L1(alpha=0.01); got {penalty!r}."
        )
    return L1(alpha) if penalty == "l1" else L2(alpha)
