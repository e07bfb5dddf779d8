"""PNormRegressor and PNormClassifier: their steps in NumPy, the choice of p, the theorems, few relevant features."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.base import clone

from onlinebregman import EGRegressor, ImplicitGDRegressor, PerceptronClassifier, PNormClassifier, PNormRegressor
from onlinebregman.divergences import PNorm
from onlinebregman.losses import HingeLoss, LogisticLoss, SquaredLoss

seeds = st.integers(0, 2**32 - 1)


def link(w, r):
    """sgn(w) |w|^(r-1) / norm_r(w)^(r-2): the mirror map for r = q, its inverse for r = p."""
    norm = np.linalg.norm(w, r)
    return np.sign(w) * np.abs(w) ** (r - 1) / norm ** (r - 2) if norm > 0 else np.zeros_like(w)


class GroveLittlestoneSchuurmans:
    """The p-norm algorithm in NumPy: theta = f(w) moves by -c x, c = eta (h(a) - y), explicit or implicit."""

    def __init__(self, d, p, eta, update, fit_intercept, h=lambda a: a):
        self.p, self.eta, self.update, self.bias, self.h = p, eta, update, float(fit_intercept), h
        self.theta, self.b = np.zeros(d), 0.0

    @property
    def w(self):
        return link(self.theta, self.p)

    def score(self, x, c=0.0):
        return link(self.theta - c * x, self.p) @ x + self.b - self.bias * c

    def learn(self, x, y):
        c = self.eta * (self.h(self.score(x)) - y)
        if self.update == "implicit" and c != 0:
            c = brentq(lambda c: c - self.eta * (self.h(self.score(x, c)) - y), min(c, 0), max(c, 0), xtol=1e-15)
        self.theta = self.theta - c * x
        self.b -= self.bias * c


def few_relevant(rng, n, d, noise=0.0):
    X = rng.choice([-1.0, 1.0], size=(n, d))
    return X, X[:, :3] @ [1.0, -1.0, 0.5] + noise * rng.normal(size=n)


# --- the algorithm ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["regressor", "classifier"])
@settings(max_examples=30)
@given(
    seed=seeds,
    d=st.integers(1, 12),
    p=st.sampled_from([2.0, 2.5, 4.0, 11.0]),
    update=st.sampled_from(["implicit", "explicit"]),
    fit_intercept=st.booleans(),
    sparse_rows=st.booleans(),
)
def test_it_is_the_p_norm_algorithm(kind, seed, d, p, update, fit_intercept, sparse_rows):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, d)) * (rng.uniform(size=(30, d)) < 0.7)
    eta = 0.5 if update == "implicit" else 0.1 / (p * max(np.linalg.norm(X, p, axis=1).max(), 1.0) ** 2)
    parameters = {"p": p, "eta0": eta, "learning_rate": "constant", "update": update, "fit_intercept": fit_intercept}
    rows = sparse.csr_array(X) if sparse_rows else X
    if kind == "regressor":
        y = rng.normal(size=30)
        ours = PNormRegressor(**parameters).partial_fit(rows, y)
        theirs = GroveLittlestoneSchuurmans(d, p, eta, update, fit_intercept)
    else:
        y = rng.integers(2, size=30)
        ours = PNormClassifier(**parameters).partial_fit(rows, y, classes=[0, 1])
        theirs = GroveLittlestoneSchuurmans(d, p, eta, update, fit_intercept, expit)
    for row in zip(X, y, strict=True):
        theirs.learn(*row)
    size = max(np.abs(theirs.w).max(), 1e-3)
    assert_allclose(ours.coef_.ravel(), theirs.w, rtol=1e-7, atol=1e-9 * size)
    assert_allclose(ours.intercept_, theirs.b, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("update", ["implicit", "explicit", "importance"])
def test_the_2_norm_is_gradient_descent(update):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), rng.normal(size=200)
    parameters = {"eta0": 0.05, "update": update, "average": True}
    ours, theirs = PNormRegressor(p=2, **parameters), ImplicitGDRegressor(**parameters)
    assert_allclose(ours.partial_fit(X, y).coef_, theirs.partial_fit(X, y).coef_, rtol=1e-9, atol=1e-12)
    assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-9)


def test_the_2_norm_perceptron_is_the_perceptron():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = rng.integers(3, size=200)
    ours = PNormClassifier(p=2, loss="perceptron", update="explicit", learning_rate="constant")
    theirs = PerceptronClassifier()
    ours.partial_fit(X, y, classes=[0, 1, 2])
    assert_allclose(ours.coef_, theirs.partial_fit(X, y, classes=[0, 1, 2]).coef_, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 50])
def test_the_automatic_p_is_twice_the_logarithm_of_the_number_of_features(n):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, n)), rng.normal(size=20)
    p = max(2.0, 2 * np.log(n))
    automatic, given_p = PNormRegressor().partial_fit(X, y), PNormRegressor(p=p).partial_fit(X, y)
    assert automatic.divergence_ == PNorm(p)
    assert_array_equal(automatic.coef_, given_p.coef_)
    labels = (y > 0).astype(int)
    classifier = PNormClassifier().partial_fit(X, labels, classes=[0, 1])
    assert classifier.divergence_ == PNorm(p)


def test_p_is_read_when_learning_starts(unchanged):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 4)), rng.normal(size=20)
    model = PNormRegressor(p=3.0)
    assert model.divergence_ == PNorm(3.0)
    assert not hasattr(PNormRegressor(), "divergence_")  # p depends on the number of features
    with unchanged(model.partial_fit(X, y).set_params(p=5.0), r"p=5\.0 cannot take effect in mid-stream"):
        model.partial_fit(X, y)
    assert model.divergence_ == PNorm(3.0)
    assert model.fit(X, y).divergence_ == PNorm(5.0)


@pytest.mark.parametrize("bad", [1.9, 1, 0.0, -3.0, np.nan, np.inf, "large", None, [2.0]], ids=repr)
@pytest.mark.parametrize("model", [PNormRegressor(), PNormClassifier()], ids=repr)
def test_a_p_that_cannot_be_is_refused(model, bad, unchanged):
    X, y = np.eye(3), np.array([0, 1, 0])
    with unchanged(model := clone(model).set_params(p=bad), r"'p' parameter|p = inf"):
        model.fit(X, y)


def test_the_named_estimators_are_general_ones():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 8)), rng.normal(size=60)
    for p, divergence in [("auto", "p_norm"), (3.0, PNorm(3.0))]:
        named, general = PNormRegressor(p=p, eta0=0.2), MirrorDescentRegressor(divergence=divergence, eta0=0.2)
        for model in (named, general):
            model.set_params(random_state=0, max_iter=3, tol=None).fit(X, y)
        assert_array_equal(named.coef_, general.coef_)
        assert named.loss_curve_ == general.loss_curve_
        labels = rng.integers(3, size=60)
        for loss in ("log_loss", "hinge"):
            named = PNormClassifier(p=p, loss=loss, random_state=0, max_iter=3, tol=None).fit(X, labels)
            general = MirrorDescentClassifier(
                divergence=divergence, loss=loss, random_state=0, max_iter=3, tol=None
            ).fit(X, labels)
            assert_array_equal(named.coef_, general.coef_)


# --- theorems ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("update", ["implicit", "explicit"])
@pytest.mark.parametrize("p", [2.0, 4.0, "auto"])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_the_loss_bound_for_regression(update, p, noise):
    """W, p-norm algorithm: L <= (1 + c) L_u + (1 + 1/c) (p - 1) X_p^2 U_q^2 / 2, at the best c."""
    rng = np.random.default_rng(2)
    X, y = few_relevant(rng, 300, 40, noise)
    u = np.r_[1.0, -1.0, 0.5, np.zeros(37)]
    loss_u = ((X @ u - y) ** 2).sum() / 2
    divergence = PNorm(2 * np.log(40) if p == "auto" else p)
    bounds = {
        "x": divergence.row_size(X[0]),  # the same for all rows of -1 and 1
        "u": np.linalg.norm(u, divergence.q),
        "loss": loss_u,
    }
    model = PNormRegressor(p=p, update=update, learning_rate="theory", data_bounds=bounds, fit_intercept=False)
    model.partial_fit(X, y)
    cost = (divergence.p - 1) * bounds["x"] ** 2 * bounds["u"] ** 2 / 2
    assert model.regret_bound_ == pytest.approx(cost + 2 * np.sqrt(cost * loss_u), rel=1e-4)
    assert 0 < model.cumulative_loss_ - loss_u <= model.regret_bound_


@pytest.mark.parametrize("model", [PNormRegressor(p=3.0), PNormClassifier(), PNormClassifier(loss="hinge")], ids=repr)
@pytest.mark.parametrize("update", ["implicit", "explicit"])
def test_the_regret_certificate_holds(model, update):
    rng = np.random.default_rng(3)
    X, y = few_relevant(rng, 100, 20, noise=0.3)
    y = y if isinstance(model, PNormRegressor) else np.sign(y)
    model = clone(model).set_params(update=update, eta0=0.01, learning_rate="constant", track_regret=True)
    if isinstance(model, PNormRegressor):
        model.partial_fit(X, y)
        loss = SquaredLoss()
    else:
        model.partial_fit(X, y, classes=[-1, 1])
        loss = LogisticLoss() if model.loss == "log_loss" else HingeLoss()
        y = (y + 1) / 2 if model.loss == "log_loss" else y
    for u in (np.zeros(20), rng.normal(size=20), 0.5 * np.eye(20)[0], np.r_[1.0, -1.0, 0.5, np.zeros(17)]):
        b = float(rng.normal())
        bound = 0.01 * loss.value(X @ u + b, y).sum() + model.regret_certificate(u, b)
        assert 0 < model.weighted_loss_ <= bound + 1e-12


# --- what it is good for ----------------------------------------------------------------------------------------------


def test_irrelevant_features_cost_little():
    """Three relevant features of five hundred, each algorithm at its best rate: the p-norm is as good as EG."""
    X, y = few_relevant(np.random.default_rng(0), 500, 500, noise=0.1)

    def best(model):
        losses = [
            clone(model).set_params(eta0=eta).partial_fit(X, y).cumulative_loss_
            for eta in 10.0 ** np.arange(-3, 5, 0.5)
        ]
        assert np.argmin(losses) > 0, "the best rate is inside the grid, or as large as can be"
        return min(losses)

    parameters = {"learning_rate": "constant", "fit_intercept": False}
    p_norm, gd = best(PNormRegressor(**parameters)), best(ImplicitGDRegressor(**parameters))
    eg = best(EGRegressor(total=3.0, **parameters))
    assert p_norm < gd / 3
    assert p_norm < 2 * eg
