"""Contracts of the order of rows: `fit` shuffles wherever a model depends on it, `partial_fit` never does."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_iris
from sklearn.utils import check_random_state
from sklearn.utils.validation import has_fit_parameter

from onlinebregman import (
    MetricKNeighborsClassifier,
)

# A solver, whose constraints contradict each other for these rows
EXCEPTIONS = {"DefiniteBoost"}


def shuffles(estimator):
    return "shuffle" in estimator.get_params()


def passes(estimator):
    """Whether its `fit` is one pass over the rows themselves, shuffled."""
    others = {"MetricKNeighborsClassifier", "MetricKNeighborsRegressor", "ParameterFreeMetricLearner"}
    others.add("DensityOutlierDetector")  # its offset is, at the end, that of all rows
    return shuffles(estimator) and "max_iter" not in estimator.get_params() and type(estimator).__name__ not in others


def without_memory(estimator):
    """The estimator, if it has a memory without that: rows in random order, by `fit`, are not remembered."""
    return clone(estimator).set_params(**{"memory": False} if "memory" in estimator.get_params() else {})


@pytest.mark.only(where=lambda estimator: not shuffles(estimator) and type(estimator).__name__ not in EXCEPTIONS)
def test_a_model_that_depends_on_the_order_of_rows_shuffles_them(estimator, rows, output):
    X, y = rows
    order = np.random.default_rng(0).permutation(len(y))
    one, other = clone(estimator).fit(X, y), clone(estimator).fit(X[order], y[order])
    for name, values in output(one, X).items():
        np.testing.assert_allclose(values, output(other, X)[name], rtol=1e-8, atol=1e-8)


@pytest.mark.only(where=passes)
def test_fit_is_one_pass_over_the_rows_in_random_order(estimator, rows, learn, learned):
    X, y = rows
    order = check_random_state(3).permutation(len(y))
    estimator.set_params(random_state=3)
    alike = without_memory(estimator)
    assert learned(clone(alike).fit(X, y)) == learned(learn(clone(alike), X[order], y[order]))
    estimator.set_params(shuffle=False)
    assert learned(clone(estimator).fit(X, y)) == learned(learn(clone(estimator), X, y))


@pytest.mark.only(where=lambda estimator: passes(estimator) and has_fit_parameter(estimator, "sample_weight"))
def test_weights_are_shuffled_with_their_rows(estimator, rows, learn, learned):
    X, y = rows
    weights = np.random.default_rng(1).integers(3, size=len(y)).astype(float)
    order = check_random_state(0).permutation(len(y))
    estimator = without_memory(estimator)
    by_hand = learn(clone(estimator), X[order], y[order], sample_weight=weights[order])
    assert learned(estimator.fit(X, y, sample_weight=weights)) == learned(by_hand)


@pytest.mark.only(where=shuffles)
def test_shuffle_is_the_default(estimator):
    assert type(estimator)().shuffle is True


@pytest.mark.only(where=lambda estimator: shuffles(estimator) and (is_classifier(estimator) or is_regressor(estimator)))
def test_sorted_rows_are_learned_as_well_as_others(estimator, rows):
    """The mean scores of eight seeds differ by less than three standard errors."""
    X, y = (np.repeat(values, 2, axis=0) for values in rows)
    scores = np.empty((2, 8))
    for k, order in enumerate((np.argsort(y, kind="stable"), np.random.default_rng(0).permutation(len(y)))):
        for seed in range(scores.shape[1]):
            fitted = clone(estimator).set_params(random_state=seed).fit(X[order], y[order])
            scores[k, seed] = fitted.score(X, y)
    spread = scores.std(axis=1, ddof=1)
    assert abs(np.subtract(*scores.mean(axis=1))) <= 3 * np.hypot(*spread) / scores.shape[1] ** 0.5 + 1e-9


def test_the_window_holds_rows_of_all_classes_after_fit():
    X, y = load_iris(return_X_y=True)
    model = MetricKNeighborsClassifier(window_size=60, metric_learner=["euclidean"], random_state=0)
    with pytest.warns(UserWarning, match="only 60, drawn at random, are kept"):
        model.fit(X, y)
    assert model.score(X, y) > 0.9 and model.n_samples_seen_ == 150
    with pytest.warns(UserWarning, match="only the last 60 are kept"):
        model.set_params(shuffle=False).fit(X, y)
    assert_array_equal(model.X_, X[90:])
