"""What does not fit into memory is refused before it is asked for."""

import numpy as np
import pytest

import onlinebregman
from onlinebregman import ForwardRegressor, MirrorDescentRegressor, ParameterFreeRegressor

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
