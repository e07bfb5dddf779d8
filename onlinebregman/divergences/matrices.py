"""Potentials of symmetric matrices: spectral functions, with steps for matrices and for rank-one instances z z'.

Points W have shape (d, d). A direction X is a symmetric (d, d) matrix, or a vector z of shape (d,) that stands for
X = z z'; the prediction is then <W, X> = tr(W X) = z'Wz.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cholesky, solve_triangular
from scipy.special import xlogy

from ._base import Divergence, Quadratic
from ._numerics import (
    EPS,
    TINY,
    Array,
    as_array,
    check_bound,
    check_total,
    entropy_gap,
    log_gap,
    pole_range,
    towards_pole,
)


class MatrixDivergence(Divergence):
    """Divergence between symmetric matrices of shape (d, d); see `Divergence` for the contract.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman.divergences import SquaredFrobenius
    >>> SquaredFrobenius().dot(np.eye(2), np.array([3.0, 4.0]))  # z'Wz
    25.0
    """

    domain: str = "W symmetric"
    _definite = False  # whether eigenvalues must be positive
    _closed = True  # F is finite on the boundary

    def default_start(self, n_features: int) -> Array:
        """The identity, of shape (n_features, n_features)."""
        return np.eye(n_features)

    def dot(self, w: ArrayLike, x: ArrayLike) -> float:
        w, x = as_array(w), as_array(x)
        return float(x @ w @ x) if x.ndim == 1 else float(np.vdot(w, x))

    def check_domain(self, w: ArrayLike, *, closed: bool = False) -> None:
        w = as_array(w)
        if w.ndim != 2 or w.shape[0] != w.shape[1]:
            raise ValueError(f"{self!r} needs a symmetric matrix of shape (d, d); got shape {w.shape}.")
        if not np.isfinite(w).all():
            self._refuse(w, np.isfinite(w), "remove or impute missing and infinite values", "W")
        good = np.abs(w - w.T) <= 1e-8 * np.abs(w).max(initial=0.0)
        if not good.all():
            self._refuse(w, good, "it differs from its transposed entry: use (W + W.T) / 2", "W")
        if self._definite:
            least, most = np.linalg.eigvalsh(w)[[0, -1]]
            # the zero eigenvalues of a singular matrix are computed as small numbers of either sign
            if least <= 0 and not (closed and self._closed and least >= -1e-12 * max(most, TINY)):
                self._refuse_eigenvalue(least)

    def _refuse_eigenvalue(self, value: float) -> NoReturn:
        raise ValueError(
            f"W has the eigenvalue {value:g}, outside the domain {self.domain} of {self!r}; "
            "add a small multiple of the identity."
        )

    def _direction(self, x: ArrayLike) -> Array:
        x = as_array(x)
        return np.outer(x, x) if x.ndim == 1 else x


def _spectrum(w: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of the symmetric part of w."""
    return np.linalg.eigh((w + w.T) / 2)


def _assemble(values: Array, vectors: Array) -> Array:
    """Symmetric matrix with these eigenvalues and eigenvectors."""
    w = (vectors * values) @ vectors.T
    return (w + w.T) / 2


class SquaredFrobenius(Quadratic, MatrixDivergence):
    """Squared Frobenius distance of symmetric matrices.

    F(W) = norm_F(W)^2/2,  f(W) = W,  D(U, W) = norm_F(U - W)^2/2,  S X = X,  W(c) = W - c X.

    Steps may leave the cone of positive semidefinite matrices; `project_psd` projects back onto it.

    References
    ----------
    KB10, section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman.divergences import SquaredFrobenius
    >>> W = SquaredFrobenius().step(np.eye(2), np.array([1.0, 0.0]), 3.0)
    >>> W.diagonal()
    array([-2.,  1.])
    >>> SquaredFrobenius().project_psd(W).diagonal()
    array([0., 1.])
    """

    def hessian_inverse(self, w: ArrayLike, x: ArrayLike) -> Array:
        return self._direction(x).copy()

    def project_psd(self, w: ArrayLike) -> Array:
        """argmin of D(U, W) over positive semidefinite U: negative eigenvalues become zero."""
        values, vectors = _spectrum(self._in_domain(w))
        return as_array(w).copy() if values[0] >= 0 else _assemble(np.maximum(values, 0.0), vectors)


