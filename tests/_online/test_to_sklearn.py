"""Models as estimators of scikit-learn: which ones, and what they are where it has no such step."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from exported import LABELS, OwnLoss, X, Y
from numpy.testing import assert_allclose
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils.fixes import parse_version

from onlinebregman import (
    ForwardClassifier,
    ForwardRegressor,
    ImplicitGDRegressor,
    LogDetMetricLearner,
    MetricKNeighborsClassifier,
    MetricKNeighborsRegressor,
)
from onlinebregman._online import to_sklearn
from onlinebregman.pipeline import make_online_pipeline

clips = pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.7"), reason="MaxAbsScaler clips since scikit-learn 1.7"
)


@clips
def test_each_becomes_the_model_that_a_user_would_choose():
    euclidean = {"divergence": "squared_euclidean"}
    assert type(ImplicitGDRegressor().fit(X, Y).to_sklearn()) is LinearRegression
    assert type(ForwardClassifier(standardize=False).fit(X, LABELS).to_sklearn()) is LogisticRegression
    hinge = MirrorDescentClassifier(loss="squared_hinge", **euclidean).partial_fit(X, LABELS, classes=range(3))
    assert repr(hinge.to_sklearn()) == repr(SGDClassifier(loss="squared_hinge"))
    poisson = ForwardRegressor(loss="poisson", standardize=False).fit(X, np.exp(Y / 5)).to_sklearn()
    assert type(poisson) is TransformedTargetRegressor and poisson.inverse_func is np.exp
    assert type(LogDetMetricLearner(random_state=0).fit(X, LABELS).to_sklearn()) is NeighborhoodComponentsAnalysis
    kinds = [type(step) for _, step in ImplicitGDRegressor(standardize=True).fit(X, Y).to_sklearn().steps]
    assert kinds == [StandardScaler, MaxAbsScaler, LinearRegression]


def test_weights_can_be_read_and_learned_further():
    model = MirrorDescentClassifier(divergence="squared_euclidean").partial_fit(X, LABELS, classes=range(3))
    converted = model.to_sklearn()
    assert_allclose(converted.coef_, model.coef_)
    assert not np.array_equal(converted.partial_fit(X, LABELS).coef_, model.coef_)


@clips
def test_several_labels_of_data_frames():
    frame, several = pd.DataFrame(X, columns=list("abcd")), np.eye(3, dtype=int)[LABELS]
    model = ForwardClassifier().fit(frame, several)
    converted = model.to_sklearn()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # about names of features
        assert (converted.predict(frame) == model.predict(frame)).all()
    assert converted.classes_.tolist() == [0, 1, 2]


@clips
def test_columns_that_were_constant_or_without_a_value():
    Z = X * [1.0, 1.0, 0.0, 0.0] + [0.0, 0.0, 0.0, 3.0]
    for model in (
        MirrorDescentRegressor(),  # clips to the largest value so far, of which the third column has none
        MirrorDescentRegressor(divergence="normalized_adagrad", standardize=True),
        ForwardRegressor(forward=False, standardize=True, random_features=8, random_state=0),
    ):
        model.partial_fit(Z, Y)
        assert_allclose(model.to_sklearn().predict(3 * X), model.predict(3 * X), rtol=1e-9)


def test_metrics_of_pipelines_and_several_metrics():
    learner = LogDetMetricLearner(random_state=0)
    names = np.array(["a", "b", "c"])[LABELS]
    for metric in (make_online_pipeline(StandardScaler(), learner), ["euclidean", learner]):
        model = MetricKNeighborsClassifier(metric_learner=metric, weights="distance").partial_fit(X, names, list("abc"))
        converted, Z = model.to_sklearn(), X + 0.1
        assert (converted.predict(Z) == model.predict(Z)).all()
        assert_allclose(converted.predict_proba(Z), model.predict_proba(Z), rtol=1e-9, atol=1e-12)
        model = MetricKNeighborsRegressor(metric_learner=metric, weights="distance").partial_fit(X, LABELS)
        assert_allclose(model.to_sklearn().predict(Z), model.predict(Z), rtol=1e-9, atol=1e-12)


def test_own_losses():
    model = MirrorDescentRegressor(loss=OwnLoss(), divergence="squared_euclidean").fit(X, LABELS / 2)
    assert_allclose(model.to_sklearn().predict(X), model.predict(X), rtol=1e-12)
    model = MirrorDescentClassifier(loss=OwnLoss(), divergence="squared_euclidean").fit(X, LABELS)
    with pytest.raises(ValueError, match="no classifier with the probabilities of OwnLoss"):
        model.to_sklearn()


def test_clipping_needs_a_recent_version(monkeypatch):
    monkeypatch.setattr(to_sklearn, "MaxAbsScaler", lambda: None)
    with pytest.raises(ValueError, match=r"version 1\.7 or later"):
        MirrorDescentRegressor().fit(X, Y).to_sklearn()
