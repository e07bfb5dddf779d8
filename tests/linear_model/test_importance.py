"""update="importance": a row of weight h is h rows of weight 1, or any splitting of h. Its step is a flow.

The scalar c of f(w') = f(w) - c x follows dc/dh = eta L'(a(c), y) from c = 0, a(c) the score of w(c). It never passes
the rest of the flow, where L' = 0 or jumps through 0, however large h is.
"""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from replica import MARGIN_LOSSES, STAIRS, start_of, stream
from scipy import sparse
from scipy.optimize import brentq

from onlinebregman.divergences import BinaryEntropy, Burg, PNorm, RelativeEntropy, SimplexEntropy, SquaredEuclidean
from onlinebregman.losses import resolve_loss

DIVERGENCES = {
    "squared_euclidean": SquaredEuclidean(),
    "relative_entropy": RelativeEntropy(),
    "simplex_entropy": SimplexEntropy(),
    "burg": Burg(),
    "binary_entropy": BinaryEntropy(),
    "p_norm": PNorm(3.0),
}
SIGNED = [(name, False) for name in DIVERGENCES] + [("relative_entropy", True), ("simplex_entropy", True)]
JUMPS = ["absolute_error", "epsilon_insensitive", "quantile", "hinge", "perceptron"]
BENDS = ["huber", "modified_huber", "squared_hinge", "squared_epsilon_insensitive"]
LOSSES = ["squared_error", "log_loss", "poisson", *BENDS, *JUMPS]
geometries = pytest.mark.parametrize(("divergence", "signed"), SIGNED, ids=str)
losses = pytest.mark.parametrize("loss", [*LOSSES, *STAIRS], ids=str)


def target_of(loss, rng):
    y = stream(loss, rng, 1, 1)[1][0]
    return y if loss in (*MARGIN_LOSSES, "log_loss", "poisson") else 2.0 * y


def learned(divergence, loss, x, y, weights, *, update="importance", **parameters):
    """A model that has learned a row several times, and its coef."""
    rows = x if sparse.issparse(x) else np.repeat(np.atleast_2d(x), len(weights), axis=0)
    kind = MirrorDescentClassifier if loss in MARGIN_LOSSES else MirrorDescentRegressor
    labels = {"classes": [-1.0, 1.0]} if kind is MirrorDescentClassifier else {}
    parameters = {"eta0": 1.0, **parameters}
    model = kind(
        divergence=DIVERGENCES.get(divergence, divergence),
        loss=loss,
        update=update,
        learning_rate="constant",
        **parameters,
    ).partial_fit(rows, np.full(len(weights), y), sample_weight=weights, **labels)
    return model, np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])


def same(divergence, signed, one, other, start):
    """Weights and intercept agree to 1e-10; positive weights also in their exponents, down to the smallest float."""
    (_, w, b), (_, v, a) = one, other
    if signed or divergence in ("squared_euclidean", "p_norm"):
        assert_allclose(w, v, rtol=1e-10, atol=1e-10 * max(np.abs(start).max(), np.abs(w).max()))
    else:
        normal = np.minimum(w, v) > 1e-300
        exponents = np.maximum(1.0, -np.log(np.maximum(w, 1e-300)))
        assert (np.abs(w - v)[normal] <= 1e-10 * (exponents * w)[normal]).all()
        assert (w[~normal] < 1e-299).all() and (v[~normal] < 1e-299).all()
    assert_allclose(b, a, rtol=1e-10, atol=1e-12)


# --- the law ----------------------------------------------------------------------------------------------------------


@geometries
@losses
@settings(max_examples=4)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 5),
    size=st.floats(-1.5, 1.5),
    weight=st.floats(-6.0, 6.0),
    parts=st.integers(2, 5),
    fit_intercept=st.booleans(),
    csr=st.booleans(),
)
def test_any_splitting_of_a_row_is_the_row(divergence, signed, loss, seed, n, size, weight, parts, fit_intercept, csr):
    rng = np.random.default_rng(seed)
    x, y, start = 10**size * rng.normal(size=n), target_of(loss, rng), start_of(divergence, rng, n, signed)
    parameters = {"signed": signed, "init": start, "fit_intercept": fit_intercept}
    split = rng.dirichlet(np.full(parts, 0.5)) * 10**weight
    whole = learned(divergence, loss, sparse.csr_array(x[None]) if csr else x, y, [split.sum()], **parameters)
    same(divergence, signed, whole, learned(divergence, loss, x, y, split, **parameters), start)
    equal = learned(divergence, loss, x, y, np.ones(parts), eta0=split.sum() / parts, **parameters)
    same(divergence, signed, whole, equal, start)
    assert np.isfinite(whole[1]).all() and np.isfinite(whole[2])


