"""progressive_val_score on streams of every form: arrays, frames, sparse rows, chunks, files."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import metrics
from sklearn.cluster import MiniBatchKMeans
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler

from onlinebregman import BurgRegressor, EGRegressor, ImplicitGDRegressor
from onlinebregman.linear_model import _base
from onlinebregman.model_selection import progressive_val_score
from onlinebregman.pipeline import make_online_pipeline


def numbers(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ np.linspace(0.2, 0.6, d) + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("size", [None, 7, 30])
@pytest.mark.parametrize(
    "form",
    [
        list,
        np.asfortranarray,
        sparse.csr_array,
        sparse.coo_matrix,
        lambda X: pd.DataFrame(X, index=np.arange(len(X)) / 2.0),
        lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    ],
    ids=["list", "fortran", "csr", "coo", "frame", "strided"],
)
def test_the_form_of_the_rows_does_not_matter(form, size):
    X, y = numbers(50)
    plain = progressive_val_score(EGRegressor(), X, y, chunk_size=size)
    for targets in y, y.tolist(), pd.Series(y, index=range(100, 50, -1)):
        other = progressive_val_score(EGRegressor(), form(X), targets, chunk_size=size)
        assert_allclose(other.predictions["predict"], plain.predictions["predict"], rtol=1e-12)
        assert_array_equal(other.n_rows, plain.n_rows)


def test_feature_names_are_learned_and_kept():
    X, y = numbers()
    names = ["a", "b", "c"]
    result = progressive_val_score(EGRegressor(), pd.DataFrame(X, columns=names), y)
    assert list(result.estimator.feature_names_in_) == names


@pytest.mark.parametrize(
    "form", [np.asarray, np.asfortranarray, lambda X: X.astype(np.float32)], ids=["C", "fortran", "float32"]
)
def test_single_rows_of_arrays_take_the_fast_path(form, monkeypatch):
    X, y = numbers()
    model, real, calls = ImplicitGDRegressor(), _base.check_rows, []
    monkeypatch.setattr(_base, "check_rows", lambda *args, **kwargs: calls.append(1) or real(*args, **kwargs))
    progressive_val_score(model, form(X), np.round(y).astype(int))
    assert len(calls) == 1  # the first row, which starts the model


def test_chunks_of_an_iterable_are_as_good_as_arrays():
    X, y = numbers(60)

    def chunks(size, weights=None):
        for i in range(0, 60, size):
            rows = slice(i, i + size)
            yield (X[rows], y[rows]) if weights is None else (X[rows], y[rows], weights[rows])

    for size in 10, 25:
        arrays = progressive_val_score(ImplicitGDRegressor(), X, y, chunk_size=size, n_points=None)
        for stream in chunks(size), list(chunks(size)):
            result = progressive_val_score(ImplicitGDRegressor(), stream, n_points=None)
            for key in "score", "curve", "window_scores", "n_rows", "n_scored", "y_true":
                assert_array_equal(result[key], arrays[key])
    rows = progressive_val_score(ImplicitGDRegressor(), X, y)
    assert progressive_val_score(ImplicitGDRegressor(), chunks(25), chunk_size=1).score == rows.score
    cut = progressive_val_score(ImplicitGDRegressor(), chunks(25), chunk_size=20, n_points=None)
    assert_array_equal(cut.n_rows, [25, 45, 50, 60])
    weights = np.arange(60.0)
    weighted = progressive_val_score(ImplicitGDRegressor(), X, y, chunk_size=10, sample_weight=weights)
    assert progressive_val_score(ImplicitGDRegressor(), chunks(10, weights)).score == weighted.score


def test_an_iterable_is_read_one_chunk_at_a_time_and_may_have_empty_ones():
    X, y = numbers(40)
    learned = []

    class Noting(ImplicitGDRegressor):
        def partial_fit(self, X, y, sample_weight=None):
            learned.append(len(y))
            return super().partial_fit(X, y, sample_weight)

    def chunks():
        yield X[:0], y[:0]
        for i in range(0, 40, 10):
            assert sum(learned) == i
            yield pd.DataFrame(X[i : i + 10]), pd.Series(y[i : i + 10])
            yield pd.DataFrame(X[:0]), pd.Series(y[:0])

    result = progressive_val_score(Noting(), chunks(), n_points=None)
    assert learned == [10] * 4
    assert_array_equal(result.n_rows, [20, 30, 40])


def test_a_file_read_in_chunks(tmp_path):
    X, y = (np.round(8 * part) / 8 for part in numbers(40))  # numbers of few digits: older pandas rounds long ones
    pd.DataFrame(X, columns=["a", "b", "c"]).assign(target=y).to_csv(tmp_path / "data.csv", index=False)
    reader = pd.read_csv(tmp_path / "data.csv", chunksize=15)
    result = progressive_val_score(BurgRegressor(), ((chunk[["a", "b", "c"]], chunk["target"]) for chunk in reader))
    whole = progressive_val_score(BurgRegressor(), X, y, chunk_size=15)
    assert_array_equal(result.estimator.coef_, whole.estimator.coef_)
    assert result.score == whole.score
    reader.close()


def test_pipelines_without_a_step_that_takes_classes_need_none():
    X, y = numbers(60)
    y = (y > 0).astype(int)
    pipeline = make_online_pipeline(StandardScaler(), make_online_pipeline(MiniBatchKMeans(2, random_state=0)))
    chunks = [(X[:30], y[:30]), (X[30:], y[30:])]
    result = progressive_val_score(pipeline, chunks, scoring=metrics.rand_score)
    told = progressive_val_score(pipeline, chunks, scoring=metrics.rand_score, classes=[0, 1])
    assert_array_equal(result.predictions["predict"], told.predictions["predict"])
    with pytest.raises(ValueError, match="classes must be given for an iterable"):
        progressive_val_score(make_online_pipeline(StandardScaler(), SGDClassifier()), chunks)
