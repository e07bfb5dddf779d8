"""handle_new_features="add": columns of data frames that appear in mid-stream."""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

from onlinebregman import (
    BurgRegressor,
    EGRegressor,
    ForwardClassifier,
    ForwardRegressor,
    ImplicitGDRegressor,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    OneClassMirrorDescent,
    ParameterFreeClassifier,
    ParameterFreeRegressor,
    PerceptronClassifier,
    PNormRegressor,
    ScaleInvariantRegressor,
    WinnowClassifier,
)
from onlinebregman.divergences import SquaredEuclidean

ADD = {"handle_new_features": "add"}


class Own(SquaredEuclidean):
    """Without a compiled counterpart."""


MODELS = [
    ImplicitGDRegressor(standardize=True, track_regret=True, average=True, **ADD),
    BurgRegressor(init=0.5, track_regret=True, **ADD),
    EGRegressor(weights="positive", init=0.5, **ADD),
    PNormRegressor(p=3.0, track_regret=True, **ADD),
    ScaleInvariantRegressor(average=True, **ADD),
    MirrorDescentRegressor(track_regret=True, standardize=True, **ADD),
    MirrorDescentRegressor(divergence="diagonal_newton", penalty="l1", alpha=0.01, **ADD),
    MirrorDescentRegressor(divergence=Own(), penalty="elasticnet", alpha=0.01, **ADD),
    MirrorDescentRegressor(divergence="squared_euclidean", penalty="l2", alpha=0.01, track_regret=True, **ADD),
    MirrorDescentClassifier(multi_class="multinomial", handle_unknown="add", divergence="adagrad", eta0=1.0, **ADD),
    PerceptronClassifier(average=True, **ADD),
    WinnowClassifier(weights="positive", init=0.5, **ADD),
    OneClassMirrorDescent(**ADD),
    ForwardRegressor(standardize=True, **ADD),
    ForwardRegressor(loss="poisson", fit_intercept=False, **ADD),
    ForwardClassifier(standardize=True, **ADD),
]
NAMES = [type(model).__name__ for model in MODELS]
CUTS = [0, 20, 45, 90]  # where the width changes
WIDTHS = [["b", "a"], ["c", "b", "a"], ["b", "d", "c", "a", "e"]]


def stream(model):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(90, 5)), columns=["b", "a", "c", "d", "e"])
    X.loc[:19, "c"] = 0.0
    X.loc[:44, ["d", "e"]] = 0.0
    y = X.to_numpy() @ [1.0, -1.0, 2.0, 1.0, -2.0]
    if is_classifier(model):
        y = np.digitize(y, [-1.0, 1.0]) if getattr(model, "multi_class", "") == "multinomial" else y > 0
    return X, np.exp(y / 4) if getattr(model, "loss", "") == "poisson" else y


def learned(model, X, y, cuts=(), frame=pd.DataFrame):
    """The columns in the order of each part of the stream."""
    ends = sorted({*CUTS, *cuts})
    for start, end in pairwise(ends):
        columns = WIDTHS[np.searchsorted(CUTS, start, side="right") - 1]
        classes = {"classes": np.unique(y)} if is_classifier(model) and start == 0 else {}
        model.partial_fit(frame(X.iloc[start:end][columns].to_dict("list")), y[start:end], **classes)
        model = pickle.loads(pickle.dumps(model)) if start % 2 else copy.deepcopy(model)
    return model


@pytest.mark.parametrize("model", MODELS, ids=NAMES)
def test_new_features_were_0_in_the_rows_before(model):
    """The same as a model of all columns, by rounding; and bit for bit, however the stream is cut."""
    X, y = stream(model)
    added = learned(clone(model), X, y)
    assert added.feature_names_in_.tolist() == list(X.columns) and added.n_features_in_ == 5
    classes = {"classes": np.unique(y)} if is_classifier(model) else {}
    announced = clone(model).partial_fit(X, y, **classes)
    assert_allclose(added.coef_, announced.coef_, rtol=1e-7, atol=1e-10)
    assert_allclose(added.predict(X), announced.predict(X), rtol=1e-7, atol=1e-9)
    assert added.cumulative_loss_ == pytest.approx(announced.cumulative_loss_, rel=1e-8)
    assert added.t_ == announced.t_ == 90
    named = hasattr(
        StandardScaler().fit(pl.DataFrame({"a": [0.0, 1.0]})), "feature_names_in_"
    )  # not by scikit-learn 1.6
    again = learned(clone(model), X, y, cuts=(3, 21, 22, 60), frame=pl.DataFrame if named else pd.DataFrame)
    assert_array_equal(again.coef_, added.coef_)
    assert again.cumulative_loss_ == added.cumulative_loss_


@pytest.mark.parametrize("signed", [False, True])
def test_weights_of_a_fixed_total_take_the_mean_weight_from_the_others(signed):
    X, y = stream(ImplicitGDRegressor())
    model = MirrorDescentRegressor(
        divergence="simplex_entropy", signed=signed, track_regret=True, learning_rate="constant", eta0=0.1, **ADD
    )
    model.partial_fit(X.iloc[:20][["b", "a"]], y[:20])
    before = model._learner.geometry.state_weights.reshape(-1, 2)
    model.partial_fit(X[:1], y[:1], sample_weight=[0.0])
    after = model._learner.geometry.state_weights.reshape(-1, 5)
    assert_allclose(after[:, :2], before * 2 / 5, rtol=1e-12)
    assert_allclose(after[:, 2:], 0.2 / len(after), rtol=1e-12)
    assert model.partial_fit(X, y)._learner.geometry.state_weights.sum() == pytest.approx(1.0)


