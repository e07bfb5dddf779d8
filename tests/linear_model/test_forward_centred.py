"""ForwardRegressor on centred sums: its formulas, and columns and targets in any units, at any level, that move."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from onlinebregman import ForwardRegressor
from onlinebregman.reference import CentredForwardRegression


def some_rows(n=120, d=4, n_targets=None, seed=0):
    """Columns of different units, one of which is constant at first, one far from 0, and one that moves."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** np.arange(d)
    X[: n // 3, 1], X[:, 2] = 7.0, X[:, 2] + 1e5
    X[n // 2 :, 0] += 50.0
    y = (X - X.mean(axis=0)) @ rng.normal(size=d if n_targets is None else (d, n_targets)) / 10
    return X, y + rng.normal(size=y.shape)


@pytest.fixture
def unlimited(monkeypatch):
    """No value is limited: rows are learned as they are."""
    monkeypatch.setattr(ForwardRegressor, "_make_standardizer", lambda *_: None)
    monkeypatch.setattr(ForwardRegressor, "_watches", False)


def one_by_one(model, X, y):
    """Predictions of each row before it is learned."""
    predictions = np.zeros_like(y)
    for i in range(len(y)):
        if i:
            predictions[i] = model.predict(X[i : i + 1])[0]
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    return predictions


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("gamma", [1.0, 0.9])
@pytest.mark.parametrize("n_targets", [None, 3])
def test_it_is_the_algorithm_by_its_formulas(unlimited, forward, gamma, n_targets):
    X, y = some_rows(n_targets=n_targets)
    h = np.random.default_rng(1).choice([0.5, 1.0, 4.0], size=len(y))
    model = ForwardRegressor(alpha=0.3, forward=forward, forgetting=gamma)
    replica, loss = CentredForwardRegression(4, n_targets or 1, 0.3, forward, gamma), 0.0
    for i in range(len(y)):
        if i:
            assert_allclose(model.predict(X[i : i + 1])[0], np.squeeze(replica.predict(X[i])), rtol=1e-9, atol=1e-9)
            loss += h[i] * ((replica.predict(X[i], h[i]) - y[i]) ** 2).sum() / 2
        else:
            loss += h[i] * (y[i] ** 2).sum() / 2
        replica.learn(X[i], np.atleast_1d(y[i]), h[i])
        model.partial_fit(X[i : i + 1], y[i : i + 1], sample_weight=h[i : i + 1])
    assert_allclose(model.cumulative_loss_, loss, rtol=1e-9)
    assert_allclose(model.mean_, replica.mean[:4], rtol=1e-12)
    assert_allclose(model.scale_, np.sqrt(np.diag(replica.S)[:4] / replica.n), rtol=1e-9)
    assert_allclose(model.n_samples_seen_, replica.n, rtol=1e-12)
    assert model.regret_ <= model.regret_bound_ if forward else not hasattr(model, "regret_bound_")


@pytest.mark.parametrize("gamma", [1.0, 0.95])
@pytest.mark.parametrize("forward", [True, False])
def test_units_and_origins_of_columns_and_targets_change_nothing(gamma, forward):
    X, y = some_rows()
    model = ForwardRegressor(forgetting=gamma, forward=forward)
    expected = one_by_one(model, X, y)
    factors, offsets = np.array([1e-4, 3.0, 70.0, 1e5]), np.array([5.0, -300.0, 1e6, 1e8])
    for scale, offset in ((1.0, 1000.0), (1e-6, 0.0), (1e6, -1e8)):
        other = ForwardRegressor(forgetting=gamma, forward=forward)
        found = (one_by_one(other, X * factors + offsets, y * scale + offset) - offset) / scale
        assert_allclose(found[1:], expected[1:], rtol=0, atol=1e-7 * np.std(y))
        assert_allclose(other.coef_, model.coef_ * scale / factors, rtol=1e-7)


@pytest.mark.parametrize("column", ["level", "scale", "random walk", "0 then 1", "unix time", "one sentinel"])
def test_columns_that_move_cost_no_more_than_noise(column):
    rng = np.random.default_rng(0)
    X, n = rng.normal(size=(2000, 4)), np.arange(2000)
    moves = {
        "level": X[:, 0] + np.where(n < 1000, 20.0, 70.0),
        "scale": X[:, 0] * np.where(n < 1000, 1.0, 10.0),
        "random walk": np.cumsum(X[:, 0]),
        "0 then 1": (n >= 1000).astype(float),
        "one sentinel": np.where(n == 1000, 9999.0, X[:, 0]),
        "unix time": 1.7e9 + 60.0 * n + X[:, 0],
    }
    absurd, X[:, 0] = abs(moves[column]) == 9999.0, moves[column]
    effect = 1e-3 if column == "unix time" else 1.0
    y = np.where(absurd[:, np.newaxis], 0.0, X) @ [effect, 1.0, -2.0, 0.5] + rng.normal(size=2000)
    errors = (one_by_one(ForwardRegressor(), X, y) - y)[-500:]
    assert np.sqrt(np.mean(errors**2)) < 1.1


@pytest.mark.parametrize("level", [100.0, 1000.0])
@pytest.mark.parametrize("forward", [True, False])
def test_forgetting_does_not_shrink_the_level_of_the_targets(level, forward):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    y = level + X @ [1.0, -1.0, 0.5] + rng.normal(size=1500)
    errors = (one_by_one(ForwardRegressor(forgetting=0.99, forward=forward), X, y) - y)[-500:]
    assert np.sqrt(np.mean(errors**2)) < 1.1 and abs(errors.mean()) < 0.1


def test_equal_and_empty_columns_and_an_endless_stream():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 4))
    X[:, 1], X[:, 2], X[1000:, 3] = X[:, 0], 3.0, 0.5  # equal, constant, constant from some row on
    y = X[:, 0] + 0.1 * rng.normal(size=len(X))
    model = ForwardRegressor(forgetting=0.99).partial_fit(X, y)  # 0.99^60000 is less than 1e-261
    assert_allclose(model.coef_[:2], 0.5, atol=0.02)
    assert model.coef_[2] == 0.0 and model.scale_[2] == 1.0
    assert np.sqrt(np.mean((model.predict(X[-500:]) - y[-500:]) ** 2)) < 0.2


def test_deviations_are_those_of_the_normal_model(unlimited):
    X, y = some_rows(80)
    X[:, 1] = np.random.default_rng(3).normal(size=80)
    model = ForwardRegressor(alpha=1e-9, forward=False).fit(X, y)
    design = np.c_[X, np.ones(80)]
    u, left, *_ = np.linalg.lstsq(design, y)
    covariance = np.linalg.inv((design / design.std(axis=0).clip(1)).T @ (design / design.std(axis=0).clip(1)))
    rows = design / design.std(axis=0).clip(1)
    variance = left[0] / 79 * (1 + np.einsum("ij,jk,ik->i", rows, covariance, rows))
    found, std = model.predict(X, return_std=True)
    assert_allclose(found, design @ u, rtol=1e-4, atol=1e-3)
    assert_allclose(std, np.sqrt(variance), rtol=1e-3)
