"""What columns, and pairs of columns, contribute to predictions: by their values, and altogether."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_is_fitted

from .._online.types import MatrixLike
from .._online.weights import check_one_output
from ._base import Array, Display, Style, column_number

_ROOM = 40  # labels at an axis, a fifth of it if they lie
_OF_PAIR = 32  # most values of a column of a pair
_ROWS, _EXPLAINED = 50, 10_000  # most rows that contributions are averaged over, and that are explained altogether


@dataclass(kw_only=True, eq=False, repr=False)
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
    line_, missing_line_, mesh_ : matplotlib artist or None
        The contributions of a column, in steps that begin at its values, that of a missing value, and those of a pair.

    See Also
    --------
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
    """

    names: Sequence[str]
    values: Sequence[ArrayLike]
    contributions: ArrayLike
    missing: float | None = None
    response: str = "prediction"

    def __post_init__(self) -> None:
        self.names, self.values = list(self.names), [np.asarray(each) for each in self.values]
        self.contributions = np.asarray(self.contributions, dtype=np.float64)
        expected = tuple(map(np.size, self.values))
        if len(self.names) not in (1, 2) or len(self.names) != len(expected):
            raise ValueError(f"names and values must be those of one or two columns; got {self.names}.")
        if self.contributions.shape != expected or 0 in expected:
            raise ValueError(f"contributions must be of shape {expected}, that of values; got {self.contributions}.")

    def plot(self, ax: Any = None, *, line_kw: Style = None) -> Self:
        """Plot the contributions by the values.

        Parameters
        ----------
        {ax}
        line_kw : dict or None, default=None
            Passed on to `Axes.plot`, or `Axes.pcolormesh`.

        {Returns}
        """
        ax, columns = self._open(ax), [np.asarray(each) for each in self.values]
        numeric = [column.dtype.kind in "iuf" for column in columns]
        places = [x if is_number else np.arange(x.size) for x, is_number in zip(columns, numeric, strict=True)]
        for axis, column, place, is_number in zip((ax.xaxis, ax.yaxis), columns, places, numeric, strict=False):
            if not is_number:
                shown = slice(None, None, 1 + column.size // _ROOM)
                axis.set_ticks(place[shown], labels=column[shown].tolist())
                axis.set_tick_params(rotation=90 if axis is ax.xaxis and column.size > _ROOM // 5 else 0)
        response = f"contribution to the {self.response}"
        if len(columns) == 2:
            x, y = map(_edges, places, numeric)
            largest = np.abs(self.contributions).max()
            usual = {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest}
            self.mesh_ = ax.pcolormesh(x, y, np.transpose(self.contributions), **usual | (line_kw or {}))
            self.figure_.colorbar(self.mesh_, ax=ax, label=response)
            return self._close(xlabel=self.names[0], ylabel=self.names[1])
        steps = {"drawstyle": "steps-post"} if numeric[0] else {"marker": "o", "linestyle": ""}
        self.line_ = self._line(places[0], self.contributions, steps | (line_kw or {}))
        self.missing_line_ = None
        if self.missing is not None:
            self.missing_line_ = ax.axhline(self.missing, color="0.5", linestyle="--", label="missing")
        return self._close(xlabel=self.names[0], ylabel=response)

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: MatrixLike,
        *,
        feature: int | str | tuple[int | str, int | str],
        target: Any = None,
        grid_resolution: int = 100,
        **how: Any,
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
        {**how}

        {Returns}
        """
        cls._check(how)
        _check_explains(estimator)
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
        response, chosen = _chosen_score(estimator, target)

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
        ).plot(**how)


@dataclass(kw_only=True, eq=False, repr=False)
class TermImportanceDisplay(Display):
    """The terms of a model's score, columns and pairs of columns, by the size of their contributions.

    The size of a term is the root of its mean squared contribution over rows, in units of the score: the deviation that
    the term alone gives to predictions.

    Parameters
    ----------
    terms : sequence of str
        The names of the terms.
    importances : array-like of shape (n_terms,)
        Their sizes, >= 0.
    response : str
        What the terms contribute to.

    Attributes
    ----------
    {ax_, figure_}
    bars_ : matplotlib BarContainer
        The bars, from the largest term, at the top, to the smallest.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import ParameterFreeRegressor
    >>> from onlinebregman.inspection import TermImportanceDisplay
    >>> X = np.random.default_rng(0).uniform(size=(4000, 3)).round(1)
    >>> y = np.where((X[:, 0] > 0.5) == (X[:, 2] > 0.5), 2.0, 0.0) + X[:, 1]
    >>> model = ParameterFreeRegressor(random_features=0).fit(X, y)
    >>> TermImportanceDisplay.from_estimator(model, X, max_terms=2).terms
    ['x0 x2', 'x1']
    """

    terms: Sequence[str]
    importances: ArrayLike
    response: str = "prediction"

    _vectors = ("importances",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.terms) != len(np.asarray(self.importances)):
            raise ValueError(f"terms must be as many as importances; got {self.terms} and {self.importances}.")

    def plot(self, ax: Any = None, *, bar_kw: Style = None) -> Self:
        """Plot a bar for each term, the largest at the top.

        Parameters
        ----------
        {ax, bar_kw}

        {Returns}
        """
        ax = self._open(ax)
        places = -np.arange(len(self.terms))  # names may be the same
        self.bars_ = ax.barh(places, self.importances, **(bar_kw or {}))
        ax.set_yticks(places, labels=self.terms)
        return self._close(xlabel=f"contribution to the {self.response} (root mean square)")

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: MatrixLike,
        *,
        kind: Literal["all", "columns", "pairs"] = "all",
        target: Any = None,
        max_terms: int | None = 20,
        **how: Any,
    ) -> Self:
        """Plot the terms with the largest contributions to the predictions of a model, those of `explain`.

        Parameters
        ----------
        {estimator}
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows whose predictions are explained.
        kind : {"all", "columns", "pairs"}, default="all"
            Which terms: of columns, of pairs, or both, and those of random features.
        {target}
        max_terms : int or None, default=20
            Most terms that are shown; None: all.
        {**how}

        {Returns}
        """
        cls._check(how)
        _check_explains(estimator)
        if kind not in ("all", "columns", "pairs"):
            raise ValueError(f"kind must be 'all', 'columns' or 'pairs'; got {kind!r}.")
        if max_terms is not None and not (isinstance(max_terms, Integral) and max_terms >= 1):
            raise ValueError(f"max_terms must be an integer >= 1, or None; got {max_terms!r}.")
        response, chosen = _chosen_score(estimator, target)
        rows = estimator._read_rows(X)
        if not len(rows):
            raise ValueError("X has no rows; give some whose predictions are to be explained.")
        explanation = estimator._explain_rows(rows)
        n_columns, n_pairs, n_terms = estimator.n_features_in_, len(explanation.pairs), len(explanation.terms)
        ends = {"all": (0, n_terms - 1), "columns": (0, n_columns), "pairs": (n_columns, n_columns + n_pairs)}
        terms = np.arange(*ends[kind])  # "all" leaves out the bias
        if not terms.size:
            raise ValueError(f"{type(estimator).__name__} has no terms of pairs; set thresholds=True.")
        found = explanation.contributions[(slice(None), slice(None), *chosen)][:, terms]
        sizes = np.sqrt(np.square(found).mean(axis=0))
        largest = np.argsort(-sizes, kind="stable")[:max_terms]
        return cls(
            terms=[str(explanation.terms[j]) for j in terms[largest]], importances=sizes[largest], response=response
        ).plot(**how)


def _check_explains(estimator: Any) -> None:
    """Check that a model is fitted, and can explain its predictions."""
    check_is_fitted(estimator)
    if not hasattr(estimator, "explain"):
        raise ValueError(f"{type(estimator).__name__} has no explain(X); take a parameter-free model.")
    check_one_output(estimator, ValueError)


def _edges(places: np.ndarray, numeric: bool) -> np.ndarray:
    """The edges of cells that begin at values; those of categories have them in the middle."""
    if not numeric:
        return np.arange(len(places) + 1) - 0.5
    return np.append(places, places[-1] + (np.median(np.diff(places)) if len(places) > 1 else 1.0))


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


def _chosen_score(estimator: Any, target: Any) -> tuple[str, tuple[int, ...]]:
    """What is explained, and its index among the scores, if there are several."""
    if not is_classifier(estimator):
        return "prediction", ()
    classes = estimator.classes_.tolist()
    if len(classes) == 2:
        return f"log odds of {classes[1]}", ()
    if target not in classes:
        raise ValueError(f"target must be one of the classes {classes}, whose score is explained; got {target!r}.")
    return f"log probability of {target}", (classes.index(target),)
