"""MetricKNeighborsClassifier: its votes, in one metric or several, its window, the mapping of rows, and errors."""

import copy
import pickle

import numpy as np
import pytest
from counting import Counting, learned_in_chunks
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.decomposition import PCA, IncrementalPCA
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from onlinebregman import (
    FrobeniusMetricLearner,
    LogDetMetricLearner,
    MetricKNeighborsClassifier,
    MetricKNeighborsRegressor,
    VonNeumannMetricLearner,
)
from onlinebregman._sklearn_compat import for_other_rows
from onlinebregman.metric_learning._memory import Window
from onlinebregman.pipeline import make_online_pipeline

CLASSES = ["a", "b", "c"]
RNG = np.random.default_rng(0)
LABELS = RNG.choice(CLASSES, size=200)
X = RNG.normal(size=(200, 5)) * [1, 1, 1, 3, 3] + 2.0 * (LABELS[:, None] == np.array(CLASSES)) @ np.eye(3, 5)


# --- votes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["uniform", "distance", np.ones_like, None])
@pytest.mark.parametrize("window_size", [50, None])
def test_neighbours_are_those_of_the_window_in_the_metric_of_the_moment(weights, window_size):
    model = MetricKNeighborsClassifier(3, weights=weights, window_size=window_size, random_state=0)
    metric = LogDetMetricLearner(random_state=0)
    for start in range(0, 160, 40):
        chunk = slice(start, start + 40)
        model.partial_fit(X[chunk], LABELS[chunk], classes=CLASSES)
        metric.partial_fit(X[chunk], LABELS[chunk])
        window = slice(max(0, start + 40 - (window_size or 200)), start + 40)
        knn = KNeighborsClassifier(3, weights=weights).fit(metric.transform(X[window]), LABELS[window])
        queries = metric.transform(X[160:])
        assert_array_equal(model.predict_proba(X[160:]), knn.predict_proba(queries))
        assert_array_equal(model.predict(X[160:]), knn.predict(queries))
        for one, two in zip(model.kneighbors(X[160:], 7), knn.kneighbors(queries, 7), strict=True):
            assert_array_equal(one, two)
        assert_array_equal(model.X_, X[window])
        assert_array_equal(model.y_, LABELS[window])
        assert (model.n_samples_seen_, model.n_samples_fit_) == (start + 40, window.stop - window.start)


def test_all_there_is_votes_while_there_are_few():
    model = MetricKNeighborsClassifier(5, random_state=0).partial_fit(X[:1], ["b"], classes=CLASSES)
    assert model.predict(X[:3]).tolist() == ["b"] * 3
    assert_array_equal(model.predict_proba(X[:1]), [[0.0, 1.0, 0.0]])
    assert model.kneighbors(X[:2], return_distance=False).tolist() == [[0], [0]]
    model.partial_fit(X[1:4], ["b", "c", "b"])  # some classes have not been observed
    assert_array_equal(model.predict_proba(X[:1]), [[0.0, 0.75, 0.25]])
    assert model.kneighbors(X[:2])[0].shape == (2, 4)


# --- when rows are mapped ---------------------------------------------------------------------------------------------


def mapped_by(model, action):
    """How many rows each metric that counts them has mapped."""
    counting = [metric for metric in model.metric_learners_ if hasattr(metric, "mapped_")]
    before = [metric.mapped_ for metric in counting]
    action()
    return [metric.mapped_ - old for metric, old in zip(counting, before, strict=True)]


