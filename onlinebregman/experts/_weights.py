"""The weights of experts, and what mixing costs: the one update behind all mixtures of this package."""

from __future__ import annotations

from math import expm1, inf, log, log1p
from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray

from .._sklearn_compat import Interval

Array = NDArray[np.float64]


class ExpertWeights:
    """Weights v_k ~ prior_k exp(-rate c_k) of K experts, c_k the losses so far, and the bound that goes with them.

    A row with losses l_k costs at least the mix loss -ln(sum v_k exp(-rate l_k)) / rate, and these add up to at most
    L_k - ln(prior_k) / rate for every expert. What the mixture lost beyond its mix losses is `gap`, so that for any
    losses

        loss of the mixture  <=  L_k - ln(prior_k) / rate + gap.

    The theorems say when the gap is zero (log loss at rate 1; losses that are exp-concave at this rate) or bound it
    (rate range^2 / 8 for each row, Hoeffding). With a rate of None it is -min ln(prior) / gap, which makes the two last
    terms equal (AdaHedge; compiled, for equal priors, in `_kernels.loop.hedge.Hedge`).

    Fixed share: after each row a fraction of the total weight is redistributed, v <- (1 - share) v + share prior. The
    same bound then holds against every sequence of experts, with the logarithm of the prior weight of the sequence.

    Nothing is changed in place: a copy of the object keeps what it was.

    Parameters
    ----------
    prior : ndarray of shape (n_experts,)
        Positive weights of sum 1.
    rate : float or None
    share : float, default=0.0
        Needs a rate that is a number.
    """

    def __init__(self, prior: Array, rate: float | None, share: float = 0.0) -> None:
        self.log_prior = np.log(prior)
        self.constant_rate, self.share = rate, share
        self.costs = np.zeros(len(prior))
        self.losses = np.zeros(len(prior))  # of the experts
        self.loss = 0.0  # of the mixture
        self.gap = 0.0
        self.n_rows = 0

    @property
    def rate(self) -> float:
        """The rate of the next row; infinite until a mixture has cost something, if it is adaptive."""
        if self.constant_rate is not None:
            return self.constant_rate
        price = -float(self.log_prior.min())
        return price / self.gap if self.gap > 0 and price > 0 else inf

    def log_weights(self) -> Array:
        """Logarithms of the weights, shape (n_experts,)."""
        rate, best = self.rate, self.costs.min()
        if rate == inf:
            logs = np.where(self.costs == best, self.log_prior, -inf)
        else:
            logs = self.log_prior - rate * (self.costs - best)
        return logs - log_sum_exp(logs)

    def learn(self, log_weights: Array, costs: Array, loss: float, losses: Array) -> None:
        """One row: the costs that move the weights, the mixture's loss, and the losses of the experts.

        `costs` are the losses, or their linear approximation at the mixture. Those at infinity have no weight any more;
        one with weight has to be finite.
        """
        rate = self.rate
        least = costs.min()
        if rate == inf:  # the weight is on the leaders: by how much does the best cost rise?
            mix = (self.costs + costs).min() - self.costs.min()
        else:
            mix = least - log_sum_exp(log_weights - rate * (costs - least)) / rate
        linear = loss if costs is losses else float(np.sum(np.exp(log_weights) * costs))
        self.gap += max(linear - float(mix), 0.0)
        self.costs = self.costs + costs
        if self.share:
            self._deal_out()
        self.losses = self.losses + losses
        self.loss += loss
        self.n_rows += 1

    def _deal_out(self) -> None:
        logs = self.log_weights()
        logs = np.logaddexp(logs + log1p(-self.share), self.log_prior + log(self.share))
        self.costs = (self.log_prior - logs) / self.rate

    def regret_bound(self, n_switches: int = 0) -> float:
        """Bound on the loss beyond that of the best expert, or of the best sequence with `n_switches` switches."""
        price = -float(self.log_prior.min())
        choices = price
        if self.share:
            # a sequence begins with weight prior, goes on with 1 - share + share prior, and switches with share prior
            stay = -log1p(-self.share * -expm1(-price))
            choices += max(self.n_rows - 1 - n_switches, 0) * stay + n_switches * (price - log(self.share))
        elif n_switches:
            return inf
        return choices / self.rate + self.gap


def log_sum_exp(logs: Array) -> float:
    """ln sum exp(logs); minus infinity for nothing but zeros."""
    top = float(logs.max())
    return top if top == -inf else top + log(float(np.exp(logs - top).sum()))


def are_numbers(*values) -> bool:
    """Are these numbers of a size that can be squared, and not NaN?"""
    return all(isinstance(value, Real) for value in values) and all(abs(value) <= 1e100 for value in values)


def hoeffding_rate(spread: float, n_rows: float, n_experts: int) -> float:
    """The rate at which losses within `spread` of each other have a regret of spread sqrt(n_rows ln(n_experts) / 2)."""
    return (8.0 * log(max(n_experts, 2)) / n_rows) ** 0.5 / spread


class History:
    """The last rows of a table that grows, in an array with room at its end.

    Tables made of one another share that array, and what has been written is never written again: the one from before
    a refused call still is what it was.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        Rows to begin with.
    """

    def __init__(self, rows: Array) -> None:
        self._array, self._first, self._last = rows, 0, len(rows)
        self._written = [len(rows)]  # rows of the array that are taken, by whoever shares it

    @property
    def rows(self) -> Array:
        """The rows, oldest first; not writeable."""
        rows = self._array[self._first : self._last]
        rows.flags.writeable = False
        return rows

    def extended(self, rows: list[Array], size: int) -> History:
        """The last `size` of these rows and further ones; a row costs O(n_columns) on average."""
        rows = rows[-size:]
        new = History.__new__(History)
        new._array, new._written, new._last = self._array, self._written, self._last + len(rows)
        new._first = max(self._first, new._last - size)
        if new._last > len(self._array) or self._written[0] != self._last:
            kept = self._array[new._first : self._last]
            new._array = np.empty((2 * (len(kept) + len(rows)), self._array.shape[1]))
            new._array[: len(kept)] = kept
            new._first, new._last, new._written = 0, len(kept) + len(rows), [0]
        new._array[new._last - len(rows) : new._last] = rows
        new._written[0] = new._last
        return new

    def __reduce__(self):
        return History, (self.rows.copy(),)


class RemembersWeights:
    """Keeps the weights of the last `history` rows.

    Parameters
    ----------
    history : int
        Number of most recent rows whose weights are stored in `weights_history_`; read at each call.

    Attributes
    ----------
    weights_history_ : ndarray of shape (n_rows, n_experts)
        Weights with which each of the last `history` rows was forecast; the argmax of each row is the leading expert.
    """

    _parameter_constraints: dict = {"history": [Interval(Integral, 0, None, closed="left")]}

    history: int

    @property
    def weights_history_(self) -> Array:
        """Weights with which each of the last `history` rows was forecast, shape (n_rows, n_experts); not writeable."""
        history = vars(self).get("_history")
        if history is None:
            raise AttributeError("weights_history_ is only stored for rows that are learned with history > 0")
        return history.rows

    def _forget(self, n_experts: int) -> None:
        self._history = History(np.empty((0, n_experts))) if self.history else None

    def _remember(self, weights: list[Array]) -> None:
        """Keep those of further rows, bound anew."""
        if weights:
            known = self._history or History(np.empty((0, len(weights[0]))))
            self._history = known.extended(weights, self.history)
