"""Thresholds on the distances of pairs."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, fbeta_score

from onlinebregman import LogDetMetricLearner, ParameterFreeMetricLearner
from onlinebregman.metric_learning._thresholds import best_threshold

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 3)), np.arange(60) % 3
X[:, 0] += 3 * Y
PAIRS = RNG.integers(0, 60, size=(200, 2))
LABELS = np.where(Y[PAIRS[:, 0]] == Y[PAIRS[:, 1]], 1, -1)


@given(
    st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=12).filter(
        lambda pairs: len({similar for _, similar in pairs}) == 2
    ),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.sampled_from([0.0, 0.5, 1.0, 3.0]),
)
def test_no_other_threshold_is_better(pairs, min_rate, beta):
    distances, similar = (np.array(values) for values in zip(*pairs, strict=True))
    distances = distances / 7

    def value(strategy, threshold):
        predicted = distances <= threshold
        tpr, tnr = predicted[similar].mean(), (~predicted[~similar]).mean()
        if strategy == "accuracy":
            return accuracy_score(similar, predicted)
        if strategy == "f_beta":
            return fbeta_score(similar, predicted, beta=beta, zero_division=0)
        wanted, other = (tpr, tnr) if strategy == "max_tpr" else (tnr, tpr)
        return wanted if other >= min_rate else -1.0

    for strategy in ("accuracy", "f_beta", "max_tpr", "max_tnr"):
        best = value(strategy, best_threshold(distances, similar, strategy, min_rate, beta))
        others = [value(strategy, threshold) for threshold in [-1.0, *distances, *(distances + 0.01)]]
        assert best >= 0 and best >= max(others) - 1e-12


def test_weights_count_pairs():
    metric = LogDetMetricLearner(random_state=0).fit(X, Y)
    weights = np.arange(200) % 4
    repeated = np.repeat(np.arange(200), weights)
    for strategy in ({}, {"strategy": "f_beta", "beta": 2.0}, {"strategy": "max_tpr", "min_rate": 0.7}):
        metric.calibrate_threshold(X[PAIRS], labels=LABELS, sample_weight=weights, **strategy)
        threshold = metric.threshold_
        metric.calibrate_threshold(X[PAIRS[repeated]], labels=LABELS[repeated], **strategy)
        assert metric.threshold_ == threshold
    with pytest.raises(ValueError, match="got one kind"):
        metric.calibrate_threshold(X[PAIRS], labels=LABELS, sample_weight=LABELS > 0)


def test_a_threshold_between_adjacent_numbers_keeps_them_apart():
    near, far = 1.0, np.nextafter(1.0, 2.0)
    assert near <= best_threshold(np.array([near, far]), np.array([True, False]), "accuracy") < far


def test_pairs_are_classified():
    metric = LogDetMetricLearner(random_state=0).fit_pairs(X[PAIRS[:100]], labels=LABELS[:100])
    near, far = metric.bounds_
    assert metric.threshold_ == np.sqrt((near + far) / 2)
    pairs = X[PAIRS]
    assert metric.calibrate_threshold(pairs[100:], labels=LABELS[100:]) is metric
    assert metric.threshold_ == pickle.loads(pickle.dumps(metric)).threshold_
    right = np.mean(metric.predict_pairs(pairs[100:]) == LABELS[100:])
    assert right > 0.7 and right == np.mean(metric.predict_pairs(*pairs[100:].swapaxes(0, 1)) == LABELS[100:])
    before = metric.threshold_
    assert metric.partial_fit(X, Y).threshold_ == before
    assert metric.set_threshold(0.0).predict_pairs([[X[0], X[0]], [X[0], X[1]]]).tolist() == [1, -1]
    assert metric.fit(X, Y).threshold_ is None


def test_wrong_thresholds():
    with pytest.raises(NotFittedError):
        LogDetMetricLearner().set_threshold(1.0)
    metric = ParameterFreeMetricLearner(random_state=0).fit(X, Y)
    with pytest.raises(NotFittedError, match="call its set_threshold or calibrate_threshold method"):
        metric.predict_pairs(X[PAIRS])
    for wrong in ("a", None, np.nan, [1.0]):
        with pytest.raises(ValueError, match=r"threshold must be a real number. Got .* instead. "):
            metric.set_threshold(wrong)
    for parameters, message in (
        ({"strategy": "best"}, '"max_tpr" or "max_tnr". Got "best"'),
        ({"strategy": "max_tpr"}, "min_rate must be a number from 0 to 1"),
        ({"strategy": "max_tnr", "min_rate": 1.5}, "got 1.5"),
        ({"strategy": "f_beta", "beta": None}, "beta must be a real number. Got <class 'NoneType'> instead. Give 1"),
        ({"labels": np.ones(200)}, "got one kind"),
        ({"labels": np.arange(200)}, r"labels\[0\] = 0"),
        ({"labels": LABELS[:9]}, r"shape \(200,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            metric.calibrate_threshold(X[PAIRS], **{"labels": LABELS, **parameters})
    assert metric.threshold_ is None
