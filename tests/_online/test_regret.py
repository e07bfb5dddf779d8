"""Regret: the certificate of a run against any comparator.

For a run with steps of rate eta_t (times the row's weight) and any comparator u of the domain

    sum eta_t (L_t(w_t) - L_t(u))  <=  D(u, w_1) - D(u, w_{T+1}) + S.

Its slack is due to convexity; for the squared loss it is known: eta_t (a - a_u)^2 / 2.

The optimality gap is the largest of all bounds, and so a bound on the regret of a run against the best comparator

    sum h_t (L_t(w_t) - L_t(u))  <=  regret_bound(u)  <=  regret_bound()    for all comparators u,

with equality in the second for one of them, since the bound is affine in u.
"""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from raw import MirrorDescentClassifier, MirrorDescentRegressor, ScaleInvariantRegressor
from replica import Cosh, own
from scipy import sparse
from scipy.optimize import linprog

from onlinebregman import BurgRegressor, EGRegressor, ImplicitGDRegressor, LogDetMetricLearner, PerceptronClassifier
from onlinebregman._online.comparators import Comparators, split
from onlinebregman._online.mirror import starting_weights
from onlinebregman.constraints import Box, Constraint, L1Ball, L2Ball, Simplex, UpperBound
from onlinebregman.divergences import (
    AdaGrad,
    BinaryEntropy,
    Burg,
    PNorm,
    RelativeEntropy,
    SimplexEntropy,
    SquaredEuclidean,
    SquaredFrobenius,
)
from onlinebregman.losses import resolve_loss
from onlinebregman.losses._base import loss_names
from onlinebregman.schedules import Schedule


class Rising(Schedule):
    """Rates that increase, which no built-in schedule has."""

    def __init__(self):
        self.eta0 = 0.01

    def __call__(self, t):
        return self.eta0 * t**0.5


GEOMETRIES = {
    "squared_euclidean": (SquaredEuclidean(), False),
    "relative_entropy": (RelativeEntropy(), False),
    "simplex_entropy": (SimplexEntropy(1.5), False),
    "burg": (Burg(), False),
    "binary_entropy": (BinaryEntropy(), False),
    "p_norm": (PNorm(3.0), False),
    "signed relative_entropy": (RelativeEntropy(), True),
    "signed simplex_entropy": (SimplexEntropy(1.5), True),
    "own burg": (own(Burg)(), False),
    "own signed simplex": (own(SimplexEntropy)(1.5), True),
    "own cosh": (Cosh(), False),
}
MARGIN_LOSSES = ("hinge", "squared_hinge", "modified_huber")
geometries = pytest.mark.parametrize("geometry", GEOMETRIES)


def comparator(divergence, signed, rng, n):
    """A point of the domain: inside, near its boundary, or on it if the divergence is finite there."""
    edge = rng.choice([1.0, 1e-8, 0.0 if not isinstance(divergence, Burg) else 1e-8], size=n)
    if signed:
        u = rng.dirichlet(np.ones(n)) * rng.choice([-1.0, 1.0], size=n) * edge
        return u * rng.choice([1.0, 0.3]) * (divergence.total or 3.0)
    if isinstance(divergence, SimplexEntropy):
        u = (rng.dirichlet(np.ones(n)) + 1e-9) * np.where(edge.any(), edge, 1.0)
        return u * divergence.total / u.sum()
    if isinstance(divergence, BinaryEntropy):
        return rng.uniform(0.001, 0.999, size=n) * edge
    if isinstance(divergence, RelativeEntropy | Burg):
        return rng.gamma(1.0, 2.0, size=n) * edge + (1e-9 if isinstance(divergence, Burg) else 0.0)
    return 3.0 * rng.normal(size=n)


def model_of(geometry, loss, **parameters):
    divergence, signed = GEOMETRIES[geometry]
    return MirrorDescentRegressor(
        divergence=divergence, signed=signed, loss=resolve_loss(loss) if loss in MARGIN_LOSSES else loss, **parameters
    )


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


# --- the regret itself, for decreasing rates --------------------------------------------------------------------------


def stream(seed, n=3, T=40):
    rng = np.random.default_rng(seed)
    X, u = rng.normal(size=(T, n)), rng.uniform(0.1, 0.5, size=n)
    return X, X @ u + rng.normal(size=T), rng.uniform(0.2, 2.0, size=T), u


