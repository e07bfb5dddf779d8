"""ForwardRegressor: the algorithm, its bound and stability; centred sums; uncertainty; other losses; refusals."""

import copy
import pickle
import re
from functools import partial
from itertools import product

import numpy as np
import pytest
from forward_replica import Replica, papers, some_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from replica import LogCosh
from scipy import sparse, stats
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.base import clone
from sklearn.utils import get_tags

from onlinebregman import ForwardClassifier, ForwardRegressor
from onlinebregman.losses import HuberLoss, LogisticLoss, PoissonLoss
from onlinebregman.reference import LOSSES as FORMULAS
from onlinebregman.reference import CentredForwardRegression, ForwardNewton, odds_step

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows


seeds = st.integers(0, 2**32 - 1)


# --- the algorithm ----------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(
    seed=seeds,
    d=st.integers(1, 12),
    n_targets=st.sampled_from([None, 1, 3]),
    rows=st.integers(1, 30),
    alpha=st.floats(-2, 3).map(lambda power: 10.0**power),
    gamma=st.sampled_from([1.0, 0.9]),
    fit_intercept=st.booleans(),
    forward=st.booleans(),
    weighted=st.booleans(),
)
def test_it_is_the_algorithm_by_its_formulas(seed, d, n_targets, rows, alpha, gamma, fit_intercept, forward, weighted):
    rng = np.random.default_rng(seed)
    X, y = some_rows(rows, d, n_targets, seed)
    h = rng.choice([0.5, 1.0, 2.0, 7.3], size=rows) if weighted else np.ones(rows)
    rows_with_1 = np.c_[X, np.ones(rows)] if fit_intercept else X
    replica = Replica(rows_with_1.shape[1], n_targets or 1, alpha, forward, gamma)
    model = papers(alpha=alpha, forward=forward, forgetting=gamma, fit_intercept=fit_intercept)
    for i, x in enumerate(rows_with_1):
        if i:
            expected = replica.predict(x)
            assert_allclose(model.predict(X[i : i + 1]).ravel(), expected, rtol=1e-10, atol=1e-11)
        replica.learn(x, np.atleast_1d(y[i]), h[i])
        model.partial_fit(X[i : i + 1], y[i : i + 1], h[i : i + 1] if weighted else None)
        found = np.column_stack([np.reshape(model.coef_, (-1, d)), np.reshape(model.intercept_, (-1, 1))])
        assert_allclose(found[:, : d + fit_intercept].T, replica.w, rtol=1e-10, atol=1e-11)
    assert model.cumulative_loss_ == pytest.approx(replica.loss, rel=1e-10)
    if forward:
        assert model.regret_bound_ == pytest.approx(replica.bound, rel=1e-10)
    assert model.regret_ == pytest.approx(replica.recent - replica.hindsight, rel=1e-10, abs=1e-11 * replica.loss)
    assert model.t_ == rows and (fit_intercept or not np.any(model.intercept_))


# --- the theorem ------------------------------------------------------------------------------------------------------


def test_a_bound_is_lost_with_the_first_ridge_prediction():
    X, y = some_rows(40, 3)
    model = papers().partial_fit(X[:10], y[:10])
    bound = model.regret_bound_
    model.set_params(forward=False)  # it has learned nothing
    assert model.regret_bound_ == bound
    with pytest.raises(ValueError, match="overflow"):
        model.partial_fit(np.full((1, 3), 1e200), [1.0])
    model.partial_fit(X[10:11], y[10:11], sample_weight=[0.0])
    assert model.regret_bound_ == bound
    for rows in (slice(10, 11), slice(11, 12)):  # with and without validation
        one = copy.deepcopy(model)
        one.partial_fit(X[rows].tolist() if rows.start == 10 else X[rows], y[rows]).set_params(forward=True)
        one.partial_fit(X[20:], y[20:])
        for twin in (one, pickle.loads(pickle.dumps(one))):
            with pytest.raises(AttributeError, match="1 of 31 rows were predicted with forward=False"):
                _ = twin.regret_bound_
    model.set_params(forward=True).fit(X, y)
    assert model.regret_ <= model.regret_bound_


# --- several targets --------------------------------------------------------------------------------------------------


