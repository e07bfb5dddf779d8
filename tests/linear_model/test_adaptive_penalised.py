"""Penalties and bounds on weights in geometries that adapt, against a plain replica of the formulas."""

import copy
import pickle

import numpy as np
import pytest
from adaptive_replica import DIVERGENCES, Replica, flow
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from replica import MARGIN_LOSSES, VALUES, learn, model_of, stream
from scipy import sparse
from sklearn.base import clone

from onlinebregman.constraints import Box, L1Ball, L2Ball, Simplex, UpperBound
from onlinebregman.losses import LOSSES as OBJECTS
from onlinebregman.penalties import L1, Penalty, resolve_penalty
from onlinebregman.schedules import Schedule

every = pytest.mark.parametrize("name", DIVERGENCES)
penalties = pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet"])
layouts = pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
seeds = st.integers(0, 2**32 - 1)


def sparse_rows(rng, rows, n, density=0.3):
    X = rng.normal(size=(rows, n)) * (rng.uniform(size=(rows, n)) < density)
    return X, X[:, :3] @ [1.0, 0.5, -0.8] + 0.1 * rng.normal(size=rows)


# --- oracle -----------------------------------------------------------------------------------------------------------


@every
@penalties
@layouts
@pytest.mark.parametrize("update", ["implicit", "explicit"])
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "log_loss", "hinge", "squared_hinge"])
def test_the_kernel_gives_the_numbers_of_the_formulas(name, penalty, layout, update, loss):
    rng = np.random.default_rng(len(loss))
    n, box = 6, (np.r_[-0.3, np.full(5, -np.inf)], np.r_[np.full(3, 0.4), np.full(3, np.inf)])
    X, y = stream(loss, rng, 30, n, density=0.5)
    X *= np.exp(rng.normal(size=n))
    X[:10, 4] = 0.0  # a column that comes late
    weights, init = rng.choice([0.5, 1.0, 2.0], size=30), np.zeros(n)
    if loss not in MARGIN_LOSSES:
        init[4] = 0.7
    R = resolve_penalty(penalty, 0.02, 0.4)
    model = model_of(
        name, loss, update=update, eta0=0.5, init=init, learning_rate="constant", penalty=R, constraint=Box(*box)
    )
    replica = Replica(name, loss, update, init, 0.5, l1=R.l1, l2=R.l2, box=box)
    for row in zip(X, y, weights, strict=True):
        replica.learn(*row)
    learn(model, layout(X), y, weights)
    assert_allclose(np.ravel(model.coef_), replica.w[:n], rtol=1e-7, atol=1e-8)
    assert_allclose(model.intercept_, replica.w[n], rtol=1e-7, atol=1e-8)
    assert_allclose(model.cumulative_loss_, replica.total, rtol=1e-7)
    if penalty != "l2":
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
    rng = np.random.default_rng(3)
    X, y = sparse_rows(rng, 50, 6)
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
    rng = np.random.default_rng(seed)
    X, y = sparse_rows(rng, 300, 12, density)
    model = MirrorDescentRegressor(
        divergence=name, penalty=penalty, alpha=10.0**alpha, learning_rate=rate, average=average, constraint=constraint
    )
    dense, lazy = clone(model).partial_fit(X, y), clone(model).partial_fit(sparse.csr_array(X), y)
    size = np.abs(dense.coef_).max()
    assert_allclose(lazy.coef_, dense.coef_, rtol=1e-11, atol=1e-11 * size)
    if not average:
        assert_array_equal(lazy.coef_ == 0, dense.coef_ == 0)
    assert_allclose(lazy.cumulative_loss_, dense.cumulative_loss_, rtol=1e-10)
    for rows in (X, sparse.csr_array(X), 3 * X, sparse.csr_array(3 * X)):  # values larger than any before, too
        expected = dense.predict(rows if isinstance(rows, np.ndarray) else rows.toarray())
        assert_allclose(lazy.predict(rows), expected, rtol=1e-10, atol=1e-11 * (1 + size))


@every
@penalties
def test_the_columns_that_a_sparse_row_does_not_have_wait(name, penalty):
    rng = np.random.default_rng(3)
    X, y = sparse_rows(rng, 100, 40)
    model = MirrorDescentRegressor(divergence=name, penalty=penalty, alpha=0.01).partial_fit(X[:50], y[:50])
    assert not model._learner.geometry.get_state()["pending"]
    w = model._learner.geometry.get_state()["blocks"][:40]
    row = sparse.csr_array(X[50:51])
    model.partial_fit(row, y[50:51])
    now, others = model._learner.geometry.get_state(), np.setdiff1d(np.arange(40), row.indices)
    assert now["pending"] == 1
    assert_array_equal(now["blocks"][others], w[others])
    moved = others[w[others] != 0]
    assert len(moved) > 5 and (np.abs(model.coef_[moved]) < np.abs(w[moved])).all()


