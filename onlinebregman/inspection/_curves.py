"""Curves over the rows of a stream, or over learning rates: scores, regret, losses and weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from .._online.types import MatrixLike
from ..losses import Loss, resolve_loss
from ..model_selection import LearningRateMixture, LearningRatePath, progressive_val_score
from ._base import Display, Style, as_curve
from ._regret import regret_of


@dataclass(kw_only=True, eq=False, repr=False)
class ProgressiveScoreDisplay(Display):
    """How well a model predicted the rows of a stream before it learned them.

    Created by `from_estimator`, or by `from_result` from the result of
    :func:`~onlinebregman.model_selection.progressive_val_score`.

    Parameters
    ----------
    n_rows : array-like of shape (n_points,)
        Rows of the stream up to each point.
    curve : array-like of shape (n_points,)
        Score of all rows up to each point.
    window_scores : array-like of shape (n_points,) or None
        Score of the rows since the previous point.
    score_name : str
        Name of the score, for the axis.
    {name}

    Attributes
    ----------
    {ax_, figure_}
    line_, window_line_ : matplotlib Line2D or None
        The score up to each point, and that of the rows between the points.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import ImplicitGDRegressor
    >>> from onlinebregman.inspection import ProgressiveScoreDisplay
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> display = ProgressiveScoreDisplay.from_estimator(ImplicitGDRegressor(), X, X.sum(axis=1), n_points=4)
    """

    n_rows: ArrayLike
    curve: ArrayLike
    window_scores: ArrayLike | None = None
    score_name: str = "score"
    name: str | None = None

    _vectors = ("n_rows", "curve", "window_scores")

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        windows: bool = False,
        negate: bool = False,
        line_kw: Style = None,
    ) -> Self:
        """Plot the score over the rows.

        Parameters
        ----------
        {ax, name}
        windows : bool, default=False
            Also plot the scores of the rows between the points, as a thin line, which shows drift sooner.
        negate : bool, default=False
            Plot minus the score: a loss, for scorers whose names begin with "neg_".
        {line_kw}

        {Returns}
        """
        if windows and self.window_scores is None:
            raise ValueError("windows=True, but there are no window_scores; give them to the constructor.")
        self._open(ax)
        name = self.name if name is None else name
        sign, score_name = (-1.0, self.score_name.removeprefix("neg_")) if negate else (1.0, self.score_name)
        self.line_ = self._line(self.n_rows, np.multiply(sign, self.curve), line_kw, label=name)
        scores = np.multiply(sign, self.window_scores) if windows and self.window_scores is not None else None
        self.window_line_ = self._line(self.n_rows, scores, color=self.line_.get_color(), linewidth=0.8, alpha=0.6)
        return self._close(xlabel="rows", ylabel=score_name)

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ArrayLike | Iterable[tuple],
        y: ArrayLike | None = None,
        *,
        scoring: str | Callable | None = None,
        chunk_size: int | None = None,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        warm_start: bool = False,
        n_points: int | None = 100,
        **how: Any,
    ) -> Self:
        """Let a copy of an estimator learn a stream, and plot its score.

        Parameters
        ----------
        estimator : estimator object
            Any with `partial_fit`.
        X, y, scoring, chunk_size, sample_weight, classes, warm_start, n_points
            As in :func:`~onlinebregman.model_selection.progressive_val_score`.
        {**how}

        {Returns}
        """
        cls._check(how)
        more: dict[str, Any] = {"chunk_size": chunk_size, "sample_weight": sample_weight, "classes": classes}
        more |= {"scoring": scoring, "warm_start": warm_start, "n_points": n_points}
        result = progressive_val_score(estimator, X, y, **more)
        score_name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
        return cls.from_result(result, score_name=score_name, **{"name": type(estimator).__name__} | how)

    @classmethod
    def from_result(cls, result: Bunch, *, score_name: str = "score", **how: Any) -> Self:
        """Plot the result of `progressive_val_score`.

        Parameters
        ----------
        result : Bunch
            The result.
        score_name : str, default="score"
            Label of the axis.
        {**how}

        {Returns}
        """
        scores = {key: result[key] for key in cls._vectors}
        return cls(**scores, score_name=score_name, name=how.get("name")).plot(**how)


@dataclass(kw_only=True, eq=False, repr=False)
class RegretDisplay(Display):
    """Regret of a model against the best fixed comparator, and its bound, over the rows.

    Created by `from_estimator`, which lets a copy of a model learn a stream, or by `from_predictions`.

    Parameters
    ----------
    n_rows : array-like of shape (n_points,)
        Numbers of rows: the points.
    regret : array-like of shape (n_points,)
        Loss of the model minus that of the comparator, of all rows up to each point.
    bound : array-like of shape (n_points,) or None
        Upper bound on the regret.
    best_bound : array-like of shape (n_points,) or None
        Upper bound on the regret against the best comparator of each point.
    regret_name : str
        Its name, for the axis.
    {name}

    Attributes
    ----------
    {ax_, figure_}
    line_, bound_line_, best_bound_line_ : matplotlib Line2D or None
        The regret, the bound, dashed, and that against the best, dotted.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import EGRegressor
    >>> from onlinebregman.inspection import RegretDisplay
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> model = EGRegressor(weights="simplex", learning_rate="constant", eta0=0.1)
    >>> display = RegretDisplay.from_estimator(model, X, X[:, 0], coef=[1, 0, 0], n_points=4)
    >>> bool((display.regret <= display.bound).all())
    True
    """

    n_rows: ArrayLike
    regret: ArrayLike
    bound: ArrayLike | None = None
    best_bound: ArrayLike | None = None
    regret_name: str = "regret"
    name: str | None = None

    _vectors = ("n_rows", "regret", "bound", "best_bound")

    def plot(self, ax: Any = None, *, name: str | None = None, line_kw: Style = None) -> Self:
        """Plot the regret over the rows, its bound as a dashed line, and that against the best as a dotted one.

        Parameters
        ----------
        {ax, name, line_kw}

        {Returns}
        """
        self._open(ax)
        name = self.name if name is None else name
        alone = self.bound is None and self.best_bound is None
        label, start = (self.regret_name, "") if name is None and not alone else (name, f"{name}: ")
        self.line_ = self._line(self.n_rows, self.regret, line_kw, label=label)
        color = self.line_.get_color()
        self.bound_line_ = self._line(self.n_rows, self.bound, linestyle="--", label=f"{start}bound", color=color)
        label = f"{start}bound against the best"
        self.best_bound_line_ = self._line(self.n_rows, self.best_bound, linestyle=":", label=label, color=color)
        return self._close(xlabel="rows", ylabel=self.regret_name)

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: MatrixLike,
        y: ArrayLike | None = None,
        *,
        coef: ArrayLike | None = None,
        intercept: ArrayLike | None = None,
        best_kw: dict[str, Any] | None = None,
        n_points: int = 100,
        **how: Any,
    ) -> Self:
        """Let a copy of an estimator learn a stream, and plot its regret and its bound.

        For a linear model the bound is the `regret_bound` of the run against `coef`. With a constant rate it and
        the regret are divided by the rate; otherwise they are those of losses times rates. For a mixture the regret is
        against its best member up to each point, and the bound is its `regret_bound_`.

        Parameters
        ----------
        estimator : estimator object
            A linear model or a mixture of this package. It is not changed; an unfitted clone learns.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows in the order of the stream.
        y : array-like of shape (n_samples,), default=None
            Targets, if the model needs any.
        coef : array-like of shape (n_features,) or (n_classes, n_features), default=None
            Weights of the comparator of a linear model, such as those of
            :func:`~onlinebregman.model_selection.offline_comparator`. None: those of the model after all rows.
        intercept : float or array-like of shape (n_classes,), default=None
            Its intercept; 0 if only `coef` is given.
        best_kw : dict, default=None
            Arguments of the model's `regret_bound`, such as {"radius": 2.0}, to plot this, too: the bound for the
            best comparator up to each point, computed without knowing it. None: not plotted.
        n_points : int, default=100
            Largest number of points, evenly spaced.
        {**how}

        {Returns}

        Raises
        ------
        ValueError
            If there is no certificate for such a model or comparator, or no bound.
        """
        cls._check(how)
        found = regret_of(estimator, X, y, coef, intercept, best_kw, n_points)
        return cls(**found, name=how.get("name") or type(estimator).__name__).plot(**how)

    @classmethod
    def from_predictions(
        cls, y_true: ArrayLike, y_pred: ArrayLike, y_best: ArrayLike, *, loss: str | Loss = "squared_error", **how: Any
    ) -> Self:
        """Plot the regret of predictions that were made before their rows were learned.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Targets, in the order of the stream.
        y_pred : array-like of shape (n_samples,)
            Predictions; scores before the link, for a loss with a link.
        y_best : array-like of shape (n_samples,)
            Predictions of the comparator.
        loss : str or Loss, default="squared_error"
            As in :func:`~onlinebregman.losses.resolve_loss`; the squared one is (a - y)^2 / 2.
        {**how}

        {Returns}
        """
        value, y = resolve_loss(loss).value, as_curve("y_true", y_true)
        predicted = {"y_pred": y_pred, "y_best": y_best}.items()
        lost, best = (value(as_curve(key, values, len(y)), y) for key, values in predicted)
        return cls(n_rows=np.arange(1, len(y) + 1), regret=np.cumsum(lost - best), name=how.get("name")).plot(**how)


@dataclass(kw_only=True, eq=False, repr=False)
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
    line_, best_, mixture_line_ : matplotlib Line2D or None
        The losses, a mark at the best rate, and a horizontal line at the loss of the mixture.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import LearningRatePath
    >>> from onlinebregman.inspection import LearningRateDisplay
    >>> X = np.random.default_rng(0).normal(size=(2000, 5))
    >>> path = LearningRatePath(eta0s=[0.001, 0.01, 0.1, 1.0]).fit(X, X.sum(axis=1))
    >>> LearningRateDisplay.from_estimator(path).best_.get_xdata().item()
    1.0
    """

    eta0s: ArrayLike
    losses: ArrayLike
    mixture_loss: float | None = None
    name: str | None = None

    _vectors = ("eta0s", "losses")

    def plot(self, ax: Any = None, *, name: str | None = None, line_kw: Style = None) -> Self:
        """Plot the losses over the rates, both on logarithmic axes.

        Parameters
        ----------
        {ax, name, line_kw}

        {Returns}
        """
        ax, name = self._open(ax), self.name if name is None else name
        self.line_ = self._line(self.eta0s, self.losses, line_kw, label=name, marker=".")
        color, best = self.line_.get_color(), [int(np.nanargmin(self.losses))]
        mark = {"marker": "o", "linestyle": "", "markersize": 9, "fillstyle": "none"}
        self.best_ = self._line(np.take(self.eta0s, best), np.take(self.losses, best), mark, color=color)
        self.mixture_line_ = None
        if self.mixture_loss is not None:
            label = "mixture" if name is None else f"{name}: mixture"
            self.mixture_line_ = ax.axhline(self.mixture_loss, color=color, linestyle="--", label=label)
        return self._close(xscale="log", yscale="log", xlabel="learning rate eta0", ylabel="mean loss")

    @classmethod
    def from_estimator(cls, estimator: LearningRatePath | LearningRateMixture, **how: Any) -> Self:
        """Plot the losses of the models of a path or a mixture.

        Parameters
        ----------
        estimator : fitted LearningRatePath or LearningRateMixture
            The models. Their losses are divided by the number of rows.
        {**how}

        {Returns}
        """
        cls._check(how)
        check_is_fitted(estimator)
        if not hasattr(estimator, "eta0s_"):
            raise ValueError(
                f"estimator must be a LearningRatePath or LearningRateMixture; got {type(estimator).__name__}."
            )
        n_rows, mixture_loss = max(estimator.t_, 1), getattr(estimator, "cumulative_loss_", None)
        return cls(
            eta0s=estimator.eta0s_,
            losses=estimator.cumulative_losses_ / n_rows,
            mixture_loss=None if mixture_loss is None else mixture_loss / n_rows,
            name=how.get("name") or type(estimator.estimators_[0]).__name__,
        ).plot(**how)


