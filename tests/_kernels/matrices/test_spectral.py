"""The von Neumann kernel: rank-one changes against fresh eigendecompositions, its evaluations, long streams."""

import pickle

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from onlinebregman._kernels.learners.learner import Learner
from onlinebregman._kernels.losses.loss import SquaredLoss
from onlinebregman._kernels.matrices.von_neumann import VonNeumannGeometry

from onlinebregman.schedules import Constant

laws = settings(max_examples=100, deadline=None)
seeds = st.integers(0, 2**32 - 1)
traces = pytest.mark.parametrize("trace", [None, 1.0, 3.0])
EPS = np.finfo(float).eps

SPECTRA = {
    "equal": lambda rng, d: np.full(d, -1.5),
    "zero": lambda rng, d: np.zeros(d),
    "normal": lambda rng, d: rng.normal(size=d),
    "two values": lambda rng, d: rng.choice([-1.0, 2.0], size=d),
    "clusters": lambda rng, d: rng.integers(0, 3, size=d) + 1e-13 * rng.normal(size=d),
    "close": lambda rng, d: 1.0 + 1e-9 * np.arange(d) + 1e-15 * rng.integers(0, 5, size=d),
    "wide": lambda rng, d: -(10.0 ** rng.uniform(-8, 2, size=d)),
}
DIRECTIONS = {
    "normal": lambda rng, d: rng.normal(size=d),
    "zeros": lambda rng, d: rng.normal(size=d) * (rng.random(d) < 0.4),
    "one": lambda rng, d: np.eye(d)[rng.integers(d)],
    "orders": lambda rng, d: rng.normal(size=d) * 10.0 ** rng.uniform(-20, 1, size=d),
    "nothing": lambda rng, d: np.zeros(d),
}
problems = given(
    seeds,
    st.one_of(st.integers(1, 9), st.sampled_from([16, 17, 40])),
    st.sampled_from(sorted(SPECTRA)),
    st.sampled_from(sorted(DIRECTIONS)),
    st.one_of(st.floats(-3, 3), st.sampled_from([0.0, 1e-300, -1e-17, 1e-12, 1e-6, -1e3, 1e6])),
)


def symmetric(a):
    return (a + a.T) / 2


def problem(seed, d, spectrum, direction):
    """G with eigenvalues of a kind, and z with coordinates of a kind in its eigenvectors."""
    rng = np.random.default_rng(seed)
    q, _ = np.linalg.qr(rng.normal(size=(d, d)))
    if rng.random() < 0.3:
        q = np.eye(d)
    return symmetric((q * SPECTRA[spectrum](rng, d)) @ q.T), q @ DIRECTIONS[direction](rng, d)


def spectrum_of(geometry):
    """Eigenvalues, eigenvectors in the columns, and G, as stored by the geometry."""
    d = geometry.n_features
    held = geometry.get_state()["spectrum"]
    upper = np.triu(held[(2 + d) * d :].reshape(d, d))
    return held[:d], held[2 * d : (2 + d) * d].reshape(d, d).T, upper + np.triu(upper, 1).T


def kernel_of(log_w, trace):
    values, vectors = np.linalg.eigh(log_w)
    p = np.exp(values) if trace is None else trace * np.exp(values - np.logaddexp.reduce(values))
    return (vectors * p) @ vectors.T


def curvature_of(log_w, x, trace):
    """x'Sx of X: sum K_ij (Q'XQ)_ij^2 with logarithmic means K, without tr(W X)^2 / trace."""
    values, vectors = np.linalg.eigh(log_w)
    logs = values if trace is None else values + np.log(trace) - np.logaddexp.reduce(values)
    gaps = np.abs(logs[:, None] - logs)
    means = np.exp(np.maximum(logs[:, None], logs)) * np.where(gaps > 0, -np.expm1(-gaps) / np.maximum(gaps, 1e-300), 1)
    total = float((means * (vectors.T @ x @ vectors) ** 2).sum())
    return total if trace is None else total - np.vdot(kernel_of(log_w, trace), x) ** 2 / trace


