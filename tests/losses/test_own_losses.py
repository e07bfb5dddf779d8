"""User-defined losses with kinks: in implicit and importance steps they give the results of the compiled ones."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raw import MirrorDescentRegressor
from replica import LOSSES, STAIRS, ScoreLoss, Stairs, geometries, learn, model_of, start_of, stream

from onlinebregman import ExpertMixtureRegressor, ForwardRegressor, LearningRatePath
from onlinebregman.losses import (
    resolve_loss,
)


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


@geometries
@pytest.mark.parametrize("loss", [*LOSSES, *STAIRS, Pinball(0.7)], ids=str)
@settings(max_examples=3)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 6), rate=st.floats(-3.0, 1.0))
def test_the_implicit_step_is_a_minimum(divergence, signed, loss, seed, n, rate):
    """w' minimises D(w', w) + (b' - b)^2/2 + eta L(w'.x + b', y), where c lies in eta times the subdifferential."""
    rng = np.random.default_rng(seed)
    X, y = stream(loss, rng, 1, n)
    eta, x, target = 10**rate, X[0], y[0]
    model = model_of(
        divergence, loss, signed=signed, eta0=eta, learning_rate="constant", init=start_of(divergence, rng, n, signed)
    )
    learn(model, X, y, np.zeros(1))
    learner = model._learner if isinstance(model, MirrorDescentRegressor.func) else model._learner.learners[0]
    w, _ = learner.position
    learn(model, X, y)
    moved, b = learner.position
    x = np.r_[x, -x] if signed else x
    definition, geometry, a, c = resolve_loss(loss), model.divergence_, moved @ x + b, -b

    def objective(u, b):
        return geometry.divergence(u, w) + b**2 / 2 + eta * float(definition.value(u @ x + b, target))

    best = objective(moved, b)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(5):
            theta = geometry.mirror(moved)
            push = size * rng.normal(size=len(w)) * (np.abs(theta) if divergence == "burg" else 1.0)
            push = np.minimum(push, -0.9 * theta) if divergence == "burg" else push
            u, shift = geometry.inverse_mirror(theta + push), b + size * rng.normal()
            assert objective(u, shift) >= best - 1e-12 * max(1.0, best)

    kinks = np.ravel(definition.kinks(target))
    near = kinks[np.abs(kinks - a) <= 1e-12 * max(1.0, np.abs(moved * x).sum() + abs(b))]
    low, high = definition.subdifferential(near[0] if len(near) else a, target)
    scale = max(1.0, eta * float(definition.curvature(a, target)) * (np.abs(moved * x).sum() + abs(b)))
    assert eta * low - 1e-10 * scale <= c <= eta * high + 1e-10 * scale


@pytest.mark.parametrize("divergence", ["squared_euclidean", "p_norm"])
@pytest.mark.parametrize("loss", STAIRS, ids=repr)
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 4))
def test_flows_pass_kinks_at_which_the_derivative_keeps_its_sign(divergence, loss, seed, n):
    """They end where it changes: see also `linear_model/test_importance.py`."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(1, n)), 4 * rng.normal()
    model = model_of(divergence, loss, update="importance", eta0=1.0, init=start_of(divergence, rng, n))
    a = float(learn(model, x, [y], [1e6]).predict(x)[0])
    assert loss.value(a, y) <= loss.value(loss.kinks(y), y).min() + 1e-9 * (1 + abs(y))


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
