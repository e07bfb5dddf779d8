"""Any divergence x any loss x any step: implicit steps are minima, importance steps are flows, regret is certified.

The replicas here are the definitions: the NumPy objects of `divergences` and `losses`, and root finders of SciPy.
"""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.integrate import solve_ivp

from onlinebregman import MirrorDescentClassifier, MirrorDescentRegressor
from onlinebregman.constraints import Box, L1Ball, L2Ball, Simplex, UpperBound
from onlinebregman.divergences import (
    BinaryEntropy,
    Burg,
    Divergence,
    PNorm,
    RelativeEntropy,
    SimplexEntropy,
    SquaredEuclidean,
    resolve_divergence,
)
from onlinebregman.losses import Loss, resolve_loss

DIVERGENCES = ["squared_euclidean", "relative_entropy", "simplex_entropy", "burg", "binary_entropy", "p_norm"]
SIGNED = [(name, False) for name in DIVERGENCES] + [
    (name, True) for name in ("relative_entropy", "simplex_entropy", "burg")
]
LOSSES = ["squared_error", "log_loss", "poisson", "absolute_error", "epsilon_insensitive", "huber"]
geometries = pytest.mark.parametrize("divergence, signed", SIGNED, ids=lambda value: str(value))
losses = pytest.mark.parametrize("loss", LOSSES)


def targets(loss, rng, rows):
    if loss == "log_loss":
        return rng.uniform(size=rows).round(rng.integers(0, 3))
    if loss == "poisson":
        return rng.poisson(2.0, size=rows).astype(float)
    return 2.0 * rng.normal(size=rows)


def model_of(divergence, signed, loss, **parameters):
    parameters = {"learning_rate": "constant", **parameters}
    return MirrorDescentRegressor(divergence=divergence, signed=signed, loss=loss, **parameters)


def comparator(divergence, signed, rng, n):
    """A random point of the domain of the weights."""
    if signed:
        u = rng.normal(size=n)
        return u * rng.uniform() / np.abs(u).sum()
    if divergence in ("squared_euclidean", "p_norm"):
        return rng.normal(size=n)
    if divergence == "simplex_entropy":
        return rng.dirichlet(np.ones(n))
    return rng.uniform(0.01, 0.99, size=n) if divergence == "binary_entropy" else rng.gamma(1.0, size=n) + 1e-3


