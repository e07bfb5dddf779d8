"""Learning rates from the theorems: the gain of a single step, the bounds on runs, and the optimality of the rate."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from sklearn.base import clone

from onlinebregman import ImplicitGDRegressor, LearningRatePath
from onlinebregman._online.theory import theory_rate
from onlinebregman.divergences import (
    PNorm,
    SimplexEntropy,
    SquaredEuclidean,
)
from onlinebregman.losses import (
    EpsilonInsensitiveLoss,
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    SquaredLoss,
)

THEORY = {
    "squared_euclidean": (SquaredEuclidean(), False),
    "simplex_entropy": (SimplexEntropy(1.5), False),
    "signed simplex_entropy": (SimplexEntropy(1.5), True),
    "p_norm": (PNorm(4.0), False),
}
UPDATES = {  # L <= factor(k) L_u + price(k) M D, with the rate k / M
    "explicit": (lambda k: 1 / (1 - k), lambda k: 1 / k),
    "implicit": (lambda k: 1 + k, lambda k: 1 + 1 / k),
    "importance": (lambda k: 2 * k / -np.expm1(-2 * k), lambda k: 2 / -np.expm1(-2 * k)),
}


@pytest.mark.parametrize("name", ["squared_euclidean", "simplex_entropy", "p_norm"])
@pytest.mark.parametrize("update", UPDATES)
@settings(max_examples=50)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 5),
    log_k=st.floats(-4.0, 4.0),
    spread=st.floats(-2.0, 1.0),
    residual=st.floats(-3.0, 3.0),
    hostile=st.booleans(),
    fit_intercept=st.booleans(),
)
def test_a_single_step_gains_what_the_theorem_sums_up(
    name, update, seed, n, log_k, spread, residual, hostile, fit_intercept
):
    """D(u, w) - D(u, w') >= eta (p^2 - factor q^2) / (2 price k), residuals p = a - y and q = a_u - y, eta = k / M."""
    divergence, rng = THEORY[name][0], np.random.default_rng(seed)
    k = 1 / (1 + np.exp(-log_k)) if update == "explicit" else np.exp(log_k)
    w, u = (divergence.inverse_mirror(10**spread * rng.normal(size=n)) for _ in range(2))
    x = 10 ** rng.uniform(-1, 1) * (hostile_row(divergence, w, u, 1.0) if hostile else rng.normal(size=n))
    v = float(rng.normal()) * fit_intercept  # the comparator's intercept, the model's being 0
    y = x @ u + v - residual
    smoothness = divergence.smoothness(divergence.row_size(x)) + fit_intercept
    model = MirrorDescentRegressor(
        divergence=divergence,
        update=update,
        eta0=k / smoothness,
        learning_rate="constant",
        init=w,
        fit_intercept=fit_intercept,
    ).partial_fit([x], [y])
    moved, b = model._learner.position
    sizes = [divergence.divergence(u, w) + v**2 / 2, divergence.divergence(u, moved) + (v - b) ** 2 / 2]
    factor, price = (f(k) for f in UPDATES[update])
    p = x @ w - y
    bound = k / smoothness * (p**2 - factor * residual**2) / (2 * price * k)
    assert sizes[0] - sizes[1] >= bound - 1e-10 * (sum(sizes) + k / smoothness * (p**2 + residual**2))


def hostile_row(divergence, w, u, size):
    """The row of a given size on which the model w and the comparator u are farthest apart."""
    gap = w - u
    if not np.abs(gap).any():
        gap = np.ones_like(gap)
    p = {SquaredEuclidean: 2.0, PNorm: getattr(divergence, "p", 2.0)}.get(type(divergence), np.inf)
    x = np.sign(gap) * (np.abs(gap) ** (1 / (p - 1)) if p < np.inf else 1.0)
    return size * x / divergence.row_size(x)


def theory_stream(name, update, loss, rng, n, rows, *, hostile, noise, fit_intercept, bounds, weights=None):
    """A stream within its bounds, the model that learned it, and the comparator."""
    divergence, signed = THEORY[name]
    if name.endswith("simplex_entropy"):
        u = 1.5 * rng.dirichlet(np.ones(n))
        u = u * rng.choice([-1.0, 1.0], size=n) if signed else u
    else:
        u = rng.normal(size=n)
        u *= 2.0 / np.linalg.norm(u, 2.0 if name == "squared_euclidean" else divergence.q)
    b = float(rng.choice([-0.5, 0.5])) * fit_intercept
    model = MirrorDescentRegressor(
        divergence=divergence,
        signed=signed,
        loss=loss,
        update=update,
        learning_rate="theory",
        data_bounds={**bounds, **({} if name.endswith("simplex_entropy") else {"u": 2.0})},
        fit_intercept=fit_intercept,
    )
    X, y = np.empty((rows, n)), np.empty(rows)
    for t in range(rows):
        w, intercept = (model.coef_, model.intercept_) if t else (np.zeros(n), 0.0)
        if hostile:
            X[t] = hostile_row(divergence, w, u, 0.7)
        else:
            X[t] = rng.normal(size=n)
            X[t] *= 0.7 * rng.uniform() / divergence.row_size(X[t])
        a, a_u = X[t] @ w + intercept, X[t] @ u + b
        away = np.sign(a_u - a) or 1.0
        if isinstance(loss, SquaredLoss):
            y[t] = a_u + noise * (away if hostile else rng.choice([-1.0, 1.0]))
        elif isinstance(loss, LogisticLoss | HingeLoss):
            y[t] = (-1.0 if a > 0 else 1.0) if hostile else rng.choice([-1.0, 1.0])
            y[t] = (y[t] + 1) / 2 if isinstance(loss, LogisticLoss) else y[t]
        else:
            y[t] = a_u + (1e3 * away if hostile else 3.0 * rng.normal())
        model.partial_fit(X[t : t + 1], y[t : t + 1], None if weights is None else weights[t : t + 1])
    return X, y, model, u, b


@pytest.mark.parametrize("name", THEORY)
@pytest.mark.parametrize("update", UPDATES)
@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 5),
    hostile=st.booleans(),
    noise=st.sampled_from([0.0, 1e-3, 0.3, 3.0]),
    fit_intercept=st.booleans(),
)
def test_the_theorem_for_the_squared_loss(name, update, seed, n, hostile, noise, fit_intercept):
    """L <= factor L_u + constant, also for adversarial rows and targets."""
    rng, rows = np.random.default_rng(seed), 40
    bounds = {"x": 0.7, "loss": rows * noise**2 / 2, "intercept": 0.5 * fit_intercept}
    X, y, model, u, b = theory_stream(
        name,
        update,
        SquaredLoss(),
        rng,
        n,
        rows,
        hostile=hostile,
        noise=noise,
        fit_intercept=fit_intercept,
        bounds=bounds,
    )
    regret = model.cumulative_loss_ - float(((X @ u + b - y) ** 2).sum() / 2)
    assert regret <= model.regret_bound_ * (1 + 1e-9) + 1e-9
    theory = model._theory()
    others = [comparator_in_bounds(name, rng, n) for _ in range(5)]
    for v in others:
        a = X @ v + rng.uniform(-0.5, 0.5) * fit_intercept
        assert model.cumulative_loss_ <= (theory.factor * ((a - y) ** 2).sum() / 2 + theory.constant) * (1 + 1e-9)


