"""Streams that grow: new features by handle_new_features="add", new classes by handle_unknown="add"."""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import log_softmax, softmax
from sklearn.base import clone, is_classifier
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

from onlinebregman import (
    BayesMixture,
    BurgRegressor,
    EGRegressor,
    ExpertMixtureClassifier,
    ForwardClassifier,
    ForwardRegressor,
    ImplicitGDRegressor,
    LearningRateMixture,
    LearningRatePath,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    OneClassMirrorDescent,
    ParameterFreeClassifier,
    ParameterFreeRegressor,
    PerceptronClassifier,
    PNormClassifier,
    PNormRegressor,
    ScaleInvariantClassifier,
    ScaleInvariantRegressor,
    WinnowClassifier,
)
from onlinebregman.divergences import SquaredEuclidean
from onlinebregman.persistence import load_model, save_model

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
    # not by scikit-learn 1.6
    named = hasattr(StandardScaler().fit(pl.DataFrame({"a": [0.0, 1.0]})), "feature_names_in_")
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


@pytest.mark.only(where=lambda estimator: "handle_new_features" in estimator.get_params())
def test_columns_may_come_in_mid_stream(estimator, rows, learn, learned, output, unchanged):
    X, y = pd.DataFrame(rows[0], columns=COLUMNS), rows[1]
    estimator.set_params(handle_new_features="add")
    start = learn(estimator, X.iloc[:10][COLUMNS[:2]], y[:10])
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


# --- classes ----------------------------------------------------------------------------------------------------------


ADD_CLASSES = {"handle_unknown": "add"}
GD = {"divergence": "squared_euclidean", "eta0": 0.3, **ADD_CLASSES}
EXPERTS = [("md", MirrorDescentClassifier(**ADD_CLASSES)), ("forward", ForwardClassifier(**ADD_CLASSES))]
MEMBERS = [
    PNormClassifier(loss="hinge"),
    MirrorDescentClassifier(standardize=True),
    ForwardClassifier(random_features=9, random_state=0),
]
CLASSIFIERS = [
    MirrorDescentClassifier(**GD, learning_rate="sqrt", average=5),
    MirrorDescentClassifier(
        divergence="relative_entropy", signed=True, standardize=True, loss="squared_hinge", **ADD_CLASSES
    ),
    MirrorDescentClassifier(multi_class="multinomial", standardize=True, class_weight={0: 2.0, 3: 0.5}, **ADD_CLASSES),
    PNormClassifier(**ADD_CLASSES),
    PerceptronClassifier(**ADD_CLASSES),
    WinnowClassifier(**ADD_CLASSES),
    ScaleInvariantClassifier(**ADD_CLASSES),
    ForwardClassifier(standardize=True, **ADD_CLASSES),
    ParameterFreeClassifier(members=MEMBERS, **ADD_CLASSES),
    LearningRateMixture(PNormClassifier(loss="hinge", **ADD_CLASSES), eta0s=3),
    LearningRatePath(MirrorDescentClassifier(**ADD_CLASSES), eta0s=3),
    BayesMixture(EXPERTS, **ADD_CLASSES),
    ExpertMixtureClassifier(EXPERTS, loss="brier", **ADD_CLASSES),
]
CLASSIFIER_NAMES = [type(model).__name__ for model in CLASSIFIERS]


def late_classes(n=80, d=4, k=5, seed=0):
    """Rows of one class, then of two, then of more, the last ones in neighbouring rows."""
    rng = np.random.default_rng(seed)
    X, t = rng.normal(size=(n, d)), np.arange(n)
    allowed = np.searchsorted([4, 20, 41, 42], t, side="right") + 1
    y = np.minimum((2.0 * X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k))).argmax(axis=1), k) % allowed
    y[[0, 4, 20, 41, 42]] = np.arange(k)
    return X, np.array([3, 1, 4, 0, 2])[y]


def outputs(model, X):
    return (model.predict_proba if hasattr(model, "predict_proba") else model.decision_function)(X)


def losses(model):
    names = [name for name in ("cumulative_loss_", "cumulative_losses_") if hasattr(model, name)]
    return np.hstack([getattr(model, name) for name in names]).tolist()


