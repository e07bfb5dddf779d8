"""What bounds on a run depend on: the terms its rows were learned under, and the comparators it is held against."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq

from ..constraints import Constraint
from ..divergences import Divergence


class Terms:
    """Under which terms rows were learned: of each term the different values, the first two and the last.

    Terms come into force with the next row, so that noting them costs nothing while rows are learned. Nothing is
    changed in place: an object that is kept says what it said.
    """

    def __init__(self, past: dict[str, tuple] | None = None, now: dict[str, Any] | None = None, since: int = 0) -> None:
        self._past, self._now, self._since = past or {}, now or {}, since

    def then(self, t: int, **terms) -> Terms:
        """These terms, and what was learned so far, up to row t, under those before them."""
        return self if terms == self._now else Terms(self._learned(t), terms, t)

    def of(self, name: str, t: int) -> tuple:
        """The different values of a term under which the rows up to row t were learned; the present one if none."""
        return self._learned(t).get(name) or (self._now[name],)

    def learned(self, name: str, t: int) -> tuple:
        """The same, but nothing if no row was learned."""
        return self._learned(t).get(name, ())

    def _learned(self, t: int) -> dict[str, tuple]:
        if t == self._since:
            return self._past
        return {name: _noted(self._past.get(name, ()), value) for name, value in self._now.items()}


def _noted(values: tuple, value) -> tuple:
    return values if value in values else (*values[:2], value)


def split(coef: np.ndarray, divergence: Divergence, constraint: Constraint | None) -> np.ndarray | None:
    """Some w+ and w- >= 0 with coef = w+ - w- that satisfy the constraint, one after the other; None if none is known.

    What w+ and w- have in common is 1/2n for each feature, or what makes up the total, as far as there is room; if
    there is not, of the points of that total the one nearest to 0.
    """
    n = len(coef)
    low: float | np.ndarray = 0.0
    high: float | np.ndarray = divergence.upper
    total = divergence.total
    if constraint is not None:
        low, high = np.maximum(low, constraint.lower), np.minimum(high, constraint.upper)
        total = total if constraint.total is None else constraint.total
    low, high = np.broadcast_to(low, 2 * n), np.broadcast_to(high, 2 * n)
    least = np.maximum(low[n:], low[:n] - coef)  # of w-
    most = np.maximum(np.minimum(high[n:], high[:n] - coef), least)

    def beyond(level: float) -> np.ndarray:  # w-, if w+ + w- is to be the same for all features
        return np.clip((level - coef) / 2, least, most)

    def contains(minus: np.ndarray) -> bool:
        return constraint is None or constraint.contains(np.r_[coef + minus, minus])

    room = 1.0 if total is None else total - np.abs(coef).sum()
    minus = np.maximum(-coef, 0) + room / (2 * n)
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
        reached, missed = 0.0, 1.0  # how much of the way the constraint has room for
        for _ in range(60):
            middle = (reached + missed) / 2
            if contains(least + middle * (minus - least)):
                reached = middle
            else:
                missed = middle
        minus = least + reached * (minus - least)
    return np.r_[coef + minus, minus] if contains(minus) else None
