"""Rates 1 / (H t) for penalties that are H-strongly convex: a regret of O(log T) on the penalised losses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from raw import MirrorDescentRegressor

from onlinebregman.constraints import Simplex
from onlinebregman.penalties import L1, L2, Penalty


def penalised_model(penalty, **parameters):
    settings = {"divergence": "squared_euclidean", "fit_intercept": False, "learning_rate": "theory"}
    return MirrorDescentRegressor(penalty=penalty, **settings | parameters)


def test_the_bound_is_that_of_the_theorem():
    bounds = {"x": 2.0, "u": 0.1}
    model = penalised_model("l2", alpha=0.5, loss="absolute_error", data_bounds=bounds)
    X, y = np.full((100, 1), 2.0), np.full(100, 1e9)
    model.partial_fit(X[:1], y[:1])
    assert_allclose(model.theory_bound_, 0.5 * 0.01 / 2 + 4 / (2 * 0.5))
    model.partial_fit(X[1:], y[1:])
    assert_allclose(model.theory_bound_, 0.5 * 0.01 / 2 + 4 / (2 * 0.5) * (1 + np.log(100)))


class Cost(Penalty):
    def value(self, w):
        return float(np.sum(w))

    def prox(self, divergence, w, eta):
        return divergence.step(w, np.ones_like(w), eta)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": "l1"}, r"requires divergence='squared_euclidean' and an L2 part .*; got .* and L1"),
        ({"penalty": L2(0.0)}, "an L2 part of the penalty .* alpha > 0"),
        ({"penalty": Cost()}, r"an L2 part of the penalty .*; got .* and Cost\(\)"),
        ({"divergence": "p_norm", "penalty": L1(0.1)}, r"requires divergence='squared_euclidean' .*; got PNorm"),
        ({"fit_intercept": True}, "requires fit_intercept=False, since the intercept is not penalised; got True"),
        ({"loss": "poisson"}, r"squared or have a bounded slope .*; got PoissonLoss\(\)"),
        ({"update": "explicit"}, "for the squared loss requires update='implicit' or 'importance'"),
        ({"constraint": Simplex(1.0)}, "a constraint that contains 0, which bound its slope"),
        ({"init": 0.5, "data_bounds": {"x": 1.0, "y": 1.0, "divergence": 1.0}}, "init=None and a constraint"),
        ({"data_bounds": {"x": 1.0, "u": 1.0}}, r"needs data_bounds\['y'\]"),
        ({"data_bounds": {"x": 1.0, "y": 1.0}}, r"needs data_bounds\['u'\]"),
    ],
    ids=str,
)
def test_what_a_penalised_run_lacks(parameters, message, unchanged):
    settings = {"penalty": "l2", "alpha": 0.1, "data_bounds": {"x": 1.0, "u": 1.0, "y": 1.0}}
    model = penalised_model(**settings | parameters)
    with unchanged(model, message):
        model.partial_fit(np.eye(3), np.ones(3))