def comparator_in_bounds(name, rng, n):
    divergence, signed = THEORY[name]
    if name.endswith("simplex_entropy"):
        u = 1.5 * rng.dirichlet(np.full(n, 0.3))
        return u * rng.choice([-1.0, 1.0], size=n) * rng.uniform() if signed else u
    u = rng.normal(size=n)
    return u * 2.0 * rng.uniform() / np.linalg.norm(u, 2.0 if name == "squared_euclidean" else divergence.q)


@pytest.mark.parametrize("name", THEORY)
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("loss", [LogisticLoss(), HingeLoss(), EpsilonInsensitiveLoss(0.2), HuberLoss(0.5)], ids=repr)
@settings(max_examples=3)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 5), hostile=st.booleans(), fit_intercept=st.booleans())
def test_the_theorem_for_losses_of_bounded_slope(name, update, loss, seed, n, hostile, fit_intercept):
    rng, rows = np.random.default_rng(seed), 40
    bounds = {"x": 0.7, "n_rows": rows, "intercept": 0.5 * fit_intercept}
    X, y, model, u, b = theory_stream(
        name, update, loss, rng, n, rows, hostile=hostile, noise=1.0, fit_intercept=fit_intercept, bounds=bounds
    )
    for v in [u, *(comparator_in_bounds(name, rng, n) for _ in range(5))]:
        regret = model.cumulative_loss_ - float(loss.value(X @ v + b, y).sum())
        assert regret <= model.regret_bound_ * (1 + 1e-9)