@every
@penalties
@pytest.mark.parametrize("average", [False, True])
def test_any_cutting_of_a_stream_gives_the_same_numbers(name, penalty, average, learned):
    """Bit for bit, also across rows at which all weights catch up, and with reads and copies in between."""
    rng = np.random.default_rng(1)
    X, y = sparse_rows(rng, 1500, 60, 0.05)
    X = sparse.csr_array(X)
    model = MirrorDescentRegressor(
        divergence=name, penalty=penalty, alpha=0.01, average=average, constraint=Box(-0.5, 0.6)
    )
    whole, cut = clone(model).partial_fit(X, y), clone(model)
    for k, start in enumerate(range(0, 1500, 13)):
        cut.partial_fit(X[start : start + 13], y[start : start + 13])
        cut.predict(X[:2]), cut.predict(X[:2].toarray()), cut.coef_
        if k % 20 == 5:
            cut = pickle.loads(pickle.dumps(cut)) if k % 40 == 5 else copy.deepcopy(cut)
    assert learned(cut) == learned(whole)
    assert_array_equal(cut.predict(X), whole.predict(X))


@every
@penalties
def test_dense_and_sparse_calls_may_alternate_and_regret_be_tracked_from_some_row_on(name, penalty):
    rng = np.random.default_rng(2)
    X, y = sparse_rows(rng, 400, 20, 0.1)
    model = MirrorDescentRegressor(divergence=name, penalty=penalty, alpha=0.05, l1_ratio=0.5)
    dense, mixed = clone(model).partial_fit(X, y), clone(model)
    for k in range(0, 400, 8):
        mixed.set_params(track_regret=100 < k < 200, average=k > 300)
        mixed.partial_fit(X[k : k + 8] if k % 3 else sparse.csr_array(X[k : k + 8]), y[k : k + 8])
    mixed.set_params(average=False).partial_fit(X[:1], y[:1], sample_weight=[0.0])
    assert_allclose(mixed.coef_, dense.coef_, rtol=1e-12, atol=1e-13)
    assert_array_equal(mixed.coef_ == 0, dense.coef_ == 0)


@every
@penalties
@pytest.mark.parametrize("average", [False, True])
def test_a_call_that_fails_leaves_weights_and_clocks_as_they_were(name, penalty, average, unchanged):
    rng = np.random.default_rng(4)
    X, y = sparse_rows(rng, 1300, 30, 0.03)
    X = sparse.csr_array(X)
    model = MirrorDescentRegressor(divergence=name, penalty=penalty, alpha=0.01, average=average)
    model.partial_fit(X[:50], y[:50])
    bad = y.copy()
    for last in (60, 1299):
        bad[last] = 1e300
        for rows in (X, X.toarray()):
            for others in ({}, {"average": not average}, {"track_regret": True}):
                model.set_params(**others)
                with unchanged(model, "row"):
                    model.partial_fit(rows[50 : last + 1], bad[50 : last + 1])
                model.set_params(average=average, track_regret=False)
        bad[last] = 0.0
    model.partial_fit(X[50:90], y[50:90])
    assert_array_equal(model.coef_, clone(model).partial_fit(X[:90], y[:90]).coef_)


@pytest.mark.parametrize("multi_class", ["ovr", "multinomial"])
@every
def test_several_classes(name, multi_class):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 30)) * (rng.uniform(size=(400, 30)) < 0.2)
    y = (X[:, :3] + 0.1 * rng.normal(size=(400, 3))).argmax(axis=1)
    model = MirrorDescentClassifier(divergence=name, penalty="l1", alpha=0.01, multi_class=multi_class)
    dense, lazy = (clone(model).partial_fit(rows, y, classes=range(3)) for rows in (X, sparse.csr_array(X)))
    assert_allclose(lazy.coef_, dense.coef_, rtol=1e-10, atol=1e-12)
    assert_array_equal(lazy.coef_ == 0, dense.coef_ == 0)
    assert (dense.coef_ == 0).any()


# --- the certificate --------------------------------------------------------------------------------------------------


