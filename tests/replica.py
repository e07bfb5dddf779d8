"""Mirror descent of `onlinebregman.reference` with a schedule, and random streams to run it on."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from scipy.special import log_ndtr, ndtr, xlogy
from sklearn.base import is_classifier

from onlinebregman import reference
from onlinebregman.divergences import Divergence
from onlinebregman.losses import Loss

# --- the formulas -----------------------------------------------------------------------------------------------------

MIRRORS = {**reference.MIRRORS, "cosh": reference.Mirror(np.sinh, np.arcsinh)}
FORMULAS = {
    **reference.LOSSES,
    "probit": reference.Loss(
        lambda a, y: xlogy(y, y) + xlogy(1 - y, 1 - y) - y * log_ndtr(a) - (1 - y) * log_ndtr(-a),
        lambda a, y: ndtr(a) - y,
    ),
    "logcosh": reference.Loss(lambda a, y: np.log(np.cosh(a - y)), lambda a, y: np.tanh(a - y)),
}
GEOMETRIES = [(name, False) for name in reference.MIRRORS] + [("relative_entropy", True), ("simplex_entropy", True)]
LOSSES = list(reference.LOSSES)
MARGIN_LOSSES = ("hinge", "perceptron", "squared_hinge", "modified_huber")
geometries = pytest.mark.parametrize(("divergence", "signed"), GEOMETRIES, ids=str)


class Replica(reference.MirrorDescent):
    """Learns at the rate weight * eta0 / t^power and sums the losses; signed weights are those of the rows (x, -x).

    `coef`, `intercept` and losses are those of the mean of the weights after all rows from the `average`-th on.
    """

    def __init__(
        self, divergence, loss, update, w, *, eta0, power=0.0, signed=False, fit_intercept=True, average=False
    ):
        simplex, size = divergence == "simplex_entropy", np.abs(w).sum()
        start = reference.signed_halves(w, 1.0 + (not simplex) * size) if signed else w
        mirror = reference.simplex(start.sum()) if simplex else MIRRORS.get(divergence, divergence)
        super().__init__(mirror, FORMULAS[loss], start, update, fit_intercept)
        self.signed, self.eta0, self.power, self.t, self.total = signed, eta0, power, 0, 0.0
        self.average, self.steps = int(average) or np.inf, []

    def learn(self, x, y, weight=1.0):
        if weight == 0:
            return
        x, self.t = np.r_[x, -x] if self.signed else x, self.t + 1
        w, b = self.averaged
        self.total += weight * float(self.loss.value(w @ x + b, y))
        super().learn(x, y, weight * self.eta0 / self.t**self.power)
        if self.t >= self.average:
            self.steps.append((self.w, self.b))

    @property
    def averaged(self):
        w, b = zip(*self.steps or [(self.w, self.b)], strict=True)
        return np.mean(w, axis=0), np.mean(b)

    @property
    def coef(self):
        w = self.averaged[0]
        return np.subtract(*np.split(w, 2)) if self.signed else w

    @property
    def intercept(self):
        return self.averaged[1]


# --- streams and models -----------------------------------------------------------------------------------------------


def start_of(divergence, rng, n, signed=False):
    """A random point of the domain."""
    if signed:
        return rng.dirichlet(np.ones(n)) * rng.choice([-0.9, 0.9], size=n)
    if divergence == "simplex_entropy":
        return rng.dirichlet(np.full(n, 3.0))
    if divergence == "binary_entropy":
        return rng.uniform(0.1, 0.9, size=n)
    return rng.uniform(0.2, 1.0, size=n) * (rng.choice([-1, 1], size=n) if divergence not in POSITIVE else 1)


POSITIVE = ("relative_entropy", "burg")


def stream(loss, rng, rows, n, density=1.0):
    X = rng.normal(size=(rows, n)) * (rng.uniform(size=(rows, n)) < density)
    targets = {
        "log_loss": lambda: rng.choice([0.0, 1.0, 0.3], size=rows),
        "poisson": lambda: rng.poisson(2.0, size=rows).astype(float),
        "gamma": lambda: rng.gamma(2.0, size=rows),
        "tweedie": lambda: rng.gamma(2.0, size=rows) * (rng.uniform(size=rows) < 0.8),
        "hinge": lambda: rng.choice([-1.0, 1.0], size=rows),
    }
    targets.update(dict.fromkeys(MARGIN_LOSSES, targets["hinge"]))
    targets["probit"] = targets["log_loss"]
    return X, targets.get(loss, lambda: 0.5 * X.sum(axis=1) + rng.normal(size=rows))()


def sparse_rows(rng, rows, n, density=0.3, w=(1.0, 0.5, 0.8)):
    X = rng.normal(size=(rows, n)) * (rng.uniform(size=(rows, n)) < density)
    return X, X[:, :3] @ w + 0.1 * rng.normal(size=rows)


def rows_that_end_on_kinks(loss, seed, n=5, repeats=60, integers=False):
    """Four rows, many times each: an exact step on one often ends on a kink, where the next equal row begins.

    So do explicit steps on rows and targets of integers. Also returns a permutation of the columns.
    """
    rng = np.random.default_rng(seed)
    X, y = stream(loss, rng, 4, n, density=0.7)
    if integers:
        X, y = rng.integers(-3, 4, size=X.shape).astype(float), y.round()
    order = rng.permutation(np.repeat(np.arange(4), repeats))
    return X[order], y[order], rng.permutation(n)


def model_of(divergence, loss, **parameters):
    kind = MirrorDescentClassifier if loss in MARGIN_LOSSES else MirrorDescentRegressor
    return kind(divergence=divergence, loss=loss, **parameters)


def learn(model, X, y, weights=None):
    labels = {"classes": [-1.0, 1.0]} if is_classifier(model) else {}
    return model.partial_fit(X, y, sample_weight=weights, **labels)


def agree(model, replica, rtol, *, signs):
    """Weights and intercept; those of one sign each to their own size. After rows of float32 weights are rounded."""
    coef, rounded = replica.coef, 0.0 if model.coef_.dtype == np.float64 else 1.2e-7
    of_coef, size = rtol + rounded, max(1.0, np.abs(coef).max())
    assert_allclose(np.ravel(model.coef_), coef, rtol=of_coef, atol=of_coef * size if signs else 0.0)
    assert_allclose(model.intercept_, replica.intercept, rtol=rtol, atol=rtol)
    assert_allclose(model.cumulative_loss_, replica.total, rtol=100 * rtol, atol=100 * rtol)
    assert model.t_ == replica.t


class Cosh(Divergence):
    """F(w) = sum cosh w, by its three methods alone: learned by the NumPy path."""

    def potential(self, w):
        return float(np.cosh(w).sum())

    def mirror(self, w):
        return np.sinh(w)

    def inverse_mirror(self, theta):
        return np.arcsinh(theta)


class ScoreLoss(Loss):
    """A user's own loss, which predicts scores: learned by the NumPy path."""

    def link(self, a):
        return np.array(a, dtype=float)

    def link_derivative(self, a):
        return np.ones(np.shape(a))


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


STAIRS = [Stairs([1.0, 2.0, 0.5]), Stairs([1.0, 2.0, 0.5], 1.0), Stairs([0.3, 0.0, 0.3, 3.0], 0.1)]


class LogCosh(ScoreLoss):
    """ln cosh(a - y): smooth, but not a matching loss."""

    translation_invariant = True

    def value(self, a, y):
        return np.logaddexp(a - y, y - a) - np.log(2)

    def derivative(self, a, y):
        return np.tanh(np.subtract(a, y))

    def curvature(self, a, y):
        return 1 / np.cosh(np.subtract(a, y)) ** 2


def own(cls):
    """A subclass that changes nothing: learned by the NumPy path."""
    return type(f"Own{cls.__name__}", (cls,), {})


def uniform(n):
    """The n-th number of SplitMix64, in [0, 1)."""
    z = n * 0x9E3779B97F4A7C15 % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return ((z ^ (z >> 31)) >> 11) / 2**53
