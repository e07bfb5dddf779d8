"""The linear classifiers: warm start, class weights, one against the rest."""

import copy
import warnings

import numpy as np
import pytest
from classifiers import every, some_rows
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentClassifier
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.class_weight import compute_sample_weight

from onlinebregman import PerceptronClassifier, PNormClassifier

# --- warm start -------------------------------------------------------------------------------------------------------


@every
def test_a_warm_start_keeps_the_classes(model, unchanged):
    X, y = some_rows()
    model = clone(model).set_params(warm_start=True, max_iter=2, tol=None).fit(X, y)
    with unchanged(model, r"The label 3 at row \d+ is not one of the classes \[0, 1, 2\]; set warm_start=False"):
        model.fit(X, y + 1)
    with unchanged(model, "The label 'a' at row 0 .*warm_start=False"):
        model.fit(X, ["a", "b", "c"] * 20)
    t = model.t_
    some = y < 2
    assert_array_equal(model.fit(X[some], y[some]).classes_, [0, 1, 2])
    assert model.t_ == t + 2 * some.sum()
    assert_array_equal(model.set_params(warm_start=False).fit(X, y + 1).classes_, [1, 2, 3])


# --- class weights ----------------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("n_classes", [2, 3])
def test_class_weights_multiply_those_of_the_rows(model, n_classes, learned):
    X, y = some_rows(n_classes=n_classes)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=60)
    factors = {0: 0.5, 1: 3.0, 2: 0.0} if n_classes == 3 else {1: 3.0}
    rows = np.array([factors.get(label, 1.0) for label in y])
    weighted = clone(model).set_params(class_weight=factors)
    for given, expected in [({}, rows), ({"sample_weight": weights}, weights * rows)]:
        reference = clone(model).fit(X, y, sample_weight=expected)
        assert learned(clone(weighted).fit(X, y, **given)) == learned(reference)
        stream = clone(weighted)
        for part in (slice(0, 20), slice(20, 40), slice(40, 60)):
            given_part = {name: value[part] for name, value in given.items()}
            stream.partial_fit(X[part], y[part], classes=range(n_classes), **given_part)
            if not given and part.stop < 60:  # and without classes, where the fast path could be
                stream.partial_fit(X[part][:0:-1].copy(), y[part][:0:-1].copy())
        order = np.arange(60) if given else np.r_[0:20, 19:0:-1, 20:40, 39:20:-1, 40:60]
        whole = clone(model)
        whole.partial_fit(X[order], y[order], classes=range(n_classes), sample_weight=expected[order])
        assert learned(stream) == learned(whole)


@every
@pytest.mark.parametrize("n_classes", [2, 3])
def test_balanced_class_weights(model, n_classes, learned, unchanged):
    X, y = some_rows(n_classes=n_classes)
    keep = (y != 1) | (np.arange(60) % 5 == 0)
    X, y = X[keep], y[keep]
    balanced = clone(model).set_params(class_weight="balanced")
    reference = clone(model).fit(X, y, sample_weight=compute_sample_weight("balanced", y))
    assert learned(clone(balanced).fit(X, y)) == learned(reference)
    assert learned(clone(model).fit(X, y)) != learned(reference)
    # rows of weight 2 count as two, and rows of weight 0 not at all
    weights = np.array([0.0, 1.0, 2.0])[np.arange(len(y)) % 3]
    repeated = np.repeat(np.arange(len(y)), weights.astype(int))
    factors = dict(zip(y[repeated], compute_sample_weight("balanced", y[repeated]), strict=True))
    reference = clone(model).fit(X, y, sample_weight=weights * [factors[label] for label in y])
    assert_allclose(balanced.fit(X, y, sample_weight=weights).coef_, reference.coef_, rtol=1e-10, atol=1e-13)
    for fitted in (clone(balanced), balanced):
        with unchanged(fitted, "class_weight 'balanced' is not supported for partial_fit"):
            fitted.partial_fit(X, y, classes=range(n_classes))


def test_a_weight_of_a_class_may_be_changed_in_its_dict():
    X, y = some_rows(n_classes=2)
    weights = {0: 1.0, 1: 1.0}
    model = MirrorDescentClassifier(divergence="squared_euclidean", class_weight=weights).partial_fit(
        X, y, classes=[0, 1]
    )
    other = copy.deepcopy(model)
    weights[1] = 50.0
    assert model.partial_fit(X, y).predict(X).sum() > other.partial_fit(X, y).predict(X).sum()


