"""Several online models that learn the same rows in one pass."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_array

from .._kernels.learners.mixer import Mixer
from .._kernels.learners.mixture import MixtureLearner
from .._kernels.learners.transaction import Validated
from .._kernels.rows.rows import RowMap
from .estimator import Call, Examples
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

    n_jobs: int | None

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
        leader = self.estimators_[0]
        return leader._check(call, X, y, sample_weight, *(classes if is_classifier(leader) else ()))

    def _begin(self, data: Examples) -> None:
        # Models that differ in their rates only begin alike: one of them begins, the others take what it has made.
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
