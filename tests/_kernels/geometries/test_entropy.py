"""The compiled entropies against extended precision: one row, steps from far below rounding to where weights end."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from onlinebregman._kernels.geometries.entropy import BurgGeometry, EntropyGeometry, SimplexGeometry
from onlinebregman._kernels.learners.learner import Learner
from onlinebregman._kernels.losses.loss import SquaredLoss
from raw import MirrorDescentRegressor
from scipy import sparse

from onlinebregman.divergences import BinaryEntropy
from onlinebregman.schedules import Constant

TINY = np.finfo(float).tiny
LENGTHS = [1, 2, 7, 8, 9, 100]
# Largest |c x|: both sides of each limit between polynomials, and of the one to the full exponential.
REACHES = [1e-9, 1.3e-3, 1.5e-3, 0.014, 0.016, 0.063, 0.065, 0.15, 0.17, 0.30, 0.32, 0.51, 0.53, 5.0, 345.0]
LAYOUTS = {"dense": np.ascontiguousarray, "csr": sparse.csr_array}
kinds = pytest.mark.parametrize("kind", ["positive", "simplex", "burg"])
entropies = pytest.mark.parametrize("kind", ["positive", "simplex"])
twins = pytest.mark.parametrize("signed", [False, True])
layouts = pytest.mark.parametrize("layout", list(LAYOUTS))


def learner_of(kind, w, signed=False, *, eta=1.0, update="explicit", fit_intercept=True, **settings):
    if kind == "simplex":
        geometry = SimplexGeometry(w, signed, size=w.sum())
    else:
        geometry = {"positive": EntropyGeometry, "burg": BurgGeometry}[kind](w, signed)
    learner = Learner(geometry, SquaredLoss())
    learner.configure(update=update, schedule=Constant(eta), fit_intercept=fit_intercept, **settings)
    return learner


def problem(n, signed, *, seed=0, density=1.0):
    """Weights and a row, both of values of all sizes around 1; every fourth row is of positive values."""
    rng = np.random.default_rng(seed)
    w = np.exp(rng.normal(size=2 * n if signed else n))
    x = np.exp(rng.normal(size=n)) * rng.choice([-1.0, 1.0] if seed % 4 else [1.0], size=n)
    x[rng.uniform(size=n) >= density] = 0.0
    x[-1] = 1.0
    return w, x


def both(x, signed):
    """The row as all weights see it, in extended precision."""
    return (np.r_[x, -x] if signed else x).astype(np.longdouble)


def moved(kind, w, x, c):
    """w(c) in extended precision."""
    w = w.astype(np.longdouble)
    if kind == "burg":
        return w / (1 + c * x * w)
    exponent = -c * x
    if kind == "positive":
        return w * np.exp(exponent)
    v = w * np.exp(exponent - exponent.max())
    return w.sum() * v / v.sum()


def divergence(kind, u, w):
    if kind == "burg":
        return (u / w - np.log(u / w) - 1).sum()
    return (u * np.log(u / w) - u + w).sum()


@entropies
@twins
@layouts
@pytest.mark.parametrize("reach", REACHES)
def test_a_step_is_good_to_the_last_places(kind, signed, layout, reach):
    for n in LENGTHS:
        for seed in range(4):
            w, x = problem(n, signed, seed=seed, density=0.5 if layout == "csr" else 1.0)
            c = (-1) ** seed * reach / np.abs(x).max()
            learner = learner_of(kind, w, signed)
            learner.learn(LAYOUTS[layout](x[None]), np.array([both(x, signed) @ w - c], dtype=np.float64))
            c = -learner.intercept  # a Euclidean coordinate of feature 1
            exponents = c * both(x, signed)
            expected = moved(kind, w, both(x, signed), c)
            # c x is rounded to double, and so are the factor, its product with the weight and, on the simplex, the sum
            spread = np.abs(exponents) + (np.abs(exponents).max() if kind == "simplex" else 0.0)
            error = np.abs(learner.position[0] / expected - 1)
            assert (error <= (4e-16 if kind == "positive" else 2e-15) + 2.3e-16 * spread).all()


@kinds
@twins
@layouts
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("eta", [1e-9, 1e-5, 1e-3, 0.1, 10.0, 1e4])
def test_an_implicit_step_solves_its_equation(kind, signed, layout, scale, eta):
    for n in LENGTHS:
        for seed in range(4):
            w, x = problem(n, signed, seed=seed, density=0.5 if layout == "csr" else 1.0)
            x *= scale
            row = both(x, signed)
            y = float((1.0 + 0.1 * (-1) ** seed) * (row @ w))
            learner = learner_of(kind, w, signed, eta=eta, update="implicit")
            learner.learn(LAYOUTS[layout](x[None]), np.array([y]))
            c = -learner.intercept
            expected = moved(kind, w, row, c)
            excess = c + eta * (y - row @ expected + c)
            slope = row**2 @ (expected**2 if kind == "burg" else expected)
            if kind == "simplex":
                slope -= (row @ expected) ** 2 / expected.sum()
            # the root is good to 1e-12, or to what rounding in the score leaves of it
            rounding = 1e-15 * eta * (np.abs(row) @ expected + abs(y))
            assert abs(excess) <= 1e-12 * (1 + eta + eta * slope) * abs(c) + rounding
            assert_allclose(learner.position[0], expected, rtol=1e-13)


@entropies
@twins
def test_an_implicit_step_on_enormous_values_is_that_of_their_mantissas(kind, signed):
    """Moments of the values overflow here; scaled by powers of two the problem has the same digits."""
    scale = 2.0**250
    w, x = problem(9, signed)
    y = float(both(x, signed) @ w) + 0.5
    plain = learner_of(kind, w, signed, eta=1.0, update="implicit", fit_intercept=False)
    plain.learn(x[None], np.array([y]))
    scaled = learner_of(kind, w, signed, eta=1.0 / scale**2, update="implicit", fit_intercept=False)
    scaled.learn(x[None] * scale, np.array([y * scale]))
    assert_allclose(scaled.position[0], plain.position[0], rtol=1e-13)


@kinds
@twins
@layouts
@pytest.mark.parametrize("update", ["explicit", "implicit"])
def test_what_regret_is_made_of_is_the_divergence(kind, signed, layout, update):
    """S grows by D(w, w') at an explicit step, and by D(w', w) less than eta (L(w) - L(w')) at an implicit one."""
    for n in [1, 9, 100, 1300]:
        for seed, size in enumerate([1e-3, 0.1, 0.45, 3.0, 30.0]):
            w, x = problem(n, signed, seed=seed, density=0.5 if layout == "csr" else 1.0)
            row = both(x, signed)
            terms = row * w if kind == "burg" else row
            residual = (-1) ** seed * size / np.abs(terms).max()
            if kind == "burg" and update == "explicit" and (residual * terms).min() <= -1:
                residual *= -0.9 / (residual * terms).min()  # inside the domain
            y = float(row @ w - residual)
            learner = learner_of(kind, w, signed, update=update, fit_intercept=False, track_regret=True)
            learner.learn(LAYOUTS[layout](x[None]), np.array([y]))
            after = learner.position[0].astype(np.longdouble)
            if update == "explicit":
                expected = divergence(kind, w, after)
            else:
                expected = ((row @ w - y) ** 2 - (row @ after - y) ** 2) / 2 - divergence(kind, after, w)
            size_of_terms = np.abs(residual * row) @ (w + after) + (len(w) if kind == "burg" else (w + after).sum())
            size_of_terms += residual**2
            assert abs(learner.run["slack"] - expected) <= 1e-15 * size_of_terms


@pytest.mark.parametrize("c", [-0.9, 0.3, 30.0])
def test_burg_logarithms_of_many_equal_ratios(c):
    """Their product is far outside of what a double holds."""
    n = 2000
    learner = learner_of("burg", np.ones(n), fit_intercept=False, track_regret=True)
    learner.learn(np.ones((1, n)), np.array([n - c]))
    assert_allclose(learner.run["slack"], divergence("burg", 1.0, learner.position[0]), rtol=1e-13)


@twins
def test_weights_at_their_floor_stay_there(signed):
    _, x = problem(9, signed, seed=1)  # of values of both signs: some weights fall, others rise
    learner = learner_of("positive", np.full(18 if signed else 9, TINY), signed)
    learner.learn(np.tile(0.01 * x, (50, 1)), np.full(50, -1.0))
    assert learner.position[0].min() == TINY
    assert learner.position[0].max() > TINY


@kinds
@twins
def test_a_sparse_row_without_values_moves_the_intercept_only(kind, signed):
    w, _ = problem(5, signed)
    for update in ["explicit", "implicit"]:
        learner = learner_of(kind, w, signed, update=update)
        learner.learn(sparse.csr_array((1, 5)), np.array([2.0]))
        assert_allclose(learner.position[0], w, rtol=4e-16)
        assert_allclose(learner.intercept, 2.0 if update == "explicit" else 1.0, rtol=1e-15)


# --- the running total of the simplex ---------------------------------------------------------------------------------


def drift(learner):
    """How far the total is from the sum of the weights, in units in the last place."""
    weights, total = learner.geometry._arguments()[0], learner.geometry.get_state()["total"]
    return abs(total / math.fsum(weights) - 1.0) / np.finfo(float).eps


@twins
@pytest.mark.parametrize("update", ["explicit", "implicit"])
def test_the_total_of_many_sparse_steps_does_not_drift(signed, update):
    """It is a sum of differences: without a fresh one now and then the errors of all steps would add up."""
    rows, n = 30_000, 50
    rng = np.random.default_rng(1)
    columns = np.sort((rng.integers(n, size=(rows, 1)) + np.array([0, 7, 30])) % n, axis=1).astype(np.int32)
    starts = np.arange(0, 3 * rows + 1, 3, dtype=np.int32)
    X = sparse.csr_array((rng.normal(size=3 * rows), columns.ravel(), starts), shape=(rows, n))
    learner = learner_of("simplex", np.full(2 * n if signed else n, 1.0 / n), signed, eta=0.003, update=update)
    drifts = []
    for _ in range(10):
        assert learner.learn(X, rng.normal(size=rows)) is None
        drifts.append(drift(learner))
    assert max(drifts) <= 30.0


def test_a_total_that_falls_is_recomputed():
    """The rounding errors of a large total would be large in a small one."""
    w = np.r_[1.0, np.full(3, 1e-3)]
    learner = learner_of("simplex", w, eta=1.0, fit_intercept=False)
    row = sparse.csr_array(([1.0], [0], [0, 1]), shape=(1, 4))
    for step in [2.0, 1.0, 2.5]:  # the weight falls to e^-5.5, the total to a hundredth and less
        before = learner.predict(row)[0]
        learner.learn(row, np.array([before - step]))
        assert drift(learner) <= 10.0
    assert learner.geometry.get_state()["total"] < 0.01


@pytest.mark.parametrize("c", [1.0, 5.0, 6.5, 7.5, 100.0])
def test_weights_of_the_binary_entropy_leave_their_floor_in_one_step(c):
    """Their odds are multiplied by up to exp(1400): the factor itself overflows."""
    w, x = np.full(3, np.finfo(float).tiny), np.array([30.0, 20.0, 120.0])
    settings = {
        "divergence": "binary_entropy",
        "eta0": c,
        "learning_rate": "constant",
        "init": w,
        "fit_intercept": False,
    }
    explicit = MirrorDescentRegressor(loss="absolute_error", update="explicit", **settings).partial_fit([x], [0.4])
    assert_allclose(explicit.coef_, BinaryEntropy().step(w, x, -c), rtol=1e-9)
    implicit = MirrorDescentRegressor(loss="absolute_error", **settings).partial_fit([x], [0.4])
    assert_allclose(implicit.predict([x]), min(0.4, explicit.predict([x])[0]), rtol=1e-9)


@pytest.mark.parametrize("make", [EntropyGeometry, SimplexGeometry])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_depths_are_undone_with_the_rows(make, layout, state):
    """A weight falls to e^-1000 of itself; the row that raises it to e^-500 is undone with one that is refused."""
    learner = Learner(make(np.full(4, 0.25)), SquaredLoss())
    learner.configure(update="explicit", schedule=Constant(1.0))
    assert learner.learn(layout([[1000.0, 0.0, 0.0, 0.0]]), np.array([249.0])) is None
    before = state(learner)
    assert learner.geometry.get_state()["depth"][0] < -200
    X = layout([[-500.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    assert learner.learn(X, np.array([-1.0, np.nan])) == ("bad target", 1)
    assert state(learner) == before
    assert learner.learn(X[:1], np.array([-1.0])) is None
    assert state(learner) != before
