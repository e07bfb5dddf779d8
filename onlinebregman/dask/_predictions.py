"""What a model makes of rows: lazily of dask collections, chunk by chunk, where they are."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from .._sklearn_compat import available_if
from ._shards import chunks_of, is_dask, lengths
from ._tasks import call_method


def _has(method: str) -> Callable[[Any], bool]:
    """A check whether the model, or before fitting the estimator, has this method."""
    return lambda self: hasattr(vars(self).get("estimator_", self.estimator), method)


class PredictMixin:
    """The methods of the model in `estimator_` that predict."""

    estimator: BaseEstimator
    estimator_: Any
    fit: Callable[..., Any]

    @available_if(_has("predict"))
    def predict(self, X: Any) -> Any:
        """Predictions of the model: a lazy dask array for a dask collection, otherwise an array.

        Parameters
        ----------
        X : dask array or data frame, or {array-like, sparse matrix}, of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : dask array or ndarray of shape (n_samples,)
            Predictions.
        """
        return self._call_method("predict", X)

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes; see `predict`."""
        return self._call_method("predict_proba", X)

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Scores of the classes; see `predict`."""
        return self._call_method("decision_function", X)

    @available_if(_has("score_samples"))
    def score_samples(self, X: Any) -> Any:
        """Log-densities of rows; see `predict`."""
        return self._call_method("score_samples", X)

    @available_if(_has("transform"))
    def transform(self, X: Any) -> Any:
        """Transformed rows; see `predict`."""
        return self._call_method("transform", X)

    @available_if(_has("transform"))
    def fit_transform(self, X: Any, y: Any = None, **parameters: Any) -> Any:
        """`fit`, then `transform` of the same rows."""
        return self.fit(X, y, **parameters).transform(X)

    @available_if(_has("score"))
    def score(self, X: Any, y: Any = None) -> float:
        """The score of the model: accuracy, R^2 (of several quantiles D^2), or mean log-density.

        Parameters
        ----------
        X, y : as in `fit`
            Rows and their targets or labels.

        Returns
        -------
        score : float
            For a dask collection, computed where its chunks are stored.
        """
        check_is_fitted(self)
        if not is_dask(X):
            return self.estimator_.score(X, y)
        if is_classifier(self.estimator_) or is_regressor(self.estimator_):
            y, predicted = dask.compute(y, self.predict(X))
            if hasattr(self.estimator_, "_quality"):
                return self.estimator_._quality(y, predicted, None)
            return float((accuracy_score if is_classifier(self.estimator_) else r2_score)(y, predicted))
        return float(self.score_samples(X).mean().compute())

    def _call_method(self, method: str, X: Any) -> Any:
        check_is_fitted(self)
        if not is_dask(X):
            return getattr(self.estimator_, method)(X)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            example = call_method(self.estimator_, method, None, np.ones((1, self.estimator_.n_features_in_)))
        model, call = dask.delayed(self.estimator_, pure=False), dask.delayed(call_method, pure=False)
        blocks = [
            da.from_delayed(call(model, method, example[:0], chunk), (length, *example.shape[1:]), example.dtype)
            for chunk, length in zip(chunks_of(X), lengths(X), strict=True)
        ]
        return da.concatenate(blocks, allow_unknown_chunksizes=True)
