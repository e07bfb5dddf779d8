"""Contracts of linear models row by row: plain arrays skip the validation, with the same numbers."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags

from onlinebregman.losses import QuantileLoss


def goes_straight(estimator):
    """Whether it is linear, with one weight for all classes and one target for each row."""
    parameters = estimator.get_params()
    linear = type(estimator).__module__.startswith("onlinebregman.linear_model")
    return linear and not parameters.get("class_weight") and not isinstance(parameters.get("loss"), QuantileLoss)


@pytest.mark.only(where=goes_straight)
def test_plain_arrays_go_straight_to_the_kernel(estimator, rows, learned, output, no_validation):
    X, targets = rows
    pairs = []
    for kind in (int, float, str, object, np.uint8) if is_classifier(estimator) else (float,):
        fast, slow, y = clone(estimator), clone(estimator), targets.astype(kind)
        classes = [np.unique(y)] if is_classifier(estimator) else []
        fast.partial_fit(X[:1], y[:1], *classes).partial_fit(X[1:], y[1:])
        slow.partial_fit(X.tolist(), y.tolist(), *classes).partial_fit(X.tolist(), y.tolist())
        pairs.append((fast, slow, y, output(slow, X.tolist())))
    no_validation()
    for fast, slow, y, expected in pairs:
        for i in range(len(y)):
            assert fast.partial_fit(X[i : i + 1], y[i : i + 1]) is fast
        assert learned(fast) == learned(slow)
        for name, values in output(fast, X).items():
            assert_array_equal(values, expected[name])
        fast.partial_fit(X.astype(np.float32), y).partial_fit(np.asfortranarray(X), y).partial_fit(X.astype(int), y)
        fast.partial_fit(X, y, sample_weight=np.ones(len(y))).partial_fit(X[:1], y[:1].tolist())
        if get_tags(fast).input_tags.sparse:
            fast.partial_fit(sparse.csr_array(X), y)
