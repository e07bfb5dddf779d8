"""Multipliers of maximum entropy: the parallel update of iterative scaling, and faster solvers for the same optimum.

The features lie in [0, 1]. All minimise L(lambda) = ln Z - lambda . Ehat + alpha |lambda|_1.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso

from .._online.validation import is_finite
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
        C, empirical, alpha = self.C, self.empirical, self.alpha
        if alpha == 0:
            step, gains = log_ratio(empirical, expected)
            shift, gain = log_ratio(1 - empirical.sum() / C, 1 - expected.sum() / C)  # of the dummy feature
            return (step - shift) / C, float(gains.sum() / C + gain)
        now = C * multipliers
        with np.errstate(divide="ignore", invalid="ignore"):
            up, down = np.log(np.maximum(empirical - alpha, 0.0) / expected), np.log((empirical + alpha) / expected)
        step = np.where(now + up > 0, up, np.where(now + down < 0, down, -now))
        step[~(expected > 0)] = 0.0
        change = expected * np.expm1(step) - step * empirical + alpha * (np.abs(now + step) - np.abs(now))
        return step / C, max(-float(change.sum()) / C, 0.0)

    def loss(self, log_z: float, multipliers: np.ndarray) -> float:
        """L of multipliers with this ln Z."""
        return log_z - float(multipliers @ self.empirical) + self.alpha * float(np.abs(multipliers).sum())


def log_ratio(empirical: np.ndarray, expected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ln(Ehat / E), and the parts Ehat ln(Ehat / E) - Ehat + E of a relative entropy; ln is 0 where one is not > 0."""
    difference = empirical - expected
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.log(empirical) - np.log(expected)
        # without cancellation
        ratio = np.where(np.abs(difference) < 0.5 * expected, np.log1p(difference / expected), far)
    ratio = np.where((empirical > 0) & (expected > 0), ratio, 0.0)
    return ratio, np.maximum(empirical * ratio - difference, 0.0)


def better_start(features: Features, scaling: Scaling, start: np.ndarray) -> np.ndarray:
    """The warm start, or multipliers of 0 if their loss is smaller."""
    if not start.any():
        return start
    worse = not scaling.loss(features.moments(start)[0], start) <= features.log_size
    return np.zeros_like(start) if worse else start


def iterative_scaling(
    features: Features, scaling: Scaling, start: np.ndarray, tol: float | None, max_iter: int
) -> Solution:
    """Rounds of the parallel update until the bound on the gain of the next one is at most `tol`."""
    multipliers = better_start(features, scaling, start)
    for i in range(max_iter):
        log_z, expected, _ = features.moments(multipliers)
        step, decrease = scaling.step(expected, multipliers)
        if tol is not None and decrease <= tol:
            return multipliers, i, log_z, expected
        multipliers = multipliers + step
    return multipliers, max_iter, *features.moments(multipliers)[:2]


def newton(features: Features, scaling: Scaling, start: np.ndarray, tol: float | None, max_iter: int) -> Solution:
    """Newton steps, whose Hessian is the covariance of the features, until the predicted decrease is at most `tol`.

    A step that does not decrease the loss is halved; if that does not help, the Hessian is damped.
    """
    alpha, tol = scaling.alpha, tol or 0.0
    now, damping, n_iter = better_start(features, scaling, start), 0.0, 0
    log_z, expected, covariance = features.moments(now, covariance=True)
    value = scaling.loss(log_z, now)
    while n_iter < max_iter:
        slope, widest = expected - scaling.empirical, covariance.diagonal().max()
        R = _factorise(covariance, damping)
        step = dpotrs(R, -slope)[0] if alpha == 0 else _penalised_optimum(now, slope, R, alpha) - now
        decrease = -float(slope @ step + alpha * (np.abs(now + step) - np.abs(now)).sum())
        if decrease <= 1e-15 * max(abs(value), 1.0):  # below the resolution of float64
            break
        n_iter += 1
        part = 1.0
        while part > 1e-3:
            trial = now + part * step
            tried = features.moments(trial, covariance=True)
            if scaling.loss(tried[0], trial) <= value - 1e-4 * part * decrease:
                break
            part /= 2
        else:
            if damping > len(now):  # larger than any Hessian
                return now, n_iter - 1, log_z, expected
            damping = max(100 * damping, widest, 1e-6)
            continue
        now, (log_z, expected, covariance) = trial, tried
        value = scaling.loss(log_z, now)
        damping = damping / 10 if part == 1.0 else max(100 * damping, 1e-10 * widest)
        # with a penalty and large multipliers the predicted decrease may be too large: scaling gives another bound
        if decrease <= tol or (alpha > 0 and tol > 0 and scaling.step(expected, now)[1] <= 1e-5 * tol):
            break
    return now, n_iter, log_z, expected


def _factorise(hessian: np.ndarray, damping: float) -> np.ndarray:
    """R with R'R = H + damping; H is singular if features are dependent or constant."""
    R, failed = dpotrf(hessian + (1e-12 * hessian.diagonal().max() + 1e-15 + damping) * np.eye(len(hessian)))
    if failed or not is_finite(R.diagonal()):
        raise LinAlgError("the covariance of the features is not positive definite to float64; scale them")
    return R


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
        log_z, expected, _ = features.moments(multipliers)
        return log_z - multipliers @ scaling.empirical, expected - scaling.empirical

    def penalised(parts: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = loss(parts[:n] - parts[n:])
        return value + alpha * parts.sum(), np.concatenate([slope, -slope]) + alpha

    # the relative entropy is quadratic in the gap between the expectations
    options = {"maxiter": max_iter, "maxfun": 20 * max_iter, "ftol": 0.0, "gtol": 0.01 * np.sqrt(tol or 0.0)}
    if alpha == 0:
        result = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
        return result.x, int(result.nit), *features.moments(result.x)[:2]
    parts = np.concatenate([np.maximum(start, 0.0), np.maximum(-start, 0.0)])
    result = minimize(penalised, parts, jac=True, method="L-BFGS-B", bounds=[(0, None)] * (2 * n), options=options)
    multipliers = result.x[:n] - result.x[n:]
    return multipliers, int(result.nit), *features.moments(multipliers)[:2]
