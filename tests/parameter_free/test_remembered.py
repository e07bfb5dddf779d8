"""The memory of labels and targets: against plain NumPy, late, shuffled, with new classes, explained and exported."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax
from sklearn.base import clone

from onlinebregman import (
    ForwardClassifier,
    ForwardRegressor,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    ParameterFreeClassifier,
    ParameterFreeRegressor,
)
from onlinebregman.reference import AdaHedge, ForwardRegression, label_forecasts

CLASSIFIERS = [MirrorDescentClassifier(eta0=0.3), ForwardClassifier()]
REGRESSORS = [MirrorDescentRegressor(), ForwardRegressor(forgetting=0.95)]


def labels(n_classes, n=80, seed=0):
    """Labels that follow each other, and rows that say little."""
    rng = np.random.default_rng(seed)
    y = np.cumsum(rng.random(n) < 0.9) % n_classes
    return rng.normal(size=(n, 3)) + 0.3 * y[:, np.newaxis], y


def numbers(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, 5.0 + X @ [1.0, -0.5, 0.2] + np.cumsum(rng.normal(size=n))


def without(model, X, y, **first):
    """A model without memory, and its predictions of each row before it was learned."""
    model, said = clone(model).set_params(memory=False), []
    for i in range(len(y)):
        said.append(getattr(model, "predict_proba", model.predict)(X[i : i + 1])[0] if i else None)
        model.partial_fit(X[i : i + 1], y[i : i + 1], **first)
    return model, said


# --- what is remembered -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("share", [0.0, 0.05])
def test_labels_are_remembered_as_by_the_reference(n_classes, share):
    X, y = labels(n_classes)
    first = {"classes": np.arange(n_classes)}
    model = ParameterFreeClassifier(members=CLASSIFIERS, share=share)
    alone, said = without(model, X, y, **first)
    said[0] = np.full(n_classes, 1 / n_classes)
    top = AdaHedge(3, share, 1.0, [0.5, 0.25, 0.25])
    each = [ForwardRegression(2, 1, 0.1, gamma=0.999), ForwardRegression(2, 1, 10.0)]
    for i in range(len(y)):
        p, coef = np.log(said[i]), np.array([one.w[:, 0] for one in each])
        x = np.zeros((2, n_classes))
        if i:
            forecasts = np.array(label_forecasts(y[:i], n_classes))
            x = np.log(forecasts) - p
            x = np.clip(
                x - (x[:, :1] if n_classes == 2 else np.log(forecasts.max(axis=1) / said[i].max())[:, None]), -10, 10
            )
        logs = np.array([p, *(log_softmax(p + b @ x) for b in coef)])
        if i:
            assert_allclose(model.predict_proba(X[i : i + 1])[0], top.v @ np.exp(logs), rtol=1e-8)
            assert_allclose(model.memory_weights_, top.v, rtol=1e-8)
            assert_allclose(model.memory_coef_, coef, rtol=1e-7, atol=1e-12)
        counts = np.bincount(y[:i])
        counts = counts[counts > 0]
        top.share = share / np.mean(1 / counts) / counts.mean() if len(counts) > 1 else 0.0
        top.learn(-logs[:, y[i]], -np.log(top.v @ np.exp(logs[:, y[i]])))
        for one, log_q in zip(each if i else [], logs[1:], strict=False):
            g = x @ ((np.arange(n_classes) == y[i]) - np.exp(log_q))
            one.learn(g, [one.w[:, 0] @ g + 1], 1.0)
        model.partial_fit(X[i : i + 1], y[i : i + 1], **first)
    assert_allclose(model.cumulative_loss_, top.loss, rtol=1e-9)
    assert_array_equal(model.cumulative_losses_, alone.cumulative_losses_)
    assert model.cumulative_loss_ < 0.9 * alone.cumulative_loss_
    assert model.cumulative_loss_ - model.cumulative_losses_.min() <= model.regret_bound_
    whole = clone(model).partial_fit(X, y, **first)
    assert_array_equal(whole.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("stacking", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.05])
def test_numbers_are_remembered_as_by_the_reference(stacking, share):
    X, y = numbers()
    model = ParameterFreeRegressor(members=REGRESSORS, share=share, stacking=stacking)
    alone, said = without(model, X, y)
    said[0] = y[0]
    top, correction, errors = AdaHedge(2, share), ForwardRegression(4, 1, 1.0, gamma=0.999), []
    for i in range(len(y)):
        p = q = said[i]
        scale = np.sqrt(np.mean(np.square(errors))) if i > 1 else 0.0
        if scale:
            x = np.array([*[*errors[:-3:-1], 0.0][:2], y[i - 1] - p, y[i - 2] - p]) / scale
            q = np.clip(p + scale * correction.predict(x)[0], y[:i].min(), y[:i].max())
        if i:
            assert_allclose(model.predict(X[i : i + 1])[0], top.v @ [p, q], rtol=1e-8)
            assert_allclose(model.memory_weights_, top.v, rtol=1e-7)
        top.learn((np.array([p, q]) - y[i]) ** 2 / 2, (top.v @ [p, q] - y[i]) ** 2 / 2)
        if scale:
            correction.learn(x, [(y[i] - p) / scale], 1.0)
        if i:
            errors.append(y[i] - p)
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    assert_allclose(model.memory_coef_, correction.w.T, rtol=1e-6)
    assert_array_equal(model.cumulative_losses_, alone.cumulative_losses_)
    assert model.cumulative_loss_ - model.cumulative_losses_.min() <= model.regret_bound_
    whole = clone(model).partial_fit(X, y)
    assert_array_equal(whole.predict(X), model.predict(X))
    lower, upper = model.predict_interval(X)
    assert_allclose((lower + upper) / 2, model.predict(X))


def test_the_units_and_the_level_of_targets_do_not_matter():
    X, y = numbers()
    model = ParameterFreeRegressor(members=REGRESSORS).partial_fit(X, y)
    other = clone(model).partial_fit(X, 2.0**40 * y)
    assert_array_equal(other.predict(X), 2.0**40 * model.predict(X))
    other = clone(model).partial_fit(X, y + 2.0**30)
    assert_allclose(other.predict(X) - 2.0**30, model.predict(X), rtol=1e-5)


# --- rows without an order, and late ones -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["numbers", "labels", "many"])
def test_a_fit_that_shuffles_remembers_nothing(kind):
    X, y = numbers() if kind == "numbers" else labels(2 if kind == "labels" else 4)
    model = ParameterFreeRegressor(members=REGRESSORS)
    if kind != "numbers":
        model = ParameterFreeClassifier(members=CLASSIFIERS)
    said = getattr(model, "predict_proba", model.predict).__name__
    alone = clone(model).set_params(memory=False).fit(X, y)
    model.fit(X, y)
    assert_array_equal(getattr(model, said)(X), getattr(alone, said)(X))
    assert_allclose(model.cumulative_loss_, alone.cumulative_loss_, rtol=1e-12)
    ordered = clone(model).set_params(shuffle=False).fit(X, y)
    assert_array_equal(
        getattr(ordered, said)(X),
        getattr(clone(model).partial_fit(X, y, **({"classes": np.unique(y)} if kind != "numbers" else {})), said)(X),
    )
    for _ in range(3):  # the stream that follows is remembered
        model.partial_fit(X, y)
        alone.partial_fit(X, y)
    assert model.cumulative_loss_ < 0.97 * alone.cumulative_loss_


def test_late_labels_have_the_memory_of_their_prediction():
    """Labels that alternate: known before, of every other row in a block of ten, by nobody."""
    y = np.arange(400) % 2
    X = np.random.default_rng(0).normal(size=(400, 2))
    at_once = ParameterFreeClassifier(members=CLASSIFIERS).partial_fit(X, y, classes=[0, 1])
    late = ParameterFreeClassifier(members=CLASSIFIERS, delayed=True)
    total, alone = 0.0, clone(late).set_params(memory=False)
    for i in range(0, 400, 10):
        p = late.predict_proba(X[i : i + 10]) if i else np.full((10, 2), 0.5)
        total -= np.log(p[np.arange(10), y[i : i + 10]]).sum()
        late.partial_fit(X[i : i + 10], y[i : i + 10], classes=[0, 1])
        alone.partial_fit(X[i : i + 10], y[i : i + 10], classes=[0, 1])
    assert at_once.cumulative_loss_ < 30
    assert_allclose(late.cumulative_loss_, total, rtol=1e-9)
    assert late.cumulative_loss_ < alone.cumulative_loss_ + np.log(43)
    assert_allclose(late.predict_proba(X), alone.predict_proba(X), atol=0.1)
    assert np.abs(late.memory_coef_[:, 0]).max() < 0.3 < at_once.memory_coef_[:, 0].min()


def test_late_numbers_learn_from_what_was_known():
    """A level that stays for eight blocks is known from the last row of the block before, an alternation is not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2))
    y = X[:, 0] + 3.0 * np.repeat(rng.normal(size=50), 80) + np.arange(4000) % 2
    losses = {}
    for memory in (False, True):
        model = ParameterFreeRegressor(members=[ForwardRegressor()], delayed=True, memory=memory)
        for i in range(0, 4000, 10):
            model.partial_fit(X[i : i + 10], y[i : i + 10])
        losses[memory] = model.cumulative_loss_
    assert losses[True] < 0.6 * losses[False]


