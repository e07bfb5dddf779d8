"""Adaptive geometries, by their formulas."""

import numpy as np
from replica import SLOPES, VALUES
from scipy.optimize import brentq

from onlinebregman.divergences import AdaGrad, DiagonalNewton, NormalizedAdaGrad
from onlinebregman.losses import LOSSES as OBJECTS

DIVERGENCES = {"adagrad": AdaGrad(), "normalized_adagrad": NormalizedAdaGrad(), "diagonal_newton": DiagonalNewton()}


def flow(w, time, l1, l2):
    """v' = -(l1 sign(v) + l2 v) from w: the limit of many small proximal steps."""
    size = np.abs(w)
    size = np.exp(-l2 * time) * size - l1 * (-np.expm1(-l2 * time) / l2 if l2 else time)
    return np.sign(w) * np.maximum(size, 0.0)


class Replica:
    """Learns rows, with a last coordinate of value 1 for the intercept; h and the rate are recomputed from all rows."""

    def __init__(self, name, loss, update, w, eta0, fit_intercept=True, *, l1=0.0, l2=0.0, box=(-np.inf, np.inf)):
        self.name, self.divergence, self.loss, self.update, self.eta0 = name, DIVERGENCES[name], loss, update, eta0
        if name == "diagonal_newton":
            self.divergence = DiagonalNewton(self.divergence.curvature_of(OBJECTS[loss]))
        self.all_curved = name == "diagonal_newton" and not OBJECTS[loss].flat
        self.w, self.n, self.fit_intercept = np.r_[w, 0.0], len(w), fit_intercept
        self.X, self.g, self.y, self.weights = [], [], [], []
        self.total, self.l1, self.l2, self.box = 0.0, l1, l2, box

    def metric(self):
        g = np.ones(len(self.g)) if self.all_curved else self.g
        return self.divergence.metric(np.array(self.X), g, np.array(self.weights))

    def learn(self, x, y, weight=1.0):
        x = np.r_[x, float(self.fit_intercept)]
        divergence, located = self.divergence, self.name != "adagrad" and OBJECTS[self.loss].degree > 0
        first = not self.X and self.fit_intercept and located and self.update != "explicit"
        if self.X:
            m = np.abs(self.X).max(axis=0)
            grows = (np.abs(x) > m) & (m > 0)
            shrunk = divergence.shrunk(self.w, self.metric(), m, np.abs(x) + ~grows)
            self.w = np.where(grows, shrunk, self.w)
        a = self.w @ x
        g = float(SLOPES[self.loss](a, y))
        self.total += weight * float(VALUES[self.loss](a, y))
        for history, value in zip(
            (self.X, self.g, self.y, self.weights), (x, 0.0 if first else g, y, weight), strict=True
        ):
            history.append(value)
        X, s = np.array(self.X), np.array(self.weights)
        h = self.metric()
        rate = self.divergence.rate(X, self.y, OBJECTS[self.loss], s) if X.any() else 1.0
        eta, q = weight * self.eta0 * rate, np.divide(x, h, out=np.zeros(self.n + 1), where=h > 0)
        if first and g != 0 and rate > 0:  # the intercept alone, to the target
            q = q * (np.arange(self.n + 1) < self.n)
            q[-1] = 2.0**40 * abs(y / g) / rate
        c = eta * g
        if self.update == "implicit" and c != 0:
            c = brentq(
                lambda c: c - eta * float(SLOPES[self.loss](a - c * (q @ x), y)), min(c, 0), max(c, 0),
                xtol=1e-300, rtol=1e-15, maxiter=2000,
            )  # fmt: skip
        self.w = self.w - c * q
        # the penalty in the metric, except for coordinates without a metric and the intercept; then the projection
        met = np.flatnonzero(h[: self.n] > 0)
        self.w[met] = flow(self.w[met], self.eta0 * rate / h[met], self.l1, self.l2)
        self.w[: self.n] = self.w[: self.n].clip(*self.box)