@pytest.mark.parametrize("model", CLASSIFIERS, ids=CLASSIFIER_NAMES)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_a_stream_may_be_cut_anywhere(model, make, tmp_path):
    """Also between copies and files; rows of weight 0 are ignored, and bring no classes."""
    X, y = late_classes()
    X, h = make(X), np.random.default_rng(1).choice([0.0, 1.0, 2.5], size=80)
    h[0], h[60] = 1.0, 0.0
    y[60] = 9
    whole = clone(model).partial_fit(X, y, sample_weight=h)
    assert set(whole.classes_) == set(y[h > 0]) and whole.predict(X).tolist() != y.tolist()
    for cuts in ([0, 1, 2, 3, 4, 5, 20, 21, 42, 43, 80], [0, 30, 80]):
        parts = clone(model)
        for start, end in pairwise(cuts):
            parts.partial_fit(X[start:end], y[start:end], sample_weight=h[start:end])
            if start == 4:
                save_model(parts, tmp_path / "model.zip")
                parts = load_model(tmp_path / "model.zip")
            parts = pickle.loads(pickle.dumps(parts)) if start % 2 else copy.deepcopy(parts)
        assert_array_equal(outputs(parts, X), outputs(whole, X))
        assert parts.t_ == whole.t_ and losses(parts) == losses(whole)
    if hasattr(whole, "predict_proba"):
        assert_allclose(whole.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=CLASSIFIER_NAMES)
def test_a_call_learns_all_or_nothing(model, unchanged):
    X, y = late_classes()
    bad = X.copy()
    bad[70] = np.nan
    fitted = clone(model).partial_fit(X[:15], y[:15])
    with unchanged(fitted, "NaN"):
        fitted.partial_fit(bad, y)
    with unchanged(fitted, "NaN"):
        fitted.partial_fit(bad, y, sample_weight=np.ones(80))
    with unchanged(fitted, "strings and numbers"):
        fitted.partial_fit(X[:1], ["x"])
    expected = outputs(copy.deepcopy(fitted).partial_fit(X[15:], y[15:]), X)
    assert_array_equal(outputs(fitted.partial_fit(X[15:], y[15:]), X), expected)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=CLASSIFIER_NAMES)
def test_classes_may_be_announced_and_there_may_be_one(model):
    X, y = late_classes()
    one = clone(model).partial_fit(X[:4], y[:4])
    assert one.classes_.tolist() == [3] and one.predict(X).tolist() == [3] * 80
    if hasattr(one, "predict_proba"):
        assert_array_equal(one.predict_proba(X), np.ones((80, 1)))
    one.partial_fit(X[4:6], [3, 3], classes=[7, 1])
    assert one.classes_.tolist() == [1, 3, 7]
    two = clone(model).partial_fit(X[:4], y[:4], classes=[3, 8])
    assert two.classes_.tolist() == [3, 8] and set(two.predict(X)) <= {3, 8}
    if hasattr(two, "decision_function"):
        assert two.decision_function(X).shape == (80,)
        assert_array_equal(two.predict(X) == 8, two.decision_function(X) > 0)
    for refused in (PerceptronClassifier(), PNormClassifier(), BayesMixture(EXPERTS)):
        with pytest.raises(ValueError, match="classes must be passed on the first call"):
            refused.partial_fit(X, y)
    with pytest.raises(ValueError, match="weight > 0, or all of its labels"):
        clone(model).partial_fit(X[:2], y[:2], sample_weight=[0, 0])


@pytest.mark.parametrize(
    "model", [CLASSIFIERS[i] for i in (0, 1, 3, 4, 5, 6)], ids=[CLASSIFIER_NAMES[i] for i in (0, 1, 3, 4, 5, 6)]
)
def test_one_against_the_rest_is_a_learner_of_the_rows_since_the_first_of_its_class(model):
    """With what the rows before have told about the scales of columns."""
    X, y = late_classes()
    together = clone(model).set_params(**({"standardize": False} if "standardize" in model.get_params() else {}))
    alone = clone(together).set_params(handle_unknown="error")
    together.partial_fit(X, y)
    for number, label in enumerate(together.classes_):
        start = int(np.argmax(y == label))
        binary = clone(alone).partial_fit(X[start:], y[start:] == label, [False, True])
        assert_array_equal(together.coef_[number], binary.coef_[0])
        assert together.intercept_[number] == binary.intercept_[0]


