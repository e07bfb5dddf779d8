"""The compiled p-norm geometry against plain NumPy, written from the formulas."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from onlinebregman._kernels.geometries.pnorm import PNormGeometry
from onlinebregman._kernels.learners.learner import Learner
from onlinebregman._kernels.losses.loss import SquaredLoss
from replica import Replica
from scipy import sparse
from sparse_rows import LAYOUTS

from onlinebregman import reference
from onlinebregman.divergences import PNorm
from onlinebregman.schedules import Constant

N = 20
PS = [2.0, 2.5, 3.0, 4.0, 2 * np.log(N), 30.0]


def weights_of(theta, p):
    """f^-1, with theta of any size."""
    return reference.p_norm(p).inverse(theta)


def replica_of(theta, p, *, eta, fit_intercept=False, **settings):
    """A replica that starts from theta."""
    settings |= {"w": np.zeros(len(theta)), "eta0": eta, "fit_intercept": fit_intercept}
    made = Replica(reference.p_norm(p), "squared_error", **settings)
    made.theta = np.array(theta, dtype=np.float64)
    return made


def learner_of(geometry, *, eta, update="implicit", **settings):
    learner = Learner(geometry, SquaredLoss())
    learner.configure(update=update, schedule=Constant(eta), **settings)
    return learner


def theta_of(learner):
    """A copy of the state: what the geometry is rebuilt from."""
    return learner.geometry.__reduce__()[1][0]


def weights_in(learner):
    """The weights the next step starts from, and not their average."""
    return learner.position[0]


def stream(seed, rows, n, *, density=1.0, scale=1.0):
    """Rows and targets that two of the weights explain, up to noise; the rows exact in both kinds of floats."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, n)) * (rng.uniform(size=(rows, n)) < density)
    X = X.astype(np.float32).astype(np.float64)
    y = X[:, 0] - 0.5 * X[:, -1] + 0.1 * rng.normal(size=rows)
    return X * scale, y


def agree(learner, replica, rtol=1e-10, size=1.0):
    """The same weights and intercept, up to `rtol` of the largest one or of predictions of so much."""
    assert_allclose(weights_in(learner), replica.w, rtol=rtol, atol=rtol * np.abs(replica.w).max())
    assert_allclose(learner.coef, replica.coef, rtol=rtol, atol=rtol * np.abs(replica.coef).max())
    assert_allclose(learner.intercept, replica.intercept, rtol=rtol, atol=rtol * size)


# --- the numbers of the state -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-100, 1e-8, 1.0, 1e8, 1e12, 1e100])
@pytest.mark.parametrize("p", [*PS, 2.000001, 7.0, 9.0, 12.3, 100.0, 500.0])
def test_weights_are_good_to_the_last_digits(p, size):
    rng = np.random.default_rng(0)
    theta = size * rng.choice([-1.0, 1.0], size=1003) * 10.0 ** rng.uniform(-200 / p, 0, size=1003)
    exact = weights_of(theta.astype(np.longdouble), np.longdouble(p))
    w = PNormGeometry(theta, p, True).coef()
    assert np.abs(w / exact - 1).max() <= (2 + p) * np.finfo(float).eps


@pytest.mark.parametrize("p", [*PS, 500.0])
def test_starting_weights_come_back(p):
    w = np.array([0.3, -1e-5, 0.0, 2.0, -0.7])
    assert_allclose(PNormGeometry(w, p).coef(), w, rtol=(4 + p) * np.finfo(float).eps)
    assert_allclose(theta_of(learner_of(PNormGeometry(w, p), eta=1.0)), PNorm(p).mirror(w), rtol=1e-14)


@pytest.mark.parametrize("p", [1.999, 501.0, np.inf, np.nan])
def test_p_outside_its_range_is_an_error(p):
    with pytest.raises(ValueError, match="2 to 500"):
        PNormGeometry(np.zeros(3), p)


def swinging_stream(rows, n, swing):
    """Sparse rows of three values, and targets that oscillate over `swing` orders of magnitude."""
    rng = np.random.default_rng(1)
    columns = np.sort((rng.integers(n, size=(rows, 1)) + np.array([0, 7, 30])) % n, axis=1).astype(np.int32)
    starts = np.arange(0, 3 * rows + 1, 3, dtype=np.int32)
    X = sparse.csr_array((rng.normal(size=3 * rows), columns.ravel(), starts), shape=(rows, n))
    return X, 10.0 ** (swing / 2 * np.sin(np.arange(rows) / 3000)) * rng.normal(size=rows)


