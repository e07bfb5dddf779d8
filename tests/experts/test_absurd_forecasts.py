"""One absurd forecast of an expert, or some, do not spoil the weights of a mixture."""

from itertools import product

import numpy as np
import pytest

from onlinebregman import ExpertMixtureRegressor

N, LOSSES = 1500, ["squared_error", "absolute_error"]


def stream(n_experts=3):
    rng = np.random.default_rng(0)
    y = 10.0 * rng.normal(size=N)
    return y[:, np.newaxis] + rng.normal(size=(N, n_experts)) * [1.0, 1.5, 2.0][:n_experts], y


def run(X, y, **parameters):
    """The model, and its root mean squared error over the last rows, each predicted before it was learned."""
    model = ExpertMixtureRegressor(**parameters).partial_fit(X[:500], y[:500])
    residuals = []
    for t in range(500, N):
        residuals.append(model.predict(X[t : t + 1])[0] - y[t])
        model.partial_fit(X[t : t + 1], y[t : t + 1])
    assert model.cumulative_loss_ - model.expert_losses_.min() <= model.regret_bound_ * (1 + 1e-12)
    return model, np.sqrt(np.mean(np.square(residuals)))


RATES = ["adaptive", 0.01, "theory"]
OTHERS = [*product(["ml_poly", "boa"], RATES[:1], LOSSES), *product(["aggregating"], RATES, LOSSES[:1])]


@pytest.mark.parametrize("n_experts", [2, 3])
@pytest.mark.parametrize("strategy, rate, loss", [*product(["average", "eg"], RATES, LOSSES), *OTHERS])
@pytest.mark.parametrize("rows, value", [([0], 1e4), ([10], 1e4), ([30], -1e9), (range(0, N, 100), 1e4)])
def test_an_absurd_forecast_is_forgotten(n_experts, strategy, loss, rate, rows, value):
    X, y = stream(n_experts)
    more = {"strategy": strategy, "loss": loss, "learning_rate": rate}
    if rate == "theory" or strategy == "aggregating":
        more["data_bounds"] = {"y": (-60.0, 60.0), "n_rows": N}
    clean = run(X, y, **more)[1]
    X[rows, 0] = value
    assert run(X, y, **more)[1] < 1.1 * clean


def test_the_forecast_of_a_row_does_not_follow_an_absurd_expert():
    X, y = stream()
    model, _ = run(X, y, strategy="average")
    expected = model.predict(X[:1])[0]
    assert model.weights_[0] > 0.9
    assert abs(model.predict([[1e6, X[0, 1], X[0, 2]]])[0] - expected) < 6.0


@pytest.mark.parametrize("strategy", ["ml_poly", "boa", "eg", "average"])
@pytest.mark.parametrize("delayed, of", [*product([False, True], ["target", "forecast"])])
@pytest.mark.parametrize("row, value", [(0, 500.0), (1, 1e4), (5, 1e9), (15, -1e9), (40, 1e9)])
def test_absurd_first_rows_do_not_stay_in_the_weights(strategy, delayed, row, value, of):
    X, y = stream()
    _, clean = run(X, y, strategy=strategy, delayed=delayed)
    (y if of == "target" else X[:, 0])[row] = value
    assert run(X, y, strategy=strategy, delayed=delayed)[1] < 1.1 * clean
