"""Kernel learners: errors for bad input and parameters name them, and leave the model unchanged."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from onlinebregman.kernel_learning import DefiniteBoost, MEGKernelLearner

ROWS, Y = np.eye(3), np.ones(3)
HOLED = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, np.nan], [0.0, 0.0, 1.0]])
SKEW = np.stack([np.eye(3), np.triu(np.ones((3, 3)))])
LEARNERS = [MEGKernelLearner(update="explicit"), DefiniteBoost()]
# what rows, targets and weights have to be for all estimators: see tests/contracts
OF_BOTH = [
    ("partial_fit_pairs", ([[0, 1], [0, 3]], [1, 1], 3), r"pairs\[1\] = \[0, 3\].*from 0 to 2"),
    ("fit_pairs", ([[0, -1]], [1], 3), r"pairs\[0\] = \[0, -1\]"),
    ("partial_fit_pairs", ([[0, 1.5]], [1], 3), "as integers"),
    ("partial_fit_pairs", ([[0, 1, 2]], [1], 3), "3 columns"),
    ("partial_fit_pairs", (np.empty((0, 2), int), [], 3), "0 sample"),
    ("partial_fit_pairs", ([[0, 1]], [1], 4), "n_objects is 4, but .* of 3"),
    ("fit_pairs", ([[0, 1]], [1], 0), "integer >= 1"),
    ("fit_pairs", ([[0, 1], [1, 2]], [1, -1], 3), r"distances\[1\] = -1 is negative"),
    ("partial_fit_pairs", ([[0, 1]], [1, 1], 3), r"distances must have shape \(1,\)"),
    ("partial_fit_pairs", ([[0, 1]], [np.nan], 3), r"distances contains NaN \(row 0\)"),
    ("partial_fit", (ROWS * 1e200, Y), "Row 0 is too large"),
    ("partial_fit_matrices", (SKEW,), r"[CX]\[1\] is not symmetric"),
    ("partial_fit_matrices", (ROWS,), r"must have shape \(n_matrices, d, d\); got \(3, 3\)"),
    ("partial_fit_matrices", (HOLED[None],), r"[CX]\[0\] contains NaN \(row 1, column 2\)"),
    ("partial_fit_matrices", (np.eye(4)[None],), "[CX] has matrices of size 4, but .* of 3"),
]
OF_MEG = [
    ("fit_pairs", ([[0, 1]], [1]), "n_objects must be given"),
    ("partial_fit", (ROWS, [1, 1e200, 1]), "Row 1 is too large"),
    ("partial_fit_factors", (np.ones((1, 2, 4)), [1]), "factors has rows of size 4, but .* of 3"),
    ("partial_fit_factors", (ROWS, Y), r"factors must have shape .*; got \(3, 3\)"),
    ("partial_fit_factors", (np.ones((1, 0, 3)), [1]), r"factors must have shape .*; got \(1, 0, 3\)"),
    ("partial_fit_factors", (np.full((1, 2, 3), np.inf), [1]), "factors contains infinity"),
    ("partial_fit_factors", (np.ones((2, 2, 3)), [1, 1], [[1, 1], [1, 2]]), "row 1, factor 1, is 2"),
    ("partial_fit_factors", (np.ones((2, 2, 3)), [1, 1], [1, 1, 1]), r"signs must have shape .*; got \(3,\)"),
]
CALLS = [(model, *call) for model in LEARNERS for call in OF_BOTH] + [(LEARNERS[0], *call) for call in OF_MEG]


@pytest.mark.parametrize(("model", "method", "given", "message"), CALLS, ids=str)
def test_bad_input_changes_nothing(model, method, given, message, unchanged):
    model = clone(model).partial_fit_pairs([[0, 1], [1, 2]], [0.01, 0.2], 3)
    if method == "partial_fit_matrices" and isinstance(model, MEGKernelLearner):
        given = (*given, np.ones(len(given[0])))
    with unchanged(model, message):
        getattr(model, method)(*given)


@pytest.mark.parametrize(
    ("sense", "message"),
    [
        (["<=", "<", ">="], r"sense must be .*; got sense\[1\] = '<'"),
        ("=", r"sense must be '<=', '>=' or '=='; got sense\[0\] = '='"),
        (["<=", ">="], "there are 3 constraints"),
    ],
)
def test_constraints_have_a_sense(sense, message, unchanged):
    with unchanged(model := DefiniteBoost().fit(ROWS, Y), message):
        model.partial_fit(ROWS, Y, sense=sense)


@pytest.mark.parametrize("model", LEARNERS, ids=str)
@pytest.mark.parametrize(
    ("name", "value"),
    [("init", np.eye(4)), ("init", np.ones((3, 3))), ("init", np.triu(np.ones((3, 3)))), ("init", -np.eye(3))],
)
def test_starts_that_are_no_kernels_are_refused(model, name, value):
    for method in ("fit", "partial_fit"):
        learner = clone(model).set_params(**{name: value})
        with pytest.raises(ValueError, match=name):
            getattr(learner, method)(ROWS, Y)
        assert not hasattr(learner, "kernel_") and "n_features_in_" not in vars(learner)


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
