"""One model from many shards."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Literal, Self
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import Tags, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from .._online.docs import DocumentedMixin
from .._online.merging import check_mergeable, merge
from .._sklearn_compat import Interval, StrOptions, available_if, fit_context
from ._shards import begin, call_method, chunks_of, facts, learn, noted, shards_of


def _has(method: str) -> Callable[[Any], bool]:
    """A check whether the model, or before fitting the estimator, has this method."""
    return lambda self: hasattr(vars(self).get("estimator_", self.estimator), method)


def _each(function: Callable, *arguments: Any, shards: Sequence[Any], where: Sequence[str]) -> list[Any]:
    """function(*arguments, shard) of all shards at once, in their order; `where` names tasks, also in errors."""
    task = dask.delayed(noted, pure=False)
    tasks = [
        task(name, function, *arguments, shard, dask_key_name=f"{name}; {uuid4().hex}")
        for shard, name in zip(shards, where, strict=True)
    ]
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": 2**62}):  # bytes: models are sent
        return list(dask.compute(*tasks))


class DistributedOnline(DocumentedMixin, MetaEstimatorMixin, BaseEstimator):
    """One model learned by many workers from shards of the data, which are merged in each round.

    In each round every shard s, of rows of weight n_s, n in all, is learned in one online pass by a copy of the model,
    and :func:`~onlinebregman.merge` averages the copies in the dual space of the divergence of the estimator, in which
    online steps are additive:

        theta = sum n_s theta_s / n,    theta_s = f(w_s)

    Models that consist of sums - the forward algorithm, exponential families, Gaussians - are added up in one round.

    The shards are the chunks of the data, independent of the cluster, and are merged in their order: the model is the
    same, bit for bit, on any number of workers, after the loss of some, and without a cluster. Tasks run on the current
    client, or in threads of this process.

    Parameters
    ----------
    estimator : estimator object
        An estimator of this package that can be merged.
    n_rounds : int, default=5
        Number of passes over all shards. Models that are added up always need only one.
    mixing : {"scaled", "mean"}, default="scaled"
        "mean": with unchanged rates, the mean of S models has made about as much progress as one pass over 1 / S of the
        rows. "scaled": shards learn at S times the rate, so that a round is worth about one pass over all rows;
        implicit steps, the default of most estimators, are stable at such rates, explicit ones may need a smaller
        `eta0`.
    persist : bool, default=True
        Keep the shards in the memory of the workers, so that later rounds only transfer models. False: recompute the
        chunks in each round, for data larger than the memory of all workers.

    Attributes
    ----------
    estimator_ : estimator object
        The model, an ordinary fitted estimator.
    n_shards_ : int
        Number of shards that have rows.
    n_rounds_ : int
        Rounds made.
    n_features_in_ : int
        Number of features seen during fit.
    classes_ : ndarray of shape (n_classes,)
        Labels, for a classifier.

    See Also
    --------
    onlinebregman.merge : What each round ends with; also for models that learned elsewhere.
    onlinebregman.streams.fit_stream : One pass over a stream on one machine.

    Notes
    -----
    Rows should be distributed over the chunks at random: shards with different distributions, in particular sorted
    data, reduce accuracy. It pays off if the pass over a shard takes much longer than 20 ms: the user guide has
    measurements, also of the effect of mixing on accuracy.

    References
    ----------
    .. [1] R. McDonald, K. Hall, G. Mann, "Distributed Training Strategies for the Structured Perceptron", NAACL 2010:
           iterative parameter mixing.
    .. [2] A. Agarwal, O. Chapelle, M. Dudik, J. Langford, "A Reliable Effective Terascale Linear Learning System", JMLR
           15, 2014: averages weighted by adaptive metrics.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from onlinebregman import ImplicitGDRegressor
    >>> from onlinebregman.dask import DistributedOnline
    >>> X = np.random.default_rng(0).normal(size=(8000, 3))
    >>> y = X @ [1.0, 2.0, 3.0]
    >>> lazy = [da.from_array(values, chunks=(1000, *values.shape[1:])) for values in (X, y)]
    >>> model = DistributedOnline(ImplicitGDRegressor(), n_rounds=2).fit(*lazy)  # on the current client, if any
    >>> model.estimator_.coef_.round(2), model.n_shards_
    (array([1., 2., 3.]), 8)
    >>> model.predict(lazy[0])
    dask.array<concatenate, shape=(8000,), dtype=float64, chunksize=(1000,), chunktype=numpy.ndarray>
    """

    _doc_place = "dask."
    _parameter_constraints: dict = {
        "estimator": [BaseEstimator],
        "n_rounds": [Interval(Integral, 1, None, closed="left")],
        "mixing": [StrOptions({"scaled", "mean"})],
        "persist": ["boolean"],
    }

    def __init__(
        self,
        estimator: BaseEstimator,
        *,
        n_rounds: int = 5,
        mixing: Literal["scaled", "mean"] = "scaled",
        persist: bool = True,
    ) -> None:
        self.estimator = estimator
        self.n_rounds = n_rounds
        self.mixing = mixing
        self.persist = persist

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, classes: ArrayLike | None = None) -> Self:
        """Fit from scratch.

        Parameters
        ----------
        X : dask array or data frame, or {array-like, sparse matrix}, of shape (n_samples, n_features)
            Rows; the chunks of a dask array may be SciPy's CSR matrices, and of unknown length, or empty. Columns are
            put in one chunk. Data in memory are one shard.
        y : dask array or series, or array-like, of shape (n_samples,), default=None
            Targets or labels, in chunks like those of X.
        sample_weight : like y, default=None
            Weights of the rows.
        classes : array-like of shape (n_classes,), default=None
            All labels, for a classifier; None to find them in one more pass.

        Returns
        -------
        self : DistributedOnline
            This estimator; it is unchanged if an error is raised.

        Raises
        ------
        TypeError
            If the estimator cannot be merged; the message says why.
        ValueError
            If chunks do not match, or the estimator rejects a row; a note names shard and round.
        """
        n_rounds = 1 if getattr(self.estimator, "_adds_up", False) else self.n_rounds
        return self._learn(X, y, sample_weight, classes, None, range(n_rounds), is_classifier(self.estimator))

    @fit_context(prefer_skip_nested_validation=False)
    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, classes: ArrayLike | None = None
    ) -> Self:
        """One more round, over the shards of these rows, which may be new ones.

        `n_rounds` calls with the same rows have the result of `fit`, bit for bit. A chunk of rows with its own shards
        in each call is a stream of them. The parameters of the estimator are those of the first call. With
        mixing="scaled", decreasing rates are scaled as in rounds of equally many rows.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
            Rows, their targets or labels, and their weights.
        classes : array-like of shape (n_classes,), default=None
            All labels, for a classifier, at the first call.

        Returns
        -------
        self : DistributedOnline
            This estimator; it is unchanged if an error is raised.
        """
        model, done = (self.estimator_, self.n_rounds_) if self.__sklearn_is_fitted__() else (None, 0)
        return self._learn(X, y, sample_weight, classes, model, range(done, done + 1), False)

    def _learn(self, X: Any, y: Any, sample_weight: Any, classes: Any, model: Any, rounds: range, search: bool) -> Self:
        """Go on from a model, None to begin one, in rounds of these numbers; `search` for labels not given."""
        check_mergeable(self.estimator)
        if y is None and is_classifier(self.estimator):
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        search = search and classes is None
        shards = shards_of(X, y, sample_weight)
        if self.persist:
            shards = dask.persist(*shards)  # objects that stay on their workers: later rounds only move models
        where = [f"Shard {number} of {len(shards)}" for number in range(len(shards))]
        found = _each(facts, search, shards=shards, where=[f"{name}, at the start" for name in where])
        rows, weights, labels = zip(*found, strict=True)
        ends = np.cumsum(rows).tolist()
        used = [number for number, n in enumerate(rows) if n] or [0]  # of no rows, the estimator itself says so
        if rows[used[0]] and not sum(weights) > 0:
            raise ValueError("All sample_weight are zero: there is no row to learn from.")
        shards = [shards[i] for i in used]
        where = [f"{where[i]} (rows {ends[i] - rows[i]} to {ends[i] - 1})" for i in used]
        if search:
            check_classification_targets(classes := np.unique(np.concatenate([labels[i] for i in used])))
        if model is None:
            (start,) = _each(
                begin, clone(self.estimator), classes, shards=shards[:1], where=[f"{where[0]}, at the start"]
            )
            model = merge([start], start=start)
        scales = self.mixing == "scaled" and len(shards) > 1 and not model._adds_up
        fractions = None if model._adds_up else [weights[i] for i in used]
        for number in rounds:
            names = [f"{name}, in round {number}" for name in where]
            parts = _each(learn, model, (len(shards), number) if scales else None, shards=shards, where=names)
            model = merge(parts, fractions, start=model)
        self.estimator_: Any = model
        self.n_shards_, self.n_rounds_ = len(shards), rounds.stop
        for name in ("n_features_in_", "feature_names_in_", "classes_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
            elif hasattr(self, name):
                delattr(self, name)
        return self

    # --- what the model makes of rows -----------------------------------------------------------------------------

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
        if not dask.is_dask_collection(X):
            return self.estimator_.score(X, y)
        if is_classifier(self.estimator_) or is_regressor(self.estimator_):
            y, predicted = dask.compute(y, self.predict(X))
            if hasattr(self.estimator_, "_quality"):
                return self.estimator_._quality(y, predicted, None)
            return float((accuracy_score if is_classifier(self.estimator_) else r2_score)(y, predicted))
        return float(self.score_samples(X).mean().compute())

    def _call_method(self, method: str, X: Any) -> Any:
        check_is_fitted(self)
        if not dask.is_dask_collection(X):
            return getattr(self.estimator_, method)(X)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            example = call_method(self.estimator_, method, None, np.ones((1, self.estimator_.n_features_in_)))
        model, call = dask.delayed(self.estimator_, pure=False), dask.delayed(call_method, pure=False)
        chunks = chunks_of(X)
        lengths = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * len(chunks)
        blocks = [
            da.from_delayed(call(model, method, example[:0], chunk), (length, *example.shape[1:]), example.dtype)
            for chunk, length in zip(chunks, lengths, strict=True)
        ]
        return da.concatenate(blocks, allow_unknown_chunksizes=True)

    def __sklearn_is_fitted__(self) -> bool:
        return "estimator_" in vars(self)

    def __sklearn_tags__(self) -> Tags:
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        kinds = ("classifier_tags", "regressor_tags", "transformer_tags", "target_tags", "input_tags")
        for name in ("estimator_type", *kinds):
            setattr(tags, name, getattr(own, name))
        return tags
