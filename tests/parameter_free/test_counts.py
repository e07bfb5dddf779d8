"""Counts, gamma and Tweedie targets: right totals, and as good as one second-order model of the same loss."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from onlinebregman._kernels.learners.hedge import Hedge
from onlinebregman._kernels.learners.linked_mixer import LinkedMixer
from onlinebregman._kernels.learners.stack import COMBINATIONS, Stack
from robust_replica import RobustScale
from scipy.optimize import brentq
from sklearn.linear_model import PoissonRegressor

from onlinebregman import ForwardRegressor, ParameterFreeRegressor
from onlinebregman._online.compiled import make_loss
from onlinebregman.losses import PoissonLoss, TweedieLoss, resolve_loss


def stream(loss, mean, n=3000, seed=0, claims=0.5):
    """Rows, targets of this mean, weights (exposures of counts per unit of exposure), and the expected targets."""
    rng = np.random.default_rng(seed)
    X = np.c_[rng.normal(size=n), 0.01 * rng.normal(size=n) + 5, rng.uniform(0, 100, n), rng.random(n) < 0.3]
    expected = np.exp((X - X.mean(axis=0)) @ [0.5, 20.0, 0.01, 0.7])
    expected *= mean / expected.mean()
    if loss == "poisson":
        exposure = np.clip(rng.lognormal(-0.5, size=n), 0.01, 20.0)
        return X, rng.poisson(exposure * expected) / exposure, exposure, expected
    if loss == "gamma":
        return X, rng.gamma(2.0, expected / 2.0), np.ones(n), expected
    numbers = rng.poisson(claims * np.sqrt(expected / mean))
    return X, rng.gamma(np.maximum(numbers, 1), np.sqrt(expected * mean) / claims) * (numbers > 0), np.ones(n), expected


def progressive(model, X, y, weights, expected):
    """Total over the expected one, and mean deviance, of the last half."""
    predictions = np.full(len(y), np.nan)
    for rows in np.split(np.arange(len(y)), np.arange(1, len(y), 20)):
        if rows[0] > len(y) // 2:
            predictions[rows] = model.predict(X[rows])
        model.partial_fit(X[rows], y[rows], weights[rows])
    late = np.isfinite(predictions)
    losses = resolve_loss(model.loss).value(np.log(predictions[late]), y[late])
    return (weights * predictions)[late].sum() / (weights * expected)[late].sum(), (weights[late] * losses).mean()


@pytest.mark.parametrize(
    "loss, mean", [("poisson", 0.3), ("poisson", 20.0), ("gamma", 1.0), ("gamma", 1e3), ("tweedie", 100.0)]
)
def test_totals_are_right_and_the_deviance_that_of_a_second_order_model(loss, mean):
    rows = stream(loss, mean)
    total, deviance = progressive(ParameterFreeRegressor(loss=loss, random_features=32), *rows)
    _, expected = progressive(ForwardRegressor(loss=loss, standardize=True), *rows)
    assert deviance < 1.015 * expected
    assert abs(total - 1) < (0.1 if loss == "tweedie" else 0.04)


@pytest.mark.parametrize("mean", [1.0, 100.0])
def test_totals_do_not_remember_how_far_members_had_to_go(mean):
    rows = stream("tweedie", mean, seed=3, claims=0.15)
    total, _ = progressive(ParameterFreeRegressor(loss="tweedie", random_features=0, thresholds=False), *rows)
    assert abs(total - 1) < 0.1


def test_exposures_are_weights_of_rates():
    rng = np.random.default_rng(1)
    X, exposures = rng.normal(size=(6000, 3)), np.clip(rng.lognormal(size=6000), 0.01, 20.0)
    rates = rng.poisson(exposures * np.exp(X @ [0.5, -0.5, 0.0] + 1.0)) / exposures
    likeliest = PoissonRegressor(alpha=1e-9, max_iter=1000, tol=1e-9).fit(X, rates, exposures).predict(X)
    for model in (
        ForwardRegressor(loss="poisson", standardize=True, penalize_intercept=False),
        ParameterFreeRegressor(loss="poisson", random_features=0, thresholds=False),
    ):
        ratio = model.partial_fit(X, rates, exposures).predict(X) / likeliest
        assert abs(np.average(ratio, weights=exposures) - 1) < 0.02
        assert np.sqrt(np.average((ratio - 1) ** 2, weights=exposures)) < 0.06


def test_rows_of_several_counts_are_learned_by_first_order_members():
    X, y, _, _ = stream("poisson", 2.0, 100)
    model = ParameterFreeRegressor(loss="poisson", random_features=0).fit(X, np.c_[y, y])
    assert model.predict(X).shape == (100, 2)
    assert not any(isinstance(member, ForwardRegressor) for member in model.estimators_)


def implicit(loss, a, q, y):
    """The function whose root is the score after an implicit step."""
    return lambda z: z - a + q * loss.derivative(z, y)


@pytest.mark.parametrize("loss", [PoissonLoss(), TweedieLoss(1.5)])
def test_combinations_make_implicit_second_order_steps(loss):
    """Two experts; forward predictions of (p - m) / unit, ridge regression of linearised targets."""
    rng = np.random.default_rng(0)
    scores, y = rng.normal(size=(60, 2)), rng.poisson(2.0, size=60).astype(float)
    mixer = LinkedMixer(Hedge(2), make_loss(loss), Stack(2, None, 0.0), None, None, True)
    state = [(alpha * np.eye(2), np.zeros(2)) for alpha, _ in COMBINATIONS[:2]]
    for s, target in zip(scores, y, strict=True):
        stats, unit = mixer.target_stats, mixer.units[0]
        p = np.clip(s + stats["shift"], stats["lo"], stats["hi"]) if stats["weight"] else np.zeros(2)
        m = p @ mixer.hedge.weights
        forecasts = [m]
        for j, ((A, b), (_, gamma)) in enumerate(zip(state, COMBINATIONS, strict=False)):
            x = (p - m) / unit if unit else np.zeros(2)
            A, b = gamma * A, gamma * b
            step, q = np.linalg.solve(A, b) @ x, x @ np.linalg.solve(A, x)
            forecast = m + unit * step / (1 + q)
            forecasts.append(np.clip(forecast, stats["lo"], stats["hi"]) if unit else m)
            if unit:
                a = m + unit * step
                z = brentq(
                    lambda z, a=a, q=q, target=target: z - a + q * loss.derivative(z, target),
                    a - 50,
                    a + 50,
                    xtol=1e-14,
                )
                h = loss.curvature(z, target)
                state[j] = A + h * np.outer(x, x), b + h * (z - loss.derivative(z, target) / h - m) / unit * x
        assert_allclose(mixer.predict(s[np.newaxis]), [[mixer.stack.hedge.weights @ forecasts]], rtol=1e-8)
        mixer.learn(s[np.newaxis], np.array([target]))
    for coef, (A, b) in zip(mixer.stack.coef, state, strict=True):
        assert_allclose(coef, np.linalg.solve(A, b), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("absurd", [[0], [0, 1], [2]])
def test_predictions_are_about_the_mean_of_targets_of_which_absurd_ones_are_forgotten(absurd):
    """As soon as more targets show which they were, those that were learned count as the scale's limit."""
    y = np.random.default_rng(0).poisson(5.0, size=40) + 1.0
    y[absurd] = 1e6
    mixer, scale = LinkedMixer(Hedge(2), make_loss(PoissonLoss()), None, None, None, True), RobustScale()
    mean = largest = spread = 0.0
    for n, target in enumerate(y):
        learned = scale.learn(target)
        if scale.known and len(scale.moves) <= 20 and largest > scale.hi:
            mean, largest, spread = scale.clip(mean), scale.hi, 1 / n
        mean, largest = mean + (learned - mean) / (n + 1), max(largest, learned)
        part = learned / (mean * (n + 1))
        spread = spread * (1 - part) ** 2 + part**2
        mixer.learn(np.zeros((1, 2)), np.array([target]))
        stats = mixer.target_stats
        assert_allclose([stats["lo"], stats["hi"]], np.log(mean) + np.log(spread) * np.array([1, -1]), rtol=1e-9)
    assert mean < 10.0


@pytest.mark.parametrize("loss, first, later", [("poisson", 2.0, 0.0), ("gamma", 1e-9, 1.0), ("tweedie", 5.0, 1e4)])
@pytest.mark.parametrize("n", [2, 30])
def test_equal_targets_say_nothing_about_the_size_of_losses(loss, first, later, n):
    """The losses of predictions that do not depend on members are 0, and no unit for the combinations."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.r_[np.full(n, first), np.where(np.arange(60 - n) % 3 == 1, first, later)]
    model = ParameterFreeRegressor(loss=loss, random_features=0, thresholds=False).partial_fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert model.cumulative_loss_ <= model.cumulative_losses_.min() + model.regret_bound_
