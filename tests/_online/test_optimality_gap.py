"""The optimality gap: the bound on the regret of a run against the best comparator, the largest of all bounds.

    sum h_t (L_t(w_t) - L_t(u))  <=  regret_bound(u)  <=  regret_bound()    for all comparators u,

with equality in the second for one of them, since the bound is affine in u.
"""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from raw import MirrorDescentClassifier, MirrorDescentRegressor, ScaleInvariantRegressor
from scipy.optimize import linprog

from onlinebregman import EGRegressor, LogDetMetricLearner, PerceptronClassifier
from onlinebregman._online.comparators import Comparators
from onlinebregman.constraints import Box, L1Ball, L2Ball, Simplex
from onlinebregman.divergences import (
    AdaGrad,
    BinaryEntropy,
    Burg,
    PNorm,
    SimplexEntropy,
    SquaredEuclidean,
    SquaredFrobenius,
)
from onlinebregman.losses import resolve_loss

seeds = st.integers(0, 2**32 - 1)


# --- the support function ---------------------------------------------------------------------------------------------


def by_linear_programming(g, lower, upper, total, radius):
    """The largest g.u over such a polytope, infinity if it is unbounded; u = p - q with sum p + q <= radius."""
    n = len(g)
    halves, ends = np.hstack([np.eye(n), -np.eye(n)]), np.r_[upper, -lower]
    rows, limits = np.vstack([halves, -halves])[np.isfinite(ends)], ends[np.isfinite(ends)]
    if radius < np.inf:
        rows, limits = np.vstack([rows, np.ones(2 * n)]), np.r_[limits, radius]
    sums = {} if total is None else {"A_eq": np.ones((1, n)) @ halves, "b_eq": [total]}
    found = linprog(-g @ halves, rows if len(rows) else None, limits if len(limits) else None, **sums)
    return np.inf if found.status == 3 else -found.fun


def by_rays(g, inside, basis, contains):
    """The largest g.u over a bounded convex set in a plane, from its boundary in ever finer angles."""
    best, width = 0.0, np.pi
    for _ in range(4):
        angles = best + np.linspace(-width, width, 2001)
        directions = np.c_[np.cos(angles), np.sin(angles)] @ basis
        reached, missed = np.zeros(len(angles)), np.full(len(angles), 1e3)
        for _ in range(60):
            middle = (reached + missed) / 2
            inner = contains(inside + middle[:, np.newaxis] * directions)
            reached, missed = np.where(inner, middle, reached), np.where(inner, missed, middle)
        values = (inside + reached[:, np.newaxis] * directions) @ g
        best, width = angles[np.argmax(values)], width / 500
    return values.max()


ends = ("none", "zero", "finite", "some")


@settings(max_examples=40)
@given(
    seed=seeds,
    lower=st.sampled_from(ends),
    upper=st.sampled_from(["none", "finite", "some"]),
    has_total=st.booleans(),
    order=st.sampled_from([1.0, 1.3, 2.0]),
    has_ball=st.booleans(),
)
def test_the_support_function_is_the_largest_value(seed, lower, upper, has_total, order, has_ball):
    rng = np.random.default_rng(seed)
    curved = has_ball and order > 1
    n = 2 + has_total if curved else int(rng.integers(1, 6))
    g = rng.normal(size=n) * rng.choice([0.0, 1.0, 1.0], size=n)
    inside = np.abs(rng.normal(size=n)) if lower == "zero" else rng.normal(size=n)
    some = rng.uniform(size=n) < 0.5
    low = {"none": np.full(n, -np.inf), "zero": np.zeros(n)}.get(lower, inside - rng.uniform(size=n))
    high = {"none": np.full(n, np.inf)}.get(upper, inside + rng.uniform(0.01, 1.0, size=n))
    low, high = np.where(some & (lower == "some"), -np.inf, low), np.where(some & (upper == "some"), np.inf, high)
    radius = float(np.linalg.norm(inside, order)) * rng.uniform(1.05, 3.0) if has_ball else np.inf
    total = float(inside.sum()) if has_total else None
    found = Comparators(low, high, total, order, radius).support(g)
    if not curved:
        expected = by_linear_programming(g, low, high, total, radius)
    else:

        def contains(u):
            return ((u >= low) & (u <= high)).all(axis=1) & (np.linalg.norm(u, order, axis=1) <= radius)

        basis = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]]) if has_total else np.eye(2)
        expected = by_rays(g, inside, basis, contains)
        assert found >= expected - 1e-12  # an inexact minimum of the dual function is an upper bound
    assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


