"""MEGKernelLearner: its bounds for epochs and weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinebregman.kernel_learning import MEGKernelLearner

seeds = st.integers(0, 2**32 - 1)
updates = st.sampled_from(["explicit", "implicit"])


def stream(rng, d, n, noise):
    """Rows of any length, targets of a kernel with errors, and the weights of the rows."""
    factor = rng.normal(size=(d, 2))
    U = factor @ factor.T / (factor**2).sum()
    rows = rng.normal(size=(n, d)) * rng.choice([0.1, 1.0, 3.0], size=(n, 1))
    own = np.einsum("ni,ij,nj->n", rows, U, rows)
    y = own + noise * rng.choice([-1.0, 1.0], size=n)
    return U, rows, y, (own - y) ** 2 / 2, rng.choice([0.0, 0.1, 1.0, 50.0], size=n)


@given(seeds, updates, st.booleans(), st.sampled_from([0.0, 1.0, 30.0]), st.sampled_from([0.05, 1.0, 100.0]))
def test_loss_bound_for_weights_and_epochs(seed, update, scale_eta, noise, eta0):
    rng = np.random.default_rng(seed)
    U, rows, y, losses, weights = stream(rng, 4, 30, noise)
    weights[0] = 50.0  # of the longest row, so that `spread_` never changes and no loss counts more than once
    rows[0] *= 1.001 * np.linalg.norm(rows, axis=1).max() / np.linalg.norm(rows[0])
    own = rows[0] @ U @ rows[0]
    y[0], losses[0] = own, 0.0
    rate = 50.0 * eta0 if scale_eta else 50.0 * eta0 * (rows[0] @ rows[0]) ** 2
    learner = MEGKernelLearner(update=update, scale_eta=scale_eta, eta0=eta0, shuffle=False, max_iter=3)
    learner.fit(rows, y, weights)
    comparator = 3 * (weights * losses).sum()
    if update == "explicit" and rate > 4:
        with pytest.raises(ValueError, match="no bound for explicit steps"):
            learner.loss_bound(U, comparator)
        learner = MEGKernelLearner(update=update, scale_eta=scale_eta, eta0=3 * eta0 / rate, shuffle=False, max_iter=3)
        learner.fit(rows, y, weights)
    assert learner.cumulative_loss_ <= learner.loss_bound(U, comparator) * (1 + 1e-9)


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
