"""Adaptive geometries: the kernel against a plain implementation of the formulas, and the laws of the theory."""

import numpy as np
import pytest
from adaptive_replica import DIVERGENCES, Replica
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from replica import LOSSES, MARGIN_LOSSES, VALUES, learn, model_of, rows_that_end_on_kinks, stream
from scipy import sparse

from onlinebregman import ImplicitGDRegressor
from onlinebregman.constraints import L1Ball, UpperBound
from onlinebregman.divergences import DiagonalNewton, WeightedSquaredEuclidean
from onlinebregman.losses import LOSSES as OBJECTS

every = pytest.mark.parametrize("name", DIVERGENCES)
scale_free = pytest.mark.parametrize("name", ["normalized_adagrad", "diagonal_newton"])
seeds = st.integers(0, 2**32 - 1)
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


@every
def test_dense_and_sparse_rows_give_the_same_numbers(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 40)) * (rng.uniform(size=(300, 40)) < 0.2)
    y = X @ rng.normal(size=40)
    settings = {"divergence": name, "track_regret": True, "average": 5, "constraint": UpperBound(1.5)}
    dense, rows = MirrorDescentRegressor(**settings), MirrorDescentRegressor(**settings)
    dense.partial_fit(X, y)
    for start in range(0, 300, 50):
        rows.partial_fit(sparse.csr_array(X[start : start + 50]), y[start : start + 50])
    for attribute in ("coef_", "intercept_", "metric_", "cumulative_loss_", "weighted_loss_"):
        assert_allclose(getattr(rows, attribute), getattr(dense, attribute), rtol=1e-9, atol=1e-12)
    u = rng.normal(size=40)
    assert_allclose(rows.regret_certificate(u.clip(max=1.5)), dense.regret_certificate(u.clip(max=1.5)), rtol=1e-9)


@every
def test_predictions_are_those_before_each_row_is_learned(name):
    rng = np.random.default_rng(1)
    X = rng.standard_t(2, size=(200, 5))  # large values come late
    y = X @ np.ones(5)
    model, total = MirrorDescentRegressor(divergence=name), 0.0
    model.partial_fit(X[:1], y[:1])
    total = model.cumulative_loss_
    for x, target in zip(X[1:], y[1:], strict=True):
        total += (model.predict(x[None])[0] - target) ** 2 / 2
        model.partial_fit(x[None], np.array([target]))
    assert_allclose(model.cumulative_loss_, total, rtol=1e-12)
    assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_, rtol=1e-9, atol=1e-9)


# --- scales -----------------------------------------------------------------------------------------------------------


@scale_free
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber", "quantile", "log_loss"])
@pytest.mark.parametrize("layout", [np.array, sparse.csr_array])
def test_units_of_features_and_target_change_nothing(name, loss, layout):
    rng = np.random.default_rng(2)
    X, y = stream(loss, rng, 300, 8, density=0.8)
    units = 10.0 ** np.array([-6, 6, 0, 3, -3, 5, -1, 2])
    target = 1e6 if OBJECTS[loss].degree else 1.0
    scaled_loss = type(OBJECTS[loss])(epsilon=1.35e6) if loss == "huber" else loss
    model, scaled = (MirrorDescentRegressor(divergence=name, loss=kind) for kind in (loss, scaled_loss))
    model.partial_fit(layout(X), y)
    scaled.partial_fit(layout(X * units), y * target)
    assert_allclose(scaled.predict(layout(X * units)), model.predict(layout(X)) * target, rtol=1e-8)
    assert_allclose(scaled.coef_ * units, model.coef_ * target, rtol=1e-8)


