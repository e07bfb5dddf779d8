"""Ellipses of learned metrics, and the rows of a fitted learner around them."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from onlinebregman import ForwardRegressor, LogDetMetricLearner, MetricKNeighborsClassifier
from onlinebregman.inspection import MetricDisplay


def stream():
    X = np.random.default_rng(0).normal(size=(300, 4))
    return X, X.mean(axis=1)


def on(ellipse, n=12):
    """Points of an ellipse."""
    return ellipse.get_patch_transform().transform(
        np.column_stack([np.cos(t := np.linspace(0, 2 * np.pi, n)), np.sin(t)])
    )


def test_ellipses_are_the_circles_of_the_metric(ax):
    X, _ = stream()
    y = (X[:, 1] + X[:, 2] > 0).astype(int)
    learner = LogDetMetricLearner(random_state=0).fit(X, y)
    W = learner.get_mahalanobis_matrix()[np.ix_([2, 1], [2, 1])]
    display = MetricDisplay.from_estimator(learner, X, y, features=(2, 1), radius=0.7, ax=ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("feature 2", "feature 1")
    for label, ellipse, circle in zip([0, 1], display.ellipses_, display.circles_, strict=True):
        center = X[y == label].mean(axis=0)[[2, 1]]
        z = on(ellipse) - center
        squared = np.einsum("ij,jk,ik->i", z, W, z)
        assert_allclose(squared, 0.49 * np.sqrt(np.linalg.det(W)))  # the same area as the circle
        assert_allclose(np.linalg.norm(on(circle) - center, axis=1), 0.7)
        assert_array_equal(display.points_[label].get_data(), X[y == label][:, [2, 1]].T)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["0", "1", "learned metric", "Euclidean"]
    knn = MetricKNeighborsClassifier(random_state=0).fit(X, y)
    display = MetricDisplay.from_estimator(knn, ax=ax)
    assert_array_equal(display.metric, knn.metric_.get_mahalanobis_matrix()[:2, :2])
    assert_array_equal(display.centers, np.zeros((1, 2)))


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"metric": np.eye(3)}, "matrix of two features"),
        ({"metric": [[1.0, 1.0], [1.0, 1.0]]}, "not positive definite"),
        ({"metric": np.eye(2), "radius": 0.0}, "positive number"),
        ({"metric": np.eye(2), "X": np.ones((4, 3))}, "X must be rows of two features; got shape"),
        ({"metric": np.eye(2), "y": [0, 1]}, "labels of the rows X"),
    ],
)
def test_metrics_that_cannot_be_drawn_are_refused(arguments, match):
    with pytest.raises(ValueError, match=match):
        MetricDisplay(**arguments)


def test_rows_that_do_not_vary_have_circles_of_radius_one():
    X, y = stream()
    learner = LogDetMetricLearner(random_state=0).fit(X, y > 0)
    assert MetricDisplay.from_estimator(learner, X[:1]).radius == 1.0


def test_wrong_features_and_models_are_refused():
    X, y = stream()
    learner = LogDetMetricLearner(random_state=0).fit(X, y > 0)
    for features, match in (
        ((0, 0), "two different columns"),
        ((0,), "two different columns"),
        (1, "two different columns"),
        ((0, 4), "a name, or an integer from 0 to 3; got 4"),
        ((0, 0.5), "a name, or an integer from 0 to 3; got 0.5"),
        (("name", 0), "'name' is none of the columns"),
    ):
        with pytest.raises(ValueError, match=match):
            MetricDisplay.from_estimator(learner, features=features)
    with pytest.raises(ValueError, match="has no get_mahalanobis_matrix"):
        MetricDisplay.from_estimator(ForwardRegressor().fit(X, y))


@pytest.mark.parametrize("kind", [LogDetMetricLearner, MetricKNeighborsClassifier])
def test_rows_are_those_of_the_fitted_features(kind):
    X, y = stream()
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = kind(random_state=0).fit(frame, y > 0)
    by_number = MetricDisplay.from_estimator(model, frame, y > 0, features=(2, 1))
    by_name = MetricDisplay.from_estimator(model, frame, y > 0, features=("c", "b"))
    assert_array_equal(by_name.X, X[:, [2, 1]])
    assert_array_equal(by_name.metric, by_number.metric)
    assert by_name.feature_names == ("c", "b")
    with pytest.raises(ValueError, match="order as they were in fit"):
        MetricDisplay.from_estimator(model, frame[list("dcba")], y > 0)


def test_rows_that_the_learner_does_not_accept_are_refused():
    X, y = stream()
    learner = LogDetMetricLearner(random_state=0).fit(X, y > 0)
    assert_array_equal(MetricDisplay.from_estimator(learner, sparse.csr_array(X), y > 0).X, X[:, :2])
    X_nan = X.copy()
    X_nan[7, 1] = np.nan
    for rows, labels, match in (
        (np.c_[X, X], y > 0, "X has 8 features, but LogDetMetricLearner is expecting 4"),
        (X[:, :2], y > 0, "X has 2 features, but LogDetMetricLearner is expecting 4"),
        (X[0], None, "Reshape your data"),
        (X, y[1:] > 0, "inconsistent numbers of samples"),
        (X, np.c_[y, y] > 0, "1d array"),
        (X_nan, y > 0, "NaN .row 7, column 1"),
    ):
        with pytest.raises(ValueError, match=match):
            MetricDisplay.from_estimator(learner, rows, labels)
