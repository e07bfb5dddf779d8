"""Contracts of every public estimator about its input: containers, layouts, and invalid rows."""

import copy
import tracemalloc
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import get_tags
from sparse_rows import csr

from onlinebregman._online.side_by_side import SideBySideMixin


@pytest.fixture
def says_the_same(output, state):
    """Two models equal bit for bit in all they say: predictions, transformed rows, computed attributes.

    For models that may keep rows as they got them, so that their states are not equal.
    """

    def says_the_same(one, two, X):
        for name, values in output(one, X).items():
            assert_array_equal(values, output(two, X)[name])
        for name in (name for name in dir(type(one)) if name.endswith("_") and not name.startswith("_")):
            if name != "best_estimator_":  # its classes have the type of the labels; it is one of `estimators_`
                mine, its = getattr(one, name, None), getattr(two, name, None)
                if getattr(mine, "dtype", None) == np.float32:  # `coef_` of a model that began with such rows
                    its = its.astype(np.float32)
                assert state(mine) == state(its), name

    return says_the_same


# --- equal inputs, equal results --------------------------------------------------------------------------------------


def usual(names, *often):
    """The names for `parametrize`: the usual ones, and all others."""
    others = [name for name in names if name not in often]
    return [pytest.param(often, id="often"), pytest.param(others, id="others")]


def spread_out(X):
    """The same numbers, two apart in memory in both directions."""
    wide = np.full((2 * X.shape[0], 2 * X.shape[1]), np.nan, dtype=X.dtype)
    wide[::2, ::2] = X
    return wide[::2, ::2]


LAYOUTS = {
    "list": lambda X: X.tolist(),
    "fortran": np.asfortranarray,
    "spread out": spread_out,
    "reversed twice": lambda X: X[::-1].copy()[::-1],
    "object": lambda X: X.astype(object),
    "longdouble": lambda X: X.astype(np.longdouble),
    "big endian": lambda X: X.astype(">f8"),
    "subclass": lambda X: X.view(type("Subclass", (np.ndarray,), {})),
    "read-only": lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),
    "memory view": lambda X: memoryview(np.ascontiguousarray(X)),
}


@pytest.mark.parametrize("layouts", usual(LAYOUTS, "fortran", "list", "read-only"))
def test_the_layout_of_X_makes_no_difference(estimator, rows, learn, layouts, learned, output):
    X, y = rows
    reference = learn(clone(estimator), X[:15], y[:15]).partial_fit(X[15:], y[15:])
    expected, said = learned(reference), output(reference, X)
    for layout in layouts:
        X_same = LAYOUTS[layout](X)
        model = learn(clone(estimator), X_same[:15], y[:15]).partial_fit(X_same[15:], y[15:])
        assert learned(model) == expected, layout
        for name, values in output(model, X_same).items():
            assert_array_equal(values, said[name], err_msg=layout)


@pytest.mark.parametrize(
    "kinds", usual(["list", "float32", "spread out", "object", "series", "read-only"], "list", "float32")
)
def test_the_layout_of_y_makes_no_difference(estimator, rows, learn, kinds, learned, says_the_same):
    X, y = rows
    if y.dtype.kind == "f":
        y = y.astype(np.float32).astype(np.float64)  # numbers that float32 holds exactly
    expected = learned(learn(clone(estimator), X, y))
    learn(estimator, X, y).fit(X, y)
    layouts = {
        "list": y.tolist(),
        "float32": y.astype(np.float32) if y.dtype.kind == "f" else y.astype(np.int32),
        "spread out": np.repeat(y, 2)[::2],
        "object": y.astype(object) if y.dtype.kind == "f" else y.astype(np.int8),
        "series": pd.Series(y, index=np.arange(40)[::-1]),
        "read-only": np.frombuffer(y.tobytes(), dtype=y.dtype),
    }
    for kind in kinds:
        assert learned(learn(clone(estimator), X, layouts[kind])) == expected, kind
        again = clone(estimator).fit(X, layouts[kind])
        if hasattr(estimator, "classes_"):  # their type is that of the labels
            assert_array_equal(again.classes_, estimator.classes_)
            assert_array_equal(again.predict(X), estimator.predict(X))
        if hasattr(estimator, "classes_") and "estimators_" in vars(estimator):  # so is that of its members' classes
            says_the_same(again, estimator, X)
        else:
            assert learned(again, without=["classes_"]) == learned(estimator, without=["classes_"]), kind


