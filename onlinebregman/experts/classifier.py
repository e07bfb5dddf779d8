"""Mixtures of class probabilities: `ExpertMixtureClassifier`, and Bayesian mixtures, whose rate is 1."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags

from .._kernels.learners.hedge import Hedge
from .._kernels.learners.mixer import BrierMixer, LogMixer
from .._online.estimator import SCORES, Call, by_parameter
from .._online.labels import LearnsLabels
from .._online.types import MatrixLike, RandomState
from .._online.validation import check_finite, check_rows, check_weights, dense, first_true
from .._sklearn_compat import Interval, StrOptions
from ..losses import LogisticLoss, Loss, ModifiedHuberLoss
from ._base import Array, ExpertMixture, Forecasts, given_rate, hoeffding_rate

_LINKS: dict[type[Loss], Literal["logistic", "clipped"]] = {LogisticLoss: "logistic", ModifiedHuberLoss: "clipped"}


class MixtureClassifier(LearnsLabels, ExpertMixture):
    """Base class of the mixtures of class probabilities; a subclass defines `_rate`.

    Parameters
    ----------
    estimators : list of (str, estimator) or None
        The experts: online classifiers with `predict_proba`, cloned when learning starts; all of them learn each row
        after it was forecast, with its weight, which also multiplies losses. None: the columns of X are the
        probabilities of the experts: for two classes one column per expert, the probability of `classes_[1]`; for more,
        the columns of all classes of the first expert, then of the next. NaN in all of them: the expert sleeps.
    handle_unknown : {"error", "add"}
        What to do with labels that are not among the classes. "error": raise an error. "add": add the class, from its
        first row of positive weight on; `partial_fit` then needs no `classes` if there are estimators, which have to
        add it, too. Where an expert knows only some of n classes, each of the others has its prior probability, 1 / n.
    """

    _parameter_constraints: dict = {}

    _loss_parameter = "log_loss"
    _forecast_method = "predict_proba"
    _fast_learner = "_experts_learner"

    def predict_proba(self, X: MatrixLike) -> Array:
        """The weighted mean of the experts' probabilities.

        Parameters
        ----------
        {X}

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            One column for each of `classes_`.
        """
        forecasts = self._predict(X, SCORES, "_experts_learner")
        forecasts = forecasts.reshape(len(forecasts), -1, len(self.classes_))
        weights = self._learner.hedge.weights
        # np.tensordot(forecasts, weights, (1, 0)) to the digit, which takes longer than all else for one row
        by_class = forecasts.transpose(0, 2, 1).reshape(-1, len(weights))
        return by_class.dot(weights[:, np.newaxis]).reshape(len(forecasts), -1)

    def _predict_validated(self, X, settings: tuple = ()) -> Array:
        """The probabilities by all experts, shape (n_samples, n_experts, n_classes)."""
        check_finite(X, owner=self)
        forecasts = self._forecasts(X)
        asleep = np.isnan(forecasts)
        if asleep.any():
            weights = np.exp(self._log_weights(forecasts[:, :, 0]))
            by_others = np.einsum("ik,ikc->ic", weights, np.where(asleep, 0.0, forecasts))
            forecasts = np.where(asleep, by_others[:, np.newaxis], forecasts)
        return forecasts

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        known = [expert.classifier_tags for expert in self._tags_of_experts() if expert.classifier_tags is not None]
        tags.classifier_tags.multi_class = all(expert.multi_class for expert in known)
        return tags

    # --- learning -------------------------------------------------------------------------------------------------

    def _check(self, call: Call, X, y, sample_weight=None, classes: ArrayLike | None = None) -> Forecasts:
        X, y = check_rows(self, X, y=y, reset=call.first, numeric=False)
        weights = check_weights(sample_weight, len(y), allow_all_zero=call.partial)
        if call.first and call.partial and classes is None and self.estimators is None:
            raise ValueError("classes must be passed on the first call to partial_fit; give the classes of columns.")
        codes, new = self._numbers_and_new(y, classes, call, weights)
        return Forecasts(X, y, weights, codes, new, targets=codes)

    def _begin(self, data: Forecasts) -> None:
        self._learned_loss, self._column_classes = self._loss_parameter, self.classes_
        super()._begin(data)

    def _recoded(self, data: Forecasts, start: int, codes: Array) -> Forecasts:
        targets = np.zeros_like(data.classes)
        targets[start : start + len(codes)] = codes
        return replace(data, targets=targets, new=())

    def _with_classes(self, numbers: list[int]) -> BrierMixer | LogMixer:
        self._experts_learner = None
        mixer = self._learner
        return BrierMixer(mixer.hedge, mixer.gradient, len(self.classes_)) if isinstance(mixer, BrierMixer) else mixer

    def _make_mixer(self, hedge: Hedge) -> BrierMixer | LogMixer:
        if self._loss_parameter == "brier":
            return BrierMixer(hedge, self._strategy != "average", len(self.classes_))
        return LogMixer(hedge, self._strategy != "average", False)

    def _weigh_rows(self, forecasts: Array, weights: Array | None, data: Forecasts, order: Array | None) -> None:
        n_rows, codes = len(data), data.targets
        brier = self._learned_loss == "brier"
        came = forecasts.reshape(n_rows, -1) if brier else forecasts[np.arange(n_rows), :, codes]
        self._update_weights(came, codes.astype(np.float64), weights, order)

    # --- forecasts ------------------------------------------------------------------------------------------------

    def _n_columns_of_experts(self, n_features: int) -> int:
        per_expert = 1 if len(self._column_classes) == 2 else len(self._column_classes)
        if n_features % per_expert:
            raise ValueError(
                f"X must have {per_expert} columns for each expert, one per class; got {n_features} columns. Add those "
                "missing, or give estimators."
            )
        return n_features // per_expert

    def _columns(self, X) -> Array:
        """Probabilities of shape (n_samples, n_experts, n_classes) from the columns of X."""
        p = dense(X, np.float64)
        if wrong := first_true((p < 0) | (p > 1)):
            row, column = wrong
            raise ValueError(
                f"X must be probabilities, from 0 to 1; got {p[row, column]:g} at row {row}, column {column}. Give "
                "estimators if they learn from the rows."
            )
        if len(self._column_classes) == 2:
            p = np.stack([1 - p, p], axis=2)
        else:
            p = p.reshape(len(p), -1, len(self._column_classes))
            self._check_sums(p)
        return self._extended(p, self._column_classes)

    def _extended(self, p: Array, known: Array) -> Array:
        """Probabilities of all classes from those of the ones that are known."""
        n = len(self.classes_)
        if len(known) == n:
            return p
        extended = np.full((*p.shape[:-1], n), 1 / n)
        extended[np.isnan(p).all(axis=-1)] = np.nan
        extended[..., self.classes_.searchsorted(known)] = p * (len(known) / n)
        return extended

    def _check_sums(self, p: Array) -> None:
        if far := first_true(~((np.abs(p.sum(axis=2) - 1) <= 1e-6) | np.isnan(p).all(axis=2))):
            row, expert = far
            raise ValueError(
                f"The probabilities of expert {expert} at row {row} must sum to 1; got {p[row, expert].sum():g}. "
                "Divide by the sum, or give NaN for all classes."
            )

    def _shape_of_forecasts(self) -> tuple[int, ...]:
        return (len(self.estimators_), len(self.classes_))

    def _forecast(self, k: int, X) -> Array:
        return self._completed(k, np.asarray(self.estimators_[k].predict_proba(X), dtype=np.float64))

    def _completed(self, k: int, forecasts: Array) -> Array:
        return self._extended(forecasts, self.estimators_[k].classes_)

    def _link_of(self, expert: Any) -> Literal["logistic", "clipped"] | None:
        if len(self.classes_) != 2 or not np.array_equal(expert.classes_, self.classes_):
            return None
        return _LINKS.get(type(expert._learned_loss))

    def _check_experts(self) -> None:
        classes = self.classes_.tolist()
        for k, expert in enumerate(self.estimators_):
            if not hasattr(expert, "classes_"):  # if all rows so far had weight 0
                raise NotFittedError(
                    f"Expert {self._name(k)} has not learned a row yet; call partial_fit with rows of weight > 0"
                )
            known = np.asarray(expert.classes_).tolist()
            if known != classes and not (self.handle_unknown == "add" and set(known) <= set(classes)):
                raise ValueError(
                    f"The classes of expert {self._name(k)} must be those of the mixture, {classes}; got {known}."
                )

    def _check_forecasts(self, forecasts: Array) -> None:
        if wrong := first_true(((forecasts < 0) | (forecasts > 1 + 1e-9)).any(axis=2)):
            row, k = wrong
            raise ValueError(
                f"Forecasts of expert {self._name(k)} must be probabilities; got {forecasts[row, k]} at row {row}. "
                "Remove the expert, or give one that was fitted beforehand, in a sklearn.frozen.FrozenEstimator."
            )
        self._check_sums(forecasts)

    def _refuse(self, reason: str, row: int, forecasts: Array, targets: Array) -> NoReturn:
        if reason == "bad target":
            y = int(targets[row])
            raise ValueError(
                f"All experts with weight give probability 0 to {self.classes_[y : y + 1].tolist()[0]!r}, the label "
                f"at row {row}; mix a little of the uniform distribution into their forecasts, or add it as an expert."
            )
        super()._refuse(reason, row, forecasts, targets)


class ExpertMixtureClassifier(MixtureClassifier):
    """Weighted mean of the class probabilities of experts, with weights that depend on their losses.

    The forecast is q = sum v_k p_k, and after each row the weights are updated by the losses of the experts ("average")
    or by the gradient of the loss of the mixture ("eg", and with learning_rate="adaptive" also "ml_poly" and "boa"), as
    in :class:`~onlinebregman.ExpertMixtureRegressor`. The average is nearly as good as the best expert, EG nearly as
    good as the best fixed mixture of experts; with `share` > 0 this holds for sequences with few switches. Each row is
    forecast before it is learned.

    Parameters
    ----------
    {estimators, strategy}
    loss : {"log_loss", "brier"}
        -ln of the probability of the observed label, or half the squared distance from its indicator vector.
    learning_rate : {"adaptive", "theory"} or float
        The rate. "theory": for the average 1 with log loss and 1/2 with the Brier loss, without a gap; for EG with the
        Brier loss sqrt(2 ln K / T), for T = `n_rows`; for EG with log loss there is none. "adaptive": ln K / gap
        (AdaHedge). Read when learning starts, like the next three.
    share : float
        Fraction of the total weight that is redistributed after each row, below 1. If positive, the learning rate must
        be a number or "theory".
    n_rows : int or None
        Number of rows, if the theorem needs it.
    {prior, history, shuffle, random_state, handle_unknown, delayed}

    Attributes
    ----------
    {weights_, weights_history_, cumulative_loss_}
    expert_losses_ : ndarray of shape (n_experts,)
        Losses of the experts; infinite with log loss for one that gave an observed label probability 0.
    {regret_bound_, estimators_, classes_, t_, n_features_in_, feature_names_in_}

    See Also
    --------
    BayesMixture : The average under log-loss, at rate 1.
    ExpertMixtureRegressor : The same for numbers.

    Notes
    -----
    `regret_bound_` is ln K / rate + gap, where the gap is the accumulated cost of mixing. It is 0 for the average at
    the rates of "theory" (and rows of weight 1), as exp(-loss) and exp(-brier / 2) are concave in the forecast. For EG
    with the Brier loss the gradients of two experts differ by at most 2, which gives sqrt(2 T ln K).

    An expert whose probabilities are all NaN sleeps, as in :class:`~onlinebregman.ExpertMixtureRegressor`.

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
    >>> mixture = ExpertMixtureClassifier(experts, random_state=0).fit(X, y)
    >>> regret = mixture.cumulative_loss_ - mixture.expert_losses_.min()
    >>> print(f"{regret:.2f} <= {mixture.regret_bound_:.2f}, which is ln 2 = {np.log(2):.2f}")
    0.69 <= 0.69, which is ln 2 = 0.69
    """

    _parameter_constraints: dict = {
        "strategy": [StrOptions({"average", "eg", "ml_poly", "boa"})],
        "loss": [StrOptions({"log_loss", "brier"})],
        "learning_rate": [StrOptions({"adaptive", "theory"}), Interval(Real, 0, None, closed="neither")],
        "n_rows": [Interval(Integral, 1, None, closed="left"), None],
    }
    _strategy, _loss_parameter = by_parameter("strategy"), by_parameter("loss")

    def __init__(
        self,
        estimators: list[tuple[str, Any]] | None = None,
        *,
        strategy: Literal["average", "eg", "ml_poly", "boa"] = "average",
        loss: Literal["log_loss", "brier"] = "log_loss",
        learning_rate: Literal["adaptive", "theory"] | float = "theory",
        share: float = 0.0,
        n_rows: int | None = None,
        prior: ArrayLike | None = None,
        history: int = 0,
        shuffle: bool = True,
        random_state: RandomState = None,
        handle_unknown: Literal["error", "add"] = "error",
        delayed: bool = False,
    ) -> None:
        self._set_arguments(locals())

    def _rate(self, n_experts: int) -> float | None:
        if self.learning_rate != "theory":
            return given_rate(self.learning_rate, self.share)
        if self.strategy == "average":
            return 1.0 if self.loss == "log_loss" else 0.5
        if self.loss == "log_loss":
            raise ValueError(
                "The gradient of the log loss is unbounded, so that learning_rate='theory' is not available for "
                "strategy='eg'; use 'adaptive', a number, or loss='brier'."
            )
        if self.n_rows is None:
            raise ValueError(
                "n_rows, the number of rows, must be given for learning_rate='theory' with strategy='eg'; got None."
            )
        return hoeffding_rate(2.0, self.n_rows, n_experts)


class BayesMixture(MixtureClassifier):
    """Bayes mixture of experts that give class probabilities: its log loss is at most that of the best expert + ln K.

    The forecast is q = sum v_k p_k, and after observing y, v_k ~ v_k p_k(y): Bayes' rule. The losses of the mixture add
    up to -ln sum prior_k exp(-L_k), for any stream of rows of weight 1, so that

        loss of the mixture  <=  L_k + ln(1 / prior_k)    for every expert k.

    This also holds for weights below 1; larger ones add a cost, which `regret_bound_` includes.

    With `share` > 0 a fraction of the total weight is redistributed after each row, which is Bayes' rule for a best
    expert that may change at any time: the loss is at most that of the best *sequence* of experts + `tracking_bound`.

    Parameters
    ----------
    {estimators, share, prior, history, shuffle, random_state, handle_unknown, delayed}

    Attributes
    ----------
    weights_ : ndarray of shape (n_experts,)
        Weights in the next forecast: the posterior probabilities of the experts.
    {weights_history_}
    cumulative_loss_ : float
        Log-loss of the mixture.
    expert_losses_ : ndarray of shape (n_experts,)
        Log losses of the experts; infinite for one that gave an observed label probability 0.
    regret_bound_ : float
        Bound on `cumulative_loss_` minus the loss of the best expert: ln K for equal priors and rows of weight <= 1.
    {estimators_, classes_, t_, n_features_in_, feature_names_in_}

    See Also
    --------
    ExpertMixtureClassifier : Other losses, rates, and EG.

    References
    ----------
    .. [1] R. Schapire, COS 511, lecture 20: "Maximum entropy", its last section, on on-line log-loss.
    .. [2] M. Herbster, M. K. Warmuth, "Tracking the Best Expert", Machine Learning 32, 1998.

    Examples
    --------
    Three forecasters of rain, one of which is informative:

    >>> import numpy as np
    >>> from onlinebregman import BayesMixture
    >>> rng = np.random.default_rng(0)
    >>> chance = rng.uniform(size=300)
    >>> rain = rng.uniform(size=300) < chance
    >>> forecasts = np.column_stack([np.full(300, 0.5), chance, rng.uniform(size=300)])
    >>> mixture = BayesMixture(shuffle=False).fit(forecasts, rain)
    >>> print(mixture.weights_.round(3), bool(mixture.cumulative_loss_ <= mixture.expert_losses_.min() + np.log(3)))
    [0. 1. 0.] True
    """

    def __init__(
        self,
        estimators: list[tuple[str, Any]] | None = None,
        *,
        share: float = 0.0,
        prior: ArrayLike | None = None,
        history: int = 0,
        shuffle: bool = True,
        random_state: RandomState = None,
        handle_unknown: Literal["error", "add"] = "error",
        delayed: bool = False,
    ) -> None:
        self._set_arguments(locals())
