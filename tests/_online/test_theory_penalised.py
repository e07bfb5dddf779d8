"""Rates 1 / (H t) for penalties that are H-strongly convex: a regret of O(log T) on the penalised losses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from scipy.optimize import minimize
from sklearn.base import clone

from onlinebregman.constraints import Box, L2Ball, Simplex
from onlinebregman.losses import EpsilonInsensitiveLoss, HingeLoss, HuberLoss, LogisticLoss, SquaredLoss
from onlinebregman.penalties import L1, L2, ElasticNet, Penalty
from onlinebregman.schedules import StronglyConvex

X_BOUND = 0.7
PENALTIES = [L2(0.05), L2(3.0), ElasticNet(0.5, 0.6)]
LOSSES = [SquaredLoss(), LogisticLoss(), HingeLoss(), EpsilonInsensitiveLoss(0.2), HuberLoss(0.5)]
CASES = [
    (update, loss)
    for update in ("explicit", "implicit", "importance")
    for loss in LOSSES
    if update != "explicit" or not isinstance(loss, SquaredLoss)
]


def penalised_model(penalty, **parameters):
    settings = {"divergence": "squared_euclidean", "fit_intercept": False, "learning_rate": "theory"}
    return MirrorDescentRegressor(penalty=penalty, **settings | parameters)


def penalised_stream(penalty, update, loss, rng, *, n=3, rows=60, kind="far", heaviest=1.0, constraint=None):
    """A stream within its bounds, the model that learned it, and the sum of the penalties R(w_t) of its weights."""
    signs = isinstance(loss, LogisticLoss | HingeLoss)
    model = penalised_model(penalty, loss=loss, update=update, constraint=constraint)
    model.set_params(data_bounds={"x": X_BOUND, "u": 2.0} | ({"y": 1.5} if isinstance(loss, SquaredLoss) else {}))
    X, y, w, paid = np.zeros((rows, n)), np.empty(rows), np.zeros(n), 0.0
    weights = np.full(rows, heaviest) if rng.uniform() < 0.5 else heaviest * rng.uniform(0.01, 1.0, size=rows)
    direction = rng.normal(size=n)
    for t in range(rows):
        if kind == "random" or (kind == "far" and not w.any()):
            X[t] = rng.normal(size=n) * rng.choice([0.0, 1.0, 1.0])
        elif kind == "alternating":
            X[t] = direction * (-1.0) ** t
        else:
            X[t] = w * rng.choice([-1.0, 1.0]) + 0.1 * rng.normal(size=n)
        X[t] *= (X_BOUND if kind != "random" else X_BOUND * rng.uniform()) / (np.linalg.norm(X[t]) or 1.0)
        away = -1.0 if X[t] @ w > 0 else 1.0
        if signs:
            y[t] = away if kind != "random" else rng.choice([-1.0, 1.0])
            y[t] = (y[t] + 1) / 2 if isinstance(loss, LogisticLoss) else y[t]
        else:
            y[t] = 1.5 * (away if kind != "random" else rng.uniform(-1, 1))
        paid += penalty.value(w)
        model.partial_fit(X[t : t + 1], y[t : t + 1], weights[t : t + 1])
        w = model.coef_
    return X, y, weights, model, paid


def penalised_comparators(penalty, loss, X, y, weights, rng, constraint=None, radius=2.0):
    """Comparators within the radius and the constraint, among them nearly the best one."""

    def objective(u):
        return float((weights * loss.value(X @ u, y)).sum()) + len(y) * penalty.value(u)

    best = minimize(objective, np.full(X.shape[1], 1e-3), method="Nelder-Mead", options={"maxiter": 150}).x
    for u in [best, np.zeros_like(best), *(rng.normal(size=(5, len(best))) * rng.uniform(0, 2, size=(5, 1)))]:
        u = u * min(1.0, radius / (np.linalg.norm(u) or 1.0))
        if constraint is not None:
            u = constraint.project(_EUCLIDEAN, u)
        yield objective(u)


_EUCLIDEAN = penalised_model(None).divergence_


@pytest.mark.parametrize(("update", "loss"), CASES, ids=repr)
@settings(max_examples=6)
@given(
    seed=st.integers(0, 2**32 - 1),
    penalty=st.sampled_from(PENALTIES),
    kind=st.sampled_from(["far", "alternating", "random"]),
    heaviest=st.sampled_from([1.0, 3.0]),
    constraint=st.sampled_from([None, L2Ball(0.4), Box(-0.3, 1.0)]),
)
def test_the_theorem(update, loss, seed, penalty, kind, heaviest, constraint):
    rng = np.random.default_rng(seed)
    X, y, weights, model, paid = penalised_stream(
        penalty, update, loss, rng, kind=kind, heaviest=heaviest, constraint=constraint
    )
    assert model._schedule() == StronglyConvex(penalty.l2).scaled(1.0)
    for objective in penalised_comparators(penalty, loss, X, y, weights, rng, constraint):
        assert model.cumulative_loss_ - objective <= model.regret_bound_ * (1 + 1e-9)
        if constraint is None:  # of the stronger statement, with the penalties of the run
            assert model.cumulative_loss_ + paid - objective <= model.regret_bound_ * (1 + 1e-9)


def test_the_bound_is_that_of_the_theorem():
    bounds = {"x": 2.0, "u": 0.1}
    model = penalised_model("l2", alpha=0.5, loss="absolute_error", data_bounds=bounds)
    X, y = np.full((100, 1), 2.0), np.full(100, 1e9)
    model.partial_fit(X[:1], y[:1])
    assert_allclose(model.regret_bound_, 0.5 * 0.01 / 2 + 4 / (2 * 0.5))
    model.partial_fit(X[1:], y[1:])
    assert_allclose(model.regret_bound_, 0.5 * 0.01 / 2 + 4 / (2 * 0.5) * (1 + np.log(100)))


def test_a_run_of_the_largest_regret():
    """Alternating signs of the slope: a regret of a constant share of the bound, whatever the number of rows."""
    for rows in (10, 1000):
        model = penalised_model("l2", alpha=1.0, loss="absolute_error", update="explicit")
        model.set_params(data_bounds={"x": 1.0, "u": 1e-9})
        w, paid = 0.0, 0.0
        for _ in range(rows):
            paid += w * w / 2
            model.partial_fit([[1.0]], [-1e3 if w > 0 else 1e3])
            w = model.coef_[0]
        regret = model.cumulative_loss_ + paid - 1e3 * rows  # against 0
        assert 0.3 * model.regret_bound_ < regret <= model.regret_bound_


def test_the_regret_grows_like_the_logarithm_of_the_number_of_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.sign(X @ [1.0, -1.0, 0.5] + 0.3 * rng.normal(size=len(X)))
    model = MirrorDescentClassifier(
        divergence="squared_euclidean",
        penalty="elasticnet",
        alpha=0.1,
        l1_ratio=0.5,
        learning_rate="theory",
        data_bounds={"x": 1.0, "u": 2.0},
        fit_intercept=False,
    )
    bounds = [clone(model).partial_fit(X[:T], y[:T], classes=[-1, 1]).regret_bound_ for T in (1000, 100_000)]
    assert bounds[1] - bounds[0] == pytest.approx(np.log(100) / (2 * 0.05))
    three = model.partial_fit(X, np.where(X[:, 0] > 0.5, 2.0, y), classes=[-1.0, 1.0, 2.0])
    assert three.regret_bound_ == pytest.approx(3 * bounds[1])


class Cost(Penalty):
    def value(self, w):
        return float(np.sum(w))

    def prox(self, divergence, w, eta):
        return divergence.step(w, np.ones_like(w), eta)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": "l1"}, r"requires divergence='squared_euclidean' and an L2 part .*; got .* and L1"),
        ({"penalty": L2(0.0)}, "an L2 part of the penalty .* alpha > 0"),
        ({"penalty": Cost()}, r"an L2 part of the penalty .*; got .* and Cost\(\)"),
        ({"divergence": "p_norm", "penalty": L1(0.1)}, r"requires divergence='squared_euclidean' .*; got PNorm"),
        ({"fit_intercept": True}, "requires fit_intercept=False, since the intercept is not penalised; got True"),
        ({"loss": "poisson"}, r"squared or have a bounded slope .*; got PoissonLoss\(\)"),
        ({"update": "explicit"}, "for the squared loss requires update='implicit' or 'importance'"),
        ({"constraint": Simplex(1.0)}, "a constraint that contains 0, which bound its slope"),
        ({"init": 0.5, "data_bounds": {"x": 1.0, "y": 1.0, "divergence": 1.0}}, "init=None and a constraint"),
        ({"data_bounds": {"x": 1.0, "u": 1.0}}, r"needs data_bounds\['y'\]"),
        ({"data_bounds": {"x": 1.0, "y": 1.0}}, r"needs data_bounds\['u'\]"),
    ],
    ids=str,
)
def test_what_a_penalised_run_lacks(parameters, message, unchanged):
    settings = {"penalty": "l2", "alpha": 0.1, "data_bounds": {"x": 1.0, "u": 1.0, "y": 1.0}}
    model = penalised_model(**settings | parameters)
    with unchanged(model, message):
        model.partial_fit(np.eye(3), np.ones(3))
