"""ForwardRegressor: the algorithm against direct solutions, its regret bound, several targets, and its stability."""

import copy
import pickle

import numpy as np
import pytest
from forward_replica import Replica, papers, some_rows
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import Ridge

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


@pytest.mark.parametrize("n_targets", [None, 3])
def test_the_weights_are_those_of_ridge_regression(n_targets):
    X, y = some_rows(200, 6, n_targets)
    model = papers(alpha=3.0, fit_intercept=False).fit(X, y)
    assert_allclose(model.coef_, Ridge(alpha=3.0, fit_intercept=False, solver="svd").fit(X, y).coef_, rtol=1e-10)
    with_1 = Ridge(alpha=3.0, fit_intercept=False, solver="svd").fit(np.c_[X, np.ones(200)], y).coef_
    model = papers(alpha=3.0).fit(X, y)
    assert_allclose(model.coef_, with_1[..., :-1], rtol=1e-10)
    assert_allclose(model.intercept_, with_1[..., -1], rtol=1e-10)


def test_the_weights_do_not_depend_on_the_order_of_the_rows():
    X, y = some_rows(300, 7)
    order = np.random.default_rng(1).permutation(300)
    one, two = papers().fit(X, y), papers().fit(X[order], y[order])
    assert_allclose(one.coef_, two.coef_, rtol=1e-11)
    assert_allclose(one.predict(X), two.predict(X), rtol=1e-11)
    assert one.cumulative_loss_ != two.cumulative_loss_


def test_without_the_query_in_the_matrix_predictions_are_linear():
    X, y = some_rows(50, 5, 2)
    model = papers(forward=False).fit(X, y)
    assert_allclose(model.predict(3 * X), 3 * X @ model.coef_.T + model.intercept_, rtol=1e-12)
    forward = model.set_params(forward=True).predict(3 * X)
    ridge = model.set_params(forward=False).predict(3 * X)
    assert (np.abs(forward) < np.abs(ridge)).all() and (forward * ridge > 0).all()


# --- the theorem ------------------------------------------------------------------------------------------------------


def stream(kind, rng, rows, d):
    """Difficult streams of several kinds."""
    if kind == "random":
        return rng.normal(size=(rows, d))
    if kind == "heavy tails":
        return rng.standard_t(1.1, size=(rows, d))
    if kind == "growing":
        return rng.normal(size=(rows, d)) * 1.5 ** np.arange(rows)[:, None]
    if kind == "axes":  # each direction is new once, and then repeated
        return np.eye(d)[np.sort(rng.integers(d, size=rows))] * rng.choice([0.1, 1.0, 10.0])
    return np.outer(rng.normal(size=rows), rng.normal(size=d)) + 1e-6 * rng.normal(size=(rows, d))  # one direction


def target(against, rng, size, prediction):
    """A target in [-size, size]: the farthest from the prediction, or any."""
    if against:
        return -size if prediction > 0 else size
    return size * rng.uniform(-1, 1)


@settings(max_examples=80)
@given(
    seed=seeds,
    kind=st.sampled_from(["random", "heavy tails", "growing", "axes", "one direction"]),
    against=st.booleans(),
    rows=st.integers(1, 40),
    d=st.integers(1, 6),
    alpha=st.floats(-3, 2).map(lambda power: 10.0**power),
    size=st.sampled_from([0.01, 1.0, 300.0]),
    fit_intercept=st.booleans(),
    weighted=st.booleans(),
)
@example(seed=0, kind="axes", against=True, rows=40, d=1, alpha=0.01, size=1.0, fit_intercept=False, weighted=False)
def test_the_regret_is_within_its_bound(seed, kind, against, rows, d, alpha, size, fit_intercept, weighted):
    rng = np.random.default_rng(seed)
    X = stream(kind, rng, rows, d)
    h = rng.choice([0.1, 1.0, 5.0], size=rows) if weighted else np.ones(rows)
    model, y = papers(alpha=alpha, fit_intercept=fit_intercept), []
    for i in range(rows):
        y.append(target(against, rng, size, model.predict(X[i : i + 1])[0] if i else 0.0))
        model.partial_fit(X[i : i + 1], y[i:], h[i : i + 1])

    Z = np.sqrt(h)[:, None] * (np.c_[X, np.ones(rows)] if fit_intercept else X)
    z = np.sqrt(h) * y
    n = Z.shape[1]
    u = np.linalg.lstsq(np.r_[Z, np.sqrt(alpha) * np.eye(n)], np.r_[z, np.zeros(n)], rcond=None)[0]
    best = ((Z @ u - z) ** 2).sum() / 2 + alpha * (u @ u) / 2
    log_det = np.log1p(np.linalg.svd(Z, compute_uv=False) ** 2 / alpha).sum()
    rounding = 1e-12 * (z @ z)
    assert model.cumulative_loss_ <= best + model.regret_bound_ + rounding
    assert model.regret_ == pytest.approx(model.cumulative_loss_ - best, abs=1e-9 * (z @ z))
    assert model.regret_bound_ <= (z**2).max() / 2 * log_det + rounding
    coarsest = (z**2).max() / 2 * n * np.log1p(rows * (Z**2).sum(axis=1).max() / (alpha * n))
    assert (z**2).max() / 2 * log_det <= coarsest + rounding
    for _ in range(5):  # the theorem holds for every comparator
        v = u + rng.normal(size=n) * np.abs(u).max()
        loss = ((Z @ v - z) ** 2).sum() / 2 + alpha * (v @ v) / 2
        assert model.cumulative_loss_ <= loss + model.regret_bound_ + rounding


