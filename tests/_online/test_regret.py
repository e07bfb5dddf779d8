"""Regret: the certificate of a run against any comparator.

For a run with steps of rate eta_t (times the row's weight) and any comparator u of the domain

    sum eta_t (L_t(w_t) - L_t(u))  <=  D(u, w_1) - D(u, w_{T+1}) + S.

Its slack is due to convexity; for the squared loss it is known: eta_t (a - a_u)^2 / 2.
"""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from regret_cases import GEOMETRIES, MARGIN_LOSSES, comparator, geometries, model_of

from onlinebregman import BurgRegressor
from onlinebregman._online.mirror import starting_weights
from onlinebregman.divergences import BinaryEntropy
from onlinebregman.losses import resolve_loss
from onlinebregman.losses._base import loss_names

SCHEDULES = {"constant": 0.0, "sqrt": 0.5, "strongly_convex": 1.0}


def target(loss):
    return {
        "log_loss": st.sampled_from([0.0, 1.0, 0.3]),
        "poisson": st.sampled_from([0.0, 1.0, 20.0]),
        "tweedie": st.sampled_from([0.0, 1.0, 20.0]),
        "gamma": st.sampled_from([0.1, 1.0, 20.0]),
        **dict.fromkeys(MARGIN_LOSSES, st.sampled_from([-1.0, 1.0])),
    }.get(loss, st.floats(-20, 20))


@st.composite
def streams(draw, loss, n_max=4):
    """Random rows, targets and weights, including zeros, repetitions and contradictions."""
    n, rows = draw(st.integers(1, n_max)), draw(st.integers(1, 8))
    entry = st.integers(-300, 300).map(lambda k: k / 100)
    X = np.array(draw(st.lists(st.lists(entry, min_size=n, max_size=n), min_size=rows, max_size=rows)))
    y = np.array(draw(st.lists(target(loss), min_size=rows, max_size=rows)))
    h = np.array(draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 4.0]), min_size=rows, max_size=rows)))
    return X, y, h


class Run:
    """A stream learned row by row, with everything needed to recompute its certificate."""

    def __init__(self, model, X, y, h, *, power=0.0):
        self.X, self.y, self.loss = X, y, resolve_loss(model.loss)
        self.scores, self.after, self.stored, t = [], [], 0.0, 0
        model.partial_fit(X[:1], y[:1], sample_weight=[0.0])  # the start
        self.rates = np.zeros(len(y))
        for i in range(len(y)):
            self.scores.append(X[i] @ model.coef_ + model.intercept_)
            model.partial_fit(X[i : i + 1], y[i : i + 1], sample_weight=h[i : i + 1])
            self.after.append(X[i] @ model.coef_ + model.intercept_)
            if isinstance(model.divergence_, BinaryEntropy):
                # near 1, w is computed to two units of 1.1e-16, but 1 - w is needed; the largest w may be any above it
                rest = 1 - model._learner.position[0]
                self.stored += np.where(rest <= 2.0**-53, np.inf, 2.0**-52 / rest).sum()
            t += h[i] > 0
            self.rates[i] = model.eta0 / t**power * h[i] if h[i] > 0 else 0.0
        self.model = model

    def left_side(self, u, b=0.0):
        losses = self.loss.value(np.array(self.scores), self.y) - self.loss.value(self.X @ u + b, self.y)
        return float(self.rates @ losses)

    @property
    def weighted_loss(self):
        return float(self.rates @ self.loss.value(np.array(self.scores), self.y))

    def rounding(self, u, b=0.0):
        """1e-9 of the sizes of all terms of the inequality."""
        learner, divergence, n = self.model._learner, self.model.divergence_, len(u)
        point = starting_weights(divergence, u, n, self.model.signed, name="coef")
        ends = sum(divergence.divergence(point, w) for w, _ in (learner.origin, learner.position))
        ends += sum((b - intercept) ** 2 for _, intercept in (learner.origin, learner.position))
        scores = np.abs(self.scores) + np.abs(self.after)
        slopes = np.abs(self.loss.derivative(np.array(self.scores), self.y))
        sizes = self.rates @ (self.loss.value(self.X @ u + b, self.y) + slopes * scores) + self.weighted_loss
        return 1e-9 * float(1e-3 + sizes + ends + abs(learner.run["slack"])) + self.stored


def learned(geometry, loss, X, y, h, *, learning_rate="constant", **parameters):
    """The run, or an unmet assumption if an explicit step leaves the domain."""
    model = model_of(geometry, loss, track_regret=True, learning_rate=learning_rate, **parameters)
    try:
        return Run(model, X, y, h, power=SCHEDULES[learning_rate])
    except ValueError:
        assert parameters["update"] == "explicit"
        assume(False)


