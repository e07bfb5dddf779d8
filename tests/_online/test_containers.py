"""Malformed sparse matrices and other containers: the result is valid or a ValueError, never a crash."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.feature_extraction import DictVectorizer
from sklearn.preprocessing import MaxAbsScaler, Normalizer

from onlinebregman import (
    DefiniteBoost,
    ForwardRegressor,
    ImplicitGDRegressor,
    LogDetMetricLearner,
    MirrorDescentRegressor,
    ParameterFreeRegressor,
)
from onlinebregman._online.containers import sound_csr
from onlinebregman.model_selection import offline_comparator, progressive_val_score
from onlinebregman.pipeline import make_online_pipeline

D = np.where(np.random.default_rng(0).uniform(size=(6, 8)) < 0.5, np.arange(48.0).reshape(6, 8), 0.0)
Y = np.arange(6.0)
FORMATS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")


def broken(part="indices", place=0, value=10**8):
    X = sparse.csr_array(D)
    getattr(X, part)[place] = value
    return X


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("family", ["array", "matrix"])
def test_every_format_is_read(kind, family):
    for dtype in (np.float64, np.float32, np.int8, bool, np.longdouble):
        X = getattr(sparse, f"{kind}_{family}")(D.astype(dtype))
        read = sound_csr(X)
        assert read.format == "csr"
        assert isinstance(read, sparse.sparray) == (family == "array")
        assert_array_equal(read.toarray(), D.astype(dtype))
    assert sound_csr(getattr(sparse, f"{kind}_{family}")((3, 2))).nnz == 0


def test_blocks_and_diagonals_of_any_size_are_read():
    for blocksize in ((1, 1), (2, 4), (3, 2), (6, 8)):
        assert_array_equal(sound_csr(sparse.bsr_array(D, blocksize=blocksize)).toarray(), D)
    X = sparse.dia_array((np.arange(12.0).reshape(3, 4) + 1, [-9, 0, 2]), shape=(6, 8))  # -9 is outside
    assert_array_equal(sound_csr(X).toarray(), X.toarray())


def test_sound_rows_are_not_copied():
    X = sparse.csr_array(D)
    read = sound_csr(X)
    assert all(np.shares_memory(getattr(read, part), getattr(X, part)) for part in ("data", "indices", "indptr"))
    assert read is not X


def test_pipelines_look_before_their_first_step_does():
    for first in (MaxAbsScaler(), Normalizer()):
        model = make_online_pipeline(first, ImplicitGDRegressor()).partial_fit(sparse.csr_array(D), Y)
        for bad in (broken(), broken("indptr", 1), broken("indptr", -1)):
            for method in (model.partial_fit, model.fit, model.score):
                with pytest.raises(ValueError, match="malformed sparse matrix in CSR format"):
                    method(bad, Y)
            with pytest.raises(ValueError, match="malformed"):
                model.predict(bad)
        assert model.predict(sparse.csr_array(D)).shape == (6,)
        assert not hasattr(model, "predict_proba")
        assert not hasattr(model, "transform")


def test_other_ways_in_look_first():
    for bad in (broken(), broken("indptr", 1), broken("indptr", -1)):
        with pytest.raises(ValueError, match="malformed"):
            offline_comparator(bad, Y)
        with pytest.raises(ValueError, match="malformed"):
            progressive_val_score(ImplicitGDRegressor(), bad, Y, chunk_size=2)
        with pytest.raises(ValueError, match="malformed"):
            progressive_val_score(ImplicitGDRegressor(), iter([(bad, Y)]))
        with pytest.raises(ValueError, match="malformed"):
            DefiniteBoost().partial_fit_matrices(bad)
        with pytest.raises(ValueError, match="Input sample_weight is a malformed"):
            ImplicitGDRegressor().fit(D, Y, sample_weight=bad)
    with pytest.raises(ValueError, match=r"y must be dense; got a sparse matrix"):
        ImplicitGDRegressor().fit(D, sparse.csr_array(Y[:, np.newaxis]))


def test_masked_values_of_a_csr_matrix_are_refused_in_every_call():
    masked, model = sparse.csr_array(D), ImplicitGDRegressor().partial_fit(D, Y)
    masked.data = np.ma.array(masked.data, mask=masked.data == masked.data[1])
    for call in (model.partial_fit, lambda X, y: model.predict(X)):
        with pytest.raises(ValueError, match="Input data is masked"):
            call(masked, Y)


def test_pairs_and_their_targets_may_lie_anywhere():
    X, pairs, targets = np.random.default_rng(0).normal(size=(6, 3)), np.array([[0, 1], [2, 3], [4, 5]]), np.ones(3)

    def odd(array):
        memory = np.zeros(array.nbytes + 1, dtype=np.uint8)
        memory[1:] = np.frombuffer(array.tobytes(), dtype=np.uint8)
        return memory[1:].view(array.dtype).reshape(array.shape)

    plain = LogDetMetricLearner().partial_fit_pairs(X, pairs, targets, sample_weight=targets)
    learned = LogDetMetricLearner().partial_fit_pairs(odd(X), odd(pairs), odd(targets), sample_weight=odd(targets))
    assert learned.components_.tobytes() == plain.components_.tobytes()
    with pytest.raises(ValueError, match=r"Input pairs is masked \(row 1, column 0\)"):
        plain.partial_fit_pairs(X, np.ma.array(pairs, mask=[[0, 0], [1, 0], [0, 0]]), targets)
    with pytest.raises(ValueError, match=r"Input targets is masked \(row 2\)"):
        plain.partial_fit_pairs(X, pairs, np.ma.array(targets, mask=[0, 0, 1]))
    with pytest.raises(ValueError, match="targets must be numeric; got dtype timedelta64"):
        plain.partial_fit_pairs(X, pairs, targets.astype("m8[s]"))


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        ((D[0], 1.0), r"Chunk 0 is a single row.*X\[i : i \+ 1\]"),
        ((D[0], [1.0]), "Chunk 0 is a single row"),
        ((list(D[0]), np.float64(1.0)), "Chunk 0 is a single row"),
        ((sparse.csr_matrix(D[:1]), 1.0), "Chunk 0 is a single row"),
        (({"a": 1.0}, 1.0), "Chunk 0 has a dict for X.*DictVectorizer"),
        (({"a": 1.0}, [1.0]), "Chunk 0 has a dict for X.*DictVectorizer"),
        (([{"a": 1.0}], [1.0]), "X must be an array of numbers or a data frame; got dicts.*DictVectorizer"),
        ({"a": 1.0}, "Chunk 0 of the iterable must be a tuple .*; got type dict"),
        ((np.ma.array(D, mask=D[2, 3] == D), Y), r"Input X is masked"),
        ((D, np.ma.array(Y, mask=Y == 4)), r"Input y is masked \(row 4\)"),
        ((D, Y, np.ma.array(Y, mask=Y == 4)), r"Input sample_weight is masked \(row 4\)"),
        ((D, sparse.csr_array(Y[:, np.newaxis])), "y must be dense"),
    ],
)
def test_chunks_that_are_no_blocks_of_rows(chunk, message):
    with pytest.raises(ValueError, match=message):
        progressive_val_score(ImplicitGDRegressor(), iter([chunk, chunk]))


def test_a_row_and_its_target_are_no_stream():
    with pytest.raises(ValueError, match=r"Chunk 0 is a single row.*without zip"):
        progressive_val_score(ImplicitGDRegressor(), zip(D, Y, strict=True))
    with pytest.raises(ValueError, match="Chunk 0 is a single row"):
        progressive_val_score(ImplicitGDRegressor(), D[0], Y[0])


def test_steps_that_read_dicts_are_given_them():
    stream = [([{"a": float(k), "b": 1.0}], [float(k)]) for k in range(5)]
    vectorizer = DictVectorizer().fit(stream[0][0])
    vectorizer.partial_fit = lambda X, y=None: vectorizer
    result = progressive_val_score(make_online_pipeline(vectorizer, ImplicitGDRegressor()), stream, warm_start=True)
    assert result.n_scored == 4


DAYS = pd.Series(pd.date_range("2024-01-01", periods=5))
TIMES = [DAYS, DAYS - DAYS[0], DAYS.dt.date, DAYS.dt.to_period("D"), DAYS.dt.tz_localize("UTC")]


@pytest.mark.parametrize(
    "column",
    [*TIMES, pd.Series(pd.interval_range(0, 5)), pl.Series(DAYS), *map(pa.array, TIMES[:3])],
    ids=lambda column: f"{type(column).__name__}-{getattr(column, 'dtype', '')}",
)
def test_a_column_of_times_is_named_with_what_makes_numbers_of_it(column):
    frame = {pd.Series: pd.DataFrame, pl.Series: pl.DataFrame}.get(type(column), pa.table)
    X = frame({"a": np.arange(5.0), "when": column})
    with pytest.raises(ValueError, match=r"^X\['when'\] must be numeric; got dtype ") as error:
        ForwardRegressor().fit(X, np.arange(5.0))
    numbers = eval(str(error.value).partition("choice: ")[2][:-1], {"X": X, "numpy": np})
    ForwardRegressor().fit(frame({"a": np.arange(5.0), "when": numbers}), np.arange(5.0))


@pytest.mark.parametrize("form", [pa.Table.from_pandas, pa.RecordBatch.from_pandas, pl.DataFrame])
def test_what_arrow_holds_is_a_frame_with_names_and_categories(form):
    if form is pl.DataFrame and not hasattr(MaxAbsScaler().fit(form({"a": [0.0, 1.0]})), "feature_names_in_"):
        pytest.skip("this scikit-learn finds no names in frames of this polars")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=30), "c": rng.choice(["u", "v"], 30), "b": rng.normal(size=30)})
    X, y = form(frame), rng.normal(size=30)
    settings = {"random_features": 0, "categorical_features": ["c"]}
    model, expected = (ParameterFreeRegressor(**settings).partial_fit(rows, y) for rows in (X, frame))
    assert model.feature_names_in_.tolist() == ["a", "c", "b"] and model.categories_ == expected.categories_
    assert_array_equal(model.predict(X), expected.predict(frame))
    grown = (
        MirrorDescentRegressor(handle_new_features="add")
        .partial_fit(frame[["a"]], y)
        .partial_fit(form(frame[["a", "b"]]), y)
    )
    assert grown.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match=r"Column 'c' must hold numbers; got '[uv]' in row 0"):
        MirrorDescentRegressor().fit(X, y)
    with pytest.raises(ValueError, match=r"got a lazy frame. Give X.collect"):
        ParameterFreeRegressor().fit(pl.DataFrame(frame).lazy(), y)
