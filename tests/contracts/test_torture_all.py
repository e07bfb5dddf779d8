"""Every public estimator, many steps at rates and on rows of any size: in its domain and finite, or an error.

By default some hundred steps of default configurations, with `--all` 10^4 of all, and 200 where a step
takes Python's time. `make torture` makes 10^5 of each, which takes hours.
"""

import copy
import os

import fuzz
import numpy as np
import pytest
from configurations import is_default
from sklearn.base import is_regressor
from sklearn.utils import get_tags

RATES = [1e-8, 1e-4, 1.0, 1e4, 1e8]
SCALES = {
    "tiny": lambda d: np.full(d, 1e-8),
    "usual": lambda d: np.ones(d),
    "huge": lambda d: np.full(d, 1e8),
    "mixed": lambda d: 10.0 ** np.linspace(-8, 8, d),
}
IN_PYTHON = ("experts", "metric_learning", "kernel_learning", "density", "parameter_free", "model_selection")
CASES = [(rate, scale, far) for rate in RATES for scale in SCALES for far in (1.0, 1e8)]


def family(estimator):
    return type(estimator).__module__.split(".")[1]


def takes(estimator, case):
    """Whether a case applies: rates to estimators with one, targets far outside to regressors."""
    rate, _, far = case
    return (rate == 1.0 or "eta0" in estimator.get_params()) and (far == 1.0 or is_regressor(estimator))


def stream(rows, scale, far, n):
    """n rows like these, with columns scaled, and targets far outside."""
    rng = np.random.default_rng(7)
    X, y = rows
    numbers = rng.integers(len(X), size=n)
    X = X[numbers] * scale(X.shape[1])
    return X, y[numbers] if y.dtype.kind != "f" else y[numbers] * far * rng.choice([0.5, 1.0, 2.0], size=n)


def weights_in_domain(model):
    """Weights are in the domain of their potential; matrices positive semidefinite."""
    learner = vars(model).get("_learner")
    divergence = vars(model).get("_divergence")
    for part in getattr(learner, "learners", [learner]):
        geometry = getattr(part, "geometry", None)
        if divergence is not None and geometry is not None and np.ndim(geometry.state_weights) == 1:
            divergence.check_domain(geometry.state_weights, closed=True)
    if hasattr(model, "get_mahalanobis_matrix"):
        values = np.linalg.eigvalsh(model.get_mahalanobis_matrix())
        assert values[0] >= -1e-10 * values[-1]


def check_case(estimator, rows, learn, outputs, case, n):
    rate, scale, far = case
    if "eta0" in estimator.get_params():
        estimator.set_params(eta0=rate)
    X, y = stream(rows, SCALES[scale], far, n)
    model, block = estimator, -(-n // 10)
    for first in range(0, n, block):
        before = copy.deepcopy(model)
        try:
            learn(model, X[first : first + block], y[first : first + block])
        except ValueError as error:
            assert str(error)
            assert fuzz.learned(model) == fuzz.learned(before)
            break
    if not model.__sklearn_is_fitted__():
        return
    weights_in_domain(model)
    for name, value in fuzz.attributes(model):
        value = np.asarray(value)
        # a product of relatives overflows before its logarithm, the loss, does
        if value.dtype.kind == "f" and not name.startswith(
            ("regret_bound", "lambda", "noise_variance", "offline", "wealth")
        ):
            assert np.isfinite(value).all() or get_tags(model).estimator_type == "density_estimator", name
            assert not np.isnan(value).any(), name
    for name in outputs:
        try:
            said = np.asarray(getattr(model, name)(X[:20])) if hasattr(model, name) else np.zeros(1)
        except ValueError as error:
            assert "finite" in str(error) or "overflow" in str(error) or "scale" in str(error).lower(), error
        else:
            assert said.dtype.kind in "iUb" or not np.isnan(said).any(), name


@pytest.mark.only(where=lambda *pair: takes(*pair) and is_default(pair[0]), case=CASES)
def test_some_steps(estimator, rows, learn, outputs, case):
    check_case(estimator, rows, learn, outputs, case, 60 if family(estimator) in IN_PYTHON else 300)


@pytest.mark.exhaustive
@pytest.mark.only(where=takes, case=CASES)
def test_many_steps(estimator, rows, learn, outputs, case):
    steps = os.environ.get("ONLINEBREGMAN_TORTURE_STEPS", 200 if family(estimator) in IN_PYTHON else 10**4)
    check_case(estimator, rows, learn, outputs, case, int(steps))
