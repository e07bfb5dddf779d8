"""Finite rows, weights and parameters of any size: finite numbers, or an error with the reason."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from onlinebregman import MaxEntDensity, OnlineExponentialFamily, OnlineGaussian

SIZES = st.sampled_from([0.0, 1.0, 0.3, 5e-324, 1e-300, 1e-154, 1e-30, 1e30, 1e150, 1e154, 1e300, 1.7e308])
SIGNED = SIZES | SIZES.map(lambda x: -x)
ROWS = st.tuples(st.integers(1, 4), st.integers(1, 3))


def said_by(model, X):
    """All numbers that a model reports; those for which it raises an error are left out."""
    names = [name for name in dir(type(model)) if name.endswith("_") and not name.startswith("_")]
    calls = {name: lambda name=name: getattr(model, name) for name in [*names, *vars(model)]}
    calls["score_samples"] = lambda: model.score_samples(X)
    calls["predict"] = lambda: model.predict(X)
    calls["sample"] = lambda: model.sample(3, random_state=0)
    for name, call in calls.items():
        try:
            value = call()
        except (ValueError, AttributeError):
            continue
        if isinstance(value, float | np.ndarray):
            yield name, value


def check(model, X, weights=None, allowed=()):
    """Learn the rows in two calls, which may fail; then all numbers must be finite, except for those `allowed`."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # warnings are not tested here
        warnings.simplefilter("ignore")
        for rows in (slice(0, 2), slice(0, None)):
            extra = {} if weights is None else {"sample_weight": weights[: len(X)][rows]}
            try:
                model.partial_fit(X[rows], **extra)
            except ValueError:
                continue
        for name, value in said_by(model, X):
            assert not np.isnan(value).any(), name
            assert name in allowed or np.isfinite(value).all(), name


@settings(max_examples=30)
@given(
    X=arrays(float, ROWS, elements=SIGNED),
    weights=arrays(float, 4, elements=SIZES) | st.none(),
    parameters=st.fixed_dictionaries(
        {
            "covariance_type": st.sampled_from(["full", "diag"]),
            "strategy": st.sampled_from(["forward", "incremental_offline"]),
            "prior_weight": SIZES,
            "prior_mean": SIGNED,
            "prior_covariance": SIZES,
        }
    ),
)
def test_gaussians(X, weights, parameters):
    check(OnlineGaussian(**parameters), X, weights, allowed=("offline_loss_", "regret_"))


@settings(max_examples=50)
@given(
    family=st.sampled_from(["gaussian", "bernoulli", "poisson", "exponential", "gamma"]),
    X=arrays(float, ROWS, elements=SIGNED),
    weights=arrays(float, 4, elements=SIZES) | st.none(),
    parameters=st.fixed_dictionaries(
        {
            "strategy": st.sampled_from(["forward", "incremental_offline", "last_step_minimax", "minimax"]),
            "prior_weight": SIZES,
            "prior_mean": SIZES | st.none(),
            "variance": SIZES,
            "shape": SIZES,
        }
    ),
)
def test_exponential_families(family, X, weights, parameters):
    if family != "gaussian":
        X = np.abs(X)
    if family == "bernoulli":
        X = X / (1 + X)
    if family == "poisson":
        X = np.floor(X)
    allowed = ("offline_loss_", "regret_", "natural_parameters_")  # infinite at the edge of a family, as documented
    # of a Bernoulli distribution with probability 0 or 1
    edge = ("score_samples",) if family in ("bernoulli", "poisson") else ()
    check(OnlineExponentialFamily(family, horizon=10, **parameters), X, weights, allowed=(*allowed, *edge))


@settings(max_examples=30)
@given(
    X=arrays(float, ROWS, elements=SIGNED),
    weights=arrays(float, 4, elements=SIZES) | st.none(),
    alpha=SIZES,
    solver=st.sampled_from(["newton", "lbfgs", "iterative_scaling"]),
)
def test_maximum_entropy(X, weights, alpha, solver):
    # multipliers at infinity stand for a support; rows outside of it, and of the domain, have probability 0
    model = MaxEntDensity(alpha=alpha, solver=solver, max_iter=30)
    check(model, X, weights, allowed=("lambda_", "score_samples"))


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_a_log_density_beyond_float64_names_its_row(covariance_type):
    model = OnlineGaussian(covariance_type=covariance_type, prior_weight=1.0).fit([[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match=r"log-density of row 1 \(largest value 1e\+300\) is not finite"):
        model.score_samples([[0.0, 1.0], [1e300, 0.0]])


def test_impossible_rows_have_log_density_minus_infinity():
    coin = OnlineExponentialFamily("bernoulli", strategy="incremental_offline", prior_weight=1.0, prior_mean=0.5)
    coin = coin.fit(np.ones((3, 1)), sample_weight=[1e17] * 3)
    assert coin.expectation_parameters_ == 1.0
    assert coin.score_samples([[1.0], [0.0]]).tolist() == [0.0, -np.inf]
