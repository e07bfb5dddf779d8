"""User-defined losses with kinks: in implicit and importance steps they give the results of the compiled ones."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from replica import MARGIN_LOSSES, geometries, learn, model_of, rows_that_end_on_kinks, start_of, stream
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


class OneSided(QuantileLoss):
    """The same with all properties; at the kink `derivative` is the slope of one side."""

    def derivative(self, a, y):
        return np.where(np.asarray(a) > y, 1 - self.quantile, -self.quantile)


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


class Steep(ScoreLoss):
    """(a - y)^2 / 2 up to a distance of 1, from which the slope is 3: kinks behind a smooth minimum, on both sides."""

    def value(self, a, y):
        r = np.abs(np.asarray(a) - y)
        return np.where(r <= 1, r * r / 2, 3 * r - 2.5)

    def derivative(self, a, y):
        r = np.asarray(a) - y
        return np.where(np.abs(r) <= 1, r, 3 * np.sign(r))

    def curvature(self, a, y):
        return np.where(np.abs(np.asarray(a) - y) <= 1, 1.0, 0.0)

    def kinks(self, y):
        return np.stack([np.asarray(y, dtype=float) - 1, np.asarray(y, dtype=float) + 1])


OWN = {name: type(f"My{type(loss).__name__}", (type(loss),), {}) for name, loss in LOSSES.items()}
STAIRS = [Stairs([1.0, 2.0, 0.5]), Stairs([1.0, 2.0, 0.5], 1.0), Stairs([0.3, 0.0, 0.3, 3.0], 0.1)]


@pytest.mark.parametrize("eta0", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("y", [0.5, -0.5, 3.0, -5.0])
def test_implicit_steps_end_before_kinks_behind_the_minimum(y, eta0):
    loss, kinks, x = Steep(), np.array([y - 1, y + 1]), 2.0
    model = MirrorDescentRegressor(
        divergence="squared_euclidean", loss=loss, learning_rate="constant", eta0=eta0, fit_intercept=False
    ).partial_fit([[x]], [y])
    between = (eta0 * x * y) / (1 + eta0 * x * x)  # the step of the squared loss
    outside = [-3 * eta0 * x, 3 * eta0 * x]
    candidates = np.array([between, *outside, *(kinks / x)])
    best = candidates[np.argmin(candidates**2 / 2 + eta0 * loss.value(candidates * x, y))]
    assert_allclose(model.coef_[0], best, rtol=1e-12)


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


@pytest.mark.parametrize("update", ["explicit", "implicit", "importance"])
@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("divergence", ["squared_euclidean", "p_norm", "relative_entropy", "burg"])
def test_a_user_defined_pinball_loss_is_the_quantile_loss(divergence, quantile, update):
    rng = np.random.default_rng(0)
    X, y = stream("quantile", rng, 60, 4)
    parameters = {"divergence": divergence, "update": update, "eta0": 0.1 if update == "explicit" else 2.0}
    if update == "explicit" and divergence == "burg":
        parameters["eta0"] = 0.02
    mine, compiled = (
        MirrorDescentRegressor(loss=loss, **parameters).partial_fit(X, y)
        for loss in (Pinball(quantile), QuantileLoss(quantile))
    )
    assert_allclose(mine.coef_, compiled.coef_, rtol=1e-12, atol=1e-14)
    assert_allclose(mine.cumulative_loss_, compiled.cumulative_loss_, rtol=1e-12)


@pytest.mark.parametrize("update", ["implicit", "importance"])
@pytest.mark.parametrize("divergence", ["adagrad", "normalized_adagrad", "diagonal_newton"])
def test_on_its_kink_a_loss_has_no_slope(divergence, update):
    """Adaptive metrics depend on the slope: it is 0 where 0 is a subgradient, not that of one side."""
    for seed in range(3):
        X, y, _ = rows_that_end_on_kinks("quantile", seed, repeats=20)
        mine, compiled = (
            MirrorDescentRegressor(divergence=divergence, update=update, loss=loss).partial_fit(X, y)
            for loss in (OneSided(0.7), QuantileLoss(0.7))
        )
        assert_allclose(mine.metric_, compiled.metric_, rtol=1e-9)
        assert_allclose(mine.coef_, compiled.coef_, rtol=1e-9, atol=1e-9)


def test_the_quantile_loss_finds_quantiles():
    rng = np.random.default_rng(1)
    y = rng.normal(size=20_000)
    for quantile in (0.1, 0.5, 0.9):
        model = MirrorDescentRegressor(
            divergence="squared_euclidean", loss=QuantileLoss(quantile), eta0=1.0, average=True
        )
        model.partial_fit(np.zeros((20_000, 1)), y)
        assert abs((y <= model.intercept_).mean() - quantile) < 0.01


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


def flow_down_stairs(loss, gap, time, size):
    """The flow d gap/ds = -size L'(gap) on pieces on which L' is a straight line, one after the other."""
    kinks = np.arange(len(loss.heights))
    while time > 0:
        left, right = (float(side) for side in loss.subdifferential(gap, 0.0))
        if left <= 0 <= right:
            break
        slope, ahead = (left, kinks[kinks < gap]) if left > 0 else (right, kinks[kinks > gap])
        kink = (ahead.max() if left > 0 else ahead.min()) if len(ahead) else -np.sign(slope) * np.inf
        rate = size * loss.bend
        reach = (gap - kink) / slope  # this much of (1 - e^(-rate s)) / bend
        if rate == 0:
            needed = reach / size
        else:
            needed = -np.log1p(-reach * loss.bend) / rate if reach * loss.bend < 1 else np.inf
        if needed > time:
            return gap - slope * (size * time if rate == 0 else -np.expm1(-rate * time) / loss.bend)
        gap, time = float(kink), time - needed
    return gap


@pytest.mark.parametrize("loss", STAIRS, ids=repr)
@settings(max_examples=60)
@given(y=st.floats(-9.0, 9.0), time=st.floats(0.01, 3.0), fit_intercept=st.booleans())
def test_the_flow_over_kinks_solves_its_differential_equation(loss, y, time, fit_intercept):
    """In the squared Euclidean divergence da/ds = -(x.x + 1) L'(a)."""
    x, start = np.array([1.0, -0.5]), np.array([0.3, 0.2])
    model = MirrorDescentRegressor(
        divergence="squared_euclidean",
        loss=loss,
        update="importance",
        eta0=1.0,
        learning_rate="constant",
        init=start,
        fit_intercept=fit_intercept,
    ).partial_fit([x], [y], sample_weight=[time])
    expected = y + flow_down_stairs(loss, start @ x - y, time, x @ x + fit_intercept)
    assert_allclose(x @ model.coef_ + model.intercept_, expected, rtol=1e-9, atol=1e-9)


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