def test_what_cannot_grow(unchanged):
    X, y = stream(ImplicitGDRegressor())
    start = X.iloc[:20][["b", "a"]]
    for settings, reason in (
        ({"thresholds": "no_interactions"}, "set thresholds=None"),
        ({"init": [0.1, 0.2]}, "one weight for each of the 5 features"),
        ({"divergence": "simplex_entropy", "average": True}, "use average=False"),
    ):
        model = MirrorDescentRegressor(**settings, **ADD).partial_fit(start, y[:20])
        with unchanged(model, reason):
            model.partial_fit(X, y)
    model = ForwardRegressor(random_features=5, random_state=0, **ADD).partial_fit(start, y[:20])
    with unchanged(model, "random_features"):
        model.partial_fit(X, y)


def test_several_outputs_and_given_weights_grow():
    X, y = stream(ImplicitGDRegressor())
    Y, start = np.column_stack([y, -y]), [[0.1, 0.2], [0.3, 0.4]]
    for model in (MirrorDescentRegressor(warm_start=True, **ADD), ForwardRegressor(warm_start=True, **ADD)):
        alone = isinstance(model, ForwardRegressor)
        given = {"shuffle": False} if alone else {"max_iter": 1, "tol": None, "shuffle": False}
        first = {} if alone else {"coef_init": start}
        added = clone(model).set_params(**given).fit(X.iloc[:20][["b", "a"]], Y[:20], **first).partial_fit(X, Y)
        first = {"coef_init": np.c_[start, np.zeros((2, 3))]} if not alone else {}
        announced = clone(model).set_params(**given).fit(X.iloc[:20], Y[:20], **first).partial_fit(X, Y)
        assert added.coef_.shape == (2, 5)
        assert_allclose(added.coef_, announced.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("number", [1, 2])  # of new features
@pytest.mark.parametrize("kind", [ParameterFreeRegressor, ParameterFreeClassifier])
def test_features_are_added_after_missing_values(kind, number, unchanged):
    X, y = stream(ImplicitGDRegressor())
    X = X[["b", "a", "c", "d"]]
    X.iloc[:45, -number:] = 0.0
    X.iloc[::5, 0] = X.iloc[50::7, 3] = np.nan
    y, classes = (y > 0, {"classes": [False, True]}) if kind is ParameterFreeClassifier else (y, {})
    model = kind(thresholds=False, random_features=0, **ADD)  # so that missing values have no indicators
    announced = clone(model).partial_fit(X, y, **classes)
    added = model.partial_fit(X.iloc[:45, :-number], y[:45], **classes)
    with unchanged(added, "infinity"):
        added.partial_fit(X[45:].replace(X.iloc[-1, -1], np.inf), y[45:])
    added = pickle.loads(pickle.dumps(added.partial_fit(X[45:60], y[45:60]))).partial_fit(X[60:], y[60:])
    for one, other in zip(added.estimators_, announced.estimators_, strict=True):
        assert_array_equal(one.mean_, other.mean_)
        assert_array_equal(one.scale_, other.scale_)
        if getattr(one, "forgetting", 1.0) == 1.0:
            assert_allclose(one.coef_, other.coef_, rtol=1e-7, atol=1e-10)


# --- every estimator --------------------------------------------------------------------------------------------------


COLUMNS = ["c", "a", "d", "b"]
FIRST = COLUMNS[:2]


@pytest.mark.only(where=lambda estimator: "handle_new_features" in estimator.get_params())
def test_columns_may_come_in_mid_stream(estimator, rows, learn, learned, output, unchanged):
    X, y = pd.DataFrame(rows[0], columns=COLUMNS), rows[1]
    estimator.set_params(handle_new_features="add")
    start = learn(estimator, X.iloc[:10][FIRST], y[:10])
    total = getattr(getattr(start, "divergence_", None), "total", None)
    if (vars(start).get("thresholds") and not vars(start).get("members")) or (total is not None and start.average):
        with unchanged(start, "Features can"):
            start.partial_fit(X, y)
        return
    whole = copy.deepcopy(start).partial_fit(X[10:], y[10:])
    assert whole.feature_names_in_.tolist() == COLUMNS and whole.n_features_in_ == 4

    refused = X[10:].copy()
    refused.iloc[-1, 2] = np.inf
    with unchanged(start, "infinity"):
        start.partial_fit(refused, y[10:])
    for begin, end in pairwise([10, 11, 12, 25, 40]):  # in another order, copied in mid-stream
        start = pickle.loads(pickle.dumps(start)).partial_fit(
            X.iloc[begin:end][COLUMNS[::-1] if end == 12 else COLUMNS], y[begin:end]
        )
    assert learned(start) == learned(whole)

    more = X.assign(e=1.0)[["e", *COLUMNS[::-1]]]
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