def test_rows_are_mapped_again_when_the_metric_has_moved():
    model = MetricKNeighborsClassifier(metric_learner=Counting(), window_size=30)
    model.partial_fit(X[:20], LABELS[:20], classes=CLASSES)
    assert mapped_by(model, lambda: model.predict(X[:2])) == [20 + 2]
    assert mapped_by(model, lambda: model.predict(X[:2])) == [2]
    assert mapped_by(model, lambda: model.partial_fit(X[20:40], LABELS[20:40])) == [0]
    assert mapped_by(model, lambda: model.predict_proba(X[:2])) == [30 + 2]
    assert_allclose(model.kneighbors(model.X_[:3], 1)[0], 0.0, atol=1e-6)
    model.metric_.partial_fit(X)  # learned outside of the classifier, which its t_ shows
    assert mapped_by(model, lambda: model.kneighbors(X[:1])) == [30 + 1]
    model.set_params(n_neighbors=2, weights="distance", algorithm="brute")
    assert mapped_by(model, lambda: model.predict(X[:1])) == [1]
    knn = KNeighborsClassifier(2, weights="distance", algorithm="brute").fit(model.metric_.factor_ * model.X_, model.y_)
    assert_allclose(model.predict_proba(X), knn.predict_proba(model.metric_.factor_ * X))


@pytest.mark.parametrize("window_size", [25, None])
@pytest.mark.parametrize("still", ["t_", "frozen"])
def test_while_the_metric_stands_still_only_new_rows_are_mapped(window_size, still):
    metric = Counting(moves=False)
    if still == "frozen":
        metric = FrozenEstimator(Counting(counts=False).fit(X))
    model = MetricKNeighborsClassifier(3, metric_learner=metric, window_size=window_size)
    for start, stop in [(0, 10), (10, 15), (15, 40), (40, 41), (41, 71), (71, 150)]:
        model.partial_fit(X[start:stop], LABELS[start:stop], classes=CLASSES)
        new = min(stop - start, window_size or 200)
        assert mapped_by(model, lambda: model.predict(X[:2])) == [new + 2]
        knn = KNeighborsClassifier(3).fit(model.X_, model.y_)
        assert_array_equal(model.predict_proba(X), _with_all_classes(knn, knn.predict_proba(X)))
    if still == "frozen":
        assert model.metric_.factor_ == 201.0
    model.partial_fit(X[:5], LABELS[:5]).partial_fit(X[5:9], LABELS[5:9])  # two calls without a prediction in between
    assert mapped_by(model, lambda: model.predict(X[:2])) == [9 + 2]


def _with_all_classes(knn, probabilities):
    full = np.zeros((len(probabilities), len(CLASSES)))
    full[:, np.searchsorted(CLASSES, knn.classes_)] = probabilities
    return full


def test_a_metric_that_does_not_count_is_taken_to_move_with_every_call():
    model = MetricKNeighborsClassifier(metric_learner=Counting(counts=False)).partial_fit(X, LABELS, classes=CLASSES)
    assert mapped_by(model, lambda: model.predict(X[:2])) == [202]
    assert mapped_by(model, lambda: model.predict(X[:2])) == [2]
    model.partial_fit(X[:1], LABELS[:1])
    assert mapped_by(model, lambda: model.predict(X[:2])) == [203]


@pytest.mark.parametrize("frozen", [False, True])
def test_another_metric_may_be_set(frozen):
    """Also one that has learned equally many rows, or none: its distances are used, not those of the previous one."""
    scalers = [StandardScaler().fit(X), StandardScaler().fit(X * [1.0, 1.0, 1.0, 100.0, 100.0])]
    model = MetricKNeighborsClassifier(3, metric_learner=FrozenEstimator(scalers[0])).fit(X, LABELS)
    if not frozen:
        scalers = [LogDetMetricLearner(random_state=seed, eta0=0.1).fit_pairs(X, [[0, seed]], [9.0]) for seed in (1, 2)]
    for metric in (*scalers, *scalers):
        model.metric_ = FrozenEstimator(metric) if frozen else metric
        for fitted in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model)), copy.copy(model)):
            knn = KNeighborsClassifier(3).fit(metric.transform(X), LABELS)
            assert_array_equal(fitted.kneighbors(X[:5])[0], knn.kneighbors(metric.transform(X[:5]))[0])
            assert_array_equal(fitted.predict_proba(X), knn.predict_proba(metric.transform(X)))