def instance(x, d):
    """X of a row: z z', or z_1 z_1' - z_2 z_2'."""
    parts = x.reshape(-1, d)
    return sum(sign * np.outer(z, z) for sign, z in zip((1, -1), parts, strict=False))


def learner(log_prior, trace, update="implicit", eta=1.0, loss=None, **settings):
    machine = Learner(VonNeumannGeometry(log_prior, trace), loss or SquaredLoss())
    machine.configure(update=update, schedule=Constant(eta), **settings)
    return machine


def stream(rng, n, d, kind="rows"):
    """Rows of a kind and targets that some W of trace one about fits."""
    if kind == "pairs":
        rows = np.zeros((n, d))
        for row in rows:
            row[rng.choice(d, 2, replace=False)] = np.sqrt(0.5), -np.sqrt(0.5)
    else:
        rows = rng.normal(size=(n, 2 * d if kind == "triplets" else d)) / np.sqrt(d)
    factor = rng.normal(size=(d, d))
    target = factor @ factor.T / (factor**2).sum()
    y = np.array([np.vdot(target, instance(row, d)) for row in rows])
    return rows, y + 0.01 * rng.normal(size=n)


# --- one change -------------------------------------------------------------------------------------------------------


@laws
@problems
@example(0, 4, "wide", "normal", 1e-24)  # below rounding
def test_rank_one_change_equals_a_fresh_eigendecomposition(seed, d, spectrum, direction, c):
    g, z = problem(seed, d, spectrum, direction)
    geometry = VonNeumannGeometry(g)
    geometry.move(z, c)
    values, vectors, log_w = spectrum_of(geometry)
    moved = g - c * np.outer(z, z)
    scale = max(np.abs(g).max(), abs(c) * (z @ z), 1e-60)  # changes below 1e-80 are none
    assert_allclose(log_w, moved, rtol=0, atol=4 * EPS * scale)
    assert_allclose(vectors.T @ vectors, np.eye(d), rtol=0, atol=1e-14 * np.sqrt(d) + 4 * EPS * d)
    assert_allclose((vectors * values) @ vectors.T, moved, rtol=0, atol=40 * EPS * d * scale)
    assert_allclose(np.sort(values), np.linalg.eigvalsh(moved), rtol=0, atol=40 * EPS * d * scale)


@traces
@laws
@problems
@example(7247, 16, "two values", "one", 3.0)  # a root meets a pole
def test_evaluations_equal_those_of_the_divergence(trace, seed, d, spectrum, direction, c):
    """tr(W(c) X), x'Sx and F*(f(W) - c X) - F*(f(W)) without moving, for a row, a difference of two, and a matrix."""
    g, z = problem(seed, d, spectrum, direction)
    c = float(np.clip(c, -3, 3) / max(z @ z, 1.0))  # limit of the replica's accuracy
    second = np.random.default_rng(seed).normal(size=d) / np.sqrt(d)
    for x in (z, np.r_[z, second], np.r_[z, z]):
        matrix = instance(x, d)
        w = kernel_of(g - c * matrix, trace)
        size = np.trace(w) * max(np.linalg.norm(matrix), 1e-300)
        after, before = (np.logaddexp.reduce(np.linalg.eigvalsh(a)) for a in (g - c * matrix, g))
        grown = trace * (after - before) if trace else np.exp(after) - np.exp(before)
        curvature = curvature_of(g - c * matrix, matrix, trace)
        for geometry, row in ((VonNeumannGeometry(g, trace), x), (VonNeumannGeometry(g, trace), matrix.ravel())):
            geometry.matrices = row is not x
            value, slope, found = geometry.evaluate_row(row, c)
            assert value == pytest.approx(np.vdot(w, matrix), abs=1e-11 * size)
            assert slope == pytest.approx(curvature, abs=1e-11 * size * np.linalg.norm(matrix))
            total = trace or np.exp(max(before, after))
            assert found == pytest.approx(grown, abs=1e-12 * total * (1 + abs(before) + abs(after)))
            assert geometry.move(row, c) == pytest.approx(grown, abs=1e-12 * total * (1 + abs(before) + abs(after)))
            assert_allclose(geometry.coef(), w, rtol=0, atol=1e-11 * np.trace(w))


