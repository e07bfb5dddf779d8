"""MetricKNeighborsClassifier with several metrics: the mean of their votes, one window, all learn or none."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import StandardScaler, scale

from onlinebregman import (
    FrobeniusMetricLearner,
    LogDetMetricLearner,
    MetricKNeighborsClassifier,
    VonNeumannMetricLearner,
)
from onlinebregman._sklearn_compat import for_other_rows
from onlinebregman.model_selection import progressive_val_score
from onlinebregman.pipeline import make_online_pipeline

CLASSES = ["a", "b", "c"]
RNG = np.random.default_rng(0)
LABELS = RNG.choice(CLASSES, size=120)
X = RNG.normal(size=(120, 4)) * [1, 1, 2, 3] + 1.5 * (LABELS[:, None] == np.array(CLASSES)) @ np.eye(3, 4)
QUERIES = RNG.normal(size=(30, 4)) * [2, 2, 2, 3]
METRICS = [
    LogDetMetricLearner(random_state=0),
    make_online_pipeline(StandardScaler(), FrobeniusMetricLearner(random_state=1)),
    VonNeumannMetricLearner(random_state=2, n_components=2),
    FrozenEstimator(PCA(3).fit(X)),
]


class Counting(TransformerMixin, BaseEstimator):
    """The identity times a factor, which counts the rows it maps, and learns no row above `most`."""

    def __init__(self, most=np.inf):
        self.most = most

    def partial_fit(self, X, y=None):
        self.t_ = getattr(self, "t_", 0) + len(X)
        self.mapped_ = getattr(self, "mapped_", 0)
        if np.max(X) > self.most:
            raise ValueError("too large")
        return self

    def fit(self, X, y=None):
        return self.partial_fit(X, y)

    def transform(self, X):
        self.mapped_ += len(X)
        return self.t_ * X


def learned_in_chunks(model, size=20):
    for start in range(0, len(X), size):
        model.partial_fit(X[start : start + size], LABELS[start : start + size], classes=CLASSES)
    return model


# --- votes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("window_size", [50, None])
def test_votes_are_the_mean_of_those_in_each_metric(weights, window_size):
    settings = {"n_neighbors": 3, "weights": weights, "window_size": window_size}
    model = MetricKNeighborsClassifier(metric_learner=METRICS, **settings)
    singles = [MetricKNeighborsClassifier(metric_learner=metric, **settings) for metric in METRICS]
    for start in range(0, 120, 40):
        chunk = X[start : start + 40], LABELS[start : start + 40], CLASSES
        votes = np.mean([single.partial_fit(*chunk).predict_proba(QUERIES) for single in singles], axis=0)
        assert_array_equal(model.partial_fit(*chunk).predict_proba(QUERIES), votes)
        assert_array_equal(model.predict(QUERIES), model.classes_[votes.argmax(axis=1)])
        assert_array_equal(model.X_, singles[0].X_)
    assert [type(metric) for metric in model.metric_learners_] == [type(metric) for metric in METRICS]
    assert len({tuple(votes) for votes in model.predict_proba(QUERIES)}) > 4


def test_fit_is_that_of_each_metric():
    model = MetricKNeighborsClassifier(metric_learner=METRICS).fit(X, LABELS)
    votes = []
    for metric in METRICS:
        metric = clone(metric).fit(X, LABELS)
        votes.append(KNeighborsClassifier().fit(metric.transform(X), LABELS).predict_proba(metric.transform(QUERIES)))
    assert_array_equal(model.predict_proba(QUERIES), np.mean(votes, axis=0))


def test_euclidean_stands_for_rows_as_they_come():
    for metrics in (["euclidean"], ("euclidean", "euclidean")):
        model = learned_in_chunks(MetricKNeighborsClassifier(3, metric_learner=metrics))
        plain = KNeighborsClassifier(3).fit(X, LABELS)
        assert_array_equal(model.predict_proba(QUERIES), plain.predict_proba(QUERIES))


def test_one_in_a_list_is_as_one_without():
    alone = learned_in_chunks(MetricKNeighborsClassifier(metric_learner=METRICS[0]))
    listed = learned_in_chunks(MetricKNeighborsClassifier(metric_learner=METRICS[:1]))
    assert alone.metric_learners_ == [alone.metric_]
    for one, two in zip(alone.kneighbors(QUERIES), listed.kneighbors(QUERIES), strict=True):
        assert_array_equal(one, two)


def test_auto_is_a_set_of_metrics_with_pairs_of_their_own():
    model = learned_in_chunks(MetricKNeighborsClassifier(metric_learner="auto", random_state=0))
    seeds = [metric.random_state for metric in model.metric_learners_ if hasattr(metric, "random_state")]
    assert len(set(seeds)) == len(seeds) >= 3
    by_hand = [clone(metric) for metric in model.metric_learners_]
    by_hand = learned_in_chunks(MetricKNeighborsClassifier(metric_learner=by_hand))
    assert_array_equal(model.predict_proba(QUERIES), by_hand.predict_proba(QUERIES))
    for random_state in (0, np.random.RandomState(0)):
        again = clone(model).set_params(random_state=random_state)
        assert_array_equal(learned_in_chunks(again).predict_proba(QUERIES), model.predict_proba(QUERIES))
    other = learned_in_chunks(clone(model).set_params(random_state=1))
    assert (other.predict_proba(QUERIES) != model.predict_proba(QUERIES)).any()


@pytest.mark.exhaustive
def test_voting_has_fewer_errors():
    """Fewer errors than those of the metrics on average, and than the default."""
    rows, y = load_digits(return_X_y=True)
    rows = scale(rows)

    def error(metric):
        model = MetricKNeighborsClassifier(metric_learner=metric, random_state=0)
        return 1 - progressive_val_score(model, rows, y, chunk_size=100).score

    together = MetricKNeighborsClassifier(metric_learner="auto", random_state=0).fit(X, LABELS)
    alone = [error(clone(metric)) for metric in together.metric_learners_]
    assert error("auto") < min(0.95 * np.mean(alone), 0.95 * error(None))


# --- a stream ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metrics", ["auto", ["euclidean", METRICS[0], METRICS[2]]], ids=["auto", "list"])
def test_any_cutting_gives_the_same_model(metrics, learned):
    model = MetricKNeighborsClassifier(metric_learner=metrics, window_size=50, random_state=0)
    whole = clone(model).partial_fit(X, LABELS, classes=CLASSES)
    rows = learned_in_chunks(clone(model), 1)
    parts = clone(model)
    for start, stop in [(0, 7), (7, 8), (8, 90), (90, 120)]:
        parts.partial_fit(X[start:stop], LABELS[start:stop], classes=CLASSES)
        parts = pickle.loads(pickle.dumps(parts))
        parts.predict(QUERIES[:3])  # predictions change nothing
    for part in (rows, parts):
        assert_array_equal(part.predict_proba(QUERIES), whole.predict_proba(QUERIES))
        assert learned(part) == learned(whole)


def test_sparse_rows_are_as_dense_ones():
    model = MetricKNeighborsClassifier(metric_learner="auto", random_state=0)
    for kind in (sparse.csr_array, sparse.csc_matrix):
        by_sparse = clone(model).partial_fit(kind(X), LABELS, CLASSES).predict_proba(kind(QUERIES))
        by_dense = clone(model).partial_fit(X, LABELS, CLASSES).predict_proba(QUERIES)
        assert_array_equal(by_sparse, by_dense)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_learn_on_their_own(copied, state):
    model = learned_in_chunks(MetricKNeighborsClassifier(metric_learner=METRICS))
    expected, before = model.predict_proba(QUERIES), state(model)
    other = copied(model)
    assert_array_equal(other.predict_proba(QUERIES), expected)
    other.partial_fit(X[:30] + 1.0, LABELS[:30])
    assert state(model) == before
    assert_array_equal(model.predict_proba(QUERIES), expected)
    assert (other.predict_proba(QUERIES) != expected).any()


def test_each_metric_maps_its_rows_once():
    model = MetricKNeighborsClassifier(metric_learner=[Counting(), METRICS[3], Counting()])
    model.partial_fit(X[:20], LABELS[:20], classes=CLASSES)

    def mapped(action):
        counted = (model.metric_learners_[0], model.metric_learners_[2])
        before = [metric.mapped_ for metric in counted]
        action()
        return [metric.mapped_ - old for metric, old in zip(counted, before, strict=True)]

    assert mapped(lambda: model.predict(QUERIES[:2])) == [22, 22]
    assert mapped(lambda: model.predict(QUERIES[:2])) == [2, 2]
    model.metric_learners_[2].partial_fit(X)  # learned outside of the classifier, which its t_ shows
    assert mapped(lambda: model.predict(QUERIES[:2])) == [2, 22]
    model.partial_fit(X[20:30], LABELS[20:30])
    assert mapped(lambda: model.predict(QUERIES[:2])) == [32, 32]


def test_a_metric_may_be_set_or_taught_in_mid_stream():
    model = learned_in_chunks(MetricKNeighborsClassifier(metric_learner=["euclidean", METRICS[0]]))
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


def test_sets_of_metrics_can_be_searched():
    model = MetricKNeighborsClassifier(random_state=0)
    sets = [None, "auto", ["euclidean", LogDetMetricLearner(random_state=0)]]
    search = GridSearchCV(model, {"metric_learner": sets, "n_neighbors": [3, 5]}, cv=2).fit(X, LABELS)
    assert search.best_score_ > 0.4
    assert not hasattr(sets[2][1], "bounds_")
    assert_allclose(search.predict_proba(QUERIES).sum(axis=1), 1.0, rtol=1e-12)


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
    wrong = np.where(np.eye(40, 4), np.inf, 0.0)
    assert [for_other_rows(*given) for given in ((tree, X[:40], values), (search, wrong, values))] == [None, None]
    assert for_other_rows(search, X[:39], values[:39]) is None
