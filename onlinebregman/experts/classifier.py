"""Mixtures of experts that give probabilities of classes."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal

from numpy.typing import ArrayLike

from .._online.estimator import by_parameter
from .._online.types import RandomState
from .._sklearn_compat import Interval, StrOptions
from ._classifier import MixtureClassifier
from ._rates import given_rate, hoeffding_rate


class ExpertMixtureClassifier(MixtureClassifier):
    """Weighted mean of the class probabilities of experts, with weights that depend on their losses.

    The forecast is q = sum v_k p_k, and after each row the weights are updated by the losses of the experts ("average")
    or by the gradient of the loss of the mixture ("eg"), as in :class:`~onlinebregman.ExpertMixtureRegressor`. The
    average is nearly as good as the best expert, EG nearly as good as the best fixed mixture of experts; with `share` >
    0 this holds for sequences with few switches. Each row is forecast before it is learned.

    Parameters
    ----------
    {estimators, strategy}
    loss : {"log_loss", "brier"}
        -ln of the probability of the observed label, or half the squared distance from its indicator vector.
    learning_rate : {"adaptive", "theory"} or float
        The rate. "theory": for the average 1 with log loss and 1/2 with the Brier loss, without a gap; for EG with the
        Brier loss sqrt(2 ln K / T), for T = `n_rows`; for EG with log loss there is none. "adaptive": ln K / gap
        (AdaHedge). Read when learning starts, like the next three.
    share : float
        Fraction of the total weight that is redistributed after each row, below 1. If positive, the learning rate must
        be a number or "theory".
    n_rows : int or None
        Number of rows, if the theorem needs it.
    {prior, history, shuffle, random_state, handle_unknown, delayed}

    Attributes
    ----------
    {weights_, weights_history_, cumulative_loss_}
    expert_losses_ : ndarray of shape (n_experts,)
        Losses of the experts; infinite with log loss for one that gave an observed label probability 0.
    {regret_bound_, estimators_, classes_, t_, n_features_in_, feature_names_in_}

    See Also
    --------
    BayesMixture : The average under log-loss, at rate 1.
    ExpertMixtureRegressor : The same for numbers.

    Notes
    -----
    `regret_bound_` is ln K / rate + gap, where the gap is the accumulated cost of mixing. It is 0 for the average at
    the rates of "theory" (and rows of weight 1), as exp(-loss) and exp(-brier / 2) are concave in the forecast. For EG
    with the Brier loss the gradients of two experts differ by at most 2, which gives sqrt(2 T ln K).

    References
    ----------
    .. [1] N. Cesa-Bianchi, G. Lugosi, "Prediction, Learning, and Games", 2006, sections 3.3, 5.2 and 9.
    .. [2] M. Herbster, M. K. Warmuth, "Tracking the Best Expert", Machine Learning 32, 1998.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import ExpertMixtureClassifier, MirrorDescentClassifier, PNormClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 20))
    >>> y = np.where(X[:, 0] + X[:, 1] > 0, "up", "down")
    >>> experts = [("gd", MirrorDescentClassifier()), ("p-norm", PNormClassifier())]
    >>> mixture = ExpertMixtureClassifier(experts, random_state=0).fit(X, y)
    >>> regret = mixture.cumulative_loss_ - mixture.expert_losses_.min()
    >>> print(f"{regret:.2f} <= {mixture.regret_bound_:.2f}, which is ln 2 = {np.log(2):.2f}")
    0.69 <= 0.69, which is ln 2 = 0.69
    """

    _parameter_constraints: dict = {
        "strategy": [StrOptions({"average", "eg"})],
        "loss": [StrOptions({"log_loss", "brier"})],
        "learning_rate": [StrOptions({"adaptive", "theory"}), Interval(Real, 0, None, closed="neither")],
        "n_rows": [Interval(Integral, 1, None, closed="left"), None],
    }
    _strategy, _loss_parameter = by_parameter("strategy"), by_parameter("loss")

    def __init__(
        self,
        estimators: list[tuple[str, Any]] | None = None,
        *,
        strategy: Literal["average", "eg"] = "average",
        loss: Literal["log_loss", "brier"] = "log_loss",
        learning_rate: Literal["adaptive", "theory"] | float = "theory",
        share: float = 0.0,
        n_rows: int | None = None,
        prior: ArrayLike | None = None,
        history: int = 0,
        shuffle: bool = True,
        random_state: RandomState = None,
        handle_unknown: Literal["error", "add"] = "error",
        delayed: bool = False,
    ) -> None:
        self._set_arguments(locals())

    def _rate(self, n_experts: int) -> float | None:
        if self.learning_rate != "theory":
            return given_rate(self.learning_rate, self.share)
        if self.strategy == "average":
            return 1.0 if self.loss == "log_loss" else 0.5
        if self.loss == "log_loss":
            raise ValueError(
                "The gradient of the log loss is unbounded, so that learning_rate='theory' is not available for "
                "strategy='eg'; use 'adaptive', a number, or loss='brier'."
            )
        if self.n_rows is None:
            raise ValueError(
                "n_rows, the number of rows, must be given for learning_rate='theory' with strategy='eg'; got None."
            )
        return hoeffding_rate(2.0, self.n_rows, n_experts)
