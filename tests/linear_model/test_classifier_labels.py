"""The linear classifiers: valid labels, and errors that name invalid ones."""

import copy
import pickle

import numpy as np
import pytest
from classifiers import every, some_rows
from numpy.testing import assert_array_equal
from sklearn.base import clone


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
@pytest.mark.parametrize("missing", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [float, np.float32, object])
def test_nan_and_infinity_are_no_classes(model, missing, kind, unchanged):
    X, y = some_rows()
    with unchanged(model := clone(model), "classes must be finite; got .* Remove NaN and infinity"):
        model.partial_fit(X, y, classes=np.array([0.0, 1.0, 2.0, missing], dtype=kind))


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
