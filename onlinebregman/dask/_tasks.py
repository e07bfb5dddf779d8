"""Tasks, which run where a shard is: pure functions of a model and a shard."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ._shards import Part, labels, rows_of, size


def facts(search: bool, parts: list[Part]) -> tuple[int, float, np.ndarray | None]:
    """The number of rows, the sum of their weights, and, if `search`, the labels."""
    return *size(parts), labels(parts) if search else None


def begin(model: Any, classes: Any, parts: list[Part]) -> Any:
    """The model after rows of weight 0: ready for rows like these, without having learned any."""
    first, given = parts[0], {} if classes is None else {"classes": classes}
    return copy.deepcopy(model).partial_fit(first.X, first.y, sample_weight=np.zeros(rows_of(first.X)), **given)


def learn(model: Any, classes: Any, scaled: tuple[int, int] | None, parts: list[Part]) -> Any:
    """A copy of the model after one pass over the rows; `scaled`: the number of shards and the round, see _speed_up."""
    model = copy.deepcopy(model)  # other tasks of this process start from the same object
    if scaled is not None:
        _speed_up(model, *scaled)
    start = 0
    for part in parts:
        given = {} if part.weights is None else {"sample_weight": part.weights}
        if classes is not None and not hasattr(model, "classes_"):
            given["classes"] = classes
        try:
            model.partial_fit(part.X, part.y, **given)
        except ValueError as error:
            if start:
                error.add_note(f"Its row 0 is row {start} of the shard.")
            raise
        start += rows_of(part.X)
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


def call_method(model: Any, method: str, nothing: Any, X: Any) -> Any:
    """What the model makes of a chunk, as an array also under `set_output`; `nothing` for a chunk without rows."""
    values = getattr(model, method)(X) if rows_of(X) else nothing
    return values.to_numpy() if hasattr(values, "to_numpy") else values
