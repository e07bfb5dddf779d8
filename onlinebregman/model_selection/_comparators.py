"""The best fixed weights for a stream in hindsight: the comparator of relative loss bounds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import lsq_linear, nnls
from sklearn.utils import check_X_y

from .._online.containers import readable
from .._online.validation import check_finite, check_targets_readable, check_weights
from ..divergences._numerics import EPS, check_total

Array = NDArray[np.float64]

DOMAINS = ("all", "nonnegative", "simplex", "signed")


class Comparator(NamedTuple):
    """A fixed linear model and its cumulative loss.

    Attributes
    ----------
    coef : ndarray of shape (n_features,)
        Its weights u.
    intercept : float
        Its intercept b.
    cumulative_loss : float
        Sum of weight * (u.x + b - y)^2 / 2 over the rows.
    """

    coef: Array
    intercept: float
    cumulative_loss: float


def offline_comparator(
    X: ArrayLike,
    y: ArrayLike,
    *,
    domain: str = "all",
    total: float = 1.0,
    fit_intercept: bool = False,
    sample_weight: ArrayLike | None = None,
) -> Comparator:
    """The linear model with the smallest cumulative squared loss over all rows, among the weights of a domain.

    The difference between the `cumulative_loss_` of an online regressor and that of this model is its regret: the cost
    of not knowing the rows beforehand. An upper bound that holds for every comparator is smallest, or nearly so, for
    this one.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows, with n_features small enough for a dense matrix of shape (n_features, n_features).
    y : array-like of shape (n_samples,)
        Targets.
    domain : {"all", "nonnegative", "simplex", "signed"}, default="all"
        The weights to choose from: all; u >= 0; u >= 0 with sum u = total; or sum abs(u) <= total. They correspond to
        gradient descent or the p-norm algorithm, Burg or EGU, and EG on the simplex or with signed weights.
    total : float, default=1.0
        The sum U, for "simplex" and "signed".
    fit_intercept : bool, default=False
        Also choose an intercept, of any sign.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, >= 0.

    Returns
    -------
    comparator : Comparator
        The named tuple (coef, intercept, cumulative_loss). If the optimum is not unique, any of the optimal weights;
        for domain "all" those of smallest 2-norm after scaling the columns to the same length.

    Raises
    ------
    ValueError
        If the domain is unknown, rows, targets or weights are not finite, or all weights are zero.

    Notes
    -----
    All rows go into the triangular factor R of one QR decomposition of [1, X, y], by blocks, O(n_samples
    n_features^2); the rest is a problem of n_features rows. Non-negative weights come from the active sets of [1]_.
    On the simplex A u - z = (A - z 1'/U) u, so that the u to find is, up to its scale, the v >= 0 with the smallest
    norm((A - z 1'/U) v)^2 + s^2 (1'v - 1)^2, for any s > 0: without approximation. Signed weights are those of
    (A, -A) on the simplex.

    References
    ----------
    .. [1] C. L. Lawson, R. J. Hanson, "Solving Least Squares Problems", SIAM, 1995, chapter 23.
    .. [2] M. K. Warmuth, "Bregman divergences and on-line learning", "How to prove relative loss bounds?".

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import ImplicitGDRegressor
    >>> from onlinebregman.model_selection import offline_comparator
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> y = X @ [0.5, 0.5, 0.0] + 0.1 * np.sin(np.arange(500))
    >>> best = offline_comparator(X, y)
    >>> online = ImplicitGDRegressor(fit_intercept=False).partial_fit(X, y)
    >>> print(round(best.cumulative_loss, 1), round(online.cumulative_loss_, 1))  # the regret is their difference
    1.2 3.0
    >>> coef, intercept, loss = offline_comparator(X, X[:, 0] - X[:, 1], domain="simplex")
    >>> print(coef.round(2), loss > best.cumulative_loss)
    [1. 0. 0.] True
    """
    if domain not in DOMAINS:
        raise ValueError(f"domain must be one of {', '.join(map(repr, DOMAINS))}; got {domain!r}.")
    total = check_total(total)
    X, y = readable(X), check_targets_readable(y, labels=False)
    rows, targets = check_X_y(X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True, ensure_all_finite=False)
    check_finite(rows)
    targets = targets.astype(np.float64, copy=False)
    weights = check_weights(sample_weight, len(targets), allow_all_zero=False)

    R = _triangle(rows, targets, weights, fit_intercept)
    free = int(fit_intercept)  # only the first row of R depends on the intercept
    A, z = R[free:, free:-1], R[free:, -1]
    precision = EPS * max(rows.shape)
    A[:, np.linalg.norm(A, axis=0) <= precision * np.linalg.norm(R[:, free:-1], axis=0)] = 0.0  # constant features
    if domain == "nonnegative":
        coef = _nonnegative(A, z)
    elif domain == "simplex":
        coef = _on_simplex(A, z, total)
    else:
        scaled, lengths = _unit_columns(A)  # A is known to a relative `precision`
        coef = np.linalg.lstsq(scaled, z, rcond=precision)[0] / lengths
        if domain == "signed" and np.abs(coef).sum() > total:
            coef = _on_simplex(np.hstack([A, -A]), z, total)
            coef = coef[: rows.shape[1]] - coef[rows.shape[1] :]
    intercept = float((R[0, -1] - R[0, 1:-1] @ coef) / R[0, 0]) if fit_intercept else 0.0
    squares = (rows @ coef + intercept - targets) ** 2
    return Comparator(coef, intercept, float(np.sum(squares if weights is None else weights * squares) / 2))


def _triangle(X, y: Array, weights: Array | None, fit_intercept: bool) -> Array:
    """R of a QR decomposition of [1, X, y] with rows times the roots of their weights, which determines the loss."""
    width = fit_intercept + X.shape[1] + 1
    block = max(4 * width, 1024)
    R = np.zeros((width, width))
    for first in range(0, len(y), block):
        rows = slice(first, first + block)
        dense = X[rows].toarray() if sparse.issparse(X) else X[rows]
        table = np.column_stack([np.ones((len(dense), int(fit_intercept))), dense, y[rows]])
        if weights is not None:
            table *= np.sqrt(weights[rows])[:, np.newaxis]
        R = np.asarray(np.linalg.qr(np.vstack([R, table]), mode="r"))
    return R


def _unit_columns(A: Array) -> tuple[Array, Array]:
    """A with columns scaled to length one, as solvers have one tolerance for all columns, and their lengths."""
    lengths = np.linalg.norm(A, axis=0)
    lengths[lengths == 0] = 1.0
    return A / lengths, lengths


def _nonnegative(A: Array, z: Array) -> Array:
    """argmin of norm(A v - z) over v >= 0."""
    A, lengths = _unit_columns(A)
    size = float(np.linalg.norm(z)) or 1.0
    try:
        v = nnls(A, z / size, maxiter=30 * A.shape[1])[0]
    except RuntimeError:  # SciPy before 1.15 may cycle if A v = z has many solutions
        v = lsq_linear(A, z / size, (0.0, np.inf), method="bvls", tol=1e-15).x
    used = v > 0
    exact = np.linalg.lstsq(A[:, used], z, rcond=None)[0]  # the solver's updates have lost some digits
    if (exact > 0).all():
        v[used] = exact / size
    return v * (size / lengths)


def _on_simplex(A: Array, z: Array, total: float) -> Array:
    """argmin of norm(A u - z) over u >= 0, sum u = total."""
    B = A - z[:, np.newaxis] / total
    s = float(np.linalg.norm(B, axis=0).min()) or 1.0
    v = _nonnegative(np.vstack([B, np.full(B.shape[1], s)]), np.append(np.zeros(len(z)), s))
    return v * (total / v.sum())
