"""DistributedOnline on a cluster of two processes: bitwise the serial results, also after faults, and what is sent."""

import os

import dask
import joblib
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

distributed = pytest.importorskip("distributed", reason="needs the extra dask: pip install onlinebregman[dask]")

from dask_data import Accident, Watched, cluster_of, data, fail, kill_this, serially  # noqa: E402

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


@pytest.mark.parametrize("persist", [True, False])
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_a_cluster_gives_the_bits_of_the_serial_run(client, learner, persist, learned):
    X, y = data()
    if type(learner).__name__.endswith(("Classifier", "Learner")):
        y = (y > 0).astype(int)
    model = DistributedOnline(learner, n_rounds=2, persist=persist).fit(X, y)
    assert learned(model.estimator_) == learned(serially(learner, X, y, n_rounds=2))


def test_one_worker_or_two_or_threads_give_the_same_bits(client, learned):
    two = DistributedOnline(ImplicitGDRegressor(), n_rounds=2).fit(*data())
    with cluster_of(1):
        one = DistributedOnline(ImplicitGDRegressor(), n_rounds=2).fit(*data())
    with dask.config.set(scheduler="threads"):
        here = DistributedOnline(ImplicitGDRegressor(), n_rounds=2).fit(*data())
    assert learned(two.estimator_) == learned(one.estimator_) == learned(here.estimator_)


def test_predictions_are_made_by_the_workers(client):
    X, y = data()
    model = DistributedOnline(ImplicitGDRegressor(), n_rounds=1).fit(X, y)
    said = model.predict(X)
    assert len(said.__dask_keys__()) == 8
    assert_array_equal(said.compute(), model.estimator_.predict(X.compute()))


def counts(client):
    """Keys of the tasks of rounds that the workers have run, and the bytes that they have sent to each other."""

    def of(dask_worker):
        keys = {str(event[0]) for event in dask_worker.state.log if "memory" in event}
        return {key for key in keys if ", in round" in key}, dask_worker.transfer_outgoing_bytes_total

    keys, sent = zip(*client.run(of).values(), strict=True)
    return set().union(*keys), sum(sent)


def test_rounds_run_a_task_for_each_shard_and_move_no_rows(client):
    X, y = data(rows=8000)
    known, before = counts(client)
    DistributedOnline(ImplicitGDRegressor(), n_rounds=11).fit(X, y)
    keys, sent = counts(client)
    assert len(keys - known) == 88  # eight shards, a task each and round
    assert sent - before < X.nbytes  # rows move, if at all, once: where a shard is put together


def test_a_fit_inside_a_task_uses_the_cluster_of_the_task(client, learned):
    def nested():
        return DistributedOnline(ImplicitGDRegressor(), n_rounds=2).fit(*data()).estimator_

    # as many as there are threads: they would wait for each other if they held their threads
    tasks = [client.submit(nested, pure=False) for _ in range(2)]
    expected = learned(serially(ImplicitGDRegressor(), *data(), n_rounds=2))
    assert [learned(task.result(timeout=60)) for task in tasks] == [expected] * 2


def test_a_grid_search_over_rates_runs_on_the_cluster(client):
    X, y = (each.compute() for each in data())
    search = GridSearchCV(ImplicitGDRegressor(random_state=0), {"eta0": [0.01, 0.1, 1.0]}, cv=3)
    here = clone(search).fit(X, y)
    with joblib.parallel_config(backend="dask"):
        there = clone(search).fit(X, y)
        over = GridSearchCV(DistributedOnline(ImplicitGDRegressor()), {"estimator__eta0": [0.01, 0.1]}, cv=2).fit(X, y)
    assert_array_equal(there.cv_results_["mean_test_score"], here.cv_results_["mean_test_score"])
    assert over.best_score_ > 0.9


# --- faults -----------------------------------------------------------------------------------------------------------


def test_an_error_that_passes_is_tried_again_and_one_that_stays_names_its_shard(client, tmp_path):
    with dask.annotate(retries=1):
        passing = Watched(Accident(fail, 1, seed=3, once=str(tmp_path / "done")))
        model = DistributedOnline(passing, n_rounds=3).fit(*data())
        assert_array_equal(model.estimator_.coef_, serially(Watched(), *data(), n_rounds=3).coef_)
        with pytest.raises(OSError, match="the network is down") as error:
            DistributedOnline(Watched(Accident(fail, 1, seed=3)), n_rounds=3).fit(*data())
    assert error.value.__notes__ == ["This was shard 3 of 8 (rows 300 to 399), in round 1."]


def test_a_worker_killed_while_it_learns(tmp_path):
    flag = str(tmp_path / "done")
    with cluster_of(2):
        model = DistributedOnline(Watched(Accident(kill_this, 1, seed=3, once=flag)), n_rounds=3).fit(*data())
    assert_array_equal(model.estimator_.coef_, serially(Watched(), *data(), n_rounds=3).coef_)
    assert os.path.exists(flag)
