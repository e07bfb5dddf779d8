"""Mixtures of experts that give probabilities of classes."""

from __future__ import annotations

from numbers import Real
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from .._sklearn_compat import Interval, StrOptions, all_or_nothing, fit_context, validate_parameters
from .._validation import check_finite, check_rows, check_weights
from ._base import ExpertMixture, RowCosts, dense
from ._weights import Array, hoeffding_rate, log_sum_exp


class MixtureClassifier(ClassifierMixin, ExpertMixture):
    """What the mixtures of class probabilities share: all but `_rate`."""

    strategy = "average"
    loss = "log_loss"

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, sample_weight=None) -> Self:
        """Learn from nothing: one pass over the rows, in their order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows for the experts, or the probabilities they give.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies the losses of each row, and is handed on to the experts; a row of weight 0 is left out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with all_or_nothing(self):
            for name in ("_mix", "weights_history_"):
                vars(self).pop(name, None)
            self._learn(X, y, sample_weight, classes=None, partial=False)
        return self

    def partial_fit(self, X, y, classes: ArrayLike | None = None, sample_weight=None) -> Self:
        """Learn from these rows, once, in their order; all of them or, if it raises, none.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows for the experts, or the probabilities they give.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that will ever come. Needed by the first call, may be left out afterwards.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies the losses of each row, and is handed on to the experts; a row of weight 0 is left out.

        Returns
        -------
        self : object
            The estimator.

        Raises
        ------
        ValueError
            If numbers are not probabilities, or under log-loss the mixture gives probability 0 to what came; the
            message names the row.
        """
        if not self.__sklearn_is_fitted__():
            validate_parameters(self)
        with all_or_nothing(self):
            self._learn(X, y, sample_weight, classes=classes, partial=True)
        return self

    def predict_proba(self, X) -> Array:
        """The weighted mean of the experts' probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows for the experts, or the probabilities they give.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            One column for each of `classes_`.
        """
        X = self._check_query(X)
        if self.estimators_:
            forecasts = np.stack([self._probabilities(k, X) for k in range(len(self.estimators_))], axis=1)
        else:
            forecasts = self._columns(X)
        return np.tensordot(forecasts, self.weights_, axes=(1, 0))

    def predict(self, X) -> np.ndarray:
        """The most probable labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows for the experts, or the probabilities they give.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels.
        """
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    # --- labels ---------------------------------------------------------------------------------------------------

    def _learn(self, X, y, sample_weight, *, classes, partial: bool) -> None:
        first = not self.__sklearn_is_fitted__()
        if np.asarray(y).dtype.kind == "f":  # before scikit-learn does, which does not name the row
            check_finite(np.asarray(y), "y")
        X, y = check_rows(self, X, y=y, reset=first, numeric=False)
        self._check_classes(y, classes, first, partial)
        codes = self._codes(y)
        sample_weight = check_weights(sample_weight, len(y), allow_all_zero=partial)
        self._learn_rows(X, y, codes, sample_weight, classes=self.classes_)

    def _check_classes(self, y, classes, first: bool, partial: bool) -> None:
        if not first:
            if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
                raise ValueError(
                    f"classes = {np.asarray(classes).tolist()} is not the same as on the first call to partial_fit, "
                    f"{self.classes_.tolist()}; leave it out."
                )
            return
        if partial and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit: all labels that will ever come.")
        if not partial:
            check_classification_targets(y)
        self.classes_ = np.unique(y if classes is None else classes)
        if len(self.classes_) < 2:
            raise ValueError(f"Got 1 class, {self.classes_.tolist()}; a classifier needs at least two.")

    def _codes(self, y: np.ndarray) -> np.ndarray:
        """The number of each label's class."""
        numbers = {label: number for number, label in enumerate(self.classes_.tolist())}
        codes = np.array([numbers.get(label, -1) for label in y.tolist()], dtype=np.intp)
        if (codes < 0).any():
            row = int(np.argmin(codes))
            raise ValueError(
                f"The label {y.tolist()[row]!r} at row {row} is not one of the classes {self.classes_.tolist()}; give "
                "all labels that will come as `classes` to the first call of partial_fit."
            )
        return codes

    # --- forecasts ------------------------------------------------------------------------------------------------

    def _n_columns_of_experts(self, n_features: int) -> int:
        per_expert = 1 if len(self.classes_) == 2 else len(self.classes_)
        if n_features % per_expert:
            raise ValueError(
                f"X has {n_features} features, but {per_expert} classes: give {per_expert} columns for each expert, or "
                "estimators."
            )
        return n_features // per_expert

    def _columns(self, X) -> Array:
        """Probabilities of shape (n_samples, n_experts, n_classes) from the columns of X."""
        p = dense(X)
        wrong = ~((p >= 0) & (p <= 1))
        if wrong.any():
            row, column = (int(i) for i in np.argwhere(wrong)[0])
            raise ValueError(
                f"X has {p[row, column]:g} at row {row}, column {column}, which is no probability; give numbers from 0 "
                "to 1, or estimators that learn from the rows."
            )
        if len(self.classes_) == 2:
            return np.stack([1 - p, p], axis=2)
        p = p.reshape(len(p), -1, len(self.classes_))
        self._check_sums(p)
        return p

    def _check_sums(self, p: Array, row: int | None = None) -> None:
        far = np.abs(p.sum(axis=-1) - 1) > 1e-6
        if far.any():
            where, expert = (int(i) for i in np.argwhere(far)[0])
            raise ValueError(
                f"The probabilities of expert {expert} at row {where if row is None else row} add up to "
                f"{p[where, expert].sum():g}, not to 1; divide by the sum."
            )

    def _probabilities(self, k: int, X) -> Array:
        expert = self.estimators_[k]
        if not np.array_equal(expert.classes_, self.classes_):
            raise ValueError(
                f"Expert {self._name(k)} knows the classes {expert.classes_.tolist()}, the mixture "
                f"{self.classes_.tolist()}; all have to be the same."
            )
        return np.asarray(expert.predict_proba(X), dtype=np.float64)

    def _ask(self, row_of_X, row: int) -> Array:
        p = np.concatenate([self._probabilities(k, row_of_X) for k in range(len(self.estimators_))])
        wrong = ~((p >= 0) & (p <= 1 + 1e-9)).all(axis=1)
        if wrong.any():
            k = int(np.argmax(wrong))
            raise ValueError(
                f"Expert {self._name(k)} gives {p[k]} at row {row}, which are no probabilities; leave it out, or give "
                "one that has learned beforehand, in a sklearn.frozen.FrozenEstimator."
            )
        self._check_sums(p[np.newaxis], row)
        return p

    def _row_costs(self, log_weights: Array, forecast: Array, y: int, row: int) -> RowCosts:
        if self.loss == "brier":
            return self._brier(log_weights, forecast, y)
        with np.errstate(divide="ignore"):
            losses = -np.log(np.ascontiguousarray(forecast[:, y]))  # infinite where an expert was certain, and wrong
        log_mixed = log_sum_exp(log_weights - losses)
        if log_mixed == -np.inf:
            raise ValueError(
                f"All experts with weight give probability 0 to {self.classes_[y : y + 1].tolist()[0]!r}, which came "
                f"at row {row}; mix a little of the uniform distribution into their forecasts, or add it as an expert."
            )
        if self.strategy == "average":
            return RowCosts(-log_mixed, losses, losses)
        return RowCosts(-log_mixed, losses, -np.exp(-losses - log_mixed))

    def _brier(self, log_weights: Array, forecast: Array, y: int) -> RowCosts:
        came = np.zeros(forecast.shape[1])
        came[y] = 1.0
        mixed = (np.exp(log_weights)[:, np.newaxis] * forecast).sum(axis=0) - came
        losses = ((forecast - came) ** 2).sum(axis=1) / 2
        costs = losses if self.strategy == "average" else (forecast * mixed).sum(axis=1)
        return RowCosts(float((mixed**2).sum()) / 2, losses, costs)


