"""Laws of the updates for every geometry, stream and rate: statements of the theory, checked on difficult rows."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from replica import learn, model_of, rows_that_end_on_kinks
from scipy import sparse
from sklearn.base import clone

from onlinebregman import BurgRegressor, EGRegressor, ImplicitGDRegressor

LEARNERS = {
    "gd": lambda **kw: ImplicitGDRegressor(**kw),
    "burg": lambda **kw: BurgRegressor(**kw),
    "egu": lambda **kw: EGRegressor(weights="positive", **kw),
    "eg": lambda **kw: EGRegressor(weights="simplex", total=1.5, **kw),
    "signed": lambda **kw: EGRegressor(weights="signed", total=1.5, **kw),
}
learners = pytest.mark.parametrize("name", LEARNERS)
seeds = st.integers(0, 2**32 - 1)


def constant(name, **parameters):
    return LEARNERS[name](learning_rate="constant", **parameters)


def heavy(rng, shape, tail=1.2):
    """Heavy-tailed numbers of both signs; the largest of 10^5 is about 10^4 for a tail of 1.2."""
    return rng.standard_t(tail, size=shape)


# --- one implicit step ------------------------------------------------------------------------------------------------


@learners
@settings(max_examples=100)
@given(
    seed=seeds,
    n=st.integers(1, 30),
    rate=st.floats(-3, 4),
    scale=st.floats(-2, 3.5),
    y_scale=st.floats(-2, 3),
    fit_intercept=st.booleans(),
    density=st.sampled_from([None, 0.3, 1.0]),
    positive=st.booleans(),
)
@example(seed=10, n=1, rate=3.0, scale=0.75, y_scale=0.0, fit_intercept=True, density=0.3, positive=True)
@example(seed=14, n=14, rate=3.0, scale=3.0, y_scale=3.0, fit_intercept=True, density=None, positive=True)
def test_an_implicit_step_solves_its_equation_and_never_overshoots(
    name, seed, n, rate, scale, y_scale, fit_intercept, density, positive
):
    """c / eta + y - a(c) = 0: checked by the prediction after the step and by the change of the weights."""
    rng = np.random.default_rng(seed)
    eta, x = 10.0**rate, 10.0**scale * rng.normal(size=n)
    if positive:
        x = 10.0**scale + np.abs(x)
    if density:
        x *= rng.uniform(size=n) < density
    y = float(10.0**y_scale * rng.normal())
    model = constant(name, eta0=eta, fit_intercept=fit_intercept)
    X = x[None] if density is None else sparse.csr_array(x[None])
    start = 0.0 if name in ("gd", "signed") else x.sum() * (1.5 if name == "eg" else 1.0) / n
    model.partial_fit(X, [y])
    after = float(model.predict(X)[0])
    size = max(abs(after), abs(y), abs(start), np.abs(x) @ np.abs(model.coef_))
    if name == "signed":  # weights are differences of two
        size = max(size, 1.5 * np.abs(x).max())
    if name == "signed":  # its predictions are differences of sums as large as this
        size = max(size, 1.5 * np.abs(x).max())

    low, high = min(start, y), max(start, y)
    assert low - 1e-12 * size <= after <= high + 1e-12 * size
    assert (after - start) * (y - start) >= -1e-12 * size**2

    w, c_error = model.coef_, 0.0
    if fit_intercept:  # the intercept is a Euclidean coordinate of feature 1, so it moved by exactly -c
        c = -model.intercept_
    elif name in ("gd", "egu", "burg") and (x != 0).any():  # compute c from the weight that changed most
        i = int(np.abs(x).argmax())
        if name != "gd" and w[i] < 1e-300:
            return  # at the floor of the positive weights
        c = (-w[i] if name == "gd" else 1 / w[i] - n if name == "burg" else -np.log(w[i] * n)) / x[i]
        c_error = 1e-13 / abs(x[i]) * (max(1 / w[i], n) if name == "burg" else 1.0)
    else:
        return
    slope = {"gd": x @ x, "burg": (w * x) @ (w * x), "egu": w @ x**2}.get(name, 1.5 * np.abs(x).max() ** 2)
    rounding = 1e-15 * (abs(c) * (slope + 1) + size) + c_error * (slope + 1 / eta)  # of a and of c itself
    assert abs(c / eta + y - after) <= 1e-10 * max(abs(c / eta), abs(y), abs(after)) + rounding


@learners
def test_a_row_that_is_predicted_exactly_changes_nothing(name):
    start = [0.5, 0.25, 0.5 if name == "signed" else 0.75]
    model = constant(name, eta0=10.0, fit_intercept=False, init=start)
    model.partial_fit([[1.0, 2.0, 4.0]], [4.0 * start[2] + 1.0])
    assert_allclose(model.coef_, start, rtol=1e-14 if name != "signed" else 1e-12)
    assert model.cumulative_loss_ < 1e-28 and model.t_ == 1


# --- domains, held for 10^5 hard steps --------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("name, update", [(name, "implicit") for name in LEARNERS] + [("burg", "gradient")])
def test_weights_keep_their_domain_over_a_hundred_thousand_hard_steps(name, update, layout):
    rng = np.random.default_rng(3)
    n, rows = 12, 100_000
    X = heavy(rng, (rows, n))
    if update == "gradient":
        X = np.abs(X)
    if layout == "sparse":
        X = sparse.csr_array(X * (rng.uniform(size=X.shape) < 0.25))
    y = heavy(rng, rows)
    y = np.abs(y) if update == "gradient" else y
    model = constant(name, eta0=30.0, update=update, fit_intercept=True)
    for start in range(0, rows, 10_000):
        model.partial_fit(X[start : start + 10_000], y[start : start + 10_000])
        w = model.coef_
        assert np.isfinite(w).all() and np.isfinite(model.intercept_)
        if name in ("burg", "egu", "eg"):
            assert (w > 0).all()
        if update == "gradient":
            assert (w < 1).all()
        if name == "eg":
            assert_allclose(w.sum(), 1.5, rtol=1e-12)
        if name == "signed":
            assert np.abs(w).sum() <= 1.5 * (1 + 1e-12)
    assert model.t_ == rows


@pytest.mark.parametrize("name", ["eg", "signed"])
@pytest.mark.parametrize("update", ["implicit", "explicit"])
def test_the_simplex_does_not_drift_over_a_million_sparse_steps(name, update):
    rng = np.random.default_rng(4)
    n, rows = 300, 1_000_000
    counts = np.full(rows, 3)
    indices = rng.integers(0, n - 2, size=(rows, 1)) + np.arange(3)
    X = sparse.csr_array((rng.normal(size=3 * rows), indices.ravel(), np.r_[0, counts.cumsum()]), shape=(rows, n))
    y = rng.normal(size=rows)
    model = constant(name, eta0=0.3, update=update, fit_intercept=False).partial_fit(X, y)
    signs = np.sign(model.coef_)
    probe = np.diag(signs) if name == "signed" else np.eye(n)
    if name == "eg":
        assert abs(model.coef_.sum() / 1.5 - 1) < 1e-9
        assert abs(model.predict(np.ones((1, n)))[0] / 1.5 - 1) < 1e-9
    weights, _ = model._learner.position  # both halves of signed ones
    assert abs(weights.sum() / 1.5 - 1) < 1e-9
    # a rebuilt model (with a recomputed total) gives the same, if the other signs have any weight left
    if name == "eg" or np.abs(model.coef_).sum() < 1.5 * (1 - 1e-9):
        fresh = constant(name, eta0=0.3, update=update, fit_intercept=False, init=model.coef_).partial_fit(
            X[:1], y[:1], sample_weight=[1e-300]
        )
        assert_allclose(fresh.coef_, model.coef_, rtol=1e-9)
    assert_allclose(model.predict(probe), np.abs(model.coef_) if name == "signed" else model.coef_, rtol=1e-12)


# --- averages ---------------------------------------------------------------------------------------------------------


@learners
@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("eta0", [0.1, 20.0])
def test_the_average_is_the_mean_of_the_weights_after_every_step(name, layout, eta0):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(1200, 5))
    if layout == "sparse":
        X = sparse.csr_array(X * (rng.uniform(size=X.shape) < 0.4))
    y = X @ [0.4, 0.1, 0.3, 0.1, 0.1] + rng.normal(size=1200)
    averaged = constant(name, eta0=eta0, average=True).partial_fit(X, y)
    last, coefs, intercepts = constant(name, eta0=eta0), [], []
    for i in range(1200):
        last.partial_fit(X[i : i + 1], y[i : i + 1])
        coefs.append(last.coef_)
        intercepts.append(last.intercept_)
    assert_allclose(averaged.coef_, np.mean(coefs, axis=0), rtol=1e-10, atol=1e-12)
    assert_allclose(averaged.intercept_, np.mean(intercepts), rtol=1e-10, atol=1e-12)
    # losses are those of the averaged weights so far
    rows, t = X.toarray() if layout == "sparse" else X, np.arange(1, 1200)
    first = constant(name, eta0=eta0).partial_fit(X[:1], y[:1]).cumulative_loss_
    scores = (np.cumsum(coefs, axis=0)[:-1] * rows[1:]).sum(axis=1) / t + np.cumsum(intercepts)[:-1] / t
    assert averaged.cumulative_loss_ == pytest.approx(first + ((scores - y[1:]) ** 2).sum() / 2, rel=1e-10)
    from_700 = constant(name, eta0=eta0, average=701).partial_fit(X, y)
    assert_allclose(from_700.coef_, np.mean(coefs[700:], axis=0), rtol=1e-10, atol=1e-12)


@learners
def test_averaging_may_be_switched_on_and_off_in_mid_stream(name):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60, 5))
    y = X @ [0.4, 0.1, 0.3, 0.1, 0.1]
    model, last = constant(name, eta0=0.2), constant(name, eta0=0.2)
    model.partial_fit(X[:20], y[:20])
    model.set_params(average=True).partial_fit(X[20:40], y[20:40])
    last.partial_fit(X[:20], y[:20])
    coefs = [last.partial_fit(X[i : i + 1], y[i : i + 1]).coef_ for i in range(20, 40)]
    assert_allclose(model.coef_, np.mean(coefs, axis=0), rtol=1e-12)
    model.set_params(average=False).partial_fit(X[40:], y[40:])
    last.partial_fit(X[40:], y[40:])
    assert_allclose(model.coef_, last.coef_, rtol=1e-12)


# --- the regret certificate -------------------------------------------------------------------------------------------


def comparators(rng, name, n, w):
    """Points of the domain: the weights, near them, far from them, and (where the divergence allows it) a corner."""
    if name == "gd":
        return [w, w + rng.normal(size=n), 10 * rng.normal(size=n)]
    points = [w, w * rng.uniform(0.5, 2.0, size=len(w)), 10.0 ** rng.uniform(-4, 1, size=len(w))]
    if name == "eg":
        corner = np.zeros(len(w))
        corner[0] = 1.0
        points = [point * (1.5 / point.sum()) for point in (*points, corner)]
    elif name == "egu":
        points.append(np.where(np.arange(len(w)) == 0, 2.0, 0.0))
    return points


@pytest.mark.parametrize("name", ["gd", "burg", "egu", "eg"])  # signed weights are "eg" on (x, -x), see test_eg.py
@pytest.mark.parametrize("update", ["implicit", "explicit"])
@settings(max_examples=8)
@given(
    seed=seeds,
    n=st.integers(1, 8),
    fit_intercept=st.booleans(),
    weighted=st.booleans(),
    learning_rate=st.sampled_from(["constant", "sqrt"]),
)
def test_the_regret_certificate_holds_for_every_comparator(
    name, update, seed, n, fit_intercept, weighted, learning_rate
):
    """MATH 4, and more: the slack of the inequality is exactly sum eta (x.(w - u))^2 / 2."""
    rng = np.random.default_rng(seed)
    T = 40
    X, y = rng.normal(size=(T, n)), rng.normal(size=T)
    weights = rng.choice([0.0, 0.5, 2.0], size=T) if weighted else np.ones(T)
    eta0 = 0.03 / n if update == "explicit" else 0.5
    model = LEARNERS[name](eta0=eta0, learning_rate=learning_rate, update=update, fit_intercept=fit_intercept)
    path = [(np.full(n, {"gd": 0.0, "eg": 1.5 / n}.get(name, 1 / n)), 0.0)]
    for i in range(T):
        model.partial_fit(X[i : i + 1], y[i : i + 1], sample_weight=weights[i : i + 1])
        path.append((model.coef_, model.intercept_))
    kept = np.flatnonzero(weights)
    etas = np.zeros(T)
    etas[kept] = weights[kept] * eta0 / np.arange(1, len(kept) + 1) ** (0.5 if learning_rate == "sqrt" else 0.0)
    D = model.divergence_.divergence

    def distance(u, w):
        return D(u[0], w[0]) + (u[1] - w[1]) ** 2 / 2

    def loss(point, i):
        return (X[i] @ point[0] + point[1] - y[i]) ** 2 / 2

    for u in comparators(rng, name, n, path[-1][0]):
        u = (u, float(rng.normal()) if fit_intercept else 0.0)
        left = sum(etas[i] * loss(path[i], i) for i in range(T))
        right = sum(etas[i] * loss(u, i) for i in range(T)) + distance(u, path[0]) - distance(u, path[-1])
        given_away = 0.0
        for i in range(T):
            if update == "explicit":
                right += distance(path[i], path[i + 1])
            else:
                right += etas[i] * (loss(path[i], i) - loss(path[i + 1], i)) - distance(path[i + 1], path[i])
            w, b = path[i] if update == "explicit" else path[i + 1]
            given_away += etas[i] * (X[i] @ (w - u[0]) + b - u[1]) ** 2 / 2
        size = abs(left) + abs(right) + distance(u, path[0]) + given_away + 1.0
        assert left <= right + 1e-10 * size
        assert abs(right - left - given_away) <= 1e-9 * size


@settings(max_examples=10)
@given(seed=seeds, upper=st.sampled_from([0.3, 1.0]))
def test_a_projection_only_strengthens_the_certificate(seed, upper):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3))
    y = X @ [2.0, 0.2, 0.5]
    model = BurgRegressor(eta0=0.5, learning_rate="constant", upper_bound=upper, init=0.2, fit_intercept=False)
    path = [np.full(3, 0.2)]
    for i in range(40):
        path.append(model.partial_fit(X[i : i + 1], y[i : i + 1]).coef_)
    D = model.divergence_.divergence

    def loss(w, i):
        return (X[i] @ w - y[i]) ** 2 / 2

    assert max(w.max() for w in path) == upper  # the projection was needed
    for u in upper * rng.uniform(0.01, 1.0, size=(5, 3)):
        # the step before its projection, from the exact equation it solves
        right = D(u, path[0]) - D(u, path[-1])
        left = 0.0
        for i in range(40):
            free = BurgRegressor(eta0=0.5, learning_rate="constant", init=path[i], fit_intercept=False)
            free = free.partial_fit(X[i : i + 1], y[i : i + 1]).coef_
            assert_allclose(path[i + 1], np.minimum(free, upper), rtol=1e-13)
            left += 0.5 * loss(path[i], i)
            right += 0.5 * loss(u, i) + 0.5 * (loss(path[i], i) - loss(free, i)) - D(free, path[i])
        assert left <= right + 1e-10 * (abs(left) + abs(right))


# --- symmetries -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("divergence", ["squared_euclidean", "simplex_entropy", "p_norm"])
@pytest.mark.parametrize("loss", ["hinge", "perceptron", "absolute_error", "epsilon_insensitive", "quantile"])
def test_explicit_steps_from_scores_within_rounding_of_a_kink_are_those_from_the_kink(divergence, loss):
    """Rates times integers add up to kinks of the loss, up to rounding, which depends on the order of the columns."""
    signed = {"signed": True} if divergence == "simplex_entropy" else {}
    for seed in range(25):
        X, y, order = rows_that_end_on_kinks(loss, seed, integers=True)
        model, permuted, rows = (
            model_of(divergence, loss, update="explicit", eta0=0.1, learning_rate="constant", **signed)
            for _ in range(3)
        )
        coef = np.ravel(learn(model, X, y).coef_)
        learn(permuted, X[:, order], y)
        learn(rows, sparse.csr_array(X), y)
        for found, expected in ((permuted, coef[order]), (rows, coef)):
            size = np.abs(coef).max()
            assert_allclose(np.ravel(found.coef_), expected, rtol=1e-9, atol=1e-9 * size, err_msg=f"seed {seed}")


@pytest.mark.parametrize("divergence", ["squared_euclidean", "adagrad"])
@pytest.mark.parametrize("loss", ["hinge", "perceptron"])
def test_an_enormous_row_without_loss_does_not_bring_later_scores_onto_kinks(divergence, loss):
    X, y, _ = rows_that_end_on_kinks(loss, 0)
    models = [model_of(divergence, loss, update="explicit", eta0=0.1, learning_rate="constant") for _ in range(2)]
    for model in models:
        learn(model, X[:10], y[:10])
    far = 1e150 * X[:1]
    learn(models[1], far, np.sign(models[1].decision_function(far)))
    for model in models:
        learn(model, X[10:], y[10:])
    assert_array_equal(models[1].coef_, models[0].coef_)


@learners
@pytest.mark.parametrize("update", ["implicit", "explicit"])
@settings(max_examples=10)
@given(seed=seeds, n=st.integers(2, 20))
def test_permuting_the_features_permutes_the_weights(name, update, seed, n):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(100, n)), rng.normal(size=100)
    order = rng.permutation(n)
    model = LEARNERS[name](eta0=0.02 / n if update == "explicit" else 0.5, update=update)
    one, two = clone(model).partial_fit(X, y), clone(model).partial_fit(X[:, order], y)
    assert_allclose(two.coef_, one.coef_[order], rtol=1e-9, atol=1e-12)
    assert_allclose(two.intercept_, one.intercept_, rtol=1e-9, atol=1e-12)


@learners
@settings(max_examples=10)
@given(seed=seeds, factor=st.sampled_from([0.25, 8.0]))
def test_scaling_rows_targets_and_rate_together_changes_nothing(name, seed, factor):
    """(s x, s y) at the rate eta / s^2 is (x, y) at eta, for every geometry: c x is unchanged."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(50, 4)), rng.normal(size=50)
    one = LEARNERS[name](eta0=0.5, fit_intercept=False).partial_fit(X, y)
    two = LEARNERS[name](eta0=0.5 / factor**2, fit_intercept=False).partial_fit(factor * X, factor * y)
    assert_allclose(two.coef_, one.coef_, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("name", ["gd", "signed"])
def test_flipping_a_feature_flips_its_weight(name):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(100, 4)), rng.normal(size=100)
    flip = np.array([1, -1, 1, -1])
    one, two = LEARNERS[name]().partial_fit(X, y), LEARNERS[name]().partial_fit(X * flip, y)
    assert_allclose(two.coef_, one.coef_ * flip, rtol=1e-11, atol=1e-14)


