"""Penalties in the linear models: each step followed by the proximal step, on dense rows, and lazily on sparse ones."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from replica import Cosh, Replica, sparse_rows, start_of
from scipy import sparse
from scipy.optimize import brentq
from sklearn.base import clone

from onlinebregman import reference
from onlinebregman._online.mirror import starting_weights
from onlinebregman.constraints import Box, L2Ball, UpperBound
from onlinebregman.divergences import Divergence, SquaredEuclidean
from onlinebregman.penalties import resolve_penalty


def regressor(**parameters):
    return MirrorDescentRegressor(**{"divergence": "squared_euclidean"} | parameters)


NAMES = ("l1", "l2", "elasticnet")
PAIRS = [
    (divergence, signed, penalty)
    for divergence in ("squared_euclidean", "relative_entropy", "burg", "binary_entropy")
    for signed in (False, True)
    for penalty in NAMES
    if not (signed and divergence in ("burg", "binary_entropy"))
] + [("p_norm", False, "l1")]
pairs = pytest.mark.parametrize(("divergence", "signed", "penalty"), PAIRS, ids=str)
seeds = st.integers(0, 2**32 - 1)


class PenalisedReplica(Replica):
    """A proximal step of the penalty after every step; it does not depend on the row's weight."""

    def __init__(self, divergence, *arguments, l1, l2, **parameters):
        super().__init__(divergence, *arguments, **parameters)
        self.l1, self.l2, self.soft = l1, l2, divergence in ("squared_euclidean", "p_norm")

    def learn(self, x, y, weight=1.0):
        super().learn(x, y, weight)
        eta = self.eta0 / self.t**self.power
        self.theta = reference.proximal_step(self.mirror, self.theta, eta * self.l1, eta * self.l2, self.soft)


