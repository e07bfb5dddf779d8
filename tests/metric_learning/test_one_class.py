"""Metric learners without informative rows, and errors for input of the wrong shape."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from onlinebregman import (
    DefiniteBoostMetricLearner,
    FrobeniusMetricLearner,
    LogDetMetricLearner,
    ParameterFreeMetricLearner,
    VonNeumannMetricLearner,
)

LEARNERS = [LogDetMetricLearner, FrobeniusMetricLearner, VonNeumannMetricLearner]


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("pairs", ["neighbors", "random"])
@pytest.mark.parametrize("n_components", [None, 2])
def test_one_class_leaves_rows_where_they_are(learner, pairs, n_components):
    X = np.random.default_rng(0).normal(size=(20, 3)) * [1.0, 5.0, 0.1]
    model = learner(sampling=pairs, n_components=n_components)
    for labels in [np.arange(20)] * (pairs == "neighbors") + [np.zeros(20, dtype=int)]:
        with pytest.warns(UserWarning, match=r"one class, or each of its own.*two or more classes") as caught:
            model.fit(X, labels)
    assert caught[0].filename == __file__
    if learner is VonNeumannMetricLearner:
        np.testing.assert_allclose(model.transform(X), X[:, :n_components], rtol=1e-12)
    else:
        assert_array_equal(model.transform(X), X[:, :n_components])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, np.arange(20) % 2)
        learner().partial_fit(X, np.zeros(20, dtype=int))  # other classes may follow


@pytest.mark.parametrize("learner", [DefiniteBoostMetricLearner, ParameterFreeMetricLearner])
def test_rows_of_different_classes_teach_nothing(learner):
    with pytest.warns(UserWarning, match=r"each of its own.*two or more classes"):
        learner().fit(np.eye(3), [0, 1, 2])


@pytest.mark.parametrize("learner", LEARNERS)
def test_pairs_as_one_array_are_explained(learner):
    pairs = np.random.default_rng(0).normal(size=(5, 2, 3))
    model = learner().partial_fit_pairs(np.eye(3), [[0, 1]], [1.0])
    with pytest.raises(ValueError, match=r"shape \(5, 2, 3\).*all pairs as X, without Y"):
        model.pair_distance(pairs, pairs)
    with pytest.raises(ValueError, match=r"shape \(5, 2, 3\).*pairs\[:, 0\] - pairs\[:, 1\]"):
        model.predict(pairs)
    with pytest.raises(ValueError, match=r"shape \(5, 2, 3\).*row numbers"):
        model.partial_fit_pairs(pairs, [[0, 1]], [1.0])
    with pytest.raises(ValueError, match=r"shape \(5, 2, 3\).*rows as X"):
        model.partial_fit_pairs(pairs[:, 0], pairs, np.ones(5))
    with pytest.raises(ValueError, match=r"shape \(5, 2, 3\).*row numbers"):
        model.fit_triplets(pairs.tolist(), [[0, 1, 2]])


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_comparator_that_is_no_metric_is_refused(learner):
    X = np.random.default_rng(0).normal(size=(10, 2))
    model = learner(track_regret=True).partial_fit_pairs(X, [[0, 1], [2, 3]], [1.0, 2.0])
    with pytest.raises(ValueError, match="U must be positive semidefinite; got a matrix with the eigenvalue -1"):
        model.regret_bound(np.diag([2.0, -1.0]), weighted=True)
    assert np.isfinite(model.regret_bound(np.diag([2.0, 1.0]), weighted=True))


def test_logdet_requires_a_definite_comparator():
    model = LogDetMetricLearner(track_regret=True).partial_fit_pairs(np.eye(2), [[0, 1]], [1.0])
    with pytest.raises(ValueError, match="eigenvalue 0"):
        model.regret_bound(np.diag([1.0, 0.0]), weighted=True)


def test_a_comparator_of_another_trace_is_refused():
    model = VonNeumannMetricLearner(trace=2.0, track_regret=True).partial_fit_pairs(np.eye(2), [[0, 1]], [1.0])
    with pytest.raises(ValueError, match="tr W = 3"):
        model.regret_bound(np.diag([1.0, 2.0]), weighted=True)


@pytest.mark.parametrize("learner", [*LEARNERS, DefiniteBoostMetricLearner])
@pytest.mark.parametrize("sampling", ["neighbors", "random"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e150])
def test_rows_that_are_stored_alone_are_finite(learner, sampling, bad, unchanged):
    """Rows of one class are only stored, so that no prediction shows values that are not finite."""
    model = learner(**({} if learner is DefiniteBoostMetricLearner else {"sampling": sampling}), random_state=0)
    X, y = np.random.default_rng(0).normal(size=(5, 3)), np.zeros(5, dtype=int)
    model.partial_fit(X, y).partial_fit(X[:1], y[:1])
    for rows in (X[:1], X):
        rows = rows.copy()
        rows[-1, 1] = bad
        with unchanged(model, "NaN|infinity|overflow"):
            model.partial_fit(rows, y[: len(rows)])