def test_plain_adagrad_depends_on_units():
    """Unlike the other adaptive divergences."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 2))
    small = MirrorDescentRegressor(divergence="adagrad").partial_fit(X, X[:, 0])
    large = MirrorDescentRegressor(divergence="adagrad").partial_fit(X * [1e-3, 1.0], X[:, 0])
    assert abs(large.coef_[0] * 1e-3 - small.coef_[0]) > 0.5


@scale_free
@pytest.mark.parametrize("target", [0.0, 5.0, -1e8])
def test_constant_targets_are_learned(name, target):
    X = np.random.default_rng(3).normal(size=(50, 3))
    model = MirrorDescentRegressor(divergence=name).partial_fit(X, np.full(50, target))
    assert_allclose(model.predict(X), target, rtol=1e-9)
    explicit = MirrorDescentRegressor(divergence=name, update="explicit", eta0=0.1, fit_intercept=False)
    assert np.isfinite(explicit.partial_fit(X, np.full(50, target)).coef_).all()


def test_targets_far_from_0_are_learned_as_if_they_were_near():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(500, 3))
    y = X @ [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=500)
    near, far = (MirrorDescentRegressor(divergence="normalized_adagrad").partial_fit(X, y + b) for b in (0.0, 1e5))
    assert_allclose(far.coef_, near.coef_, atol=0.1)
    assert_allclose(far.intercept_, 1e5, atol=1.0)


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


@every
@settings(max_examples=25)
@given(
    seed=seeds,
    update=st.sampled_from(["implicit", "explicit", "importance"]),
    loss=st.sampled_from(["squared_error", "log_loss", "absolute_error", "hinge", "huber"]),
    upper=st.sampled_from([None, 0.5]),
    fit_intercept=st.booleans(),
    on_kinks=st.booleans(),
)
def test_the_regret_certificate_holds_for_every_comparator(name, seed, update, loss, upper, fit_intercept, on_kinks):
    """From the row at which tracking starts, while the sizes of rows grow, or where equal rows end on kinks."""
    rng = np.random.default_rng(seed)
    X, y = stream(loss, rng, 50, 4, density=0.7)
    X *= np.exp(rng.normal(size=4)) * np.exp(np.linspace(0, 2, 50))[:, np.newaxis]
    if on_kinks:
        X, y, _ = (values[:50] for values in rows_that_end_on_kinks(loss, seed, n=4))
    weights = rng.choice([0.5, 1.0, 2.0], size=50)
    model = model_of(
        name, loss, update=update, eta0=0.3, fit_intercept=fit_intercept, learning_rate="constant",
        constraint=None if upper is None else UpperBound(upper),
    )  # fmt: skip
    learn(model, X[:11], y[:11], weights[:11])
    model.set_params(track_regret=True)
    for block in (slice(11, 12), slice(12, 50)):
        model.partial_fit(X[block], y[block], sample_weight=weights[block])
    comparators = [(rng.normal(size=4), float(rng.normal()) * fit_intercept) for _ in range(4)]
    comparators.append((np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])))
    rows = np.c_[X, np.full(50, float(fit_intercept))]
    rate = DIVERGENCES[name].rate
    etas = [0.3 * weights[t] * rate(rows[: t + 1], y[: t + 1], OBJECTS[loss], weights[: t + 1]) for t in range(11, 50)]
    weighted = float(np.ravel(model.weighted_loss_)[0])
    for u, b in comparators:
        u = u if upper is None else np.minimum(u, upper)
        scores = X[11:] @ u + b
        regret = weighted - sum(eta * float(VALUES[loss](a, t)) for eta, a, t in zip(etas, scores, y[11:], strict=True))
        bound = float(np.ravel(model.regret_certificate(u, b))[0])
        assert regret <= bound + 1e-9 * (abs(weighted) + abs(bound) + 1)


@every
def test_the_certificate_is_exact_where_losses_are_linear(name):
    """Explicit steps on the absolute loss while its sign never changes: both sides of the inequality are equal."""
    rng = np.random.default_rng(6)
    X, y = rng.uniform(size=(40, 3)), np.linspace(100.0, 101.0, 40)
    settings = {"loss": "absolute_error", "update": "explicit", "eta0": 1e-3, "fit_intercept": False}
    model = MirrorDescentRegressor(divergence=name, track_regret=True, **settings).partial_fit(X, y)
    etas = [1e-3 * DIVERGENCES[name].rate(X[: t + 1], y[: t + 1], OBJECTS["absolute_error"]) for t in range(40)]
    assert (model.predict(X) < 100).all()
    for u in rng.normal(size=(5, 3)):
        regret = model.weighted_loss_ - etas @ (y - X @ u)
        assert_allclose(model.regret_certificate(u), regret, rtol=1e-8, atol=1e-8)


@every
def test_averages_are_the_mean_of_the_weights_after_every_step(name):
    rng = np.random.default_rng(7)
    X = rng.standard_t(2, size=(100, 4)) * (rng.uniform(size=(100, 4)) < 0.6)
    y = X @ np.ones(4)
    plain, total = MirrorDescentRegressor(divergence=name), np.zeros(4)
    for x, target in zip(X, y, strict=True):
        plain.partial_fit(x[None], np.array([target]))
        total += plain.coef_
    for layout in (np.array, sparse.csr_array):
        averaged = MirrorDescentRegressor(divergence=name, average=True).partial_fit(layout(X), y)
        if name == "adagrad":  # the others also rescale weights of other columns, except in the average
            assert_allclose(averaged.coef_, total / 100, rtol=1e-9)
        assert np.isfinite(averaged.coef_).all()
        averaged.set_params(average=False).partial_fit(layout(X[:1]), y[:1])
        assert averaged.coef_.shape == (4,)


# --- a stream and its calls -------------------------------------------------------------------------------------------


@every
def test_tracking_regret_can_be_switched_while_averaging(name):
    rng = np.random.default_rng(9)
    X = rng.normal(size=(60, 3))
    plain = MirrorDescentRegressor(divergence=name, average=True).partial_fit(X, X[:, 0])
    model = MirrorDescentRegressor(divergence=name, average=True)
    for i, tracked in enumerate([False, True, True, False, True, False]):
        model.set_params(track_regret=tracked).partial_fit(X[10 * i : 10 * i + 10], X[10 * i : 10 * i + 10, 0])
    assert_array_equal(model.coef_, plain.coef_)


# --- the estimators' parameters ---------------------------------------------------------------------------------------


@every
def test_rates_are_what_suits_the_divergence(name):
    X = np.random.default_rng(10).normal(size=(50, 3))
    y = X[:, 0]
    auto = MirrorDescentRegressor(divergence=name).partial_fit(X, y)
    rate = DIVERGENCES[name].constant_rate
    named = MirrorDescentRegressor(divergence=name, learning_rate="constant", eta0=rate).partial_fit(X, y)
    assert_array_equal(auto.coef_, named.coef_)
    falling = MirrorDescentRegressor(divergence="squared_euclidean").partial_fit(X, y)
    assert_array_equal(falling.coef_, ImplicitGDRegressor(eta0=0.3).partial_fit(X, y).coef_)
    with pytest.raises(AttributeError, match="requires an adaptive divergence; got"):
        _ = falling.metric_


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


def test_each_class_has_a_metric_of_its_own():
    rng = np.random.default_rng(11)
    X, y = rng.normal(size=(90, 4)), rng.integers(3, size=90)
    model = MirrorDescentClassifier(divergence="adagrad").partial_fit(X, y, classes=[0, 1, 2])
    assert model.metric_.shape == (3, 4)
    one = MirrorDescentClassifier(divergence="adagrad").partial_fit(X, y == 2, classes=[False, True])
    assert_allclose(one.metric_, model.metric_[2:])
    assert_allclose(one.coef_, model.coef_[2:])


def test_upper_bounds_are_kept():
    X = np.random.default_rng(12).normal(size=(300, 3))
    for name in DIVERGENCES:
        model = MirrorDescentRegressor(divergence=name, constraint=UpperBound(0.5)).partial_fit(X, X @ [1.0, 0.2, -1.0])
        assert model.coef_.max() <= 0.5 and model.coef_[0] > 0.4


def test_the_divergence_at_a_metric_is_a_divergence():
    X = np.random.default_rng(13).normal(size=(30, 3))
    model = MirrorDescentRegressor(divergence="adagrad").partial_fit(X, X[:, 0])
    now = model.divergence_.at(model.metric_)
    assert isinstance(now, WeightedSquaredEuclidean)
    assert_allclose(now.hessian_inverse(model.coef_, [1.0, 1.0, 1.0]), 1 / model.metric_)


def test_sums_overflow_with_an_error():
    for name in DIVERGENCES:
        model = MirrorDescentRegressor(divergence=name).partial_fit([[1.0], [2.0]], [1.0, 2.0])
        with pytest.raises(ValueError, match="overflow"):
            model.partial_fit([[1.0]], [1e200])
