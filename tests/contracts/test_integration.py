"""The estimators inside scikit-learn, on its real data: accuracy, routing, callbacks."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onlinebregman import (
    ImplicitGDRegressor,
    MirrorDescentClassifier,
    PerceptronClassifier,
    PNormClassifier,
    WinnowClassifier,
)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True, as_frame=True)


CLASSIFIERS = {
    "logistic": MirrorDescentClassifier(divergence="squared_euclidean", random_state=0),
    "hinge": MirrorDescentClassifier(divergence="squared_euclidean", loss="hinge", random_state=0),
    "p-norm": PNormClassifier(random_state=0),
    "perceptron": PerceptronClassifier(random_state=0, average=True),
    "winnow": WinnowClassifier(random_state=0, average=True),
}
every_classifier = pytest.mark.parametrize("name", CLASSIFIERS)


# --- accuracy, against what a user would take instead -----------------------------------------------------------------


@every_classifier
@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_classifiers_are_as_good_as_stochastic_gradient_descent(name, load):
    X, y = load(return_X_y=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    score = cross_val_score(make_pipeline(StandardScaler(), CLASSIFIERS[name]), X, y, cv=folds).mean()
    sgd = cross_val_score(make_pipeline(StandardScaler(), SGDClassifier(random_state=0)), X, y, cv=folds).mean()
    assert score > 0.95 and score > sgd - 0.015


# --- sample weights and their routing ---------------------------------------------------------------------------------


def test_sample_weights_are_routed_where_they_are_requested(diabetes):
    X, y = diabetes
    weights = np.random.default_rng(0).choice([0.0, 1.0, 3.0], size=len(y))
    direct = ImplicitGDRegressor(random_state=0).fit(X, y, sample_weight=weights)
    with config_context(enable_metadata_routing=True):
        model = ImplicitGDRegressor(random_state=0).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(model).fit(X, y, sample_weight=weights)
        assert_array_equal(pipeline[-1].coef_, direct.coef_)
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            make_pipeline(ImplicitGDRegressor()).fit(X, y, sample_weight=weights)
        refused = make_pipeline(ImplicitGDRegressor().set_fit_request(sample_weight=False))
        with pytest.raises(TypeError, match="sample_weight"):
            refused.fit(X, y, sample_weight=weights)
        scored = clone(model).set_score_request(sample_weight=True)
        results = cross_validate(scored, X, y, cv=3, params={"sample_weight": weights})
        assert np.isfinite(results["test_score"]).all()
        requests = ImplicitGDRegressor().set_partial_fit_request(sample_weight=True).get_metadata_routing()
        assert requests.partial_fit.requests == {"sample_weight": True}


# --- callbacks and warnings -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def callback():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # callbacks are experimental, and warn
        return pytest.importorskip("sklearn.callback")


@every_classifier
@pytest.mark.filterwarnings("error")
def test_a_scoring_monitor_logs_the_accuracy_of_every_epoch(name, callback):
    """Callbacks get rows and labels as they were passed: with feature names and class names."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    X, y = StandardScaler().set_output(transform="pandas").fit_transform(X), y.map(dict(enumerate("abc")))
    model = clone(CLASSIFIERS[name]).set_params(max_iter=4, tol=None, shuffle=False)
    monitor = callback.ScoringMonitor(scoring="accuracy")
    model.set_callbacks(monitor)
    model.fit(X, y)
    log = [entry["accuracy"] for entry in monitor.get_logs().data if entry["task_name"] == "epoch"]
    by_hand = clone(model)
    by_hand.set_callbacks()
    assert log == [by_hand.partial_fit(X, y, classes=["a", "b", "c"]).score(X, y) for _ in range(4)]


def test_a_scoring_monitor_and_a_progress_bar_in_a_grid_search(callback, diabetes, capsys):
    pytest.importorskip("rich")
    X, y = diabetes
    model = make_pipeline(StandardScaler(), ImplicitGDRegressor(max_iter=5, tol=None, random_state=0))
    search = GridSearchCV(model, {"implicitgdregressor__eta0": [0.01, 0.1]}, cv=2)
    search.set_callbacks(callback.ProgressBar())
    search.fit(X, y)
    plain = GridSearchCV(model, {"implicitgdregressor__eta0": [0.01, 0.1]}, cv=2).fit(X, y)
    assert_array_equal(search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"])
    out = capsys.readouterr().out
    assert "GridSearchCV" in out and "Pipeline" in out
    regressor = ImplicitGDRegressor(max_iter=5, tol=None)
    regressor.set_callbacks(callback.ProgressBar())
    regressor.fit(X, y)
    out = capsys.readouterr().out
    assert "ImplicitGDRegressor" in out and "100%" in out