@pytest.mark.parametrize("p, swing, update", [(4.0, 6, "explicit"), (7.8, 0, "explicit"), (27.6, 6, "implicit")])
def test_a_million_sparse_steps_do_not_drift(p, swing, update):
    """Rounding errors of a total do not add up, nor do those of a large total show when it has become small."""
    X, y = swinging_stream(300_000 if update == "implicit" else 1_000_000, 50, swing)
    learner = learner_of(PNormGeometry(np.zeros(50), p), eta=0.1 if update == "implicit" else 0.003, update=update)
    assert learner.learn(X, y) is None
    exact = weights_of(theta_of(learner).astype(np.longdouble), np.longdouble(p))
    assert np.abs(weights_in(learner) / exact - 1).max() <= 4 * (4 + p) * np.finfo(float).eps


# --- hard cases of the sum over all weights ---------------------------------------------------------------------------


@pytest.mark.parametrize("p", [2.5, 6.0, 30.0, 200.0])
@pytest.mark.parametrize("left", [1e3, 1.0, 1e-3, 0.0])
@pytest.mark.parametrize("size", [1.0, 1e-12, 1e12])
def test_a_sparse_row_takes_the_dominating_coordinate_away(p, left, size):
    """All digits of the other coordinates' sum are lost in the total before the step."""
    theta = size * np.array([1.0, -0.5, 1e9, 0.0, 2.0, 1e-7])
    settings = {"eta": 1.0, "update": "explicit"}
    learner = learner_of(PNormGeometry(theta, p, True), **settings)
    c = theta[2] - left * size
    learner.learn(sparse.csr_array(([1.0], ([0], [2])), shape=(1, 6)), weights_of(theta, p)[2:3] - c)
    replica = replica_of(theta_of(learner), p, **settings)
    agree(learner, replica, rtol=1e-12)
    X, y = stream(5, 20, 6, density=0.4)
    for x, target in zip(X, size * y, strict=True):  # and the stream goes on from there
        learner.learn(sparse.csr_array(x[None]), np.array([target]))
        replica.learn(x, target)
    agree(learner, replica, rtol=1e-10)


@pytest.mark.parametrize("p", [2.5, 6.0, 30.0, 200.0])
def test_an_implicit_step_across_the_dominating_coordinate(p):
    theta = np.array([1.0, -0.5, 1e6, 0.0, 2.0])
    x, y = np.array([0.0, 0.0, 1.0, 0.0, -0.5]), -3.0
    settings = {"eta": 1e7, "update": "implicit"}
    replica, learner = replica_of(theta, p, **settings), learner_of(PNormGeometry(theta, p, True), **settings)
    assert learner.learn(sparse.csr_array(x[None]), np.array([y])) is None
    replica.learn(x, y)
    agree(learner, replica, rtol=1e-10)


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("update", ["implicit", "explicit"])
def test_weights_go_through_zero(layout, update):
    """theta = x and back to exactly 0; rows of zeros, and rows without a loss, change nothing."""
    X = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [1.0, 0.0, 2.0]])
    learner = learner_of(PNormGeometry(X[0], 6.0, True), eta=1.0, update="explicit")
    start = X[0] @ weights_in(learner)
    learner.learn(LAYOUTS[layout](X[:1]), np.array([start - 1.0]))
    assert (weights_in(learner) == 0).all() and (theta_of(learner) == 0).all()
    learner.configure(update=update, schedule=Constant(1.0))
    learner.learn(LAYOUTS[layout](X), np.array([0.0, 5.0, 0.0]))
    assert (weights_in(learner) == 0).all()
    replica = replica_of(np.zeros(3), 6.0, eta=1.0, update=update)
    learner.learn(LAYOUTS[layout](X), np.array([0.5, 1.0, -0.2]))
    for x, target in zip(X, [0.5, 1.0, -0.2], strict=True):
        replica.learn(x, target)
    agree(learner, replica, rtol=1e-12)


# --- streams, copies, and rows that cannot be learned -----------------------------------------------------------------


@pytest.mark.parametrize("target", [3.0, 1e6])
@pytest.mark.parametrize("average", [False, True])
def test_what_a_refused_sparse_row_leaves_alone_is_put_back_too(target, average, state):
    """The rows before it have updated the averages (target 3), or changed the unit (1e6)."""
    n, rng = 500, np.random.default_rng(9)
    X = sparse.csr_array(
        (rng.normal(size=30), rng.permutation(n)[:30].astype(np.int32), np.arange(0, 31, 3, dtype=np.int32)),
        shape=(10, n),
    )
    X.sort_indices()
    learner = learner_of(PNormGeometry(rng.uniform(0.5, 1.0, size=n), 6.0, True), eta=1.0, average=average)
    learner.learn(X, np.ones(10))
    before = state(learner)
    unit, summed = (learner.geometry.get_state()[name] for name in ("unit", "summed"))
    y = np.full(10, target)
    y[-1] = np.nan
    assert learner.learn(X, y) == ("bad target", 9)
    assert state(learner) == before
    y[-1] = target
    learner.learn(X, y)
    now = learner.geometry.get_state()  # as the test means it
    assert now["summed"] != summed and (now["unit"] != unit) == (target > 3)
    assert_allclose(weights_in(learner), weights_of(theta_of(learner), 6.0), rtol=1e-13)
