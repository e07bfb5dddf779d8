"""DefiniteBoost at the size of the paper's experiment, its duality gap, and rounds on all kinds of constraints."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from onlinebregman.divergences import VonNeumann
from onlinebregman.kernel_learning import DefiniteBoost, pair_rows

laws = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**32 - 1)
projections = pytest.mark.parametrize("projection", ["approximate", "exact", "corrective"])
strict = pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")


def pair_problem(d=52, n=980):
    """Bounds on the distances of n pairs that a kernel satisfies: upper ones if near, lower ones if far."""
    rng = np.random.default_rng(0)
    objects = rng.normal(size=(d, 3))
    kernel = np.exp(-((objects[:, None] - objects) ** 2).sum(axis=2) / 2) / d
    every = np.array(np.triu_indices(d, 1)).T
    pairs = every[rng.choice(len(every), n, replace=False)]
    half = (kernel[pairs[:, 0], pairs[:, 0]] + kernel[pairs[:, 1], pairs[:, 1]]) / 2 - kernel[tuple(pairs.T)]
    near = half <= np.median(half)
    return pairs, np.where(near, 1.05 * half, 0.95 * half), np.where(near, "<=", ">=")


@laws
@given(seeds, st.sampled_from(["approximate", "exact", "corrective"]), st.sampled_from([2, 8, 10_000]))
def test_dual_gap(seed, projection, rounds):
    """D(W, W_1) minus the lower bound from the dual objective, computed from the kernel; small at the end."""
    rng = np.random.default_rng(seed)
    rows, w = rng.normal(size=(8, 4)), np.diag(rng.dirichlet(np.ones(4)))
    bounds = np.einsum("ni,ij,nj->n", rows, w, rows) + 0.1
    model = DefiniteBoost(projection=projection, tol=1e-7, max_iter=rounds).fit(rows, bounds)
    lower = -np.log(model.dual_objective_[-1] / 4)
    found = VonNeumann(1.0).divergence(model.kernel_, np.eye(4) / 4)
    assert model.dual_gap_ == pytest.approx(found - lower, abs=1e-9)
    if rounds == 10_000:
        assert abs(model.dual_gap_) <= 1e-6 * (1 + (model.alpha_ * (rows**2).sum(axis=1)).sum())


@strict
@projections
def test_rows_pairs_and_matrices_together(projection):
    """Blocks of every kind, dense and sparse, in one problem and in any order of calls."""
    rng = np.random.default_rng(1)
    d = 6
    target = np.diag(rng.dirichlet(5 * np.ones(d)))
    rows = rng.normal(size=(5, d))
    bounds = np.einsum("ni,ij,nj->n", rows, target, rows)
    matrices = rng.normal(size=(3, d, d))
    matrices = matrices + matrices.transpose(0, 2, 1)
    matrices -= (np.tensordot(matrices, target, 2) + 0.1)[:, None, None] * np.eye(d)
    pairs = np.array([[0, 1], [2, 3]])
    half = (target.diagonal()[pairs[:, 0]] + target.diagonal()[pairs[:, 1]]) / 2
    calls = [
        lambda model: model.partial_fit(rows, 0.95 * bounds, sense=">="),
        lambda model: model.partial_fit_matrices(matrices),
        lambda model: model.partial_fit_pairs(pairs, 1.05 * half, d),
        lambda model: model.partial_fit(sparse.csr_array(np.eye(d)[:2] * [[2.0], [3.0]]), [4.0, 9.0]),
    ]
    kernels = []
    for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
        model = DefiniteBoost(projection=projection, tol=1e-8, max_iter=100_000)
        for call in order:
            calls[call](model)
            model = pickle.loads(pickle.dumps(model))
        kernels.append(model.kernel_)
        assert np.abs(model.dual_gap_) < 1e-6
    assert_allclose(kernels[0], kernels[1], rtol=0, atol=1e-7)
    assert (np.tensordot(matrices, kernels[0], 2) <= 1e-6).all()


def test_many_rounds_do_not_drift():
    """The kernel after 5000 rounds is that of alpha_."""
    pairs, bounds, senses = pair_problem(20, 150)
    model = DefiniteBoost(tol=1e-12, max_iter=5010).fit_pairs(pairs, bounds, 20, senses)
    rows, signs = pair_rows(pairs, 20).toarray(), np.where(senses == "<=", 1.0, -1.0)
    values, vectors = np.linalg.eigh(-(rows.T * (model.alpha_ * signs)) @ rows)
    weights = np.exp(values - values[-1])
    assert_allclose(model.kernel_, (vectors * (weights / weights.sum())) @ vectors.T, rtol=0, atol=1e-11)
    dual = np.log(weights.sum() / 20) + values[-1] + model.alpha_ @ (signs * bounds)
    assert np.log(model.dual_objective_[-1] / 20) == pytest.approx(dual, abs=1e-11)
