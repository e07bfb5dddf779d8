"""Passes over a domain, rounds of scaling and Newton's method of maximum entropy, against features at once."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import LinAlgError
from scipy.special import logsumexp

from onlinebregman import MaxEntDensity, reference
from onlinebregman.density._domain import Features
from onlinebregman.density._scaling import Scaling, newton

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
