"""Regret certificates: bounds on the regret of a run, computed after it for any comparator."""

from __future__ import annotations

import numpy as np

from .._kernels.learners.learner import Learner
from ..divergences import Divergence
from ..divergences._numerics import TINY
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
        learner, intercept = self.learner, np.float64(intercept)
        first, last = map(np.float64, learner.tracked_rates[:2])
        if first == 0:
            return 0.0
        self.check_rates()
        slack, rows = learner.run["plain_slack"], learner.run["plain_rows"]
        bound = self.nearer_by(u, intercept) / first + slack
        if self.penalty is not None:
            bound += rows * self.penalty.value(u)
        if first == last:
            return a_number(float(bound))
        before, after = (self.distance(u, intercept, *each) for each in (learner.origin, learner.position))
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
        (start, start_intercept), (end, end_intercept) = learner.origin, learner.position
        if learner.geometry.adaptive:
            constant, g, slope = learner.geometry.nearer_by_terms
        else:
            constant, g = self.nearer_by_terms(start, end)
            constant += (start_intercept**2 - end_intercept**2) / 2
            slope = end_intercept - start_intercept
        farthest = comparators.support(g)
        if farthest == np.inf:
            raise ValueError(
                f"The bound is infinite over all comparators ({self.divergence.domain}); give a radius, "
                f"for those with norm_{comparators.order:g}(u) <= radius, or learn within a constraint."
            )
        if not fit_intercept:
            farthest += start_intercept * slope
        elif slope != 0:
            if largest_intercept is None or not 0 <= largest_intercept < np.inf:
                raise ValueError(
                    "The bound is infinite over all intercepts; give largest_intercept, a finite bound >= 0 on the "
                    f"sizes of those to compare with; got {largest_intercept}."
                )
            farthest += largest_intercept * abs(slope)
        if weighted:
            return a_number(float(constant + farthest + learner.run["slack"]))
        first, last = map(np.float64, learner.tracked_rates[:2])
        if first == 0:
            return 0.0
        self.check_rates()
        slack = learner.run["plain_slack"]
        bound = (constant + farthest) / first + slack
        if first != last:
            if largest_divergence is None or not 0 < largest_divergence < np.inf:
                raise ValueError(
                    "largest_divergence must be a finite bound on D(u, w_t) for all t and all comparators u, as rates "
                    f"fell; got {largest_divergence}. With weighted=True or learning_rate='constant' it is not needed."
                )
            bound += largest_divergence * (1 / last - 1 / first)
        return a_number(float(bound))

    def distance(self, u: np.ndarray, intercept: np.float64, w: np.ndarray, w_intercept: float) -> float:
        """D(u, w), the divergence of the intercept included."""
        return self.divergence.divergence(u, w) + (intercept - w_intercept) ** 2 / 2

    def nearer_by(self, u: np.ndarray, intercept: np.float64) -> float:
        """D(u, w_1) - D(u, w_{T+1}) = D(w_{T+1}, w_1) + <u - w_{T+1}, g>, see `nearer_by_terms`.

        The second form where the first one has lost half of its digits, as for steps that are tiny or u far away.
        """
        (start, b), (end, b_end) = self.learner.origin, self.learner.position
        if self.learner.geometry.adaptive:
            constant, g, slope = self.learner.geometry.nearer_by_terms
            return constant + g @ u + slope * intercept
        before, after = (self.distance(u, intercept, *each) for each in ((start, b), (end, b_end)))
        if not abs(before - after) < 1e-8 * before:
            return before - after
        _, g = self.nearer_by_terms(start, end)
        return self.distance(end, b_end, start, b) + float(np.vdot(u - end, g)) + (intercept - b_end) * (b_end - b)

    def nearer_by_terms(self, start: np.ndarray, end: np.ndarray) -> tuple[float, np.ndarray]:
        """The constant and the g of D(u, start) - D(u, end) = constant + <u, g>, with g = f(end) - f(start)."""
        divergence = self.divergence
        # the last float inside the domain, where weights have underflowed to its edge
        inside = [np.clip(w, divergence.lower + TINY, np.nextafter(divergence.upper, 0.0)) for w in (start, end)]
        g = divergence.mirror(inside[1]) - divergence.mirror(inside[0])
        return divergence.divergence(end, start) - float(np.vdot(end, g)), g

    def check_rates(self) -> None:
        """ValueError if rates increased, or those of an adaptive divergence changed."""
        first, last, rose = self.learner.tracked_rates
        if rose or (self.learner.geometry.adaptive and first != last):
            why = "rates increase during the run" if rose else f"the rates of {self.divergence!r} are not constant"
            raise ValueError(f"There is no bound on the regret itself if {why}; use weighted=True.")
