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

from onlinebregman import BurgRegressor, EGRegressor, ImplicitGDRegressor, PNormRegressor
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


def test_averages_that_begin_and_end_in_mid_stream():
    X, y, h = stream(6, rows=40)
    model, loss = ImplicitGDRegressor(), 0.0
    for start, average in ((0, False), (10, True), (20, False), (30, 35)):
        model.set_params(average=average)
        loss += predicted_then_learned(model, X[start : start + 10], y[start : start + 10], h[start : start + 10]).sum()
    assert_allclose(model.cumulative_loss_, loss, rtol=1e-12)
