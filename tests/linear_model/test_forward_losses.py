"""ForwardRegressor with other losses than the squared one: the algorithm against its formulas, and its errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from replica import LogCosh
from scipy.special import expit
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils import get_tags

from onlinebregman import ForwardRegressor
from onlinebregman.losses import HuberLoss, LogisticLoss, PoissonLoss
from onlinebregman.reference import LOSSES as FORMULAS
from onlinebregman.reference import ForwardNewton, odds_step

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows

LOSSES = {"poisson": PoissonLoss(), "log_loss": LogisticLoss()}


def some_rows(n=60, d=4, seed=0, loss="poisson"):
    """Rows, and counts or shares with the mean h(u.x + b)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    scores = X @ rng.normal(size=d) / np.sqrt(d) + 0.5
    return X, rng.poisson(np.exp(scores)).astype(float) if loss == "poisson" else rng.beta(3 * expit(scores), 1.0)


class Replica(ForwardNewton):
    """The algorithm by its formulas, with the losses."""

    def __init__(self, d, loss, alpha, gamma, intercept_alpha=None, odds=False):
        super().__init__(np.diag(np.r_[np.full(d - 1, alpha), intercept_alpha or alpha]), loss, gamma)
        self.total, self.o, self.n, self.odds = 0.0, np.zeros(2), np.zeros(2), odds

    def learn(self, x, y, weight=1.0):
        o = self.o @ [-1, 1]
        self.total += weight * float(self.loss.value(o + self.w @ x, y))
        super().learn(x, y, weight, o)
        if self.odds:
            g = float(self.loss.derivative(o + self.w @ x, y))
            self.o = odds_step(self.o, self.n, np.array([-g, g]), weight)
            self.n = self.gamma * self.n + weight * np.array([1 - y, y])


# --- the algorithm ----------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 12),
    loss=st.sampled_from(list(LOSSES)),
    alpha=st.floats(-2, 2).map(lambda power: 10.0**power),
    gamma=st.sampled_from([1.0, 0.999, 0.8]),
    fit_intercept=st.booleans(),
    penalized=st.booleans(),
    weighted=st.booleans(),
)
def test_it_is_the_algorithm_by_its_formulas(seed, d, loss, alpha, gamma, fit_intercept, penalized, weighted):
    X, y = some_rows(40, d, seed, loss)
    weights = np.random.default_rng(seed).choice([0.1, 1.0, 7.3], size=len(y)) if weighted else np.ones(len(y))
    odds = fit_intercept and loss == "log_loss"
    replica = Replica(d + 1, FORMULAS[loss], alpha, gamma, alpha if penalized else min(alpha, 1e-4), odds)
    model = ForwardRegressor(
        standardize=False,
        loss=loss,
        alpha=alpha,
        forgetting=gamma,
        fit_intercept=fit_intercept,
        penalize_intercept=penalized,
    )
    for i, x in enumerate(np.c_[X, np.full(len(y), float(fit_intercept))]):
        if i:
            predicted = model.predict(X[i : i + 1])
            assert_allclose(predicted, LOSSES[loss].link([replica.w @ x + replica.o @ [-1, 1]]), rtol=1e-8)
        replica.learn(x, y[i], weights[i])
        model.partial_fit(X[i : i + 1], y[i : i + 1], weights[i : i + 1] if weighted else None)
        w = np.r_[model.coef_, model.intercept_]
        expected = replica.w + (replica.o @ [-1, 1]) * np.eye(d + 1)[-1]
        assert_allclose(w, expected, rtol=1e-8, atol=1e-9 * np.abs(w).max())
    n = d + fit_intercept
    expected = np.linalg.inv(replica.A[:n, :n])
    assert_allclose(model._learner.covariance, expected, rtol=1e-7, atol=1e-8 * np.abs(expected).max())
    assert model.cumulative_loss_ == pytest.approx(replica.total, rel=1e-9)
    assert model.t_ == len(y) and isinstance(model.intercept_, float) and model.coef_.shape == (d,)


def test_a_smooth_loss_of_ones_own():
    X, y = some_rows(30, 3)
    replica = Replica(4, LogCosh(), 1.0, 1.0)
    for x, target in zip(np.c_[X, np.ones(30)], y, strict=True):
        replica.learn(x, target)
    model = ForwardRegressor(standardize=False, loss=LogCosh()).fit(X, y)
    assert_allclose(np.r_[model.coef_, model.intercept_], replica.w, rtol=1e-8)
    assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_, rtol=1e-12)


# --- what is for the squared loss alone -------------------------------------------------------------------------------


def test_what_the_squared_loss_has_alone_says_so():
    X, y = some_rows()
    model = ForwardRegressor(loss="poisson").fit(X, y)
    for name in ("regret_", "regret_bound_", "noise_variance_"):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match=rf"{name} is for loss='squared_error'.*this model has PoissonLoss"):
            getattr(model, name)
    for ask in (lambda: model.predict(X, return_std=True), lambda: model.predict_interval(X)):
        with pytest.raises(ValueError, match="requires loss='squared_error'"):
            ask()
    assert_array_equal(model.predict(X), model.set_params(forward=False).predict(X))
    assert not get_tags(model).target_tags.multi_output and get_tags(ForwardRegressor()).target_tags.multi_output
    assert get_tags(model).target_tags.positive_only and not get_tags(ForwardRegressor()).target_tags.positive_only


def test_several_targets_are_learned_each_by_itself(unchanged):
    X, y = some_rows()
    both = np.c_[y, y[::-1]]
    with unchanged(model := ForwardRegressor(loss="poisson").fit(X, y), "MultiOutputRegressor"):
        model.partial_fit(X, both)
    with unchanged(fresh := ForwardRegressor(loss="poisson"), "MultiOutputRegressor"):
        fresh.fit(X, both)
    several = MultiOutputRegressor(ForwardRegressor(loss="poisson"))
    several.partial_fit(X[:9], both[:9])
    several.partial_fit(X[9:], both[9:])
    assert_array_equal(several.predict(X)[:, 0], model.predict(X))


def test_losses_without_curvature_are_refused(unchanged):
    X, y = some_rows()
    with unchanged(model := ForwardRegressor(loss=HuberLoss()), "loss must be smooth .*; got HuberLoss"):
        model.fit(X, y)
    with unchanged(model := ForwardRegressor(loss="absolute_error"), "'loss' parameter of ForwardRegressor must be"):
        model.fit(X, y)


@pytest.mark.parametrize("form", [np.asarray, np.ndarray.tolist])
def test_targets_that_the_loss_does_not_admit(unchanged, form):
    X, y = some_rows()
    bad = np.where(np.arange(60) == 7, -1.0, y)
    for loss, remedy in (("poisson", "use counts"), ("log_loss", "rescale targets")):
        with unchanged(model := ForwardRegressor(loss=loss).fit(X, np.minimum(y, 1.0)), rf"y = -1 at row 7 .*{remedy}"):
            model.partial_fit(form(X), form(np.minimum(bad, 1.0)))
