"""The Bayes mixture: experts weighted by the probability they gave to all that came."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from ._classifier import MixtureClassifier


class BayesMixture(MixtureClassifier):
    """Bayes mixture of experts that give probabilities of classes: its log-loss is that of the best plus ln K at most.

    The forecast is q = sum v_k p_k, and when y came, v_k ~ v_k p_k(y): Bayes' rule. The mixture's losses add up to
    -ln sum prior_k exp(-L_k), for any stream, so that

        loss of the mixture  <=  L_k + ln(1 / prior_k)    for every expert k.

    With `share` > 0 a part of all weight is dealt out again after each row, Bayes' rule for an expert that may change
    at any time: the loss is that of the best *sequence* of experts plus `tracking_bound` at most.

    Parameters
    ----------
    {estimators, share, prior, history}

    Attributes
    ----------
    weights_ : ndarray of shape (n_experts,)
        Weights in the next forecast: the posterior probabilities of the experts.
    {weights_history_}
    cumulative_loss_ : float
        Log-loss of the mixture.
    expert_losses_ : ndarray of shape (n_experts,)
        Log-losses of the experts; infinite for one that was certain, and wrong.
    regret_bound_ : float
        Bound on `cumulative_loss_` beyond the loss of the best expert: ln K for equal priors and rows of weight 1.
    {estimators_, classes_, t_, n_features_in_, feature_names_in_}

    See Also
    --------
    ExpertMixtureClassifier : Other losses, rates, and EG.

    References
    ----------
    .. [1] R. Schapire, COS 511, lecture 20: "Maximum entropy", its last section, on on-line log-loss.
    .. [2] M. Herbster, M. K. Warmuth, "Tracking the Best Expert", Machine Learning 32, 1998.

    Examples
    --------
    Three forecasters of rain, one of whom knows something:

    >>> import numpy as np
    >>> from onlinebregman import BayesMixture
    >>> rng = np.random.default_rng(0)
    >>> chance = rng.uniform(size=300)
    >>> rain = rng.uniform(size=300) < chance
    >>> forecasts = np.column_stack([np.full(300, 0.5), chance, rng.uniform(size=300)])
    >>> mixture = BayesMixture().fit(forecasts, rain)
    >>> print(mixture.weights_.round(3), bool(mixture.cumulative_loss_ <= mixture.expert_losses_.min() + np.log(3)))
    [0. 1. 0.] True
    """

    def __init__(
        self,
        estimators: list[tuple[str, Any]] | None = None,
        *,
        share: float = 0.0,
        prior: ArrayLike | None = None,
        history: int = 0,
    ) -> None:
        self.estimators = estimators
        self.share = share
        self.prior = prior
        self.history = history

    def _rate(self, n_experts: int) -> float:
        return 1.0