def test_targets_keep_their_shape_in_mid_stream(unchanged):
    X, y = some_rows(20, 3)
    two = np.c_[y, y]
    for first, others, said in [
        (y, [y[:, None], two], r"y should be 1d, of shape \(n_samples,\)"),
        (y[:, None], [y, two], r"y should be 2d, of shape \(n_samples, 1\)"),
        (two, [y, y[:, None], np.c_[two, y]], r"y should be 2d, of shape \(n_samples, 2\)"),
    ]:
        model = papers(warm_start=True).partial_fit(X, first)
        for other in others:
            with unchanged(model, said):
                model.partial_fit(X, other)
            with unchanged(model, said):
                model.fit(X, other)
            assert clone(model).set_params(warm_start=False).fit(X, other).predict(X).shape == other.shape
    for bad, said in [(np.zeros((20, 2, 2)), "dim 3"), (np.zeros((20, 0)), "0 feature"), (1.0, "y|Singleton")]:
        with unchanged(model, said, (ValueError, TypeError)):
            model.partial_fit(X, bad)
    with unchanged(model, "y must be dense"):
        model.partial_fit(X, sparse.csr_array(two))
    two[7, 1] = np.nan
    with unchanged(model, r"y contains NaN \(row 7, column 1\)"):
        model.partial_fit(X, two)


# --- stability --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["plain", "badly scaled", "far from zero", "nearly collinear"])
def test_a_million_rows_leave_no_drift(kind):
    rng = np.random.default_rng(7)
    n, d = 1_000_000, 5
    X = rng.normal(size=(n, d))
    scale = np.ones(d)
    if kind == "badly scaled":
        scale = 10.0 ** np.array([-4, 4, 0, -2, 2])
    if kind == "far from zero":
        X += 100.0
    if kind == "nearly collinear":
        X[:, 1] = X[:, 0] + 1e-4 * X[:, 1]
    y = X @ [1.0, -2.0, 0.5, 3.0, 0.1] + rng.normal(size=n)
    X *= scale
    model = papers(fit_intercept=False)
    for start in range(0, n, 100_000):
        model.partial_fit(X[start : start + 100_000], y[start : start + 100_000])

    # a direct solution, with columns scaled to one size
    Z, penalty = X / scale, np.diag(1.0 / scale)
    fresh = np.linalg.lstsq(np.r_[Z, penalty], np.r_[y, np.zeros(d)], rcond=None)[0] / scale
    tolerance = {"plain": 1e-12, "badly scaled": 1e-12, "far from zero": 1e-11, "nearly collinear": 1e-10}[kind]
    assert_allclose(model.coef_, fresh, rtol=tolerance)

    # and the matrix is still positive definite: forward / ridge predictions are 1 / (1 + x'A^-1 x)
    queries = np.r_[np.eye(d), Z[:20]]
    leverage = (queries * np.linalg.solve(Z.T @ Z + penalty**2, queries.T).T).sum(axis=1)
    forward = model.predict(queries * scale)
    ridge = model.set_params(forward=False).predict(queries * scale)
    assert ((forward / ridge > 0) & (forward / ridge <= 1)).all()
    assert_allclose(ridge / forward - 1, leverage, rtol=1e-6, atol=1e-12)


# --- centred sums -----------------------------------------------------------------------------------------------------


