"""The matrix geometries against NumPy written from the formulas: pairs and triplets, bounds, residuals, regret."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from onlinebregman._kernels.learners.learner import Learner
from onlinebregman._kernels.matrices.frobenius import FrobeniusGeometry
from onlinebregman._kernels.matrices.logdet_blocked import BlockedLogDetGeometry
from onlinebregman._kernels.matrices.matrix import LogDetGeometry
from onlinebregman._kernels.matrices.von_neumann import VonNeumannGeometry

from onlinebregman import reference
from onlinebregman._online.compiled import make_loss
from onlinebregman.divergences import LogDet, SquaredFrobenius, VonNeumann
from onlinebregman.losses import BoundLoss, SquaredLoss
from onlinebregman.schedules import resolve_schedule

laws = settings(max_examples=60, deadline=None)
seeds = st.integers(0, 10**6)
LOSSES = [SquaredLoss(), BoundLoss()]
GEOMETRIES = [LogDetGeometry, BlockedLogDetGeometry]


def learner(W, eta, loss=LOSSES[0], geometry=LogDetGeometry, update="implicit", **settings):
    made = Learner(geometry(W), make_loss(loss))
    made.configure(update=update, schedule=resolve_schedule("constant", eta, 0.5), **settings)
    return made


def spd(rng, d):
    A = rng.normal(size=(d, d + 2))
    return A @ A.T / d


def symmetric_log(W):
    values, vectors = np.linalg.eigh(W)
    return (vectors * np.log(values)) @ vectors.T


def instance(row, d):
    """X of a pair or a triplet."""
    p, q = row[:d], row[d:]
    return np.outer(p, p) - (np.outer(q, q) if len(q) else 0.0)


def rows_of(rng, kind, n, d):
    p, q = rng.normal(size=(2, n, d))
    if kind == "near":
        q = p + 1e-5 * q
    if kind == "parallel":
        q = rng.normal(size=(n, 1)) * p
    return np.hstack([p, np.zeros_like(q) if kind == "half" else q]) if kind != "pair" else p


kinds = st.sampled_from(["pair", "triplet", "near", "parallel", "half"])


@laws
@given(seeds, kinds, st.floats(-3, 1), st.integers(1, 70), st.sampled_from(LOSSES), st.sampled_from(GEOMETRIES))
def test_a_logdet_step_is_the_divergences_and_solves_its_equation(seed, kind, log_eta, d, loss, geometry):
    rng = np.random.default_rng(seed)
    W, row, y, eta = spd(rng, d), rows_of(rng, kind, 1, d), rng.normal(scale=2.0, size=1), 10**log_eta / d
    model = learner(W, eta, loss, geometry)
    X = instance(row[0], d)
    size = sum(part @ W @ part for part in np.split(row[0], row.shape[1] // d))
    before = model.predict(row)[0]
    assert_allclose(before, np.vdot(W, X), atol=1e-13 * size * d)
    assert model.learn(row, y) is None
    after = model.predict(row)[0]
    c = eta * float(loss.derivative(after, y[0]))
    assert_allclose(model.coef, LogDet().step(W, X, c), rtol=1e-10, atol=1e-11 * np.abs(W).max())
    gradient = np.linalg.inv(W) + c * X  # the inverse of W(c)
    assert_allclose(gradient @ model.coef, np.eye(d), atol=1e-8 * np.linalg.cond(W) * np.linalg.cond(model.coef))
    if loss.derivative(before, y[0]) == 0:
        assert_array_equal(model.coef, np.triu(W) + np.triu(W, 1).T)


@pytest.mark.parametrize("update", ["implicit", "importance"])
def test_a_bound_that_holds_moves_nothing_and_one_that_does_not_is_approached(update):
    W, z = np.eye(3), np.array([[1.0, 0.0, 0.0]])
    for bound, reached in [(2.0, False), (0.5, True), (-0.5, False), (-2.0, True), (-0.0, False)]:
        model = learner(W, 1e6, BoundLoss(), update=update)
        assert model.learn(z, np.array([bound])) is None
        assert (model.coef[0, 0] != 1.0) == reached
        assert_allclose(model.coef[0, 0], abs(bound) if reached else 1.0, rtol=1e-4)


def test_collapsed_triplets_move_nothing():
    rng = np.random.default_rng(1)
    W, p = spd(rng, 4), rng.normal(size=4)
    model = learner(W, 10.0)
    for q in (p, -p):
        assert model.learn(np.r_[p, q][None], np.array([-5.0])) is None
    assert_array_equal(model.coef, np.triu(W) + np.triu(W, 1).T)


@pytest.mark.parametrize("geometry", [*GEOMETRIES, FrobeniusGeometry])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
@pytest.mark.parametrize("column", [0, 5])
def test_bad_triplets_leave_the_metric_as_it_was(geometry, value, column):
    rng = np.random.default_rng(2)
    model = learner(spd(rng, 4), 0.1, geometry=geometry)
    rows = rng.normal(size=(6, 8))
    rows[4, column] = value
    before = pickle.dumps(model)
    assert model.learn(rows, np.ones(6))[1] >= 4
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    ("geometry", "divergence", "updates"),
    [
        (LogDetGeometry, LogDet(), ["implicit"]),
        (BlockedLogDetGeometry, LogDet(), ["implicit"]),
        (FrobeniusGeometry, SquaredFrobenius(), ["implicit", "explicit"]),
        (VonNeumannGeometry, VonNeumann(), ["implicit", "explicit"]),
    ],
)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("width", [1, 2])
def test_the_slack_is_the_sum_of_the_definition(geometry, divergence, updates, loss, width):
    """D(W, W') of explicit steps, and eta (L(W) - L(W')) - D(W', W) of implicit ones."""
    for update in updates:
        rng, eta, slack = np.random.default_rng(4), 0.003, 0.0
        start = spd(rng, 5) + np.eye(5)  # of which no step leaves the cone
        start = symmetric_log(start) if geometry is VonNeumannGeometry else start
        model = learner(start, eta, loss, geometry, update, track_regret=True)
        for row, y in zip(rng.normal(size=(6, 1, 5 * width)), [1.0, 9.0, -1.0, 3.0, -9.0, 0.5], strict=True):
            before, W = model.predict(row)[0], model.coef
            assert model.learn(row, np.array([y])) is None
            after, V = model.predict(row)[0], model.coef
            if update == "explicit":
                slack += divergence.divergence(W, V)
            else:
                slack += eta * float(loss.value(before, y) - loss.value(after, y)) - divergence.divergence(V, W)
        assert slack > 0
        assert_allclose(model.run["slack"], slack, rtol=1e-8)


# --- blocks of LogDet updates -----------------------------------------------------------------------------------------


def stream(rng, n, d, width):
    rows = rng.normal(size=(n, width * d))
    return rows, np.abs(rng.normal(scale=2.0 * d, size=n)) * (1 if width == 1 else rng.choice([-1.0, 1.0], size=n))


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("d", [3, 70, 261])
def test_blocked_steps_are_the_steps_one_by_one(d, width):
    rows, y = stream(np.random.default_rng(d), 200, d, width)
    plain, blocked = (learner(spd(np.random.default_rng(0), d), 0.3 / d**2, geometry=G) for G in GEOMETRIES)
    for part in (slice(0, 150), slice(150, 200)):
        assert plain.learn(rows[part], y[part]) is None and blocked.learn(rows[part], y[part]) is None
        assert_allclose(blocked.coef, plain.coef, rtol=1e-10, atol=1e-12 * np.abs(plain.coef).max())
        assert_allclose(blocked.predict(rows), plain.predict(rows), rtol=1e-10, atol=1e-10 * d)
    assert_allclose(blocked.cumulative_loss, plain.cumulative_loss, rtol=1e-12)
    assert_array_equal(blocked.coef, blocked.coef.T)


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("d", [5, 131, 300])
def test_cutting_and_pickling_a_blocked_stream_changes_no_bit(d, width):
    """Also if rows of weight 0 and satisfied bounds leave the metric unchanged, and in another order."""
    rng = np.random.default_rng(d)
    rows, y = stream(rng, 270, d, width)
    y *= rng.choice([-1.0, 1.0], size=270)
    weights = rng.choice([0.0, 1.0, 2.0], size=270)
    whole, cut, shuffled = (learner(np.eye(d), 0.3 / d**2, BoundLoss(), BlockedLogDetGeometry) for _ in range(3))
    assert whole.learn(rows, y, weights) is None
    for part in np.split(np.arange(270), [1, 2, 3, 40, 64, 70, 137, 201, 202]):
        assert cut.learn(rows[part], y[part], weights[part]) is None
        cut.predict(rows[:5])
        cut = pickle.loads(pickle.dumps(cut))
        cut.configure(update="implicit", schedule=resolve_schedule("constant", 0.3 / d**2, 0.5))
    order = rng.permutation(270)
    back = np.argsort(order)
    assert shuffled.learn(np.ascontiguousarray(rows[order]), y[order], weights[order], back) is None
    for other in (cut, shuffled):
        assert_array_equal(other.coef, whole.coef)
        assert_array_equal(other.predict(rows), whole.predict(rows))
        assert other.cumulative_loss == whole.cumulative_loss
    assert 64 < whole.run["moves"] < 250


@pytest.mark.parametrize("bad", [0, 10, 63, 64, 150])
def test_a_bad_row_in_a_blocked_stream_undoes_the_call(bad):
    rows, y = stream(np.random.default_rng(6), 200, 130, 1)
    model, other = (learner(np.eye(130), 1e-5, geometry=BlockedLogDetGeometry) for _ in range(2))
    for one in (model, other):
        one.learn(rows[:50], y[:50])
    before = pickle.dumps(model)
    spoiled = rows.copy()
    spoiled[bad, 7] = np.nan
    assert model.learn(spoiled, y) == ("not finite", bad)
    assert pickle.dumps(model) == before
    assert model.learn(rows, y) is None and other.learn(rows, y) is None
    assert_array_equal(model.coef, other.coef)


def test_small_calls_of_a_blocked_stream_are_undone_too():
    """They do not copy W: calls that do not fill a block only append to it."""
    rows, y = stream(np.random.default_rng(8), 200, 130, 2)
    model, other = (learner(np.eye(130), 1e-5, geometry=BlockedLogDetGeometry) for _ in range(2))
    for start in range(0, 200, 5):
        spoiled = rows[start : start + 5].copy()
        spoiled[start // 5 % 5, 7] = np.inf
        before = pickle.dumps(model)
        assert model.learn(spoiled, y[start : start + 5]) == ("not finite", start // 5 % 5)
        assert pickle.dumps(model) == before
        assert model.learn(rows[start : start + 5], y[start : start + 5]) is None
    assert other.learn(rows, y) is None
    assert_array_equal(model.coef, other.coef)


# --- the squared Frobenius distance -----------------------------------------------------------------------------------


@laws
@given(seeds, kinds, st.floats(-3, 3), st.integers(1, 40), st.sampled_from(LOSSES), st.booleans(), st.booleans())
def test_a_frobenius_step_is_the_divergences_and_its_projection(seed, kind, log_eta, d, loss, singular, explicit):
    rng = np.random.default_rng(seed)
    W, eta = spd(rng, d), 10**log_eta / d**2
    if singular:
        A = rng.normal(size=(d, rng.integers(1, d + 1)))
        W = A @ A.T
    row, y = rows_of(rng, kind, 1, d), rng.choice([0.0, 1.0, -3.0, 2.0 * d], size=1)
    X = instance(row[0], d)
    model = learner(W, eta, loss, FrobeniusGeometry, "explicit" if explicit else "implicit")
    a = model.predict(row)[0]
    assert_allclose(a, np.vdot(W, X), atol=1e-12 * np.abs(W).max() * (row @ row.T).item() * d)
    slope = loss.derivative(a, y[0])
    c = eta * slope if explicit else eta * slope / (1 + eta * np.vdot(X, X))
    assert model.learn(row, y) is None
    V = W - c * X
    expected = SquaredFrobenius().project_psd((V + V.T) / 2)
    size = max(np.abs(W).max(), np.abs(c * X).max()) * d
    assert_allclose(model.coef, expected, atol=1e-13 * size)
    if kind == "pair" and loss == LOSSES[0]:
        written = reference.frobenius_step(W, row[0], y[0], eta, "explicit" if explicit else "implicit")
        assert_allclose(written, expected, atol=1e-12 * size)


def test_a_metric_that_has_lost_a_direction_finds_it_again():
    e = np.eye(3)
    model = learner(np.eye(3), 1e8, geometry=FrobeniusGeometry)
    model.learn(e[:1], np.array([0.0]))
    assert_allclose(model.coef, np.diag([0.0, 1.0, 1.0]), atol=1e-7)
    model.learn(e[:1], np.array([2.0]))
    assert_allclose(model.coef, np.diag([2.0, 1.0, 1.0]), atol=1e-7)
