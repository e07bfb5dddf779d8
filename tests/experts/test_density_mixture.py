"""The Bayes mixture of densities: against Bayes' rule in plain NumPy, its bounds, its experts, and errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

from onlinebregman import DensityMixture, ImplicitGDRegressor, MaxEntDensity, OnlineExponentialFamily, OnlineGaussian
from onlinebregman.reference import bayes_mixture

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2)) @ [[1.0, 0.3], [0.0, 0.5]] + [1.0, -1.0]
LOGS = norm.logpdf(X[:, :1], loc=[-1.0, 0.0, 1.0])
EXPERTS = [
    ("full", OnlineGaussian()),
    ("unit", OnlineExponentialFamily()),
    ("wide", OnlineExponentialFamily(variance=4)),
]


@st.composite
def log_densities(draw):
    """(logs, prior): densities far below and above 1, including 0, and an adversary of the leading expert."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n_rows, n_experts = draw(st.integers(1, 60)), draw(st.integers(1, 6))
    logs = draw(st.sampled_from([1.0, 30.0])) * rng.normal(size=(n_rows, n_experts)) + draw(st.sampled_from([-9, 0, 9]))
    if draw(st.booleans()):  # the leading expert is wrong
        for t in range(n_rows):
            leader, last = logs[:t].sum(axis=0).argmax(), logs[t].argmin()
            logs[t, [leader, last]] = logs[t, [last, leader]]
    if draw(st.booleans()):
        logs[:, 1:][rng.uniform(size=(n_rows, n_experts - 1)) < 0.1] = -np.inf
    if draw(st.booleans()):  # some sleep
        logs[:, 1:][rng.uniform(size=(n_rows, n_experts - 1)) < 0.1] = np.nan
    return logs, rng.dirichlet(np.full(n_experts, 2.0))


def filled(v, row):
    """Log-densities, of experts that sleep those of the mixture of the others."""
    awake = ~np.isnan(row)
    return np.where(awake, row, logsumexp((v + row)[awake]) - logsumexp(v[awake]))


def bayes(logs, prior, share=0.0, weights=None):
    """Weights before each row, their logarithms after the last, and ln q of each row, by Bayes' rule."""
    v, history, log_q = np.log(prior), [], []
    for t, row in enumerate(logs):
        history.append(np.exp(v))
        row[:] = filled(v, row)
        log_q.append(np.logaddexp.reduce(v + row))
        v = bayes_mixture(v, row, np.log(prior), share, 1.0 if weights is None else weights[t])
    return np.array(history), v, np.array(log_q)


# --- numbers ----------------------------------------------------------------------------------------------------------


@settings(max_examples=100)
@given(log_densities(), st.sampled_from([0.0, 0.01, 0.5]))
def test_bayes_rule(data, share):
    logs, prior = data
    model = DensityMixture(prior=7 * prior, share=share, history=len(logs)).partial_fit(logs)
    said, next_logs = model.score_samples(logs), logs.copy()
    history, last, log_q = bayes(logs, prior, share)
    assert_allclose(said, [logsumexp(last + filled(last, row)) for row in next_logs], rtol=1e-8, atol=1e-12)
    assert_allclose(model.weights_history_, history, rtol=1e-8, atol=1e-12)
    assert_allclose(model.weights_, np.exp(last), rtol=1e-8, atol=1e-12)
    assert_allclose(model.cumulative_loss_, -log_q.sum(), rtol=1e-9, atol=1e-9)
    assert_allclose(model.expert_losses_, -logs.sum(axis=0), rtol=1e-10, atol=1e-9)
    assert model.score(logs) == model.score_samples(logs).mean()
    assert model.t_ == len(logs)
    if not share:  # the density of the whole stream is the mixture of the products
        assert_allclose(model.cumulative_loss_, -logsumexp(np.log(prior) + logs.sum(axis=0)), rtol=1e-9, atol=1e-9)


# --- experts ----------------------------------------------------------------------------------------------------------


