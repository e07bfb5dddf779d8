"""Shared code of the tests of onlinebregman.dask: reproducible data, clusters, and the serial run.

What workers call is here: they can import this module, but not that of a test, and a worker that fails to import dies.
"""

import contextlib
import logging
import multiprocessing
import os
from unittest import mock

import dask
import dask.array as da
import distributed
import numpy as np

from onlinebregman import ImplicitGDRegressor
from onlinebregman.dask import DistributedOnline

# A fork server, which has imported what workers need, starts them in a tenth of the time.
METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
if METHOD == "forkserver":
    with dask.config.set({"distributed.worker.multiprocessing-method": METHOD}):
        distributed.utils.get_mp_context().set_forkserver_preload(["distributed", "numpy", "onlinebregman.dask"])


def block(seed, rows=100):
    """One chunk of rows and targets, the same at each call."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 6))
    return X, X @ [1.0, -2.0, 0.5, 0.0, 1.0, 2.0] + 0.1 * rng.normal(size=rows)


def data(rows=800, n_chunks=8):
    """Rows and targets as dask arrays that the workers compute."""
    n = rows // n_chunks

    def X_of(block_info=None):
        return block(block_info[None]["chunk-location"][0], n)[0]

    def y_of(block_info=None):
        return block(block_info[None]["chunk-location"][0], n)[1]

    X = da.map_blocks(X_of, chunks=((n,) * n_chunks, (6,)), dtype=float, meta=np.empty((0, 6)))
    return X, da.map_blocks(y_of, chunks=((n,) * n_chunks,), dtype=float, meta=np.empty(0))


def fail():
    raise OSError("the network is down")


def kill_this():
    os._exit(1)


class Watched(ImplicitGDRegressor):
    """A regressor that calls a function where a shard is learned."""

    def __init__(self, accident=None, eta0=0.1):
        super().__init__(eta0=eta0)
        self.accident = accident

    def partial_fit(self, X, y, sample_weight=None):
        if self.accident is not None and sample_weight is None:  # at the start rows have weight 0
            self.accident(self.t_, X)
        return super().partial_fit(X, y, sample_weight)


class Accident:
    """A fault of the shard with this seed in this round; it happens once if a file can record it."""

    def __init__(self, what, number, seed, once=None):
        self.what, self.number, self.first, self.once = what, number, block(seed)[0][0, 0], once

    def __eq__(self, other):
        return vars(self) == vars(other)

    def __call__(self, rows_before, X):
        if rows_before == 800 * self.number and X[0, 0] == self.first:
            if self.once is not None and os.path.exists(self.once):
                return
            if self.once is not None:
                open(self.once, "w").close()
            self.what()


@contextlib.contextmanager
def cluster_of(n_workers, **settings):
    """A cluster on this machine, and its client, which is the current one."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # closing a cluster logs errors
    address = {"host": "127.0.0.1", "dashboard_address": None, "silence_logs": logging.CRITICAL}
    with (
        dask.config.set({"distributed.worker.multiprocessing-method": METHOD}),
        mock.patch.dict(os.environ, PYTHONSAFEPATH="1"),  # the server imports what is installed, not the sources
        distributed.LocalCluster(n_workers=n_workers, threads_per_worker=1, **address, **settings) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield cluster, client


def serially(learner, X, y, **parameters):
    """The same model fitted in this process, without a cluster."""
    with dask.config.set(scheduler="synchronous"):
        return DistributedOnline(learner, **parameters).fit(X, y).estimator_
