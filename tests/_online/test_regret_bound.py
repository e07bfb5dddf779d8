"""The bound on the regret itself for decreasing rates: the terms of the certificate divided by their rates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from regret_cases import Rising

from onlinebregman import BurgRegressor, EGRegressor, ImplicitGDRegressor
from onlinebregman.constraints import Box, L2Ball
from onlinebregman.divergences import RelativeEntropy, SquaredEuclidean


def stream(seed, n=3, T=40):
    rng = np.random.default_rng(seed)
    X, u = rng.normal(size=(T, n)), rng.uniform(0.1, 0.5, size=n)
    return X, X @ u + rng.normal(size=T), rng.uniform(0.2, 2.0, size=T), u


def squared(a, y):
    return (a - y) ** 2 / 2


GEOMETRIES = {
    "euclid in a ball": (SquaredEuclidean(), L2Ball(1.5), lambda u: (np.linalg.norm(u) + 1.5) ** 2 / 2),
    "entropy in a box": (
        RelativeEntropy(),
        Box(0.05, 2.0),
        lambda u: sum(max(RelativeEntropy().divergence([v], [end]) for end in (0.05, 2.0)) for v in u),
    ),
}


@pytest.mark.parametrize("geometry", GEOMETRIES)
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    update=st.sampled_from(["implicit", "explicit", "importance"]),
    power=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    penalty=st.sampled_from([None, "l1", "l2"]),
)
def test_regret_is_below_its_bound_which_adds_up_the_identity(geometry, seed, update, power, penalty):
    divergence, constraint, largest = GEOMETRIES[geometry]
    X, y, weights, u = stream(seed)
    model = MirrorDescentRegressor(
        divergence=divergence,
        constraint=constraint,
        update=update,
        learning_rate="invscaling",
        power_t=power,
        eta0=0.3,
        penalty=penalty,
        alpha=0.05,
        fit_intercept=False,
        track_regret=True,
    )
    positions = []
    for x, target, weight in zip(X, y, weights, strict=True):
        model.partial_fit(x[None], [target], sample_weight=[weight])
        positions.append(model.coef_.copy())
    B = largest(u)
    assert max(divergence.divergence(u, w) for w in positions) <= B
    bound = model.regret_bound(u, largest_divergence=B if power else None)
    regret = model.cumulative_loss_ - weights @ squared(X @ u, y)
    assert regret <= bound + 1e-9 * (1 + abs(bound))


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


def test_under_a_constant_rate_it_is_the_certificate_over_the_rate():
    X, y, weights, u = stream(2)
    models = [
        EGRegressor(weights="positive", eta0=0.1, track_regret=True, fit_intercept=False),
        BurgRegressor(eta0=0.1, track_regret=True, fit_intercept=False),
        MirrorDescentRegressor(divergence="p_norm", eta0=0.1, learning_rate="constant", track_regret=True),
        MirrorDescentRegressor(divergence="adagrad", eta0=0.1, learning_rate="constant", track_regret=True),
    ]
    for model in models:
        model.set_params(learning_rate="constant").partial_fit(np.abs(X), y, sample_weight=weights)
        assert_allclose(model.regret_bound(u), model.regret_certificate(u) / 0.1, rtol=1e-10)


@pytest.mark.parametrize("multi_class", ["ovr", "multinomial"])
def test_classifiers_have_one_for_each_loss(multi_class):
    rng = np.random.default_rng(3)
    X, labels = rng.normal(size=(60, 4)), rng.integers(0, 3, size=60)
    model = MirrorDescentClassifier(
        divergence=SquaredEuclidean(),
        constraint=L2Ball(1.0),
        multi_class=multi_class,
        learning_rate="invscaling",
        eta0=0.3,
        power_t=0.5,
        fit_intercept=False,
        track_regret=True,
    )
    losses = np.zeros(3)
    u = rng.uniform(-0.5, 0.5, size=(3, 4)) / 2
    for x, label in zip(X, labels, strict=True):
        if hasattr(model, "coef_"):
            scores, best = model.coef_ @ x, u @ x
        else:
            scores, best = np.zeros(3), u @ x
        signs = np.where(np.arange(3) == label, 1.0, -1.0)
        if multi_class == "ovr":
            losses += np.logaddexp(0, -signs * scores) - np.logaddexp(0, -signs * best)
        else:
            losses[0] += np.logaddexp.reduce(scores) - scores[label] - np.logaddexp.reduce(best) + best[label]
        model.partial_fit(x[None], [label], classes=[0, 1, 2])
    bound = model.regret_bound(u, largest_divergence=(np.linalg.norm(u, axis=1) + 1) ** 2 / 2)
    assert bound.shape == ((3,) if multi_class == "ovr" else (1,))
    assert (losses[: len(bound)] <= bound).all()


def test_it_is_of_the_order_of_the_root_of_the_number_of_rows():
    bounds = []
    for T in (1000, 16000):
        X, y, _, _ = stream(5, T=T)
        u = np.full(3, 0.3)
        model = MirrorDescentRegressor(
            divergence=SquaredEuclidean(),
            update="explicit",
            loss="absolute_error",
            constraint=L2Ball(1.5),
            learning_rate="invscaling",
            power_t=0.5,
            eta0=0.5,
            fit_intercept=False,
            track_regret=True,
        )
        model.partial_fit(X, y)
        bounds.append(model.regret_bound(u, largest_divergence=(np.linalg.norm(u) + 1.5) ** 2 / 2))
    assert 3.5 < bounds[1] / bounds[0] < 4.5  # sqrt(16)


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
