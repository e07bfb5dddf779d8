"""Thresholds of given pairs of columns, and what is refused in their place."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from raw import MirrorDescentRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = (X[:, 0] > 0) * (X[:, 1] > 0) + 0.1 * X[:, 2]
PAIRS = [[0, 1], [1, 2]]


@pytest.mark.parametrize("pairs", [np.array(PAIRS), [(0, 1), (1, 2)], tuple(map(np.array, PAIRS))], ids=repr)
def test_pairs_in_any_form_are_those_of_a_list(pairs):
    expected = MirrorDescentRegressor(thresholds=PAIRS).partial_fit(X, Y)
    assert_array_equal(MirrorDescentRegressor(thresholds=pairs).partial_fit(X, Y).coef_, expected.coef_)


@pytest.mark.parametrize(
    "thresholds, match",
    [
        (np.array([0.5, 0.2, 0.3]), r"thresholds must be .* pairs of columns; got array\(\[0.5, 0.2, 0.3\]\)"),
        (np.array([["pairwise"]]), "pairs of columns; got array"),
        (np.empty((0, 2), dtype=int), "pairs of columns; got array"),
        (np.array([[0, 1], [0, 3]]), r"two different columns from 0 to 2; got \[0, 3\]"),
        ([[1, 1]], r"two different columns from 0 to 2; got \[1, 1\]"),
    ],
    ids=str,
)
def test_what_is_no_pair_is_refused(thresholds, match, unchanged):
    with unchanged(model := MirrorDescentRegressor(thresholds=thresholds), match):
        model.partial_fit(X, Y)
