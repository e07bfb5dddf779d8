"""Threads: the number of BLAS threads is limited and restored; one thread can learn while others predict."""

import sys
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from threadpoolctl import ThreadpoolController, threadpool_limits

from onlinebregman import (
    DefiniteBoost,
    DefiniteBoostMetricLearner,
    ForwardRegressor,
    LogDetMetricLearner,
    MetricKNeighborsClassifier,
    MirrorDescentRegressor,
    ParameterFreeMetricLearner,
)
from onlinebregman._online.threads import few_threads

WITH_VARIANTS = False


@pytest.fixture(autouse=True)
def frequent_turns():
    """Threads take turns a hundred times as often as by default: more places at which they meet, in less time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(before / 100)
    yield
    sys.setswitchinterval(before)


def blas_threads():
    return [library["num_threads"] for library in ThreadpoolController().select(user_api="blas").info()]


def test_small_matrices_have_one_thread():
    with threadpool_limits(2):
        before = blas_threads()
        with few_threads(400):
            assert blas_threads() == before
        with few_threads(399):
            assert set(blas_threads()) <= {1}
            with few_threads(10):
                assert set(blas_threads()) <= {1}
            assert set(blas_threads()) <= {1}
        assert blas_threads() == before
        with pytest.raises(ZeroDivisionError), few_threads(10):
            raise ZeroDivisionError
        assert blas_threads() == before


@pytest.mark.parametrize("learner", [DefiniteBoostMetricLearner(), LogDetMetricLearner(), MetricKNeighborsClassifier()])
def test_no_thread_of_blas_works_for_small_matrices(learner):
    """What other threads compute, and how long they wait for more, is time of the process that is not this thread's."""
    X = np.random.default_rng(0).normal(size=(600, 20))
    with threadpool_limits(1, "openmp"), threadpool_limits(2, "blas"):
        time.sleep(0.2)  # until they wait for more no longer
        before = time.process_time() - time.thread_time()
        getattr(learner.fit(X, X[:, 0] > 0), "predict_proba", learner.predict)(X)
        assert time.process_time() - time.thread_time() - before < 2e-3


def errors_while(works, asks):
    """Run `works` in one thread, and `asks` repeatedly in two others until it ends; returns their errors."""
    errors, together, at_work = [], threading.Barrier(3), threading.Event()

    def work():
        together.wait()
        try:
            works()
        finally:
            at_work.clear()

    def ask():
        together.wait()
        try:
            while at_work.is_set():
                asks()
        except Exception as error:
            errors.append(error)

    at_work.set()
    threads = [threading.Thread(target=target) for target in (work, ask, ask)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def test_threads_predict_while_another_one_learns(estimator, rows, learn, outputs):
    """The predictions are numbers, and no error is raised."""
    X, y = rows
    model = learn(estimator, X[:12], y[:12])
    attributes = [name for name in dir(type(model)) if name.endswith("_") and not name.startswith("_")]

    def learns():
        for first in range(12, 40, 2):
            model.partial_fit(X[first : first + 2], y[first : first + 2])
        model.partial_fit(X, y)

    def asks():
        for name in outputs:
            if hasattr(model, name):
                said = getattr(model, name)(X[:7])
                assert said.dtype.kind in "iU" or not np.isnan(said).any()
        for name in attributes:
            getattr(model, name, None)

    assert not errors_while(learns, asks)


@pytest.mark.parametrize(
    "learner",
    [LogDetMetricLearner(random_state=0), DefiniteBoostMetricLearner(), ParameterFreeMetricLearner(random_state=0)],
)
def test_factors_computed_while_another_thread_learns_are_not_kept(learner, monkeypatch):
    """A query comes before a member has learned, and the other thread learns after a query has read the metric."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(160, 3)) + np.arange(160)[:, np.newaxis] % 2, np.arange(160) % 2
    model = clone(learner).partial_fit(X[:120], y[:120])
    read_metric, learn = type(model)._metric, LogDetMetricLearner.partial_fit

    def metric_then_learn(self):
        found = read_metric(self)
        monkeypatch.undo()
        if self is model:
            self.partial_fit(X[140:], y[140:])
        return found

    def query_then_learn(self, *rows):
        if self is not model:
            model.transform(X)
        return learn(self, *rows)

    monkeypatch.setattr(LogDetMetricLearner, "partial_fit", query_then_learn)
    model.partial_fit(X[120:140], y[120:140])
    monkeypatch.undo()
    np.testing.assert_array_equal(model.transform(X), clone(learner).partial_fit(X[:140], y[:140]).transform(X))
    monkeypatch.setattr(type(model), "_metric", metric_then_learn)
    model.pairwise_distances(X)
    np.testing.assert_array_equal(model.transform(X), clone(learner).partial_fit(X, y).transform(X))


@pytest.mark.parametrize("divergence", ["adagrad", "normalized_adagrad", "diagonal_newton"])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_threads_predict_while_another_one_sets_parameters(divergence, average, sparse):
    """Arrays that are read without a lock keep their addresses: freed memory would contain infinities here."""
    d = 20_000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4, d))
    y = X[:, 0]
    model = MirrorDescentRegressor(divergence=divergence, penalty="l1", alpha=1e-9)
    if sparse:
        X = sp.csr_matrix(X)
    X, x = X.astype(np.float64), X[:1]
    model.partial_fit(X, y)

    def sets():
        for k in range(60):
            model.set_params(track_regret=k % 2 == 1, average=average and k % 3 == 1)
            model.partial_fit(x, y[:1])
            rubbish = [np.full(blocks * d, np.inf) for blocks in (1, 2, 3, 4)]
            del rubbish

    def asks():
        assert np.isfinite(model.predict(X)).all()

    assert not errors_while(sets, asks)


def test_threads_predict_while_another_one_learns_row_after_row():
    """The factors of a forward learner are swapped with every row, and only when they are complete."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 60))
    y = X[:, 0]
    model = ForwardRegressor().partial_fit(X, y)

    def learns():
        for k in range(3000):
            model.partial_fit(X[k % 300 : k % 300 + 1], y[k % 300 : k % 300 + 1])

    def asks():
        assert np.abs(model.predict(X[:5]) - y[:5]).max() < 0.5

    assert not errors_while(learns, asks)


def test_threads_read_solutions_while_another_one_solves():
    """A kernel is replaced together with its multipliers and measures of convergence, when the next one is found."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 30)), rng.uniform(0.1, 1.0, size=60)

    def states(model):
        """The attributes and predictions before and after each call."""
        for first in range(0, 60, 5):
            model.partial_fit(X[first : first + 5], y[first : first + 5])
            yield tuple(state().tobytes() for state in reads(model))

    def reads(model):
        names = ("log_kernel_", "kernel_", "alpha_", "dual_objective_", "kkt_residual_", "max_violation_", "dual_gap_")
        return [*(lambda name=name: np.asarray(getattr(model, name)) for name in names), lambda: model.predict(X)]

    with threadpool_limits(1):
        solutions = [set(found) for found in zip(*states(DefiniteBoost()), strict=True)]
        model = DefiniteBoost().partial_fit(X[:5], y[:5])

        def solves():
            for first in range(5, 60, 5):
                model.partial_fit(X[first : first + 5], y[first : first + 5])

        def asks():
            for read, known in zip(reads(model), solutions, strict=True):
                assert read().tobytes() in known

        assert not errors_while(solves, asks)
