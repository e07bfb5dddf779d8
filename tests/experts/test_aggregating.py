"""The Aggregating Algorithm for the squared loss: its formula, its bound on every stream, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from onlinebregman import ExpertMixtureRegressor
from onlinebregman.reference import aggregate, share_update

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows


def aggregating(lo=0.0, hi=1.0, **parameters):
    parameters = {"learning_rate": "theory", **parameters}
    return ExpertMixtureRegressor(strategy="aggregating", data_bounds={"y": (lo, hi)}, **parameters)


def replica(X, y, lo, hi, weights, prior, share, rate):
    """Forecasts, losses and final weights by the formulas."""
    v, forecasts, own, experts = np.array(prior), [], 0.0, np.zeros(X.shape[1])
    for p, target, weight in zip(np.clip(X, lo, hi), y, weights, strict=True):
        a = aggregate(v, p, lo, hi)
        losses = weight * (p - target) ** 2 / 2
        forecasts.append(a)
        if weight == 0:  # the row is ignored, and no weight is shared
            continue
        own, experts = own + weight * (a - target) ** 2 / 2, experts + losses
        v = share_update(v, losses, rate, prior, share)
    return np.array(forecasts), own, experts, v


@st.composite
def streams(draw):
    """(X, y) within a range [lo, hi], or forecasts beyond it: noise, extremes, or an adversary of the mixture."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n_rows, n_experts = draw(st.integers(1, 60)), draw(st.integers(1, 6))
    lo, length = draw(st.sampled_from([-3.0, 0.0, 100.0])), draw(st.sampled_from([0.01, 1.0, 50.0]))
    X, y = rng.uniform(size=(n_rows, n_experts)), rng.uniform(size=n_rows)
    if draw(st.booleans()):
        X, y = np.rint(X), np.rint(y)
    if draw(st.booleans()):
        X = 2 * X - 0.5
    if draw(st.booleans()):  # the end at which the mixture loses most, beyond what the weights say it may
        v = np.full(n_experts, 1 / n_experts)
        for t, p in enumerate(np.clip(X, 0, 1)):
            both = [np.exp(-2 * (p - end) ** 2) for end in (0, 1)]
            a = 0.5 + np.log((v @ both[1]) / (v @ both[0])) / 4
            y[t] = float(a < 0.5) if v.max() < 0.9 else float(p[v.argmax()] < 0.5)
            v = v * np.exp(-2 * (p - y[t]) ** 2)
            v = v / v.sum()
    hi = lo + length
    return lo + length * X, np.clip(lo + length * y, lo, hi), lo, hi


@settings(max_examples=60)
@given(streams(), st.integers(0, 10**6), st.sampled_from([0.0, 0.05]), st.sampled_from(["theory", 0.3, 30.0]))
def test_the_numbers_are_those_of_the_formulas(data, seed, share, rate):
    X, y, lo, hi = data
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.ones(X.shape[1])) + 1e-3
    prior, weights = prior / prior.sum(), rng.choice([0.0, 0.3, 1.0, 2.0], size=len(y))
    rate = rate if rate == "theory" else rate / (hi - lo) ** 2
    number = 4 / (hi - lo) ** 2 if rate == "theory" else rate
    model = aggregating(lo, hi, learning_rate=rate, share=share, prior=prior)
    forecasts, own, experts, v = replica(X, y, lo, hi, weights, prior, share, number)
    near = {"rtol": 1e-8, "atol": 1e-10 * (hi - lo) ** 2}
    for t in range(len(y)):
        if model.__sklearn_is_fitted__():
            assert_allclose(model.predict(X[t : t + 1]), forecasts[t : t + 1], rtol=0, atol=1e-9 * (hi - lo))
        model.partial_fit(X[t : t + 1], y[t : t + 1], weights[t : t + 1])
    assert_allclose(model.cumulative_loss_, own, **near)
    assert_allclose(model.expert_losses_, experts, **near)
    assert_allclose(model.weights_, v, rtol=1e-8, atol=1e-12)
    whole = aggregating(lo, hi, learning_rate=rate, share=share, prior=prior).partial_fit(X, y, weights)
    assert whole.cumulative_loss_ == model.cumulative_loss_
    assert_array_equal(whole.weights_, model.weights_)


def test_a_single_expert_is_followed_and_forecasts_beyond_the_range_are_clipped():
    X, y = np.array([[0.2], [0.9], [-5.0], [7.0]]), np.array([0.0, 1.0, 0.5, 1.0])
    model = aggregating().partial_fit(X, y)
    clipped = np.clip(X[:, 0], 0, 1)
    assert_allclose(model.predict(X), clipped, atol=1e-15)
    assert_allclose(model.cumulative_loss_, ((clipped - y) ** 2).sum() / 2)
    assert_allclose(model.expert_losses_, model.cumulative_loss_)
    assert model.regret_bound_ == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("history", [0, 5])
@pytest.mark.parametrize("target, said", [(1.5, "1.5"), (-1e300, "-1e\\+300"), (np.nextafter(1, 2), r"1\.0{14}\d+")])
def test_targets_beyond_the_range_are_refused(history, target, said, unchanged):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(30, 3)), rng.uniform(size=30)
    model = aggregating(history=history).partial_fit(X, y)
    wrong = y.copy()
    wrong[7] = target
    with unchanged(model, rf"row 7 must be within data_bounds\['y'\] = \(0\.0, 1\.0\); got {said}\. .*data_bounds"):
        model.partial_fit(X, wrong)


def test_the_declared_range_is_that_with_which_learning_started(unchanged):
    X, y = np.random.default_rng(0).uniform(size=(2, 30, 3))
    model = aggregating().partial_fit(X, y[:, 0]).set_params(data_bounds={"y": (-9, 9)}, strategy="average")
    with unchanged(model, "cannot take effect in mid-stream"):
        model.partial_fit(X, y[:, 1])


@pytest.mark.parametrize(
    "parameters, match",
    [
        ({"data_bounds": None}, "strategy='aggregating' needs data_bounds with y"),
        ({"data_bounds": None, "learning_rate": 1.0}, "strategy='aggregating' needs data_bounds with y"),
        ({"data_bounds": {"y": (1, 1)}}, "needs data_bounds with y"),
        ({"data_bounds": {"y": (0, np.inf)}, "learning_rate": "adaptive"}, "needs data_bounds with y"),
        ({"data_bounds": {"y": np.float32([0, np.inf])}}, "needs data_bounds with y"),
        ({"loss": "absolute_error"}, "loss must be 'squared_error' with strategy='aggregating'"),
        ({"share": 0.1, "learning_rate": "adaptive"}, "must be a number or 'theory' with share = 0.1"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(parameters, match, unchanged):
    model = aggregating().set_params(**parameters)
    for method in (model.fit, model.partial_fit):
        with unchanged(model, match):
            method([[0.0, 1.0]], [0.5])
