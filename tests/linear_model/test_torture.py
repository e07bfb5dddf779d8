"""Finite rows of any size never give attributes or predictions that are not finite; an error changes nothing."""

import copy
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentClassifier, MirrorDescentRegressor, ScaleInvariantClassifier, ScaleInvariantRegressor
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning

from onlinebregman import (
    BurgRegressor,
    EGRegressor,
    ForwardRegressor,
    ImplicitGDRegressor,
    PerceptronClassifier,
    PNormClassifier,
    PNormRegressor,
    WinnowClassifier,
)
from onlinebregman.constraints import L2Ball, UpperBound
from onlinebregman.divergences import PNorm, SquaredEuclidean

MODELS = {
    "gd": lambda **kw: ImplicitGDRegressor(**kw),
    "forward": lambda **kw: ForwardRegressor(),
    "ridge": lambda **kw: ForwardRegressor(forward=False, alpha=1e-3),
    "eg": lambda **kw: EGRegressor(weights="simplex", **kw),
    "eg signed": lambda **kw: EGRegressor(**kw),
    "egu": lambda **kw: EGRegressor(weights="positive", **kw),
    "burg": lambda **kw: BurgRegressor(**kw),
    "p-norm": lambda **kw: PNormRegressor(p=40, **kw),
    "absolute p-norm": lambda **kw: MirrorDescentRegressor(divergence="p_norm", loss="absolute_error", **kw),
    "huber gd": lambda **kw: MirrorDescentRegressor(divergence="squared_euclidean", loss="huber", **kw),
    "poisson": lambda **kw: MirrorDescentRegressor(divergence="squared_euclidean", loss="poisson", **kw),
    "poisson egu": lambda **kw: MirrorDescentRegressor(loss="poisson", divergence="relative_entropy", **kw),
    "logistic": lambda **kw: MirrorDescentRegressor(divergence="squared_euclidean", loss="log_loss", **kw),
    "binary": lambda **kw: MirrorDescentRegressor(divergence="binary_entropy", signed=True, **kw),
    "burg signed": lambda **kw: MirrorDescentRegressor(divergence="burg", signed=True, **kw),
    "ball": lambda **kw: MirrorDescentRegressor(divergence="squared_euclidean", constraint=L2Ball(1.0), **kw),
    "bounded": lambda **kw: MirrorDescentRegressor(
        divergence="relative_entropy", constraint=UpperBound(2.0), loss="absolute_error", **kw
    ),
    "perceptron": lambda eta0, average, **kw: PerceptronClassifier(eta0=eta0, average=average),
    "winnow": lambda eta0, average, **kw: WinnowClassifier(eta0=eta0, average=average),
    "classes": lambda **kw: MirrorDescentClassifier(divergence="squared_euclidean", **kw),
    "hinge classes": lambda **kw: PNormClassifier(loss="hinge", **kw),
    "adagrad": lambda **kw: MirrorDescentRegressor(divergence="adagrad", loss="huber", **kw),
    "normalised": lambda **kw: MirrorDescentRegressor(**kw),
    "normalised classes": lambda **kw: MirrorDescentClassifier(**kw),
    "diagonal": lambda **kw: MirrorDescentRegressor(divergence="diagonal_newton", loss="quantile", **kw),
    "bets": lambda eta0, average, **kw: ScaleInvariantRegressor(average=average),
    "bets on classes": lambda eta0, average, **kw: ScaleInvariantClassifier(average=average),
}
SIZES = [0.0, 5e-324, 1e-300, 1e-160, 1e-20, 1.0, 800.0, 1e6, 1e20, 1e155, 1e300, 1.7e308]
sizes = st.sampled_from(SIZES)


def numbers(rng, largest, shape):
    """Finite numbers of all sizes up to the largest one."""
    below = rng.choice([s for s in SIZES if s <= largest], size=shape)
    return np.clip(below * rng.choice([-1.0, -0.5, 0.5, 1.0], size=shape), -1.7e308, 1.7e308)


