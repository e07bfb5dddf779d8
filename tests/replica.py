"""Vector mirror descent in plain NumPy, written from the formulas, and random streams to run it on.

`Replica` is the reference: it updates theta = f(w) as a whole, uses only the derivatives of the losses, and finds an
implicit step by a root finder of SciPy, which ends at a jump of the derivative, if there is one.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from scipy.special import expit, logit, xlogy
from scipy.stats import norm

from onlinebregman import MirrorDescentClassifier, MirrorDescentRegressor
from onlinebregman.divergences import Divergence

# --- the formulas -----------------------------------------------------------------------------------------------------


def powers(v, r):
    """Gradient of norm_r(v)^2 / 2."""
    size = np.abs(v).max() or 1.0
    norm_r = size * (np.abs(v / size) ** r).sum() ** (1 / r) or 1.0
    return norm_r * np.sign(v) * np.abs(v / norm_r) ** (r - 1)


def softmax(theta):
    v = np.exp(theta - theta.max())
    return v / v.sum()


def p_of(n):
    return max(2.0, 2 * np.log(n))


MIRRORS = {  # f and f^-1, given the number of features
    "squared_euclidean": (lambda w, n: w, lambda theta, n: theta),
    "relative_entropy": (lambda w, n: np.log(w), lambda theta, n: np.exp(np.minimum(theta, 700.0))),
    "simplex_entropy": (lambda w, n: np.log(w), lambda theta, n: softmax(theta)),
    "burg": (lambda w, n: -1 / w, lambda theta, n: -1 / theta),
    "binary_entropy": (lambda w, n: logit(w), lambda theta, n: expit(theta)),
    "p_norm": (lambda w, n: powers(w, p_of(n) / (p_of(n) - 1)), lambda theta, n: powers(theta, p_of(n))),
    "cosh": (lambda w, n: np.sinh(w), lambda theta, n: np.arcsinh(theta)),
}
SLOPES = {  # dL/da
    "squared_error": lambda a, y: a - y,
    "log_loss": lambda a, y: (1 - y) * expit(a) - y * expit(-a),
    "poisson": lambda a, y: np.exp(min(a, 700.0)) - y,
    "absolute_error": lambda a, y: np.sign(a - y),
    "epsilon_insensitive": lambda a, y: np.sign(a - y) * (abs(a - y) > 0.1),
    "huber": lambda a, y: np.clip(a - y, -1.35, 1.35),
    "hinge": lambda a, y: -y * (y * a < 1),
    "perceptron": lambda a, y: -y * (y * a <= 0),
    "squared_hinge": lambda a, y: -2 * y * max(1 - y * a, 0.0),
    "modified_huber": lambda a, y: -y * np.clip(2 * (1 - y * a), 0.0, 4.0),
    "quantile": lambda a, y: (a > y) - 0.5 if a != y else 0.0,
    "squared_epsilon_insensitive": lambda a, y: 2 * np.sign(a - y) * max(abs(a - y) - 0.1, 0.0),
    "probit": lambda a, y: norm.cdf(a) - y,
    "logcosh": lambda a, y: np.tanh(a - y),
}
VALUES = {
    "squared_error": lambda a, y: (a - y) ** 2 / 2,
    "log_loss": lambda a, y: np.logaddexp(0, a) - y * a + xlogy(y, y) + xlogy(1 - y, 1 - y),
    "poisson": lambda a, y: np.exp(a) - y * a + xlogy(y, y) - y,
    "absolute_error": lambda a, y: abs(a - y),
    "epsilon_insensitive": lambda a, y: max(abs(a - y) - 0.1, 0.0),
    "huber": lambda a, y: (a - y) ** 2 / 2 if abs(a - y) <= 1.35 else 1.35 * (abs(a - y) - 1.35 / 2),
    "hinge": lambda a, y: max(1 - y * a, 0.0),
    "perceptron": lambda a, y: max(-y * a, 0.0),
    "squared_hinge": lambda a, y: max(1 - y * a, 0.0) ** 2,
    "modified_huber": lambda a, y: max(1 - y * a, 0.0) ** 2 if y * a >= -1 else -4 * y * a,
    "quantile": lambda a, y: abs(a - y) / 2,
    "squared_epsilon_insensitive": lambda a, y: max(abs(a - y) - 0.1, 0.0) ** 2,
}
GEOMETRIES = [(name, False) for name in MIRRORS if name != "cosh"] + [
    ("relative_entropy", True),
    ("simplex_entropy", True),
]
LOSSES = list(VALUES)
MARGIN_LOSSES = ("hinge", "perceptron", "squared_hinge", "modified_huber")
geometries = pytest.mark.parametrize(("divergence", "signed"), GEOMETRIES, ids=str)


class Replica:
    """theta = f(w), moved to theta - c x; the intercept is one more coordinate, of feature 1 and of f the identity."""

    def __init__(self, divergence, loss, update, w, *, eta0, power=0.0, signed=False, fit_intercept=True):
        self.n, self.signed = len(w), signed
        if signed:  # the halves of w, and the rest of a total of 1 in equal parts
            room = 1.0 - np.abs(w).sum() if divergence == "simplex_entropy" else 1.0
            w = np.r_[np.maximum(w, 0), np.maximum(-w, 0)] + room / (2 * self.n)
        mirror, self.inverse = MIRRORS[divergence]
        self.theta, self.b = mirror(np.array(w), self.n), 0.0
        self.slope, self.value, self.update = SLOPES[loss], VALUES.get(loss), update
        self.eta0, self.power, self.bias = eta0, power, float(fit_intercept)
        self.t, self.total, self.burg = 0, 0.0, divergence == "burg"

    def learn(self, x, y, weight=1.0):
        self.t += 1
        x = np.r_[x, -x] if self.signed else x
        eta = weight * self.eta0 / self.t**self.power

        def score(c):
            return self.inverse(self.theta - c * x, self.n) @ x + self.b - self.bias * c

        a = score(0.0)
        if self.value:
            self.total += weight * float(self.value(a, y))
        c = eta * float(self.slope(a, y))
        if self.update == "implicit" and c != 0:
            lo, hi = min(c, 0.0), max(c, 0.0)
            if self.burg:  # just inside the domain, where all theta - c x < 0
                ends = self.theta[x != 0] / x[x != 0]
                lo = max([lo, *((1 - 1e-14) * ends[ends < 0])])
                hi = min([hi, *((1 - 1e-14) * ends[ends > 0])])
            c = brentq(
                lambda c: c - eta * float(self.slope(score(c), y)), lo, hi, xtol=1e-300, rtol=1e-15, maxiter=2000
            )
        self.theta, self.b = self.theta - c * x, self.b - self.bias * c

    @property
    def coef(self):
        w = self.inverse(self.theta, self.n)
        return w[: self.n] - w[self.n :] if self.signed else w


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
        "hinge": lambda: rng.choice([-1.0, 1.0], size=rows),
    }
    targets.update(dict.fromkeys(MARGIN_LOSSES, targets["hinge"]))
    targets["probit"] = targets["log_loss"]
    return X, targets.get(loss, lambda: 0.5 * X.sum(axis=1) + rng.normal(size=rows))()


def model_of(divergence, loss, **parameters):
    kind = MirrorDescentClassifier if loss in MARGIN_LOSSES else MirrorDescentRegressor
    return kind(divergence=divergence, loss=loss, **parameters)


def learn(model, X, y, weights=None):
    labels = {"classes": [-1.0, 1.0]} if isinstance(model, MirrorDescentClassifier) else {}
    return model.partial_fit(X, y, sample_weight=weights, **labels)


def agree(model, replica, rtol, *, signs):
    """Weights and intercept; those of one sign each to their own size."""
    coef = replica.coef
    assert_allclose(np.ravel(model.coef_), coef, rtol=rtol, atol=rtol * max(1.0, np.abs(coef).max()) if signs else 0.0)
    assert_allclose(model.intercept_, replica.b, rtol=rtol, atol=rtol)
    assert_allclose(model.cumulative_loss_, replica.total, rtol=100 * rtol, atol=100 * rtol)


class Cosh(Divergence):
    """F(w) = sum cosh w, by its three methods alone: learned by the NumPy path."""

    def potential(self, w):
        return float(np.cosh(w).sum())

    def mirror(self, w):
        return np.sinh(w)

    def inverse_mirror(self, theta):
        return np.arcsinh(theta)
