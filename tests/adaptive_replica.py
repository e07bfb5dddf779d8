"""Adaptive divergences of `onlinebregman.reference`, with the facts about a loss, penalties and bounds on weights."""

import numpy as np
from robust_replica import RobustScale

from onlinebregman import reference
from onlinebregman.divergences import AdaGrad, DiagonalNewton, NormalizedAdaGrad
from onlinebregman.losses import LOSSES as OBJECTS

DIVERGENCES = {"adagrad": AdaGrad(), "normalized_adagrad": NormalizedAdaGrad(), "diagonal_newton": DiagonalNewton()}
flow = reference.penalty_flow


class Replica(reference.Adaptive):
    """Learns rows, with a last coordinate of value 1 for the intercept."""

    def __init__(self, name, loss, update, w, eta0, fit_intercept=True, *, l1=0.0, l2=0.0, box=(-np.inf, np.inf)):
        facts, k = OBJECTS[loss], 1.0 if name != "diagonal_newton" else OBJECTS[loss].typical_curvature
        super().__init__(name, reference.LOSSES[loss], np.r_[w, 0.0], update, facts.degree, k, facts.flat)
        self.eta0, self.fit_intercept, self.n = eta0, float(fit_intercept), len(w)
        self.l1, self.l2, self.box, self.total = l1, l2, box, 0.0
        self.limited = facts.lipschitz < np.inf and facts.degree in DIVERGENCES[name].by_deviation

    def rate(self):
        """Of losses of bounded slope by targets in their robust scale, and at most by twice their mean deviation."""
        if not self.limited:
            return super().rate()
        told, scale = self.y, RobustScale()
        self.y = np.array([scale.learn(y) for y in told])
        rate, deviation = super().rate(), np.sqrt(np.cov(self.y, ddof=0, aweights=self.s))
        self.y = told
        return rate * min(1.0, 2.0 * scale.deviation / deviation) if scale.known else rate

    def metric(self):
        return self.h(self.M, self.S)

    def predict(self, x):
        return self.rescaled(x) @ x

    def learn(self, x, y, weight=1.0):
        x = np.r_[x, self.fit_intercept]
        self.total += weight * float(self.loss.value(self.predict(x), y))
        super().learn(x, y, self.eta0, weight)
        # the penalty in the metric, except for coordinates without a metric and the intercept; then the projection
        h = self.metric()[: self.n]
        met = np.flatnonzero(h > 0)
        self.w[met] = flow(self.w[met], self.eta0 * self.rate() / h[met], self.l1, self.l2)
        self.w[: self.n] = self.w[: self.n].clip(*self.box)