def test_integers_are_read_as_floats(estimator, rows, learn, learned, output):
    X, y = rows
    whole = np.rint(3 * X) + 0.0  # no -0.0
    reference = learn(clone(estimator), whole, y)
    expected = learned(reference)
    for dtype in (np.int64, np.int32, np.int8):
        assert learned(learn(clone(estimator), whole.astype(dtype), y)) == expected
        for name, values in output(reference, whole.astype(dtype)).items():
            assert_array_equal(values, output(reference, whole)[name])


def test_rows_of_float32_are_learned_in_float64(estimator, rows, learn, says_the_same, output):
    X, y = rows
    narrow = X.astype(np.float32)
    wide = narrow.astype(np.float64)
    reference = learn(clone(estimator), wide[:10], y[:10]).partial_fit(wide[10:], y[10:])
    learn(estimator, narrow[:10], y[:10]).partial_fit(narrow[10:], y[10:])
    says_the_same(estimator, reference, wide)
    if hasattr(estimator, "predict"):
        assert_array_equal(estimator.predict(narrow), reference.predict(wide))
    for values in output(estimator, narrow).values():
        assert values.dtype in (np.float64, y.dtype)
    says_the_same(clone(estimator).fit(narrow, y), clone(estimator).fit(wide, y), wide)


def test_data_frames_in_name_the_features_and_change_nothing_else(estimator, rows, learn, learned, output):
    X, y = rows
    frame = pd.DataFrame(X, columns=[f"feature {i}" for i in range(X.shape[1])], index=np.arange(40) + 100)
    reference = learn(clone(estimator), X[:15], y[:15]).partial_fit(X[15:], y[15:])
    learn(estimator, frame[:15], y[:15]).partial_fit(frame[15:], y[15:])
    assert estimator.feature_names_in_.tolist() == frame.columns.tolist()
    naming = ["feature_names_in_", "_validated"]  # the latter tells whether there are names to compare
    assert learned(estimator, without=naming) == learned(reference, without=naming)
    for name, values in output(estimator, frame).items():
        assert_array_equal(values, output(reference, X)[name])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        estimator.partial_fit(X, y)
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.partial_fit(frame.rename(columns={"feature 0": "other"}), y)


SPARSE = {
    "csr matrix": sparse.csr_matrix,
    "csr array": sparse.csr_array,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "64-bit indices": lambda X: csr(X, np.int64, X.dtype),
    "unsorted": lambda X: unsorted(sparse.csr_array(X)),
    "explicit zeros": lambda X: stored_everywhere(X),
    "duplicates": lambda X: doubled(sparse.csr_array(X)),
}


def unsorted(X):
    for start, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        X.indices[start:end], X.data[start:end] = X.indices[start:end][::-1].copy(), X.data[start:end][::-1].copy()
    X.has_sorted_indices = False
    return sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)


def stored_everywhere(X):
    n, d = X.shape
    return sparse.csr_array((X.ravel(), np.tile(np.arange(d), n), np.arange(0, n * d + 1, d)), shape=X.shape)


