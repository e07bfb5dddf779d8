"""Classes, outputs and learning rates divided among threads: the same numbers, and the same errors."""

import pickle

import numpy as np
import pytest
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from scipy.sparse import csr_array

from onlinebregman import ImplicitGDRegressor, LearningRateMixture, LearningRatePath

pytestmark = pytest.mark.usefixtures("in_order")  # two fits are compared

N, D = 6000, 40  # enough for several threads, and for several chunks


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * (rng.uniform(size=(N, D)) < 0.5)
    return X, (X @ rng.normal(size=(D, 7)) + rng.normal(size=(N, 7))).argmax(axis=1)


def csr_in_place(X):
    """With 64-bit indices, as kernels read them where they are."""
    X = csr_array(X)
    return type(X)((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)


def numbers(model, X):
    return [*model.coef_.ravel(), *model.intercept_, model.cumulative_loss_, *model.decision_function(X[:9])[0]]


@pytest.mark.parametrize(
    "form", [np.asarray, np.asfortranarray, csr_array, csr_in_place], ids=["rows", "columns", "csr", "csr of 64 bits"]
)
@pytest.mark.parametrize(
    "parameters",
    [{}, {"divergence": "squared_euclidean", "standardize": True}, {"divergence": "p_norm"}],
    ids=["adaptive", "standardised", "not in lockstep"],
)
def test_the_numbers_do_not_depend_on_threads(parameters, form, rows):
    X, y = form(rows[0]), rows[1]
    weights = np.random.default_rng(1).integers(0, 3, N)
    found = []
    for n in (1, 2, 3, -1):
        model = MirrorDescentClassifier(**parameters, max_iter=2, tol=None, random_state=0, n_jobs=n)
        model.fit(X, y, sample_weight=weights).partial_fit(X[:5000], y[:5000])
        again = pickle.loads(pickle.dumps(model)).partial_fit(X, y)
        assert again.n_jobs == n
        found.append(numbers(again, X))
    assert found[0] == found[1] == found[2] == found[3]


def test_classes_are_divided(rows):
    model = MirrorDescentClassifier(n_jobs=2).partial_fit(*rows, classes=range(7))
    assert model._learner.n_jobs == 2
    scores = [np.empty((N, 7)) for _ in range(2)]
    for n_jobs, out in zip((1, 2), scores, strict=True):
        other = MirrorDescentClassifier(n_jobs=n_jobs).partial_fit(rows[0][:50], rows[1][:50], classes=range(7))
        other._partial_fit(*rows, scores=out)
    np.testing.assert_array_equal(*scores)


@pytest.mark.parametrize("row", [3, 4000])
def test_a_refused_row_is_reported_and_nothing_learned(row, rows):
    X, y = rows[0].copy(), rows[1]
    X[row, 5] = 1e300
    X[row + 700, 2] = np.nan
    messages = []
    for n_jobs in (1, 2):
        model = MirrorDescentClassifier(divergence="squared_euclidean", n_jobs=n_jobs, eta0=1e10)
        model.partial_fit(X[:2], y[:2], classes=range(7))
        before = numbers(model, X)
        with pytest.raises(ValueError) as error:
            model.partial_fit(X, y)
        messages.append(str(error.value))
        assert numbers(model, X) == before
    assert messages[0] == messages[1]


@pytest.mark.parametrize("parameters", [{}, {"divergence": "squared_euclidean"}, {"loss": "huber"}])
def test_outputs_are_divided(parameters, rows):
    X, _ = rows
    Y = X @ np.random.default_rng(2).normal(size=(D, 6))
    found = []
    for n_jobs in (1, 2, 3):
        model = MirrorDescentRegressor(**parameters, n_jobs=n_jobs).partial_fit(X[:100], Y[:100])
        scores = np.empty((N, 6))
        model._partial_fit(X, Y, scores=scores)
        found.append([*model.coef_.ravel(), *model.intercept_, model.cumulative_loss_, *scores.ravel()])
        assert model._learner.n_jobs == n_jobs
        assert len(model._learner.locksteps) == (n_jobs if n_jobs > 1 and "loss" not in parameters else 0)
    assert found[0] == found[1] == found[2]


RATES = {
    "numbers": (ImplicitGDRegressor(standardize=True), 3),
    "adaptive": (MirrorDescentRegressor(eta0=1.0), 2),
    "labels": (MirrorDescentClassifier(divergence="squared_euclidean", eta0=0.1), 3),
    "not in lockstep": (MirrorDescentRegressor(loss="huber", eta0=1.0), 0),
}


@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["rows", "csr"])
@pytest.mark.parametrize("kind", RATES)
@pytest.mark.parametrize("Rates", [LearningRatePath, LearningRateMixture])
def test_rates_are_divided(Rates, kind, form, rows):
    estimator, n_threads = RATES[kind]
    X, y = form(rows[0]), rows[1] > 2 if kind == "labels" else rows[1].astype(float)
    weights = np.random.default_rng(1).integers(0, 3, N)
    found = []
    for n_jobs in (1, n_threads or 2):
        model = Rates(estimator, eta0s=np.geomspace(0.01, 10, 40), n_jobs=n_jobs).fit(X[:500], y[:500])
        model = pickle.loads(pickle.dumps(model)).partial_fit(X, y, sample_weight=weights)
        assert len(model._learner.locksteps) == (n_jobs if n_jobs > 1 and n_threads else 0)
        learned = [number for each in model.estimators_ for number in each.coef_.ravel()]
        found.append([*learned, *model.cumulative_losses_, *model.predict(X[:9])])
        if Rates is LearningRateMixture:
            found[-1] += [*model.weights_, model.cumulative_loss_]
    assert found[0] == found[1]


@pytest.mark.parametrize("row", [3, 4000])
def test_a_row_that_the_largest_rates_refuse_is_reported_and_nothing_learned(row, rows):
    X, y = rows[0].copy(), rows[1].astype(float)
    X[row], y[row] = 1.0, 1e150  # weights are then of the order of the rate times this
    X[row + 1] = 1e6  # where the squares of the largest scores overflow
    messages = []
    for n_jobs in (1, 2):
        model = LearningRatePath(ImplicitGDRegressor(), eta0s=np.geomspace(1e-6, 1, 30), n_jobs=n_jobs)
        model.partial_fit(X[:2], y[:2])
        before = [each.coef_.tolist() for each in model.estimators_]
        with pytest.raises(ValueError, match=rf"\brow {row + 1}\b") as error:
            model.partial_fit(X, y)
        messages.append(str(error.value))
        assert [each.coef_.tolist() for each in model.estimators_] == before
        model.estimators_[0].partial_fit(X[2 : row + 2], y[2 : row + 2])  # which the smallest rate can learn
    assert messages[0] == messages[1]
