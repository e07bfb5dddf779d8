"""BurgRegressor: its steps, the papers' Algorithm 1 with its adaptive rate, and weights inside their bounds."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentRegressor
from scipy import sparse
from sklearn.base import clone

from onlinebregman import BurgRegressor
from onlinebregman.constraints import Simplex, UpperBound
from onlinebregman.divergences import Burg
from onlinebregman.losses import AbsoluteLoss, HuberLoss
from onlinebregman.reference import BurgGradient


class AlgorithmOne(BurgGradient):
    """With a schedule, and the history of the rate."""

    def __init__(self, w, eta0, *, power=0.0, upper=1.0, sum_bound=0.0, fit_intercept=False):
        super().__init__(w, upper, sum_bound, fit_intercept)
        self.eta0, self.power, self.noted, self.history, self.t = eta0, power, np.inf, [], 0

    def learn(self, x, y):
        self.t += 1
        eta, before = self.eta0 / self.t**self.power, self.rate
        super().learn(x, y, eta)
        if self.cap < min(before, eta) and self.cap <= 0.9 * self.noted:
            self.noted = self.cap
            self.history.append((self.t, self.cap))


def positive_rows(rng, n, d, size=1.0):
    X = rng.uniform(size=(n, d)) * size
    return X, X @ rng.uniform(0.0, 0.9, size=d)


def gradient(**parameters):
    defaults = {"update": "gradient", "eta0": 1e9, "learning_rate": "constant", "fit_intercept": False}
    return BurgRegressor(**{**defaults, **parameters})


# --- Algorithm 1 ------------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 30),
    size=st.sampled_from([0.01, 1.0, 300.0]),
    eta0=st.sampled_from([1e6, 0.05]),
    power=st.sampled_from([0.0, 0.5]),
    upper=st.sampled_from([1.0, 3.0, 0.2]),
    sum_bound=st.sampled_from([None, 2.0]),
    intercept=st.booleans(),
    density=st.sampled_from([None, 0.4]),
    at_bound=st.booleans(),
)
def test_it_is_the_papers_algorithm(seed, d, size, eta0, power, upper, sum_bound, intercept, density, at_bound):
    """Also from weights at their bound, which must still be able to change."""
    rng = np.random.default_rng(seed)
    X, y = positive_rows(rng, 200, d, size)
    if density:
        X *= rng.uniform(size=X.shape) < density
    y *= rng.uniform(0.5, 1.5, size=200)
    eta0 /= size**2
    start = np.full(d, upper if at_bound else min(1.0 / d, upper))
    replica = AlgorithmOne(start, eta0, power=power, upper=upper, sum_bound=sum_bound or 0.0, fit_intercept=intercept)
    model = gradient(
        eta0=eta0,
        learning_rate="sqrt" if power else "constant",
        upper_bound=None if upper == 1.0 else upper,
        init=upper if at_bound else None,
        sum_bound=sum_bound,
        fit_intercept=intercept,
    )
    rows = X if density is None else sparse.csr_array(X)
    for i in range(200):
        replica.learn(X[i], y[i])
        model.partial_fit(rows[i : i + 1], y[i : i + 1])
        assert_allclose(model.coef_, replica.w, rtol=1e-9)
        assert_allclose(model.intercept_, replica.b, rtol=1e-9, atol=1e-9 * y.max())
        assert_allclose(model.eta_, min(replica.rate, eta0 / (i + 2) ** power), rtol=1e-9)
        assert model.coef_.min() > 0 and model.coef_.max() <= upper
    assert_allclose(model.eta_history_, np.reshape(replica.history, (-1, 2)), rtol=1e-9)
    assert model.eta_ > 0
    whole = clone(model).partial_fit(rows, y)  # the same in one call as carried over from call to call
    assert_array_equal(whole.eta_history_, model.eta_history_)
    assert_array_equal(whole.coef_, model.coef_)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_a_target_near_the_largest_possible_does_not_freeze_it(layout):
    """As published, the rate stays 0 once a weight is at its bound; a target near w = 1 causes that in 100 rows."""
    rng = np.random.default_rng(5)
    X = rng.uniform(size=(3000, 4))
    u = np.array([0.999, 0.999, 0.2, 0.1])
    model = gradient().partial_fit(layout(X), X @ u)
    assert model.eta_ > 1e-3 and (model.coef_ <= 1).all()
    before = np.abs(model.coef_ - u).max()
    assert before < 0.25
    for _ in range(20):
        model.partial_fit(layout(X), X @ u)
    assert np.abs(model.coef_ - u).max() < before / 2


@pytest.mark.parametrize("weight", [0.1, 3.0, 100.0])
def test_a_weighted_row_stays_inside_the_bound_and_does_not_freeze_it(weight):
    X, _ = positive_rows(np.random.default_rng(7), 2000, 4)
    u = np.array([0.9, 0.1, 0.5, 0.7])
    model = gradient()
    for start in range(0, 2000, 50):
        rows = slice(start, start + 50)
        model.partial_fit(X[rows], X[rows] @ u, sample_weight=np.full(50, weight))
        assert (model.coef_ > 0).all() and (model.coef_ <= 1).all() and model.eta_ > 0
    assert np.abs(model.coef_ - u).max() < np.abs(0.25 - u).max() / 2


def test_negative_rows_and_targets_are_refused_by_name(unchanged):
    X = np.full((3, 2), 0.5)
    model = gradient().partial_fit(X, X.sum(axis=1))
    bad = X.copy()
    bad[1, 0] = -1e-9
    for rows in (bad, sparse.csr_array(bad), bad.tolist()):
        with unchanged(model, r"Negative values in data.*row 1"):
            model.partial_fit(rows, np.ones(3))
    with unchanged(model, r"Negative values in data.*row 2"):
        model.partial_fit(X, [1.0, 1.0, -1e-9])
    model.partial_fit(X, [0.0, 0.0, -0.0])
    assert model.set_params(update="implicit").partial_fit(bad, -np.ones(3)).coef_.min() > 0


# --- the implicit step ------------------------------------------------------------------------------------------------


def test_the_explicit_step_is_refused_where_it_leaves_the_positive_weights(unchanged):
    model = BurgRegressor(update="explicit", eta0=1.0, learning_rate="constant", fit_intercept=False, init=1.0)
    model.partial_fit([[1.0, 1.0]], [2.0])
    with unchanged(model, r"At row 1 \(target 4\).*leaves the domain 'w > 0'.*update='implicit'"):
        model.partial_fit([[1.0, 1.0], [1.0, 1.0]], [2.0, 4.0])  # 1 + c x w = 1 - 2
    with unchanged(model, "leaves the domain"):
        model.partial_fit([[1.0, 1.0]], [3.0])  # 1 + c x w = 0 exactly
    assert_allclose(model.partial_fit([[1.0, 1.0]], [2.9]).coef_, [10.0, 10.0], rtol=1e-12)


# --- the bound --------------------------------------------------------------------------------------------------------


def test_the_bound_holds_and_is_read_at_each_call():
    rng = np.random.default_rng(9)
    X = rng.uniform(size=(500, 3))
    y = X @ [2.0, 0.5, 0.1]
    model = BurgRegressor(upper_bound=1.0, eta0=10.0, fit_intercept=False)
    for bound, reached in ((1.0, 0.7), (1.5, 1.0), (None, 1.9), (0.25, 0.2)):
        model.set_params(upper_bound=bound)
        largest = [model.partial_fit(X[i : i + 1], y[i : i + 1]).coef_.max() for i in range(500)]
        assert max(largest) == (bound or pytest.approx(2.0, abs=0.2))
        assert largest[-1] > reached


UPDATES = ("implicit", "explicit", "importance", "gradient")


def sparse_stream():
    X = np.eye(5)[[0, 1] * 10]  # features 2, 3 and 4 are absent
    return X, np.full(20, 0.3)


# --- bounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("average", [False, True])
def test_a_bound_lowered_in_mid_stream_holds_for_absent_features_too(update, average):
    X, y = sparse_stream()
    models = []
    for layout in (np.asarray, sparse.csr_array):
        model = BurgRegressor(update=update, eta0=0.1, average=average).partial_fit(layout(X), y)
        model.set_params(upper_bound=0.1).partial_fit(layout(X), y, sample_weight=np.r_[np.zeros(19), 1.0])
        models.append(model)
    dense, csr = models
    assert_allclose(csr.coef_, dense.coef_, rtol=1e-14)
    if average:  # over 20 rows at 0.2 and one at 0.1
        assert_allclose(csr.coef_[2:], (20 * 0.2 + 0.1) / 21, rtol=1e-14)
    else:
        assert_array_equal(csr.coef_[2:], 0.1)
    # raised again, and lowered to where no weight is: only rows change weights
    csr.set_params(upper_bound=None, average=False).partial_fit(sparse.csr_array(X), y)
    assert_array_equal(csr.coef_[2:], 0.1)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_a_refused_call_leaves_weights_outside_of_the_new_bound_where_they_were(layout):
    X, y = sparse_stream()
    model = BurgRegressor(update="explicit", eta0=0.1, average=True).partial_fit(layout(X), y)
    other = copy.deepcopy(model)
    before = model.set_params(upper_bound=0.1).coef_
    with pytest.raises(ValueError, match=r"loss of row 2 .*overflows"):
        model.partial_fit(layout(X), np.r_[y[:2], 1e200, y[3:]])
    assert_array_equal(model.coef_, before)
    model.set_params(upper_bound=None).partial_fit(layout(X), y)
    assert_array_equal(model.coef_, other.partial_fit(layout(X), y).coef_)


@pytest.mark.parametrize("divergence", ["burg", "relative_entropy", "binary_entropy", "squared_euclidean"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_constraints_of_other_estimators_hold_from_the_start(divergence, layout):
    X, y = sparse_stream()
    model = MirrorDescentRegressor(divergence=divergence, constraint=UpperBound(0.01), init=0.5, eta0=0.1)
    assert_array_equal(model.partial_fit(layout(X), y).coef_[2:], 0.01)


# --- beside a pole ----------------------------------------------------------------------------------------------------


@settings(max_examples=100)
@given(
    seed=st.integers(0, 2**32 - 1),
    update=st.sampled_from(["implicit", "importance"]),
    size=st.sampled_from([1e3, 1e6, 1e9, 1e12]),
    sign=st.sampled_from([1.0, -1.0]),
    loss=st.sampled_from(["squared_error", AbsoluteLoss(), HuberLoss(0.1)]),
    intercept=st.booleans(),
    ties=st.booleans(),
)
def test_targets_far_above_the_scale_of_the_weights_are_reached(seed, update, size, sign, loss, intercept, ties):
    """c ends near the pole of w(c), where it has no digits left; at such a rate the new prediction is the target."""
    rng = np.random.default_rng(seed)
    x = sign * (np.ones(4) if ties else rng.uniform(0.1, 1.0, size=4) * rng.choice([1.0, -0.5], size=4))
    y = size * np.sign(x[np.argmax(np.abs(x))])
    model = MirrorDescentRegressor(
        divergence="burg", loss=loss, update=update, eta0=1e15, learning_rate="constant", fit_intercept=intercept
    ).partial_fit([x], [y])
    away = 0.1 if loss == HuberLoss(0.1) else 0.0
    assert_allclose(model.predict([x]), y, rtol=1e-13, atol=away)
    assert (model.coef_ > 0).all()


def test_projections_far_away_sum_to_what_they_should():
    for w in ([1e-12], [1e-12] * 3, [1e-12, 3e-13, 1e-200]):
        for total in (1.0, 1e-11, 1e200):
            assert_allclose(Simplex(total).project(Burg(), w).sum(), total, rtol=1e-14)
    for b in (5.0, -5.0):
        w = Burg().project_hyperplane([1e-12, 2e-12], [1.0, -1.0], b)
        assert_allclose(w @ [1.0, -1.0], b, rtol=1e-14)
        theta = -1 / w + 1 / np.array([1e-12, 2e-12])  # a multiple of x
        assert_allclose(theta, theta[0] * np.array([1.0, -1.0]), rtol=1e-12)


# --- units, the loss bound, and the history of the rate ---------------------------------------------------------------


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
