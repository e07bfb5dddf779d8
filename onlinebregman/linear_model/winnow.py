"""Winnow: multiplicative steps for mistakes."""

from __future__ import annotations

from typing import Any, Literal

from numpy.typing import ArrayLike

from .._online.types import RandomState
from ._mistake_driven import MistakeDrivenClassifier
from .eg import EntropyMirrorMixin


class WinnowClassifier(EntropyMirrorMixin, MistakeDrivenClassifier):
    """Winnow: weights multiplied by exp(eta y x) for each mistake, a row on which y w.x <= 0 with y = -1 or 1.

        positive    w'_i = w_i exp(eta y x_i)                           (Winnow)
        simplex     the same, then divided so that sum w' = total       (normalised Winnow)
        signed      w = w+ - w-, normalised Winnow on the row (x, -x)   (balanced Winnow)

    The intercept, which takes the place of Winnow's threshold, moves by eta y. On rows that weights in the domain
    separate, the bound on the mistakes grows with the logarithm of the number of features; see `mistake_bound`. More
    than two classes are learned one-vs-rest, side by side.

    Parameters
    ----------
    {weights}
    total : float
        The sum of the weights on the simplex, and of w+ and w- together for signed weights. Not used for positive
        weights.
    eta0 : float
        Learning rate. With weights of total U and rows of entries at most X, eta0 = gamma / (U X^2) gives the smallest
        bound for a margin gamma.
    {init, class_weight, handle_unknown, fit_intercept, max_iter, tol, n_iter_no_change, early_stopping}
    {validation_fraction, shuffle}
    {average, warm_start, handle_new_features, random_state}
    {verbose}

    Attributes
    ----------
    {coef_, intercept_, classes_, t_, cumulative_loss_, n_iter_, loss_curve_, validation_scores_, n_mistakes_}
    {divergence_, n_features_in_}
    {feature_names_in_}

    See Also
    --------
    PerceptronClassifier : Additive steps.
    EGRegressor : The same geometry, for numbers.

    References
    ----------
    .. [1] N. Littlestone, "Learning Quickly When Irrelevant Attributes Abound", Machine Learning 2, 1988.
    .. [2] M. K. Warmuth, "Bregman divergences and on-line learning", slides, "Normalized Winnow".

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import WinnowClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1.0, 1.0], size=(2000, 500))
    >>> y = np.sign(X[:, 0] + X[:, 1] - X[:, 2])  # three features of five hundred matter
    >>> model = WinnowClassifier(fit_intercept=False).partial_fit(X, y, classes=[-1, 1])
    >>> print(model.score(X, y), model.n_mistakes_)
    1.0 [120]
    >>> print(round(model.mistake_bound(X, y, coef=np.r_[[1, 1, -1], np.zeros(497)] / 3)))
    205
    """

    def __init__(
        self,
        *,
        weights: Literal["signed", "simplex", "positive"] = "signed",
        total: float = 1.0,
        eta0: float = 0.1,
        init: ArrayLike | float | None = None,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        handle_unknown: Literal["error", "add"] = "error",
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        n_iter_no_change: int = 5,
        early_stopping: bool | Literal["best"] = False,
        validation_fraction: float = 0.1,
        shuffle: bool = True,
        average: bool | int = False,
        warm_start: bool = False,
        handle_new_features: Literal["error", "add"] = "error",
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self._set_arguments(locals())
