"""Members with a matrix learn chunks of rows, in several threads on request: the same numbers and errors."""

import copy
import multiprocessing
import threading
from itertools import pairwise

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from onlinebregman._kernels.learners.thread_pool import n_threads
from scipy import sparse

from onlinebregman import (
    ForwardClassifier,
    ForwardRegressor,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    ParameterFreeClassifier,
    ParameterFreeRegressor,
)
from onlinebregman.losses import SquaredLoss

WITH_VARIANTS = False
ROWS = 400  # of enough numbers for threads to be started


class OwnLoss(SquaredLoss):
    """The squared loss, by its NumPy methods."""


def members(kind, **settings):
    """Some that learn in lockstep, some one by one, and some with matrices of several sizes."""
    forward, gradient = (
        (ForwardClassifier, MirrorDescentClassifier)
        if kind is ParameterFreeClassifier
        else (ForwardRegressor, MirrorDescentRegressor)
    )
    made = [
        forward(alpha=0.5, **settings),
        gradient(divergence="normalized_adagrad", eta0=3.0, **settings),
        gradient(divergence="squared_euclidean", **settings),
        forward(random_features=160, gamma=0.1, random_state=0, **settings),
        gradient(divergence="p_norm", **settings),
        forward(random_features=90, gamma=0.1, random_state=1, forgetting=0.99, **settings),
    ]
    if kind is ParameterFreeRegressor:
        made += [forward(loss="huber", **settings), forward(loss=OwnLoss(), **settings)]
    return made


def stream(kind, seed, n_classes=2, n_features=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, n_features)) * np.exp(rng.normal(size=n_features))
    y = X @ rng.normal(size=n_features) + rng.normal(size=ROWS)
    if kind is ParameterFreeClassifier:
        return X, np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    return X, np.abs(y)


def begun(kind, X, y, n_classes=2, **parameters):
    extra = {"classes": np.arange(n_classes)} if kind is ParameterFreeClassifier else {}
    return kind(**parameters).partial_fit(X[:2], y[:2], **extra)


def everything(model, X):
    said = model._predict(X), model.weights_, model.cumulative_losses_, model.stacking_coef_, model.weights_history_
    return [*said, model.cumulative_loss_, model.t_]


def assert_says(model, expected, X):
    for found, other in zip(everything(model, X), expected, strict=True):
        assert_array_equal(found, other, strict=True)


def assert_same(model, other, X):
    assert_says(model, everything(other, X), X)


@pytest.mark.parametrize("kind", [ParameterFreeClassifier, ParameterFreeRegressor])
@given(
    seed=st.integers(0, 2**16),
    n_jobs=st.integers(2, 4),
    cuts=st.lists(st.integers(2, ROWS), max_size=4),
    weighted=st.booleans(),
    form=st.sampled_from([np.asarray, np.float32, sparse.csr_matrix]),
    n_classes=st.integers(2, 4),
    own=st.booleans(),
)
@settings(max_examples=12, deadline=None)
def test_numbers_depend_neither_on_threads_nor_on_how_rows_are_cut(
    kind, seed, n_jobs, cuts, weighted, form, n_classes, own
):
    X, y = stream(kind, seed, n_classes)
    rng = np.random.default_rng(seed)
    X = form(np.where(rng.random(X.shape) < 0.3, 0.0, X))
    weights = rng.integers(3, size=ROWS) * 0.75 if weighted else None
    given = {"members": members(kind) if own else None}
    one, two = (begun(kind, X, y, n_classes, n_jobs=n, **given) for n in (1, n_jobs))
    edges = [2, *sorted(set(cuts) - {2, ROWS}), ROWS]
    for rows in [slice(*pair) for pair in pairwise(edges)]:
        two.partial_fit(X[rows], y[rows], sample_weight=None if weights is None else weights[rows])
    one.partial_fit(X[2:], y[2:], sample_weight=None if weights is None else weights[2:])
    assert_same(two, one, X)