@every
@penalties
@settings(max_examples=25)
@given(
    seed=seeds,
    update=st.sampled_from(["implicit", "explicit", "importance"]),
    loss=st.sampled_from(["squared_error", "log_loss", "absolute_error", "hinge", "huber"]),
    box=st.sampled_from([None, (-0.4, 0.5)]),
    alpha=st.floats(-3, 0.5),
    layout=st.sampled_from([np.asarray, sparse.csr_array]),
)
def test_the_certificate_accounts_for_the_penalty(name, penalty, seed, update, loss, box, alpha, layout):
    rng = np.random.default_rng(seed)
    X, y = stream(loss, rng, 50, 4, density=0.7)
    X *= np.exp(rng.normal(size=4)) * np.exp(np.linspace(0, 2, 50))[:, np.newaxis]
    weights, R = rng.choice([0.5, 1.0, 2.0], size=50), resolve_penalty(penalty, 10.0**alpha, 0.5)
    model = model_of(
        name, loss, update=update, eta0=0.3, learning_rate="constant", penalty=R, constraint=box and Box(*box)
    )
    learn(model, layout(X[:11]), y[:11], weights[:11])
    model.set_params(track_regret=True)
    for block in (slice(11, 12), slice(12, 50)):
        model.partial_fit(layout(X[block]), y[block], sample_weight=weights[block])
    comparators = [(rng.normal(size=4), float(rng.normal())) for _ in range(4)] + [(np.zeros(4), 0.0)]
    comparators.append((np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])))
    rows, rate = np.c_[X, np.ones(50)], DIVERGENCES[name].rate
    etas = [0.3 * weights[t] * rate(rows[: t + 1], y[: t + 1], OBJECTS[loss], weights[: t + 1]) for t in range(11, 50)]
    weighted = float(np.ravel(model.weighted_loss_)[0])
    for u, b in comparators:
        u = u if box is None else u.clip(*box)
        scores = X[11:] @ u + b
        regret = weighted - sum(eta * float(VALUES[loss](a, t)) for eta, a, t in zip(etas, scores, y[11:], strict=True))
        bound = float(np.ravel(model.regret_certificate(u, b))[0])
        assert regret <= bound + 1e-9 * (abs(weighted) + abs(bound) + 1)


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
    assert_allclose(model._learner.slack, -counted, rtol=1e-9)
    assert_allclose(model._learner.rate_sum, time, rtol=1e-12)
    rng = np.random.default_rng(seed)
    for end in (w, v, np.zeros(4)):
        u = end + 10.0**distance * rng.normal(size=4)
        nearer = (h * ((u - w) ** 2 - (u - v) ** 2)).sum() / 2
        size = (h * ((u - w) ** 2 + (u - v) ** 2)).sum() + counted + time * R.value(u)
        assert nearer - counted + time * R.value(u) >= -1e-13 * size
        assert_allclose(model.regret_certificate(u), nearer - counted + time * R.value(u), atol=1e-9 * size, rtol=0)


@every
@layouts
def test_the_certificate_is_exact_where_loss_and_penalty_are_linear(name, layout):
    """Explicit steps on the absolute loss while no sign changes: both sides of the inequality are equal."""
    rng = np.random.default_rng(6)
    X, y = rng.uniform(0.5, 1.0, size=(40, 3)), np.linspace(100.0, 101.0, 40)
    settings = {"loss": "absolute_error", "update": "explicit", "eta0": 1e-3, "fit_intercept": False}
    model = MirrorDescentRegressor(divergence=name, track_regret=True, penalty="l1", alpha=0.1, **settings)
    model.partial_fit(layout(X), y)
    etas = np.array(
        [1e-3 * DIVERGENCES[name].rate(X[: t + 1], y[: t + 1], OBJECTS["absolute_error"]) for t in range(40)]
    )
    assert (model.coef_ > 0).all()
    assert_allclose(model._learner.rate_sum, etas.sum(), rtol=1e-10)
    plain, paid = MirrorDescentRegressor(divergence=name, penalty="l1", alpha=0.1, **settings), 0.0
    for t in range(40):
        plain.partial_fit(layout(X[t : t + 1]), y[t : t + 1])
        paid += etas[t] * 0.1 * np.abs(plain.coef_).sum()
    for u in rng.uniform(size=(5, 3)):
        regret = model.weighted_loss_ - etas @ (y - X @ u)
        bound = model.regret_certificate(u) + paid - etas.sum() * 0.1 * u.sum()
        assert_allclose(bound, regret + paid - etas.sum() * 0.1 * u.sum(), rtol=1e-8, atol=1e-8)


# --- what it is good for, and what is refused -------------------------------------------------------------------------


def test_the_units_of_columns_change_the_penalty_alone():
    """In other units of a column the penalty changes accordingly; with an L1 of 0 nothing changes."""
    rng = np.random.default_rng(7)
    X, y = sparse_rows(rng, 200, 8)
    scaled = X * 10.0 ** np.linspace(-6, 6, 8)
    one, other = (MirrorDescentRegressor(penalty=L1(0.0)).partial_fit(rows, y) for rows in (X, scaled))
    assert_allclose(one.predict(X), other.predict(scaled), rtol=1e-9)


def test_zeros_among_rare_columns():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(4000, 500)) * (rng.uniform(size=(4000, 500)) < 0.05)
    X[:, :5] = rng.normal(size=(4000, 5))
    y = X[:, :5] @ [2.0, -1.5, 1.0, -1.0, 0.5] + rng.normal(size=4000)
    rows = sparse.csr_array(X)
    plain, few = (MirrorDescentRegressor(penalty=penalty, alpha=0.05).partial_fit(rows, y) for penalty in (None, "l1"))
    assert (few.coef_[5:] == 0).mean() > 0.8 and (plain.coef_ != 0).all()
    assert (few.coef_[:5] != 0).all() and few.cumulative_loss_ < plain.cumulative_loss_


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
        ({"constraint": L1Ball(1.0)}, "no projection onto .* use UpperBound or Box"),
        ({"constraint": L2Ball(1.0)}, "no projection onto .* use UpperBound or Box"),
        ({"constraint": Simplex(1.0)}, "no projection onto .* use UpperBound or Box"),
    ],
)
def test_what_does_not_go_with_them_is_refused_with_the_reason(name, parameters, match):
    with pytest.raises(ValueError, match=match):
        MirrorDescentRegressor(divergence=name, **parameters).partial_fit([[1.0, 2.0]], [1.0])