@geometries
@pytest.mark.parametrize("loss", JUMPS)
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 5), rate=st.floats(-3.0, 3.0))
def test_down_to_a_kink_it_is_the_implicit_step(divergence, signed, loss, seed, n, rate):
    """The derivative is constant up to the kink, where the flow ends: c is limited to reach it."""
    rng = np.random.default_rng(seed)
    x, y, start = rng.normal(size=n), target_of(loss, rng), start_of(divergence, rng, n, signed)
    parameters = {"signed": signed, "init": start, "eta0": 10**rate}
    flow = learned(divergence, loss, x, y, [1.0], **parameters)
    implicit = learned(divergence, loss, x, y, [1.0], update="implicit", **parameters)
    assert_allclose(flow[1], implicit[1], rtol=1e-13)
    assert_allclose(flow[2], implicit[2], rtol=1e-13)
    c, slope = -flow[2], float(resolve_loss(loss).derivative(start @ x, y))
    assert abs(c) <= 10**rate * abs(slope) * (1 + 1e-15)
    if abs(c) < 10**rate * abs(slope) * (1 - 1e-9):
        kinks = resolve_loss(loss).kinks(y)
        assert np.abs(kinks - (flow[1] @ x + flow[2])).min() <= 1e-11 * max(1.0, np.abs(flow[1]) @ np.abs(x) + abs(y))


# --- it is the flow ---------------------------------------------------------------------------------------------------


def in_closed_form(loss, a, y, s):
    """The score after the flow da/dt = -L'(a, y) has run for a time s."""
    if loss == "squared_error":
        return y + (a - y) * np.exp(-s)
    if loss == "poisson":  # z = e^-a obeys z' = 1 - y z
        return -np.logaddexp(-a - y * s, np.log(-np.expm1(-y * s) / y if y > 0 else s))
    if loss == "huber":
        linear = min(max(abs(a - y) - 1.35, 0.0) / 1.35, s)
        return y + np.sign(a - y) * (abs(a - y) - 1.35 * linear) * np.exp(linear - s)
    if loss == "log_loss" and y == 1:
        return -in_closed_form(loss, -a, 0.0, s)
    if loss == "log_loss":  # a - e^-a falls by t
        lo = min(a - s, -np.log(s + np.exp(-a) + abs(a) + 1)) - 1
        return brentq(lambda b: (b - a) - (np.exp(-b) - np.exp(-a)) + s, max(lo, -700), a, xtol=1e-14, rtol=1e-15)
    raise AssertionError(loss)


@pytest.mark.parametrize(
    ("loss", "targets"),
    [
        ("squared_error", [-3.0, 2.0]),
        ("poisson", [0.0, 0.01, 1.0, 40.0]),
        ("huber", [-3.0, 2.0]),
        ("log_loss", [0.0, 1.0]),
    ],
)
@settings(max_examples=60)
@given(
    data=st.data(),
    a=st.floats(-30.0, 60.0),
    log_size=st.floats(-3.0, 3.0),
    log_weight=st.floats(-6.0, 6.0),
    fit_intercept=st.booleans(),
)
def test_closed_forms_of_the_euclidean_geometry(loss, targets, data, a, log_size, log_weight, fit_intercept):
    """There the score satisfies da/dh = -eta (x.x + 1) L'(a, y)."""
    y, h = data.draw(st.sampled_from(targets)), 10**log_weight
    x = 10 ** (log_size / 2) * np.array([0.6, -0.8])
    start = a * x / (x @ x)
    expected = in_closed_form(loss, start @ x, y, h * (x @ x + fit_intercept))
    _, coef, b = learned("squared_euclidean", loss, x, y, [h], init=start, fit_intercept=fit_intercept)
    assert_allclose(coef @ x + b, expected, rtol=1e-12, atol=1e-12 * max(1.0, abs(a)))


@pytest.mark.parametrize("score", [50.0, 300.0, 695.0])
@pytest.mark.parametrize("y", [0.0, 3.0])
@pytest.mark.parametrize("h", [1e-300, 1e-100, 1e-6, 1.0, 1e6])
def test_poisson_flows_from_far_up(score, y, h):
    _, coef, _ = learned("squared_euclidean", "poisson", [1.0], y, [h], init=[score], fit_intercept=False)
    assert_allclose(coef[0], in_closed_form("poisson", score, y, h), rtol=1e-12, atol=1e-12 * score)


