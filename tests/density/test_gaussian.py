"""The full Gaussian family: moments, Key Lemma, LogDet geometry, bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
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
        model.partial_fit([x], sample_weight=[weight])
        W += weight * np.outer(np.append(x, 1), np.append(x, 1))
        assert_allclose(model.expectation_parameters_, W / W[3, 3], rtol=1e-9, atol=1e-12)
        assert_allclose(model.cumulative_loss_, loss, rtol=1e-9)
        assert model.t_ == t + 1
    density = stats.multivariate_normal(model.location_, model.covariance_)
    assert_allclose(model.score_samples(X), density.logpdf(X))
    assert_allclose(model.precision_ @ model.covariance_, np.eye(3), atol=1e-10)
    assert_allclose(model.score(X), density.logpdf(X).mean())


@given(seed=st.integers(0, 1000), forward=st.booleans())
@settings(max_examples=15)
def test_key_lemma(seed, forward):
    rng = np.random.default_rng(seed)
    X, h, k = draw(n=10, d=2, seed=seed), rng.uniform(0.2, 3, size=10), rng.uniform(0.5, 3)
    model = OnlineGaussian(strategy="forward" if forward else "incremental_offline", prior_weight=k)
    model.fit(X, sample_weight=h)
    F, mean, covariance = model.conjugate_, rng.normal(size=2), np.array([[1.5, 0.2], [0.2, 0.6]])
    U, weight = moments(mean, covariance), k + forward
    W = moments(np.zeros(2), np.eye(2))
    right = weight * F.divergence(W, U)
    for x, step in zip(X, h, strict=True):
        z = np.append(x, 1.0)
        after = (weight * W + step * np.outer(z, z)) / (weight + step)
        weight += step
        right += weight * F.divergence(after, W)
        W = after
    right -= weight * F.divergence(W, U)
    left = model.cumulative_loss_ + h @ stats.multivariate_normal(mean, covariance).logpdf(X)
    assert_allclose(left, right, rtol=1e-8, atol=1e-8)


def test_the_divergence_is_the_relative_entropy_between_gaussians():
    model = OnlineGaussian().fit(draw(d=2))
    m, C, n, D = np.array([1.0, -1.0]), np.array([[2.0, 0.3], [0.3, 1.0]]), np.array([0.2, 0.1]), np.diag([0.5, 1.5])
    P = np.linalg.inv(D)
    entropy = (np.trace(P @ C) - 2 + (n - m) @ P @ (n - m) - np.log(np.linalg.det(C) / np.linalg.det(D))) / 2
    F, G, U, W = model.conjugate_, model.cumulant_, moments(m, C), moments(n, D)
    assert_allclose(F.divergence(U, W), entropy, rtol=1e-10)
    assert_allclose(G.divergence(F.mirror(W), F.mirror(U)), entropy, rtol=1e-10)
    assert_allclose(model.natural_parameters_, -np.linalg.inv(model.expectation_parameters_) / 2)


def test_the_numbers_do_not_depend_on_the_cut_nor_drift(learned):
    X = draw(n=2500) * [1.0, 1e3, 1e-3] + 1e3
    whole = OnlineGaussian().fit(X)
    for cut in (1, 1023, 1024, 1025, 2047):
        assert learned(OnlineGaussian().partial_fit(X[:cut]).partial_fit(X[cut:])) == learned(whole)
    assert_allclose(whole._progress.inverse @ whole._progress.scatter, np.eye(3), atol=1e-5)


def test_samples_have_the_moments_of_the_model():
    model = OnlineGaussian().fit(draw(n=500))
    X = model.sample(50000, random_state=0)
    assert_allclose(X.mean(axis=0), model.location_, atol=0.1)
    assert_allclose(np.cov(X.T, bias=True), model.covariance_, atol=0.2)


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
        ({"prior_covariance": np.diag([1.0, -1.0, 1.0])}, "not positive definite"),
        ({"prior_covariance": np.triu(np.ones((3, 3)))}, "not symmetric"),
        ({"prior_covariance": 0.0}, "'prior_covariance' parameter"),
    ],
)
def test_bad_priors(parameters, match, unchanged):
    model = OnlineGaussian(**parameters)
    for method in (model.fit, model.partial_fit):
        with unchanged(model, match):
            method(draw())


def test_weights_that_are_all_zero():
    model = OnlineGaussian().partial_fit(draw(), sample_weight=0.0)
    assert model.t_ == model.cumulative_loss_ == 0
    with pytest.raises(ValueError, match="All sample_weight are zero"):
        model.fit(draw(), sample_weight=0.0)


def test_rows_that_overflow_change_nothing(unchanged):
    X = draw()
    model = clone(OnlineGaussian()).fit(X)
    X[4, 1] = 1e200
    with unchanged(model, r"Row 4 \(largest value 1e\+200\)"):
        model.partial_fit(X)
