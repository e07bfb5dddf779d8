"""Where tasks run: on a cluster, or serially in this process, with bitwise the same results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import dask
import distributed
from dask.delayed import Delayed
from distributed.client import FutureCancelledError
from distributed.scheduler import KilledWorker

_NO_LIMIT = 2**62  # bytes


class Serial:
    """In this process, without a cluster."""

    def load(self, where: str, data: Any, persist: bool) -> Any:
        """A shard, or a delayed one that is computed at each use."""
        return _computed(data) if persist else data

    def run(self, where: str, function: Callable, *arguments: Any) -> Any:
        """function(*arguments) as a task; `where` names it in errors, and the last argument is a shard."""
        *others, shard = arguments
        return _task(where, function, *others, _computed(shard))

    def result(self, task: Any, where: str) -> Any:
        return task


class Cluster:
    """On the workers of a client.

    Models are passed to tasks and returned by value, so that the work of a lost worker can be repeated. Dask recommends
    scattered objects for large models, but those cannot be recomputed.
    """

    def __init__(self, client: distributed.Client, retries: int) -> None:
        self.client, self.settings = client, {"retries": retries, "pure": False}

    def load(self, where: str, data: Any, persist: bool) -> Any:
        """One object for each shard, which stays on its worker: later rounds only move models."""
        if not persist:
            return data
        if isinstance(data, Delayed):
            return self.client.compute(data, retries=self.settings["retries"], optimize_graph=False)
        return self.client.submit(_itself, data, key=_key(where), **self.settings)

    def run(self, where: str, function: Callable, *arguments: Any) -> distributed.Future:
        *_, shard = arguments
        if isinstance(shard, Delayed):  # computed again for this task
            task = dask.delayed(_task, pure=False)(where, function, *arguments, dask_key_name=_key(where))
            return self.client.compute(task, retries=self.settings["retries"])
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": _NO_LIMIT}):
            return self.client.submit(_task, where, function, *arguments, key=_key(where), **self.settings)

    def result(self, task: distributed.Future, where: str) -> Any:
        try:
            return task.result()
        except KilledWorker as error:
            raise RuntimeError(
                f"{_name(error.task)}, or a task scheduled with it, killed every worker that ran it: it needs more "
                "memory than they have, or it crashes. Split the data into more chunks, or check the logs of the "
                "workers."
            ) from error
        except FutureCancelledError as error:
            raise RuntimeError(
                f"{where} was lost: the scheduler is gone, or rows that cannot be recomputed (such as those of "
                "Client.scatter; use dask.array.from_array, or let the workers read them). Fit again: with a "
                "checkpoint it resumes after the last finished round."
            ) from error


@contextmanager
def engine(client: Any, retries: int) -> Iterator[Serial | Cluster]:
    """The engine of the given client, of the cluster that runs this task, of the current client, or of this process."""
    if client is None and _in_task():
        with distributed.worker_client() as own:  # it secedes, so that its tasks have a thread
            yield Cluster(own, retries)
        return
    if client is None:
        try:
            client = distributed.default_client()
        except ValueError:
            yield Serial()
            return
    if client.asynchronous:
        raise TypeError("client must be a synchronous distributed.Client; got one with asynchronous=True.")
    yield Cluster(client, retries)


def _in_task() -> bool:
    try:
        return distributed.worker.thread_state.execution_state is not None
    except AttributeError:
        return False


def _task(where: str, function: Callable, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        error.add_note(f"This was {where[0].lower()}{where[1:]}.")
        raise


def _itself(data: Any) -> Any:
    return data


def _computed(data: Any) -> Any:
    return data.compute(scheduler="synchronous") if isinstance(data, Delayed) else data


def _key(where: str) -> str:
    return f"{where}; {uuid4().hex}"


def _name(key: Any) -> str:
    return str(key).partition(";")[0]
