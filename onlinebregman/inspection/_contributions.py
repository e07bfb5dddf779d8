"""What a column, or a pair of columns, contributes to predictions, as a function of its values."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_is_fitted

from .._online.types import MatrixLike
from .._online.weights import check_one_output
from ._base import Array, Display, column_number

_OF_PAIR = 32  # most values of a column of a pair
_ROWS, _EXPLAINED = 50, 10_000  # most rows that contributions are averaged over, and that are explained altogether


class ContributionDisplay(Display):
    """The contribution of a column to predictions by its values, or that of two columns, as a heat map.

    Parameters
    ----------
    names : sequence of str
        The name of the column, or of both.
    values : sequence of array-like
        For each column its values in increasing order, or its categories.
    contributions : array-like of shape (n_values,) or (n_values_of_first, n_values_of_second)
        The contribution of each value, or of each pair of values.
    missing : float or None
        The contribution of a missing value of a single column; None: not drawn.
    response : str
        What the contributions are contributions to.

    Attributes
    ----------
    {ax_, figure_}
    line_ : matplotlib Line2D
        The contributions of a column; steps begin at its values.
    missing_line_ : matplotlib Line2D or None
        The contribution of a missing value.
    mesh_ : matplotlib QuadMesh
        The contributions of two columns.

    See Also
    --------
    ParameterFreeRegressor.explain : The contributions.
    TermImportanceDisplay : Which columns and pairs contribute most.
    sklearn.inspection.PartialDependenceDisplay : Averages of predictions, for any model.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import ParameterFreeRegressor
    >>> from onlinebregman.inspection import ContributionDisplay
    >>> X = np.random.default_rng(0).uniform(size=(3000, 3))
    >>> model = ParameterFreeRegressor(random_features=0).fit(X, np.where(X[:, 0] > 0.5, 2.0, 0.0) + X[:, 1])
    >>> display = ContributionDisplay.from_estimator(model, X, feature=0)
    >>> low, high = np.interp([0.3, 0.7], display.values[0], display.contributions)
    >>> print(f"{high - low:.1f}")
    2.0
    """

    def __init__(
        self,
        *,
        names: Sequence[str],
        values: Sequence[ArrayLike],
        contributions: ArrayLike,
        missing: float | None = None,
        response: str = "prediction",
    ) -> None:
        self.names, self.values = list(names), [np.asarray(each) for each in values]
        self.contributions: Array = np.asarray(contributions, dtype=np.float64)
        self.missing, self.response = missing, response
        expected = tuple(each.size for each in self.values)
        if len(self.names) not in (1, 2) or len(self.names) != len(self.values):
            raise ValueError(f"names and values must be those of one or two columns; got {self.names}.")
        if self.contributions.shape != expected or 0 in expected:
            raise ValueError(f"contributions must be of shape {expected}, that of values; got {contributions!r}.")

    def plot(self, ax: Any = None, *, line_kw: dict[str, Any] | None = None) -> Self:
        """Plot the contributions by the values.

        Parameters
        ----------
        {ax}
        line_kw : dict or None, default=None
            Passed on to `Axes.plot`, or `Axes.pcolormesh`.

        Returns
        -------
        {display}
        """
        ax, style = self._open(ax), line_kw or {}
        places = [each if _is_numeric(each) else np.arange(each.size) for each in self.values]
        for axis, each, place in zip((ax.xaxis, ax.yaxis), self.values, places, strict=False):
            if not _is_numeric(each):
                axis.set_ticks(place, labels=each.tolist())
        response = f"contribution to the {self.response}"
        if len(places) == 2:
            x, y = (_edges(place, _is_numeric(each)) for place, each in zip(places, self.values, strict=True))
            largest = np.abs(self.contributions).max()
            colours = {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest}
            self.mesh_ = ax.pcolormesh(x, y, self.contributions.T, **colours | style)
            self.figure_.colorbar(self.mesh_, ax=ax, label=response)
            ax.set(xlabel=self.names[0], ylabel=self.names[1])
            return self
        steps = {"drawstyle": "steps-post"} if _is_numeric(self.values[0]) else {"marker": "o", "linestyle": ""}
        (self.line_,) = ax.plot(places[0], self.contributions, **steps | style)
        self.missing_line_ = None
        if self.missing is not None:
            self.missing_line_ = ax.axhline(self.missing, color="0.5", linestyle="--", label="missing")
        ax.set(xlabel=self.names[0], ylabel=response)
        self._explain()
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: MatrixLike,
        *,
        feature: int | str | tuple[int | str, int | str],
        target: Any = None,
        grid_resolution: int = 100,
        ax: Any = None,
        line_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Plot what a column of rows contributes to the predictions of a model, or two columns.

        Contributions are those of `explain`, which depend a little on the other columns (they are shrunk where
        predictions are clipped, and log odds are not linear); so they are averages over up to 50 of the rows, in which
        the value of the column is replaced. Those of two columns are sums: of both, and of their pair.

        Parameters
        ----------
        {estimator}
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows, from which values are taken.
        feature : int, str or tuple of two of them
            The number or name of the column, or of both.
        {target}
        grid_resolution : int, default=100
            Most values of a column; of two columns at most 32 each.
        {ax, line_kw}

        Returns
        -------
        {display}
        """
        cls._pyplot()
        check_explains(estimator)
        if not (isinstance(grid_resolution, Integral) and grid_resolution >= 2):
            raise ValueError(f"grid_resolution must be an integer >= 2; got {grid_resolution!r}.")
        given = feature if isinstance(feature, tuple) else (feature,)
        all_names = [str(name) for name in estimator._explain_rows(np.zeros((0, estimator.n_features_in_))).terms]
        columns = [column_number(each, all_names[: estimator.n_features_in_]) for each in given]
        if len(set(columns)) != len(given) or len(given) > 2:
            raise ValueError(f"feature must be a column, or two different ones; got {feature!r}.")
        rows = estimator._read_rows(X)
        most = grid_resolution if len(columns) == 1 else min(grid_resolution, _OF_PAIR)
        grids = [_grid(rows[:, j], most, all_names[j]) for j in columns]
        mesh = np.meshgrid(*grids, indexing="ij")
        n_others = min(len(rows), _ROWS, max(1, _EXPLAINED // mesh[0].size))
        others = rows[np.linspace(0, len(rows) - 1, n_others).astype(np.intp)]
        response, chosen = chosen_score(estimator, target)

        def average(*values: Array) -> Array:
            changed = np.tile(others, (len(values[0]), 1))
            for j, each in zip(columns, values, strict=True):
                changed[:, j] = np.repeat(each, len(others))
            explanation = estimator._explain_rows(changed)
            of_both = (explanation.pairs == sorted(columns)).all(axis=1) if len(columns) == 2 else ()
            terms = [*columns, *(estimator.n_features_in_ + np.flatnonzero(of_both))]
            found = explanation.contributions[(slice(None), terms, *chosen)].sum(axis=1)
            return found.reshape(len(values[0]), len(others)).mean(axis=1)

        has_missing = len(columns) == 1 and bool(np.isnan(rows[:, columns[0]]).any())
        return cls(
            names=[all_names[j] for j in columns],
            values=[_labels(estimator, j, grid) for j, grid in zip(columns, grids, strict=True)],
            contributions=average(*(each.ravel() for each in mesh)).reshape(mesh[0].shape),
            missing=float(average(np.array([np.nan]))[0]) if has_missing else None,
            response=response,
        ).plot(ax, line_kw=line_kw)


def check_explains(estimator: Any) -> None:
    """Check that a model is fitted, and can explain its predictions."""
    check_is_fitted(estimator)
    if not hasattr(estimator, "explain"):
        raise ValueError(f"{type(estimator).__name__} has no explain(X); take a parameter-free model.")
    check_one_output(estimator, ValueError)


def _is_numeric(values: np.ndarray) -> bool:
    return values.dtype.kind in "iuf"


def _edges(places: np.ndarray, numeric: bool) -> np.ndarray:
    """The edges of cells that begin at values; those of categories have them in the middle."""
    if not numeric:
        return np.arange(len(places) + 1) - 0.5
    last = np.median(np.diff(places)) if len(places) > 1 else 1.0
    return np.append(places, places[-1] + last)


def _grid(column: Array, most: int, name: str) -> Array:
    """Values of a column in increasing order, at even ranks if there are many."""
    values = np.unique(column[~np.isnan(column)])
    if not values.size:
        raise ValueError(f"X has no values in column {name}; give rows with values.")
    return values[np.linspace(0, len(values) - 1, min(len(values), most)).astype(np.intp)]


def _labels(estimator: Any, number: int, grid: Array) -> np.ndarray:
    """The categories of these numbers; of a column of numbers these."""
    categories = None if estimator.categories_ is None else estimator.categories_[number]
    if categories is None:
        return grid
    return np.array([str(categories[int(i)]) if i < len(categories) else "others" for i in grid], dtype=object)


def chosen_score(estimator: Any, target: Any) -> tuple[str, tuple[int, ...]]:
    """What is explained, and its index among the scores, if there are several."""
    if not is_classifier(estimator):
        return "prediction", ()
    classes = estimator.classes_.tolist()
    if len(classes) == 2:
        return f"log odds of {classes[1]}", ()
    if target not in classes:
        raise ValueError(f"target must be one of the classes {classes}, whose score is explained; got {target!r}.")
    return f"log probability of {target}", (classes.index(target),)
