"""The base class of the objects of the theory: comparison and repr by parameters; checks; calls of a divergence."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np


class ParametricObject:
    """An object whose attributes are its parameters; two are equal if their types and parameters are."""

    def _parameters(self) -> Mapping[str, Any]:
        """What repr shows."""
        return vars(self)

    def __repr__(self) -> str:
        parameters = ", ".join(f"{key}={spell(value)}" for key, value in self._parameters().items())
        return f"{type(self).__name__}({parameters})"

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = vars(self), vars(other)
        return mine.keys() == theirs.keys() and all(np.array_equal(mine[key], theirs[key]) for key in mine)

    def __hash__(self) -> int:
        return hash((type(self), tuple(sorted(vars(self)))))


class ForDivergences(ParametricObject):
    """The base class of constraints and penalties, which call a method of any divergence."""

    def _call(self, divergence: Any, method: str, purpose: str, *arguments):
        """divergence.method(*arguments); an error if the divergence does not have this method."""
        if not hasattr(divergence, method):
            raise ValueError(
                f"{divergence!r} cannot {purpose} {self!r}: its class must define {method}, as subclasses of "
                "SeparableDivergence do."
            )
        return getattr(divergence, method)(*arguments)


def spell(value: object) -> str:
    """The source code of a parameter's value, for repr."""
    return repr(value.tolist()) if isinstance(value, np.ndarray) else repr(value)


def is_finite_number(value: float) -> bool:
    """Whether it is a number, no truth value, that is finite as a float: integers may be larger than any."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)
    except OverflowError:
        return False


def check_parameter(value: float, name: str, *, positive: bool) -> float:
    """The value of a parameter as a float; ValueError unless it is finite, and positive or at least 0."""
    if not is_finite_number(value) or value < 0 or (positive and value == 0):
        needed = "a positive finite number" if positive else "a finite number >= 0"
        raise ValueError(f"{name} must be {needed}; got {value!r}.")
    return float(value)