@pytest.mark.parametrize("name", THEORY)
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("loss", [SquaredLoss(), LogisticLoss(), EpsilonInsensitiveLoss(0.2)], ids=repr)
@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**32 - 1),
    heaviest=st.sampled_from([0.1, 1.0, 3.0, 30.0]),
    hostile=st.booleans(),
    equal=st.booleans(),
    noise=st.sampled_from([0.3, 3.0]),
)
def test_the_theorem_with_weights(name, update, loss, seed, heaviest, hostile, equal, noise):
    rng, rows = np.random.default_rng(seed), 40
    weights = np.full(rows, heaviest) if equal else heaviest * rng.uniform(size=rows)
    squared = isinstance(loss, SquaredLoss)
    bounds = {"x": 0.7, "intercept": 0.5, **({"loss": weights.sum() * noise**2 / 2} if squared else {"n_rows": rows})}
    options = {"hostile": hostile, "noise": noise, "fit_intercept": True, "bounds": bounds, "weights": weights}
    X, y, model, u, b = theory_stream(name, update, loss, rng, 3, rows, **options)
    regret = model.cumulative_loss_ - float((weights * loss.value(X @ u + b, y)).sum())
    assert regret <= model.regret_bound_ * (1 + 1e-9)
    lighter = clone(model).partial_fit(X, y)
    assert lighter.regret_bound_ <= model.regret_bound_ and np.isfinite(lighter.regret_bound_)
    assert (lighter.regret_bound_ < model.regret_bound_) == (weights.max() > 1)


@pytest.mark.parametrize("update", UPDATES)
def test_heavy_rows_raise_the_bound_as_far_as_they_have_to(update):
    """One row and its negative, repeatedly, at ten times the rate: more regret than the bound for weight 1."""
    X, y = np.tile([[1.0, 2.0], [-1.0, -2.0]], (50, 1)), np.ones(100)
    bounds = {"x": 5**0.5, "u": 0.1, "loss": 500.0}
    model = ImplicitGDRegressor(update=update, learning_rate="theory", data_bounds=bounds, fit_intercept=False)
    light = clone(model).partial_fit(X, y).regret_bound_
    model.set_params(max_iter=1, tol=None, shuffle=False)
    for fitted in (clone(model).partial_fit(X, y, np.full(100, 10.0)), clone(model).fit(X, y, 10.0)):
        regret = fitted.cumulative_loss_ - 500.0
        assert light < regret <= fitted.regret_bound_
        assert_allclose(fitted.partial_fit(X, y).regret_bound_, fitted.regret_bound_)
        assert_allclose(fitted.fit(X, y).regret_bound_, light)
    model = clone(model).set_params(data_bounds={**bounds, "loss": 0.0}).partial_fit(X, y, np.full(100, 10.0))
    assert (model.regret_bound_ == np.inf) == (update == "explicit")  # that rate has no bound


def test_a_path_of_rates_notes_weights_for_the_bound():
    X, y = np.eye(3), np.ones(3)
    one = ImplicitGDRegressor(learning_rate="theory", data_bounds={"x": 1.0, "u": 1.0, "loss": 1.0})
    path = LearningRatePath(one, eta0s=2).fit(X, y, [1.0, 5.0, 1.0])
    assert path.best_estimator_.regret_bound_ == one.partial_fit(X, y, [1.0, 5.0, 1.0]).regret_bound_


