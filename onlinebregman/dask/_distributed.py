"""One model from many shards."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Callable, Iterable
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, Self

import dask
import dask.array as da
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import Tags, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from .._online.estimator import LifeCycleMixin
from .._sklearn_compat import Interval, StrOptions, available_if, fit_context
from ..persistence import full_parameters, load_model, save_model
from ._engines import Cluster, Serial, engine
from ._shards import Part, chunks_of, cut, is_dask, labels, lengths, rows_of, size


def _has(method: str) -> Callable[[Any], bool]:
    """A check whether the model, or before fitting the estimator, has this method."""
    return lambda self: hasattr(vars(self).get("estimator_", self.estimator), method)


class DistributedOnline(MetaEstimatorMixin, BaseEstimator):
    """One model learned by many workers from shards of the data: parameter mixing in the mirror space.

    In each round every shard s, of rows of weight n_s, n in all, is learned in one online pass by a copy of the model,
    and the copies are averaged in the dual space of the divergence of the estimator, in which online steps are
    additive:

        theta = sum n_s theta_s / n,    theta_s = f(w_s)

    That is the weighted geometric mean for exponentiated gradient, the harmonic one for the Burg entropy, the mean of
    matrix logarithms or of inverses for metrics, the plain mean for gradient descent; means always stay in the domain.
    Quantities that count rows (`t_`, losses, statistics of columns, the sums of adaptive geometries) are added up.
    Models that consist of sums only - the forward algorithm for the squared loss, exponential families, Gaussians - are
    added up in one round, with exactly the result of one pass over all rows. The forward algorithm for other losses
    (:class:`~onlinebregman.ForwardClassifier`) or with `standardize` is added up, too, but the result differs from that
    of one pass, as its sums depend on the order of the rows.

    Shards are consecutive chunks of the data, independent of the cluster, and are mixed in their order: the model is
    the same, bit for bit, on any number of workers, after the loss of some, and without a cluster.

    Parameters
    ----------
    estimator : estimator object
        An estimator of this package that can be mixed, or, with mode="sequential", any with `partial_fit`.
    n_shards : int or None, default=None
        Number of shards, which are runs of consecutive chunks; at most the number of chunks. None: one shard per chunk;
        data in memory are one chunk.
    n_rounds : int, default=5
        Number of passes over all shards. Models that are added up always need only one.
    mode : {"mixing", "sequential"}, default="mixing"
        "sequential": one model learns one shard after the other, each where it is stored; the numbers are exactly those
        of a `partial_fit` loop over the chunks, for data that do not fit on one machine. Nothing runs in parallel.
    mixing : {"scaled", "mean"}, default="scaled"
        "mean": with unchanged rates, the mean of S models has made about as much progress as one pass over 1 / S of the
        rows. "scaled": shards learn at S times the rate, so that a round is worth about one pass over all rows;
        implicit steps, the default of most estimators, are stable at such rates, explicit ones may need a smaller
        `eta0`.
    persist : bool, default=True
        Keep the shards in the memory of the workers, so that later rounds only transfer models. False: recompute the
        chunks in each round, for data larger than the memory of all workers.
    retries : int, default=2
        How often a failed task is retried, for transient errors of networks and file systems.
    checkpoint : str, path or None, default=None
        A file for the model after each round (:func:`~onlinebregman.persistence.save_model`). If it exists, `fit`
        resumes from it, with the result of an uninterrupted run, bit for bit.

    Attributes
    ----------
    estimator_ : estimator object
        The model, an ordinary fitted estimator.
    n_shards_ : int
        Number of shards.
    n_rounds_ : int
        Rounds made, including those before a checkpoint.
    n_features_in_ : int
        Number of features seen during fit.
    classes_ : ndarray of shape (n_classes,)
        Labels, for a classifier.

    See Also
    --------
    onlinebregman.streams.fit_stream : One pass over a stream on one machine.

    Notes
    -----
    Rows should be distributed over the chunks at random: shards with different distributions, in particular sorted
    data, reduce accuracy. A round costs about 2 ms and 3 ms for each shard, and moves the model twice for each
    shard: it pays off if the pass over a shard takes much longer than 20 ms. The user guide has measurements, also of
    the effect of mixing on accuracy.

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

    _parameter_constraints: dict = {
        "estimator": [BaseEstimator],
        "n_shards": [Interval(Integral, 1, None, closed="left"), None],
        "n_rounds": [Interval(Integral, 1, None, closed="left")],
        "mode": [StrOptions({"mixing", "sequential"})],
        "mixing": [StrOptions({"scaled", "mean"})],
        "persist": ["boolean"],
        "retries": [Interval(Integral, 0, None, closed="left")],
        "checkpoint": [str, os.PathLike, None],
    }

    def __init__(
        self,
        estimator: BaseEstimator,
        *,
        n_shards: int | None = None,
        n_rounds: int = 5,
        mode: Literal["mixing", "sequential"] = "mixing",
        mixing: Literal["scaled", "mean"] = "scaled",
        persist: bool = True,
        retries: int = 2,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_shards = n_shards
        self.n_rounds = n_rounds
        self.mode = mode
        self.mixing = mixing
        self.persist = persist
        self.retries = retries
        self.checkpoint = checkpoint

    @property
    def client(self) -> Any:
        """The `distributed.Client` to run on. None, as by default: the current one, or no cluster if there is none.

        It is not a parameter: clones, copies and pickles do not contain it. Within a task of a cluster, `fit` runs on
        that cluster.
        """
        return vars(self).get("_client")

    @client.setter
    def client(self, client: Any) -> None:
        self._client = client

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_client"}

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, classes: ArrayLike | None = None) -> Self:
        """Fit from scratch, or resume from the checkpoint.

        Parameters
        ----------
        X : dask array or data frame, or {array-like, sparse matrix}, of shape (n_samples, n_features)
            Rows; the chunks of a dask array may be SciPy's CSR matrices, and of unknown length. Columns are put in one
            chunk. Data in memory are split into `n_shards`.
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
            If the estimator cannot be mixed; the message says why.
        ValueError
            If chunks do not match, a shard has no rows, the checkpoint does not match, or the estimator rejects a row;
            a note names shard and round.
        RuntimeError
            If a shard cannot be learned by any worker, or was lost.
        """
        if not hasattr(self.estimator, "partial_fit"):
            raise TypeError(f"estimator must have partial_fit; got a {type(self.estimator).__name__}.")
        if y is None and is_classifier(self.estimator):
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        shards = cut(X, y, sample_weight, self.n_shards)
        with engine(self.client, self.retries) as run:
            where = [f"Shard {number} of {len(shards)}" for number in range(len(shards))]
            shards = [run.load(name, shard, self.persist) for name, shard in zip(where, shards, strict=True)]
            search = is_classifier(self.estimator) and classes is None
            facts = self._each(run, _facts, search, shards=shards, where=[f"{name}, at the start" for name in where])
            rows, weights, found = zip(*facts, strict=True)
            if not sum(weights) > 0:
                raise ValueError("All sample_weight are zero: there is no row to learn from.")
            if search:
                check_classification_targets(classes := np.unique(np.concatenate(found)))
            parameters = full_parameters(self.estimator)
            signature = [repr(self.estimator), self.mode, self.mixing, list(rows), parameters]
            model, done = self._resumed(signature)
            if self.mode == "sequential":
                rounds = self._pass_by_pass(run, shards, where, model, classes, done)
            else:
                rounds = self._mix(run, shards, where, model, classes, weights, done)
            for model in rounds:
                done += 1
                if self.checkpoint is not None:
                    save_model(model, self.checkpoint, extra={"signature": signature, "rounds": done})
        self.estimator_: Any = model
        self.n_shards_, self.n_rounds_ = len(shards), done
        for name in ("n_features_in_", "feature_names_in_", "classes_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
            elif hasattr(self, name):
                delattr(self, name)
        return self

    # --- rounds ---------------------------------------------------------------------------------------------------

    def _mix(self, run: Serial | Cluster, shards, where, model, classes, weights, done) -> Iterable[Any]:
        """The model after each round: copies of it learn the shards, and are mixed."""
        shares = [weight / sum(weights) for weight in weights]
        if model is None:
            model = self._begun(run, shards[0], where[0], classes)
        scales = self.mixing == "scaled" and len(shards) > 1 and not model._adds_up
        for number in range(done, 1 if model._adds_up else self.n_rounds):
            names = [f"{name}, in round {number}" for name in where]
            scaled = (len(shards), number) if scales else None
            parts = self._each(run, _learn, model, None, scaled, shards=shards, where=names)
            model = model._mixed(parts, shares)  # theta = sum n_s theta_s / n
            yield model

    def _pass_by_pass(self, run: Serial | Cluster, shards, where, model, classes, done) -> Iterable[Any]:
        """The model after each pass over all shards, learned one after the other."""
        model = clone(self.estimator) if model is None else model
        for number in range(done, self.n_rounds):
            for shard, name in zip(shards, where, strict=True):
                name = f"{name}, in round {number}"
                model = run.run(name, _learn, model, classes, None, shard)
            model = run.result(model, f"Round {number}")
            yield model

    def _begun(self, run: Serial | Cluster, shard, where: str, classes) -> Any:
        """A model that has learned nothing, ready for rows like those of the first shard; TypeError if none mixes."""
        name = f"{where}, at the start"
        if not hasattr(self.estimator, "_mixed"):
            raise TypeError(
                f"mode='mixing' is for estimators of onlinebregman; got a {type(self.estimator).__name__}. Use "
                "mode='sequential'."
            )
        mixes = type(self.estimator)._mixed is not LifeCycleMixin._mixed
        if not (mixes and has_fit_parameter(self.estimator, "sample_weight")):
            return clone(self.estimator)._mixed([], [])  # raises the error that says why
        model = run.result(run.run(name, _begin, clone(self.estimator), classes, shard), name)
        return model._mixed([model], [1.0])

    def _each(self, run, function: Callable, *arguments, shards: list[Any], where: list[str]) -> list[Any]:
        """function(*arguments, shard) of all shards at once, in their order."""
        tasks = [run.run(name, function, *arguments, shard) for shard, name in zip(shards, where, strict=True)]
        return [run.result(task, name) for task, name in zip(tasks, where, strict=True)]

    def _resumed(self, signature: list[Any]) -> tuple[Any, int]:
        """The model of the checkpoint and its number of rounds; None and 0 without a checkpoint."""
        path = self.checkpoint
        if path is None or not Path(path).exists():
            return None, 0
        own = {type(self.estimator), *(type(value) for value in self.estimator.get_params().values())}
        model, extra = load_model(path, trusted=own, return_extra=True)
        if not isinstance(extra, dict) or extra.keys() != {"signature", "rounds"}:
            raise ValueError(f"{path} is not a checkpoint of DistributedOnline; give another file.")
        if extra["signature"] != signature:
            names = ("estimator", "mode", "mixing", "rows of shards", "parameters")
            pairs = zip(names, extra["signature"], signature, strict=True)
            name, old, new = next((name, *map(str, pair)) for name, *pair in pairs if pair[0] != pair[1])
            raise ValueError(f"checkpoint={str(path)!r} must be of the same {name}, {new:.500}; got one of {old:.500}.")
        return model, extra["rounds"]

    # --- predictions -----------------------------------------------------------------------------------------------

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
        """The score of the model: accuracy for a classifier, R^2 for a regressor, mean log-density for a density.

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
            return float((accuracy_score if is_classifier(self.estimator_) else r2_score)(y, predicted))
        return float(self.score_samples(X).mean().compute())

    def _call_method(self, method: str, X: Any) -> Any:
        check_is_fitted(self)
        if not is_dask(X):
            return getattr(self.estimator_, method)(X)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            example = _call_method(self.estimator_, method, None, np.ones((1, self.estimator_.n_features_in_)))
        model, call = dask.delayed(self.estimator_, pure=False), dask.delayed(_call_method, pure=False)
        blocks = [
            da.from_delayed(call(model, method, example[:0], chunk), (length, *example.shape[1:]), example.dtype)
            for chunk, length in zip(chunks_of(X), lengths(X), strict=True)
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


# --- tasks, which run where a shard is ------------------------------------------------------------------------------


def _facts(search: bool, parts: list[Part]) -> tuple[int, float, np.ndarray | None]:
    """The number of rows, the sum of their weights, and, if `search`, the labels."""
    return *size(parts), labels(parts) if search else None


def _begin(model: Any, classes: Any, parts: list[Part]) -> Any:
    """The model after rows of weight 0: ready for rows like these, without having learned any."""
    first, given = parts[0], {} if classes is None else {"classes": classes}
    return copy.deepcopy(model).partial_fit(first.X, first.y, sample_weight=np.zeros(rows_of(first.X)), **given)


def _learn(model: Any, classes: Any, scaled: tuple[int, int] | None, parts: list[Part]) -> Any:
    """A copy of the model after one pass over the rows; `scaled`: the number of shards and the round, see _speed_up."""
    model = copy.deepcopy(model)  # other tasks of this process start from the same object
    if scaled is not None:
        _speed_up(model, *scaled)
    for part in parts:
        given = {} if part.weights is None else {"sample_weight": part.weights}
        if classes is not None and not hasattr(model, "classes_"):
            given["classes"] = classes
        model.partial_fit(part.X, part.y, **given)
    return model


def _speed_up(model: Any, n_shards: int, number: int) -> None:
    """Scale the rate so that the round ends at n_shards times the rate at which a pass over all rows would end.

    For a rate eta t^-p the factor in round r is S ((r n + n / S) / (r n + n))^p, as a shard has n / S of the n rows.
    """
    parameters = model.get_params(deep=False)
    if "learning_rate" in parameters:
        schedule = model._schedule()
        if not schedule.is_power_law:
            raise ValueError(
                f"mixing must be 'mean' for rates other than scale / t^power, such as {schedule!r}; got 'scaled'."
            )
        power = schedule.power + model._divergence.rate_power
        factor = n_shards * ((number + 1 / n_shards) / (number + 1)) ** power
        model.set_params(learning_rate=schedule.scaled(factor))
    elif "eta0" in parameters:
        model.set_params(eta0=n_shards * model.eta0)
    else:
        raise ValueError(
            f"mixing must be 'mean' for {type(model).__name__}, which has no learning rate to scale; got 'scaled'."
        )


def _call_method(model: Any, method: str, nothing: Any, X: Any) -> Any:
    """What the model makes of a chunk, as an array also under `set_output`; `nothing` for a chunk without rows."""
    values = getattr(model, method)(X) if rows_of(X) else nothing
    return values.to_numpy() if hasattr(values, "to_numpy") else values
