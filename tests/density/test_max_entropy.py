"""Maximum entropy: moments, duality, iterative scaling, relaxed matching, zeros, bad input, passes over a domain."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import LinAlgError
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

from onlinebregman import MaxEntDensity, reference
from onlinebregman.density._domain import Features, RowIndex, distinct
from onlinebregman.density._scaling import Scaling, newton
from onlinebregman.reference import scaling_step, softmax

SOLVERS = ["newton", "lbfgs", "iterative_scaling"]


def world(seed=0, n_points=60, n=3, m=40):
    """A domain, and numbers of observed points from all of it."""
    rng = np.random.default_rng(seed)
    domain = rng.normal(size=(n_points, n)) * [1.0, 10.0, 0.1][:n] + [0.0, 100.0, -5.0][:n]
    return domain, rng.integers(n_points, size=m)


def scipy_optimum(domain, observed):
    """The multipliers of the most likely member, by SciPy alone, in centred features."""
    scale = domain.std(axis=0)
    f = (domain - domain.mean(axis=0)) / scale
    target = f[observed].mean(axis=0)

    def loss(v):
        g = f @ v
        return logsumexp(g) - v @ target, np.exp(g - logsumexp(g)) @ f - target

    return minimize(loss, np.zeros(f.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-10}).x / scale


# --- the optimum ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("seed", range(3))
def test_all_solvers_find_the_optimum_of_scipy(solver, seed):
    domain, observed = world(seed)
    model = MaxEntDensity(domain, solver=solver, tol=1e-17, max_iter=20000).fit(observed)
    expected = scipy_optimum(domain, observed)
    spread = domain.std(axis=0)
    assert_allclose(model.lambda_ * spread, expected * spread, atol=1e-6)
    assert_allclose(model.expectations_, domain[observed].mean(axis=0), rtol=1e-6)
    g = domain @ expected
    assert_allclose(model.score_samples(domain), g - logsumexp(g), atol=1e-6)
    assert abs(model.dual_gap_) < 1e-6


@pytest.mark.parametrize("alpha", [0.0, 1e-4, 1e-2])
@pytest.mark.parametrize("seed", range(3))
def test_newton_takes_few_steps_where_features_depend_on_each_other(seed, alpha):
    """All products of six correlated columns, a feature twice, and one that never varies."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(3000, 6)) @ rng.normal(size=(6, 6))
    f = PolynomialFeatures(2).fit_transform(base / np.abs(base).max())
    f = np.c_[f, f[:, 3]]
    score = f @ rng.normal(size=29)
    observed = rng.choice(3000, size=400, p=np.exp(score - logsumexp(score)))
    model = MaxEntDensity(f, alpha=alpha).fit(observed)
    assert model.n_iter_ <= 15
    gap = (model.empirical_expectations_ - model.expectations_) / np.where(np.ptp(f, axis=0) > 0, np.ptp(f, axis=0), 1)
    assert (np.abs(gap) <= alpha + 1e-6).all()
    moved = (model.lambda_ != 0) & (np.ptp(f, axis=0) > 0)
    assert_allclose(gap[moved], alpha * np.sign(model.lambda_[moved]), atol=1e-6)
    assert abs(model.dual_gap_) < 1e-6


def test_newton_where_the_multipliers_have_no_finite_optimum():
    """The corners of a simplex, half of them observed, which are a face: the others go to probability 0."""
    rng = np.random.default_rng(0)
    domain, observed = rng.normal(size=(40, 40)), np.arange(20)
    with pytest.warns(ConvergenceWarning, match="alpha"):
        model = MaxEntDensity(domain, max_iter=5).fit(observed)
    model.set_params(max_iter=200).fit(observed)
    assert model.entropy_bound_ < 1e-9
    assert_allclose(model.expectations_, domain[observed].mean(axis=0), atol=1e-4)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20)
