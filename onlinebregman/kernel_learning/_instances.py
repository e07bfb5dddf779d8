"""Instances X of the prediction tr(W X), made of checked input: rows z, factors, or symmetric matrices."""

from __future__ import annotations

from functools import cached_property
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .._kernels.matrices.von_neumann import VonNeumannGeometry
from .._kernels.rows.rows import squared_lengths
from .._online.containers import readable
from .._online.validation import check_finite, check_indices, check_numbers, check_symmetric, first_true

Array = NDArray[np.float64]

EPS = np.finfo(np.float64).eps
_FACTORS_PAY_UPTO = 4  # one eigendecomposition costs less than more rank-one changes than this


class Rows:
    """Instances z z', one a row, dense or sparse.

    Attributes
    ----------
    data : {ndarray, CSR matrix} of shape (n, width)
        One instance a row, as the kernel reads it.
    extremes : ndarray of shape (n, 2)
        Ends of an interval that holds all eigenvalues of each instance.
    """

    def __init__(self, rows: np.ndarray | sparse.csr_matrix) -> None:
        self.data = rows

    def __len__(self) -> int:
        return self.data.shape[0]

    @cached_property
    def extremes(self) -> Array:
        extremes = np.zeros((len(self), 2))
        extremes[:, 1] = squared_lengths(self.data)
        return extremes

    def configure(self, geometry: VonNeumannGeometry) -> None:
        """Set the form in which the geometry reads rows."""
        geometry.matrices, geometry.positive = False, 1

    def row(self, i: int) -> Array:
        """One instance, dense."""
        if isinstance(self.data, np.ndarray):
            return np.ascontiguousarray(self.data[i], dtype=np.float64)
        row, part = np.zeros(self.data.shape[1]), slice(self.data.indptr[i], self.data.indptr[i + 1])
        row[self.data.indices[part]] = self.data.data[part]
        return row

    def dot(self, factor: Array) -> Array:
        """tr(W X) for all of them, W = L L' with the given L."""
        return np.square(self.data @ factor).sum(axis=1)

    def dot_cached(self, factor: Array) -> Array:
        """The same for repeated calls: for very sparse rows, from cached z z' and the entries of W."""
        return self.dot(factor) if self._entries is None else self._entries @ (factor @ factor.T).ravel()

    def combined(self, weights: Array) -> Array:
        """The sum of weights times instances, shape (d, d)."""
        if self._entries is not None:
            return (weights @ self._entries).reshape(self.data.shape[1], -1)
        if isinstance(self.data, np.ndarray):
            return self.data.T @ (self.data * weights[:, None])
        return (self.data.T @ self.data.multiply(weights[:, None])).toarray()

    @cached_property
    def _entries(self) -> sparse.csr_matrix | None:
        """The matrices z z' as sparse rows of d^2 values; None if that would be slower."""
        if isinstance(self.data, np.ndarray) or self.data.nnz == 0:
            return None
        n, d = self.data.shape
        counts = np.diff(self.data.indptr).astype(np.int64)
        indptr = np.concatenate([[0], np.cumsum(counts**2)])
        if indptr[-1] > 8 * self.data.nnz:
            return None
        row = np.repeat(np.arange(n), counts**2)
        place = np.arange(len(row)) - indptr[row]
        left = self.data.indptr[row] + place // counts[row]
        right = self.data.indptr[row] + place % counts[row]
        index, values = self.data.indices.astype(np.int64), self.data.data.astype(np.float64)
        entries = (values[left] * values[right], index[left] * d + index[right], indptr)
        return sparse.csr_matrix(entries, shape=(n, d * d))

    def joined(self, other: Rows) -> Rows:
        if not (sparse.issparse(self.data) or sparse.issparse(other.data)):
            return Rows(np.concatenate([self.data, other.data]))
        above, below = sparse.csr_matrix(self.data), sparse.csr_matrix(other.data)
        indptr = np.concatenate([above.indptr, above.indptr[-1] + below.indptr[1:].astype(np.int64)])
        parts = [np.concatenate([getattr(above, name), getattr(below, name)]) for name in ("data", "indices")]
        shape = (len(self) + len(other), above.shape[1])
        return Rows(sparse.csr_matrix((*parts, indptr), shape=shape))  # vstack takes longer than learning many rows


class Matrices(Rows):
    """Instances given as symmetric matrices, shape (n, d, d)."""

    def __init__(self, matrices: Array) -> None:
        self.data = matrices.reshape(len(matrices), -1)
        self.size = matrices.shape[1]

    @cached_property
    def extremes(self) -> Array:
        return np.linalg.eigvalsh(self.data.reshape(-1, self.size, self.size))[:, [0, -1]]

    def configure(self, geometry: VonNeumannGeometry) -> None:
        geometry.matrices = True

    def dot(self, factor: Array) -> Array:
        return self.data @ (factor @ factor.T).ravel()

    dot_cached = dot

    def combined(self, weights: Array) -> Array:
        return (weights @ self.data).reshape(self.size, self.size)

    def joined(self, other: Matrices) -> Matrices:
        return Matrices(np.concatenate([self.data, other.data]).reshape(-1, self.size, self.size))


