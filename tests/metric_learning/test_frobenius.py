"""FrobeniusMetricLearner: distances and metrics of 0, and rates that overflow."""

import numpy as np

from onlinebregman import FrobeniusMetricLearner


def test_distances_are_never_negative():
    """A singular metric: differences along what it has lost have the distance 0, and no rounding error makes it NaN."""
    X = np.eye(5)
    learner = FrobeniusMetricLearner(eta0=1e6, scale_eta=False)
    for _ in range(3):
        learner.partial_fit_pairs(X, [[0, 1], [1, 2], [2, 3]], [0.0, 0.0, 0.0])
    rng = np.random.default_rng(3)
    z = np.array([[1.0, -1, 0, 0, 0], [0, 1, -1, 0, 0], [0, 0, 1, -1, 0]])
    a = np.vstack([z, rng.normal(size=(200, 3)) @ z])
    assert (learner.predict(a) >= 0).all()
    assert np.isfinite(learner.pair_distance(a, np.zeros_like(a))).all()
    assert np.linalg.eigvalsh(learner.get_mahalanobis_matrix())[0] > -1e-15


def test_a_rate_that_overflows_is_an_error_that_leaves_the_metric(unchanged):
    learner = FrobeniusMetricLearner(eta0=1e200, scale_eta=False, update="explicit")
    learner.partial_fit_pairs(np.eye(3), [[0, 1]], [2.0])
    with unchanged(learner, r"overflowed at row 0.*Lower eta0"):
        learner.partial_fit_pairs(np.eye(3), [[0, 1]], [1e300])


def test_a_metric_of_zero_learns_again():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 1))
    y = (rows[:, 0] + rng.normal(size=300) > 0).astype(int)
    learner = FrobeniusMetricLearner(random_state=0).fit(rows, y)
    n = learner.n_updates_
    assert learner.partial_fit(rows, y).n_updates_ > n