def test_no_distribution_of_the_same_expectations_has_more_entropy(seed):
    """Primal and dual optimum are one: log-loss = entropy >= entropy of every q' with the same moments."""
    domain, observed = world(seed)
    model = MaxEntDensity(domain, tol=1e-16).fit(observed)
    q = model.probabilities_
    assert_allclose(q.sum(), 1)
    assert_allclose(model.entropy_, -(q * np.log(q)).sum(), rtol=1e-9)
    assert_allclose(model.log_loss_, -np.log(q[observed]).mean(), rtol=1e-9)
    assert_allclose(model.log_loss_, model.entropy_, atol=1e-6)
    constraints = np.c_[np.ones(len(domain)), (domain - domain.mean(axis=0)) / domain.std(axis=0)]
    move = np.random.default_rng(seed).normal(size=len(domain))
    move -= constraints @ np.linalg.lstsq(constraints, move, rcond=None)[0]  # keeps sum and moments
    other = q + 0.5 * move * (q / np.abs(move)).min()
    assert_allclose(other @ domain, q @ domain, rtol=1e-9)
    assert -(other * np.log(other)).sum() < model.entropy_
    # Pythagoras: RE(q', q_lambda) = H(q) - H(q') at the optimum
    assert_allclose((other * np.log(other / q)).sum(), model.entropy_ + (other * np.log(other)).sum(), atol=1e-6)


@pytest.mark.parametrize("scaling", ["largest_sum", "n_features"])
@given(seed=st.integers(0, 10**6), alpha=st.sampled_from([0.0, 0.02, 0.1]))
@settings(max_examples=20)
def test_each_round_of_scaling_gains_at_least_its_bound(scaling, seed, alpha):
    domain, observed = world(seed)
    span = np.ptp(domain, axis=0)
    model = MaxEntDensity(domain, solver="iterative_scaling", scaling=scaling, max_iter=1, tol=None, alpha=alpha)
    model.fit(observed)
    for rounds in range(2, 8):
        before, gain = model.log_loss_ + alpha * np.abs(model.lambda_ * span).sum(), model.entropy_bound_
        model = clone(model).set_params(max_iter=rounds).fit(observed)
        after = model.log_loss_ + alpha * np.abs(model.lambda_ * span).sum()
        assert before - after >= gain - 1e-12
        assert gain >= 0


