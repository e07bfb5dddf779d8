"""Learning rates from the theorems: the gain of a single step, the bounds on runs, and the optimality of the rate."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from sklearn.base import clone

from onlinebregman import ImplicitGDRegressor, LearningRatePath
from onlinebregman._online.theory import theory_rate
from onlinebregman.divergences import PNorm, SquaredEuclidean
from onlinebregman.losses import HuberLoss, SquaredLoss

UPDATES = {  # L <= factor(k) L_u + price(k) M D, with the rate k / M
    "explicit": (lambda k: 1 / (1 - k), lambda k: 1 / k),
    "implicit": (lambda k: 1 + k, lambda k: 1 + 1 / k),
    "importance": (lambda k: 2 * k / -np.expm1(-2 * k), lambda k: 2 / -np.expm1(-2 * k)),
}


def test_a_path_of_rates_notes_weights_for_the_bound():
    X, y = np.eye(3), np.ones(3)
    one = ImplicitGDRegressor(learning_rate="theory", data_bounds={"x": 1.0, "u": 1.0, "loss": 1.0})
    path = LearningRatePath(one, eta0s=2).fit(X, y, [1.0, 5.0, 1.0])
    assert path.best_estimator_.theory_bound_ == one.partial_fit(X, y, [1.0, 5.0, 1.0]).theory_bound_


def test_the_theorem_with_class_weights():
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    model = MirrorDescentClassifier(
        divergence="squared_euclidean", learning_rate="theory", data_bounds={"x": 1.0, "u": 1.0, "n_rows": 4}
    )
    light = clone(model).partial_fit(X, y, classes=[0, 1]).theory_bound_
    heavy = model.set_params(class_weight={1: 3.0}).partial_fit(X, y, classes=[0, 1]).theory_bound_
    assert_allclose(heavy, (1 + 3.0**2) / 2 * light)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("fit_intercept", [False, True])
@settings(max_examples=60)
@given(x=st.floats(-2.0, 2.0), u=st.floats(-2.0, 2.0), loss=st.one_of(st.none(), st.floats(-6.0, 6.0)))
def test_the_rate_minimises_its_bound(update, fit_intercept, x, u, loss):
    bounds = {"x": 10**x, "u": 10**u, "intercept": 0.3} | ({} if loss is None else {"loss": 10**loss})
    rate = theory_rate(SquaredEuclidean(), SquaredLoss(), update, bounds, 4, signed=False, fit_intercept=fit_intercept)
    smoothness, distance = 100**x + fit_intercept, (100**u + 0.09) / 2
    factor, price = UPDATES[update]
    comparator_loss = smoothness * distance if loss is None else 10**loss

    def bound(k):
        return factor(k) * comparator_loss + price(k) * smoothness * distance

    k = rate.eta0 * smoothness
    # k = eta0 M is known to rounding, 1 - k to that times the factor
    rtol = 1e-12 + 1e-15 * rate.factor
    assert_allclose([rate.factor, rate.constant], [factor(k), price(k) * smoothness * distance], rtol=rtol)
    for other in np.r_[k * np.array([0.5, 0.99, 1.01, 2.0]), np.geomspace(1e-6, 0.999, 50)]:
        if update != "explicit" or other < 1:
            assert bound(k) <= bound(other) * (1 + 1e-9)
    if update == "explicit":
        assert_allclose(k, 1 / (1 + np.sqrt(comparator_loss / (smoothness * distance))), rtol=1e-5)
    elif update == "implicit":
        assert_allclose(k, np.sqrt(smoothness * distance / comparator_loss), rtol=1e-5)


@settings(max_examples=30)
@given(x=st.floats(-2.0, 2.0), u=st.floats(-2.0, 2.0), n_rows=st.integers(1, 10**6), slope=st.sampled_from([0.5, 2.0]))
def test_the_rate_for_losses_of_bounded_slope(x, u, n_rows, slope):
    rate = theory_rate(
        PNorm(3.0),
        HuberLoss(slope),
        "implicit",
        {"x": 10**x, "u": 10**u, "n_rows": n_rows},
        4,
        signed=False,
        fit_intercept=False,
    )

    def bound(eta):
        return 100**u / 2 / eta + eta * 2 * 100**x * slope**2 * n_rows / 2

    assert rate.factor == 1.0
    assert_allclose(rate.constant, bound(rate.eta0), rtol=1e-12)
    assert bound(rate.eta0) <= min(bound(0.99 * rate.eta0), bound(1.01 * rate.eta0))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"data_bounds": None}, r"needs data_bounds\['x'\]"),
        ({"data_bounds": {"x": 1.0}}, r"needs data_bounds\['u'\], a bound on the size of the comparator"),
        ({"data_bounds": {"x": 1.0, "u": 1.0}, "loss": "huber"}, r"needs data_bounds\['n_rows'\]"),
        ({"data_bounds": {"x": 1.0, "u": 1.0, "rows": 3}}, "must be among 'x', 'u', .*; got 'rows'"),
        ({"data_bounds": {"x": 0.0, "u": 1.0}}, r"data_bounds\['x'\] must be a positive finite number; got 0.0"),
        ({"data_bounds": {"x": 1.0, "u": -1.0}}, r"data_bounds\['u'\] must be a positive finite number; got -1.0"),
        ({"data_bounds": {"x": "3", "u": 1.0}}, r"data_bounds\['x'\] must be a positive finite number; got '3'"),
        ({"data_bounds": {"x": 1.0, "u": [3]}}, r"data_bounds\['u'\] must be a positive finite number; got \[3\]"),
        (
            {"data_bounds": {"x": 1.0, "u": 1.0}, "loss": "poisson"},
            r"squared or have a bounded slope .*; got PoissonLoss\(\)",
        ),
        ({"data_bounds": {"x": 1.0, "u": 1.0}, "divergence": "burg"}, r"Burg\(\) has no bound"),
        ({"data_bounds": {"x": 1.0, "u": 1.0}, "divergence": "relative_entropy"}, "has no bound"),
        ({"data_bounds": {"x": 1.0, "u": 1.0}, "divergence": "binary_entropy"}, r"BinaryEntropy\(\) has no bound on D"),
        ({"data_bounds": {"x": 1.0, "u": 1.0}, "signed": True}, "signed must be False for learning_rate=.theory"),
        (
            {"data_bounds": {"x": 1.0, "u": 1.0}, "divergence": "p_norm", "signed": True},
            "signed must be False for learning_rate=.theory",
        ),
        ({"data_bounds": {"x": 1.0, "u": 1.0}, "init": 0.5}, "init=None"),
    ],
    ids=str,
)
def test_theory_says_what_it_lacks(parameters, message, unchanged):
    X, y = np.eye(3), np.ones(3)
    parameters = {"divergence": "squared_euclidean", **parameters}
    model = MirrorDescentRegressor(learning_rate="theory", **parameters)
    with unchanged(model, message):
        model.partial_fit(X, y)
    going_on = MirrorDescentRegressor(**{k: v for k, v in parameters.items() if k != "data_bounds"})
    going_on.partial_fit(X, y).set_params(learning_rate="theory", data_bounds=parameters["data_bounds"])
    with unchanged(going_on, message):
        going_on.partial_fit(X, y)


def test_the_bound_belongs_to_theory():
    X, y = np.eye(3), np.ones(3)
    model = MirrorDescentRegressor(divergence="squared_euclidean")
    with pytest.raises(AttributeError, match="has not learned"):
        _ = model.theory_bound_
    with pytest.raises(AttributeError, match="requires learning_rate='theory'"):
        _ = model.partial_fit(X, y).theory_bound_
    model = MirrorDescentRegressor(
        divergence="squared_euclidean", learning_rate="theory", data_bounds={"x": 1.0, "u": 1.0}
    ).partial_fit(X, y)
    with pytest.raises(AttributeError, match=r"needs data_bounds\['loss'\]"):
        _ = model.theory_bound_