@pytest.mark.parametrize("update", ["explicit", "implicit"])
def test_the_joint_loss_starts_each_class_at_its_prior(update):
    """Against plain NumPy, with rates 0.3 / sqrt(t) of all rows; implicit steps solve W' = W - eta g(W') x'."""
    X, y = late_classes()
    model = MirrorDescentClassifier(**GD, multi_class="multinomial", learning_rate="sqrt", update=update)
    model.partial_fit(X, y)
    W, loss = {}, 0.0
    for t, (x, label) in enumerate(zip(np.c_[X, np.ones(80)], y, strict=True), 1):
        W.setdefault(label, np.zeros(5))
        V, target = np.stack(list(W.values())), np.array([other == label for other in W])
        loss -= log_softmax(V @ x)[target][0]
        z, q = V @ x, 0.3 / np.sqrt(t) * (x @ x)
        for _ in range(200 if update == "implicit" else 0):
            z = 0.9 * z + 0.1 * (V @ x - q * (softmax(z) - target))
        V -= 0.3 / np.sqrt(t) * (softmax(z) - target)[:, np.newaxis] * x
        W = dict(zip(W, V, strict=True))
    assert_allclose(np.c_[model.coef_, model.intercept_], [W[label] for label in model.classes_], rtol=1e-6, atol=1e-7)
    assert model.cumulative_loss_ == pytest.approx(loss, rel=1e-7)


def test_what_experts_do_not_know_has_its_prior_probability():
    """Columns are those of the classes at the start; a later one is one of n, and does not change the weights."""
    rng = np.random.default_rng(0)
    P, y = rng.uniform(size=(30, 2)), rng.integers(2, size=30)
    mixture = BayesMixture(handle_unknown="add").partial_fit(P, y, [0, 1])
    weights, loss = mixture.weights_, mixture.cumulative_loss_
    mixture.partial_fit(P[:1], [5])
    assert mixture.cumulative_loss_ - loss == pytest.approx(np.log(3))
    assert_allclose(mixture.weights_, weights, rtol=1e-12)
    p = P[1:] @ weights
    assert_allclose(mixture.predict_proba(P[1:]), np.c_[(1 - p) * 2 / 3, p * 2 / 3, np.full(29, 1 / 3)], rtol=1e-9)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        BayesMixture(handle_unknown="add").partial_fit(P, y)
    stubborn = BayesMixture([("md", MirrorDescentClassifier())], handle_unknown="add").partial_fit(P, y, [0, 1])
    with pytest.raises(ValueError, match="Expert 'md' cannot learn row 0: The label 5"):
        stubborn.partial_fit(P[:1], [5])


def test_fit_knows_all_classes_and_the_first_call_decides(unchanged):
    X, y = late_classes()
    model = MirrorDescentClassifier(random_state=0, warm_start=True, max_iter=5, tol=None, **ADD_CLASSES).fit(
        X[:20], y[:20]
    )
    assert model.classes_.tolist() == [1, 3] and model.coef_.shape == (2, 4)
    model.fit(X, y)  # a warm start adds the new classes before its epochs
    assert model.classes_.tolist() == [0, 1, 2, 3, 4] and model.score(X, y) > 0.5
    late = MirrorDescentClassifier().partial_fit(X, y, range(5)).set_params(handle_unknown="add")
    with unchanged(late, "must be 'add' when learning starts"):
        late.partial_fit(X[:1], [9])
    perceptron = PerceptronClassifier(**ADD_CLASSES).partial_fit(X[:20], y[:20])
    with pytest.raises(ValueError, match="one learner for both classes"):
        perceptron.mistake_bound(X[:20], y[:20], np.ones(4))


def test_the_difference_of_two_scores_does_not_overflow_in_silence():
    model = PerceptronClassifier(fit_intercept=False, **ADD_CLASSES).partial_fit([[1.0], [-1.0]] * 9, [0, 1] * 9)
    with pytest.raises(ValueError, match="score of row 1 is not finite"):
        model.decision_function([[1.0], [1.2e308 / np.abs(model.coef_).max()]])
