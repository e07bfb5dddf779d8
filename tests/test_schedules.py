"""Learning rates: the shared power law, its named cases, and what estimators resolve."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from onlinebregman.schedules import (
    LEARNING_RATES,
    Constant,
    DiameterOverGradient,
    InverseScaling,
    Schedule,
    StronglyConvex,
    resolve_schedule,
)

laws = settings(max_examples=60, deadline=None)
positive = st.floats(1e-6, 1e6)
CASES = [
    (Constant(0.3), lambda t: 0.3 + 0 * t),
    (InverseScaling(0.7), lambda t: 0.7 / np.sqrt(t)),
    (InverseScaling(0.7, power_t=0.25), lambda t: 0.7 / t**0.25),
    (StronglyConvex(strong_convexity=4.0), lambda t: 1 / (4.0 * t)),
    (DiameterOverGradient(diameter=3.0, gradient_bound=5.0), lambda t: 3.0 / (5.0 * np.sqrt(t))),
    (Schedule(2.0, 1.5), lambda t: 2.0 / t**1.5),
]
every = pytest.mark.parametrize(("schedule", "formula"), CASES, ids=[repr(case[0]) for case in CASES])


@every
def test_formulas(schedule, formula):
    t = np.arange(1, 50).reshape(7, 7)
    assert_allclose(schedule(t), formula(t), rtol=1e-14)
    assert_allclose(schedule(t), schedule.scale / t.astype(float) ** schedule.power, rtol=1e-14)
    assert schedule(t).shape == t.shape
    assert isinstance(schedule(9), float) and schedule(9) == pytest.approx(formula(9), rel=1e-14)
    assert schedule(1) == schedule.scale


@laws
@given(positive, st.floats(0, 3), st.integers(1, 10**12))
def test_rates_are_positive_and_never_rise(eta0, power, t):
    schedule = InverseScaling(eta0, power)
    assert 0 < schedule(t + 1) <= schedule(t) * (1 + 1e-15) <= eta0 * (1 + 1e-15)


@every
def test_rows_count_from_one(schedule, formula):
    for t in (0, -1, np.nan, [1, 0]):
        with pytest.raises(ValueError, match="t must be a row number >= 1"):
            schedule(t)


@pytest.mark.parametrize("bad", [0, -0.1, np.nan, np.inf, np.float32(np.inf), 10**400, "0.1", None, True])
def test_bad_parameters(bad):
    for make, name in [
        (Constant, "eta0"),
        (InverseScaling, "eta0"),
        (StronglyConvex, "strong_convexity"),
        (lambda v: DiameterOverGradient(v, 1.0), "diameter"),
        (lambda v: DiameterOverGradient(1.0, v), "gradient_bound"),
        (Schedule, "scale"),
    ]:
        with pytest.raises(ValueError, match=f"{name} must be a positive finite number; got"):
            make(bad)


@pytest.mark.parametrize("bad", [-0.5, np.nan, np.inf, 10**400, "0.5", None])
def test_bad_powers(bad):
    with pytest.raises(ValueError, match="power_t must be a finite number >= 0; got"):
        InverseScaling(0.1, bad)


@laws
@given(positive, st.floats(0, 2))
def test_resolve_names(eta0, power_t):
    powers = {"constant": 0.0, "invscaling": power_t, "strongly_convex": 1.0, "sqrt": 0.5}
    assert set(powers) == set(LEARNING_RATES)
    for name, power in powers.items():
        schedule = resolve_schedule(name, eta0, power_t)
        assert (schedule.scale, schedule.power) == (eta0, power)
    # the named rates are those of the theorems
    assert_allclose(resolve_schedule("strongly_convex", eta0)(7), StronglyConvex(1 / eta0)(7), rtol=1e-14)
    assert_allclose(resolve_schedule("sqrt", eta0)(7), DiameterOverGradient(eta0, 1.0)(7), rtol=1e-14)


def test_resolve_objects_as_they_are():
    schedule = StronglyConvex(2.0)
    assert resolve_schedule(schedule, eta0=-1.0, power_t=None) is schedule


@pytest.mark.parametrize("bad", ["optimal", "", None, 0.1, ["constant"]])
def test_resolve_refuses_unknown_names(bad):
    with pytest.raises(ValueError, match="'constant', 'invscaling', 'strongly_convex', 'sqrt', or a Schedule"):
        resolve_schedule(bad, 0.1, 0.5)


@pytest.mark.parametrize("name", LEARNING_RATES)
def test_resolve_refuses_rates_that_are_not_positive(name):
    for bad in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="eta0 must be a positive finite number; got"):
            resolve_schedule(name, bad, 0.5)
