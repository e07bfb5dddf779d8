"""Columns centred and scaled inside the model, by the rows learned before: compared with scikit-learn's scaler."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone, is_classifier
from standardizer_replica import LIMIT, Replica

import onlinebregman
from onlinebregman import (
    EGRegressor,
    ForwardClassifier,
    ForwardRegressor,
    ImplicitGDRegressor,
    LearningRatePath,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    PNormClassifier,
    PNormRegressor,
    ScaleInvariantClassifier,
    ScaleInvariantRegressor,
)
from onlinebregman.constraints import Box

MODELS = [
    ForwardClassifier(standardize=False),
    ImplicitGDRegressor(),
    ImplicitGDRegressor(average=5, fit_intercept=False),
    MirrorDescentRegressor(divergence="relative_entropy", signed=True, loss="huber"),
    MirrorDescentClassifier(standardize=False),
    PNormRegressor(),
    PNormClassifier(loss="hinge"),
]
seeds = st.integers(0, 2**32 - 1)


def some_rows(n=60, d=4, seed=0, classes=0):
    """Columns of very different units, far from 0."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_t(3, size=(n, d))
    X = Z * 10.0 ** rng.integers(-3, 4, size=d) + 10.0 ** rng.integers(-3, 4, size=d)
    a = Z @ rng.normal(size=d) + 0.1 * rng.normal(size=n)
    return X, np.digitize(a, np.linspace(-1, 1, classes - 1)) if classes else a


def rows_of(model, **kwargs):
    return some_rows(classes=3 if is_classifier(model) else 0, **kwargs)


def standardizing(model):
    return clone(model).set_params(standardize=True)


def learn(model, X, y, **kwargs):
    if is_classifier(model) and not hasattr(model, "classes_"):
        kwargs["classes"] = np.arange(3)
    return model.partial_fit(X, y, **kwargs)


def score(model, X):
    return model.decision_function(X) if is_classifier(model) else model.predict(X)


# --- the numbers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_model_that_standardises_is_one_behind_a_scaler_that_learns_after_it(model):
    X, y = rows_of(model)
    ours, theirs, scaler = standardizing(model), clone(model), Replica(X.shape[1])
    for i in range(len(y)):
        row = X[i : i + 1]
        z = scaler.standardize(row)
        if i:
            assert_allclose(score(ours, row), score(theirs, z), rtol=1e-10, atol=1e-10)
        learn(ours, row, y[i : i + 1])
        learn(theirs, z, y[i : i + 1])
        scaler.count(row[0])
    assert_allclose(ours.mean_, scaler.mean, rtol=1e-12)
    assert_allclose(ours.scale_, scaler.scale, rtol=1e-12)
    assert ours.n_samples_seen_ == len(y)
    assert_allclose(ours.coef_, theirs.coef_ / scaler.scale, rtol=1e-9, atol=1e-12 * abs(ours.coef_).max())
    assert_allclose(ours.cumulative_loss_, theirs.cumulative_loss_, rtol=1e-10)


