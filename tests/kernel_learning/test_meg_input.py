"""MEGKernelLearner: errors for bad input and parameters name them, and leave the model unchanged."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from onlinebregman.kernel_learning import MEGKernelLearner


def bad_calls():
    rows, y = np.eye(3), np.ones(3)
    holed, endless = rows.copy(), rows.copy()
    holed[1, 2], endless[2, 0] = np.nan, np.inf
    skew = np.stack([np.eye(3), np.triu(np.ones((3, 3)))])
    return {
        "NaN": ("partial_fit", (holed, y), r"NaN \(row 1, column 2\)"),
        "NaN, sparse": ("partial_fit", (sparse.csr_array(holed), y), r"NaN \(row 1, column 2\)"),
        "infinite": ("fit", (endless, y), r"infinity \(row 2, column 0\)"),
        "target": ("partial_fit", (rows, [1, np.nan, 1]), r"y contains NaN \(row 1\)"),
        "width": ("partial_fit", (np.eye(4), np.ones(4)), "X has 4 features, but MEGKernelLearner is expecting 3"),
        "zero rows": ("partial_fit", (np.empty((0, 3)), []), "0 sample"),
        "lengths": ("partial_fit", (rows, [1.0]), "inconsistent numbers of samples"),
        "weight": ("partial_fit", (rows, y, [1, -1, 1]), "-1 at row 1"),
        "weights": ("fit", (rows, y, [0, 0, 0]), "All sample_weight are zero"),
        "too large": ("partial_fit", (rows * 1e100, y), "Row 0 is too large"),
        "large target": ("partial_fit", (rows, [1, 1e200, 1]), "Row 1 is too large"),
        "object": ("partial_fit_pairs", ([[0, 1], [0, 3]], [1, 1], 3), r"pairs\[1\] = \[0, 3\].*from 0 to 2"),
        "negative object": ("fit_pairs", ([[0, -1]], [1], 3), r"pairs\[0\] = \[0, -1\]"),
        "float objects": ("partial_fit_pairs", ([[0, 1.5]], [1], 3), "as integers"),
        "triples": ("partial_fit_pairs", ([[0, 1, 2]], [1], 3), "3 columns"),
        "no pairs": ("partial_fit_pairs", (np.empty((0, 2), int), [], 3), "0 sample"),
        "other objects": ("partial_fit_pairs", ([[0, 1]], [1], 4), "n_objects is 4, but .* of 3"),
        "no objects": ("fit_pairs", ([[0, 1]], [1], 0), "integer >= 1"),
        "missing objects": ("fit_pairs", ([[0, 1]], [1]), "n_objects must be given"),
        "distance": ("partial_fit_pairs", ([[0, 1], [1, 2]], [1, -1], 3), r"distances\[1\] = -1 is negative"),
        "distances": ("partial_fit_pairs", ([[0, 1]], [1, 1], 3), r"distances must have shape \(1,\)"),
        "NaN distance": ("partial_fit_pairs", ([[0, 1]], [np.nan], 3), r"distances contains NaN \(row 0\)"),
        "asymmetric": ("partial_fit_matrices", (skew, [1, 1]), r"X\[1\] is not symmetric"),
        "flat": ("partial_fit_matrices", (rows, y), r"must have shape \(n_matrices, d, d\); got \(3, 3\)"),
        "matrix size": ("partial_fit_matrices", (np.eye(4)[None], [1]), "X has matrices of size 4, but .* of 3"),
        "factor size": ("partial_fit_factors", (np.ones((1, 2, 4)), [1]), "factors has rows of size 4, but .* of 3"),
        "flat factors": ("partial_fit_factors", (rows, y), r"factors must have shape .*; got \(3, 3\)"),
        "no factors": (
            "partial_fit_factors",
            (np.ones((1, 0, 3)), [1]),
            r"factors must have shape .*; got \(1, 0, 3\)",
        ),
        "infinite factor": ("partial_fit_factors", (np.full((1, 2, 3), np.inf), [1]), "factors contains infinity"),
        "sign": ("partial_fit_factors", (np.ones((2, 2, 3)), [1, 1], [[1, 1], [1, 2]]), "row 1, factor 1, is 2"),
        "signs": (
            "partial_fit_factors",
            (np.ones((2, 2, 3)), [1, 1], [1, 1, 1]),
            r"signs must have shape .*; got \(3,\)",
        ),
    }


@pytest.mark.parametrize("case", bad_calls())
def test_bad_input_changes_nothing(case, unchanged):
    method, arguments, message = bad_calls()[case]
    rng = np.random.default_rng(13)
    learner = MEGKernelLearner(update="explicit").partial_fit(rng.normal(size=(5, 3)), rng.random(5))
    with unchanged(learner, message):
        getattr(learner, method)(*arguments)


@pytest.mark.parametrize(
    "bad",
    [
        {"init": np.eye(4)},
        {"init": np.ones((3, 3))},
        {"init": np.triu(np.ones((3, 3)))},
        {"init": -np.eye(3)},
        {"data_bounds": 1.0},
    ],
)
def test_bad_parameters(bad):
    for method in ("fit", "partial_fit"):
        learner = MEGKernelLearner(**bad)
        with pytest.raises(ValueError, match=next(iter(bad))):
            getattr(learner, method)(np.eye(3), np.ones(3))
        assert not hasattr(learner, "kernel_") and "n_features_in_" not in vars(learner)


def test_first_call_for_pairs_needs_the_number_of_objects():
    with pytest.raises(ValueError, match="n_objects must be given"):
        MEGKernelLearner().partial_fit_pairs([[0, 1]], [0.1])


def test_targets_in_other_units_than_those_of_kernels_of_trace_one_are_announced():
    distances = [0.1, 7.0, 3.0]
    with pytest.warns(ConvergenceWarning, match="2 of 3 targets are larger .* 7 in row 1, where 1 is the largest"):
        MEGKernelLearner().partial_fit_pairs([[0, 1], [1, 2], [0, 2]], distances, n_objects=3)
    with pytest.warns(ConvergenceWarning, match="1 of 2 targets are larger .* 7 in row 1, where 5 is the largest"):
        MEGKernelLearner().fit([[0.0, 3.0], [1.0, 2.0]], [1.0, 7.0], [0.5, 1.0])


def test_a_step_beyond_floating_point_is_refused():
    learner = MEGKernelLearner(eta0=1e300, update="explicit").partial_fit(np.eye(3), np.full(3, 1 / 3))
    before = learner.log_kernel_
    with pytest.raises(ValueError, match=r"step at row 1 .* too large"):
        learner.partial_fit(np.eye(3)[:2], [1 / 3, 1e20])
    assert_array_equal(learner.log_kernel_, before)


def test_multiples_of_the_identity_are_skipped():
    matrices = np.stack([0.3 * np.eye(3), np.zeros((3, 3)), np.diag([1.0, 0.0, 0.0])])
    learner = MEGKernelLearner().partial_fit_matrices(matrices, [5.0, 1.0, 0.5])
    assert (learner.n_collapsed_, learner.t_, learner.spread_) == (2, 1, 1.0)
