"""Multipliers of maximum entropy: the parallel update of iterative scaling, and faster solvers for the same optimum.

The features lie in [0, 1]. All minimise L(lambda) = ln Z - lambda . Ehat + alpha |lambda|_1.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf, dtrtrs
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso

from .._online.validation import is_finite
from ._domain import Features


class Scaling:
    """One round of iterative scaling (S18, 2.4): lambda_j += ln(Ehat_j / E_j), for features that sum to at most 1.

    Features are divided by C, above their largest sum over a point or, as the lecture does, their number, which is
    never less, and 1 - sum is the dummy feature: positive everywhere, so that only a feature's own Ehat can be 0. With
    a penalty, each multiplier minimises the bound L(lambda + step) - L(lambda) <= sum E (e^step - 1) - step Ehat +
    penalty by itself.
    """

    def __init__(self, total: float, empirical: np.ndarray, alpha: float) -> None:
        self.C = 1.01 * max(total, 1e-300)
        self.empirical, self.alpha = empirical, alpha

    def step(self, expected: np.ndarray, multipliers: np.ndarray) -> tuple[np.ndarray, float]:
        """The step of the multipliers, and by how much at least L falls: for alpha = 0 RE(Ehat || E)."""
        if self.alpha > 0:
            return self._penalised_step(expected, multipliers)
        step, fall = self._entropy(self.empirical, expected)
        rest = 1 - self.empirical.sum() / self.C, 1 - expected.sum() / self.C
        dummy, dummy_fall = self._entropy(*np.array(rest)[:, None])
        return (step - dummy) / self.C, float(fall.sum() / self.C + dummy_fall.sum())

    @staticmethod
    def _entropy(empirical: np.ndarray, expected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ln(Ehat / E) and Ehat ln(Ehat / E) - Ehat + E, whose sums over features of total 1 are relative entropies."""
        some = (empirical > 0) & (expected > 0)
        ratio = np.log(np.where(some, empirical, 1.0)) - np.log(np.where(some, expected, 1.0))
        return ratio, np.maximum(empirical * ratio - empirical + expected, 0.0)

    def _penalised_step(self, expected: np.ndarray, multipliers: np.ndarray) -> tuple[np.ndarray, float]:
        now = self.C * multipliers  # of the divided features
        with np.errstate(divide="ignore", invalid="ignore"):
            up = np.log(np.maximum(self.empirical - self.alpha, 0.0) / expected)
            down = np.log((self.empirical + self.alpha) / expected)
        step = np.where(now + up > 0, up, np.where(now + down < 0, down, -now))
        step = np.where(expected > 0, step, 0.0)
        change = expected * np.expm1(step) - step * self.empirical + self.alpha * (np.abs(now + step) - np.abs(now))
        return step / self.C, max(-float(change.sum()) / self.C, 0.0)


def iterative_scaling(
    features: Features, scaling: Scaling, start: np.ndarray, tol: float | None, max_iter: int
) -> tuple[np.ndarray, int]:
    """Rounds of the parallel update until the next one is not known to gain more than `tol`."""
    multipliers = start
    for i in range(max_iter):
        step, fall = scaling.step(features.moments(multipliers)[1], multipliers)
        if tol is not None and fall <= tol:
            return multipliers, i
        multipliers = multipliers + step
    return multipliers, max_iter


def newton(
    features: Features, scaling: Scaling, start: np.ndarray, tol: float | None, max_iter: int
) -> tuple[np.ndarray, int]:
    """Newton steps, whose Hessian is the covariance of the features, until one promises no more than `tol`."""
    alpha, multipliers = scaling.alpha, start

    def loss(log_z: float, multipliers: np.ndarray) -> float:
        return log_z - multipliers @ scaling.empirical + alpha * np.abs(multipliers).sum()

    log_z, expected, covariance = features.derivatives(multipliers)
    value, damping = loss(log_z, multipliers), 0.0
    for i in range(max_iter):
        widest = float(covariance.diagonal().max())
        slope = expected - scaling.empirical
        step = _quadratic_optimum(multipliers, slope, covariance, alpha, damping) - multipliers
        promise = -(slope @ step + alpha * float((np.abs(multipliers + step) - np.abs(multipliers)).sum()))
        if promise <= 1e-15 * max(abs(value), 1.0):  # nothing that float64 could tell
            return multipliers, i
        part = 1.0
        while part > 1e-3:
            trial = multipliers + part * step
            log_z, *derivatives = features.derivatives(trial)
            if (fallen := loss(log_z, trial)) <= value - 1e-4 * part * promise:
                break
            part /= 2
        else:
            if damping > len(slope):  # more than any Hessian
                return multipliers, i
            damping = max(100 * damping, widest, 1e-6)
            continue
        multipliers, value, (expected, covariance) = trial, fallen, derivatives
        damping = damping / 10 if part == 1.0 else max(100 * damping, 1e-10 * widest)
        # a lasso of large multipliers may promise more than it can keep
        if tol is not None and (promise <= tol or (alpha > 0 and scaling.step(expected, multipliers)[1] <= 1e-5 * tol)):
            return multipliers, i + 1
    return multipliers, max_iter


def _quadratic_optimum(
    multipliers: np.ndarray, slope: np.ndarray, hessian: np.ndarray, alpha: float, damping: float
) -> np.ndarray:
    """Where the second-order model of the loss around the multipliers, plus the penalty, is least.

    With H = R'R the model is |R x - y|^2 / 2 + const, y = R multipliers - R'^-1 slope: with the penalty, a lasso.
    """
    # features may depend on each other, or hardly vary: then H is singular
    ridge = 1e-12 * hessian.diagonal().max() + 1e-15 + damping
    R, failed = dpotrf(hessian + ridge * np.eye(len(slope)))  # scipy.linalg.cholesky takes ten times as long for a few
    if failed or not is_finite(R.T):
        raise LinAlgError("the covariance of the features is not positive definite to float64; scale them")
    y = R @ multipliers - dtrtrs(R, slope, trans=1)[0]
    if alpha == 0:
        return dtrtrs(R, y)[0]
    lasso = Lasso(alpha / len(y), fit_intercept=False, warm_start=True, tol=1e-12, max_iter=10_000)
    lasso.coef_ = multipliers.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the next step goes on from where this one has come
        return lasso.fit(R, y).coef_


def lbfgs(
    features: Features, scaling: Scaling, start: np.ndarray, tol: float | None, max_iter: int
) -> tuple[np.ndarray, int]:
    """The same optimum by L-BFGS-B; with a penalty over the positive and negative parts of the multipliers."""
    n, alpha = len(start), scaling.alpha

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
        return result.x, int(result.nit)
    parts = np.concatenate([np.maximum(start, 0.0), np.maximum(-start, 0.0)])
    result = minimize(penalised, parts, jac=True, method="L-BFGS-B", bounds=[(0, None)] * (2 * n), options=options)
    return result.x[:n] - result.x[n:], int(result.nit)
