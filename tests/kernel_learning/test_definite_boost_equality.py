"""DefiniteBoost with equality constraints: distances, matrices, and a law of the solution."""

import numpy as np
import pytest
from kernels import density
from numpy.testing import assert_allclose

from onlinebregman.divergences import VonNeumann
from onlinebregman.kernel_learning import DefiniteBoost

pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")


def problem(seed, d=5, n=6):
    """Rows, and their values in a kernel of full rank."""
    rng = np.random.default_rng(seed)
    kernel, rows = density(rng, d), rng.normal(size=(n, d))
    return rows, np.einsum("ni,ij,nj->n", rows, kernel, rows)


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
    rows, bounds = problem(7)
    first = np.eye(5) / 5
    model = DefiniteBoost(selection=selection, tol=1e-10, max_iter=100_000).fit(rows[:2], bounds[:2], sense="==")
    between = model.kernel_
    model.partial_fit(rows[2:3], bounds[2:3], sense="==")
    D = VonNeumann(trace=1.0).divergence
    whole, parts = D(model.kernel_, first), D(model.kernel_, between) + D(between, first)
    assert_allclose(whole, parts, rtol=1e-7)
