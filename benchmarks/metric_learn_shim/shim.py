"""metric-learn's names of estimators, methods and parameters, for metric learners of this package.

Classes map names, and nothing else, by a table of metric-learn's parameters and their defaults; algorithms without a
counterpart are placeholders, whose tests are left out.
"""

from __future__ import annotations

import inspect
import warnings
from contextlib import contextmanager
from inspect import Parameter, Signature

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import roc_auc_score

from onlinebregman import (
    FrobeniusMetricLearner,
    LogDetMetricLearner,
    ParameterFreeMetricLearner,
    VonNeumannMetricLearner,
)
from onlinebregman.metric_learning._mahalanobis import Factor, MahalanobisTransformer


class _Learner:
    """Parameters of metric-learn, with the defaults of this package for all others, and `components_` to be set."""

    _more: dict = {}
    _given = None

    def _set(self, parameters: dict) -> None:
        inherited = {}
        for base in reversed(type(self).__mro__):
            if base.__module__.startswith("onlinebregman") and "__init__" in vars(base):
                named = inspect.signature(base.__init__).parameters.values()
                inherited.update({each.name: each.default for each in named if each.name != "self"})
        given = {"prior": parameters["init"]} if "init" in parameters else {}
        vars(self).update({**inherited, **self._more, **given, **parameters})

    def set_params(self, **parameters):
        if "init" in parameters:
            self.prior = parameters["init"]
        if "prior" in parameters and "prior" not in self._get_param_names():
            self.prior = parameters.pop("prior")
        return super().set_params(**parameters)

    @contextmanager
    def _in_few_epochs(self):
        """Their `max_iter` counts iterations of an optimiser, the one of this package epochs."""
        given, self._given = vars(self).get("max_iter"), None
        if given is not None:
            self.max_iter = min(given, 5)
        try:
            yield
        finally:
            if given is not None:
                self.max_iter = given

    def _metric(self):
        return super()._metric() if self._given is None else self._given.T @ self._given

    def __sklearn_is_fitted__(self):
        return self._given is not None or super().__sklearn_is_fitted__()

    def _squared_lengths(self, Z):
        return super()._squared_lengths(Z) if self._given is None else MahalanobisTransformer._squared_lengths(self, Z)

    @property
    def components_(self):
        return super().components_ if self._given is None else self._given

    @components_.setter
    def components_(self, components):
        self._given = np.atleast_2d(components)
        self._factor = Factor()

    def score_pairs(self, pairs):
        distances = self.pair_distance(pairs)
        warnings.warn(
            "score_pairs will be deprecated in release 0.7.0. Use pair_score to compute similarity scores, or "
            "pair_distances to compute distances.",
            FutureWarning,
            stacklevel=2,
        )
        return distances


class _Supervised(_Learner):
    @property
    def predict(self):
        raise AttributeError("theirs do not predict; here `predict` gives squared distances")

    def fit(self, X, y):
        with self._in_few_epochs():
            return super().fit(X, y)


class PairsClassifierMixin:
    _tuple_size = 2

    def decision_function(self, pairs):
        return self.pair_score(pairs)

    def predict(self, pairs):
        return self.predict_pairs(pairs)

    def score(self, pairs, y):
        return roc_auc_score(y, self.decision_function(pairs))

    def calibrate_threshold(self, pairs, y, strategy="accuracy", min_rate=None, beta=1.0):
        return super().calibrate_threshold(pairs, labels=y, strategy=strategy, min_rate=min_rate, beta=beta)


class _Comparisons:
    def predict(self, tuples):
        return np.where(self.decision_function(tuples) > 0, 1, -1)

    def score(self, tuples):
        return self.predict(tuples).mean() / 2 + 0.5


class TripletsClassifierMixin(_Comparisons):
    _tuple_size = 3

    def decision_function(self, triplets):
        triplets = np.asarray(triplets)
        return self.pair_score(triplets[:, [0, 1]]) - self.pair_score(triplets[:, [0, 2]])


class QuadrupletsClassifierMixin(_Comparisons):
    _tuple_size = 4

    def decision_function(self, quadruplets):
        quadruplets = np.asarray(quadruplets)
        return self.pair_score(quadruplets[:, [0, 1]]) - self.pair_score(quadruplets[:, [2, 3]])


class _Pairs(PairsClassifierMixin, _Learner):
    def fit(self, pairs, y, calibration_params=None):
        with self._in_few_epochs():
            self.fit_pairs(pairs, labels=y)
        return self.calibrate_threshold(pairs, y, **(calibration_params or {}))


