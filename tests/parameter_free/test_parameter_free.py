"""The parameter-free mixtures: errors of the default sets, in any units, and invalid arguments."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import expit, xlogy
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.utils import get_tags

from onlinebregman import (
    ForwardClassifier,
    ForwardRegressor,
    ImplicitGDRegressor,
    LogDetMetricLearner,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    ParameterFreeClassifier,
    ParameterFreeRegressor,
)
from onlinebregman.losses import PoissonLoss

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows


@pytest.mark.parametrize("exponents", [[-6, 6, 0], [3, -2, -6]])
def test_units_do_not_matter(exponents):
    rng = np.random.default_rng(0)
    X, w, units = rng.normal(size=(300, 3)), np.array([1.0, -2.0, 0.5]), 10.0 ** np.array(exponents)
    y = X @ w + 0.1 * rng.normal(size=300)
    here, there = (ParameterFreeRegressor().partial_fit(*data) for data in ((X, y), (X * units + 7 * units, 1e6 * y)))
    assert_allclose(there.predict(X * units + 7 * units), 1e6 * here.predict(X), rtol=1e-6)
    here, there = (ParameterFreeClassifier().fit(Z, y > 0) for Z in (X, X * units + 7 * units))
    assert_allclose(there.predict_proba(X * units + 7 * units), here.predict_proba(X), rtol=1e-6, atol=1e-9)


def test_sparse_rows_of_many_columns_have_no_second_order_members():
    X = sparse.random(200, 3000, density=0.01, random_state=0, format="csr")
    y = (X @ np.random.default_rng(1).normal(size=3000) > 0).astype(int)
    model = ParameterFreeClassifier().fit(X, y)
    assert not any(isinstance(estimator, ForwardClassifier) for estimator in model.estimators_)
    assert model.predict_proba(X).shape == (200, 2)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("kind", [ParameterFreeClassifier, ParameterFreeRegressor])
def test_random_features_are_those_of_four_members(kind):
    X, y = load_breast_cancer(return_X_y=True)
    for number, expected in ((32, [32, 32, 32, 64]), (0, [])):
        members = kind(random_features=number).fit(X[:50], y[:50]).estimators_
        assert [member.random_features for member in members if getattr(member, "random_features", 0)] == expected


def test_members_can_be_used_by_themselves():
    X, y = load_breast_cancer(return_X_y=True)
    model = ParameterFreeClassifier().fit(X, y)
    best = model.best_estimator_
    assert best.score(X, y) > 0.95
    assert best.coef_.shape == (1, 30)
    assert model.best_index_ == model.cumulative_losses_.argmin()
    assert model.t_ == best.t_ == len(y)


def test_class_weights_weigh_the_rows():
    X, y = load_breast_cancer(return_X_y=True)
    weighted = ParameterFreeClassifier(class_weight={0: 3.0}).partial_fit(X, y, classes=[0, 1])
    alike = ParameterFreeClassifier().partial_fit(X, y, classes=[0, 1], sample_weight=np.where(y == 0, 3.0, 1.0))
    assert_array_equal(weighted.predict_proba(X), alike.predict_proba(X))
    balanced = ParameterFreeClassifier(class_weight="balanced").fit(X, y)
    assert balanced.predict_proba(X)[:, 0].mean() > ParameterFreeClassifier().fit(X, y).predict_proba(X)[:, 0].mean()


@pytest.mark.parametrize(("seed", "weight"), [(4, 1e145), (39, 1e150)])
def test_combinations_survive_weights_beyond_all_scales(seed, weight):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    model = ParameterFreeClassifier(thresholds=False, random_features=0 if seed == 4 else 128)
    model.partial_fit(X[:20], y[:20], classes=[0, 1, 2], sample_weight=weight)
    for i in range(20, 60):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    assert np.isfinite(model.predict_proba(X)).all()


def with_text(X):
    return np.column_stack([X.astype(object), np.resize(["red", "blue"], len(X)).astype(object)])


@pytest.mark.parametrize("make", [np.asarray, with_text], ids=["dense", "categories"])
def test_features_whose_deviations_overflow_are_called_so(unchanged, make):
    """One absurd value is limited; a column of which no deviation can be computed is refused, by its name."""
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    huge = X.copy()
    huge[:3, 1] = 1.7e308, 1e307, -1.7e308
    for model, known, match in (  # rows without a deviation are not limited
        (ParameterFreeRegressor(), 1, r"Row 0 \(largest feature 1e\+307"),
        (ParameterFreeClassifier(), 2, "means and deviations of the features of rows up to row 0, .* are not finite"),
    ):
        model.fit(make(X), y)
        model.partial_fit(make(np.where(np.abs(X) == np.abs(X).max(), 1e300, X)), y)
        assert np.isfinite(model.predict(make(X))).all()
        model.fit(make(huge[:known]), y[:known])
        with unchanged(model, match):
            model.partial_fit(make(huge[known : known + 1]), y[known : known + 1])


def test_the_member_that_refuses_a_row_is_known():
    """Gradient descent members learn a dense row first, although other members stand between them in the list."""
    gentle, wild = (
        MirrorDescentRegressor(divergence="squared_euclidean", update="explicit", learning_rate="constant", eta0=eta)
        for eta in (1e-3, 1e300)
    )
    adaptive = MirrorDescentRegressor()
    model = ParameterFreeRegressor(members=[gentle, adaptive, gentle, wild, adaptive])
    model.partial_fit(np.zeros((3, 1)), [0.0, 1.0, 3.0])
    with pytest.raises(ValueError, match=r"row 0.*eta0=1e\+300"):
        model.partial_fit([[1e5], [1e5]], [9.0, 1.0])
    assert model._learner.refusing == 3


def test_errors_say_what_to_do():
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.raises(ValueError, match=r"members\[1\] must be of type .*; got LogDetMetricLearner"):
        ParameterFreeClassifier(members=[MirrorDescentClassifier(), LogDetMetricLearner()]).fit(X, y)
    with pytest.raises(ValueError, match=r"members\[0\] must be of type .*; got ImplicitGDRegressor"):
        ParameterFreeClassifier(members=[ImplicitGDRegressor()]).fit(X, y)
    for members in ([("name", ForwardRegressor())], [None], [5], "names", [ForwardRegressor]):
        with pytest.raises(ValueError, match=r"members\[0\] must be of type .*Regressor or .*; got "):
            ParameterFreeRegressor(members=members).fit(X, y)
    with pytest.raises(ValueError, match="members must hold at least one model"):
        ParameterFreeRegressor(members=[]).fit(X, y)
    with pytest.raises(ValueError, match="'share' parameter"):
        ParameterFreeClassifier(share=1.0).fit(X, y)
    with pytest.raises(AttributeError, match="ParameterFreeClassifier has not learned a row yet"):
        _ = ParameterFreeClassifier().weights_


@pytest.mark.parametrize("first", [np.array, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("cut", [1, 7, 120])
def test_members_that_map_rows_in_different_ways_learn_as_by_themselves(cut, first):
    """Rows as they are, standardised, indicators of columns and of pairs that share their bins; dense and sparse."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:240, :6], y[:240]
    make = partial(MirrorDescentClassifier, divergence="diagonal_newton")
    members = [
        make(standardize=False),
        make(thresholds="no_interactions"),
        make(standardize=True),
        make(thresholds=[(0, 1), (4, 2)]),
        ForwardClassifier(standardize=True),
        make(thresholds="pairwise", divergence="normalized_adagrad", average=3),
        make(thresholds="no_interactions", divergence="squared_euclidean", learning_rate="sqrt"),
        make(),
    ]
    mixture, alone = ParameterFreeClassifier(members=members), [clone(member) for member in members]
    for start in range(0, len(y), cut):
        rows = first(X[start : start + cut]) if start == 0 else X[start : start + cut]
        for model in (mixture, *alone):
            model.partial_fit(rows, y[start : start + cut], classes=[0, 1])
    for member, own in zip(mixture.estimators_, alone, strict=True):
        assert_array_equal(member.decision_function(X), own.decision_function(X))
    maps = [learner.row_map for learner in mixture._learner.learners]
    assert maps[1] is maps[6] and maps[2] is maps[4] is maps[7] and maps[0] is None
    assert len({id(maps[number].bins) for number in (1, 3, 5, 6)}) == 1


