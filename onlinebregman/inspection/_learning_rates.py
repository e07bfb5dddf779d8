"""Losses of one model by learning rate."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..model_selection import LearningRateMixture, LearningRatePath
from ._base import Display, as_curve


class LearningRateDisplay(Display):
    """Losses of one online model with many learning rates, all learned in one pass.

    Parameters
    ----------
    eta0s : array-like of shape (n_rates,)
        The rates.
    losses : array-like of shape (n_rates,)
        Mean losses at these rates, each row predicted before it was learned.
    mixture_loss : float or None
        Mean loss of a mixture of them.
    {name}

    Attributes
    ----------
    {ax_, figure_}
    line_ : matplotlib Line2D
        The losses.
    best_ : matplotlib Line2D
        A mark at the best rate.
    mixture_line_ : matplotlib Line2D or None
        A horizontal line at the loss of the mixture.

    See Also
    --------
    ExpertWeightsDisplay : The weights of a mixture over the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import LearningRatePath
    >>> from onlinebregman.inspection import LearningRateDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5))
    >>> y = X @ [1.0, 2.0, 0.0, 0.0, -1.0] + 0.1 * rng.normal(size=2000)
    >>> path = LearningRatePath(eta0s=[0.001, 0.01, 0.1, 1.0], random_state=0).fit(X, y)
    >>> display = LearningRateDisplay.from_estimator(path)
    >>> print(display.losses.round(3), float(display.best_.get_xdata()[0]))
    [2.582 1.005 0.046 0.021] 1.0
    """

    def __init__(
        self,
        *,
        eta0s: ArrayLike,
        losses: ArrayLike,
        mixture_loss: float | None = None,
        name: str | None = None,
    ) -> None:
        self.eta0s = as_curve("eta0s", eta0s)
        self.losses = as_curve("losses", losses, self.eta0s)
        self.mixture_loss = mixture_loss
        self.name = name

    def plot(self, ax: Any = None, *, name: str | None = None, line_kw: dict[str, Any] | None = None) -> Self:
        """Plot the losses over the rates, both on logarithmic axes.

        Parameters
        ----------
        {ax, name, line_kw}

        Returns
        -------
        {display}
        """
        ax = self._open(ax)
        name = self.name if name is None else name
        (self.line_,) = ax.plot(self.eta0s, self.losses, **{"label": name, "marker": "."} | (line_kw or {}))
        color, best = self.line_.get_color(), int(np.nanargmin(self.losses))
        (self.best_,) = ax.plot(
            self.eta0s[best : best + 1], self.losses[best : best + 1], "o", color=color, markersize=9, fillstyle="none"
        )
        self.mixture_line_ = None
        if self.mixture_loss is not None:
            label = "mixture" if name is None else f"{name}: mixture"
            self.mixture_line_ = ax.axhline(self.mixture_loss, color=color, linestyle="--", label=label)
        ax.set(xscale="log", yscale="log", xlabel="learning rate eta0", ylabel="mean loss")
        self._explain()
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: LearningRatePath | LearningRateMixture,
        *,
        ax: Any = None,
        name: str | None = None,
        line_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Plot the losses of the models of a path or a mixture.

        Parameters
        ----------
        estimator : fitted LearningRatePath or LearningRateMixture
            The models. Their losses are divided by the number of rows.
        {ax, name, line_kw}

        Returns
        -------
        {display}
        """
        cls._pyplot()
        check_is_fitted(estimator)
        if not hasattr(estimator, "eta0s_"):
            raise ValueError(
                f"estimator must be a LearningRatePath or LearningRateMixture; got {type(estimator).__name__}."
            )
        mixture_loss = getattr(estimator, "cumulative_loss_", None)
        name = type(estimator.estimators_[0]).__name__ if name is None else name
        n_rows = max(estimator.t_, 1)
        return cls(
            eta0s=estimator.eta0s_,
            losses=estimator.cumulative_losses_ / n_rows,
            mixture_loss=None if mixture_loss is None else mixture_loss / n_rows,
            name=name,
        ).plot(ax, line_kw=line_kw)
