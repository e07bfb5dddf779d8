"""LogDetMetricLearner: its step in closed form, its weights, what comes out, its errors and its bound."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import KNeighborsClassifier

from onlinebregman import LogDetMetricLearner
from onlinebregman.divergences import LogDet
from onlinebregman.reference import logdet_step


def raw(**parameters):
    return LogDetMetricLearner(scale_eta=False, learning_rate="constant", **parameters)


def learn_z(learner, z, y, **kwargs):
    """Learn one difference z with target y."""
    return learner.partial_fit_pairs(np.stack([np.asarray(z, float), np.zeros(len(z))]), [[0, 1]], [y], **kwargs)


@given(seed=st.integers(0, 10**6), log_eta=st.floats(-3, 2), d=st.integers(1, 80))
def test_one_step_is_the_closed_form(seed, log_eta, d):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, d + 2))
    prior = A @ A.T / d
    z, y, eta = rng.normal(size=d), rng.uniform(0, 2 * d), 10**log_eta / d
    learner = learn_z(raw(prior=prior, eta0=eta), z, y)
    expected = logdet_step(prior, z, y, eta)
    W = learner.get_mahalanobis_matrix()
    assert_allclose(W, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())
    assert_allclose(learner.predict(z[None]), z @ expected @ z, rtol=1e-10)
    assert_array_equal(W, W.T)


def test_dimensionless_rate():
    """scale_eta: rows times 10 and targets times 100 give the metric of the same rows, over 100."""
    rng = np.random.default_rng(4)
    X, pairs, targets = rng.normal(size=(30, 3)), rng.integers(0, 30, size=(50, 2)), rng.uniform(1, 5, size=50)
    small = LogDetMetricLearner().partial_fit_pairs(X, pairs, targets)
    large = LogDetMetricLearner().partial_fit_pairs(10 * X, pairs, 100 * targets)
    assert_allclose(large.get_mahalanobis_matrix(), small.get_mahalanobis_matrix(), rtol=1e-9)


@pytest.mark.parametrize("kind", ["targets", "labels", "triplets"])
def test_pairs_of_weight_zero_are_ignored(kind):
    """Their targets do not change the scale of the rate, and those of equal rows are not counted."""
    rng = np.random.default_rng(6)
    X, weights = rng.normal(size=(30, 3)), rng.integers(0, 2, size=60) * 1.0
    rows = rng.integers(0, 30, size=(60, 3 if kind == "triplets" else 2))
    rows[::5, -1] = rows[::5, 0]
    targets = {"targets": rng.uniform(1, 5, size=60) * np.where(weights, 1, 10)} if kind == "targets" else {}
    labels = {"labels": rng.choice([-1, 1], size=60)} if kind == "labels" else {}
    kept = weights > 0
    assert not kept[::5].all() and kept[::5].any()

    def learned(part, **more):
        learner = LogDetMetricLearner()
        method = learner.partial_fit_triplets if kind == "triplets" else learner.partial_fit_pairs
        return method(X, rows[part], **{name: values[part] for name, values in {**targets, **labels, **more}.items()})

    weighted, without = learned(slice(None), sample_weight=weights), learned(kept)
    assert_array_equal(weighted.get_mahalanobis_matrix(), without.get_mahalanobis_matrix())
    assert weighted.cumulative_loss_ == without.cumulative_loss_
    assert weighted.n_collapsed_ == without.n_collapsed_ > 0


def test_weights_of_pairs():
    X = np.eye(3)
    pairs, targets = [[0, 1], [1, 2]], [1.0, 4.0]
    once = raw(eta0=0.2).partial_fit_pairs(X, pairs, targets, sample_weight=[0.0, 0.5])
    other = raw(eta0=0.1).partial_fit_pairs(X, [[1, 2]], [4.0])
    assert_array_equal(once.get_mahalanobis_matrix(), other.get_mahalanobis_matrix())
    assert once.n_updates_ == 1
    nothing = raw().partial_fit_pairs(X, pairs, targets, sample_weight=[0.0, 0.0])
    assert_array_equal(nothing.get_mahalanobis_matrix(), np.eye(3))


def test_weights_of_labelled_rows(wine):
    """Weight h is rate h for the row's pairs; a row of weight 0 is skipped, and not stored."""
    X, y = wine
    doubled = raw(random_state=0, eta0=1e-3).fit(X, y, sample_weight=np.full(len(y), 2.0))
    assert_array_equal(doubled.components_, raw(random_state=0, eta0=2e-3).fit(X, y).components_)
    keep = np.arange(len(y)) % 3 > 0
    without = raw(random_state=0, eta0=1e-3).partial_fit(X, y, sample_weight=keep.astype(float))
    assert_array_equal(without.components_, raw(random_state=0, eta0=1e-3).partial_fit(X[keep], y[keep]).components_)


