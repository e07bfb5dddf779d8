"""The linear classifiers: warm start, weights and labels of classes, one against the rest, and probabilities."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from classifiers import every, some_rows
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from scipy.special import expit, log_expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.class_weight import compute_sample_weight

from onlinebregman import PerceptronClassifier, PNormClassifier, WinnowClassifier
from onlinebregman.losses import HingeLoss, LogisticLoss
from onlinebregman.losses._base import loss_names

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
    with unchanged(none := clone(model).set_params(class_weight=dict.fromkeys(y, 0.0)), "All sample_weight are zero"):
        none.fit(X, y)
    assert none.partial_fit(X, y, classes=range(n_classes)).t_ == 0  # but a call of a stream may have no weight
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


# --- labels -----------------------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2, 3], [0, 1, 3], ["0", "1", "2"], [0]])
def test_other_classes_in_mid_stream_are_refused(model, classes, unchanged):
    X, y = some_rows()
    for fitted in (clone(model).partial_fit(X, y, classes=[0, 1, 2]), clone(model).fit(X, y)):
        with unchanged(fitted, r"not the same as on the first call to partial_fit, \[0, 1, 2\]"):
            fitted.partial_fit(X, y, classes=classes)


NEW_LABELS = {
    "a number": (np.array([0, 1, 7, 9]), "The label 7 at row 2"),
    "a float": (np.array([0.0, 1.0, 1.5, 2.0]), "The label 1.5 at row 2"),
    "words": (np.array(["0", "1", "2", "0"]), "The label '0' at row 0"),
    "smaller than all": (np.array([1, 2, 0, -1]), "The label -1 at row 3"),
    "NaN": (np.array([0.0, 1.0, np.nan, 2.0]), r"y contains NaN \(row 2\)"),
}


@every
@pytest.mark.parametrize("kind", NEW_LABELS)
def test_a_new_label_is_refused_by_name(model, kind, unchanged):
    X, y = some_rows()
    new, match = NEW_LABELS[kind]
    fitted = clone(model).partial_fit(X, y, classes=[0, 1, 2])
    for labels in (new, new.tolist()):
        with unchanged(fitted, match):
            fitted.partial_fit(X[:4], labels)
        with unchanged(fresh := clone(model), match):
            fresh.partial_fit(X[:4], labels, classes=[0, 1, 2])
    assert fitted.partial_fit(X[:4], [0, 1, 2, 0]) is fitted


LABELS = {
    "strings": (np.array(["ham", "spam", "egg"]), "U"),
    "objects": (np.array(["ham", "spam", "egg"], dtype=object), "O"),
    "floats": (np.array([0.0, 2.0, 5.0]), "f"),
    "negative": (np.array([-7, 3, 1000], dtype=np.int16), "i"),
    "unsigned": (np.array([0, 200, 255], dtype=np.uint8), "u"),
    "booleans": (np.array([False, True]), "b"),
    "minus and plus one": (np.array([-1, 1]), "i"),
}


@every
@pytest.mark.parametrize("kind", LABELS)
def test_labels_are_only_names(model, kind):
    names, letter = LABELS[kind]
    X, number = some_rows(n_classes=len(names))
    y, order = names[number], np.argsort(names)  # the number of a class is its position among the sorted names
    rank = np.argsort(order)[number]
    plain, named = clone(model).fit(X, rank), clone(model).fit(X, y)
    assert_array_equal(named.classes_, names[order])
    assert_array_equal(named.coef_, plain.coef_)
    predicted = named.predict(X)
    assert predicted.dtype.kind == letter and predicted.dtype == y.dtype
    assert_array_equal(predicted, names[order][plain.predict(X)])
    assert named.score(X, y) == plain.score(X, rank) > 1.0 / len(names)
    stream = clone(model).partial_fit(X[:9], y[:9], classes=names)
    for i in range(9, len(y)):
        stream.partial_fit(X[i : i + 1], y[i : i + 1])
    again = clone(model).partial_fit(X, rank, classes=range(len(names)))
    assert_array_equal(stream.coef_, again.coef_)


@every
def test_one_class_is_not_enough_to_fit_but_enough_for_a_call(model, unchanged):
    X, y = some_rows()
    for labels in (np.zeros(60), ["a"] * 60):
        with unchanged(model := clone(model), "needs at least two classes"):
            model.fit(X, labels)
    for classes in ([1], [], ["only"]):
        with unchanged(model, "needs at least two classes"):
            model.partial_fit(X, np.ones(60), classes=classes)
    model.partial_fit(X[y == 1], y[y == 1], classes=[0, 1, 2])
    assert (model.predict(X[y == 1]) == 1).mean() > 0.5
    model.partial_fit(X[y == 2], y[y == 2])
    assert model.coef_.shape == (3, 4)


@every
@pytest.mark.parametrize("n_classes", [2, 3, 300])
def test_files_hold_no_table_of_classes(model, n_classes, learned):
    """The targets of one class against the rest are two numbers, not the square of the number of classes."""
    X, _ = some_rows()
    y = np.arange(60) % n_classes
    fitted = clone(model).partial_fit(X, y, classes=np.arange(n_classes))
    written = pickle.dumps(fitted)
    assert len(written) < 10_000 + 4_000 * n_classes
    for again in (pickle.loads(written), copy.deepcopy(fitted)):
        assert_array_equal(again._targets_of_classes, fitted._targets_of_classes)
        assert learned(again.partial_fit(X, y)) == learned(copy.deepcopy(fitted).partial_fit(X, y))
        again.partial_fit(X[:1], y[:1])


# --- probabilities ----------------------------------------------------------------------------------------------------


def test_probabilities_are_there_for_probabilistic_losses_alone():
    probabilistic = [
        MirrorDescentClassifier(divergence="squared_euclidean"),
        PNormClassifier(),
        MirrorDescentClassifier(divergence="squared_euclidean", loss=LogisticLoss()),
        PNormClassifier(loss="modified_huber"),
    ]
    others = [
        PerceptronClassifier(),
        WinnowClassifier(),
        MirrorDescentClassifier(divergence="squared_euclidean", loss="hinge"),
        PNormClassifier(loss="perceptron"),
        PNormClassifier(loss=HingeLoss(0.5)),
        MirrorDescentClassifier(divergence="squared_euclidean", loss="squared_hinge"),
        MirrorDescentClassifier(divergence="squared_euclidean", loss="no such loss"),
    ]
    for name in ("predict_proba", "predict_log_proba"):
        assert all(hasattr(model, name) for model in probabilistic)
        assert not any(hasattr(model, name) for model in others)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_of_the_modified_huber_loss_are_those_of_scikit_learn(n_classes):
    X, y = some_rows(n_classes=n_classes)
    model = MirrorDescentClassifier(divergence="squared_euclidean", loss="modified_huber").partial_fit(
        X, y, classes=range(n_classes)
    )
    theirs = SGDClassifier(loss="modified_huber").partial_fit(X, y, classes=range(n_classes))
    theirs.coef_, theirs.intercept_ = np.array(model.coef_), np.array(model.intercept_)
    for rows in (X, 30 * X):
        assert_allclose(model.predict_proba(rows), theirs.predict_proba(rows), rtol=1e-13, atol=1e-15)
        with np.errstate(divide="ignore"):
            assert_allclose(model.predict_log_proba(rows), theirs.predict_log_proba(rows), rtol=1e-12, atol=1e-14)
    assert (model.predict_proba(30 * X) == 0).any()


class Confident(LogisticLoss):
    """A user-defined loss with its own labels."""

    labels = (0.1, 0.9)


def test_a_loss_of_ones_own_states_its_labels_and_gives_probabilities():
    X, y = some_rows(n_classes=2)
    model = MirrorDescentClassifier(divergence="squared_euclidean", loss=Confident(), eta0=1.0).partial_fit(
        X, y, classes=[0, 1]
    )
    regressor = MirrorDescentRegressor(divergence="squared_euclidean", loss="log_loss", eta0=1.0).partial_fit(
        X, np.where(y == 1, 0.9, 0.1)
    )
    assert_allclose(model.coef_[0], regressor.coef_, rtol=1e-9)
    assert_allclose(model.predict_proba(X)[:, 1], (regressor.predict(X) - 0.1) / 0.8, rtol=1e-9)


@pytest.mark.parametrize("kind", [MirrorDescentRegressor.func, MirrorDescentClassifier.func, PNormClassifier])
def test_the_docstrings_list_the_losses(kind):
    names = ", ".join(map(repr, loss_names("regression" if kind is MirrorDescentRegressor.func else "classification")))
    assert "loss : {" + names.replace("'", '"') + "} or Loss" in kind.__doc__


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "model", [MirrorDescentClassifier(divergence="squared_euclidean"), PNormClassifier(average=True)], ids=repr
)
def test_probabilities_sum_to_one_and_order_as_the_scores(model, n_classes):
    X, y = some_rows(n_classes=n_classes)
    fitted = clone(model).partial_fit(X, y, classes=range(n_classes))
    p, scores = fitted.predict_proba(X), fitted.decision_function(X)
    assert p.shape == (60, n_classes) and (p > 0).all()
    assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
    if n_classes == 2:
        assert_allclose(p[:, 1], expit(scores), rtol=1e-14)
    else:
        assert_allclose(p, expit(scores) / expit(scores).sum(axis=1, keepdims=True), rtol=1e-14)
    assert_array_equal(fitted.classes_[p.argmax(axis=1)], fitted.predict(X))
    assert_allclose(fitted.predict_log_proba(X), np.log(p), rtol=1e-14, atol=3e-16)  # ln p is as accurate as p


def test_probabilities_far_out():
    X, y = some_rows(n_classes=2)
    parameters = {"divergence": "squared_euclidean", "fit_intercept": False, "init": [1.0, 0.0, 0.0, 0.0], "eta0": 1e-9}
    fitted, three = (
        MirrorDescentClassifier(**parameters).partial_fit(X[:1], y[:1], classes=range(n_classes))
        for n_classes in (2, 3)
    )
    far = np.array([[-600.0, 0, 0, 0], [-40.0, 0, 0, 0], [40.0, 0, 0, 0], [5000.0, 0, 0, 0]])
    p, logs = fitted.predict_proba(far), fitted.predict_log_proba(far)
    assert_allclose(p[:3, 0], expit([600.0, 40.0, -40.0]), rtol=1e-6)  # 1 - p would be 0 in the last place
    assert_allclose(logs[:3], log_expit(np.c_[-far[:3, 0], far[:3, 0]]), rtol=1e-6, atol=1e-15)
    assert_array_equal(p[3], [0.0, 1.0])
    assert_allclose(logs[3], [-5000.0, 0.0], rtol=1e-6)
    assert_allclose(three.predict_proba([[-1e6, 0, 0, 0]]), [[1 / 3, 1 / 3, 1 / 3]])  # all three are 0
    assert_allclose(three.predict_log_proba([[-1e6, 0, 0, 0]]), np.full((1, 3), -np.log(3)))
