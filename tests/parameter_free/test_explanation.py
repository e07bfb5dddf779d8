"""What columns contribute to predictions, and their importances."""

import tracemalloc

import numpy as np
import pytest
from mixed_rows import mixed, with_gaps
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

from onlinebregman import (
    ForwardClassifier,
    ForwardRegressor,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    ParameterFreeClassifier,
    ParameterFreeRegressor,
    ScaleInvariantClassifier,
    ScaleInvariantRegressor,
)

MODELS = {
    "regressor": ParameterFreeRegressor(random_features=16),
    "no stacking": ParameterFreeRegressor(random_features=0, stacking=False),
    "linear": ParameterFreeRegressor(random_features=0, thresholds=False),
    "not standardised": ParameterFreeRegressor(random_features=0, standardize=False),
    "poisson": ParameterFreeRegressor(loss="poisson"),
    "classifier": ParameterFreeClassifier(random_features=16),
    "classifier, no stacking": ParameterFreeClassifier(random_features=0, stacking=False),
    "calibrated": ParameterFreeClassifier(
        members=[
            MirrorDescentClassifier(divergence="normalized_adagrad", loss="hinge", thresholds="pairwise"),
            MirrorDescentClassifier(divergence="diagonal_newton", loss="squared_hinge", standardize=True),
            ForwardClassifier(standardize=True),
        ]
    ),
}

CLASSES = {ParameterFreeClassifier: {"classes": [0, 1]}}


@pytest.fixture(params=MODELS.values(), ids=MODELS)
def model(request):
    return clone(request.param)


