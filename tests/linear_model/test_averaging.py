"""Losses of averaged models: those counted, ranked and mixed are the losses of `predict` before each row."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentClassifier, MirrorDescentRegressor, ScaleInvariantRegressor
from replica import Cosh
from scipy import sparse
from sklearn.base import clone

from onlinebregman import (
    BurgRegressor,
    EGRegressor,
    ImplicitGDRegressor,
    LearningRateMixture,
    LearningRatePath,
    PerceptronClassifier,
    PNormRegressor,
)
from onlinebregman.losses import resolve_loss

MODELS = {
    "gd": ImplicitGDRegressor(),
    "eg signed": EGRegressor(total=3.0),
    "eg simplex": EGRegressor(weights="simplex"),
    "eg positive": EGRegressor(weights="positive"),
    "burg": BurgRegressor(),
    "p_norm": PNormRegressor(p=3.0),
    "binary": MirrorDescentRegressor(divergence="binary_entropy"),
    "signed burg": MirrorDescentRegressor(divergence="burg", signed=True, loss="huber"),
    "poisson": MirrorDescentRegressor(divergence="p_norm", loss="poisson", eta0=0.1),
    "own": MirrorDescentRegressor(divergence=Cosh(), loss="absolute_error"),
}
models = pytest.mark.parametrize("name", MODELS)


def stream(seed, rows=25, n=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, n)) * (rng.uniform(size=(rows, n)) < 0.6)
    y = np.abs(X @ np.linspace(0.1, 0.5, n) + rng.normal(size=rows))
    return X, y, rng.choice([0.0, 0.5, 1.0, 3.0], size=rows)


def predicted_then_learned(model, X, y, h):
    """The losses of `predict` for each row before it is learned."""
    loss, losses = resolve_loss(getattr(model, "loss", "squared_error")), []
    model.partial_fit(X[:1], y[:1], sample_weight=[0.0])
    for i in range(len(y)):
        score = model._predict(X[i : i + 1], (False,))
        model.partial_fit(X[i : i + 1], y[i : i + 1], h[i : i + 1])
        losses.append(h[i] * float(loss.value(score, y[i : i + 1])[0]))
    return np.array(losses)


AVERAGED = MODELS | {
    "adaptive": MirrorDescentRegressor(divergence="adagrad"),
    "ridge": MirrorDescentRegressor(divergence="squared_euclidean", signed=True, penalty="l2", alpha=0.1),
    "classes": MirrorDescentClassifier(standardize=True),
    "bets": ScaleInvariantRegressor(),
}


@pytest.mark.parametrize("name", AVERAGED)
@pytest.mark.parametrize("layout", [np.array, sparse.csr_array])
def test_single_rows_are_predicted_as_many(name, layout):
    """Bit for bit: from averages computed for the row, or for all of them."""
    X, y, _ = stream(8, rows=40, n=30)
    model, rows = clone(AVERAGED[name]).set_params(average=3), layout(X)
    if name == "classes":
        model.partial_fit(rows, y > 1, classes=[False, True])
    else:
        model.partial_fit(rows, y)
    predict = model.decision_function if name == "classes" else model.predict
    single = np.concatenate([predict(rows[[i]]) for i in range(40)])
    assert_array_equal(single, predict(rows))
    assert_allclose(single, predict(X), rtol=1e-12, atol=1e-12 * np.abs(single).max())


def test_the_average_of_large_weights_is_finite_where_their_sum_is_not():
    init = np.r_[np.zeros(9), 1e308]
    model = ImplicitGDRegressor(average=True, init=init).partial_fit(sparse.csr_array(np.eye(10)[:9]), np.zeros(9))
    row = sparse.csr_array(1e-300 * np.eye(10)[[9]])
    assert_array_equal(model.predict(row), [1e-300 * 1e308])
    assert_array_equal(model.predict(row.toarray()), [1e-300 * 1e308])


@models
@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**32 - 1),
    average=st.sampled_from([True, 1, 4, 100, False]),
    csr=st.booleans(),
    fit_intercept=st.booleans(),
)
def test_the_loss_is_that_of_what_predict_said(name, seed, average, csr, fit_intercept):
    X, y, h = stream(seed)
    model = clone(MODELS[name]).set_params(average=average, fit_intercept=fit_intercept)
    rows = sparse.csr_matrix(X) if csr else X
    losses = predicted_then_learned(clone(model), rows, y, h)
    whole = copy.deepcopy(model).partial_fit(rows, y, h)
    assert_allclose(whole.cumulative_loss_, losses.sum(), rtol=1e-10)
    parts = copy.deepcopy(model)
    for start in range(0, len(y), 7):
        parts.partial_fit(rows[start : start + 7], y[start : start + 7], h[start : start + 7])
    assert parts.cumulative_loss_ == whole.cumulative_loss_
    # epochs, and what they stop by
    model.set_params(shuffle=False, max_iter=2, tol=None).fit(rows, y, h)
    again = predicted_then_learned(whole, rows, y, h)
    assert_allclose(model.loss_curve_, np.array([losses.sum(), again.sum()]) / h.sum(), rtol=1e-9)


@models
def test_averaging_moves_the_loss_and_nothing_else(name):
    X, y, h = stream(5)
    one = clone(MODELS[name]).set_params(track_regret=True)
    plain, averaged = clone(one).partial_fit(X, y, h), one.set_params(average=True).partial_fit(X, y, h)
    for a, b in zip(plain._learner.position, averaged._learner.position, strict=True):
        assert_allclose(a, b, rtol=1e-12)
    assert_allclose(averaged.weighted_loss_, plain.weighted_loss_, rtol=1e-12)  # of the weights before averaging
    assert abs(averaged.cumulative_loss_ - plain.cumulative_loss_) > 1e-3 * plain.cumulative_loss_


def test_averages_that_begin_and_end_in_mid_stream():
    X, y, h = stream(6, rows=40)
    model, loss = ImplicitGDRegressor(), 0.0
    for start, average in ((0, False), (10, True), (20, False), (30, 35)):
        model.set_params(average=average)
        loss += predicted_then_learned(model, X[start : start + 10], y[start : start + 10], h[start : start + 10]).sum()
    assert_allclose(model.cumulative_loss_, loss, rtol=1e-12)


@pytest.mark.parametrize("kind", [ImplicitGDRegressor, ScaleInvariantRegressor])
def test_averages_that_begin_again_at_a_later_row(kind):
    X, y, _ = stream(6, rows=40)
    plain, model = kind().partial_fit(X[:20], y[:20]), kind(average=True).partial_fit(X[:20], y[:20])
    model.set_params(average=30).partial_fit(X[20:25], y[20:25])
    assert_array_equal(model.coef_, plain.partial_fit(X[20:25], y[20:25]).coef_)
    model.partial_fit(X[25:], y[25:])
    whole = kind(average=30).partial_fit(X, y)
    assert_allclose(np.r_[model.coef_, model.intercept_], np.r_[whole.coef_, whole.intercept_], rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", [MirrorDescentClassifier, PerceptronClassifier])
def test_each_learner_of_a_classifier_by_its_own_average(kind, n_classes):
    rng = np.random.default_rng(2)
    X, labels = rng.normal(size=(40, 4)), rng.integers(n_classes, size=40)
    model = kind(average=True).partial_fit(X[:1], labels[:1], classes=range(n_classes), sample_weight=[0.0])
    loss, low, total = model._learned_loss, 0.0 if kind is MirrorDescentClassifier else -1.0, 0.0
    for x, label in zip(X, labels, strict=True):
        y = np.where([label == 1] if n_classes == 2 else label == np.arange(3), 1.0, low)
        total += loss.value(model.coef_ @ x + model.intercept_, y).sum()
        model.partial_fit(x[None], np.array([label]))
    assert_allclose(model.cumulative_loss_, total, rtol=1e-11)
    assert_allclose(kind(average=True).partial_fit(X, labels, classes=range(n_classes)).cumulative_loss_, total)


def test_a_path_ranks_and_a_mixture_mixes_by_what_is_predicted():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 3))
    y = np.where(np.arange(200) < 100, 1.0, -1.0) * X[:, 0]  # averages are slow to follow
    base = ImplicitGDRegressor(average=True, learning_rate="constant")
    path = LearningRatePath(base, eta0s=5).partial_fit(X, y)
    alone = [clone(base).set_params(eta0=eta0).partial_fit(X, y).cumulative_loss_ for eta0 in path.eta0s_]
    assert_allclose(path.cumulative_losses_, alone, rtol=1e-12)
    mixture, loss = LearningRateMixture(base, eta0s=5), 0.0
    mixture.partial_fit(X[:1], y[:1], sample_weight=[0.0])
    for i in range(200):
        loss += (mixture.predict(X[i : i + 1])[0] - y[i]) ** 2 / 2
        mixture.partial_fit(X[i : i + 1], y[i : i + 1])
    assert_allclose(mixture.cumulative_losses_, alone, rtol=1e-12)
    assert_allclose(mixture.cumulative_loss_, loss, rtol=1e-11)
    assert mixture.cumulative_loss_ <= mixture.loss_bound_


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from(["squared_error", "absolute_error", "huber", "poisson"]),
    average=st.sampled_from([False, True, 5]),
)
def test_the_bound_of_a_mixture_on_streams_against_it(seed, loss, average):
    rng = np.random.default_rng(seed)
    base = MirrorDescentRegressor(
        divergence="squared_euclidean", loss=loss, average=average, learning_rate="constant", eta0=0.1
    )
    mixture = LearningRateMixture(base, eta0s=4)
    for i in range(40):
        x = rng.normal(size=(1, 2)) * rng.choice([0.1, 1.0, 3.0])
        a = mixture.predict(x)[0] if i else 0.0
        y = max(rng.normal(), 0.0) if loss == "poisson" else -np.sign(a) * rng.choice([0.1, 1.0, 10.0])
        mixture.partial_fit(x, [y], sample_weight=[rng.choice([0.0, 0.5, 1.0, 4.0])])
        assert mixture.cumulative_loss_ <= mixture.loss_bound_ * (1 + 1e-10)
    assert_allclose(mixture.cumulative_losses_, mixture._learner.mixer.hedge.expert_losses, rtol=1e-9)
