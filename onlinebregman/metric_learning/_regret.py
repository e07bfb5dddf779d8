"""The regret of a run of a metric learner: its certificate for each metric, and for the best of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._online.comparators import Comparators
from .._online.mirror import MirrorEstimator
from .._online.validation import check_symmetric


class MetricRegretMixin(MirrorEstimator):
    """Certificates of a learner of symmetric positive semidefinite matrices."""

    n_features_in_: int

    def regret_bound(
        self,
        U: ArrayLike | None = None,
        *,
        radius: float | None = None,
        largest_divergence: float | None = None,
        weighted: bool = False,
    ) -> float:
        """Bound on the regret of this run against a metric, or the best one, without assumptions on the data.

        For every positive definite U

            sum eta_t (L_t(W_t) - L_t(U))  <=  D(U, W_1) - D(U, W_{T+1}) + S,

        with eta_t the rate of instance t (its weight and scale included), L_t its loss, and S accumulated during the
        run, sum eta_t (L_t(W_t) - L_t(W_{t+1})) - D(W_{t+1}, W_t) for implicit steps. With `weighted` this right side
        is the bound, and the left side starts with `weighted_loss_`; by default the terms of each instance are divided
        by its rate, and the left side starts with `cumulative_loss_`.

        Without a metric the bound is the largest for all those within the radius, which nobody has to know. It is
        tr(U (f(W_{T+1}) - f(W_1))) for one multiple of a matrix of rank one, or of a projection of f(W_{T+1}) - f(W_1)
        in the Frobenius norm, plus terms without U.

        Parameters
        ----------
        U : array-like of shape (n_features, n_features), default=None
            The metric to compare with: symmetric positive semidefinite, positive definite for the LogDet divergence,
            and with the trace of the learner, if that is fixed. None: the best.
        radius : float, default=None
            Without U, compare with metrics of tr U <= radius only, or of Frobenius norm <= radius for
            `FrobeniusMetricLearner`. None if the learner has a fixed trace.
        {largest_divergence, weighted}

        Returns
        -------
        {bound}

        Raises
        ------
        {ValueError}
        """
        certificate, divergence = self._certificate(self._fitted_learner(), mixed=weighted), self._divergence
        metrics = Comparators(0.0, np.inf, getattr(divergence, "trace", None), divergence.norm).within(radius)
        if U is not None:
            values = np.linalg.eigvalsh(U := check_symmetric(U, "U", self.n_features_in_))
            if not values[0] >= -1e-12 * np.abs(values).max():
                raise ValueError(
                    f"U must be positive semidefinite; got a matrix with the eigenvalue {values[0]:g}. Project it "
                    "(SquaredFrobenius().project_psd)."
                )
        return certificate.bound(U, metrics, weighted, largest_divergence)