# --- leaving the domain -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array, np.ndarray.tolist])
@pytest.mark.parametrize(
    "name, reason",
    [("burg", r"row 3 .*leaves the domain 'w > 0'"), ("gd", r"diverge|overflow"), ("egu", r"diverge|overflow")],
)
def test_an_explicit_step_too_far_is_refused_and_nothing_is_learned(name, reason, layout, unchanged):
    rng = np.random.default_rng(8)
    X, y = rng.uniform(0.5, 1.0, size=(6, 4)), np.full(6, 0.5)
    model = constant(name, update="explicit", eta0=0.01).partial_fit(X, y)
    y[3] = 1e4 if name == "burg" else 1e308 if name == "gd" else 1e6
    if name == "gd":
        X[4] = 1e10
    with unchanged(model, reason):
        model.partial_fit(layout(X), y)
    with unchanged(model, "update='implicit'"):
        model.fit(layout(X), y)
    implicit = clone(model).set_params(update="implicit")
    if name != "gd":
        assert np.isfinite(implicit.partial_fit(layout(X), y).coef_).all()


def test_explicit_gradient_descent_that_diverges_is_an_error_in_the_end(unchanged):
    rng = np.random.default_rng(9)
    X = 10 * rng.normal(size=(3000, 5))
    y = X.sum(axis=1)
    model = ImplicitGDRegressor(update="explicit", eta0=0.1, learning_rate="constant")
    with unchanged(model, r"weights (diverge|overflow)"):
        model.fit(X, y)
    model.partial_fit(X[:5], y[:5])
    with unchanged(model, r"row \d+"):
        model.partial_fit(X, y)
    assert model.t_ == 5
    assert np.abs(clone(model).set_params(update="implicit").partial_fit(X, y).coef_ - 1).max() < 0.1
