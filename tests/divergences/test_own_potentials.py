"""User-defined potentials and penalties: the general estimators learn with them, and the laws hold."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from potentials import HyperbolicEntropy
from raw import MirrorDescentRegressor
from replica import start_of, stream
from scipy import sparse
from scipy.optimize import brentq, minimize
from sklearn.base import clone

from onlinebregman.divergences import Divergence, SeparableDivergence, resolve_divergence
from onlinebregman.penalties import Penalty, resolve_penalty


class Tsallis(SeparableDivergence):
    """F(w) = -2 sum sqrt w on w > 0: between Burg's entropy and the relative one."""

    domain, lower = "w > 0", 0.0

    def potential(self, w):
        return float(-2 * np.sqrt(w).sum())

    def mirror(self, w):
        return -1 / np.sqrt(w)

    def inverse_mirror(self, theta):
        return np.asarray(theta) ** -2.0

    def step_range(self, w, x):
        ends = self.mirror(w)[x != 0] / x[x != 0]  # theta - c x < 0
        return max(ends[ends < 0], default=-np.inf), min(ends[ends > 0], default=np.inf)


class Quadratic(Divergence):
    """F(w) = w'A w / 2 with a matrix A: not separable."""

    def __init__(self, A):
        self.A = np.asarray(A)

    def potential(self, w):
        return float(w @ self.A @ w) / 2

    def mirror(self, w):
        return self.A @ w

    def inverse_mirror(self, theta):
        return np.linalg.solve(self.A, theta)


class GroupLasso(Penalty):
    """R(w) = alpha sum_g norm_2(w_g), for pairs of weights; known to the squared Euclidean distance, or scaled ones."""

    def __init__(self, alpha):
        self.alpha = alpha

    def value(self, w):
        return float(self.alpha * np.linalg.norm(np.reshape(w, (-1, 2)), axis=1).sum())

    def prox(self, divergence, w, eta):
        pairs = np.reshape(w, (-1, 2))
        norms = np.linalg.norm(pairs, axis=1, keepdims=True)
        return (pairs * np.maximum(1 - eta * self.alpha / np.maximum(norms, 1e-300), 0.0)).ravel()


class Total(Penalty):
    """R(w) = price max(sum w - budget, 0): for any divergence, by a step along the vector 1."""

    def __init__(self, price, budget):
        self.price, self.budget = price, budget

    def value(self, w):
        return self.price * max(float(np.sum(w)) - self.budget, 0.0)

    def prox(self, divergence, w, eta):
        w, ones = np.asarray(w, dtype=float), np.ones(len(w))
        if w.sum() <= self.budget:
            return w.copy()
        moved = divergence.step(w, ones, eta * self.price)
        if moved.sum() >= self.budget:
            return moved
        c = brentq(lambda c: divergence.step(w, ones, c).sum() - self.budget, 0.0, eta * self.price, xtol=1e-15)
        return divergence.step(w, ones, c)


A = np.array([[2.0, 0.5, 0.0, 0.0], [0.5, 1.0, 0.2, 0.0], [0.0, 0.2, 1.5, 0.1], [0.0, 0.0, 0.1, 0.8]])
POTENTIALS = [HyperbolicEntropy(0.1), HyperbolicEntropy(3.0), Tsallis(), Quadratic(A)]
PAIRS = [
    *((D, name) for D in POTENTIALS[:3] for name in (None, "l1", "l2", "elasticnet")),
    *((D, Total(0.5, 0.4)) for D in POTENTIALS),
    (Quadratic(A), None),
    ("squared_euclidean", GroupLasso(0.3)),
    *(
        (name, Total(0.5, 0.4))
        for name in ("squared_euclidean", "relative_entropy", "burg", "binary_entropy", "p_norm")
    ),
]
potentials = pytest.mark.parametrize("divergence", POTENTIALS, ids=repr)
pairs = pytest.mark.parametrize(("divergence", "penalty"), PAIRS, ids=str)
updates = pytest.mark.parametrize("update", ["explicit", "implicit", "importance"])
seeds = st.integers(0, 2**32 - 1)