# --- classes, outputs, explanations and exports -----------------------------------------------------------------------


def test_new_classes_are_remembered():
    X, y = labels(4, 200)
    model = ParameterFreeClassifier(members=CLASSIFIERS, handle_unknown="add")
    for i in range(200):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    assert model.classes_.tolist() == [0, 1, 2, 3]
    following = [model.predict_proba(X)[:, label].mean() for label in range(4)]
    assert np.argmax(following) == (y[-1] + 1) % 4
    one = clone(model).partial_fit(X, y)
    assert_array_equal(one.predict_proba(X), model.predict_proba(X))


def test_labels_keep_their_followers_when_a_class_is_added():
    model = ParameterFreeClassifier(members=CLASSIFIERS, handle_unknown="add")
    X = np.random.default_rng(0).normal(size=(42, 2))
    model.partial_fit(X[:40], ["a", "c"] * 20).partial_fit(X[40:], ["b", "a"])
    chain, recent = model._learner.mixer.memory.features()[0]
    assert chain.argmax() == 2 and chain[2] > 2 + chain[:2].max()
    assert recent[1] > chain[1]


def test_each_output_and_label_has_a_memory_of_its_own():
    X, y = numbers()
    model = ParameterFreeRegressor(members=REGRESSORS).partial_fit(X, np.c_[y, -2.0 * y])
    one = ParameterFreeRegressor(members=REGRESSORS).partial_fit(X, y)
    assert_allclose(model.predict(X), np.c_[one.predict(X), -2.0 * one.predict(X)])
    assert model.memory_weights_.shape == (2, 2) and model.memory_coef_.shape == (2, 1, 4)
    X, y = labels(2)
    model = ParameterFreeClassifier(members=CLASSIFIERS).partial_fit(X, np.c_[y, 1 - y], classes=[0, 1])
    one = ParameterFreeClassifier(members=CLASSIFIERS).partial_fit(X, y, classes=[0, 1])
    assert_allclose(model.predict_proba(X)[:, 0], one.predict_proba(X)[:, 1])
    shuffled = ParameterFreeClassifier(members=CLASSIFIERS).fit(X, np.c_[y, 1 - y])
    alone = ParameterFreeClassifier(members=CLASSIFIERS, memory=False).fit(X, np.c_[y, 1 - y])
    assert_array_equal(shuffled.predict_proba(X), alone.predict_proba(X))


def remembering(kind):
    if kind == "numbers":
        X, y = numbers(300)
        return ParameterFreeRegressor(members=REGRESSORS).partial_fit(X, y), X
    n_classes = 2 if kind == "labels" else 4
    X, y = labels(n_classes, 300)
    return ParameterFreeClassifier(members=CLASSIFIERS).partial_fit(X, y, classes=np.arange(n_classes)), X


@pytest.mark.parametrize("kind", ["numbers", "labels", "many"])
def test_the_memory_is_a_term_of_explanations(kind):
    model, X = remembering(kind)
    explanation = model.explain(4.0 * X)
    assert_allclose(explanation.contributions.sum(axis=1), explanation.scores, rtol=1e-9, atol=1e-9)
    assert list(explanation.terms) == ["x0", "x1", "x2", "memory", "bias"]
    assert np.abs(explanation.contributions[:, 3]).max() > 0.2
    assert "memory" not in model.fit(X, np.arange(len(X)) % 2).explain(X[:1]).terms