def test_the_terms_are_those_of_the_definition():
    """Explicit steps without a constraint: S' = sum D(w_t, w_{t+1}) / eta_t = sum eta_t (a - y)^2 x.x / 2."""
    X, y, weights, u = stream(1)
    model = ImplicitGDRegressor(
        update="explicit", eta0=0.05, learning_rate="invscaling", power_t=0.5, fit_intercept=False, track_regret=True
    )
    w, slack, largest = np.zeros(3), 0.0, 0.0
    for t, (x, target, weight) in enumerate(zip(X, y, weights, strict=True), 1):
        eta, residual = 0.05 / np.sqrt(t), x @ w - target
        largest = max(largest, ((u - w) ** 2).sum() / 2)
        slack += eta * weight**2 * residual**2 * (x @ x) / 2
        w = w - eta * weight * residual * x
    model.partial_fit(X, y, sample_weight=weights)
    first, last = 0.05, 0.05 / np.sqrt(len(y))
    largest = max(largest, ((u - w) ** 2).sum() / 2)
    expected = (u @ u) / 2 / first - ((u - w) ** 2).sum() / 2 / last + largest * (1 / last - 1 / first) + slack
    assert_allclose(model.regret_bound(u, largest_divergence=largest), expected, rtol=1e-12)


def test_what_it_refuses():
    X, y, _, u = stream(4)
    model = ImplicitGDRegressor(learning_rate="invscaling", eta0=0.1, power_t=0.5)
    with pytest.raises(ValueError, match="set track_regret=True"):
        model.partial_fit(X, y).regret_bound(u)
    model = ImplicitGDRegressor(learning_rate="invscaling", eta0=0.1, power_t=0.5, track_regret=True).partial_fit(X, y)
    for largest in (None, 1e-3, np.inf):
        with pytest.raises(ValueError, match=r"largest_divergence must be a bound on D\(u, w_t\) for all t"):
            model.regret_bound(u, largest_divergence=largest)
    model = ImplicitGDRegressor(learning_rate=Rising(), track_regret=True).partial_fit(X, y)
    with pytest.raises(ValueError, match="if rates increase during the run; use"):
        model.regret_bound(u, largest_divergence=100.0)
    adaptive = MirrorDescentRegressor(divergence="adagrad", learning_rate="invscaling", eta0=1.0, track_regret=True)
    with pytest.raises(ValueError, match=r"the rates of AdaGrad\(.*\) are not constant"):
        adaptive.partial_fit(X, y).regret_bound(u, largest_divergence=100.0)


# --- comparators within the constraint, and signed ones that can be split within it -----------------------------------


class Halfspace(Constraint):
    """A user-defined constraint: sum w <= total."""

    def __init__(self, total):
        self.total_weight = total

    def project(self, divergence, w):
        return divergence.project_halfspace(w, np.ones(len(w)), self.total_weight)

    def contains(self, w, *, tol=1e-10):
        return bool(np.sum(w) <= self.total_weight * (1 + tol))


CONSTRAINTS = {
    "none": None,
    "upper": UpperBound(0.5),
    "box": Box(0.05, 0.6),
    "simplex": Simplex(1.5),
    "l1": L1Ball(1.0),
    "l2": L2Ball(0.7),
    "own": Halfspace(1.2),
}
SIGNED = {
    "relative_entropy": RelativeEntropy(),
    "simplex_entropy": SimplexEntropy(1.5),
    "burg": Burg(),
    "binary_entropy": BinaryEntropy(),
}
PAIRS = [
    (divergence, constraint)
    for divergence in SIGNED
    for constraint in CONSTRAINTS
    if divergence != "simplex_entropy" or constraint in ("none", "upper", "box", "l2")
]


