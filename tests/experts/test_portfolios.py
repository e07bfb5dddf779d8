"""Portfolios: wealth of known ones, EG against its definition and its bounds, and the figures of Cover (1991)."""

import os
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import betaln
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from onlinebregman import EGPortfolio
from onlinebregman.datasets import list_datasets, load_dataset
from onlinebregman.experts import (
    best_asset,
    best_constant_portfolio,
    buy_and_hold,
    universal_wealth,
    wealth,
)
from onlinebregman.reference import eg_portfolio

WITHOUT_DATA = {
    "condition": not os.environ.get("ONLINEBREGMAN_DATA") or "portfolio_nyse_o" not in list_datasets(),
    "reason": "needs portfolio_nyse_o.csv.gz in the folder ONLINEBREGMAN_DATA",
}


@st.composite
def markets(draw):
    """Price relatives: log-normal, or by an adversary who lets the asset with the largest share fall."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n_days, n_assets = draw(st.integers(1, 60)), draw(st.integers(2, 6))
    if draw(st.booleans()):
        return rng.lognormal(0.0, draw(st.sampled_from([0.01, 0.3])), size=(n_days, n_assets))
    days, model = [], EGPortfolio(draw(st.sampled_from([0.05, 1.0])))
    for _ in range(n_days):
        day = np.ones(n_assets)
        day[model.weights_.argmax() if days else 0] = 0.5
        days.append(day)
        model.partial_fit(day[np.newaxis])
    return np.array(days)


def replica(x, rate):
    """EG as published by Helmbold et al. (1998): the wealth and the last weights."""
    w, total = np.full(x.shape[1], 1 / x.shape[1]), 1.0
    for day in x:
        total *= w @ day
        w = eg_portfolio(w, day, rate)
    return total, w


@settings(max_examples=40)
@given(markets(), st.sampled_from([0.01, 0.05, 1.0]))
def test_eg_is_that_of_the_paper(x, rate):
    model = EGPortfolio(rate).fit(x)
    total, weights = replica(x, rate)
    assert_allclose(model.wealth_, total, rtol=1e-10)
    assert_allclose(model.weights_, weights, rtol=1e-9)
    assert_allclose(np.exp(-model.expert_losses_), x.prod(axis=0), rtol=1e-10)


@settings(max_examples=40)
@given(markets(), st.sampled_from([0.01, 0.5, 5.0]), st.integers(0, 1000))
def test_no_constant_portfolio_is_better_by_more_than_the_bound_of_the_run(x, rate, seed):
    model = EGPortfolio(rate).fit(x)
    for u in (best_constant_portfolio(x).weights, np.random.default_rng(seed).dirichlet(np.ones(x.shape[1]))):
        assert model.cumulative_loss_ + np.log(wealth(x, u)) <= model.regret_bound_ + 1e-9


@settings(max_examples=40)
@given(markets())
def test_the_theorem_of_the_paper(x):
    n_days, n_assets = x.shape
    ratio = (x.min(axis=1) / x.max(axis=1)).min()
    model = EGPortfolio("theory", data_bounds={"ratio": ratio, "n_rows": n_days}).fit(x)
    theorem = np.sqrt(n_days * np.log(n_assets) / 2) / ratio
    assert model.cumulative_loss_ + np.log(best_constant_portfolio(x).wealth) <= theorem + 1e-9
    assert model.regret_bound_ <= theorem + 1e-9
    assert_allclose(model._learner.hedge.rate, 2 * ratio * np.sqrt(2 * np.log(n_assets) / n_days))


@settings(max_examples=25)
@given(markets())
def test_the_best_constant_portfolio_is_best(x):
    best = best_constant_portfolio(x)
    assert_allclose(best.weights.sum(), 1.0)
    assert (best.weights >= 0).all()
    rng = np.random.default_rng(0)
    others = [*np.eye(x.shape[1]), *rng.dirichlet(np.ones(x.shape[1]), size=20)]
    near = 0.99 * best.weights + 0.01 * rng.dirichlet(np.ones(x.shape[1]), size=20)
    assert all(wealth(x, u) <= best.wealth * (1 + 1e-7 * len(x)) for u in (*others, *near))
    assert best.wealth >= best_asset(x).wealth * (1 - 1e-9)


@settings(max_examples=25)
@given(markets())
def test_the_universal_portfolio_for_two_assets(x):
    x = x[:, :2]
    grid = (np.arange(20_000) + 0.5) / 20_000
    mean = np.prod(np.multiply.outer(grid, x[:, 0]) + np.multiply.outer(1 - grid, x[:, 1]), axis=1).mean()
    exact = universal_wealth(x)
    assert_allclose(exact, mean, rtol=1e-5)
    assert np.log(best_constant_portfolio(x).wealth / exact) <= np.log(len(x) + 1) + 1e-9


@pytest.mark.parametrize("n_days", [1, 2, 40, 6000])
def test_the_universal_portfolio_where_its_integrand_is_narrowest(n_days):
    """Each day one of two assets doubles, the other loses nearly all value: the mean of (2 b)^k (2 - 2 b)^(n - k)."""
    x = np.full((n_days, 2), 1e-300)
    won = np.random.default_rng(0).integers(2, size=n_days)
    x[np.arange(n_days), won] = 2.0
    k = won.sum()
    assert_allclose(universal_wealth(x), np.exp(n_days * np.log(2) + betaln(k + 1, n_days - k + 1)), rtol=1e-9)


def test_the_universal_portfolio_by_sampling_is_near_the_exact_one():
    x = np.random.default_rng(0).lognormal(0.0, 0.1, size=(50, 2))
    three = np.c_[x, x[:, 0]]  # the same asset twice: shares of the first are Beta(2, 1)
    nodes, shares = np.polynomial.legendre.leggauss(60)
    share = (1 + nodes) / 2
    expected = (shares / 2 * 2 * share * np.prod(np.outer(share, x[:, 0]) + np.outer(1 - share, x[:, 1]), axis=1)).sum()
    assert_allclose(universal_wealth(three, n_points=20_000), expected, rtol=0.01)
    assert universal_wealth(three, n_points=100, random_state=1) == universal_wealth(
        three, n_points=100, random_state=1
    )


def test_known_wealths():
    x = np.array([[1.0, 2.0], [1.0, 0.5]] * 10)
    assert best_asset(x) == (0, 1.0)
    assert buy_and_hold(x) == 1.0
    assert_allclose(wealth(x, [0.5, 0.5]), (1.5 * 0.75) ** 10)
    assert_allclose(best_constant_portfolio(x).weights, [0.5, 0.5], atol=1e-5)
    assert_allclose(buy_and_hold(x[:1], [0.25, 0.75]), 1.75)
    daily = np.array([[0.0, 1.0], [1.0, 0.0]] * 10)
    assert wealth(x, daily) == 2.0**10


def test_a_fall_and_rise_beyond_what_floats_hold():
    x = np.vstack([np.full((1500, 2), 0.5), np.full((1500, 2), 2.0)])
    x[:, 1] *= 1.0001
    for days in (x, x[::-1]):
        gain = 1.0001**3000
        assert best_asset(days) == (1, pytest.approx(gain, rel=1e-10))
        assert_allclose(wealth(days, [0.0, 1.0]), gain, rtol=1e-10)
        assert_allclose(buy_and_hold(days), (1 + gain) / 2, rtol=1e-10)
        assert_allclose(best_constant_portfolio(days).wealth, gain, rtol=1e-6)
    lost = np.vstack([x, [[0.0, 1.0]]])
    assert wealth(lost, [1.0, 0.0]) == 0.0
    assert_allclose(buy_and_hold(lost, [0.5, 0.5]), gain / 2, rtol=1e-10)
    assert best_asset(np.zeros((2, 2))) == (0, 0.0)
    assert buy_and_hold(np.zeros((2, 2))) == universal_wealth(np.zeros((2, 2))) == 0.0


def test_a_wealth_beyond_floats_is_infinite():
    x = np.full((1500, 3), 2.0)
    assert best_asset(x).wealth == buy_and_hold(x) == wealth(x, [1.0, 0.0, 0.0]) == np.inf
    assert universal_wealth(x[:, :2]) == universal_wealth(x, n_points=10) == best_constant_portfolio(x).wealth == np.inf
    assert EGPortfolio().fit(x).wealth_ == np.inf
    assert_allclose(EGPortfolio().fit(x).cumulative_loss_, -1500 * np.log(2))


def test_a_stream_may_be_cut_anywhere_and_pickled_in_the_middle():
    x = np.random.default_rng(0).lognormal(0.0, 0.05, size=(90, 5))
    for rate in (0.05, 1.0):
        whole, parts = EGPortfolio(rate).fit(x), EGPortfolio(rate)
        for piece in np.split(x, [1, 2, 40]):
            parts = pickle.loads(pickle.dumps(parts.partial_fit(piece)))
        assert parts.weights_.tobytes() == whole.weights_.tobytes()
        assert (parts.wealth_, parts.regret_bound_, parts.t_) == (whole.wealth_, whole.regret_bound_, 90)


@pytest.mark.parametrize(
    "bad, match",
    [
        ([[1.0, 1.0, -0.02]], r"price relative -0.02 \(row 0, column 2\)"),
        ([[1.0, np.nan, 1.0]], r"contains NaN \(row 0, column 1\)"),
        ([[1.0, np.inf, 1.0]], r"contains infinity \(row 0, column 1\)"),
        ([1.0, 1.0, 1.0], "shape|1D"),
        ([[1.0, 1.0]], "X has 2 features, but EGPortfolio is expecting 3"),
    ],
)
def test_bad_relatives_are_refused_and_change_nothing(bad, match, unchanged):
    model = EGPortfolio().fit(np.full((5, 3), 1.1))
    with unchanged(model, match):
        model.partial_fit(bad)
    if "but EGPortfolio" not in match:
        for function in (best_asset, buy_and_hold, best_constant_portfolio, universal_wealth):
            with pytest.raises(ValueError, match=match):
                function(bad)


@settings(max_examples=25)
@given(markets(), st.integers(0, 1000))
def test_assets_may_be_lost(x, seed):
    lost = np.random.default_rng(seed).uniform(size=x.shape) < 0.1
    lost[:, 0] = False
    x = np.where(lost, 0.0, x)
    best, model = best_constant_portfolio(x), EGPortfolio(0.1).fit(x)
    assert_allclose(model.wealth_, replica(x, 0.1)[0], rtol=1e-10)
    assert_allclose(np.exp(-model.expert_losses_), x.prod(axis=0), rtol=1e-10)
    assert model.cumulative_loss_ + np.log(best.wealth) <= model.regret_bound_ + 1e-9
    assert best.wealth >= best_asset(x).wealth * (1 - 1e-9)


def test_a_day_on_which_all_is_lost_is_refused(unchanged):
    model = EGPortfolio().fit([[1.0, 1.1], [0.0, 2.0]])
    with unchanged(model, "lost in row 1; remove the day"):
        model.partial_fit([[1.0, 1.0], [0.0, 0.0]])
    assert model.score([[1.0, 1.0], [0.0, 0.0]]) == -np.inf
    almost = EGPortfolio(1e4).fit([[2.0, 0.5]])  # the second asset's share underflows
    with unchanged(almost, "lost in row 0; remove the day"):
        almost.partial_fit([[0.0, 1.0]])


def test_there_is_no_best_portfolio_if_all_assets_are_lost():
    with pytest.raises(ValueError, match="All assets lose their whole value in row 2"):
        best_constant_portfolio([[1.0, 1.1], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]])


def test_what_is_learned_is_not_there_before():
    for name in ("weights_", "wealth_", "expert_losses_", "cumulative_loss_", "regret_bound_", "t_"):
        with pytest.raises(AttributeError, match="EGPortfolio has not learned a row yet"):
            getattr(EGPortfolio(), name)


def test_gains_and_growth_rate_are_those_of_the_shares_held_now():
    x = np.random.default_rng(0).lognormal(0.0, 0.1, size=(60, 3))
    model = EGPortfolio(0.5).fit(x[:40])
    assert_allclose(model.predict(x[40:]), x[40:] @ model.weights_)
    assert_allclose(np.exp(20 * model.score(x[40:])), wealth(x[40:], model.weights_))
    search = GridSearchCV(EGPortfolio(), {"learning_rate": [0.01, 5.0]}, cv=TimeSeriesSplit(3)).fit(x)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("rate", [0, -1.0, np.nan, "fast", None, "theory"])
def test_bad_rates_are_refused(rate):
    with pytest.raises(ValueError, match="learning_rate"):
        EGPortfolio(rate).fit([[1.0, 2.0]])


@pytest.mark.parametrize(
    "bounds",
    [
        {"ratio": 2.0, "n_rows": 9},
        {"ratio": 0.5},
        {"ratio": 0.5, "n_rows": 0},
        {"ratio": "a", "n_rows": 9},
        {"ratio": np.float32(0), "n_rows": 9},
        {"ratio": None, "n_rows": 9},
        {"ratio": np.nan, "n_rows": 9},
        {"ratio": 5e-324, "n_rows": 9},
        {"ratio": 0.5, "n_rows": "a"},
        {"ratio": 0.5, "n_rows": np.inf},
    ],
)
def test_bad_data_bounds_are_refused(bounds):
    with pytest.raises(ValueError, match="needs data_bounds with 'ratio'"):
        EGPortfolio("theory", data_bounds=bounds).fit([[1.0, 2.0]])


@pytest.mark.parametrize("weights", [[0.5, 0.6], [1.5, -0.5], [1.0], [np.nan, 1.0]])
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(ValueError, match="weights must be 2 numbers"):
        wealth([[1.0, 2.0]], weights)


@pytest.mark.skipif(**WITHOUT_DATA)
def test_the_new_york_stock_exchange():
    data = load_dataset("portfolio_nyse_o")
    x = data.data
    assert x.shape == (5651, 36)
    best = best_constant_portfolio(x)
    assert round(best_asset(x).wealth, 2) == 54.14
    assert round(buy_and_hold(x), 2) == 14.50
    assert round(best.wealth, 2) == 250.60
    model = EGPortfolio(0.05).fit(x)
    assert 1.8 * buy_and_hold(x) < model.wealth_ < best.wealth
    assert np.log(best.wealth / model.wealth_) <= model.regret_bound_


@pytest.mark.skipif(**WITHOUT_DATA)
def test_the_two_stocks_of_cover():
    """Cover's figures are those of a grid of 21 weights: its best one and its mean."""
    data = load_dataset("portfolio_nyse_o")
    pair = data.data[:, [data.feature_names.index("T"), data.feature_names.index("W")]]  # Iroquois Brands, Kin Ark
    wealths = [wealth(pair, [b, 1 - b]) for b in np.linspace(0.0, 1.0, 21)]
    assert round(max(wealths), 2) == 73.62
    assert round(np.mean(wealths), 2) == 38.67
    best = best_constant_portfolio(pair)
    assert round(best.wealth, 2) == 73.70  # between two points of the grid
    assert max(wealths) > universal_wealth(pair) > best.wealth / (len(pair) + 1)
    model = EGPortfolio(0.05).fit(pair)
    assert best_asset(pair).wealth < universal_wealth(pair) < model.wealth_ < best.wealth


def test_the_last_shares_are_kept_if_they_are_asked_for():
    x = np.random.default_rng(0).lognormal(0.0, 0.1, size=(50, 3))
    model, shares = EGPortfolio(0.5, history=10), []
    for day in x:
        shares.append(model.weights_ if shares else np.full(3, 1 / 3))
        model.partial_fit(day[np.newaxis])
    assert_allclose(model.weights_history_, shares[-10:], rtol=1e-15)
    assert model.weights_history_.tobytes() == EGPortfolio(0.5, history=10).fit(x).weights_history_.tobytes()
    with pytest.raises(ValueError, match="row 1"):
        model.partial_fit([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    assert_allclose(model.weights_history_, shares[-10:], rtol=1e-15)
    assert not hasattr(EGPortfolio().fit(x), "weights_history_")
