"""Density matrices in the log domain, W = exp(G) with tr W = 1, and the steps exp(G - c X) / tr that move them."""

from __future__ import annotations

from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Array = NDArray[np.float64]

EPS = np.finfo(np.float64).eps
_THREADS_PAY_FROM = 400  # objects; below, more BLAS threads make an eigendecomposition slower


class Instance(Protocol):
    """A symmetric matrix X as the steps need it; see `onlinebregman.kernel_learning._instances`."""

    def diagonal(self, vectors: Array) -> Array:
        """Diagonal of V'XV."""

    def curvature(self, vectors: Array, weights: Array) -> float:
        """Sum of weights * (V'XV)^2, entry by entry."""

    def subtract(self, matrix: Array, c: float) -> None:
        """Take c X off the matrix, in place."""

    def extremes(self) -> tuple[float, float]:
        """Ends of an interval that holds all eigenvalues of X."""


class Gibbs:
    """W = exp(G) / tr exp(G), held as G and its eigendecomposition: eigenvalues of W below 1e-300 are not lost.

    Parameters
    ----------
    log_matrix : ndarray of shape (d, d)
        Symmetric, of any trace. The object takes it over and shifts its diagonal so that tr exp(G) = 1.

    Attributes
    ----------
    log_matrix : ndarray of shape (d, d)
        G, the logarithm of W.
    log_values : ndarray of shape (d,)
        Eigenvalues of G, ascending.
    vectors : ndarray of shape (d, d)
        Eigenvectors in the columns, of G and of W.
    log_trace : float
        ln tr exp of the matrix that was given.
    """

    def __init__(self, log_matrix: Array) -> None:
        if not np.isfinite(log_matrix).all():
            raise FloatingPointError("the logarithm of the kernel is not finite")
        values, self.vectors = np.linalg.eigh(log_matrix)
        self.log_trace = float(values[-1] + np.log(np.exp(values - values[-1]).sum()))
        self.log_values = values - self.log_trace
        log_matrix.flat[:: len(values) + 1] -= self.log_trace
        self.log_matrix = log_matrix

    def step(self, x: Instance, c: float) -> Gibbs:
        """W(c) = exp(G - c X) / tr exp(G - c X)."""
        log_matrix = self.log_matrix.copy()
        x.subtract(log_matrix, c)
        return Gibbs(log_matrix)

    def dot(self, x: Instance) -> float:
        """tr(W X)."""
        return float(np.exp(self.log_values) @ x.diagonal(self.vectors))

    def slope(self, x: Instance) -> float:
        """-d tr(W(c) X) / dc at c = 0, the Kubo-Mori variance of X: sum_ij K_ij (V'XV)_ij^2 - tr(W X)^2 >= 0.

        K_ij = (p_i - p_j) / (ln p_i - ln p_j) for the eigenvalues p of W, and K_ii = p_i.
        """
        gaps = np.abs(self.log_values[:, None] - self.log_values)
        larger = np.exp(np.maximum(self.log_values[:, None], self.log_values))
        means = larger * np.divide(-np.expm1(-gaps), gaps, out=np.ones_like(gaps), where=gaps > 0)
        mean = self.dot(x)
        return max(x.curvature(self.vectors, means) - mean * mean, 0.0)

    @property
    def size(self) -> int:
        """d."""
        return len(self.log_values)

    @property
    def factor(self) -> Array:
        """L = V sqrt(p) with W = L L'."""
        return self.vectors * np.exp(self.log_values / 2)

    @property
    def matrix(self) -> Array:
        """W, exactly symmetric."""
        factor = self.factor
        return factor @ factor.T


def solve(
    start: Gibbs,
    x: Instance,
    target: float,
    stiffness: float,
    low: float,
    high: float,
    guess: float,
    scale: float,
    enough: float = -np.inf,
) -> tuple[float, Gibbs]:
    """Root c of phi(c) = stiffness c + target - tr(W(c) X) between low and high, and W(c), by safeguarded Newton.

    phi increases; it has to be negative at `low` and positive at `high`, which may be infinite. stiffness = 1/eta gives
    the implicit step of rate eta, 0 the exact projection on tr(W X) = target. The residual is at most 1e-12 `scale`,
    save for what the eigendecomposition rounds off. The search also ends when ln tr exp(G - c X) + c target, the dual
    objective of the projection, is below `enough`.
    """
    c = guess
    for _ in range(200):
        state = start.step(x, c)
        phi = stiffness * c + target - state.dot(x)
        if abs(phi) <= 1e-12 * scale or state.log_trace + c * target < enough:
            break
        slope = state.slope(x)
        if abs(phi) <= 4 * EPS * abs(state.log_values[0]) * np.sqrt(slope):  # what rounding G does to tr(W X)
            break
        low, high = (low, c) if phi > 0 else (c, high)
        slope += stiffness
        newton = c - phi / slope if slope > 0 else np.inf
        if high == np.inf:
            newton = min(newton, c + 4 * max(abs(c), abs(guess)))
        if not low < newton < high:
            newton = low + (high - low) / 2
            if not low < newton < high:
                break
        c = newton
    return c, state


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def few_threads(d: int):
    """Context in which BLAS has one thread, if matrices of d rows are too small for more."""
    return _controller().limit(limits=1 if d < _THREADS_PAY_FROM else None, user_api="blas")
