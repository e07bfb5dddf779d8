"""MEGKernelLearner: factors of low rank, and rates from the theory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import density
from numpy.testing import assert_allclose, assert_array_equal

from onlinebregman.divergences import VonNeumann
from onlinebregman.kernel_learning import MEGKernelLearner

laws = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**32 - 1)


# --- factors ----------------------------------------------------------------------------------------------------------


@laws
@given(seeds, st.integers(1, 7), st.sampled_from(["explicit", "implicit"]), st.booleans())
def test_factors_equal_matrices(seed, rank, update, each):
    """Any rank, also above d, signs for all instances or for each, including zeros."""
    rng = np.random.default_rng(seed)
    d, n = 5, 12
    factors = rng.normal(size=(n, rank, d))
    signs = rng.choice([-1, 0, 1], size=(n, rank) if each else rank)
    matrices = np.einsum("nr,nri,nrj->nij", np.broadcast_to(signs, (n, rank)), factors, factors)
    y = np.tensordot(matrices, density(rng, d), 2)
    one = MEGKernelLearner(update=update, eta0=2.0).partial_fit_factors(factors, y, signs)
    other = MEGKernelLearner(update=update, eta0=2.0).partial_fit_matrices(matrices, y)
    assert_allclose(one.log_kernel_, other.log_kernel_, rtol=0, atol=1e-9)
    assert one.spread_ == pytest.approx(other.spread_, rel=1e-10)
    assert (one.t_, one.n_collapsed_) == (other.t_, other.n_collapsed_)
    assert one.cumulative_loss_ == pytest.approx(other.cumulative_loss_, rel=1e-9)


def test_the_papers_rate_has_its_bound():
    """eta r^2 = 4, the paper's eta = 2, where the squared length of a pair's row is 1 up to rounding."""
    model = MEGKernelLearner(update="explicit", eta0=4.0, learning_rate="constant", scale_eta=False)
    kernel = density(np.random.default_rng(0), 4)
    model.partial_fit_pairs([[0, 1], [2, 3]], [0.1, 0.1], 4)
    divergence = VonNeumann(trace=1.0).divergence(kernel, np.eye(4) / 4)
    assert model.loss_bound(kernel) == pytest.approx(divergence / 4, rel=1e-10)


def test_one_factor_is_a_row():
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(20, 4)), rng.random(20)
    one = MEGKernelLearner().partial_fit_factors(rows[:, None], y)
    assert_array_equal(one.log_kernel_, MEGKernelLearner().partial_fit(rows, y).log_kernel_)


def test_methods_mix_in_one_stream():
    """Rows, matrices and factors in turn give the same results as matrices only."""
    rng = np.random.default_rng(1)
    rows, y = rng.normal(size=(30, 2)), rng.random(30)  # of two features: the width does not tell the kinds apart
    mixed, plain = MEGKernelLearner(), MEGKernelLearner()
    for i in range(0, 30, 3):
        mixed.partial_fit(rows[[i]], y[[i]])
        mixed.partial_fit_matrices(rows[[i + 1], :, None] * rows[[i + 1], None], y[[i + 1]])
        mixed.partial_fit_factors(rows[None, [i + 2, i]], y[[i + 2]], [1, -1])
        mixed.predict(rows)
        difference = np.outer(rows[i + 2], rows[i + 2]) - np.outer(rows[i], rows[i])
        plain.partial_fit_matrices(
            [np.outer(rows[i], rows[i]), np.outer(rows[i + 1], rows[i + 1]), difference], y[i : i + 3]
        )
    assert_allclose(mixed.log_kernel_, plain.log_kernel_, rtol=0, atol=1e-9)


# --- rates from the theory --------------------------------------------------------------------------------------------


def test_theory_rate_is_the_papers():
    """2b / (2 + r^2 b) for their loss is 4b / (2 + r^2 b) for half of it; b follows from the best kernel's loss."""
    parameters = {"update": "explicit", "learning_rate": "theory"}
    r, d, best = 1.5, 4, 0.7
    learner = MEGKernelLearner(data_bounds={"x": r, "loss": best}, **parameters).partial_fit(np.eye(d), np.zeros(d))
    eta = learner._schedule().scale
    rates = np.linspace(0.01, 0.99, 20_000) * 4 / r**2
    bounds = best / (1 - rates * r**2 / 4) + np.log(d) / rates
    assert eta == pytest.approx(rates[np.argmin(bounds)], rel=1e-3)
    assert learner.theory_bound_ == pytest.approx(bounds.min() - best, rel=1e-6)
    b = 2 * eta / (4 - r**2 * eta)
    assert eta == pytest.approx(4 * b / (2 + r**2 * b), rel=1e-12)
    perfect = MEGKernelLearner(data_bounds={"x": r, "loss": 0.0}, **parameters).partial_fit(np.eye(d), np.zeros(d))
    assert perfect._schedule().scale == pytest.approx(4 / r**2, rel=1e-5)
    assert perfect.theory_bound_ == pytest.approx(r**2 / 4 * np.log(d), rel=1e-5)
    # scale_eta is not for rates of the theory
    unscaled = MEGKernelLearner(scale_eta=False, data_bounds={"x": r, "loss": best}, **parameters)
    assert_array_equal(unscaled.partial_fit(np.eye(d), np.zeros(d)).kernel_, learner.kernel_)


def test_theory_says_what_it_lacks():
    rows, y = np.eye(3), np.ones(3) / 3
    with pytest.raises(ValueError, match=r"needs data_bounds\['x'\]"):
        MEGKernelLearner(learning_rate="theory").partial_fit(rows, y)
    with pytest.raises(ValueError, match="init"):
        MEGKernelLearner(learning_rate="theory", data_bounds={"x": 1.0}, init=np.eye(3)).partial_fit(rows, y)
    learner = MEGKernelLearner(learning_rate="theory", data_bounds={"x": 1.0}).partial_fit(rows, y)
    with pytest.raises(AttributeError, match="loss"):
        learner.theory_bound_  # noqa: B018
    with pytest.raises(AttributeError, match="theory"):
        MEGKernelLearner().partial_fit(rows, y).theory_bound_  # noqa: B018
    assert VonNeumann(2.0).smoothness(3.0) == 4.5
    with pytest.raises(ValueError, match="has no bound"):
        VonNeumann().smoothness(1.0)