def moving_rows(n=120, d=4, n_targets=None, seed=0):
    """Columns of different units, one of which is constant at first, one far from 0, and one that moves."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** np.arange(d)
    X[: n // 3, 1], X[:, 2] = 7.0, X[:, 2] + 1e5
    X[n // 2 :, 0] += 50.0
    y = (X - X.mean(axis=0)) @ rng.normal(size=d if n_targets is None else (d, n_targets)) / 10
    return X, y + rng.normal(size=y.shape)


@pytest.fixture
def unlimited(monkeypatch):
    """No value is limited: rows are learned as they are."""
    monkeypatch.setattr(ForwardRegressor, "_make_standardizer", lambda *_: None)
    monkeypatch.setattr(ForwardRegressor, "_watches", False)


def one_by_one(model, X, y):
    """Predictions of each row before it is learned."""
    predictions = np.zeros_like(y)
    for i in range(len(y)):
        if i:
            predictions[i] = model.predict(X[i : i + 1])[0]
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    return predictions


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("gamma", [1.0, 0.9])
@pytest.mark.parametrize("n_targets", [None, 3])
def test_centred_sums_are_those_of_the_formulas(unlimited, forward, gamma, n_targets):
    X, y = moving_rows(n_targets=n_targets)
    h = np.random.default_rng(1).choice([0.5, 1.0, 4.0], size=len(y))
    model = ForwardRegressor(alpha=0.3, forward=forward, forgetting=gamma)
    replica, loss = CentredForwardRegression(4, n_targets or 1, 0.3, forward, gamma), 0.0
    for i in range(len(y)):
        if i:
            assert_allclose(model.predict(X[i : i + 1])[0], np.squeeze(replica.predict(X[i])), rtol=1e-9, atol=1e-9)
            loss += h[i] * ((replica.predict(X[i], h[i]) - y[i]) ** 2).sum() / 2
        else:
            loss += h[i] * (y[i] ** 2).sum() / 2
        replica.learn(X[i], np.atleast_1d(y[i]), h[i])
        model.partial_fit(X[i : i + 1], y[i : i + 1], sample_weight=h[i : i + 1])
    assert_allclose(model.cumulative_loss_, loss, rtol=1e-9)
    assert_allclose(model.mean_, replica.mean[:4], rtol=1e-12)
    assert_allclose(model.scale_, np.sqrt(np.diag(replica.S)[:4] / replica.n), rtol=1e-9)
    assert_allclose(model.n_samples_seen_, replica.n, rtol=1e-12)
    assert model.regret_ <= model.regret_bound_ if forward else not hasattr(model, "regret_bound_")


@pytest.mark.parametrize("gamma", [1.0, 0.95])
@pytest.mark.parametrize("forward", [True, False])
def test_units_and_origins_of_columns_and_targets_change_nothing(gamma, forward):
    X, y = moving_rows()
    model = ForwardRegressor(forgetting=gamma, forward=forward)
    expected = one_by_one(model, X, y)
    factors, offsets = np.array([1e-4, 3.0, 70.0, 1e5]), np.array([5.0, -300.0, 1e6, 1e8])
    for scale, offset in ((1.0, 1000.0), (1e-6, 0.0), (1e6, -1e8)):
        other = ForwardRegressor(forgetting=gamma, forward=forward)
        found = (one_by_one(other, X * factors + offsets, y * scale + offset) - offset) / scale
        assert_allclose(found[1:], expected[1:], rtol=0, atol=1e-7 * np.std(y))
        assert_allclose(other.coef_, model.coef_ * scale / factors, rtol=1e-7)


@pytest.mark.parametrize(
    "column",
    ["level", "scale", "random walk", "0 then 1", "unix time", "one sentinel", "larger unit", "smaller unit", "origin"],
)
def test_columns_that_move_cost_no_more_than_noise(column):
    """Targets move along, except with units and origins that change."""
    rng = np.random.default_rng(0)
    X, n = rng.normal(size=(2000, 4)), np.arange(2000)
    moves = {
        "level": X[:, 0] + np.where(n < 1000, 20.0, 70.0),
        "scale": X[:, 0] * np.where(n < 1000, 1.0, 10.0),
        "random walk": np.cumsum(X[:, 0]),
        "0 then 1": (n >= 1000).astype(float),
        "one sentinel": np.where(n == 1000, 9999.0, X[:, 0]),
        "unix time": 1.7e9 + 60.0 * n + X[:, 0],
        "larger unit": X[:, 0] * np.where(n < 1000, 1.0, 0.1),
        "smaller unit": (X[:, 0] + 20.0) * np.where(n < 1000, 1.0, 100.0),
        "origin": X[:, 0] + np.where(n < 1000, 20.0, 70.0),
    }
    same, absurd, X[:, 0] = X.copy(), abs(moves[column]) == 9999.0, moves[column]
    effect = 1e-3 if column == "unix time" else 1.0
    cause = same if column in ("larger unit", "smaller unit", "origin") else np.where(absurd[:, np.newaxis], 0.0, X)
    y, model = cause @ [effect, 1.0, -2.0, 0.5] + rng.normal(size=2000), ForwardRegressor()
    errors = (one_by_one(model, X, y) - y)[-500:]
    assert np.sqrt(np.mean(errors**2)) < 1.1 and model.regret_ <= model.regret_bound_


@pytest.mark.parametrize("n_targets", [None, 3])
@pytest.mark.parametrize("factor, shift", [(0.1, 0.0), (1.0, 1e3)])
def test_where_a_column_is_learned_anew_its_weight_and_the_level_are_free(factor, shift, n_targets):
    """The other weights stay, as of the marginal distribution in the normal model; a learner of the same limited rows
    that is not told, as it has no map, has all of it."""
    X, y = some_rows(600, n_targets=n_targets)
    X[300:, 1] = factor * X[300:, 1] + shift
    model = ForwardRegressor().partial_fit(X[:300], y[:300])
    for i in range(300, 600):
        before, rows = copy.deepcopy(model._learner), model._learner.row_map.transform(X[i : i + 1])
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        before.map_by(None)
        before.learn(rows, y[i : i + 1])
        parts, expected = model._learner.parts(), before.parts()
        (A, b), (S, c) = (((U.T * D) @ U, (U.T * D) @ g) for D, U, g, *_ in (parts, expected))
        assert_allclose(parts[3], expected[3], rtol=1e-12)
        if parts[4][4][1] == 0:
            break
        assert_array_equal(A, S)
    else:
        pytest.fail("it was never learned anew")
    others = [0, 2, 3]
    assert_allclose(A[others][:, others], (S - np.outer(S[1], S[1]) / S[1, 1])[others][:, others], rtol=1e-9, atol=1e-9)
    assert_allclose(np.linalg.solve(S, c)[others], model.coef_.T.reshape(4, -1)[others], rtol=1e-9)
    assert (A[1] == 0).all() and (b[1] == 0).all() and parts[4][0] == 1.0


@pytest.mark.parametrize("level", [100.0, 1000.0])
@pytest.mark.parametrize("forward", [True, False])
def test_forgetting_does_not_shrink_the_level_of_the_targets(level, forward):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    y = level + X @ [1.0, -1.0, 0.5] + rng.normal(size=1500)
    errors = (one_by_one(ForwardRegressor(forgetting=0.99, forward=forward), X, y) - y)[-500:]
    assert np.sqrt(np.mean(errors**2)) < 1.1 and abs(errors.mean()) < 0.1


def test_equal_and_empty_columns_and_an_endless_stream():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 4))
    X[:, 1], X[:, 2], X[1000:, 3] = X[:, 0], 3.0, 0.5  # equal, constant, constant from some row on
    y = X[:, 0] + 0.1 * rng.normal(size=len(X))
    model = ForwardRegressor(forgetting=0.99).partial_fit(X, y)  # 0.99^60000 is less than 1e-261
    assert_allclose(model.coef_[:2], 0.5, atol=0.02)
    assert model.coef_[2] == 0.0 and model.scale_[2] == 1.0
    assert np.sqrt(np.mean((model.predict(X[-500:]) - y[-500:]) ** 2)) < 0.2


def test_deviations_are_those_of_the_normal_model(unlimited):
    X, y = moving_rows(80)
    X[:, 1] = np.random.default_rng(3).normal(size=80)
    model = ForwardRegressor(alpha=1e-9, forward=False).fit(X, y)
    design = np.c_[X, np.ones(80)]
    u, left, *_ = np.linalg.lstsq(design, y)
    covariance = np.linalg.inv((design / design.std(axis=0).clip(1)).T @ (design / design.std(axis=0).clip(1)))
    rows = design / design.std(axis=0).clip(1)
    variance = left[0] / 79 * (1 + np.einsum("ij,jk,ik->i", rows, covariance, rows))
    found, std = model.predict(X, return_std=True)
    assert_allclose(found, design @ u, rtol=1e-4, atol=1e-3)
    assert_allclose(std, np.sqrt(variance), rtol=1e-3)


# --- the formulas -----------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(
    seed=seeds,
    d=st.integers(1, 9),
    n_targets=st.sampled_from([None, 1, 3]),
    rows=st.integers(1, 25),
    alpha=st.floats(-2, 2).map(lambda power: 10.0**power),
    gamma=st.sampled_from([1.0, 0.9]),
    intercept=st.sampled_from(["none", "penalised", "free"]),
    forward=st.booleans(),
    weighted=st.booleans(),
)
def test_deviations_and_intervals_are_those_of_the_formulas(
    seed, d, n_targets, rows, alpha, gamma, intercept, forward, weighted
):
    rng = np.random.default_rng(seed)
    X, y = some_rows(rows, d, n_targets, seed)
    h = rng.choice([0.5, 1.0, 7.3], size=rows) if weighted else np.ones(rows)
    rows_with_1 = X if intercept == "none" else np.c_[X, np.ones(rows)]
    replica = Replica(
        rows_with_1.shape[1], n_targets or 1, alpha, gamma=gamma, free=1e-13 if intercept == "free" else None
    )
    model = papers(
        alpha=alpha,
        forward=forward,
        forgetting=gamma,
        fit_intercept=intercept != "none",
        penalize_intercept=intercept == "penalised",
    )
    for i, x in enumerate(rows_with_1):
        model.partial_fit(X[i : i + 1], y[i : i + 1], h[i : i + 1] if weighted else None)
        replica.learn(x, np.atleast_1d(y[i]), h[i])
    assert_allclose(np.atleast_1d(model.noise_variance_), replica.variance, rtol=1e-6, atol=1e-12)
    queries = rng.normal(size=(6, d))
    prediction, std = model.predict(queries, return_std=True)
    assert_array_equal(prediction, model.predict(queries))
    with_1 = queries if intercept == "none" else np.c_[queries, np.ones(6)]
    spread = np.array([replica.spread(x) for x in with_1])
    expected = np.sqrt(np.multiply.outer(spread, replica.variance)).reshape(prediction.shape)
    assert_allclose(std, expected, rtol=1e-6, atol=1e-5)
    lower, upper = model.predict_interval(queries, coverage=0.7)
    center = model.set_params(forward=False).predict(queries)
    freedom = gamma * replica.n
    if freedom > 1:
        assert_allclose(lower, center + expected * stats.t(freedom).ppf(0.15), rtol=1e-5, atol=1e-4)
        assert_allclose(upper, center + expected * stats.t(freedom).ppf(0.85), rtol=1e-5, atol=1e-4)
    elif freedom == 0:
        assert (lower == -np.inf).all() and (upper == np.inf).all()


# --- streams ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [1.0, 0.9])
@pytest.mark.parametrize("free", [False, True])
def test_before_there_are_errors_nothing_is_known_of_the_noise(free, gamma):
    """A free intercept is determined by the first row, which leaves no error."""
    X, y = some_rows(5)
    model = papers(penalize_intercept=not free, forgetting=gamma)
    for h in (0.0, 3.0, 0.0)[: 3 if free else 1]:
        model.partial_fit(X[:1], y[:1], sample_weight=[h])
        prediction, std = model.predict(X, return_std=True)
        assert model.noise_variance_ == np.inf and (std == np.inf).all()
        assert model.t_ or (prediction == 0).all()
        lower, upper = model.predict_interval(X)
        assert (lower == -np.inf).all() and (upper == np.inf).all()
    assert not free or np.isfinite(model.partial_fit(X[1:2], y[1:2]).predict_interval(X)).all()


def test_intervals_are_infinite_where_next_to_nothing_is_remembered():
    X, y = some_rows(5)
    lower, upper = papers(forgetting=1e-3).fit(X, y).predict_interval(X)
    assert (lower == -np.inf).all() and (upper == np.inf).all()


def test_bad_questions_are_refused(unchanged):
    X, y = some_rows()
    model = papers().fit(X, 100 * y)
    for coverage in (0.0, 1.0, -0.1, 2.0, np.nan, "90 %", None):
        with pytest.raises(
            ValueError, match=f"coverage must be a number between 0 and 1, such as 0.9, or several; got {coverage!r}"
        ):
            model.predict_interval(X, coverage=coverage)
    bad = X.copy()
    bad[3] = 1e308 * np.sign(model.coef_)
    questions = (model.predict, partial(model.predict, return_std=True), model.predict_interval)
    for forward, ask, form in product((True, False), questions, (np.asarray, np.ndarray.tolist, csr_array)):
        model.set_params(forward=forward)
        with unchanged(model, re.escape("The prediction for row 3 (largest feature 1e+308) is not finite")):
            ask(form(bad))
    for ask in (lambda: papers().predict(X, return_std=True), lambda: papers().predict_interval(X)):
        with pytest.raises(AttributeError, match="not fitted"):
            ask()


# --- coverage ---------------------------------------------------------------------------------------------------------


def covered(model, X, y, coverage, skip=0):
    """The fraction of targets within their intervals, each computed before the row is learned."""
    hits = []
    for i in range(len(y)):
        if i >= max(skip, 1):
            lower, upper = model.predict_interval(X[i : i + 1], coverage)
            hits.append((lower <= y[i]) & (y[i] <= upper))
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    return np.mean(hits)


@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_intervals_cover_exactly_from_the_second_row_on_where_the_model_is_true(coverage):
    """Weights from the prior, and few rows compared with the number of weights: intervals must include both."""
    rng, rounds = np.random.default_rng(0), 150
    hits = []
    for _ in range(rounds):
        X, w = rng.normal(size=(25, 10)), rng.normal(size=10)
        y = 3.0 * (X @ w / np.sqrt(2.0) + rng.normal(size=25))
        hits.append(covered(papers(alpha=2.0, fit_intercept=False), X, y, coverage))
    assert np.mean(hits) == pytest.approx(coverage, abs=4 * np.sqrt(coverage * (1 - coverage) / (24 * rounds)))


# --- an intercept without a penalty -----------------------------------------------------------------------------------


@settings(max_examples=40)
@given(seed=seeds, rows=st.integers(1, 20), d=st.integers(1, 4), weighted=st.booleans())
def test_a_free_intercept_is_the_limit_of_a_small_penalty(seed, rows, d, weighted):
    """In all numbers, including the first row, the regret and its bound."""
    rng = np.random.default_rng(seed)
    X, y = some_rows(rows, d, seed=seed)
    h = rng.choice([0.5, 1.0, 3.0], size=rows) if weighted else np.ones(rows)
    limit, model = Replica(d + 1, 1, 1.0, free=1e-9), papers(penalize_intercept=False)
    for i, x in enumerate(np.c_[X, np.ones(rows)]):
        if i and h[i] == 1:
            assert_allclose(model.predict(X[i : i + 1]), limit.predict(x), rtol=1e-5, atol=1e-6)
        limit.learn(x, y[i : i + 1], h[i])
        model.partial_fit(X[i : i + 1], y[i : i + 1], h[i : i + 1])
    assert model.cumulative_loss_ == pytest.approx(limit.loss, rel=1e-5, abs=1e-6)
    assert model.regret_ == pytest.approx(limit.loss - limit.hindsight, rel=1e-5, abs=1e-6)
    assert model.regret_bound_ == pytest.approx(limit.bound, rel=1e-5, abs=1e-6)
    assert model.regret_ <= model.regret_bound_ + 1e-9


# --- other losses -----------------------------------------------------------------------------------------------------


LOSSES = {"poisson": PoissonLoss(), "log_loss": LogisticLoss()}


def rows_of_loss(n=60, d=4, seed=0, loss="poisson"):
    """Rows, and counts or shares with the mean h(u.x + b)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    scores = X @ rng.normal(size=d) / np.sqrt(d) + 0.5
    return X, rng.poisson(np.exp(scores)).astype(float) if loss == "poisson" else rng.beta(3 * expit(scores), 1.0)


