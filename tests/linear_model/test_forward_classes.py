"""ForwardClassifier: classes that appear later, an intercept without a penalty, and several outputs."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from softmax_replica import Replica, some_rows, weights_of

from onlinebregman import ForwardClassifier, ParameterFreeClassifier

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows


def late_rows(n=80, d=4, k=5, seed=0):
    """A stream in which classes 2, 3, ... appear one by one, the last of them in neighbouring rows."""
    X, y = some_rows(n, d, k, seed)
    y[:10] = np.arange(10) % 2
    for label, first in zip(range(2, k), (10, 31, 32, 50), strict=False):
        y[:first] = np.where(y[:first] >= label, y[:first] % 2, y[:first])
        y[first] = label
    return X, y


@pytest.mark.parametrize("gamma", [1.0, 0.9])
@pytest.mark.parametrize("first", [[0, 1], [1, 3, 4]])
def test_a_late_class_starts_at_its_prior(gamma, first):
    """The replica has all classes, but its formulas only include those that have been observed."""
    X, y = some_rows(60, 3, 5)
    y = np.where(np.arange(60) < 15, np.array(first)[np.arange(60) % len(first)], y)
    replica, begun = Replica(4, 5, 1.0, gamma), set(first)
    model = ForwardClassifier(standardize=False, forgetting=gamma, handle_unknown="add")
    for i, x in enumerate(np.c_[X, np.ones(60)]):
        begun.add(int(y[i]))
        classes = sorted(begun)
        part = Replica(4, len(classes), 1.0, gamma)
        part.W, part.A, part.loss = replica.W[classes], replica.A, replica.loss
        part.o, part.n = replica.o[classes], replica.n[classes]
        part.learn(x, classes.index(y[i]))
        replica.W[classes], replica.A, replica.loss = part.W, part.A, part.loss
        replica.o[classes], replica.n[classes] = part.o - part.o.mean(), part.n  # a new one starts in the middle
        model.partial_fit(X[i : i + 1], y[i : i + 1], first)
        assert model.classes_.tolist() == classes
        assert_allclose(weights_of(model), part.weights, rtol=1e-9, atol=1e-10)
    assert begun == set(range(5))
    assert model.cumulative_loss_ == pytest.approx(replica.loss, rel=1e-10) and model.t_ == 60


def test_a_class_may_be_announced_later():
    X, y = some_rows(60, 4, 2)
    model = ForwardClassifier(handle_unknown="add").partial_fit(X[:30], y[:30], [0, 1])
    scores = model.decision_function(X)
    model.partial_fit(X[30:31], y[30:31], [0, 1, 7], sample_weight=[0.0])
    assert model.classes_.tolist() == [0, 1, 7] and model.coef_.shape == (3, 4)
    assert_allclose(model.decision_function(X), np.c_[-scores / 2, scores / 2, 0 * scores], rtol=1e-12, atol=1e-13)
    model.partial_fit(X[30:], y[30:], [0, 1])  # existing classes are unchanged
    assert model.classes_.tolist() == [0, 1, 7]
    assert (model.predict_proba(X)[:, 2] < 0.5).all()
    assert model.partial_fit(X[:1], [7]).predict_proba(X[:1])[0, 2] > 0.05


@pytest.mark.parametrize("standardize", [False, True])
def test_a_call_with_a_new_class_learns_all_or_nothing(standardize, unchanged):
    X, y = late_rows()
    bad, weights = X.copy(), np.ones(len(y))
    if standardize:  # which limits values
        weights[[30, 60]] = 8e307  # whose losses add up to infinity
    else:
        bad[60] = 1e200
    model = ForwardClassifier(handle_unknown="add", standardize=standardize).partial_fit(X[:9], y[:9], [0, 1])
    for form in (bad, bad.tolist(), sparse.csr_array(bad)):
        for labels in (y, y + 0.0):
            with unchanged(model, "[Rr]ow"):
                model.partial_fit(form, labels, [0, 1, 9], weights)
    expected = copy.deepcopy(model).partial_fit(X, y)
    assert_array_equal(model.partial_fit(X, y).coef_, expected.coef_)


def test_labels_that_cannot_be_classes_are_refused(unchanged):
    X, y = some_rows(20, 3, 2)
    model = ForwardClassifier(handle_unknown="add").partial_fit(X, y, [0, 1])
    with unchanged(model, "strings and numbers"):
        model.partial_fit(X[:1], ["x"])
    with unchanged(model, "NaN|nan"):
        model.partial_fit(X[:1], [np.nan])
    with unchanged(model, "strings and numbers"):
        model.partial_fit(X[:1], y[:1], ["x"])
    with unchanged(model.set_params(handle_unknown="error"), "The label 3 at row 0 is not one of the classes"):
        model.partial_fit(X[:1], [3])
    with unchanged(model.set_params(handle_unknown="ignore"), "'handle_unknown' parameter of ForwardClassifier"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        ForwardClassifier().partial_fit(X, y)


# --- an intercept without a penalty -----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 4])
def test_a_free_intercept_has_a_tiny_penalty(k):
    X, y = some_rows(60, 4, k)
    replica = Replica(5, k, 2.0, 1.0)
    replica.A[-1, -1] = 1e-4
    for x, label in zip(np.c_[X, np.ones(60)], y, strict=True):
        replica.learn(x, label)
    model = ForwardClassifier(standardize=False, alpha=2.0, penalize_intercept=False).fit(X, y)
    assert_allclose(weights_of(model), replica.weights, rtol=1e-8, atol=1e-9)
    tiny = ForwardClassifier(standardize=False, alpha=1e-6, penalize_intercept=False).fit(X, y)
    assert_array_equal(tiny.coef_, ForwardClassifier(standardize=False, alpha=1e-6).fit(X, y).coef_)


def test_models_of_a_mixture_do_not_add_classes(unchanged):
    X, y = late_rows()
    mixture = ParameterFreeClassifier(members=[ForwardClassifier(handle_unknown="add"), ForwardClassifier(alpha=0.1)])
    mixture.partial_fit(X[:10], y[:10], classes=[0, 1])
    with unchanged(mixture, "The label 2 at row 0 is not one of the classes"):
        mixture.partial_fit(X[10:], y[10:])