def test_small_changes_keep_their_digits():
    """The change of ln tr exp by c = 1e-9, to more digits than the eigenvalues have."""
    rng = np.random.default_rng(0)
    z, g = rng.normal(size=6), symmetric(rng.normal(size=(6, 6)))
    for trace in (None, 1.0):
        value, slope, grown = VonNeumannGeometry(g, trace).evaluate_row(z, 1e-9)
        assert grown == pytest.approx(-1e-9 * value - 1e-18 * slope / 2, rel=1e-13)


# --- streams ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("update", ["explicit", "implicit"])
@pytest.mark.parametrize("trace", [None, 1.0])
def test_any_cutting_gives_the_same_digits(update, trace):
    """Also where the eigendecomposition is recomputed, every 500 steps, and after pickling."""
    rows, y = stream(np.random.default_rng(3), 1100, 5)
    whole = learner(np.zeros((5, 5)), trace, update, 0.5, track_regret=True)
    pieces = learner(np.zeros((5, 5)), trace, update, 0.5, track_regret=True)
    assert whole.learn(rows, y) is None
    for part in np.split(np.arange(1100), [1, 2, 400, 499, 500, 501, 777]):
        pieces.learn(rows[part], y[part])
        pieces = pickle.loads(pickle.dumps(pieces))
    assert_array_equal(pieces.geometry.get_state()["spectrum"], whole.geometry.get_state()["spectrum"])
    assert pieces.run == whole.run


@pytest.mark.parametrize("trace", [None, 1.0])
def test_no_drift_over_a_long_stream(trace):
    """100 000 changes in both directions, compared with their sum in extended precision."""
    rng = np.random.default_rng(4)
    n, d = 100_000, 5
    rows = rng.normal(size=(n, d))
    rates = rng.uniform(0, 1, size=n) * np.where(np.arange(n) % 2, -1, 1)
    geometry = VonNeumannGeometry(np.zeros((d, d)), trace)
    total = np.zeros((d, d), dtype=np.longdouble)
    for start in range(0, n, 1000):
        part = slice(start, start + 1000)
        for z, c in zip(rows[part], rates[part], strict=True):
            geometry.move(z, c)
        z, c = rows[part].astype(np.longdouble), rates[part].astype(np.longdouble)
        total -= (z * c[:, None]).T @ z
        pull = float(np.trace(total)) / d  # back to where W is of order one
        for unit in np.eye(d):
            geometry.move(unit, pull)
        total -= np.longdouble(pull) * np.eye(d)
    w = kernel_of(total.astype(float), trace)
    assert np.abs(geometry.coef() - w).max() < 1e-10 * np.trace(w)
    _, vectors, _ = spectrum_of(geometry)
    assert_allclose(vectors.T @ vectors, np.eye(d), rtol=0, atol=1e-12)


# --- what cannot be learned -------------------------------------------------------------------------------------------


def test_steps_that_overflow_are_refused():
    machine = learner(np.zeros((2, 2)), None, "explicit", 1e5)
    reason, row = machine.learn(np.eye(2), np.full(2, 1e3))
    assert reason in ("overflowed", "not finite") and row in (0, 1)
    machine = learner(np.zeros((2, 2)), 1.0, "explicit", 1e300)
    assert machine.learn(np.eye(2), np.full(2, 1e3)) == ("left domain", 0)
    assert_allclose(machine.coef, np.eye(2) / 2, rtol=1e-15)
