"""Online exponential families: formulas, the Key Lemma, regret bounds, bad input."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from onlinebregman import OnlineExponentialFamily
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