@pytest.mark.parametrize(("divergence", "constraint"), PAIRS)
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), update=st.sampled_from(["implicit", "explicit"]), fit_intercept=st.booleans())
def test_signed_comparators_are_split_within_the_constraint(divergence, constraint, seed, update, fit_intercept):
    divergence, constraint = SIGNED[divergence], CONSTRAINTS[constraint]
    rng, n = np.random.default_rng(seed), 3
    total = divergence.total
    # a comparator that is the difference of a point inside
    inside = rng.uniform(0.02, 0.5, size=2 * n) * rng.choice([1e-3, 1.0], size=2 * n)
    inside = inside if total is None else total * inside / inside.sum()
    if constraint is not None:
        inside = constraint.project(divergence, inside)
    u, b = inside[:n] - inside[n:], float(rng.normal()) * fit_intercept
    point = split(u, divergence, constraint)
    np.testing.assert_allclose(point[:n] - point[n:], u, atol=1e-12)
    assert (point >= 0).all() and (total is None or abs(point.sum() - total) < 1e-9)
    np.testing.assert_allclose(split(np.array([0.9]), BinaryEntropy(), None), [1.0, 0.1])  # within the domain
    assert constraint is None or constraint.contains(point)
    model = MirrorDescentRegressor(
        divergence=divergence,
        signed=True,
        constraint=constraint,
        update=update,
        eta0=0.02 if update == "explicit" else 1.0,
        learning_rate="constant",
        fit_intercept=fit_intercept,
        track_regret=True,
    )
    X, y = rng.normal(size=(12, n)), 2 * rng.normal(size=12)
    try:
        model.partial_fit(X, y)
    except ValueError:  # an explicit step that leaves Burg's domain
        assert update == "explicit" and isinstance(divergence, Burg)
        return
    left = model.weighted_loss_ - model.eta0 * ((X @ u + b - y) ** 2).sum() / 2
    assert left <= model.regret_bound(u, b, weighted=True) + 1e-8


@pytest.mark.parametrize(
    ("divergence", "constraint", "u", "message"),
    [
        (SquaredEuclidean(), UpperBound(1.0), [0.5, 2.0], r"coef\[1\] = 2 is not in UpperBound\(bound=1\.0\)"),
        (SquaredEuclidean(), UpperBound([9.0, 1.0]), [8.0, 1.5], r"coef\[1\] = 1\.5 is not in UpperBound"),
        (SquaredEuclidean(), Box(-1.0, 1.0), [-3.0, 2.0], r"coef\[0\] = -3 is not in Box\(lower=-1\.0, upper=1\.0\)"),
        (SquaredEuclidean(), L1Ball(1.0), [1.0, -1.0], r"sum abs\(coef\) = 2 is not in L1Ball\(radius=1\.0\)"),
        (SquaredEuclidean(), L2Ball(1.0), [3.0, 4.0], r"norm_2\(coef\) = 5 is not in L2Ball\(radius=1\.0\)"),
        (SquaredEuclidean(), Simplex(1.0), [1.0, 1.0], r"coef sums to 2, not in Simplex\(total=1\.0\)"),
        (SquaredEuclidean(), Simplex(1.0), [1.5, -0.5], r"coef\[1\] = -0\.5 is not in Simplex"),
        (RelativeEntropy(), Halfspace(1.0), [1.0, 1.0], r"coef = \[1\. 1\.\] is not in Halfspace\(total_weight=1\.0\)"),
    ],
    ids=str,
)
def test_comparators_outside_are_refused(divergence, constraint, u, message):
    X, y = np.eye(2), np.ones(2)
    model = MirrorDescentRegressor(divergence=divergence, constraint=constraint, track_regret=True, init=0.5)
    model.partial_fit(X, y)
    with pytest.raises(ValueError, match=f"comparators within the constraint: {message}"):
        model.regret_bound(u, weighted=True)
    edge = constraint.project(divergence, np.abs(u))
    assert np.isfinite(model.regret_bound(edge, 3.0, weighted=True))
    classifier = MirrorDescentClassifier(divergence=divergence, constraint=constraint, track_regret=True, init=0.5)
    classifier.partial_fit(X, [0, 1], classes=[0, 1, 2])
    with pytest.raises(ValueError, match=message):
        classifier.regret_bound([edge, edge, u], weighted=True)