@settings(max_examples=40)
@given(seed=seeds, n=st.integers(1, 30), d=st.integers(1, 20), density=st.floats(0.05, 1.0), centred=st.booleans())
@pytest.mark.parametrize("layouts", ["dense", "sparse", "mixed"])
def test_weights_and_layouts_give_the_numbers_of_the_formulas(seed, n, d, density, centred, layouts):
    rng = np.random.default_rng(seed)
    X, y = some_rows(n, d, seed)
    X *= rng.uniform(size=X.shape) < density
    h = rng.choice([0.0, 0.5, 1.0, 3.0], size=n)
    model, plain, replica = ImplicitGDRegressor(standardize=True), ImplicitGDRegressor(), Replica(d, centred)
    first = np.array if centred else sparse.csr_array
    for i in range(n):
        row = X[i : i + 1]
        layout = {"dense": np.array, "sparse": sparse.csr_array, "mixed": rng.choice([np.array, sparse.csr_array])}
        z = replica.standardize(row)
        kind = first if i == 0 else layout[layouts]
        if i:
            assert_allclose(model.predict(kind(row)), plain.predict(z), rtol=1e-9, atol=1e-9)
        model.partial_fit(kind(row), y[i : i + 1], sample_weight=h[i : i + 1])._first_rows = None
        plain.partial_fit(z, y[i : i + 1], sample_weight=h[i : i + 1])
        replica.count(row[0], h[i])
    assert_allclose(model.mean_, replica.mean, rtol=1e-12, atol=1e-12 * abs(X).max())
    assert_allclose(model.scale_, replica.scale, rtol=1e-9, atol=1e-15 * abs(X).max())  # one rounding of the mean
    assert model.n_samples_seen_ == h.sum()


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("layout", [np.array, sparse.csr_array])
def test_coef_and_intercept_are_in_units_of_the_data(model, layout):
    X, y = rows_of(model, n=200)
    if layout is not np.array:
        X = (X - X.mean(axis=0)) * (np.random.default_rng(0).uniform(size=X.shape) < 0.5)
    model = learn(standardizing(model), layout(X), y)
    near = (abs((X - model.mean_) / model.scale_) <= LIMIT).all(axis=1)
    assert 100 < near.sum() < 200
    if getattr(model, "forward", False):  # its predictions are shrunk
        model.forward = False
    linear = X @ model.coef_.T + model.intercept_
    assert_allclose(score(model, layout(X))[near], linear[near], rtol=1e-8, atol=1e-8)
    assert abs(score(model, layout(X)) - linear)[~near].max() > 1e-3  # others are clipped to five deviations


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_units_and_origins_of_columns_change_nothing(model):
    X, y = rows_of(model)
    reference, changed = learn(standardizing(model), X, y), 1024.0 * X - 65536.0  # exact except for the difference
    assert_allclose(score(learn(standardizing(model), changed, y), changed), score(reference, X), rtol=1e-7, atol=1e-7)
    scaled = X * 2.0 ** np.arange(4)
    assert_array_equal(score(learn(standardizing(model), scaled, y), scaled), score(reference, X))


@pytest.mark.parametrize("layout", [np.array, sparse.csr_array])
def test_constant_columns_are_0_until_they_change(layout):
    X = np.tile([0.1, 0.0, 3e5], (50, 1))
    X[30:, 2] = np.nextafter(3e5, 4e5)  # constant up to rounding
    y = np.arange(50.0)
    model = ImplicitGDRegressor(standardize=True).partial_fit(layout(X), y)
    if layout is np.array:
        assert not model.coef_.any() and (model.scale_ == 1).all()
        assert model.predict([[7.0, -1.0, 0.0]]) == model.predict(X[:1]) == model.intercept_
    model.partial_fit(layout([[0.5, 1.0, 2e5]]), [1.0]).partial_fit(layout([[0.5, 1.0, 2e5]]), [3.0])
    assert model.coef_.all()


def test_means_far_from_0_cost_no_digits():
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(2000, 3)), rng.normal(size=2000)
    X = np.round(Z * 2**20) / 2**20
    near, far = (ImplicitGDRegressor(standardize=True).partial_fit(rows, y) for rows in (X, X + 2.0**30))
    assert_allclose(far.scale_, near.scale_, rtol=1e-7)
    assert_allclose(far.predict(X + 2.0**30), near.predict(X), rtol=1e-5, atol=1e-6)


# --- the life cycle ---------------------------------------------------------------------------------------------------


def test_what_learning_starts_with_says_whether_columns_are_centred():
    X, y = some_rows()
    for first, centred in ((np.array, True), (sparse.csr_array, False)):
        model = ForwardRegressor(random_features=8, random_state=0).fit(first(X[:20]), y[:20])
        assert model.mean_.any() == centred
        others = [copy.deepcopy(model).partial_fit(kind(X[20:]), y[20:]) for kind in (np.array, sparse.csr_array)]
        assert_allclose(others[0].coef_, others[1].coef_, rtol=1e-12)
    assert not hasattr(model.set_params(standardize=False).fit(X, y), "mean_")


def test_without_it_there_are_no_statistics():
    X, y = some_rows()
    for model in (ImplicitGDRegressor(), ForwardRegressor(standardize=False), EGRegressor()):
        model.partial_fit(X / abs(X).max(axis=0), y)
        for name in ("mean_", "scale_", "n_samples_seen_"):
            with pytest.raises(AttributeError, match="standardize=True, set before learning starts"):
                getattr(model, name)


def test_weights_that_have_to_be_positive_are_not_for_standardised_columns():
    for name in ("BurgRegressor", "EGRegressor", "WinnowClassifier", "PerceptronClassifier"):
        assert "standardize" not in getattr(onlinebregman, name)().get_params()


