"""Chunks of dask collections as shards, and the tasks that run where they are: functions of a model and a shard."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed
from sklearn.utils import check_consistent_length

from .._online.validation import check_weights


class Shard(NamedTuple):
    """Consecutive rows, their targets and weights; None if there are none."""

    X: Any
    y: Any
    weights: Any


def chunks_of(X: Any, name: str = "X") -> list[Delayed]:
    """The rows of a dask array, data frame or series, chunk by chunk."""
    if hasattr(X, "npartitions") and not hasattr(X, "numblocks"):  # a data frame or a series
        return list(X.to_delayed())
    if X.ndim == 2 and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    if X.ndim > 2 or X.ndim == 0:
        raise ValueError(f"{name} has {X.ndim} dimensions; it must be rows of values, or one value for each row.")
    return list(X.to_delayed().ravel())


def shards_of(X: Any, y: Any, sample_weight: Any) -> list[Delayed]:
    """A shard for each chunk; data in memory are one."""
    given = {name: value for name, value in (("X", X), ("y", y), ("sample_weight", sample_weight)) if value is not None}
    lazy = sorted(name for name, value in given.items() if dask.is_dask_collection(value))
    if not lazy:
        check_consistent_length(*given.values())
        return [dask.delayed(Shard(X, y, sample_weight), pure=False, traverse=False)]
    if len(lazy) < len(given):
        types = ", ".join(f"{name} of type {type(value).__name__}" for name, value in given.items())
        raise ValueError(
            f"{' and '.join(lazy)} must be dask collections together with the others, or none; got {types}."
        )
    chunks = {name: chunks_of(value, name) for name, value in given.items()}
    for name, own in chunks.items():
        if len(own) != len(chunks["X"]):
            raise ValueError(
                f"{name} must have as many row chunks as X, {len(chunks['X'])}; got {len(own)}. Rechunk one of them."
            )
    make, nothing = dask.delayed(_shard, pure=False), [None] * len(chunks["X"])
    columns = (chunks.get(name, nothing) for name in ("X", "y", "sample_weight"))
    return [make(number, *values) for number, values in enumerate(zip(*columns, strict=True))]


def rows_of(X: Any) -> int:
    """The number of rows."""
    return (X if hasattr(X, "shape") else np.asarray(X)).shape[0]


# --- tasks ------------------------------------------------------------------------------------------------------------


def noted(where: str, function: Any, *arguments: Any) -> Any:
    """function(*arguments), whose errors say where they were raised."""
    try:
        return function(*arguments)
    except Exception as error:
        error.add_note(f"This was {where[0].lower()}{where[1:]}.")
        raise


def _shard(number: int, X: Any, y: Any, weights: Any) -> Shard:
    for name, values in (("y", y), ("sample_weight", weights)):
        if values is not None and rows_of(values) != rows_of(X):
            raise ValueError(
                f"{name} must have the row chunks of X; chunk {number} has {rows_of(values)} rows, that of X "
                f"{rows_of(X)}. Rechunk one like the other."
            )
    return Shard(X, y, weights)


def facts(search: bool, shard: Shard) -> tuple[int, float, np.ndarray | None]:
    """The number of rows, the sum of their weights, and, if `search`, the labels or the numbers of their indicators."""
    n = rows_of(shard.X)
    weights = None if shard.weights is None or n == 0 else check_weights(shard.weights, n, allow_all_zero=True)
    y = np.asarray(shard.y) if search else None
    several = y is not None and y.ndim == 2 and y.shape[1] > 1
    labels = None if y is None else np.arange(y.shape[1]) if several else np.unique(y)
    return n, float(n if weights is None else weights.sum()), labels


def begin(model: Any, classes: Any, shard: Shard) -> Any:
    """The model after rows of weight 0: ready for rows like these, without having learned any."""
    given = {} if classes is None else {"classes": classes}
    return copy.deepcopy(model).partial_fit(shard.X, shard.y, sample_weight=np.zeros(rows_of(shard.X)), **given)


def learn(model: Any, scaled: tuple[int, int] | None, shard: Shard) -> Any:
    """A copy of the model after one pass over the rows; `scaled`: the number of shards and the round, see _speed_up."""
    model = copy.deepcopy(model)  # other tasks of this process start from the same object
    rates = {name: value for name, value in model.get_params(deep=False).items() if name in ("eta0", "learning_rate")}
    if scaled is not None:
        _speed_up(model, *scaled)
    model.partial_fit(shard.X, shard.y, **({} if shard.weights is None else {"sample_weight": shard.weights}))
    return model.set_params(**rates)


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


def call_method(model: Any, method: str, nothing: Any, X: Any) -> Any:
    """What the model makes of a chunk, as an array also under `set_output`; `nothing` for a chunk without rows."""
    values = getattr(model, method)(X) if rows_of(X) else nothing
    return values.to_numpy() if hasattr(values, "to_numpy") else values
