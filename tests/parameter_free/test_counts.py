"""Counts, gamma and Tweedie targets: as good as one second-order model of the same loss."""

import numpy as np
import pytest
from sklearn.linear_model import PoissonRegressor

from onlinebregman import ForwardRegressor, ParameterFreeRegressor
from onlinebregman.losses import resolve_loss


def stream(loss, mean, n=3000, seed=0):
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
    claims = rng.poisson(0.5 * np.sqrt(expected / mean))
    return X, rng.gamma(np.maximum(claims, 1), 2.0 * np.sqrt(expected * mean)) * (claims > 0), np.ones(n), expected


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


@pytest.mark.parametrize("loss, mean", [("poisson", 0.3), ("poisson", 20.0), ("gamma", 1.0), ("gamma", 1e3)])
def test_the_deviance_is_that_of_a_second_order_model(loss, mean):
    rows = stream(loss, mean)
    _, deviance = progressive(ParameterFreeRegressor(loss=loss, random_features=32), *rows)
    _, expected = progressive(ForwardRegressor(loss=loss, standardize=True), *rows)
    assert deviance < 1.015 * expected


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
