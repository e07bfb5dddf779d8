"""One model from many shards."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import Tags, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from .._online.estimator import LifeCycleMixin
from .._sklearn_compat import Interval, StrOptions, available_if, fit_context
from ..persistence import description, full_parameters, load_model, save_model
from ..pipeline import adds_classes
from ._engines import Cluster, Serial, engine
from ._predictions import PredictMixin
from ._shards import cut
from ._tasks import begin, facts, learn


def _certified(self: DistributedOnline) -> bool:
    """Whether the model has a regret certificate, and is not one that is added up."""
    model = vars(self).get("estimator_", self.estimator)
    if getattr(model, "_adds_up", False):
        raise AttributeError(
            f"Models of {type(model).__name__} are sums, which are added up in one round instead of averaged: there is "
            "no mean of certificates. Theorems about one pass over all rows hold in mode='sequential'."
        )
    return hasattr(model, "regret_certificate")


class _Job(NamedTuple):
    """Shards where an engine has loaded them, their names in errors, and their fractions in the weight of all rows."""

    run: Serial | Cluster
    shards: list[Any]
    where: list[str]
    rows: Sequence[int]
    fractions: Sequence[float]
    classes: Any


def _each(run: Serial | Cluster, function: Callable, *arguments: Any, shards: list[Any], where: list[str]) -> list[Any]:
    """function(*arguments, shard) of all shards at once, in their order."""
    tasks = [run.run(name, function, *arguments, shard) for shard, name in zip(shards, where, strict=True)]
    return [run.result(task, name) for task, name in zip(tasks, where, strict=True)]


class DistributedOnline(PredictMixin, MetaEstimatorMixin, BaseEstimator):
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

    With `track_regret=True` of the estimator the rounds have a regret certificate: the mean of those of the shards.

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
        resumes from it, with the result of an uninterrupted run, bit for bit; its rounds must not exceed `n_rounds`.

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

    The regret of a stream of rows, each part of it in eight shards, against weights that are known:

    >>> model = DistributedOnline(ImplicitGDRegressor(learning_rate="constant", track_regret=True), n_shards=8)
    >>> for rows in np.split(np.arange(8000), 5):
    ...     model = model.partial_fit(X[rows], y[rows])
    >>> bool(0 < model.cumulative_loss_ <= model.regret_certificate([1.0, 2.0, 3.0]) / model.estimator_.eta0)
    True
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
        with self._loaded(X, y, sample_weight, classes, search=classes is None) as job:
            parameters = full_parameters(self.estimator)
            signature = [description(self.estimator), self.mode, self.mixing, list(job.rows), parameters]
            model, done = self._resumed(signature)
            n_rounds = 1 if self.mode == "mixing" and getattr(self.estimator, "_adds_up", False) else self.n_rounds
            if done > n_rounds:
                raise ValueError(
                    f"checkpoint={str(self.checkpoint)!r} has {done} rounds already, more than n_rounds={n_rounds}: "
                    f"set n_rounds to at least {done}, or give another file to start over."
                )
            rounds = self._rounds(job, model, range(done, n_rounds))
            for model in rounds:
                done += 1
                if self.checkpoint is not None:
                    save_model(model, self.checkpoint, extra={"signature": signature, "rounds": done})
        return self._set_model(model, len(job.shards), done)

    @fit_context(prefer_skip_nested_validation=False)
    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, classes: ArrayLike | None = None
    ) -> Self:
        """One more round, over the shards of these rows, which may be new ones; without a checkpoint.

        `n_rounds` calls with the same rows have the result of `fit`, bit for bit. A chunk of rows with its own shards
        in each call is a stream of them. The parameters of the estimator are those of the first call. With
        mixing="scaled", decreasing rates are scaled as in rounds of equally many rows.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
            Rows, their targets or labels, and their weights.
        classes : array-like of shape (n_classes,), default=None
            All labels, for a classifier: at the first call, in mode "mixing" also with handle_unknown="add".

        Returns
        -------
        self : DistributedOnline
            This estimator; it is unchanged if an error is raised.
        """
        model, done = (self.estimator_, self.n_rounds_) if self.__sklearn_is_fitted__() else (None, 0)
        if classes is not None and hasattr(model, "classes_") and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"classes = {np.unique(classes).tolist()} is not the same as on the first call to partial_fit, "
                f"{self.classes_.tolist()}; omit it."
            )
        with self._loaded(X, y, sample_weight, classes, search=False) as job:
            (model,) = self._rounds(job, model, range(done, done + 1))
        return self._set_model(model, len(job.shards), done + 1)

    # --- regret ---------------------------------------------------------------------------------------------------

    @available_if(_certified)
    def regret_certificate(self, *comparator: ArrayLike, **named: ArrayLike) -> Any:
        """Bound on the regret of the rounds against a comparator, without assumptions on the data.

        For every comparator u of the estimator's own `regret_certificate`, and share_s the share of shard s in the
        weight of all rows of its round,

            sum_rounds sum_s share_s sum_{t in s} eta_t (L_t(w_t) - L_t(u))  <=  D(u, w_first) - D(u, w_last) + S,

        the right side, with w_t the weights of the shard before row t, w_first those before the first round, w_last the
        mixed ones, and S = sum share_s S_s the mean of the sums that the estimator would have on each shard alone. The
        left side starts with `weighted_loss_`. Mixing does not increase the right side, as D(u, f^-1(theta)) is convex
        in theta: the user guide has the proof ("Regret"). In mode "sequential" there is one run, and this is its
        certificate. For shards of the same weight, a constant rate and mixing="scaled", the right side divided by eta0
        bounds the regret in which rows count by their weights only; its left side starts with `cumulative_loss_`.

        Parameters
        ----------
        *comparator, **named : array-like
            The comparator, as in `regret_certificate` of the estimator: `coef` and `intercept` of a linear model.

        Returns
        -------
        bound : float or ndarray of shape (n_learners,)
            The right side, for the rounds so far.

        Raises
        ------
        ValueError
            If regret was not tracked (`track_regret=True` of the estimator), or there is no certificate for the
            comparator.
        """
        check_is_fitted(self)
        return self.estimator_.regret_certificate(*comparator, **named)

    @property
    def weighted_loss_(self) -> Any:
        """Sum of share times rate times weight times loss of all rows in all rounds: see `regret_certificate`."""
        check_is_fitted(self)
        return self.estimator_.weighted_loss_

    @property
    def cumulative_loss_(self) -> float:
        """Sum of weight times loss of all rows in all rounds, each predicted by the model of its shard before it."""
        check_is_fitted(self)
        return self.estimator_.cumulative_loss_

    # --- rounds ---------------------------------------------------------------------------------------------------

    @contextmanager
    def _loaded(self, X: Any, y: Any, sample_weight: Any, classes: Any, *, search: bool) -> Iterator[_Job]:
        """The shards of these rows; `search` for the labels, if it is a classifier."""
        if not hasattr(self.estimator, "partial_fit"):
            raise TypeError(f"estimator must have partial_fit; got a {type(self.estimator).__name__}.")
        if y is None and is_classifier(self.estimator):
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        search = search and is_classifier(self.estimator)
        shards = cut(X, y, sample_weight, self.n_shards)
        with engine(self.client, self.retries) as run:
            where = [f"Shard {number} of {len(shards)}" for number in range(len(shards))]
            shards = [run.load(name, shard, self.persist) for name, shard in zip(where, shards, strict=True)]
            found = _each(run, facts, search, shards=shards, where=[f"{name}, at the start" for name in where])
            rows, weights, labels = zip(*found, strict=True)
            if not sum(weights) > 0:
                raise ValueError("All sample_weight are zero: there is no row to learn from.")
            ends = np.cumsum(rows).tolist()
            where = [f"{name} (rows {end - n} to {end - 1})" for name, n, end in zip(where, rows, ends, strict=True)]
            if search:
                check_classification_targets(classes := np.unique(np.concatenate(labels)))
            yield _Job(run, shards, where, rows, [weight / sum(weights) for weight in weights], classes)

    def _rounds(self, job: _Job, model: Any, numbers: Iterable[int]) -> Iterator[Any]:
        """The model after each of the rounds with these numbers; None before the first one."""
        if self.mode == "sequential":
            model = clone(self.estimator) if model is None else model
        elif model is None:
            model = self._begun(job)
        step = self._pass if self.mode == "sequential" else self._mix
        for number in numbers:
            model = step(job, model, number)
            yield model

    def _mix(self, job: _Job, model: Any, number: int) -> Any:
        """The model after a round: copies of it learn the shards, and are mixed."""
        scales = self.mixing == "scaled" and len(job.shards) > 1 and not model._adds_up
        scaled = (len(job.shards), number) if scales else None
        names = [f"{name}, in round {number}" for name in job.where]
        parts = _each(job.run, learn, model, None, scaled, shards=job.shards, where=names)
        for part, name in zip(parts, job.where, strict=True):
            if part.n_features_in_ != model.n_features_in_:
                raise ValueError(
                    f"Models of shards must have the {model.n_features_in_} features with which they began; "
                    f"{name} has {part.n_features_in_}. Give all columns from the first call."
                )
        return model._merged(parts, job.fractions)  # theta = sum n_s theta_s / n

    def _pass(self, job: _Job, model: Any, number: int) -> Any:
        """The model after a pass over all shards, learned one after the other."""
        for shard, name in zip(job.shards, job.where, strict=True):
            model = job.run.run(f"{name}, in round {number}", learn, model, job.classes, None, shard)
        return job.run.result(model, f"Round {number}")

    def _begun(self, job: _Job) -> Any:
        """A model that has learned nothing, ready for rows like those of the first shard; TypeError if none mixes."""
        name = f"{job.where[0]}, at the start"
        if not hasattr(self.estimator, "_merged"):
            raise TypeError(
                f"mode='mixing' is for estimators of onlinebregman; got a {type(self.estimator).__name__}. Use "
                "mode='sequential'."
            )
        mixes = type(self.estimator)._merged is not LifeCycleMixin._merged
        if not (mixes and has_fit_parameter(self.estimator, "sample_weight")):
            return clone(self.estimator)._merged([], [])  # raises the error that says why
        if job.classes is None and adds_classes(self.estimator):
            raise ValueError(
                "classes must be passed on the first call to partial_fit, also with handle_unknown='add', as the "
                "models of all shards begin with the same classes; give all class labels, or use mode='sequential'."
            )
        model = job.run.result(job.run.run(name, begin, clone(self.estimator), job.classes, job.shards[0]), name)
        return model._merged([model], [1.0])

    def _set_model(self, model: Any, n_shards: int, done: int) -> Self:
        self.estimator_: Any = model
        self.n_shards_, self.n_rounds_ = n_shards, done
        for name in ("n_features_in_", "feature_names_in_", "classes_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
            elif hasattr(self, name):
                delattr(self, name)
        return self

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

    def __sklearn_is_fitted__(self) -> bool:
        return "estimator_" in vars(self)

    def __sklearn_tags__(self) -> Tags:
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        kinds = ("classifier_tags", "regressor_tags", "transformer_tags", "target_tags", "input_tags")
        for name in ("estimator_type", *kinds):
            setattr(tags, name, getattr(own, name))
        return tags