class VonNeumann(MatrixDivergence):
    """Von Neumann divergence, or quantum relative entropy, of positive definite matrices: MEG.

    F(W) = tr(W log W - W),  f(W) = log W,  D(U, W) = tr(U log U - U log W - U + W),  W(c) = exp(log W - c X),
    S X = Q (K * Q'X Q) Q' with W = Q diag(l) Q' and K_ij = (l_i - l_j) / (ln l_i - ln l_j).

    With `trace` the domain is the set of matrices of that trace, the matrix version of `SimplexEntropy`: W(c) is
    rescaled to it, and W tr(W X) / trace is subtracted from S X. U may be singular (0 ln 0 = 0). Every step costs two
    eigendecompositions, and a float64 matrix cannot represent eigenvalues below about 1e-15 of the largest: steps raise
    smaller ones to that, so that W stays positive definite. For many steps, keep theta = f(W), which has no such limit,
    and map it back.

    Parameters
    ----------
    trace : float or None, default=None
        The trace of all matrices, or None for any; 1.0 gives density matrices.

    References
    ----------
    TRW04, sections 2 and 3, equations (1) and (4); KB10, section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman.divergences import VonNeumann
    >>> W = VonNeumann(trace=1.0).step(np.eye(2) / 2, np.array([1.0, 0.0]), np.log(3.0))
    >>> W.diagonal().round(12)
    array([0.25, 0.75])
    >>> round(VonNeumann().divergence(np.diag([1.0, 0.0]), np.eye(2)), 12)
    1.0
    """

    _definite = True

    norm: float = 1.0

    def __init__(self, trace: float | None = None) -> None:
        self.trace: float | None = None if trace is None else check_total(trace)

    @property
    def domain(self) -> str:
        """The set on which F is differentiable, as text for error messages."""
        return "W positive definite" + ("" if self.trace is None else f", tr W = {self.trace:g}")

    def default_start(self, n_features: int) -> Array:
        """The identity, or the multiple of it that has the given trace."""
        return np.eye(n_features) * (1.0 if self.trace is None else self.trace / n_features)

    def largest_divergence(self, n_features: int, u_bound: float = np.inf) -> float:
        """trace ln d, that of a matrix of rank one, for any `u_bound`; only with a given trace, for d >= 2."""
        if self.trace is None:
            return super().largest_divergence(n_features, u_bound)
        return self.trace * math.log(max(n_features, 2))

    def check_domain(self, w: ArrayLike, *, closed: bool = False) -> None:
        super().check_domain(w, closed=closed)
        found = float(np.trace(as_array(w)))
        if self.trace is not None and abs(found - self.trace) > 1e-8 * self.trace:
            raise ValueError(
                f"tr W = {found:.10g} is outside the domain {self.domain} of {self!r}; "
                f"use W * ({self.trace:g} / np.trace(W))."
            )

    def potential(self, w: ArrayLike) -> float:
        values = np.maximum(_spectrum(self._in_domain(w, closed=True))[0], 0.0)
        return float((xlogy(values, values) - values).sum())

    def mirror(self, w: ArrayLike) -> Array:
        values, vectors = _spectrum(self._in_domain(w))
        if values[0] <= 0:  # computed with the vectors, small eigenvalues have other rounding errors
            self._refuse_eigenvalue(values[0])
        return _assemble(np.log(values), vectors)

    def inverse_mirror(self, theta: ArrayLike) -> Array:
        values, vectors = _spectrum(as_array(theta))
        relative = np.maximum(np.exp(values - values[-1]), 8 * len(values) * EPS)
        if self.trace is not None:
            return _assemble(relative * (self.trace / relative.sum()), vectors)
        # the largest eigenvalue saturates instead of overflowing: infinity times a zero of Q would be NaN
        return _assemble(relative * np.exp(np.clip(values[-1], -690.0, 690.0)), vectors)

    def _between(self, u: Array, w: Array) -> float:
        (a, p), (b, q) = _spectrum(u), _spectrum(w)
        # sum_ij (p_i.q_j)^2 (a_i ln(a_i/b_j) - a_i + b_j), every term nonnegative
        overlaps = (p.T @ q) ** 2
        gaps = entropy_gap(*np.broadcast_arrays(np.maximum(a, 0.0)[:, None], np.maximum(b, 0.0)))
        return float((overlaps[overlaps > 0] * gaps[overlaps > 0]).sum())

    def hessian_inverse(self, w: ArrayLike, x: ArrayLike) -> Array:
        w, x = as_array(w), self._direction(x)
        values, q = _spectrum(w)
        logs = np.log(np.maximum(values, TINY))
        half = np.abs(logs[:, None] - logs) / 2
        # the logarithmic mean as sqrt(l_i l_j) sinh(h)/h, h = abs(ln l_i - ln l_j)/2: no cancellation at equal values
        ratio = np.where(half > 0, np.sinh(half) / np.where(half > 0, half, 1.0), 1.0)
        sx = q @ (np.exp((logs[:, None] + logs) / 2) * ratio * (q.T @ x @ q)) @ q.T
        sx = (sx + sx.T) / 2
        return sx if self.trace is None else sx - w * (float(np.vdot(w, x)) / self.trace)

    def smoothness(self, x_bound: float) -> float:
        """M = trace x_bound^2/4 if the extreme eigenvalues of X are at most x_bound apart; only with a given trace.

        tr(X S X) is the trace times a quantum variance of X, at most the variance of two points at that distance.
        """
        if self.trace is None:
            raise self._not_smooth()
        return self.trace * check_bound(x_bound) ** 2 / 4

    def row_size(self, x: ArrayLike) -> float:
        """Difference of the extreme eigenvalues of X; z.z for a row z (of two values or more)."""
        x = as_array(x)
        return float(x @ x) if x.ndim == 1 else float(np.ptp(np.linalg.eigvalsh(x)))


