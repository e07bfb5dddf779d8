"""ML-Poly and Bernstein online aggregation, in plain NumPy; and experts that sleep."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils import get_tags

from onlinebregman import ExpertMixtureClassifier, ExpertMixtureRegressor, ImplicitGDRegressor

OWN = ["ml_poly", "boa"]


class Own:
    """Weights and bounds by the formulas."""

    def __init__(self, prior):
        self.prior, self.gap = np.array(prior), 0.0
        self.regrets, self.squares, self.spent = (np.zeros(len(prior)) for _ in range(3))
        self.largest = np.zeros(len(prior))


class MLPoly(Own):
    def eta(self):
        return 1.0 / (self.squares + self.largest.max() ** 2)

    def potential(self, r):
        return (self.prior * self.eta() * np.maximum(r, 0.0) ** 2).sum()

    def weights(self):
        if self.regrets.max() <= 0:
            return self.prior
        v = self.prior * self.eta() * np.maximum(self.regrets, 0.0)
        return v / v.sum()

    def count(self, r):
        growth = self.potential(abs(r)) if self.largest.any() else 0.0
        self.regrets, self.squares = self.regrets + r, self.squares + r**2
        grows = abs(r).max() > self.largest.max()
        self.largest = np.maximum(self.largest, abs(r))
        self.gap = self.potential(self.regrets) if grows else self.gap + growth

    def bound(self):
        return np.sqrt(self.gap / (self.prior * self.eta())).max()


class BOA(Own):
    def inverse(self):
        rates = np.maximum(2 * self.largest, np.sqrt(self.squares / -np.log(self.prior)))
        return np.where(self.largest > 0, rates, rates[self.largest > 0].min(initial=1e300))

    def exponents(self):
        return (self.regrets - self.spent) / self.inverse()

    def weights(self):
        v = self.prior * np.exp(self.exponents()) / self.inverse()
        return v / v.sum()

    def count(self, r):
        before = (self.prior * np.exp(self.exponents())).sum()
        self.regrets, self.squares = self.regrets + r, self.squares + r**2
        self.largest = np.maximum(self.largest, abs(r))
        self.spent = self.spent + r**2 / self.inverse()
        self.gap += max((self.prior * np.exp(self.exponents())).sum() - before, 0.0)

    def bound(self):
        inverse = np.where(self.largest > 0, self.inverse(), 0.0)
        return ((np.log1p(self.gap) - np.log(self.prior)) * inverse + self.spent).max()


def stream(n=300, n_experts=4, seed=0):
    rng = np.random.default_rng(seed)
    y = 5.0 + 3.0 * rng.normal(size=n)  # no error is absurd
    return y[:, np.newaxis] + rng.normal(size=(n, n_experts)) * [0.5, 0.6, 1.0, 1.5][:n_experts], y


@pytest.mark.parametrize("strategy, replica", [("ml_poly", MLPoly), ("boa", BOA)])
@pytest.mark.parametrize("prior", [None, [0.1, 0.2, 0.3, 0.4]])
@pytest.mark.parametrize("seed", range(3))
def test_weights_and_bounds_are_those_of_the_formulas(strategy, replica, prior, seed):
    X, y = stream(seed=seed)
    expected, lost = replica([0.25] * 4 if prior is None else prior), 0.0
    model = ExpertMixtureRegressor(strategy=strategy, prior=prior, history=300, shuffle=False)
    model.fit(X, y, sample_weight=np.tile([1.0, 2.5, 0.2], 100))
    for p, target, weight, v in zip(X, y, np.tile([1.0, 2.5, 0.2], 100), model.weights_history_, strict=True):
        assert_allclose(v, expected.weights(), rtol=1e-9, atol=1e-12)
        a = v @ p
        lost += weight * (a - target) ** 2 / 2
        expected.count(weight * (a - target) * (a - p))
    assert_allclose(model.cumulative_loss_, lost)
    assert_allclose(model.regret_bound_, expected.bound(), rtol=1e-9)
    assert model.tracking_bound(0) == model.regret_bound_ and model.tracking_bound(1) == np.inf
    for v in np.random.default_rng(seed).dirichlet(np.ones(4), size=20):  # every mixture of the experts
        fixed = (np.tile([1.0, 2.5, 0.2], 100) * (X @ v - y) ** 2).sum() / 2
        assert model.cumulative_loss_ - fixed <= model.regret_bound_


@pytest.mark.parametrize("strategy", OWN)
def test_weights_do_not_depend_on_units(strategy):
    X, y = stream()
    model = ExpertMixtureRegressor(strategy=strategy).partial_fit(X, y)
    for unit in (1e-60, 1e60):
        scaled = ExpertMixtureRegressor(strategy=strategy).partial_fit(unit * X, unit * y)
        assert_allclose(scaled.weights_, model.weights_, rtol=1e-6)


@pytest.mark.parametrize("strategy", OWN)
def test_one_expert_equal_experts_and_classes(strategy):
    X, y = stream()
    alone = ExpertMixtureRegressor(strategy=strategy).partial_fit(X[:, :1], y)
    assert_array_equal(alone.weights_, [1.0])
    assert alone.regret_bound_ == 0
    same = ExpertMixtureRegressor(strategy=strategy).partial_fit(X[:, [0, 0]], y)
    assert_array_equal(same.weights_, [0.5, 0.5])
    p = np.clip(np.column_stack([0.1 + 0.8 * (y > 5), np.full(300, 0.5)]), 0.01, 0.99)
    for loss in ("log_loss", "brier"):
        model = ExpertMixtureClassifier(strategy=strategy, loss=loss, learning_rate="adaptive").partial_fit(
            p, y > 5, classes=[False, True]
        )
        assert model.weights_[0] > 0.9
        assert model.cumulative_loss_ <= model.expert_losses_.min() + model.regret_bound_


@pytest.mark.parametrize("parameters", [{"share": 0.1}, {"learning_rate": 0.1}, {"learning_rate": "theory"}])
def test_what_rates_of_their_own_are_not_for(parameters):
    with pytest.raises(ValueError, match="strategy='ml_poly' has rates of its own"):
        ExpertMixtureRegressor(**parameters).fit(*stream())


@pytest.mark.parametrize("strategy", ["average", "eg", *OWN])
def test_an_expert_sleeps_where_its_forecast_is_missing(strategy):
    """Its weight relative to the others stays, and what it loses in the row is what the mixture of them does."""
    X, y = stream()
    rng = np.random.default_rng(1)
    X[rng.uniform(size=X.shape) < 0.3] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 5.0
    rows, total = slice(50, 300), 0.0
    model = ExpertMixtureRegressor(strategy=strategy).partial_fit(X[:50], y[:50])
    losses, before = model.expert_losses_, model.cumulative_loss_
    for p, target in zip(X[rows], y[rows], strict=True):
        v, awake = model.weights_, ~np.isnan(p)
        a = v[awake] @ p[awake] / v[awake].sum()
        assert_allclose(model.predict([p]), [a])
        lost = (a - target) ** 2 / 2
        losses, total = losses + np.where(awake, (p - target) ** 2 / 2, lost), total + lost
        model = model.partial_fit([p], [target])
    assert_allclose(model.expert_losses_, losses)
    assert_allclose(model.cumulative_loss_ - before, total)
    assert model.cumulative_loss_ - losses.min() <= model.regret_bound_
    whole = ExpertMixtureRegressor(strategy=strategy).partial_fit(X, y)
    assert_array_equal(whole.weights_, model.weights_)


def test_who_may_sleep(unchanged):
    X, y = stream(50)
    model = ExpertMixtureRegressor().partial_fit(X, y)
    assert get_tags(model).input_tags.allow_nan
    X[7] = np.nan
    with unchanged(model, "Row 7 must have a forecast"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="Row 7 must have a forecast"):
        model.predict(X)
    for other in (
        ExpertMixtureRegressor([("gd", ImplicitGDRegressor())]),
        ExpertMixtureRegressor(strategy="aggregating", data_bounds={"y": (0, 10)}),
    ):
        assert not get_tags(other).input_tags.allow_nan
        with pytest.raises(ValueError, match="contains NaN"):
            other.fit(X, y)
