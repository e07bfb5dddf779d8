"""Random Fourier features: the forward algorithms on cosines of the rows."""

import numpy as np
import pytest
from forward_replica import papers
from numpy.testing import assert_allclose
from scipy import sparse

from onlinebregman import ForwardClassifier

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows


def some_rows(n=80, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ rng.normal(size=d) + 0.1 * rng.normal(size=n)


def cosines(model, X):
    """The features from their definition."""
    features = model._learner.features
    frequencies, phases = features.frequencies, features.phases
    return np.sqrt(2 / len(phases)) * np.cos(2 * np.pi * (X @ frequencies.T + phases))


@pytest.mark.parametrize("n_components", [1, 7, 32])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_models_are_those_of_the_features(n_components, layout):
    X, y = some_rows()
    model = papers(random_features=n_components, random_state=0).partial_fit(layout(X), y)
    Z = cosines(model, X)
    alone = papers().partial_fit(Z, y)
    assert_allclose(model.predict(layout(X)), alone.predict(Z), rtol=1e-9, atol=1e-12)
    assert_allclose(model.coef_, alone.coef_, rtol=1e-7, atol=1e-10)
    assert_allclose(model.cumulative_loss_, alone.cumulative_loss_, rtol=1e-10)
    assert model.coef_.shape == (n_components,)
    assert model.regret_ <= model.regret_bound_

    labels = np.digitize(y, [-1.0, 1.0])
    model = ForwardClassifier(standardize=False, random_features=n_components, random_state=0).fit(layout(X), labels)
    alone = ForwardClassifier(standardize=False).fit(cosines(model, X), labels)
    assert_allclose(model.predict_proba(layout(X)), alone.predict_proba(cosines(model, X)), rtol=1e-9, atol=1e-12)
    assert_allclose(model.coef_, alone.coef_, rtol=1e-7, atol=1e-10)
    assert_allclose(model.intercept_, alone.intercept_, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_cosines_are_exact_to_rounding(scale):
    X, y = some_rows()
    X *= scale
    model = papers(random_features=64, gamma=0.5, random_state=1).partial_fit(X, y)
    model._learner.__reduce__()
    alone = papers().partial_fit(cosines(model, X), y)
    assert_allclose(model.cumulative_loss_, alone.cumulative_loss_, rtol=1e-9 * max(scale, 1.0))


def test_products_of_features_are_the_kernel():
    X, _ = some_rows(n=20)
    model = papers(random_features=20_000, gamma=0.3, random_state=0)
    features = model._features(5)
    frequencies, phases = features.frequencies, features.phases
    Z = np.sqrt(2 / 20_000) * np.cos(2 * np.pi * (X @ frequencies.T + phases))
    kernel = np.exp(-0.3 * ((X[:, np.newaxis] - X) ** 2).sum(axis=2))
    assert_allclose(Z @ Z.T, kernel, atol=0.03)


def test_rows_that_are_not_finite_are_refused(unchanged):
    X, y = some_rows()
    model = papers(random_features=10, random_state=0).partial_fit(X, y)
    for value in (np.nan, np.inf):
        bad = X.copy()
        bad[5, 2] = value
        with unchanged(model, r"\(row 5, column 2\)"):
            model.partial_fit(bad, y)
        with pytest.raises(ValueError, match=r"\(row 5, column 2\)"):
            model.predict(bad)
    with pytest.raises(ValueError, match="'random_features' parameter"):
        papers(random_features=-1).fit(X, y)


def labels_of(X):
    return (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.mark.parametrize("n_rows", range(6, 12))
def test_refused_rows_leave_no_trace_however_many_steps_are_pending(n_rows):
    X, _ = some_rows()
    y = labels_of(X)
    models = [ForwardClassifier(standardize=False, random_features=13, random_state=0) for _ in range(2)]
    for i in range(n_rows):
        for model in models:
            model.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
    with pytest.raises(ValueError, match="row 1, column 0"):
        models[0].partial_fit(np.vstack([X[:1], np.full((1, 5), np.inf)]), y[:2])
    with pytest.raises(ValueError, match="Row 0"):
        models[0].partial_fit(np.full((1, 5), 1e308), y[:1], sample_weight=[1e308])
    states = [model._learner.get_state() for model in models]
    for name in ("memory", "state"):
        assert np.array_equal(states[0][name], states[1][name], equal_nan=True)
    whole = ForwardClassifier(standardize=False, random_features=13, random_state=0)
    whole.partial_fit(X, y, classes=[0, 1])
    for model in models:
        model.partial_fit(X[n_rows:], y[n_rows:])
        assert np.array_equal(model.coef_, whole.coef_)


@pytest.mark.parametrize("forgetting", [0.5, 0.97, 0.999])
def test_what_is_forgotten_without_new_rows_stays_bounded(forgetting):
    X, _ = some_rows()
    model = ForwardClassifier(standardize=False, random_features=24, random_state=0, forgetting=forgetting)
    model.partial_fit(X, labels_of(X), classes=[0, 1])
    same = np.repeat(X[:1], 1000, axis=0)
    for _ in range(20):  # rows that say nothing about other directions
        model.partial_fit(same, np.arange(1000) % 2)
    covariance = model._learner.covariance
    assert np.linalg.eigvalsh(covariance)[0] > -1e-9 * covariance.max()
    assert covariance.max() <= 4e8 / model.alpha / min(forgetting, 0.5) ** 8
    assert np.isfinite(model.predict_log_proba(X)).all()
    assert np.abs(model.predict_proba(X[:1]) - 0.5).max() < 0.3
    for _ in range(30):
        model.partial_fit(X, labels_of(X), classes=[0, 1])
    assert model.score(X, labels_of(X)) > 0.75


def test_weights_of_any_size_keep_the_metric_positive():
    X, _ = some_rows()
    model = ForwardClassifier(standardize=False, random_features=24, random_state=0)
    model.partial_fit(X, labels_of(X), classes=[0, 1], sample_weight=np.geomspace(1e-100, 1e100, len(X)))
    assert np.linalg.eigvalsh(model._learner.covariance)[0] > -1e-12 / model.alpha
    assert np.abs(model.coef_).max() < 1e5
    assert np.isfinite(model.predict_log_proba(X)).all()


def test_a_number_of_pending_steps_that_cannot_be_is_refused():
    X, _ = some_rows()
    learner = (
        ForwardClassifier(standardize=False, random_features=8).partial_fit(X, labels_of(X), classes=[0, 1])._learner
    )
    cls, (*arguments, state) = learner.__reduce__()
    for wrong in (-1.0, 9.0, 0.5):
        numbers = state["state"].copy()
        numbers[4] = wrong
        with pytest.raises(ValueError, match="number of pending vectors"):
            cls(*arguments, {**state, "state": numbers})
