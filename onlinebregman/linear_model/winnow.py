"""Winnow: multiplicative steps for mistakes."""

from __future__ import annotations

from numbers import Real

from numpy.typing import ArrayLike

from .._sklearn_compat import Interval, StrOptions
from ._mistake_driven import MistakeDrivenClassifier
from .eg import EntropyMirrorMixin


class WinnowClassifier(EntropyMirrorMixin, MistakeDrivenClassifier):
    """Winnow: weights multiplied by exp(eta y x) for each mistake, a row on which y w.x <= 0 with y = -1 or 1.

        positive    w'_i = w_i exp(eta y x_i)                           (Winnow)
        simplex     the same, then divided so that sum w' = total       (normalised Winnow)
        signed      w = w+ - w-, normalised Winnow on the row (x, -x)   (balanced Winnow)

    The intercept, which takes the place of Winnow's threshold, moves by eta y. The mistakes on rows that weights in the
    domain separate grow with the logarithm of the number of features; see `mistake_bound`. More than two classes are
    learned one against the rest, side by side.

    Parameters
    ----------
    weights : {"signed", "simplex", "positive"}, default="signed"
        Weights of any sign with sum |w| <= total, weights >= 0 with sum total, or any weights > 0.
    total : float, default=1.0
        The sum of the weights on the simplex, and of w+ and w- together for signed weights. Not used for positive
        weights.
    eta0 : float, default=0.1
        Learning rate. With weights of total U and rows of entries at most X, eta0 = gamma / (U X^2) gives the smallest
        bound for a margin gamma.
    init : array-like of shape (n_features,), float or None, default=None
        Weights to start from; None means total / n on the simplex, 1 / n for positive weights, 0 for signed ones.
    class_weight : dict, "balanced" or None, default=None
        Weights {label: weight} that multiply those of the rows with this label; 1 for labels that are left out.
        "balanced": n_samples / (n_classes * number of rows with the label), for `fit` alone. None: 1.
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
    warm_start : bool, default=False
        Let `fit` go on from the weights it finds, its learning rate included.
    random_state : int, RandomState instance or None, default=None
        For shuffling.
    verbose : int, default=0
        Print the mean loss of each epoch.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights; one row for two classes, else one for each class against the rest.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    t_ : int
        Rows learned.
    cumulative_loss_ : float
        Sum of weight times loss over all rows, each predicted before it was learned, and over the learners.
    n_iter_ : int
        Epochs of the last `fit`.
    loss_curve_ : list of float
        Mean loss of each epoch of the last `fit`, each row predicted before it was learned.
    n_mistakes_ : ndarray of shape (1,) or (n_classes,)
        Mistakes of each learner; each was a step.
    divergence_ : Divergence
        The divergence the estimator moves in.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had any.

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

    _parameter_constraints: dict = {
        **MistakeDrivenClassifier._parameter_constraints,
        "weights": [StrOptions({"signed", "simplex", "positive"})],
        "total": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        *,
        weights: str = "signed",
        total: float = 1.0,
        eta0: float = 0.1,
        init: ArrayLike | float | None = None,
        class_weight: dict | str | None = None,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        n_iter_no_change: int = 5,
        shuffle: bool = True,
        average: bool | int = False,
        warm_start: bool = False,
        random_state=None,
        verbose: int = 0,
    ) -> None:
        self.weights = weights
        self.total = total
        self.class_weight = class_weight
        super().__init__(
            eta0=eta0,
            init=init,
            fit_intercept=fit_intercept,
            max_iter=max_iter,
            tol=tol,
            n_iter_no_change=n_iter_no_change,
            shuffle=shuffle,
            average=average,
            warm_start=warm_start,
            random_state=random_state,
            verbose=verbose,
        )