def test_the_theorem_with_class_weights():
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    model = MirrorDescentClassifier(
        divergence="squared_euclidean", learning_rate="theory", data_bounds={"x": 1.0, "u": 1.0, "n_rows": 4}
    )
    light = clone(model).partial_fit(X, y, classes=[0, 1]).regret_bound_
    heavy = model.set_params(class_weight={1: 3.0}).partial_fit(X, y, classes=[0, 1]).regret_bound_
    assert_allclose(heavy, (1 + 3.0**2) / 2 * light)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("fit_intercept", [False, True])
@settings(max_examples=60)
@given(x=st.floats(-2.0, 2.0), u=st.floats(-2.0, 2.0), loss=st.one_of(st.none(), st.floats(-6.0, 6.0)))
def test_the_rate_minimises_its_bound(update, fit_intercept, x, u, loss):
    bounds = {"x": 10**x, "u": 10**u, "intercept": 0.3} | ({} if loss is None else {"loss": 10**loss})
    rate = theory_rate(SquaredEuclidean(), SquaredLoss(), update, bounds, 4, signed=False, fit_intercept=fit_intercept)
    smoothness, distance = 100**x + fit_intercept, (100**u + 0.09) / 2
    factor, price = UPDATES[update]
    comparator_loss = smoothness * distance if loss is None else 10**loss

    def bound(k):
        return factor(k) * comparator_loss + price(k) * smoothness * distance

    k = rate.eta0 * smoothness
    # k = eta0 M is known to rounding, 1 - k to that times the factor
    rtol = 1e-12 + 1e-15 * rate.factor
    assert_allclose([rate.factor, rate.constant], [factor(k), price(k) * smoothness * distance], rtol=rtol)
    for other in np.r_[k * np.array([0.5, 0.99, 1.01, 2.0]), np.geomspace(1e-6, 0.999, 50)]:
        if update != "explicit" or other < 1:
            assert bound(k) <= bound(other) * (1 + 1e-9)
    if update == "explicit":
        assert_allclose(k, 1 / (1 + np.sqrt(comparator_loss / (smoothness * distance))), rtol=1e-5)
    elif update == "implicit":
        assert_allclose(k, np.sqrt(smoothness * distance / comparator_loss), rtol=1e-5)


@settings(max_examples=30)
@given(x=st.floats(-2.0, 2.0), u=st.floats(-2.0, 2.0), n_rows=st.integers(1, 10**6), slope=st.sampled_from([0.5, 2.0]))
def test_the_rate_for_losses_of_bounded_slope(x, u, n_rows, slope):
    rate = theory_rate(
        PNorm(3.0),
        HuberLoss(slope),
        "implicit",
        {"x": 10**x, "u": 10**u, "n_rows": n_rows},
        4,
        signed=False,
        fit_intercept=False,
    )

    def bound(eta):
        return 100**u / 2 / eta + eta * 2 * 100**x * slope**2 * n_rows / 2

    assert rate.factor == 1.0
    assert_allclose(rate.constant, bound(rate.eta0), rtol=1e-12)
    assert bound(rate.eta0) <= min(bound(0.99 * rate.eta0), bound(1.01 * rate.eta0))


