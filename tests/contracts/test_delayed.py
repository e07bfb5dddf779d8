"""Rows of one call that were predicted together: all is learned and judged by the predictions that were made."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.linear_model import SGDClassifier, SGDRegressor

from onlinebregman import (
    BayesMixture,
    ExpertMixtureClassifier,
    ExpertMixtureRegressor,
    ForwardClassifier,
    ForwardRegressor,
    ImplicitGDRegressor,
    LearningRateMixture,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    ParameterFreeClassifier,
    ParameterFreeRegressor,
)

NUMBERS = [ImplicitGDRegressor(), MirrorDescentRegressor(divergence="adagrad"), ForwardRegressor(standardize=True)]
LABELS = [MirrorDescentClassifier(), MirrorDescentClassifier(loss="hinge"), ForwardClassifier()]
ONLINE = [("gd", ImplicitGDRegressor()), ("adagrad", MirrorDescentRegressor(divergence="adagrad"))]
ONLINE_LABELS = [("log", MirrorDescentClassifier(loss="log_loss")), ("steps", MirrorDescentClassifier(eta0=5.0))]

REGRESSORS = [
    ParameterFreeRegressor(random_features=20),
    ParameterFreeRegressor(members=NUMBERS),
    ParameterFreeRegressor(members=NUMBERS, stacking=False, loss="absolute_error"),
    ParameterFreeRegressor(
        members=[MirrorDescentRegressor(loss="poisson", eta0=e) for e in (0.1, 0.2)], loss="poisson"
    ),
    LearningRateMixture(eta0s=3),
    ExpertMixtureRegressor(),
    ExpertMixtureRegressor(strategy="eg", loss="absolute_error"),
    ExpertMixtureRegressor(strategy="aggregating", data_bounds={"y": (0, 20)}),
    ExpertMixtureRegressor(ONLINE),
    ExpertMixtureRegressor(
        [*ONLINE, ("sgd", SGDRegressor(random_state=0))], strategy="eg", share=0.01, learning_rate=0.1
    ),
]
CLASSIFIERS = [
    ParameterFreeClassifier(random_features=20),
    ParameterFreeClassifier(members=LABELS),
    ParameterFreeClassifier(members=LABELS, stacking=False, share=0.0),
    LearningRateMixture(MirrorDescentClassifier(loss="hinge"), eta0s=3),
    ExpertMixtureClassifier(ONLINE_LABELS),
    ExpertMixtureClassifier([*ONLINE_LABELS, ("sgd", SGDClassifier(loss="log_loss", random_state=0))], loss="brier"),
    BayesMixture(ONLINE_LABELS, share=0.01),
]
MODELS = [model.set_params(delayed=True) for model in REGRESSORS + CLASSIFIERS]


def rows_for(model, n=96, several=False):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 3.0, size=(n, 3))
    y = X @ [1.0, 2.0, 0.5] + rng.normal(size=n) ** 2
    if not is_classifier(model):
        return X, np.c_[y, X[:, 0] - y] if several else y
    return X, np.c_[y > 5, X[:, 0] > 1].astype(int) if several else np.digitize(y, (5.0,))


def learn(model, X, y, block=24, **more):
    for i in range(0, len(y), block):
        first = {"classes": np.unique(y)} if is_classifier(model) and not i and y.ndim == 1 else {}
        if is_classifier(model) and y.ndim == 2 and not i:
            first = {"classes": np.arange(y.shape[1])}
        weights = {name: values[i : i + block] for name, values in more.items()}
        model.partial_fit(X[i : i + block], y[i : i + block], **first, **weights)
    return model


def answers(model, X):
    found = [model.predict(X), model.cumulative_loss_, model.weights_]
    found += [model.predict_proba(X)] if is_classifier(model) else []
    return found + (list(model.predict_interval(X)) if hasattr(model, "predict_interval") else [])


def assert_same(model, other, X):
    for one, two in zip(answers(model, X), answers(other, X), strict=True):
        assert_array_equal(one, two)


def first_row_is_only_learned(model):
    return isinstance(model, ExpertMixtureRegressor | ExpertMixtureClassifier | BayesMixture) and model.estimators


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_single_rows_are_as_without(model):
    X, y = rows_for(model)
    one, other = learn(clone(model), X, y, 1), learn(clone(model).set_params(delayed=False), X, y, 1)
    for a, b in zip(answers(one, X), answers(other, X), strict=True):
        assert_allclose(a, b, rtol=1e-9)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_losses_are_those_of_the_predictions_that_were_made(model):
    X, y = rows_for(model)
    model, total = clone(model), 0.0
    for i in range(0, len(y), 24):
        part = slice(i, i + 24)
        if i or not first_row_is_only_learned(model):
            total += loss_of(model, X[part], y[part], known=i > 0)
        learn(model, X[part], y[part]) if not i else model.partial_fit(X[part], y[part])
    assert_allclose(model.cumulative_loss_, total, rtol=1e-9)
    losses = getattr(model, "cumulative_losses_", getattr(model, "expert_losses_", None))
    if getattr(model, "strategy", None) not in {"eg", "ml_poly"}:
        assert model.cumulative_loss_ <= losses.min() + model.regret_bound_ + 1e-9


def loss_of(model, X, y, known):
    """The loss of what the model predicts for the rows."""
    if is_classifier(model):
        p = np.full((len(y), 2), 0.5)
        if known:
            p = model.predict_proba(X)
        if getattr(model, "loss", None) == "brier":
            return ((p - np.eye(2)[y]) ** 2).sum() / 2
        return -np.log(p[np.arange(len(y)), y]).sum()
    if known:
        a = model.predict(X)
    elif isinstance(model, ExpertMixtureRegressor):
        if model.strategy == "aggregating":
            return loss_of(learn(clone(model), X[:1], y[:1], sample_weight=np.zeros(1)), X, y, True)
        a = X.mean(axis=1)
    else:
        a = np.full(len(y), 1.0 if getattr(model, "loss", None) == "poisson" else 0.0)
    loss = getattr(model, "loss", "squared_error")
    if loss == "poisson":
        return (a - y + y * np.log(y / a)).sum()
    return np.abs(a - y).sum() if loss == "absolute_error" else ((a - y) ** 2).sum() / 2


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_models_learn_the_same_rows_as_without(model):
    X, y = rows_for(model)
    one, other = learn(clone(model), X, y), learn(clone(model).set_params(delayed=False), X, y)
    for a, b in zip(one.estimators_, other.estimators_, strict=True):
        if type(a).__module__.startswith("onlinebregman"):
            assert_array_equal(a.predict(X), b.predict(X))
    model = clone(model).set_params(random_state=0)
    fitted = clone(model).fit(X, y), clone(model).set_params(delayed=False).fit(X, y)
    assert_same(*fitted, X)
    for each in fitted:
        each.partial_fit(X, y)
    assert fitted[0].cumulative_loss_ != fitted[1].cumulative_loss_


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_weights_of_0_copies_and_refused_calls(model):
    X, y = rows_for(model)
    if isinstance(model, ExpertMixtureClassifier) and model.loss == "brier":
        model = clone(model).set_params(estimators=ONLINE_LABELS)
    counted = np.tile([1.0, 0.0, 2.0], 32)
    whole = learn(clone(model), X, y, sample_weight=counted)
    some = clone(model)
    for i in range(0, 96, 24):
        part = np.flatnonzero(counted[i : i + 24]) + i
        some = learn(some, X[part], y[part], sample_weight=counted[part])
        some = pickle.loads(pickle.dumps(copy.deepcopy(some)))
        bad = X[part].copy()
        bad[-1, 0] = np.inf
        with pytest.raises(ValueError):
            some.partial_fit(bad, y[part])
    assert_same(whole, some, X)


def test_a_refused_call_does_not_set_delayed():
    X, y = rows_for(MODELS[0])
    model, other = (learn(clone(MODELS[0]), X, y) for _ in range(2))
    with pytest.raises(ValueError, match="infinity"):
        model.set_params(delayed=False).partial_fit(X[:1], [1e300])
    assert_same(learn(model.set_params(delayed=True), X, y), learn(other, X, y), X)


@pytest.mark.parametrize("model", [each for each in MODELS if type(each).__name__.startswith("ParameterFree")], ids=str)
def test_threads_sparse_rows_and_several_outputs(model):
    X, y = rows_for(model, 600)
    one, other = (learn(clone(model).set_params(n_jobs=n), X, y, 300) for n in (1, 2))
    assert_same(one, other, X)
    if getattr(model, "loss", None) == "poisson":
        return
    X, y = rows_for(model, several=True)
    both = learn(clone(model), X, y)
    assert both.cumulative_loss_ <= both.cumulative_losses_.min(axis=1).sum() + both.regret_bound_ + 1e-9
    for k in range(2):
        single = learn(clone(model), X, y[:, k])
        assert_allclose(both.cumulative_losses_[k], single.cumulative_losses_, rtol=1e-9)


def test_classes_that_appear_in_a_block_are_added_before_it():
    X, y = rows_for(ParameterFreeClassifier())
    model = ParameterFreeClassifier(members=LABELS, delayed=True, handle_unknown="add")
    model.partial_fit(X[:24], np.zeros(24, dtype=int)).partial_fit(X[24:], y[24:])
    other = ParameterFreeClassifier(members=LABELS, delayed=True, handle_unknown="add")
    other.partial_fit(X[:24], np.zeros(24, dtype=int)).partial_fit(X[:1], [1], sample_weight=[0.0], classes=[0, 1])
    other.partial_fit(X[24:], y[24:])
    assert_same(model, other, X)
