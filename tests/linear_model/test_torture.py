"""Finite rows of any size never give attributes or predictions that are not finite; an error changes nothing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentRegressor
from scipy import sparse

from onlinebregman import ImplicitGDRegressor, PNormClassifier
from onlinebregman.constraints import L2Ball
from onlinebregman.divergences import PNorm, SquaredEuclidean

# --- what large numbers have to give ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e306, 5e307, 1e308, 1.7e308])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_weights_of_the_p_norm_near_the_largest_float(size, layout):
    """The powers of theta, their sum and its power all have to stay in range, not only the weights."""
    settings = {"divergence": PNorm(40.0), "loss": "absolute_error", "update": "explicit", "learning_rate": "constant"}
    row = layout(np.array([[1.0, 1.0, 1.0]]))
    large, small = (
        MirrorDescentRegressor(eta0=eta0, fit_intercept=False, **settings).partial_fit(row, [1.0])
        for eta0 in (size, 1e100)
    )
    assert_allclose(large.coef_, small.coef_ * 1e-100 * size, rtol=1e-14)
    assert_allclose(large.predict([[1.0, 0.0, 0.0]]), large.coef_[:1], rtol=1e-14)


@pytest.mark.parametrize("init", [8e307, 1.7e308])
def test_averages_of_large_weights(init, unchanged):
    model = ImplicitGDRegressor(init=init, average=True, eta0=1e-300, fit_intercept=False)
    model.partial_fit([[1e-308, 0.0]], [1.0])
    assert_array_equal(model.coef_, [init, init])
    model.partial_fit(sparse.csr_array(([1e-308], [0], [0, 1]), shape=(1, 2)), [1.0])  # the other weight is unchanged
    assert_array_equal(model.coef_, [init, init])
    with unchanged(model, r"row \d .*or before.*average=False"):
        model.partial_fit(np.full((40, 2), 1e-308), np.ones(40))


def test_losses_and_weights_whose_sums_overflow(unchanged):
    model = ImplicitGDRegressor(fit_intercept=False, eta0=1e-200, shuffle=False, max_iter=3, tol=None)
    with pytest.raises(ValueError, match=r"loss of row 0 \(target 1e\+160\).*overflows"):
        model.fit([[1.0]], [1e160])
    model.partial_fit([[1.0]], [1e154])
    with unchanged(model, "loss of row 17 "):
        model.partial_fit([[1.0]] * 40, np.where(np.arange(40) < 17, 1.0, 1.7e154) * 1.0)
    with unchanged(model, r"sum of sample_weight overflows: 1e\+308 at row 0"):
        model.partial_fit([[1.0], [1.0]], [1.0, 1.0], sample_weight=[1e308, 1e308])
    hinge = PNormClassifier(loss="hinge", fit_intercept=False).partial_fit([[1.0]], [0], classes=[0, 1, 2])
    with unchanged(hinge, "loss of row 0 "):  # each of the three is finite, their sum is not
        hinge.partial_fit([[1e-300]], [1], sample_weight=[1.2e308])


def test_long_weights_on_a_ball_keep_their_direction():
    """The norm of weights whose squares overflow, or that is 10^20 times the radius."""
    for size in (1e20, 1e300):
        model = MirrorDescentRegressor(
            divergence="squared_euclidean",
            loss="absolute_error",
            update="explicit",
            eta0=size,
            constraint=L2Ball(2.0),
            fit_intercept=False,
        ).partial_fit([[3.0, 4.0]], [1.0])
        assert_allclose(model.coef_, [1.2, 1.6], rtol=1e-14)
    assert_allclose(SquaredEuclidean().project_l2_ball(np.array([3e200, 4e200]), 2.0), [1.2, 1.6], rtol=1e-14)
