"""BurgRegressor, update="gradient": its units, its loss bound on adversarial streams, and the history of its rate."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from onlinebregman import BurgRegressor


def gradient(**parameters):
    defaults = {"update": "gradient", "eta0": 1e9, "learning_rate": "constant", "fit_intercept": False}
    return BurgRegressor(**{**defaults, **parameters})


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("factor", [2.0**10, 2.0**-7])
def test_other_units_of_weights_and_targets_change_nothing(factor, layout):
    """w, y and the bounds times s: rates divided by s^2, weights times s, bit for bit for a power of two."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 4)) * (rng.uniform(size=(300, 4)) < 0.7)
    y = X @ [0.9, 0.2, 1.5, 0.4]  # the third is out of reach
    for sum_bound in (None, 3.0):
        plain = gradient(sum_bound=sum_bound).partial_fit(layout(X), y)
        other = gradient(
            init=factor / 4, upper_bound=factor, sum_bound=sum_bound and factor * sum_bound, eta0=1e9 / factor**2
        ).partial_fit(layout(X), factor * y)
        assert_array_equal(other.coef_, factor * plain.coef_)
        assert_array_equal(other.eta_history_, plain.eta_history_ / [1.0, factor**2])


@pytest.mark.parametrize(
    "parameters, coef, message",
    [
        ({"update": "implicit"}, [0.5, 0.5], "requires update='gradient'"),
        ({"average": True}, [0.5, 0.5], "average=False"),
        ({}, [0.5, 1.5], r"coef\[1\] = 1.5"),
        ({}, [0.5, -0.5], "coef"),
    ],
)
def test_where_theorem_1_says_nothing(parameters, coef, message):
    model = gradient(**parameters).partial_fit([[1.0, 0.5]], [0.5])
    with pytest.raises(ValueError, match=message):
        model.loss_bound(coef)


def test_theorem_1_is_for_one_bound_and_finite_comparators():
    model = gradient().partial_fit([[1.0, 0.5]], [0.5])
    with pytest.raises(ValueError, match="intercept must be finite, and 0 if none was learned; got 1"):
        model.loss_bound([0.5, 0.5], intercept=1.0)
    with pytest.raises(ValueError, match="comparator_loss"):
        model.loss_bound([0.5, 0.5], comparator_loss=-1.0)


def test_the_history_of_the_rate_does_not_grow_with_the_stream():
    """Each row is slightly larger than the one before: the rate falls at every row, and is recorded at every tenth."""
    X = np.linspace(0.1, 1.0, 20_000)[:, np.newaxis]
    model = gradient(sum_bound=1.0).partial_fit(X, X[:, 0] / 2)
    rows, rates = model.eta_history_.T
    assert len(rows) == 44  # 2 ln 10 / -ln 0.9 and the first
    assert_allclose(rates, 1 / (2 * X[rows.astype(int) - 1, 0] ** 2), rtol=1e-12)
    assert (rates[1:] <= 0.9 * rates[:-1]).all() and rates[-1] > model.eta_ == pytest.approx(0.5)
    parts = clone(model)
    for start in range(0, 20_000, 777):
        parts.partial_fit(X[start : start + 777], X[start : start + 777, 0] / 2)
    assert_array_equal(parts.eta_history_, model.eta_history_)
    assert_array_equal(parts.coef_, model.coef_)


def test_rows_too_large_for_any_rate_are_refused(unchanged):
    model = gradient().partial_fit(np.ones((2, 2)), np.ones(2))
    with unchanged(model, "row 1.*scale features and targets"):
        model.partial_fit([[1.0, 1.0], [1e200, 1.0]], [1.0, 1.0])