class NewtonReplica(ForwardNewton):
    """The algorithm by its formulas, with the losses."""

    def __init__(self, d, loss, alpha, gamma, intercept_alpha=None, odds=False):
        super().__init__(np.diag(np.r_[np.full(d - 1, alpha), intercept_alpha or alpha]), loss, gamma)
        self.total, self.o, self.n, self.odds = 0.0, np.zeros(2), np.zeros(2), odds

    def learn(self, x, y, weight=1.0):
        o = self.o @ [-1, 1]
        self.total += weight * float(self.loss.value(o + self.w @ x, y))
        super().learn(x, y, weight, o)
        if self.odds:
            g = float(self.loss.derivative(o + self.w @ x, y))
            self.o = odds_step(self.o, self.n, np.array([-g, g]), weight)
            self.n = self.gamma * self.n + weight * np.array([1 - y, y])


# --- the algorithm ----------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 12),
    loss=st.sampled_from(list(LOSSES)),
    alpha=st.floats(-2, 2).map(lambda power: 10.0**power),
    gamma=st.sampled_from([1.0, 0.999, 0.8]),
    fit_intercept=st.booleans(),
    penalized=st.booleans(),
    weighted=st.booleans(),
)
def test_steps_on_other_losses_are_those_of_the_formulas(
    seed, d, loss, alpha, gamma, fit_intercept, penalized, weighted
):
    X, y = rows_of_loss(40, d, seed, loss)
    weights = np.random.default_rng(seed).choice([0.1, 1.0, 7.3], size=len(y)) if weighted else np.ones(len(y))
    odds = fit_intercept and loss == "log_loss"
    replica = NewtonReplica(d + 1, FORMULAS[loss], alpha, gamma, alpha if penalized else min(alpha, 1e-4), odds)
    model = ForwardRegressor(
        standardize=False,
        loss=loss,
        alpha=alpha,
        forgetting=gamma,
        fit_intercept=fit_intercept,
        penalize_intercept=penalized,
    )
    for i, x in enumerate(np.c_[X, np.full(len(y), float(fit_intercept))]):
        if i:
            predicted = model.predict(X[i : i + 1])
            assert_allclose(predicted, LOSSES[loss].link([replica.w @ x + replica.o @ [-1, 1]]), rtol=1e-8)
        replica.learn(x, y[i], weights[i])
        model.partial_fit(X[i : i + 1], y[i : i + 1], weights[i : i + 1] if weighted else None)
        w = np.r_[model.coef_, model.intercept_]
        expected = replica.w + (replica.o @ [-1, 1]) * np.eye(d + 1)[-1]
        assert_allclose(w, expected, rtol=1e-8, atol=1e-9 * np.abs(w).max())
    n = d + fit_intercept
    expected = np.linalg.inv(replica.A[:n, :n])
    assert_allclose(model._learner.covariance, expected, rtol=1e-7, atol=1e-8 * np.abs(expected).max())
    assert model.cumulative_loss_ == pytest.approx(replica.total, rel=1e-9)
    assert model.t_ == len(y) and isinstance(model.intercept_, float) and model.coef_.shape == (d,)


