"""Regret of models that learn shards in parallel rounds: the certificate of the mixture against any comparator.

Each shard s of a round starts at w_r, ends at w_s, and has the certificate of a run,

    sum eta_t (L_t(w_t) - L_t(u))  <=  D(u, w_r) - D(u, w_s) + S_s.

D(u, f^-1(theta)) is convex in theta, so that the mixture w_{r+1} of theta = sum share_s theta_s has D(u, w_{r+1}) <=
sum share_s D(u, w_s): the mean of the certificates telescopes over rounds. What is given away is the gap of this
inequality and, for the squared loss, share_s eta_t (a - a_u)^2 / 2.
"""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from regret_cases import CONSTRAINED, GEOMETRIES, LOSSES, MARGIN_LOSSES, comparator, geometries, model_of
from replica import MIRRORS, Cosh, Replica, start_of

from onlinebregman import (
    BurgRegressor,
    ImplicitGDRegressor,
    LogDetMetricLearner,
    MatrixBurgRegressor,
    MEGKernelLearner,
    merge,
)
from onlinebregman._online.start import starting_weights
from onlinebregman.divergences import BinaryEntropy, SimplexEntropy
from onlinebregman.losses import resolve_loss
from onlinebregman.schedules import Schedule


class Rounds:
    """A model that learns shards in rounds, row by row, with what is needed to recompute its certificate.

    `shards` are (X, y, weights); `against`, if given, chooses the target of a row from the score of the model.
    """

    def __init__(self, model, shards, n_rounds, against=None):
        self.loss = resolve_loss(model.loss)
        X, y, _ = shards[0]
        self.model = model.partial_fit(X[:1], y[:1], sample_weight=[0.0])  # the start
        self.rows, self.ends, self.jensen, self.stored = [], [], [], 0.0
        total = sum(h.sum() for *_, h in shards)
        shares = [h.sum() / total for *_, h in shards]
        for _ in range(n_rounds):
            parts = [copy.copy(self.model) for _ in shards]
            for part, share, shard in zip(parts, shares, shards, strict=True):
                self._learn(part, share, *shard, against)
            self.model = merge(parts, shares, start=self.model)
            self._stored(self.model)
            ends = [part._learner.position for part in parts]
            self.ends += ends
            self.jensen.append((shares, ends, self.model._learner.position))

    def _learn(self, part, share, X, y, h, against):
        for x, target, weight in zip(X, y, h, strict=True):
            score = float(x @ part.coef_ + part.intercept_)
            target = target if against is None else against(score)
            rate = float(part._schedule()(part.t_ + 1)) if weight > 0 else 0.0
            part.partial_fit(x[None], np.array([target]), sample_weight=np.array([weight]))
            after = float(x @ part.coef_ + part.intercept_)
            self.rows.append((share, rate, weight, score, after, target, x))
            self._stored(part)

    def _stored(self, model):
        if isinstance(model.divergence_, BinaryEntropy):  # 1 - w has few digits near 1, see `test_regret.Run`
            rest = 1 - model._learner.position[0]
            self.stored += np.where(rest <= 2.0**-53, np.inf, 2.0**-52 / rest).sum()

    def columns(self):
        *numbers, X = zip(*self.rows, strict=True)
        return *map(np.array, numbers), np.array(X)

    def weighted_loss(self):
        share, rate, weight, score, _, y, _ = self.columns()
        return float((share * rate * weight) @ self.loss.value(score, y))

    def left_side(self, u, b=0.0, *, rated=True):
        share, rate, weight, score, _, y, X = self.columns()
        factors = share * rate * weight if rated else weight
        return float(factors @ (self.loss.value(score, y) - self.loss.value(X @ u + b, y)))

    def divergence(self, u, b, position):
        w, intercept = position
        point = starting_weights(self.model.divergence_, u, len(u), self.model.signed, name="coef")
        return self.model.divergence_.divergence(point, w) + (b - intercept) ** 2 / 2

    def given_away(self, u, b=0.0):
        """By convexity of the squared loss, and of D(u, f^-1(theta)) in theta."""
        share, rate, weight, score, after, _, X = self.columns()
        tangent = score if self.model.update == "explicit" else after
        by_loss = float((share * rate * weight) @ (tangent - X @ u - b) ** 2) / 2
        return by_loss + sum(
            share @ np.array([self.divergence(u, b, end) for end in ends]) - self.divergence(u, b, mixed)
            for share, ends, mixed in ((np.array(shares), ends, mixed) for shares, ends, mixed in self.jensen)
        )

    def rounding(self, u, b=0.0):
        """1e-9 of the sizes of all terms of the inequality."""
        share, rate, weight, score, after, y, X = self.columns()
        slopes = np.abs(self.loss.derivative(score, y)) * (np.abs(score) + np.abs(after))
        sizes = (share * rate * weight) @ (self.loss.value(score, y) + self.loss.value(X @ u + b, y) + slopes)
        ends = [self.model._learner.origin, *self.ends]
        return 1e-9 * float(1e-3 + sizes + sum(self.divergence(u, b, end) for end in ends)) + self.stored