def doubled(X):
    return sparse.csr_array((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)


@pytest.fixture
def sparse_rows(estimator, rows):
    """Rows of an estimator that takes sparse ones, about half of their entries 0."""
    X, y = rows
    return np.where(np.random.default_rng(1).uniform(size=X.shape) < 0.5, X, 0.0), y


@pytest.mark.exhaustive
def test_every_sparse_container_is_the_same(estimator, sparse_rows, learn, says_the_same, output):
    X, y = sparse_rows
    usual = sparse.csr_array(X)
    reference, fitted = learn(clone(estimator), usual, y), clone(estimator).fit(usual, y)
    expected = output(reference, usual)
    for kind, make in SPARSE.items():
        X_sparse = make(X)
        before = X_sparse.copy()
        learned = learn(clone(estimator), X_sparse, y)
        if kind == "explicit zeros":  # includes more columns: equal up to rounding only, like dense rows
            for name, values in output(learned, X).items():
                assert_allclose(values, output(reference, X)[name], rtol=1e-10, atol=1e-13)
            continue
        says_the_same(learned, reference, X)
        says_the_same(clone(estimator).fit(X_sparse, y), fitted, X)
        for name, values in output(reference, X_sparse).items():
            assert_array_equal(values, expected[name], err_msg=kind)
        assert_array_equal(before.data, X_sparse.data)  # the caller's matrix is unchanged


def starts_alike(estimator):
    """Whether it learns the same from dense and sparse rows: columns are only centred if the first rows are dense."""
    model = estimator._base() if hasattr(estimator, "_base") else estimator  # the model whose rates are compared
    return not getattr(model, "standardize", False)


@pytest.mark.only(where=starts_alike)
def test_sparse_rows_are_dense_rows(estimator, sparse_rows, learn, output):
    X, y = sparse_rows
    X = X.copy()
    X[7] = 0.0  # an empty row
    dense, from_sparse = learn(clone(estimator), X, y), learn(clone(estimator), sparse.csr_array(X), y)
    for name, values in output(from_sparse, sparse.csr_array(X)).items():
        assert_allclose(values, output(dense, X)[name], rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("first", [np.array, sparse.csr_array])
def test_a_stream_may_go_on_in_the_other_layout(estimator, sparse_rows, learn, output, first):
    X, y = sparse_rows
    X = X.copy()
    X[27] = 0.0
    started = learn(clone(estimator), first(X[:20]), y[:20])
    dense, from_sparse = (
        copy.deepcopy(started).partial_fit(kind(X[20:]), y[20:]) for kind in (np.array, sparse.csr_array)
    )
    for name, values in output(from_sparse, sparse.csr_array(X)).items():
        assert_allclose(values, output(dense, X)[name], rtol=1e-10, atol=1e-13)


def test_a_sparse_stream_may_be_cut_anywhere(online, sparse_rows, learn, learned):
    X, y = sparse_rows
    X = sparse.csr_array(X)
    whole = learn(clone(online), X, y)
    for cut in ([1] * 40, [13, 27]):
        parts, start = clone(online), 0
        for length in cut:
            learn(parts, X[start : start + length], y[start : start + length])
            start += length
        assert learned(parts) == learned(whole)
    assert learned(online.set_params(max_iter=1, shuffle=False, tol=None).fit(X, y)) == learned(whole)


def test_sparse_rows_of_float32(estimator, sparse_rows, learn, says_the_same):
    X, y = sparse_rows
    narrow = sparse.csr_array(X.astype(np.float32))
    reference = learn(clone(estimator), narrow.astype(np.float64), y)
    says_the_same(learn(estimator, narrow, y), reference, X)


# --- rows that are not sound ------------------------------------------------------------------------------------------


def put(array, index, value):
    array = np.array(array, dtype=np.float64)
    array[index] = value
    return array


BAD = {  # changes of (X, y), and the error message
    "NaN": (lambda X, y: (put(X, (4, 1), np.nan), y), r"Input X contains NaN \(row 4, column 1\)"),
    "infinity": (lambda X, y: (put(X, (4, 2), np.inf), y), r"Input X contains infinity \(row 4, column 2\)"),
    "-infinity": (lambda X, y: (put(X, (4, 0), -np.inf), y), r"Input X contains infinity \(row 4, column 0\)"),
    "NaN in the last row": (lambda X, y: (put(X, (-1, 3), np.nan), y), r"X contains NaN \(row 9, column 3\)"),
    "NaN in the first row": (lambda X, y: (put(X, (0, 0), np.nan), y), r"X contains NaN \(row 0, column 0\)"),
    "NaN twice": (lambda X, y: (put(X, ([3, 7], [3, 0]), np.nan), y), r"X contains NaN \(row 3, column 3\)"),
    "one column more": (lambda X, y: (np.c_[X, X[:, 0]], y), r"X has \d features, but \w+ is expecting \d features"),
    "one column less": (lambda X, y: (X[:, 1:], y), r"X has \d features, but \w+ is expecting \d features"),
    "no rows": (lambda X, y: (X[:0], y[:0]), r"Found array with 0 sample\(s\)"),
    "no columns": (lambda X, y: (X[:, :0], y), r"0 feature\(s\)"),
    "X in one dimension": (lambda X, y: (X[0], y[:1]), "Expected 2D array, got 1D array"),
    "X in three dimensions": (lambda X, y: (X[None], y), "dim 3|3 dimensions|1D array|inconsistent"),
    "y too short": (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
    "y too long": (lambda X, y: (X[:-1], y), "inconsistent numbers of samples"),
    "y in two columns": (lambda X, y: (X, np.c_[y, y]), r"1d array|should be 1d"),
    "X of words": (lambda X, y: (np.full(X.shape, "a"), y), "Column 0 must hold numbers; got 'a' in row 0"),
    "X complex": (lambda X, y: (X + 1j, y), "[Cc]omplex"),
    "X missing": (lambda X, y: (None, y), "Expected 2D array|NoneType|array"),
    "y missing": (lambda X, y: (X, None), "y"),
}
BAD_TARGETS = {  # for numbers as targets
    "NaN in y": (lambda X, y: (X, put(y, 3, np.nan)), r"y contains NaN \(row 3\)"),
    "infinity in y": (lambda X, y: (X, put(y, 9, np.inf)), r"y contains infinity \(row 9\)"),
    "-infinity in y": (lambda X, y: (X, put(y, 0, -np.inf)), r"y contains infinity \(row 0\)"),
    "y of words": (lambda X, y: (X, np.full(len(y), "a")), "could not convert|not convertible|dtype|str"),
}
# not an error for estimators without targets
ABOUT_TARGETS = {"y too short", "y too long", "y in two columns", "y missing"}
BLAMELESS_FIRST = {"one column more", "one column less"}  # these are valid for an unfitted estimator
MISSING = {"NaN", "NaN in the last row", "NaN in the first row", "NaN twice"}
WORDS = ("X of words", "frame")
NO_FRAME = {"X in one dimension", "X in three dimensions", "X missing", "X complex", "no columns"}
NO_SPARSE = {*NO_FRAME, "X of words"}
NOT_IN = {"frame": NO_FRAME, "csr": NO_SPARSE, "list": {"X complex"}}  # scikit-learn raises other errors for these
FORMS = {
    "array": lambda X: X,
    "float32": lambda X: X.astype(np.float32) if isinstance(X, np.ndarray) and X.dtype == np.float64 else X,
    "list": lambda X: X.tolist() if isinstance(X, np.ndarray) else X,
    "fortran": lambda X: np.asfortranarray(X) if isinstance(X, np.ndarray) else X,
    "frame": pd.DataFrame,
    "csr": sparse.csr_array,
}


def bad_forms(estimator, fault, X, y, forms=tuple(FORMS)):
    """The bad rows in all containers that can hold them: (X, y, error message)."""
    spoil, message = {**BAD, **BAD_TARGETS}[fault]
    X_bad, y_bad = spoil(X[:10], y[:10])
    for form in forms:
        make = FORMS[form]
        if fault in NOT_IN.get(form, ()):
            continue
        tags = get_tags(estimator).input_tags
        if form == "csr" and not tags.sparse:
            continue
        if (tags.allow_nan and fault in MISSING and form != "csr") or (tags.categorical and (fault, form) == WORDS):
            continue  # missing values and categories: tests/parameter_free/test_missing_values.py
        if form == "list" and fault in ("no rows", "no columns"):  # an empty list has no shape
            yield make(X_bad), y_bad.tolist(), message + "|Expected 2D array"
        else:
            yield make(X_bad), y_bad, message


def concerns(estimator, fault):
    """Whether it is an error for this estimator: not all of them have targets, or numbers as targets."""
    tags = get_tags(estimator)
    if fault in BAD_TARGETS:
        bounds = "kernel_learning" in type(estimator).__module__
        return tags.target_tags.required and (is_regressor(estimator) or bounds)
    return tags.target_tags.required or fault not in ABOUT_TARGETS


@pytest.mark.parametrize(
    "forms", [["array"], ["csr", "float32", "list", "fortran", "frame"]], ids=["arrays", "other forms"]
)
def test_bad_rows_are_refused_by_name_and_nothing_is_learned(estimator, rows, learn, forms, untouched, learned):
    X, y = rows
    tags = get_tags(estimator)  # two columns may be right for a first y: numbers, or indicators of labels
    multi_output = tags.target_tags.multi_output or (is_classifier(estimator) and tags.classifier_tags.multi_label)
    stream, reference = (learn(clone(estimator), X, y) for _ in range(2))
    for fault in filter(partial(concerns, estimator), [*BAD, *BAD_TARGETS]):
        for X_bad, y_bad, message in bad_forms(estimator, fault, X, y, forms):
            calls = [stream.partial_fit]
            if fault not in BLAMELESS_FIRST and not (fault == "y in two columns" and multi_output):
                calls += [stream.fit, partial(learn, estimator), estimator.fit]
            with untouched(stream, estimator):
                for call in calls:
                    with pytest.raises(ValueError, match=message):
                        call(X_bad, y_bad)
    # and the stream continues as if the calls had not happened
    assert learned(stream.partial_fit(X[:9], y[:9])) == learned(reference.partial_fit(X[:9], y[:9]))


def test_bad_rows_are_not_predicted(estimator, rows, learn, state, output, outputs):
    X, y = rows
    learn(estimator, X, y)
    output(estimator, X)
    before = state(estimator)
    for fault in ("NaN", "infinity", "-infinity", "one column more", "no rows", "X in one dimension"):
        for X_bad, _, message in bad_forms(estimator, fault, X, y):
            for name in outputs:
                if hasattr(estimator, name):
                    with pytest.raises(ValueError, match=message):
                        getattr(estimator, name)(X_bad)
            assert state(estimator) == before


@pytest.mark.only(where=lambda estimator: not get_tags(estimator).input_tags.sparse)
def test_sparse_rows_are_refused_where_the_tags_say_so(estimator, rows, learn, outputs, unchanged):
    X, y = rows
    learn(estimator, X, y)
    calls = [getattr(estimator, name) for name in outputs if hasattr(estimator, name)]
    calls += [getattr(estimator, name) for name in ("partial_fit", "fit", "score") if hasattr(estimator, name)]
    for call in calls:
        with unchanged(estimator, "Sparse data was passed for X, but dense data is required", TypeError):
            call(FORMS["csr"](X))


@pytest.mark.only(where=lambda estimator: get_tags(estimator).input_tags.positive_only)
def test_negative_rows_are_refused_where_the_tags_say_so(estimator, rows, learn, unchanged):
    X, y = rows
    learn(estimator, X, y)
    for form in ("array", "list", "csr") if get_tags(estimator).input_tags.sparse else ("array", "list"):
        with unchanged(estimator, r"Negative values in data.*row 4"):
            estimator.partial_fit(FORMS[form](put(X[:10], (4, 1), -0.5)), y[:10])
        if is_regressor(estimator):
            with unchanged(estimator, r"row 6"):
                estimator.partial_fit(FORMS[form](X[:10]), put(y[:10], 6, -0.5))


@pytest.mark.only(where=lambda estimator: isinstance(estimator, SideBySideMixin))
def test_errors_about_targets_name_the_estimator_and_not_one_of_its_parts(estimator, rows, learn, unchanged):
    X, y = rows
    name = type(estimator).__name__
    with unchanged(estimator, f"Found array with dim 3.*{name}"):
        learn(estimator, X, y[:, None, None])
    with unchanged(estimator, rf"Found array with 0 sample\(s\) .* required by {name}"):
        learn(estimator, X, y[:0])


@pytest.mark.only(where=is_regressor)
def test_targets_of_a_wrong_kind_are_refused_by_regressors(estimator, rows, learn, unchanged):
    X, y = rows
    learn(estimator, X, y)
    words, missing, unknown = np.array([["1.0 "] * 40, [1.0] * 40, [1.0] * 40], dtype=object)
    words[7], missing[7], unknown[7] = "one", None, pd.NA
    for bad, match in [
        (["a"] * 40, "could not convert y = 'a' in row 0"),
        (words, "could not convert y = 'one' in row 7"),
        (missing, r"contains NaN \(row 7\)"),
        (unknown, "could not convert y = <NA> in row 7"),
        (y.astype(complex), "[Cc]omplex"),
    ]:
        with unchanged(estimator, match):
            estimator.partial_fit(X, bad)


def has_one_vector(estimator):
    """Others code labels, keep the scores of several models, or have no vector of weights."""
    several = len(getattr(estimator.get_params().get("loss"), "parts", ())) > 1  # quantiles
    return (
        is_regressor(estimator) and hasattr(type(estimator), "coef_") and not (several or hasattr(estimator, "eta0s"))
    )


@pytest.mark.only(where=has_one_vector)
@pytest.mark.parametrize("form", ["float64", "float32", "csr"])
def test_a_block_of_rows_is_read_where_it_lies(estimator, rows, learn, form):
    X, y = (np.tile(part, (2000, *[1] * (part.ndim - 1))) for part in rows)
    if estimator.__dict__.get("constraint") is not None:
        X, y = X[:2000], y[:2000]  # slow NumPy path
    X = sparse.csr_array(X) if form == "csr" else X.astype(form)
    learn(estimator, X[:40], y[:40])
    tracemalloc.start()
    try:
        learn(estimator, X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50_000