def test_a_smooth_loss_of_ones_own():
    X, y = rows_of_loss(30, 3)
    replica = NewtonReplica(4, LogCosh(), 1.0, 1.0)
    for x, target in zip(np.c_[X, np.ones(30)], y, strict=True):
        replica.learn(x, target)
    model = ForwardRegressor(standardize=False, loss=LogCosh()).fit(X, y)
    assert_allclose(np.r_[model.coef_, model.intercept_], replica.w, rtol=1e-8)
    assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_, rtol=1e-12)


# --- what is for the squared loss alone -------------------------------------------------------------------------------


def test_what_the_squared_loss_has_alone_says_so():
    X, y = rows_of_loss()
    model = ForwardRegressor(loss="poisson").fit(X, y)
    for name in ("regret_", "regret_bound_", "noise_variance_"):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match=rf"{name} is for loss='squared_error'.*this model has PoissonLoss"):
            getattr(model, name)
    for ask in (lambda: model.predict(X, return_std=True), lambda: model.predict_interval(X)):
        with pytest.raises(ValueError, match="requires loss='squared_error'"):
            ask()
    assert_array_equal(model.predict(X), model.set_params(forward=False).predict(X))
    assert not get_tags(model).target_tags.multi_output and get_tags(ForwardRegressor()).target_tags.multi_output
    assert get_tags(model).target_tags.positive_only and not get_tags(ForwardRegressor()).target_tags.positive_only