def sharded(rng, loss, n, *, contradictory=False, sizes=(5, 8, 3)):
    """Shards of unequal size, with weights of 0 among others; contradictory ones want opposite models."""
    shards, w = [], rng.normal(size=n)
    for number, rows in enumerate(sizes):
        X = rng.normal(size=(rows, n)) * rng.choice([0.3, 1.0, 3.0])
        raw = X @ w * (-1) ** (number * contradictory) + 0.3 * rng.normal(size=rows)
        y = {
            "log_loss": (raw > 0).astype(float),
            "poisson": np.round(np.exp(np.clip(raw, None, 2.0))),
            **dict.fromkeys(["tweedie", "gamma"], np.exp(np.clip(raw, -2.0, 2.0))),
            **dict.fromkeys(MARGIN_LOSSES, np.where(raw > 0, 1.0, -1.0)),
        }.get(loss, raw)
        shards.append((X, y, rng.choice([0.0, 0.5, 1.0, 2.0], size=rows) + (np.arange(rows) == 0)))
    return shards


def learned(*arguments, update, **more):
    """Rounds; examples whose explicit steps leave the domain are discarded."""
    try:
        return Rounds(*arguments, **more)
    except ValueError:
        assert update == "explicit"
        assume(False)


@geometries
@settings(max_examples=8)
@given(
    seed=st.integers(0, 2**32 - 1),
    update=st.sampled_from(["explicit", "implicit", "importance"]),
    loss=st.sampled_from(LOSSES),
    learning_rate=st.sampled_from(["constant", "sqrt"]),
    rate=st.floats(-2.0, 1.0),
    contradictory=st.booleans(),
    fit_intercept=st.booleans(),
)
def test_the_certificate_holds(geometry, seed, update, loss, learning_rate, rate, contradictory, fit_intercept):
    rng = np.random.default_rng(seed)
    eta0 = 10**rate * (0.01 if update == "explicit" else 1.0)
    settings = {"update": update, "eta0": eta0, "learning_rate": learning_rate, "fit_intercept": fit_intercept}
    model = model_of(geometry, loss, track_regret=True, **settings)
    run = learned(model, sharded(rng, loss, 3, contradictory=contradictory), 3, update=update)
    assert_allclose(run.model.weighted_loss_, run.weighted_loss(), rtol=1e-9, atol=1e-12)
    for u in [comparator(*GEOMETRIES[geometry], rng, 3) for _ in range(4)] + [run.model.coef_]:
        b = float(rng.normal()) * fit_intercept
        with np.errstate(over="ignore", invalid="ignore"):
            left, rounding = run.left_side(u, b), run.rounding(u, b)
        if np.isfinite(left) and np.isfinite(rounding):
            assert left <= run.model.regret_certificate(u, b) + rounding


@geometries
@pytest.mark.parametrize("update", ["explicit", "implicit"])
@settings(max_examples=4)
@given(seed=st.integers(0, 2**32 - 1), rate=st.floats(-2.0, 0.0))
def test_what_is_given_away_is_known_for_the_squared_loss(geometry, update, seed, rate):
    rng = np.random.default_rng(seed)
    eta0 = 10**rate * (0.01 if update == "explicit" else 1.0)
    model = model_of(geometry, "squared_error", track_regret=True, update=update, eta0=eta0, learning_rate="sqrt")
    run = learned(model, sharded(rng, "squared_error", 3), 3, update=update)
    for _ in range(3):
        u, b = comparator(*GEOMETRIES[geometry], rng, 3), float(rng.normal())
        gap = run.given_away(u, b)
        assert abs(run.model.regret_certificate(u, b) - run.left_side(u, b) - gap) <= run.rounding(u, b) + 1e-9 * gap


