"""Faults while a model is learned: each on a new cluster of worker processes on this machine.

A fit that can finish gives bitwise the serial results. One that cannot raises an error with a remedy.
"""

import contextlib
import os
import signal
import time

import pytest

distributed = pytest.importorskip("distributed", reason="needs the extra dask: pip install onlinebregman[dask]")

import dask  # noqa: E402
import dask.array as da  # noqa: E402
from dask_data import Accident, Watched, block, cluster_of, data, fail, kill_this, process, serially  # noqa: E402

from onlinebregman.dask import DistributedOnline  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # warnings of the cluster itself
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs the signals of POSIX"),
]
ROUNDS = 3


@pytest.fixture(autouse=True)
def no_hang():
    """A test that does not end is an error."""

    def over(*_):
        raise TimeoutError("no end in sight")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(180)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def expected():
    """The coefficients of the serial run."""
    model = serially(Watched(), *data(), n_rounds=ROUNDS)
    return model.coef_.tobytes(), model.intercept_


def fitted(accident=None, X=None, y=None, **parameters):
    """The coefficients of a fit on the current cluster."""
    X, y = data() if X is None else (X, y)
    model = DistributedOnline(Watched(accident), n_rounds=ROUNDS, **parameters).fit(X, y).estimator_
    return model.coef_.tobytes(), model.intercept_


@contextlib.contextmanager
def after_round(number, do):
    """Call `do` once, in this process, after the given round."""
    Watched.after_round = staticmethod(lambda made: do() if made == number else None)
    try:
        yield
    finally:
        Watched.after_round = None


def pids(client):
    return sorted(client.run(os.getpid).values())


