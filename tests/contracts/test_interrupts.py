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
    ForwardClassifier,
    ForwardRegressor,
    ImplicitGDRegressor,
    LogDetMetricLearner,
    MaxEntDensity,
    MetricKNeighborsClassifier,
    MirrorDescentClassifier,
    OnlineExponentialFamily,
    OnlineGaussian,
    PNormClassifier,
    PNormRegressor,
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
DENSITIES = [("gaussian", OnlineGaussian(prior_weight=1.0)), ("unit", OnlineExponentialFamily())]
MODELS = {
    "mixture of regressors": (ExpertMixtureRegressor(REGRESSORS, history=5), Y),
    "mixture of columns": (ExpertMixtureRegressor(strategy="eg", share=0.1, learning_rate=0.3), Y),
    "mixture of classifiers": (ExpertMixtureClassifier(CLASSIFIERS), LABELS),
    "Bayes mixture": (BayesMixture(CLASSIFIERS, share=0.1), LABELS),
    "mixture of densities": (DensityMixture(DENSITIES, history=5), None),
    "pipeline": (make_online_pipeline(StandardScaler(), ImplicitGDRegressor(average=True)), Y),
    "neighbours": (MetricKNeighborsClassifier(window_size=12, random_state=0), LABELS),
    "neighbours in a pipeline": (
        MetricKNeighborsClassifier(
            metric_learner=make_online_pipeline(StandardScaler(), LogDetMetricLearner(random_state=0))
        ),
        LABELS,
    ),
    "neighbours in several metrics": (
        MetricKNeighborsClassifier(metric_learner="auto", window_size=12, random_state=0),
        LABELS,
    ),
    "gaussian": (OnlineGaussian(), None),
    "diagonal gaussian": (OnlineGaussian(covariance_type="diag"), None),
    "exponential family": (OnlineExponentialFamily("poisson"), None),
    "maximum entropy": (MaxEntDensity(), None),
    "forward": (ForwardRegressor(), Y),
    "forward classifier": (ForwardClassifier(), LABELS),
}


def rows_for(name):
    return np.floor(4 * X) if name == "exponential family" else X


def in_mid_stream(name, y):
    model, X = clone(MODELS[name][0]), rows_for(name)
    extra = {"classes": [0, 1]} if y is LABELS else {}
    return model.partial_fit(X[:20], None if y is None else y[:20], **extra)


@pytest.mark.parametrize("name", MODELS)
def test_an_interrupted_call_learns_all_of_its_rows_or_none(name, state):
    y, rows = MODELS[name][1], rows_for(name)
    model = in_mid_stream(name, y)
    assert_all_or_nothing(
        lambda: copy.deepcopy(model),
        lambda model: model.partial_fit(rows[20:21], None if y is None else y[20:21]),
        state,
        most=40,
        least=3,
    )


@pytest.mark.parametrize("name", [name for name in MODELS if name != "pipeline"])  # its `fit` is scikit-learn's
def test_an_interrupted_fit_keeps_the_previous_model(name, state):
    y, rows = MODELS[name][1], rows_for(name)
    model = in_mid_stream(name, y)
    if "shuffle" in model.get_params():  # for all calls in the same order
        model.set_params(random_state=0)
    assert_all_or_nothing(
        lambda: copy.deepcopy(model),
        lambda model: model.fit(rows[:6], None if y is None else y[:6]),
        state,
        MemoryError,
        most=16,
    )


def test_a_block_of_expensive_numbers_is_interrupted_at_once(soon, state):
    """Powers of p-norms take as long as many other numbers: the time between checks is counted, not the numbers."""
    rows = np.random.default_rng(0).normal(size=(100_000, 4))
    model = PNormRegressor(p=3.5).partial_fit(rows[:5], rows[:5, 0])
    before = state(model)
    with pytest.raises(KeyboardInterrupt), soon:
        model.partial_fit(rows, rows[:, 0])
    assert state(model) == before


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
