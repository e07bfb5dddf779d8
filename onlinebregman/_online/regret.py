"""Bounds on a run depend on the parameters under which its rows were learned, and on the comparators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq

from ..constraints import Constraint
from ..divergences import Divergence


class ParameterHistory:
    """The values of some terms (parameters, constraints) under which rows were learned.

    Of more than three different values of a term only the first two and the last are stored. New values apply from the
    next row on. Objects are immutable.
    """

    def __init__(self, past: dict[str, tuple] | None = None, now: dict[str, Any] | None = None, since: int = 0) -> None:
        self._past, self._now, self._since = past or {}, now or {}, since

    def then(self, t: int, **terms) -> ParameterHistory:
        """A new object: these terms apply after row t, the present ones up to row t."""
        return self if terms == self._now else ParameterHistory(self._learned(t), terms, t)

    def of(self, name: str, t: int) -> tuple:
        """The different values of a term for the rows up to row t; the present value if no row was learned."""
        return self._learned(t).get(name) or (self._now[name],)

    def learned(self, name: str, t: int) -> tuple:
        """The same, but empty if no row was learned."""
        return self._learned(t).get(name, ())

    def renumbered(self, name: str, numbers: Sequence[int], n: int, value: float) -> ParameterHistory:
        """A new object: values of a term that are one for each learner, or None, get new numbers, others a `value`."""

        def changed(old: tuple | None) -> tuple | None:
            known = None if old is None else dict(zip(numbers, old, strict=True))
            return None if known is None else tuple(known.get(number, value) for number in range(n))

        if name not in self._now:
            return self
        past = {**self._past, name: tuple(map(changed, self._past.get(name, ())))}
        return ParameterHistory(past, {**self._now, name: changed(self._now[name])}, self._since)

    def _learned(self, t: int) -> dict[str, tuple]:
        if t == self._since:
            return self._past
        return {name: _with_value(self._past.get(name, ()), value) for name, value in self._now.items()}


def _with_value(values: tuple, value) -> tuple:
    return values if value in values else (*values[:2], value)


def split(coef: np.ndarray, divergence: Divergence, constraint: Constraint | None) -> np.ndarray | None:
    """Some w+ followed by w- with coef = w+ - w-, both >= 0, that satisfy the constraint; None if none is known.

    The smaller of w+_i and w-_i is 1 / 2n, or what fills up the total, if the constraint allows it; otherwise the point
    of that total nearest to 0 is taken.
    """
    n = len(coef)
    low: float | np.ndarray = 0.0
    high: float | np.ndarray = divergence.upper
    total = divergence.total
    if constraint is not None:
        low, high = np.maximum(low, constraint.lower), np.minimum(high, constraint.upper)
        total = total if constraint.total is None else constraint.total
    low, high = np.broadcast_to(low, 2 * n), np.broadcast_to(high, 2 * n)
    least = np.maximum(low[n:], low[:n] - coef)  # bounds on w-
    most = np.maximum(np.minimum(high[n:], high[:n] - coef), least)

    def beyond(level: float) -> np.ndarray:  # w- for which w+ + w- = level, within its bounds
        return np.clip((level - coef) / 2, least, most)

    def contains(minus: np.ndarray) -> bool:
        return constraint is None or constraint.contains(np.r_[coef + minus, minus])

    rest = 1.0 if total is None else total - np.abs(coef).sum()
    minus = np.maximum(-coef, 0) + rest / (2 * n)
    outside = (minus < least).any() or (minus > most).any() or not contains(minus)
    minus = np.clip(minus, least, most)
    if total is not None and outside:
        ends = float((coef + 2 * least).min()), float(2 * total + np.abs(coef).max())
        sums = [float((coef + 2 * beyond(end)).sum()) - total for end in ends]
        if sums[0] >= 0 or sums[1] <= 0:
            minus = beyond(ends[sums[0] < 0])
            if abs((coef + 2 * minus).sum() - total) > 1e-10 * total:
                return None
        else:
            minus = beyond(brentq(lambda level: float((coef + 2 * beyond(level)).sum()) - total, *ends, xtol=1e-300))
    elif outside and not contains(minus) and contains(least):
        reached, missed = 0.0, 1.0  # bisection for the largest fraction that the constraint allows
        for _ in range(60):
            middle = (reached + missed) / 2
            if contains(least + middle * (minus - least)):
                reached = middle
            else:
                missed = middle
        minus = least + reached * (minus - least)
    return np.r_[coef + minus, minus] if contains(minus) else None
