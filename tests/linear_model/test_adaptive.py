"""Adaptive divergences in linear models: targets and sums of any size; penalties and bounds against the formulas."""

import numpy as np
import pytest
from adaptive_replica import DIVERGENCES, Replica, flow
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentRegressor
from replica import LOSSES, MARGIN_LOSSES, learn, model_of, sparse_rows, stream
from scipy import sparse
from sklearn.base import clone

from onlinebregman.constraints import Box, L1Ball, L2Ball, Simplex, UpperBound
from onlinebregman.divergences import DiagonalNewton
from onlinebregman.losses import LOSSES as OBJECTS
from onlinebregman.penalties import Penalty, resolve_penalty
from onlinebregman.schedules import Schedule

every = pytest.mark.parametrize("name", DIVERGENCES)
scale_free = pytest.mark.parametrize("name", ["normalized_adagrad", "diagonal_newton"])


# --- scales -----------------------------------------------------------------------------------------------------------


@scale_free
@pytest.mark.parametrize("target", [0.0, 5.0, -1e8])
def test_constant_targets_are_learned(name, target):
    X = np.random.default_rng(3).normal(size=(50, 3))
    model = MirrorDescentRegressor(divergence=name).partial_fit(X, np.full(50, target))
    assert_allclose(model.predict(X), target, rtol=1e-9)
    explicit = MirrorDescentRegressor(divergence=name, update="explicit", eta0=0.1, fit_intercept=False)
    assert np.isfinite(explicit.partial_fit(X, np.full(50, target)).coef_).all()


def test_a_value_larger_than_any_before_is_predicted_as_the_largest():
    X = np.random.default_rng(5).uniform(-1, 1, size=(100, 2))
    X[0] = 1.0
    model = MirrorDescentRegressor(divergence="normalized_adagrad").partial_fit(X, X @ [1.0, 2.0])
    assert_allclose(model.predict([[50.0, -3.0]]), model.predict([[1.0, -1.0]]))
    with pytest.raises(ValueError, match=r"infinity|NaN"):
        model.predict([[np.inf, 0.0]])


# --- kinks ------------------------------------------------------------------------------------------------------------

KINKED = ["hinge", "perceptron", "absolute_error", "epsilon_insensitive", "quantile"]


@every
@pytest.mark.parametrize("update", ["implicit", "importance", "explicit"])
@pytest.mark.parametrize("loss", KINKED)
def test_a_row_whose_weight_is_almost_0_is_learned(name, update, loss):
    """The rate times the weight is 0 in floating point."""
    X, y = stream(loss, np.random.default_rng(0), 5, 3)
    model = learn(model_of(name, loss, update=update), X, y, np.full(5, 5e-324))
    assert model.t_ == 5
    assert_allclose(np.ravel(model.coef_), 0.0, atol=1e-300)


# --- the estimators' parameters ---------------------------------------------------------------------------------------


def test_curvature_is_the_losss_or_given():
    X, y = [[1.0, 2.0]], [1.0]
    with pytest.raises(ValueError, match="give the curvature"):
        MirrorDescentRegressor(divergence="diagonal_newton", loss="poisson").partial_fit(X, y)
    model = MirrorDescentRegressor(divergence=DiagonalNewton(2.0), loss="poisson").partial_fit(X, y)
    assert_allclose(model.metric_, [3.0, 12.0])
    with pytest.raises(ValueError, match=r"curvature must be a positive finite number.*; got 0"):
        DiagonalNewton(curvature=0)


def test_sums_overflow_with_an_error():
    for name in DIVERGENCES:
        model = MirrorDescentRegressor(divergence=name).partial_fit([[1.0], [2.0]], [1.0, 2.0])
        with pytest.raises(ValueError, match=r"row 0 \(target 1e\+200\).*[Ss]cale features and targets"):
            model.partial_fit([[1.0]], [1e200])


