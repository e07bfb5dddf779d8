"""Laws of the losses: derivatives, matching divergences, convexity, kinks, domains."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.special import expit, logit
from sklearn._loss import HalfTweedieLoss

from onlinebregman.losses import (
    LOSSES,
    AbsoluteLoss,
    BoundLoss,
    EpsilonInsensitiveLoss,
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    Loss,
    ModifiedHuberLoss,
    PoissonLoss,
    QuantileLoss,
    SquaredEpsilonInsensitiveLoss,
    SquaredHingeLoss,
    SquaredLoss,
    TweedieLoss,
    resolve_loss,
)

laws = settings(max_examples=60, deadline=None)
# loss, strategy of targets, inverse of the link
SMOOTH = [
    (SquaredLoss(), st.floats(-5, 5), lambda y: y),
    (LogisticLoss(), st.floats(0.001, 0.999), logit),
    (PoissonLoss(), st.floats(0.01, 20), np.log),
]
CORNERS = [(LogisticLoss(), st.sampled_from([0.0, 1.0])), (PoissonLoss(), st.just(0.0))]
MATCHING = [case[:2] for case in SMOOTH] + CORNERS
labels, tenths = st.sampled_from([-1.0, 1.0]), st.integers(-50, 50).map(lambda k: k / 10)
# not matching losses; the targets are such that scores drawn from them hit the kinks
KINKED = [
    (HingeLoss(), labels),
    (HingeLoss(margin=0.0), labels),
    (HingeLoss(margin=2.5), labels),
    (AbsoluteLoss(), tenths),
    (EpsilonInsensitiveLoss(), tenths),
    (EpsilonInsensitiveLoss(epsilon=0.0), tenths),
    (EpsilonInsensitiveLoss(epsilon=1.5), tenths),
    (QuantileLoss(), tenths),
    (QuantileLoss(quantile=0.9), tenths),
]
BENT = [
    (HuberLoss(), tenths),
    (HuberLoss(epsilon=0.5), tenths),
    (BoundLoss(), tenths),
    (SquaredEpsilonInsensitiveLoss(), tenths),
    (SquaredEpsilonInsensitiveLoss(epsilon=1.5), tenths),
    (SquaredHingeLoss(), labels),
    (ModifiedHuberLoss(), labels),
    (TweedieLoss(), st.one_of(st.just(0.0), st.floats(0.01, 20))),
    (TweedieLoss(power=1.0), st.one_of(st.just(0.0), st.floats(0.01, 20))),
    (TweedieLoss(power=1.9), st.floats(0.01, 20)),
    (TweedieLoss(power=2.0), st.floats(0.01, 20)),
]
ALL = [case[0] for case in SMOOTH + KINKED + BENT]
scores = st.floats(-6, 6)


@pytest.mark.parametrize(("loss", "targets"), MATCHING + KINKED + BENT)
@laws
@given(st.data())
def test_derivatives_by_finite_differences(loss, targets, data):
    a, y, h = data.draw(scores), data.draw(targets), 1e-5
    bends = [*loss.kinks(y), *loss.bends(y), 0.0 if isinstance(loss, HingeLoss | SquaredHingeLoss) else np.inf]
    assume(all(abs(a - bend) > 2 * h for bend in bends))
    slope = (loss.value(a + h, y) - loss.value(a - h, y)) / (2 * h)
    assert_allclose(loss.derivative(a, y), slope, rtol=1e-6, atol=1e-7)
    curvature = (loss.derivative(a + h, y) - loss.derivative(a - h, y)) / (2 * h)
    assert_allclose(loss.curvature(a, y), curvature, rtol=1e-6, atol=1e-7)
    slope = (loss.link(a + h) - loss.link(a - h)) / (2 * h)
    assert_allclose(loss.link_derivative(a), slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("loss", "targets"), MATCHING)
@laws
@given(st.data())
def test_a_matching_loss_has_the_error_of_the_prediction_as_derivative(loss, targets, data):
    a, y = data.draw(scores), data.draw(targets)
    assert_allclose(loss.derivative(a, y), loss.link(a) - y, rtol=1e-14, atol=3e-16)  # the difference loses digits
    assert loss.curvature(a, y) == loss.link_derivative(a)


@pytest.mark.parametrize(("loss", "targets", "inverse"), SMOOTH)
@laws
@given(st.data())
def test_value_is_the_matching_divergence(loss, targets, inverse, data):
    a, y = data.draw(scores), data.draw(targets)
    area = quad(lambda z: float(loss.link(z)) - y, inverse(y), a, epsabs=1e-12, epsrel=1e-10)[0]
    assert_allclose(loss.value(a, y), area, rtol=1e-7, atol=1e-10)
    assert_allclose(loss.value(inverse(y), y), 0, atol=1e-14)


@pytest.mark.parametrize(("loss", "targets"), MATCHING + KINKED + BENT)
@laws
@given(st.data())
def test_convex_and_not_negative(loss, targets, data):
    a, b, y, mix = data.draw(scores), data.draw(scores), data.draw(targets), data.draw(st.floats(0, 1))
    between = loss.value(mix * a + (1 - mix) * b, y)
    assert 0 <= between <= mix * loss.value(a, y) + (1 - mix) * loss.value(b, y) + 1e-12
    # the derivative is a subgradient everywhere, also at the kink
    assert loss.value(b, y) >= loss.value(a, y) + loss.derivative(a, y) * (b - a) - 1e-12


def test_hinge_of_margin_zero_is_half_the_divergence_of_the_absolute_value():
    loss, a = HingeLoss(margin=0.0), np.array([-3.0, -0.5, 0.0, 0.5, 3.0])
    for y in (-1.0, 1.0):
        assert_allclose(loss.value(a, y), (np.abs(a) - y * a) / 2)
        off = a != 0
        assert_allclose(loss.derivative(a, y)[off], (loss.link(a) - y)[off] / 2)
    assert_array_equal(loss.link(a), [-1, -1, 0, 1, 1])
    assert_array_equal(loss.link_derivative(a), 0)


@pytest.mark.parametrize("margin", [0.0, 0.5, 1.0])
def test_hinge_learns_from_a_score_of_zero_and_not_from_a_row_without_loss(margin):
    loss = HingeLoss(margin=margin)
    for y in (-1.0, 1.0):
        assert loss.derivative(0.0, y) == loss.derivative(-2.0 * y, y) == -y
        assert loss.derivative((margin + 1.0) * y, y) == 0
        if margin > 0:
            assert loss.value(margin * y, y) == loss.derivative(margin * y, y) == 0


@pytest.mark.parametrize(("loss", "targets"), KINKED)
@laws
@given(st.data())
def test_the_derivative_jumps_exactly_at_the_kinks(loss, targets, data):
    y = data.draw(targets)
    kinks = loss.kinks(y)
    assert len(kinks) == 1 + (type(loss) is EpsilonInsensitiveLoss)
    for kink in kinks:
        low, high = loss.subdifferential(kink, y)
        assert low < high and low <= loss.derivative(kink, y) <= high
        assert low == loss.derivative(kink - 1e-6, y) and high == loss.derivative(kink + 1e-6, y)
    a = data.draw(scores)
    if a not in kinks:
        assert_array_equal(loss.subdifferential(a, y), loss.derivative(a, y))


@pytest.mark.parametrize(("loss", "targets"), MATCHING + BENT)
def test_losses_without_kinks(loss, targets):
    y, a = np.array([[-1.0, 0.5, 1.0]]), np.array([[1.0], [2.0]])
    assert loss.kinks(y).shape == (0, 1, 3) and loss.kinks(0.5).shape == (0,)
    assert loss.bends(y).shape == (len(loss.bends(0.5)), 1, 3)
    for bend in loss.bends(1.0):
        assert_allclose(*loss.subdifferential(bend, 1.0), atol=1e-12)
        assert loss.curvature(bend - 1e-6, 1.0) != loss.curvature(bend + 1e-6, 1.0)
    for side in loss.subdifferential(a, y):
        assert_array_equal(side, loss.derivative(a, y))


@laws
@given(scores, tenths, st.floats(0.01, 5))
def test_relations_between_the_losses_of_a_residual(a, y, epsilon):
    r = abs(a - y)
    huber, tube = HuberLoss(epsilon), EpsilonInsensitiveLoss(epsilon)
    assert_allclose(huber.value(a, y), r**2 / 2 if r <= epsilon else epsilon * r - epsilon**2 / 2, rtol=1e-12)
    # the integral of the insensitive derivative is what the squared loss has beyond Huber's
    assert_allclose(SquaredLoss().value(a, y) - huber.value(a, y), tube.value(a, y) ** 2 / 2, rtol=1e-9, atol=1e-12)
    assert AbsoluteLoss().value(a, y) == r == EpsilonInsensitiveLoss(0.0).value(a, y)
    for loss in (huber, tube, AbsoluteLoss()):
        assert loss.link(a) == a and loss.link_derivative(a) == 1


@laws
@given(scores, tenths)
def test_a_bound_is_half_of_the_squared_loss(a, y):
    """An upper and a lower bound of abs(y) together are the squared loss; the sign of y says which, that of 0 too."""
    both = BoundLoss().value(a, abs(y)) + BoundLoss().value(a, -abs(y))
    assert both == SquaredLoss().value(a, abs(y))
    assert BoundLoss().derivative(a, y) in (0.0, a - abs(y))
    assert (BoundLoss().derivative(a, y) == 0) == (a >= -y if np.signbit(y) else a <= y)
    assert BoundLoss().value(1.0, -0.0) == 0.0 and BoundLoss().value(1.0, 0.0) == 0.5


SIZES = np.array([0.0, 5e-324, 1e-300, 1e-8, 1.0, 36.0, 709.0, 750.0, 1e4, 1e154, 1e300, 1e308, np.finfo(float).max])


@pytest.mark.parametrize("loss", [*ALL, QuantileLoss([0.1, 0.9])], ids=repr)
def test_scores_and_targets_of_any_size(loss):
    """No warnings, which are errors here."""
    a, y = np.r_[-SIZES, SIZES], np.r_[-SIZES, SIZES]
    y = y[[loss._admits(np.array(target)) for target in y]][:, np.newaxis]
    if len(loss.parts) > 1:
        a, y = np.stack([a, a], axis=-1), y[..., np.newaxis]
    value, *others = (
        loss.value(a, y),
        loss.derivative(a, y),
        loss.curvature(a, y),
        loss.link(a),
        loss.link_derivative(a),
    )
    assert (value >= 0).all() and not any(np.isnan(out).any() for out in others)
    if len(loss.parts) > 1:
        return
    assert not np.isnan(loss.subdifferential(a, y)).any()
    for one in ((np.float64(1e308), y.flat[0]), (np.float64(-1e308), y.flat[-1])):  # NumPy has other warnings for them
        assert not np.isnan([loss.value(*one), loss.derivative(*one), loss.curvature(*one)]).any()


@pytest.mark.parametrize("loss", [PoissonLoss(), *(TweedieLoss(1 + p) for p in (0.0, 1e-9, 1e-3))], ids=repr)
def test_half_deviances_of_large_targets_are_infinite_where_they_exceed_all_floats(loss):
    assert loss.value(750.0, 1e308) == loss.value(1e308, 36.0) == np.inf
    assert loss.value(709.5, 1e308) < 1e308


def test_values_keep_their_digits():
    assert LogisticLoss().value(-1e4, 1.0) == 1e4
    assert LogisticLoss().value(50.0, 1.0) == pytest.approx(np.exp(-50), rel=1e-12, abs=0)
    assert LogisticLoss().link_derivative(50.0) == pytest.approx(np.exp(-50), rel=1e-12, abs=0)
    assert LogisticLoss().derivative(50.0, 1.0) == pytest.approx(-np.exp(-50), rel=1e-12, abs=0)
    assert LogisticLoss().derivative(3.0, 0.25) == pytest.approx(expit(3.0) - 0.25, rel=1e-14, abs=0)
    gap = 1e-7  # D = y gap^2/2 near the minimum
    assert PoissonLoss().value(np.log(3.0) + gap, 3.0) == pytest.approx(1.5 * gap**2, rel=1e-2, abs=0)
    assert PoissonLoss().value(0.0, 1e-300) == pytest.approx(1.0)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_vectorised(loss):
    a, y = np.linspace(-2, 2, 6).reshape(3, 2), np.array([1.0, 1.0])
    left, right = (lambda a, y, k=k: loss.subdifferential(a, y)[k] for k in (0, 1))
    for method in (loss.value, loss.derivative, loss.curvature, left, right):
        for targets in (y, np.ones(()), np.ones((2, 1, 1))):
            out = method(a, targets)
            assert out.shape == np.broadcast_shapes(a.shape, targets.shape)
            one_by_one = [[float(method(s, 1.0)) for s in row] for row in a]
            assert_array_equal(out, np.broadcast_to(one_by_one, out.shape))
        assert np.ndim(method(0.5, 1.0)) == 0
    assert loss.link(a).shape == loss.link_derivative(a).shape == a.shape
    assert np.ndim(loss.link(0.5)) == np.ndim(loss.link_derivative(0.5)) == 0
    one, two = loss.kinks(1.0), loss.kinks(y)
    assert_array_equal(two, np.stack([one, one], axis=-1))
    out = loss.link(a)
    assert not np.shares_memory(out, a)


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        (SquaredLoss(), [1.0, np.nan], r"y = nan at row 1 is outside the domain finite y of SquaredLoss\(\); remove"),
        (LogisticLoss(), [0.0, 1.0, -1.0], r"y = -1 at row 2 is outside the domain 0 <= y <= 1 .* as 0 and 1"),
        (LogisticLoss(), [0.5, 1.5], r"y = 1.5 at row 1 is outside the domain 0 <= y <= 1"),
        (LogisticLoss(), np.nan, "y = nan at row 0"),
        (HingeLoss(), [1.0, 0.0], r"y = 0 at row 1 is outside the domain y = -1 or 1 .* as -1 and 1"),
        (PoissonLoss(), [3.0, -2.0], r"y = -2 at row 1 is outside the domain y >= 0 .* non-negative"),
        (PoissonLoss(), [np.inf], "y = inf at row 0"),
        (HuberLoss(0.5), [0.0, np.inf], r"y = inf at row 1 is outside the domain finite y of HuberLoss\(epsilon=0.5\)"),
    ],
)
def test_targets_outside_the_domain(loss, y, message):
    with pytest.raises(ValueError, match=message):
        loss.check_target(y)


@pytest.mark.parametrize(("loss", "targets"), MATCHING + KINKED + BENT)
@laws
@given(st.data())
def test_facts_that_estimators_ask_for(loss, targets, data):
    a, b, y = data.draw(scores), data.draw(scores), data.draw(targets)
    assert abs(loss.derivative(a, y)) <= loss.lipschitz
    mu, beta = loss.curvature_range
    rise = (loss.derivative(a, y) - loss.derivative(b, y)) * (a - b)
    assert mu * (a - b) ** 2 - 1e-9 <= rise
    assert beta == np.inf or rise <= beta * (a - b) ** 2 + 1e-9
    if "classification" in loss.tasks:
        low, high = loss.labels
        loss.check_target([low, high])
        assert low < high and loss.value(2.0, high) < loss.value(-2.0, high)
    least, most = loss.target_range
    assert least <= y <= most
    for outside in {np.nextafter(least, -np.inf), np.nextafter(most, np.inf)} - {-np.inf, np.inf}:
        with pytest.raises(ValueError, match="outside the domain"):
            loss.check_target(outside)
    if loss.probabilistic:
        p = loss.probability([-a, a])
        assert_allclose(p.sum(), 1.0)
        assert ((p >= 0) & (p <= 1)).all() and (p[1] - p[0]) * a >= 0
        with np.errstate(divide="ignore"):
            assert_allclose(loss.log_probability([-a, a]), np.log(p))


@pytest.mark.parametrize(("loss", "targets"), MATCHING + KINKED + BENT)
@laws
@given(st.data())
def test_flat_losses_are_0_on_an_interval(loss, targets, data):
    zero = loss.value(np.linspace(-10, 10, 2001), data.draw(targets)) == 0
    assert (zero[1:] & zero[:-1]).any() == loss.flat


@pytest.mark.parametrize("power", [1.0, 1.2, 1.5, 1.99, 2.0])
@given(a=st.floats(-20, 20), y=st.floats(1e-6, 1e6))
def test_half_deviances_are_those_of_scikit_learn(power, a, y):
    # scikit-learn's are without the terms that do not depend on a, but for its gamma loss
    theirs, ours = HalfTweedieLoss(power=power), TweedieLoss(power=power)
    a, y = np.array([a]), np.array([y])
    rest = theirs.constant_to_optimal_zero(y)
    assert_allclose(ours.value(a, y), theirs.loss(y, a) + rest, rtol=1e-9, atol=1e-9 * (1 + abs(rest).max()))
    slope, curvature = theirs.gradient_hessian(y, a)
    assert_allclose(ours.derivative(a, y), slope, rtol=1e-9, atol=1e-9 * float(curvature[0]))
    assert_allclose(ours.curvature(a, y), curvature, rtol=1e-9)


def test_names():
    for name, loss in LOSSES.items():
        assert resolve_loss(name) == loss
    own = HuberLoss(3.0)
    assert resolve_loss(own) is own
    for wrong in ("squared", None, HuberLoss):
        with pytest.raises(ValueError, match=r"loss must be one of 'hinge', 'perceptron'"):
            resolve_loss(wrong)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HuberLoss(epsilon=0.0), "epsilon must be a positive finite number; got 0.0"),
        (lambda: HuberLoss(epsilon=np.inf), "epsilon must be a positive finite number; got inf"),
        (lambda: EpsilonInsensitiveLoss(epsilon=-0.1), "epsilon must be a finite number >= 0; got -0.1"),
        (lambda: QuantileLoss(quantile=0.0), "quantile must be a positive finite number; got 0.0"),
        (lambda: QuantileLoss(quantile=1.0), "quantile must be between 0 and 1, exclusive; got 1.0"),
        (lambda: SquaredEpsilonInsensitiveLoss(epsilon=-1.0), "epsilon must be a finite number >= 0; got -1.0"),
        (lambda: TweedieLoss(power=2.1), "power must be from 1 to 2, beyond which the loss is not convex; got 2.1"),
        (lambda: TweedieLoss(power=0.0), "power must be a positive finite number; got 0.0"),
        (lambda: HingeLoss(margin=np.nan), "margin must be a finite number >= 0; got nan"),
        (lambda: HingeLoss(margin="1"), "margin must be a finite number >= 0; got '1'"),
        (lambda: HingeLoss(margin=True), "margin must be a finite number >= 0; got True"),
    ],
)
def test_parameters_out_of_range(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_loss_of_ones_own():
    class SoftplusLoss(Loss):  # the matching loss of h = ln(1 + e^a), up to a constant
        def __init__(self, sharpness):
            self.sharpness = sharpness

        def link(self, a):
            return np.logaddexp(0.0, self.sharpness * np.asarray(a))

        def link_derivative(self, a):
            return self.sharpness * expit(self.sharpness * np.asarray(a))

        def value(self, a, y):
            return quad(lambda z: float(self.link(z)) - y, 0.0, a)[0]

    loss = SoftplusLoss(2.0)
    assert loss.derivative(0.0, 1.0) == pytest.approx(np.log(2) - 1)
    assert loss.curvature(0.0, 1.0) == 1.0 and loss.kinks(1.0).shape == (0,)
    assert loss == SoftplusLoss(2.0) != SoftplusLoss(3.0) and repr(loss) == "SoftplusLoss(sharpness=2.0)"
    assert resolve_loss(loss) is loss
    loss.check_target([-1.0, 2.0])
