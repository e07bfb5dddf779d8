"""Steps that end beside a pole of w(c), against exact decimals: Burg's on weights, LogDet's on pairs and triplets."""

import functools
import pickle
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose
from onlinebregman._kernels.geometries.entropy import BurgGeometry
from onlinebregman._kernels.learners.learner import Learner
from onlinebregman._kernels.matrices.logdet_blocked import BlockedLogDetGeometry
from onlinebregman._kernels.matrices.matrix import LogDetGeometry

from onlinebregman._online.compiled import make_loss
from onlinebregman.losses import BoundLoss, SquaredLoss
from onlinebregman.schedules import resolve_schedule

GEOMETRIES = [BurgGeometry, LogDetGeometry, BlockedLogDetGeometry]
# The products w x, or the eigenvalues of W X, of a pair and of triplets.
SPECTRA = [(1.75,), (2.875, -0.125), (0.125, -2.875), (2.0, -2.000000001)]
SIZES = [1e-16, 1e-8, 1e-3, 1.0, 1e3, 1e6, 1e9, 1e12, 1e16, 1e30, 1e100]
every = pytest.mark.parametrize("geometry", GEOMETRIES)


def learner(geometry, spectrum, eta, update="implicit", loss=None, **settings):
    """A learner and the row of this spectrum."""
    if geometry is BurgGeometry:
        start, row = np.abs(spectrum), np.sign([spectrum])
    elif len(spectrum) == 1:
        start, row = np.diag(spectrum), np.ones((1, 1))
    else:
        start, row = np.diag(np.abs(spectrum)), np.array([[1.0, 0.0, 0.0, 1.0]])
    made = Learner(geometry(start), make_loss(loss or SquaredLoss()))
    made.configure(update=update, schedule=resolve_schedule("constant", eta, 0.5), **settings)
    return made, row


@functools.cache
def terms_after(spectrum, eta, y):
    """The terms of the score a(c) after the step c = eta (a(c) - y), by bisection."""
    with localcontext() as context:
        context.prec = 500
        mu, eta, y = [Decimal(m) for m in spectrum], Decimal(eta), Decimal(y)
        near, far = Decimal(0), eta * (sum(mu) - y)
        sign = 1 if far > 0 else -1
        far = sign * min([abs(far), *(abs(1 / m) for m in mu if sign * m < 0)])
        for _ in range(1200):
            c = (near + far) / 2
            if sign * (eta * (sum(m / (1 + c * m) for m in mu) - y) - c) > 0:
                near = c
            else:
                far = c
        return [m / (1 + c * m) for m in mu], c


def time_of_flow(start, a, y):
    """How long da/ds = a^2 (y - a), the flow of a single weight or pair, takes from `start` to a."""
    with localcontext() as context:
        context.prec = 500
        start, a, y = Decimal(start), Decimal(a), Decimal(y)
        return float((1 / start - 1 / a) / y + (a * (y - start) / (start * (y - a))).ln() / y**2)


@every
@pytest.mark.parametrize("spectrum", SPECTRA, ids=str)
@pytest.mark.parametrize("size", SIZES)
def test_implicit_steps_solve_their_equation(geometry, spectrum, size):
    """To rounding: three digits of c may be lost before it is counted from the pole; and a pair that shrinks, by
    W - c / (1 + c a) v v', has the rounding errors of the larger W."""
    for y in (size, -size) if len(spectrum) > 1 else (size,):
        for eta in (1 / size, 1.0, 1e16):
            model, row = learner(geometry, spectrum, eta)
            assert model.learn(row, np.array([y])) is None
            terms, _ = terms_after(spectrum, eta, y)
            largest = float(max(abs(term) for term in terms))
            shrinks = geometry is not BurgGeometry and len(spectrum) == 1 and size < 1
            assert_allclose(model.predict(row), float(sum(terms)), rtol=0, atol=(1e-11 if shrinks else 2e-13) * largest)