@settings(max_examples=60)
@given(
    seed=seeds,
    kind=st.sampled_from(["random", "heavy tails", "growing", "axes", "one direction"]),
    against=st.booleans(),
    gamma=st.sampled_from([0.99, 0.7, 0.1]),
    alpha=st.sampled_from([0.01, 1.0, 100.0]),
)
def test_the_regret_of_recent_rows_is_within_its_bound(seed, kind, against, gamma, alpha):
    rng = np.random.default_rng(seed)
    X = stream(kind, rng, 40, 3)
    model, y = papers(alpha=alpha, forgetting=gamma, fit_intercept=False), []
    recent = 0.0
    for i in range(40):
        prediction = model.predict(X[i : i + 1])[0] if i else 0.0
        y.append(target(against, rng, 1.0, prediction))
        recent = gamma * recent + (prediction - y[i]) ** 2 / 2
        model.partial_fit(X[i : i + 1], y[i:])
    counts = gamma ** np.arange(39.0, -1.0, -1.0)
    for size in (0.0, 0.1, 1.0, 10.0):
        u = model.coef_ + size * rng.normal(size=3)
        loss = counts @ (X @ u - y) ** 2 / 2 + gamma**40 * alpha * (u @ u) / 2
        assert recent <= loss + model.regret_bound_ + 1e-9
    assert model.regret_ <= model.regret_bound_ + 1e-9


def test_forgetting_follows_a_drift_and_leaves_directions_without_rows_alone_in_the_end():
    X, y = some_rows(4000, 3)
    X[:, 1] = 0.0
    y = X @ [1.0, 0.0, 2.0] * np.where(np.arange(4000) < 2000, 1, -1)
    model = papers(forgetting=0.5).fit(X, y)
    assert_allclose(model.coef_, [-1.0, 0.0, -2.0], atol=1e-12)
    assert np.isfinite(model.predict([[1.0, 1.0, 1.0]])).all()
    model.partial_fit([[0.0, 1.0, 0.0]], [3.0])
    assert model.coef_[1] == pytest.approx(3.0)


def test_ridge_predictions_have_no_such_bound():
    """A row much longer than those before it, with a target of the usual size."""
    X, y = [[1.0], [100.0]], [1.0, -1.0]
    forward = papers(fit_intercept=False).partial_fit(X, y)
    ridge = papers(fit_intercept=False, forward=False).partial_fit(X, y)
    assert forward.regret_bound_ < np.log1p(1 + 100.0**2) / 2 < 5
    assert forward.regret_ < forward.regret_bound_
    assert ridge.regret_ > 1000
    assert_array_equal(forward.coef_, ridge.coef_)
    with pytest.raises(AttributeError, match="2 of 2 rows were predicted with forward=False, whose regret has no such"):
        _ = ridge.regret_bound_


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


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_several_targets_are_as_many_models(forward, make):
    X, y = some_rows(60, 9, 3)
    X = make(X)
    together = papers(forward=forward).partial_fit(X[:13], y[:13]).partial_fit(X[13:], y[13:])
    apart = [papers(forward=forward).partial_fit(X, y[:, k]) for k in range(3)]
    assert_array_equal(together.coef_, [model.coef_ for model in apart])
    assert_array_equal(together.intercept_, [model.intercept_ for model in apart])
    assert_array_equal(together.predict(X), np.transpose([model.predict(X) for model in apart]))
    for name in ("cumulative_loss_", "regret_") + ("regret_bound_",) * forward:
        assert getattr(together, name) == pytest.approx(sum(getattr(model, name) for model in apart), rel=1e-12)


def test_what_comes_out_has_the_shape_of_the_targets():
    X, y = some_rows(20, 3)
    flat, column, wide = (papers().fit(X, target) for target in (y, y[:, None], np.c_[y, -y]))
    assert flat.coef_.shape == (3,) and isinstance(flat.intercept_, float) and flat.predict(X).shape == (20,)
    assert column.coef_.shape == (1, 3) and column.intercept_.shape == (1,) and column.predict(X).shape == (20, 1)
    assert wide.coef_.shape == (2, 3) and wide.intercept_.shape == (2,) and wide.predict(X).shape == (20, 2)
    assert_array_equal(column.predict(X)[:, 0], flat.predict(X))
    assert papers(fit_intercept=False).fit(X, np.c_[y, y]).intercept_.tolist() == [0.0, 0.0]
    assert isinstance(flat.t_, int) and isinstance(flat.regret_, float) and isinstance(flat.regret_bound_, float)


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


# --- weights ----------------------------------------------------------------------------------------------------------


def test_a_weight_counts_a_row_so_many_times():
    X, y = some_rows(30, 4, 2)
    h = np.random.default_rng(2).integers(0, 5, size=30)
    weighted = papers().fit(X, y, sample_weight=h)
    repeated = papers().fit(np.repeat(X, h, axis=0), np.repeat(y, h, axis=0))
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-11)
    assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-11)
    assert weighted.t_ == (h > 0).sum() and repeated.t_ == h.sum()


def test_a_weighted_row_is_its_multiple_by_the_square_root():
    X, y = some_rows(30, 4)
    h = np.random.default_rng(2).uniform(0.01, 20, size=30)
    weighted = papers(fit_intercept=False).fit(X, y, sample_weight=h)
    scaled = papers(fit_intercept=False).fit(np.sqrt(h)[:, None] * X, np.sqrt(h) * y)
    assert_allclose(weighted.coef_, scaled.coef_, rtol=1e-11)
    for name in ("cumulative_loss_", "regret_", "regret_bound_"):
        assert getattr(weighted, name) == pytest.approx(getattr(scaled, name), rel=1e-11)


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