def test_several_targets_are_for_the_squared_loss_alone(unchanged):
    X, y = rows_of_loss()
    both = np.c_[y, y[::-1]]
    with unchanged(model := ForwardRegressor(loss="poisson").fit(X, y), "MultiOutputRegressor"):
        model.partial_fit(X, both)
    with unchanged(fresh := ForwardRegressor(loss="poisson"), "MultiOutputRegressor"):
        fresh.fit(X, both)


def test_losses_without_curvature_are_refused(unchanged):
    X, y = rows_of_loss()
    with unchanged(model := ForwardRegressor(loss=HuberLoss()), "loss must be smooth .*; got HuberLoss"):
        model.fit(X, y)
    with unchanged(model := ForwardRegressor(loss="absolute_error"), "'loss' parameter of ForwardRegressor must be"):
        model.fit(X, y)


@pytest.mark.parametrize("form", [np.asarray, np.ndarray.tolist])
def test_targets_that_the_loss_does_not_admit(unchanged, form):
    X, y = rows_of_loss()
    bad = np.where(np.arange(60) == 7, -1.0, y)
    for loss, remedy in (("poisson", "use counts"), ("log_loss", "rescale targets")):
        with unchanged(model := ForwardRegressor(loss=loss).fit(X, np.minimum(y, 1.0)), rf"y = -1 at row 7 .*{remedy}"):
            model.partial_fit(form(X), form(np.minimum(bad, 1.0)))