# --- together with others ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [ImplicitGDRegressor(), MirrorDescentClassifier()], ids=repr)
@pytest.mark.parametrize("first", [np.array, sparse.csr_array])
def test_many_rates_are_the_models_one_by_one(model, first):
    X, y = rows_of(model)
    model = standardizing(model)
    path = learn(LearningRatePath(model, eta0s=[0.1, 1.0, 2.0]), first(X[:30]), y[:30]).partial_fit(X[30:], y[30:])
    for eta0, member in zip([0.1, 1.0, 2.0], path.estimators_, strict=True):
        alone = learn(clone(model).set_params(eta0=eta0), first(X[:30]), y[:30]).partial_fit(X[30:], y[30:])
        assert_array_equal(member.coef_, alone.coef_)
        assert_array_equal(member.scale_, alone.scale_)
        assert_array_equal(score(member, X), score(alone, X))
        assert member.n_samples_seen_ == 60
    assert len({id(member._learner.row_map) for member in path.estimators_}) == 1  # shared statistics


# --- by default -------------------------------------------------------------------------------------------------------

SCALE_FREE = [
    MirrorDescentRegressor(),
    MirrorDescentRegressor(divergence="diagonal_newton"),
    ScaleInvariantRegressor(),
    MirrorDescentClassifier(),
    MirrorDescentClassifier(divergence="diagonal_newton"),
    ScaleInvariantClassifier(),
]
scale_free = pytest.mark.parametrize("model", SCALE_FREE, ids=repr)


def wrong_by(model, X, y, n_learned=2500):
    """Squared error over noise, or share of wrong labels, of the rows after those that are learned."""
    if is_classifier(model):
        model = clone(model).partial_fit(X[:n_learned], y[:n_learned] > 0, classes=[False, True])
        return 1 - model.score(X[n_learned:], y[n_learned:] > 0)
    return np.sqrt(
        np.mean((clone(model).partial_fit(X[:n_learned], y[:n_learned]).predict(X[n_learned:]) - y[n_learned:]) ** 2)
    )


def plain_rows(seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(3000, 5))
    return Z, Z @ [1.0, -2.0, 0.5, 1.5, -1.0] + rng.normal(size=3000)


@scale_free
@pytest.mark.parametrize("level", [100.0, -1e4, 1.7e9])
def test_columns_far_from_0_are_learned_as_well_as_others(model, level):
    Z, y = plain_rows()
    error = wrong_by(model, Z + level, y)
    assert abs(error - wrong_by(model, Z, y)) < 1e-3
    assert error < (0.2 if is_classifier(model) else 1.1)


@scale_free
@pytest.mark.parametrize("row", [0, 3, 2200])
def test_a_column_is_back_300_rows_after_an_absurd_value(model, row):
    Z, y = plain_rows()
    X = Z.copy()
    X[row, 1] = 9999.0
    assert wrong_by(model, X, y) < (0.2 if is_classifier(model) else 1.1)


@scale_free
def test_a_column_whose_level_moves_is_followed(model):
    Z, y = plain_rows()
    X = Z + 20.0
    X[1500:, 1] += 50.0
    assert wrong_by(model, X, y) < (0.2 if is_classifier(model) else 1.1)


@pytest.mark.parametrize(
    "given",
    [
        {"penalty": "l2"},
        {"init": 0.0},
        {"constraint": Box(-1.0, 1.0)},
        {"track_regret": True},
        {"divergence": "adagrad"},
    ],
)
def test_what_is_about_the_columns_as_they_are_needs_them(given):
    Z, y = plain_rows()
    found, raw = (MirrorDescentRegressor(**given, **more).partial_fit(Z, y) for more in ({}, {"standardize": False}))
    assert_array_equal(found.coef_, raw.coef_)
    assert not hasattr(found, "mean_")
    assert hasattr(MirrorDescentRegressor(**given, standardize=True).partial_fit(Z, y), "mean_")


def test_given_initial_weights_are_those_of_the_columns():
    Z, y = plain_rows()
    model = MirrorDescentRegressor(max_iter=1, tol=None).fit(Z, y, coef_init=np.ones(5))
    assert not hasattr(model, "mean_") and hasattr(model.fit(Z, y), "mean_")
    with pytest.raises(ValueError, match="units of the data"):
        model.set_params(standardize=True).fit(Z, y, coef_init=np.ones(5))
