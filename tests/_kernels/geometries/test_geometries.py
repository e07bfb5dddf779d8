"""Hard steps of exponentiated gradient. Others of every geometry: `_kernels/losses/test_losses.py`."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from replica import Replica
from sparse_rows import LAYOUTS

from onlinebregman import EGRegressor


def egu(**parameters):
    """Explicit exponentiated gradient on free positive weights, of rate 1."""
    return EGRegressor(
        weights="positive", update="explicit", eta0=1.0, learning_rate="constant", fit_intercept=False, **parameters
    )


@pytest.mark.parametrize("update", ["implicit", "explicit"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_a_simplex_step_on_a_row_far_above_its_target(update, fit_intercept, layout):
    """All exponents -c x are below -709 here; only their differences matter."""
    x, y = np.array([100.0, 101.0, 102.5]), -50.0
    steps = {"update": update, "eta0": 1.0, "fit_intercept": fit_intercept}
    replica = Replica("simplex_entropy", "squared_error", w=np.full(3, 1 / 3), **steps)
    replica.learn(x, y)
    model = EGRegressor(weights="simplex", learning_rate="constant", **steps)
    model.partial_fit(LAYOUTS[layout](x[None]), [y])
    assert_allclose(model.coef_, replica.coef, rtol=1e-11)
    assert_allclose(model.intercept_, replica.intercept, rtol=1e-12)


# --- the vectorised exponential ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("span", [1.0, 30.0, 700.0])
def test_the_exponential_is_good_to_the_last_place(span, layout):
    """Rows of binary fractions have an exact prediction, so that c = eta (a - y) is exactly 1, and w' = exp(-x)."""
    rng = np.random.default_rng(int(span))
    x = np.ldexp(np.rint(np.ldexp(rng.uniform(-span, span, size=1001), 24)), -24)
    a = float(x.sum())  # 45 bits at most, whatever the order
    assert a == sum(map(float, x[::-1]))
    model = egu(init=1.0)
    model.partial_fit(LAYOUTS[layout](x[None]), [a - 1.0])
    exact = np.exp(-x.astype(np.longdouble))
    assert np.abs((model.coef_ - exact) / exact).max() <= 4e-16
    assert_allclose(model.coef_, np.exp(-x), rtol=5e-16)


def test_weights_never_reach_zero_and_a_large_exponent_is_an_error():
    model = egu(init=1.0)
    model.partial_fit([[900.0, 0.0]], [899.0])  # c = 1, a factor of e^-900
    assert model.coef_[0] == np.finfo(float).tiny and model.coef_[1] == 1.0
    before = model.coef_
    with pytest.raises(ValueError, match="row 0"):
        model.partial_fit([[0.0, 900.0]], [901.0])  # c = -1, a factor of e^900
    assert (model.coef_ == before).all()
