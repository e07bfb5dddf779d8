"""Adaptive geometries: the kernel against a plain implementation of the formulas, and the laws of the theory."""

import numpy as np
import pytest
from adaptive_replica import DIVERGENCES, Replica
from numpy.testing import assert_allclose
from raw import MirrorDescentRegressor
from replica import LOSSES, MARGIN_LOSSES, learn, model_of, rows_that_end_on_kinks, stream
from scipy import sparse

from onlinebregman.constraints import L1Ball
from onlinebregman.divergences import DiagonalNewton
from onlinebregman.losses import LOSSES as OBJECTS

every = pytest.mark.parametrize("name", DIVERGENCES)
scale_free = pytest.mark.parametrize("name", ["normalized_adagrad", "diagonal_newton"])
DEVIANCES = ["poisson", "tweedie", "gamma"]


def start(loss, rng, n):
    return np.zeros(n) if loss in MARGIN_LOSSES else rng.normal(size=n) / n


# --- oracle -----------------------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss != "perceptron"])
@pytest.mark.parametrize("update", ["implicit", "explicit"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_kernel_gives_the_numbers_of_the_formulas(name, loss, update, fit_intercept):
    if name == "diagonal_newton" and loss in DEVIANCES:
        pytest.skip("half deviances have no bound on their curvature: refused, see below")
    rng = np.random.default_rng(len(loss))
    n = 6
    X, y = stream(loss, rng, 30, n, density=0.7)
    X *= np.exp(rng.normal(size=n))
    weights = rng.choice([0.5, 1.0, 2.0], size=len(y))
    eta0, init = (0.05 if loss in DEVIANCES else 0.7), start(loss, rng, n)
    model = model_of(
        name, loss, update=update, eta0=eta0, init=init, fit_intercept=fit_intercept, learning_rate="constant"
    )
    learn(model, X, y, weights)
    replica = Replica(name, loss, update, init, eta0, fit_intercept)
    for row in zip(X, y, weights, strict=True):
        replica.learn(*row)
    assert_allclose(np.ravel(model.coef_), replica.w[:n], rtol=1e-7, atol=1e-8)
    assert_allclose(model.intercept_, replica.w[n], rtol=1e-7, atol=1e-8)
    assert_allclose(model.cumulative_loss_, replica.total, rtol=1e-7)
    assert_allclose(np.ravel(model.metric_), replica.metric()[:n], rtol=1e-7)


# --- scales -----------------------------------------------------------------------------------------------------------


@scale_free
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber", "quantile", "log_loss"])
@pytest.mark.parametrize("layout", [np.array, sparse.csr_array])
def test_units_of_features_and_target_change_nothing(name, loss, layout):
    X, y = stream(loss, np.random.default_rng(2), 300, 8, density=0.8)
    units = 10.0 ** np.array([-6, 6, 0, 3, -3, 5, -1, 2])
    target = 1e6 if OBJECTS[loss].degree else 1.0
    scaled_loss = type(OBJECTS[loss])(epsilon=1.35e6) if loss == "huber" else loss
    model, scaled = (MirrorDescentRegressor(divergence=name, loss=kind) for kind in (loss, scaled_loss))
    model.partial_fit(layout(X), y)
    scaled.partial_fit(layout(X * units), y * target)
    assert_allclose(scaled.predict(layout(X * units)), model.predict(layout(X)) * target, rtol=1e-8)
    assert_allclose(scaled.coef_ * units, model.coef_ * target, rtol=1e-8)


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


def state(model, order=slice(None)):
    """Weights and metric, in the order of the original columns, and the intercept."""
    found = np.empty((2, model.n_features_in_))
    found[:, order] = np.ravel(model.coef_), np.ravel(model.metric_)
    return np.r_[found.ravel(), np.ravel(model.intercept_)]


@every
@pytest.mark.parametrize("update", ["implicit", "importance", "explicit"])
@pytest.mark.parametrize("loss", KINKED)
@pytest.mark.parametrize("integers", [False, True])
def test_scores_within_rounding_of_a_kink_are_on_it(name, update, loss, integers):
    """Otherwise the last bit of a score decides whether a row counts in the metric."""
    for seed in range(8):
        X, y, order = rows_that_end_on_kinks(loss, seed, integers=integers)
        model, permuted, rows = (model_of(name, loss, update=update) for _ in range(3))
        expected = state(learn(model, X, y))
        for found in (state(learn(permuted, X[:, order], y), order), state(learn(rows, sparse.csr_array(X), y))):
            assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max(), err_msg=f"seed {seed}")


@every
@pytest.mark.parametrize("update", ["implicit", "importance", "explicit"])
@pytest.mark.parametrize("loss", KINKED)
def test_a_row_whose_weight_is_almost_0_is_learned(name, update, loss):
    """The rate times the weight is 0 in floating point."""
    X, y = stream(loss, np.random.default_rng(0), 5, 3)
    model = learn(model_of(name, loss, update=update), X, y, np.full(5, 5e-324))
    assert model.t_ == 5
    assert_allclose(np.ravel(model.coef_), 0.0, atol=1e-300)


# --- theory -----------------------------------------------------------------------------------------------------------


# --- a stream and its calls -------------------------------------------------------------------------------------------


# --- the estimators' parameters ---------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"signed": True}, "signed"),
        ({"constraint": L1Ball(1.0)}, "UpperBound"),
        ({"learning_rate": "theory", "data_bounds": {"x": 1.0, "u": 1.0}}, "is adaptive"),
    ],
)
def test_what_does_not_go_with_them_is_refused(name, parameters, match):
    with pytest.raises(ValueError, match=match):
        MirrorDescentRegressor(divergence=name, **parameters).partial_fit([[1.0, 2.0]], [1.0])


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