POTENTIALS = {  # F, given the number of features
    "squared_euclidean": lambda w, n: w @ w / 2,
    "relative_entropy": lambda w, n: (w * np.log(w) - w).sum(),
    "simplex_entropy": lambda w, n: (w * np.log(w)).sum(),
    "burg": lambda w, n: -np.log(w).sum(),
    "binary_entropy": lambda w, n: (w * np.log(w) + (1 - w) * np.log(1 - w)).sum(),
    "cosh": lambda w, n: np.cosh(w).sum(),
}


@pytest.mark.parametrize("update", ["explicit", "implicit"])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("name", POTENTIALS)
def test_it_is_that_of_a_replica_in_numpy(name, scaled, update):
    """The right side from the definitions: D by F and f, S by D and the losses, theta by its mean."""
    rng = np.random.default_rng(5)
    n, eta = 4, 0.02 * (3 if scaled else 1)
    F, f, inverse = POTENTIALS[name], MIRRORS[name].f, MIRRORS[name].inverse
    shards, first = sharded(rng, "squared_error", n), start_of(name, rng, n)

    def D(u, w):
        return F(u, n) - F(w, n) - f(w) @ (u - w)

    def both(u, b, w, c):
        return D(u, w) + (b - c) ** 2 / 2

    total = sum(h.sum() for *_, h in shards)
    theta, b, slack, lost = f(first), 0.0, 0.0, 0.0
    for _ in range(2):
        ends = []
        for X, y, h in shards:
            share = h.sum() / total
            each = Replica(name, "squared_error", update, first, eta0=eta)
            each.theta, each.b = theta, b
            for x, target, weight in zip(X, y, h, strict=True):
                before, old = (each.coef, each.b), (x @ each.coef + each.b - target) ** 2 / 2
                if weight > 0:
                    each.learn(x, target, weight)
                after, new = (each.coef, each.b), (x @ each.coef + each.b - target) ** 2 / 2
                lost += share * eta * weight * old
                gained = eta * weight * (old - new) - both(*after, *before)
                slack += share * (both(*before, *after) if update == "explicit" else gained)
            ends.append((share, each.theta, each.b))
        theta, b = (sum(share * value for share, value in zip(*pair, strict=True)) for pair in _by_share(ends))
    model = MirrorDescentRegressor(
        divergence=Cosh() if name == "cosh" else name,
        update=update,
        init=first,
        eta0=0.02,
        learning_rate=Schedule(eta, 0.0),
        track_regret=True,
    )
    run = Rounds(model, shards, 2)
    last = inverse(theta)
    assert_allclose(run.model.coef_, last, rtol=1e-9)
    assert_allclose(run.model.weighted_loss_, lost, rtol=1e-9)
    for _ in range(5):
        u, c = start_of(name, rng, n), float(rng.normal())
        expected = both(u, c, first, 0.0) - both(u, c, last, b) + slack
        assert_allclose(run.model.regret_certificate(u, c), expected, rtol=1e-8)


def _by_share(ends):
    shares, thetas, intercepts = zip(*ends, strict=True)
    return (shares, thetas), (shares, intercepts)


@pytest.mark.parametrize(("geometry", "constraint"), CONSTRAINED, ids=str)
@settings(max_examples=2)
@given(
    seed=st.integers(0, 2**32 - 1),
    update=st.sampled_from(["explicit", "implicit", "importance"]),
    rate=st.floats(-2.0, 1.0),
)
def test_mixtures_stay_within_constraints_and_the_certificate_holds(geometry, constraint, seed, update, rate):
    """f^-1 of a mean of theta may lie outside; its projection is nearer to every u of the constraint."""
    rng = np.random.default_rng(seed)
    divergence = SimplexEntropy() if geometry == "simplex_entropy" else GEOMETRIES[geometry][0]
    eta0 = 10**rate * (0.01 if update == "explicit" else 1.0)
    model = MirrorDescentRegressor(
        divergence=divergence, constraint=constraint, update=update, eta0=eta0, track_regret=True
    )
    run = learned(model, sharded(rng, "squared_error", 4, contradictory=True), 3, update=update)
    for _, _, (w, _) in run.jensen:
        assert constraint.contains(w)
    for _ in range(4):
        u = constraint.project(divergence, divergence.inverse_mirror(-np.abs(rng.normal(size=4))))
        u = np.minimum(u, 1 - 1e-9) if geometry == "binary_entropy" else u
        assert run.left_side(u, 0.3) <= run.model.regret_certificate(u, 0.3) + run.rounding(u, 0.3)


@pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet"])
@pytest.mark.parametrize("geometry", ["squared_euclidean", "relative_entropy", "burg", "signed relative_entropy"])
@settings(max_examples=4)
@given(seed=st.integers(0, 2**32 - 1), update=st.sampled_from(["explicit", "implicit"]), sparse=st.booleans())
def test_penalties_are_part_of_it(geometry, penalty, seed, update, sparse):
    """R(u) - R(w_{t+1}) times rate and share is on the right side, as each shard has its own inequality."""
    rng = np.random.default_rng(seed)
    shards = sharded(rng, "squared_error", 3, contradictory=True)
    if sparse:
        shards = [(X * (rng.uniform(size=X.shape) < 0.5), y, h) for X, y, h in shards]
    eta0 = 0.02 if update == "explicit" else 0.5
    terms = {"update": update, "eta0": eta0, "penalty": penalty, "alpha": 0.3, "track_regret": True}
    run = learned(model_of(geometry, "squared_error", **terms), shards, 3, update=update)
    for _ in range(4):
        u, b = comparator(*GEOMETRIES[geometry], rng, 3), float(rng.normal())
        assert run.left_side(u, b) <= run.model.regret_certificate(u, b) + run.rounding(u, b)


@pytest.mark.parametrize("multi_class", ["ovr", "multinomial"])
def test_classifiers_have_one_for_each_loss(multi_class):
    rng = np.random.default_rng(1)
    X, labels = rng.normal(size=(40, 3)), np.sort(rng.integers(3, size=40))  # each shard sees few of the classes
    model = MirrorDescentClassifier(
        divergence="p_norm", multi_class=multi_class, eta0=0.5, learning_rate="constant", track_regret=True
    )
    model.partial_fit(X[:1], labels[:1], classes=[0, 1, 2], sample_weight=[0.0])
    shards, u, b, left = np.split(np.arange(40), [6, 25]), rng.normal(size=(3, 3)), rng.normal(size=3), 0.0

    def losses(coef, intercept, x, label):
        scores = coef @ x + intercept
        if multi_class == "multinomial":
            return np.array([np.logaddexp.reduce(scores) - scores[label]])
        return np.logaddexp(0, np.where(np.arange(3) == label, -scores, scores))

    for _ in range(3):
        parts = [copy.copy(model) for _ in shards]
        for part, rows in zip(parts, shards, strict=True):
            for i in rows:
                regret = losses(part.coef_, part.intercept_, X[i], labels[i]) - losses(u, b, X[i], labels[i])
                left = left + len(rows) / 40 * 0.5 * regret
                part.partial_fit(X[i : i + 1], labels[i : i + 1])
        model = merge(parts, [len(rows) / 40 for rows in shards], start=model)
    assert model.regret_certificate(u, b).shape == left.shape == ((1,) if multi_class == "multinomial" else (3,))
    assert (left <= model.regret_certificate(u, b)).all()


def matrix(rng, d):
    U = rng.normal(size=(d, d))
    return U @ U.T / np.trace(U @ U.T)


@pytest.mark.parametrize(
    "learner",
    [
        MEGKernelLearner(eta0=1.5),
        MEGKernelLearner(eta0=0.5, update="explicit", learning_rate="sqrt"),
        MatrixBurgRegressor(),
        LogDetMetricLearner(learning_rate="sqrt"),
        LogDetMetricLearner(eta0=2.0, scale_eta=False),
    ],
    ids=str,
)
def test_matrices_have_one(learner):
    """From the losses of single instances; their rates are those that the weighted losses tell."""
    rng, pairs = np.random.default_rng(2), isinstance(learner, LogDetMetricLearner)
    Z = rng.normal(size=(30, 4)) / 3
    y = rng.uniform(0.0, 0.5, size=30)
    model = copy.deepcopy(learner).set_params(track_regret=True)

    def learn(each, i, **weight):
        if pairs:
            return each.partial_fit_pairs(np.array([Z[i], np.zeros(4)]), [[0, 1]], [y[i]], **weight)
        return each.partial_fit(Z[i : i + 1], y[i : i + 1], **weight)

    def loss(W, i):
        return (Z[i] @ W @ Z[i] - y[i]) ** 2 / 2

    def weights(each):
        return each.get_mahalanobis_matrix() if pairs else each.kernel_

    learn(model, 0, sample_weight=[0.0])
    comparators, left = [matrix(rng, 4) for _ in range(10)], np.zeros(10)
    shards = np.split(np.arange(30), [4, 13])
    for _ in range(3):
        parts = [copy.copy(model) for _ in shards]
        for part, rows in zip(parts, shards, strict=True):
            for i in rows:
                old, before = loss(weights(part), i), part.weighted_loss_
                learn(part, i)
                rate = (part.weighted_loss_ - before) / old
                left += len(rows) / 30 * rate * np.array([old - loss(U, i) for U in comparators])
        model = merge(parts, [len(rows) / 30 for rows in shards], start=model)
    certificates = np.array([model.regret_certificate(U) for U in comparators])
    assert (left <= certificates + 1e-9).all()
    assert (certificates > 0).any()  # it says more than 0 <= 0


