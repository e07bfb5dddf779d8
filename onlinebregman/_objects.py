"""The base class of constraints and penalties: comparison and repr by parameters, and calls of a divergence."""

from __future__ import annotations

import numpy as np

from .divergences import Divergence


class ParametricObject:
    """An object whose attributes are its parameters; two are equal if their types and parameters are."""

    def _call(self, divergence: Divergence, method: str, purpose: str, *arguments):
        """divergence.method(*arguments); an error if the divergence does not have this method."""
        if not hasattr(divergence, method):
            raise ValueError(
                f"{divergence!r} cannot {purpose} {self!r}: its class must define {method}, as subclasses of "
                "SeparableDivergence do."
            )
        return getattr(divergence, method)(*arguments)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={spell(value)}' for key, value in vars(self).items())})"

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = vars(self), vars(other)
        return mine.keys() == theirs.keys() and all(np.array_equal(mine[key], theirs[key]) for key in mine)

    def __hash__(self) -> int:
        return hash((type(self), tuple(sorted(vars(self)))))


def spell(value: object) -> str:
    """The source code of a parameter's value, for repr."""
    return repr(value.tolist()) if isinstance(value, np.ndarray) else repr(value)