def point_of(divergence, rng):
    w = rng.normal(size=4)
    return np.abs(w) + 0.05 if isinstance(divergence, Tsallis) else w


@pairs
@settings(max_examples=4)
@given(seed=seeds, rate=st.floats(-2, 0.5))
def test_an_implicit_step_and_the_proximal_step_are_what_scipy_finds(divergence, penalty, seed, rate):
    """w' = argmin of D(v, w) + eta L(v.x, y), then argmin of D(v, w') + eta R(v)."""
    rng = np.random.default_rng(seed)
    D = resolve_divergence(divergence, 4)
    x, y, eta, R = rng.normal(size=4), float(rng.normal()), 10.0**rate, resolve_penalty(penalty, 0.3)
    w = start_of(divergence, rng, 4) if isinstance(divergence, str) else point_of(D, rng)
    model = MirrorDescentRegressor(
        divergence=divergence, penalty=penalty, alpha=0.3, eta0=eta, learning_rate="constant", init=w,
        fit_intercept=False,
    )  # fmt: skip
    v = model.partial_fit(x[None], [y]).coef_
    moved = clone(model).set_params(penalty=None).partial_fit(x[None], [y]).coef_
    low, high = (D.lower + 1e-9, D.upper - 1e-9) if np.isfinite(D.lower) else (-np.inf, np.inf)

    def best(objective, start, found):
        near = minimize(objective, start, method="L-BFGS-B", bounds=[(low, high)] * 4, options={"ftol": 1e-15})
        assert objective(found) <= near.fun + 1e-10 * (1 + abs(near.fun))

    best(lambda u: D.divergence(u, w) + eta * (u @ x - y) ** 2 / 2, w, moved)
    if R is not None:
        best(lambda u: D.divergence(u, moved) + eta * R.value(u), moved, v)


@pairs
@updates
def test_they_keep_the_contracts(divergence, penalty, update, unchanged, learned):
    """Division into calls, copies, sparse rows, weight 0, and errors that change nothing."""
    X, y = stream("squared_error", np.random.default_rng(0), 13, 4, density=0.7)
    model = MirrorDescentRegressor(divergence=divergence, penalty=penalty, alpha=0.1, update=update, eta0=0.01)
    whole, cut = clone(model).partial_fit(X, y), clone(model)
    for k in range(0, 13, 3):
        cut.partial_fit(sparse.csr_array(X[k : k + 3]) if k % 2 else X[k : k + 3], y[k : k + 3])
        cut = copy.deepcopy(cut) if k % 2 else pickle.loads(pickle.dumps(cut))
    assert learned(cut) == learned(whole)
    cut.partial_fit(X, y, sample_weight=np.zeros(13))
    assert_array_equal(cut.coef_, whole.coef_)
    with unchanged(cut, "row 12"):
        cut.partial_fit(X, np.r_[y[:12], 1e300])
    assert_allclose(cut.predict(sparse.csr_array(X)), X @ whole.coef_ + whole.intercept_, rtol=1e-12, atol=1e-14)


# --- subclasses of what is compiled, which run by their NumPy methods -------------------------------------------------


class Broken(Total):
    def prox(self, divergence, w, eta):
        if np.sum(w) > 3:
            raise RuntimeError("no step today")
        return super().prox(divergence, w, eta)


def test_a_penalty_that_fails_at_a_row_is_refused_there(unchanged):
    model = MirrorDescentRegressor(
        divergence="squared_euclidean", penalty=Broken(0.0, 0.1), eta0=1.0, fit_intercept=False
    )
    model.partial_fit(np.eye(4), np.ones(4))
    with unchanged(model, "row 1 .*no step today"):
        model.partial_fit(np.eye(4), [1.0, 50.0, 1.0, 1.0])
