"""DistributedOnline on a cluster of two processes: bitwise the serial results, and what is sent and run."""

import pickle
import warnings

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

distributed = pytest.importorskip("distributed", reason="needs the extra dask: pip install onlinebregman[dask]")

import dask  # noqa: E402
import dask.array as da  # noqa: E402
from dask_data import cluster_of, data, serially  # noqa: E402
from traffic import sent  # noqa: E402

from onlinebregman import (  # noqa: E402
    ForwardRegressor,
    ImplicitGDRegressor,
    LogDetMetricLearner,
    MirrorDescentClassifier,
)
from onlinebregman.dask import DistributedOnline  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of the cluster itself

LEARNERS = [
    ImplicitGDRegressor(standardize=True, average=True),
    MirrorDescentClassifier(divergence="relative_entropy", signed=True, track_regret=True),
    LogDetMetricLearner(random_state=0),
    ForwardRegressor(),
]


@pytest.fixture(scope="module")
def client():
    with cluster_of(2) as (_, client):
        yield client


def labels_of(y):
    return (y > 0).astype(int)


@pytest.mark.parametrize("persist", [True, False])
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_a_cluster_gives_the_bits_of_the_serial_run(client, learner, persist, learned):
    X, y = data()
    if not hasattr(learner, "loss") or type(learner).__name__.endswith(("Classifier", "Learner")):
        y = labels_of(y) if not isinstance(learner, ForwardRegressor) else y
    model = DistributedOnline(learner, n_rounds=2, persist=persist).fit(X, y)
    assert learned(model.estimator_) == learned(serially(learner, X, y, n_rounds=2))


def test_sequential_mode_gives_the_bits_of_the_serial_run(client, learned):
    X, y = data()
    learner = ImplicitGDRegressor()
    model = DistributedOnline(learner, mode="sequential", n_rounds=2).fit(X, y)
    assert learned(model.estimator_) == learned(serially(learner, X, y, mode="sequential", n_rounds=2))


def test_data_in_memory_are_learned_there_too(client, learned):
    X, y = (each.compute() for each in data())
    learner = ImplicitGDRegressor()
    model = DistributedOnline(learner, n_shards=3).fit(X, y)
    assert learned(model.estimator_) == learned(serially(learner, X, y, n_shards=3))


def test_one_worker_or_two_give_the_same_bits(client, learned):
    X, y = data()
    with cluster_of(1) as (_, alone):
        model = DistributedOnline(ImplicitGDRegressor(), n_rounds=2)
        model.client = alone
        one = model.fit(X, y).estimator_
    two = DistributedOnline(ImplicitGDRegressor(), n_rounds=2)
    two.client = client
    assert learned(two.fit(X, y).estimator_) == learned(one)


def moved(client):
    """Bytes that the workers have sent to each other."""
    totals = client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
    return sum(totals.values())


def tasks_run(client):
    """Keys of the tasks of shards that the workers have run."""
    logs = client.run(
        lambda dask_worker: {
            event[0] for event in dask_worker.state.log if str(event[0]).startswith("Shard") and "memory" in event
        }
    )
    return set().union(*logs.values())


def test_rounds_run_a_task_for_each_shard_and_move_no_rows(client):
    X, y = data(rows=8000)
    before, known = moved(client), tasks_run(client)
    DistributedOnline(ImplicitGDRegressor(), n_rounds=11).fit(X, y)
    assert sum("in round" in key for key in tasks_run(client) - known) == 88  # eight shards, a task each and round
    assert moved(client) - before < X.nbytes  # rows move, if at all, once: where a shard is put together


def wide(n_features, rows=3, n_chunks=4):
    """Few rows, for a large model."""

    def of(block_info, label):
        rng = np.random.default_rng(block_info[None]["chunk-location"][0])
        X = rng.normal(size=(rows, n_features))
        return np.arange(rows) % 2 if label else X

    settings = {"chunks": ((rows,) * n_chunks,), "dtype": int, "meta": np.empty(0, dtype=int)}
    y = da.map_blocks(lambda block_info=None: of(block_info, True), **settings)
    settings = {"chunks": ((rows,) * n_chunks, (n_features,)), "dtype": float, "meta": np.empty((0, n_features))}
    return da.map_blocks(lambda block_info=None: of(block_info, False), **settings), y


@pytest.mark.parametrize(
    ("learner", "n_features"),
    [(ImplicitGDRegressor(), 200_000), (LogDetMetricLearner(sampling="random", random_state=0), 400)],
    ids=lambda value: type(value).__name__,
)
def test_models_of_megabytes_go_to_each_shard_and_back(client, learner, n_features, learned):
    X, y = wide(n_features)
    alone = serially(learner, X, y, n_rounds=3)
    size, before = len(pickle.dumps(alone)), (*sent(client), moved(client))
    assert size > 1e6
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 MB"}), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # for example that a model is embedded in the graph
        model = DistributedOnline(learner, n_rounds=3).fit(X, y)
    assert learned(model.estimator_) == learned(alone)
    workers, here, between = (after - b for after, b in zip((*sent(client), moved(client)), before, strict=True))
    # four shards, three rounds, and a model at the start: each comes back, and goes out and back by the scheduler
    assert (workers - between) / size == pytest.approx(13, rel=0.05)
    assert here / size == pytest.approx(12 + 12 + 13, rel=0.05)
    assert between < 1.05 * X.nbytes + 1e5  # rows move once at most, where a shard is put together; models never


def test_predictions_are_made_by_the_workers(client):
    X, y = data()
    model = DistributedOnline(ImplicitGDRegressor(), n_rounds=1).fit(X, y)
    said = model.predict(X)
    assert len(said.__dask_keys__()) == 8
    assert_array_equal(said.compute(), model.estimator_.predict(X.compute()))


def test_a_fit_inside_a_task_uses_the_cluster_of_the_task(client, learned):
    X, y = (each.compute() for each in data())

    def nested(X, y):
        lazy = da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100)
        return DistributedOnline(ImplicitGDRegressor(), n_rounds=2).fit(*lazy).estimator_

    # as many as there are threads: they would wait for each other if they held their threads
    tasks = [client.submit(nested, X, y, pure=False) for _ in range(2)]
    expected = learned(serially(ImplicitGDRegressor(), *data(), n_rounds=2))
    assert [learned(task.result(timeout=60)) for task in tasks] == [expected] * 2


def test_a_grid_search_over_rates_runs_on_the_cluster(client):
    X, y = (each.compute() for each in data())
    search = GridSearchCV(ImplicitGDRegressor(random_state=0), {"eta0": [0.01, 0.1, 1.0]}, cv=3)
    here = clone(search).fit(X, y)
    with joblib.parallel_config(backend="dask"):
        there = clone(search).fit(X, y)
        over = GridSearchCV(
            DistributedOnline(ImplicitGDRegressor(), n_shards=4, n_rounds=2), {"estimator__eta0": [0.01, 0.1]}, cv=2
        ).fit(X, y)
    assert_array_equal(there.cv_results_["mean_test_score"], here.cv_results_["mean_test_score"])
    assert there.best_params_ == here.best_params_
    assert over.best_score_ > 0.9


def test_an_asynchronous_client_is_refused():
    class Asynchronous:
        asynchronous = True

    model = DistributedOnline(ImplicitGDRegressor())
    model.client = Asynchronous()
    with pytest.raises(TypeError, match="must be a synchronous"):
        model.fit(*data())
