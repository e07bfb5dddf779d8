"""Bounds on the regret of linear models, computed after the run for any comparator: one for each learner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._kernels.learners.learner import Learner
from .._kernels.learners.multi_learner import MultiLearner
from .._online.comparators import Comparators
from .._online.mirror import MirrorMixin
from .._online.regret import ParameterHistory, split
from .._online.start import starting_weights
from .._online.validation import read_only


class CertifiedMixin(MirrorMixin):
    """The certificates of the learners of a linear model."""

    fit_intercept: bool
    _n_weights: int  # of a learner
    _tracked: ParameterHistory
    _joint = False  # whether several learners have one joint loss

    def _terms_of_certificate(self, learner: Learner | MultiLearner) -> dict[str, Any]:
        """The current values of what determines the comparators of regret certificates; see `ParameterHistory`."""
        held = None if self.fit_intercept else tuple(part.position[1] for part in _parts(learner))
        return {"held_intercept": held, "fraction": 1.0}

    def _each_bound(self, bound: Callable, coef: ArrayLike, *others: ArrayLike) -> Any:
        """A bound for each learner, from its row of coef and its entry of the others; see `_each`."""
        learner, coefs = self._fitted_learner(), np.asarray(coef, dtype=np.float64)
        several = isinstance(learner, MultiLearner)
        coefs = np.broadcast_to(coefs, (len(learner.learners), self._n_weights)) if several else coefs[np.newaxis]
        return self._each(lambda number, *others: bound(number, coefs[number], *others), *others)

    def _each(self, bound: Callable, *arguments: ArrayLike | None) -> Any:
        """A bound for each learner, from its number and its entry of the arguments; their sum for a joint loss.

        A number for a model that consists of one learner.
        """
        learner = self._fitted_learner()
        n = len(_parts(learner))
        of_each = [
            [None] * n if argument is None else np.broadcast_to(np.asarray(argument, dtype=np.float64), n).tolist()
            for argument in arguments
        ]
        bounds = [bound(*parts) for parts in zip(range(n), *of_each, strict=True)]
        if not isinstance(learner, MultiLearner):
            return bounds[0]
        return np.array([sum(bounds)] if self._joint else bounds)

    @read_only
    def weighted_loss_(self) -> Any:
        """Sum of eta_t L_t(w_t), rate times weight times loss before each step; of each loss, if there are several."""
        parts = _parts(self._fitted_learner())
        return self._each(lambda number: parts[number].weighted_loss)

    def _linear_certificate(self, number: int, coef: ArrayLike, intercept: float) -> float:
        """The certificate of one learner against a comparator; ValueError if it does not hold for that."""
        return self._certificate(*self._run_and_comparator(number, coef, intercept))

    def _regret_bound(self, number: int, coef: ArrayLike, intercept: float, largest: float) -> float:
        """The bound on the regret itself of one learner."""
        learner, u, intercept = self._run_and_comparator(number, coef, intercept)
        fraction, *others = self._tracked.learned("fraction", self.t_) or (1.0,)
        if others or fraction is None:
            raise ValueError(
                "There is no bound on the regret itself if rows count differently, by the shares of shards of unequal "
                "weight or number; use regret_certificate, in which they do."
            )
        return self._unweighted_certificate(learner, u, intercept, largest) / fraction

    def _run_and_comparator(self, number: int, coef: ArrayLike, intercept: float) -> tuple[Learner, np.ndarray, float]:
        learner = _parts(self._fitted_learner())[number]
        self._check_tracked(learner)
        u = self._comparator(coef)
        self._check_intercept(intercept, self.t_, number)
        return learner, u, intercept

    def _gap(
        self,
        number: int,
        radius: float | None,
        largest_intercept: float | None,
        largest_divergence: float | None,
        weighted: bool,
    ) -> float:
        """The optimality gap of one learner."""
        learner = _parts(self._fitted_learner())[number]
        self._check_tracked(learner)
        held = self._held_intercepts(self.t_, number)
        if held:
            self._check_intercept(held[0], self.t_, number)
        return self._optimality_gap(
            learner,
            self._comparators().within(radius),
            weighted=weighted,
            largest_divergence=largest_divergence,
            largest_intercept=largest_intercept,
            held_intercept=held[0] if held else None,
        )

    def _comparators(self) -> Comparators:
        """The comparators of the certificate; of signed weights, their w+ followed by w-."""
        return Comparators.of(self._divergence, self._start.constraint)

    def _comparator(self, coef: ArrayLike) -> np.ndarray:
        """The weights of the learner that correspond to a comparator; ValueError if it violates the constraint."""
        n, (signed, _, constraint, *_) = self._n_weights, self._start
        u = starting_weights(self._divergence, coef, n, signed, name="coef")
        if signed and not self._is_feasible(u):
            coef = np.broadcast_to(np.asarray(coef, dtype=np.float64), n)
            halves = split(coef, self._divergence, constraint)
            if halves is None or not self._is_feasible(halves):
                minimal = np.r_[np.maximum(coef, 0), np.maximum(-coef, 0)]
                why = f"their domain is {self._divergence.domain}, their constraint {constraint!r}"
                if constraint is not None and not constraint.contains(minimal):
                    why = constraint.why_not(minimal, "(w+, w-)")
                raise ValueError(f"coef must be a difference of w+ and w- that this run could reach: {why}.")
            u = halves
        elif constraint is not None and not constraint.contains(u):
            raise ValueError(
                f"The certificate is only for comparators within the constraint: {constraint.why_not(u, 'coef')}."
            )
        return u

    def _is_feasible(self, u: np.ndarray) -> bool:
        try:
            self._divergence.check_domain(u, closed=True)
        except ValueError:
            return False
        return self._start.constraint is None or self._start.constraint.contains(u)

    def _check_intercept(self, intercept: float, t: int, number: int) -> None:
        """While the intercept is not learned, a comparator must have the same one."""
        if not np.isfinite(intercept):
            raise ValueError(f"intercept must be a finite number; got {intercept}.")
        held = self._held_intercepts(t, number)
        if any(abs(intercept - value) > 1e-12 * abs(value) for value in held):
            raise ValueError(
                "intercept must be that of the run where it was not learned, "
                f"{' and '.join(f'{value!r}' for value in held)}; got {intercept:g}"
                + ("." if len(set(held)) == 1 else ", and no certificate holds for both.")
            )

    def _held_intercepts(self, t: int, number: int) -> list[float]:
        """The different intercepts of the tracked rows for which none was learned."""
        return [values[number] for values in self._tracked.of("held_intercept", t) if values is not None]


def _parts(learner: Learner | MultiLearner) -> list[Learner]:
    return learner.learners if isinstance(learner, MultiLearner) else [learner]
