"""The best member may change: the gain of `share` on streams that drift, and its cost on others."""

import numpy as np
import pytest

from onlinebregman import ParameterFreeClassifier, ParameterFreeRegressor

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows


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


@pytest.mark.parametrize("labels", [True, False])
def test_after_a_change_other_members_lead(labels):
    """The recorded weights show it: those of members with constant rates rise, those of decreasing rates fall."""
    X, y = stream(0, labels, n_parts=2)
    make = ParameterFreeClassifier if labels else ParameterFreeRegressor
    model = make(random_features=0).fit(X, y)
    times, history = model.weights_history_t_, model.weights_history_
    before, after = (history[(times > start) & (times < start + 500)].mean(axis=0) for start in (1500, 2000))
    steady = [getattr(member, "learning_rate", "") == "constant" for member in model.estimators_]
    alike = [getattr(member, "forgetting", 0.0) == 1.0 for member in model.estimators_]
    assert after[steady].sum() > 5 * before[steady].sum()
    assert after[alike].sum() < 0.2 * before[alike].sum()
