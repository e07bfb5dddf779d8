"""The Bayes mixture: experts weighted by the probability they gave to all labels so far."""

from __future__ import annotations

from typing import Any, Literal

from numpy.typing import ArrayLike

from .._online.types import RandomState
from ._classifier import MixtureClassifier


class BayesMixture(MixtureClassifier):
    """Bayes mixture of experts that give class probabilities: its log loss is at most that of the best expert + ln K.

    The forecast is q = sum v_k p_k, and after observing y, v_k ~ v_k p_k(y): Bayes' rule. The losses of the mixture add
    up to -ln sum prior_k exp(-L_k), for any stream of rows of weight 1, so that

        loss of the mixture  <=  L_k + ln(1 / prior_k)    for every expert k.

    This also holds for weights below 1; larger ones add a cost, which `regret_bound_` includes.

    With `share` > 0 a fraction of the total weight is redistributed after each row, which is Bayes' rule for a best
    expert that may change at any time: the loss is at most that of the best *sequence* of experts + `tracking_bound`.

    Parameters
    ----------
    {estimators, share, prior, history, shuffle, random_state, handle_unknown, delayed}

    Attributes
    ----------
    weights_ : ndarray of shape (n_experts,)
        Weights in the next forecast: the posterior probabilities of the experts.
    {weights_history_}
    cumulative_loss_ : float
        Log-loss of the mixture.
    expert_losses_ : ndarray of shape (n_experts,)
        Log losses of the experts; infinite for one that gave an observed label probability 0.
    regret_bound_ : float
        Bound on `cumulative_loss_` minus the loss of the best expert: ln K for equal priors and rows of weight <= 1.
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
    Three forecasters of rain, one of which is informative:

    >>> import numpy as np
    >>> from onlinebregman import BayesMixture
    >>> rng = np.random.default_rng(0)
    >>> chance = rng.uniform(size=300)
    >>> rain = rng.uniform(size=300) < chance
    >>> forecasts = np.column_stack([np.full(300, 0.5), chance, rng.uniform(size=300)])
    >>> mixture = BayesMixture(shuffle=False).fit(forecasts, rain)
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
        shuffle: bool = True,
        random_state: RandomState = None,
        handle_unknown: Literal["error", "add"] = "error",
        delayed: bool = False,
    ) -> None:
        self._set_arguments(locals())
