"""Gaussians of learned mean and covariance: moments, Key Lemma, regret, LogDet geometry, bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import clone

from onlinebregman import OnlineGaussian


def moments(mean, covariance):
    z = np.append(mean, 1.0)
    W = np.outer(z, z)
    W[:-1, :-1] += covariance
    return W


def draw(n=50, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)


def test_moments_and_losses_row_by_row():
    X, h = draw(), np.random.default_rng(1).uniform(0.1, 3, size=50)
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
def test_key_lemma(seed, forward, full):
    rng = np.random.default_rng(seed)
    X, h, k = draw(n=10, d=2, seed=seed), rng.uniform(0.2, 3, size=10), rng.uniform(0.5, 3)
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
    model = OnlineGaussian().fit(draw(d=2))
    m, C, n, D = np.array([1.0, -1.0]), np.array([[2.0, 0.3], [0.3, 1.0]]), np.array([0.2, 0.1]), np.diag([0.5, 1.5])
    P = np.linalg.inv(D)
    entropy = (np.trace(P @ C) - 2 + (n - m) @ P @ (n - m) - np.log(np.linalg.det(C) / np.linalg.det(D))) / 2
    F, G, U, W = model.conjugate_, model.cumulant_, moments(m, C), moments(n, D)
    assert_allclose(F.divergence(U, W), entropy, rtol=1e-10)
    assert_allclose(G.divergence(F.mirror(W), F.mirror(U)), entropy, rtol=1e-10)
    assert_allclose(model.natural_parameters_, -np.linalg.inv(model.expectation_parameters_) / 2)


def test_the_divergence_of_independent_features_is_the_sum_of_theirs():
    model = OnlineGaussian(covariance_type="diag").fit(draw(d=3))
    one = OnlineGaussian().fit(draw(d=1)).conjugate_
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
    X = draw(n=200)
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
    X, rng = draw(n=30, seed=seed) * [1.0, 1e3, 1e-3], np.random.default_rng(seed)
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


def test_the_covariance_type_is_read_when_learning_starts(unchanged):
    model = OnlineGaussian(covariance_type="diag").fit(draw()).set_params(covariance_type="full")
    with unchanged(model, "covariance_type='full' cannot take effect in mid-stream"):
        model.partial_fit(draw())
    assert model.covariance_.shape == (3,)
    assert model.fit(draw()).covariance_.shape == (3, 3)


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
    X, rng = draw(seed=seed), np.random.default_rng(seed)
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
    X, h = draw(n=200), np.random.default_rng(1).uniform(0.1, 3, size=200)
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
    X = draw(n=rows, d=6, seed=seed)
    h = np.random.default_rng(seed).uniform(0.1, 3, size=rows)
    assert OnlineGaussian().fit(X, sample_weight=h).regret_ == np.inf


def test_without_a_prior_a_singular_covariance_has_no_least_loss():
    rng = np.random.default_rng(0)
    factors = rng.integers(-9, 10, size=(2, 3)).astype(float)
    plane = rng.integers(-99, 100, size=(500, 2)) @ factors + [1.0, 2.0, 3.0]
    for X in (draw(n=3), plane, np.c_[draw()[:, :2], np.full(50, 0.1)], np.ones((5, 3)) / 3):
        model = OnlineGaussian().fit(X)
        assert model.offline_loss_ == -np.inf and model.regret_ == np.inf
        assert np.isfinite(model.set_params(prior_weight=0.1).fit(X).regret_)
    assert np.isfinite(OnlineGaussian().fit(draw(n=4)).regret_)
    nearly = plane + 0.1 * rng.normal(size=plane.shape)
    deviations = np.linalg.svd(nearly - nearly.mean(axis=0), compute_uv=False) / np.sqrt(500)
    expected = 500 * (3 * (np.log(2 * np.pi) + 1) / 2 + np.log(deviations).sum())
    assert_allclose(OnlineGaussian().fit(nearly).offline_loss_, expected, rtol=1e-9)
    diagonal = OnlineGaussian(covariance_type="diag")
    assert np.isfinite(diagonal.fit(plane).regret_)
    assert diagonal.fit(np.c_[plane, np.full(500, 0.1)]).regret_ == np.inf
    assert diagonal.fit(draw(n=1)).regret_ == np.inf and np.isfinite(diagonal.fit(draw(n=2)).regret_)


# --- streams ----------------------------------------------------------------------------------------------------------


def test_the_inverse_does_not_drift():
    X = draw(n=2500) * [1.0, 1e3, 1e-3] + 1e3
    model = OnlineGaussian().fit(X)
    now = model._learner
    assert_allclose(now.inverse @ model.covariance_ * (now.weight + 1), np.eye(3), atol=1e-5)


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_samples_have_the_moments_of_the_model(covariance_type):
    model = OnlineGaussian(covariance_type=covariance_type).fit(draw(n=500))
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
    X = draw(n=40) * 1e7
    model = OnlineGaussian().fit(X)
    scores = stats.multivariate_normal(model.location_, model.covariance_).logpdf(X)
    assert_allclose(model.score_samples(X), scores, rtol=1e-11)
    assert [model.score_samples(x)[0] for x in X[:, np.newaxis]] == model.score_samples(X).tolist()


@pytest.mark.parametrize("row, size", [(0, 1e9), (100, 1e12), (100, 1e100)])
def test_rows_after_an_absurd_one_are_learned(row, size):
    """The absurd one costs the inverse all of its digits."""
    X = draw(n=300, d=5)
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
            method(draw())


def test_weights_that_are_all_zero():
    model = OnlineGaussian(prior_mean=2.0, prior_covariance=3.0).partial_fit(draw(), sample_weight=0.0)
    assert model.t_ == model.cumulative_loss_ == model.offline_loss_ == model.regret_ == 0
    assert_array_equal(model.location_, 2.0)
    assert_array_equal(model.covariance_, 3 * np.eye(3))
    with pytest.raises(ValueError, match="All sample_weight are zero"):
        model.fit(draw(), sample_weight=0.0)


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_rows_that_overflow_change_nothing(covariance_type, unchanged):
    X = draw()
    model = OnlineGaussian(covariance_type=covariance_type).fit(X)
    X[4, 1] = 1e200
    with unchanged(model, r"Row 4 \(largest value 1e\+200\)"):
        model.partial_fit(X)
    for row in (0, 4):
        with unchanged(clone(model), rf"Row {4 - row} \(largest value 1e\+200\)"):
            clone(model).partial_fit(X[row:])
