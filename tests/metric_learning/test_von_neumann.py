"""VonNeumannMetricLearner: against a replica, hard steps, units, and the prior of its trace."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import logm

from onlinebregman import MEGKernelLearner, VonNeumannMetricLearner
from onlinebregman.reference import matrix_exp, von_neumann_step

updates = pytest.mark.parametrize("update", ["explicit", "implicit"])
traces = pytest.mark.parametrize("trace", [None, 1.0, 4.0])


def problem(seed, n=15, d=4):
    """Rows, pairs of them, and their squared distances in a metric, with noise."""
    rng = np.random.default_rng(seed)
    rows, factor = rng.normal(size=(n, d)) / np.sqrt(d), rng.normal(size=(d, d)) / np.sqrt(d)
    pairs = rng.permuted(np.tile(np.arange(n), (2 * n, 1)), axis=1)[:, :2]
    z = rows[pairs[:, 0]] - rows[pairs[:, 1]]
    return rows, pairs, z, ((z @ factor) ** 2).sum(axis=1) * rng.uniform(0.8, 1.2, size=len(z))


def replica(z, y, eta, update, trace, prior):
    log_w = logm(prior)
    for row, target in zip(z, y, strict=True):
        log_w = von_neumann_step(log_w, np.outer(row, row), target, eta, trace, update)
    return matrix_exp(log_w, trace)


@updates
@traces
@pytest.mark.parametrize("prior", ["identity", "matrix"])
def test_equals_replica(update, trace, prior):
    rows, pairs, z, y = problem(0)
    start = np.eye(4) if prior == "identity" else np.diag([1.0, 2.0, 0.5, 1.5]) + 0.2
    learner = VonNeumannMetricLearner(
        prior=prior if prior == "identity" else start,
        trace=trace,
        update=update,
        eta0=0.3,
        scale_eta=False,
        learning_rate="constant",
    )
    learner.partial_fit_pairs(rows, pairs, y)
    w = learner.get_mahalanobis_matrix()
    assert_allclose(w, replica(z, y, 0.3, update, trace, start), rtol=0, atol=1e-10)
    assert_array_equal(w, w.T)
    if trace is not None:
        assert np.trace(w) == pytest.approx(trace, rel=1e-13)
    assert_allclose(learner.predict(z), np.einsum("ni,ij,nj->n", z, w, z), rtol=1e-11)
    assert learner.divergence_.trace == trace


def test_trace_one_is_meg_on_features():
    rows, pairs, z, y = problem(1)
    parameters = {"update": "explicit", "eta0": 0.5, "scale_eta": False}
    metric = VonNeumannMetricLearner(trace=1.0, learning_rate="constant", **parameters)
    metric.partial_fit_pairs(rows, pairs, y)
    kernel = MEGKernelLearner(**parameters).partial_fit(z, y)
    assert_allclose(metric.get_mahalanobis_matrix(), kernel.kernel_, rtol=0, atol=1e-13)


@traces
def test_stays_positive_definite_over_hard_steps(trace):
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(6, 3)) * [1e-2, 1.0, 10.0]
    pairs, y = rng.integers(0, 6, size=(20_000, 2)), rng.choice([0.0, 1e-3, 1e3], size=20_000)
    learner = VonNeumannMetricLearner(trace=trace, eta0=1e4, learning_rate="constant")
    learner.partial_fit_pairs(rows, pairs, y)
    w = learner.get_mahalanobis_matrix()
    assert np.isfinite(w).all() and np.linalg.eigvalsh(w)[0] >= -1e-12 * np.trace(w)
    assert learner.n_collapsed_ == (pairs[:, 0] == pairs[:, 1]).sum()
    assert (learner.pair_distance(rows[:3], rows[3:]) >= 0).all()


@updates
def test_units_of_the_rows_make_no_difference(update):
    rows, pairs, _, y = problem(4)
    parameters = {"trace": 4.0, "update": update, "eta0": 0.5}
    one = VonNeumannMetricLearner(**parameters).partial_fit_pairs(rows, pairs, y)
    other = VonNeumannMetricLearner(**parameters).partial_fit_pairs(1e3 * rows, pairs, 1e6 * y)
    assert_allclose(other.get_mahalanobis_matrix(), one.get_mahalanobis_matrix(), rtol=0, atol=1e-11)
    assert other.cumulative_loss_ == pytest.approx(one.cumulative_loss_, rel=1e-9)


def test_bounds_are_those_of_the_prior_of_that_trace(wine):
    X, y = wine
    for pairs in ("random", "neighbors"):
        free, given, scaled = (
            VonNeumannMetricLearner(trace=trace, sampling=pairs, random_state=0).fit(X, y)
            for trace in (None, 13.0, 1.0)
        )
        if pairs == "random":
            assert_allclose(given.bounds_, free.bounds_, rtol=1e-12)
            assert_allclose(np.multiply(scaled.bounds_, 13.0), free.bounds_, rtol=1e-12)
        else:
            assert given.margin_ == pytest.approx(13 * scaled.margin_)
        # and so the learned metric is the same up to its scale, as rates have no unit
        w, other = given.get_mahalanobis_matrix(), scaled.get_mahalanobis_matrix()
        assert_allclose(13 * other, w, rtol=0, atol=1e-9)


def test_explicit_steps_that_diverge_are_refused():
    rows, pairs, _, y = problem(5)
    learner = VonNeumannMetricLearner(update="explicit", eta0=0.1).partial_fit_pairs(rows, pairs, y)
    before = learner.get_mahalanobis_matrix()
    with pytest.raises(ValueError, match=r"row \d+.*eta0=1e\+06.*Lower eta0.*update='implicit'"):
        learner.set_params(eta0=1e6).partial_fit_pairs(rows, pairs, y)
    assert_array_equal(learner.get_mahalanobis_matrix(), before)
