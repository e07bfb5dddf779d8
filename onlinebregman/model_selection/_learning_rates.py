"""Many learning rates in one pass: the best of them, or their mixture."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, RegressorMixin, clone, is_classifier
from sklearn.utils import Tags, column_or_1d, get_tags

from .._kernels.learners.hedge import Hedge
from .._kernels.learners.mean_mixer import MeanMixer
from .._kernels.learners.mixer import Unmixed
from .._kernels.learners.quantile_tracker import QuantileTracker
from .._kernels.learners.stacked_mixers import ProbabilityMixer
from .._online.estimator import Call, Examples
from .._online.examples import LearnsTargets
from .._online.intervals import ConformalMixin
from .._online.labels import GrowsClasses, check_classes
from .._online.side_by_side import SideBySideMixin
from .._online.types import MatrixLike, RandomState
from .._online.validation import check_learned, check_query, finite, read_only
from .._online.weights import HedgedMixin
from .._sklearn_compat import Interval, available_if
from ..linear_model import ImplicitGDRegressor
from ..linear_model._base import OnlineLinearModel


class _LearningRates(MetaEstimatorMixin, GrowsClasses, LearnsTargets, SideBySideMixin):
    """Clones of one online model that differ in their learning rate and learn the same rows, each read once.

    Parameters
    ----------
    estimator : linear model of onlinebregman or None
        The model, a regressor or classifier, with all its parameters except `eta0`; they are read when learning starts.
        None: `ImplicitGDRegressor(standardize=True)`, whose rates do not depend on the units of the columns. With
        explicit updates the weights must stay finite for all rates.
    eta0s : int or array-like of shape (n_rates,)
        The learning rates `eta0`, or their number: each is twice the previous one, around that of the estimator.
    n_jobs : int or None
        Threads among which the models are divided, if the block of rows is large enough, the loss is "log_loss" or
        "squared_error", steps are implicit, and the divergence is "squared_euclidean" or an adaptive one; of more than
        two classes none are. -1: one for each processor; None: 1, or what a `joblib.parallel_config` says. The numbers
        do not depend on it.

    Attributes
    ----------
    best_eta0_ : float
        Its learning rate.
    eta0s_ : ndarray of shape (n_rates,)
        Their rates.
    classes_ : ndarray of shape (n_classes,)
        Labels, of a classifier.
    """

    _unmergeable = "it compares rates on one sequence of rows; mix the estimator, at the rate that is found"
    _parameter_constraints: dict = {
        "estimator": [OnlineLinearModel, None],
        "eta0s": [Interval(Integral, 2, None, closed="left"), "array-like"],
    }
    _takes_sparse = True
    estimator: OnlineLinearModel | None
    eta0s: Any

    def __init__(
        self,
        estimator: OnlineLinearModel | None = None,
        *,
        eta0s: int | ArrayLike = 16,
        n_jobs: int | None = None,
        shuffle: bool = True,
        random_state: RandomState = None,
    ) -> None:
        self._set_arguments(locals())

    def partial_fit(
        self, X: MatrixLike, y: ArrayLike, *, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from these rows, once, in their order; all of them or, if it raises, none.

        Parameters
        ----------
        {X, y, sample_weight}
        classes : array-like of shape (n_classes,), default=None
            For a classifier: all class labels. Needed by the first call, unless it has `handle_unknown="add"`.

        Returns
        -------
        {self}
        """
        return self._partial_fit(X, y, sample_weight, classes)

    def _plain_targets(self, y) -> Any:
        return None if "classes_" in self.__dict__ else y  # these are labels

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Score of what is predicted: R^2 of a regressor, accuracy of a classifier.

        Parameters
        ----------
        {X, y}
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        score : float
            The score.
        """
        return (ClassifierMixin if self._classifies() else RegressorMixin).score(self, X, y, sample_weight)

    def _check(self, call: Call, X, y, sample_weight=None, classes: ArrayLike | None = None) -> Examples:
        """Rows with one target each, or the numbers of their classes, which are those of the first model."""
        if classes is not None and not call.first and self.handle_unknown == "add":
            self._add_labels(check_classes(classes).tolist())
            classes = None
        data = super()._check(call, X, y, sample_weight, classes)
        leader: Any = self.estimators_[0]
        if not is_classifier(leader):
            if data.y.ndim == 2 and data.y.shape[1] > 1:
                wanted = "loss should be of one quantile" if np.ndim(y) == 1 else "y should be a 1d array"
                raise ValueError(
                    f"{wanted} for {type(self).__name__}; got {data.y.shape[1]}. Use a model for each (and numpy.sort "
                    "for quantiles that do not cross), as sklearn.multioutput.MultiOutputRegressor does for several "
                    "outputs."
                )
            return replace(data, y=column_or_1d(data.y, warn=True))
        if leader._multilabel:
            raise ValueError(
                f"y should be 1d for {type(self).__name__}, not an indicator matrix; use "
                "sklearn.multioutput.MultiOutputClassifier for several labels."
            )
        if call.first:
            self.classes_: np.ndarray = leader.classes_
            self._begin_classes()
        return replace(data, y=data.classes.astype(np.float64))

    def _base(self) -> OnlineLinearModel:
        """The model to make clones of."""
        given = self.estimator  # anything, before parameters are validated
        return given if isinstance(given, OnlineLinearModel) else ImplicitGDRegressor(standardize=True)

    def _kind(self) -> OnlineLinearModel:
        """A fitted model, or before fitting the one that will be cloned; `estimator` may have been changed since."""
        return self.estimators_[0] if "estimators_" in vars(self) else self._base()

    def _classifies(self) -> bool:
        own = vars(self)
        return "classes_" in own if "estimators_" in own else is_classifier(self._kind())

    @property
    def handle_unknown(self) -> Literal["error", "add"]:
        """That of the models; "error" for regressors."""
        return getattr(self._kind(), "handle_unknown", "error")

    @property
    def handle_new_features(self) -> Literal["error", "add"]:
        """That of the models."""
        return self._kind().handle_new_features

    def _rates(self) -> list[float]:
        """The rates in increasing order; by default powers of two times that of the estimator."""
        if isinstance(self.eta0s, Integral):
            n = int(self.eta0s)
            return [self._base()._rate().eta0 * 2.0 ** (k - n // 2) for k in range(n)]
        rates = np.unique(np.asarray(self.eta0s, dtype=np.float64))
        if rates.size < 2 or not (rates > 0).all() or not np.isfinite(rates).all():
            raise ValueError(f"eta0s must be at least two different positive learning rates; got {self.eta0s!r}.")
        return rates.tolist()

    def _make_estimators(self, X) -> list[OnlineLinearModel]:
        rates = self._rates()
        self.eta0s_: np.ndarray = np.array(rates)
        return [clone(self._base()).set_params(eta0=eta0) for eta0 in rates]

    @property
    def best_eta0_(self) -> float:
        """The rate with the smallest loss so far."""
        index = self.best_index_
        return float(self.eta0s_[index])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._kind())
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        if tags.classifier_tags is not None:
            tags.classifier_tags = replace(tags.classifier_tags, multi_label=False)
        tags.target_tags = replace(inner.target_tags, multi_output=False)
        return tags


class LearningRatePath(_LearningRates):
    """One online model with many learning rates, learned side by side in one pass; predicts with the best of them.

    The best is the one with the smallest progressive loss: each row is predicted before it is learned, so that no row
    is held out. Rows are read once and learned by all models, which costs less than separate fits.

    Parameters
    ----------
    {estimator, eta0s, n_jobs, shuffle, random_state}

    Attributes
    ----------
    {best_estimator_, best_eta0_, best_index_}
    estimators_ : list
        The models, by increasing rate; each is fitted and can be used by itself.
    {eta0s_}
    cumulative_losses_ : ndarray of shape (n_rates,)
        Their losses over all rows, each predicted before it was learned.
    {t_, classes_, n_features_in_, feature_names_in_}

    See Also
    --------
    LearningRateMixture : Mixes the models instead of choosing one.
    sklearn.model_selection.GridSearchCV : For other parameters than the rate.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import LearningRatePath
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5))
    >>> y = X @ [1.0, 2.0, 0.0, 0.0, -1.0] + 0.1 * rng.normal(size=2000)
    >>> path = LearningRatePath(eta0s=[0.001, 0.01, 0.1, 1.0]).fit(X, y)
    >>> print(path.best_eta0_, path.best_estimator_.coef_.round(1) + 0.0)
    1.0 [ 1.  2.  0.  0. -1.]
    """

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Predict with the best model so far.

        Parameters
        ----------
        {X}

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predictions.
        """
        return self._best().predict(check_query(self, X))

    @available_if(lambda self: hasattr(self._kind(), "decision_function"))
    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Scores of the best model so far.

        Parameters
        ----------
        {X}

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores.
        """
        return self._best().decision_function(check_query(self, X))

    @available_if(lambda self: hasattr(self._kind(), "predict_proba"))
    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Class probabilities of the best model so far.

        Parameters
        ----------
        {X}

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Probabilities.
        """
        return self._best().predict_proba(check_query(self, X))

    def _make_mixer(self) -> Unmixed:
        return Unmixed(sum(estimator._learner.n_scores for estimator in self.estimators_))

    def _mixer_of_classes(self, numbers: list[int]) -> Unmixed:
        return self._make_mixer()

    def _best(self) -> OnlineLinearModel:
        check_learned(self)
        return self.best_estimator_


