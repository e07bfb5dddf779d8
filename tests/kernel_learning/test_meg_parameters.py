"""MEGKernelLearner: its bounds for epochs and weights."""

import numpy as np
import pytest

from onlinebregman.kernel_learning import MEGKernelLearner


def test_instances_beyond_the_bounds_of_the_theorem():
    rng, rows = np.random.default_rng(2), np.eye(3)
    learner = MEGKernelLearner(learning_rate="theory", data_bounds={"x": 1.0, "loss": 0.5})
    learner.partial_fit(2 * rows, rng.random(3))
    with pytest.raises(AttributeError, match="spread 4 was learned"):
        learner.theory_bound_  # noqa: B018


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (np.diag([1.5, -0.5]), "eigenvalue -0.5"),
        (np.eye(2), "trace 2"),
        (np.eye(4) / 4, "kernel has 4 rows and columns, but there are 2 features"),
        ([[0.5, 0.1], [0.0, 0.5]], "not symmetric"),
    ],
)
def test_comparators_that_are_no_kernels_are_refused(kernel, message):
    learner = MEGKernelLearner(track_regret=True).partial_fit(np.eye(2), [0.3, 0.7])
    for bound in (learner.loss_bound, learner.regret_bound):
        with pytest.raises(ValueError, match=message):
            bound(kernel)


def test_losses_that_overflow_are_refused():
    learner = MEGKernelLearner().partial_fit([[1.0, 0.0]], [1e153])
    before = learner.cumulative_loss_
    with pytest.raises(ValueError, match="Row 1 is too large"):
        learner.partial_fit([[1.0, 0.0], [0.0, 1.0]], [1e154, 1.3e154])
    assert learner.cumulative_loss_ == before
