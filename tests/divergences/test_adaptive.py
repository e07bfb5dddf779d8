"""Adaptive divergences: their metrics computed from the rows by the formulas."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from onlinebregman.divergences import (
    DIVERGENCES,
    AdaGrad,
    AdaptiveDivergence,
    DiagonalNewton,
    NormalizedAdaGrad,
    SquaredEuclidean,
    WeightedSquaredEuclidean,
    resolve_divergence,
)
from onlinebregman.losses import LOSSES

EVERY = [AdaGrad(), NormalizedAdaGrad(), DiagonalNewton(curvature=0.5)]
every = pytest.mark.parametrize("divergence", EVERY, ids=repr)
seeds = st.integers(0, 2**32 - 1)


def rows(seed):
    rng = np.random.default_rng(seed)
    X, g, s = rng.normal(size=(12, 4)), rng.normal(size=12), rng.uniform(0.1, 2.0, size=12)
    return X * (rng.uniform(size=(12, 4)) < 0.7), g, s


@every
@settings(max_examples=20)
@given(seed=seeds)
def test_rows_make_the_weights_larger_in_any_order(divergence, seed):
    X, g, s = rows(seed)
    metrics = [divergence.metric(X[:t], g[:t], s[:t]) for t in range(1, 13)]
    assert (np.diff(metrics, axis=0) >= -1e-12 * metrics[-1]).all()
    order = np.random.default_rng(seed).permutation(12)
    assert_allclose(divergence.metric(X[order], g[order], s[order]), metrics[-1], rtol=1e-12)


@every
def test_a_row_of_weight_two_counts_as_two_rows(divergence):
    X, g, _ = rows(0)
    twice = np.r_[np.full(3, 2.0), np.ones(9)]
    assert_allclose(divergence.metric(X, g, twice), divergence.metric(np.r_[X, X[:3]], np.r_[g, g[:3]]))


@settings(max_examples=20)
@given(seed=seeds)
def test_units_of_a_feature_come_out_squared(seed):
    """So that h w^2, and therefore the divergence, has no units."""
    X, g, s = rows(seed)
    units = np.array([1e-6, 1.0, 1e3, 1e6])
    for divergence in EVERY[1:]:
        assert_allclose(divergence.metric(X * units, g, s), divergence.metric(X, g, s) * units**2, rtol=1e-12)
        assert_allclose(
            divergence.rate(X * units, g, LOSSES["squared_error"], s),
            divergence.rate(X, g, LOSSES["squared_error"], s),
            rtol=1e-12,
        )


def test_rates_go_with_the_deviation_of_targets_where_steps_have_their_units():
    X, y, _ = rows(1)
    deviation = {"adagrad": {}, "normalized_adagrad": {1: 10.0, 2: 10.0}, "diagonal_newton": {1: 10.0}}
    for name, powers in deviation.items():
        divergence = resolve_divergence(name)
        for loss in ("squared_error", "absolute_error", "log_loss"):
            ratio = divergence.rate(X, 10 * y, LOSSES[loss]) / divergence.rate(X, y, LOSSES[loss])
            assert_allclose(ratio, powers.get(LOSSES[loss].degree, 1.0))
    same = NormalizedAdaGrad().rate(X, np.full(12, -3.0), LOSSES["squared_error"])
    assert_allclose(same, 3 * NormalizedAdaGrad().rate(X, y, LOSSES["log_loss"]))


@pytest.mark.parametrize("loss", [loss for loss in LOSSES.values() if loss.degree], ids=repr)
def test_the_degree_of_a_loss(loss):
    """Its parameters are in units of the target, too."""
    parameters = {name: 10 * value for name, value in vars(loss).items() if name == "epsilon"}
    scaled = type(loss)(**(vars(loss) | parameters))
    a, y = np.random.default_rng(0).normal(size=(2, 50))
    assert_allclose(scaled.value(10 * a, 10 * y), 10**loss.degree * loss.value(a, y), atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=repr)
def test_the_curvature_of_a_loss(loss):
    if loss.curvature_range[1] == loss.lipschitz == np.inf:
        with pytest.raises(ValueError, match="give the curvature"):
            _ = loss.typical_curvature
    else:
        assert loss.typical_curvature == (loss.curvature_range[1] if loss.curvature_range[1] < np.inf else 1.0)


def test_what_is_left_of_weights_where_values_grow():
    w, h, m, M = np.array([2.0]), np.array([8.0]), np.array([2.0]), np.array([4.0])
    assert_array_equal(AdaGrad().shrunk(w, h, m, M), w)
    assert_array_equal(NormalizedAdaGrad().shrunk(w, h, m, M), [1.0])
    left = DiagonalNewton().shrunk(w, h, m, M)
    assert_allclose(left * (h - m**2 + M**2), w * h)  # h w is unchanged


@every
def test_by_itself_it_is_the_squared_euclidean_distance(divergence):
    u, w = np.array([1.0, 2.0]), np.array([0.5, -1.0])
    assert divergence.divergence(u, w) == SquaredEuclidean().divergence(u, w)
    assert divergence.at([1.0, 4.0]) == WeightedSquaredEuclidean([1.0, 4.0])
    assert divergence.adaptive and not SquaredEuclidean().adaptive
    assert isinstance(divergence, AdaptiveDivergence) and type(divergence) in DIVERGENCES.values()
    with pytest.raises(ValueError, match="is adaptive"):
        divergence.smoothness(1.0)
    with pytest.raises(ValueError, match="is adaptive"):
        divergence.row_size(u)


def test_the_diagonal_needs_a_curvature():
    with pytest.raises(ValueError, match="depends on the loss"):
        DiagonalNewton().metric([[1.0]], [1.0])
