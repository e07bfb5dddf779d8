"""Contracts of every public estimator about input that SciPy and scikit-learn do not check, or crash on."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import __version__ as SCIPY
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

WITH_VARIANTS = False  # these errors are raised before parameters matter

# --- malformed sparse matrices ----------------------------------------------------------------------------------------


def put(part, place, value, dtype=None):
    def spoil(X):
        array = np.array(getattr(X, part), dtype=dtype)
        array[place] = value
        setattr(X, part, array)

    return spoil


def replace(part, make):
    return lambda X: setattr(X, part, make(getattr(X, part)))


def coordinates(axis, place, value):
    def spoil(X):
        coords = [index.astype(np.int64) for index in X.coords]
        coords[axis][place] = value
        X.coords = tuple(coords)

    return spoil


COMPRESSED = {  # changes of a CSR or CSC
    "index too large": put("indices", 0, 10**8),
    "index negative": put("indices", -1, -1),
    "end too large": put("indptr", 1, 10**8),
    "ends fall": put("indptr", 2, 1),
    "too few values": replace("data", lambda a: a[:2]),
    "indices that are floats": replace("indices", lambda a: a.astype(float)),
    "values in a list": replace("data", lambda a: a.tolist()),
    "complex values": replace("data", lambda a: a + 1j),
    "times as values": replace("data", lambda a: a.astype("m8[s]")),
}
ENTRIES = {
    "row too large": coordinates(0, 3, 10**8),
    "column too large": coordinates(1, 0, 10**12),
    "too few values": replace("data", lambda a: a[:2]),
}
FAULTS = {
    **{("csr", fault): how for fault, how in COMPRESSED.items()},
    **{("csc", fault): how for fault, how in COMPRESSED.items()},
    **{("coo", fault): how for fault, how in ENTRIES.items()},
    ("bsr", "other blocks"): replace("data", lambda a: np.ones((len(a), 7, 3))),
    ("lil", "too few values"): lambda X: X.data[0].pop(),
    ("lil", "column too large"): lambda X: X.rows[0].__setitem__(0, 99),
    ("dok", "row too large"): lambda X: X.setdefault((10**6, 0), 1.0),
}
MESSAGES = {  # of those that say more than that the matrix is malformed
    ("csr", "index too large"): "row 0 has the column index 100000000.*Rebuild it",
    ("csr", "index negative"): r"row \d+ has the column index -1",
    ("csr", "indices that are floats"): "indices must hold integers.*; got dtype float64",
    ("csr", "values in a list"): "data must be an array; got list",
    ("csr", "complex values"): "Complex data not supported",
    ("csc", "complex values"): "Complex data not supported",
    ("csr", "times as values"): "must be numeric; got dtype",
    ("csc", "times as values"): "must be numeric; got dtype",
    ("bsr", "other blocks"): "blocks of shape",
    ("lil", "too few values"): "differ in length",
    ("lil", "column too large"): "row 0 has the column index 99",
}


def malformed(X, kind, fault, family="array"):
    """X in a format, damaged, and the error message."""
    X = getattr(sparse, f"{kind}_{family}")(X)
    FAULTS[kind, fault](X)
    return X, MESSAGES.get((kind, fault), f"malformed sparse matrix in {kind.upper()} format: ")


@pytest.fixture
def sparse_rows(estimator, rows):
    if not get_tags(estimator).input_tags.sparse:
        pytest.skip("takes no sparse rows")
    return rows


@pytest.mark.parametrize("kinds", [("csr",), ("csc", "coo", "bsr", "dia", "lil", "dok")], ids=["csr", "others"])
def test_malformed_sparse_rows_are_refused_and_nothing_is_learned(
    estimator, sparse_rows, learn, untouched, outputs, kinds
):
    X, y = sparse_rows
    stream = learn(clone(estimator), X, y)
    said = [getattr(stream, name) for name in outputs if hasattr(stream, name)]
    for number, (kind, fault) in enumerate(key for key in FAULTS if key[0] in kinds):
        X_bad, message = malformed(X, kind, fault, "matrix" if number % 2 else "array")
        with untouched(stream, estimator):
            with pytest.raises(ValueError, match=message):
                stream.partial_fit(X_bad, y)
            with pytest.raises(ValueError, match=message):
                learn(estimator, X_bad, y) if number % 2 else estimator.fit(X_bad, y)
            for method in said:
                with pytest.raises(ValueError, match=message):
                    method(X_bad)


def in_one_dimension(values):
    """The sparse arrays of one dimension that this SciPy makes: at least one kind."""
    for make in (sparse.coo_array, sparse.csr_array, sparse.dok_array):
        try:
            row = make(values)
        except ValueError:  # older ones know two dimensions alone of most kinds
            continue
        if row.ndim == 1:
            yield row


def test_sparse_arrays_in_one_dimension_are_no_rows(estimator, sparse_rows, learn, unchanged, outputs):
    X, y = sparse_rows
    learn(estimator, X, y)
    found = list(in_one_dimension(X[0]))
    assert found
    for row in found:
        with unchanged(estimator, "Expected 2D array, got 1D array"):
            estimator.partial_fit(row, y)
        for name in (name for name in outputs if hasattr(estimator, name)):
            with unchanged(estimator, "Expected 2D array, got 1D array"):
                getattr(estimator, name)(row)


# --- arrays that lie in memory as they should not ---------------------------------------------------------------------


def unaligned(array):
    """The same numbers, beginning at an odd address."""
    memory = np.zeros(array.nbytes + 1, dtype=np.uint8)
    odd = memory[1:].view(array.dtype).reshape(array.shape)
    odd[...] = array
    assert not odd.flags.aligned
    return odd


def field(array):
    """The same numbers as a field of a packed structure, five bytes apart."""
    table = np.zeros(array.shape, dtype=[("flag", "i1"), ("value", array.dtype), ("more", "i4")])
    table["value"] = array
    return table["value"]


def stale(X):
    """Unsorted columns in each row, under flags that say the contrary."""
    assert X.has_canonical_format
    for start, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        X.indices[start:end], X.data[start:end] = X.indices[start:end][::-1].copy(), X.data[start:end][::-1].copy()
    return X


def with_parts(X, change):
    X.data, X.indices, X.indptr = change(X.data), change(X.indices), change(X.indptr)
    return X


PLACES = {"unaligned": unaligned, "a field": field}
SPARSE_FRAMES = np.lib.NumpyVersion(SCIPY) >= "1.14.1"  # with an older one, pandas and scikit-learn make them dense
SPARSE_PLACES = {
    "unaligned": lambda X: with_parts(X, unaligned),
    "a field": lambda X: with_parts(X, field),
    "strided values": lambda X: with_parts(X, lambda part: np.repeat(part, 2)[::2] if part is X.data else part),
    "room at the end": lambda X: with_parts(X, lambda part: part if len(part) == 13 else np.r_[part, part[:3]]),
    "unsigned": lambda X: with_parts(X, lambda part: part if part.dtype == float else part.astype(np.uint32)),
    "stale flags": stale,
    "a frame of booleans": lambda X: pd.DataFrame.sparse.from_spmatrix(X.astype(bool)) if SPARSE_FRAMES else X,
}


@pytest.mark.parametrize("place", PLACES)
def test_arrays_at_odd_addresses_are_copied(estimator, rows, learn, learned, output, place):
    X, y = (part[:12] for part in rows)
    weighted = {"sample_weight": np.linspace(0.5, 1.0, 12)} if has_fit_parameter(estimator, "sample_weight") else {}
    reference = learn(learn(clone(estimator), X, y), X, y, **weighted)
    odd = PLACES[place]
    weighted = {name: odd(weights) for name, weights in weighted.items()}
    learn(learn(estimator, odd(X), odd(y)), odd(X), odd(y), **weighted)
    assert learned(estimator) == learned(reference)
    for name, values in output(estimator, odd(X)).items():
        assert_array_equal(values, output(reference, X)[name])
    with_floats = learn(clone(estimator), X.astype(np.float32), y)
    assert learned(learn(clone(estimator), odd(X.astype(np.float32)), y)) == learned(with_floats)


def test_sparse_rows_of_odd_parts_are_copied(estimator, sparse_rows, learn, learned, output):
    X, y = np.sign(np.abs(sparse_rows[0][:12])), sparse_rows[1][:12]
    reference = learn(learn(clone(estimator), sparse.csr_array(X), y), sparse.csr_array(X), y)
    state, expected = learned(reference), output(reference, sparse.csr_array(X))
    for place, odd in SPARSE_PLACES.items():
        model = learn(learn(clone(estimator), odd(sparse.csr_array(X)), y), odd(sparse.csr_array(X)), y)
        if place not in ("unsigned", "a frame of booleans"):  # models may store wider indices, and that it was a frame
            assert learned(model) == state, place
        for name, values in output(model, odd(sparse.csr_array(X))).items():
            assert_array_equal(values, expected[name], err_msg=place)


# --- numbers that are none --------------------------------------------------------------------------------------------

PAIRS = [("a", float), ("b", float)]
NO_NUMBERS = {
    "times": (lambda a: np.arange(a.size).astype("M8[s]").reshape(a.shape), "must be numeric; got dtype"),
    "durations": (lambda a: np.arange(a.size).astype("m8[h]").reshape(a.shape), "must be numeric; got dtype"),
    "complex": (lambda a: a + 0j, "Complex data not supported: .* has dtype complex128. Give"),
    "structured": (lambda a: np.zeros(a.shape, dtype=PAIRS), "structured dtype"),
    "structured, one field": (lambda a: np.zeros(a.shape, dtype=[("a", float)]), "structured dtype"),
    "masked": (lambda a: np.ma.array(a, mask=np.arange(a.size).reshape(a.shape) == a[:7].size), r"is masked \(row 7"),
}


def test_what_is_no_number_is_refused(estimator, rows, learn, untouched, outputs):
    X, y = rows
    stream = learn(clone(estimator), X, y)
    for what, (make, message) in NO_NUMBERS.items():
        X_bad, y_bad = make(X), make(y)
        bad = [(X_bad, y, {})]
        if what in ("times", "durations"):
            bad.append((pd.DataFrame(X_bad, columns=list("abcdef")[: X.shape[1]]), y, {}))
        if get_tags(estimator).target_tags.required:
            bad.append((X, y_bad, {}))
            bad.append((X, pd.Series(y_bad) if what in ("times", "durations", "complex") else y_bad, {}))
        if has_fit_parameter(estimator, "sample_weight"):
            bad.append((X, y, {"sample_weight": make(np.ones(40))}))
        with untouched(stream, estimator):
            for X_in, y_in, weighted in bad:
                for method in (stream.partial_fit, stream.fit, partial(learn, estimator)):
                    with pytest.raises(ValueError, match=message):
                        method(X_in, y_in, **weighted)
            for name in (name for name in outputs if hasattr(stream, name)):
                with pytest.raises(ValueError, match=message):
                    getattr(stream, name)(X_bad)


def test_masked_arrays_of_which_nothing_is_masked_are_arrays(estimator, rows, learn, learned, output):
    X, y = rows
    reference = learn(clone(estimator), X, y)
    assert learned(learn(estimator, np.ma.array(X), np.ma.array(y, mask=False))) == learned(reference)
    for name, values in output(estimator, np.ma.array(X)).items():
        assert_array_equal(values, output(reference, X)[name])


def test_integers_beyond_the_largest_float_are_infinite(estimator, rows, learn, untouched, outputs):
    X, y = rows
    learn(estimator, X, y)
    huge, where = X.astype(object), r"X contains infinity \(row 2, column 1\)"
    huge[2, 1] = 10**400
    bad = [(huge, y, {}, where), (huge.tolist(), y, {}, where)]
    if is_regressor(estimator):
        bad.append((X, [1, -(10**400), *y[2:]], {}, r"y contains infinity \(row 1\)"))
    if has_fit_parameter(estimator, "sample_weight"):
        bad.append((X, y, {"sample_weight": [1, 10**400, *y[2:]]}, r"sample_weight contains infinity \(row 1\)"))
        bad.append((X, y, {"sample_weight": 10**400}, "sample_weight contains infinity"))
    with untouched(estimator):
        for X_bad, y_bad, weighted, message in bad:
            with pytest.raises(ValueError, match=message):
                estimator.partial_fit(X_bad, y_bad, **weighted)
        for name in (name for name in outputs if hasattr(estimator, name)):
            with pytest.raises(ValueError, match=where):
                getattr(estimator, name)(huge)


def test_a_number_is_no_row(estimator, rows, learn, unchanged):
    learn(estimator, *rows)
    with unchanged(estimator, "Expected 2D array, got scalar array"):
        estimator.partial_fit(np.array(3.0), rows[1])


def test_dicts_are_no_rows(estimator, rows, learn, unchanged):
    X, y = rows
    learn(estimator, X, y)
    for row in ({"a": 1.0, "b": 2.0}, [{"a": 1.0, "b": 2.0}]):
        with unchanged(estimator, r"got dicts. Give pandas.DataFrame\(X\).*DictVectorizer"):
            estimator.partial_fit(row, y[:1])


# --- classes ----------------------------------------------------------------------------------------------------------


def test_classes_may_come_in_any_container_that_has_them_all(estimator, rows, learned):
    if not is_classifier(estimator):
        pytest.skip("has no classes")
    X, y = rows
    labels = np.unique(y)
    X, y, every = X[:6], y[:6], y
    reference = learned(clone(estimator).partial_fit(X, y, classes=labels))
    known = every.tolist()
    several = (set(known), frozenset(known), dict.fromkeys(known).keys(), range(len(labels)), every)
    for classes in (*several, labels.tolist(), pd.Series(labels), np.ma.array(labels)):
        model = clone(estimator).partial_fit(X, y, classes=classes)
        assert learned(model) == reference
        model.partial_fit(X, y, classes=classes)  # the same classes again are accepted


NO_CLASSES = [
    (2, "classes must be one-dimensional, .*; got 2"),
    ("ab", "classes must be one-dimensional, .*; got 'ab'"),
    ([], r"A classifier needs at least|classes = \[\] is not the same"),
    (set(), r"A classifier needs at least|classes = \[\] is not the same"),
    ([[0, 1]], r"classes must be one-dimensional, .*; got shape \(1, 2\)"),
    ({0: "no", 1: "yes"}, r"classes must be an array, list or set of labels; got a dict. Use list\(classes\)"),
    ((k for k in (0, 1)), "classes must be an array, list or set of labels; got a generator"),
    ([0, "a"], r"classes must be labels of one kind; got strings and numbers, \[0, 'a'\]"),
    (np.array([0, None], dtype=object), "classes must be labels of one kind, which can be sorted; got"),
    (np.array([0, 1], dtype="M8[s]"), "must be numeric; got dtype"),
    ([0, 1j], "Complex data not supported"),
    (np.ma.array([0, 1, 2], mask=[0, 0, 1]), r"classes is masked \(row 2\)"),
    *(
        (np.array([0, 1, 2, none], dtype=kind), "classes must be finite; got .* Remove NaN and infinity")
        for none in (np.nan, np.inf, -np.inf)
        for kind in (float, np.float32, object)
    ),
]


def test_invalid_classes_are_refused(estimator, rows, learn, unchanged):
    if not is_classifier(estimator):
        pytest.skip("has no classes")
    X, y = rows
    stream = learn(clone(estimator), X, y)
    for classes, message in NO_CLASSES:
        for model in (estimator, stream):
            with unchanged(model, message):
                model.partial_fit(X, y, classes=classes)


def test_labels_keep_their_kind_in_the_own_dtypes_of_pandas_and_as_objects(estimator, rows, learn):
    if not is_classifier(estimator):
        pytest.skip("has no classes")
    X, y = rows
    y = y + 2**53  # floats have no odd ones
    model = clone(estimator).partial_fit(X, pd.Series(y, dtype="Int64"), classes=np.unique(y))
    assert model.classes_.dtype == y.dtype and (model.classes_ == np.unique(y)).all()
    assert clone(estimator).fit(X, pd.Series(y == y[0], dtype="boolean")).classes_.dtype == bool
    for model in (
        clone(estimator).fit(X, y.astype(object)),
        clone(estimator).partial_fit(X, y.astype(object), classes=np.unique(y).astype(object)),
    ):
        assert model.classes_.dtype == y.dtype and (model.classes_ == np.unique(y)).all()


def test_missing_labels_and_those_of_two_kinds_are_refused_by_row(estimator, rows, learn, unchanged):
    if not is_classifier(estimator):
        pytest.skip("has no classes")
    X, y = rows
    words = np.array(["a", "bc", "d"], dtype=object)[y]
    model = clone(estimator).partial_fit(X, words, classes=np.unique(words))
    for label, match in (
        (None, r"missing label, None \(row 7\)"),
        (pd.NA, "<NA>"),
        (np.nan, "nan"),
        (1, "y = 1 in row 7"),
    ):
        bad = words.copy()
        bad[7] = label
        with unchanged(model, match):
            model.partial_fit(X, bad)
        with pytest.raises(ValueError, match=match):
            clone(estimator).fit(X, bad)
