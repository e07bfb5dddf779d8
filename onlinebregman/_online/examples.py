"""The public methods that learn, `fit` and `partial_fit`: one class for each kind of examples.

They only name the arguments; the life cycle decides everything else (`estimator.py`). For labels see `labels.py`.
"""

from __future__ import annotations

from typing import Self

from numpy.typing import ArrayLike

from .._sklearn_compat import fit_context
from .estimator import LifeCycleMixin
from .types import MatrixLike


class LearnsRows(LifeCycleMixin):
    """Learns rows without targets."""

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: MatrixLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit from scratch: one pass over the rows, in random order if there is a parameter `shuffle` that is True.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; for mixtures of experts also a sparse matrix.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts: the factor of its loss; a row of weight 0 is ignored.

        Returns
        -------
        {self}

        Raises
        ------
        ValueError
            If a row cannot be learned, or parameters are incompatible; the estimator is then unchanged.
        """
        return self._fit(X, y, sample_weight)

    def partial_fit(self, X: MatrixLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from these rows, once, in their order.

        The numbers do not depend on how a stream is split into calls. A call learns all of its rows or, if it raises,
        none.

        Parameters
        ----------
        {X, y, sample_weight}

        Returns
        -------
        {self}

        Raises
        ------
        {ValueError}
        """
        return self._partial_fit(X, y, sample_weight)


class FitsTargets(LifeCycleMixin):
    """Learns rows with targets or labels, and weights."""

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit from scratch, or continue with `warm_start`: one pass over the rows, or up to `max_iter` epochs.

        Rows are learned in random order if there is a parameter `shuffle` that is True.
        Rows in float64 or float32, dense or CSR, are read without a copy, but most learners of matrices make CSR dense.
        Metric learners warn if all rows are of one class, since pairs and triplets need rows of two.

        Parameters
        ----------
        {X}
        y : array-like of shape (n_samples,)
            Targets; labels (integers, strings or booleans) for classifiers, and for metric learners unless they learn
            targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies the learning rate of each row, and of its pairs or triplets, or its loss if there is no rate; a
            row of weight 0 is ignored.

        Returns
        -------
        {self}

        Raises
        ------
        ValueError
            If a row cannot be learned, with the row and a remedy; the estimator is then unchanged.
        """
        return self._fit(X, y, sample_weight)


class LearnsTargets(FitsTargets):
    """Learns rows with targets, or with labels that need not be known in advance."""

    def partial_fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from these rows, once, in their order.

        The numbers do not depend on how a stream is split into calls. A call learns all of its rows or, if it raises,
        none.

        Parameters
        ----------
        {X, y, sample_weight}

        Returns
        -------
        {self}

        Raises
        ------
        {ValueError}
        """
        return self._partial_fit(X, y, sample_weight)


class LearnsUnweighted(LifeCycleMixin):
    """Learns rows with labels, all with the same weight."""

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: MatrixLike, y: ArrayLike) -> Self:
        """Fit from scratch; sparse rows are converted to dense.

        Parameters
        ----------
        {X}
        y : array-like of shape (n_samples,)
            Labels: integers, strings or booleans.

        Returns
        -------
        {self}
        """
        return self._fit(X, y)

    def partial_fit(self, X: MatrixLike, y: ArrayLike) -> Self:
        """Learn from these labelled rows, once, in their order, together with stored rows of earlier calls.

        The numbers do not depend on how a stream is split into calls. A call learns all of its rows or, if it raises,
        none.

        Parameters
        ----------
        {X, y}

        Returns
        -------
        {self}
        """
        return self._partial_fit(X, y)
