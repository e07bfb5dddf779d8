"""The kernel of DefiniteBoost, and how it was found."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import numpy as np

from .._kernels.matrices.von_neumann import VonNeumannGeometry
from ._constraints import Conditions, Constraints
from ._instances import Array, Rows


@dataclass(eq=False)
class Solution:
    """A kernel, the constraints it is for, and the multipliers that give it.

    Rounds change one in place that nobody else has. The one that an estimator has bound stays what it is.
    """

    geometry: VonNeumannGeometry
    constraints: Constraints = field(default_factory=lambda: Constraints([], np.empty((6, 0))))
    alpha: Array = field(default_factory=lambda: np.empty(0))
    log_dual: list[float] = field(default_factory=lambda: [0.0])
    log_bound: list[float] = field(default_factory=lambda: [0.0])
    n_iter: int = 0
    gap: float = 0.0
    violation: float = 0.0
    residual: float = 0.0
    found: Conditions = field(init=False, repr=False)  # what the constraints have come to, while rounds go on

    def extended(self, instances: Rows, bounds: Array, senses: Array) -> Solution:
        """A start for the solution for further constraints; it shares nothing that rounds change."""
        return Solution(
            copy.copy(self.geometry),
            self.constraints.extended(instances, bounds, senses),
            np.append(self.alpha, np.zeros(len(bounds))),
            self.log_dual.copy(),
            self.log_bound.copy(),
        )