def what_is_known(model):
    """All public attributes that are numbers or arrays of numbers, stored or computed on access."""
    names = {name for name in [*vars(model), *dir(type(model))] if name.endswith("_") and not name.startswith("_")}
    for name in sorted(names):
        try:
            value = getattr(model, name)
        except AttributeError:
            continue
        if name == "regret_bound_" or isinstance(value, str):
            continue
        array = np.asarray(value)
        if array.dtype.kind == "f":
            yield name, array


def assert_finite(model, X):
    for name, value in what_is_known(model):
        if name == "noise_variance_" and model._learner.degrees_of_freedom == 0:  # one row, which the intercept fits
            assert value == np.inf
            continue
        assert np.isfinite(value).all(), f"{name} = {value}"
    for name in ("predict", "decision_function", "predict_proba", "predict_log_proba"):
        if not hasattr(model, name):
            continue
        try:
            said = getattr(model, name)(X)
        except ValueError as error:
            assert "row" in str(error)
            assert "cale" in str(error), error
        else:
            assert said.dtype.kind in "iU" or np.isfinite(said).all(), f"{name}: {said}"


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**32 - 1),
    x=sizes,
    y=sizes,
    h=st.sampled_from([None, 1e-300, 1.0, 1e300, 1e308]),
    eta0=st.sampled_from([1e-300, 1e-3, 1.0, 1e10, 1e300]),
    init=st.sampled_from([None, None, 1e-300, 1e150, 1.7e308]),
    update=st.sampled_from(["implicit", "explicit", "importance"]),
    average=st.booleans(),
    track_regret=st.booleans(),
    csr=st.booleans(),
)
def test_nothing_that_is_not_finite(name, seed, x, y, h, eta0, init, update, average, track_regret, csr, state):
    rng = np.random.default_rng(seed)
    model = MODELS[name](
        eta0=eta0, init=init, update=update, average=average, track_regret=track_regret, learning_rate="constant"
    )
    classes = is_classifier(model)
    n = int(rng.integers(1, 4))
    for call in range(3):
        X, targets = numbers(rng, x, (4, n)), numbers(rng, y, 4)
        if classes:
            targets = rng.integers(3, size=4)
        elif "poisson" in name:
            targets = np.abs(targets)
        elif name == "logistic":
            targets = rng.choice([0.0, 0.3, 1.0], size=4)
        rows = sparse.csr_array(X) if csr else X
        extra = {"classes": [0, 1, 2]} if classes and call == 0 else {}
        weights = None if h is None else h * rng.choice([0.0, 0.5, 1.0], size=4)
        before = copy.deepcopy(model)
        try:
            model.partial_fit(rows, targets, sample_weight=weights, **extra)
        except ValueError as error:
            assert any(word in str(error).lower() for word in ("row", "init", "domain", "sample_weight")), error
            assert state(model) == state(before)
        if not model.__sklearn_is_fitted__():
            return
        assert_finite(model, rows)
        assert_finite(model, numbers(rng, 1.7e308, (3, n)))


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("forward", "ridge")])
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), x=sizes, y=sizes, eta0=st.sampled_from([1e-200, 1.0, 1e10]))
def test_epochs_that_are_not_finite(name, seed, x, y, eta0):
    """`loss_curve_` is that of a completed fit, or not set."""
    rng = np.random.default_rng(seed)
    parameters = {} if name in ("perceptron", "winnow", "bets", "bets on classes") else {"update": "implicit"}
    model = MODELS[name](eta0=eta0, average=False, **parameters).set_params(max_iter=3, tol=None)
    X, targets = numbers(rng, x, (4, 2)), numbers(rng, y, 4)
    targets = np.array([0, 1, 2, 1]) if is_classifier(model) else np.abs(targets)
    targets = np.clip(targets, 0.0, 1.0) if name == "logistic" else targets
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            model.fit(X, targets)
        except ValueError:
            assert not hasattr(model, "loss_curve_")
        else:
            assert np.isfinite(model.loss_curve_).all()
            assert_finite(model, X)


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
    with unchanged(model, r"row \d or before.*average=False"):
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
