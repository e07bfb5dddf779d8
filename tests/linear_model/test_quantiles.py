"""Several quantiles of one target: the models of the single ones side by side, in ascending order."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentRegressor, ScaleInvariantRegressor
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import d2_pinball_score

from onlinebregman import ForwardRegressor, ParameterFreeRegressor
from onlinebregman.losses import QuantileLoss
from onlinebregman.model_selection import LearningRatePath

LEVELS = [0.1, 0.5, 0.9]


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X @ [1.0, -1.0, 0.5] + rng.normal(size=n) * np.exp(X[:, 0])


def regressor(quantile=tuple(LEVELS), **parameters):
    return MirrorDescentRegressor(loss=QuantileLoss(quantile), random_state=0, **parameters)


@pytest.mark.parametrize("divergence", ["normalized_adagrad", "squared_euclidean"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("update", ["implicit", "explicit", "importance"])
def test_they_are_the_models_of_the_single_quantiles_sorted(divergence, layout, update):
    X, y = rows()
    parameters = {"divergence": divergence, "update": update, "standardize": True}
    model = regressor(**parameters)
    for cut in (slice(0, 1), slice(1, 120), slice(120, 300)):
        model.partial_fit(layout(X[cut]), y[cut])
    singles = [regressor(q, **parameters).partial_fit(layout(X), y) for q in LEVELS]
    assert_array_equal(model.coef_, [single.coef_ for single in singles])
    assert_allclose(model.intercept_, [single.intercept_ for single in singles], rtol=1e-12, atol=1e-14)  # other sums
    assert model.cumulative_loss_ == np.cumsum([single.cumulative_loss_ for single in singles])[-1]  # one by one
    each = np.stack([single.predict(layout(X)) for single in singles], axis=1)
    assert_array_equal(model.predict(layout(X)), np.sort(each, axis=1))
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X[:1]), model.predict(X[:1]))


@pytest.mark.parametrize("levels", [[0.1, 0.5], LEVELS], ids=str)
def test_without_a_rate_each_bets_with_its_own_slope(levels):
    X, y = rows()
    model, *singles = (
        ScaleInvariantRegressor(loss=QuantileLoss(q), handle_new_features="add") for q in (levels, *levels)
    )
    u = np.array([1.0, -1.0, 0.5])
    for n, cut in ((2, slice(0, 1)), (2, slice(1, 120)), (3, slice(120, 300))):  # a feature is added
        for each in (model, *singles):
            each.partial_fit(pd.DataFrame(X[cut, :n], columns=list("abc")[:n]), y[cut])
    assert_array_equal(model.coef_, [single.coef_ for single in singles])
    assert_array_equal(model.intercept_, [single.intercept_ for single in singles])
    assert model.cumulative_loss_ == np.cumsum([single.cumulative_loss_ for single in singles])[-1]  # one by one
    model, *singles = (each.set_params(shuffle=False, max_iter=1, tol=None).fit(X, y) for each in (model, *singles))
    for bound in ("regret_bound", "worst_case_bound"):
        assert_array_equal(getattr(model, bound)(u), [getattr(single, bound)(u) for single in singles])


@given(
    scores=st.lists(st.floats(-9, 9), min_size=3, max_size=3),
    y=st.floats(-9, 9),
    levels=st.lists(st.floats(0.01, 0.99), min_size=3, max_size=3, unique=True),
)
def test_sorting_never_increases_the_loss(scores, y, levels):
    loss = QuantileLoss(sorted(levels))
    assert loss.value(np.sort(scores), y).sum() <= loss.value(scores, y).sum() + 1e-12
    assert_array_equal(loss.value(scores, y), [part.value(a, y) for part, a in zip(loss.parts, scores, strict=True)])
    assert_array_equal(
        loss.derivative(scores, y), [part.derivative(a, y) for part, a in zip(loss.parts, scores, strict=True)]
    )


def test_they_cover_what_they_say():
    X, y = rows(6000)
    model = regressor(average=True).partial_fit(X[:5000], y[:5000])
    predicted = model.predict(X[5000:])
    assert_allclose((y[5000:, np.newaxis] <= predicted).mean(axis=0), LEVELS, atol=0.06)
    weights = np.arange(1000) % 3
    parts = [
        d2_pinball_score(y[5000:], p, alpha=q, sample_weight=weights) for p, q in zip(predicted.T, LEVELS, strict=True)
    ]
    assert model.score(X[5000:], y[5000:], weights) == np.mean(parts) > 0.2
    fitted = clone(model).set_params(early_stopping=True, max_iter=20).fit(X[:1000], y[:1000])
    assert len(fitted.validation_scores_) == fitted.n_iter_ and fitted.validation_scores_[-1] > 0.1


def test_what_cannot_be_is_refused_with_its_reason(unchanged):
    X, y = rows(30)
    for wrong in ([0.5, 0.1], [0.1, 0.1], [0.1, 1.0], [], "ab", [[0.1]]):
        with pytest.raises(ValueError, match="quantile"):
            QuantileLoss(wrong)
    model = regressor()
    with unchanged(model, "y should be 1d for several quantiles"):
        model.partial_fit(X, np.c_[y, y])
    model.partial_fit(X, y)
    with unchanged(model, "y should be 1d for several quantiles"):
        model.partial_fit(X, np.c_[y, y])
    with pytest.raises(ValueError, match="several quantiles are sorted"):
        model.to_sklearn()
    with pytest.raises(ValueError, match=r"smooth|curvature"):
        ForwardRegressor(loss=QuantileLoss(LEVELS)).fit(X, y)
    with pytest.raises(ValueError, match=r"loss should be of one quantile for LearningRatePath; got 3. Use a model"):
        LearningRatePath(regressor(), eta0s=[0.1, 1.0]).fit(X, y)


def test_sorted_predictions_of_separate_models_do_not_cross_and_lose_no_more():
    X, y = rows(150)
    separate = [ParameterFreeRegressor(loss=QuantileLoss(q), random_features=4) for q in (0.25, 0.5, 0.75)]
    columns = np.column_stack([model.fit(X[:75], y[:75]).predict(X) for model in separate])
    pairs = [zip(separate, each.T, strict=True) for each in (columns, np.sort(columns))]
    losses = [sum(model.loss.value(a, y).sum() for model, a in pair) for pair in pairs]
    assert (np.diff(columns) < 0).any() and losses[1] < losses[0]


STREAMS = {
    "glitch": lambda rng, y: np.concatenate([y[:1000], [-1e4], y[1001:]]),
    "absurd": lambda rng, y: np.concatenate([y[:1000], [1e9], y[1001:]]),
    "absurd first": lambda rng, y: np.concatenate([[1e9], y[1:]]),
    "shift": lambda rng, y: y + 20.0 * (np.arange(len(y)) >= 1000),
    "scale": lambda rng, y: y * np.where(np.arange(len(y)) < 1000, 1.0, 50.0),
    "smaller": lambda rng, y: y * np.where(np.arange(len(y)) < 1000, 1.0, 0.02),
    "cauchy": lambda rng, y: rng.standard_cauchy(len(y)),
    "lognormal": lambda rng, y: np.exp(2.0 * y),
    "negative lognormal": lambda rng, y: -np.exp(2.0 * y),
}


def mixture(**parameters):
    members = [MirrorDescentRegressor(**parameters, eta0=eta) for eta in (3.0, 30.0, 100.0)]
    return ParameterFreeRegressor(members=members, **parameters)


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("q", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("make", [MirrorDescentRegressor, mixture])
def test_absurd_and_dense_targets_leave_the_share_below_as_it_is(make, q, stream):
    """Steps are in units of a deviation of the targets that one of them does not change, and of those nearby."""
    rng = np.random.default_rng(1)
    y, X, below = STREAMS[stream](rng, rng.normal(size=4000)), np.zeros((4000, 1)), []
    model = make(loss=QuantileLoss(q)).partial_fit(X[:2000], y[:2000])
    for target in y[2000:]:
        below.append(target < model.predict(X[:1])[0])
        model.partial_fit(X[:1], [target])
    assert abs(np.mean(below) - q) < 0.02


@pytest.mark.parametrize("delayed", [False, True])
@pytest.mark.parametrize("weight", [1.0, 1e-3])
def test_mixtures_of_quantiles_have_their_share_in_moving_streams(delayed, weight):
    rng = np.random.default_rng(0)
    X, level = rng.normal(size=(3000, 3)), np.cumsum(rng.normal(size=3000))
    y, below = X @ [1.0, -1.0, 0.5] + 0.1 * level + np.exp(rng.normal(size=3000)), []
    model = mixture(loss=QuantileLoss(0.2)).set_params(delayed=delayed)
    for rows in np.split(np.arange(3000), 300):
        below.extend(y[rows] < model.predict(X[rows]) if rows[0] else [])
        model.partial_fit(X[rows], y[rows], np.full(10, weight))
    assert abs(np.mean(below[1000:]) - 0.2) < 0.03
    assert model.cumulative_loss_ - model.cumulative_losses_.min() <= model.regret_bound_
    assert_allclose(model.explain(X[:9]).contributions.sum(axis=1), model.predict(X[:9]), rtol=1e-9)
