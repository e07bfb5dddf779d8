"""Parameters of estimators: each call reads some, the others are read when learning starts and cannot change then."""

from __future__ import annotations

from functools import cache
from numbers import Integral
from operator import attrgetter
from typing import Any

import numpy as np
from sklearn.base import clone

from .._sklearn_compat import Interval, StrOptions, validate_parameters
from .docs import DocumentedMixin

# How `fit` goes through the rows: read by each `fit`, and by no other call
OF_FIT = frozenset(
    {"max_iter", "tol", "n_iter_no_change", "validation_fraction", "shuffle", "random_state", "warm_start", "verbose"}
)


def by_parameter(name: str) -> Any:
    """A setting that is the parameter of this name; classes without the parameter have a value of their own for it."""
    return property(attrgetter(name))


class ParametersMixin(DocumentedMixin):
    """What calls read of the parameters, and what they must not find changed."""

    # By these rules scikit-learn validates parameters: each class has those that it adds, these are everybody's.
    _parameter_constraints: dict = {
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
        "n_jobs": [Interval(Integral, None, -1, closed="right"), Interval(Integral, 1, None, closed="left"), None],
        "delayed": ["boolean"],
        "handle_unknown": [StrOptions({"error", "add"})],
        "handle_new_features": [StrOptions({"error", "add"})],
    }
    _read_at_each_call: tuple[str, ...]  # those parameters that may change in mid-stream; if missing, all
    _warm_start: bool = False  # whether `fit` continues
    _started_with: dict[str, Any]  # the values of the others when learning started

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):  # what its bases say of its own parameters
            code = cls.__init__.__code__
            own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            bases = [vars(base) for base in reversed(cls.__mro__)]
            rules = {name: rule for base in bases for name, rule in base.get("_parameter_constraints", {}).items()}
            cls._parameter_constraints = {name: rule for name, rule in rules.items() if name in own}
            if hasattr(cls, "_read_at_each_call"):
                cls._read_at_each_call = sum((base.get("_read_at_each_call", ()) for base in bases), ())

    _validate_params = validate_parameters

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Those of scikit-learn, which reads the signature again for each validation, clone and copy."""
        return super()._get_param_names()  # type: ignore[misc]

    def _set_arguments(self, arguments: dict[str, Any]) -> None:
        """Set the arguments of a constructor, given by its `locals()`, as attributes."""
        del arguments["self"]
        vars(self).update(arguments)

    @classmethod
    @cache
    def _parameters_of_calls(cls) -> tuple[str, ...]:
        """Names of the parameters that have to be looked at again if they change between two calls."""
        own = cls._get_param_names()
        changing = getattr(cls, "_read_at_each_call", own)
        return tuple(name for name in own if name in changing or name not in OF_FIT)

    def _read_at_start(self) -> dict[str, Any]:
        """What is read when learning starts: the values of parameters, or what follows from several."""
        names = self._parameters_of_calls()
        changing = getattr(self, "_read_at_each_call", names)
        return {name: getattr(self, name) for name in names if name not in changing}

    def _keep_parameters(self) -> None:
        self._started_with = {  # with copies of what may change in place: components and what holds them
            name: clone(now, safe=False) if isinstance(now, list | tuple | dict) or hasattr(now, "get_params") else now
            for name, now in self._read_at_start().items()
        }

    def _check_kept(self) -> None:
        """ValueError if a parameter has changed that is only read when learning starts."""
        before = vars(self).get("_started_with", {})
        for name, now in self._read_at_start().items():
            if name in before and not same(now, before[name]):
                raise ValueError(
                    f"{name}={now!r} cannot take effect in mid-stream: this {type(self).__name__} started to learn "
                    f"with {name}={before[name]!r}. Set it back, or learn anew by "
                    f"fit{' with warm_start=False' * bool(self._warm_start)}."
                )


def same(now: Any, before: Any) -> bool:
    """Whether two values of a parameter mean the same."""
    if now is before:
        return True
    if hasattr(now, "get_params") and not isinstance(now, type) and type(now) is type(before):
        return same(now.get_params(deep=False), before.get_params(deep=False))
    if isinstance(now, dict) and isinstance(before, dict):
        return now.keys() == before.keys() and all(same(now[key], before[key]) for key in now)
    if isinstance(now, list | tuple) and isinstance(before, list | tuple):
        return len(now) == len(before) and all(map(same, now, before))
    if isinstance(now, np.ndarray) or isinstance(before, np.ndarray):
        return np.array_equal(now, before)
    return bool(now == before)
