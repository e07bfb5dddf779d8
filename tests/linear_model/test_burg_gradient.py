"""BurgRegressor, update="gradient": its units, its loss bound on adversarial streams, and the history of its rate."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from onlinebregman import BurgRegressor, MatrixBurgRegressor
from onlinebregman.datasets import make_positive_sphere
from onlinebregman.divergences import Burg, LogDet


def gradient(**parameters):
    defaults = {"update": "gradient", "eta0": 1e9, "learning_rate": "constant", "fit_intercept": False}
    return BurgRegressor(**{**defaults, **parameters})


@st.composite
def adversarial_streams(draw):
    """Rows, targets and weights of a few sizes each, in any order: adversarial streams."""
    n, d = draw(st.integers(1, 30)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.choice(draw(st.sampled_from([[0.0, 1.0], [0.0, 0.01, 1.0], [0.1, 1.0, 30.0]])), size=(n, d))
    y = rng.choice(draw(st.sampled_from([[0.0, 1.0], [0.0, 0.3, 50.0], [2.0, 1e4]])), size=n)
    return X, y, rng.choice([0.1, 1.0, 8.0], size=n), rng


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


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_it_learns_under_a_bound_far_above_its_start(seed, intercept):
    X = np.random.default_rng(seed).uniform(size=(20_000, 3))
    model = BurgRegressor(update="gradient", upper_bound=20.0, fit_intercept=intercept)
    model.partial_fit(X, X @ [12.0, 12.0, 12.0])
    assert_allclose(model.coef_, 12.0, rtol=0.08 if intercept else 1e-3)


def test_rows_that_only_an_intercept_can_learn():
    model = BurgRegressor(update="gradient", eta0=1e9).partial_fit(np.zeros((20, 1)), np.ones(20))
    assert_allclose(model.intercept_, 1.0, rtol=1e-5)
    assert model.eta_ == 0.5  # 1 / (2 (m B R^2 + 1)) with R = 0


@settings(max_examples=60)
@given(
    stream=adversarial_streams(),
    upper=st.sampled_from([0.3, 1.0, 20.0]),
    sum_bound=st.sampled_from([None, 0.5, 10.0]),
    intercept=st.booleans(),
    eta0=st.sampled_from([1e9, 0.02]),
)
def test_theorem_1_and_the_certificate_on_adversarial_streams(stream, upper, sum_bound, intercept, eta0):
    X, y, h, rng = stream
    n = X.shape[1]
    model = gradient(upper_bound=upper, sum_bound=sum_bound, fit_intercept=intercept, eta0=eta0, track_regret=True)
    u, v = upper * rng.choice([1.0, 0.5, 1e-3], size=n), intercept * rng.choice([0.0, 2.0])
    losses_u = h * (X @ u + v - y) ** 2 / 2
    rates = np.empty(len(y))
    for i in range(len(y)):
        rates[i] = model.partial_fit(X[i : i + 1], y[i : i + 1], sample_weight=h[i : i + 1]).eta_
    distance = Burg().divergence(u, np.full(n, min(1 / n, upper))) + v**2 / 2
    assert model.weighted_loss_ <= (2 * rates @ losses_u + distance) * (1 + 1e-9)
    assert model.cumulative_loss_ <= (2 * rates[0] * losses_u.sum() + distance) / rates[-1] * (1 + 1e-9)
    promised = model.loss_bound(u, v, losses_u.sum())
    assert model.cumulative_loss_ <= promised * (1 + 1e-9)
    assert promised <= (2 * rates[0] * losses_u.sum() + distance) / rates[-1] * (1 + 1e-9)
    bound = model.regret_certificate(u, v)
    assert model.weighted_loss_ - rates @ losses_u <= bound + 1e-9 * (abs(bound) + model.weighted_loss_)


def test_the_loss_bound_has_the_first_and_the_last_rate():
    """A row of zeros does not set the first one, and the schedule of later rows does not affect the last one."""
    X, y = np.array([[0.0, 0.0], [1.0, 0.5], [0.5, 2.0]]), np.array([1.0, 0.8, 0.3])
    model = gradient(learning_rate="sqrt", eta0=0.1)
    rates = [model.partial_fit(X[i : i + 1], y[i : i + 1]).eta_history_[:, 1] for i in range(3)][-1]
    last = min(0.1 / np.sqrt(3), rates[-1] if len(rates) else np.inf)
    distance = Burg().divergence([0.3, 0.6], [0.5, 0.5])
    assert_allclose(
        model.loss_bound([0.3, 0.6], comparator_loss=2.0), 2 * 0.1 / np.sqrt(2) / last * 2 + distance / last
    )
    assert gradient().partial_fit(X[:1], y[:1]).loss_bound([0.3, 0.6], comparator_loss=2.0) == 2.0


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


def test_the_inequality_behind_theorem_1():
    """As printed, ln(1 + z) > z - z^2 / 2 for all z > -1, it is false for z < 0: z^2 / (2 (1 + z)) is right there."""
    z = np.linspace(-0.999, 0.0, 1000, endpoint=False)
    assert (np.log1p(z) < z - z**2 / 2).all()
    assert (np.log1p(z) >= z - z**2 / (2 * (1 + z))).all()
    assert (np.log1p(-z) >= -z - z**2 / 2).all()


def test_theorem_2_holds_with_the_fourth_power_of_the_radius_and_the_divergence_from_the_start():
    """As printed, with R^2 and -log det U, it is violated: by comparators beside the identity, and by short rows."""
    rng = np.random.default_rng(0)
    d, violated = 3, 0
    for radius in (0.3, 1.0, 3.0):
        for noise in (0.0, 0.1, 0.1, 0.1):
            Z = rng.normal(size=(200, d))
            Z *= radius / np.linalg.norm(Z, axis=1, keepdims=True)
            Q, _ = np.linalg.qr(rng.normal(size=(d, d)))
            U = Q * rng.uniform(0.5, 0.99, size=d) @ Q.T
            a = np.einsum("ni,ij,nj->n", Z, U, Z)
            y = a * (1 + noise * rng.uniform(-1.0, 1.0, size=200))
            model = MatrixBurgRegressor()
            first, last = model.partial_fit(Z[:1], y[:1]).eta_, model.partial_fit(Z[1:], y[1:]).eta_
            loss_u = ((a - y) ** 2).sum() / 2
            bound = 2 * first / last * loss_u + LogDet().divergence(U, np.eye(d) / d) / last
            assert model.cumulative_loss_ <= bound
            violated += model.cumulative_loss_ > loss_u / (radius**2 * last) - np.linalg.slogdet(U)[1] / last
    assert violated > 0


def test_the_sum_of_the_weights_need_not_be_known():
    """JKD07, section 5: with m = n the published rate hardly learns; running sums are better than knowing sum u."""
    X, y, u = make_positive_sphere(10_000, 100, coef=True, random_state=0)
    losses = {m: gradient(sum_bound=m).partial_fit(X, y).cumulative_loss_ for m in (100.0, u.sum(), None)}
    assert losses[None] < losses[u.sum()] / 4 < losses[100.0] / 8
    assert gradient(sum_bound=1e-9).partial_fit(X, y).cumulative_loss_ == losses[None]


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, "1"])
def test_a_bound_on_the_sum_that_cannot_be_is_refused(bad, unchanged):
    X = np.ones((2, 2))
    with unchanged(model := gradient(sum_bound=bad), "sum_bound"):
        model.fit(X, [1.0, 2.0])


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