@pytest.mark.parametrize("kind", [ParameterFreeClassifier, ParameterFreeRegressor])
@given(seed=st.integers(0, 2**16), bad=st.lists(st.integers(2, ROWS - 1), min_size=1, max_size=3), exponent=st.data())
@settings(max_examples=12, deadline=None)
def test_the_same_row_is_refused_and_nothing_is_learned(kind, seed, bad, exponent):
    X, y = stream(kind, seed)
    for row in bad:
        X[row, seed % 3] = 10.0 ** exponent.draw(st.integers(60, 308))
    parameters = {"members": members(kind, standardize=False)[: exponent.draw(st.integers(1, 6))], "share": 0.0}
    messages = []
    for n_jobs in (1, 2, 3):
        model = begun(kind, X, y, n_jobs=n_jobs, **parameters)
        before = everything(model, X[:2])
        try:
            model.partial_fit(X[2:], y[2:])
            messages.append(None)
        except ValueError as error:
            messages.append(str(error))
            assert_says(model, before, X[:2])
    assert len(set(messages)) == 1


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    ("targets", "refused", "refusing"),
    [
        ({200: 0.0, 201: -1.0}, ("bad target", 200), 1),
        ({200: -1.0, 201: 0.0}, ("bad target", 200), 0),
        ({200: 1e200, 340: -1.0}, ("bad target", 340), 0),  # the first one is clipped
    ],
)
def test_the_first_row_that_a_member_refuses_is_reported(n_jobs, targets, refused, refusing):
    """The first row, not the first member that refuses one; of two members that refuse the same row, the first."""
    X, y = stream(ParameterFreeRegressor, 0)
    members = [ForwardRegressor(loss=loss, random_features=200, random_state=0) for loss in ("poisson", "gamma")]
    model = begun(ParameterFreeRegressor, X, y + 0.1, members=members, loss="poisson")
    before = everything(model, X)
    wrong = y + 0.1
    wrong[list(targets)] = list(targets.values())
    model._learner.n_jobs = n_jobs
    assert model._learner.learn(X, wrong, None) == refused
    assert model._learner.refusing == refusing
    assert_says(model, before, X)
    assert model._learner.learn(X[:200], wrong[:200], None) is None


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_class_that_there_is_not_ends_a_chunk(n_jobs):
    """The compiled learner reports the row, and has learned none; no member is named."""
    X, y = stream(ParameterFreeClassifier, 0)
    model = begun(ParameterFreeClassifier, X, y)
    before = everything(model, X)
    codes, weights = y.astype(np.float64), np.ones(ROWS)
    codes[[7, 200]], weights[7] = 5.0, 0.0
    model._learner.n_jobs = n_jobs
    assert model._learner.learn(X, codes, weights) == ("bad target", 200)
    assert model._learner.refusing == -1
    assert_says(model, before, X)
    assert model._learner.learn(X[:200], codes[:200], weights[:200]) is None


def test_threads_as_joblib_is_configured():
    X, y = stream(ParameterFreeRegressor, 1)
    one, two = begun(ParameterFreeRegressor, X, y), begun(ParameterFreeRegressor, X, y)
    one.partial_fit(X, y)
    for backend in ({}, {"backend": "threading"}, {"backend": "loky"}, {"prefer": "processes"}):
        copied = copy.deepcopy(two)
        with joblib.parallel_config(**backend, n_jobs=2):
            copied.partial_fit(X, y)
            assert n_threads(None) == 2
        assert_same(copied, one, X)
    for n_jobs in (-1, 1000):
        model = begun(ParameterFreeRegressor, X, y, n_jobs=n_jobs).partial_fit(X, y)
        assert_same(model, one, X)


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_processes_that_may_not_start_others_have_threads(n_jobs, monkeypatch, recwarn):
    """Such as those of a pool: joblib would warn about its own processes, which are not used here."""
    X, y = stream(ParameterFreeRegressor, 1)
    one, model = begun(ParameterFreeRegressor, X, y), begun(ParameterFreeRegressor, X, y, n_jobs=n_jobs)
    monkeypatch.setattr(multiprocessing.process.BaseProcess, "daemon", True)
    assert_same(model.partial_fit(X, y), one.partial_fit(X, y), X)
    assert not recwarn.list
    assert n_threads(n_jobs) == (joblib.cpu_count() if n_jobs < 0 else n_jobs)


def test_an_interrupted_call_learns_nothing(soon):
    X, y = stream(ParameterFreeClassifier, 3)
    model = begun(ParameterFreeClassifier, X, y, n_jobs=2)
    before = everything(model, X)
    rows, labels = np.tile(X, (40, 1)), np.tile(y, 40)
    with pytest.raises(KeyboardInterrupt), soon:
        model.partial_fit(rows, labels)
    assert_says(model, before, X)
    model.partial_fit(X, y)


def test_models_learn_in_threads_that_have_threads_while_others_predict():
    X, y = stream(ParameterFreeRegressor, 4)
    models = [begun(ParameterFreeRegressor, X, y, n_jobs=2) for _ in range(3)]
    alone = begun(ParameterFreeRegressor, X, y)
    for _ in range(5):
        alone.partial_fit(X, y)

    def learn(model):
        for _ in range(5):
            model.partial_fit(X, y)

    threads = [threading.Thread(target=learn, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert np.isfinite(models[0].predict(X[:20])).all()
    for thread in threads:
        thread.join()
    for model in models:
        assert_same(model, alone, X)