def wait_for(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


# --- a worker is killed -----------------------------------------------------------------------------------------------


def test_a_worker_killed_while_a_chunk_is_made(expected, tmp_path):
    flag = str(tmp_path / "done")

    def make(rows, block_info=None):
        if block_info[0]["chunk-location"][0] == 5 and not os.path.exists(flag):
            open(flag, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return rows

    with cluster_of(2):
        X, y = data()
        assert fitted(X=X.map_blocks(make, dtype=float, meta=X._meta), y=y) == expected
    assert os.path.exists(flag)


def test_a_worker_killed_while_it_learns(expected, tmp_path):
    flag = str(tmp_path / "done")
    with cluster_of(2):
        assert fitted(Accident(kill_this, 1, seed=3, once=flag)) == expected
    assert os.path.exists(flag)


def test_a_worker_killed_between_rounds(expected):
    with cluster_of(2) as (_, client):
        killed = []

        def kill():
            killed.append(pids(client)[0])
            os.kill(killed[0], signal.SIGKILL)

        with after_round(1, kill):
            assert fitted() == expected
        assert killed


def worker(address):
    return process(distributed.Worker, address, nthreads=1, dashboard=False)


def test_a_worker_without_a_nanny_killed_in_a_round_and_the_last_one_after_it(expected, tmp_path):
    flag = str(tmp_path / "done")
    with cluster_of(0) as (cluster, client), contextlib.ExitStack() as stack:
        address = cluster.scheduler_address
        for _ in range(2):
            stack.enter_context(worker(address))
        client.wait_for_workers(2)

        def replace_the_last_one():
            (survivor,) = pids(client)
            os.kill(survivor, signal.SIGKILL)
            stack.enter_context(worker(address))

        with after_round(2, replace_the_last_one):
            assert fitted(Accident(kill_this, 0, seed=6, once=flag)) == expected
    assert os.path.exists(flag)


# --- a worker hangs ---------------------------------------------------------------------------------------------------


def test_a_frozen_worker_is_given_up(expected):
    frozen = []
    with cluster_of(2) as (cluster, client):

        async def long_after(address):
            """Minutes later, as the scheduler sees it: nothing was heard of this worker."""
            cluster.scheduler.workers[address].last_seen -= 2 * cluster.scheduler.worker_ttl
            await cluster.scheduler.check_worker_ttl()

        def freeze():
            address, pid = min(client.run(os.getpid).items())
            frozen.append(pid)
            os.kill(pid, signal.SIGSTOP)
            cluster.sync(long_after, address)

        try:
            with after_round(1, freeze):
                assert fitted() == expected
        finally:
            with contextlib.suppress(ProcessLookupError):  # its nanny may have killed it
                os.kill(frozen[0], signal.SIGKILL)


# --- a task fails -----------------------------------------------------------------------------------------------------


def test_an_error_that_passes_is_tried_again_and_one_that_stays_names_its_shard(expected, tmp_path):
    with cluster_of(2):
        assert fitted(Accident(fail, 1, seed=3, once=str(tmp_path / "done"))) == expected
        with pytest.raises(OSError, match="the network is down") as error:
            fitted(Accident(fail, 1, seed=3), retries=1)
        assert error.value.__notes__ == ["This was shard 3 of 8 (rows 300 to 399), in round 1."]


def test_a_task_that_kills_every_worker_names_its_shard():
    """Or a task that waited on the same workers: the scheduler suspects all of their tasks."""
    one = dask.config.set({"distributed.scheduler.allowed-failures": 1})
    named = r"Shard \d of 8 \(rows \d+ to \d+\), in round 0, or a task scheduled with it, killed every worker"
    with one, cluster_of(2), pytest.raises(RuntimeError, match=named):
        fitted(Accident(kill_this, 0, seed=6))


# --- what cannot be made again ----------------------------------------------------------------------------------------


def test_scattered_rows_that_are_lost_are_an_error_that_says_so():
    with cluster_of(2) as (_, client):
        chunks = [client.scatter(block(seed)) for seed in range(8)]
        X, y = (
            da.concatenate([da.from_delayed(dask.delayed(lambda pair, i=i: pair[i])(c), shape, float) for c in chunks])
            for i, shape in enumerate([(100, 6), (100,)])
        )
        lost = pytest.raises(RuntimeError, match=r"was lost: .*cannot be recomputed \(such as those of Client\.scatter")
        with after_round(1, lambda: [os.kill(pid, signal.SIGKILL) for pid in pids(client)]), lost:
            fitted(X=X, y=y)


def test_a_fit_goes_on_from_its_checkpoint_after_the_scheduler_was_lost(expected, tmp_path):
    file, address_file = tmp_path / "model.zip", tmp_path / "scheduler.json"
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set({"distributed.comm.timeouts.connect": "4s"}))  # to the lost one
        where = {"port": 0, "scheduler_file": str(address_file), "dashboard": False}
        scheduler = stack.enter_context(process(distributed.Scheduler, **where))
        wait_for(address_file.exists)
        client = stack.enter_context(distributed.Client(scheduler_file=str(address_file)))
        stack.enter_context(worker(client.scheduler.address))
        stack.enter_context(worker(client.scheduler.address))
        client.wait_for_workers(2)
        with after_round(2, scheduler.kill), pytest.raises(RuntimeError, match=r"the scheduler is gone.*checkpoint"):
            fitted(checkpoint=file)
    made = []
    with cluster_of(2):
        Watched.after_round = staticmethod(made.append)
        try:
            assert fitted(checkpoint=file) == expected
        finally:
            Watched.after_round = None
    assert made == [3]


# --- the cluster grows and shrinks ------------------------------------------------------------------------------------


def test_workers_that_come_and_go(expected):
    with cluster_of(2) as (cluster, client):

        def grow():
            cluster.scale(3)
            client.wait_for_workers(3)

        def shrink():
            client.retire_workers(list(client.scheduler_info()["workers"])[:1])

        Watched.after_round = staticmethod(lambda made: grow() if made == 1 else shrink() if made == 2 else None)
        try:
            assert fitted() == expected
        finally:
            Watched.after_round = None
