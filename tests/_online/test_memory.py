"""What does not fit into memory is refused before it is asked for."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import onlinebregman
from onlinebregman import ForwardRegressor, MirrorDescentRegressor, ParameterFreeRegressor
from onlinebregman._online import validation


@pytest.mark.parametrize(
    "name", ["ForwardRegressor", "LogDetMetricLearner", "MEGKernelLearner", "OnlineGaussian", "ParameterFreeRegressor"]
)
def test_memory_that_is_not_there_is_refused_with_its_size_and_a_remedy(name, monkeypatch, unchanged):
    model = getattr(onlinebregman, name)()
    monkeypatch.setattr(validation, "MEMORY", 8 * 150)
    with unchanged(model, r"GiB for 150 columns; this machine has .*TruncatedSVD", MemoryError):
        model.partial_fit(np.eye(20, 150) / 2, [0, 1] * 10)


FORWARD = ForwardRegressor(random_features=10**6)


@pytest.mark.parametrize(
    ("model", "n_columns", "y", "message"),
    [
        (FORWARD, 3, [0, 1], r"at least 7,\d{3}.* GiB for 3 columns.*Set fewer random_features"),
        (ParameterFreeRegressor(random_features=10**5), 3, [0, 1], r"at least 52\d\..* GiB.*fewer random_features"),
        (ParameterFreeRegressor(members=[MirrorDescentRegressor(), FORWARD]), 3, [0, 1], r"Regressor needs .* 7,\d{3}"),
        (ParameterFreeRegressor(members=[ForwardRegressor()]), 10**6, [0, 1], r"at least 7,\d{3}.* GiB for 1,000,000"),
        (MirrorDescentRegressor(), 10**6, np.zeros((2, 10**6)), r"at least 7,450.* GiB for 1,000,000"),
    ],
)
def test_what_members_features_and_outputs_take_is_counted(model, n_columns, y, message, unchanged):
    with unchanged(model, message, MemoryError):
        model.partial_fit(csr_array((2, n_columns)) if n_columns > 3 else np.eye(2, 3), y)
