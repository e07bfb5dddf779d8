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
from replica import Cosh, own
from scipy import sparse

from onlinebregman import BurgRegressor, ImplicitGDRegressor
from onlinebregman._online.comparators import split
from onlinebregman._online.mirror import starting_weights
from onlinebregman.constraints import Box, Constraint, L1Ball, L2Ball, Simplex, UpperBound
from onlinebregman.divergences import BinaryEntropy, Burg, PNorm, RelativeEntropy, SimplexEntropy, SquaredEuclidean
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