class LogDet(MatrixDivergence):
    """LogDet divergence, the matrix Burg entropy, of positive definite matrices.

    F(W) = -log det W,  f(W) = -W^-1,  D(U, W) = tr(U W^-1) - log det(U W^-1) - d,  S X = W X W,
    W(c) = (W^-1 + c X)^-1, for X = z z' the rank-one update W - c/(1 + c a) v v' with v = W z, a = z'Wz, O(d^2).

    D(A U A', A W A') = D(U, W) for every invertible A. Steps bound c as those of `Burg` do: 1 + c mu must stay positive
    for every eigenvalue mu of X against W, see `step_range`. A float64 matrix stays positive definite only while
    its condition number is below about 1e15.

    References
    ----------
    JKD07, section 3, Algorithm 2; KB10, section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman.divergences import LogDet
    >>> logdet = LogDet()
    >>> logdet.step(np.eye(2), np.array([1.0, 0.0]), 1.0)
    array([[0.5, 0. ],
           [0. , 1. ]])
    >>> logdet.divergence(np.diag([1.0, 2.0]), np.diag([1.0, 2.0]))
    0.0
    >>> logdet.project_upper(np.diag([0.5, 2.0])).diagonal()
    array([0.5, 1. ])
    """

    domain = "W positive definite"
    norm: float = 1.0
    _definite = True
    _closed = False

    def potential(self, w: ArrayLike) -> float:
        return -2 * float(np.log(np.diag(cholesky(self._in_domain(w), lower=True))).sum())

    def mirror(self, w: ArrayLike) -> Array:
        return -self._inverse(self._in_domain(w))

    def inverse_mirror(self, theta: ArrayLike) -> Array:
        theta = as_array(theta)
        most = float(np.linalg.eigvalsh(theta)[-1])
        if not most < 0:
            raise ValueError(
                f"theta has the eigenvalue {most:g}, outside the dual domain (theta negative definite) of {self!r}; "
                "use a smaller step."
            )
        return self._inverse(-theta)

    def _between(self, u: Array, w: Array) -> float:
        lower = cholesky(w, lower=True)
        # mu - 1 of the eigenvalues mu of U against W from U - W, exact near equality; far from it mu itself from the
        # singular values of L_W^-1 L_U, which cannot turn negative
        half = solve_triangular(lower, u - w, lower=True)
        full = solve_triangular(lower, half.T, lower=True)  # L_W^-1 (U - W) L_W^-T
        near = np.linalg.eigvalsh((full + full.T) / 2)
        far = np.linalg.svd(solve_triangular(lower, cholesky(u, lower=True), lower=True), compute_uv=False)[::-1] ** 2
        gaps = np.where(np.abs(near) < 0.5, log_gap(np.clip(near, -0.5, 0.5)), far - 1 - np.log(far))
        return float(gaps.sum())

    def project_upper(self, w: ArrayLike, upper: float = 1.0) -> Array:
        """argmin of D(U, W) over U <= upper I: larger eigenvalues become `upper`.

        In the basis of W, D(U, W) is sum u_ii / l_i - ln det U and more that is constant, and ln det U is at most
        sum ln u_ii (Hadamard), so that the best U is diagonal there.
        """
        self.check_domain(w)
        if not 0 < upper < np.inf:
            raise ValueError(f"upper must be a positive finite number; got {upper!r}.")
        values, vectors = _spectrum(as_array(w))
        return as_array(w).copy() if values[-1] <= upper else _assemble(np.minimum(values, upper), vectors)

    def hessian_inverse(self, w: ArrayLike, x: ArrayLike) -> Array:
        w, x = as_array(w), as_array(x)
        wx = w @ x
        return np.outer(wx, wx) if x.ndim == 1 else wx @ w

    def step(self, w: ArrayLike, x: ArrayLike, c: float) -> Array:
        w, x, c = as_array(w), as_array(x), float(c)
        if x.ndim == 1:
            v = w @ x
            scale = 1 + c * float(v @ x)
            self._check_scale(scale, w, x, c)
            if scale < 1e3:  # else the difference may lose more digits than that
                return w - (c / scale) * np.outer(v, v)
        mu, vectors = self._pencil(w, self._direction(x))
        scales = 1 + c * mu
        self._check_scale(float(scales.min()), w, x, c)
        return _assemble(1 / scales, vectors)

    def project_hyperplane(self, w: ArrayLike, x: ArrayLike, b: float) -> Array:
        u = super().project_hyperplane(w, x, b)
        scale = np.sqrt(np.maximum(u.diagonal(), TINY))
        if not np.linalg.eigvalsh(u / scale / scale[:, None])[0] > len(u) * EPS:
            raise ValueError(
                f"The projection of W onto <W, X> = {b:g} is not positive definite in float64, as it is too far from "
                f"<W, X> = {self.dot(w, x):g}; choose a b closer to it."
            )
        return u

    def step_range(self, w: ArrayLike, x: ArrayLike) -> tuple[float, float]:
        """Open interval of c with 1 + c mu > 0 for all eigenvalues mu of X against W."""
        w, x = as_array(w), as_array(x)
        return pole_range(np.array([x @ w @ x]) if x.ndim == 1 else self._pencil(w, x)[0])

    def _path(self, w: Array, x: Array, sign: float) -> tuple[Callable[[float], Array], float, float]:
        mu, vectors = self._pencil(w, self._direction(x))
        factors, speed = towards_pole(mu, sign) or (lambda s: 1 / (1 + sign * s * mu), 1.0)
        return lambda s: _assemble(factors(s), vectors), np.inf, speed

    def _check_scale(self, scale: float, w: Array, x: Array, c: float) -> None:
        if not scale > 0:
            low, high = self.step_range(w, x)
            raise ValueError(
                f"The step c = {c:g} leaves the domain {self.domain} of {self!r}; c must lie between {low:g} and "
                f"{high:g}: use the implicit update or a smaller learning rate."
            )

    @staticmethod
    def _pencil(w: Array, x: Array) -> tuple[Array, Array]:
        """Eigenvalues mu of X against W and vectors V with V V' = W, V' W^-1 V = I and V' X V = diag(mu)."""
        lower = cholesky(w, lower=True)
        mu, vectors = _spectrum(lower.T @ x @ lower)
        # the zeros of a singular X come out as rounding errors of either sign, which would bound c
        mu[np.abs(mu) <= len(mu) * EPS * np.abs(mu).max()] = 0.0
        return mu, lower @ vectors

    @staticmethod
    def _inverse(w: Array) -> Array:
        half = solve_triangular(cholesky(w, lower=True), np.eye(len(w)), lower=True)
        return half.T @ half
