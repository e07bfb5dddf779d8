"""DefiniteBoostMetricLearner: its constraints, their optimum, streams, and k-NN with it."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances

from onlinebregman import DefiniteBoost, DefiniteBoostMetricLearner


def mean_distances(X, y, distances, nearest):
    """For each class: mean squared distance within it, and to its impostors as `nearest` says."""
    found = []
    for label in np.unique(y):
        mine = y == label
        impostors = np.argsort(nearest[np.ix_(mine, ~mine)], axis=1)[:, :5]
        found.append(
            (
                (distances[np.ix_(mine, mine)] ** 2).mean(),
                np.take_along_axis(distances[np.ix_(mine, ~mine)] ** 2, impostors, axis=1).mean(),
            )
        )
    return np.array(found).T


def test_the_bounds_hold_and_the_change_is_the_least(wine):
    X, y = wine
    learner = DefiniteBoostMetricLearner(similar=0.6, dissimilar=0.9, tol=1e-6, max_iter=10_000).fit(X, y)
    euclidean = pairwise_distances(X)
    within, impostors = mean_distances(X, y, learner.pairwise_distances(X), euclidean)
    within_before, impostors_before = mean_distances(X, y, euclidean, euclidean)
    assert (within <= 0.6 * within_before * (1 + 1e-4)).all()
    assert (impostors >= 0.9 * impostors_before * (1 - 1e-4)).all()
    assert np.isclose(within, 0.6 * within_before, rtol=1e-3).any()  # no more than needed
    W = learner.get_mahalanobis_matrix()
    assert_allclose(np.trace(W), 13)
    assert learner.boost_.kkt_residual_ <= 1e-6
    assert_allclose(W / 13, learner.boost_.kernel_)


def test_contradicting_bounds_are_relaxed_until_they_can_be_met():
    X = np.random.default_rng(0).normal(size=(60, 3))
    learner = DefiniteBoostMetricLearner(similar=0.6)
    with pytest.warns(ConvergenceWarning, match="for similar=0.8 in place of 0.6"):
        learner.fit(X, np.arange(60) % 2)
    assert learner.boost_.kkt_residual_ <= 0.01
    assert np.linalg.eigvalsh(learner.get_mahalanobis_matrix())[0] > 0.1


def test_rows_are_taken_in_and_the_metric_is_found_when_it_is_asked_for(wine, monkeypatch):
    X, y = wine
    solved, solve = [], DefiniteBoost.partial_fit_matrices
    monkeypatch.setattr(DefiniteBoost, "partial_fit_matrices", lambda self, C: solved.append(self) or solve(self, C))
    reference = DefiniteBoostMetricLearner(random_state=0).fit(X, y)
    assert len(solved) == 1
    learner = DefiniteBoostMetricLearner(random_state=0)
    for part in np.array_split(np.arange(178), 6):
        learner.partial_fit(X[part], y[part])
    assert len(solved) == 1
    learner.set_params(similar=0.9)  # for the next rows
    assert_array_equal(learner.transform(X), reference.transform(X))
    assert learner.n_iter_ == reference.n_iter_ > 0 and learner.boost_.max_violation_ == reference.boost_.max_violation_
    assert len(solved) == 2
    again = pickle.loads(pickle.dumps(learner))
    assert_array_equal(again.components_, reference.components_)
    assert not np.array_equal(learner.partial_fit(X[:1], y[:1]).components_, reference.components_)


def test_contradicting_bounds_are_said_by_fit_and_to_who_asks_for_the_metric():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    learner = DefiniteBoostMetricLearner(similar=0.1, dissimilar=2.0)
    learned = clone(learner).partial_fit(X, y)
    for ask in (lambda: learner.fit(X, y).components_, lambda: learned.transform(X)):
        with pytest.warns(ConvergenceWarning, match="cannot all be met"):
            assert np.isfinite(ask()).all()


@pytest.mark.parametrize("n", [2, 3])
def test_equal_rows_of_a_class_are_no_constraint(n):
    rng = np.random.default_rng(3)
    rows, others = rng.normal(size=(20, 3)), rng.normal(size=(1, 3))
    learners = [
        DefiniteBoostMetricLearner(projection="exact").fit(
            np.r_[rows, np.repeat(others, size, axis=0)], [0] * 20 + [1] * size
        )
        for size in (1, n)
    ]
    assert [len(learner.boost_.alpha_) for learner in learners] == [3, 3]
    assert_allclose(learners[1].get_mahalanobis_matrix(), learners[0].get_mahalanobis_matrix(), rtol=1e-6)


def test_an_offset_of_the_rows_changes_nothing():
    rng = np.random.default_rng(0)
    rows, y = rng.integers(-9, 9, size=(120, 20)).astype(float), np.arange(120) % 3
    near, far = (DefiniteBoostMetricLearner().fit(rows + offset, y) for offset in (0.0, 2.0**30))
    assert_allclose(far.get_mahalanobis_matrix(), near.get_mahalanobis_matrix(), rtol=1e-9, atol=1e-12)