@every
@pytest.mark.parametrize("spectrum", SPECTRA, ids=str)
@pytest.mark.parametrize("size", [1e3, 1e9, 1e16, 1e100])
@pytest.mark.parametrize("loss", [SquaredLoss(), BoundLoss()], ids=repr)
def test_flows_come_to_rest_at_targets_far_away(geometry, spectrum, size, loss):
    squared = isinstance(loss, SquaredLoss)
    for y in (size, -size) if len(spectrum) > 1 and squared else (size,):
        model, row = learner(geometry, spectrum, 1e16, "importance", loss)
        assert model.learn(row, np.array([y if squared else -y])) is None  # a lower bound of y
        assert_allclose(model.predict(row), y, rtol=1e-12)


@every
@pytest.mark.parametrize("y", [1e4, 1e8, 1e16, 1e30, 1e100, 1e150])
@pytest.mark.parametrize("share", [0.5, 1 - 1e-6, 1 + 1e-6, 1.1, 1e3, 1e16])
def test_flows_towards_a_pole_take_their_time(geometry, y, share):
    """1 / (y a) is the time at which they would reach the pole; errors of a are measured in time, which is rounded."""
    a, eta = 1.75, share / (1.75 * y)
    model, row = learner(geometry, (a,), eta, "importance")
    assert model.learn(row, np.array([y])) is None
    after = model.predict(row)[0]
    if not abs(after - y) <= 1e-12 * y:
        speed = after * (y - after)  # relative to a
        assert abs(time_of_flow(a, after, y) - eta) * speed <= 1e-11 * (1 + eta * speed)
    else:
        assert share > 1


@every
@pytest.mark.parametrize("spectrum", SPECTRA[:3], ids=str)
@pytest.mark.parametrize("size", [1e3, 1e12, 1e16, 1e30])
def test_what_a_step_adds_to_the_certificate_keeps_its_digits(geometry, spectrum, size):
    """S = eta (L(a) - L(a')) - D(w', w), with D(w', w) = sum m'/m - 1 - ln(m'/m) over the values m of w x."""
    for y in (size, -size) if min(spectrum) < 0 < max(spectrum) else (size,):
        eta = 1 / size
        model, row = learner(geometry, spectrum, eta, track_regret=True)
        assert model.learn(row, np.array([y])) is None
        terms, _ = terms_after(spectrum, eta, y)
        ratios = [term / Decimal(m) for term, m in zip(terms, spectrum, strict=True)]
        losses = [(sum(values) - Decimal(y)) ** 2 / 2 for values in (map(Decimal, spectrum), terms)]
        gap = sum(ratio - 1 - ratio.ln() for ratio in ratios)
        expected = Decimal(eta) * (losses[0] - losses[1]) - gap
        assert_allclose(model.run["slack"], float(expected), rtol=1e-12, atol=1e-14 * eta * float(losses[0]))


@pytest.mark.parametrize("geometry", GEOMETRIES[1:])
@pytest.mark.parametrize("update", ["implicit", "importance"])
def test_metrics_that_float64_cannot_hold_are_refused(geometry, update):
    """A distance of 1e12 that is not along an axis leaves a few digits to the others, one of 1e16 none."""
    for size in (1e12, 1e16):
        model = Learner(geometry(np.eye(3)), make_loss(SquaredLoss()))
        model.configure(update=update, schedule=resolve_schedule("constant", 1.0, 0.5))
        row, before = np.array([[1.0, 0.5, -0.25]]), pickle.dumps(model.geometry)
        if size == 1e12:
            assert model.learn(row, np.array([size])) is None
            after = size if update == "importance" else float(terms_after((1.3125,), 1.0, size)[0][0])
            assert_allclose(model.predict(row), after, rtol=1e-14)
        else:
            assert model.learn(row, np.array([size])) == ("failed", 0)
            assert "not positive definite to float64" in str(model.failure)
            assert pickle.dumps(model.geometry) == before
