"""Weights inside their bounds from the first row learned on, and Burg steps that end beside a pole."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentRegressor
from scipy import sparse

from onlinebregman import BurgRegressor
from onlinebregman.constraints import Simplex, UpperBound
from onlinebregman.divergences import Burg
from onlinebregman.losses import AbsoluteLoss, HuberLoss

UPDATES = ("implicit", "explicit", "importance", "gradient")


def sparse_stream():
    X = np.eye(5)[[0, 1] * 10]  # features 2, 3 and 4 are absent
    return X, np.full(20, 0.3)


# --- bounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("average", [False, True])
def test_a_bound_lowered_in_mid_stream_holds_for_absent_features_too(update, average):
    X, y = sparse_stream()
    models = []
    for layout in (np.asarray, sparse.csr_array):
        model = BurgRegressor(update=update, eta0=0.1, average=average).partial_fit(layout(X), y)
        model.set_params(upper_bound=0.1).partial_fit(layout(X), y, sample_weight=np.r_[np.zeros(19), 1.0])
        models.append(model)
    dense, csr = models
    assert_allclose(csr.coef_, dense.coef_, rtol=1e-14)
    if average:  # over 20 rows at 0.2 and one at 0.1
        assert_allclose(csr.coef_[2:], (20 * 0.2 + 0.1) / 21, rtol=1e-14)
    else:
        assert_array_equal(csr.coef_[2:], 0.1)
    # raised again, and lowered to where no weight is: only rows change weights
    csr.set_params(upper_bound=None, average=False).partial_fit(sparse.csr_array(X), y)
    assert_array_equal(csr.coef_[2:], 0.1)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_a_refused_call_leaves_weights_outside_of_the_new_bound_where_they_were(layout):
    X, y = sparse_stream()
    model = BurgRegressor(update="explicit", eta0=0.1, average=True).partial_fit(layout(X), y)
    other = copy.deepcopy(model)
    before = model.set_params(upper_bound=0.1).coef_
    with pytest.raises(ValueError, match=r"loss of row 2 .*overflows"):
        model.partial_fit(layout(X), np.r_[y[:2], 1e200, y[3:]])
    assert_array_equal(model.coef_, before)
    model.set_params(upper_bound=None).partial_fit(layout(X), y)
    assert_array_equal(model.coef_, other.partial_fit(layout(X), y).coef_)


@pytest.mark.parametrize("divergence", ["burg", "relative_entropy", "binary_entropy", "squared_euclidean"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_constraints_of_other_estimators_hold_from_the_start(divergence, layout):
    X, y = sparse_stream()
    model = MirrorDescentRegressor(divergence=divergence, constraint=UpperBound(0.01), init=0.5, eta0=0.1)
    assert_array_equal(model.partial_fit(layout(X), y).coef_[2:], 0.01)


# --- beside a pole ----------------------------------------------------------------------------------------------------


@settings(max_examples=100)
@given(
    seed=st.integers(0, 2**32 - 1),
    update=st.sampled_from(["implicit", "importance"]),
    size=st.sampled_from([1e3, 1e6, 1e9, 1e12]),
    sign=st.sampled_from([1.0, -1.0]),
    loss=st.sampled_from(["squared_error", AbsoluteLoss(), HuberLoss(0.1)]),
    intercept=st.booleans(),
    ties=st.booleans(),
)
def test_targets_far_above_the_scale_of_the_weights_are_reached(seed, update, size, sign, loss, intercept, ties):
    """c ends near the pole of w(c), where it has no digits left; at such a rate the new prediction is the target."""
    rng = np.random.default_rng(seed)
    x = sign * (np.ones(4) if ties else rng.uniform(0.1, 1.0, size=4) * rng.choice([1.0, -0.5], size=4))
    y = size * np.sign(x[np.argmax(np.abs(x))])
    model = MirrorDescentRegressor(
        divergence="burg", loss=loss, update=update, eta0=1e15, learning_rate="constant", fit_intercept=intercept
    ).partial_fit([x], [y])
    away = 0.1 if loss == HuberLoss(0.1) else 0.0
    assert_allclose(model.predict([x]), y, rtol=1e-13, atol=away)
    assert (model.coef_ > 0).all()


def test_projections_far_away_sum_to_what_they_should():
    for w in ([1e-12], [1e-12] * 3, [1e-12, 3e-13, 1e-200]):
        for total in (1.0, 1e-11, 1e200):
            assert_allclose(Simplex(total).project(Burg(), w).sum(), total, rtol=1e-14)
    for b in (5.0, -5.0):
        w = Burg().project_hyperplane([1e-12, 2e-12], [1.0, -1.0], b)
        assert_allclose(w @ [1.0, -1.0], b, rtol=1e-14)
        theta = -1 / w + 1 / np.array([1e-12, 2e-12])  # a multiple of x
        assert_allclose(theta, theta[0] * np.array([1.0, -1.0]), rtol=1e-12)
