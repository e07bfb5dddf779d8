"""metric-learn's names of estimators, methods and parameters, for metric learners of this package.

Each class maps names, and nothing else; algorithms without a counterpart are placeholders, whose tests are left out.
"""

from __future__ import annotations

import inspect
import warnings
from contextlib import contextmanager

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
        parameters = {name: value for name, value in parameters.items() if name not in ("self", "__class__")}
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


class ITML(_Pairs, LogDetMetricLearner):
    def __init__(
        self,
        gamma=1.0,
        max_iter=1000,
        tol=1e-3,
        prior="identity",
        verbose=False,
        preprocessor=None,
        random_state=None,
        n_components=None,
    ):
        self._set(locals())


class MMC(_Pairs, VonNeumannMetricLearner):
    def __init__(
        self,
        max_iter=100,
        max_proj=10000,
        tol=1e-3,
        init="identity",
        diagonal=False,
        diagonal_c=1.0,
        verbose=False,
        preprocessor=None,
        random_state=None,
        n_components=None,
    ):
        self._set(locals())


class SDML(_Pairs, FrobeniusMetricLearner):
    def __init__(
        self,
        balance_param=0.5,
        sparsity_param=0.01,
        prior="identity",
        verbose=False,
        preprocessor=None,
        random_state=None,
        n_components=None,
    ):
        self._set(locals())


class SCML(TripletsClassifierMixin, _Learner, LogDetMetricLearner):
    def __init__(
        self,
        beta=1e-5,
        basis="triplet_diffs",
        n_basis=None,
        gamma=5e-3,
        max_iter=10000,
        output_iter=500,
        batch_size=10,
        verbose=False,
        preprocessor=None,
        random_state=None,
        n_components=None,
    ):
        self._set(locals())

    def fit(self, triplets):
        with self._in_few_epochs():
            return self.fit_triplets(triplets)


class LSML(QuadrupletsClassifierMixin, _Learner, LogDetMetricLearner):
    def __init__(
        self,
        tol=1e-3,
        max_iter=1000,
        prior="identity",
        verbose=False,
        preprocessor=None,
        random_state=None,
        n_components=None,
    ):
        self._set(locals())

    def fit(self, quadruplets, weights=None):
        with self._in_few_epochs():
            return self.fit_quadruplets(quadruplets, sample_weight=weights)


class ITML_Supervised(_Supervised, LogDetMetricLearner):
    _more = {"sampling": "random"}

    def __init__(
        self,
        gamma=1.0,
        max_iter=1000,
        tol=1e-3,
        n_constraints=None,
        prior="identity",
        verbose=False,
        preprocessor=None,
        random_state=None,
        n_components=None,
    ):
        self._set(locals())


class MMC_Supervised(_Supervised, VonNeumannMetricLearner):
    def __init__(
        self,
        max_iter=100,
        max_proj=10000,
        tol=1e-6,
        n_constraints=None,
        init="identity",
        diagonal=False,
        diagonal_c=1.0,
        verbose=False,
        preprocessor=None,
        random_state=None,
        n_components=None,
    ):
        self._set(locals())


class SDML_Supervised(_Supervised, FrobeniusMetricLearner):
    def __init__(
        self,
        balance_param=0.5,
        sparsity_param=0.01,
        prior="identity",
        n_constraints=None,
        verbose=False,
        preprocessor=None,
        random_state=None,
        n_components=None,
    ):
        self._set(locals())


class SCML_Supervised(_Supervised, ParameterFreeMetricLearner):
    def __init__(
        self,
        k_genuine=3,
        k_impostor=10,
        beta=1e-5,
        basis="lda",
        n_basis=None,
        gamma=5e-3,
        max_iter=10000,
        output_iter=500,
        batch_size=10,
        verbose=False,
        preprocessor=None,
        random_state=None,
        n_components=None,
    ):
        self._set(locals())


class LSML_Supervised(_Supervised, LogDetMetricLearner):
    def __init__(
        self,
        tol=1e-3,
        max_iter=1000,
        prior="identity",
        n_constraints=None,
        weights=None,
        verbose=False,
        preprocessor=None,
        random_state=None,
        n_components=None,
    ):
        self._set(locals())


class NCA(_Supervised, LogDetMetricLearner):
    def __init__(
        self,
        init="auto",
        n_components=None,
        max_iter=100,
        tol=None,
        verbose=False,
        preprocessor=None,
        random_state=None,
    ):
        self._set(locals())


class LMNN(_Supervised, LogDetMetricLearner):
    def __init__(
        self,
        init="auto",
        n_neighbors=3,
        min_iter=50,
        max_iter=1000,
        learn_rate=1e-7,
        regularization=0.5,
        convergence_tol=0.001,
        verbose=False,
        preprocessor=None,
        n_components=None,
        random_state=None,
    ):
        self._set(locals())


class MLKR(_Supervised, LogDetMetricLearner):
    _more = {"sampling": "targets"}

    def __init__(
        self,
        n_components=None,
        init="auto",
        tol=None,
        max_iter=1000,
        verbose=False,
        preprocessor=None,
        random_state=None,
    ):
        self._set(locals())


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