class Factors(Rows):
    """Instances sum_k sign_k z_k z_k'.

    A row is the factors one after the other, those of sign + first; where an instance has fewer of a sign than others,
    zeros stand for them.

    Parameters
    ----------
    factors : ndarray of shape (n, rank, d)
    signs : ndarray of shape (n, rank)
        1, -1, or 0 for a factor that is left out.
    """

    def __init__(self, factors: Array, signs: Array) -> None:
        n, _, d = factors.shape
        halves = []
        for sign in (1, -1):
            chosen = signs == sign
            first = np.argsort(~chosen, axis=1, kind="stable")[:, : chosen.sum(axis=1).max(initial=0)]
            half = np.take_along_axis(factors * chosen[:, :, None], first[:, :, None], axis=1)
            halves.append(half.reshape(n, -1))
        self.positive = halves[0].shape[1] // d
        self.data = np.ascontiguousarray(np.hstack(halves))
        ends = np.asarray(np.linalg.qr(factors.transpose(0, 2, 1), mode="r"))  # X = Q R diag(signs) R' Q'
        values = np.linalg.eigvalsh((ends * signs[:, None]) @ ends.transpose(0, 2, 1))
        self.extremes = values[:, [0, -1]]
        if values.shape[1] < d:
            self.extremes = np.c_[np.minimum(values[:, 0], 0.0), np.maximum(values[:, -1], 0.0)]

    def configure(self, geometry: VonNeumannGeometry) -> None:
        geometry.matrices, geometry.positive = False, self.positive


def factored(factors: Array, signs: Array) -> Rows:
    """Instances sum_k sign_k z_k z_k', in the form in which steps are fastest."""
    if factors.shape[1] <= min(_FACTORS_PAY_UPTO, factors.shape[2]):
        return Factors(factors, signs)
    return Matrices(np.einsum("nr,nri,nrj->nij", signs, factors, factors, optimize=True))


def pair_rows(pairs: ArrayLike, n_objects: int) -> sparse.csr_matrix:
    """Rows z = (e_a - e_b) / sqrt(2) for pairs (a, b) of objects: z'Wz is half their squared distance under W.

    With these rows the estimators of this module work in `GridSearchCV`, `cross_val_score` and other tools that take X.

    Parameters
    ----------
    pairs : array-like of int of shape (n_pairs, 2)
        Two object numbers each, from 0 to n_objects - 1.
    n_objects : int
        Number of objects.

    Returns
    -------
    rows : sparse matrix of shape (n_pairs, n_objects)
        CSR, two nonzeros per row; none if a = b.

    Raises
    ------
    ValueError
        If an object number is out of range (the row is named) or not an integer.

    References
    ----------
    K. Tsuda, G. Raetsch, M. K. Warmuth, "Matrix Exponential Gradient Updates for On-line Learning and Bregman
    Projection", NIPS 2004, section 5.

    Examples
    --------
    >>> from onlinebregman.kernel_learning import pair_rows
    >>> print(pair_rows([[0, 2]], 3).toarray().round(2))
    [[ 0.71  0.   -0.71]]
    """
    if isinstance(n_objects, bool) or not isinstance(n_objects, Integral) or not 1 <= n_objects < 2**62:
        raise ValueError(f"n_objects must be an integer >= 1; got {n_objects!r}.")
    pairs = check_indices(pairs, int(n_objects), "pairs", "object")
    n = len(pairs)
    values = np.tile([np.sqrt(0.5), -np.sqrt(0.5)], n)
    rows = sparse.csr_matrix((values, pairs.flatten(), np.arange(0, 2 * n + 1, 2)), shape=(n, int(n_objects)))
    rows.sum_duplicates()
    rows.eliminate_zeros()
    rows.indptr = rows.indptr.astype(rows.indices.dtype, copy=False)
    return rows


def check_matrices(matrices: ArrayLike, name: str) -> Array:
    """A stack of finite symmetric matrices, float64 of shape (n, d, d)."""
    matrices = check_numbers(matrices, name, allow_nd=True, ensure_2d=False)
    if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2]:
        raise ValueError(f"{name} must have shape (n_matrices, d, d); got {matrices.shape}.")
    return np.stack([check_symmetric(matrix, f"{name}[{i}]") for i, matrix in enumerate(matrices)])


def check_factors(factors: ArrayLike, signs: ArrayLike | None) -> tuple[Array, Array]:
    """Finite factors of shape (n, rank, d), and their signs of shape (n, rank)."""
    factors = check_numbers(factors, "factors", allow_nd=True, ensure_2d=False)
    if factors.ndim != 3 or factors.shape[1] == 0:
        raise ValueError(f"factors must have shape (n_samples, rank, d); got {factors.shape}.")
    check_finite(factors, "factors")
    signs = np.asarray(1 if signs is None else readable(signs, "signs"))
    if signs.shape not in ((), factors.shape[1:2], factors.shape[:2]):
        raise ValueError(
            f"signs must have shape {factors.shape[1:2]}, one for each factor, or {factors.shape[:2]}; got "
            f"{signs.shape}."
        )
    signs = np.broadcast_to(signs, factors.shape[:2])
    if bad := first_true(~np.isin(signs, (-1, 0, 1))):
        row, factor = bad
        raise ValueError(f"signs of row {row}, factor {factor}, is {signs[row, factor]}; use 1, -1, or 0.")
    return factors, signs.astype(np.float64)
