"""Errors for rows that cannot be learned: they name parameters that the estimator has, and a suitable remedy."""

import re

import numpy as np
import pytest
from raw import MirrorDescentRegressor

import onlinebregman
from onlinebregman import (
    ForwardRegressor,
    ImplicitGDRegressor,
    ParameterFreeRegressor,
    PerceptronClassifier,
)
from onlinebregman._online.estimator import Examples
from onlinebregman._online.mirror import MirrorEstimator
from onlinebregman.schedules import Constant

REASONS = ["not finite", "overflowed", "loss overflowed", "left domain", "negative"]


def test_errors_name_no_parameter_that_the_estimator_does_not_have(estimator, rows, learn):
    model = learn(estimator, *rows)
    if not isinstance(estimator, MirrorEstimator) or "_spec" not in vars(model):
        pytest.skip("refuses rows in its own words")
    for reason in REASONS:
        with pytest.raises(ValueError, match="row 1") as error:
            model._refuse(reason, 1, Examples(rows[0], np.asarray(rows[1], dtype=np.float64)))
        words = set(re.findall(r"\w+", str(error.value)))
        named = set(re.findall(r"(\w+)=", str(error.value))) | ({"eta0", "data_bounds", "average"} & words)
        if reason == "negative":  # only this update requires non-negative data
            named -= {"update"}
        assert named <= set(model.get_params())


def test_the_perceptron_has_no_implicit_step_to_offer(unchanged):
    model = PerceptronClassifier(eta0=1e300).partial_fit([[1.0, 2.0], [2.0, 1.0]], [0, 1], classes=[0, 1])
    with unchanged(model, r"row 0 is not finite: the weights diverge under eta0=1e\+300. Lower eta0, or scale [^=]*$"):
        model.partial_fit([[1e300, -1e300], [-1e300, 1e300]], [0, 1])


def test_a_rate_that_is_not_eta0_is_not_blamed_on_it(unchanged):
    model = ImplicitGDRegressor(update="explicit", learning_rate=Constant(1e200), eta0=0.1).partial_fit([[1.0]], [1.0])
    with unchanged(model, r"learning_rate=Constant\(.*Set learning_rate to lower rates, or scale.*update='implicit'"):
        model.partial_fit([[1e200]], [1.0])
    bounds = {"x": 1.0, "u": 1.0, "n_rows": 10}
    theory = MirrorDescentRegressor(
        divergence="squared_euclidean", learning_rate="theory", data_bounds=bounds, loss="log_loss", update="explicit"
    )
    theory.partial_fit([[0.5]], [1.0])
    with unchanged(theory, "learning_rate='theory'. Set learning_rate to lower rates"):
        theory.partial_fit([[1e308]] * 40, [0.0] * 40)


@pytest.mark.parametrize("layout", [np.asarray, lambda X: np.asarray(X)[:, ::-1].copy()])
def test_a_prediction_that_is_not_finite_names_its_row(layout):
    model = ImplicitGDRegressor().partial_fit([[1.0, 2.0]], [1e10])
    with pytest.raises(ValueError, match=r"row 1 \(largest feature 1e\+305\) is not finite: .*Scale features"):
        model.predict(layout([[1.0, 1.0], [1e305, 1e305]]))
    counts = MirrorDescentRegressor(divergence="squared_euclidean", loss="poisson", eta0=1.0).partial_fit(
        [[1.0, 2.0]], [10.0]
    )
    assert np.isfinite(counts.predict([[100.0, 100.0]])).all()
    with pytest.raises(ValueError, match=r"row 0 overflows: the link of PoissonLoss\(\) at the score \d+"):
        counts.predict(layout([[1e6, 1e6]]))
    with pytest.raises(ValueError, match="row 0 overflows"):
        counts.predict([[1e6, 1e6]])  # a list of rows is validated


def test_an_overflow_in_fit_names_the_epoch_in_the_words_of_scikit_learn(unchanged):
    model = ImplicitGDRegressor(update="explicit", learning_rate="constant", eta0=10.0, shuffle=False, tol=None)
    X, y = np.full((40, 1), 10.0), np.ones(40)  # each step multiplies the error by -1000
    epoch = "Floating-point under-/overflow occurred at epoch #2. The .* of row 12 .*Lower eta0, .*"
    with unchanged(model, epoch + "Scaling input data with StandardScaler or MinMaxScaler might help.$"):
        model.fit(X, y)


# --- what does not fit into memory ------------------------------------------------------------------------------------


FORWARD = ForwardRegressor(random_features=10**6)


@pytest.mark.parametrize(
    ("model", "n_columns", "y", "message"),
    [
        (FORWARD, 3, [0, 1], r"at least 7,\d{3}.* GiB for 3 columns.*Set fewer random_features"),
        (ParameterFreeRegressor(random_features=10**5), 3, [0, 1], r"at least 52\d\..* GiB.*fewer random_features"),
        (ParameterFreeRegressor(members=[MirrorDescentRegressor(), FORWARD]), 3, [0, 1], r"Regressor needs .* 7,\d{3}"),
        (ParameterFreeRegressor(members=[ForwardRegressor()]), 10**6, [0, 1], r"at least 7,\d{3}.* GiB for 1,000,000"),
        (MirrorDescentRegressor(), 10**6, np.zeros((2, 10**6)), r"at least 7,450.* GiB for 1,000,000"),
        (onlinebregman.MEGKernelLearner(), 10**6, [0, 1], r"at least 52,154.* GiB .* has .*TruncatedSVD"),
        (onlinebregman.OnlineGaussian(), 10**6, [0, 1], r"at least 52,154.* GiB for 1,000,000 columns"),
        (onlinebregman.MetricKNeighborsRegressor(metric_learner="auto"), 10**6, [0, 1], r"at least 156,462.* GiB"),
        (onlinebregman.ParameterFreeMetricLearner(), 10**6, [0, 1], r"at least 156,462.* GiB"),
    ],
)
def test_what_members_features_and_outputs_take_is_counted(model, n_columns, y, message, unchanged):
    with unchanged(model, message, MemoryError):
        model.partial_fit(np.eye(2, n_columns), y)