class ExpertMixtureClassifier(MixtureClassifier):
    """Mean of experts' class probabilities under weights that follow their losses, row by row.

    The forecast is q = sum v_k p_k, and after each row the weights move by the losses of the experts ("average") or by
    the gradient of the mixture's loss ("eg"), as in :class:`~onlinebregman.ExpertMixtureRegressor`. The average is
    nearly as good as the best expert, EG nearly as good as the best fixed mixture of them; with `share` > 0 this holds
    for sequences with few switches. Each row is forecast before it is learned.

    Parameters
    ----------
    estimators : list of (str, estimator) or None, default=None
        The experts: online classifiers with `predict_proba`, cloned when learning starts; all of them learn each row
        once it was forecast. None: the columns of X are the probabilities they give, for two classes one column an
        expert, that of `classes_[1]`; for more, the columns of all classes of the first expert, then of the next.
    strategy : {"average", "eg"}, default="average"
        What moves the weights: the losses of the experts, or the gradient of the mixture's loss.
    loss : {"log_loss", "brier"}, default="log_loss"
        -ln of the probability of what came, or half the squared distance from what came.
    learning_rate : {"adaptive", "theory"} or float, default="theory"
        The rate. "theory": for the average 1 with log-loss and 1/2 with Brier's, without a gap; for EG with Brier's
        loss sqrt(2 ln K / T), for T = `n_rows`; for EG with log-loss there is none. "adaptive": ln K / gap (AdaHedge).
        Read, as the next three are, when learning starts.
    share : float, default=0.0
        Part of the weight that is dealt out after each row, below 1. If positive, the learning rate has to be a number
        or "theory".
    n_rows : int or None, default=None
        Number of rows, where the theorem asks for it.
    prior : array-like of shape (n_experts,), default=None
        Weights to start with; equal ones by default.
    history : int, default=0
        Keep the weights of the last so many rows in `weights_history_`.

    Attributes
    ----------
    weights_ : ndarray of shape (n_experts,)
        Weights in the next forecast.
    weights_history_ : ndarray of shape (n_rows, n_experts)
        Weights with which each of the last `history` rows was forecast; its argmax along the rows is who led when.
    cumulative_loss_ : float
        Loss of the mixture.
    expert_losses_ : ndarray of shape (n_experts,)
        Losses of the experts; infinite under log-loss for one that was certain, and wrong.
    regret_bound_ : float
        Bound on `cumulative_loss_` beyond the loss of the best expert ("eg": of the best mixture), for this very run.
    estimators_ : list
        The experts, learning; empty if they are the columns of X.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    t_ : int
        Rows forecast and counted. The first row is only learned, if there are experts that know nothing before it.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had any.

    See Also
    --------
    BayesMixture : The average under log-loss, at rate 1.
    ExpertMixtureRegressor : The same for numbers.

    Notes
    -----
    `regret_bound_` is ln K / rate + gap, where the gap adds up what mixing has cost. It is 0 for the average at the
    rates of "theory" (and rows of weight 1), as exp(-loss) and exp(-brier / 2) are concave in the forecast. For EG with
    Brier's loss the gradients of two experts differ by at most 2, which gives sqrt(2 T ln K).

    References
    ----------
    .. [1] N. Cesa-Bianchi, G. Lugosi, "Prediction, Learning, and Games", 2006, sections 3.3, 5.2 and 9.
    .. [2] M. Herbster, M. K. Warmuth, "Tracking the Best Expert", Machine Learning 32, 1998.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import ExpertMixtureClassifier, MirrorDescentClassifier, PNormClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 20))
    >>> y = np.where(X[:, 0] + X[:, 1] > 0, "up", "down")
    >>> experts = [("gd", MirrorDescentClassifier()), ("p-norm", PNormClassifier())]
    >>> mixture = ExpertMixtureClassifier(experts).fit(X, y)
    >>> bool(mixture.cumulative_loss_ <= mixture.expert_losses_.min() + np.log(2))
    True
    """

    _parameter_constraints: dict = {
        **ExpertMixture._parameter_constraints,
        "strategy": [StrOptions({"average", "eg"})],
        "loss": [StrOptions({"log_loss", "brier"})],
        "learning_rate": [StrOptions({"adaptive", "theory"}), Interval(Real, 0, None, closed="neither")],
        "n_rows": [Interval(Real, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        estimators: list | None = None,
        *,
        strategy: str = "average",
        loss: str = "log_loss",
        learning_rate: str | float = "theory",
        share: float = 0.0,
        n_rows: int | None = None,
        prior: ArrayLike | None = None,
        history: int = 0,
    ) -> None:
        self.estimators = estimators
        self.strategy = strategy
        self.loss = loss
        self.learning_rate = learning_rate
        self.share = share
        self.n_rows = n_rows
        self.prior = prior
        self.history = history

    def _rate(self, n_experts: int) -> float | None:
        if self.learning_rate == "adaptive":
            if self.share:
                raise ValueError(f"share = {self.share:g} needs a learning_rate that is a number or 'theory'.")
            return None
        if self.learning_rate != "theory":
            return float(self.learning_rate)
        if self.strategy == "average":
            return 1.0 if self.loss == "log_loss" else 0.5
        if self.loss == "log_loss":
            raise ValueError(
                "The gradient of log-loss is not bounded, so that learning_rate='theory' is not for strategy='eg' with "
                "it; use 'adaptive', a number, or loss='brier'."
            )
        if self.n_rows is None:
            raise ValueError("learning_rate='theory' with strategy='eg' needs n_rows, the number of rows.")
        return hoeffding_rate(2.0, self.n_rows, n_experts)
