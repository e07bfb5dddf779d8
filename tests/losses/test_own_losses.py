"""User-defined losses with kinks: in implicit and importance steps they give the results of the compiled ones."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from replica import MARGIN_LOSSES, geometries, learn, model_of, start_of, stream
from scipy.optimize import minimize_scalar

from onlinebregman import ExpertMixtureRegressor, ForwardRegressor, LearningRatePath
from onlinebregman.losses import (
    LOSSES,
    EpsilonInsensitiveLoss,
    Loss,
    ModifiedHuberLoss,
    QuantileLoss,
    SquaredEpsilonInsensitiveLoss,
    SquaredHingeLoss,
)


class ScoreLoss(Loss):
    """Base class of the losses below."""

    def link(self, a):
        return np.array(a, dtype=float)

    def link_derivative(self, a):
        return np.ones(np.shape(a))


class Pinball(ScoreLoss):
    """`QuantileLoss` as a user might write it: with its kinks, without one-sided slopes."""

    def __init__(self, quantile):
        self.quantile = quantile

    def value(self, a, y):
        return np.maximum(self.quantile * (y - a), (1 - self.quantile) * (a - y))

    def derivative(self, a, y):
        return np.where(np.asarray(a) > y, 1 - self.quantile, -self.quantile)  # at the kink the slope of one side

    def curvature(self, a, y):
        return np.zeros(np.broadcast_shapes(np.shape(a), np.shape(y)))

    def kinks(self, y):
        return [y]


class Stairs(ScoreLoss):
    """curvature (a - y)^2 / 2 + sum h_k abs(a - y - k): several kinks, between lines or parabolas."""

    def __init__(self, heights, curvature=0.0):
        self.heights, self.bend = tuple(heights), curvature

    def value(self, a, y):
        gap = np.asarray(a) - y
        return self.bend * gap**2 / 2 + sum(h * np.abs(gap - k) for k, h in enumerate(self.heights))

    def derivative(self, a, y):
        gap = np.asarray(a) - y
        return self.bend * gap + sum(h * np.sign(gap - k) for k, h in enumerate(self.heights))

    def curvature(self, a, y):
        return np.full(np.broadcast_shapes(np.shape(a), np.shape(y)), self.bend)

    def kinks(self, y):
        return np.stack([np.asarray(y, dtype=float) + k for k in range(len(self.heights))])


OWN = {name: type(f"My{type(loss).__name__}", (type(loss),), {}) for name, loss in LOSSES.items()}
STAIRS = [Stairs([1.0, 2.0, 0.5]), Stairs([1.0, 2.0, 0.5], 1.0), Stairs([0.3, 0.0, 0.3, 3.0], 0.1)]


@geometries
@pytest.mark.parametrize("update", ["explicit", "implicit", "importance"])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_subclass_of_each_loss_gives_its_numbers(divergence, signed, update, loss):
    rng = np.random.default_rng(0)
    X, y = stream(loss, rng, 8, 4)
    parameters = {
        "signed": signed,
        "update": update,
        "eta0": 0.002 if update == "explicit" else 0.5,
        "init": start_of(divergence, rng, 4, signed),
        "track_regret": True,
    }
    weights = rng.choice([0.5, 1.0, 3.0], size=8)
    compiled = learn(model_of(divergence, loss, **parameters), X, y, weights)
    own = OWN[loss](**vars(LOSSES[loss]))
    kind = MirrorDescentClassifier if loss in MARGIN_LOSSES else MirrorDescentRegressor
    slow = learn(kind(divergence=divergence, loss=own, **parameters), X, y, weights)
    assert_allclose(slow.coef_, compiled.coef_, rtol=1e-10, atol=1e-11 * np.abs(compiled.coef_).max())
    assert_allclose(slow.intercept_, compiled.intercept_, rtol=1e-10, atol=1e-11)
    assert_allclose(slow.cumulative_loss_, compiled.cumulative_loss_, rtol=1e-10, atol=1e-12)
    u = np.ravel(compiled.coef_)
    assert_allclose(slow.regret_bound(u, weighted=True), compiled.regret_bound(u, weighted=True), rtol=1e-7, atol=1e-9)


@geometries
@pytest.mark.parametrize(
    "loss",
    [
        *STAIRS,
        Pinball(0.7),
        QuantileLoss(0.7),
        SquaredEpsilonInsensitiveLoss(0.3),
        EpsilonInsensitiveLoss(0.3),
        SquaredHingeLoss(),
        ModifiedHuberLoss(),
    ],
    ids=repr,
)
@settings(max_examples=4)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 4), rate=st.floats(-2.0, 1.0))
def test_the_implicit_step_is_the_argmin_that_scipy_finds(divergence, signed, loss, seed, n, rate):
    """argmin of D(w', w) + (b' - b)^2/2 + eta L(w'.x + b', y) over the points f^-1(f(w) - c x)."""
    rng = np.random.default_rng(seed)
    X, y = stream("hinge" if "classification" in loss.tasks else "huber", rng, 1, n)
    y, eta, start = y if "classification" in loss.tasks else 3 * y, 10**rate, start_of(divergence, rng, n, signed)
    model = MirrorDescentRegressor(
        divergence=divergence, signed=signed, loss=loss, eta0=eta, learning_rate="constant", init=start
    ).partial_fit(X, y, sample_weight=[0.0])
    w, x, D = model._learner.position[0], np.r_[X[0], -X[0]] if signed else X[0], model.divergence_
    model.partial_fit(X, y)

    def objective(c):
        moved = D.step(w, x, c)
        return D.divergence(moved, w) + c**2 / 2 + eta * float(loss.value(moved @ x - c, y[0]))

    low, high = D.step_range(w, x)
    longest = eta * max(abs(float(loss.derivative(w @ x, y[0]))), 1e-3)
    low, high = max(-1.1 * longest, 0.999 * low), min(1.1 * longest, 0.999 * high)
    found = minimize_scalar(objective, bounds=(low, high), method="bounded", options={"xatol": 1e-12 * (high - low)})
    c = -model.intercept_
    if low < c < high:
        assert objective(c) <= found.fun * (1 + 1e-12) + 1e-13
        assert abs(c - found.x) <= 1e-4 * (high - low) or objective(c) < found.fun


@pytest.mark.parametrize("divergence", ["squared_euclidean", "relative_entropy", "burg", "binary_entropy", "p_norm"])
@pytest.mark.parametrize("loss", STAIRS, ids=repr)
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 4), weight=st.floats(-2.0, 2.0), parts=st.integers(2, 4))
def test_any_splitting_of_a_row_is_the_row(divergence, loss, seed, n, weight, parts):
    """The flow passes kinks at which the derivative keeps its sign, and ends where it changes."""
    rng = np.random.default_rng(seed)
    x, y, start = rng.normal(size=n), 4 * rng.normal(), start_of(divergence, rng, n)

    def learned(weights, update="importance"):
        model = MirrorDescentRegressor(
            divergence=divergence, loss=loss, update=update, eta0=1.0, learning_rate="constant", init=start
        )
        rows = np.repeat(x[None], len(weights), axis=0)
        return model.partial_fit(rows, np.full(len(weights), y), sample_weight=weights)

    split = rng.dirichlet(np.ones(parts)) * 10**weight
    whole, pieces = learned([split.sum()]), learned(split)
    assert_allclose(pieces.coef_, whole.coef_, rtol=1e-9, atol=1e-10)
    assert_allclose(pieces.intercept_, whole.intercept_, rtol=1e-9, atol=1e-10)
    long = learned([1e6])
    a = float(x @ long.coef_ + long.intercept_)
    scores = np.r_[loss.kinks(y), a]
    best = scores[np.argmin(loss.value(scores, y))]
    if divergence in ("squared_euclidean", "p_norm"):
        assert loss.value(a, y) <= loss.value(best, y) + 1e-9 * (1 + abs(y))


class Broken(Stairs):
    def kinks(self, y):
        if y > 5:
            raise RuntimeError("no kinks today")
        return super().kinks(y)


@pytest.mark.parametrize("update", ["implicit", "importance"])
def test_a_loss_that_cannot_tell_its_kinks_is_refused(update, unchanged):
    model = MirrorDescentRegressor(divergence="squared_euclidean", loss=Broken([1.0, 2.0]), update=update).partial_fit(
        [[1.0, 2.0]], [0.5]
    )
    with unchanged(model, "no kinks today", RuntimeError):
        model.partial_fit([[1.0, 2.0], [1.0, 0.0]], [0.0, 7.0])


class Failing(ScoreLoss):
    """log cosh(a - y), whose `fail_in`-th call, if any, raises an error."""

    calls, fail_in = [], None
    lipschitz, curvature_range = 1.0, (0.0, 1.0)

    def call(self, method):
        self.calls.append(method)
        if len(self.calls) == Failing.fail_in:
            raise KeyError("the loss needs a file")

    def value(self, a, y):
        self.call("value")
        return np.log(np.cosh(np.subtract(a, y)))

    def derivative(self, a, y):
        self.call("derivative")
        return np.tanh(np.subtract(a, y))

    def curvature(self, a, y):
        self.call("curvature")
        return 1 - np.tanh(np.subtract(a, y)) ** 2


FAILING = MirrorDescentRegressor(divergence="squared_euclidean", loss=Failing())


@pytest.mark.parametrize(
    "model",
    [
        FAILING,
        MirrorDescentRegressor(divergence="squared_euclidean", loss=Failing(), update="importance"),
        MirrorDescentRegressor(loss=Failing()),
        ForwardRegressor(loss=Failing()),
        LearningRatePath(FAILING, eta0s=2),
        ExpertMixtureRegressor([("own", FAILING)]),
    ],
    ids=lambda model: type(model).__name__,
)
def test_an_error_of_a_loss_ends_the_call_wherever_it_is_raised(model, unchanged, monkeypatch):
    x, y = np.array([[1.0, 2.0]]), np.array([0.5])
    model = copy.deepcopy(model).partial_fit(x, y)
    Failing.calls.clear()
    copy.deepcopy(model).partial_fit(x, y)
    assert {"value", "derivative"} <= set(Failing.calls)
    expected = model.predict(x)
    for number in range(1, len(Failing.calls) + 1):
        Failing.calls.clear()
        monkeypatch.setattr(Failing, "fail_in", number)
        with unchanged(model, "the loss needs a file", KeyError):
            model.partial_fit(x, y)
        assert model.predict(x) == expected