def test_rows_that_come_sparse_have_more_rates():
    X, y = load_breast_cancer(return_X_y=True)

    def rates(X):
        members = ParameterFreeClassifier(random_features=0, thresholds=False).fit(X, y[:50]).estimators_
        return [m.eta0 for m in members if isinstance(m, MirrorDescentClassifier) and m._link == "logistic"]

    dense, stored = rates(X[:50]), rates(sparse.csr_matrix(X[:50]))
    assert 0.3 in stored and 0.3 not in dense and len(stored) == 10 and len(dense) == 11


def test_tags_say_which_targets_are_admissible():
    assert not get_tags(ParameterFreeRegressor()).target_tags.positive_only
    assert not get_tags(ParameterFreeRegressor(loss="no such loss")).target_tags.positive_only
    for model in (
        *(ParameterFreeRegressor(loss=loss) for loss in ("poisson", "gamma", "log_loss", PoissonLoss())),
        ParameterFreeRegressor(loss="poisson", members=[ForwardRegressor(loss="poisson")]),
    ):
        assert get_tags(model).target_tags.positive_only
        with pytest.raises(ValueError, match="row 1"):
            model.fit(np.eye(3), [0.5, -1.0, 0.5])


# --- the best member may change ---------------------------------------------------------------------------------------


