"""The parameter-free metric: the mean of three, for any division of the stream, no worse than the Euclidean one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline

from onlinebregman import LogDetMetricLearner, ParameterFreeMetricLearner
from onlinebregman.metric_learning import parameter_free
from onlinebregman.reference import mean_metric


def stream(seed=0, rows=150, n=4, scales=(1.0, 100.0, 0.01, 1.0)):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=rows)
    X = rng.normal(size=(rows, n))
    X[:, 1:3] += y[:, np.newaxis]
    return X * scales, y


def test_mean_and_scatter_grow_by_rows_however_they_are_cut():
    X = np.random.default_rng(0).normal(size=(50, 3)) + 10
    whole, cut = (parameter_free.RunningCovariance(np.zeros(3)) for _ in range(2))
    whole.add(X)
    for start, end in ((0, 1), (1, 20), (20, 20), (20, 50)):
        cut.add(X[start:end])
    assert whole.mean.tobytes() == cut.mean.tobytes() and whole.scatter.tobytes() == cut.scatter.tobytes()
    assert_allclose(whole.mean, X.mean(axis=0), rtol=1e-12)
    assert_allclose(whole.scatter, 50 * np.cov(X.T, bias=True), rtol=1e-12, atol=1e-12)


def mean_of(metrics, X):
    return mean_metric(metrics, np.cov(X.T, bias=True))


@pytest.mark.parametrize("partial", [False, True])
def test_it_is_the_mean_of_three_metrics_in_units_of_their_mean_squared_distances(partial):
    X, y = stream()
    model = ParameterFreeMetricLearner(random_state=3)
    metrics = []
    seeds = np.random.RandomState(3).randint(np.iinfo(np.int32).max, size=3)
    for prior, seed in zip(("identity", "variance", "covariance"), seeds, strict=True):
        metric = LogDetMetricLearner(prior=prior, random_state=int(seed))
        if partial:
            metric.partial_fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
        else:
            metric.fit(X, y)
        metrics.append(metric.get_mahalanobis_matrix())
    model = model.partial_fit(X, y) if partial else model.fit(X, y)
    W = model.get_mahalanobis_matrix()
    assert_allclose(W, mean_of(metrics, X), rtol=1e-9, atol=1e-12 * np.abs(W).max())
    distances = model.pairwise_distances(X) ** 2
    assert_allclose(distances.mean(), 1.0)
    assert_allclose(((model.transform(X)[:, None] - model.transform(X)) ** 2).sum(axis=-1), distances, atol=1e-9)
    assert [metric.prior for metric in model.metric_learners_] == ["identity", "variance", "covariance"]
    assert model.t_ == 150


def test_before_rows_differ_it_is_the_euclidean_metric():
    X, _ = stream()
    model = ParameterFreeMetricLearner().partial_fit(X[[0, 0, 0]], [0, 1, 1])
    assert_array_equal(model.get_mahalanobis_matrix(), np.eye(4))


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer, load_digits])
def test_it_is_no_worse_than_the_euclidean_metric(load):
    X, y = load(return_X_y=True)
    X, y = X[:600], y[:600]
    order = np.random.default_rng(0).permutation(len(y))
    knn = KNeighborsClassifier(5)
    euclidean, learned = (
        1 - cross_val_score(model, X[order], y[order], cv=3).mean()
        for model in (knn, make_pipeline(ParameterFreeMetricLearner(random_state=0), knn))
    )
    assert learned < euclidean + 0.01
    if load is load_wine:  # its features differ in scale
        assert learned < 0.05 < 0.25 < euclidean


def test_leading_directions():
    X, y = stream()
    model = ParameterFreeMetricLearner(n_components=2, random_state=0).fit(X, y)
    assert model.transform(X).shape == (150, 2)
    with pytest.raises(ValueError, match=r"must be in \[1, 4\], the number of features of X, or None .* got 5"):
        ParameterFreeMetricLearner(n_components=5).partial_fit(X, y)


def test_it_learns_targets_in_place_of_labels():
    X, _ = stream()
    y = np.sin(3 * X[:, 0])
    with pytest.raises(ValueError, match='Set sampling="targets"'):
        ParameterFreeMetricLearner().partial_fit(X, y)
    metric = ParameterFreeMetricLearner(sampling="targets", random_state=0).partial_fit(X[:60], y[:60])
    cut = clone(metric).partial_fit(X[:7], y[:7]).partial_fit(X[7:120], y[7:120]).partial_fit(X[120:], y[120:])
    assert_array_equal(metric.partial_fit(X[60:], y[60:]).components_, cut.components_)
    plain, learned = (cross_val_score(KNeighborsRegressor(), rows, y).mean() for rows in (X, metric.transform(X)))
    assert learned > plain + 0.05
    with pytest.warns(UserWarning, match="All targets were equal"):
        metric.fit(X, np.ones(len(y)))


def test_the_start_has_as_many_rows_as_the_documentation_says():
    assert f"first {parameter_free.START} rows" in ParameterFreeMetricLearner.__doc__
