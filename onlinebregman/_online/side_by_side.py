"""Several online models that learn the same rows in one pass, and the weights of experts of all mixtures."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_array, column_or_1d

from .._kernels.learners.hedge import Hedge
from .._kernels.learners.mixer import Mixer, OutputsMixer
from .._kernels.learners.mixture import MixtureLearner
from .._kernels.learners.transaction import Validated
from .._kernels.rows.rows import RowMap
from .estimator import Before, Call, Examples, LifeCycleMixin
from .mirror import RATES
from .new_features import GrowsFeatures
from .validation import check_rows, fitted, read_only, too_large


class SideBySideMixin(GrowsFeatures, BaseEstimator):
    """Models that learn the same rows: each row is read once and learned by all; a call learns all rows or none.

    A subclass makes the models and the mixer of their scores. The models are fitted estimators, which share their
    compiled learners with this one.

    Attributes
    ----------
    estimators_ : list
        The models; each is fitted and can be used on its own.
    best_estimator_ : object
        The model with the smallest loss so far.
    best_index_ : int
        Its number.
    """

    _read_at_each_call: tuple[str, ...] = ("n_jobs",)
    n_jobs: int | None
    _takes_outputs = False  # whether rows may have several targets

    def _make_estimators(self, X) -> list[Any]:
        """Unfitted models, for rows such as X."""
        raise NotImplementedError

    def _make_mixer(self) -> Mixer:
        """The mixer of their scores; `estimators_` are set."""
        raise NotImplementedError

    def _check(self, call: Call, X, y, sample_weight=None, *classes) -> Examples:
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        # The names of features are this estimator's, the models see arrays
        X = check_rows(self, X, reset=call.first, any_layout=True)
        shape = getattr(y, "shape", (1,))
        if len(shape) > 2 or shape[:1] == (0,):  # of which the models would say that they refuse it
            check_array(y, ensure_2d=False, dtype=None, estimator=self)
        if call.first:
            self.estimators_: list[Any] = self._make_estimators(X)
        if is_classifier(self.estimators_[0]):
            return self._check_codes(call, X, y, sample_weight, *classes)
        data = self.estimators_[0]._check(call, X, y, sample_weight)
        if self._takes_outputs:
            return data
        if data.y.ndim == 2 and data.y.shape[1] > 1:
            wanted = "loss should be of one quantile" if np.ndim(y) == 1 else "y should be a 1d array"
            raise ValueError(
                f"{wanted} for {type(self).__name__}; got {data.y.shape[1]}. Use a model for each (and numpy.sort for "
                "quantiles that do not cross), as sklearn.multioutput.MultiOutputRegressor does for several outputs."
            )
        return replace(data, y=column_or_1d(data.y, warn=True))

    def _check_codes(self, call: Call, X, y, sample_weight, classes: ArrayLike | None = None) -> Examples:
        """Validated rows with the numbers of their classes, those of the first model."""
        raise NotImplementedError

    def _begin(self, data: Examples) -> None:
        begun: dict[Any, Any] = {}
        for estimator in self.estimators_:
            own = vars(estimator)
            own["n_features_in_"] = self.n_features_in_
            given = [(name, value) for name, value in own.items() if name not in RATES]
            plain = [(name, type(v), v if isinstance(v, str | int | float) else id(v)) for name, v in given]
            twin = begun.setdefault((type(estimator), *plain), estimator)
            if twin is not estimator and hasattr(estimator, "_begin_like"):
                estimator._begin_like(twin)
                continue
            if "classes_" in vars(self):
                estimator.classes_, estimator._separate = self.classes_, estimator.handle_unknown == "add"
                estimator._multilabel = getattr(self, "_multilabel", False)
                estimator._begin_classes()
            estimator._begin(data)
        for estimator in self.estimators_:
            estimator._configure()
            estimator._keep_parameters()
            estimator._validated = Validated()  # of arrays: the names of features are this estimator's
        self._bind_learners(self._make_mixer())

    def _bind_learners(self, mixer: Mixer) -> None:
        """Let the learners of all models, and the mixer, learn together, rows that are mapped once."""
        learners = [estimator._learner for estimator in self.estimators_]
        shared: dict[Any, RowMap] = {}
        for learner in learners:
            if learner.row_map is not None:
                for row_map in shared.values():
                    learner.row_map.share(row_map)
                learner.map_by(shared.setdefault(learner.row_map.key(), learner.row_map))
        # compiled: in `Team.learn_chunk` each learner learns some rows, and the mixer combines the scores before that
        self._learner = MixtureLearner(learners, mixer, self._targets_by_class())

    def _configure(self) -> None:
        self._learner.n_jobs = self.n_jobs

    def _targets_by_class(self) -> list[np.ndarray | None]:
        tables = [vars(estimator).get("_targets_of_classes") for estimator in self.estimators_]
        if not getattr(self, "_multilabel", False):
            return tables
        indicators: Any = vars(self)["_targets_of_classes"]  # which a mixture of several labels gets
        return [None if np.array_equal(table, indicators) else table for table in tables]

    def _copy_learner(self) -> None:
        self.estimators_, self._learner = copy.deepcopy((self.estimators_, self._learner))

    def _add_features(self, m: int) -> None:
        self.n_features_in_ = m
        self._copy_learner()
        for estimator in self.estimators_:
            estimator._add_features(m)
        self._bind_learners(self._learner.mixer)
        self._configure()

    def _with_classes(self, numbers: list[int]) -> MixtureLearner:
        """See `GrowsClasses`."""
        for estimator in self.estimators_:
            estimator._add_classes(self.classes_.tolist())
        learners = [estimator._learner for estimator in self.estimators_]
        return MixtureLearner(learners, self._mixer_of_classes(numbers), self._targets_by_class())

    def _mixer_of_classes(self, numbers: list[int]) -> Mixer:
        """The present mixer for `classes_`, of which those with these numbers were known."""
        return self._learner.mixer.with_classes(len(self.classes_), numbers)

    def _refuse_prediction(self, X, row: int) -> NoReturn:
        raise ValueError(f"A score of row {row} overflows; scale features as in rows that were learned.")

    def _refuse(self, reason: str, row: int, data: Examples) -> None:
        """Raise the error that names the model that refused a row, and the reason."""
        if reason == "too large":  # for all models that share the map of rows
            raise too_large(f"row {row}")
        number = self._learner.refusing
        if number < 0:
            target = " ".join(f"{value:g}" for value in np.atleast_1d(data.y[row]))
            raise ValueError(
                f"The sum of the losses up to row {row} (target {target}) must be finite; got infinity. Scale features "
                f"and targets (sklearn.preprocessing.StandardScaler){', or the weights' * (data.weights is not None)}."
            )
        estimator = self.estimators_[number]
        if hasattr(estimator, "_targets_of_classes"):
            data = replace(data, y=estimator._class_targets(data.y.astype(np.intp)))
        estimator._refuse(reason, row, data)

    @read_only
    def cumulative_losses_(self) -> np.ndarray:
        """Losses of the models over all rows, each predicted before it was learned, shape (n_models,)."""
        return np.array([estimator._learner.cumulative_loss for estimator in self._fitted_models()])

    @property
    def best_index_(self) -> int:
        """Number of the model with the smallest loss so far."""
        return int(np.argmin(self.cumulative_losses_))

    @property
    def best_estimator_(self) -> Any:
        """The model with the smallest loss so far."""
        return self._fitted_models()[self.best_index_]

    @property
    def t_(self) -> int:
        """Rows learned so far; rows of weight zero do not count."""
        return self._fitted_models()[0].t_

    def _fitted_models(self) -> list[Any]:
        return fitted(self, vars(self).get("estimators_"))


class WeightsMixin(LifeCycleMixin):
    """Experts whose weights are learned by a compiled mixer, which is the `_learner` or a part of it.

    Parameters
    ----------
    delayed : bool
        Whether the rows of one call of `partial_fit` were all predicted before any of their targets was known, for
        labels that come late: a day's forecasts, then the day. The weights, the combinations and the radii of intervals
        then learn from the predictions that were made, those of the model before the call. False: each row counts as
        predicted after the row before was learned, so that it makes no difference how rows are cut into calls. `fit`
        always learns so.
    """

    delayed: bool
    _in_fit = False

    def _configure(self, **more: Any) -> None:
        super()._configure()
        ordered = not (self._in_fit and self._shuffles())
        self._fitted_mixer().configure(delayed=self._together, ordered=ordered, **more)

    @property
    def _together(self) -> bool:
        """Whether the rows of a call were predicted together."""
        return "delayed" in self._parameters_of_calls() and self.delayed and not self._in_fit

    def _learn_in_epochs(self, learn: Callable, data, X, y) -> None:
        self._in_fit = True
        self._configure()
        super()._learn_in_epochs(learn, data, X, y)
        del self._in_fit
        self._configure()

    @read_only
    def weights_(self) -> np.ndarray:
        """Weights of the experts in the next prediction, shape (n_experts,), or (n_outputs, n_experts)."""
        return self._of_outputs(lambda mixer: mixer.hedge.weights)

    @read_only
    def weights_history_(self) -> np.ndarray:
        """Weights of the experts over time, shape (n_recorded, n_experts), or (n_outputs, n_recorded, n_experts)."""
        if self._fitted_hedge().history.last == 0:
            raise AttributeError("weights_history_ is only stored for rows that are learned with history > 0")
        return self._of_outputs(lambda mixer: mixer.hedge.history.weights)

    @property
    def cumulative_loss_(self) -> float:
        """Loss of the mixture over all rows, each predicted before it was learned."""
        return self._fitted_mixer().cumulative_loss + self._before.losses

    @property
    def regret_bound_(self) -> float:
        """Bound on `cumulative_loss_` minus the loss of the best expert, for this very run."""
        return self._fitted_mixer().regret_bound() + self._before.bound

    def _fitted_mixer(self) -> Mixer:
        return self._fitted_state().mixer

    def _fitted_hedge(self) -> Hedge:
        """The weights of the experts; of several outputs those of the first."""
        mixer = self._fitted_mixer()
        return (mixer.mixers[0] if isinstance(mixer, OutputsMixer) else mixer).hedge

    def _of_outputs(self, value: Callable[[Mixer], Any]) -> Any:
        """What is computed from the mixer, or from that of each output, along a first axis."""
        mixer = self._fitted_mixer()
        return np.stack([value(each) for each in mixer.mixers]) if isinstance(mixer, OutputsMixer) else value(mixer)


def check_one_output(model: Any, error: type[Exception]) -> None:
    """Raise an error if a fitted mixture has several outputs, or one in a column of y."""
    mixer = model._fitted_mixer()
    if not isinstance(mixer, OutputsMixer):
        return
    name, n = type(model).__name__, len(mixer.mixers)
    if n == 1:
        raise error(f"This {name} learned y of shape (n_samples, 1), but that is for a 1d y; learn y.ravel().")
    kind = "Classifier" if is_classifier(model) else "Regressor"
    raise error(
        f"This {name} has {n} outputs, but that is for one; use sklearn.multioutput.MultiOutput{kind}, whose "
        "estimators_ are such models."
    )


class HedgedMixin(WeightsMixin, SideBySideMixin):
    """Models side by side, mixed by exponential weights on the losses they had.

    Attributes
    ----------
    weights_ : ndarray of shape (n_models,)
        Weights of the models in the next prediction.
    weights_history_ : ndarray of shape (n_recorded, n_models)
        Weights after some of the rows, 64 to 128 once there were as many: who led when.
    weights_history_t_ : ndarray of shape (n_recorded,)
        After how many rows, at even intervals.
    cumulative_loss_ : float
        Loss of the mixture over all rows, each predicted before it was learned.
    regret_bound_ : float
        Bound on `cumulative_loss_` minus the smallest of `cumulative_losses_`, for this very run.
    """

    _unmergeable = (
        "its weights are computed from the losses of one sequence of rows, each predicted before it was learned"
    )
    _watches = True

    def _begin_again(self) -> None:
        """All models do, and get a new mixer."""
        self._before = Before(self.t_, self.cumulative_loss_, self.cumulative_losses_, self.regret_bound_)
        self._copy_learner()
        for estimator in self.estimators_:
            estimator._begin_again()
        self._bind_learners(self._make_mixer())
        self._configure()

    @read_only
    def weights_history_t_(self) -> np.ndarray:
        """After how many rows, shape (n_recorded,)."""
        return self._fitted_hedge().history.t + self._before.rows

    @read_only
    def cumulative_losses_(self) -> np.ndarray:
        """Losses of the models over all rows, each predicted before it was learned, shape (n_models,).

        Of several outputs those of each, shape (n_outputs, n_models).
        """
        return self._fitted_mixer().expert_losses + self._before.of_models

    @property
    def best_index_(self) -> int:
        """Number of the model with the smallest loss so far."""
        losses = self._of_outputs(lambda mixer: mixer.hedge.expert_losses)  # without the loss that is common to all
        return int(np.atleast_2d(losses).sum(axis=0).argmin())