@every
@pytest.mark.parametrize(
    "bad, match",
    [
        ("unbalanced", "'class_weight' parameter"),
        ([1.0, 2.0, 3.0], "'class_weight' parameter"),
        ({0: 1.0, 1: -2.0}, "must have finite weights >= 0"),
        ({0: np.inf}, "must have finite weights >= 0"),
        ({0: np.nan}, "must have finite weights >= 0"),
        ({"0": 2.0}, "not in class_weight"),
        ({7: 2.0}, "not in class_weight"),
    ],
    ids=str,
)
def test_class_weights_that_cannot_be_are_refused_first_and_in_mid_stream(model, bad, match, unchanged):
    X, y = some_rows()
    with unchanged(fresh := clone(model).set_params(class_weight=bad), match):
        fresh.partial_fit(X, y, classes=[0, 1, 2])
    with unchanged(fresh, match):
        fresh.fit(X, y)
    stream = clone(model).partial_fit(X, y, classes=[0, 1, 2]).set_params(class_weight=bad)
    with unchanged(stream, match):
        stream.partial_fit(X, y)


@pytest.mark.parametrize("model", [MirrorDescentClassifier, PNormClassifier])
def test_a_loss_of_margin_0_needs_explicit_steps_or_weights(model):
    X, y = np.array([[1.0], [2.0], [-1.0]]), [1, 1, 0]
    with pytest.warns(ConvergenceWarning, match="'implicit' learns nothing from weights of 0"):
        model(loss="perceptron").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for start in ({"update": "explicit"}, {"init": 0.1}):
            assert model(loss="perceptron", **start).partial_fit(X, y, classes=[0, 1]).coef_ > 0


@every
def test_class_weights_of_zero_leave_their_rows_out(model, unchanged, learned):
    X, y = some_rows()
    none = clone(model).set_params(class_weight={0: 0.0, 1: 0.0, 2: 0.0})
    with unchanged(none, "All sample_weight are zero"):
        none.fit(X, y)
    stream = clone(model).partial_fit(X, y, classes=[0, 1, 2])
    unbounded = ["_unbounded"]  # other parameters end the bounds of a run
    before = learned(stream, without=unbounded)
    stream.set_params(class_weight={0: 0.0, 1: 0.0, 2: 0.0}).partial_fit(X, y)
    assert learned(stream, without=unbounded) == before
    assert learned(stream.set_params(class_weight=None).partial_fit(X[:1], y[:1]), without=unbounded) != before


# --- one against the rest ---------------------------------------------------------------------------------------------


@every
def test_more_classes_are_binary_learners_side_by_side(model):
    X, y = some_rows(n_classes=4, d=5)
    model = clone(model).set_params(max_iter=3, tol=None)
    ours, theirs = clone(model).fit(X, y), OneVsRestClassifier(clone(model)).fit(X, y)
    assert_array_equal(ours.coef_, [binary.coef_[0] for binary in theirs.estimators_])
    assert_array_equal(ours.intercept_, [binary.intercept_[0] for binary in theirs.estimators_])
    assert_allclose(ours.cumulative_loss_, sum(binary.cumulative_loss_ for binary in theirs.estimators_), rtol=1e-14)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    for chunk in (slice(0, 25), slice(25, 60)):
        ours.partial_fit(X[chunk], y[chunk])
        for k, binary in enumerate(theirs.estimators_):
            binary.partial_fit(X[chunk], (y[chunk] == k).astype(int))
    assert_array_equal(ours.coef_, [binary.coef_[0] for binary in theirs.estimators_])
    if hasattr(model, "predict_proba"):
        one = np.column_stack([binary.predict_proba(X)[:, 1] for binary in theirs.estimators_])
        assert_allclose(ours.predict_proba(X), one / one.sum(axis=1, keepdims=True), rtol=1e-13)


def test_the_first_of_equal_classes_is_predicted():
    model = PerceptronClassifier().partial_fit([[1.0, 1.0]], [1], classes=[0, 1, 2])
    assert_array_equal(model.predict([[0.0, 0.0], [0.0, -2.0]]), [1, 0])
    assert_array_equal(model.decision_function([[0.0, -2.0]])[0, [0, 2]], model.decision_function([[0.0, -2.0]])[0, 0])
    two = PerceptronClassifier(fit_intercept=False).partial_fit([[1.0, 1.0]], [1], classes=[0, 1])
    assert_array_equal(two.predict([[0.0, 0.0]]), [0])  # a score of 0 is not positive
