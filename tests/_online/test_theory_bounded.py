"""The bounds for weights below an upper bound: the single step, adversarial streams, and what the estimators refuse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raw import MirrorDescentRegressor
from sklearn.base import clone

from onlinebregman import BurgRegressor
from onlinebregman.constraints import UpperBound
from onlinebregman.divergences import Burg, RelativeEntropy
from onlinebregman.losses import EpsilonInsensitiveLoss, HingeLoss, LogisticLoss, SquaredLoss

DIVERGENCES = [Burg(), RelativeEntropy()]
UPDATES = ["explicit", "implicit", "importance"]


def bounded_model(divergence, upper, loss, **parameters):
    """BurgRegressor where it can do the same, so that both ways to set the bound are used."""
    if isinstance(divergence, Burg) and isinstance(loss, SquaredLoss):
        return BurgRegressor(upper_bound=upper, learning_rate="theory", **parameters)
    constraint = UpperBound(upper)
    return MirrorDescentRegressor(
        divergence=divergence, constraint=constraint, loss=loss, learning_rate="theory", **parameters
    )


def bounded_stream(
    divergence, update, loss, rng, *, n=3, rows=30, kind, noise, fit_intercept, heaviest=1.0, loss_bound
):
    """A stream chosen by an adversary who sees the weights; the model that learned it, and the comparator.

    "far": rows on which model and comparator are farthest apart, and targets away from the model. "crowd": one large
    feature whose weight is at its bound, many small ones whose weights are not. "random": random rows.
    """
    upper, x_bound = 10.0 ** rng.uniform(-1, 1), 0.7
    u = upper * np.where(rng.random(n) < 0.4, 1.0, 10.0 ** rng.uniform(-3, 0, n))
    start = upper * np.where(rng.random(n) < 0.3, 1.0, 10.0 ** rng.uniform(-3, 0, n))
    if kind == "crowd":
        u[:], start[0] = upper, upper
    v = float(rng.choice([-0.5, 0.5])) * fit_intercept
    weights = heaviest * rng.uniform(0.1, 1, size=rows) if heaviest != 1 else np.ones(rows)
    squared = isinstance(loss, SquaredLoss)
    bounds = {"x": x_bound, "divergence": max(divergence.divergence(u, start), 1e-9), "intercept": abs(v)}
    if squared:
        bounds["y"] = x_bound * np.linalg.norm(u) + abs(v) + noise
        bounds |= {"loss": weights.sum() * noise**2 / 2} if loss_bound else {}
    else:
        bounds["n_rows"] = rows
    model = bounded_model(
        divergence, upper, loss, update=update, data_bounds=bounds, init=start, fit_intercept=fit_intercept
    )
    X, y, w, b = np.empty((rows, n)), np.empty(rows), start, 0.0
    for t in range(rows):
        gap = w - u
        if kind == "random" or not np.abs(gap).any():
            X[t] = rng.normal(size=n)
        elif kind == "far":
            X[t] = gap * rng.choice([1.0, -1.0])
        else:
            X[t] = np.r_[1.0, 10.0 ** rng.uniform(-3, 0, n - 1)]
        X[t] *= x_bound / np.linalg.norm(X[t]) * (1.0 if kind != "random" else rng.uniform())
        a, a_u = X[t] @ w + b, X[t] @ u + v
        away = np.sign(a_u - a) or 1.0
        if squared:
            y[t] = a_u + noise * (rng.choice([-1.0, 1.0]) if kind == "random" else away)
        elif isinstance(loss, HingeLoss | LogisticLoss):
            y[t] = rng.choice([-1.0, 1.0]) if kind == "random" else (-1.0 if a > 0 else 1.0)
            y[t] = (y[t] + 1) / 2 if isinstance(loss, LogisticLoss) else y[t]
        else:
            y[t] = a_u + (3 * rng.normal() if kind == "random" else 1e3 * away)
        model.partial_fit(X[t : t + 1], y[t : t + 1], weights[t : t + 1])
        w, b = model.coef_, model.intercept_
    return X, y, weights, model, (u, v), start


def excess(X, y, weights, model, comparator, start, loss):
    """The largest (L - factor L_v) / constant over comparators v within the bounds: 1 is the theorem's bound.

    D(v, w_1) is convex in v, so that all v between w_1 and u are within the bounds.
    """
    theory = model._theory(len(y))
    u, b = comparator
    worst = -np.inf
    for part in np.linspace(0, 1, 21):
        v = start + part * (u - start)
        lost = float((weights * loss.value(X @ v + part * b, y)).sum())
        worst = max(worst, (model.cumulative_loss_ - theory.factor * lost) / theory.constant)
    return worst


@pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
@pytest.mark.parametrize("update", UPDATES)
@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.sampled_from([1, 3, 30]),
    kind=st.sampled_from(["far", "crowd", "random"]),
    noise=st.sampled_from([0.0, 1e-3, 0.3, 3.0]),
    heaviest=st.sampled_from([1.0, 3.0]),
    fit_intercept=st.booleans(),
)
def test_the_theorem_for_the_squared_loss(divergence, update, seed, n, kind, noise, heaviest, fit_intercept):
    rng, loss = np.random.default_rng(seed), SquaredLoss()
    options = {"n": n, "kind": kind, "noise": noise, "heaviest": heaviest, "fit_intercept": fit_intercept}
    run = bounded_stream(divergence, update, loss, rng, loss_bound=True, **options)
    assert excess(*run, loss) <= 1 + 1e-9
    X, y, weights, model, (u, v), _ = run
    regret = model.cumulative_loss_ - float((weights * (X @ u + v - y) ** 2).sum() / 2)
    assert regret <= model.regret_bound_ * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("loss", [LogisticLoss(), HingeLoss(), EpsilonInsensitiveLoss(0.2)], ids=repr)
@settings(max_examples=6)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.sampled_from([1, 3, 30]),
    kind=st.sampled_from(["far", "crowd", "random"]),
    heaviest=st.sampled_from([1.0, 3.0]),
    fit_intercept=st.booleans(),
)
def test_the_theorem_for_losses_of_bounded_slope(divergence, update, loss, seed, n, kind, heaviest, fit_intercept):
    rng = np.random.default_rng(seed)
    options = {"n": n, "kind": kind, "heaviest": heaviest, "fit_intercept": fit_intercept}
    run = bounded_stream(divergence, update, loss, rng, noise=1.0, loss_bound=True, **options)
    assert excess(*run, loss) <= 1 + 1e-9


def test_a_projected_implicit_step_can_gain_less_than_the_exact_one():
    """Why M is that of the weights before the projection: with that of weights up to the bound, this step has less
    than the gain eta p^2 / (2 (1 + eta M)) of the theorem, against a comparator without loss."""
    n, burg = 400, Burg()
    x, u = np.r_[1.0, np.full(n, 9.0 / n)], np.ones(n + 1)
    start = np.r_[1.0, np.full(n, 1e-6)]
    model = BurgRegressor(upper_bound=1.0, init=start, eta0=1e3, learning_rate="constant", fit_intercept=False)
    model.partial_fit([x], [x @ u])
    gain = burg.divergence(u, start) - burg.divergence(u, model.coef_)
    smallest = 1e3 * (x @ u - x @ start) ** 2 / (2 * (1 + 1e3 * x @ x))
    assert gain < 0.25 * smallest
    steepest = burg.smoothness_below(np.linalg.norm(x), 1.0, 0.89)  # the first weight reaches about 10 = 1 / 0.1
    assert gain >= smallest * (1 + 1e3 * x @ x) / (1 + 1e3 * steepest)


def test_explicit_steps_beyond_the_domain_end_at_the_bound():
    """As for update="gradient": the weight is infinite, its projection the upper bound; the certificate holds."""
    X, y = np.array([[1.0, -1.0], [1.0, 1.0]]), np.array([5.0, 3.0])
    model = BurgRegressor(
        update="explicit", upper_bound=1.0, eta0=10.0, learning_rate="constant", fit_intercept=False, track_regret=True
    )
    coefs = [clone(model).partial_fit(X[:k], y[:k]).coef_ for k in (1, 2)]
    assert coefs[0][0] == 1.0 and 0 < coefs[0][1] < 0.02
    for u in ([1.0, 1e-3], [1.0, 1.0], [0.3, 0.7]):
        fitted = clone(model).partial_fit(X, y)
        regret = fitted.weighted_loss_ - 10 * ((X @ u - y) ** 2).sum() / 2
        assert regret <= fitted.regret_certificate(u) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, r"needs data_bounds\['y'\], a bound on the absolute value of a target"),
        (
            {"update": "explicit", "data_bounds": {"x": 1.0}},
            r"needs data_bounds\['divergence'\], a bound on D\(u, w_1\)",
        ),
        ({"upper_bound": None}, r"Burg\(\) has no bound .* Burg and RelativeEntropy for bounded weights"),
        ({"update": "gradient"}, "update='gradient' has a rate and a bound of its own"),
        ({"init": 0.5, "data_bounds": {"x": 1.0}}, r"requires init=None, or data_bounds\['divergence'\]"),
    ],
    ids=str,
)
def test_what_a_bounded_run_lacks(parameters, message, unchanged):
    given_bounds = {"x": 1.0, "divergence": 1.0}
    model = BurgRegressor(**{"upper_bound": 1.0, "data_bounds": given_bounds, "learning_rate": "theory", **parameters})
    with unchanged(model, message):
        model.partial_fit(np.eye(3), np.ones(3))


def test_signed_weights_are_refused(unchanged):
    model = MirrorDescentRegressor(
        divergence="relative_entropy",
        constraint=UpperBound(1.0),
        signed=True,
        learning_rate="theory",
        data_bounds={"x": 1.0, "y": 1.0, "divergence": 1.0},
    )
    with unchanged(model, "signed must be False for learning_rate='theory' with RelativeEntropy"):
        model.partial_fit(np.eye(3), np.ones(3))
