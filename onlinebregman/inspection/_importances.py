"""How much of a model's score each column, and each pair of columns, accounts for: the largest terms, in order."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from .._online.types import MatrixLike
from ._base import Array, Display, as_curve
from ._contributions import check_explains, chosen_score


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

    See Also
    --------
    ContributionDisplay : What one of these terms contributes, by its values.
    ParameterFreeRegressor.explain : The contributions.

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

    def __init__(self, *, terms: Sequence[str], importances: ArrayLike, response: str = "prediction") -> None:
        self.importances: Array = as_curve("importances", importances)
        self.terms, self.response = list(terms), response
        if len(self.terms) != len(self.importances):
            raise ValueError(f"terms must be as many as importances, {len(self.importances)}; got {self.terms}.")

    def plot(self, ax: Any = None, *, bar_kw: dict[str, Any] | None = None) -> Self:
        """Plot a bar for each term, the largest at the top.

        Parameters
        ----------
        {ax, bar_kw}

        Returns
        -------
        {display}
        """
        ax = self._open(ax)
        places = -np.arange(len(self.terms))  # names may be the same
        self.bars_ = ax.barh(places, self.importances, **(bar_kw or {}))
        ax.set_yticks(places, labels=self.terms)
        ax.set(xlabel=f"contribution to the {self.response} (root mean square)")
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: MatrixLike,
        *,
        kind: Literal["all", "columns", "pairs"] = "all",
        target: Any = None,
        max_terms: int | None = 20,
        ax: Any = None,
        bar_kw: dict[str, Any] | None = None,
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
        {ax, bar_kw}

        Returns
        -------
        {display}
        """
        cls._pyplot()
        check_explains(estimator)
        if kind not in ("all", "columns", "pairs"):
            raise ValueError(f"kind must be 'all', 'columns' or 'pairs'; got {kind!r}.")
        if max_terms is not None and not (isinstance(max_terms, Integral) and max_terms >= 1):
            raise ValueError(f"max_terms must be an integer >= 1, or None; got {max_terms!r}.")
        response, chosen = chosen_score(estimator, target)
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
        ).plot(ax, bar_kw=bar_kw)
