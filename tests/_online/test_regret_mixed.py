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
from numpy.testing import assert_allclose
from raw import MirrorDescentRegressor
from replica import MIRRORS, Cosh, Replica, start_of

from onlinebregman import (
    BurgRegressor,
    ImplicitGDRegressor,
    MatrixBurgRegressor,
    merge,
)
from onlinebregman.schedules import Schedule


def sharded(rng, n, sizes=(5, 8, 3)):
    """Shards of unequal size, with weights of 0 among others."""
    shards, w = [], rng.normal(size=n)
    for rows in sizes:
        X = rng.normal(size=(rows, n)) * rng.choice([0.3, 1.0, 3.0])
        y = X @ w + 0.3 * rng.normal(size=rows)
        shards.append((X, y, rng.choice([0.0, 0.5, 1.0, 2.0], size=rows) + (np.arange(rows) == 0)))
    return shards


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
    shards, first = sharded(rng, n), start_of(name, rng, n)

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
    (X, y, _), *_ = shards
    model.partial_fit(X[:1], y[:1], sample_weight=[0.0])
    for _ in range(2):
        parts = [copy.copy(model).partial_fit(X, y, sample_weight=h) for X, y, h in shards]
        model = merge(parts, [h.sum() / total for *_, h in shards], start=model)
    last = inverse(theta)
    assert_allclose(model.coef_, last, rtol=1e-9)
    assert_allclose(model.weighted_loss_, lost, rtol=1e-9)
    for _ in range(5):
        u, c = start_of(name, rng, n), float(rng.normal())
        expected = both(u, c, first, 0.0) - both(u, c, last, b) + slack
        assert_allclose(model.regret_bound(u, c, weighted=True), expected, rtol=1e-8)


def _by_share(ends):
    shares, thetas, intercepts = zip(*ends, strict=True)
    return (shares, thetas), (shares, intercepts)


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
    assert pickle.loads(pickle.dumps(model)).regret_bound([1.0, 1.0], weighted=True) == model.regret_bound(
        [1.0, 1.0], weighted=True
    )
    for bound in (model.regret_bound, model.partial_fit(X, y).regret_bound, lambda u: model.regret_bound(radius=1.0)):
        with pytest.raises(ValueError, match="must be for one run over all rows"):
            bound([1.0, 1.0])
    model.set_params(eta0=0.4)
    later = merge([copy.copy(model).partial_fit(X, y) for _ in range(2)], start=model)
    for each in (model, later, later.set_params(eta0=0.3)):
        with pytest.raises(ValueError, match=r"eta0 was changed from 0\.3 to 0\.4|must be for one run") as error:
            each.regret_bound([1.0, 1.0], weighted=True)
        assert "eta0 was changed" in str(error.value)


# --- what has none ----------------------------------------------------------------------------------------------------


def test_a_run_that_was_not_tracked_and_other_bounds_are_refused():
    model, *_ = mixed(0.5, 0.5, model=ImplicitGDRegressor())
    with pytest.raises(ValueError, match="no regret certificate of this run; set track_regret=True"):
        model.regret_bound([1.0, 1.0], weighted=True)
    start = MatrixBurgRegressor(track_regret=True).partial_fit([[0.5, 0.1]], [0.1], sample_weight=[0.0])
    matrices = merge([copy.copy(start).partial_fit([[0.5, 0.1]], [0.1]) for _ in range(2)], [0.5, 0.5], start=start)
    assert np.isfinite(matrices.regret_bound(np.eye(2) / 2, weighted=True))
    with pytest.raises(ValueError, match="must be for one run"):
        matrices.loss_bound(np.eye(2) / 2)
    kept = BurgRegressor(update="gradient", eta0=1e6, learning_rate="constant", fit_intercept=False)
    kept.partial_fit([[0.5, 0.1]], [0.1])
    assert np.isfinite(kept.loss_bound([0.5, 0.5]))
    with pytest.raises(ValueError, match="must be for one run"):
        merge([copy.copy(kept)], [1.0], start=kept).loss_bound([0.5, 0.5])