@pytest.mark.parametrize(
    ("divergence", "constraint", "u", "message"),
    [
        (RelativeEntropy(), L1Ball(1.0), [1.0, -1.0], r"sum abs\(\(w\+, w-\)\) = 2 is not in L1Ball"),
        (RelativeEntropy(), UpperBound(1.0), [0.5, -2.0], r"\(w\+, w-\)\[3\] = 2 is not in UpperBound"),
        (RelativeEntropy(), L2Ball(1.0), [0.0, -2.0], r"norm_2\(\(w\+, w-\)\) = 2 is not in L2Ball"),
        (RelativeEntropy(), Simplex(1.0), [2.0, 0.5], r"\(w\+, w-\) sums to 2\.5, not in Simplex"),
        (SimplexEntropy(3.0), UpperBound(1.0), [0.5, -1.5], r"\(w\+, w-\)\[3\] = 1\.5 is not in UpperBound"),
        (BinaryEntropy(), None, [0.5, -1.5], "their domain is 0 < w < 1, their constraint None"),
        (RelativeEntropy(), Box(0.1, 0.5), [0.5, 0.0], r"\(w\+, w-\)\[1\] = 0 is not in Box"),
    ],
    ids=str,
)
def test_signed_comparators_out_of_reach_are_refused(divergence, constraint, u, message):
    X, y = np.eye(2), np.ones(2)
    model = MirrorDescentRegressor(divergence=divergence, constraint=constraint, signed=True, track_regret=True)
    model.partial_fit(X, y)
    with pytest.raises(
        ValueError, match=f"coef must be a difference of w\\+ and w- that this run could reach: {message}"
    ):
        model.regret_bound(u, weighted=True)


def test_burgs_upper_bound_is_a_constraint():
    X, y = np.eye(2), np.ones(2)
    model = BurgRegressor(upper_bound=1.0, track_regret=True).partial_fit(X, y)
    with pytest.raises(
        ValueError, match=r"at most upper_bound=1, under which rows were learned, .*; got coef\[1\] = 2"
    ):
        model.regret_bound([0.5, 2.0], weighted=True)
    assert np.isfinite(model.regret_bound([0.5, 1.0], weighted=True))


# --- weights that are kept off the edge of their domain ---------------------------------------------------------------


@pytest.mark.parametrize("divergence", [RelativeEntropy, SimplexEntropy, BinaryEntropy])
@pytest.mark.parametrize("update", ["explicit", "implicit", "importance"])
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), csr=st.booleans())
def test_the_certificate_holds_for_weights_at_the_floor(divergence, update, seed, csr):
    """Steps so long that f(w) - c x is no longer f of a float."""
    rng = np.random.default_rng(seed)
    X = np.abs(rng.normal(size=(8, 3))) * 10 ** rng.uniform(0, 3, size=(8, 1))
    y = -np.abs(rng.normal(size=8)) * 10 ** rng.uniform(0, 3)
    model = MirrorDescentRegressor(
        divergence=own(divergence)(),
        update=update,
        eta0=1.0,
        learning_rate="constant",
        fit_intercept=False,
        track_regret=True,
    )
    model.partial_fit(sparse.csr_matrix(X) if csr else X, y)
    losses = model.weighted_loss_
    for u in (np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0]), rng.dirichlet(np.ones(3))):
        left = losses - float(((X @ u - y) ** 2).sum()) / 2
        assert left <= model.regret_bound(u, weighted=True) + 1e-9 * (losses + ((X @ u - y) ** 2).sum())


# --- the optimality gap -----------------------------------------------------------------------------------------------


seeds = st.integers(0, 2**32 - 1)


# --- the support function ---------------------------------------------------------------------------------------------


def by_linear_programming(g, lower, upper, total, radius):
    """The largest g.u over such a polytope, infinity if it is unbounded; u = p - q with sum p + q <= radius."""
    n = len(g)
    halves, ends = np.hstack([np.eye(n), -np.eye(n)]), np.r_[upper, -lower]
    rows, limits = np.vstack([halves, -halves])[np.isfinite(ends)], ends[np.isfinite(ends)]
    if radius < np.inf:
        rows, limits = np.vstack([rows, np.ones(2 * n)]), np.r_[limits, radius]
    sums = {} if total is None else {"A_eq": np.ones((1, n)) @ halves, "b_eq": [total]}
    found = linprog(-g @ halves, rows if len(rows) else None, limits if len(limits) else None, **sums)
    return np.inf if found.status == 3 else -found.fun


def by_rays(g, inside, basis, contains):
    """The largest g.u over a bounded convex set in a plane, from its boundary in ever finer angles."""
    best, width = 0.0, np.pi
    for _ in range(4):
        angles = best + np.linspace(-width, width, 2001)
        directions = np.c_[np.cos(angles), np.sin(angles)] @ basis
        reached, missed = np.zeros(len(angles)), np.full(len(angles), 1e3)
        for _ in range(60):
            middle = (reached + missed) / 2
            inner = contains(inside + middle[:, np.newaxis] * directions)
            reached, missed = np.where(inner, middle, reached), np.where(inner, missed, middle)
        values = (inside + reached[:, np.newaxis] * directions) @ g
        best, width = angles[np.argmax(values)], width / 500
    return values.max()