# --- hard cases -------------------------------------------------------------------------------------------------------


class Counting:
    """Mixin that counts how often w(c) is computed."""

    def step(self, w, x, c):
        vars(self)["count"] = vars(self).get("count", 0) + 1  # not by `setattr`: divergences cannot change
        return super().step(w, x, c)


def counting(divergence):
    """The same, which counts."""
    known = DIVERGENCES[divergence]
    twin = copy.copy(known)
    twin.__class__ = type("Twin", (Counting, type(known)), {})
    return twin


HARD = {
    # name: (divergence, loss, x, y, start, h)
    "a layer that is thin against the flow": (
        ("binary_entropy", "log_loss"),
        ([131.53239375, -16.80977893], 0.0, [0.47414621, 0.84328304], 384.87762085005244),
    ),
    "weights at a corner of the simplex": (
        ("simplex_entropy", "poisson"),
        ([63.37911159, 56.14792971, 68.60950305], 50.0, [0.388, 0.212, 0.4], 471.9),
    ),
    "a target out of reach": (
        ("simplex_entropy", "squared_error"),
        ([0.6, 0.2, 0.1], 9.0, [0.4, 0.2, 0.4], 1e6),
    ),
    "a score that is small against its terms": (
        ("burg", "huber"),
        ([-40.67201858, 201.87576614], -0.009401031617764014, [0.21694348, 0.20105263], 0.09440277431307495),
    ),
    "the same, for signs": (
        ("p_norm", "squared_error"),
        ([9.4585711, 9.05133988, 10.4052981], -0.02037679, [1.39183923, -0.14814802, -0.22969051], 0.162114),
    ),
    "weights through 0": (
        ("p_norm", "log_loss"),
        ([-0.02245363, -0.05833139, -0.01855124], 0.0, [-0.73783209, -0.96188171, -0.92025464], 378.64),
    ),
    "growth from next to nothing": (
        ("relative_entropy", "squared_error"),
        ([1.0, 0.5], 100.0, [1e-200, 1e-250], 1e3),
    ),
    "far above the target": (("relative_entropy", "poisson"), ([10.0, 300.0], 2.0, [30.0, 1.0], 1e3)),
    "the end of the domain": (("burg", "poisson"), ([-1.0, -2.0], 1e9, [0.5, 1e-3], 1e6)),
}


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_flows_that_are_hard_to_follow(name, fit_intercept):
    (divergence, loss), (x, y, start, h) = HARD[name]
    parameters = {"init": np.array(start), "fit_intercept": fit_intercept}
    whole = learned(divergence, loss, x, y, [h], **parameters)
    for seed in range(20):
        split = np.random.default_rng(seed).dirichlet(np.ones(3)) * h
        same(divergence, False, whole, learned(divergence, loss, x, y, split, **parameters), np.array(start))
    slow = learned(counting(divergence), loss, x, y, [h], **parameters)
    same(divergence, False, whole, slow, np.array(start))
    assert slow[0].divergence_.count < 1500


@pytest.mark.parametrize("name", [name for name in DIVERGENCES if name != "squared_euclidean"])
@pytest.mark.parametrize("y", [0.0, 0.1])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_row_that_is_learned_already_costs_next_to_nothing(name, y, fit_intercept):
    """Its residual is rounding errors, of terms that cancel. A noiseless stream ends in such rows."""
    rng = np.random.default_rng(2)
    start = np.full(20, 0.05) if name != "p_norm" else rng.normal(size=20)
    x = rng.normal(size=20)
    x -= start * ((x @ start - y) / (start @ start))  # start.x = y up to rounding
    model, coef, b = learned(counting(name), "squared_error", x, y, [1e3, 1.0, 1e-3] * 5, init=start)
    assert model.divergence_.count < 15 * 100
    assert_allclose(coef, start, rtol=1e-12)
    assert abs(b) < 1e-14


def test_an_error_where_the_link_overflows(unchanged):
    model = MirrorDescentRegressor(
        divergence="squared_euclidean", loss="poisson", update="importance", init=[1.0], fit_intercept=False
    )
    model.partial_fit([[1.0]], [3.0])
    with unchanged(model, "row 1"):
        model.partial_fit([[1.0], [800.0]], [3.0, 1.0])
