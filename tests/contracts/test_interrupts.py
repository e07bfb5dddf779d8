"""Meta-estimators: a call that is interrupted, or fails in a part from another package, changes nothing."""

import copy

import numpy as np
import pytest
from interrupts import assert_all_or_nothing, interrupt
from sklearn.base import BaseEstimator, ClassifierMixin, DensityMixin, RegressorMixin, TransformerMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import StandardScaler

from onlinebregman import (
    BayesMixture,
    DensityMixture,
    EGRegressor,
    ExpertMixtureClassifier,
    ExpertMixtureRegressor,
    ImplicitGDRegressor,
    LogDetMetricLearner,
    MetricKNeighborsClassifier,
    MirrorDescentClassifier,
    OnlineGaussian,
    PNormClassifier,
)
from onlinebregman.pipeline import make_online_pipeline

rng = np.random.default_rng(3)
X = rng.lognormal(0.0, 0.2, size=(30, 3))
Y = X @ [0.2, 0.5, 0.3]
LABELS = rng.integers(2, size=30)

REGRESSORS = [("gd", ImplicitGDRegressor()), ("pipeline", make_online_pipeline(StandardScaler(), EGRegressor()))]
CLASSIFIERS = [
    ("md", MirrorDescentClassifier(divergence="squared_euclidean")),
    ("frozen", FrozenEstimator(PNormClassifier().fit(X, LABELS))),
]
METRIC = make_online_pipeline(StandardScaler(), LogDetMetricLearner(random_state=0))
MODELS = {  # besides the public estimators with their own parts: see test_transactions.py
    "mixture of regressors": (ExpertMixtureRegressor(REGRESSORS, history=5), Y),
    "mixture of classifiers": (BayesMixture(CLASSIFIERS, share=0.1), LABELS),
    "pipeline": (make_online_pipeline(StandardScaler(), ImplicitGDRegressor(average=True)), Y),
    "neighbours": (MetricKNeighborsClassifier(metric_learner="auto", window_size=12, random_state=0), LABELS),
    "neighbours in a pipeline": (MetricKNeighborsClassifier(metric_learner=METRIC, random_state=0), LABELS),
}


@pytest.mark.parametrize(
    ("name", "method", "error"),
    [
        *((name, "partial_fit", KeyboardInterrupt) for name in MODELS),
        *((name, "fit", MemoryError) for name in MODELS if name != "pipeline"),  # its `fit` is scikit-learn's
    ],
)
def test_an_interrupted_call_learns_all_of_its_rows_or_none(name, method, error, state):
    model, y = clone(MODELS[name][0]), MODELS[name][1]
    if "shuffle" in model.get_params():  # for all calls in the same order
        model.set_params(random_state=0)
    model.partial_fit(X[:20], y[:20], **({"classes": [0, 1]} if y is LABELS else {}))
    rows = slice(20, 21) if method == "partial_fit" else slice(6)
    assert_all_or_nothing(
        lambda: copy.deepcopy(model),
        lambda model: getattr(model, method)(X[rows], y[rows]),
        state,
        error,
        most=40 if method == "partial_fit" else 16,
        least=3,
    )


def test_the_helper_sees_a_torn_model(state):
    class Torn:
        def __init__(self):
            self.rows, self.loss = 0, 0.0

        def learn(self):
            self.rows += 1
            self.loss += 0.5
            return self

    with pytest.raises(AssertionError, match=r"1 of . interrupted calls leave a torn model, at lines \[3\]"):
        assert_all_or_nothing(Torn, lambda model: model.learn(), lambda m: dict(vars(m)), files=(__file__,), least=1)
    assert not interrupt(Torn, 100, files=(__file__,))


# --- parts of other packages ------------------------------------------------------------------------------------------


class Failing(BaseEstimator):
    """Learns in place, and fails in the middle of a given row."""

    def __init__(self, last=22, error=RuntimeError):
        self.last = last
        self.error = error

    def partial_fit(self, X, y=None):
        for _ in X:
            self.count_ = getattr(self, "count_", np.zeros(1))
            self.count_ += 1.0
            if self.count_[0] > self.last:
                raise self.error("the disk is full")
        return self

    def fit(self, X, y=None):
        return self.partial_fit(X, y)


class FailingRegressor(RegressorMixin, Failing):
    def predict(self, X):
        return np.full(len(X), self.count_[0])


class FailingClassifier(ClassifierMixin, Failing):
    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


class FailingDensity(DensityMixin, Failing):
    def score_samples(self, X):
        return np.full(len(X), -1.0)


class FailingScaler(TransformerMixin, Failing):
    def transform(self, X):
        return np.asarray(X) * 1.0


@pytest.mark.parametrize("error", [RuntimeError, ValueError, MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize(
    "model, y",
    [
        (ExpertMixtureRegressor([("gd", ImplicitGDRegressor()), ("failing", FailingRegressor())]), Y),
        (
            ExpertMixtureClassifier(
                [("md", MirrorDescentClassifier(divergence="squared_euclidean")), ("failing", FailingClassifier())]
            ),
            LABELS,
        ),
        (DensityMixture([("gaussian", OnlineGaussian(prior_weight=1.0)), ("failing", FailingDensity())]), None),
        (make_online_pipeline(StandardScaler(), FailingScaler(), ImplicitGDRegressor()), Y),
        (make_online_pipeline(StandardScaler(), FailingRegressor()), Y),
        (MetricKNeighborsClassifier(metric_learner=FailingScaler()), LABELS),
        (MetricKNeighborsClassifier(metric_learner=make_online_pipeline(StandardScaler(), FailingScaler())), LABELS),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_part_that_fails_in_mid_call_leaves_the_others_unchanged(model, y, error, state):
    model = clone(model)
    named = [name for name in model.get_params() if name.endswith("error")]
    model.set_params(**dict.fromkeys(named, error))
    extra = {"classes": [0, 1]} if y is LABELS else {}
    model.partial_fit(X[:20], None if y is None else y[:20], **extra)
    before = state(model)
    with pytest.raises(error, match="the disk is full"):
        model.partial_fit(X[20:25], None if y is None else y[20:25])
    assert named and state(model) == before
    model.partial_fit(X[20:22], None if y is None else y[20:22])
    assert state(model) != before