ends = ("none", "zero", "finite", "some")


@settings(max_examples=40)
@given(
    seed=seeds,
    lower=st.sampled_from(ends),
    upper=st.sampled_from(["none", "finite", "some"]),
    has_total=st.booleans(),
    order=st.sampled_from([1.0, 1.3, 2.0]),
    has_ball=st.booleans(),
)
def test_the_support_function_is_the_largest_value(seed, lower, upper, has_total, order, has_ball):
    rng = np.random.default_rng(seed)
    curved = has_ball and order > 1
    n = 2 + has_total if curved else int(rng.integers(1, 6))
    g = rng.normal(size=n) * rng.choice([0.0, 1.0, 1.0], size=n)
    inside = np.abs(rng.normal(size=n)) if lower == "zero" else rng.normal(size=n)
    some = rng.uniform(size=n) < 0.5
    low = {"none": np.full(n, -np.inf), "zero": np.zeros(n)}.get(lower, inside - rng.uniform(size=n))
    high = {"none": np.full(n, np.inf)}.get(upper, inside + rng.uniform(0.01, 1.0, size=n))
    low, high = np.where(some & (lower == "some"), -np.inf, low), np.where(some & (upper == "some"), np.inf, high)
    radius = float(np.linalg.norm(inside, order)) * rng.uniform(1.05, 3.0) if has_ball else np.inf
    total = float(inside.sum()) if has_total else None
    found = Comparators(low, high, total, order, radius).support(g)
    if not curved:
        expected = by_linear_programming(g, low, high, total, radius)
    else:

        def contains(u):
            return ((u >= low) & (u <= high)).all(axis=1) & (np.linalg.norm(u, order, axis=1) <= radius)

        basis = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]]) if has_total else np.eye(2)
        expected = by_rays(g, inside, basis, contains)
        assert found >= expected - 1e-12  # an inexact minimum of the dual function is an upper bound
    assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


def test_of_a_matrix_it_is_that_of_its_eigenvalues():
    rng = np.random.default_rng(0)
    G = rng.normal(size=(4, 4))
    G = G + G.T
    values, vectors = np.linalg.eigh(G)
    top = np.outer(vectors[:, -1], vectors[:, -1])
    assert_allclose(Comparators(0.0, np.inf, 1.0, 1.0).support(G), np.vdot(top, G))  # trace one
    positive = (vectors[:, values > 0]) @ vectors[:, values > 0].T
    assert_allclose(Comparators(0.0, 1.0, None, 1.0).support(G), np.vdot(positive, G))  # 0 <= U <= I
    cut = SquaredFrobenius().project_psd(G)
    assert_allclose(Comparators(0.0, np.inf, None, 2.0, 3.0).support(G), 3.0 * np.linalg.norm(cut))


# --- the largest bound ------------------------------------------------------------------------------------------------


# divergence, signed, constraint, and the corners of the set of comparators, beside which there are no others
UNITS = np.eye(3)
RUNS = {
    "box": (SquaredEuclidean(), False, Box(-0.5, 1.0), product([-0.5, 1.0], repeat=3)),
    "simplex": (SquaredEuclidean(), False, Simplex(1.5), 1.5 * UNITS),
    "l1": (SquaredEuclidean(), False, L1Ball(1.5), np.vstack([1.5 * UNITS, -1.5 * UNITS])),
    "p-norm box": (PNorm(4.0), False, Box(-0.5, 1.0), product([-0.5, 1.0], repeat=3)),
    "eg": (SimplexEntropy(1.5), False, None, 1.5 * UNITS),
    "signed eg": (SimplexEntropy(1.5), True, None, np.vstack([1.5 * UNITS, -1.5 * UNITS])),
    "burg box": (Burg(), False, Box(0.1, 0.6), product([0.1, 0.6], repeat=3)),
    "binary": (BinaryEntropy(), False, None, product([0.0, 1.0], repeat=3)),
    "adagrad box": (AdaGrad(), False, Box(-0.5, 1.0), product([-0.5, 1.0], repeat=3)),
}
RUNS = {name: (*run, np.array(list(corners))) for name, (*run, corners) in RUNS.items()}


