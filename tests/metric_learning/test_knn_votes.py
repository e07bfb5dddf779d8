"""MetricKNeighborsClassifier with several metrics: the mean of their votes, one window, all learn or none."""

import numpy as np
import pytest
from counting import Counting, learned_in_chunks
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

from onlinebregman import (
    FrobeniusMetricLearner,
    LogDetMetricLearner,
    MetricKNeighborsClassifier,
    VonNeumannMetricLearner,
)
from onlinebregman._sklearn_compat import for_other_rows
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
    wrong = np.where(np.eye(40, 4), np.inf, 0.0)
    assert [for_other_rows(*given) for given in ((tree, X[:40], values), (search, wrong, values))] == [None, None]
    assert for_other_rows(search, X[:39], values[:39]) is None