@dataclass(kw_only=True, eq=False, repr=False)
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
    lines_, areas_ : list of matplotlib artists
        One for each expert shown; the second for kind="area".

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import ExpertMixtureRegressor
    >>> from onlinebregman.inspection import ExpertWeightsDisplay
    >>> forecasts = np.random.default_rng(0).normal(size=(400, 2))
    >>> mixture = ExpertMixtureRegressor(strategy="average", history=400).fit(forecasts, forecasts[:, 0])
    >>> ExpertWeightsDisplay.from_estimator(mixture, names=["right", "wrong"]).weights[-1].round(1)
    array([1., 0.])
    """

    n_rows: ArrayLike
    weights: ArrayLike
    names: Sequence[str] | None = None

    _vectors = ("n_rows",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.weights = weights = np.asarray(self.weights, dtype=np.float64)
        n_rows = len(np.asarray(self.n_rows))
        if weights.ndim != 2 or len(weights) != n_rows:
            raise ValueError(f"weights have the shape {weights.shape}; give a row for each of the {n_rows} n_rows.")
        self.names = list(map(str, range(weights.shape[1])) if self.names is None else self.names)
        if len(self.names) != weights.shape[1]:
            raise ValueError(f"{len(self.names)} names for {weights.shape[1]} experts; give one for each.")

    def plot(
        self, ax: Any = None, *, kind: Literal["line", "area"] = "line", n_shown: int = 8, line_kw: Style = None
    ) -> Self:
        """Plot the weights over the rows.

        Parameters
        ----------
        {**how}
        kind : {"line", "area"}, default="line"
            A line for each expert, or areas on top of each other.
        n_shown : int, default=8
            Number of experts shown separately, those with the largest mean weights; the others are combined.
        line_kw : dict or None, default=None
            Passed on to `Axes.plot`, or `Axes.stackplot`.

        {Returns}
        """
        if kind not in ("line", "area"):
            raise ValueError(f"kind must be 'line' or 'area'; got {kind!r}.")
        if n_shown < 1:
            raise ValueError(f"n_shown must be an integer >= 1; got {n_shown!r}.")
        ax, weights, names = self._open(ax), np.asarray(self.weights), np.asarray(self.names, dtype=object)
        shown = np.sort(np.argsort(-weights.mean(axis=0), kind="stable")[:n_shown])
        curves, labels, n_others = [*weights.T[shown]], [*names[shown]], len(names) - len(shown)
        if n_others:
            curves.append(weights.sum(axis=1) - weights[:, shown].sum(axis=1))
            labels.append(f"{n_others} others")
        self.lines_, self.areas_ = [], []
        if kind == "area":
            self.areas_ = ax.stackplot(self.n_rows, curves, **{"labels": labels} | (line_kw or {}))
        else:
            pairs = zip(curves, labels, strict=True)
            self.lines_ = [self._line(self.n_rows, curve, line_kw, label=label) for curve, label in pairs]
        ax.margins(x=0)
        return self._close(xlabel="rows", ylabel="weight", ylim=(0, 1 if kind == "area" else 1.02))

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, *, names: Sequence[str] | None = None, **how: Any) -> Self:
        """Plot the stored weights of a mixture.

        Parameters
        ----------
        estimator : fitted mixture
            Any with `weights_history_`: mixtures of experts store the weights of their last `history` rows;
            parameter-free models and :class:`~onlinebregman.LearningRateMixture` about 100 of them, for any number of
            rows.
        names : sequence of str or None, default=None
            Names of the experts. None: those in `estimators`, the names of columns, or the rates.
        {**how}

        {Returns}
        """
        cls._check(how)
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
        n_rows = getattr(estimator, "weights_history_t_", estimator.t_ + 1 + np.arange(-len(weights), 0))
        names = _names_of_experts(estimator, weights.shape[1]) if names is None else names
        return cls(n_rows=n_rows, weights=weights, names=names).plot(**how)


def _names_of_experts(mixture: BaseEstimator, n_experts: int) -> list[str] | None:
    """The names of the experts of a mixture; None: there are none."""
    if getattr(mixture, "estimators", None):
        return [name for name, _ in mixture.estimators]
    if hasattr(mixture, "eta0s_"):
        return [f"eta0 = {eta0:.3g}" for eta0 in mixture.eta0s_]
    columns, members = getattr(mixture, "feature_names_in_", ()), getattr(mixture, "estimators_", ())
    if len(columns) == n_experts:
        return list(columns)
    return [_described(member) for member in members] if len(members) == n_experts else None


def _described(model: BaseEstimator) -> str:
    """The class of a model and its parameters that are numbers or strings other than the defaults."""
    defaults = type(model)().get_params(deep=False)
    values = [
        f"{value:.3g}" if isinstance(value, float) else value
        for key, value in model.get_params(deep=False).items()
        if isinstance(value, str | float) and value != defaults[key]
    ]
    return f"{type(model).__name__.removesuffix('Classifier').removesuffix('Regressor')}({', '.join(values)})"
