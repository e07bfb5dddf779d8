"""Online exponential families, and Gaussians of learned covariance: formulas, Key Lemma, regret bounds, bad input."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from onlinebregman import OnlineExponentialFamily, OnlineGaussian
from onlinebregman.density._families import FAMILIES
from onlinebregman.density.exponential_family import minimax_rates

SCIPY = {  # SciPy's distribution of a given mean
    "gaussian": lambda mu: stats.norm(mu, np.sqrt(2.0)).logpdf,
    "bernoulli": lambda mu: stats.bernoulli(mu).logpmf,
    "poisson": lambda mu: stats.poisson(mu).logpmf,
    "exponential": lambda mu: stats.expon(scale=mu).logpdf,
    "gamma": lambda mu: stats.gamma(3.0, scale=mu / 3.0).logpdf,
}


def make(family, **parameters):
    return OnlineExponentialFamily(family, variance=2.0, shape=3.0, **parameters)


def draw(family, n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    mu = rng.uniform(0.2, 0.8, size=d)
    return {
        "gaussian": lambda: rng.normal(mu, size=(n, d)),
        "bernoulli": lambda: (rng.uniform(size=(n, d)) < mu).astype(float),
        "poisson": lambda: rng.poisson(5 * mu, size=(n, d)).astype(float),
        "exponential": lambda: rng.exponential(mu, size=(n, d)),
        "gamma": lambda: rng.gamma(3.0, mu, size=(n, d)),
    }[family]()


@pytest.mark.parametrize("family", FAMILIES)
def test_densities_are_those_of_scipy_and_of_the_exponential_form(family):
    X = draw(family)
    model = make(family).fit(X)
    mu, theta = model.expectation_parameters_, model.natural_parameters_
    assert_allclose(model.score_samples(X), SCIPY[family](mu)(X).sum(axis=1), rtol=1e-10)
    base = model._family.log_base(X).sum(axis=1)
    assert_allclose(model.score_samples(X), X @ theta - model.cumulant_.potential(theta) + base, rtol=1e-10)
    assert_allclose(model.score(X), model.score_samples(X).mean())


@pytest.mark.parametrize("family", FAMILIES)
def test_the_divergence_is_the_relative_entropy_between_members(family):
    model = make(family).fit(draw(family, d=1))
    mu, nu = np.array([0.3]), np.array([0.6])
    p, q = SCIPY[family](mu[0]), SCIPY[family](nu[0])
    if family in ("bernoulli", "poisson"):
        x = np.arange(2 if family == "bernoulli" else 60)
        entropy = (np.exp(p(x)) * (p(x) - q(x))).sum()
    else:
        low, high = (-20, 20) if family == "gaussian" else (1e-12, 30)
        entropy = integrate.quad(lambda x: np.exp(p(x)) * (p(x) - q(x)), low, high, epsabs=1e-12, limit=200)[0]
    F, G = model.conjugate_, model.cumulant_
    assert_allclose(F.divergence(mu, nu), entropy, rtol=1e-7)
    assert_allclose(G.divergence(F.mirror(nu), F.mirror(mu)), entropy, rtol=1e-7)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("strategy", ["forward", "incremental_offline"])
@given(seed=st.integers(0, 1000), k=st.floats(0.1, 5), comparator=st.floats(0.05, 0.95), mean=st.floats(0.2, 0.8))
@settings(max_examples=10)
def test_key_lemma(family, strategy, seed, k, comparator, mean):
    """The identity holds for every comparator; for incremental_offline also with any weights."""
    X, d = draw(family, n=12, d=2, seed=seed), 2
    h = np.ones(12) if strategy == "forward" else np.random.default_rng(seed).uniform(0.2, 3, size=12)
    model = make(family, strategy=strategy, prior_weight=k, prior_mean=mean).fit(X, sample_weight=h)
    F, mu = model.conjugate_, np.full(d, comparator)
    k1 = k + (strategy == "forward")
    means = [np.full(d, mean)]
    weights = k1 + np.append(0.0, np.cumsum(h))
    for x, weight, step in zip(X, weights[1:], h, strict=True):
        means.append(means[-1] - step / weight * (means[-1] - x))
    left = model.cumulative_loss_ + h @ SCIPY[family](mu)(X).sum(axis=1)
    right = k1 * F.divergence(means[0], mu) - weights[-1] * (F.divergence(means[-1], mu))
    right += sum(
        weight * F.divergence(after, before)
        for weight, before, after in zip(weights[1:], means[:-1], means[1:], strict=True)
    )
    assert_allclose(left, right, rtol=1e-8, atol=1e-8)
    assert_allclose(model.expectation_parameters_, means[-1], rtol=1e-10)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("k", [0.0, 2.0])
def test_the_offline_loss_is_the_least(family, k):
    X, h = draw(family), np.random.default_rng(1).uniform(0.5, 2, size=60)
    model = make(family, prior_weight=k, prior_mean=0.5).fit(X, sample_weight=h)
    F, first = model.conjugate_, np.full(3, 0.5)

    def penalised(mu):
        return -(h @ SCIPY[family](mu)(X).sum(axis=1)) + k * F.divergence(first, mu)

    best = (k * 0.5 + h @ X) / (k + h.sum())
    assert_allclose(model.offline_loss_, penalised(best), rtol=1e-10)
    for factor in (0.9, 1.1):
        assert penalised(factor * best) > model.offline_loss_
    assert_allclose(model.regret_, model.cumulative_loss_ - model.offline_loss_)


@pytest.mark.parametrize("X", [np.zeros((5, 1)), np.c_[np.zeros(5), np.arange(5.0)]])
def test_a_column_of_zeros_has_no_best_exponential(X):
    model = OnlineExponentialFamily("exponential").fit(X)
    assert model.offline_loss_ == -np.inf and model.regret_ == np.inf and hasattr(model, "regret_")
    assert np.isfinite(model.cumulative_loss_)
    assert np.isfinite(model.set_params(prior_weight=0.1).fit(X).regret_)
    assert np.isfinite(model.partial_fit(X + 1).regret_)
    model.set_params(prior_weight=0.0).fit(X).partial_fit(X + 1)
    assert_allclose(model.offline_loss_, 10 * (np.log(np.r_[X, X + 1].mean(axis=0)) + 1).sum())  # no longer only zeros


@pytest.mark.parametrize("family, value", [("bernoulli", 0.0), ("bernoulli", 1.0), ("poisson", 0.0)])
def test_constant_coins_and_zero_counts_have_no_offline_loss(family, value):
    X = np.full((5, 2), value)
    model = OnlineExponentialFamily(family).fit(X, sample_weight=[0.1, 0.2, 0.3, 0.7, 1.9])
    assert model.offline_loss_ == 0 and model.regret_ == model.cumulative_loss_ > 0


# --- bounds -----------------------------------------------------------------------------------------------------------

hard = st.lists(st.sampled_from([-1.0, 1.0, 0.3, -3.0, 0.0]), min_size=1, max_size=60)


@given(xs=hard, mean=st.floats(-1, 1))
def test_gaussian_minimax_regret_is_an_identity_and_its_bound_holds_at_every_row(xs, mean):
    X, T = np.c_[xs, xs[::-1]], len(xs)
    model = make("gaussian", strategy="minimax", horizon=T, prior_mean=mean)
    for row in X:
        model.partial_fit(row[None])
        assert model.regret_ <= model.regret_bound_ + 1e-9
    alpha, squares = minimax_rates(T), ((X - mean) ** 2).sum(axis=1)
    assert_allclose(model.regret_, alpha @ squares / 4, atol=1e-9)  # variance 2
    assert_allclose(model.regret_bound_, squares.max() * alpha.sum() / 4, atol=1e-9)


@given(bits=st.lists(st.integers(0, 1), max_size=30), k=st.floats(0, 3), h=st.floats(0.1, 5))
def test_last_step_minimax_costs_the_same_for_zero_and_one(bits, k, h):
    start = OnlineExponentialFamily("bernoulli", strategy="last_step_minimax", prior_weight=k)
    start.partial_fit(np.c_[[*bits, 0]], sample_weight=[*np.ones(len(bits)), 0])
    before = start.regret_
    zero, one = (pickle.loads(pickle.dumps(start)).partial_fit([[x]], sample_weight=[h]) for x in (0, 1))
    assert_allclose(zero.regret_, one.regret_, atol=1e-9)
    assert zero.regret_ > before - 1e-9


@pytest.mark.parametrize("strategy", ["forward", "incremental_offline", "minimax"])
@pytest.mark.parametrize("shift", [2.0**20, 2.0**27])
@pytest.mark.parametrize("variance", [2.0, [2.0, 0.5]])
@pytest.mark.parametrize("k", [0.5, 1e9])
def test_a_regret_does_not_depend_on_where_zero_is(strategy, shift, variance, k):
    X = np.round(np.random.default_rng(0).normal(size=(1000, 2)), 2)
    X = (shift + X) - shift  # so that the shift is exact
    h = np.ones(1000) if strategy == "minimax" else np.random.default_rng(1).uniform(0.5, 2, size=1000)
    model = OnlineExponentialFamily(strategy=strategy, prior_weight=k, variance=variance, horizon=1000)
    near = clone(model).fit(X, sample_weight=h)
    far = clone(model).set_params(prior_mean=shift).fit(shift + X, sample_weight=h)
    for name in ("cumulative_loss_", "offline_loss_", "regret_"):
        assert_allclose(getattr(far, name), getattr(near, name), rtol=1e-12, atol=1e-10)
    assert_allclose(far.expectation_parameters_, shift + near.expectation_parameters_, rtol=1e-15)
    # the same in extended precision, where the platform has it: least squares about the best mean
    wide, weights, prior = X.astype(np.longdouble), h.astype(np.longdouble)[:, None], 0 if strategy == "minimax" else k
    best = (weights * wide).sum(axis=0) / (prior + weights.sum())
    least = ((weights * (wide - best) ** 2).sum(axis=0) + prior * best**2) / (2 * np.array(variance))
    least = least.sum() + h.sum() * np.log(2 * np.pi * np.broadcast_to(variance, 2)).sum() / 2
    assert_allclose(far.offline_loss_, float(least), rtol=1e-12)


def test_the_offline_loss_without_a_prior_does_not_see_its_mean():
    """Rows far from mu_1: the loss of the best member is accurate."""
    X = np.round(np.random.default_rng(0).normal(size=(1000, 2)) * 64) / 64
    expected = OnlineExponentialFamily().fit(X).offline_loss_
    assert_allclose(OnlineExponentialFamily().fit(2.0**27 + X).offline_loss_, expected, rtol=1e-12)


# --- variances of their own ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["forward", "incremental_offline", "last_step_minimax", "minimax"])
@given(seed=st.integers(0, 1000), weighted=st.booleans())
@settings(max_examples=10)
def test_variances_are_those_of_a_model_of_each_coordinate(strategy, seed, weighted):
    rng = np.random.default_rng(seed)
    X, variance, k = draw("gaussian", seed=seed), rng.uniform(0.1, 9, size=3), rng.uniform(0.1, 3)
    h = rng.uniform(0.1, 3, size=60) if weighted and strategy != "minimax" else np.ones(60)
    model = OnlineExponentialFamily(strategy=strategy, prior_weight=k, prior_mean=0.3, horizon=70)
    singles = [
        clone(model).set_params(variance=v).fit(x[:, None], sample_weight=h)
        for v, x in zip(variance.tolist(), X.T, strict=True)
    ]
    model.set_params(variance=variance).fit(X, sample_weight=h)
    for name in ("cumulative_loss_", "offline_loss_"):
        assert_allclose(getattr(model, name), sum(getattr(one, name) for one in singles), rtol=1e-10)
    mean = model.expectation_parameters_
    assert_allclose(mean, [one.expectation_parameters_.item() for one in singles])
    assert_allclose(model.score_samples(X), stats.norm(mean, np.sqrt(variance)).logpdf(X).sum(axis=1))
    assert_allclose(model.natural_parameters_, mean / variance)
    F, G = model.conjugate_, model.cumulant_
    assert_allclose(F.divergence(X[0], X[1]), ((X[0] - X[1]) ** 2 / (2 * variance)).sum())
    assert_allclose(G.divergence(F.mirror(X[1]), F.mirror(X[0])), F.divergence(X[0], X[1]))


def test_samples_have_the_variances():
    variance = [0.1, 1.0, 9.0]
    X = OnlineExponentialFamily(variance=variance).fit(np.ones((3, 3))).sample(20000, random_state=0)
    assert_allclose(X.var(axis=0), variance, rtol=0.05)


# --- streams ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_samples_have_the_mean_of_the_member(family):
    model = make(family).fit(draw(family, n=2000))
    X = model.sample(20000, random_state=0)
    assert X.shape == (20000, 3) and X.dtype == np.float64
    assert_allclose(X.mean(axis=0), model.expectation_parameters_, atol=0.1)
    model.score_samples(X)  # all rows are possible
    assert_array_equal(X, model.sample(20000, random_state=0))


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "family, value, match",
    [
        ("bernoulli", 1.5, "X has 1.5 in row 2, column 1, but Bernoulli rows are 0, 1, or prob"),
        ("bernoulli", -0.1, "X has -0.1 in row 2"),
        ("poisson", -1.0, "X has -1 in row 2, column 1, but Poisson rows are counts: whole numbers, not negative"),
        ("poisson", 1.5, "X has 1.5 in row 2, column 1, but Poisson rows are counts"),
        ("gamma", 0.0, "X has 0 in row 2, column 1, but gamma rows are positive, and exponential rows not negative"),
        ("exponential", -2.0, "X has -2 in row 2"),
        ("gaussian", np.nan, "NaN"),
        ("gaussian", 1e200, "Row 2 .*overflows"),
    ],
)
def test_values_that_are_not_of_the_family(family, value, match, unchanged):
    X = draw(family)
    model = make(family).fit(X)
    bad = X[:5].copy()
    bad[2, 1] = value
    for method in (model.partial_fit, model.fit):
        with unchanged(model, match):
            method(bad)
    if value != 1e200:
        with pytest.raises(ValueError, match=match):
            model.score_samples(bad)
    with unchanged(make(family), match):
        make(family).partial_fit(bad)


@pytest.mark.parametrize(
    "parameters, match",
    [
        ({"strategy": "incremental_offline"}, "prior_weight=0 leaves"),
        ({"strategy": "minimax"}, "and a horizon"),
        ({"strategy": "minimax", "horizon": 5, "family": "poisson"}, "family='poisson'"),
        ({"strategy": "minimax", "horizon": 5}, "Row 5 is row 6 of the stream, beyond horizon=5"),
        ({"strategy": "last_step_minimax", "family": "poisson"}, "last_step_minimax"),
        ({"prior_mean": [1.0, 2.0]}, r"prior_mean has shape \(2,\)"),
        ({"prior_mean": np.nan}, "prior_mean must be the mean"),
        ({"family": "poisson", "prior_mean": 0.0}, "prior_mean must be the mean of a member"),
        ({"family": "bernoulli", "prior_mean": [0.5, 1.0, 0.5]}, r"w\[1\] = 1"),
        ({"variance": [1.0, 2.0]}, r"variance has shape \(2,\); give a number, or one for each of the 3 features"),
        (
            {"variance": [1.0, 2.0, 0.0]},
            r"variance\[2\] = 0, but a variance and its inverse must be positive and finite",
        ),
        ({"variance": [1.0, np.nan, 1.0]}, r"variance\[1\] = nan, but"),
        ({"variance": 1e-320}, r"variance = 9.99989e-321, but a variance and its inverse must be positive and finite"),
        (
            {"variance": [1.0, 1e-320, 1.0]},
            r"variance\[1\] = 9.99989e-321, but a variance and its inverse must be positive and finite",
        ),
    ],
)
def test_parameters_that_do_not_go_together(parameters, match, unchanged):
    model, X = OnlineExponentialFamily(**parameters), np.ones((6, 3))
    for method in (model.fit, model.partial_fit):
        with unchanged(model, match):
            method(X)


def test_minimax_takes_weights_of_zero_and_one():
    model = OnlineExponentialFamily(strategy="minimax", horizon=2)
    with pytest.raises(ValueError, match=r"weights must be 0 or 1; got 0\.5 for row 1"):
        model.fit(np.ones((2, 1)), sample_weight=[1.0, 0.5])
    assert model.fit(np.ones((3, 1)), sample_weight=[1, 0, 1]).t_ == 2


def test_errors_name_rows_as_they_were_given():
    """Rows of weight 0 before the bad one are skipped, but counted."""
    with pytest.raises(ValueError, match="Row 2 "):
        OnlineExponentialFamily().fit([[0.0], [0.0], [1e200]], sample_weight=[0, 1, 1])
    with pytest.raises(ValueError, match="Row 2 is row 2 of the stream"):
        OnlineExponentialFamily(strategy="minimax", horizon=1).fit(np.ones((3, 1)), sample_weight=[0, 1, 1])


def test_nothing_is_known_before_the_first_row():
    model = OnlineExponentialFamily()
    for name in ("expectation_parameters_", "regret_", "cumulant_", "regret_bound_"):
        assert not hasattr(model, name)
    with pytest.raises(NotFittedError):
        model.sample()
    empty = model.partial_fit([[1.0]], sample_weight=[0.0])
    assert empty.t_ == empty.cumulative_loss_ == empty.regret_ == empty.regret_bound_ == 0


# --- Gaussians of learned mean and covariance -------------------------------------------------------------------------


def moments(mean, covariance):
    z = np.append(mean, 1.0)
    W = np.outer(z, z)
    W[:-1, :-1] += covariance
    return W


def gaussian_rows(n=50, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)


def test_moments_and_losses_row_by_row():
    X, h = gaussian_rows(), np.random.default_rng(1).uniform(0.1, 3, size=50)
    model = OnlineGaussian(prior_weight=1.5, prior_mean=0.5, prior_covariance=2.0)
    W, loss = 2.5 * moments(np.full(3, 0.5), 2 * np.eye(3)), 0.0
    for t, (x, weight) in enumerate(zip(X, h, strict=True)):
        mean, k = W[:3, 3] / W[3, 3], W[3, 3]
        loss -= weight * stats.multivariate_normal(mean, W[:3, :3] / k - np.outer(mean, mean)).logpdf(x)
        model.partial_fit(x[None], sample_weight=np.array([weight]))
        W += weight * np.outer(np.append(x, 1), np.append(x, 1))
        assert_allclose(model.expectation_parameters_, W / W[3, 3], rtol=1e-9, atol=1e-12)
        assert_allclose(model.cumulative_loss_, loss, rtol=1e-9)
        assert model.t_ == t + 1
    density = stats.multivariate_normal(model.location_, model.covariance_)
    assert_allclose(model.score_samples(X), density.logpdf(X))
    assert_allclose(model.precision_ @ model.covariance_, np.eye(3), atol=1e-10)
    assert_allclose(model.score(X), density.logpdf(X).mean())


@given(seed=st.integers(0, 1000), forward=st.booleans(), full=st.booleans())
@settings(max_examples=30)
def test_key_lemma_of_gaussians(seed, forward, full):
    rng = np.random.default_rng(seed)
    X, h, k = gaussian_rows(n=10, d=2, seed=seed), rng.uniform(0.2, 3, size=10), rng.uniform(0.5, 3)
    model = OnlineGaussian(strategy="forward" if forward else "incremental_offline", prior_weight=k)
    model.set_params(covariance_type="full" if full else "diag").fit(X, sample_weight=h)
    mean, covariance = rng.normal(size=2), np.array([[1.5, 0.2], [0.2, 0.6]]) if full else np.diag([1.5, 0.6])

    def expectation(mean, covariance):
        if full:
            return moments(mean, covariance)
        return np.stack([moments([m], [[v]]) for m, v in zip(mean, np.diag(covariance), strict=True)])

    F, U, weight = model.conjugate_, expectation(mean, covariance), k + forward
    W = expectation(np.zeros(2), np.eye(2))
    right = weight * F.divergence(W, U)
    for x, step in zip(X, h, strict=True):
        after = (weight * W + step * expectation(x, np.zeros((2, 2)))) / (weight + step)
        weight += step
        right += weight * F.divergence(after, W)
        W = after
    right -= weight * F.divergence(W, U)
    left = model.cumulative_loss_ + h @ stats.multivariate_normal(mean, covariance).logpdf(X)
    assert_allclose(left, right, rtol=1e-8, atol=1e-8)
    assert_allclose(model.expectation_parameters_, W, rtol=1e-9, atol=1e-12)


def test_the_divergence_is_the_relative_entropy_between_gaussians():
    model = OnlineGaussian().fit(gaussian_rows(d=2))
    m, C, n, D = np.array([1.0, -1.0]), np.array([[2.0, 0.3], [0.3, 1.0]]), np.array([0.2, 0.1]), np.diag([0.5, 1.5])
    P = np.linalg.inv(D)
    entropy = (np.trace(P @ C) - 2 + (n - m) @ P @ (n - m) - np.log(np.linalg.det(C) / np.linalg.det(D))) / 2
    F, G, U, W = model.conjugate_, model.cumulant_, moments(m, C), moments(n, D)
    assert_allclose(F.divergence(U, W), entropy, rtol=1e-10)
    assert_allclose(G.divergence(F.mirror(W), F.mirror(U)), entropy, rtol=1e-10)
    assert_allclose(model.natural_parameters_, -np.linalg.inv(model.expectation_parameters_) / 2)


def test_the_divergence_of_independent_features_is_the_sum_of_theirs():
    model = OnlineGaussian(covariance_type="diag").fit(gaussian_rows(d=3))
    one = OnlineGaussian().fit(gaussian_rows(d=1)).conjugate_
    U, W = (np.stack([moments([m], [[v]]) for m, v in rows]) for rows in (((0, 1), (1, 2), (3, 1)), [(1, 3)] * 3))
    F, G = model.conjugate_, model.cumulant_
    assert_allclose(F.divergence(U, W), sum(map(one.divergence, U, W)))
    assert_allclose(G.divergence(F.mirror(W), F.mirror(U)), F.divergence(U, W), rtol=1e-10)
    assert_allclose(F.potential(U), -np.log([1, 2, 1]).sum() / 2)
    assert_allclose(G.mirror(F.mirror(U)), U)
    assert_allclose(model.natural_parameters_, -np.linalg.inv(model.expectation_parameters_) / 2)
    with pytest.raises(ValueError, match="positive definite"):
        F.potential(-U)


@pytest.mark.parametrize("shift", [1e6, 1e8])
def test_natural_parameters_of_a_mean_far_from_zero(shift):
    X = gaussian_rows(n=200)
    model = OnlineGaussian(prior_mean=shift).fit(shift + X)
    theta, P, m = model.natural_parameters_, model.precision_, model.location_
    assert_allclose(theta[:3, :3], -P / 2, rtol=1e-12)
    assert_allclose(P, OnlineGaussian().fit((shift + X) - shift).precision_, rtol=1e-6)
    assert_allclose(theta[:3, 3], P @ m / 2, rtol=1e-12)
    assert_allclose(theta[3, 3], -(1 + m @ P @ m) / 2, rtol=1e-12)
    assert_array_equal(theta, theta.T)
    model.set_params(covariance_type="diag").fit(shift + X)
    for theta, p, m in zip(model.natural_parameters_, model.precision_, model.location_, strict=True):
        assert_allclose(theta, np.array([[-p, p * m], [p * m, -1 - p * m * m]]) / 2, rtol=1e-12)


# --- diagonal covariances ---------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 1000), forward=st.booleans(), k=st.sampled_from([0.5, 3.0]))
@settings(max_examples=20)
def test_diagonal_is_a_full_model_of_each_feature(seed, forward, k):
    X, rng = gaussian_rows(n=30, seed=seed) * [1.0, 1e3, 1e-3], np.random.default_rng(seed)
    h, mean, variances = rng.uniform(0.1, 3, size=30), rng.normal(size=3), rng.uniform(0.1, 3, size=3)
    parameters = {"strategy": "forward" if forward else "incremental_offline", "prior_weight": k}
    model = OnlineGaussian(covariance_type="diag", prior_mean=mean, prior_covariance=variances, **parameters)
    model.fit(X, sample_weight=h)
    singles = [
        OnlineGaussian(prior_mean=m, prior_covariance=v, **parameters).fit(x[:, None], sample_weight=h)
        for m, v, x in zip(mean, variances.tolist(), X.T, strict=True)
    ]
    for name in ("location_", "covariance_", "precision_"):
        assert getattr(model, name).shape == (3,)
        assert_allclose(getattr(model, name), [getattr(one, name).item() for one in singles], rtol=1e-10)
    for name in ("cumulative_loss_", "offline_loss_"):
        assert_allclose(getattr(model, name), sum(getattr(one, name) for one in singles), rtol=1e-10)
    assert_allclose(model.expectation_parameters_, [one.expectation_parameters_ for one in singles], rtol=1e-10)
    scores = stats.norm(model.location_, np.sqrt(model.covariance_)).logpdf(X).sum(axis=1)
    assert_allclose(model.score_samples(X), scores, rtol=1e-10)
    assert model.t_ == 30


# --- regret -----------------------------------------------------------------------------------------------------------


def least_loss(X, h, k, mean, covariance):
    """The least penalised loss of a Gaussian, from its moments."""
    z = np.c_[X, np.ones(len(X))]
    W, n, d = k * moments(mean, covariance) + (z * h[:, None]).T @ z, h.sum(), X.shape[1]
    best = np.linalg.slogdet(W / (k + n))[1]
    prior = np.linalg.slogdet(covariance)[1]
    return (n * d * (np.log(2 * np.pi) + 1) + (k + n) * best - k * prior) / 2


@pytest.mark.parametrize("strategy, k", [("forward", 0.0), ("forward", 0.7), ("incremental_offline", 0.7)])
@given(seed=st.integers(0, 1000))
@settings(max_examples=15)
def test_the_offline_loss_from_the_moments(strategy, k, seed):
    X, rng = gaussian_rows(seed=seed), np.random.default_rng(seed)
    h, mean, factor = rng.uniform(0.1, 3, size=50), rng.normal(size=3), rng.normal(size=(3, 3))
    covariance = factor @ factor.T + np.eye(3)
    model = OnlineGaussian(strategy=strategy, prior_weight=k, prior_mean=mean, prior_covariance=covariance)
    model.fit(X, sample_weight=h)
    expected = least_loss(X, h, k, mean, covariance)
    assert_allclose(model.offline_loss_, expected, rtol=1e-10, atol=1e-10)
    assert model.regret_ == model.cumulative_loss_ - model.offline_loss_
    model.set_params(covariance_type="diag", prior_covariance=np.diag(covariance)).fit(X, sample_weight=h)
    expected = sum(least_loss(X[:, [i]], h, k, mean[[i]], covariance[i : i + 1, i : i + 1]) for i in range(3))
    assert_allclose(model.offline_loss_, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_the_offline_loss_is_accurate_beside_a_prior_and_a_mean_that_are_large(covariance_type):
    """Without a prior it depends on the rows alone, and is accurate in spite of the row that "forward" adds."""
    X, h = gaussian_rows(n=200), np.random.default_rng(1).uniform(0.1, 3, size=200)
    model = OnlineGaussian(covariance_type=covariance_type)
    expected = model.fit(X, sample_weight=h).offline_loss_
    for scale in (2.0**-40, 2.0**10):
        model.set_params(prior_covariance=1e6).fit(scale * X, sample_weight=h)
        assert_allclose(model.offline_loss_, expected + h.sum() * 3 * np.log(scale), rtol=1e-12)
    shifted = X + 2.0**20
    expected = model.fit(shifted - 2.0**20, sample_weight=h).offline_loss_
    assert_allclose(model.fit(shifted, sample_weight=h).offline_loss_, expected, rtol=1e-12)


@given(seed=st.integers(0, 1000), rows=st.integers(1, 6))
def test_too_few_rows_have_no_least_loss(seed, rows):
    """Also where rounding makes all eigenvalues positive."""
    X = gaussian_rows(n=rows, d=6, seed=seed)
    h = np.random.default_rng(seed).uniform(0.1, 3, size=rows)
    assert OnlineGaussian().fit(X, sample_weight=h).regret_ == np.inf


def test_without_a_prior_a_singular_covariance_has_no_least_loss():
    rng = np.random.default_rng(0)
    factors = rng.integers(-9, 10, size=(2, 3)).astype(float)
    plane = rng.integers(-99, 100, size=(500, 2)) @ factors + [1.0, 2.0, 3.0]
    for X in (gaussian_rows(n=3), plane, np.c_[gaussian_rows()[:, :2], np.full(50, 0.1)], np.ones((5, 3)) / 3):
        model = OnlineGaussian().fit(X)
        assert model.offline_loss_ == -np.inf and model.regret_ == np.inf
        assert np.isfinite(model.set_params(prior_weight=0.1).fit(X).regret_)
    assert np.isfinite(OnlineGaussian().fit(gaussian_rows(n=4)).regret_)
    nearly = plane + 0.1 * rng.normal(size=plane.shape)
    deviations = np.linalg.svd(nearly - nearly.mean(axis=0), compute_uv=False) / np.sqrt(500)
    expected = 500 * (3 * (np.log(2 * np.pi) + 1) / 2 + np.log(deviations).sum())
    assert_allclose(OnlineGaussian().fit(nearly).offline_loss_, expected, rtol=1e-9)
    diagonal = OnlineGaussian(covariance_type="diag")
    assert np.isfinite(diagonal.fit(plane).regret_)
    assert diagonal.fit(np.c_[plane, np.full(500, 0.1)]).regret_ == np.inf
    assert diagonal.fit(gaussian_rows(n=1)).regret_ == np.inf and np.isfinite(diagonal.fit(gaussian_rows(n=2)).regret_)


# --- streams ----------------------------------------------------------------------------------------------------------


def test_the_inverse_does_not_drift():
    X = gaussian_rows(n=2500) * [1.0, 1e3, 1e-3] + 1e3
    model = OnlineGaussian().fit(X)
    now = model._learner
    assert_allclose(now.inverse @ model.covariance_ * (now.weight + 1), np.eye(3), atol=1e-5)


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_samples_have_the_moments_of_the_model(covariance_type):
    model = OnlineGaussian(covariance_type=covariance_type).fit(gaussian_rows(n=500))
    X = model.sample(50000, random_state=0)
    assert_allclose(X.mean(axis=0), model.location_, atol=0.1)
    covariance = model.covariance_ if covariance_type == "full" else np.diag(model.covariance_)
    assert_allclose(np.cov(X.T, bias=True), covariance, atol=0.2)


def test_a_covariance_that_is_singular_in_float64_is_an_error(unchanged):
    X = np.array([[1e3, 1e3], [-1e6, -1e6], [1e9, 1e9]])
    model = OnlineGaussian().fit(X)
    for ask in (lambda: model.score_samples(X), model.sample, lambda: model.precision_, lambda: model.score(X)):
        with unchanged(model, "covariance_ is singular in float64: .* raise prior_weight .* or scale the features"):
            ask()
    assert model.covariance_.shape == (2, 2) and np.isfinite(model.cumulative_loss_)
    for remedy in (OnlineGaussian(prior_weight=1e4).fit(X), OnlineGaussian().fit(X / 1e9)):
        assert np.isfinite(remedy.score(X)) and np.isfinite(remedy.sample()).all()


def test_predictions_are_accurate_far_from_the_scale_of_the_prior():
    """They are made by a factor of the scatter; the inverse that rows update has lost half of its digits here."""
    X = gaussian_rows(n=40) * 1e7
    model = OnlineGaussian().fit(X)
    scores = stats.multivariate_normal(model.location_, model.covariance_).logpdf(X)
    assert_allclose(model.score_samples(X), scores, rtol=1e-11)
    assert [model.score_samples(x)[0] for x in X[:, np.newaxis]] == model.score_samples(X).tolist()


@pytest.mark.parametrize("row, size", [(0, 1e9), (100, 1e12), (100, 1e100)])
def test_rows_after_an_absurd_one_are_learned(row, size):
    """The absurd one costs the inverse all of its digits."""
    X = gaussian_rows(n=300, d=5)
    X[row, 0] = size
    model = OnlineGaussian().partial_fit(X)
    deviations, now = np.sqrt(np.diag(model.covariance_)), model._learner
    units = np.outer(deviations, deviations)
    product = (now.inverse * units * (now.weight + 1)) @ (model.covariance_ / units)
    assert_allclose(product, np.eye(5), atol=1e-9)


def test_a_row_that_makes_the_covariance_singular_is_refused(unchanged):
    model = OnlineGaussian(prior_weight=1.0).partial_fit(np.zeros((1, 2)), sample_weight=0.0)
    with unchanged(model, r"Row 0 \(largest value 1.07374e\+09\) .* the covariance is singular in float64"):
        model.partial_fit([[2.0**30, 2.0**30]], sample_weight=2.0)


def test_a_singular_stream_stays_definite():
    X = np.ones((3000, 2))
    model = OnlineGaussian().fit(X)
    assert np.isfinite(model.cumulative_loss_) and np.linalg.eigvalsh(model.covariance_)[0] > 0


@pytest.mark.parametrize(
    "parameters, match",
    [
        ({"strategy": "incremental_offline"}, "prior_weight=0 leaves"),
        ({"prior_mean": [0.0]}, "one for each of 3 features"),
        ({"prior_mean": np.inf}, "finite number"),
        ({"prior_covariance": np.eye(2)}, "prior_covariance has 2 rows and columns"),
        ({"prior_covariance": np.diag([1.0, -1.0, 1.0])}, "must be positive definite"),
        ({"prior_covariance": np.triu(np.ones((3, 3)))}, "not symmetric"),
        ({"prior_covariance": 0.0}, "'prior_covariance' parameter"),
        ({"covariance_type": "tied"}, "'covariance_type' parameter"),
        ({"covariance_type": "diag", "prior_covariance": np.eye(3)}, "or one for each of 3 features"),
        ({"covariance_type": "diag", "prior_covariance": [1.0, 2.0]}, "or one for each of 3 features"),
        ({"covariance_type": "diag", "prior_covariance": [1.0, 0.0, 1.0]}, "needs a positive number"),
        ({"covariance_type": "diag", "prior_covariance": [1.0, np.nan, 1.0]}, "needs a positive number"),
    ],
)
def test_bad_priors(parameters, match, unchanged):
    model = OnlineGaussian(**parameters)
    for method in (model.fit, model.partial_fit):
        with unchanged(model, match):
            method(gaussian_rows())


def test_weights_that_are_all_zero():
    model = OnlineGaussian(prior_mean=2.0, prior_covariance=3.0).partial_fit(gaussian_rows(), sample_weight=0.0)
    assert model.t_ == model.cumulative_loss_ == model.offline_loss_ == model.regret_ == 0
    assert_array_equal(model.location_, 2.0)
    assert_array_equal(model.covariance_, 3 * np.eye(3))
    with pytest.raises(ValueError, match="All sample_weight are zero"):
        model.fit(gaussian_rows(), sample_weight=0.0)


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_rows_that_overflow_change_nothing(covariance_type, unchanged):
    X = gaussian_rows()
    model = OnlineGaussian(covariance_type=covariance_type).fit(X)
    X[4, 1] = 1e200
    with unchanged(model, r"Row 4 \(largest value 1e\+200\)"):
        model.partial_fit(X)
    for row in (0, 4):
        with unchanged(clone(model), rf"Row {4 - row} \(largest value 1e\+200\)"):
            clone(model).partial_fit(X[row:])
