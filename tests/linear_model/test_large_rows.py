"""Multiplicative steps on rows so large that exponents lose their digits, and weights down to 1e-308."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from raw import MirrorDescentRegressor
from replica import own
from scipy import sparse

from onlinebregman import EGRegressor
from onlinebregman.divergences import RelativeEntropy, SimplexEntropy

SETTINGS = {"learning_rate": "constant", "fit_intercept": False}
MODELS = {
    "simplex": lambda **kw: EGRegressor(weights="simplex", **SETTINGS, **kw),
    "signed": lambda **kw: EGRegressor(weights="signed", **SETTINGS, **kw),
    "positive": lambda **kw: EGRegressor(weights="positive", **SETTINGS, **kw),
    "generic simplex": lambda **kw: MirrorDescentRegressor(divergence=own(SimplexEntropy)(), **SETTINGS, **kw),
    "generic signed": lambda **kw: MirrorDescentRegressor(
        divergence=own(SimplexEntropy)(), signed=True, **SETTINGS, **kw
    ),
    "generic positive": lambda **kw: MirrorDescentRegressor(divergence=own(RelativeEntropy)(), **SETTINGS, **kw),
}
LAYOUTS = {"dense": np.ascontiguousarray, "csr": sparse.csr_array}
layouts = pytest.mark.parametrize("layout", LAYOUTS)


@layouts
@pytest.mark.parametrize("name", ["simplex", "generic simplex"])
@pytest.mark.parametrize("tiny", [1e-200, 1e-250, 1e-305])
def test_a_tiny_weight_grows_as_far_as_a_large_row_requires(name, layout, tiny):
    """The bracket of the scalar equation starts at exponents of 1e18, of which the last digit is 1024."""
    X = np.array([[2706637.9, -7345140.6]])
    model = MODELS[name](init=[1.0, tiny], eta0=261245.2).partial_fit(LAYOUTS[layout](X), [-558222.97])
    assert_allclose(model.predict(X), -558222.97, rtol=1e-12)
    assert_allclose(model.coef_.sum(), 1.0, rtol=1e-12)


@layouts
@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), scale=st.floats(5, 9), rate=st.floats(-10, 8))
def test_streams_of_large_rows_are_learned(name, layout, seed, scale, rate):
    """Implicit steps end between the prediction before and the target, however large the rows and the rate."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    X = 10.0**scale * rng.normal(size=(10, n)) * (rng.uniform(size=(10, n)) < 0.7)
    y = 10.0**scale * rng.choice([0.01, 1.0, 10.0]) * rng.normal(size=10)
    model = MODELS[name](eta0=10.0**rate)
    for x, target in zip(X, y, strict=True):
        start = hasattr(model, "t_")
        before = model.predict(x[None])[0] if start else np.nan
        model.partial_fit(LAYOUTS[layout](x[None]), [target])
        after = model.predict(x[None])[0]
        size = np.abs(x).max() * max(np.abs(model.coef_).sum(), 1.0) + abs(target)
        if start:
            assert min(before, target) - 1e-9 * size <= after <= max(before, target) + 1e-9 * size


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csr_array])
@pytest.mark.parametrize("loss", ["poisson", "log_loss"])
def test_infinite_values_have_no_prediction_even_where_the_link_has(loss, form, n, value):
    X = np.random.default_rng(0).uniform(size=(20, 3))
    model = MirrorDescentRegressor(loss=loss).partial_fit(X, X[:, 0])
    X[n - 1, 1] = value
    with pytest.raises(ValueError, match=f"contains infinity .*row {n - 1}"):
        model.predict(form(X[:n]))