@pytest.mark.parametrize("divergence", ["adagrad", "normalized_adagrad"])
def test_targets_whose_squares_underflow_are_refused(divergence, unchanged):
    X = np.random.default_rng(0).normal(size=(200, 3))
    model = MirrorDescentRegressor(divergence=divergence)
    for scale in (1e-156, 1e-300):
        with unchanged(model, rf"above 1.5e-154, .* in row {np.abs(X[:, 0]).argmax()}. Scale targets"):
            model.partial_fit(X, scale * X[:, 0])
    assert model.partial_fit(X, 1e-150 * X[:, 0]).partial_fit(X[:1], [1e-200]).score(X, 1e-150 * X[:, 0]) > 0.9


penalties = pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet"])
layouts = pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
seeds = st.integers(0, 2**32 - 1)


# --- oracle -----------------------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("penalty", [None, "l1", "l2", "elasticnet"])
@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss != "perceptron"])
@settings(max_examples=4)
@given(
    seed=seeds,
    update=st.sampled_from(["implicit", "explicit"]),
    layout=st.sampled_from([np.asarray, sparse.csr_array]),
    fit_intercept=st.booleans(),
)
def test_the_kernel_gives_the_numbers_of_the_formulas(name, penalty, loss, seed, update, layout, fit_intercept):
    """With a penalty, within a box, too."""
    deviance = loss in ("poisson", "tweedie", "gamma")
    if name == "diagonal_newton" and deviance:
        pytest.skip("half deviances have no bound on their curvature: refused, see test_adaptive.py")
    rng = np.random.default_rng(seed)
    n, box = 6, (np.r_[-0.3, np.full(5, -np.inf)], np.r_[np.full(3, 0.4), np.full(3, np.inf)])
    X, y = stream(loss, rng, 30, n, density=0.5)
    X *= np.exp(rng.normal(size=n))
    X[:10, 4] = 0.0  # a column that comes late
    weights, eta0 = rng.choice([0.5, 1.0, 2.0], size=30), 0.05 if deviance else 0.5
    init = np.zeros(n) if loss in MARGIN_LOSSES else rng.normal(size=n) / n
    parameters, bounds = {"update": update, "eta0": eta0, "fit_intercept": fit_intercept}, {}
    if penalty is not None:
        init, R = init.clip(*box), resolve_penalty(penalty, 0.02, 0.4)
        parameters |= {"penalty": R, "constraint": Box(*box)}
        bounds = {"l1": R.l1, "l2": R.l2, "box": box}
    model = learn(model_of(name, loss, init=init, learning_rate="constant", **parameters), layout(X), y, weights)
    replica = Replica(name, loss, update, init, eta0, fit_intercept, **bounds)
    for row in zip(X, y, weights, strict=True):
        replica.learn(*row)
    assert_allclose(np.ravel(model.coef_), replica.w[:n], rtol=1e-7, atol=1e-8)
    assert_allclose(model.intercept_, replica.w[n], rtol=1e-7, atol=1e-8)
    assert_allclose(model.cumulative_loss_, replica.total, rtol=1e-7)
    assert_allclose(np.ravel(model.metric_), replica.metric()[:n], rtol=1e-7)
    if penalty in ("l1", "elasticnet"):
        assert_array_equal(np.ravel(model.coef_) == 0, replica.w[:n] == 0)


# --- the flow ---------------------------------------------------------------------------------------------------------


class AllAtOnce(Schedule):
    """Next to nothing for eight rows, then eta0."""

    def __call__(self, t):
        return np.where(np.asarray(t) <= 8, 1e-9, self.scale)