# --- the certificate --------------------------------------------------------------------------------------------------


@geometries
@pytest.mark.parametrize("update", ["explicit", "implicit"])
@settings(max_examples=5)
@given(data=st.data(), rate=st.floats(-3.0, 0.0), fit_intercept=st.booleans(), seed=st.integers(0, 2**32 - 1))
def test_for_the_squared_loss_the_certificate_is_an_identity(geometry, update, data, rate, fit_intercept, seed):
    """(a - y)^2/2 exceeds its tangent by (a - a_u)^2/2; there is no other slack."""
    X, y, h = data.draw(streams("squared_error"))
    eta0 = 10**rate * (0.002 if update == "explicit" else 1.0)
    run = learned(geometry, "squared_error", X, y, h, update=update, eta0=eta0, fit_intercept=fit_intercept)
    rng = np.random.default_rng(seed)
    for _ in range(3):
        u, b = comparator(*GEOMETRIES[geometry], rng, X.shape[1]), float(rng.normal()) * fit_intercept
        tangent = np.array(run.scores if update == "explicit" else run.after)
        given_away = float(run.rates @ (tangent - X @ u - b) ** 2) / 2
        certificate = run.model.regret_bound(u, b, weighted=True)
        assert abs(certificate - run.left_side(u, b) - given_away) <= run.rounding(u, b) + 1e-9 * given_away


@pytest.mark.parametrize("loss", loss_names("classification"))
@pytest.mark.parametrize("n_classes", [2, 3])
def test_each_learner_of_a_classifier_has_its_own(loss, n_classes):
    rng = np.random.default_rng(4)
    X, labels = rng.normal(size=(40, 3)), rng.integers(n_classes, size=40)
    update = "explicit" if loss == "perceptron" else "implicit"
    model = MirrorDescentClassifier(
        divergence="p_norm", loss=loss, update=update, eta0=0.3, learning_rate="sqrt", track_regret=True
    )
    definition, low = resolve_loss(loss), resolve_loss(loss).labels[0]
    left, u, b = 0.0, rng.normal(size=(1 if n_classes == 2 else 3, 3)), rng.normal(size=1 if n_classes == 2 else 3)
    weighted = 0.0
    model.partial_fit(X[:1], labels[:1], classes=range(n_classes), sample_weight=[0.0])
    for t, (x, label) in enumerate(zip(X, labels, strict=True), start=1):
        y = np.where([label == 1] if n_classes == 2 else label == np.arange(3), 1.0, low)
        losses = definition.value(model.coef_ @ x + model.intercept_, y)
        left = left + 0.3 / np.sqrt(t) * (losses - definition.value(u @ x + b, y))
        weighted = weighted + 0.3 / np.sqrt(t) * losses
        model.partial_fit(x[None], np.array([label]))
    assert_allclose(model.weighted_loss_, weighted, rtol=1e-11)
    assert (left <= model.regret_bound(u, b, weighted=True)).all()
    assert model.regret_bound(u[0], weighted=True).shape == (len(u),)  # one comparator for all