def test_fit_pairs_runs_epochs():
    X, pairs, targets = np.eye(3), [[0, 1], [1, 2]], [1.0, 4.0]
    fitted = raw(max_iter=3, shuffle=False).fit_pairs(X, pairs, targets)
    by_hand = raw()
    for _ in range(3):
        by_hand.partial_fit_pairs(X, pairs, targets)
    assert_array_equal(fitted.get_mahalanobis_matrix(), by_hand.get_mahalanobis_matrix())
    assert fitted.n_iter_ == 3 and len(fitted.loss_curve_) == 3
    assert fitted.loss_curve_[2] < fitted.loss_curve_[0]
    more = raw(max_iter=3, shuffle=False, warm_start=True).fit_pairs(X, pairs, targets).fit_pairs(X, pairs, targets)
    assert more.n_updates_ == 12


# --- labelled rows ------------------------------------------------------------------------------------------------


def test_bounds_of_drawn_pairs_are_percentiles_of_all(wine):
    X, y = wine
    learner = LogDetMetricLearner(random_state=0, sampling="random", memory_size=7, pairs_per_row=6).partial_fit(X, y)
    assert np.bincount(pickle.loads(pickle.dumps(learner))._sampler.sample()[1]).tolist() == [7, 7, 7]
    squared = ((X[:, None] - X[None]) ** 2).sum(-1)[np.triu_indices(len(X), 1)]
    assert_allclose(learner.bounds_, np.percentile(squared, [5, 95]), rtol=0.25)


def test_bounds_given_or_measured_in_the_prior():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), np.arange(200) % 2
    assert LogDetMetricLearner(bounds=(0.5, 9.0)).fit(X, y).bounds_ == (0.5, 9.0)
    plain = LogDetMetricLearner(sampling="random", random_state=0).fit(X, y).bounds_
    scaled = LogDetMetricLearner(sampling="random", prior=4 * np.eye(3), random_state=0).fit(X, y).bounds_
    assert_allclose(scaled, 4 * np.array(plain), rtol=1e-12)


def test_equal_rows_are_collapsed_pairs():
    X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 40, axis=0)
    learner = LogDetMetricLearner(random_state=0, shuffle=False).fit(X, np.arange(80) % 2)
    assert learner.n_collapsed_ > 0 and learner.n_updates_ > 0
    assert np.isfinite(learner.components_).all()


# --- what comes out -----------------------------------------------------------------------------------------------


def test_distances_agree(wine):
    X, y = wine
    learner = LogDetMetricLearner(random_state=0).fit(X, y)
    embedded = learner.transform(X)
    distances = learner.pair_distance(X[1:], X[:-1])
    assert_allclose(distances, np.linalg.norm(embedded[1:] - embedded[:-1], axis=1), rtol=1e-10)
    assert_allclose(distances**2, learner.predict(X[1:] - X[:-1]), rtol=1e-12)
    metric = pickle.loads(pickle.dumps(learner.get_metric()))
    assert_allclose(metric(X[0], X[5]), learner.pair_distance(X[:1], X[5:6])[0], rtol=1e-10)
    lengths = np.linalg.norm(learner.components_, axis=1)
    assert (np.diff(lengths) <= 0).all()
    assert learner.set_output(transform="pandas").transform(X[:3]).columns[0] == "logdetmetriclearner0"