def rows(n=600, seed=0):
    """Six columns; targets 0, 1, 2 that depend on the first, and on a product of thresholds of the next two."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    score = X[:, 0] + 2.0 * ((X[:, 1] > 0.3) & (X[:, 2] < 0.5))
    return X, np.digitize(score, [0.0, 1.5]).astype(float)


def scores_of(model, X):
    """What contributions add up to, from the predictions."""
    if not is_classifier(model):
        prediction = model.predict(X)
        return np.log(prediction) if model.loss == "poisson" else prediction
    logs = np.log(model.predict_proba(X))
    return logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs - logs.mean(axis=1, keepdims=True)


def assert_adds_up(model, X):
    explanation = model.explain(X)
    scores = scores_of(model, X)
    assert explanation.contributions.shape[:2] == (len(scores), len(explanation.terms))
    assert_allclose(explanation.scores, scores, rtol=1e-10, atol=1e-10)
    assert_allclose(explanation.contributions.sum(axis=1), scores, rtol=1e-10, atol=1e-10)


# --- contributions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_contributions_add_up_to_the_score(model, n_classes):
    X, y = rows()
    model.fit(X, np.minimum(y, n_classes - 1))
    assert_adds_up(model, X)
    assert_adds_up(model, 4.0 * X[:20])  # clipped


@pytest.mark.parametrize("kind", [ParameterFreeRegressor, ParameterFreeClassifier])
@pytest.mark.parametrize("data", [with_gaps, mixed])
def test_contributions_add_up_with_missing_values_and_categories(kind, data):
    X, y = data(400)
    model = kind(random_features=16).fit(X[:300], y[:300])
    assert_adds_up(model, X)
    if data is mixed:  # new categories
        X = X.astype({"shape": object})
        X.loc[310:, ["colour", "shape"]] = "none of those"
        assert_adds_up(model, X)


def test_scores_far_from_zero_add_up_to_their_digits():
    X, y = rows()
    assert_adds_up(ParameterFreeRegressor(random_features=16).fit(X, 1e6 + 1e3 * y), X)


@pytest.mark.parametrize("kind", [ParameterFreeRegressor, ParameterFreeClassifier])
def test_rows_far_beyond_those_learned_are_explained(kind):
    X, y = rows(100)
    model = kind(random_features=0, standardize=False).fit(X, y)
    X[:3, :2] = [[1e200, 0.0], [-1e200, 1e200], [0.0, 1e300]]
    assert_allclose(model.explain(X).contributions.sum(axis=1), scores_of(model, X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("average", [False, True, 400])
@pytest.mark.parametrize("kind", [ParameterFreeRegressor, ParameterFreeClassifier])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_bets_on_values_beyond_those_learned_are_explained(kind, n_classes, average):
    X, y = rows(300)
    X[:, 5], y = 0.0, np.minimum(y, n_classes - 1)
    bets, other = {
        ParameterFreeRegressor: (ScaleInvariantRegressor, ForwardRegressor(standardize=True)),
        ParameterFreeClassifier: (ScaleInvariantClassifier, ForwardClassifier(standardize=True)),
    }[kind]
    for scales in ([1.0] * 6, [1e3, 1e-3, 1e-140, 1e140, 1.0, 1.0]):
        for members in ([bets(average=average)], [bets(average=average, fit_intercept=False), other]):
            model = kind(members=members).fit(X * scales, y)
            beyond = 2.0 ** np.arange(-3, 5)[:, np.newaxis] * scales * X[:8]
            beyond[7, 5] = 1.0
            assert_adds_up(model, beyond)


@pytest.mark.parametrize("members", [[ScaleInvariantRegressor()], [ScaleInvariantRegressor(loss="huber")]])
def test_bets_on_values_far_beyond_those_learned_are_explained(members):
    X, y = rows(100)
    for tiny in (1.0, 1e-200, 1e-310):
        X[:, 3] = tiny * y
        model = ParameterFreeRegressor(members=members).fit(X, y)
        assert_adds_up(model, X)
        beyond = X.copy()
        beyond[:4, :4] = np.diag([1e200, -1e200, 1e300, 1.0])
        assert_adds_up(model, beyond)


@pytest.mark.parametrize("model", [MODELS["regressor"], MODELS["classifier"]])
def test_sparse_rows_are_explained_as_dense_ones(model):
    X, y = rows()
    X[np.abs(X) < 0.5] = 0.0
    model = clone(model).fit(sparse.csr_matrix(X), y)
    assert_adds_up(model, X[:50])
    explanation, of_sparse = model.explain(X[:50]), model.explain(sparse.csr_matrix(X[:50]))
    parts = of_sparse.contributions if isinstance(of_sparse.contributions, list) else [of_sparse.contributions]
    found = np.stack([each.toarray() for each in parts], axis=2)
    assert_array_equal(np.squeeze(found), explanation.contributions)
    assert_array_equal(of_sparse.scores, explanation.scores)


def test_pairs_are_those_of_all_members():
    X, y = rows()
    of_pairs = MirrorDescentRegressor(divergence="diagonal_newton", thresholds=[[2, 1], [0, 5]])
    explanation = ParameterFreeRegressor(members=[of_pairs]).fit(X, y).explain(X)
    assert explanation.pairs.tolist() == [[0, 5], [1, 2]]
    assert explanation.terms.tolist() == [*(f"x{j}" for j in range(6)), "x0 x5", "x1 x2", "bias"]
    assert not explanation.contributions[:, [3, 4]].any()


MEMBERS = {
    "pairs": MirrorDescentRegressor(divergence="diagonal_newton", thresholds=[[0, 1], [0, 2], [1, 2]]),
    "random features": ForwardRegressor(random_features=256, gamma=0.3, standardize=True, alpha=0.1, random_state=0),
}


@pytest.mark.parametrize("member", MEMBERS.values(), ids=MEMBERS)
def test_columns_contribute_their_part_and_interactions_the_rest(member):
    rng = np.random.default_rng(0)
    X = rng.normal([5.0, 0.0, -1.0], [1.0, 100.0, 0.1], size=(4000, 3))
    first, second = (X[:, 0] > 5.0) - 0.5, (X[:, 1] > 0.0) - 0.5
    for y, alone in ((first - second, True), (4.0 * first * second, False)):
        explanation = ParameterFreeRegressor(members=[member]).fit(X, y).explain(X)
        parts = np.column_stack([explanation.contributions[:, :3], explanation.contributions[:, 3:-1].sum(axis=1)])
        assert_allclose(parts.mean(axis=0), 0.0, atol=0.05)
        assert explanation.contributions[:, -1].mean() == pytest.approx(0.0, abs=0.05)
        deviations = parts.std(axis=0)
        if alone:
            assert deviations[:2].min() > 0.35 and deviations[2:].max() < 0.2
            assert np.corrcoef(parts[:, 0], first)[0, 1] > 0.85 and np.corrcoef(parts[:, 1], -second)[0, 1] > 0.85
        else:
            assert deviations[3] > 0.6 and deviations[:3].max() < 0.2
            assert np.corrcoef(parts[:, 3], y)[0, 1] > 0.85


def test_terms_have_the_names_of_the_columns():
    X, y = mixed()
    explanation = ParameterFreeClassifier(random_features=0).fit(X, y).explain(X)
    assert explanation.terms[:6].tolist() == ["size", "colour", "weight", "shape", "sold", "size colour"]
    assert "random_features" not in explanation.terms


@pytest.mark.parametrize(
    ("members", "X", "n_classes"),
    [
        ([ForwardClassifier(), MirrorDescentClassifier(standardize=True)], rows(128)[0], 64),
        (None, sparse.random(24, 20_000, 1e-3, "csr", random_state=0), 3),
    ],
)
def test_many_classes_or_columns_are_explained_in_little_memory(members, X, n_classes):
    model = ParameterFreeClassifier(members=members).fit(X, np.arange(X.shape[0]) % n_classes)
    tracemalloc.start()
    explanation = model.explain(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    contributions = explanation.contributions
    if members is None:  # of sparse rows
        assert sum(each.nnz for each in contributions) <= 3 * (X.nnz + 2 * 24)  # the bias and the memory
        contributions = np.stack([each.toarray() for each in contributions], axis=2)
    assert peak < 20 * contributions.nbytes
    assert_allclose(contributions.sum(axis=1), explanation.scores, atol=1e-10)
    assert_allclose(contributions.sum(axis=2), 0.0, atol=1e-10)


def test_explaining_changes_nothing_and_requires_rows_like_those_learned(model):
    X, y = rows(100)
    with pytest.raises(NotFittedError):
        model.explain(X)
    model.fit(X, y)
    before = model.predict(X)
    model.explain(X)
    assert_array_equal(model.predict(X), before)
    with pytest.raises(ValueError, match="features"):
        model.explain(X[:, :3])


def test_scores_that_are_no_sums_are_refused():
    X, y = rows(50)
    model = ParameterFreeClassifier(members=[ForwardClassifier(update="aioli")]).fit(X, np.minimum(y, 1.0))
    with pytest.raises(ValueError, match="aioli"):
        model.explain(X)


@pytest.mark.parametrize(
    ("targets", "message"), [(1, r"learned y of shape \(n_samples, 1\).* learn y.ravel\(\)"), (2, "has 2 outputs")]
)
def test_targets_in_columns_are_refused(targets, message):
    X, y = rows(50)
    model = ParameterFreeRegressor(random_features=0).fit(X, np.column_stack([y] * targets))
    with pytest.raises(ValueError, match=message):
        model.explain(X)
    with pytest.raises(AttributeError, match=message):
        _ = model.feature_importances_


# --- importances ------------------------------------------------------------------------------------------------------


def test_importances_are_shares_of_the_variance():
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, [1.0, 10.0, 5.0], size=(3000, 3))
    model = ParameterFreeRegressor(random_features=0, shuffle=False).fit(X, 2.0 * X[:, 0] + 0.1 * X[:, 1])
    assert_allclose(model.feature_importances_, [0.8, 0.2, 0.0], atol=0.02)


def test_the_importance_of_a_value_that_is_missing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2))
    gone = rng.uniform(size=1000) < 0.5
    X[gone, 1] = np.nan
    assert ParameterFreeClassifier(random_features=0).fit(X, gone).feature_importances_[1] > 0.95


def test_a_constant_model_has_no_importances():
    X, _ = rows(50)
    assert_array_equal(ParameterFreeRegressor(random_features=0).fit(X, np.ones(50)).feature_importances_, 0.0)


def test_importances_while_rows_are_learned(monkeypatch):
    """Another thread may have counted values of rows which the number of rows does not yet include."""
    X, y = rows()
    model = ParameterFreeRegressor().fit(X, y)
    monkeypatch.setattr(ParameterFreeRegressor, "t_", property(lambda model: 20))
    assert np.isfinite(model.feature_importances_).all()


def test_importances_require_a_fitted_model_that_knows_the_columns():
    X, y = rows(50)
    with pytest.raises(NotFittedError):
        _ = ParameterFreeRegressor().feature_importances_
    scaled = MirrorDescentRegressor(standardize=True)  # without means: only sizes are known
    for members in None, [scaled]:
        model = ParameterFreeRegressor(members=members).fit(sparse.csr_matrix(X), y)
        with pytest.raises(AttributeError, match="standardize=True"):
            _ = model.feature_importances_
        assert_adds_up(model, X)
    of_bins = MirrorDescentRegressor(divergence="diagonal_newton", thresholds="no_interactions")
    one, other = (ParameterFreeRegressor(members=[of_bins]).fit(form(X), y) for form in (sparse.csr_matrix, np.asarray))
    assert_array_equal(one.feature_importances_, other.feature_importances_)


def test_constant_columns_are_not_important():
    X, y = rows(200)
    X[:, 3] = 7.0
    members = [MirrorDescentRegressor(standardize=standardize, fit_intercept=False) for standardize in (True, False)]
    model = ParameterFreeRegressor(members=members).fit(X, y + 7.0)
    assert model.feature_importances_[3] == 0.0 and not model.explain(X).contributions[:, 3].any()


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("kind", [ParameterFreeRegressor, ParameterFreeClassifier])
def test_rows_of_weight_0_are_explained_by_nothing(kind, standardize):
    X, y = rows(10)
    model = kind(random_features=8, standardize=standardize)
    model.partial_fit(X, (y > 0).astype(int), sample_weight=np.zeros(10), **CLASSES.get(kind, {}))
    assert_allclose(model.explain(X).contributions.sum(axis=1), 0.0, atol=1e-12)
    assert_array_equal(model.feature_importances_, 0.0)