def stream(seed, labels, n_parts, n=4000, d=5):
    """Rows whose targets follow other coefficients in each part."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    a = (X * np.repeat(rng.normal(size=(n_parts, d)), n // n_parts, axis=0)).sum(axis=1)
    return X, (rng.random(n) < 1 / (1 + np.exp(-3 * a))) if labels else a + 0.3 * rng.normal(size=n)


def loss(labels, share, X, y):
    make = ParameterFreeClassifier if labels else ParameterFreeRegressor
    return make(share=share, random_features=0).fit(X, y).cumulative_loss_


@pytest.mark.parametrize("labels", [True, False])
def test_a_share_is_ahead_where_coefficients_change(labels):
    """Over several streams: which members lead before the first change, and so the gain, depends on the first rows."""
    streams = [stream(seed, labels, n_parts=4) for seed in range(8)]
    shared, alone = (np.array([loss(labels, share, X, y) for X, y in streams]) for share in (0.001, 0.0))
    assert shared.sum() < 0.97 * alone.sum()
    assert (shared < 1.01 * alone).all()


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_a_share_costs_little_where_nothing_drifts(seed, labels):
    X, y = stream(seed, labels, n_parts=1)
    assert loss(labels, 0.001, X, y) < 1.02 * loss(labels, 0.0, X, y)


# --- a class of one in a thousand -------------------------------------------------------------------------------------


ONE_IN = 1000
N = 20_000


def rare_stream(seed):
    """Rows and their probabilities of the rare class, which depend on three columns weakly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * N, 3))
    a = X @ (rng.choice([-0.5, 0.5], size=3) * rng.uniform(0.7, 1.3, size=3))
    p = expit(a + brentq(lambda b: expit(a + b).mean() - 1 / ONE_IN, -20.0, 0.0))
    return X, p, rng.random(2 * N) < p


def log_loss(p, q):
    return -np.mean(xlogy(p, q) + xlogy(1 - p, 1 - q))


def order(p, q):
    """The probability that a row of the rare class has a larger q than another one (AUC)."""
    p = p[np.argsort(q)]
    return np.cumsum(1 - p) @ p / (p.sum() * (1 - p).sum())


@pytest.mark.parametrize("n_common", [1, 2])
def test_rare_classes_are_told_apart(n_common):
    """Better than by their share alone, without and with combinations; common classes may be as tosses of a coin."""
    found = []
    for seed in range(6):
        X, p, rare = rare_stream(seed)
        y = np.where(rare, 2, np.random.default_rng(seed).integers(n_common, size=2 * N))
        of_both = []
        for stacking in (False, True):
            model = ParameterFreeClassifier(
                stacking=stacking, memory=False, random_features=0, thresholds=False, shuffle=False
            )
            model.fit(X[:N], y[:N])
            q = model.predict_proba(X[N:])[:, -1]
            of_both.append((q.mean() / p[N:].mean(), log_loss(p[N:], q), order(p[N:], q)))
        found.append(of_both)
    (_, loss, auc), (share, stacked_loss, stacked_auc) = np.mean(found, axis=0)
    assert max(loss, stacked_loss) < log_loss(1 / ONE_IN, 1 / ONE_IN)
    assert stacked_auc > auc - 0.002 and stacked_loss < loss + 1e-5
    assert 1 / 1.15 < share < 1.15
