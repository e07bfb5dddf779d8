"""Instances X of the prediction tr(W X): rank-one rows z z', and symmetric matrices; from users' input, checked."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.validation import check_array

from .._validation import check_finite, check_indices, check_symmetric
from ._gibbs import Array


@dataclass(frozen=True, slots=True)
class RankOne:
    """X = sign * z z', with z given by its nonzeros."""

    index: np.ndarray
    values: Array
    sign: float = 1.0

    def diagonal(self, vectors: Array) -> Array:
        return self.sign * (self.values @ vectors[self.index]) ** 2

    def curvature(self, vectors: Array, weights: Array) -> float:
        diagonal = self.diagonal(vectors)
        return float(diagonal @ weights @ diagonal)

    def subtract(self, matrix: Array, c: float) -> None:
        matrix[np.ix_(self.index, self.index)] -= (c * self.sign) * np.outer(self.values, self.values)

    def extremes(self) -> tuple[float, float]:
        """Ends of an interval that holds all eigenvalues: 0 and |z|^2, with the sign."""
        end = self.sign * float(self.values @ self.values)
        return min(end, 0.0), max(end, 0.0)

    def __neg__(self) -> RankOne:
        return RankOne(self.index, self.values, -self.sign)


@dataclass(frozen=True, slots=True)
class Symmetric:
    """X as a matrix."""

    matrix: Array

    def diagonal(self, vectors: Array) -> Array:
        return np.einsum("ij,ij->j", vectors, self.matrix @ vectors)

    def curvature(self, vectors: Array, weights: Array) -> float:
        return float(np.vdot(weights, (vectors.T @ self.matrix @ vectors) ** 2))

    def subtract(self, matrix: Array, c: float) -> None:
        matrix -= c * self.matrix

    def extremes(self) -> tuple[float, float]:
        """The smallest and the largest eigenvalue."""
        values = np.linalg.eigvalsh(self.matrix)
        return float(values[0]), float(values[-1])


class Rows:
    """Instances z z', one a row; dense and sparse rows give the same numbers."""

    def __init__(self, rows) -> None:
        self.data = rows

    def __len__(self) -> int:
        return self.data.shape[0]

    def __getitem__(self, i: int) -> RankOne:
        if sparse.issparse(self.data):
            part = slice(self.data.indptr[i], self.data.indptr[i + 1])
            index, values = self.data.indices[part], self.data.data[part]
        else:
            index, values = np.arange(self.data.shape[1]), self.data[i]
        nonzero = values != 0
        return RankOne(index[nonzero], values[nonzero].astype(np.float64))

    def dot(self, factor: Array) -> Array:
        """tr(W X) for all of them, W = L L' with the given L."""
        return ((self.data @ factor) ** 2).sum(axis=1)

    def joined(self, other: Rows) -> Rows:
        if sparse.issparse(self.data) or sparse.issparse(other.data):
            return Rows(sparse.vstack([self.data, other.data], format="csr"))
        return Rows(np.vstack([self.data, other.data]))


class Matrices:
    """Instances given as symmetric matrices, shape (n, d, d)."""

    def __init__(self, matrices: Array) -> None:
        self.data = matrices

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, i: int) -> Symmetric:
        return Symmetric(self.data[i])

    def dot(self, factor: Array) -> Array:
        """tr(W X) for all of them, W = L L' with the given L."""
        return self.data.reshape(len(self), -1) @ (factor @ factor.T).ravel()

    def joined(self, other: Matrices) -> Matrices:
        return Matrices(np.concatenate([self.data, other.data]))


