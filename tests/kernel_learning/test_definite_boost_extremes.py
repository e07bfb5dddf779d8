"""DefiniteBoost on finite constraints of any size: finite results, or an error that leaves the model as it was."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from onlinebregman import DefiniteBoost

NAMES = ("alpha_", "dual_gap_", "dual_objective_", "dual_bound_", "kkt_residual_", "max_violation_", "log_kernel_")


@settings(max_examples=40)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 4),
    st.sampled_from([-150, -70, 0, 20, 70, 150]),
    st.sampled_from([-300, -100, 0, 100, 300]),
    st.sampled_from(["approximate", "exact", "corrective"]),
)
def test_finite_or_refused(seed, d, row_size, bound_size, projection):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(12, d)) * 10.0**row_size, rng.random(12) * 10.0**bound_size
    y[::4] = 0.0
    model = DefiniteBoost(projection=projection, max_iter=30)
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(np.eye(d), np.full(d, 1.0))
        before = model.kernel_
        try:
            model.partial_fit(X, y, sense=rng.choice(["<=", ">="], size=12))
        except ValueError as error:
            assert "too large" in str(error) or "overflow" in str(error)
            assert_array_equal(model.kernel_, before)
    for name in NAMES:
        assert np.isfinite(getattr(model, name)).all(), name
    assert np.isfinite(model.predict(np.eye(d))).all()


def test_a_bound_far_beyond_its_row_is_reported():
    with pytest.warns(ConvergenceWarning, match="cannot all be met"):
        model = DefiniteBoost(projection="exact").fit([[1.0, 0.0]], [1e30], sense=">=")
    assert np.isfinite(model.kernel_).all()


def test_a_bound_that_says_nothing():
    """The bound is infinite relative to its row; its multiplier stays 0."""
    given = [[0, 1], [1, 2], [3, 4]], [1.7e308, 0.1, 0.1]
    for projection in ("approximate", "exact", "corrective"):
        with np.errstate(all="raise", under="ignore"):
            model = DefiniteBoost(projection=projection).fit_pairs(*given, n_objects=5)
        assert model.alpha_[0] == 0
        assert abs(model.dual_gap_) <= model.alpha_.sum() * model.max_violation_