# --- other bounds -----------------------------------------------------------------------------------------------------


def mixed(*shares, rounds=1, model=None, rate=0.3):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10, 2)), rng.normal(size=10)
    model = ImplicitGDRegressor(eta0=rate, learning_rate="constant", track_regret=True) if model is None else model
    model.partial_fit(X[:1], y[:1], sample_weight=[0.0])
    for _ in range(rounds):
        model = merge([copy.copy(model).partial_fit(X, y) for _ in shares], shares, start=model)
    return model, X, y


def test_only_the_certificate_is_that_of_a_mixture():
    model, X, y = mixed(0.4, 0.6, rounds=2)
    assert pickle.loads(pickle.dumps(model)).regret_certificate([1.0, 1.0]) == model.regret_certificate([1.0, 1.0])
    for bound in (model.regret_bound, model.partial_fit(X, y).regret_bound, lambda u: model.optimality_gap(1.0)):
        with pytest.raises(ValueError, match="must be for one run over all rows"):
            bound([1.0, 1.0])
    model.set_params(eta0=0.4)
    later = merge([copy.copy(model).partial_fit(X, y) for _ in range(2)], start=model)
    for each in (model, later, later.set_params(eta0=0.3)):
        with pytest.raises(ValueError, match=r"eta0 was changed from 0\.3 to 0\.4|must be for one run") as error:
            each.regret_certificate([1.0, 1.0])
        assert "eta0 was changed" in str(error.value)


# --- what has none ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("divergence", ["adagrad", "normalized_adagrad", "diagonal_newton"])
def test_adaptive_divergences_are_refused(divergence):
    model = MirrorDescentRegressor(divergence=divergence, track_regret=True)
    model.partial_fit([[1.0]], [1.0], sample_weight=[0.0])
    with pytest.raises(TypeError, match=r"cannot be merged: with track_regret=True and .*each row changes this one"):
        merge([copy.copy(model)], [1.0], start=model)


def test_a_run_that_was_not_tracked_and_other_bounds_are_refused():
    model, *_ = mixed(0.5, 0.5, model=ImplicitGDRegressor())
    with pytest.raises(ValueError, match="no regret certificate of this run; set track_regret=True"):
        model.regret_certificate([1.0, 1.0])
    start = MatrixBurgRegressor(track_regret=True).partial_fit([[0.5, 0.1]], [0.1], sample_weight=[0.0])
    matrices = merge([copy.copy(start).partial_fit([[0.5, 0.1]], [0.1]) for _ in range(2)], [0.5, 0.5], start=start)
    assert np.isfinite(matrices.regret_certificate(np.eye(2) / 2))
    with pytest.raises(ValueError, match="must be for one run"):
        matrices.loss_bound(np.eye(2) / 2)
    kept = BurgRegressor(update="gradient", eta0=1e6, learning_rate="constant", fit_intercept=False)
    kept.partial_fit([[0.5, 0.1]], [0.1])
    assert np.isfinite(kept.loss_bound([0.5, 0.5]))
    with pytest.raises(ValueError, match="must be for one run"):
        merge([copy.copy(kept)], [1.0], start=kept).loss_bound([0.5, 0.5])


def test_an_intercept_that_is_not_learned_must_be_that_of_the_comparator():
    model, *_ = mixed(0.5, 0.5, model=ImplicitGDRegressor(fit_intercept=False, track_regret=True))
    model.regret_certificate([1.0, 1.0])
    with pytest.raises(ValueError, match=r"intercept must be that of the run, which learns none, 0\.0; got 0\.5"):
        model.regret_certificate([1.0, 1.0], 0.5)