@pairs
@pytest.mark.parametrize("update", ["explicit", "implicit"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_the_numbers_are_those_of_the_definition(divergence, signed, penalty, update, layout):
    rng = np.random.default_rng(0)
    X, y = sparse_rows(rng, 40, 6)
    weights, w = rng.choice([0.5, 1.0, 3.0], size=40), start_of(divergence, rng, 6, signed)
    R = resolve_penalty(penalty, 0.05, 0.4)
    eta0 = 0.02 if update == "explicit" else 0.3
    model = regressor(
        divergence=divergence,
        signed=signed,
        penalty=penalty,
        alpha=0.05,
        l1_ratio=0.4,
        update=update,
        eta0=eta0,
        init=w,
    )
    replica = PenalisedReplica(
        divergence, "squared_error", update, w, eta0=eta0, power=0.5, signed=signed, l1=R.l1, l2=R.l2
    )
    if signed and divergence == "squared_euclidean":  # its halves start like all signed weights
        replica.theta = starting_weights(SquaredEuclidean(), w, 6, True)
    for x, target, weight in zip(X, y, weights, strict=True):
        replica.learn(x, target, weight)
    model.partial_fit(layout(X), y, sample_weight=weights)
    assert_allclose(model.coef_, replica.coef, rtol=1e-9, atol=1e-11)
    assert_allclose(model.intercept_, replica.b, rtol=1e-9, atol=1e-11)
    assert_allclose(model.cumulative_loss_, replica.total, rtol=1e-9)
    if divergence in ("squared_euclidean", "p_norm"):
        assert_array_equal(model.coef_ == 0, replica.coef == 0)


@pairs
@settings(max_examples=12)
@given(
    seed=seeds,
    density=st.sampled_from([0.02, 0.1, 0.5]),
    alpha=st.floats(-4, 1.5),
    average=st.sampled_from([False, True, 40]),
    rate=st.sampled_from(["constant", "invscaling"]),
)
def test_sparse_rows_give_the_numbers_of_dense_ones(divergence, signed, penalty, seed, density, alpha, average, rate):
    """Weights catch up when a row needs them, or when they are read; the same weights are 0."""
    X, y = sparse_rows(np.random.default_rng(seed), 300, 12, density)
    model = regressor(
        divergence=divergence, signed=signed, penalty=penalty, alpha=10.0**alpha, eta0=0.1, learning_rate=rate,
        average=average,
    )  # fmt: skip
    dense, lazy = clone(model).partial_fit(X, y), clone(model).partial_fit(sparse.csr_array(X), y)
    size = np.abs(dense.coef_).max()
    assert_allclose(lazy.coef_, dense.coef_, rtol=1e-12, atol=1e-12 * size)
    assert_array_equal(lazy.coef_ == 0, dense.coef_ == 0)
    assert_allclose(lazy.cumulative_loss_, dense.cumulative_loss_, rtol=1e-11)
    for rows in (X, sparse.csr_array(X)):
        assert_allclose(lazy.predict(rows), dense.predict(X), rtol=1e-11, atol=1e-12 * (1 + size))


@pytest.mark.parametrize("alpha", [1e-3, 0.3, 30.0, 1e250])
@pytest.mark.parametrize("signed", [False, True])
def test_averages_under_a_ridge_include_the_weights_between_their_rows(alpha, signed):
    """Pending steps of L2 divide all weights by the same factor, so that a sparse row need not make them."""
    rng = np.random.default_rng(7)
    X, y = sparse_rows(rng, 120, 12, 0.1)
    w = start_of("squared_euclidean", rng, 12, signed)
    replica = PenalisedReplica(
        "squared_euclidean", "squared_error", "implicit", w, eta0=0.3, power=0.5, signed=signed, l1=0.0, l2=alpha
    )
    if signed:
        replica.theta = starting_weights(SquaredEuclidean(), w, 12, True)
    coefs, intercepts = [], []
    for x, target in zip(X, y, strict=True):
        replica.learn(x, target)
        coefs.append(replica.coef), intercepts.append(replica.b)
    for average in (True, 40):
        model = regressor(penalty="l2", alpha=alpha, eta0=0.3, signed=signed, init=w, average=average)
        for start, end in ((0, 30), (30, 31), (31, 80), (80, 90), (90, 120)):
            rows = X[start:end] if start == 80 else sparse.csr_array(X[start:end])
            model.partial_fit(rows, y[start:end])
            assert (model._learner.geometry.get_state()["pending"] > 0) == (start != 80)
            if end >= average:
                coef, intercept = (np.mean(each[int(average) - 1 : end], axis=0) for each in (coefs, intercepts))
                assert_allclose(model.coef_, coef, rtol=1e-9, atol=1e-11)
                assert_allclose(model.intercept_, intercept, rtol=1e-9, atol=1e-11)
                assert_allclose(model.predict(sparse.csr_array(X)), X @ coef + intercept, rtol=1e-9, atol=1e-11)


@pairs
@pytest.mark.parametrize("average", [False, True])
def test_any_cutting_of_a_stream_gives_the_same_numbers(divergence, signed, penalty, average, learned):
    """Bit for bit, also across rows at which all weights catch up, and with reads and copies in between."""
    rng = np.random.default_rng(1)
    rows = 1500 if divergence == "squared_euclidean" and not average else 150
    X, y = sparse_rows(rng, rows, 60, 0.05)
    X = sparse.csr_array(X)
    model = regressor(divergence=divergence, signed=signed, penalty=penalty, alpha=0.01, eta0=0.1, average=average)
    whole, cut = clone(model).partial_fit(X, y), clone(model)
    for k, start in enumerate(range(0, rows, 13)):
        cut.partial_fit(X[start : start + 13], y[start : start + 13])
        cut.predict(X[:2]), cut.predict(X[:2].toarray()), cut.coef_
        if k % 20 == 5:
            cut = pickle.loads(pickle.dumps(cut)) if k % 40 == 5 else copy.deepcopy(cut)
    assert learned(cut) == learned(whole)
    assert_array_equal(cut.predict(X), whole.predict(X))


def test_the_clock_keeps_its_digits():
    """Thresholds of 0.7 sum to 210 000, so that a weight of 5 could lose its last five digits."""
    X, y = sparse_rows(np.random.default_rng(12), 300_000, 5)
    model = regressor(penalty="l1", alpha=0.7, eta0=1.0, learning_rate="constant", fit_intercept=False)
    dense, lazy = clone(model).partial_fit(X, 10 * y), clone(model).partial_fit(sparse.csr_array(X), 10 * y)
    assert_allclose(lazy.coef_, dense.coef_, rtol=0, atol=1e-12)


@pytest.mark.parametrize("alpha", [1e3, 1e90, 1e250])
@pytest.mark.parametrize("penalty", ["l2", "elasticnet"])
def test_a_strong_ridge_does_not_overflow_its_scale(penalty, alpha):
    """(1 + eta alpha)^rows is 10^1800 and more: all weights catch up in time, in calls that back up all of them."""
    X, y = sparse_rows(np.random.default_rng(3), 600, 100, 0.02)
    model = regressor(penalty=penalty, alpha=alpha, l1_ratio=1e-3 / alpha, eta0=1.0, learning_rate="constant", init=1.0)
    dense, lazy = clone(model).partial_fit(X, y), clone(model)
    for k in range(600):
        lazy.partial_fit(sparse.csr_array(X[[k]]), y[[k]])
    assert_allclose(lazy.coef_, dense.coef_, rtol=1e-12, atol=1e-300)
    assert_array_equal(lazy.coef_ == 0, dense.coef_ == 0)


@pairs
@pytest.mark.parametrize("average", [False, True])
def test_a_call_that_fails_leaves_weights_and_clocks_as_they_were(divergence, signed, penalty, average, unchanged):
    """After more rows than there are weights, so that all have caught up within the call that is undone."""
    X, y = sparse_rows(np.random.default_rng(4), 1300, 30, 0.03)
    X = sparse.csr_array(X)
    model = regressor(
        divergence=divergence, signed=signed, penalty=penalty, alpha=0.01, eta0=0.1, average=average
    ).partial_fit(X[:50], y[:50])
    bad = y.copy()
    for last in (60, 1299):
        bad[last] = np.nan if last == 60 else 1e300
        for rows in (X, X.toarray()):
            with unchanged(model, "row|y contains NaN|Input"):
                model.partial_fit(rows[50 : last + 1], bad[50 : last + 1])
        model.set_params(average=not average)
        with unchanged(model, "row|y contains NaN|Input"):
            model.partial_fit(X[50 : last + 1], bad[50 : last + 1])
        model.set_params(average=average)
        bad[last] = 0.0
    model.partial_fit(X[50:90], y[50:90])
    assert_array_equal(model.coef_, clone(model).partial_fit(X[:90], y[:90]).coef_)


# --- the certificate --------------------------------------------------------------------------------------------------


@pairs
@pytest.mark.parametrize("update", ["explicit", "implicit"])
def test_what_the_certificate_adds_up(divergence, signed, penalty, update):
    """S is that of the losses less sum eta_t R(w_{t+1}) + D(w_{t+1}, w'_t), w' before the proximal step."""
    rng = np.random.default_rng(6)
    X, y = rng.uniform(-1, 1, size=(20, 4)), rng.uniform(0, 1, size=20)
    model = regressor(
        divergence=divergence, signed=signed, penalty=penalty, alpha=0.3, l1_ratio=0.5, update=update, eta0=0.05,
        track_regret=True, fit_intercept=False,
    )  # fmt: skip
    R, slack = resolve_penalty(penalty, 0.3, 0.5), 0.0
    for t in range(20):
        if not t:
            model.partial_fit(X[:1], y[:1], sample_weight=[0.0])
        start = model._learner.position[0]
        D, eta = model.divergence_, 0.05 / np.sqrt(t + 1)
        x = np.r_[X[t], -X[t]] if signed else X[t]
        a = float(start @ x)
        c = eta * (a - y[t])
        if update == "implicit":
            c = brentq(
                lambda c, w=start, x=x, t=t, e=eta, D=D: c - e * (D.step(w, x, c) @ x - y[t]),
                *sorted([0.0, c]),
                xtol=1e-15,
            )
        moved = D.step(start, x, c)
        after = float(moved @ x)
        slack += (
            D.divergence(start, moved)
            if update == "explicit"
            else eta * ((a - y[t]) ** 2 - (after - y[t]) ** 2) / 2 - D.divergence(moved, start)
        )
        model.partial_fit(X[t : t + 1], y[t : t + 1])
        end = model._learner.position[0]
        slack -= eta * R.value(end) + D.divergence(end, moved)
    assert_allclose(model._learner.run["slack"], slack, rtol=1e-8, atol=1e-10)
    assert_allclose(model._learner.run["rate_sum"], sum(0.05 / np.sqrt(t + 1) for t in range(20)))


# --- with constraints, and what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("penalty", NAMES)
@pytest.mark.parametrize(
    ("divergence", "constraint"),
    [
        ("squared_euclidean", UpperBound(0.4)),
        ("squared_euclidean", UpperBound(-0.1)),
        ("squared_euclidean", L2Ball(0.5)),
        ("squared_euclidean", Box(-0.2, 0.4)),
        ("relative_entropy", UpperBound(0.3)),
        ("burg", UpperBound(0.3)),
        ("binary_entropy", UpperBound(0.3)),
    ],
    ids=str,
)
def test_penalty_and_constraint_give_their_joint_minimum(divergence, constraint, penalty, layout):
    """The proximal step, then the projection: min of D(v, w') + eta R(v) over sets of intervals, and the ball."""
    rng = np.random.default_rng(7)
    X, y = sparse_rows(rng, 30, 5)
    model = regressor(
        divergence=divergence, constraint=constraint, penalty=penalty, alpha=0.2, l1_ratio=0.5, eta0=0.3,
        fit_intercept=False, learning_rate="constant",
    )  # fmt: skip
    model.partial_fit(layout(X), y)
    compiled = model.coef_
    own = type("Own", (type(model.divergence_),), {})()
    slow = clone(model).set_params(divergence=own).partial_fit(X, y)
    assert_allclose(compiled, slow.coef_, rtol=1e-10, atol=1e-13)
    # one more row, of zeros: the joint problem alone
    w, R, D = compiled, resolve_penalty(penalty, 0.2, 0.5), model.divergence_
    v = model.partial_fit(layout(np.zeros((1, 5))), [0.0]).coef_

    def objective(u):
        return D.divergence(u, w) + 0.3 * R.value(u)

    for _ in range(100):
        u = constraint.project(SquaredEuclidean(), v + 10 ** rng.uniform(-6, -1) * rng.normal(size=5))
        if divergence == "squared_euclidean" or ((u > 0) & (u < 1)).all():
            assert objective(v) <= objective(u) + 1e-14


class Rough(Divergence):
    """Does not declare that it is separable."""

    potential, mirror, inverse_mirror = Cosh.potential, Cosh.mirror, Cosh.inverse_mirror


def test_what_cannot_be_is_refused_with_its_reason(unchanged):
    X, y = np.eye(3), np.ones(3)
    with pytest.raises(ValueError, match="must define prox_elastic_net"):
        regressor(divergence=Rough(), penalty="l1").partial_fit(X, y)
    with pytest.raises(ValueError, match="supports no penalty: on the simplex"):
        MirrorDescentClassifier(divergence="simplex_entropy", signed=True, penalty="l1").fit(X, [0, 1, 0])
    with pytest.raises(ValueError, match="learning_rate='theory' requires fit_intercept=False"):
        regressor(penalty="l2", learning_rate="theory", data_bounds={"x": 1.0, "u": 1.0}).fit(X, y)
    for name, value in (("penalty", "l0"), ("alpha", -1.0), ("l1_ratio", 1.5)):
        with pytest.raises(ValueError, match=name):
            regressor(**{name: value}).fit(X, y)
