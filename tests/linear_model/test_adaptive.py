"""Adaptive geometries: their scales and errors. Against plain formulas: test_adaptive_penalised.py."""

import numpy as np
import pytest
from adaptive_replica import DIVERGENCES
from numpy.testing import assert_allclose
from raw import MirrorDescentRegressor
from replica import learn, model_of, stream

from onlinebregman.divergences import DiagonalNewton

every = pytest.mark.parametrize("name", DIVERGENCES)
scale_free = pytest.mark.parametrize("name", ["normalized_adagrad", "diagonal_newton"])


# --- scales -----------------------------------------------------------------------------------------------------------


@scale_free
@pytest.mark.parametrize("target", [0.0, 5.0, -1e8])
def test_constant_targets_are_learned(name, target):
    X = np.random.default_rng(3).normal(size=(50, 3))
    model = MirrorDescentRegressor(divergence=name).partial_fit(X, np.full(50, target))
    assert_allclose(model.predict(X), target, rtol=1e-9)
    explicit = MirrorDescentRegressor(divergence=name, update="explicit", eta0=0.1, fit_intercept=False)
    assert np.isfinite(explicit.partial_fit(X, np.full(50, target)).coef_).all()


def test_a_value_larger_than_any_before_is_predicted_as_the_largest():
    X = np.random.default_rng(5).uniform(-1, 1, size=(100, 2))
    X[0] = 1.0
    model = MirrorDescentRegressor(divergence="normalized_adagrad").partial_fit(X, X @ [1.0, 2.0])
    assert_allclose(model.predict([[50.0, -3.0]]), model.predict([[1.0, -1.0]]))
    with pytest.raises(ValueError, match=r"infinity|NaN"):
        model.predict([[np.inf, 0.0]])


# --- kinks ------------------------------------------------------------------------------------------------------------

KINKED = ["hinge", "perceptron", "absolute_error", "epsilon_insensitive", "quantile"]


@every
@pytest.mark.parametrize("update", ["implicit", "importance", "explicit"])
@pytest.mark.parametrize("loss", KINKED)
def test_a_row_whose_weight_is_almost_0_is_learned(name, update, loss):
    """The rate times the weight is 0 in floating point."""
    X, y = stream(loss, np.random.default_rng(0), 5, 3)
    model = learn(model_of(name, loss, update=update), X, y, np.full(5, 5e-324))
    assert model.t_ == 5
    assert_allclose(np.ravel(model.coef_), 0.0, atol=1e-300)


# --- the estimators' parameters ---------------------------------------------------------------------------------------


def test_curvature_is_the_losss_or_given():
    X, y = [[1.0, 2.0]], [1.0]
    with pytest.raises(ValueError, match="give the curvature"):
        MirrorDescentRegressor(divergence="diagonal_newton", loss="poisson").partial_fit(X, y)
    model = MirrorDescentRegressor(divergence=DiagonalNewton(2.0), loss="poisson").partial_fit(X, y)
    assert_allclose(model.metric_, [3.0, 12.0])
    with pytest.raises(ValueError, match=r"curvature must be a positive finite number.*; got 0"):
        DiagonalNewton(curvature=0)


def test_sums_overflow_with_an_error():
    for name in DIVERGENCES:
        model = MirrorDescentRegressor(divergence=name).partial_fit([[1.0], [2.0]], [1.0, 2.0])
        with pytest.raises(ValueError, match=r"row 0 \(target 1e\+200\).*[Ss]cale features and targets"):
            model.partial_fit([[1.0]], [1e200])


@pytest.mark.parametrize("divergence", ["adagrad", "normalized_adagrad"])
def test_targets_whose_squares_underflow_are_refused(divergence, unchanged):
    X = np.random.default_rng(0).normal(size=(200, 3))
    model = MirrorDescentRegressor(divergence=divergence)
    for scale in (1e-156, 1e-300):
        with unchanged(model, rf"above 1.5e-154, .* in row {np.abs(X[:, 0]).argmax()}. Scale targets"):
            model.partial_fit(X, scale * X[:, 0])
    assert model.partial_fit(X, 1e-150 * X[:, 0]).partial_fit(X[:1], [1e-200]).score(X, 1e-150 * X[:, 0]) > 0.9