def before_and_after(name, layout, R, eta0, tracked=False, seed=8):
    """Weights before and after a row of zeros, which only the penalty changes; h, the time, the model."""
    rng = np.random.default_rng(seed)
    X, y, loss = rng.normal(size=(9, 4)) * np.exp(rng.normal(size=4)), rng.uniform(size=9), OBJECTS["log_loss"]
    X[8] = 0.0
    model = MirrorDescentRegressor(divergence=name, loss="log_loss", penalty=R, fit_intercept=False)
    model.set_params(learning_rate=AllAtOnce(eta0), init=rng.normal(size=4)).partial_fit(layout(X[:8]), y[:8])
    w, h = model.coef_, model.metric_
    model.set_params(track_regret=tracked).partial_fit(layout(X[8:]), y[8:])
    return w, model.coef_, h, eta0 * DIVERGENCES[name].rate(X, y, loss), model


@every
@penalties
def test_a_penalty_is_the_limit_of_many_small_proximal_steps(name, penalty):
    R = resolve_penalty(penalty, 0.2, 0.4)
    w, flowed, h, time, _ = before_and_after(name, np.asarray, R, 1.0)
    ends, divergence = [], DIVERGENCES[name].at(h)
    for m in (200, 400):
        v = w
        for _ in range(m):
            v = R.prox(divergence, v, time / m)
        ends.append(v)
    assert (np.abs(flowed) < np.abs(w)).all()
    # errors of the first order in 1 / m; what is left without them
    assert np.abs(2 * ends[1] - ends[0] - flowed).max() < 1e-5
    assert penalty == "l1" or np.abs(ends[1] - flowed).max() > 1e-5
    for sparse_one, dense_one in zip(before_and_after(name, sparse.csr_array, R, 1.0)[:3], (w, flowed, h), strict=True):
        assert_allclose(sparse_one, dense_one, rtol=1e-13)


@every
@penalties
@layouts
@settings(max_examples=10)
@given(seed=seeds, strength=st.floats(-20, 5), share=st.sampled_from([0.4, 1 - 1e-9]))
def test_small_and_large_penalties_keep_their_digits(name, penalty, layout, seed, strength, share):
    R = resolve_penalty(penalty, 10.0**strength, share)
    w, flowed, h, time, _ = before_and_after(name, layout, R, 1.0, seed=seed)
    expected = flow(w, time / h, R.l1, R.l2)
    assert_allclose(flowed, expected, rtol=1e-13, atol=1e-15 * np.abs(w).max())
    if penalty == "l2":  # of tiny weights, too
        assert_allclose(flowed, expected, rtol=1e-12, atol=1e-300)
    assert_allclose(w - flowed, w - expected, rtol=1e-13, atol=3e-16 * np.abs(w).max())


@every
@penalties
@layouts
def test_a_penalty_that_overflows_leaves_zeros(name, penalty, layout):
    X, y = sparse_rows(np.random.default_rng(3), 50, 6, w=[1.0, 0.5, -0.8])
    X[:, 5] = 0.0
    init = np.r_[np.zeros(5), 0.7]
    for alpha in (1e20, 1e200, 1e300):
        model = MirrorDescentRegressor(divergence=name, penalty=penalty, alpha=alpha, init=init, l1_ratio=0.5)
        assert_array_equal(model.partial_fit(layout(X), y).coef_, init)  # the last column is still unknown
        assert np.isfinite(model.predict(layout(X))).all()
    none = clone(model).set_params(penalty=None).partial_fit(layout(X), y)
    for alpha in (0.0, 1e-30, 1e-300, 5e-324):
        weak = clone(model).set_params(alpha=alpha).partial_fit(layout(X), y)
        assert_allclose(weak.coef_, none.coef_, rtol=1e-12, atol=1e-14)


