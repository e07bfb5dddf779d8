"""The linear classifiers row by row: plain arrays skip the validation, with the same numbers and the same errors."""

import copy

import numpy as np
import pytest
from classifiers import some_rows
from numpy.testing import assert_array_equal
from raw import MirrorDescentClassifier
from scipy import sparse
from sklearn.base import clone

from onlinebregman import PerceptronClassifier, PNormClassifier, WinnowClassifier

CLASSIFIERS = [
    MirrorDescentClassifier(divergence="squared_euclidean"),
    MirrorDescentClassifier(divergence="simplex_entropy", signed=True, loss="hinge"),
    PNormClassifier(p=3.0),
    PerceptronClassifier(),
    WinnowClassifier(weights="simplex"),
]
every = pytest.mark.parametrize("model", CLASSIFIERS, ids=repr)


@every
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("labels", [int, float, str, object, np.uint8])
def test_plain_arrays_go_straight_to_the_kernel(model, n_classes, labels, no_validation, learned):
    X, y = some_rows(n_classes=n_classes)
    y = y.astype(labels)
    slow = clone(model).partial_fit(X.tolist(), y.tolist(), classes=np.unique(y)).partial_fit(X.tolist(), y.tolist())
    scores = slow.decision_function(X.tolist())
    fast = clone(model).partial_fit(X[:1], y[:1], classes=np.unique(y)).partial_fit(X[1:], y[1:])
    no_validation()
    for i in range(len(y)):
        assert fast.partial_fit(X[i : i + 1], y[i : i + 1]) is fast
    assert learned(fast) == learned(slow)
    assert_array_equal(fast.decision_function(X), scores)
    fast.predict(X[:1])
    fast.partial_fit(X.astype(np.float32), y).partial_fit(sparse.csr_array(X), y)
    fast.partial_fit(np.asfortranarray(X), y).partial_fit(X.astype(int), y).partial_fit(X, y, None, np.ones(60))
    fast.partial_fit(X[:1], y[:1].tolist())
    if labels in (int, float):
        fast.partial_fit(X, y.tolist())


@every
def test_a_parameter_set_in_mid_stream_is_taken_up_by_the_very_next_row(model, learned):
    X, y = some_rows()
    fast, slow, same = (clone(model).partial_fit(X, y, classes=[0, 1, 2]).partial_fit(X, y) for _ in range(3))
    for change in ({"eta0": 0.01}, {"fit_intercept": False}, {"average": 3}, {"class_weight": {2: 5.0}}):
        fast.set_params(**change).partial_fit(X[:1], y[:1]).partial_fit(X[1:], y[1:])
        slow.set_params(**change).partial_fit(X.tolist(), y.tolist())
        assert learned(fast) == learned(slow)
    assert learned(same.partial_fit(X, y)) != learned(fast)


def test_a_weight_of_a_class_may_be_changed_in_its_dict():
    X, y = some_rows(n_classes=2)
    weights = {0: 1.0, 1: 1.0}
    model = MirrorDescentClassifier(divergence="squared_euclidean", class_weight=weights).partial_fit(
        X, y, classes=[0, 1]
    )
    other = copy.deepcopy(model)
    weights[1] = 50.0
    assert model.partial_fit(X, y).predict(X).sum() > other.partial_fit(X, y).predict(X).sum()