# --- rows that overflow -----------------------------------------------------------------------------------------------


SECOND_ORDER = {
    "softmax of two": lambda: ForwardClassifier(standardize=False, alpha=1e-3),
    "softmax of three": lambda: ForwardClassifier(standardize=False, alpha=1e-3),
    "aioli": lambda: ForwardClassifier(update="aioli"),
    "poisson": lambda: ForwardRegressor(standardize=False, loss="poisson"),
    "log loss": lambda: ForwardRegressor(standardize=False, loss="log_loss"),
}


@pytest.mark.parametrize("kind", SECOND_ORDER)
@pytest.mark.parametrize(
    ("row", "weight"),
    [([1e200, 1.0], 1.0), ([-1e308, 1.0], 1.0), ([1e156, 1e156], 1e10), ([1e-5, -1e160], 1.0), ([100.0, 1.0], 1e308)],
)
def test_rows_that_overflow_are_refused_by_other_losses_too(kind, row, weight, unchanged):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), np.arange(20) % (3 if kind == "softmax of three" else 2)
    model = SECOND_ORDER[kind]().fit(X, y)
    rows = np.vstack([X[:3], [row], X[:2]])
    for form in (rows, rows.tolist(), sparse.csr_array(rows)):
        with unchanged(model, "Row 3 .*overflow"):
            model.partial_fit(form, y[:6], sample_weight=[1.0, 1.0, 1.0, weight, 1.0, 1.0])