@pytest.mark.parametrize("scaling", ["largest_sum", "n_features"])
def test_a_round_is_the_update_of_the_lecture(scaling):
    """lambda_j += ln(Ehat_j / E_j) for features on the simplex, the dummy feature among them."""
    domain, observed = world()
    f = (domain - domain.min(axis=0)) / np.ptp(domain, axis=0)
    C = 1.01 * (f.sum(axis=1).max() if scaling == "largest_sum" else f.shape[1])
    multipliers = np.zeros(3)
    for rounds in range(1, 4):
        multipliers += scaling_step(f[observed].mean(axis=0), softmax(f @ multipliers) @ f, C)[0]
        model = MaxEntDensity(domain, solver="iterative_scaling", scaling=scaling, max_iter=rounds, tol=None)
        model.fit(observed)
        q = softmax(f @ multipliers)
        assert_allclose(model.score_samples(domain), np.log(q), rtol=1e-10)
        assert_allclose(model.entropy_bound_, scaling_step(f[observed].mean(axis=0), q @ f, C)[1], rtol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
@given(seed=st.integers(0, 10**6), alpha=st.floats(0.005, 0.2))
@settings(max_examples=10)
def test_relaxed_moment_matching(solver, seed, alpha):
    """Optimality: expectations match within alpha of the range, exactly alpha where a multiplier is not 0."""
    domain, observed = world(seed)
    model = MaxEntDensity(domain, solver=solver, alpha=alpha, tol=1e-16, max_iter=5000).fit(observed)
    gap = (model.empirical_expectations_ - model.expectations_) / np.ptp(domain, axis=0)
    assert (np.abs(gap) <= alpha + 1e-6).all()
    moved = model.lambda_ != 0
    assert_allclose(gap[moved], alpha * np.sign(model.lambda_[moved]), atol=1e-6)
    assert abs(model.dual_gap_) < 1e-5


# --- observations -----------------------------------------------------------------------------------------------------


def test_weights_are_repetitions():
    domain, observed = world()
    counts = np.random.default_rng(1).integers(0, 4, size=40)
    repeated = MaxEntDensity(domain, tol=1e-16).fit(np.repeat(observed, counts))
    assert_allclose(
        MaxEntDensity(domain, tol=1e-16).fit(observed, sample_weight=counts).lambda_, repeated.lambda_, 1e-5
    )


@pytest.mark.parametrize("solver", SOLVERS)
def test_partial_fit_goes_on(solver):
    domain, observed = world()
    whole = MaxEntDensity(domain, solver=solver, tol=1e-16, max_iter=9000).fit(observed)
    parts = clone(whole).partial_fit(observed[:25]).partial_fit(domain[observed[25:]])
    assert_allclose(parts.empirical_expectations_, whole.empirical_expectations_, rtol=1e-12)
    assert_allclose(parts.probabilities_, whole.probabilities_, rtol=1e-5)
    again = pickle.loads(pickle.dumps(whole)).partial_fit(observed)  # the same expectations: no iterations
    assert again.n_iter_ <= 1 < whole.n_iter_


@pytest.mark.parametrize("alpha", [0.0, 1e-7, 1e-3])
def test_from_one_sighting_to_many(alpha):
    """The first observation concentrates the distribution; every call must find the optimum nevertheless."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        domain, observed = rng.normal(size=(rng.integers(5, 40), rng.integers(1, 5))), rng.integers(5, size=8)
        model = MaxEntDensity(domain, alpha=alpha)
        for t in range(8):
            model.partial_fit(observed[t : t + 1])
            cold = MaxEntDensity(domain, alpha=alpha).fit(observed[: t + 1])
            for fitted in (model, cold):
                gap = (fitted.empirical_expectations_ - fitted.expectations_) / np.ptp(domain, axis=0)
                assert (np.abs(gap) <= alpha + 2e-5).all()
            assert_allclose(model.log_loss_, cold.log_loss_, atol=1e-3)


def test_features_far_from_zero_and_of_any_range_lose_no_digits():
    f, observed = np.random.default_rng(0).uniform(size=(30, 3)), np.arange(12)
    expected = MaxEntDensity(f).fit(observed)
    for scale, offset in [(2.0**-560, 0.0), (2.0**500, 0.0), (1.0, 2.0**20)]:
        domain = scale * f + offset
        f_again = (domain - offset) / scale
        model = MaxEntDensity(domain).fit(observed).partial_fit(observed)
        assert_allclose(model.log_loss_, MaxEntDensity(f_again).fit(observed).log_loss_, rtol=1e-9)
        assert_allclose(model.entropy_, expected.entropy_, rtol=1e-7)
        assert_allclose(model.probabilities_, expected.probabilities_, rtol=1e-5)


def test_columns_have_names():
    grid = pd.DataFrame(np.argwhere(np.ones((3, 3))).astype(float), columns=["a", "b"])
    seen = pd.DataFrame({"b": [2.0, 2.0, 1.0], "a": [0.0, 1.0, 0.0]})
    with pytest.raises(ValueError, match="same order"):
        MaxEntDensity(grid).fit(seen)
    model = MaxEntDensity(grid).fit(seen[["a", "b"]])
    assert_allclose(model.expectations_, [1 / 3, 5 / 3], atol=1e-6)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    by_name = ColumnTransformer([("b", StandardScaler(), ["b"])])
    assert MaxEntDensity(grid, features=by_name).fit(seen[["a", "b"]]).lambda_.shape == (1,)
    with pytest.raises(ValueError, match="must be dense"):
        MaxEntDensity(grid, features=OneHotEncoder()).fit([0, 1])


def test_the_domain_may_come_with_the_rows():
    X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [2.0, 2.0]])
    model = MaxEntDensity().fit(X)
    assert_array_equal(model.domain_, [[0, 1], [1, 0], [2, 2]])
    assert_allclose(model.probabilities_, [0.5, 0.25, 0.25], atol=1e-4)
    model.partial_fit([[5.0, 1.0]])
    assert len(model.domain_) == 4
    with pytest.raises(ValueError, match="give domain"):
        MaxEntDensity(features=PolynomialFeatures(2)).fit(X)


def test_features_of_a_transformer():
    domain, observed = np.linspace(-1, 1, 41)[:, None], np.arange(10, 30)
    model = MaxEntDensity(domain, features=PolynomialFeatures(2, include_bias=False), tol=1e-16).fit(observed)
    assert_allclose(model.expectations_, [domain[observed].mean(), (domain[observed] ** 2).mean()], atol=1e-7)
    assert model.lambda_.shape == (2,) and model.n_features_in_ == 1
    # includes a constant feature
    constant = MaxEntDensity(domain, features=PolynomialFeatures(2), tol=1e-16).fit(observed)
    assert constant.lambda_[0] == 0
    assert_allclose(constant.probabilities_, model.probabilities_, rtol=1e-6)


def test_sampling():
    domain, observed = world()
    model = MaxEntDensity(domain).fit(observed)
    X = model.sample(20000, random_state=0)
    assert_allclose(X.mean(axis=0), model.expectations_, rtol=0.02, atol=0.05)
    assert np.isfinite(model.score(X))


# --- zeros ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_feature_never_observed_shrinks_the_support(solver):
    domain = np.array([[a, b, c] for a in (0.0, 1.0) for b in (0.0, 1.0, 2.0) for c in (0.0, 1.0)])
    observed = [[0, 0, 1], [0, 1, 1], [0, 1, 1], [0, 2, 1]]
    model = MaxEntDensity(domain, solver=solver, tol=1e-14).fit(observed)
    assert_array_equal(np.isinf(model.lambda_), [True, False, True])
    assert model.lambda_[0] == -np.inf and model.lambda_[2] == np.inf
    q = model.probabilities_
    assert (q[(domain[:, 0] == 1) | (domain[:, 2] == 0)] == 0).all()
    assert_allclose(model.expectations_, np.mean(observed, axis=0), atol=1e-6)
    assert_allclose(model.score_samples([[1, 0, 0], [0, 1, 1]]), [-np.inf, np.log(1 / 3)], atol=1e-6)
    assert np.isfinite([model.entropy_, model.log_loss_, model.dual_gap_]).all()
    model.partial_fit([[1, 0, 1]])  # the points of the first feature return to the support
    assert np.isfinite(model.lambda_[:2]).all() and model.lambda_[2] == np.inf
    assert_allclose(model.expectations_, [0.2, 0.8, 1.0], atol=1e-5)
    relaxed = MaxEntDensity(domain, solver=solver, alpha=0.01).fit(observed)
    assert np.isfinite(relaxed.lambda_).all() and (relaxed.probabilities_ > 0).all()


def test_supports_shrink_until_nothing_is_at_an_end():
    """On the points where the first feature is 0, the second one is at its smallest value."""
    domain = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 3.0], [1.0, 0.0], [1.0, 5.0]])
    model = MaxEntDensity(domain).fit([0, 1])
    assert_allclose(model.probabilities_, [0.5, 0.5, 0, 0, 0])
    assert_array_equal(model.lambda_, [-np.inf, -np.inf])


def test_a_face_of_the_convex_hull_that_no_feature_alone_shows():
    """Only f_1 + f_2 = 1 was observed: multipliers grow until tol, and the distribution converges to its limit."""
    domain = [[0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [0.2, 0.3]]
    model = MaxEntDensity(domain, tol=1e-12).fit([0, 1, 1])
    assert np.isfinite(model.lambda_).all() and (model.lambda_ > 10).all()
    assert_allclose(model.probabilities_, [1 / 3, 2 / 3, 0, 0], atol=1e-5)


# --- large domains ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("solver", SOLVERS)
def test_there_is_no_second_copy_of_the_features(dtype, solver):
    domain = np.random.default_rng(0).gamma(2.0, size=(100_000, 20)).astype(dtype)
    model = MaxEntDensity(domain, solver=solver, max_iter=3, tol=None)
    rows = np.arange(0, 100_000, 2)
    tracemalloc.start()
    try:
        model.fit(rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < domain.nbytes * (0.5 if dtype is np.float64 else 0.9)
    assert model.domain_ is domain
    assert len(pickle.dumps(model)) < 1.6 * domain.nbytes + 2_000_000


def test_rows_are_found_among_duplicates_and_negative_zeros():
    rng = np.random.default_rng(0)
    points = rng.integers(-1, 2, size=(200, 3)).astype(float)
    found = RowIndex(points).find(points, np.where(points == 0, -0.0, points))
    assert_array_equal(points[found], points)
    assert_array_equal(found, [np.flatnonzero((points == row).all(axis=1))[0] for row in points])
    assert_array_equal(RowIndex(points).find(points, np.full((2, 3), 0.5)), [-1, -1])


def test_different_points_of_one_hash_value(monkeypatch):
    monkeypatch.setattr("onlinebregman.density._domain.row_keys", lambda rows: np.zeros(len(rows), dtype=np.uint64))
    points = np.arange(20.0).reshape(10, 2)
    assert_array_equal(RowIndex(points).find(points, points[[7, 0, 9]]), [7, 0, 9])
    assert_array_equal(RowIndex(points).find(points, points + 0.5), np.full(10, -1))
    assert_array_equal(distinct(points[[7, 0, 7, 9, 0]]), points[[7, 0, 9]])


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "X, match",
    [
        ([[0.0, 0.0, 0.0]], r"Row 0 of X, \[0, 0, 0\], is not a point of the domain \(60 rows\)"),
        ([3, 60], r"X\[1\] = 60: numbers of points must be from 0 to 59"),
        ([-1], r"X\[0\] = -1"),
        ([0.0, 1.0], "Expected 2D array"),
        ([[0.0, 1.0]], "2 features|2 columns"),
        ([[np.nan, 0, 0]], "NaN"),
        (np.empty(0, dtype=int), "2D array|0 sample"),
    ],
)
def test_observations_that_are_not_in_the_domain(X, match, unchanged):
    domain, observed = world()
    model = MaxEntDensity(domain).fit(observed)
    for method in (model.partial_fit, model.fit):
        with unchanged(model, match):
            method(X)
    fresh = MaxEntDensity(domain)
    with unchanged(fresh, match):
        fresh.partial_fit(X)


@pytest.mark.parametrize(
    "parameters, match",
    [
        ({"domain": [[0.0, np.inf]]}, "Input domain contains infinity"),
        ({"domain": [1.0, 2.0]}, "Expected 2D array"),
        ({"tol": 0.0}, "'tol' parameter"),
        ({"domain": [[0.0, 1.0], [1e308, 0.0], [-1e308, 0.0]]}, "Feature 0 runs from -1e\\+308 to 1e\\+308"),
    ],
)
def test_bad_parameters(parameters, match, unchanged):
    model = MaxEntDensity(**parameters)
    for method in (model.fit, model.partial_fit):
        with unchanged(model, match):
            method([[0.0, 1.0]])


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_stopping_early_is_said_where_the_call_is(method):
    domain, observed = world()
    model = MaxEntDensity(domain, solver="iterative_scaling", max_iter=2)
    with pytest.warns(ConvergenceWarning, match="stopped after 2 iterations") as caught:
        getattr(model, method)(observed)
    assert caught[0].filename == __file__


# --- the formulas -----------------------------------------------------------------------------------------------------


class Replica:
    """Features of all points, scaled to [0, 1], at once."""

    def __init__(self, values, support=None):
        low, span = values.min(axis=0).astype(float), np.ptp(values.astype(float), axis=0)
        per_span = np.divide(1.0, span, out=np.zeros_like(span), where=span > 0)
        self.features = Features(values, None)
        self.features.support = support
        self.f = ((values - low) * per_span)[slice(None) if support is None else support]

    def derivatives(self, multipliers):
        """ln Z, its gradient (the expectations) and its Hessian (the covariance)."""
        g = self.f @ multipliers
        q = np.exp(g - logsumexp(g))
        expected = q @ self.f
        return logsumexp(g), expected, (self.f - expected).T @ (q[:, None] * (self.f - expected))

    def newton(self, empirical, max_iter, tol):
        multipliers = np.zeros(len(empirical))
        for n_iter in range(max_iter):
            log_z, expected, hessian = self.derivatives(multipliers)
            step = np.linalg.solve(hessian, empirical - expected)
            promise, part = (empirical - expected) @ step, 1.0
            if promise <= 1e-15:
                break
            while self.derivatives(multipliers + part * step)[0] - (multipliers + part * step) @ empirical > (
                log_z - multipliers @ empirical - 1e-4 * part * promise
            ):
                part /= 2
            multipliers = multipliers + part * step
            if promise <= tol:
                return multipliers, n_iter + 1
        return multipliers, n_iter


def of_values(n_points=300, n=4, dtype=float, seed=0):
    return np.random.default_rng(seed).gamma(2.0, size=(n_points, n)).astype(dtype) * [1, 100, 0.01, 1][:n] + 5


# --- against them -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["C", "F", "every other"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_points", [1, 300, 40_000])
@pytest.mark.parametrize("limited", [False, True])
def test_moments(layout, dtype, n_points, limited):
    values = of_values(n_points).astype(dtype)
    if layout == "every other":
        values = np.repeat(values, 2, axis=1)[:, ::2]
    support = np.random.default_rng(1).random(n_points) < 0.3 if limited else None
    if limited:
        support[0] = True
    replica = Replica(np.array(values, order=None if layout == "every other" else layout), support)
    multipliers = np.array([3.0, -20.0, 0.0, 50.0])
    log_z, expected, covariance = replica.features.moments(multipliers, covariance=True)
    assert_allclose(log_z, replica.derivatives(multipliers)[0], rtol=1e-12)
    assert_allclose(expected, replica.derivatives(multipliers)[1], rtol=1e-10)
    assert_allclose(covariance, replica.derivatives(multipliers)[2], rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_points", [300, 40_000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_newton(n_points, dtype):
    replica = Replica(of_values(n_points).astype(dtype))
    empirical = replica.f[np.argsort(replica.f[:, 3])[-50:]].mean(axis=0)
    expected, n_iter = replica.newton(empirical, 100, 1e-10)
    scaling = Scaling(4.0, empirical, 0.0)
    found = newton(replica.features, scaling, np.zeros(4), 1e-10, 100)
    assert_allclose(found[0], expected, rtol=1e-8)
    assert found[1] == n_iter > 3
    assert_allclose(found[2], replica.derivatives(found[0])[0], rtol=1e-12)
    assert_allclose(found[3], replica.derivatives(found[0])[1], rtol=1e-10)
    far = newton(replica.features, scaling, np.full(4, 1e3), 1e-10, 100)
    assert_allclose(far[0], found[0], rtol=1e-12)  # a start worse than 0 is replaced by 0
    assert newton(replica.features, scaling, np.zeros(4), 1e-10, 2)[1] == 2


def test_a_round_of_scaling():
    rng = np.random.default_rng(0)
    for gap in (1.0, 1e-3, 1e-7):
        expected = rng.uniform(0.1, 0.9, size=5)
        empirical = expected * (1 + gap * rng.uniform(-0.9, 0.9, size=5))
        step, fall = Scaling(9.0 / 1.01, empirical, 0.0).step(expected, np.zeros(5))
        assert_allclose(step, reference.scaling_step(empirical, expected, 9.0)[0], rtol=1e-14 / gap)
        assert_allclose(fall, reference.scaling_step(empirical, expected, 9.0)[1], rtol=1e-14 / gap)


def test_a_penalised_round_minimises_its_bound_and_says_by_how_much():
    rng = np.random.default_rng(0)
    expected, empirical, multipliers = rng.uniform(0.1, 0.9, size=(3, 50)) * [[1], [1], [0.01]] - [[0], [0], [0.005]]
    multipliers[:10] = 0
    C, alpha = 60.0, 0.2

    def change(step):
        penalty = alpha * C * (np.abs(multipliers + step) - np.abs(multipliers))
        return (expected * np.expm1(C * step) - C * step * empirical + penalty) / C

    step, fall = Scaling(C / 1.01, empirical, alpha).step(expected, multipliers)
    assert_allclose(fall, -change(step).sum(), rtol=1e-12)
    for other in (step + 1e-4, step - 1e-4, np.zeros(50)):
        assert (change(step) <= change(other) + 1e-15).all()


def test_observations_add_up():
    values, rng = of_values(), np.random.default_rng(0)
    points, weights = rng.integers(300, size=50), rng.uniform(size=50)
    model = MaxEntDensity(values, alpha=0.1)
    for start, end in ((0, 1), (1, 20), (20, 50)):
        model.partial_fit(points[start:end], sample_weight=weights[start:end])
    assert_allclose(model.empirical_expectations_, weights @ values[points] / weights.sum(), rtol=1e-12)
    for end in (0, 2):  # an end of the range alone leaves it alone as support, until something else is seen
        model = MaxEntDensity(np.arange(3.0)[:, None])
        for point, support in (end, np.arange(3) == end), (end, np.arange(3) == end), (1, [1, 1, 1]):
            assert_allclose(model.partial_fit([[point]]).probabilities_ > 0, support)


def test_a_covariance_that_is_not_finite_is_refused():
    features = Features(of_values(), None)
    features.low = features.low * np.nan
    with pytest.raises(LinAlgError, match="not positive definite"):
        newton(features, Scaling(4.0, np.zeros(4), 0.0), np.zeros(4), 1e-10, 100)