def test_metric_function_in_neighbours(wine):
    X, y = wine
    learner = LogDetMetricLearner(random_state=0).fit(X, y)
    by_function = KNeighborsClassifier(5, metric=learner.get_metric(), algorithm="brute").fit(X, y)
    by_map = KNeighborsClassifier(5).fit(learner.transform(X), y)
    assert_array_equal(by_function.predict(X), by_map.predict(learner.transform(X)))


# --- bad input ----------------------------------------------------------------------------------------------------

ROWS = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"prior": [[1.0, 0.5, 0], [0, 1, 0], [0, 0, 1]]}, r"prior is not symmetric: entry \[0, 1\]"),
        ({"prior": -np.eye(3)}, "not positive definite"),
        (
            {"prior": 1e9 * np.ones((3, 3))},
            r"positive definite .smallest",
        ),  # by rounding its eigenvalues may be positive
        ({"prior": np.eye(2)}, "prior has 2 rows"),
        ({"prior": np.ones((2, 3))}, "square"),
        ({"prior": "covariances"}, "prior"),
        ({"bounds": (2.0, 1.0)}, "bounds"),
    ],
)
def test_bad_parameters(parameters, message):
    for method in ("fit", "partial_fit"):
        learner = LogDetMetricLearner(**parameters)
        with pytest.raises(ValueError, match=message):
            getattr(learner, method)(ROWS, [0, 1, 0, 1])
        assert not hasattr(learner, "n_features_in_")


def test_pair_distance_requires_equal_numbers_of_rows():
    learner = LogDetMetricLearner().partial_fit_pairs(ROWS, [[0, 1]], [1.0])
    with pytest.raises(ValueError, match="X and Y must have the same number of rows; got 4 and 3"):
        learner.pair_distance(ROWS, ROWS[:3])


# --- bounds -----------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), log_eta=st.floats(-3, 2), scale_eta=st.booleans())
def test_the_largest_distance_of_a_run_bounds_its_loss(seed, log_eta, scale_eta):
    """sum eta L(W) <= (1 + k) (sum eta L(U) + D(U, W_1)), k the largest eta m^2, m of the distances around a step."""
    rng, d = np.random.default_rng(seed), 3
    model = LogDetMetricLearner(eta0=10**log_eta, scale_eta=scale_eta, track_regret=True)
    factors = rng.normal(size=(3, d, d))
    metrics, of_others, k, before = [f @ f.T + 1e-3 * np.eye(d) for f in factors] + [np.eye(d)], np.zeros(4), 0.0, 0.0
    for t in range(15):
        z = rng.normal(size=d) * rng.choice([0.01, 1.0, 10.0])
        W = model.get_mahalanobis_matrix() if t else np.eye(d)
        y = rng.choice([0.0, 1.0, z @ metrics[0] @ z, 100.0])
        learn_z(model, z, y, sample_weight=[rng.choice([0.1, 1.0, 3.0])])
        lost = (z @ W @ z - y) ** 2 / 2
        eta, before = (model.weighted_loss_ - before) / lost if lost > 0 else 0.0, model.weighted_loss_
        k = max(k, eta * max(z @ W @ z, z @ model.get_mahalanobis_matrix() @ z) ** 2)
        of_others += eta * np.array([(z @ U @ z - y) ** 2 / 2 for U in metrics])
    for lost, U in zip(of_others, metrics, strict=True):
        assert model.weighted_loss_ <= (1 + k) * (lost + LogDet().divergence(U, np.eye(d))) * (1 + 1e-6)
