"""Weights of experts over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ._base import Array, Display, as_curve


class ExpertWeightsDisplay(Display):
    """The weights of the experts or members of a mixture over the rows.

    Parameters
    ----------
    n_rows : array-like of shape (n_recorded,)
        Numbers of the rows that the weights belong to.
    weights : array-like of shape (n_recorded, n_experts)
        The weights.
    names : sequence of str or None
        Names of the experts; None: their numbers.

    Attributes
    ----------
    {ax_, figure_}
    lines_ : list of matplotlib Line2D
        One for each expert shown; empty for kind="area".
    areas_ : list of matplotlib PolyCollection
        The same for kind="area".

    See Also
    --------
    LearningRateDisplay : Losses of one model by its learning rate.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import ExpertMixtureRegressor
    >>> from onlinebregman.inspection import ExpertWeightsDisplay
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=400)
    >>> noise = np.where(np.arange(400)[:, np.newaxis] < 200, [0.1, 1.0], [1.0, 0.1])
    >>> forecasts = y[:, np.newaxis] + noise * rng.normal(size=(400, 2))
    >>> mixture = ExpertMixtureRegressor(learning_rate=0.5, share=0.01, history=400).partial_fit(forecasts, y)
    >>> display = ExpertWeightsDisplay.from_estimator(mixture, names=["first", "second"])
    >>> print([line.get_label() for line in display.lines_], display.weights[[150, 399], 0].round(1))
    ['first', 'second'] [1. 0.]
    """

    def __init__(self, *, n_rows: ArrayLike, weights: ArrayLike, names: Sequence[str] | None = None) -> None:
        self.n_rows = as_curve("n_rows", n_rows)
        self.weights: Array = np.asarray(weights, dtype=np.float64)
        if self.weights.ndim != 2 or len(self.weights) != len(self.n_rows):
            raise ValueError(
                f"weights have the shape {self.weights.shape}; give a row for each of the {len(self.n_rows)} n_rows."
            )
        self.names = [str(number) for number in range(self.weights.shape[1])] if names is None else list(names)
        if len(self.names) != self.weights.shape[1]:
            raise ValueError(f"{len(self.names)} names for {self.weights.shape[1]} experts; give one for each.")

    def plot(
        self,
        ax: Any = None,
        *,
        kind: Literal["line", "area"] = "line",
        n_shown: int = 8,
        line_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Plot the weights over the rows.

        Parameters
        ----------
        {ax}
        kind : {"line", "area"}, default="line"
            A line for each expert, or areas on top of each other.
        n_shown : int, default=8
            Number of experts shown separately, those with the largest mean weights; the others are combined.
        line_kw : dict or None, default=None
            Passed on to `Axes.plot`, or `Axes.stackplot`.

        Returns
        -------
        {display}
        """
        if kind not in ("line", "area"):
            raise ValueError(f"kind must be 'line' or 'area'; got {kind!r}.")
        if n_shown < 1:
            raise ValueError(f"n_shown must be an integer >= 1; got {n_shown!r}.")
        ax = self._open(ax)
        shown = np.sort(np.argsort(-self.weights.mean(axis=0), kind="stable")[:n_shown])
        curves, labels = self.weights[:, shown], [self.names[number] for number in shown]
        n_others = self.weights.shape[1] - len(shown)
        if n_others:
            others = self.weights.sum(axis=1) - curves.sum(axis=1)
            curves, labels = np.column_stack([curves, others]), [*labels, f"{n_others} others"]
        style = line_kw or {}
        self.lines_, self.areas_ = [], []
        if kind == "line":
            self.lines_ = [
                ax.plot(self.n_rows, curve, **{"label": label} | style)[0]
                for curve, label in zip(curves.T, labels, strict=True)
            ]
        else:
            self.areas_ = ax.stackplot(self.n_rows, curves.T, **{"labels": labels} | style)
        ax.set(xlabel="rows", ylabel="weight", ylim=(0, 1.02 if kind == "line" else 1))
        ax.margins(x=0)
        self._explain()
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        *,
        names: Sequence[str] | None = None,
        ax: Any = None,
        kind: Literal["line", "area"] = "line",
        n_shown: int = 8,
        line_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Plot the stored weights of a mixture.

        Parameters
        ----------
        estimator : fitted mixture
            Any with `weights_history_`: mixtures of experts store the weights of their last `history` rows;
            parameter-free models and :class:`~onlinebregman.LearningRateMixture` about 100 of them, for any number of
            rows.
        names : sequence of str or None, default=None
            Names of the experts. None: those in `estimators`, the names of columns, or the rates.
        {ax, kind, n_shown, line_kw}

        Returns
        -------
        {display}
        """
        cls._pyplot()
        check_is_fitted(estimator)
        if not hasattr(estimator, "weights_history_"):
            remedy = " set history > 0 before it learns" if "history" in estimator.get_params() else " take a mixture"
            raise ValueError(f"{type(estimator).__name__} has stored no weights over time;{remedy}.")
        weights = estimator.weights_history_
        if weights.ndim == 3:
            raise ValueError(
                f"This {type(estimator).__name__} has {len(weights)} outputs, each with weights of its own; give one "
                "of weights_history_ to the constructor, with weights_history_t_ as n_rows."
            )
        if not len(weights):
            raise ValueError(f"{type(estimator).__name__} has not stored any weights yet; let it learn more rows.")
        last = estimator.t_
        n_rows = getattr(estimator, "weights_history_t_", np.arange(last - len(weights) + 1, last + 1))
        return cls(
            n_rows=n_rows, weights=weights, names=_names(estimator, weights.shape[1]) if names is None else names
        ).plot(ax, kind=kind, n_shown=n_shown, line_kw=line_kw)


def _names(estimator: BaseEstimator, n_experts: int) -> list[str] | None:
    """The names of the experts of a mixture."""
    if getattr(estimator, "estimators", None):
        return [name for name, _ in estimator.estimators]
    if hasattr(estimator, "eta0s_"):
        return [f"eta0 = {eta0:.3g}" for eta0 in estimator.eta0s_]
    columns = getattr(estimator, "feature_names_in_", ())
    if len(columns) == n_experts:
        return list(columns)
    if len(getattr(estimator, "estimators_", ())) == n_experts:
        return [_described(model) for model in estimator.estimators_]
    return None


def _described(model: BaseEstimator) -> str:
    """The class of a model and its parameters that are numbers or strings other than the defaults."""
    defaults = type(model)().get_params(deep=False)
    changed = {
        key: value
        for key, value in model.get_params(deep=False).items()
        if isinstance(value, str | float) and value != defaults[key]
    }
    values = ", ".join(f"{value:.3g}" if isinstance(value, float) else value for value in changed.values())
    kind = type(model).__name__.removesuffix("Classifier").removesuffix("Regressor")
    return f"{kind}({values})"
