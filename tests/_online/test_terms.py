"""Bounds on runs whose parameters were changed between calls: they hold, or are refused with the reason."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from raw import MirrorDescentClassifier, MirrorDescentRegressor

from onlinebregman import (
    BurgRegressor,
    ImplicitGDRegressor,
    LearningRatePath,
    PerceptronClassifier,
    PNormRegressor,
    WinnowClassifier,
)
from onlinebregman._online.regret import ParameterHistory
from onlinebregman.constraints import L1Ball
from onlinebregman.divergences import RelativeEntropy


def test_terms_are_those_of_learned_rows():
    terms = ParameterHistory().then(0, rate=1.0)
    assert terms.of("rate", 0) == (1.0,) and terms.learned("rate", 0) == ()
    changed = terms.then(0, rate=2.0)  # before a row was learned
    assert changed.of("rate", 5) == (2.0,)
    changed = changed.then(5, rate=3.0)
    assert changed.of("rate", 5) == (2.0,) and changed.of("rate", 6) == (2.0, 3.0)
    for t in range(6, 100):  # the number of stored values does not grow
        changed = changed.then(t, rate=float(t))
    assert changed.of("rate", 100) == (2.0, 3.0, 99.0)
    assert terms.of("rate", 1) == (1.0,)
    assert terms.then(7, rate=1.0) is terms  # for any division of the stream


# --- the certificate under changes ------------------------------------------------------------------------------------

CHANGES = {
    "update": ["implicit", "explicit", "importance"],
    "eta0": [0.001, 0.01, 0.03],
    "learning_rate": ["constant", "sqrt", "invscaling"],
    "average": [False, True, 3],
    "fit_intercept": [False, True],
}
AT_START = {
    "loss": ["squared_error", "absolute_error"],
    "divergence": ["squared_euclidean", "p_norm"],
    "init": [None, 0.5],
}


def some_of(draw, parameters):
    return {name: draw(st.sampled_from(values)) for name, values in parameters.items()}


@settings(max_examples=150)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_the_certificate_holds_whatever_is_changed_in_mid_stream(data, seed):
    """With the actual rates, for comparators that are not refused; errors name an intercept that was not learned."""
    rng = np.random.default_rng(seed)
    n, model = 3, MirrorDescentRegressor(divergence="squared_euclidean", track_regret=True)
    start = some_of(data.draw, AT_START)
    model.set_params(**start)
    loss, w, b = start["loss"], np.full(n, start["init"] or 0.0), 0.0
    scores, rates, X, y, t, held = [], [], [], [], 0, set()
    for _ in range(data.draw(st.integers(1, 5))):
        changes = some_of(data.draw, CHANGES)
        model.set_params(**changes)
        for _ in range(data.draw(st.integers(0, 4))):
            x, target, weight = 3 * rng.normal(size=n), float(rng.normal(scale=5.0)), float(rng.choice([0.0, 0.5, 3.0]))
            model.partial_fit(x[None], np.array([target]), np.array([weight]))
            power = {"constant": 0.0, "sqrt": 0.5, "invscaling": 0.5}[changes["learning_rate"]]
            t += weight > 0
            scores.append(x @ w + b)
            rates.append(weight * changes["eta0"] / max(t, 1) ** power)
            X.append(x), y.append(target)
            if weight > 0 and not changes["fit_intercept"]:
                held.add(b)
            w, b = model._learner.position
    if t == 0:
        return
    X, y, rates, scores = np.array(X), np.array(y), np.array(rates), np.array(scores)

    def losses(a):
        return (a - y) ** 2 / 2 if loss == "squared_error" else np.abs(a - y)

    assert_allclose(model.weighted_loss_, rates @ losses(scores), rtol=1e-9)
    for v in (0.0, b, 3.0, *held):
        if held - {v}:
            with pytest.raises(ValueError, match="intercept must be that of the run where it was not learned"):
                model.regret_certificate(np.zeros(n), v)
            continue
        for u in (np.zeros(n), 3 * rng.normal(size=n), w):
            left = rates @ (losses(scores) - losses(X @ u + v))
            size = rates @ (losses(scores) + losses(X @ u + v)) + u @ u + w @ w + v * v + 1
            assert left <= model.regret_certificate(u, v) + 1e-9 * size


def test_an_intercept_that_was_switched_off_or_on():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = X @ [1.0, 2.0] + 5.0
    model = ImplicitGDRegressor(track_regret=True, fit_intercept=False).partial_fit(X[:20], y[:20])
    model.set_params(fit_intercept=True)
    with pytest.raises(ValueError, match=r"intercept must be .* not learned, 0\.0; got 5"):
        model.regret_certificate([1.0, 2.0], 5.0)  # the new value has not been used yet
    model.partial_fit(X[20:], y[20:])
    with pytest.raises(ValueError, match=r"not learned, 0\.0"):
        model.regret_certificate([1.0, 2.0], 5.0)
    assert np.isfinite(model.regret_certificate([1.0, 2.0], 0.0))
    held = model.intercept_
    model.set_params(fit_intercept=False).partial_fit(X[:1], y[:1])
    with pytest.raises(ValueError, match=f"not learned, 0.0 and {held!r}; got .*, and no certificate holds for both"):
        model.regret_certificate([1.0, 2.0], held)
    with pytest.raises(ValueError, match="intercept must be a finite number; got nan"):
        model.regret_certificate([1.0, 2.0], np.nan)
    # if tracking restarts, the rows before do not matter
    model.set_params(track_regret=False).partial_fit(X[:1], y[:1])
    model.set_params(track_regret=True).partial_fit(X[:1], y[:1])
    assert np.isfinite(model.regret_certificate([1.0, 2.0], held))


def test_each_learner_of_a_classifier_holds_an_intercept_of_its_own():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 2)), rng.choice(3, p=[0.6, 0.3, 0.1], size=60)
    model = MirrorDescentClassifier(divergence="squared_euclidean", track_regret=True).partial_fit(
        X[:30], y[:30], classes=[0, 1, 2]
    )
    held = model.intercept_
    model.set_params(fit_intercept=False).partial_fit(X[30:], y[30:])
    assert np.isfinite(model.regret_certificate(np.zeros((3, 2)), held)).all()
    with pytest.raises(ValueError, match=f"not learned, {float(held[1])!r}"):
        model.regret_certificate(np.zeros((3, 2)), held[[0, 0, 2]])


@settings(max_examples=60)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_burg_under_bounds_that_come_and_go(data, seed):
    """Comparators satisfy the smallest bound of all rows; moving weights away from a bound is accounted for."""
    rng, lowest = np.random.default_rng(seed), np.inf
    model = BurgRegressor(track_regret=True, fit_intercept=False, init=0.5, learning_rate="constant")
    X, y, rates, scores, w = [], [], [], [], np.full(2, 0.5)
    for _ in range(data.draw(st.integers(1, 4))):
        update, upper = (
            data.draw(st.sampled_from(["implicit", "gradient"])),
            data.draw(st.sampled_from([None, 1.0, 2.0])),
        )
        model.set_params(update=update, upper_bound=upper, eta0=data.draw(st.sampled_from([0.01, 1.0])))
        for _ in range(data.draw(st.integers(0, 4))):
            x, target = rng.uniform(size=2), float(rng.uniform(high=5.0))
            before = model.weighted_loss_ if X else 0.0
            if X and update == "gradient":  # switching it on moves weights away from the bound
                model.partial_fit([x], [target], [0.0])
                w = model._learner.position[0]
            model.partial_fit(x[None], np.array([target]))
            value = (x @ w - target) ** 2 / 2
            if not X and update == "gradient":
                return  # its start has already been moved away from the bound
            rates.append((model.weighted_loss_ - before) / value)
            X.append(x), y.append(target), scores.append(x @ w)
            lowest = min(lowest, np.inf if upper is None and update != "gradient" else upper or 1.0)
            w = model._learner.position[0]
    if not X:
        return
    X, y, rates, scores = (np.array(values) for values in (X, y, rates, scores))
    for u in rng.uniform(0.01, 4.0, size=(6, 2)):
        u = np.minimum(u, lowest) if rng.uniform() < 0.5 else u
        if u.max() > lowest:
            with pytest.raises(ValueError, match=rf"at most upper_bound={lowest:g}, .*; got coef\[{u.argmax()}\] = "):
                model.regret_certificate(u)
            continue
        left = float(rates @ ((scores - y) ** 2 - (X @ u - y) ** 2)) / 2
        assert left <= model.regret_certificate(u) + 1e-8


# --- the theorem's bound ----------------------------------------------------------------------------------------------

BOUNDS = {"x": 2.0, "u": 1.0, "loss": 10.0}
THEORY = {"learning_rate": "theory", "data_bounds": BOUNDS}


@pytest.mark.parametrize(
    "change",
    [
        {"learning_rate": "constant", "eta0": 1.9, "update": "explicit"},
        {"data_bounds": {**BOUNDS, "loss": 1e4}},
        {"update": "explicit"},
        {"fit_intercept": False},
    ],
    ids=lambda change: next(iter(change)),
)
@pytest.mark.parametrize("first", [False, True])
def test_the_theorem_is_for_one_rate_from_the_first_row_on(change, first):
    X, y = np.eye(3), np.ones(3)
    model = ImplicitGDRegressor(**THEORY)
    other = {name: getattr(model, name) for name in change}
    model.set_params(**change) if first else None
    model.partial_fit(X, y)
    model.set_params(**(other if first else change))
    before = None if first and "learning_rate" in change else model.regret_bound_  # parameters alone learn nothing
    model.partial_fit(X[:1], y[:1])
    with pytest.raises(AttributeError, match="changed during the run, so fit again"):
        _ = model.regret_bound_
    anew = pickle.loads(pickle.dumps(copy.deepcopy(model)))
    assert not hasattr(anew, "regret_bound_")
    model.set_params(**THEORY, shuffle=False, max_iter=1, tol=None).fit(X, y)
    assert np.isfinite(model.regret_bound_) and (before is None or np.isfinite(before))


def test_data_bounds_and_weights_changed_in_place_are_not_those_of_the_run():
    X, y, bounds = np.eye(3), np.ones(3), dict(BOUNDS)
    model = ImplicitGDRegressor(learning_rate="theory", data_bounds=bounds).partial_fit(X, y)
    bound = model.regret_bound_
    bounds["u"] = 1e-6
    assert model.regret_bound_ == bound
    model.set_params(init=np.ones(3), fit_intercept=False)
    assert model.regret_bound_ == bound


def test_the_theorem_is_not_about_averages():
    X, y = np.eye(3), np.ones(3)
    model = ImplicitGDRegressor(**THEORY, average=True).partial_fit(X, y)
    with pytest.raises(AttributeError, match="loss_ is that of their average; fit again with average=False"):
        _ = model.regret_bound_
    model.set_params(average=False).partial_fit(X, y)
    assert not hasattr(model, "regret_bound_")


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), epochs=st.integers(1, 30), weight=st.sampled_from([1.0, 0.5, 3.0]))
def test_more_rows_than_in_data_bounds(seed, epochs, weight):
    """The rate is for data_bounds["n_rows"], the bound for the actual number of rows."""
    rng = np.random.default_rng(seed)
    n_rows = 3
    X = rng.normal(size=(n_rows, 2))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    u = rng.normal(size=2)
    u /= np.linalg.norm(u)
    y = X @ u + 2 * rng.choice([-1.0, 1.0], size=n_rows)
    model = MirrorDescentRegressor(
        divergence="squared_euclidean",
        loss="absolute_error",
        learning_rate="theory",
        data_bounds={"x": 1.0, "u": 1.0, "n_rows": n_rows},
        fit_intercept=False,
        update="explicit",
        max_iter=epochs,
        tol=None,
        shuffle=False,
    ).fit(X, y, np.full(n_rows, weight))
    assert model.t_ == epochs * n_rows
    comparator = weight * epochs * np.abs(X @ u - y).sum()
    assert model.cumulative_loss_ - comparator <= model.regret_bound_ * (1 + 1e-9)
    for _ in range(5):  # adversarial rows
        w = model.coef_
        x = (w - u) / (np.linalg.norm(w - u) or 1.0)
        target = x @ u - 10 * (np.sign(x @ (w - u)) or 1.0)
        comparator += weight * abs(x @ u - target)
        model.partial_fit([x], [target], [weight])
        assert model.cumulative_loss_ - comparator <= model.regret_bound_ * (1 + 1e-9)


def test_epochs_count_for_the_bound():
    X, y = np.eye(10), np.ones(10)
    bounds = {"x": 1.0, "u": 1.0, "n_rows": 10}
    model = MirrorDescentRegressor(
        divergence="squared_euclidean", loss="absolute_error", learning_rate="theory", data_bounds=bounds, tol=None
    )
    first = model.set_params(max_iter=1).fit(X, y).regret_bound_
    assert_allclose(model.set_params(max_iter=99).fit(X, y).regret_bound_, (1 + 99) / 2 * first)


# --- mistakes ---------------------------------------------------------------------------------------------------------


def separable(rng, n=3, rows=60):
    u = rng.dirichlet(np.ones(n)) * rng.choice([-1.0, 1.0], size=n)
    X = rng.uniform(-1, 1, size=(rows, n))
    X = X[np.abs(X @ u) > 0.05]
    return X, (X @ u > 0).astype(int), u


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from([PerceptronClassifier, WinnowClassifier]),
    changed=st.sampled_from(["eta0", "fit_intercept", "average", "weights", "class_weight", None]),
    fit_intercept=st.booleans(),
)
def test_the_mistake_bound_under_changes(seed, kind, changed, fit_intercept):
    rng = np.random.default_rng(seed)
    X, y, u = separable(rng)
    eta0 = 0.03
    model = kind(eta0=eta0, fit_intercept=fit_intercept, init=[0.3, 0.0, -0.2])
    model.partial_fit(X[:20], y[:20], classes=[0, 1])
    kept = model.mistake_bound(X, y, u)
    model.set_params(
        **{"eta0": {"eta0": 5.0}, "fit_intercept": {"fit_intercept": not fit_intercept}}.get(
            changed, {"average": True} if changed == "average" else {}
        )
    )
    assert model.mistake_bound(X, y, u) == kept  # of the rows learned so far
    model.partial_fit(X[20:], y[20:], sample_weight=np.full(len(y) - 20, 40.0) if changed == "weights" else None)
    if changed in ("eta0", "fit_intercept", "weights"):
        with pytest.raises(ValueError, match="The bound requires"):
            model.mistake_bound(X, y, u)
        return
    if changed == "class_weight":
        model.set_params(class_weight={1: 50.0}).partial_fit(X, y)
        model.set_params(class_weight=None)
        with pytest.raises(ValueError, match="rows of weight 1, but some were learned with other weights"):
            model.mistake_bound(X, y, u)
        return
    for _ in range(10):
        model.partial_fit(X, y)
    assert model.mistake_bound(X, y, u) == kept
    assert model.n_mistakes_[0] <= kept


# --- what was read when learning started ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [{"constraint": None}, {"divergence": "p_norm"}, {"signed": False}, {"loss": "huber"}, {"init": 0.1}],
    ids=str,
)
def test_parameters_that_are_read_at_the_start_change_no_certificate(change):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 3))
    y = X @ [0.4, -0.3, 0.1]
    model = MirrorDescentRegressor(
        divergence=RelativeEntropy(), signed=True, constraint=L1Ball(2.0), track_regret=True, eta0=0.1
    )
    same = copy.deepcopy(model).partial_fit(X[:10], y[:10])
    with pytest.raises(ValueError, match="cannot take effect in mid-stream"):
        model.partial_fit(X[:10], y[:10]).set_params(**change).partial_fit(X[10:], y[10:])
    u = [0.5, -0.5, 0.2]
    assert model.regret_certificate(u, 0.1) == same.regret_certificate(u, 0.1)
    with pytest.raises(ValueError, match="L1Ball"):
        model.regret_certificate([2.0, -0.5, 0.2])


def test_the_power_of_a_norm_is_that_of_the_start():
    X, y = np.eye(4), np.ones(4)
    model = PNormRegressor(p=3.0, track_regret=True).partial_fit(X, y)
    before = model.regret_certificate(np.ones(4))
    assert model.set_params(p=7.0).regret_certificate(np.ones(4)) == before


def test_the_models_of_a_path_note_their_terms():
    X, y = np.eye(4), np.ones(4)
    path = LearningRatePath(ImplicitGDRegressor(track_regret=True, fit_intercept=False), eta0s=3).fit(X, y)
    with pytest.raises(ValueError, match=r"not learned, 0\.0"):
        path.best_estimator_.regret_certificate(np.zeros(4), 1.0)
    assert np.isfinite(path.best_estimator_.regret_certificate(np.zeros(4)))
