"""Guarantees for matrix exponentiated gradient: the loss bounds of the paper, rates derived from them, and regret."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._kernels.learners.spreads import SpreadLearner
from .._online.comparators import Comparators
from .._online.mirror import MirrorEstimator
from .._online.theory import TheoryRate, theory_rate
from .._online.validation import check_learned, check_symmetric


class LossBoundsMixin(MirrorEstimator):
    """Bounds on the loss of a kernel learner, for the rate and update that its instances were learned with.

    All rest on tr(W(c) X) >= tr(W X) - c r^2 / 4 for instances whose extreme eigenvalues are at most r apart.
    """

    _learner_type = SpreadLearner
    # Attributes of the estimators that inherit from this class
    scale_eta: bool
    data_bounds: dict[str, float] | None
    n_features_in_: int
    _first: np.ndarray

    @property
    def spread_(self) -> float:
        """Largest difference between the extreme eigenvalues of an instance so far."""
        return self._fitted_learner().spread

    def loss_bound(self, kernel: ArrayLike, comparator_loss: float = 0.0) -> float:
        """Bound on `cumulative_loss_` after the instances learned so far, for a constant rate eta.

        For every kernel U of trace one with the loss L_U = sum (tr(U X) - y)^2 / 2, and r the spread of the instances,

            explicit, h eta r^2 <= 4:    loss <= 4 / (4 - h eta r^2) L_U + D(U, W_1) / eta
            implicit, any eta:           loss <= (1 + h eta r^2 / 4) (L_U + D(U, W_1) / eta),

        where h is the largest sample weight, at least 1, and losses are multiplied by the weights of their instances.
        The first is Lemma 3.2 of the paper with the best constants for eta. The second follows from tr(W(c) X) >= tr(W
        X) - c r^2 / 4, on which the first is also based. Both are sums over instances, counted in every epoch; an
        instance of weight h is learned at h times the rate.

        Parameters
        ----------
        kernel : array-like of shape (n_features, n_features)
            U, symmetric positive semidefinite of trace one.
        comparator_loss : float, default=0.0
            L_U, each instance as often as it was learned; 0 if the targets are those of U. With `scale_eta`, an
            instance that was learned while `spread_` was smaller by a factor f counts f^2 times.

        Returns
        -------
        bound : float
            The bound; infinite for explicit steps with h eta r^2 = 4 and a positive comparator loss.

        Raises
        ------
        ValueError
            If U is not such a kernel, or the theory does not apply: rates that change, by their schedule or because
            parameters were set in mid-stream, or explicit steps with h eta r^2 > 4.
        """
        check_learned(self)
        self._check_one_run()
        schedule = self._schedule()
        if not (schedule.is_power_law and schedule.power == 0):
            raise ValueError("There is a bound for constant rates only; use learning_rate='constant'.")
        if not 0 <= comparator_loss < np.inf:
            raise ValueError(f"comparator_loss must be a finite number >= 0; got {comparator_loss!r}.")
        rate = schedule.scale if self._scaled else schedule.scale * self.spread_**2  # eta r^2
        divergence = self.divergence_.divergence(self._comparator(kernel), self._first)
        if rate == 0:  # nothing has been learned
            return 0.0
        start = divergence * self.spread_**2 / rate
        fastest = self._learner.largest_weight * rate
        if self._update == "implicit":
            return (1 + fastest / 4) * (comparator_loss + start)
        if fastest > 4 * (1 + 1e-12):  # the square of a pair's length is 1 up to rounding
            raise ValueError(
                f"There is no bound for explicit steps with eta = {fastest:g} / spread^2, above 4 / spread^2, sample "
                "weights included; use a lower eta0 or update='implicit'."
            )
        if comparator_loss == 0:
            return start
        return start + (comparator_loss / (1 - fastest / 4) if fastest < 4 else np.inf)

    @property
    def theory_bound_(self) -> float:
        """The theorem's bound on `cumulative_loss_` minus a kernel's loss, under learning_rate="theory".

        It holds for all kernels and instances within the `data_bounds` they were learned with: L <= factor L_U +
        constant, and the bound is (factor - 1) data_bounds["loss"] + constant, with losses multiplied by the weights of
        their instances, and each instance counted as often as it was learned.

        The rate assumes weights of at most 1. Instances of larger weight, at most h, are learned at up to h times the
        rate, for which the bound is larger; for explicit steps it can be infinite.
        """
        self._fitted_learner()
        if self.learning_rate != "theory":
            raise AttributeError("theory_bound_ requires learning_rate='theory' with its data_bounds")
        self._check_one_run()
        bounds = self.data_bounds or {}
        if "loss" not in bounds:
            raise AttributeError("theory_bound_ for the squared loss needs data_bounds['loss'], the comparator's loss")
        if self.spread_ > (1 + 1e-12) * bounds["x"]:
            raise AttributeError(
                f"theory_bound_ is for instances of spread data_bounds['x'] = {bounds['x']:g} at most, but one of "
                f"spread {self.spread_:g} was learned; raise it and fit again"
            )
        return self._theory().regret(bounds["loss"])

    def regret_bound(
        self, kernel: ArrayLike | None = None, *, largest_divergence: float | None = None, weighted: bool = False
    ) -> float:
        """Bound on the regret of this run against a kernel, or the best one, without assumptions on the data.

        For every positive semidefinite U of trace one

            sum eta_t (L_t(W_t) - L_t(U))  <=  D(U, W_1) - D(U, W_{T+1}) + S,

        with eta_t the rate of instance t times its weight, and S accumulated during the run: for explicit steps sum
        D(W_t, W_{t+1}), for implicit steps sum eta_t (L_t(W_t) - L_t(W_{t+1})) - D(W_{t+1}, W_t). With `weighted` this
        right side is the bound, and the left side starts with `weighted_loss_`; by default the terms of each instance
        are divided by its rate, and the left side starts with `cumulative_loss_`. With `scale_eta` losses are divided
        by the square of the spread at which they were learned; that of pairs is 1.

        Without a kernel the bound is the largest for all of them, that of the largest eigenvalue of log W_{T+1} - log
        W_1: the loss of the run minus it is at most that of the best kernel, which nobody has to know.

        Parameters
        ----------
        kernel : array-like of shape (n_features, n_features), default=None
            U, symmetric positive semidefinite of trace one. None: the best.
        {largest_divergence, weighted}

        Returns
        -------
        {bound}

        Raises
        ------
        {ValueError}
        """
        certificate = self._certificate(self._fitted_learner(), mixed=weighted)
        kernels = Comparators(0.0, np.inf, 1.0, self._divergence.norm)
        U = None if kernel is None else self._comparator(kernel)
        return certificate.bound(U, kernels, weighted, largest_divergence)

    def _comparator(self, kernel: ArrayLike) -> np.ndarray:
        """A kernel to compare with: symmetric, positive semidefinite, of trace one."""
        U = check_symmetric(kernel, "kernel", self.n_features_in_)
        least, total = float(np.linalg.eigvalsh(U)[0]), float(np.trace(U))
        if not least >= -1e-12 * abs(total):
            raise ValueError(
                f"kernel has the eigenvalue {least:g}, but kernels to compare with must be positive semidefinite; "
                "project it (SquaredFrobenius().project_psd) and divide by its trace."
            )
        if not abs(total - 1) <= 1e-8:
            raise ValueError(
                f"kernel has the trace {total:.10g}, but kernels to compare with must have trace 1; divide by it."
            )
        return U

    @property
    def _scaled(self) -> bool:
        """Whether the rate is divided by the square of the spread."""
        return self.scale_eta and self.learning_rate != "theory"

    def _theory(self, rows: int = 0) -> TheoryRate:
        if self.init is not None:
            raise ValueError("learning_rate='theory' requires init=None.")
        return theory_rate(
            self.divergence_,
            self._learned_loss,
            self._update,
            self.data_bounds,
            self.n_features_in_,
            signed=False,
            fit_intercept=False,
            largest_weight=self._learner.largest_weight,
        )
