"""Second-order steps on losses of classes, with columns that stand far from 0, move, or have absurd values."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from onlinebregman import ForwardClassifier, ForwardRegressor, merge

N = 2000


def stream(kind, seed=0):
    """Rows and labels; the first column moves by itself, apart from the labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3))
    y = (X @ [3.0, -6.0, 1.5] + rng.logistic(size=N) > 0).astype(int)
    before = np.arange(N) < N // 2
    moves = {
        "stays": 0.0,
        "mean 100": 100.0,
        "unix times": 1.7e9,
        "level": np.where(before, 20.0, 70.0),
        "first value": np.where(np.arange(N) == 0, 9999.0, 0.0),
        "one value": np.where(np.arange(N) == 1200, 9999.0, 0.0),
    }
    scale = np.where(before, 1.0, 10.0) if kind == "scale" else 1.0
    X[:, 0] = X[:, 0] * scale + moves.get(kind, 0.0)
    return X, y


def errors(model, X, y):
    """Of the last 500 rows, each predicted before it was learned."""
    model.partial_fit(X[:-500], y[:-500])
    wrong = 0
    for i in range(N - 500, N):
        wrong += (model.predict(X[i : i + 1])[0] > 0.5) != y[i]
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    return wrong / 5


class Classifier(ForwardClassifier):
    def partial_fit(self, X, y, sample_weight=None):
        return super().partial_fit(X, y, classes=[0, 1], sample_weight=sample_weight)


MODELS = {"classes": Classifier, "log loss": lambda: ForwardRegressor(loss="log_loss")}


@pytest.mark.parametrize("kind", ["mean 100", "unix times", "level", "scale", "first value", "one value"])
@pytest.mark.parametrize("model", MODELS)
def test_columns_that_move_are_followed(model, kind):
    best = errors(Classifier().set_params(standardize=False), *stream("stays"))
    assert errors(MODELS[model](), *stream(kind)) <= best + 1.0


@pytest.mark.parametrize("kind", ["classes", "log loss", "poisson"])
def test_no_prediction_depends_on_the_origin(kind):
    X, y = stream("stays")
    X, y, origin = X[:200], y[:200] + (np.arange(200) % 3 == 0) * (kind == "classes"), np.array([2.0**20, -3.0, 0.0])
    loss = kind.replace(" ", "_")
    make = ForwardClassifier if kind == "classes" else lambda **more: ForwardRegressor(loss=loss, **more)
    here, there = (make(shuffle=False) for _ in range(2))
    here, there = here.fit(X, y), there.fit(X + origin, y)
    assert_allclose(there.coef_, here.coef_, rtol=1e-6, atol=1e-8)
    assert_allclose(there.intercept_, here.intercept_ - here.coef_ @ origin, rtol=1e-6)
    assert_allclose(there.mean_, here.mean_ + origin)
    assert there.n_samples_seen_ == 200


@pytest.mark.parametrize("kind", ["stays", "level", "unix times"])
def test_rows_may_come_one_by_one_sparse_or_with_others(kind, state):
    X, y = stream(kind)
    X, y = X[900:1100], y[900:1100]
    X[::3, 2] = 0.0
    whole, rows, thin = Classifier().partial_fit(X, y), Classifier(), Classifier().partial_fit(sparse.csr_array(X), y)
    for i in range(len(y)):
        rows.partial_fit(X[i : i + 1], y[i : i + 1])
        with pytest.raises(ValueError):  # also where the centre moves
            rows.partial_fit(X[[i] * 3], y[[i] * 3], sample_weight=[1.0, 1.7e308, 1.7e308])
    assert state(rows._learner) == state(whole._learner) == state(thin._learner)
    assert_array_equal(thin.predict_proba(sparse.csr_array(X)), whole.predict_proba(X))


def test_shards_are_joined_about_one_centre():
    X, y = stream("unix times")
    start = Classifier().partial_fit(X[:10], y[:10])
    parts = [Classifier().partial_fit(X[:10], y[:10]).partial_fit(X[k::4][3:], y[k::4][3:]) for k in range(4)]
    joined, whole = merge(parts, start=start), Classifier().partial_fit(X, y)
    assert_allclose(joined.coef_, whole.coef_, rtol=0.2)
    assert np.mean(joined.predict(X) == whole.predict(X)) > 0.99
    assert joined.n_samples_seen_ == sum(part.n_samples_seen_ - 10 for part in parts) + 10