def test_of_a_matrix_it_is_that_of_its_eigenvalues():
    rng = np.random.default_rng(0)
    G = rng.normal(size=(4, 4))
    G = G + G.T
    values, vectors = np.linalg.eigh(G)
    top = np.outer(vectors[:, -1], vectors[:, -1])
    assert_allclose(Comparators(0.0, np.inf, 1.0, 1.0).support(G), np.vdot(top, G))  # trace one
    positive = (vectors[:, values > 0]) @ vectors[:, values > 0].T
    assert_allclose(Comparators(0.0, 1.0, None, 1.0).support(G), np.vdot(positive, G))  # 0 <= U <= I
    cut = SquaredFrobenius().project_psd(G)
    assert_allclose(Comparators(0.0, np.inf, None, 2.0, 3.0).support(G), 3.0 * np.linalg.norm(cut))


# --- the largest bound ------------------------------------------------------------------------------------------------


# divergence, signed, constraint, and the corners of the set of comparators, beside which there are no others
UNITS = np.eye(3)
RUNS = {
    "box": (SquaredEuclidean(), False, Box(-0.5, 1.0), product([-0.5, 1.0], repeat=3)),
    "simplex": (SquaredEuclidean(), False, Simplex(1.5), 1.5 * UNITS),
    "l1": (SquaredEuclidean(), False, L1Ball(1.5), np.vstack([1.5 * UNITS, -1.5 * UNITS])),
    "p-norm box": (PNorm(4.0), False, Box(-0.5, 1.0), product([-0.5, 1.0], repeat=3)),
    "eg": (SimplexEntropy(1.5), False, None, 1.5 * UNITS),
    "signed eg": (SimplexEntropy(1.5), True, None, np.vstack([1.5 * UNITS, -1.5 * UNITS])),
    "burg box": (Burg(), False, Box(0.1, 0.6), product([0.1, 0.6], repeat=3)),
    "binary": (BinaryEntropy(), False, None, product([0.0, 1.0], repeat=3)),
    "adagrad box": (AdaGrad(), False, Box(-0.5, 1.0), product([-0.5, 1.0], repeat=3)),
}
RUNS = {name: (*run, np.array(list(corners))) for name, (*run, corners) in RUNS.items()}


def stream(rng, n_rows, n):
    X = rng.normal(size=(n_rows, n)) * rng.choice([0.0, 1.0, 1.0, 3.0], size=(n_rows, 1))
    y = rng.normal(size=n_rows) * rng.choice([1.0, 5.0]) + X @ rng.normal(size=n)
    return X, y, rng.choice([0.0, 0.5, 1.0, 3.0], size=n_rows)


