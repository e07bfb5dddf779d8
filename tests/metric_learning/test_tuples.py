"""Pairs, triplets and quadruplets: as arrays of rows, as row numbers, and by a preprocessor."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from onlinebregman import (
    DefiniteBoostMetricLearner,
    FrobeniusMetricLearner,
    LogDetMetricLearner,
    ParameterFreeMetricLearner,
    VonNeumannMetricLearner,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) * [1.0, 2.0, 0.5]
Y = np.arange(40) % 2
LABELS = RNG.choice([-1, 1], size=50)
NUMBERS = {n: np.array([RNG.permutation(40)[:n] for _ in range(50)]) for n in (2, 3, 4)}
LEARNERS = [LogDetMetricLearner, VonNeumannMetricLearner, FrobeniusMetricLearner]
KINDS = {2: "pairs", 3: "triplets", 4: "quadruplets"}


def learn(model, kind, *given, partial=True):
    method = getattr(model, ("partial_" if partial else "") + f"fit_{KINDS[kind]}")
    return method(*given, **({"labels": LABELS[: len(given[-1])]} if kind == 2 else {}))


@pytest.mark.parametrize("Learner", LEARNERS)
def test_a_triplet_is_a_quadruplet_whose_pairs_share_a_row(Learner):
    triplets = learn(Learner(), 3, X, NUMBERS[3])
    quadruplets = learn(Learner(), 4, X, NUMBERS[3][:, [0, 1, 0, 2]])
    assert_array_equal(triplets.get_mahalanobis_matrix(), quadruplets.get_mahalanobis_matrix())
    assert triplets.margin_ == quadruplets.margin_
    collapsed = learn(Learner(), 4, X, [[0, 1, 2, 2], [0, 0, 1, 2]])
    assert collapsed.n_collapsed_ == 1  # equal rows cannot be farther apart, but are no worse for being close


@pytest.mark.parametrize("Learner", LEARNERS)
@pytest.mark.parametrize("kind", KINDS)
def test_all_forms_of_tuples_are_the_same(Learner, kind):
    numbers = NUMBERS[kind]
    metric = learn(Learner(prior="variance"), kind, X, numbers)
    rows = X[numbers]
    of_array = learn(Learner(prior="variance"), kind, rows)
    looked_up = learn(Learner(prior="variance", preprocessor=X), kind, numbers)
    by_function = learn(Learner(prior="variance", preprocessor=lambda i: X[i]), kind, numbers)
    assert_array_equal(looked_up.get_mahalanobis_matrix(), of_array.get_mahalanobis_matrix())
    assert_array_equal(by_function.get_mahalanobis_matrix(), of_array.get_mahalanobis_matrix())
    assert metric.get_mahalanobis_matrix().shape == (3, 3)
    # without a prior that is measured, they are the same as numbers of given rows, also in parts and in epochs
    whole, cut = learn(Learner(), kind, X, numbers), Learner(preprocessor=X.tolist())
    for part in (slice(0, 1), slice(1, 30), slice(30, 50)):
        arguments = {"labels": LABELS[part]} if kind == 2 else {}
        cut = pickle.loads(pickle.dumps(clone(cut) if part.start == 0 else cut))
        getattr(cut, f"partial_fit_{KINDS[kind]}")(numbers[part], **arguments)
    assert_array_equal(whole.get_mahalanobis_matrix(), cut.get_mahalanobis_matrix())
    a, b = Learner(random_state=0), Learner(random_state=0)
    learn(a, kind, rows, partial=False), learn(b, kind, X, numbers, partial=False)
    assert_array_equal(a.get_mahalanobis_matrix(), b.get_mahalanobis_matrix())


@pytest.mark.parametrize("Learner", [*LEARNERS, DefiniteBoostMetricLearner, ParameterFreeMetricLearner])
def test_rows_by_number(Learner):
    plain = Learner(random_state=0).fit(X, Y)
    by_number = Learner(random_state=0, preprocessor=X).fit(np.arange(40), Y)
    assert_array_equal(by_number.transform([3, 1]), plain.transform(X[[3, 1]]))
    assert_array_equal(by_number.transform(X[:2]), plain.transform(X[:2]))
    assert_array_equal(by_number.pairwise_distances([3, 1]), plain.pairwise_distances(X[[3, 1]]))
    pairs = NUMBERS[2]
    distances = plain.pair_distance(X[pairs[:, 0]], X[pairs[:, 1]])
    assert_array_equal(plain.pair_distance(X[pairs]), distances)
    assert_array_equal(by_number.pair_distance(pairs), distances)
    assert_array_equal(by_number.pair_distance(pairs[:, 0], pairs[:, 1]), distances)
    assert_array_equal(by_number.pair_score(pairs), -distances)
    assert by_number.partial_fit([0, 1], Y[:2]) is by_number


@pytest.mark.parametrize(
    ("tuples", "preprocessor", "message"),
    [
        (NUMBERS[2], None, r"(?s)Found 2D array.*\(n_pairs, 2, n_features\).*got shape \(50, 2\)"),
        (X[NUMBERS[3]], None, r"(?s)Tuples of 2 element.*Got tuples of 3 .*Give pairs as an array of shape"),
        (np.empty((0, 2, 3)), None, r"0 sample\(s\)"),
        ([[0, 40]], X, r"from 0 to 39.*got 40"),
        ([[0.0, 1.0]], X, r"integers; got dtype float64"),
        ([[0, 1]], lambda i: X[:3], r"one row for each of 2 numbers; got .* \(3, 3\)"),
        (np.where(np.arange(3) == 1, np.nan, X[NUMBERS[2]]), None, r"pairs contains NaN \(row 0, column 0\)"),
        ([[0, 1]], [1.0, 2.0], "2D array"),
    ],
)
def test_bad_tuples(tuples, preprocessor, message):
    model = LogDetMetricLearner(preprocessor=preprocessor).partial_fit_pairs(X, [[0, 1]], [1.0])
    before = model.get_mahalanobis_matrix()
    labels = np.ones(len(tuples))
    for call in (
        lambda: model.partial_fit_pairs(tuples, labels=labels),
        lambda: model.pair_distance(tuples),
        lambda: clone(model).fit_pairs(tuples, labels=labels),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert_array_equal(model.get_mahalanobis_matrix(), before)


@pytest.mark.parametrize("absurd", [0, 20])
@pytest.mark.parametrize("Learner", LEARNERS)
def test_an_absurd_target_does_not_make_later_steps_small(Learner, absurd):
    model, pairs, weights = Learner(shuffle=False), NUMBERS[2], np.arange(50) != absurd
    targets = 1 + 3 * np.square(X[pairs[:, 0]] - X[pairs[:, 1]])[:, 0]
    without = clone(model).fit_pairs(X, pairs, targets, weights).get_mahalanobis_matrix()
    targets[absurd] = 1e12
    assert_allclose(model.fit_pairs(X, pairs, targets).get_mahalanobis_matrix(), without, atol=0.1)
    assert np.linalg.norm(without - np.eye(3)) > 0.5


def test_the_distance_as_a_function():
    model = LogDetMetricLearner(random_state=0).fit(X, Y)
    metric, distance = model.get_metric(), model.pair_distance(X[:1], X[1:2])[0]
    assert metric(X[0], X[1]) == pytest.approx(distance) == metric(X[:1], X[1].tolist())
    assert metric(X[0], X[1], squared=True) == pytest.approx(distance**2)
    for a, b in ((X[0], X[1, :2]), (X[:2], X[2:4]), (X[0, :2], X[1, :2])):
        with pytest.raises(ValueError, match="two rows of 3 numbers"):
            metric(a, b)
