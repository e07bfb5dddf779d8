"""What the theory promises for matrix exponentiated gradient: the paper's loss bounds, rates from them, and regret."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._theory import TheoryRate, theory_rate
from .._validation import check_symmetric
from ..schedules import Constant, Schedule


class LossBounds:
    """Bounds on the loss of a kernel learner, for its rate and update.

    All rest on tr(W(c) X) >= tr(W X) - c r^2 / 4 for instances whose extreme eigenvalues are at most r apart.
    """

    def loss_bound(self, kernel: ArrayLike, comparator_loss: float = 0.0) -> float:
        """What the theory promises for `cumulative_loss_` after the instances learned so far, at a constant rate eta.

        For every kernel U of trace one with the loss L_U = sum (tr(U X) - y)^2 / 2, and r the spread of the instances,

            explicit, eta r^2 <= 4:    loss <= 4 / (4 - eta r^2) L_U + D(U, W_1) / eta
            implicit, any eta:         loss <= (1 + eta r^2 / 4) (L_U + D(U, W_1) / eta).

        The first is Lemma 3.2 of the paper with the best constants for eta. The second follows from
        tr(W(c) X) >= tr(W X) - c r^2 / 4, which the first rests on as well.

        Parameters
        ----------
        kernel : array-like of shape (n_features, n_features)
            U, symmetric positive semidefinite of trace one.
        comparator_loss : float, default=0.0
            L_U; 0 if the targets are those of U. With `scale_eta`, an instance that was learned while `spread_` was
            smaller by a factor f counts f^2 times.

        Returns
        -------
        bound : float
            The bound; infinite for explicit steps with eta r^2 = 4 and a positive comparator loss.

        Raises
        ------
        ValueError
            If U is no such kernel, or the theory says nothing: rates that change, or explicit steps with eta r^2 > 4.
            It does not cover sample weights above one either, which is not checked.
        """
        check_is_fitted(self)
        schedule = self._schedule()
        if schedule.power != 0:
            raise ValueError(
                f"There is a bound for constant rates only, not for {schedule!r}; use learning_rate='constant'."
            )
        if not 0 <= comparator_loss < np.inf:
            raise ValueError(f"comparator_loss = {comparator_loss!r}, but a sum of squares is finite and >= 0.")
        rate = schedule.scale if self._scaled else schedule.scale * self.spread_**2  # eta r^2
        U = check_symmetric(kernel, "kernel", self.n_features_in_)
        divergence = self.divergence_.divergence(U, self._first)
        start = divergence * self.spread_**2 / rate
        if self.update == "implicit":
            return (1 + rate / 4) * (comparator_loss + start)
        if rate > 4:
            raise ValueError(
                f"There is no bound for explicit steps with eta = {rate:g} / spread^2, above 4 / spread^2; "
                "use a lower eta0 or update='implicit'."
            )
        if comparator_loss == 0:
            return start
        return start + (comparator_loss / (1 - rate / 4) if rate < 4 else np.inf)

    @property
    def regret_bound_(self) -> float:
        """The theorem's bound on `cumulative_loss_` minus a kernel's loss, under learning_rate="theory".

        It holds for all kernels and instances that keep to `data_bounds`: L <= factor L_U + constant, and the bound is
        (factor - 1) data_bounds["loss"] + constant, losses being multiplied by the weights of their instances.

        The rate is made for instances of weight 1 or less. Heavier ones, of weight h at most, are learned at up to h
        times the rate, for which the bound is larger, and for explicit steps can be infinite.
        """
        self._fitted_learner()
        if self.learning_rate != "theory":
            raise AttributeError("regret_bound_ is the theorem's; it needs learning_rate='theory' with its data_bounds")
        if "loss" not in self.data_bounds:
            raise AttributeError("regret_bound_ for the squared loss needs data_bounds['loss'], the comparator's loss")
        return self._theory().regret(self.data_bounds["loss"])

    def regret_certificate(self, kernel: ArrayLike) -> float:
        """Bound on the regret of this very run against a kernel: no assumption on the data.

        For every positive semidefinite U of trace one

            sum eta_t (L_t(W_t) - L_t(U))  <=  D(U, W_1) - D(U, W_{T+1}) + S,

        the right side, with eta_t the rate of instance t times its weight, and S what the run itself accumulated:
        explicit steps sum D(W_t, W_{t+1}), implicit ones sum eta_t (L_t(W_t) - L_t(W_{t+1})) - D(W_{t+1}, W_t). The
        left side starts with `weighted_loss_`.

        Parameters
        ----------
        kernel : array-like of shape (n_features, n_features)
            U, symmetric positive semidefinite of trace one.

        Returns
        -------
        bound : float
            The right side, from the instance on at which `track_regret` was set.

        Raises
        ------
        ValueError
            If U is no such kernel, or the run was not tracked.
        """
        learner = self._fitted_learner()
        return self._certificate(learner, check_symmetric(kernel, "kernel", self.n_features_in_))

    @property
    def weighted_loss_(self) -> float:
        """Sum of eta_t L_t(W_t), rates times weights times losses before each step, since regret is tracked."""
        return self._fitted_learner().weighted_loss

    @property
    def _scaled(self) -> bool:
        """Is the rate divided by the square of the spread?"""
        return self.scale_eta and self.learning_rate != "theory"

    def _schedule(self) -> Schedule:
        return Constant(self._theory().eta0) if self.learning_rate == "theory" else super()._schedule()

    def _theory(self) -> TheoryRate:
        if self.init is not None:
            raise ValueError("learning_rate='theory' is for the kernel at which init=None starts; leave init out.")
        divergence, loss = self.divergence_, self._learned_loss
        bounds, d = self.data_bounds, self.n_features_in_
        heaviest = self._largest_weight
        return theory_rate(
            divergence, loss, self.update, bounds, d, signed=False, fit_intercept=False, largest_weight=heaviest
        )