def weighted_rows(rng, n_rows, n):
    X = rng.normal(size=(n_rows, n)) * rng.choice([0.0, 1.0, 1.0, 3.0], size=(n_rows, 1))
    y = rng.normal(size=n_rows) * rng.choice([1.0, 5.0]) + X @ rng.normal(size=n)
    return X, y, rng.choice([0.0, 0.5, 1.0, 3.0], size=n_rows)


@pytest.mark.parametrize("name", RUNS)
@settings(max_examples=6)
@given(
    seed=seeds,
    update=st.sampled_from(["implicit", "explicit", "importance"]),
    loss=st.sampled_from(["squared_error", "absolute_error", "huber"]),
    rate=st.floats(-2.0, 0.5),
    fit_intercept=st.booleans(),
)
def test_it_is_the_largest_bound_and_bounds_the_regret(name, seed, update, loss, rate, fit_intercept):
    divergence, signed, constraint, corners = RUNS[name]
    rng = np.random.default_rng(seed)
    X, y, h = weighted_rows(rng, 12, 3)
    assume(h.any())
    model = MirrorDescentRegressor(
        divergence=divergence, signed=signed, constraint=constraint, loss=loss, update=update,
        learning_rate="constant", eta0=10**rate * (0.01 if update == "explicit" else 1.0),
        fit_intercept=fit_intercept, track_regret=True,
    )  # fmt: skip
    try:
        model.partial_fit(X, y, sample_weight=h)
    except ValueError:
        assume(False)  # an explicit step that leaves the domain
    assume(not model._learner.tracked_rates[2])  # DiagonalNewton adapts the rate to the deviation of the targets
    intercepts = (-1.5, 0.4, 1.5) if fit_intercept else (0.0,)
    gap = model.regret_bound(largest_intercept=1.5 if fit_intercept else None)
    bounds, losses = [], []
    for u in np.vstack([corners, rng.dirichlet(np.ones(len(corners)), size=8) @ corners]):
        for b in intercepts:
            bounds.append(model.regret_bound(u, b))
            losses.append(h @ resolve_loss(loss).value(X @ u + b, y))
    size = model.cumulative_loss_ + max(losses) + np.abs(bounds).max()
    assert model.cumulative_loss_ - min(losses) <= gap + 1e-9 * size
    assert max(bounds) <= gap + 1e-9 * size
    assert_allclose(max(bounds), gap, rtol=0, atol=1e-7 * size)


# --- every estimator --------------------------------------------------------------------------------------------------


def test_models_without_tracked_regret_have_none():
    X, y = np.eye(2), np.array([0.0, 1.0])
    for model in (PerceptronClassifier().fit(X, [0, 1]), ScaleInvariantRegressor().fit(X, y)):
        assert not hasattr(model, "weighted_loss_")
    with pytest.raises(ValueError, match="set track_regret=True before learning"):
        EGRegressor().fit(X, y).regret_bound()


# --- rates, intercepts, penalties -------------------------------------------------------------------------------------


def squared_run(**parameters):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 3))
    y = X @ [0.5, -0.3, 0.1] + 0.3 * rng.normal(size=200)
    parameters = {"divergence": "squared_euclidean", "learning_rate": "constant", "eta0": 0.05, **parameters}
    return X, y, MirrorDescentRegressor(track_regret=True, **parameters)


def test_where_rates_fall_it_needs_the_largest_divergence():
    X, y, model = squared_run(constraint=L2Ball(1.0), learning_rate="sqrt", eta0=0.3, fit_intercept=False)
    model.partial_fit(X, y)
    for largest in (None, 0.0, np.inf):
        with pytest.raises(ValueError, match="largest_divergence must be a finite bound"):
            model.regret_bound(largest_divergence=largest)
    gap = model.regret_bound(largest_divergence=2.0)  # norm(u - w)^2 / 2 within the unit ball
    weighted = model.regret_bound(weighted=True)
    rng = np.random.default_rng(0)
    for _ in range(200):
        u = rng.normal(size=3)
        u /= np.linalg.norm(u)
        assert model.cumulative_loss_ - ((X @ u - y) ** 2).sum() / 2 <= model.regret_bound(u, largest_divergence=2.0)
        assert model.regret_bound(u, largest_divergence=2.0) <= gap
        assert model.regret_bound(u, weighted=True) <= weighted
    assert gap < 2.0 * max(model.regret_bound(u, largest_divergence=2.0) for u in np.vstack([np.eye(3), -np.eye(3)]))


