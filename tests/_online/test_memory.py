"""What does not fit into memory is refused before it is asked for."""

import numpy as np
import pytest

import onlinebregman
from onlinebregman._online import validation


@pytest.mark.parametrize(
    "name", ["ForwardRegressor", "LogDetMetricLearner", "MEGKernelLearner", "OnlineGaussian", "ParameterFreeRegressor"]
)
def test_memory_that_is_not_there_is_refused_with_its_size_and_a_remedy(name, monkeypatch, unchanged):
    model = getattr(onlinebregman, name)()
    monkeypatch.setattr(validation, "MEMORY", 8 * 150)
    with unchanged(model, r"GiB for 150 columns; this machine has .*TruncatedSVD", MemoryError):
        model.partial_fit(np.eye(20, 150) / 2, [0, 1] * 10)
