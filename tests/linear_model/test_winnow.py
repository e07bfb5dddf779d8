"""WinnowClassifier: its three kinds of weights in NumPy, mistakes and their bound, many irrelevant features."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentClassifier
from scipy import sparse
from sklearn.base import clone

from onlinebregman import PerceptronClassifier, PNormClassifier, WinnowClassifier
from onlinebregman.divergences import RelativeEntropy, SimplexEntropy
from onlinebregman.reference import winnow_step

seeds = st.integers(0, 2**32 - 1)
kinds = pytest.mark.parametrize("weights", ["signed", "simplex", "positive"])


class Littlestone:
    """Positive, normalised (simplex) or balanced (signed) Winnow, with its mistakes and its path."""

    def __init__(self, weights, d, total, eta0, fit_intercept):
        self.weights, self.total, self.eta0, self.fit_intercept = weights, total, eta0, fit_intercept
        n = 2 * d if weights == "signed" else d
        self.v, self.b = np.full(n, 1 / d if weights == "positive" else total / n), 0.0
        self.mistakes, self.path = 0, []
        self.apart = True  # whether no score is 0 but for rounding, which the estimator counts as 0

    @property
    def w(self):
        return np.subtract(*np.split(self.v, 2)) if self.weights == "signed" else self.v

    def learn(self, x, y):
        total = None if self.weights == "positive" else self.total
        score, size = self.w @ x + self.b, np.abs(self.w) @ np.abs(x) + abs(self.b)
        self.mistakes += y * score <= 0
        self.apart &= score == 0 or abs(score) > 1e-9 * (size + self.eta0)
        self.v, b = winnow_step(self.v, self.b, x, y, self.eta0, total, self.weights == "signed")
        self.b = b * self.fit_intercept
        self.path.append(np.r_[self.w, self.b])


def sparse_target(rng, n, d, relevant=3, margin=0.3):
    """Rows of -1 and 1 whose label only a few of the features decide, and the weights that decide it, of norm 1."""
    u = np.zeros(d)
    u[rng.choice(d, size=relevant, replace=False)] = rng.choice([-1.0, 1.0], size=relevant) / relevant
    X = rng.choice([-1.0, 1.0], size=(4 * n, d))
    X = X[np.abs(X @ u) >= margin][:n]
    return X, np.where(X @ u > 0, 1, -1), u


# --- the algorithm ----------------------------------------------------------------------------------------------------


@kinds
@settings(max_examples=30)
@given(
    seed=seeds,
    d=st.integers(1, 20),
    total=st.sampled_from([0.5, 1.0, 10.0]),
    eta0=st.sampled_from([0.01, 0.1, 2.0]),
    fit_intercept=st.booleans(),
    sparse_rows=st.booleans(),
)
def test_it_is_winnow(weights, seed, d, total, eta0, fit_intercept, sparse_rows):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, d)) * (rng.uniform(size=(80, d)) < 0.6)
    y = np.where(X @ rng.normal(size=d) + 0.3 * rng.normal(size=80) + 0.01 > 0, 1, -1)
    theirs = Littlestone(weights, d, total, eta0, fit_intercept)
    for x, label in zip(X, y, strict=True):
        theirs.learn(x, label)
    assume(theirs.apart)
    model = WinnowClassifier(weights=weights, total=total, eta0=eta0, fit_intercept=fit_intercept)
    averaged = clone(model).set_params(average=True)
    for ours in (model, averaged):
        ours.partial_fit(sparse.csr_array(X) if sparse_rows else X, y, classes=[-1, 1])
        assert_array_equal(ours.n_mistakes_, [theirs.mistakes])
    scale = np.abs(theirs.v).max()
    assert_allclose(model.coef_[0], theirs.w, rtol=1e-9, atol=1e-12 * scale)
    assert_allclose(model.intercept_[0], theirs.b, rtol=1e-12, atol=1e-13)
    mean = np.mean(theirs.path, axis=0)
    assert_allclose(np.r_[averaged.coef_[0], averaged.intercept_], mean, rtol=1e-9, atol=1e-11 * scale)


@kinds
def test_it_is_explicit_mirror_descent_on_the_perceptron_loss(weights):
    X, y, _ = sparse_target(np.random.default_rng(1), 200, 20)
    named = WinnowClassifier(weights=weights, total=2.0, random_state=0, max_iter=3, tol=None).fit(X, y)
    divergence = RelativeEntropy() if weights == "positive" else SimplexEntropy(total=2.0)
    general = MirrorDescentClassifier(
        divergence=divergence,
        signed=weights == "signed",
        loss="perceptron",
        update="explicit",
        eta0=0.1,
        learning_rate="constant",
        random_state=0,
        max_iter=3,
        tol=None,
    ).fit(X, y)
    assert_array_equal(named.coef_, general.coef_)
    assert named.loss_curve_ == general.loss_curve_
    assert named.divergence_ == divergence


@pytest.mark.parametrize(
    "bad, match",
    [({"weights": "negative"}, "weights"), ({"total": 0.0}, "total"), ({"init": 7.0}, "values of init must sum")],
    ids=str,
)
def test_parameters_that_cannot_be_are_refused(bad, match, unchanged):
    X, y, _ = sparse_target(np.random.default_rng(0), 20, 4)
    with unchanged(model := WinnowClassifier(**bad), match):
        model.fit(X, y)


# --- mistakes and their bound -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["signed", "simplex"])
@settings(max_examples=40)
@given(
    seed=seeds,
    d=st.integers(3, 200),
    total=st.sampled_from([0.2, 1.0, 5.0]),
    fit_intercept=st.booleans(),
    slow=st.sampled_from([1.0, 0.3, 1.7]),
    sparse_rows=st.booleans(),
)
def test_the_mistake_bound_holds_on_streams_of_any_length(weights, seed, d, total, fit_intercept, slow, sparse_rows):
    rng = np.random.default_rng(seed)
    X, y, u = sparse_target(rng, 100, d)
    u, b = total * (np.abs(u) if weights == "simplex" else u), 0.0
    if fit_intercept:
        b = 0.2 * total
    scores = X @ u + b
    keep = np.abs(scores) > 0.25 * np.abs(scores).max()
    X, y = X[keep], np.where(scores[keep] > 0, "up", "down")
    gamma = np.abs(scores[keep]).min()
    best = gamma / (total + fit_intercept)  # the rate of the smallest bound, at rows of entries -1 and 1
    model = WinnowClassifier(weights=weights, total=total, eta0=slow * best, fit_intercept=fit_intercept)
    rows = sparse.csr_array(X) if sparse_rows else X
    for _ in range(20):
        model.partial_fit(rows, y, classes=["down", "up"])
    bound = model.mistake_bound(rows, y, u, b)
    assert model.n_mistakes_[0] <= bound
    # D(u, w_1) = U ln n for a single relevant feature; here u is spread over three
    n = d if weights == "simplex" else 2 * d
    distance = total * np.log(n / 3) + b**2 / 2
    smallest = 2 * (total + fit_intercept) * distance / gamma**2
    assert bound == pytest.approx(smallest / (slow * (2 - slow)), rel=1e-9)


def test_the_bound_grows_with_the_logarithm_of_the_number_of_features():
    bounds, mistakes = [], []
    for d in (100, 3000):
        X, y, u = sparse_target(np.random.default_rng(0), 600, d)
        model = WinnowClassifier(eta0=1 / 3, fit_intercept=False).partial_fit(X, y, classes=[-1, 1])
        bounds.append(model.mistake_bound(X, y, u))
        mistakes.append(model.n_mistakes_[0])
    assert bounds[1] / bounds[0] == pytest.approx(np.log(6000 / 3) / np.log(200 / 3))
    assert mistakes[1] < 3 * mistakes[0]


def test_what_the_bound_cannot_be_computed_from():
    X, y, u = sparse_target(np.random.default_rng(0), 100, 10)
    model = WinnowClassifier(fit_intercept=False, eta0=0.1).partial_fit(X, y, classes=[-1, 1])
    assert np.isfinite(model.mistake_bound(X, y, u))
    gamma = np.abs(X @ u).min()
    for eta0, finite in ((2 * gamma, False), (1.99 * gamma, True)):  # too large a rate for this margin, or not
        other = WinnowClassifier(fit_intercept=False, eta0=eta0).partial_fit(X, y, classes=[-1, 1])
        assert np.isfinite(other.mistake_bound(X, y, u)) == finite
    for coef, match in [
        (2 * u, "absolute values of coef must sum to at most total=.*; got 2"),
        (-u, "must separate the classes"),
        (u[:4], "coef must have one weight for each"),
    ]:
        with pytest.raises(ValueError, match=match):
            model.mistake_bound(X, y, coef)
    labels = np.where(X @ np.abs(u) > 0, 1, -1)
    simplex = WinnowClassifier(weights="simplex", fit_intercept=False).partial_fit(X, labels, classes=[-1, 1])
    assert np.isfinite(simplex.mistake_bound(X, labels, np.abs(u)))
    with pytest.raises(ValueError, match=r"coef\[\d\] = -0.33"):
        simplex.mistake_bound(X, labels, -np.abs(u))
    with pytest.raises(ValueError, match=r"coef must sum to total=1; got a sum of 0.5"):
        simplex.mistake_bound(X, labels, 0.5 * np.abs(u))
    positive = WinnowClassifier(weights="positive", fit_intercept=False).partial_fit(X, labels, classes=[-1, 1])
    with pytest.raises(ValueError, match="has no bound"):
        positive.mistake_bound(X, labels, np.abs(u))


def test_a_bound_from_another_start():
    """From a start near the comparator, fewer mistakes are possible."""
    X, y, u = sparse_target(np.random.default_rng(0), 300, 50)
    far = WinnowClassifier(fit_intercept=False).partial_fit(X, y, classes=[-1, 1])
    near = WinnowClassifier(fit_intercept=False, init=0.9 * u).partial_fit(X, y, classes=[-1, 1])
    assert near.n_mistakes_[0] <= near.mistake_bound(X, y, u) < 0.1 * far.mistake_bound(X, y, u)


# --- what it is good for ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_irrelevant_features_cost_little(seed):
    """Three relevant features of a thousand: multiplicative steps and the p-norm against the Perceptron."""
    X, y, _ = sparse_target(np.random.default_rng(seed), 2000, 1000)

    def mistakes(model):
        model.partial_fit(X, y, classes=[-1, 1])
        return model._learner.learners[0].n_moves

    perceptron = mistakes(PerceptronClassifier(fit_intercept=False))  # its rate does not matter
    winnow = mistakes(WinnowClassifier(fit_intercept=False, eta0=1 / 3))
    p_norm = mistakes(
        PNormClassifier(loss="perceptron", update="explicit", learning_rate="constant", fit_intercept=False)
    )
    assert winnow < 0.4 * perceptron
    assert p_norm < 0.7 * perceptron
    assert perceptron > 300
