"""Contracts of every estimator with `handle_new_features="add"`: columns that come in mid-stream."""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

NAMES = ["c", "a", "d", "b"]
FIRST = NAMES[:2]


@pytest.mark.only(where=lambda estimator: "handle_new_features" in estimator.get_params())
def test_columns_may_come_in_mid_stream(estimator, rows, learn, learned, output, unchanged):
    X, y = pd.DataFrame(rows[0], columns=NAMES), rows[1]
    estimator.set_params(handle_new_features="add")
    start = learn(estimator, X.iloc[:10][FIRST], y[:10])
    total = getattr(getattr(start, "divergence_", None), "total", None)
    if (vars(start).get("thresholds") and not vars(start).get("members")) or (total is not None and start.average):
        with unchanged(start, "Features can"):
            start.partial_fit(X, y)
        return
    whole = copy.deepcopy(start).partial_fit(X[10:], y[10:])
    assert whole.feature_names_in_.tolist() == NAMES and whole.n_features_in_ == 4

    refused = X[10:].copy()
    refused.iloc[-1, 2] = np.inf
    with unchanged(start, "infinity"):
        start.partial_fit(refused, y[10:])
    for begin, end in pairwise([10, 11, 12, 25, 40]):  # in another order, copied in mid-stream
        start = pickle.loads(pickle.dumps(start)).partial_fit(
            X.iloc[begin:end][NAMES[::-1] if end == 12 else NAMES], y[begin:end]
        )
    assert learned(start) == learned(whole)

    more = X.assign(e=1.0)[["e", *NAMES[::-1]]]
    for name, values in output(whole, X).items():
        assert_array_equal(output(whole, more)[name], values, err_msg=name)
    normal = getattr(whole, "loss", "squared_error") == "squared_error"  # the loss that forward intervals are for
    for name in {"explain", *(["predict_interval"] if normal else [])} & set(dir(whole)):
        found, expected = (getattr(whole, name)(each) for each in (more, X))
        if name == "explain":
            found, expected = found.contributions, expected.contributions
        assert_array_equal(found, expected, err_msg=name)
    if has_fit_parameter(whole, "sample_weight"):
        before = learned(whole)
        whole.partial_fit(X[:5], y[:5], sample_weight=np.zeros(5))
        assert learned(whole) == before
    with unchanged(whole.set_params(handle_new_features="error"), "unseen at fit time"):
        whole.partial_fit(more, y)
    fresh = clone(estimator).set_params(handle_new_features="add").fit(X, y)
    assert learned(fresh.fit(X, y)) == learned(clone(fresh).fit(X, y))