def test_what_it_needs_of_unbounded_comparators():
    X, y, model = squared_run()
    model.partial_fit(X, y)
    with pytest.raises(ValueError, match=r"infinite over all comparators \(all finite w\); give a radius.*norm_2"):
        model.regret_bound()
    with pytest.raises(ValueError, match=r"infinite over all intercepts; give largest_intercept.*got None"):
        model.regret_bound(radius=1.0)
    for radius in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="radius must be"):
            model.regret_bound(radius=radius)
    for largest in (-1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="give largest_intercept, a finite bound >= 0"):
            model.regret_bound(radius=1.0, largest_intercept=largest)
    assert model.regret_bound(radius=1.0, largest_intercept=0.0) < model.regret_bound(radius=1.0, largest_intercept=1.0)
    bounded = EGRegressor(learning_rate="constant", track_regret=True).partial_fit(X, y)
    with pytest.raises(ValueError, match="those of this run are bounded; omit it"):
        bounded.regret_bound(radius=1.0)
    with pytest.raises(ValueError, match=r"radius is for the best metric; omit it \(got 9.0\), or omit U"):
        LogDetMetricLearner(track_regret=True).partial_fit(X, y > 0).regret_bound(np.eye(X.shape[1]), radius=9.0)
    burg = MirrorDescentRegressor(divergence="burg", learning_rate="constant", track_regret=True, fit_intercept=False)
    with pytest.raises(ValueError, match=r"\(w > 0\); give a radius, for those with norm_1"):
        burg.partial_fit(np.abs(X), np.full(200, 5.0)).regret_bound()


def test_a_held_intercept_is_that_of_all_comparators():
    X, y, model = squared_run(fit_intercept=False)
    assert model.partial_fit(X[:1], y[:1], sample_weight=[0.0]).regret_bound() == 0.0  # nothing was learned
    model.partial_fit(X, y)
    gap = model.regret_bound(radius=1.0)
    assert model.regret_bound(radius=1.0, largest_intercept=9.0) == gap


@pytest.mark.parametrize(
    ("divergence", "penalty"),
    [*product(["squared_euclidean", "adagrad"], ["l1", "l2", "elasticnet"]), ("p_norm", "l1")],
)
def test_with_a_penalty_it_is_about_the_penalised_objective(penalty, divergence):
    X, y, model = squared_run(penalty=penalty, alpha=0.05, divergence=divergence, fit_intercept=False)
    model.partial_fit(X, y)
    gap, rng = model.regret_bound(radius=1.0), np.random.default_rng(0)
    for _ in range(200):
        u = rng.normal(size=3)
        u *= rng.choice([0.1, 1.0]) / np.linalg.norm(u, 1)
        penalised = ((X @ u - y) ** 2).sum() / 2 + 200 * model._learned_penalty.value(u)
        assert model.cumulative_loss_ - penalised <= gap
        bounds = [model.regret_bound(v) - 200 * model._learned_penalty.value(v) for v in (u, -u, 0 * u)]
        assert bounds[0] <= gap + 1e-9
        assert_allclose(bounds[0] + bounds[1], 2 * bounds[2], rtol=1e-7, atol=1e-7)  # affine in u


def test_classifiers_have_one_for_each_loss():
    rng = np.random.default_rng(3)
    X, labels = rng.normal(size=(60, 4)), rng.integers(0, 3, size=60)
    run = {"divergence": "squared_euclidean", "learning_rate": "constant", "eta0": 0.1, "track_regret": True}
    model = MirrorDescentClassifier(fit_intercept=False, **run).partial_fit(X, labels, classes=[0, 1, 2])
    radii = [0.5, 1.0, 2.0]
    gaps = model.regret_bound(radius=radii)
    assert_allclose(gaps, [model.regret_bound(radius=radius)[k] for k, radius in enumerate(radii)], rtol=0, atol=0)
    joint = MirrorDescentClassifier(fit_intercept=False, multi_class="multinomial", **run)
    joint.partial_fit(X, labels, classes=[0, 1, 2])
    assert joint.regret_bound(radius=1.0).shape == (1,)
    u = rng.normal(size=(100, 3, 4))
    u /= np.linalg.norm(u, axis=2, keepdims=True)
    assert max(joint.regret_bound(one)[0] for one in u) <= joint.regret_bound(radius=1.0)[0]
