"""The regret of a run of a metric learner: its certificate for each metric, and for the best of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._online.comparators import Comparators
from .._online.mirror import MirrorMixin
from .._online.validation import check_symmetric


class MetricRegretMixin(MirrorMixin):
    """Certificates of a learner of symmetric positive semidefinite matrices."""

    n_features_in_: int

    def regret_certificate(self, U: ArrayLike) -> float:
        """Bound on the regret of this run against a fixed metric, without assumptions on the data.

        For every positive definite U

            sum eta_t (L_t(W_t) - L_t(U))  <=  D(U, W_1) - D(U, W_{T+1}) + S,

        the right side, with eta_t the rate of instance t (its weight and scale included), L_t its loss, and S
        accumulated during the run, sum eta_t (L_t(W_t) - L_t(W_{t+1})) - D(W_{t+1}, W_t) for implicit steps. The left
        side starts with `weighted_loss_`.

        Parameters
        ----------
        U : array-like of shape (n_features, n_features)
            The metric to compare with: symmetric positive semidefinite, positive definite for the LogDet divergence,
            and with the trace of the learner, if that is fixed.

        Returns
        -------
        {bound}

        Raises
        ------
        ValueError
            If U is not such a metric, or regret was not tracked.
        """
        learner, U = self._fitted_learner(), check_symmetric(U, "U", self.n_features_in_)
        values = np.linalg.eigvalsh(U)
        if not values[0] >= -1e-12 * np.abs(values).max():
            raise ValueError(
                f"U must be positive semidefinite; got a matrix with the eigenvalue {values[0]:g}. Project it "
                "(SquaredFrobenius().project_psd)."
            )
        return self._certificate(learner, mixed=True).weighted(U)

    def optimality_gap(
        self, radius: float | None = None, *, largest_divergence: float | None = None, weighted: bool = False
    ) -> float:
        """Bound on the regret of this run against the best metric, which need not be known.

        The largest value, for metrics U within the radius, of `regret_certificate` over the constant rate: whatever
        the data, `cumulative_loss_` minus it is at most the loss of the best of them, if regret was tracked from the
        first instance on. It is tr(U (f(W_{T+1}) - f(W_1))) for one multiple of a matrix of rank one, or of a
        projection of f(W_{T+1}) - f(W_1) in the Frobenius norm, plus terms without U.

        Parameters
        ----------
        radius : float, default=None
            Compare with metrics of tr U <= radius only, or of Frobenius norm <= radius for `FrobeniusMetricLearner`.
            None if the learner has a fixed trace.
        {largest_divergence, weighted}

        Returns
        -------
        {gap}

        Raises
        ------
        {ValueError}
        """
        learner, divergence = self._fitted_learner(), self._divergence
        metrics = Comparators(0.0, np.inf, getattr(divergence, "trace", None), divergence.norm).within(radius)
        return self._certificate(learner).gap(metrics, weighted=weighted, largest_divergence=largest_divergence)
