"""Linear constraints on a density matrix, as stored by DefiniteBoost."""

from __future__ import annotations

import copy
from math import isfinite
from typing import NamedTuple

import numpy as np

from .._kernels.matrices.von_neumann import VonNeumannGeometry
from .._online.validation import is_finite
from ._instances import Array, Rows


class Conditions(NamedTuple):
    """Values, violations and residuals of constraints.

    Attributes
    ----------
    values, violations, residuals : ndarray of shape (n_constraints,)
        tr(W C_j), how far it is violated, and the distance from the optimality conditions; relative to spread_j / d.
    worst, farthest : int
        Constraints with the largest violation, and with the largest residual; the same one if the two are equal.
    finite : bool
        Whether the residuals and the sum of alpha_j spread_j are finite.
    """

    values: Array
    violations: Array
    residuals: Array
    worst: int
    farthest: int
    finite: bool


class Constraints:
    """Constraints tr(W C_j) <= 0, or = 0, with C_j = sign_j (X_j - bound_j I), in the order they came.

    Parameters
    ----------
    blocks : list of Rows
        The X_j.
    table : ndarray of shape (6, n_constraints)
        The attributes below.

    Attributes
    ----------
    bounds, signs : ndarray of shape (n_constraints,)
        As given, 0 and 1 for matrices.
    lows, highs : ndarray of shape (n_constraints,)
        Numbers with all eigenvalues of C_j between them.
    spreads : ndarray of shape (n_constraints,)
        Their distance; 1 where that is 0.
    equal : ndarray of shape (n_constraints,)
        1 for equalities, whose multipliers have any sign; 0 for the others.
    """

    def __init__(self, blocks: list[Rows], table: Array) -> None:
        self.blocks, self.table = blocks, table
        self.bounds, self.signs, self.lows, self.highs, self.spreads, self.equal = table

    def __reduce__(self):
        return Constraints, (self.blocks, self.table)

    def extended(self, instances: Rows, bounds: Array, senses: Array) -> Constraints:
        """A new object with further constraints, their senses as returned by `check_senses`."""
        equal = senses == 0
        signs = np.where(equal, 1.0, senses)
        with np.errstate(over="ignore", invalid="ignore"):
            ends = instances.extremes - bounds[:, None]
        if not is_finite(ends):
            raise ValueError(
                f"Row {int(np.isfinite(ends).all(axis=1).argmin())} is too large: its squared norm overflows. Scale "
                "the rows by some s and their bounds by s^2."
            )
        lows, highs = np.sort(ends * signs[:, None], axis=1).T
        spreads = np.where(highs > lows, highs - lows, 1.0)
        added = np.array([bounds, signs, lows, highs, spreads, equal])
        if self.blocks and type(self.blocks[-1]) is type(instances):
            blocks = [*self.blocks[:-1], self.blocks[-1].joined(instances)]
        else:
            blocks = [*self.blocks, copy.deepcopy(instances)]  # these may be arrays of the caller
        return Constraints(blocks, np.concatenate([self.table, added], axis=1))

    def prepared(self, j: int, geometry: VonNeumannGeometry) -> Array:
        """Row j, in the form that the geometry reads after this call."""
        for block in self.blocks:
            if j < len(block):
                break
            j -= len(block)
        block.configure(geometry)
        return block.row(j)

    def values(self, factor: Array) -> Array:
        """tr(W C_j) for all j, W = L L' of trace one with the given L."""
        traces = np.concatenate([block.dot_cached(factor) for block in self.blocks])  # tr(W X_j)
        return self.signs * (traces - self.bounds)

    def conditions(self, factor: Array, alpha: Array) -> Conditions:
        """`Conditions` of the constraints for multipliers alpha."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = self.values(factor) * len(factor) / self.spreads
            multipliers = alpha * self.spreads
            violations = np.where(self.equal, np.abs(values), values)
            residuals = np.maximum(violations, -np.maximum(-multipliers, violations))  # one of both must be 0
        worst, farthest = int(violations.argmax()), int(residuals.argmax())
        farthest = worst if violations[worst] >= residuals[farthest] else farthest
        finite = is_finite(residuals) and isfinite(multipliers.sum())
        return Conditions(values, violations, residuals, worst, farthest, finite)

    def combined(self, alpha: Array) -> Array:
        """The sum of alpha_j sign_j X_j, which is that of alpha_j C_j up to a multiple of the identity."""
        parts = np.split(alpha * self.signs, np.cumsum([len(block) for block in self.blocks])[:-1])
        combined = (block.combined(part) for block, part in zip(self.blocks, parts, strict=True))
        return sum(combined, start=np.zeros(()))

    def dual(self, alpha: Array, log_first: Array) -> tuple[float, Array]:
        """ln tr exp(log W_1 - sum alpha_j C_j) and its gradient, -tr(W C_j)."""
        values, vectors = np.linalg.eigh(log_first - self.combined(alpha))
        weights = np.exp(values - values[-1])
        total = weights.sum()
        value = values[-1] + np.log(total) + alpha @ (self.signs * self.bounds)
        return float(value), -self.values(vectors * np.sqrt(weights / total))


SENSES = {"<=": 1.0, ">=": -1.0, "==": 0.0}


def check_senses(sense, n: int) -> Array:
    """+1 for "<=", -1 for ">=" and 0 for "==", one for each of n constraints."""
    senses = np.asarray("<=" if sense is None else sense, dtype=object)
    if senses.shape not in ((), (n,)):
        raise ValueError(
            f"sense has shape {senses.shape}, but there are {n} constraints; give one for all, or one each."
        )
    senses = np.broadcast_to(senses, n)
    for i, value in enumerate(senses):
        if not (isinstance(value, str) and value in SENSES):
            raise ValueError(f"sense must be '<=', '>=' or '=='; got sense[{i}] = {value!r}.")
    return np.array([SENSES[value] for value in senses])