@pytest.mark.parametrize("name", RUNS)
@settings(max_examples=6)
@given(
    seed=seeds,
    update=st.sampled_from(["implicit", "explicit", "importance"]),
    loss=st.sampled_from(["squared_error", "absolute_error", "huber"]),
    rate=st.floats(-2.0, 0.5),
    fit_intercept=st.booleans(),
)
def test_it_is_the_largest_bound_and_bounds_the_regret(name, seed, update, loss, rate, fit_intercept):
    divergence, signed, constraint, corners = RUNS[name]
    rng = np.random.default_rng(seed)
    X, y, h = stream(rng, 12, 3)
    assume(h.any())
    model = MirrorDescentRegressor(
        divergence=divergence, signed=signed, constraint=constraint, loss=loss, update=update,
        learning_rate="constant", eta0=10**rate * (0.01 if update == "explicit" else 1.0),
        fit_intercept=fit_intercept, track_regret=True,
    )  # fmt: skip
    try:
        model.partial_fit(X, y, sample_weight=h)
    except ValueError:
        assume(False)  # an explicit step that leaves the domain
    assume(not model._learner.tracked_rates[2])  # DiagonalNewton adapts the rate to the deviation of the targets
    intercepts = (-1.5, 0.4, 1.5) if fit_intercept else (0.0,)
    gap = model.regret_bound(largest_intercept=1.5 if fit_intercept else None)
    bounds, losses = [], []
    for u in np.vstack([corners, rng.dirichlet(np.ones(len(corners)), size=8) @ corners]):
        for b in intercepts:
            bounds.append(model.regret_bound(u, b))
            losses.append(h @ resolve_loss(loss).value(X @ u + b, y))
    size = model.cumulative_loss_ + max(losses) + np.abs(bounds).max()
    assert model.cumulative_loss_ - min(losses) <= gap + 1e-9 * size
    assert max(bounds) <= gap + 1e-9 * size
    assert_allclose(max(bounds), gap, rtol=0, atol=1e-7 * size)


# --- every estimator --------------------------------------------------------------------------------------------------


def test_models_without_tracked_regret_have_none():
    X, y = np.eye(2), np.array([0.0, 1.0])
    for model in (PerceptronClassifier().fit(X, [0, 1]), ScaleInvariantRegressor().fit(X, y)):
        assert not hasattr(model, "weighted_loss_")
    with pytest.raises(ValueError, match="set track_regret=True before learning"):
        EGRegressor().fit(X, y).regret_bound()


# --- rates, intercepts, penalties -------------------------------------------------------------------------------------


def some_run(**parameters):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 3))
    y = X @ [0.5, -0.3, 0.1] + 0.3 * rng.normal(size=200)
    parameters = {"divergence": "squared_euclidean", "learning_rate": "constant", "eta0": 0.05, **parameters}
    return X, y, MirrorDescentRegressor(track_regret=True, **parameters)


def test_where_rates_fall_it_needs_the_largest_divergence():
    X, y, model = some_run(constraint=L2Ball(1.0), learning_rate="sqrt", eta0=0.3, fit_intercept=False)
    model.partial_fit(X, y)
    for largest in (None, 0.0, np.inf):
        with pytest.raises(ValueError, match="largest_divergence must be a finite bound"):
            model.regret_bound(largest_divergence=largest)
    gap = model.regret_bound(largest_divergence=2.0)  # norm(u - w)^2 / 2 within the unit ball
    weighted = model.regret_bound(weighted=True)
    rng = np.random.default_rng(0)
    for _ in range(200):
        u = rng.normal(size=3)
        u /= np.linalg.norm(u)
        assert model.cumulative_loss_ - ((X @ u - y) ** 2).sum() / 2 <= model.regret_bound(u, largest_divergence=2.0)
        assert model.regret_bound(u, largest_divergence=2.0) <= gap
        assert model.regret_bound(u, weighted=True) <= weighted
    assert gap < 2.0 * max(model.regret_bound(u, largest_divergence=2.0) for u in np.vstack([np.eye(3), -np.eye(3)]))