def test_perfect_comparators_and_the_largest_rates():
    X = np.random.default_rng(0).normal(size=(50, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = X @ [0.6, 0.0, 0.8]
    for update in UPDATES:
        model = MirrorDescentRegressor(
            divergence="squared_euclidean",
            update=update,
            learning_rate="theory",
            data_bounds={"x": 1.0, "u": 1.0, "loss": 0.0},
            fit_intercept=False,
        ).partial_fit(X, y)
        assert np.isfinite(model.regret_bound_)
        assert model.cumulative_loss_ <= model.regret_bound_ * (1 + 1e-9)
        assert_allclose(model.regret_bound_, 0.5 if update != "importance" else 1.0, rtol=1e-5)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"data_bounds": None}, r"needs data_bounds\['x'\]"),
        ({"data_bounds": {"x": 1.0}}, r"needs data_bounds\['u'\], a bound on the size of the comparator"),
        ({"data_bounds": {"x": 1.0, "u": 1.0}, "loss": "huber"}, r"needs data_bounds\['n_rows'\]"),
        ({"data_bounds": {"x": 1.0, "u": 1.0, "rows": 3}}, "must be among 'x', 'u', .*; got 'rows'"),
        ({"data_bounds": {"x": 0.0, "u": 1.0}}, r"data_bounds\['x'\] must be a positive finite number; got 0.0"),
        ({"data_bounds": {"x": 1.0, "u": np.inf}}, r"data_bounds\['u'\] must be a positive finite number; got inf"),
        ({"data_bounds": {"x": 1.0, "u": -1.0}}, r"data_bounds\['u'\] must be a positive finite number; got -1.0"),
        ({"data_bounds": {"x": 1.0, "u": np.nan}}, r"data_bounds\['u'\] must be a positive finite number; got nan"),
        ({"data_bounds": {"x": "3", "u": 1.0}}, r"data_bounds\['x'\] must be a positive finite number; got '3'"),
        ({"data_bounds": {"x": None, "u": 1.0}}, r"data_bounds\['x'\] must be a positive finite number; got None"),
        ({"data_bounds": {"x": 1.0, "u": [3]}}, r"data_bounds\['u'\] must be a positive finite number; got \[3\]"),
        (
            {"data_bounds": {"x": 1.0, "u": 1.0}, "loss": "poisson"},
            r"squared or have a bounded slope .*; got PoissonLoss\(\)",
        ),
        ({"data_bounds": {"x": 1.0, "u": 1.0}, "divergence": "burg"}, r"Burg\(\) has no bound"),
        ({"data_bounds": {"x": 1.0, "u": 1.0}, "divergence": "relative_entropy"}, "has no bound"),
        ({"data_bounds": {"x": 1.0, "u": 1.0}, "divergence": "binary_entropy"}, r"BinaryEntropy\(\) has no bound on D"),
        ({"data_bounds": {"x": 1.0, "u": 1.0}, "signed": True}, "signed must be False for learning_rate=.theory"),
        (
            {"data_bounds": {"x": 1.0, "u": 1.0}, "divergence": "p_norm", "signed": True},
            "signed must be False for learning_rate=.theory",
        ),
        ({"data_bounds": {"x": 1.0, "u": 1.0}, "init": 0.5}, "init=None"),
    ],
    ids=str,
)
def test_theory_says_what_it_lacks(parameters, message, unchanged):
    X, y = np.eye(3), np.ones(3)
    parameters = {"divergence": "squared_euclidean", **parameters}
    model = MirrorDescentRegressor(learning_rate="theory", **parameters)
    with unchanged(model, message):
        model.partial_fit(X, y)
    going_on = MirrorDescentRegressor(**{k: v for k, v in parameters.items() if k != "data_bounds"})
    going_on.partial_fit(X, y).set_params(learning_rate="theory", data_bounds=parameters["data_bounds"])
    with unchanged(going_on, message):
        going_on.partial_fit(X, y)


def test_the_bound_belongs_to_theory():
    X, y = np.eye(3), np.ones(3)
    model = MirrorDescentRegressor(divergence="squared_euclidean")
    with pytest.raises(AttributeError, match="has not learned"):
        _ = model.regret_bound_
    with pytest.raises(AttributeError, match="requires learning_rate='theory'"):
        _ = model.partial_fit(X, y).regret_bound_
    model = MirrorDescentRegressor(
        divergence="squared_euclidean", learning_rate="theory", data_bounds={"x": 1.0, "u": 1.0}
    ).partial_fit(X, y)
    with pytest.raises(AttributeError, match=r"needs data_bounds\['loss'\]"):
        _ = model.regret_bound_