class _Triplets(TripletsClassifierMixin, _Learner):
    def fit(self, triplets):
        with self._in_few_epochs():
            return self.fit_triplets(triplets)


class _Quadruplets(QuadrupletsClassifierMixin, _Learner):
    def fit(self, quadruplets, weights=None):
        with self._in_few_epochs():
            return self.fit_quadruplets(quadruplets, sample_weight=weights)


def _named(name, fits, learner, more=None, /, **defaults):
    """A class of metric-learn's name, with its parameters; `more` are parameters of this package."""
    defaults |= {"verbose": False, "preprocessor": None, "random_state": None, "n_components": None}

    def __init__(self, **given):
        self._set(defaults | given)

    parameters = [Parameter(key, Parameter.KEYWORD_ONLY, default=value) for key, value in defaults.items()]
    __init__.__signature__ = Signature([Parameter("self", Parameter.POSITIONAL_OR_KEYWORD), *parameters])
    return type(name, (fits, learner), {"__init__": __init__, "__module__": __name__, "_more": more or {}})


_PRIOR = {"tol": 1e-3, "prior": "identity"}
_MMC = {"init": "identity", "max_iter": 100, "max_proj": 10000, "diagonal": False, "diagonal_c": 1.0}
_SDML = {"balance_param": 0.5, "sparsity_param": 0.01, "prior": "identity"}
_SCML = {"beta": 1e-5, "n_basis": None, "gamma": 5e-3, "max_iter": 10000, "output_iter": 500, "batch_size": 10}
_LMNN = {
    "n_neighbors": 3, "min_iter": 50, "max_iter": 1000, "learn_rate": 1e-7, "regularization": 0.5,
    "convergence_tol": 0.001,
}  # fmt: skip
_SOME = {"n_constraints": None}

ITML = _named("ITML", _Pairs, LogDetMetricLearner, gamma=1.0, max_iter=1000, **_PRIOR)
MMC = _named("MMC", _Pairs, VonNeumannMetricLearner, tol=1e-3, **_MMC)
SDML = _named("SDML", _Pairs, FrobeniusMetricLearner, **_SDML)
SCML = _named("SCML", _Triplets, LogDetMetricLearner, basis="triplet_diffs", **_SCML)
LSML = _named("LSML", _Quadruplets, LogDetMetricLearner, max_iter=1000, **_PRIOR)
ITML_Supervised = _named(
    "ITML_Supervised",
    _Supervised,
    LogDetMetricLearner,
    {"sampling": "random"},
    gamma=1.0,
    max_iter=1000,
    **_PRIOR,
    **_SOME,
)
MMC_Supervised = _named("MMC_Supervised", _Supervised, VonNeumannMetricLearner, tol=1e-6, **_MMC, **_SOME)
SDML_Supervised = _named("SDML_Supervised", _Supervised, FrobeniusMetricLearner, **_SDML, **_SOME)
SCML_Supervised = _named(
    "SCML_Supervised", _Supervised, ParameterFreeMetricLearner, basis="lda", k_genuine=3, k_impostor=10, **_SCML
)
LSML_Supervised = _named(
    "LSML_Supervised", _Supervised, LogDetMetricLearner, max_iter=1000, weights=None, **_PRIOR, **_SOME
)
NCA = _named("NCA", _Supervised, LogDetMetricLearner, init="auto", max_iter=100, tol=None)
LMNN = _named("LMNN", _Supervised, LogDetMetricLearner, init="auto", **_LMNN)
MLKR = _named("MLKR", _Supervised, LogDetMetricLearner, {"sampling": "targets"}, init="auto", max_iter=1000, tol=None)


class Placeholder(BaseEstimator):
    """An algorithm without a counterpart, whose tests are left out."""

    def __init__(self, n_components=None, n_chunks=None, k=None, init=None, preprocessor=None, random_state=None):
        vars(self).update({name: value for name, value in locals().items() if name != "self"})


class MahalanobisMixin(PairsClassifierMixin, _Learner, MahalanobisTransformer):
    """The base of the tests' own learners, which set `components_`."""

    n_components, _threshold, _allow_nan = None, None, False

    def __init__(self, preprocessor=None):
        self.preprocessor = preprocessor

    def _prepare_inputs(self, tuples, y, type_of_inputs):
        self.n_features_in_ = np.shape(tuples)[-1]
        return np.asarray(tuples), np.asarray(y)


SHIMS = (
    ITML, MMC, SDML, SCML, LSML, ITML_Supervised, MMC_Supervised, SDML_Supervised, SCML_Supervised, LSML_Supervised,
    NCA, LMNN, MLKR,
)  # fmt: skip
