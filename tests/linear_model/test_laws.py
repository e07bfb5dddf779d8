"""Laws of the updates for every geometry, stream and rate: statements of the theory, checked on difficult rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from replica import learn, model_of, rows_that_end_on_kinks
from scipy import sparse
from sklearn.base import clone

from onlinebregman import BurgRegressor, EGRegressor, ImplicitGDRegressor

LEARNERS = {
    "gd": lambda **kw: ImplicitGDRegressor(**kw),
    "burg": lambda **kw: BurgRegressor(**kw),
    "egu": lambda **kw: EGRegressor(weights="positive", **kw),
    "eg": lambda **kw: EGRegressor(weights="simplex", total=1.5, **kw),
    "signed": lambda **kw: EGRegressor(weights="signed", total=1.5, **kw),
}
learners = pytest.mark.parametrize("name", LEARNERS)
seeds = st.integers(0, 2**32 - 1)


def constant(name, **parameters):
    return LEARNERS[name](learning_rate="constant", **parameters)


# --- weights and averages ---------------------------------------------------------------------------------------------


@learners
def test_a_row_that_is_predicted_exactly_changes_nothing(name):
    start = [0.5, 0.25, 0.5 if name == "signed" else 0.75]
    model = constant(name, eta0=10.0, fit_intercept=False, init=start)
    model.partial_fit([[1.0, 2.0, 4.0]], [4.0 * start[2] + 1.0])
    assert_allclose(model.coef_, start, rtol=1e-14 if name != "signed" else 1e-12)
    assert model.cumulative_loss_ < 1e-28 and model.t_ == 1


# --- symmetries -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("divergence", ["squared_euclidean", "simplex_entropy", "p_norm"])
@pytest.mark.parametrize("loss", ["hinge", "perceptron", "absolute_error", "epsilon_insensitive", "quantile"])
def test_explicit_steps_from_scores_within_rounding_of_a_kink_are_those_from_the_kink(divergence, loss):
    """Rates times integers add up to kinks of the loss, up to rounding, which depends on the order of the columns."""
    signed = {"signed": True} if divergence == "simplex_entropy" else {}
    for seed in range(25):
        X, y, order = rows_that_end_on_kinks(loss, seed, integers=True)
        model, permuted, rows = (
            model_of(divergence, loss, update="explicit", eta0=0.1, learning_rate="constant", **signed)
            for _ in range(3)
        )
        coef = np.ravel(learn(model, X, y).coef_)
        learn(permuted, X[:, order], y)
        learn(rows, sparse.csr_array(X), y)
        for found, expected in ((permuted, coef[order]), (rows, coef)):
            size = np.abs(coef).max()
            assert_allclose(np.ravel(found.coef_), expected, rtol=1e-9, atol=1e-9 * size, err_msg=f"seed {seed}")


@pytest.mark.parametrize("divergence", ["squared_euclidean", "adagrad"])
@pytest.mark.parametrize("loss", ["hinge", "perceptron"])
def test_an_enormous_row_without_loss_does_not_bring_later_scores_onto_kinks(divergence, loss):
    X, y, _ = rows_that_end_on_kinks(loss, 0)
    models = [model_of(divergence, loss, update="explicit", eta0=0.1, learning_rate="constant") for _ in range(2)]
    for model in models:
        learn(model, X[:10], y[:10])
    far = 1e150 * X[:1]
    learn(models[1], far, np.sign(models[1].decision_function(far)))
    for model in models:
        learn(model, X[10:], y[10:])
    assert_array_equal(models[1].coef_, models[0].coef_)


@learners
@pytest.mark.parametrize("update", ["implicit", "explicit"])
@settings(max_examples=10)
@given(seed=seeds, n=st.integers(2, 20))
def test_permuting_the_features_permutes_the_weights(name, update, seed, n):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(100, n)), rng.normal(size=100)
    order = rng.permutation(n)
    model = LEARNERS[name](eta0=0.02 / n if update == "explicit" else 0.5, update=update)
    one, two = clone(model).partial_fit(X, y), clone(model).partial_fit(X[:, order], y)
    assert_allclose(two.coef_, one.coef_[order], rtol=1e-9, atol=1e-12)
    assert_allclose(two.intercept_, one.intercept_, rtol=1e-9, atol=1e-12)


@learners
@settings(max_examples=10)
@given(seed=seeds, factor=st.sampled_from([0.25, 8.0]))
def test_scaling_rows_targets_and_rate_together_changes_nothing(name, seed, factor):
    """(s x, s y) at the rate eta / s^2 is (x, y) at eta, for every geometry: c x is unchanged."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(50, 4)), rng.normal(size=50)
    one = LEARNERS[name](eta0=0.5, fit_intercept=False).partial_fit(X, y)
    two = LEARNERS[name](eta0=0.5 / factor**2, fit_intercept=False).partial_fit(factor * X, factor * y)
    assert_allclose(two.coef_, one.coef_, rtol=1e-9, atol=1e-13)


# --- leaving the domain -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array, np.ndarray.tolist])
@pytest.mark.parametrize(
    "name, reason",
    [("burg", r"row 3 .*leaves the domain 'w > 0'"), ("gd", r"diverge|overflow"), ("egu", r"diverge|overflow")],
)
def test_an_explicit_step_too_far_is_refused_and_nothing_is_learned(name, reason, layout, unchanged):
    rng = np.random.default_rng(8)
    X, y = rng.uniform(0.5, 1.0, size=(6, 4)), np.full(6, 0.5)
    model = constant(name, update="explicit", eta0=0.01).partial_fit(X, y)
    y[3] = 1e4 if name == "burg" else 1e308 if name == "gd" else 1e6
    if name == "gd":
        X[4] = 1e10
    with unchanged(model, reason):
        model.partial_fit(layout(X), y)
    with unchanged(model, "update='implicit'"):
        model.fit(layout(X), y)
    implicit = clone(model).set_params(update="implicit")
    if name != "gd":
        assert np.isfinite(implicit.partial_fit(layout(X), y).coef_).all()