def test_rows_that_overflow_are_refused_and_nothing_is_learned(unchanged):
    X, y = some_rows(10)
    model = papers().partial_fit(X, y)
    centred = ForwardRegressor().partial_fit(X, y)  # no value of a column is absurd to it
    for row, column in [(0, 0), (6, 3), (9, 1)]:
        for huge in (1e200, -1e308):
            bad = X.copy()
            bad[row, column] = huge
            for form in (bad, bad.tolist(), sparse.csr_array(bad)):
                said = re.escape(f"Row {row} (largest feature {abs(huge):g}, ") + ".*scale features and targets"
                with unchanged(model, said):
                    model.partial_fit(form, y)
                with unchanged(fresh := papers(), rf"Row {row} "):
                    fresh.partial_fit(form, y)
            with unchanged(model, rf"Row {row} \(.*" + re.escape(f"target {abs(huge):g})")):
                model.partial_fit(X, np.where(np.arange(10) == row, huge, y))
            with unchanged(centred, rf"Row {row} \(.*" + re.escape(f"target {abs(huge):g})")):
                centred.partial_fit(X, np.where(np.arange(10) == row, huge, y))
    with unchanged(model, "Row 4 "):
        model.partial_fit(X, y + 100, sample_weight=np.where(np.arange(10) == 4, 1e308, 1.0))
    # the numbers of the row are finite, those of the factor are not
    tiny = papers(alpha=1e-320, fit_intercept=False).partial_fit([[0.0]], [0.0])
    with unchanged(tiny, "Row 0 "):
        tiny.partial_fit(np.array([[1e-160]]), np.array([1e150]))
