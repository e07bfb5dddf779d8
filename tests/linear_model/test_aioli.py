"""AIOLI, the improper update of ForwardClassifier: its formulas, its bound on every stream, and what it refuses."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator
from softmax_replica import some_rows

from onlinebregman import ExpertMixtureClassifier, ForwardClassifier, ParameterFreeClassifier, merge, reference

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows

seeds = st.integers(0, 2**32 - 1)


def aioli(**parameters):
    return ForwardClassifier(update="aioli", **parameters)


class Replica(reference.Aioli):
    """The algorithm, with its loss and F(0), the sum of the surrogates at 0."""

    def __init__(self, d, alpha, radius, gamma=1.0):
        super().__init__(alpha / 2 * np.eye(d), reference.LOSSES["log_loss"], gamma)
        self.radius, self.losses, self.constant = radius, 0.0, 0.0

    def learn(self, x, y, s=1.0):
        z, A = self.predict(x), self.A
        super().learn(x, y, s, self.radius)
        k = x @ (self.A - self.gamma * A) @ x / (x @ x) ** 2
        slope = float(self.loss.derivative(z, y))
        self.losses += s * float(self.loss.value(z, y))
        self.constant += s * (float(self.loss.value(z, y)) - slope * z) + k * z * z / 2


@settings(max_examples=60)
@given(
    seed=seeds,
    d=st.integers(1, 12),
    alpha=st.floats(-2, 2).map(lambda power: 10.0**power),
    radius=st.sampled_from([0.1, 1.0, 20.0]),
    gamma=st.sampled_from([1.0, 0.9]),
    fit_intercept=st.booleans(),
    weighted=st.booleans(),
)
def test_it_is_the_algorithm_by_its_formulas(seed, d, alpha, radius, gamma, fit_intercept, weighted):
    X, y = some_rows(40, d, 2, seed)
    weights = np.random.default_rng(seed).choice([0.1, 1.0, 7.3], size=len(y)) if weighted else np.ones(len(y))
    rows = np.c_[X, np.ones(len(y))] if fit_intercept else X
    replica = Replica(rows.shape[1], alpha, radius, gamma)
    model = aioli(alpha=alpha, radius=radius, forgetting=gamma, fit_intercept=fit_intercept)
    for i, x in enumerate(rows):
        if i:
            z = replica.predict(x)
            assert_allclose(model.decision_function(X[i : i + 1]), z, rtol=1e-8, atol=1e-10)
            assert_allclose(model.predict_proba(X[i : i + 1])[0], [expit(-z), expit(z)], rtol=1e-8)
        replica.learn(x, y[i], weights[i])
        model.partial_fit(X[i : i + 1], y[i : i + 1], [0, 1], weights[i : i + 1])
        w = replica.w
        got = np.r_[model.coef_[0], model.intercept_] if fit_intercept else model.coef_[0]
        assert_allclose(got, w, rtol=1e-8, atol=1e-9 * np.abs(w).max())
    assert_allclose(model._learner.covariance, np.linalg.inv(replica.A), rtol=1e-8, atol=1e-9 / alpha)
    assert model.cumulative_loss_ == pytest.approx(replica.losses, rel=1e-10)
    if gamma == 1:  # what the losses exceed the minimum of the surrogates by
        least = replica.constant - w @ replica.A @ w / 2
        assert model.regret_bound(np.zeros(d)) == pytest.approx(replica.losses - least, rel=1e-7, abs=1e-8)


def test_comparators_must_be_within_the_radius():
    X, y = some_rows(30, 3, 2)
    model = aioli(radius=2.0).fit(X, y)
    assert model.regret_bound([0.0, 2.0, 0.0]) - model.regret_bound([0.0, 0.0, 0.0]) == pytest.approx(1.0)
    assert model.regret_bound([0.0, 0.0, 0.0], 2.0) - model.regret_bound([0.0, 0.0, 0.0]) == pytest.approx(1.0)
    u = np.ones(3) / np.sqrt(3.0) * (2.0 * (1 + 1e-15))  # of the norm 2 up to rounding
    assert np.linalg.norm(u) > 2 and model.regret_bound(u) == pytest.approx(model.regret_bound([0.0, 2.0, 0.0]))
    model.set_params(radius=9.0)  # read when learning starts
    with pytest.raises(ValueError, match=r"norm of coef and intercept must be at most radius = 2; got 2\.8"):
        model.regret_bound([0.0, 2.0, 0.0], 2.0)
    with pytest.raises(ValueError, match=r"coef must have shape \(3,\)"):
        model.regret_bound([0.0, 2.0])
    with pytest.raises(ValueError, match=r"intercept must be a number or have shape \(1,\); got shape \(2,\)"):
        model.regret_bound(np.zeros(3), [0.0, 1.0])
    with pytest.raises(ValueError, match="must be at most radius = 2; got nan"):
        model.regret_bound([0.0, np.nan, 0.0])
    free = aioli(penalize_intercept=False, fit_intercept=True).fit(X, y)
    rise = free.regret_bound(np.zeros(3), 1.0) - free.regret_bound(np.zeros(3))
    assert rise == pytest.approx(1e-4 / 4)
    with pytest.raises(ValueError, match="intercept must be 0"):
        aioli(fit_intercept=False).fit(X, y).regret_bound(np.zeros(3), 1.0)


def test_where_there_is_no_bound():
    X, y = some_rows(30, 3, 2)
    with pytest.raises(ValueError, match="update='aioli'"):
        ForwardClassifier().fit(X, y).regret_bound(np.zeros(3))
    assert aioli(forgetting=0.99).fit(X, y).regret_bound(np.zeros(3)) == np.inf
    forgot = aioli(forgetting=0.99).partial_fit(X[:1], y[:1], [0, 1]).set_params(forgetting=1.0).partial_fit(X, y)
    assert forgot.regret_bound(np.zeros(3)) == np.inf


def test_the_functions_of_parallel_runs_add_up():
    X, y = some_rows(90, 4, 2)
    start = aioli(radius=5.0).partial_fit(X[:30], y[:30], [0, 1])
    parts = [copy.copy(start).partial_fit(X[i : i + 30], y[i : i + 30]) for i in (30, 60)]
    mixed = merge(parts, start=start)
    A0, A1, A2, A = (np.linalg.inv(model._learner.covariance) for model in (start, *parts, mixed))
    w0, w1, w2, w = (np.r_[model.coef_[0], model.intercept_] for model in (start, *parts, mixed))
    assert_allclose(A, A1 + A2 - A0, rtol=1e-10)
    assert_allclose(A @ w, A1 @ w1 + A2 @ w2 - A0 @ w0, rtol=1e-10)
    mixed.partial_fit(X, y)
    with pytest.raises(ValueError, match="must be for one run over all rows"):  # with one penalty for all of them
        mixed.regret_bound(np.zeros(4))


def test_two_classes_are_needed(unchanged):
    X, y = some_rows(30, 3, 3)
    model = aioli()
    words = "Only binary classification is supported. The type of the target is multiclass: update='aioli'"
    with unchanged(model, rf"^{words} is for two classes; got 3\. Use update='implicit'"):
        model.fit(X, y)
    assert get_tags(ForwardClassifier()).classifier_tags.multi_class
    for binary in (model, ExpertMixtureClassifier([("one", model)]), ParameterFreeClassifier(members=[model])):
        assert not get_tags(binary).classifier_tags.multi_class
        with pytest.raises(ValueError, match=words):
            clone(binary).fit(X, y)
    model = aioli().fit(X, y > 0)
    for each, labels in ((model, np.full(30, 2)), (aioli(), y > 0)):
        with unchanged(each.set_params(handle_unknown="add"), "handle_unknown must be 'error' with update='aioli'"):
            each.partial_fit(X, labels, classes=[0, 1])


def test_it_passes_scikit_learn_s_checks():
    reason = "compares shuffled rows: what a learner keeps of a stream depends on its order"
    failing = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
    check_estimator(aioli(), expected_failed_checks=dict.fromkeys(failing, reason), on_skip=None)