def test_the_rates_are_those_of_the_run():
    """The gradient step lowers its rate by itself; the certificate uses the actual rates."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 4))
    y = X @ [0.6, 0.1, 0.3, 0.9] + 0.3 * rng.uniform(size=60)
    model = BurgRegressor(update="gradient", fit_intercept=False, track_regret=True, learning_rate="constant", eta0=9.0)
    model.partial_fit(X[:1], y[:1], sample_weight=[0.0])
    u, bound, rates = np.array([0.5, 0.2, 0.3, 0.9]), 0.0, set()
    for x, outcome in zip(X, y, strict=True):
        a, before = model.coef_ @ x, model.weighted_loss_
        model.partial_fit(x[None], np.array([outcome]))
        eta = (model.weighted_loss_ - before) / ((a - outcome) ** 2 / 2)
        rates.add(round(eta, 9))
        bound += eta * ((a - outcome) ** 2 - (u @ x - outcome) ** 2 + (a - u @ x) ** 2) / 2
    assert len(rates) > 3
    assert_allclose(model.regret_bound(u, weighted=True), bound, rtol=1e-9)


# --- what belongs to a run --------------------------------------------------------------------------------------------


def some_run(geometry="squared_euclidean", rows=30, **parameters):
    rng = np.random.default_rng(11)
    X = rng.normal(size=(rows, 4))
    y = X @ [0.3, 0.2, 0.4, 0.1] + 0.1 * rng.normal(size=rows)
    parameters = {"eta0": 0.3, "track_regret": True, **parameters}
    return X, y, model_of(geometry, "squared_error", **parameters), comparator(*GEOMETRIES[geometry], rng, 4)


@geometries
def test_it_starts_where_tracking_starts(geometry):
    X, y, model, u = some_run(geometry, learning_rate="constant")
    model.set_params(track_regret=False).partial_fit(X[:10], y[:10])
    model.set_params(track_regret=True)
    run = Run(model, X[10:], y[10:], np.ones(20))
    assert_allclose(model.weighted_loss_, run.weighted_loss, rtol=1e-11)
    given_away = float(run.rates @ (np.array(run.after) - X[10:] @ u - 0.2) ** 2) / 2
    assert abs(model.regret_bound(u, 0.2, weighted=True) - run.left_side(u, 0.2) - given_away) <= run.rounding(u, 0.2)
    # switching it off discards it; then it starts again
    model.set_params(track_regret=False).partial_fit(X[:1], y[:1])
    assert model.weighted_loss_ == 0.0
    with pytest.raises(ValueError, match="track_regret=True before learning"):
        model.regret_bound(u, weighted=True)
    model.set_params(track_regret=True).partial_fit(X[:1], y[:1], sample_weight=[0.0])
    assert model.weighted_loss_ == 0.0
    assert_allclose(model.regret_bound(u, weighted=True), 0.0, atol=1e-12)


def test_a_comparator_that_sums_to_the_total_up_to_rounding_is_scaled_to_it():
    X, y, model, u = some_run("simplex_entropy")
    model.partial_fit(X, y)
    assert_allclose(model.regret_bound(u * (1 + 9e-7), weighted=True), model.regret_bound(u, weighted=True), rtol=1e-12)


def test_errors_of_the_certificate():
    X, y, model, _ = some_run("squared_euclidean", track_regret=False)
    with pytest.raises(AttributeError, match="has not learned"):
        model.regret_bound(np.zeros(4), weighted=True)
    with pytest.raises(ValueError, match="no regret certificate of this run; set track_regret=True"):
        model.partial_fit(X, y).regret_bound(np.zeros(4), weighted=True)
    cases = [
        ("relative_entropy", [0.1, -0.2, 0.3, 0.4], r"coef must be > 0 .*; got coef\[1\] = -0.2"),
        ("simplex_entropy", [0.1, 0.2, 0.3, 0.4], "coef must sum to total=1.5; got a sum of 1"),
        (
            "signed simplex_entropy",
            [1.0, -1.0, 0.0, 0.0],
            "absolute values of coef must sum to at most total=.*; got 2",
        ),
        ("burg", [0.1, 0.0, 0.3, 0.4], "outside the domain w > 0"),
        ("binary_entropy", [0.1, 1.2, 0.3, 0.4], r"coef must be between 0 and 1 .*; got coef\[1\] = 1.2"),
        ("squared_euclidean", [0.1, np.nan, 0.3, 0.4], "coef"),
        ("p_norm", [0.1, 0.2], r"coef must have one weight for each of the 4 features; got shape \(2,\)"),
    ]
    for geometry, u, message in cases:
        X, y, model, _ = some_run(geometry)
        model.partial_fit(X, y)
        with pytest.raises(ValueError, match=message):
            model.regret_bound(u, weighted=True)
    X, y, model, u = some_run("squared_euclidean", fit_intercept=False)
    model.partial_fit(X, y).regret_bound(u, weighted=True)
    with pytest.raises(ValueError, match=r"intercept must be that of the run, which learns none, 0\.0; got 0\.5"):
        model.regret_bound(u, 0.5, weighted=True)


@pytest.mark.parametrize("update", ["implicit", "explicit", "importance"])
def test_a_step_far_beyond_the_largest_float_below_one_counts_as_it_is(update):
    """Binary entropy: the odds of the new weight, e^(50 c), overflow, while the weight is the last float below 1."""
    model = MirrorDescentRegressor(
        divergence="binary_entropy", update=update, eta0=2.0, learning_rate="constant", fit_intercept=False,
        track_regret=True,
    ).partial_fit([[-50.0]], [-80.0])  # fmt: skip
    assert model.coef_[0] == 1 - 2.0**-53
    for u in (0.01, 0.5, 0.9, 0.999):
        regret = model.weighted_loss_ - 2 * (-50 * u + 80) ** 2 / 2
        assert regret <= model.regret_bound([u], weighted=True)
    falls = 2 * (55**2 - 30**2) / 2  # of the loss, from the weight 1/2
    slack = {"implicit": falls - np.log(2), "explicit": 5500 * 0.5 - np.log(2), "importance": falls}[update]
    assert_allclose(model._learner.run["slack"], slack, rtol=1e-12)
