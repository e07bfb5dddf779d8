"""Metrics learned from rows with real targets, and neighbours in them."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from onlinebregman import (
    FrobeniusMetricLearner,
    LogDetMetricLearner,
    MetricKNeighborsRegressor,
    VonNeumannMetricLearner,
)


def linear(n=300, d=6, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d))
    return rows, rows[:, 0] - 2.0 * rows[:, 1]


@pytest.mark.parametrize("Learner", [LogDetMetricLearner, VonNeumannMetricLearner, FrobeniusMetricLearner])
def test_targets_tell_which_features_matter(Learner):
    rows, y = linear()
    metric = Learner(sampling="targets", random_state=0).fit(rows, y)
    weights = np.diag(metric.get_mahalanobis_matrix())
    assert weights[:2].min() > 2 * weights[2:].max()
    cut = Learner(sampling="targets", random_state=0)
    for part in np.split(np.arange(300), [1, 2, 80, 211]):
        cut = pickle.loads(pickle.dumps(cut)).partial_fit(rows[part], y[part])
    whole = Learner(sampling="targets", random_state=0).partial_fit(rows, y)
    assert_array_equal(whole.get_mahalanobis_matrix(), cut.get_mahalanobis_matrix())
    # only the order of the distances between targets matters
    scaled = Learner(sampling="targets", random_state=0).partial_fit(rows, 8.0 * y)
    assert_array_equal(whole.get_mahalanobis_matrix(), scaled.get_mahalanobis_matrix())


def test_refused_targets():
    rows, y = linear(n=50)
    with pytest.raises(ValueError, match=r'Unknown label type: continuous.*Set sampling="targets" for real targets'):
        LogDetMetricLearner().fit(rows, y)
    learner = LogDetMetricLearner(sampling="targets", random_state=0).partial_fit(rows, y)
    before = pickle.dumps(learner)
    for wrong, message in ((np.where(np.arange(50) == 7, np.nan, y), "row 7"), (np.full(50, "a"), "number|convert")):
        with pytest.raises(ValueError, match=message):
            learner.partial_fit(rows, wrong)
    assert pickle.dumps(learner) == before
    with pytest.warns(UserWarning, match="All targets were equal"):
        LogDetMetricLearner(sampling="targets").fit(rows, np.ones(50))
    np.testing.assert_array_equal(
        LogDetMetricLearner(sampling="targets", random_state=0).partial_fit(rows, y.tolist()).get_mahalanobis_matrix(),
        learner.get_mahalanobis_matrix(),
    )


def test_neighbours_predict_their_mean_target():
    rows, y = linear()
    model = MetricKNeighborsRegressor(4, window_size=100, random_state=0)
    for part in np.array_split(np.arange(300), 7):
        model = pickle.loads(pickle.dumps(model)).partial_fit(rows[part], y[part])
    assert_array_equal(model.y_, y[200:])
    assert_array_equal(model.X_, rows[200:])
    distances, indices = model.kneighbors(rows[:20])
    assert_allclose(model.predict(rows[:20]), model.y_[indices].mean(axis=1), rtol=1e-12)
    weighted = (model.y_[indices] / distances).sum(axis=1) / (1 / distances).sum(axis=1)
    assert_allclose(model.set_params(weights="distance").predict(rows[:20]), weighted, rtol=1e-12)
    several = MetricKNeighborsRegressor(metric_learner="auto", random_state=0).fit(rows, y)
    singles = [
        MetricKNeighborsRegressor(metric_learner=metric).fit(rows, y)
        for metric in MetricKNeighborsRegressor(metric_learner="auto", random_state=0)._new_metrics()
    ]
    assert len(singles) == 3
    assert_allclose(several.predict(rows), np.mean([each.predict(rows) for each in singles], axis=0), rtol=1e-12)