class Replica:
    """The weights and the intercept, moved by the NumPy definitions."""

    def __init__(self, model, n):
        self.divergence = resolve_divergence(model.divergence, n)
        self.loss, self.signed = resolve_loss(model.loss), model.signed
        if isinstance(self.divergence, SimplexEntropy):
            w = np.full((1 + self.signed) * n, 1.0 / ((1 + self.signed) * n))
        elif self.signed:
            w = np.full(2 * n, 1.0 / (2 * n))
        else:
            w = np.full(n, {SquaredEuclidean: 0.0, PNorm: 0.0, BinaryEntropy: 0.5}.get(type(self.divergence), 1.0 / n))
        self.w, self.b, self.bias = w, 0.0, float(model.fit_intercept)

    def row(self, x):
        return np.r_[x, -x] if self.signed else x

    def moved(self, x, c):
        return self.divergence.step(self.w, self.row(x), c) if c != 0 else self.w

    def score(self, x, c=0.0):
        return float(self.moved(x, c) @ self.row(x)) + self.b - self.bias * c

    def step(self, x, c):
        self.w, self.b = self.moved(x, c), self.b - self.bias * c

    @property
    def coef(self):
        return self.w[: len(self.w) // 2] - self.w[len(self.w) // 2 :] if self.signed else self.w

    def implicit(self, x, y, eta):
        """The c at which c - eta L'(a(c)), which increases, passes through 0: by bisection from 0 to the explicit c."""
        end = eta * float(self.loss.derivative(self.score(x), y))
        low, high = self.divergence.step_range(self.w, self.row(x))
        near, far, sign = 0.0, float(np.clip(end, low * (1 - 1e-13), high * (1 - 1e-13))), np.sign(end)
        for _ in range(200):
            c = near + (far - near) / 2
            if sign * (c - eta * float(self.loss.derivative(self.score(x, c), y))) < 0:
                near = c
            else:
                far = c
        return far


@geometries
@losses
@pytest.mark.parametrize("update", ["explicit", "implicit"])
@settings(max_examples=8)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 6),
    rate=st.floats(-2.5, 1.0),
    fit_intercept=st.booleans(),
    layout=st.sampled_from([np.asarray, sparse.csr_array]),
)
def test_steps_equal_the_definitions(divergence, signed, loss, update, seed, n, rate, fit_intercept, layout):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(5, n)), targets(loss, rng, 5)
    eta0 = 10.0**rate if update == "implicit" else 0.01 * 10.0**rate
    model = model_of(divergence, signed, loss, update=update, eta0=eta0, fit_intercept=fit_intercept)
    replica = Replica(model, n)
    total = 0.0
    for i in range(5):
        a = replica.score(X[i])
        total += float(replica.loss.value(a, y[i]))
        if update == "explicit":
            c = eta0 * float(replica.loss.derivative(a, y[i]))
            low, high = replica.divergence.step_range(replica.w, replica.row(X[i]))
            assume(0.9 * low < c < 0.9 * high)
        else:
            c = replica.implicit(X[i], y[i], eta0)
        replica.step(X[i], c)
    model.partial_fit(layout(X), y)
    size = np.abs(replica.w).max()
    assert_allclose(model.coef_, replica.coef, rtol=1e-9, atol=1e-10 * size)
    assert_allclose(model.intercept_, replica.b, rtol=1e-9, atol=1e-10)
    assert_allclose(model.cumulative_loss_, total, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("divergence", DIVERGENCES)
@losses
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 6), rate=st.floats(-3.0, 3.0), fit_intercept=st.booleans())
def test_no_point_is_better_than_the_implicit_step(divergence, loss, seed, n, rate, fit_intercept):
    """w' minimises D(w', w) + eta L(w'.x, y)."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(4, n)), targets(loss, rng, 4)
    model = model_of(divergence, False, loss, eta0=10.0**rate, fit_intercept=fit_intercept)
    model.partial_fit(X[:3], y[:3])
    w, b, D, L = model.coef_, model.intercept_, model.divergence_, resolve_loss(loss)

    def objective(u, v):
        return D.divergence(u, w) + (v - b) ** 2 / 2 + 10.0**rate * float(L.value(u @ X[3] + v, y[3]))

    model.partial_fit(X[3:], y[3:])
    best = objective(model.coef_, model.intercept_)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(5):
            theta = D.mirror(model.coef_) + size * rng.normal(size=n) * (np.abs(D.mirror(model.coef_)) + 1e-3)
            if divergence == "burg" and not (theta < 0).all():
                continue
            v = model.intercept_ + size * rng.normal() * fit_intercept
            assert objective(D.inverse_mirror(theta), v) >= best - 1e-10 * (1 + abs(best))


# --- importance -------------------------------------------------------------------------------------------------------


@geometries
@losses
@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 6),
    rate=st.floats(-3.0, 2.0),
    weight=st.sampled_from([1e-3, 0.3, 3.0, 50.0, 1e4]),
    fit_intercept=st.booleans(),
)
def test_a_row_of_weight_h_is_any_splitting_of_it(divergence, signed, loss, seed, n, rate, weight, fit_intercept):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(3, n)), targets(loss, rng, 3)
    whole = model_of(
        divergence, signed, loss, update="importance", eta0=10.0**rate, fit_intercept=fit_intercept
    ).partial_fit(X, y)
    parts = copy.deepcopy(whole)
    whole.partial_fit(X[:1], y[:1], sample_weight=[weight])
    for share in rng.dirichlet(np.ones(3)):
        parts.partial_fit(X[:1], y[:1], sample_weight=[weight * share])
    size = np.abs(whole.coef_).max()
    assert_allclose(parts.coef_, whole.coef_, rtol=1e-10, atol=1e-10 * size)
    assert_allclose(parts.intercept_, whole.intercept_, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("loss", ["squared_error", "log_loss", "poisson"])
def test_the_importance_step_follows_its_flow(divergence, loss):
    rng = np.random.default_rng(3)
    for weight in (0.1, 1.0, 20.0):
        x, y = rng.normal(size=(1, 4)), targets(loss, rng, 1)
        model = model_of(divergence, False, loss, update="importance", eta0=0.5, fit_intercept=False)
        model.partial_fit(rng.normal(size=(2, 4)), targets(loss, rng, 2))
        w, D, L = model.coef_, model.divergence_, resolve_loss(loss)
        flow = solve_ivp(
            lambda s, c, D=D, L=L, w=w, x=x[0], y=y: 0.5 * (L.link(D.step(w, x, c[0]) @ x) - y),
            (0.0, weight),
            [0.0],
            method="LSODA",
            rtol=1e-11,
            atol=1e-13,
        )
        model.partial_fit(x, y, sample_weight=[weight])
        assert_allclose(model.coef_, D.step(w, x[0], flow.y[0, -1]), rtol=1e-8, atol=1e-9)


def test_the_importance_step_of_gradient_descent_has_a_closed_form():
    rng = np.random.default_rng(0)
    x, y, h, eta = rng.normal(size=5), 3.0, 2.5, 0.2
    model = model_of("squared_euclidean", False, "squared_error", update="importance", eta0=eta, fit_intercept=False)
    model.partial_fit(x[np.newaxis], [y], sample_weight=[h])
    assert_allclose(model.coef_, y * (1 - np.exp(-eta * h * x @ x)) / (x @ x) * x, rtol=1e-14)


# --- regret -----------------------------------------------------------------------------------------------------------


@geometries
@losses
@pytest.mark.parametrize("update", ["explicit", "implicit", "importance"])
@settings(max_examples=8)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 6),
    rate=st.floats(-3.0, 2.0),
    scale=st.sampled_from([0.1, 1.0, 3.0]),
    decaying=st.booleans(),
    fit_intercept=st.booleans(),
)
def test_the_regret_certificate_holds(divergence, signed, loss, update, seed, n, rate, scale, decaying, fit_intercept):
    rng = np.random.default_rng(seed)
    X, y = scale * rng.normal(size=(20, n)), targets(loss, rng, 20)
    weights = rng.choice([0.5, 1.0, 2.0], size=20)
    eta0 = 10.0**rate if update != "explicit" else 1e-3
    learning_rate = "invscaling" if decaying else "constant"
    model = model_of(divergence, signed, loss, update=update, eta0=eta0, learning_rate=learning_rate)
    model.set_params(track_regret=True, fit_intercept=fit_intercept).partial_fit(X[:8], y[:8], weights[:8])
    model = pickle.loads(pickle.dumps(model)).partial_fit(X[8:], y[8:], weights[8:])
    u, b = comparator(divergence, signed, rng, n), rng.normal() * fit_intercept
    rates = weights * eta0 / (np.sqrt(np.arange(1, 21)) if decaying else 1.0)
    regret = model.weighted_loss_ - rates @ resolve_loss(loss).value(X @ u + b, y)
    certificate = model.regret_certificate(u, b)
    assert regret <= certificate + 1e-9 * (1 + abs(model.weighted_loss_) + abs(certificate))


@pytest.mark.parametrize("loss", ["log_loss", "hinge", "perceptron"])
def test_the_certificate_of_classifiers(loss):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(3, size=60)
    model = MirrorDescentClassifier(loss=loss, update="explicit", learning_rate="constant", eta0=0.5, track_regret=True)
    model.partial_fit(X, y, classes=[0, 1, 2])
    U, b = rng.normal(size=(3, 4)), rng.normal(size=3)
    low = 0.0 if loss == "log_loss" else -1.0
    codes = np.where(y[:, np.newaxis] == [0, 1, 2], 1.0, low)
    lost = 0.5 * resolve_loss(loss).value(X @ U.T + b, codes).sum(axis=0)
    assert (model.weighted_loss_ - lost <= model.regret_certificate(U, b) + 1e-12).all()


def test_weighted_loss_is_that_of_predictions_before_each_step():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    model = MirrorDescentRegressor(eta0=0.2, track_regret=True).partial_fit(X[:1], y[:1])
    expected = 0.2 * y[0] ** 2 / 2
    for i in range(1, 30):
        expected += 0.2 / np.sqrt(i + 1) * (model.predict(X[i : i + 1])[0] - y[i]) ** 2 / 2
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    assert_allclose(model.weighted_loss_, expected, rtol=1e-12)


def test_the_certificate_starts_where_tracking_starts():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    model = MirrorDescentRegressor(eta0=0.2).partial_fit(X[:10], y[:10])
    with pytest.raises(ValueError, match="set track_regret=True before learning"):
        model.regret_certificate(np.zeros(3))
    model.set_params(track_regret=True)
    before = model.cumulative_loss_
    model.set_params(learning_rate="constant").partial_fit(X[10:], y[10:])
    assert_allclose(model.weighted_loss_, 0.2 * (model.cumulative_loss_ - before), rtol=1e-12)
    with pytest.raises(ValueError, match="coef has shape"):
        model.regret_certificate(np.zeros(4))
    model.set_params(fit_intercept=False)
    with pytest.raises(ValueError, match="compare with intercept 0"):
        model.regret_certificate(np.zeros(3), intercept=1.0)


BOUNDS = {"squared_euclidean": {"u": 1.0}, "p_norm": {"u": 1.0}, "simplex_entropy": {}}


def in_bounds(divergence, signed, rng, n, rows):
    """Rows of size 1 at most, and a comparator of size 1 at most."""
    D = resolve_divergence(divergence, n)
    X = rng.normal(size=(rows, n))
    X /= np.maximum(1.0, [[D.row_size(x)] for x in X])
    u = comparator(divergence, signed, rng, n)
    if divergence != "simplex_entropy":
        q = D.q if isinstance(D, PNorm) else 2.0
        u *= rng.uniform() / np.linalg.norm(u, q)
    return X, u


@pytest.mark.parametrize("divergence, signed", [(name, False) for name in BOUNDS] + [("simplex_entropy", True)])
@pytest.mark.parametrize("update", ["explicit", "implicit", "importance"])
@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(2, 8), noise=st.sampled_from([0.0, 0.1, 3.0]), hostile=st.booleans()
)
def test_the_theorem_holds_for_the_squared_loss(divergence, signed, update, seed, n, noise, hostile):
    rng = np.random.default_rng(seed)
    X, u = in_bounds(divergence, signed, rng, n, 60)
    y = X @ u + noise * rng.normal(size=60)
    if hostile:  # away from where the model is
        probe = model_of(divergence, signed, "squared_error", update=update, eta0=0.3, fit_intercept=False)
        for i in range(60):
            a = probe.predict(X[i : i + 1])[0] if i else 0.0
            y[i] = X[i] @ u + noise * np.sign(X[i] @ u - a)
            probe.partial_fit(X[i : i + 1], y[i : i + 1])
    bounds = {"x": 1.0, "loss": float(((X @ u - y) ** 2).sum() / 2), **BOUNDS[divergence]}
    model = model_of(divergence, signed, "squared_error", update=update, learning_rate="theory", data_bounds=bounds)
    model.set_params(fit_intercept=False).partial_fit(X, y)
    assert model.cumulative_loss_ - bounds["loss"] <= model.regret_bound_ * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("divergence, signed", [(name, False) for name in BOUNDS] + [("simplex_entropy", True)])
@pytest.mark.parametrize("loss", ["log_loss", "absolute_error", "epsilon_insensitive", "huber"])
@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(2, 8), update=st.sampled_from(["explicit", "implicit", "importance"])
)
def test_the_theorem_holds_for_losses_of_bounded_slope(divergence, signed, loss, seed, n, update):
    rng = np.random.default_rng(seed)
    X, u = in_bounds(divergence, signed, rng, n, 60)
    y, L = targets(loss, rng, 60), resolve_loss(loss)
    bounds = {"x": 1.0, "n_rows": 60, "intercept": 0.5, **BOUNDS[divergence]}
    model = model_of(divergence, signed, loss, update=update, learning_rate="theory", data_bounds=bounds)
    model.partial_fit(X, y)
    regret = model.cumulative_loss_ - L.value(X @ u + rng.uniform(-0.5, 0.5), y).sum()
    assert regret <= model.regret_bound_ * (1 + 1e-9)


def test_theory_says_what_it_needs():
    X, y = np.ones((3, 2)), np.ones(3)
    for parameters, message in [
        ({}, r"needs data_bounds\['x'\]"),
        ({"data_bounds": {"x": 1.0}}, r"needs data_bounds\['u'\]"),
        ({"data_bounds": {"x": 1.0, "z": 1.0}}, "has the key 'z'"),
        ({"data_bounds": {"x": -1.0}}, "has to be a positive finite number"),
        ({"data_bounds": {"x": 1.0, "u": 1.0}, "loss": "huber"}, r"needs data_bounds\['n_rows'\]"),
        ({"data_bounds": {"x": 1.0, "u": 1.0}, "loss": "poisson"}, "no theorem for PoissonLoss"),
        ({"data_bounds": {"x": 1.0, "u": 1.0}, "init": 0.5}, "leave it out"),
        ({"data_bounds": {"x": 1.0, "u": 1.0}, "divergence": "burg"}, "smooth"),
    ]:
        with pytest.raises(ValueError, match=message):
            MirrorDescentRegressor(learning_rate="theory", **parameters).partial_fit(X, y)
    model = MirrorDescentRegressor(learning_rate="theory", data_bounds={"x": 2.0, "u": 1.0}).partial_fit(X, y)
    with pytest.raises(AttributeError, match=r"needs data_bounds\['loss'\]"):
        model.regret_bound_  # noqa: B018


# --- the NumPy path ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SquaredEuclidean, RelativeEntropy, SimplexEntropy, Burg, BinaryEntropy, PNorm])
@pytest.mark.parametrize("update", ["explicit", "implicit", "importance"])
def test_the_numpy_path_gives_the_same_numbers(kind, update):
    own = type("Own", (kind,), {})  # a subclass may have changed anything, so that it runs by its methods
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 4)), rng.uniform(size=50)
    settings = {"update": update, "eta0": 0.05, "average": 3, "track_regret": True}
    p = {"p": 3.0} if kind is PNorm else {}
    compiled = MirrorDescentRegressor(divergence=kind(**p), **settings).partial_fit(X, y)
    for layout in (np.asarray, sparse.csr_array):
        generic = MirrorDescentRegressor(divergence=own(**p), **settings).partial_fit(layout(X), y)
        assert type(generic._learner.geometry).__name__ == "NumPyGeometry"
        assert_allclose(generic.coef_, compiled.coef_, rtol=1e-9, atol=1e-11)
        assert_allclose(generic.cumulative_loss_, compiled.cumulative_loss_, rtol=1e-10)
        u = np.full(4, 0.25)
        assert_allclose(generic.regret_certificate(u), compiled.regret_certificate(u), rtol=1e-7, atol=1e-9)
        assert_allclose(generic.predict(layout(X)), compiled.predict(X), rtol=1e-8, atol=1e-10)


class Cosh(Divergence):
    def potential(self, w):
        return float(np.cosh(w).sum())

    def mirror(self, w):
        return np.sinh(w)

    def inverse_mirror(self, theta):
        if np.abs(theta).max() > 1e6:
            raise ArithmeticError("too far")
        return np.arcsinh(theta)


class Probit(Loss):
    """The link is a sigmoid of its own."""

    def link(self, a):
        return np.arctan(a)

    def link_derivative(self, a):
        return 1 / (1 + np.square(a))

    def value(self, a, y):
        a = np.asarray(a, dtype=np.float64)
        return a * np.arctan(a) - np.log1p(a**2) / 2 - y * a


class Kinked(Probit):
    def kinks(self, y):
        return np.zeros((1, *np.shape(y)))


def test_a_divergence_and_a_loss_of_ones_own():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.arctan(X @ [1.0, -1.0, 0.5])
    model = MirrorDescentRegressor(divergence=Cosh(), loss=Probit(), eta0=5.0).partial_fit(X, y)
    assert np.abs(model.coef_ - [1.0, -1.0, 0.5]).max() < 0.05
    assert_allclose(model.predict(X), np.arctan(X @ model.coef_ + model.intercept_), rtol=1e-12)
    w, b = model.coef_, model.intercept_
    model.partial_fit(X[:1], [0.3])
    eta = 5.0 / np.sqrt(401)
    c = eta * (model.predict(X[:1])[0] - 0.3)  # implicit: the residual after the step
    assert_allclose(np.sinh(model.coef_), np.sinh(w) - c * X[0], rtol=1e-10, atol=1e-12)
    assert_allclose(model.intercept_, b - c, rtol=1e-10)


def test_an_error_of_ones_own_divergence_names_the_row(unchanged):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    model = MirrorDescentRegressor(divergence=Cosh(), update="explicit").partial_fit(X, y)
    y[7] = 1e9
    with unchanged(model, r"Cosh\(\) cannot take the step for row 7 .*too far"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="has kinks, but a loss of your own has to be smooth"):
        MirrorDescentRegressor(loss=Kinked()).partial_fit(X, y)


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize(
    "constraint", [UpperBound(0.4), Box(0.05, 0.6), Simplex(1.0), L1Ball(0.8), L2Ball(0.6)], ids=repr
)
def test_each_step_is_followed_by_the_projection(divergence, constraint):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 4)), rng.normal(size=6)
    D = resolve_divergence(divergence, 4)
    model = model_of(divergence, False, "squared_error", constraint=constraint, eta0=0.5, fit_intercept=False)
    free = model_of(divergence, False, "squared_error", eta0=0.5, fit_intercept=False)
    try:
        model.partial_fit(X[:1], y[:1])
    except ValueError as error:  # no weights on the simplex of sum 1 have a sum of at most 0.8
        assert divergence == "simplex_entropy" and isinstance(constraint, L1Ball), error
        return
    for i in range(1, 6):
        w = model.coef_
        assert constraint.contains(w)
        inside = np.maximum(w, 1e-300) if divergence not in ("squared_euclidean", "p_norm") else w
        step = copy.deepcopy(free).set_params(init=inside).partial_fit(X[i : i + 1], y[i : i + 1])
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        assert_allclose(model.coef_, constraint.project(D, step.coef_), rtol=1e-8, atol=1e-10)
