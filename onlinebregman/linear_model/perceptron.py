"""The Perceptron."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ._mistake_driven import MistakeDrivenClassifier
from .implicit_gd import EuclideanMirrorMixin


class PerceptronClassifier(EuclideanMirrorMixin, MistakeDrivenClassifier):
    """The Perceptron: w' = w + eta y x for each mistake, a row on which y w.x <= 0 with y = -1 or 1.

    Its mistakes on rows that a vector u separates, y u.x >= gamma, are at most (norm(u) max norm(x) / gamma)^2, however
    many rows there are; see `mistake_bound`. More than two classes are learned one against the rest, side by side.

    Parameters
    ----------
    eta0 : float, default=1.0
        Learning rate. It only scales the weights, unless they start from `init`.
    init : array-like of shape (n_features,), float or None, default=None
        Weights to start from; None means 0 everywhere.
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
