"""progressive_val_score: every row is predicted by the model of the rows before, whatever form the stream has."""

import copy
from datetime import timedelta
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentClassifier
from scipy import sparse
from sklearn import metrics
from sklearn.base import clone
from sklearn.cluster import MiniBatchKMeans
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LinearRegression, SGDClassifier, SGDRegressor
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onlinebregman import (
    BurgRegressor,
    EGRegressor,
    ForwardClassifier,
    ForwardRegressor,
    ImplicitGDRegressor,
    LearningRatePath,
    ParameterFreeRegressor,
)
from onlinebregman.linear_model import _base
from onlinebregman.model_selection import progressive_val_predict, progressive_val_score
from onlinebregman.pipeline import make_online_pipeline

REGRESSORS = [ImplicitGDRegressor(), EGRegressor(), BurgRegressor(), SGDRegressor(random_state=0)]
every_regressor = pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: type(model).__name__)


def numbers(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ np.linspace(0.2, 0.6, d) + 0.1 * rng.normal(size=n)


def labels(n=60, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    return rng.normal(size=(n, 3)) + 1.5 * np.eye(n_classes, 3)[y], y


def by_hand(model, X, y, size, method="predict", **first):
    """Predictions of `model`, which must learn a first chunk, for the other chunks before it learns them."""
    said = []
    for start in range(0, len(y), size):
        rows = slice(start, start + size)
        if start:
            said.append(getattr(model, method)(X[rows]))
        model.partial_fit(X[rows], y[rows], **first)
        first = {}
    return np.concatenate(said)


# --- the definition ---------------------------------------------------------------------------------------------------


@every_regressor
@settings(max_examples=10)
@given(n=st.integers(2, 40), size=st.integers(1, 7), seed=st.integers(0, 2**32 - 1))
def test_it_is_the_loop_written_by_hand(model, n, size, seed):
    X, y = numbers(n + size, seed=seed)
    before = copy.deepcopy(vars(model))
    result = progressive_val_score(model, X, y, scoring="neg_mean_squared_error", chunk_size=size, n_points=None)
    assert vars(model) == before
    hand = clone(model)
    said, rest = by_hand(hand, X, y, size), y[size:]
    assert_array_equal(result.estimator.coef_, hand.coef_)
    assert_array_equal(result.predictions["predict"], said)
    assert_array_equal(result.y_true, rest)
    assert_array_equal(result.n_rows, [*range(2 * size, n + size, size), n + size])
    assert result.n_scored == n
    assert result.score == result.curve[-1] == -metrics.mean_squared_error(rest, said)
    stops = result.n_rows - size
    assert_array_equal(result.curve, [-metrics.mean_squared_error(rest[:stop], said[:stop]) for stop in stops])
    windows = [slice(start, stop) for start, stop in zip([0, *stops[:-1]], stops, strict=True)]
    assert_array_equal(result.window_scores, [-metrics.mean_squared_error(rest[w], said[w]) for w in windows])


def test_without_warm_start_nothing_learned_before_counts():
    X, y = numbers()
    used = ImplicitGDRegressor().fit(X, y)
    fresh = progressive_val_score(ImplicitGDRegressor(), X, y)
    assert progressive_val_score(used, X, y).score == fresh.score
    assert fresh.n_scored == 59
    unfitted = progressive_val_score(ImplicitGDRegressor(), X, y, warm_start=True)
    assert unfitted.score == fresh.score and unfitted.n_scored == 59


def test_scoring_none_is_the_score_of_the_estimator():
    X, y = numbers()
    assert (
        progressive_val_score(EGRegressor(), X, y).score
        == progressive_val_score(EGRegressor(), X, y, scoring="r2").score
    )
    X, y = labels()
    sgd = SGDClassifier(random_state=0)
    assert progressive_val_score(sgd, X, y).score == progressive_val_score(sgd, X, y, scoring="accuracy").score

    class Own(SGDRegressor):
        def score(self, X, y, sample_weight=None):
            return np.max(np.abs(self.predict(X) - y))

    X, y = numbers()
    result = progressive_val_score(Own(random_state=0), X, y)
    assert result.score == np.abs(result.predictions["predict"] - y[1:]).max()


@pytest.mark.parametrize("n_points", [1, 3, 7, 58, 59, 60, 1000])
def test_the_curve_has_points_at_even_distances_and_the_last_at_the_end(n_points):
    X, y = numbers(60)
    result = progressive_val_score(ImplicitGDRegressor(), X, y, n_points=n_points)
    assert len(result.n_rows) == len(result.curve) == len(result.window_scores) == min(n_points, 59)
    steps = np.diff([1, *result.n_rows])
    assert result.n_rows[-1] == 60 and steps.max() - steps.min() <= 1


# --- scorers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scoring, method, function",
    [
        ("accuracy", "predict", metrics.accuracy_score),
        ("f1", "predict", metrics.f1_score),
        ("neg_log_loss", "predict_proba", lambda y, p: -metrics.log_loss(y, p)),
        ("roc_auc", "decision_function", metrics.roc_auc_score),
        ("neg_brier_score", "predict_proba", lambda y, p: -metrics.brier_score_loss(y, p[:, 1])),
        (metrics.log_loss, "predict_proba", metrics.log_loss),
        (partial(metrics.log_loss, normalize=False), "predict_proba", partial(metrics.log_loss, normalize=False)),
        (metrics.brier_score_loss, "predict_proba", lambda y, p: metrics.brier_score_loss(y, p[:, 1])),
        (metrics.roc_auc_score, "decision_function", metrics.roc_auc_score),
        (metrics.average_precision_score, "decision_function", metrics.average_precision_score),
        (metrics.hinge_loss, "decision_function", metrics.hinge_loss),
        (metrics.zero_one_loss, "predict", metrics.zero_one_loss),
        (metrics.make_scorer(metrics.fbeta_score, beta=2), "predict", partial(metrics.fbeta_score, beta=2)),
        (
            lambda y_true, y_pred, scale=3: scale * np.mean(y_true != y_pred),
            "predict",
            lambda y, p: 3 * np.mean(y != p),
        ),
    ],
)
def test_classification_scorers_and_metrics_read_what_they_need(scoring, method, function):
    X, y = labels(80)
    model = SGDClassifier(loss="log_loss", random_state=0)
    result = progressive_val_score(model, X, y, scoring=scoring, chunk_size=5, n_points=4)
    said = by_hand(clone(model), X, y, 5, method, classes=[0, 1])
    assert list(result.predictions) == [method]
    assert_array_equal(result.predictions[method], said)
    assert_allclose(result.curve, [function(y[5:stop], said[: stop - 5]) for stop in result.n_rows], rtol=1e-12)


def test_a_scorer_of_ones_own_may_call_all_methods_and_gets_the_numbers_of_the_rows():
    X, y = labels(50, 3)
    calls = []

    def scorer(estimator, X, y=None):
        calls.append(X)
        assert isinstance(estimator, GaussianNB) and list(estimator.classes_) == [0, 1, 2]
        assert_array_equal(estimator.classes_[estimator.predict_proba(X).argmax(axis=1)], estimator.predict(X))
        assert_allclose(np.exp(estimator.predict_log_proba(X)), estimator.predict_proba(X))
        return np.mean(estimator.predict(X[::2]) == y[::2])

    result = progressive_val_score(GaussianNB(), X, y, scoring=scorer, chunk_size=10, n_points=1)
    assert_array_equal(calls[0], np.arange(10, 50))
    said = by_hand(GaussianNB(), X, y, 10, classes=[0, 1, 2])
    assert result.score == np.mean(said[::2] == y[10::2])
    assert set(result.predictions) == {"predict", "predict_proba", "predict_log_proba"}
    assert result.predictions["predict_proba"].shape == (40, 3)


def test_a_metric_is_nan_where_it_is_not_defined_yet():
    X, y = labels(40)
    y = np.sort(y)
    ones = y.sum()
    model = SGDClassifier(loss="log_loss", random_state=0)
    for scoring in metrics.log_loss, "roc_auc":
        result = progressive_val_score(model, X, y, scoring=scoring, chunk_size=5, n_points=None)
        late = result.n_rows > 40 - ones
        assert late.any() and not late.all()
        assert_array_equal(np.isfinite(result.curve), late)
    r2 = progressive_val_score(ImplicitGDRegressor(), *numbers(30))
    assert_array_equal(np.isnan(r2.curve), np.arange(29) == 0)
    assert np.isnan(r2.window_scores).all()


def test_what_the_whole_says_is_not_hidden():
    X, _ = labels(40)
    model = SGDClassifier(loss="log_loss", random_state=0)
    with pytest.raises(ValueError, match="contains only one label"):
        progressive_val_score(model, X, np.zeros(40, int), scoring=metrics.log_loss, classes=[0, 1])
    with pytest.warns(UndefinedMetricWarning):
        progressive_val_score(ImplicitGDRegressor(), *numbers(2), scoring="r2")

    def broken(estimator, X, y):
        raise TypeError("a mistake")

    with pytest.raises(TypeError, match="a mistake"):
        progressive_val_score(ImplicitGDRegressor(), *numbers(), scoring=broken)


def test_labels_may_be_text_and_targets_may_have_columns():
    X, y = labels(60, 3)
    names = np.array(["a", "bcd", "ef"])
    y[:20] = 0  # the first chunk has one label, the shortest
    model = SGDClassifier(random_state=0)
    plain = progressive_val_score(model, X, y, chunk_size=20)
    chunks = [(X[i : i + 20], np.array(names[y[i : i + 20]].tolist())) for i in (0, 20, 40)]
    text = progressive_val_score(model, chunks, classes=names)
    assert text.score == plain.score
    assert_array_equal(text.predictions["predict"], names[plain.predictions["predict"]])
    assert_array_equal(text.y_true, names[y[20:]])
    X, y = numbers()
    two = MultiOutputRegressor(SGDRegressor(random_state=0))
    result = progressive_val_score(two, X, np.c_[y, -y], chunk_size=6)
    assert result.predictions["predict"].shape == result.y_true.shape == (54, 2)
    assert_allclose(result.score, progressive_val_score(SGDRegressor(random_state=0), X, y, chunk_size=6).score)


# --- weights and classes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [ImplicitGDRegressor(), SGDRegressor(random_state=0)], ids=["ours", "theirs"])
@pytest.mark.parametrize("scoring", [None, "neg_mean_squared_error", metrics.mean_absolute_error])
def test_weights_are_those_of_learning_and_of_the_metric(model, scoring):
    X, y = numbers(50)
    weights = np.random.default_rng(1).uniform(0.5, 2, size=50)
    result = progressive_val_score(
        model, X, y, scoring=scoring, sample_weight=weights.tolist(), chunk_size=5, n_points=3
    )
    hand, said = clone(model), []
    for i in range(0, 50, 5):
        rows = slice(i, i + 5)
        if i:
            said.extend(hand.predict(X[rows]))
        hand.partial_fit(X[rows], y[rows], sample_weight=weights[rows])
    function = {
        None: metrics.r2_score,
        "neg_mean_squared_error": lambda *args, **weights: -metrics.mean_squared_error(*args, **weights),
    }.get(scoring, scoring)
    expected = [function(y[5:n], said[: n - 5], sample_weight=weights[5:n]) for n in result.n_rows]
    assert_allclose(result.curve, expected, rtol=1e-12)


def mean_of_errors(y_true, y_pred, sample_weight=None):
    return np.average(np.abs(y_true - y_pred), weights=sample_weight)


@pytest.mark.parametrize("scoring", ["neg_mean_squared_error", mean_of_errors])
def test_a_window_without_weight_has_no_score(scoring):
    X, y = numbers(40)
    result = progressive_val_score(
        ImplicitGDRegressor(),
        X,
        y,
        scoring=scoring,
        sample_weight=np.repeat([1.0, 0.0, 1.0, 1.0], 10),
        chunk_size=10,
        n_points=None,
    )
    assert_array_equal(np.isnan(result.window_scores), [True, False, False])
    assert_array_equal(np.isnan(result.curve), [True, False, False])


def test_a_window_of_one_row_with_weight_has_no_r2():
    """The mean of one target is that target up to rounding, and R^2 was 0 or about -1e32."""
    X, y = np.random.default_rng(0).normal(size=(2, 60, 1))
    weights = np.where(np.arange(60) % 3, 0.0, 0.3)
    result = progressive_val_score(
        ImplicitGDRegressor(), X.reshape(-1, 1), y.ravel(), sample_weight=weights, n_points=20
    )
    assert np.isnan(result.window_scores).all() and np.isfinite(result.curve[2:]).all()


def test_weights_that_nobody_takes_are_refused():
    X, y = numbers()
    with pytest.raises(ValueError, match=r"neg_max_error.* does not accept sample_weight"):
        progressive_val_score(ImplicitGDRegressor(), X, y, scoring="neg_max_error", sample_weight=np.ones(60))
    with pytest.raises(ValueError, match=r"scoring = <.*does not accept sample_weight"):
        progressive_val_score(ImplicitGDRegressor(), X, y, scoring=lambda a, b: 0.0, sample_weight=np.ones(60))

    class Unweighted(SGDRegressor):
        def partial_fit(self, X, y):
            return super().partial_fit(X, y)

    with pytest.raises(ValueError, match=r"Unweighted.partial_fit does not accept sample_weight"):
        progressive_val_score(Unweighted(), iter([(X, y, np.ones(60))]))
    with pytest.raises(ValueError, match="must have weights or none; chunk 1 differs"):
        progressive_val_score(ImplicitGDRegressor(), [(X, y, np.ones(60)), (X, y)])
    with pytest.raises(ValueError, match="weights are part of its chunks"):
        progressive_val_score(ImplicitGDRegressor(), [(X, y)], sample_weight=np.ones(60))


def test_classes_are_those_of_the_whole_stream():
    X, y = labels(60, 3)
    y = np.sort(y)
    model = SGDClassifier(random_state=0)
    result = progressive_val_score(model, X, y)
    assert list(result.estimator.classes_) == [0, 1, 2]
    more = progressive_val_score(model, X, y, classes=[0, 1, 2, 3])
    assert list(more.estimator.classes_) == [0, 1, 2, 3]
    chunks = [(X[:30], y[:30]), (X[30:], y[30:])]
    told = []

    class Noting(SGDClassifier):
        def partial_fit(self, X, y, classes=None):
            told.append(classes)
            return super().partial_fit(X, y, classes=classes)

    progressive_val_score(Noting(random_state=0), chunks * 2, classes=[0, 1, 2])
    assert told == [[0, 1, 2], None, None, None]
    with pytest.raises(ValueError, match="classes must be given for an iterable"):
        progressive_val_score(model, chunks)
    for missing in (np.array(["a"] * 29 + [None]), np.append(np.zeros(29), np.nan)):
        with pytest.raises(ValueError, match=r"Input y contains (a missing label, None|NaN).*row 29"):
            progressive_val_score(model, X[:30], missing)
    growing = ForwardClassifier(handle_unknown="add")
    for first, rest in ((y[:30], y[30:]), (np.zeros(30), np.ones(30))):
        result = progressive_val_score(growing, [(X[:30], first), (X[30:60], rest[:30])])
        assert_array_equal(result.estimator.classes_, np.unique([*first, *rest[:30]]))
        path = LearningRatePath(MirrorDescentClassifier(handle_unknown="add"), eta0s=2)
        for several in (path, make_online_pipeline(StandardScaler(), path)):
            result = progressive_val_score(several, [(X[:30], first), (X[30:60], rest[:30])])
            assert_array_equal(result.estimator.classes_, np.unique([*first, *rest[:30]]))
    started = clone(model).partial_fit(X[:30], y[:30], classes=[0, 1, 2])
    assert progressive_val_score(started, chunks[1:], warm_start=True).n_scored == 30
    with pytest.raises(
        ValueError, match=r"classes must be None, as ImplicitGDRegressor\.partial_fit does not accept it"
    ):
        progressive_val_score(ImplicitGDRegressor(), X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="y has 2 dimensions; give classes"):
        progressive_val_score(MultiOutputClassifier(model), X, np.c_[y, y])


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model, arguments, match",
    [
        (LinearRegression(), {}, "LinearRegression has no partial_fit"),
        (make_pipeline(SGDRegressor()), {}, "Pipeline has no partial_fit.*OnlinePipeline"),
        (SGDRegressor(), {"scoring": 3}, "scoring must be the name of a scorer.*; got 3"),
        (SGDRegressor(), {"scoring": ["r2"]}, "must be the name of a scorer"),
        (SGDRegressor(), {"scoring": "no such"}, "no such"),
        (
            SGDRegressor(),
            {"scoring": "neg_log_loss"},
            "SGDRegressor has no predict_proba, which scoring = 'neg_log_loss'",
        ),
        (SGDClassifier(), {"scoring": metrics.log_loss}, "SGDClassifier has no predict_proba"),
        (SGDRegressor(), {"scoring": "roc_auc"}, "has no decision_function or predict_proba"),
        (MiniBatchKMeans(), {}, "scoring is None, but MiniBatchKMeans is neither"),
        (SGDRegressor(), {"chunk_size": 0}, "chunk_size == 0, must be >= 1"),
        (SGDRegressor(), {"n_points": 0}, "n_points == 0, must be >= 1"),
        (SGDRegressor(), {"sample_weight": np.ones(59)}, r"inconsistent numbers of samples: \[60, 60, 59\]"),
        (SGDRegressor(), {"delay": 60}, "All 60 rows are in the first chunk.*use .* a shorter delay"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_done_is_refused(model, arguments, match):
    X, y = numbers()
    with pytest.raises(ValueError, match=match):
        progressive_val_score(model, X, y > 0 if isinstance(model, SGDClassifier) else y, **arguments)


@pytest.mark.parametrize(
    "X, y, match",
    [
        (np.ones((5, 2)), None, "X must be an iterable of chunks"),
        (pd.DataFrame(np.ones((5, 2))), None, "got DataFrame. Give y"),
        (3, None, "got int. Give y"),
        (np.ones((5, 2)), np.ones(4), r"inconsistent numbers of samples: \[5, 4\]"),
        ([(np.ones((5, 2)), np.ones(4))], None, r"inconsistent numbers of samples: \[5, 4\]"),
        ([pd.DataFrame(np.ones((5, 2)))], None, "Chunk 0 of the iterable must be a tuple .*; got type DataFrame"),
        ([(np.ones((5, 2)),)], None, "Chunk 0 .* got type tuple and length 1"),
        ([], None, "The stream has no rows"),
        (np.ones((0, 2)), np.ones(0), "The stream has no rows"),
        ([(np.ones((5, 2)), np.ones(5))], None, "All 5 rows are in the first chunk"),
        ([(np.ones((5, 2)), np.ones(5)), (np.ones((5, 3)), np.ones(5))], None, "X has 3 features"),
    ],
    ids=str,
)
def test_a_stream_that_is_none_is_refused(X, y, match):
    with pytest.raises(ValueError, match=match):
        progressive_val_score(ImplicitGDRegressor(), X, y)


@pytest.mark.parametrize("model", [ImplicitGDRegressor(), SGDRegressor()], ids=["ours", "theirs"])
def test_an_error_of_the_estimator_says_where_in_the_stream_it_was(model):
    X, y = numbers()
    X[37, 1] = np.nan
    with pytest.raises(ValueError, match="NaN") as caught:
        progressive_val_score(model, X, y)
    assert caught.value.__notes__ == ["This was at rows 37 to 37 of the stream."]
    with pytest.raises(ValueError, match="NaN") as caught:
        progressive_val_score(model, [(X[:30], y[:30]), (X[30:], y[30:])])
    assert caught.value.__notes__ == ["This was at rows 30 to 59 of the stream."]


def test_a_score_that_needs_more_than_predict_is_refused():
    class Curious(SGDClassifier):
        def score(self, X, y, sample_weight=None):
            return np.mean(self.decision_function(X))

    X, y = labels()
    with pytest.raises(ValueError, match="scoring=None calls decision_function"):
        progressive_val_score(Curious(), X, y)
    result = progressive_val_score(Curious(random_state=0), X, y, scoring=lambda model, X, y: model.score(X, y))
    assert result.score == result.predictions["decision_function"].mean()


# --- streams of every form --------------------------------------------------------------------------------------------


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


# --- labels that come late --------------------------------------------------------------------------------------------


RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X @ [1.0, 2.0, -1.0] + RNG.normal(size=60)


def by_moments(model, delay, moments, weights=None):
    """The predictions of each row by the model that has learned all labels that came before its moment."""
    comes, learned, said = moments + delay, set(), []
    for row in range(60):
        due = [i for i in np.argsort(comes, kind="stable").tolist() if comes[i] < moments[row] and i not in learned]
        if due:
            model.partial_fit(X[due], Y[due], None if weights is None else weights[due])
            learned |= set(due)
        if learned:
            said.append(model.predict(X[row : row + 1])[0])
    return np.array(said)


@pytest.mark.parametrize("delay", [0, 7, np.arange(60) % 5, RNG.integers(0, 20, size=60)], ids=str)
@pytest.mark.parametrize("times", [None, np.sort(RNG.uniform(0, 60, size=60))], ids=["rows", "times"])
def test_late_labels_are_learned_when_they_come(delay, times):
    moments = np.arange(60) if times is None else times
    for rows in (X, sparse.csr_matrix(X), pd.DataFrame(X, columns=list("abc"))):
        found = progressive_val_predict(ImplicitGDRegressor(), rows, Y, delay=delay, times=times)
        expected = by_moments(ImplicitGDRegressor(), delay, moments)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    result = progressive_val_score(ForwardRegressor(), X, Y, delay=delay, times=times, scoring="neg_mean_squared_error")
    found = progressive_val_predict(ForwardRegressor(), X, Y, delay=delay, times=times)
    assert_array_equal(result.predictions["predict"], found)
    assert result.score == -np.mean((found - Y[-len(found) :]) ** 2) and result.estimator.t_ == 60


def test_datetimes_weights_and_labels_that_never_come():
    days = np.datetime64("2024-01-01") + np.arange(60) * np.timedelta64(1, "D")
    weights = RNG.uniform(size=60)
    expected = by_moments(ImplicitGDRegressor(), 3, np.arange(60), weights)
    delays = timedelta(days=3), np.timedelta64(3, "D"), pd.Timedelta(days=3)
    for delay, times in zip(delays, (days.astype(object), days, pd.Series(days).dt.tz_localize("UTC")), strict=True):
        found = progressive_val_predict(ImplicitGDRegressor(), X, Y, sample_weight=weights, delay=delay, times=times)
        assert_array_equal(found, expected)
    some = np.where(np.arange(60) % 2, 0.0, np.inf)
    result = progressive_val_score(ImplicitGDRegressor(), X, Y, delay=some)
    assert result.estimator.t_ == 30 and result.n_scored == 58
    unknown = np.where(np.arange(60) % 2, np.timedelta64(0, "D"), np.timedelta64("NaT", "D"))
    assert progressive_val_score(ImplicitGDRegressor(), X, Y, delay=unknown, times=days).score == result.score


def test_methods():
    y = (Y > 0).astype(int)
    p = progressive_val_predict(MirrorDescentClassifier(), X, y, method="predict_proba", delay=3, classes=[0, 1])
    assert p.shape == (56, 2)
    model = ParameterFreeRegressor(random_features=0, delayed=True)
    ends = progressive_val_predict(model, X, Y, method="predict_interval", coverage=0.8, chunk_size=12)
    for i in range(0, 60, 12):
        if i:
            assert_array_equal(model.predict_interval(X[i : i + 12], 0.8), [end[i - 12 : i] for end in ends])
        model.partial_fit(X[i : i + 12], Y[i : i + 12])
    assert len(ends) == 2 and ends[0].shape == (48,) and (ends[0] <= ends[1]).all()


def test_errors():
    for wrong in (
        {"delay": -1},
        {"delay": [1, 2]},
        {"delay": timedelta(days=1)},
        {"delay": 1, "times": np.arange(60).astype("M8[D]")},
        {"times": np.arange(60)},
        {"delay": 1, "times": np.arange(60)[::-1]},
    ):
        with pytest.raises(ValueError, match=r"delay|times"):
            progressive_val_score(ImplicitGDRegressor(), X, Y, **wrong)
    with pytest.raises(ValueError, match="delay and times are for arrays"):
        progressive_val_score(ImplicitGDRegressor(), [(X, Y)], delay=1)
    with pytest.raises(ValueError, match="no method"):
        progressive_val_predict(ImplicitGDRegressor(), X, Y, method="predict_proba")
