"""DefiniteBoost with equality constraints: against a general solver, both inequalities, and laws of the solution."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from onlinebregman.divergences import VonNeumann
from onlinebregman.kernel_learning import DefiniteBoost

projections = pytest.mark.parametrize("projection", ["approximate", "exact", "corrective"])
pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")


def problem(seed, d=5, n=6):
    """Rows and their values in a kernel of full rank, with senses of all three kinds."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(d, d))
    kernel = factor @ factor.T / (factor**2).sum()
    rows = rng.normal(size=(n, d))
    return rows, np.einsum("ni,ij,nj->n", rows, kernel, rows), rng.permutation(["<=", ">=", "=="] * (n // 3))


def dual_solution(rows, bounds, senses):
    """The kernel and the multipliers by SciPy, with multipliers of either sign for equalities."""
    d = rows.shape[1]
    signs = np.where(senses == ">=", -1.0, 1.0)
    C = signs[:, None, None] * (rows[:, :, None] * rows[:, None, :] - bounds[:, None, None] * np.eye(d))

    def gibbs(alpha):
        values, vectors = np.linalg.eigh(-np.tensordot(alpha, C, 1))
        weights = np.exp(values - values.max())
        W = (vectors * (weights / weights.sum())) @ vectors.T
        return values.max() + np.log(weights.sum()), W

    found = minimize(
        lambda alpha: (gibbs(alpha)[0], -np.einsum("nij,ij->n", C, gibbs(alpha)[1])),
        np.zeros(len(rows)),
        jac=True,
        method="L-BFGS-B",
        bounds=[(None if sense == "==" else 0, None) for sense in senses],
        options={"maxiter": 10000, "ftol": 1e-16, "gtol": 1e-10},
    )
    return gibbs(found.x)[1], found.x


@projections
@pytest.mark.parametrize("seed", range(4))
def test_it_finds_the_solution_of_the_dual(projection, seed):
    rows, bounds, senses = problem(seed)
    model = DefiniteBoost(projection=projection, tol=1e-8, max_iter=200_000).fit(rows, bounds, sense=senses)
    kernel, alpha = dual_solution(rows, bounds, senses)
    assert_allclose(model.kernel_, kernel, atol=1e-6)
    assert_allclose(model.alpha_, alpha, atol=1e-5)
    equal = senses == "=="
    values = np.einsum("ni,ij,nj->n", rows, model.kernel_, rows)
    assert_allclose(values[equal], bounds[equal], rtol=1e-6)
    assert model.kkt_residual_ <= 1e-8
    assert abs(model.dual_gap_) < 1e-6
    assert (np.diff(model.dual_objective_) <= 1e-12).all()
    assert (model.dual_objective_ <= model.dual_bound_ * (1 + 1e-9)).all()


@projections
def test_one_equality_is_both_inequalities(projection):
    """A lower and an upper bound: one multiplier of the equality is negative, one positive."""
    rows = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0]])
    bounds = np.array([0.4, 0.2])
    options = {"projection": projection, "tol": 1e-9, "max_iter": 200_000}
    equal = DefiniteBoost(**options).fit(rows, bounds, sense="==")
    both = DefiniteBoost(**options).fit(np.vstack([rows, rows]), np.tile(bounds, 2), sense=["<=", "<=", ">=", ">="])
    assert_allclose(equal.kernel_, both.kernel_, atol=1e-8)
    assert_allclose(equal.alpha_, both.alpha_[:2] - both.alpha_[2:], atol=1e-6)
    assert_array_equal(np.sign(equal.alpha_), [-1, 1])


def test_distances_themselves_and_matrices():
    pairs, distances = [[0, 1], [1, 2]], [0.05, 0.3]
    model = DefiniteBoost(tol=1e-9).fit_pairs(pairs, distances, n_objects=4, sense="==")
    found = model.pairwise_distances() / 2
    assert_allclose([found[0, 1], found[1, 2]], distances, rtol=1e-6)

    C = np.diag([1.0, -0.5, 0.0, 0.0])[None]  # at the start tr(W C) = 1/8 > 0
    for sense, expected in {"==": 0.0, "<=": 0.0, ">=": 0.125}.items():
        model = DefiniteBoost(tol=1e-9).partial_fit_matrices(C, sense)
        assert_allclose(np.trace(model.kernel_ @ C[0]), expected, atol=1e-8)


@pytest.mark.parametrize("selection", ["optimality", "violation"])
def test_the_divergence_grows_with_each_constraint(selection):
    """Pythagoras: D(W_2, W_1) >= D(W_1', W_1) if W_2 keeps one equality more, exactly the projection's length more."""
    rows, bounds, _ = problem(7)
    first = np.eye(5) / 5
    model = DefiniteBoost(selection=selection, tol=1e-10, max_iter=100_000).fit(rows[:2], bounds[:2], sense="==")
    between = model.kernel_
    model.partial_fit(rows[2:3], bounds[2:3], sense="==")
    D = VonNeumann(trace=1.0).divergence
    whole, parts = D(model.kernel_, first), D(model.kernel_, between) + D(between, first)
    assert_allclose(whole, parts, rtol=1e-7)
