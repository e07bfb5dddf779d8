"""Mixtures of experts: rates, bounds, and experts that were certain and wrong. Their formulas: test_weights.py."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from onlinebregman._kernels.learners.hedge import Hedge
from sklearn.utils import get_tags

from onlinebregman import (
    BayesMixture,
    ExpertMixtureClassifier,
    ExpertMixtureRegressor,
    ForwardRegressor,
)
from onlinebregman.reference import AdaHedge

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows


# --- numbers ----------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), share=st.sampled_from([0.03, 0.1, 0.5]), n_switches=st.integers(0, 5))
def test_a_rate_that_follows_from_larger_losses_is_raised(seed, share, n_switches):
    rng = np.random.default_rng(seed)
    losses = rng.uniform(size=(200, 3)) * 10.0 ** np.repeat(rng.integers(-3, 4, size=4), 50)[:, np.newaxis]
    losses[np.arange(200), np.repeat(rng.integers(3, size=4), 50)] *= 0.1
    compiled, plain = Hedge(3, None, share), AdaHedge(3, share)
    # the losses of the best sequences of experts that end with one of them, by the number of switches
    best = np.concatenate([np.zeros((1, 3)), np.full((n_switches, 3), np.inf)])
    for each in losses:
        assert_allclose(compiled.weights, plain.v, rtol=1e-6, atol=1e-9)
        best[1:] = np.minimum(best[1:], best[:-1].min(axis=1, keepdims=True))
        best += each
        loss = compiled.weights @ each
        compiled.learn(each, loss)
        plain.learn(each, loss)
    assert compiled.loss - best.min() <= compiled.regret_bound(n_switches) * (1 + 1e-9)


def test_without_share_a_sequence_has_no_bound():
    model = ExpertMixtureRegressor(strategy="average", learning_rate=1.0).fit([[0.0, 1.0]], [0.0])
    assert model.tracking_bound(1) == np.inf and model.tracking_bound(0) == model.regret_bound_


# --- probabilities ----------------------------------------------------------------------------------------------------


def test_the_classifier_at_rate_1_is_the_bayes_mixture():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(50, 4)), rng.integers(2, size=50)
    bayes, general = BayesMixture(share=0.1).fit(X, y), ExpertMixtureClassifier(share=0.1).fit(X, y)
    assert bayes.weights_.tobytes() == general.weights_.tobytes()


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_an_expert_who_was_certain_and_wrong_is_out_for_good_unless_weight_is_shared(share):
    X = np.array([[0.0, 0.5], [1.0, 0.5], [1.0, 0.5]])
    model = BayesMixture(share=share, history=3).fit(X, [1, 0, 1])
    assert model.expert_losses_[0] == np.inf and np.isfinite(model.cumulative_loss_)
    assert (model.weights_[0] > 0) == (share > 0)
    assert np.isfinite(model.weights_history_).all()


def test_targets_are_those_that_all_experts_accept():
    experts = [("any", ForwardRegressor()), ("counts", ForwardRegressor(loss="poisson"))]
    assert get_tags(ExpertMixtureRegressor(experts)).target_tags.positive_only
    assert not get_tags(ExpertMixtureRegressor(experts[:1])).target_tags.positive_only
    assert not get_tags(ExpertMixtureRegressor()).target_tags.positive_only
