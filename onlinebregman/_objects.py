"""The base class of the objects of the theory: comparison and repr by parameters; checks; calls of a divergence."""

from __future__ import annotations

import inspect
from abc import ABCMeta
from collections.abc import Mapping
from math import isfinite
from numbers import Real
from typing import Any, NoReturn

import numpy as np


class _Freezing(ABCMeta):
    """Objects cannot change once their constructor has returned."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        made.__setstate__(vars(made))
        return made

    @property
    def __signature__(cls) -> inspect.Signature:
        """That of the constructor, for `help` and `inspect`."""
        own = cls.__init__ is not object.__init__  # type: ignore[misc]
        parameters = list(inspect.signature(cls.__init__).parameters.values())[1:] if own else []  # type: ignore[misc]
        return inspect.Signature(parameters)


class ParametricObject(metaclass=_Freezing):
    """An object whose attributes are its parameters, which cannot change: models read them at different times.

    Two are equal, and have the same hash, if their types and parameters are. Arrays are kept as read-only copies.
    """

    __slots__ = ("__dict__", "__weakref__", "_frozen")

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        arrays = {name: _read_only(value) for name, value in state.items() if isinstance(value, np.ndarray)}
        vars(self).update({**state, **arrays})
        object.__setattr__(self, "_frozen", True)

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(self, "_frozen") and name != "__class__":
            self._refuse_change(name)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        self._refuse_change(name)

    def _refuse_change(self, name: str) -> NoReturn:
        raise AttributeError(f"{name} of {self!r} cannot change; make a new {type(self).__name__}.")

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
        return hash((type(self), *((name, _hashable(value)) for name, value in sorted(vars(self).items()))))


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


def _read_only(value: np.ndarray) -> np.ndarray:
    """The array; if it could be written to, a copy that cannot."""
    if not value.flags.writeable:
        return value
    value = value.copy()
    value.flags.writeable = False
    return value


def _hashable(value: Any) -> Any:
    """What is equal for equal parameters, and has a hash."""
    if isinstance(value, list | tuple | np.ndarray):
        parts = value.tolist() if isinstance(value, np.ndarray) else value
        return tuple(map(_hashable, parts)) if isinstance(parts, list | tuple) else parts
    return value if getattr(value, "__hash__", None) is not None else None


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
