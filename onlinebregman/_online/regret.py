"""Regret certificates: bounds on the regret of a run, computed after it for any comparator."""

from __future__ import annotations

import numpy as np

from .._kernels.learners.learner import Learner
from ..divergences import Divergence
from ..divergences._numerics import EPS, TINY
from ..penalties import Penalty
from .comparators import Comparators
from .validation import a_number


class Certificate:
    """Bounds on the regret of one learner since it has been tracked, under constant parameters.

    With S the learner's `slack`, for every comparator u, the intercept included,

        sum eta_t (L_t(w_t) - L_t(u))  <=  D(u, w_1) - D(u, w_{T+1}) + S.
    """

    def __init__(self, learner: Learner, divergence: Divergence, penalty: Penalty | None) -> None:
        if learner.origin is None:
            raise ValueError("There is no regret certificate of this run; set track_regret=True before learning.")
        self.learner, self.divergence, self.penalty = learner, divergence, penalty

    def bound(
        self, u: np.ndarray | None, comparators: Comparators, weighted: bool, largest_divergence: float | None
    ) -> float:
        """The bound for u, or the largest one for these comparators; on losses times rates if `weighted`."""
        if u is None:
            return self.to_the_best(comparators, weighted=weighted, largest_divergence=largest_divergence)
        return self.weighted(u) if weighted else self.unweighted(u, 0.0, largest_divergence)

    @np.errstate(over="ignore", invalid="ignore")
    def weighted(self, u: np.ndarray, intercept: float = 0.0) -> float:
        """D(u, w_1) - D(u, w_{T+1}) + S, the divergence of the intercept included."""
        learner = self.learner
        nearer_by = self.nearer_by(u, np.float64(intercept))
        if self.penalty is not None:
            nearer_by += learner.run["rate_sum"] * self.penalty.value(u)
        return a_number(float(nearer_by + learner.run["slack"]))

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")  # rates may underflow, too
    def unweighted(self, u: np.ndarray, intercept: float, largest: float | None) -> float:
        """A bound on sum weight_t (L_t(w_t) - L_t(u)): the certificate with each row's terms divided by its rate.

        As rates never increase, the sum of (D(u, w_t) - D(u, w_{t+1})) / eta_t is at most D(u, w_1) / eta_1 -
        D(u, w_{T+1}) / eta_T + (1 / eta_T - 1 / eta_1) times the largest D(u, w_t).
        """
        run, intercept = self.learner.run, np.float64(intercept)
        first, last = self.rates()
        if first == 0:
            return 0.0
        bound = self.nearer_by(u, intercept) / first + run["plain_slack"]
        if self.penalty is not None:
            bound += run["plain_rows"] * self.penalty.value(u)
        if first == last:
            return a_number(float(bound))
        before, after = self.distances(u, intercept)
        if largest is None or not max(before, after) <= largest < np.inf:
            raise ValueError(
                "largest_divergence must be a bound on D(u, w_t) for all t where rates fall, which is at least "
                f"{max(before, after):g} for this comparator; got {largest}. Within an L2Ball of radius r the squared "
                "Euclidean divergence is at most (norm_2(coef) + r)^2 / 2."
            )
        return a_number(float(bound + (largest - after) * (1 / last - 1 / first)))

    def to_the_best(
        self,
        comparators: Comparators,
        *,
        weighted: bool,
        largest_divergence: float | None,
        fit_intercept: bool = False,
        largest_intercept: float | None = None,
    ) -> float:
        """The largest bound on sum weight_t (L_t(w_t) - L_t(u) - R(u)) over a set of comparators u.

        The certificate is affine in u = (coef, intercept), so that its maximum is a value of the support function of
        the set. Of rates that fall, the inequality of `unweighted` without D(u, w_{T+1}) (1 / eta_T - 1 / eta_1), which
        is not affine. An intercept that is not learned is that of all comparators.
        """
        learner = self.learner
        constant, g, slope = self.terms()
        farthest = comparators.support(g)
        if farthest == np.inf:
            raise ValueError(
                f"The bound is infinite over all comparators ({self.divergence.domain}); give a radius, "
                f"for those with norm_{comparators.order:g}(u) <= radius, or learn within a constraint."
            )
        if not fit_intercept:
            farthest += learner.origin[1] * slope
        elif slope != 0:
            if largest_intercept is None or not 0 <= largest_intercept < np.inf:
                raise ValueError(
                    "The bound is infinite over all intercepts; give largest_intercept, a finite bound >= 0 on the "
                    f"sizes of those to compare with; got {largest_intercept}."
                )
            farthest += largest_intercept * abs(slope)
        if weighted:
            return a_number(float(constant + farthest + learner.run["slack"]))
        first, last = self.rates()
        if first == 0:
            return 0.0
        bound = (constant + farthest) / first + learner.run["plain_slack"]
        if first != last:
            if largest_divergence is None or not 0 < largest_divergence < np.inf:
                raise ValueError(
                    "largest_divergence must be a finite bound on D(u, w_t) for all t and all comparators u, as rates "
                    f"fell; got {largest_divergence}. With weighted=True or learning_rate='constant' it is not needed."
                )
            bound += largest_divergence * (1 / last - 1 / first)
        return a_number(float(bound))

    def distances(self, u: np.ndarray, intercept: np.float64) -> list[float]:
        """D(u, w_1) and D(u, w_{T+1}), the divergence of the intercept included."""
        ends = (self.learner.origin, self.learner.position)
        return [self.divergence.divergence(u, w) + (intercept - b) ** 2 / 2 for w, b in ends]

    def nearer_by(self, u: np.ndarray, intercept: np.float64) -> float:
        """D(u, w_1) - D(u, w_{T+1}), or its other form by `terms`, if that is larger: digits may be lost in either."""
        constant, g, slope = self.terms()
        by_terms = constant + float(np.vdot(u, g)) + slope * intercept
        if self.learner.geometry.adaptive:
            return by_terms
        before, after = self.distances(u, intercept)
        return max(before - after, by_terms)

    def terms(self) -> tuple[float, np.ndarray, float]:
        """The constant, the slopes g in u, and that in the intercept of sums of D(u, w_t) - D(u, w_{t+1})."""
        learner = self.learner
        if learner.geometry.adaptive:
            return learner.geometry.nearer_by_terms
        (start, b), (end, b_end) = learner.origin, learner.position
        constant, g = self.nearer_by_terms(start, end)
        return constant + (b**2 - b_end**2) / 2, g, b_end - b

    def nearer_by_terms(self, start: np.ndarray, end: np.ndarray) -> tuple[float, np.ndarray]:
        """The constant and the g of D(u, start) - D(u, end) = constant + <u, g>, with g = f(end) - f(start).

        Of steps below the last digits of the weights these are what rounding may have left out, for u of their signs.
        """
        divergence = self.divergence
        # the last float inside the domain, where weights have underflowed to its edge
        inside = [np.clip(w, divergence.lower + TINY, np.nextafter(divergence.upper, 0.0)) for w in (start, end)]
        mirrored = [divergence.mirror(w) for w in inside]
        g = mirrored[1] - mirrored[0]
        lost = self.learner.t * np.abs(divergence.mirror(inside[1] * (1.0 - EPS)) - mirrored[1])
        if lost.ndim == 2:  # of positive semidefinite matrices
            lost = np.linalg.norm(lost) * np.eye(len(lost))
        constant = divergence.divergence(end, start) - float(np.vdot(end, g)) + float(np.vdot(np.abs(end), lost))
        return constant, g + np.sign(end) * lost

    def rates(self) -> tuple[np.float64, np.float64]:
        """The first and the last; ValueError if they increased, or those of an adaptive divergence changed."""
        first, last, rose = self.learner.tracked_rates
        if first > 0 and (rose or (self.learner.geometry.adaptive and first != last)):
            why = "rates increase during the run" if rose else f"the rates of {self.divergence!r} are not constant"
            raise ValueError(f"There is no bound on the regret itself if {why}; use weighted=True.")
        return np.float64(first), np.float64(last)