def test_kernels_that_were_fitted_beforehand_forecast_the_first_row():
    narrow, wide = (FrozenEstimator(KernelDensity(bandwidth=width).fit(X[:30])) for width in (0.01, 0.5))
    model = DensityMixture([("narrow", narrow), ("wide", wide)], history=99).fit(X[30:])
    assert model.t_ == 30
    logs = np.column_stack([narrow.score_samples(X[30:]), wide.score_samples(X[30:])])
    history, _, log_q = bayes(logs, [0.5, 0.5])
    assert_allclose(model.weights_history_, history, rtol=1e-8, atol=1e-12)
    assert_allclose(model.cumulative_loss_, -log_q.sum())
    assert model.weights_[1] > 0.999


# --- sampling ---------------------------------------------------------------------------------------------------------


def test_samples_are_those_of_the_mixture():
    means = [-5.0, 0.0, 10.0]
    frozen = []
    for k, mean in enumerate(means):
        expert = OnlineGaussian(prior_mean=mean).partial_fit(np.full((1, 2), mean))
        frozen.append((str(k), FrozenEstimator(expert)))
    model = DensityMixture(frozen, prior=[0.5, 0.3, 0.2], share=0.9).fit([[1.0, 1.0]])
    rows = model.sample(20000, random_state=0)
    weights = model.weights_
    assert rows.shape == (20000, 2)
    spread = np.sqrt(weights @ np.square(means) - (weights @ means) ** 2 + 1)
    assert np.abs(rows.mean(axis=0) - weights @ means).max() < 4 * spread / np.sqrt(20000)
    near = np.abs(rows[:, :1] - means).argmin(axis=1)
    assert_allclose(np.bincount(near, minlength=3) / 20000, weights, atol=0.015)
    assert abs(np.corrcoef(rows[:-1, 0], rows[1:, 0])[0, 1]) < 0.03  # independent rows
    assert_allclose(-model.score_samples(rows).mean(), -model.score_samples(model.sample(20000, 1)).mean(), atol=0.05)


@pytest.mark.parametrize("expert", [KernelDensity(bandwidth=0.1), GaussianMixture(2, random_state=3), OnlineGaussian()])
def test_samples_of_scikit_learns_densities_follow_the_random_state(expert, state):
    expert = FrozenEstimator(expert.fit(X))
    model = DensityMixture([("one", expert), ("two", expert)]).fit(X)
    before = state(model)
    rows = model.sample(500, random_state=0)
    assert rows.tolist() == model.sample(500, random_state=0).tolist()
    assert rows.tolist() == model.sample(500, random_state=np.random.RandomState(0)).tolist()
    assert (rows != model.sample(500, random_state=1)).all()
    assert len(np.unique(model.sample(500, np.random.RandomState(2))[:, 0])) == 500
    assert state(model) == before
    assert_allclose(rows.mean(axis=0), X.mean(axis=0), atol=4 * 1.1 / np.sqrt(500))
    assert model.sample().shape == (1, 2)


@pytest.mark.parametrize(
    "model", [DensityMixture([("g", OnlineGaussian())]), OnlineGaussian(), OnlineExponentialFamily(), MaxEntDensity()]
)
def test_the_number_of_samples_is_checked(model):
    model = clone(model).fit([[0.0, 1.0], [1.0, 3.0], [2.0, 0.0]])
    assert model.sample(np.int64(2)).shape == (2, 2)
    with pytest.raises(ValueError, match="n_samples == -1, must be >= 0"):
        model.sample(-1)
    with pytest.raises(TypeError, match="n_samples must be an instance of int"):
        model.sample(2.5)


def test_there_is_nothing_to_draw_from_columns_and_from_experts_without_sample():
    with pytest.raises(ValueError, match="experts are columns of X; give estimators"):
        DensityMixture().fit(LOGS).sample()
    with pytest.raises(ValueError, match="Expert 'silent' must have the method sample; got a Flawed"):
        DensityMixture([*EXPERTS, ("silent", Flawed())]).fit(X).sample()


# --- bad input --------------------------------------------------------------------------------------------------------


