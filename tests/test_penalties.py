"""Penalties: the proximal step of each solves its equation, values, names, errors."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
import replica
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from onlinebregman._kernels.geometries.numpy_geometry import NumPyGeometry
from raw import MirrorDescentRegressor
from scipy.special import lambertw

from onlinebregman._online.compiled import Spec, make_geometry
from onlinebregman.divergences import (
    BinaryEntropy,
    Burg,
    LogDet,
    PNorm,
    RelativeEntropy,
    SeparableDivergence,
    SimplexEntropy,
    SquaredEuclidean,
    WeightedSquaredEuclidean,
)
from onlinebregman.divergences._numerics import pole_range
from onlinebregman.penalties import L1, L2, PENALTIES, ElasticNet, Penalty, resolve_penalty


class Cosh(replica.Cosh, SeparableDivergence):
    """F(w) = sum cosh w, by its three methods alone."""


class Tilted(SeparableDivergence):
    """F(w) = sum e^w, whose f(0) is not 0."""

    def potential(self, w):
        return float(np.exp(w).sum())

    def mirror(self, w):
        return np.exp(w)

    def inverse_mirror(self, theta):
        return np.log(theta)

    def step_range(self, w, x):
        return pole_range(-np.asarray(x) * np.exp(-w))  # e^w - c x > 0


SEPARABLE = [
    SquaredEuclidean(),
    WeightedSquaredEuclidean([0.5, 1.0, 4.0]),
    RelativeEntropy(),
    Burg(),
    BinaryEntropy(),
    Cosh(),
    Tilted(),
]
KINDS = [lambda alpha: L1(alpha), lambda alpha: L2(alpha), lambda alpha: ElasticNet(alpha, 0.3)]
kinds = pytest.mark.parametrize("kind", KINDS, ids=["L1", "L2", "ElasticNet"])
seeds = st.integers(0, 2**32 - 1)


def point_of(divergence, rng, n=3):
    if isinstance(divergence, BinaryEntropy):
        return rng.uniform(0.01, 0.99, size=n)
    w = rng.normal(size=n) * 10 ** rng.uniform(-1, 0.5)
    return np.abs(w) + 1e-3 if divergence.lower == 0 else w


@pytest.mark.parametrize("divergence", [*SEPARABLE, *map(PNorm, (2.0, 2.5, 4.0))], ids=repr)
@kinds
@settings(max_examples=30)
@given(seed=seeds, strength=st.floats(-6, 2))
@example(seed=1449, strength=-3.0)  # cosh w = 216 beside D = .03
def test_the_proximal_step_solves_its_equation(divergence, kind, seed, strength):
    """f(w) - f(v) is a subgradient of eta R at v; where v = 0, any of the absolute value."""
    rng = np.random.default_rng(seed)
    w, penalty = point_of(divergence, rng), (L1 if isinstance(divergence, PNorm) else kind)(10.0**strength)
    v = penalty.prox(divergence, w, 0.3)
    assert not np.shares_memory(v, w)
    divergence.check_domain(v)
    fall = divergence.mirror(w) - divergence.mirror(v)
    l1, l2 = 0.3 * penalty.l1, 0.3 * penalty.l2
    size = 1 + np.abs(divergence.mirror(w)) + np.abs(divergence.mirror(v))
    moved = v != 0
    assert (np.abs(fall - l1 * np.sign(v) - l2 * v)[moved] <= 1e-12 * size[moved]).all()
    assert (np.abs(fall)[~moved] <= l1 * (1 + 1e-12)).all()


@pytest.mark.parametrize("divergence", [*SEPARABLE, PNorm(3.0)], ids=repr)
@kinds
@settings(max_examples=30)
@given(seed=seeds, strength=st.floats(-3, 1))
def test_it_brings_the_weights_nearer_to_what_is_cheaper(divergence, kind, seed, strength):
    """eta (R(w'') - R(u)) <= D(u, w') - D(u, w'') - D(w'', w'), on which every certificate is based."""
    rng = np.random.default_rng(seed)
    w, u = point_of(divergence, rng), point_of(divergence, rng)
    penalty = L1(10.0**strength) if isinstance(divergence, PNorm) else kind(10.0**strength)
    v, D = penalty.prox(divergence, w, 1.0), divergence.divergence
    size = 1 + D(u, w) + D(u, v) + penalty.value(u) + penalty.value(w)
    assert penalty.value(v) - penalty.value(u) <= D(u, w) - D(u, v) - D(v, w) + 1e-12 * size


@pytest.mark.parametrize(
    "divergence", [SquaredEuclidean(), RelativeEntropy(), Burg(), BinaryEntropy(), PNorm(3.0)], ids=repr
)
@kinds
@settings(max_examples=40)
@given(seed=seeds, strength=st.floats(-9, 4), size=st.floats(-250, 250))
def test_the_compiled_step_is_the_readable_one(divergence, kind, seed, strength, size):
    """One row of zeros, of loss 0, is learned: the proximal step alone."""
    rng = np.random.default_rng(seed)
    penalty = L1(10.0**strength) if isinstance(divergence, PNorm) else kind(10.0**strength)
    w = point_of(divergence, rng)
    if not isinstance(divergence, BinaryEntropy | PNorm):
        w = w * 10.0**size
    assert not isinstance(make_geometry(Spec(divergence, penalty=penalty), w), NumPyGeometry)
    model = MirrorDescentRegressor(divergence=divergence, penalty=penalty, init=w, eta0=0.4, fit_intercept=False)
    v = penalty.prox(divergence, w, 0.4)
    coef = model.partial_fit(np.zeros((1, 3)), [0.0]).coef_
    assert_allclose(coef, v, rtol=2e-12, atol=1e-14 * np.abs(w).max() if divergence.lower < 0 else 0.0)
    assert_array_equal(coef == 0, v == 0)


def test_names_are_those_of_the_classes():
    assert [resolve_penalty(name, 0.5, 0.25) for name in PENALTIES] == [L1(0.5), L2(0.5), ElasticNet(0.5, 0.25)]
    assert resolve_penalty(None) is None
    own = L1(3.0)
    assert resolve_penalty(own, 0.5) is own
    with pytest.raises(ValueError, match=r"penalty must be one of 'l1', 'l2', 'elasticnet', None, .*; got 'l0'"):
        resolve_penalty("l0")


def test_squares_that_overflow_do_not_count_in_a_penalty_without_them():
    """They made the objective NaN that `tol` compares."""
    with np.errstate(over="ignore"):
        assert L1(2.0).value([1e200, -1.0]) == 2e200 and L2(2.0).value([1e200, 1e308, 1e308]) == np.inf


def test_the_elastic_net_is_between_the_two():
    w = np.array([1.0, -2.0, 0.1])
    for divergence in (SquaredEuclidean(), Cosh()):
        assert_array_equal(ElasticNet(0.3, 1.0).prox(divergence, w, 0.5), L1(0.3).prox(divergence, w, 0.5))
        assert_array_equal(ElasticNet(0.3, 0.0).prox(divergence, w, 0.5), L2(0.3).prox(divergence, w, 0.5))
    assert ElasticNet(0.3, 0.25).value(w) == pytest.approx(0.25 * L1(0.3).value(w) + 0.75 * L2(0.3).value(w))
    for kind in KINDS:
        assert_array_equal(kind(0.0).prox(SquaredEuclidean(), w, 0.5), w)


def test_parameters_are_kept_as_floats():
    small = ElasticNet(np.float16(0.5), np.float32(0.25))
    assert small == ElasticNet(0.5, 0.25) and repr(small) == "ElasticNet(alpha=0.5, l1_ratio=0.25)"
    assert type(small.l1) is type(small.l2) is type(L2(np.float32(0.5)).alpha) is float


@pytest.mark.parametrize("alpha", [-1.0, np.inf, np.float32(np.inf), 10**400, np.nan, "1", True])
def test_strengths_that_are_none_are_refused(alpha):
    for kind in KINDS:
        with pytest.raises(ValueError, match="must be a finite number >= 0"):
            kind(alpha)


@pytest.mark.parametrize("ratio", [-0.1, 1.1, np.nan, 10**400, None, True])
def test_shares_that_are_none_are_refused(ratio):
    with pytest.raises(ValueError, match=r"must be a number from 0 \(L2\) to 1 \(L1\)"):
        ElasticNet(1.0, ratio)


@pytest.mark.parametrize(
    ("divergence", "penalty", "why"),
    [
        (SimplexEntropy(), "l1", r"supports no penalty: on the simplex sum abs\(w\) = 1 for all weights"),
        (SimplexEntropy(total=2.0), "l2", "supports no penalty"),
        (PNorm(3.0), "l2", "no proximal step of sum w.2: its weights depend on each other"),
        (PNorm(3.0), "elasticnet", "Use the penalty L1"),
    ],
    ids=str,
)
def test_what_has_no_proximal_step_is_refused_before_a_row_is_learned(divergence, penalty, why):
    model = MirrorDescentRegressor(divergence=divergence, penalty=penalty)
    with pytest.raises(ValueError, match=why):
        model.partial_fit([[1.0, 2.0]], [1.0])
    assert not hasattr(model, "coef_")


def test_error_names_the_method_that_a_divergence_lacks():
    with pytest.raises(ValueError, match=r"cannot make the proximal step of L1\(alpha=1.0\): .* prox_elastic_net"):
        L1(1.0).prox(LogDet(), np.eye(2), 1.0)


def test_a_contract_needs_both_methods():
    with pytest.raises(TypeError):
        Penalty()


def test_a_weight_at_the_end_of_its_interval_stays_inside():
    """No proximal step leaves positive weights at 0, or weights below 1 at 1."""
    for divergence in (RelativeEntropy(), BinaryEntropy()):
        for kind in KINDS:
            model = MirrorDescentRegressor(divergence=divergence, penalty=kind(1e6), init=0.5, learning_rate="constant")
            coef = model.partial_fit(np.zeros((30, 2)), np.zeros(30)).coef_
            assert (coef > 0).all()
    w = np.array([1.0 - 2.0**-53, 5e-300])
    model = MirrorDescentRegressor(divergence="binary_entropy", penalty="l2", alpha=2.0, init=w, eta0=1.0)
    coef = model.partial_fit(np.zeros((1, 2)), [0.0]).coef_
    assert_allclose(coef, L2(2.0).prox(BinaryEntropy(), w, 1.0), rtol=1e-12)


def exact_binary_step(w, l1, l2):
    """logit v + l2 v = logit w - l1 in 60 digits: Newton in the logit of v, inside a bracket; v is rounded at last."""
    with localcontext(prec=60):
        w, l1, l2 = Decimal(w), Decimal(l1), Decimal(l2)
        high = w.ln() - (1 - w).ln() - l1
        goal, low = high, high - l2
        t, step = (low + high) / 2, l2
        for _ in range(400):
            v = 1 / (1 + (-t).exp())
            excess = t - goal + l2 * v
            low, high = (low, t) if excess > 0 else (t, high)
            newton = -excess / (1 + l2 * v * (1 - v))
            if abs(newton) < Decimal("1e-45"):
                break
            good = low < t + newton < high and abs(newton) <= abs(step) / 2
            step = newton if good else (low + high) / 2 - t
            t += step
        assert abs(newton) < Decimal("1e-45")
        return float(1 / (1 + (-t).exp()))


@pytest.mark.parametrize("gap", [2.0**-53, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-9])
@pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0])
def test_weights_near_1_keep_their_digits(gap, ratio):
    """Also where the step takes them far from 1, in one coordinate or in many, or would go in circles."""
    w, alphas = 1.0 - gap, [1e-3, 0.1, 1.0, 10.0, 30.0, 36.002988872455182, 40.0, 100.0, 600.0]
    for alpha in alphas:
        penalty = ElasticNet(alpha, ratio)
        exact = min(exact_binary_step(w, penalty.l1, penalty.l2), np.nextafter(1.0, 0.0))
        for point in ([w], [0.5, w, 1e-300]):
            v = penalty.prox(BinaryEntropy(), point, 1.0)[point.index(w)]
            assert abs(v - exact) <= 6 * np.spacing(np.nextafter(exact, 0.0))
        compiled = MirrorDescentRegressor(divergence="binary_entropy", penalty=penalty, init=[w], eta0=1.0)
        (v,) = compiled.partial_fit([[0.0]], [0.0]).coef_
        terms = abs(np.log(w / gap)) + penalty.l1 + penalty.l2  # it solves in the logit of v, which is a sum of these
        assert_allclose(v, exact, rtol=2 * np.finfo(float).eps * (1 + terms))


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e3, 1e6])
def test_the_ridge_of_positive_weights_at_any_strength(alpha):
    """ln v + alpha v = ln w is alpha v = W(alpha w), by Lambert's W."""
    w = np.array([1e-6, 1.0, 30.0])
    model = MirrorDescentRegressor(divergence="relative_entropy", penalty="l2", alpha=alpha, init=w, eta0=1.0)
    assert_allclose(model.partial_fit(np.zeros((1, 3)), [0.0]).coef_, lambertw(alpha * w).real / alpha, rtol=1e-13)
