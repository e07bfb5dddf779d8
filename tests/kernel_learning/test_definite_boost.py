"""DefiniteBoost: against a general solver of the dual, AdaBoost and the paper's bounds, on constraints of all kinds."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import density
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import expm, logm
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from onlinebregman.divergences import VonNeumann
from onlinebregman.kernel_learning import DefiniteBoost, pair_rows

laws = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**32 - 1)
projections = pytest.mark.parametrize("projection", ["approximate", "exact", "corrective"])
strict = pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")


def feasible(rng, d=5, n=12, kinds=("<=", ">=")):
    """Rows, bounds and senses that a random kernel satisfies, some of them with equality."""
    rows, kernel = rng.normal(size=(n, d)), 0.9 * density(rng, d) + 0.1 * np.eye(d) / d
    values, senses = np.einsum("ni,ij,nj->n", rows, kernel, rows), rng.choice(kinds, size=n)
    slack = rng.choice([0.0, 0.3], size=n)
    return rows, values + np.select([senses == "<=", senses == ">="], [slack, -slack]), senses


def constraint_matrices(rows, bounds, senses):
    matrices = rows[:, :, None] * rows[:, None, :] - bounds[:, None, None] * np.eye(rows.shape[1])
    return np.where(np.asarray(senses) == ">=", -1.0, 1.0)[:, None, None] * matrices


def gibbs(log_matrix):
    values, vectors = np.linalg.eigh(log_matrix)
    p = np.exp(values - values[-1])
    return (vectors * (p / p.sum())) @ vectors.T, values[-1] + np.log(p.sum())


def dual_optimum(matrices, start=None, equal=False):
    """min of ln tr exp(log W_1 - sum alpha C) over alpha >= 0, or any where equal, by L-BFGS-B: W, the minimum."""
    d = matrices.shape[1]
    log_start = -np.log(d) * np.eye(d) if start is None else logm(start / np.trace(start))

    def objective(alpha):
        w, value = gibbs(log_start - np.tensordot(alpha, matrices, 1))
        return value, -np.tensordot(matrices, w, 2)

    lowest = np.where(np.broadcast_to(equal, len(matrices)), -np.inf, 0.0)
    alpha, limits = np.zeros(len(matrices)), [(low, np.inf) for low in lowest]
    options = {"ftol": 0.0, "gtol": 1e-10, "maxiter": 20_000, "maxfun": 200_000, "maxls": 50}
    for _ in range(50):  # its line search may give up early: then it starts again from there
        alpha = minimize(objective, alpha, jac=True, bounds=limits, method="L-BFGS-B", options=options).x
        value, gradient = objective(alpha)
        if np.abs(alpha - np.maximum(alpha - gradient, lowest)).max() < 1e-7:
            return gibbs(log_start - np.tensordot(alpha, matrices, 1))[0], value
    raise AssertionError("the general solver did not converge")


# --- the optimum ------------------------------------------------------------------------------------------------------


@strict
@laws
@given(seeds, st.sampled_from(["approximate", "exact", "corrective"]), st.booleans(), st.booleans())
def test_optimum_equals_a_general_solver(seed, projection, started, equalities):
    rng = np.random.default_rng(seed)
    rows, bounds, senses = feasible(rng, 5, 6, ("<=", ">=", "==")) if equalities else feasible(rng)
    init = 3 * density(rng, 5) + np.eye(5) if started else None
    model = DefiniteBoost(projection=projection, init=init, tol=1e-8, max_iter=100_000).fit(rows, bounds, sense=senses)
    matrices = constraint_matrices(rows, bounds, senses)
    equal = senses == "=="
    kernel, value = dual_optimum(matrices, init, equal)
    assert_allclose(model.kernel_, kernel, rtol=0, atol=1e-6)
    assert np.log(model.dual_objective_[-1] / 5) == pytest.approx(value, abs=1e-6)
    assert_allclose(np.einsum("ni,ij,nj->n", rows, model.kernel_, rows)[equal], bounds[equal], rtol=1e-6, atol=1e-7)
    assert model.kkt_residual_ <= 1e-8 and (np.diff(model.dual_objective_) <= 1e-12).all()
    assert (model.dual_objective_ <= model.dual_bound_ * (1 + 1e-9)).all()
    # the primal objective is minus the dual one: no duality gap
    start = np.eye(5) / 5 if init is None else init / np.trace(init)
    assert VonNeumann(1.0).divergence(model.kernel_, start) == pytest.approx(-value, abs=1e-6)


@strict
@laws
@given(seeds, st.sampled_from(["approximate", "exact", "corrective"]))
def test_optimality_conditions(seed, projection):
    """From the kernel and alpha alone: W = exp(log W_1 - sum alpha C) / tr, feasible, alpha >= 0, complementary."""
    rows, bounds, senses = feasible(np.random.default_rng(seed))
    model = DefiniteBoost(projection=projection, tol=1e-6, max_iter=100_000).fit(rows, bounds, sense=senses)
    matrices = constraint_matrices(rows, bounds, senses)
    kernel, _ = gibbs(-np.tensordot(model.alpha_, matrices, 1))
    assert_allclose(model.kernel_, kernel, rtol=0, atol=1e-10)
    assert_allclose(expm(model.log_kernel_), kernel, rtol=0, atol=1e-10)
    values, spreads = np.tensordot(matrices, kernel, 2), (rows**2).sum(axis=1)
    violations = values * 5 / spreads
    residual = np.maximum(violations, np.minimum(-violations, model.alpha_ * spreads)).max()
    assert (model.alpha_ >= 0).all()
    assert residual <= 1e-6 + 1e-9
    assert model.kkt_residual_ == pytest.approx(residual, abs=1e-9)
    assert model.max_violation_ == pytest.approx(values.max(), abs=1e-10)
    assert model.max_violation_ <= 1.01e-6 * spreads.max() / 5


@strict
def test_constraints_that_hold_at_once_change_nothing():
    model = DefiniteBoost().fit_pairs([[0, 1], [1, 1]], [0.5, 0.0], 4)
    assert_allclose(model.kernel_, np.eye(4) / 4, rtol=1e-14)
    assert (model.alpha_ == 0).all() and model.n_iter_ == 1 and model.max_violation_ == pytest.approx(0.0, abs=1e-15)
    assert_allclose(model.dual_objective_, [4.0])


# --- rounds -----------------------------------------------------------------------------------------------------------


def bounding_step(r, low, high):
    return np.log((1 - r / low) / (1 - r / high)) / (high - low)


def rho(r, low, high):
    return (1 - r / high) ** (high / (high - low)) * (1 - r / low) ** (-low / (high - low))


@laws
@given(seeds)
def test_rounds_are_the_papers(seed):
    """Each approximate round: the most violated constraint, the step in closed form, the factor of Theorem 4.1."""
    rng = np.random.default_rng(seed)
    pairs = np.array([[0, 1], [1, 2], [3, 4], [0, 5], [2, 5]])
    bounds = rng.uniform(0.01, 0.12, size=5)
    matrices = constraint_matrices(pair_rows(pairs, 6).toarray(), bounds, ["<="] * 5)
    alpha, bound = np.zeros(5), 6.0
    for n in range(8):
        model = DefiniteBoost(max_iter=n + 1, tol=1e-10).fit_pairs(pairs, bounds, 6)
        values = np.tensordot(matrices, gibbs(-np.tensordot(alpha, matrices, 1))[0], 2)
        j = np.argmax(values)
        if 6 * values[j] <= np.minimum(alpha, -6 * values).max() + 1e-10:
            break
        step = bounding_step(values[j], -bounds[j], 1 - bounds[j])
        bound *= rho(values[j], -bounds[j], 1 - bounds[j])
        alpha[j] += step
        assert_allclose(model.alpha_, alpha, rtol=1e-10, atol=1e-13)
        assert model.dual_bound_[-1] == pytest.approx(bound, rel=1e-10)
        assert model.dual_objective_[-1] == pytest.approx(np.trace(expm(-np.tensordot(alpha, matrices, 1))), rel=1e-10)


@strict
def test_exact_projection_meets_its_constraint():
    for sense, bound in (("<=", 0.01), (">=", 0.45)):
        model = DefiniteBoost(projection="exact", max_iter=2).fit_pairs([[0, 2]], [bound], 5, sense)
        assert model.max_violation_ == pytest.approx(0.0, abs=1e-12)
        assert model.n_iter_ == 2 and len(model.dual_objective_) == 2


# --- AdaBoost ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("selection, signs", [("optimality", (1, -1)), ("violation", (1, -1)), ("violation", (1,))])
def test_diagonal_constraints_are_adaboost(selection, signs):
    """All decision stumps: the rounds, the votes and the weights of the examples are AdaBoost's.

    With selection="optimality" those of both signs: to take a vote back is to vote for the opposite.
    """
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 3)), np.where(rng.random(40) < 0.5, 1, -1)
    stumps = [sign * np.sign(X[:, f] - t) for f in range(3) for t in np.linspace(-1, 1, 7) for sign in signs]
    margins = y * np.array(stumps)  # y_i h_j(x_i)
    matrices = np.zeros((len(margins), 40, 40))
    matrices[:, range(40), range(40)] = margins
    weights, votes = np.full(40, 1 / 40), np.zeros(len(margins))
    for n in range(1, 21):
        edges = margins @ weights
        j = np.argmax(edges)
        vote = np.log((1 + edges[j]) / (1 - edges[j])) / 2
        votes[j] += vote
        weights = weights * np.exp(-vote * margins[j])
        weights /= weights.sum()
        model = DefiniteBoost(selection=selection, tol=1e-9, max_iter=n).partial_fit_matrices(matrices)
        assert_allclose(model.alpha_, votes, rtol=1e-9, atol=1e-12)
        assert_allclose(model.kernel_, np.diag(weights), rtol=0, atol=1e-12)
        assert model.dual_objective_[-1] == pytest.approx(np.exp(-votes @ margins).sum(), rel=1e-10)


@strict
@laws
@given(seeds, st.sampled_from(["approximate", "exact"]))
def test_most_violated_constraints_alone(seed, projection):
    """selection="violation" ends with all constraints satisfied, multipliers never fall, and the optimum is nearer."""
    rows, bounds, senses = feasible(np.random.default_rng(seed))
    plain = {"projection": projection, "max_iter": 20_000}
    model = DefiniteBoost(selection="violation", **plain).fit(rows, bounds, sense=senses)
    assert model.max_violation_ <= model.tol * (rows**2).sum(axis=1).max() / 5 * (1 + 1e-9)
    early = DefiniteBoost(selection="violation", projection=projection, max_iter=max(model.n_iter_ // 2, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        early.fit(rows, bounds, sense=senses)
    assert (early.alpha_ <= model.alpha_).all()
    nearest = DefiniteBoost(projection="corrective", tol=1e-6).fit(rows, bounds, sense=senses)
    assert nearest.dual_objective_[-1] <= model.dual_objective_[-1] * (1 + 1e-6)


# --- more constraints -------------------------------------------------------------------------------------------------


@strict
@laws
@given(seeds, st.sampled_from(["approximate", "exact", "corrective"]))
def test_further_constraints_lead_to_the_same_optimum(seed, projection):
    rows, bounds, senses = feasible(np.random.default_rng(seed))
    parameters = {"projection": projection, "tol": 1e-8, "max_iter": 100_000}
    whole = DefiniteBoost(**parameters).fit(rows, bounds, sense=senses)
    parts = DefiniteBoost(**parameters)
    parts.partial_fit(rows[:3], bounds[:3], sense=senses[:3])
    parts.partial_fit(sparse.csr_array(rows[3:7]), bounds[3:7], sense=senses[3:7])
    parts.partial_fit_matrices(constraint_matrices(rows[7:10], bounds[7:10], senses[7:10]))
    parts = pickle.loads(pickle.dumps(parts))
    parts.partial_fit(rows[10:], bounds[10:], sense=senses[10:])
    assert_allclose(parts.kernel_, whole.kernel_, rtol=0, atol=1e-6)
    assert parts.alpha_.shape == (12,)
    assert (np.diff(parts.dual_objective_) <= 1e-12).all()
    assert parts.dual_objective_[-1] == pytest.approx(whole.dual_objective_[-1], rel=1e-6)


# --- constraints that nothing meets -----------------------------------------------------------------------------------


@projections
@pytest.mark.parametrize(
    ("rows", "bounds", "senses"),
    [
        ([[1.0, 0.0, 0.0]], [-0.5], "<="),  # negative squares
        ([[1.0, 2.0, 0.0]], [5.5], ">="),  # more than |z|^2
        ([[0.0, 0.0, 0.0]], [0.1], ">="),  # z = 0
        (np.eye(3), [0.3, 0.3, 0.3], "<="),  # the trace would be 0.9
        ([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]], [0.2, 0.21], ["<=", ">="]),
        (np.eye(3) * 1e6, [-1e9] * 3, "<="),
    ],
)
def test_contradictions_are_proved(projection, rows, bounds, senses):
    model = DefiniteBoost(projection=projection)
    with pytest.warns(ConvergenceWarning, match=r"cannot all be met .* constraint \d is violated most"):
        model.fit(rows, bounds, sense=senses)
    matrices = constraint_matrices(np.array(rows), np.array(bounds), np.broadcast_to(senses, len(bounds)))
    assert np.linalg.eigvalsh(np.tensordot(model.alpha_, matrices, 1))[0] > 0  # then tr(W sum alpha C) > 0 for every W
    assert model.max_violation_ > 0
    for value in (model.kernel_, model.log_kernel_, model.alpha_, model.dual_objective_, model.dual_bound_):
        assert np.isfinite(value).all()
    assert np.trace(model.kernel_) == pytest.approx(1.0)


@strict
@projections
@pytest.mark.parametrize(
    ("pairs", "distances", "sense"),
    [([[0, 1], [1, 2]], [0.0, 0.0], "<="), ([[0, 1]], [1.0], ">="), ([[0, 0]], [0.0], "<=")],
)
def test_constraints_that_singular_kernels_meet(projection, pairs, distances, sense):
    """Satisfied to `tol` by a nearly singular kernel."""
    model = DefiniteBoost(projection=projection, tol=1e-6).fit_pairs(pairs, distances, 4, sense)
    assert model.max_violation_ <= 1e-6 / 4
    assert np.isfinite(model.log_kernel_).all() and np.isfinite(model.alpha_).all()


def test_one_object():
    for bound in (2.0, 0.5):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = DefiniteBoost().fit([[1.0]], [bound])
        assert model.kernel_ == pytest.approx(np.ones((1, 1)))
        assert len(caught) == (bound < 1)


# --- neighbours -------------------------------------------------------------------------------------------------------


class Watcher:
    """A callback that stores the models it gets, and stops the fit after three rounds."""

    def setup(self, estimator, context):
        self.models = []

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **data):
        pass

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None, **data):
        if context.task_name == "round":
            self.models.append(fitted_estimator)
        return len(self.models) == 3


def test_callbacks_see_every_round():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # callbacks are experimental, and warn
        pytest.importorskip("sklearn.callback")
    rows, bounds, senses = feasible(np.random.default_rng(3))
    watcher = Watcher()
    model = DefiniteBoost().set_callbacks(watcher).fit(rows, bounds, sense=senses)
    assert model.n_iter_ == len(watcher.models) == 3
    for n, seen in enumerate(watcher.models, start=1):
        assert_array_equal(seen.predict(rows), DefiniteBoost(max_iter=n).fit(rows, bounds, sense=senses).predict(rows))


# --- bad input --------------------------------------------------------------------------------------------------------


@projections
def test_the_solution_before_a_call_stays_what_it_was(projection):  # other threads may predict with it
    rows, bounds, senses = feasible(np.random.default_rng(0))
    model = DefiniteBoost(projection=projection).partial_fit(rows[:6], bounds[:6], sense=senses[:6])
    geometry, kernel = model._solution.geometry, model._solution.geometry.coef()
    model.partial_fit(rows[6:], bounds[6:], sense=senses[6:])
    assert (model._solution.geometry.coef() != kernel).any()
    assert_array_equal(geometry.coef(), kernel)


# --- the dual, and all kinds of constraints ---------------------------------------------------------------------------


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


# --- equalities -------------------------------------------------------------------------------------------------------


def problem(seed, d=5, n=6):
    """Rows, and their values in a kernel of full rank."""
    rng = np.random.default_rng(seed)
    kernel, rows = density(rng, d), rng.normal(size=(n, d))
    return rows, np.einsum("ni,ij,nj->n", rows, kernel, rows)


@strict
def test_distances_themselves_and_matrices():
    pairs, distances = [[0, 1], [1, 2]], [0.05, 0.3]
    model = DefiniteBoost(tol=1e-9).fit_pairs(pairs, distances, n_objects=4, sense="==")
    found = model.pairwise_distances() / 2
    assert_allclose([found[0, 1], found[1, 2]], distances, rtol=1e-6)

    C = np.diag([1.0, -0.5, 0.0, 0.0])[None]  # at the start tr(W C) = 1/8 > 0
    for sense, expected in {"==": 0.0, "<=": 0.0, ">=": 0.125}.items():
        model = DefiniteBoost(tol=1e-9).partial_fit_matrices(C, sense)
        assert_allclose(np.trace(model.kernel_ @ C[0]), expected, atol=1e-8)


@strict
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


# --- constraints of any size ------------------------------------------------------------------------------------------


NAMES = ("alpha_", "dual_gap_", "dual_objective_", "dual_bound_", "kkt_residual_", "max_violation_", "log_kernel_")


@settings(max_examples=40)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 4),
    st.sampled_from([-150, -70, 0, 20, 70, 150]),
    st.sampled_from([-300, -100, 0, 100, 300]),
    st.sampled_from(["approximate", "exact", "corrective"]),
)
def test_finite_or_refused(seed, d, row_size, bound_size, projection):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(12, d)) * 10.0**row_size, rng.random(12) * 10.0**bound_size
    y[::4] = 0.0
    model = DefiniteBoost(projection=projection, max_iter=30)
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(np.eye(d), np.full(d, 1.0))
        before = model.kernel_
        try:
            model.partial_fit(X, y, sense=rng.choice(["<=", ">="], size=12))
        except ValueError as error:
            assert "too large" in str(error) or "overflow" in str(error)
            assert_array_equal(model.kernel_, before)
    for name in NAMES:
        assert np.isfinite(getattr(model, name)).all(), name
    assert np.isfinite(model.predict(np.eye(d))).all()


def test_a_bound_far_beyond_its_row_is_reported():
    with pytest.warns(ConvergenceWarning, match="cannot all be met"):
        model = DefiniteBoost(projection="exact").fit([[1.0, 0.0]], [1e30], sense=">=")
    assert np.isfinite(model.kernel_).all()


def test_a_bound_that_says_nothing():
    """The bound is infinite relative to its row; its multiplier stays 0."""
    given = [[0, 1], [1, 2], [3, 4]], [1.7e308, 0.1, 0.1]
    for projection in ("approximate", "exact", "corrective"):
        with np.errstate(all="raise", under="ignore"):
            model = DefiniteBoost(projection=projection).fit_pairs(*given, n_objects=5)
        assert model.alpha_[0] == 0
        assert abs(model.dual_gap_) <= model.alpha_.sum() * model.max_violation_