class Flawed(BaseEstimator):
    """Learns 40 rows, then returns `value` for one more."""

    def __init__(self, value=0.0):
        self.value = value

    def fit(self, X):
        return self.partial_fit(X)

    def partial_fit(self, X):
        self.n_ = getattr(self, "n_", 0) + len(X)
        return self

    def score_samples(self, X):
        return np.full(len(X), self.value if self.n_ >= 40 else 0.0)


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_when_an_expert_fails_all_are_as_they_were(share, unchanged):
    model = DensityMixture([*EXPERTS, ("flawed", Flawed(np.inf))], share=share, history=3).partial_fit(X[:20])
    with unchanged(model, "Expert 'flawed' gives infinity as log-density of row 20"):
        model.partial_fit(X[20:])
    reference = DensityMixture([*EXPERTS, ("flawed", Flawed())], share=share).partial_fit(X[:40])
    assert model.partial_fit(X[20:40]).weights_.tobytes() == reference.weights_.tobytes()


def test_columns_that_are_no_log_densities_are_refused(unchanged):
    model = DensityMixture().fit(LOGS)
    wrong = LOGS[:5].copy()
    wrong[3, 1] = np.inf
    for rows in (wrong, wrong.astype(np.float32), sparse.csr_array(wrong)):
        with unchanged(model, "Expert in column 1 gives infinity as log-density of row 3"):
            model.partial_fit(rows)
        with unchanged(model, "Expert in column 1 gives infinity as log-density of row 3"):
            model.fit(rows)
        with pytest.raises(ValueError, match="infinity as log-density of row 3"):
            model.score_samples(rows)


def test_all_experts_at_density_zero(unchanged):
    model = DensityMixture().fit(LOGS)
    wrong = LOGS[:5].copy()
    wrong[2] = -np.inf
    with unchanged(model, "All experts with weight give density 0 to row 2"):
        model.partial_fit(wrong)
    assert model.score_samples(wrong)[2] == -np.inf
    # experts whose weight is 0 do not help, unless weight is shared
    rows = [[-np.inf, 0.0], [0.0, 0.0]]
    out = DensityMixture().fit(rows)
    assert out.weights_.tolist() == [0.0, 1.0] and out.expert_losses_.tolist() == [np.inf, 0.0]
    with unchanged(out, "give density 0 to row 1"):
        out.partial_fit([[0.0, 0.0], [0.0, -np.inf]])
    shared = DensityMixture(share=0.1).fit(rows).partial_fit([[0.0, 0.0], [0.0, -np.inf]])
    assert np.isfinite(shared.cumulative_loss_) and shared.weights_[0] > 0.9


def test_a_box_is_out_at_the_first_row_outside():
    box = FrozenEstimator(KernelDensity(kernel="tophat", bandwidth=1.0).fit(np.zeros((1, 1))))
    wide = OnlineExponentialFamily(variance=9.0)
    model = DensityMixture([("box", box), ("wide", wide)], history=9).partial_fit([[0.0], [0.1], [0.2], [5.0], [0.0]])
    assert model.weights_history_[2, 0] > 0.8 and model.weights_.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("largest", [1e308, -1e308])
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_losses_that_add_up_to_infinity_are_refused(largest, share, unchanged):
    model = DensityMixture(share=share).fit(np.full((1, 2), largest))
    with unchanged(model, "losses up to row 1 must be finite"):
        model.partial_fit([[0.0, 0.0], [largest, largest]])
    with unchanged(model, "losses up to row 0 must be finite"):
        model.partial_fit([[-9.0, -9.0]], sample_weight=[1e308])


@pytest.mark.parametrize(
    "model, match",
    [
        (DensityMixture([("a", OnlineGaussian()), ("a", OnlineGaussian())]), "not unique"),
        (DensityMixture([("gd", ImplicitGDRegressor())]), "Expert 'gd' must have the method score_samples"),
        (DensityMixture(prior=[1.0, 2.0, 3.0]), "one positive number for each of the 2 experts"),
        (DensityMixture(prior=[1.0, 0.0]), "one positive number"),
    ],
)
def test_bad_parameters_are_refused(model, match, unchanged):
    for method in (model.fit, model.partial_fit):
        with unchanged(model, match):
            method(X)


def test_weights_need_experts_that_take_them(unchanged):
    model = DensityMixture([*EXPERTS, ("flawed", Flawed())])
    with unchanged(model, "the expert Flawed does not accept it"):
        model.fit(X, sample_weight=np.ones(60))
