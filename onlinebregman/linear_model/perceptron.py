"""The Perceptron."""

from __future__ import annotations

from typing import Any, Literal

from numpy.typing import ArrayLike

from .._online.types import RandomState
from ._mistake_driven import MistakeDrivenClassifier
from .implicit_gd import EuclideanMirrorMixin


class PerceptronClassifier(EuclideanMirrorMixin, MistakeDrivenClassifier):
    """The Perceptron: w' = w + eta y x for each mistake, a row on which y w.x <= 0 with y = -1 or 1.

    Its mistakes on rows that a vector u separates, y u.x >= gamma, are at most (norm(u) max norm(x) / gamma)^2, for any
    number of rows; see `mistake_bound`. More than two classes are learned one-vs-rest, side by side.

    Parameters
    ----------
    eta0 : float
        Learning rate. It only scales the weights, unless they start from `init`.
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
    WinnowClassifier : Multiplicative steps, for few relevant features among many.
    MirrorDescentClassifier : With loss="hinge" and the implicit step, the passive-aggressive algorithm.

    References
    ----------
    .. [1] M. K. Warmuth, "Bregman divergences and on-line learning", slides, "Motivation of linear threshold algs".
    .. [2] A. B. J. Novikoff, "On Convergence Proofs on Perceptrons", 1962.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import PerceptronClassifier
    >>> X = np.array([[2.0, 1.0], [-1.0, -2.0], [1.0, 2.0], [-2.0, -1.0]])
    >>> y = np.array(["up", "down", "up", "down"])
    >>> model = PerceptronClassifier(fit_intercept=False).partial_fit(X, y, classes=["down", "up"])
    >>> print(model.predict(X), model.n_mistakes_)
    ['up' 'down' 'up' 'down'] [1]
    >>> print(round(model.mistake_bound(X, y, coef=[1.0, 1.0]), 2))
    1.11
    """

    def __init__(
        self,
        *,
        eta0: float = 1.0,
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
