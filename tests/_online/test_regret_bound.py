"""The bound on the regret itself for decreasing rates: the terms of the certificate divided by their rates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from raw import MirrorDescentRegressor
from regret_cases import Rising

from onlinebregman import ImplicitGDRegressor


def stream(seed, n=3, T=40):
    rng = np.random.default_rng(seed)
    X, u = rng.normal(size=(T, n)), rng.uniform(0.1, 0.5, size=n)
    return X, X @ u + rng.normal(size=T), rng.uniform(0.2, 2.0, size=T), u


def test_the_terms_are_those_of_the_definition():
    """Explicit steps without a constraint: S' = sum D(w_t, w_{t+1}) / eta_t = sum eta_t (a - y)^2 x.x / 2."""
    X, y, weights, u = stream(1)
    model = ImplicitGDRegressor(
        update="explicit", eta0=0.05, learning_rate="invscaling", power_t=0.5, fit_intercept=False, track_regret=True
    )
    w, slack, largest = np.zeros(3), 0.0, 0.0
    for t, (x, target, weight) in enumerate(zip(X, y, weights, strict=True), 1):
        eta, residual = 0.05 / np.sqrt(t), x @ w - target
        largest = max(largest, ((u - w) ** 2).sum() / 2)
        slack += eta * weight**2 * residual**2 * (x @ x) / 2
        w = w - eta * weight * residual * x
    model.partial_fit(X, y, sample_weight=weights)
    first, last = 0.05, 0.05 / np.sqrt(len(y))
    largest = max(largest, ((u - w) ** 2).sum() / 2)
    expected = (u @ u) / 2 / first - ((u - w) ** 2).sum() / 2 / last + largest * (1 / last - 1 / first) + slack
    assert_allclose(model.regret_bound(u, largest_divergence=largest), expected, rtol=1e-12)


def test_what_it_refuses():
    X, y, _, u = stream(4)
    model = ImplicitGDRegressor(learning_rate="invscaling", eta0=0.1, power_t=0.5)
    with pytest.raises(ValueError, match="set track_regret=True"):
        model.partial_fit(X, y).regret_bound(u)
    model = ImplicitGDRegressor(learning_rate="invscaling", eta0=0.1, power_t=0.5, track_regret=True).partial_fit(X, y)
    for largest in (None, 1e-3, np.inf):
        with pytest.raises(ValueError, match=r"largest_divergence must be a bound on D\(u, w_t\) for all t"):
            model.regret_bound(u, largest_divergence=largest)
    model = ImplicitGDRegressor(learning_rate=Rising(), track_regret=True).partial_fit(X, y)
    with pytest.raises(ValueError, match="if rates increase during the run; use"):
        model.regret_bound(u, largest_divergence=100.0)
    adaptive = MirrorDescentRegressor(divergence="adagrad", learning_rate="invscaling", eta0=1.0, track_regret=True)
    with pytest.raises(ValueError, match=r"the rates of AdaGrad\(.*\) are not constant"):
        adaptive.partial_fit(X, y).regret_bound(u, largest_divergence=100.0)
