"""The kernel of DefiniteBoost with its multipliers and the record of its rounds."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .._kernels.matrices.von_neumann import VonNeumannGeometry
from ._constraints import Conditions, Constraints
from ._instances import Array, Rows


@dataclass(eq=False)
class Solution:
    """A kernel, its constraints, and their multipliers.

    Rounds change a new solution in place; the solution that an estimator has bound is never changed.
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
    found: Conditions = field(init=False, repr=False)  # values and violations of the constraints, during the rounds

    def extended(self, instances: Rows, bounds: Array, senses: Array) -> Solution:
        """The start of a solution with further constraints.

        It shares nothing that rounds change but the geometry, which is copied by the first one that does.
        """
        return Solution(
            self.geometry,
            self.constraints.extended(instances, bounds, senses),
            np.append(self.alpha, np.zeros(len(bounds))),
            self.log_dual.copy(),
            self.log_bound.copy(),
        )