class LearningRateMixture(ConformalMixin, HedgedMixin, _LearningRates):
    """One online model with many learning rates, learned side by side and mixed according to progressive losses.

    For a regressor, the prediction is that of the mean score of the models with weights v_k ~ exp(-rate L_k), L_k the
    losses so far. No learning rate has to be chosen, not even for the weights (AdaHedge: rate = ln K / gap, the gap
    being the accumulated cost of mixing). For any stream and any loss that is convex in the score

        loss of the mixture  <=  min L_k + ln K / rate + gap  <=  min L_k + 2 gap,

    ln K / rate + gap being `regret_bound_`, and gap of the order of sqrt(min L_k ln K) or less.

    For a classifier, the mixture is the mean of the probabilities of the models with the same weights, L_k the log
    losses and rate = 1 (Bayes' rule), so that for rows of weight at most 1 gap = 0 and its log loss is at most
    min L_k + ln K; for larger weights `regret_bound_` includes the gap. Scores of losses without probabilities are
    calibrated, as in :class:`~onlinebregman.ParameterFreeClassifier`.

    Parameters
    ----------
    {estimator, eta0s, n_jobs, shuffle, random_state, delayed}

    Attributes
    ----------
    {weights_, weights_history_, weights_history_t_, cumulative_loss_, regret_bound_}
    cumulative_losses_ : ndarray of shape (n_rates,)
        Losses of the models; log losses for classifiers.
    {best_estimator_, best_eta0_, best_index_}
    estimators_ : list
        The models, by increasing rate.
    {eta0s_}
    coef_ : ndarray of shape (n_features,)
        Mean of the weights of the models, for a regressor.
    intercept_ : float
        Mean of their intercepts.
    {t_, classes_, n_features_in_, feature_names_in_}

    See Also
    --------
    LearningRatePath : Chooses the best model.
    ParameterFreeClassifier : Mixes over geometries and losses, too.
    ParameterFreeRegressor : The same for numbers.

    References
    ----------
    .. [1] S. de Rooij, T. van Erven, P. D. Grunwald, W. M. Koolen, "Follow the Leader If You Can, Hedge If You Must",
       JMLR 15, 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import LearningRateMixture
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5))
    >>> y = X @ [1.0, 2.0, 0.0, 0.0, -1.0] + 0.1 * rng.normal(size=2000)
    >>> model = LearningRateMixture().fit(X, y)
    >>> print(model.coef_.round(1) + 0.0)
    [ 1.  2.  0.  0. -1.]
    >>> bool(model.cumulative_loss_ <= model.cumulative_losses_.min() + model.regret_bound_)
    True

    A classifier:

    >>> from onlinebregman import MirrorDescentClassifier
    >>> classifier = LearningRateMixture(MirrorDescentClassifier(), random_state=0).fit(X, y > 0)
    >>> print(f"{classifier.score(X, y > 0):.2f}", classifier.predict_proba(X[:1]).round(2))
    0.98 [[0.12 0.88]]
    """

    _parameter_constraints: dict = {**_LearningRates._parameter_constraints, "delayed": ["boolean"]}

    def __init__(
        self,
        estimator: OnlineLinearModel | None = None,
        *,
        eta0s: int | ArrayLike = 16,
        n_jobs: int | None = None,
        shuffle: bool = True,
        random_state: RandomState = None,
        delayed: bool = False,
    ) -> None:
        self._set_arguments(locals())

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Predict from the mean score of the models, or the most probable labels.

        Parameters
        ----------
        {X}

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predictions: the link of the loss at the mean score of the models, X @ coef_ + intercept_ unless the
            divergence is adaptive; for a classifier, labels. With `standardize`, values beyond five deviations count as
            five.
        """
        if self._classifies():
            p = self._predict(X)
            return self.classes_.take(p.argmax(axis=1))
        return self._predict_numbers(X)

    @finite("prediction")
    def _predict_numbers(self, X) -> np.ndarray:
        check_learned(self)
        return np.asarray(self._learned_loss.link(self._predict(X)[:, 0]))

    @available_if(_LearningRates._classifies)
    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Class probabilities: the weighted mean of those of the models.

        Parameters
        ----------
        {X}

        Returns
        -------
        {probabilities}
        """
        return self._predict(X)

    @read_only
    def coef_(self) -> np.ndarray:
        """Mean of the weights of the models, shape (n_features,), for a regressor."""
        self._check_linear()
        return self.weights_ @ np.stack([estimator._linear_model()[0] for estimator in self.estimators_])

    @property
    def intercept_(self) -> float:
        """Mean of the intercepts of the models, for a regressor."""
        self._check_linear()
        return float(self.weights_ @ [estimator.intercept_ for estimator in self.estimators_])

    def _check_linear(self) -> None:
        if self._classifies():
            raise AttributeError("A mean of probabilities is not a linear model; see the weights of estimators_.")

    def _make_mixer(self) -> ProbabilityMixer | MeanMixer:
        n_rates = len(self.estimators_)
        if self._classifies():
            links = [estimator._link for estimator in self.estimators_]
            separate = self.estimators_[0].handle_unknown == "add"
            parts = links, None, QuantileTracker(), None, separate
            return ProbabilityMixer(Hedge(n_rates, 1.0), len(self.classes_), *parts)
        self._learned_loss = self.estimators_[0]._learned_loss
        return MeanMixer(Hedge(n_rates), self.estimators_[0]._learner.loss, False, QuantileTracker(), None)
