"""Laws of the losses: derivatives, matching divergences, convexity, domains."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.special import logit

from onlinebregman.losses import HingeLoss, LogisticLoss, PoissonLoss, SquaredLoss

laws = settings(max_examples=60, deadline=None)
# loss, strategy of targets, inverse of the link
SMOOTH = [
    (SquaredLoss(), st.floats(-5, 5), lambda y: y),
    (LogisticLoss(), st.floats(0.001, 0.999), logit),
    (PoissonLoss(), st.floats(0.01, 20), np.log),
]
CORNERS = [(LogisticLoss(), st.sampled_from([0.0, 1.0])), (PoissonLoss(), st.just(0.0))]
WITH_TARGETS = [case[:2] for case in SMOOTH] + CORNERS
ALL = [SquaredLoss(), LogisticLoss(), HingeLoss(), PoissonLoss()]
scores = st.floats(-6, 6)


@pytest.mark.parametrize(("loss", "targets"), WITH_TARGETS)
@laws
@given(st.data())
def test_derivatives_by_finite_differences(loss, targets, data):
    a, y, h = data.draw(scores), data.draw(targets), 1e-5
    slope = (loss.value(a + h, y) - loss.value(a - h, y)) / (2 * h)
    assert_allclose(loss.derivative(a, y), slope, rtol=1e-6, atol=1e-7)
    assert_allclose(loss.derivative(a, y), loss.link(a) - y, rtol=1e-14)
    curvature = (loss.link(a + h) - loss.link(a - h)) / (2 * h)
    assert_allclose(loss.link_derivative(a), curvature, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("loss", "targets", "inverse"), SMOOTH)
@laws
@given(st.data())
def test_value_is_the_matching_divergence(loss, targets, inverse, data):
    a, y = data.draw(scores), data.draw(targets)
    area = quad(lambda z: float(loss.link(z)) - y, inverse(y), a, epsabs=1e-12, epsrel=1e-10)[0]
    assert_allclose(loss.value(a, y), area, rtol=1e-7, atol=1e-10)
    assert_allclose(loss.value(inverse(y), y), 0, atol=1e-14)


@pytest.mark.parametrize(("loss", "targets"), [*WITH_TARGETS, (HingeLoss(), st.sampled_from([-1.0, 1.0]))])
@laws
@given(st.data())
def test_convex_and_not_negative(loss, targets, data):
    a, b, y, mix = data.draw(scores), data.draw(scores), data.draw(targets), data.draw(st.floats(0, 1))
    between = loss.value(mix * a + (1 - mix) * b, y)
    assert 0 <= between <= mix * loss.value(a, y) + (1 - mix) * loss.value(b, y) + 1e-12
    # the derivative is a subgradient everywhere, also at the kink
    assert loss.value(b, y) >= loss.value(a, y) + loss.derivative(a, y) * (b - a) - 1e-12


def test_hinge_is_half_the_divergence_of_the_absolute_value():
    loss, a = HingeLoss(), np.array([-3.0, -0.5, 0.0, 0.5, 3.0])
    for y in (-1.0, 1.0):
        assert_allclose(loss.value(a, y), (np.abs(a) - y * a) / 2)
        off = a != 0
        assert_allclose(loss.derivative(a, y)[off], (loss.link(a) - y)[off] / 2)
        assert loss.derivative(0.0, y) == -y  # a score of zero counts as a mistake
    assert loss.kink == 0 and loss.link(0.0) == 0
    assert_array_equal(loss.link_derivative(a), 0)
    assert all(other.kink is None for other in ALL if other != loss)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_scores_of_any_size(loss):
    a = np.array([-1e300, -1e4, -800.0, 0.0, 800.0, 1e4, 1e300])
    y = 1.0
    for out in (loss.value(a, y), loss.derivative(a, y), loss.link(a), loss.link_derivative(a)):
        assert not np.isnan(out).any()
    assert np.isfinite(loss.derivative(a[:4], y)).all()


def test_values_keep_their_digits():
    assert LogisticLoss().value(-1e4, 1.0) == 1e4
    assert LogisticLoss().value(50.0, 1.0) == pytest.approx(np.exp(-50), rel=1e-12)
    assert LogisticLoss().link_derivative(50.0) == pytest.approx(np.exp(-50), rel=1e-12)
    gap = 1e-7  # D = y gap^2/2 near the minimum
    assert PoissonLoss().value(np.log(3.0) + gap, 3.0) == pytest.approx(1.5 * gap**2, rel=1e-2)
    assert PoissonLoss().value(0.0, 1e-300) == pytest.approx(1.0)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_vectorised(loss):
    a, y = np.linspace(-2, 2, 6).reshape(3, 2), np.array([1.0, 1.0])
    for method in (loss.value, loss.derivative):
        out = method(a, y)
        assert out.shape == a.shape
        assert_array_equal(out, [[float(method(s, 1.0)) for s in row] for row in a])
    assert loss.link(a).shape == loss.link_derivative(a).shape == a.shape
    assert (
        np.ndim(loss.value(0.5, 1.0)) == np.ndim(loss.derivative(0.5, 1.0)) == np.ndim(loss.link_derivative(0.5)) == 0
    )
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
    ],
)
def test_targets_outside_the_domain(loss, y, message):
    with pytest.raises(ValueError, match=message):
        loss.check_target(y)


def test_targets_inside_the_domain():
    SquaredLoss().check_target([-1e300, 0, 1])
    LogisticLoss().check_target([0, 0.5, 1])
    HingeLoss().check_target([-1, 1])
    PoissonLoss().check_target([0, 0.5, 1e6])
    SquaredLoss().check_target([])


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_objects_are_values(loss):
    twin = pickle.loads(pickle.dumps(loss))
    assert twin == loss and hash(twin) == hash(loss) and eval(repr(loss)) == loss
    assert sum(other == loss for other in ALL) == 1
