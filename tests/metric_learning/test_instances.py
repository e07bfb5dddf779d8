"""What metric learners learn from: pairs, triplets, quadruplets, labels, real targets, priors; and what is refused."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.covariance import ledoit_wolf
from sklearn.decomposition import PCA

from onlinebregman import (
    DefiniteBoostMetricLearner,
    FrobeniusMetricLearner,
    LogDetMetricLearner,
    MetricKNeighborsRegressor,
    ParameterFreeMetricLearner,
    VonNeumannMetricLearner,
)
from onlinebregman.losses import BoundLoss
from onlinebregman.reference import logdet_step_any_rank

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4)) * [1.0, 2.0, 0.5, 1.0]
PAIRS = RNG.integers(0, 40, size=(60, 2))
PAIRS = PAIRS[PAIRS[:, 0] != PAIRS[:, 1]]
ROWS = np.array([RNG.permutation(40)[:4] for _ in range(80)])
TRIPLETS = ROWS[:, :3]


def raw(**parameters):
    return LogDetMetricLearner(**{"scale_eta": False, "learning_rate": "constant", "eta0": 0.05, **parameters})


# --- examples ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pairs", "triplets", "quadruplets"])
def test_bounds_against_a_numpy_replica(kind):
    """One-sided pairs with labels; the others have p'Wp - q'Wq of at least the margin."""
    targets, labels = RNG.uniform(1, 20, size=len(ROWS)), RNG.choice([-1, 1], size=len(ROWS))
    learner, W = raw(loss="one_sided" if kind == "pairs" else "squared_error", margin=2.0), np.eye(4)
    if kind == "pairs":
        learner.partial_fit_pairs(X, ROWS[:, :2], targets, labels=labels)
        with pytest.raises(ValueError, match='labels, with loss="one_sided" also'):
            learner.partial_fit_pairs(X, ROWS[:, :2], targets)
    else:
        getattr(learner, f"partial_fit_{kind}")(X, ROWS[:, : 3 if kind == "triplets" else 4])
    for (a, b, c, d), target, label in zip(ROWS, targets, labels, strict=True):
        (p, q), y = {
            "pairs": ((X[a] - X[b], np.zeros(4)), label * target),
            "triplets": ((X[c] - X[a], X[b] - X[a]), -2.0),
            "quadruplets": ((X[c] - X[d], X[a] - X[b]), -2.0),
        }[kind]
        W = logdet_step_any_rank(
            W, np.outer(p, p) - np.outer(q, q), lambda s, y=y: float(BoundLoss().derivative(s, y)), 0.05
        )
    assert not np.allclose(W, np.eye(4), atol=0.1)
    assert_allclose(learner.get_mahalanobis_matrix(), W, rtol=1e-8, atol=1e-10)
    assert learner.n_updates_ == 80 and learner.margin_ == 2.0 and learner.bounds_ is None


@pytest.mark.parametrize("loss", ["squared_error", "one_sided"])
def test_labels_alone_have_the_bounds_as_targets(loss):
    labels = RNG.choice([-1, 1], size=len(PAIRS))
    by_labels = LogDetMetricLearner(loss=loss, bounds=(1.0, 9.0)).partial_fit_pairs(X, PAIRS, labels=labels)
    targets = np.where(labels > 0, 1.0, 9.0)
    by_targets = raw(loss=loss, eta0=1 / 81, learning_rate=by_labels.learning_rate)
    by_targets.set_params(eta0=by_labels.eta0 / 81).partial_fit_pairs(X, PAIRS, targets, labels=labels)
    assert_allclose(by_labels.get_mahalanobis_matrix(), by_targets.get_mahalanobis_matrix(), rtol=1e-9)
    measured = LogDetMetricLearner(loss=loss).partial_fit_pairs(X, PAIRS, labels=labels)
    cut = LogDetMetricLearner(loss=loss)
    for i in range(len(PAIRS)):
        cut.partial_fit_pairs(X, PAIRS[i : i + 1], labels=labels[i : i + 1])
    assert measured.bounds_ == cut.bounds_
    assert_array_equal(measured.get_mahalanobis_matrix(), cut.get_mahalanobis_matrix())
    squared = ((X[PAIRS[:, 0]] - X[PAIRS[:, 1]]) ** 2).sum(axis=1)
    assert_allclose(measured.bounds_, np.percentile(squared, [5, 95]), rtol=0.2)


def test_pairs_before_there_are_bounds_move_nothing():
    learner = LogDetMetricLearner().partial_fit_pairs(X, PAIRS[:1], labels=[1])
    assert learner.bounds_ is None
    assert_array_equal(learner.get_mahalanobis_matrix(), np.eye(4))
    learner.partial_fit_pairs(X, PAIRS[1:3], labels=[1, -1])
    assert learner.bounds_ is not None and learner.n_updates_ == 2


@pytest.mark.parametrize(
    ("kind", "rows", "given", "message"),
    [
        ("pairs", [[0, 1], [0, 40]], {"targets": [1.0, 1.0]}, r"pairs\[1\] = \[0, 40\].*from 0 to 39"),
        ("pairs", [[0, -1]], {"targets": [1.0]}, r"pairs\[0\] = \[0, -1\]"),
        ("pairs", [[0.5, 1]], {"targets": [1.0]}, "integers"),
        ("pairs", [[0, 1, 2]], {"targets": [1.0]}, "two row numbers"),
        ("pairs", np.empty((0, 2), int), {"targets": []}, "minimum of 1"),
        ("pairs", [[0, 1]], {"targets": [1.0, 2.0]}, r"targets must have shape \(1,\).*; got shape \(2,\)"),
        ("pairs", [[0, 1], [1, 2]], {"targets": [1.0, -0.5]}, r"targets\[1\] = -0.5 is negative.*`labels`"),
        ("pairs", [[0, 1], [1, 2]], {"targets": [1.0, np.nan]}, "NaN.*row 1"),
        ("pairs", [[0, 1]], {}, "targets or labels must be given"),
        ("pairs", [[0, 1]], {"labels": [0]}, r"labels must be 1 .* or -1 .*; got labels\[0\] = 0"),
        ("pairs", [[0, 1]], {"labels": [1, -1]}, r"labels must have shape \(1,\).*; got shape \(2,\)"),
        ("pairs", [[0, 1]], {"labels": [np.nan]}, "labels contains NaN"),
        ("triplets", [[0, 1, 2], [0, 1, 40]], {}, r"triplets\[1\] = \[0, 1, 40\].*from 0 to 39"),
        ("triplets", [[0, 1]], {}, "triplet is three row numbers"),
        ("triplets", [[0.5, 1, 2]], {}, "integers"),
        ("triplets", np.empty((0, 3), int), {}, "minimum of 1"),
    ],
)
def test_bad_pairs_and_triplets(kind, rows, given, message, unchanged):
    with unchanged(learner := LogDetMetricLearner().partial_fit_triplets(X, TRIPLETS), message):
        getattr(learner, f"partial_fit_{kind}")(X, rows, **given)
    with unchanged(learner := LogDetMetricLearner(), message):
        getattr(learner, f"fit_{kind}")(X, rows, **given)


# --- priors -----------------------------------------------------------------------------------------------------------


def start(prior, rows=X):
    """The initial metric: rows of weight zero change nothing."""
    return LogDetMetricLearner(prior=prior).partial_fit(rows, np.arange(len(rows)) % 2, np.zeros(len(rows)))


def test_priors_of_the_rows_of_the_first_call():
    assert_array_equal(start("identity").get_mahalanobis_matrix(), np.eye(4))
    assert_allclose(start("variance").get_mahalanobis_matrix(), np.diag(1 / X.var(axis=0)), rtol=1e-12)
    rows = X @ RNG.normal(size=(4, 4))
    deviations = rows.std(axis=0)
    expected = np.linalg.inv(ledoit_wolf(rows / deviations)[0]) / np.outer(deviations, deviations)
    assert_allclose(start("covariance", rows).get_mahalanobis_matrix(), expected, rtol=1e-6)


def test_priors_of_leading_directions():
    y = np.arange(40) % 3
    within = X - np.array([X[y == k].mean(axis=0) for k in range(3)])[y]
    deviations = within.std(axis=0)
    covariance = ledoit_wolf(within / deviations)[0] * np.outer(deviations, deviations)
    separated = []  # squared distances of the means of classes
    for n_components, rank in ((None, 2), (1, 1)):
        learner = LogDetMetricLearner(prior="lda", n_components=n_components).partial_fit(X, y, np.zeros(40))
        L = (learner.get_mahalanobis_matrix() - 0.1 * np.linalg.inv(covariance)) / 0.9
        assert_allclose(L @ covariance @ L, L, atol=1e-7)  # a projection, in the metric of the covariance
        assert np.trace(L @ covariance) == pytest.approx(rank, abs=1e-7)
        separated.append(np.trace(L @ np.cov((X - within).T)))
    assert 0.5 * separated[0] < separated[1] < separated[0]  # the first one separates the classes most
    W = LogDetMetricLearner(prior="pca", n_components=2).partial_fit(X, y, np.zeros(40)).get_mahalanobis_matrix()
    leading = PCA(2).fit(X).components_
    assert_allclose(W, 0.9 * leading.T @ leading + 0.1 * np.eye(4), atol=1e-12)
    random = [
        LogDetMetricLearner(prior="random", random_state=seed).partial_fit(X, y, np.zeros(40)).get_mahalanobis_matrix()
        for seed in (0, 0, 1)
    ]
    assert_array_equal(random[0], random[1])
    assert not np.allclose(random[0], random[2])
    assert np.trace(random[0]) == pytest.approx(4) and np.linalg.eigvalsh(random[0])[0] > 0
    for refused in (
        lambda learner: learner.fit_pairs(X, PAIRS, np.ones(len(PAIRS))),
        lambda learner: learner.fit(X, np.zeros(40, dtype=int)),
        lambda learner: learner.partial_fit(X, np.arange(40)),
        lambda learner: learner.set_params(sampling="targets").fit(X, y),
    ):
        with pytest.raises(ValueError, match='prior="lda" is measured on the labelled rows'):
            refused(LogDetMetricLearner(prior="lda"))


@pytest.mark.parametrize("prior", ["variance", "covariance", "pca", "lda"])
def test_rows_of_weight_zero_do_not_enter_the_prior(prior):
    y, weights = np.arange(len(X)) % 2, (np.arange(len(X)) % 3 > 0).astype(float)
    weighted = LogDetMetricLearner(prior=prior, random_state=0).partial_fit(X, y, weights)
    fewer = LogDetMetricLearner(prior=prior, random_state=0).partial_fit(X[weights > 0], y[weights > 0])
    assert_array_equal(weighted.get_mahalanobis_matrix(), fewer.get_mahalanobis_matrix())


def test_priors_exist_where_covariances_have_no_inverse():
    rows = np.c_[X, X[:, 0], np.full(40, 0.1), X[:, 1] * 1e6]  # the same feature twice, a constant one, other units
    for prior in ("variance", "covariance", "lda"):
        W = start(prior, rows).get_mahalanobis_matrix()
        assert np.isfinite(W).all()
        assert np.linalg.eigvalsh(W)[0] > 0
        learner = LogDetMetricLearner(prior=prior, random_state=0).fit(rows, np.arange(40) % 2)
        assert np.isfinite(learner.components_).all()
        with pytest.raises(ValueError, match=f"prior='{prior}'.*no feature of its 1 row"):
            start(prior, X[:1])


@pytest.mark.parametrize("constant", [0.1, 1.0, -1e9 / 3])
def test_features_that_do_not_vary_within_classes_get_no_weight_from_rounding(constant):
    """Rows minus the means of their classes are about 1e-17 there, and not 0."""
    y = np.repeat([0, 1, 2], [59, 71, 48])
    rows = np.random.default_rng(0).normal(size=(len(y), 4)) + y[:, None] % 2

    def prior(added):
        learner = LogDetMetricLearner(prior="lda", n_components=2)
        return learner.partial_fit(np.c_[rows, added], y, np.zeros(len(y))).get_mahalanobis_matrix()

    assert_allclose(prior(np.full(len(y), constant)), prior(np.zeros(len(y))), rtol=1e-6, atol=1e-9)
    values = np.linalg.eigvalsh(prior(0.3 * y + 0.1))
    assert values[0] > 0 and values[-1] < 1e4


def test_lda_needs_rows_that_vary_within_classes():
    rows = np.repeat([[0.1, 0.2], [0.3, 0.1]], 3, axis=0)
    with pytest.raises(ValueError, match="no feature of its 6 rows varies within a class"):
        LogDetMetricLearner(prior="lda").partial_fit(rows, [0, 0, 0, 1, 1, 1])
    learner = LogDetMetricLearner(prior="auto", n_components=1).partial_fit(rows, [0, 0, 0, 1, 1, 1])
    assert np.isfinite(learner.get_mahalanobis_matrix()).all()


def test_two_rows_do_not_determine_correlations():
    expected = np.diag(1 / X[:2].var(axis=0))
    assert_allclose(start("covariance", X[:2]).get_mahalanobis_matrix(), expected, rtol=1e-9)


# --- values that are too large ----------------------------------------------------------------------------------------


def test_values_whose_squares_overflow_are_refused(unchanged):
    rows = X.copy()
    rows[30, 1] = -1e200
    learner = LogDetMetricLearner().partial_fit(X, np.arange(40) % 2)
    for learn in (
        lambda: learner.partial_fit(rows, np.arange(40) % 2),
        lambda: learner.partial_fit_pairs(rows, [[0, 1]], [1.0]),
        lambda: learner.partial_fit_triplets(rows, [[0, 1, 2]]),
    ):
        with unchanged(learner, r"X\[30, 1\] = -1e\+200.*StandardScaler"):
            learn()


# --- tuples in any form -----------------------------------------------------------------------------------------------


Z = RNG.normal(size=(40, 3)) * [1.0, 2.0, 0.5]
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
    triplets = learn(Learner(), 3, Z, NUMBERS[3])
    quadruplets = learn(Learner(), 4, Z, NUMBERS[3][:, [0, 1, 0, 2]])
    assert_array_equal(triplets.get_mahalanobis_matrix(), quadruplets.get_mahalanobis_matrix())
    assert triplets.margin_ == quadruplets.margin_
    collapsed = learn(Learner(), 4, Z, [[0, 1, 2, 2], [0, 0, 1, 2]])
    assert collapsed.n_collapsed_ == 1  # equal rows cannot be farther apart, but are no worse for being close


@pytest.mark.parametrize("Learner", LEARNERS)
@pytest.mark.parametrize("kind", KINDS)
def test_all_forms_of_tuples_are_the_same(Learner, kind):
    numbers = NUMBERS[kind]
    metric = learn(Learner(prior="variance"), kind, Z, numbers)
    rows = Z[numbers]
    of_array = learn(Learner(prior="variance"), kind, rows)
    looked_up = learn(Learner(prior="variance", preprocessor=Z), kind, numbers)
    by_function = learn(Learner(prior="variance", preprocessor=lambda i: Z[i]), kind, numbers)
    assert_array_equal(looked_up.get_mahalanobis_matrix(), of_array.get_mahalanobis_matrix())
    assert_array_equal(by_function.get_mahalanobis_matrix(), of_array.get_mahalanobis_matrix())
    assert metric.get_mahalanobis_matrix().shape == (3, 3)
    # without a prior that is measured, they are the same as numbers of given rows, also in parts and in epochs
    whole, cut = learn(Learner(), kind, Z, numbers), Learner(preprocessor=Z.tolist())
    for part in (slice(0, 1), slice(1, 30), slice(30, 50)):
        arguments = {"labels": LABELS[part]} if kind == 2 else {}
        cut = pickle.loads(pickle.dumps(clone(cut) if part.start == 0 else cut))
        getattr(cut, f"partial_fit_{KINDS[kind]}")(numbers[part], **arguments)
    assert_array_equal(whole.get_mahalanobis_matrix(), cut.get_mahalanobis_matrix())
    a, b = Learner(random_state=0), Learner(random_state=0)
    learn(a, kind, rows, partial=False), learn(b, kind, Z, numbers, partial=False)
    assert_array_equal(a.get_mahalanobis_matrix(), b.get_mahalanobis_matrix())


@pytest.mark.parametrize("Learner", [*LEARNERS, DefiniteBoostMetricLearner, ParameterFreeMetricLearner])
def test_rows_by_number(Learner):
    plain = Learner(random_state=0).fit(Z, Y)
    by_number = Learner(random_state=0, preprocessor=Z).fit(np.arange(40), Y)
    assert_array_equal(by_number.transform([3, 1]), plain.transform(Z[[3, 1]]))
    assert_array_equal(by_number.transform(Z[:2]), plain.transform(Z[:2]))
    assert_array_equal(by_number.pairwise_distances([3, 1]), plain.pairwise_distances(Z[[3, 1]]))
    pairs = NUMBERS[2]
    distances = plain.pair_distance(Z[pairs[:, 0]], Z[pairs[:, 1]])
    assert_array_equal(plain.pair_distance(Z[pairs]), distances)
    assert_array_equal(by_number.pair_distance(pairs), distances)
    assert_array_equal(by_number.pair_distance(pairs[:, 0], pairs[:, 1]), distances)
    assert_array_equal(by_number.pair_score(pairs), -distances)
    assert by_number.partial_fit([0, 1], Y[:2]) is by_number


@pytest.mark.parametrize(
    ("tuples", "preprocessor", "message"),
    [
        (NUMBERS[2], None, r"(?s)Found 2D array.*\(n_pairs, 2, n_features\).*got shape \(50, 2\)"),
        (Z[NUMBERS[3]], None, r"(?s)Tuples of 2 element.*Got tuples of 3 .*Give pairs as an array of shape"),
        (np.empty((0, 2, 3)), None, r"0 sample\(s\)"),
        ([[0, 40]], Z, r"from 0 to 39.*got 40"),
        ([[0.0, 1.0]], Z, r"integers; got dtype float64"),
        ([[0, 1]], lambda i: Z[:3], r"one row for each of 2 numbers; got .* \(3, 3\)"),
        (np.where(np.arange(3) == 1, np.nan, Z[NUMBERS[2]]), None, r"pairs contains NaN \(row 0, column 0\)"),
        ([[0, 1]], [1.0, 2.0], "2D array"),
    ],
)
def test_bad_tuples(tuples, preprocessor, message):
    model = LogDetMetricLearner(preprocessor=preprocessor).partial_fit_pairs(Z, [[0, 1]], [1.0])
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
    targets = 1 + 3 * np.square(Z[pairs[:, 0]] - Z[pairs[:, 1]])[:, 0]
    without = clone(model).fit_pairs(Z, pairs, targets, weights).get_mahalanobis_matrix()
    targets[absurd] = 1e12
    assert_allclose(model.fit_pairs(Z, pairs, targets).get_mahalanobis_matrix(), without, atol=0.1)
    assert np.linalg.norm(without - np.eye(3)) > 0.5


def test_the_distance_as_a_function():
    model = LogDetMetricLearner(random_state=0).fit(Z, Y)
    metric, distance = model.get_metric(), model.pair_distance(Z[:1], Z[1:2])[0]
    assert metric(Z[0], Z[1]) == pytest.approx(distance) == metric(Z[:1], Z[1].tolist())
    assert metric(Z[0], Z[1], squared=True) == pytest.approx(distance**2)
    for a, b in ((Z[0], Z[1, :2]), (Z[:2], Z[2:4]), (Z[0, :2], Z[1, :2])):
        with pytest.raises(ValueError, match="two rows of 3 numbers"):
            metric(a, b)


# --- without informative rows, and of the wrong shape -----------------------------------------------------------------


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("pairs", ["neighbors", "random"])
@pytest.mark.parametrize("n_components", [None, 2])
def test_one_class_leaves_rows_where_they_are(learner, pairs, n_components):
    X = np.random.default_rng(0).normal(size=(20, 3)) * [1.0, 5.0, 0.1]
    model = learner(sampling=pairs, n_components=n_components)
    for labels in [np.arange(20)] * (pairs == "neighbors") + [np.zeros(20, dtype=int)]:
        with pytest.warns(UserWarning, match=r"one class, or each of its own.*two or more classes") as caught:
            model.fit(X, labels)
    assert caught[0].filename == __file__
    if learner is VonNeumannMetricLearner:
        np.testing.assert_allclose(model.transform(X), X[:, :n_components], rtol=1e-12)
    else:
        assert_array_equal(model.transform(X), X[:, :n_components])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, np.arange(20) % 2)
        learner().partial_fit(X, np.zeros(20, dtype=int))  # other classes may follow


@pytest.mark.parametrize("learner", [DefiniteBoostMetricLearner, ParameterFreeMetricLearner])
def test_rows_of_different_classes_teach_nothing(learner):
    with pytest.warns(UserWarning, match=r"each of its own.*two or more classes"):
        learner().fit(np.eye(3), [0, 1, 2])


@pytest.mark.parametrize("learner", LEARNERS)
def test_pairs_as_one_array_are_explained(learner):
    pairs = np.random.default_rng(0).normal(size=(5, 2, 3))
    model = learner().partial_fit_pairs(np.eye(3), [[0, 1]], [1.0])
    with pytest.raises(ValueError, match=r"shape \(5, 2, 3\).*all pairs as X, without Y"):
        model.pair_distance(pairs, pairs)
    with pytest.raises(ValueError, match=r"shape \(5, 2, 3\).*pairs\[:, 0\] - pairs\[:, 1\]"):
        model.predict(pairs)
    with pytest.raises(ValueError, match=r"shape \(5, 2, 3\).*row numbers"):
        model.partial_fit_pairs(pairs, [[0, 1]], [1.0])
    with pytest.raises(ValueError, match=r"shape \(5, 2, 3\).*rows as X"):
        model.partial_fit_pairs(pairs[:, 0], pairs, np.ones(5))
    with pytest.raises(ValueError, match=r"shape \(5, 2, 3\).*row numbers"):
        model.fit_triplets(pairs.tolist(), [[0, 1, 2]])


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_comparator_that_is_no_metric_is_refused(learner):
    X = np.random.default_rng(0).normal(size=(10, 2))
    model = learner(track_regret=True).partial_fit_pairs(X, [[0, 1], [2, 3]], [1.0, 2.0])
    with pytest.raises(ValueError, match="U must be positive semidefinite; got a matrix with the eigenvalue -1"):
        model.regret_bound(np.diag([2.0, -1.0]), weighted=True)
    assert np.isfinite(model.regret_bound(np.diag([2.0, 1.0]), weighted=True))


def test_logdet_requires_a_definite_comparator():
    model = LogDetMetricLearner(track_regret=True).partial_fit_pairs(np.eye(2), [[0, 1]], [1.0])
    with pytest.raises(ValueError, match="eigenvalue 0"):
        model.regret_bound(np.diag([1.0, 0.0]), weighted=True)


def test_a_comparator_of_another_trace_is_refused():
    model = VonNeumannMetricLearner(trace=2.0, track_regret=True).partial_fit_pairs(np.eye(2), [[0, 1]], [1.0])
    with pytest.raises(ValueError, match="tr W = 3"):
        model.regret_bound(np.diag([1.0, 2.0]), weighted=True)


@pytest.mark.parametrize("learner", [*LEARNERS, DefiniteBoostMetricLearner])
@pytest.mark.parametrize("sampling", ["neighbors", "random"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e150])
def test_rows_that_are_stored_alone_are_finite(learner, sampling, bad, unchanged):
    """Rows of one class are only stored, so that no prediction shows values that are not finite."""
    model = learner(**({} if learner is DefiniteBoostMetricLearner else {"sampling": sampling}), random_state=0)
    X, y = np.random.default_rng(0).normal(size=(5, 3)), np.zeros(5, dtype=int)
    model.partial_fit(X, y).partial_fit(X[:1], y[:1])
    for rows in (X[:1], X):
        rows = rows.copy()
        rows[-1, 1] = bad
        with unchanged(model, "NaN|infinity|overflow"):
            model.partial_fit(rows, y[: len(rows)])


# --- real targets -----------------------------------------------------------------------------------------------------


def linear(n=300, d=6, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d))
    return rows, rows[:, 0] - 2.0 * rows[:, 1]


@pytest.mark.parametrize("Learner", [LogDetMetricLearner, VonNeumannMetricLearner, FrobeniusMetricLearner])
def test_targets_tell_which_features_matter(Learner):
    rows, y = linear()
    metric = Learner(sampling="targets", random_state=0).fit(rows, y)
    weights = np.diag(metric.get_mahalanobis_matrix())
    assert weights[:2].min() > 2 * weights[2:].max()
    cut = Learner(sampling="targets", random_state=0)
    for part in np.split(np.arange(300), [1, 2, 80, 211]):
        cut = pickle.loads(pickle.dumps(cut)).partial_fit(rows[part], y[part])
    whole = Learner(sampling="targets", random_state=0).partial_fit(rows, y)
    assert_array_equal(whole.get_mahalanobis_matrix(), cut.get_mahalanobis_matrix())
    # only the order of the distances between targets matters
    scaled = Learner(sampling="targets", random_state=0).partial_fit(rows, 8.0 * y)
    assert_array_equal(whole.get_mahalanobis_matrix(), scaled.get_mahalanobis_matrix())


def test_refused_targets():
    rows, y = linear(n=50)
    with pytest.raises(ValueError, match=r'Unknown label type: continuous.*Set sampling="targets" for real targets'):
        LogDetMetricLearner().fit(rows, y)
    learner = LogDetMetricLearner(sampling="targets", random_state=0).partial_fit(rows, y)
    before = pickle.dumps(learner)
    for wrong, message in ((np.where(np.arange(50) == 7, np.nan, y), "row 7"), (np.full(50, "a"), "number|convert")):
        with pytest.raises(ValueError, match=message):
            learner.partial_fit(rows, wrong)
    assert pickle.dumps(learner) == before
    with pytest.warns(UserWarning, match="All targets were equal"):
        LogDetMetricLearner(sampling="targets").fit(rows, np.ones(50))
    np.testing.assert_array_equal(
        LogDetMetricLearner(sampling="targets", random_state=0).partial_fit(rows, y.tolist()).get_mahalanobis_matrix(),
        learner.get_mahalanobis_matrix(),
    )


def test_neighbours_predict_their_mean_target():
    rows, y = linear()
    model = MetricKNeighborsRegressor(4, window_size=100, random_state=0)
    for part in np.array_split(np.arange(300), 7):
        model = pickle.loads(pickle.dumps(model)).partial_fit(rows[part], y[part])
    assert_array_equal(model.y_, y[200:])
    assert_array_equal(model.X_, rows[200:])
    distances, indices = model.kneighbors(rows[:20])
    assert_allclose(model.predict(rows[:20]), model.y_[indices].mean(axis=1), rtol=1e-12)
    weighted = (model.y_[indices] / distances).sum(axis=1) / (1 / distances).sum(axis=1)
    assert_allclose(model.set_params(weights="distance").predict(rows[:20]), weighted, rtol=1e-12)
    several = MetricKNeighborsRegressor(metric_learner="auto", random_state=0).fit(rows, y)
    singles = [
        MetricKNeighborsRegressor(metric_learner=metric).fit(rows, y)
        for metric in MetricKNeighborsRegressor(metric_learner="auto", random_state=0)._new_metrics()
    ]
    assert len(singles) == 3
    assert_allclose(several.predict(rows), np.mean([each.predict(rows) for each in singles], axis=0), rtol=1e-12)
