"""Multipliers of maximum entropy: the parallel update of iterative scaling, and faster solvers for the same optimum.

The features lie in [0, 1]. All minimise L(lambda) = ln Z - lambda . Ehat + alpha |lambda|_1.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.linalg.lapack import dtrtrs
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso

from .._kernels.learners.max_entropy import newton as compiled_newton
from .._kernels.learners.max_entropy import scaling_step
from ._domain import Features

Solution = tuple[np.ndarray, int, float, np.ndarray]  # multipliers, iterations, ln Z, and expectations


class Scaling:
    """One round of iterative scaling (S18, 2.4): lambda_j += ln(Ehat_j / E_j), for features that sum to at most 1.

    Features are divided by C, which exceeds the largest sum of the features of a point or, as in the lecture, their
    number, which is never smaller. 1 - sum is the dummy feature: positive everywhere, so that only the Ehat of the
    other features can be 0. With
    a penalty, each multiplier minimises the bound L(lambda + step) - L(lambda) <= sum E (e^step - 1) - step Ehat +
    penalty by itself.
    """

    def __init__(self, total: float, empirical: np.ndarray, alpha: float) -> None:
        self.C = 1.01 * max(total, 1e-300)
        self.empirical, self.alpha = empirical, alpha

    def step(self, expected: np.ndarray, multipliers: np.ndarray) -> tuple[np.ndarray, float]:
        """The step of the multipliers, and a lower bound on the decrease of L: RE(Ehat || E) for alpha = 0."""
        return scaling_step(self.C, self.empirical, self.alpha, expected, multipliers)


def better_start(features: Features, scaling: Scaling, start: np.ndarray) -> np.ndarray:
    """The warm start, or multipliers of 0 if their loss is smaller."""
    if not start.any():
        return start
    loss = features.moments(start)[0] - start @ scaling.empirical + scaling.alpha * np.abs(start).sum()
    return start if loss <= features.log_size else np.zeros_like(start)


def iterative_scaling(
    features: Features, scaling: Scaling, start: np.ndarray, tol: float | None, max_iter: int
) -> Solution:
    """Rounds of the parallel update until the bound on the gain of the next one is at most `tol`."""
    multipliers = better_start(features, scaling, start)
    for i in range(max_iter):
        log_z, expected = features.moments(multipliers)
        step, decrease = scaling.step(expected, multipliers)
        if tol is not None and decrease <= tol:
            return multipliers, i, log_z, expected
        multipliers = multipliers + step
    return multipliers, max_iter, *features.moments(multipliers)


def newton(features: Features, scaling: Scaling, start: np.ndarray, tol: float | None, max_iter: int) -> Solution:
    """Newton steps, whose Hessian is the covariance of the features, until the predicted decrease is at most `tol`."""
    C, empirical, alpha = scaling.C, scaling.empirical, scaling.alpha
    return compiled_newton(
        *features.points, features.log_size, C, empirical, alpha, start, tol or 0.0, max_iter, _penalised_optimum
    )


def _penalised_optimum(multipliers: np.ndarray, slope: np.ndarray, R: np.ndarray, alpha: float) -> np.ndarray:
    """The minimum of the second-order model of the loss around the multipliers, plus the penalty.

    With H = R'R the model is |R x - y|^2 / 2 + const, y = R multipliers - R'^-1 slope: a lasso.
    """
    y = R @ multipliers - dtrtrs(R, slope, trans=1)[0]
    lasso = Lasso(alpha / len(y), fit_intercept=False, warm_start=True, tol=1e-12, max_iter=10_000)
    lasso.coef_ = multipliers.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the next step continues from this result
        return lasso.fit(R, y).coef_


def lbfgs(features: Features, scaling: Scaling, start: np.ndarray, tol: float | None, max_iter: int) -> Solution:
    """The same optimum by L-BFGS-B; with a penalty over the positive and negative parts of the multipliers."""
    start, n, alpha = better_start(features, scaling, start), len(start), scaling.alpha

    def loss(multipliers: np.ndarray) -> tuple[float, np.ndarray]:
        log_z, expected = features.moments(multipliers)
        return log_z - multipliers @ scaling.empirical, expected - scaling.empirical

    def penalised(parts: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = loss(parts[:n] - parts[n:])
        return value + alpha * parts.sum(), np.concatenate([slope, -slope]) + alpha

    # the relative entropy is quadratic in the gap between the expectations
    options = {"maxiter": max_iter, "maxfun": 20 * max_iter, "ftol": 0.0, "gtol": 0.01 * np.sqrt(tol or 0.0)}
    if alpha == 0:
        result = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
        return result.x, int(result.nit), *features.moments(result.x)
    parts = np.concatenate([np.maximum(start, 0.0), np.maximum(-start, 0.0)])
    result = minimize(penalised, parts, jac=True, method="L-BFGS-B", bounds=[(0, None)] * (2 * n), options=options)
    multipliers = result.x[:n] - result.x[n:]
    return multipliers, int(result.nit), *features.moments(multipliers)
