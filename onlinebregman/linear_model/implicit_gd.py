"""Implicit gradient descent: online least squares whose step never overshoots."""

from __future__ import annotations

from numpy.typing import ArrayLike

from .._online.mirror import MirrorMixin
from ..divergences import SquaredEuclidean
from ..schedules import Schedule
from ._base import OnlineLinearRegressor


class EuclideanMirrorMixin(MirrorMixin):
    """Mirror map of the squared Euclidean potential: the identity. Weights of any sign, 0 at the start."""

    def _mirror_map(self, n_features: int | None) -> SquaredEuclidean:
        return SquaredEuclidean()


class ImplicitGDRegressor(EuclideanMirrorMixin, OnlineLinearRegressor):
    """Linear regression by implicit online gradient descent.

    Each row (x, y) moves the weights to w' = argmin |w' - w|^2 / 2 + eta (w'.x - y)^2 / 2, which has the closed form

        w' = w - c x,    c = eta (w.x - y) / (1 + eta x.x).

    However large eta or x, the new prediction lies between the old one and y: unlike the explicit step, this one cannot
    blow up.

    Parameters
    ----------
    eta0 : float, default=0.3
        Learning rate eta for the loss (a - y)^2 / 2. The default, with its schedule, suits standardised features and
        targets: see Notes.
    learning_rate : {"constant", "invscaling", "sqrt", "strongly_convex", "theory"} or Schedule, default="invscaling"
        Rate of row t = 1, 2, ...: eta0, eta0 / t^power_t, eta0 / sqrt(t), or eta0 / t (for losses that are H-strongly
        convex, with eta0 = 1/H). "theory": the constant rate with the smallest loss bound under `data_bounds`, without
        eta0. A schedule from `onlinebregman.schedules` is taken as it is, without eta0.
    power_t : float, default=0.5
        Exponent of "invscaling".
    data_bounds : dict or None, default=None
        What rows and comparators keep to, for learning_rate="theory": "x", the size of a row (its 2-norm), "u", that of
        the comparator's weights (2-norm), "intercept", that of the comparator's intercept (0 if left out), and "loss",
        its cumulative loss.
    update : {"implicit", "explicit", "importance"}, default="implicit"
        "implicit": the exact step in closed form. "explicit": ordinary online gradient descent, for comparison.
        "importance": a row of weight h moves the weights exactly as h rows of weight 1, or as any splitting of h.
    init : array-like of shape (n_features,), float or None, default=None
        Weights to start from; None means 0 everywhere.
    fit_intercept : bool, default=True
        Learn an intercept: one more coordinate of feature 1 in the squared Euclidean geometry, inside the same step.
    max_iter : int, default=1000
        Largest number of epochs of `fit`.
    tol : float or None, default=1e-3
        `fit` stops when the mean loss of an epoch was not below the best by more than this, `n_iter_no_change` times
        in a row. None: always `max_iter` epochs.
    n_iter_no_change : int, default=5
        See `tol`.
    shuffle : bool, default=True
        Shuffle the rows before each epoch of `fit`. `partial_fit` never shuffles.
    average : bool or int, default=False
        Let `coef_` and `intercept_` be the average over all steps, or over those from the given row on.
    track_regret : bool, default=False
        Accumulate what `regret_certificate` needs.
    warm_start : bool, default=False
        Let `fit` go on from the weights it finds, its learning rate included.
    random_state : int, RandomState instance or None, default=None
        For shuffling.
    verbose : int, default=0
        Print the mean loss of each epoch.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights.
    intercept_ : float
        Intercept.
    t_ : int
        Rows learned.
    cumulative_loss_ : float
        Sum of weight * (a - y)^2 / 2 over all rows, each predicted before it was learned.
    n_iter_ : int
        Epochs of the last `fit`.
    loss_curve_ : list of float
        Mean loss of each epoch of the last `fit`, each row predicted before it was learned.
    weighted_loss_ : float
        Sum of rate times weight times loss, each before its step, since regret is tracked.
    regret_bound_ : float
        Under learning_rate="theory", the theorem's bound on `cumulative_loss_` minus the comparator's.
    divergence_ : Divergence
        The divergence the estimator moves in.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had any.

    See Also
    --------
    EGRegressor : The same for the relative entropy: fast when few features matter.
    BurgRegressor : The same for the Burg entropy: positive weights of very different sizes.
    sklearn.linear_model.SGDRegressor : Explicit steps.

    Notes
    -----
    Among eta0 = 0.03, 0.1, ..., 3 with "invscaling", the default was the best or within 0.01 of it in mean
    cross-validated R^2 over ten standardised regression data sets (benchmarks/defaults.py).

    References
    ----------
    .. [1] B. Kulis, P. L. Bartlett, "Implicit Online Learning", ICML 2010, section 3.1.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from onlinebregman import ImplicitGDRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), ImplicitGDRegressor(random_state=0)).fit(X, y)
    >>> print(f"{model.score(X, y):.2f}")
    0.51

    One row at a time:

    >>> online = ImplicitGDRegressor(eta0=0.5, learning_rate="constant")
    >>> for row in range(100):
    ...     online = online.partial_fit([[row % 3, row % 5]], [1.0 + row % 3])
    >>> print(online.predict([[2, 4]]).round(2))
    [3.]
    """

    def __init__(
        self,
        *,
        eta0: float = 0.3,
        learning_rate: str | Schedule = "invscaling",
        power_t: float = 0.5,
        data_bounds: dict[str, float] | None = None,
        update: str = "implicit",
        init: ArrayLike | float | None = None,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        n_iter_no_change: int = 5,
        shuffle: bool = True,
        average: bool | int = False,
        track_regret: bool = False,
        warm_start: bool = False,
        random_state=None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            eta0=eta0,
            learning_rate=learning_rate,
            power_t=power_t,
            data_bounds=data_bounds,
            update=update,
            init=init,
            fit_intercept=fit_intercept,
            max_iter=max_iter,
            tol=tol,
            n_iter_no_change=n_iter_no_change,
            shuffle=shuffle,
            average=average,
            track_regret=track_regret,
            warm_start=warm_start,
            random_state=random_state,
            verbose=verbose,
        )