class Constraints:
    """Constraints tr(W C_j) <= 0 with C_j = sign_j (X_j - bound_j I), in the order they came.

    Attributes
    ----------
    bounds, signs : ndarray of shape (n_constraints,)
        As given, 0 and 1 for matrices.
    lows, highs : ndarray of shape (n_constraints,)
        Numbers with all eigenvalues of C_j between them.
    spreads : ndarray of shape (n_constraints,)
        Their distance; 1 where that is 0.
    """

    def __init__(self) -> None:
        self.blocks: list[Rows | Matrices] = []
        self.bounds, self.signs, self.lows, self.highs, self.spreads = np.empty((5, 0))

    def extended(self, instances: Rows | Matrices, bounds: Array, signs: Array) -> Constraints:
        """These and further ones; nothing is changed in place."""
        with np.errstate(over="ignore", invalid="ignore"):
            ends = np.array([instances[i].extremes() for i in range(len(instances))]) - bounds[:, None]
            large = ~np.isfinite(ends).all(axis=1)
        if large.any():
            raise ValueError(
                f"Row {int(np.argmax(large))} is too large: the square of its length overflows. Scale the rows by "
                "some s and their bounds by s^2."
            )
        lows, highs = np.sort(ends * signs[:, None], axis=1).T
        spreads = np.where(highs > lows, highs - lows, 1.0)
        new = Constraints()
        names = ("bounds", "signs", "lows", "highs", "spreads")
        for name, values in zip(names, (bounds, signs, lows, highs, spreads), strict=True):
            setattr(new, name, np.append(getattr(self, name), values))
        if self.blocks and type(self.blocks[-1]) is type(instances):
            new.blocks = [*self.blocks[:-1], self.blocks[-1].joined(instances)]
        else:
            new.blocks = [*self.blocks, instances]
        return new

    def signed(self, j: int) -> RankOne | Symmetric:
        """sign_j X_j, which is C_j + sign_j bound_j I. Matrices have sign 1."""
        sign = self.signs[j]
        for block in self.blocks:
            if j < len(block):
                break
            j -= len(block)
        return block[j] if sign > 0 else -block[j]

    def values(self, factor: Array) -> Array:
        """tr(W C_j) for all j, W = L L' of trace one with the given L."""
        return self.signs * (np.concatenate([block.dot(factor) for block in self.blocks]) - self.bounds)


def pair_rows(pairs: ArrayLike, n_objects: int) -> sparse.csr_matrix:
    """Rows z = (e_a - e_b) / sqrt(2) for pairs (a, b) of objects: z'Wz is half their squared distance under W.

    With them the estimators of this module work in `GridSearchCV`, `cross_val_score` and everything else that takes X.

    Parameters
    ----------
    pairs : array-like of int of shape (n_pairs, 2)
        Two object numbers each, from 0 to n_objects - 1.
    n_objects : int
        Number of objects.

    Returns
    -------
    rows : sparse matrix of shape (n_pairs, n_objects)
        CSR, two nonzeros a row; none where a = b.

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
    if isinstance(n_objects, bool) or not isinstance(n_objects, Integral) or n_objects < 1:
        raise ValueError(f"n_objects = {n_objects!r}, but it has to be a whole number of objects, at least 1.")
    pairs = check_indices(pairs, int(n_objects), "pairs", "object")
    n = len(pairs)
    values = np.tile([np.sqrt(0.5), -np.sqrt(0.5)], n)
    rows = sparse.csr_matrix((values, pairs.ravel(), np.arange(0, 2 * n + 1, 2)), shape=(n, int(n_objects)))
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def check_matrices(matrices: ArrayLike, name: str) -> Array:
    """A stack of finite symmetric matrices, float64 of shape (n, d, d)."""
    matrices = check_array(
        matrices, allow_nd=True, ensure_2d=False, dtype=np.float64, ensure_all_finite=False, input_name=name
    )
    if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2]:
        raise ValueError(f"{name} has shape {matrices.shape}, but it has to be (n_matrices, d, d).")
    return np.stack([check_symmetric(matrix, f"{name}[{i}]") for i, matrix in enumerate(matrices)])


def check_targets(values: ArrayLike, n: int, name: str, of: str, *, negative_too: bool) -> Array:
    """One finite number for each of n instances."""
    values = check_array(values, ensure_2d=False, dtype=np.float64, ensure_all_finite=False, input_name=name)
    if values.shape != (n,):
        raise ValueError(f"{name} has shape {values.shape}, but there are {n} {of}; give one number for each.")
    check_finite(values, name)
    if not negative_too and (values < 0).any():
        row = int(np.argmax(values < 0))
        raise ValueError(f"{name}[{row}] = {values[row]:g} is negative; give half squared distances, >= 0.")
    return values


def check_senses(sense, n: int) -> Array:
    """+1 for "<=" and -1 for ">=", one for each of n constraints."""
    senses = np.full(n, "<=") if sense is None else np.asarray(sense, dtype=object)
    if senses.ndim == 0:
        senses = np.full(n, senses.item(), dtype=object)
    if senses.shape != (n,):
        raise ValueError(
            f"sense has shape {senses.shape}, but there are {n} constraints; give one for all, or one each."
        )
    for i, value in enumerate(senses):
        if value not in ("<=", ">="):
            raise ValueError(f"sense[{i}] = {value!r} is not known; use '<=' or '>='.")
    return np.where(senses == "<=", 1.0, -1.0)
