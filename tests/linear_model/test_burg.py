"""BurgRegressor: the implicit step, the papers' Algorithm 1 with its adaptive rate, and the bound on the weights."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from onlinebregman import BurgRegressor
from onlinebregman.divergences import Burg
from onlinebregman.reference import BurgGradient


class AlgorithmOne(BurgGradient):
    """With a schedule, and the history of the rate."""

    def __init__(self, n, eta0, *, power=0.0, upper=1.0, sum_bound=0.0, fit_intercept=False):
        super().__init__(np.full(n, min(1.0 / n, upper)), upper, sum_bound, fit_intercept)
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
    defaults = {"update": "gradient", "eta0": 1e6, "learning_rate": "constant", "fit_intercept": False}
    return BurgRegressor(**{**defaults, **parameters})


# --- Algorithm 1 ------------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(2, 30),
    size=st.sampled_from([0.01, 1.0, 300.0]),
    eta0=st.sampled_from([1e6, 0.05]),
    power=st.sampled_from([0.0, 0.5]),
    upper=st.sampled_from([1.0, 3.0, 0.2]),
    sum_bound=st.sampled_from([None, 2.0]),
    intercept=st.booleans(),
    density=st.sampled_from([None, 0.4]),
)
def test_it_is_the_papers_algorithm(seed, d, size, eta0, power, upper, sum_bound, intercept, density):
    rng = np.random.default_rng(seed)
    X, y = positive_rows(rng, 200, d, size)
    if density:
        X *= rng.uniform(size=X.shape) < density
    y *= rng.uniform(0.5, 1.5, size=200)
    eta0 /= size**2
    replica = AlgorithmOne(d, eta0, power=power, upper=upper, sum_bound=sum_bound or 0.0, fit_intercept=intercept)
    model = gradient(
        eta0=eta0,
        learning_rate="sqrt" if power else "constant",
        upper_bound=None if upper == 1.0 else upper,
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
    whole = clone(model).partial_fit(rows, y)  # the same in one call as carried over from call to call
    assert_array_equal(whole.eta_history_, model.eta_history_)
    assert_array_equal(whole.coef_, model.coef_)


def test_the_first_rate_is_that_of_the_paper():
    """eta_0 = 1 / (4 m R^2) for the loss (p - y)^2, which is 1 / (2 m R^2) for ours; m = n."""
    model = gradient(sum_bound=3.0).partial_fit([[0.5, 4.0, 0.0]], [0.0])
    assert_allclose(model.eta_, 1 / (2 * 3 * 4.0**2), rtol=1e-15)
    assert_allclose(model.eta_history_, [[1.0, 1 / 96]], rtol=1e-15)
    p = 4.5 / 3
    assert_allclose(1 / model.coef_, 3 + p / 96 * np.array([0.5, 4.0, 0.0]), rtol=1e-14)


def test_the_loss_bound_of_theorem_1():
    """Loss_BG <= Loss_u / (2 eta_T m R^2) + D(u, w_0) / eta_T for losses (p - y)^2 and their eta = half of ours."""
    rng = np.random.default_rng(3)
    d = 10
    X = rng.uniform(size=(2000, d))
    for scale in (0.3, 0.9):
        u = scale * rng.uniform(0.1, 1.0, size=d)
        y = np.maximum(X @ u + 0.05 * rng.normal(size=2000), 0.0)
        model = gradient(sum_bound=d).partial_fit(X, y)
        eta_T, R = model.eta_ / 2, X.max()
        loss_u = ((X @ u - y) ** 2).sum()
        bound = loss_u / (2 * eta_T * d * R**2) + Burg().divergence(u, np.full(d, 1 / d)) / eta_T
        assert 2 * model.cumulative_loss_ <= bound
        start = ((X.mean(axis=1) - y) ** 2).sum()
        assert 2 * model.cumulative_loss_ < start


def test_the_rate_never_rises_and_is_kept_by_pickling():
    rng = np.random.default_rng(4)
    X, y = positive_rows(rng, 200, 5)
    model = gradient()
    for start in range(0, 200, 20):
        model.partial_fit(X[start : start + 20], y[start : start + 20])
        copied = pickle.loads(pickle.dumps(model))
        assert copied.eta_ == model.eta_
        assert_array_equal(copied.eta_history_, model.eta_history_)
        model = copied
    rates = model.eta_history_[:, 1]
    assert (np.diff(rates) < 0).all() and (np.diff(model.eta_history_[:, 0]) > 0).all()
    assert model.eta_history_.shape == (len(rates), 2)
    model.set_params(eta0=1e9).partial_fit(X, y)
    assert model.eta_ <= rates[-1]


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


@pytest.mark.parametrize(
    "d, parameters",
    [
        *[(d, each) for d in (1, 3) for each in ({}, {"init": 1.0}, {"upper_bound": 0.3, "init": 0.3})],
        (3, {"init": [1.0, 0.5, 0.5]}),
    ],
)
def test_it_is_not_frozen_from_the_start_by_weights_at_their_bound(d, parameters):
    """With one feature (1/n) or an init at the bound the weights must still be able to change."""
    rng = np.random.default_rng(6)
    X = rng.uniform(0.5, 1.0, size=(500, d))
    u = np.full(d, 0.1)
    model = gradient(**parameters)
    model.partial_fit(X[:1], 2 * X[:1].sum(axis=1))  # a step towards larger weights, which are at their bound
    for _ in range(10):
        model.partial_fit(X, X @ u)
    assert model.eta_ > 0
    assert_allclose(model.coef_.mean(), 0.1, rtol=0.2)


@pytest.mark.parametrize("weight", [0.1, 3.0, 100.0])
def test_a_weighted_row_stays_inside_the_bound_and_does_not_freeze_it(weight):
    rng = np.random.default_rng(7)
    X, _ = positive_rows(rng, 2000, 4)
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


def test_tags_say_what_each_update_takes():
    for update in ("implicit", "explicit", "gradient"):
        tags = BurgRegressor(update=update).__sklearn_tags__()
        assert tags.input_tags.positive_only == tags.target_tags.positive_only == (update == "gradient")
        assert tags.input_tags.sparse


def test_rows_of_zeros_are_learned_without_a_step():
    model = gradient().partial_fit(np.zeros((3, 2)), np.zeros(3))
    assert_array_equal(model.coef_, [0.5, 0.5])
    assert model.eta_ == 1e6 and model.eta_history_.shape == (0, 2) and model.t_ == 3
    model.partial_fit([[0.5, 0.5]], [0.9])
    assert (model.coef_ > 0.5).all()


# --- the implicit step ------------------------------------------------------------------------------------------------


def test_small_and_large_weights_are_learned_alike():
    """The Itakura-Saito divergence depends on ratios: weights over five powers of ten, with equal relative accuracy."""
    rng = np.random.default_rng(8)
    u = 10.0 ** np.arange(2, -3, -1)
    X = rng.uniform(size=(20000, 5)) * (rng.uniform(size=(20000, 5)) < 0.3)
    model = BurgRegressor(eta0=1e4, learning_rate="constant", fit_intercept=False).partial_fit(X, X @ u)
    assert_allclose(model.coef_, u, rtol=1e-3)


def test_one_feature_has_a_closed_form():
    """w' = w / (1 + c x w), c = eta (x w' - y): the positive root of eta x^2 w w'^2 + (1 - eta y x w) w' - w = 0."""
    for eta in (1e-3, 1.0, 1e5):
        for x, y in ((2.0, 3.0), (2.0, -3.0), (-0.5, 1.0), (1.0, 0.0)):
            w = 1.0
            model = BurgRegressor(eta0=eta, learning_rate="constant", fit_intercept=False).partial_fit([[x]], [y])
            roots = np.roots([eta * x * x * w, 1 - eta * y * x * w, -w])
            assert_allclose(model.coef_, roots[roots > 0], rtol=1e-9)


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


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, "1"])
def test_a_bound_that_cannot_be_is_refused(bad, unchanged):
    X = np.ones((2, 2))
    with unchanged(model := BurgRegressor(upper_bound=bad), "upper_bound"):
        model.fit(X, [1.0, 2.0])
    with unchanged(model := BurgRegressor().fit(X, [1.0, 2.0]).set_params(upper_bound=bad), "upper_bound"):
        model.partial_fit(X, np.array([1.0, 2.0]))


@pytest.mark.parametrize(
    "init, match",
    [(0.0, r"init\[0\] = 0"), ([0.5, -0.5], r"init\[1\] = -0.5"), ([1.0], "shape"), ([1.0, np.nan], r"NaN \(row 1\)")],
)
def test_a_start_that_cannot_be_is_refused(init, match, unchanged):
    with unchanged(model := BurgRegressor(init=init), match):
        model.fit(np.ones((2, 2)), [1.0, 2.0])


def test_starts():
    X, y = np.ones((1, 4)), [0.5]
    for init, expected in ((None, np.full(4, 0.25)), (3.0, np.full(4, 3.0)), ([1.0, 2.0, 3.0, 1e-5], [1, 2, 3, 1e-5])):
        assert_allclose(BurgRegressor(init=init, eta0=1e-300).partial_fit(X, y).coef_, expected, rtol=1e-15)
    model = BurgRegressor().partial_fit(X, y)
    assert model.divergence_ == Burg()
    assert clone(model).fit(X, y).eta_history_.shape == (0, 2)


def test_gradient_steps_towards_the_bound_end_at_it_however_the_stream_is_cut():
    X, y = np.tile([[1.0, 0.5], [0.0, 1.0]], (60, 1)), np.full(120, 2.0)
    whole = BurgRegressor(update="gradient", fit_intercept=False).partial_fit(X, y)
    parts = clone(whole)
    for x, target in zip(X, y, strict=True):
        parts.partial_fit(x[np.newaxis], [target])
    assert_array_equal(whole.coef_, [1.0, 1.0])
    assert parts.coef_.tobytes() == whole.coef_.tobytes() and parts.eta_ == whole.eta_
