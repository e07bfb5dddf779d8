"""The score of predictions made before their rows were learned, over the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch

from ..model_selection import progressive_val_score
from ._base import Display, as_curve


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
    line_ : matplotlib Line2D
        The score up to each point.
    window_line_ : matplotlib Line2D or None
        That of the rows between the points.

    See Also
    --------
    RegretDisplay : How much more a model lost than the best fixed one.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import ImplicitGDRegressor
    >>> from onlinebregman.inspection import ProgressiveScoreDisplay
    >>> X = np.random.default_rng(0).normal(size=(1000, 5))
    >>> y = X @ [1.0, -2.0, 0.0, 0.5, 3.0]
    >>> display = ProgressiveScoreDisplay.from_estimator(ImplicitGDRegressor(), X, y, scoring="r2", n_points=4)
    >>> print(display.n_rows, display.curve.round(3), display.ax_.get_ylabel())
    [ 250.  500.  750. 1000.] [0.957 0.981 0.987 0.991] r2
    """

    def __init__(
        self,
        *,
        n_rows: ArrayLike,
        curve: ArrayLike,
        window_scores: ArrayLike | None = None,
        score_name: str = "score",
        name: str | None = None,
    ) -> None:
        self.n_rows = as_curve("n_rows", n_rows)
        self.curve = as_curve("curve", curve, self.n_rows)
        self.window_scores = None if window_scores is None else as_curve("window_scores", window_scores, self.n_rows)
        self.score_name = score_name
        self.name = name

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        windows: bool = False,
        negate: bool = False,
        line_kw: dict[str, Any] | None = None,
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

        Returns
        -------
        {display}
        """
        if windows and self.window_scores is None:
            raise ValueError("windows=True, but there are no window_scores; give them to the constructor.")
        ax, sign = self._open(ax), -1.0 if negate else 1.0
        name = self.name if name is None else name
        (self.line_,) = ax.plot(self.n_rows, sign * self.curve, **{"label": name} | (line_kw or {}))
        self.window_line_ = None
        if windows and self.window_scores is not None:
            style = {"color": self.line_.get_color(), "linewidth": 0.8, "alpha": 0.6}
            (self.window_line_,) = ax.plot(self.n_rows, sign * self.window_scores, **style)
        ax.set(xlabel="rows", ylabel=self.score_name.removeprefix("neg_") if negate else self.score_name)
        self._explain()
        return self

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
        ax: Any = None,
        name: str | None = None,
        windows: bool = False,
        negate: bool = False,
        line_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Let a copy of an estimator learn a stream, and plot its score.

        Parameters
        ----------
        estimator : estimator object
            Any with `partial_fit`.
        X, y, scoring, chunk_size, sample_weight, classes, warm_start, n_points
            As in :func:`~onlinebregman.model_selection.progressive_val_score`.
        {ax, name, windows, negate, line_kw}

        Returns
        -------
        {display}
        """
        cls._pyplot()
        result = progressive_val_score(
            estimator,
            X,
            y,
            scoring=scoring,
            chunk_size=chunk_size,
            sample_weight=sample_weight,
            classes=classes,
            warm_start=warm_start,
            n_points=n_points,
        )
        score_name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
        name = type(estimator).__name__ if name is None else name
        return cls.from_result(
            result, score_name=score_name, ax=ax, name=name, windows=windows, negate=negate, line_kw=line_kw
        )

    @classmethod
    def from_result(
        cls,
        result: Bunch,
        *,
        score_name: str = "score",
        ax: Any = None,
        name: str | None = None,
        windows: bool = False,
        negate: bool = False,
        line_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Plot the result of `progressive_val_score`.

        Parameters
        ----------
        result : Bunch
            The result.
        score_name : str, default="score"
            Label of the axis.
        {ax, name, windows, negate, line_kw}

        Returns
        -------
        {display}
        """
        made = cls(
            n_rows=result.n_rows,
            curve=result.curve,
            window_scores=result.window_scores,
            score_name=score_name,
            name=name,
        )
        return made.plot(ax, windows=windows, negate=negate, line_kw=line_kw)