def test_what_it_needs_of_unbounded_comparators():
    X, y, model = some_run()
    model.partial_fit(X, y)
    with pytest.raises(ValueError, match=r"infinite over all comparators \(all finite w\); give a radius.*norm_2"):
        model.regret_bound()
    with pytest.raises(ValueError, match=r"infinite over all intercepts; give largest_intercept.*got None"):
        model.regret_bound(radius=1.0)
    for radius in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="radius must be"):
            model.regret_bound(radius=radius)
    for largest in (-1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="give largest_intercept, a finite bound >= 0"):
            model.regret_bound(radius=1.0, largest_intercept=largest)
    assert model.regret_bound(radius=1.0, largest_intercept=0.0) < model.regret_bound(radius=1.0, largest_intercept=1.0)
    bounded = EGRegressor(learning_rate="constant", track_regret=True).partial_fit(X, y)
    with pytest.raises(ValueError, match="those of this run are bounded; omit it"):
        bounded.regret_bound(radius=1.0)
    with pytest.raises(ValueError, match=r"radius is for the best metric; omit it \(got 9.0\), or omit U"):
        LogDetMetricLearner(track_regret=True).partial_fit(X, y > 0).regret_bound(np.eye(X.shape[1]), radius=9.0)
    burg = MirrorDescentRegressor(divergence="burg", learning_rate="constant", track_regret=True, fit_intercept=False)
    with pytest.raises(ValueError, match=r"\(w > 0\); give a radius, for those with norm_1"):
        burg.partial_fit(np.abs(X), np.full(200, 5.0)).regret_bound()


def test_a_held_intercept_is_that_of_all_comparators():
    X, y, model = some_run(fit_intercept=False)
    assert model.partial_fit(X[:1], y[:1], sample_weight=[0.0]).regret_bound() == 0.0  # nothing was learned
    model.partial_fit(X, y)
    gap = model.regret_bound(radius=1.0)
    assert model.regret_bound(radius=1.0, largest_intercept=9.0) == gap


@pytest.mark.parametrize(
    ("divergence", "penalty"),
    [*product(["squared_euclidean", "adagrad"], ["l1", "l2", "elasticnet"]), ("p_norm", "l1")],
)
def test_with_a_penalty_it_is_about_the_penalised_objective(penalty, divergence):
    X, y, model = some_run(penalty=penalty, alpha=0.05, divergence=divergence, fit_intercept=False)
    model.partial_fit(X, y)
    gap, rng = model.regret_bound(radius=1.0), np.random.default_rng(0)
    for _ in range(200):
        u = rng.normal(size=3)
        u *= rng.choice([0.1, 1.0]) / np.linalg.norm(u, 1)
        penalised = ((X @ u - y) ** 2).sum() / 2 + 200 * model._learned_penalty.value(u)
        assert model.cumulative_loss_ - penalised <= gap
        bounds = [model.regret_bound(v) - 200 * model._learned_penalty.value(v) for v in (u, -u, 0 * u)]
        assert bounds[0] <= gap + 1e-9
        assert_allclose(bounds[0] + bounds[1], 2 * bounds[2], rtol=1e-7, atol=1e-7)  # affine in u


def test_classifiers_have_one_for_each_loss():
    rng = np.random.default_rng(3)
    X, labels = rng.normal(size=(60, 4)), rng.integers(0, 3, size=60)
    run = {"divergence": "squared_euclidean", "learning_rate": "constant", "eta0": 0.1, "track_regret": True}
    model = MirrorDescentClassifier(fit_intercept=False, **run).partial_fit(X, labels, classes=[0, 1, 2])
    radii = [0.5, 1.0, 2.0]
    gaps = model.regret_bound(radius=radii)
    assert_allclose(gaps, [model.regret_bound(radius=radius)[k] for k, radius in enumerate(radii)], rtol=0, atol=0)
    joint = MirrorDescentClassifier(fit_intercept=False, multi_class="multinomial", **run)
    joint.partial_fit(X, labels, classes=[0, 1, 2])
    assert joint.regret_bound(radius=1.0).shape == (1,)
    u = rng.normal(size=(100, 3, 4))
    u /= np.linalg.norm(u, axis=2, keepdims=True)
    assert max(joint.regret_bound(one)[0] for one in u) <= joint.regret_bound(radius=1.0)[0]
