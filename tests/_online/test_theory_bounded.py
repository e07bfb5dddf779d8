"""The bounds for weights below an upper bound: the single step, adversarial streams, and what the estimators refuse."""

from dataclasses import astuple

import numpy as np
import pytest
from numpy.testing import assert_allclose
from raw import MirrorDescentRegressor
from sklearn.base import clone

from onlinebregman import BurgRegressor
from onlinebregman._online.theory import theory_rate
from onlinebregman.constraints import UpperBound
from onlinebregman.divergences import Burg, RelativeEntropy
from onlinebregman.losses import AbsoluteLoss, SquaredLoss


def test_explicit_steps_beyond_the_domain_end_at_the_bound():
    """As for update="gradient": the weight is infinite, its projection the upper bound; the certificate holds."""
    X, y = np.array([[1.0, -1.0], [1.0, 1.0]]), np.array([5.0, 3.0])
    model = BurgRegressor(
        update="explicit", upper_bound=1.0, eta0=10.0, learning_rate="constant", fit_intercept=False, track_regret=True
    )
    coefs = [clone(model).partial_fit(X[:k], y[:k]).coef_ for k in (1, 2)]
    assert coefs[0][0] == 1.0 and 0 < coefs[0][1] < 0.02
    for u in ([1.0, 1e-3], [1.0, 1.0], [0.3, 0.7]):
        fitted = clone(model).partial_fit(X, y)
        regret = fitted.weighted_loss_ - 10 * ((X @ u - y) ** 2).sum() / 2
        assert regret <= fitted.regret_bound(u, weighted=True) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, r"needs data_bounds\['y'\], a bound on the absolute value of a target"),
        (
            {"update": "explicit", "data_bounds": {"x": 1.0}},
            r"needs data_bounds\['divergence'\], a bound on D\(u, w_1\)",
        ),
        ({"upper_bound": None}, r"Burg\(\) has no bound .* Burg and RelativeEntropy for bounded weights"),
        ({"update": "gradient"}, "update='gradient' has a rate and a bound of its own"),
        ({"init": 0.5, "data_bounds": {"x": 1.0}}, r"requires init=None, or data_bounds\['divergence'\]"),
    ],
    ids=str,
)
def test_what_a_bounded_run_lacks(parameters, message, unchanged):
    given_bounds = {"x": 1.0, "divergence": 1.0}
    model = BurgRegressor(**{"upper_bound": 1.0, "data_bounds": given_bounds, "learning_rate": "theory", **parameters})
    with unchanged(model, message):
        model.partial_fit(np.eye(3), np.ones(3))


@pytest.mark.parametrize("loss", [SquaredLoss(), AbsoluteLoss()], ids=repr)
@pytest.mark.parametrize("update", ["explicit", "implicit"])
@pytest.mark.parametrize(("divergence", "power"), [(Burg(), 0), (RelativeEntropy(), 1)], ids=repr)
def test_rate_and_guarantee_in_other_units_of_columns(divergence, power, update, loss):
    """Rows times 4 and weights divided by 4 predict the same; D, and with it rates, is divided by 4^power."""

    def rate(unit):
        bounds = {"x": 0.3 * unit, "y": 2.0, "divergence": 0.7 / unit**power, "n_rows": 9}
        return theory_rate(divergence, loss, update, bounds, 5, signed=False, fit_intercept=False, upper=1.5 / unit)

    assert_allclose(astuple(rate(4.0)) * np.array([4.0**power, 1, 1, 1]), astuple(rate(1.0)), rtol=1e-9)


def test_signed_weights_are_refused(unchanged):
    model = MirrorDescentRegressor(
        divergence="relative_entropy",
        constraint=UpperBound(1.0),
        signed=True,
        learning_rate="theory",
        data_bounds={"x": 1.0, "y": 1.0, "divergence": 1.0},
    )
    with unchanged(model, "signed must be False for learning_rate='theory' with RelativeEntropy"):
        model.partial_fit(np.eye(3), np.ones(3))