@pytest.mark.parametrize("offset", [1e6, 1e9])
@pytest.mark.parametrize("n, d", [(200, 20), (8, 2)])
def test_neighbours_of_rows_far_from_the_origin(n, d, offset):
    """scikit-learn computes distances from products where there are many columns, or few rows."""
    rows = np.random.default_rng(0).normal(size=(n, d)) + offset
    model = MetricKNeighborsClassifier(3, metric_learner=["euclidean"]).partial_fit(
        rows, np.arange(n) % 2, classes=[0, 1]
    )
    distances, indices = model.kneighbors(rows)
    expected = np.linalg.norm(rows[:, None] - rows, axis=2)
    assert_array_equal(indices, np.argsort(expected, axis=1)[:, :3])
    assert_allclose(distances, np.sort(expected, axis=1)[:, :3], rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize(
    "metric",
    [IncrementalPCA(2), FunctionTransformer(np.tanh), StandardScaler().set_output(transform="pandas")],
    ids=lambda metric: type(metric).__name__,
)
def test_any_transformer_that_learns_in_steps_may_be_the_metric(metric):
    model = learned_in_chunks(MetricKNeighborsClassifier(metric_learner=metric), X, LABELS)
    by_hand = clone(metric)
    for start in range(0, 200, 20):
        getattr(by_hand, "partial_fit", by_hand.fit)(X[start : start + 20])
    knn = KNeighborsClassifier().fit(np.asarray(by_hand.transform(X)), LABELS)
    assert_array_equal(model.predict_proba(X), knn.predict_proba(np.asarray(by_hand.transform(X))))


def test_a_copy_does_not_carry_the_mapped_rows(state):
    model = MetricKNeighborsClassifier(random_state=0).partial_fit(X, LABELS, classes=CLASSES)
    model.metric_.transform(X[:1])  # it caches its factor
    before, size = state(model), len(pickle.dumps(model))
    expected = model.predict_proba(X)
    assert state(model) == before and len(pickle.dumps(model)) == size
    for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert_array_equal(copied.predict_proba(X), expected)
        copied.partial_fit(X[:3], LABELS[:3])
        assert (copied.n_samples_seen_, model.n_samples_seen_) == (203, 200)


# --- the window -------------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(
    appends=st.lists(
        st.tuples(st.integers(1, 12), st.none() | st.integers(1, 9), st.sampled_from(["", "pickle", "deepcopy"])),
        min_size=1,
        max_size=12,
    )
)
def test_a_window_is_the_end_of_a_list(appends):
    window, kept, seen, most, views = Window(np.empty((0, 2)), np.empty(0, dtype=np.intp)), [], 0, 0, []
    for n, size, copying in appends:
        numbers = list(range(seen, seen + n))
        rows = np.repeat(np.array(numbers, dtype=float), 2).reshape(-1, 2)
        if copying:
            views.append((window, list(kept)))
            window = pickle.loads(pickle.dumps(window)) if copying == "pickle" else copy.deepcopy(window)
        views.append((window, list(kept)))
        window = window.extended(rows, np.array(numbers), size)
        kept = (kept + numbers)[-(size or 10**6) :]
        seen, most = seen + n, max(most, len(kept))
        views.append((window.rows, list(kept)))
        assert (window.first, window.last, len(window)) == (kept[0], seen, len(kept))
        assert window.values.tolist() == kept
        assert len(window._rows) <= 2 * most  # spare capacity, but bounded
    for seen_before, numbers in views:  # arrays returned earlier are unchanged
        rows = seen_before.rows if isinstance(seen_before, Window) else seen_before
        assert rows[:, 0].tolist() == numbers
        assert not rows.flags.writeable


def test_the_size_may_change_in_mid_stream():
    model = MetricKNeighborsClassifier(window_size=50, random_state=0).partial_fit(X[:100], LABELS[:100], CLASSES)
    model.set_params(window_size=10).partial_fit(X[100:101], LABELS[100:101])
    assert_array_equal(model.X_, X[91:101])
    model.set_params(window_size=30).partial_fit(X[101:140], LABELS[101:140])
    assert_array_equal(model.X_, X[110:140])
    model.set_params(window_size=None).partial_fit(X[140:], LABELS[140:])
    assert_array_equal(model.X_, X[110:])
    assert_array_equal(model.y_, LABELS[110:])


