"""Examples and parameters of metric learners: pairs, triplets, quadruplets, one-sided losses, labels, priors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.covariance import ledoit_wolf
from sklearn.decomposition import PCA

from onlinebregman import LogDetMetricLearner
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
