"""PerceptronClassifier against Rosenblatt's rule; mistakes and their bound, of WinnowClassifier too."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from onlinebregman import PerceptronClassifier, WinnowClassifier
from onlinebregman.reference import perceptron_step

seeds = st.integers(0, 2**32 - 1)


class Rosenblatt:
    """The Perceptron, with its mistakes and the mean of its weights after every row."""

    def __init__(self, d, eta0=1.0, fit_intercept=True, w=None):
        self.both = np.r_[np.zeros(d) if w is None else w, 0.0]
        self.eta0, self.bias = eta0, float(fit_intercept)
        self.mistakes, self.path = 0, []
        self.apart = True  # whether no score is 0 but for rounding, which the estimator counts as 0

    def learn(self, x, y, weight=1.0):
        if weight > 0:
            x = np.r_[x, self.bias]
            score = self.both @ x
            self.mistakes += y * score <= 0
            self.apart &= score == 0 or abs(score) > 1e-9 * (np.abs(self.both) @ np.abs(x) + self.eta0 * x @ x)
            self.both = perceptron_step(self.both, x, y, weight * self.eta0)
            self.path.append(self.both)


def labelled_rows(rng, n, d, noise=0.0):
    """Rows with labels -1 and 1 of a random halfspace, some of them flipped."""
    X = rng.normal(size=(n, d))
    y = np.where(X @ rng.normal(size=d) + 0.3 * rng.normal() > 0, 1, -1)
    return X, np.where(rng.uniform(size=n) < noise, -y, y)


# --- the algorithm ----------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    seed=seeds,
    d=st.integers(1, 20),
    eta0=st.sampled_from([1.0, 0.3, 7.0]),
    fit_intercept=st.booleans(),
    weighted=st.booleans(),
    started=st.booleans(),
    layout=st.sampled_from([np.asarray, sparse.csr_array, sparse.csr_matrix]),
)
def test_it_is_the_perceptron(seed, d, eta0, fit_intercept, weighted, started, layout):
    rng = np.random.default_rng(seed)
    X, y = labelled_rows(rng, 60, d, noise=0.1)
    X[rng.uniform(size=60) < 0.1] = 0.0  # whose score is 0 without an intercept
    weights = rng.choice([0.0, 0.5, 2.0], size=60) if weighted else np.ones(60)
    init = rng.normal(size=d) if started else None
    theirs = Rosenblatt(d, eta0, fit_intercept, init)
    for row in zip(X, y, weights, strict=True):
        theirs.learn(*row)
    assume(theirs.apart)
    model = PerceptronClassifier(eta0=eta0, fit_intercept=fit_intercept, init=init)
    averaged = clone(model).set_params(average=True)
    for ours in (model, averaged):
        ours.partial_fit(layout(X), y, classes=[-1, 1], sample_weight=weights if weighted else None)
        assert_array_equal(ours.n_mistakes_, [theirs.mistakes])
        assert ours.t_ == len(theirs.path) == (weights > 0).sum()
    assert_allclose(np.r_[model.coef_[0], model.intercept_], theirs.both, rtol=1e-12, atol=1e-12)
    mean = np.mean(theirs.path, axis=0) if theirs.path else theirs.both
    assert_allclose(np.r_[averaged.coef_[0], averaged.intercept_], mean, rtol=1e-10, atol=1e-12)


# --- mistakes and their bound -----------------------------------------------------------------------------------------


def test_the_bound_is_reached_by_orthogonal_rows():
    """n orthogonal rows give n mistakes, and (norm(u) / gamma)^2 = n."""
    X, y = np.eye(9), np.r_[np.ones(5), -np.ones(4)]
    model = PerceptronClassifier(fit_intercept=False).partial_fit(X, y, classes=[-1, 1])
    assert model.n_mistakes_[0] == 9 == pytest.approx(model.mistake_bound(X, y, coef=y))


def test_each_learner_counts_its_own_mistakes():
    rng = np.random.default_rng(3)
    y = rng.integers(3, size=200)
    X = rng.normal(size=(200, 4)) + 2 * np.eye(3, 4)[y]
    model = PerceptronClassifier().partial_fit(X, y, classes=[0, 1, 2])
    for k in range(3):
        binary = Rosenblatt(4)
        for x, label in zip(X, y, strict=True):
            binary.learn(x, 1 if label == k else -1)
        assert model.n_mistakes_[k] == binary.mistakes


def test_what_the_bound_cannot_be_computed_from_is_refused(unchanged):
    X, y = np.array([[2.0, 1.0], [-1.0, -2.0], [1.0, 2.0]]), np.array([1, 0, 1])
    model = PerceptronClassifier(fit_intercept=False).partial_fit(X, y, classes=[0, 1])
    for arguments, match in [
        ((X, y, [1.0, -1.0]), "must separate the classes, .*; got -1 at row 1"),
        ((X, y, [0.0, 0.0]), "must separate the classes, .*; got 0 at row 0"),
        ((X, y, [1.0, 1.0, 1.0]), r"coef must have one weight for each of the 2 features; got shape \(3,\)"),
        ((X, y, [1.0, np.nan]), r"coef contains NaN \(row 1\)"),
        ((X, y, [1.0, 1.0], 0.5), "intercept must be 0, as this classifier learns none; got 0.5"),
        ((X, [1, 0, 2], [1.0, 1.0]), "The label 2 at row 2"),
        ((X[:, :1], y, [1.0, 1.0]), "X has 1 features"),
        ((np.where(X > 1.5, np.nan, X), y, [1.0, 1.0]), r"X contains NaN \(row 0, column 0\)"),
    ]:
        with unchanged(model, match):
            model.mistake_bound(*arguments)
    with unchanged(model.set_params(class_weight={0: 2.0}), "rows of weight 1; set class_weight=None"):
        model.mistake_bound(X, y, [1.0, 1.0])
    three = PerceptronClassifier().partial_fit(X, [0, 1, 2], classes=[0, 1, 2])
    with unchanged(three, "requires two classes; got 3"):
        three.mistake_bound(X, [0, 1, 2], [1.0, 1.0])
    for name in ("n_mistakes_", "coef_"):
        assert not hasattr(PerceptronClassifier(), name)
    with pytest.raises(AttributeError, match="has not learned"):
        PerceptronClassifier().mistake_bound(X, y, [1.0, 1.0])


def test_the_mistake_bound_is_for_one_rate(unchanged):
    X, y = np.eye(2), [0, 1]
    model = PerceptronClassifier(eta0=1.0).partial_fit(X, y, classes=[0, 1])
    bound = model.mistake_bound(X, y, [-1.0, 1.0])
    assert model.set_params(eta0=1).partial_fit(X, y).mistake_bound(X, y, [-1.0, 1.0]) == bound
    # fitted from scratch
    assert model.set_params(tol=None, max_iter=1).fit(X, y).mistake_bound(X, y, [-1.0, 1.0]) == bound
    model.set_params(warm_start=True, eta0=0.1).fit(X, y)
    with unchanged(model, r"eta0 was changed from 1 to 0\.1"):
        model.mistake_bound(X, y, [-1.0, 1.0])


# --- Winnow -----------------------------------------------------------------------------------------------------------


def sparse_target(rng, n, d, relevant=3, margin=0.3):
    """Rows of -1 and 1 whose label only a few of the features decide, and the weights that decide it, of norm 1."""
    u = np.zeros(d)
    u[rng.choice(d, size=relevant, replace=False)] = rng.choice([-1.0, 1.0], size=relevant) / relevant
    X = rng.choice([-1.0, 1.0], size=(4 * n, d))
    X = X[np.abs(X @ u) >= margin][:n]
    return X, np.where(X @ u > 0, 1, -1), u


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
