"""What equals scikit-learn's SGD: explicit steps of an L2 penalty, an intercept at another rate, a float32 `coef_`."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from scipy import sparse
from sklearn.linear_model import SGDClassifier

from onlinebregman.constraints import Box
from onlinebregman.penalties import ExplicitElasticNet


def regressor(**parameters):
    return MirrorDescentRegressor(**{"divergence": "squared_euclidean"} | parameters)


def some_rows(rng, rows, n):
    X = rng.normal(size=(rows, n)) * (rng.uniform(size=(rows, n)) < 0.3)
    return X, X @ np.linspace(1.0, 0.5, n) + 0.1 * rng.normal(size=rows)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("average", [False, 20])
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), alpha=st.sampled_from([0.0, 0.1, 2.0, 15.0]), labels=st.sampled_from([2, 3]))
def test_explicit_steps_of_the_penalty_are_scikit_learns(layout, average, seed, alpha, labels):
    """Also where they overshoot (eta alpha > 1), and with its intercept of sparse rows, at 0.01 of the rate."""
    rng = np.random.default_rng(seed)
    X, _ = some_rows(rng, 60, 5)
    y, X = rng.integers(labels, size=60), layout(X)
    fixed = {"loss": "log_loss", "eta0": 0.1, "power_t": 0.5, "learning_rate": "invscaling", "average": average}
    sgd = SGDClassifier(**fixed, penalty="l2", alpha=alpha, shuffle=False)
    scaling = 0.1 if sparse.issparse(X) else 1.0
    ours = MirrorDescentClassifier(
        **fixed,
        divergence="squared_euclidean",
        penalty=ExplicitElasticNet(alpha, 0.0),
        update="explicit",
        intercept_scaling=scaling,
    )
    for model in (sgd, ours):
        cut = 60 if average else 30  # scikit-learn's averages depend on how a stream is split into calls
        model.partial_fit(X[:cut], y[:cut], classes=np.arange(labels))
        if cut < 60:
            model.partial_fit(X[cut:], y[cut:])
    assert_allclose(ours.coef_, sgd.coef_, rtol=1e-9, atol=1e-12)
    assert_allclose(ours.intercept_, sgd.intercept_, rtol=1e-9, atol=1e-12)
    again = pickle.loads(pickle.dumps(ours)).partial_fit(X, y)
    assert_array_equal(again.coef_, ours.partial_fit(X, y).coef_)


@pytest.mark.parametrize("update", ["explicit", "implicit", "importance"])
def test_the_intercept_is_the_weight_of_a_feature(update):
    X, y = some_rows(np.random.default_rng(0), 50, 3)
    ours = regressor(update=update, eta0=0.1, intercept_scaling=0.3).partial_fit(X, y)
    wider = regressor(update=update, eta0=0.1, fit_intercept=False).partial_fit(np.c_[X, np.full(50, 0.3)], y)
    assert_allclose(np.r_[ours.coef_, ours.intercept_ / 0.3], wider.coef_, rtol=1e-12)


def test_what_has_no_certificate_says_so(unchanged):
    X, y = np.eye(3), np.ones(3)
    explicit, rate = (
        ExplicitElasticNet(0.1),
        {"learning_rate": "theory", "data_bounds": {"x": 1.0, "u": 1.0, "n_rows": 9}},
    )
    for parameters, message in (
        ({"penalty": explicit, "track_regret": True}, "has no certificate for track_regret=True; use ElasticNet"),
        ({"penalty": explicit, **rate}, "has no certificate for learning_rate='theory'"),
        ({"intercept_scaling": 0.1, "track_regret": True}, "intercept_scaling must be 1 for track_regret=True"),
        ({"intercept_scaling": 0.1, **rate}, "intercept_scaling must be 1 for learning_rate='theory'"),
        ({"intercept_scaling": 0.1, "divergence": "adagrad"}, "which adapts the rate of the intercept; got 0.1"),
        ({"penalty": explicit, "divergence": "adagrad"}, "has no proximal step of ExplicitElasticNet"),
        ({"penalty": explicit, "divergence": "burg"}, "but only for divergence='squared_euclidean'"),
        ({"penalty": explicit, "constraint": Box(-1.0, 1.0)}, "but only for divergence='squared_euclidean'"),
    ):
        model = regressor(**parameters)
        with unchanged(model, message):
            model.partial_fit(X, y)


def test_rows_of_float32_give_a_coef_of_float32():
    """Learning and predictions use float64; the next start decides again; a weight beyond float32 is not rounded."""
    X, y = some_rows(np.random.default_rng(0), 50, 3)
    narrow = X.astype(np.float32)
    model, wide = (regressor().partial_fit(rows, y) for rows in (narrow, narrow.astype(np.float64)))
    assert model.coef_.dtype == np.float32 and model.sparsify().coef_.dtype == np.float32
    model.densify().partial_fit(X, y)
    assert model.coef_.dtype == np.float32 and wide.partial_fit(narrow, y).coef_.dtype == np.float64
    wide = regressor().partial_fit(narrow.astype(np.float64), y).partial_fit(X, y)
    assert_array_equal(model.coef_, wide.coef_.astype(np.float32))
    assert_array_equal(model.predict(narrow), wide.predict(narrow))
    assert pickle.loads(pickle.dumps(model)).coef_.dtype == np.float32
    assert model.fit(X, y).coef_.dtype == np.float64
    assert regressor(init=1e39).partial_fit(np.zeros((1, 2), np.float32), [0.0]).coef_.tolist() == [1e39, 1e39]
