"""Learning rates of the weights of experts."""

from __future__ import annotations

from math import log
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .._objects import is_finite_number

Array = NDArray[np.float64]


def are_numbers(*values) -> bool:
    """Whether all values are numbers whose squares do not overflow as floats, and not NaN."""
    return all(is_finite_number(value) and abs(float(value)) <= 1e100 for value in values)


def hoeffding_rate(loss_range: float, n_rows: float, n_experts: int) -> float:
    """The rate at which losses within this range have a regret of loss_range sqrt(n_rows ln(n_experts) / 2)."""
    return (8.0 * log(max(n_experts, 2)) / n_rows) ** 0.5 / loss_range


def given_rate(learning_rate: Literal["adaptive"] | float, share: float) -> float | None:
    """The rate of a `Hedge`: a number, or None for one that adapts, which is not for fixed share."""
    if learning_rate != "adaptive":
        return float(learning_rate)
    if share:
        raise ValueError(f"learning_rate must be a number or 'theory' with share = {share:g}; got 'adaptive'.")
    return None