# --- what is refused --------------------------------------------------------------------------------------------------


def test_labels_may_come_in_mid_stream(unchanged):
    """The classes get new numbers, also those of the rows in the window: as if all had been announced."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 3)), rng.choice(list("dbeac"), size=90)
    y[:20] = np.where(y[:20] == "a", "b", y[:20])
    announced = MetricKNeighborsClassifier(random_state=0, window_size=40).partial_fit(X, y, classes=list("abcde"))
    model = MetricKNeighborsClassifier(random_state=0, window_size=40, handle_unknown="add")
    for rows in np.split(np.arange(90), [1, 3, 10, 30, 31, 60]):
        model.partial_fit(X[rows], y[rows])
        assert model.predict_proba(X[:5]).shape == (5, len(model.classes_))
        model = pickle.loads(pickle.dumps(model))
    assert model.classes_.tolist() == list("abcde") and model.y_.tolist() == y[-40:].tolist()
    assert_array_equal(model.predict_proba(X), announced.predict_proba(X))
    for bad, labels, message in ((X[:2], ["z", 3], "be of one kind"), (np.full((1, 3), np.nan), ["z"], "NaN")):
        with unchanged(model, message):
            model.partial_fit(bad, np.array(labels, dtype=object))
    assert model.partial_fit(X[:1], ["z"], classes=["q"]).classes_.tolist() == list("abcdeqz")


def test_means_of_neighbours_are_finite():
    huge = MetricKNeighborsRegressor(metric_learner=None).fit(X, np.full(len(X), 1e308))
    wrong = MetricKNeighborsClassifier(metric_learner=None, weights=lambda distances: np.nan * distances)
    for model in (huge, wrong.fit(X, LABELS)):
        with pytest.raises(ValueError, match="neighbors of row 0 is not finite: scale the targets, or use weights"):
            model.predict(X[:2])


@pytest.mark.parametrize("metric", [PCA(2), GaussianNB()], ids=lambda metric: type(metric).__name__)
def test_a_metric_that_cannot_do_it_is_refused(metric, unchanged):
    model = MetricKNeighborsClassifier(metric_learner=metric)
    with unchanged(model, rf"metric_learner.*(has no partial_fit|the method transform; got {type(metric).__name__})"):
        model.partial_fit(X, LABELS, classes=CLASSES)
    if isinstance(metric, PCA):  # without partial_fit
        assert set(model.fit(X, LABELS).predict(X)) == set(CLASSES)
        with unchanged(model, r"metric_learner \(PCA\) has no partial_fit.*FrozenEstimator"):
            model.partial_fit(X, LABELS)
        model = MetricKNeighborsClassifier(metric_learner=FrozenEstimator(metric.fit(X)))
        model.partial_fit(X, LABELS, classes=CLASSES)
    else:
        with unchanged(model, "with the method transform"):
            model.fit(X, LABELS)


# --- scikit-learn -----------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "metric",
    [make_online_pipeline(StandardScaler(), LogDetMetricLearner(random_state=0)), FunctionTransformer()],
    ids=lambda metric: type(metric).__name__,
)
def test_check_estimator_with_other_metrics(metric):
    model = MetricKNeighborsClassifier(metric_learner=metric, weights="distance", window_size=None)
    check_estimator(model, on_skip=None)


# --- several metrics --------------------------------------------------------------------------------------------------


QUERIES = RNG.normal(size=(30, 5)) * [2, 2, 2, 3, 3]
METRICS = [
    LogDetMetricLearner(random_state=0),
    make_online_pipeline(StandardScaler(), FrobeniusMetricLearner(random_state=1)),
    VonNeumannMetricLearner(random_state=2, n_components=2),
    FrozenEstimator(PCA(3).fit(X)),
]


# --- votes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("window_size", [50, None])
def test_votes_are_the_mean_of_those_in_each_metric(weights, window_size):
    settings = {"n_neighbors": 3, "weights": weights, "window_size": window_size}
    model = MetricKNeighborsClassifier(metric_learner=METRICS, **settings)
    singles = [MetricKNeighborsClassifier(metric_learner=metric, **settings) for metric in METRICS]
    for start in range(0, 200, 40):
        chunk = X[start : start + 40], LABELS[start : start + 40], CLASSES
        votes = np.mean([single.partial_fit(*chunk).predict_proba(QUERIES) for single in singles], axis=0)
        assert_array_equal(model.partial_fit(*chunk).predict_proba(QUERIES), votes)
        assert_array_equal(model.predict(QUERIES), model.classes_[votes.argmax(axis=1)])
        assert_array_equal(model.X_, singles[0].X_)
    assert [type(metric) for metric in model.metric_learners_] == [type(metric) for metric in METRICS]
    assert len({tuple(votes) for votes in model.predict_proba(QUERIES)}) > 4


def test_auto_is_a_set_of_metrics_with_pairs_of_their_own():
    model = learned_in_chunks(MetricKNeighborsClassifier(metric_learner="auto", random_state=0), X, LABELS)
    seeds = [metric.random_state for metric in model.metric_learners_ if hasattr(metric, "random_state")]
    assert len(set(seeds)) == len(seeds) >= 3
    by_hand = [clone(metric) for metric in model.metric_learners_]
    by_hand = learned_in_chunks(MetricKNeighborsClassifier(metric_learner=by_hand), X, LABELS)
    assert_array_equal(model.predict_proba(QUERIES), by_hand.predict_proba(QUERIES))
    for random_state in (0, np.random.RandomState(0)):
        again = clone(model).set_params(random_state=random_state)
        assert_array_equal(learned_in_chunks(again, X, LABELS).predict_proba(QUERIES), model.predict_proba(QUERIES))
    other = learned_in_chunks(clone(model).set_params(random_state=1), X, LABELS)
    assert (other.predict_proba(QUERIES) != model.predict_proba(QUERIES)).any()


# --- a stream ---------------------------------------------------------------------------------------------------------


def test_each_metric_maps_its_rows_once():
    model = MetricKNeighborsClassifier(metric_learner=[Counting(), METRICS[3], Counting()])
    model.partial_fit(X[:20], LABELS[:20], classes=CLASSES)
    assert mapped_by(model, lambda: model.predict(QUERIES[:2])) == [22, 22]
    assert mapped_by(model, lambda: model.predict(QUERIES[:2])) == [2, 2]
    model.metric_learners_[2].partial_fit(X)  # learned outside of the classifier, which its t_ shows
    assert mapped_by(model, lambda: model.predict(QUERIES[:2])) == [2, 22]
    model.partial_fit(X[20:30], LABELS[20:30])
    assert mapped_by(model, lambda: model.predict(QUERIES[:2])) == [32, 32]


def test_a_metric_may_be_set_or_taught_in_mid_stream():
    model = learned_in_chunks(MetricKNeighborsClassifier(metric_learner=["euclidean", METRICS[0]]), X, LABELS)
    model.predict(QUERIES)
    model.metric_learners_[0] = scaler = FrozenEstimator(StandardScaler().fit(X))
    model.metric_learners_[1].partial_fit_pairs(X, [[0, 1]], [1000.0])
    votes = [
        KNeighborsClassifier().fit(metric.transform(X), LABELS).predict_proba(metric.transform(QUERIES))
        for metric in (scaler, model.metric_learners_[1])
    ]
    assert_array_equal(model.predict_proba(QUERIES), np.mean(votes, axis=0))
    model.metric_ = scaler  # replaces all metrics
    assert_array_equal(model.predict_proba(QUERIES), votes[0])
    assert model.partial_fit(X[:1], LABELS[:1]).metric_learners_ == [scaler]


# --- what is refused --------------------------------------------------------------------------------------------------


def test_if_one_fails_none_has_learned(unchanged):
    model = MetricKNeighborsClassifier(metric_learner=[METRICS[0], Counting(most=100.0), METRICS[2]])
    with unchanged(model, "too large"):
        model.partial_fit(1000 * X, LABELS, classes=CLASSES)
    model.partial_fit(X, LABELS, classes=CLASSES)
    metrics, expected = list(model.metric_learners_), model.predict_proba(QUERIES)
    with unchanged(model, "too large"):
        model.partial_fit(1000 * X, LABELS)
    with unchanged(model, "too large"):
        model.fit(1000 * X, LABELS)
    assert all(one is two for one, two in zip(model.metric_learners_, metrics, strict=True))
    assert_array_equal(model.predict_proba(QUERIES), expected)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([], "metric_learner must hold at least one"),
        (["euclidean", "manhattan"], r"metric_learner\[1\] must be an estimator or \"euclidean\"; got 'manhattan'"),
        (["euclidean", None], r"metric_learner\[1\] must be .*; got None"),
        ([METRICS[0], "auto"], r"metric_learner\[1\] must be .*; got 'auto'"),
        ((LogDetMetricLearner,), r"metric_learner\[0\] must be an estimator; got the class LogDetMetricLearner"),
        (
            [METRICS[0], GaussianNB()],
            r"metric_learner\[1\] must be an estimator with the method transform; got GaussianNB",
        ),
        ([("logdet", METRICS[0])], r"metric_learner\[0\] must be .*; got \('logdet'"),
        ("euclid", "The 'metric_learner' parameter"),
        ({"logdet": METRICS[0]}, "The 'metric_learner' parameter"),
    ],
    ids=str,
)
def test_what_are_no_metrics(wrong, message, unchanged):
    model = MetricKNeighborsClassifier(metric_learner=wrong)
    with unchanged(model, message):
        model.partial_fit(X, LABELS, classes=CLASSES)
    with unchanged(model, message):
        model.fit(X, LABELS)


def test_all_have_to_learn_in_steps(unchanged):
    model = MetricKNeighborsClassifier(metric_learner=["euclidean", PCA(2)])
    with unchanged(model, r"metric_learner\[1\] \(PCA\) has no partial_fit.*FrozenEstimator"):
        model.partial_fit(X, LABELS, classes=CLASSES)
    model.fit(X, LABELS).predict(QUERIES)
    with unchanged(model, r"metric_learner\[1\] \(PCA\) has no partial_fit"):
        model.partial_fit(X, LABELS)


def test_several_metrics_have_no_neighbours_in_common(unchanged):
    model = MetricKNeighborsClassifier(metric_learner=["euclidean", METRICS[0]])
    with pytest.raises(AttributeError, match="has not learned a row yet"):
        _ = model.metric_
    model.fit(X, LABELS)
    with unchanged(model, "2 metrics vote, .*metric_learners_", AttributeError):
        model.kneighbors(QUERIES)
    assert not hasattr(model, "metric_")


# --- scikit-learn -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [KNeighborsClassifier, KNeighborsRegressor])
@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_a_search_in_other_rows_is_one_that_is_fitted_to_them(kind, weights):
    values = np.arange(40) % 4 + 1
    search = kind(3, weights=weights, algorithm="brute").fit(X[:40], values % 3)
    other, fitted = for_other_rows(search, X[40:80], values), kind(**search.get_params()).fit(X[40:80], values)
    assert vars(other).keys() == vars(fitted).keys()
    for name, value in vars(fitted).items():
        assert_array_equal(getattr(other, name), value)
    assert_array_equal(other.predict(QUERIES), fitted.predict(QUERIES))
    assert_array_equal(search._fit_X, X[:40])
    tree = kind(3, algorithm="kd_tree").fit(X[:40], values)
    wrong = np.where(np.eye(40, 5), np.inf, 0.0)
    assert [for_other_rows(*given) for given in ((tree, X[:40], values), (search, wrong, values))] == [None, None]
    assert for_other_rows(search, X[:39], values[:39]) is None