@every
@penalties
@settings(max_examples=15)
@given(
    seed=seeds,
    density=st.sampled_from([0.02, 0.1, 0.5]),
    alpha=st.floats(-4, 0.5),
    average=st.sampled_from([False, True, 40]),
    rate=st.sampled_from(["constant", "invscaling"]),
    constraint=st.sampled_from([None, UpperBound(0.4), Box(0.05, 0.4), Box(-0.2, np.linspace(0.1, 1.0, 12))]),
)
def test_sparse_rows_give_the_numbers_of_dense_ones(name, penalty, seed, density, alpha, average, rate, constraint):
    X, y = sparse_rows(np.random.default_rng(seed), 300, 12, density, [1.0, 0.5, -0.8])
    model = MirrorDescentRegressor(
        divergence=name, penalty=penalty, alpha=10.0**alpha, learning_rate=rate, average=average, constraint=constraint,
        track_regret=True,
    )  # fmt: skip
    dense, lazy = clone(model).partial_fit(X, y), clone(model).partial_fit(sparse.csr_array(X), y)
    size = np.abs(dense.coef_).max()
    assert_allclose(lazy.coef_, dense.coef_, rtol=1e-11, atol=1e-11 * size)
    if not average:
        assert_array_equal(lazy.coef_ == 0, dense.coef_ == 0)
    for attribute in ("metric_", "cumulative_loss_", "weighted_loss_"):
        assert_allclose(getattr(lazy, attribute), getattr(dense, attribute), rtol=1e-9, atol=1e-12)
    for rows in (X, sparse.csr_array(X), 3 * X, sparse.csr_array(3 * X)):  # values larger than any before, too
        expected = dense.predict(rows if isinstance(rows, np.ndarray) else rows.toarray())
        assert_allclose(lazy.predict(rows), expected, rtol=1e-10, atol=1e-11 * (1 + size))


# --- the certificate --------------------------------------------------------------------------------------------------


@every
@penalties
@layouts
@settings(max_examples=12)
@given(seed=seeds, strength=st.floats(-6, 3), distance=st.floats(-6, 1))
def test_what_the_certificate_counts_of_a_flow(name, penalty, layout, seed, strength, distance):
    """D(u, w') - D(u, w'') >= eta (R(w'') - R(u)) + sum of e^(-l2 eta / h) D(w'', w'): a row of zeros has no regret."""
    R = resolve_penalty(penalty, 10.0**strength, 0.3)
    w, v, h, time, model = before_and_after(name, layout, R, 1.0, tracked=True, seed=seed)
    counted = time * R.value(v) + (np.exp(-R.l2 * time / h) * h * (v - w) ** 2).sum() / 2
    assert_allclose(model._learner.run["slack"], -counted, rtol=1e-9)
    assert_allclose(model._learner.run["rate_sum"], time, rtol=1e-12)
    rng = np.random.default_rng(seed)
    for end in (w, v, np.zeros(4)):
        u = end + 10.0**distance * rng.normal(size=4)
        nearer = (h * ((u - w) ** 2 - (u - v) ** 2)).sum() / 2
        size = (h * ((u - w) ** 2 + (u - v) ** 2)).sum() + counted + time * R.value(u)
        assert nearer - counted + time * R.value(u) >= -1e-13 * size
        assert_allclose(
            model.regret_bound(u, weighted=True), nearer - counted + time * R.value(u), atol=1e-9 * size, rtol=0
        )


# --- what it is good for, and what is refused -------------------------------------------------------------------------


class Mine(Penalty):
    def value(self, w):
        return 0.0

    def prox(self, divergence, w, eta):
        return w


@every
@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"penalty": Mine()}, "no proximal step of .*, as its metric is not known before the row; use L1, L2"),
        ({"signed": True}, "signed"),
        ({"learning_rate": "theory", "data_bounds": {"x": 1.0, "u": 1.0}}, "is adaptive"),
        ({"constraint": L1Ball(1.0)}, "no projection onto .* use UpperBound or Box"),
        ({"constraint": L2Ball(1.0)}, "no projection onto .* use UpperBound or Box"),
        ({"constraint": Simplex(1.0)}, "no projection onto .* use UpperBound or Box"),
    ],
)
def test_what_does_not_go_with_them_is_refused_with_the_reason(name, parameters, match):
    with pytest.raises(ValueError, match=match):
        MirrorDescentRegressor(divergence=name, **parameters).partial_fit([[1.0, 2.0]], [1.0])
