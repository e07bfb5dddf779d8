"""The one-class model: its steps, and that they solve the problem of the one-class support vector machine."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import SGDOneClassSVM
from sklearn.svm import OneClassSVM

from onlinebregman import OneClassMirrorDescent
from onlinebregman.divergences import RelativeEntropy, SquaredEuclidean
from onlinebregman.schedules import PassiveAggressive

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(2000, 2))
FEATURES = RBFSampler(gamma=0.1, n_components=30, random_state=0).fit(ROWS)
X = FEATURES.transform(ROWS)


def objective(w, rho, nu):
    return np.maximum(rho - X @ w, 0.0).mean() - nu * rho + nu * (w @ w) / 2


def batch_solution(nu):
    """The solution for all rows at once, of which libsvm has the nu n-fold."""
    svm = OneClassSVM(kernel="linear", nu=nu, tol=1e-8).fit(X)
    return svm.coef_[0] / (nu * len(X)), float(svm.offset_[0]) / (nu * len(X))


@pytest.mark.parametrize("nu", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("options", [{}, {"update": "implicit"}, {"divergence": "adagrad"}], ids=str)
def test_it_converges_to_the_solution_for_all_rows(nu, options):
    w, rho = batch_solution(nu)
    model = OneClassMirrorDescent(nu=nu, max_iter=50, tol=None, random_state=0, **options).fit(X)
    gap = objective(model.coef_, model.offset_, nu) - objective(w, rho, nu)
    assert 0 <= gap < 2e-4
    assert_allclose(model.offset_, rho, atol=0.03)
    sgd = SGDOneClassSVM(nu=nu, random_state=0, max_iter=50, tol=None, average=True).fit(X)
    assert (model.predict(X) == sgd.predict(X)).mean() > 0.95
    assert_allclose((model.predict(X) == -1).mean(), nu, atol=0.03)


@pytest.mark.parametrize("divergence", [SquaredEuclidean(), RelativeEntropy()], ids=repr)
def test_its_steps_are_those_of_the_formula(divergence):
    nu, eta = 0.3, 0.2
    rows = np.abs(X[:50])
    model = OneClassMirrorDescent(
        nu=nu, divergence=divergence, eta0=eta, learning_rate="constant", average=False, init=0.1
    ).partial_fit(rows)
    w, rho = np.full(30, 0.1), 0.0
    for x in rows:
        inside = w @ x > rho
        w = w if inside else divergence.inverse_mirror(divergence.mirror(w) + eta * x)
        w = model._learned_penalty.prox(divergence, w, eta)
        rho += eta * (nu - (not inside))
    assert_allclose(model.coef_, w, rtol=1e-10)
    assert_allclose(model.offset_, rho, rtol=1e-10)


def test_weights_of_rows_move_the_offset_as_repetitions_do():
    """Without a step on the first term, rho rises by eta nu times the weight."""
    model = OneClassMirrorDescent(nu=0.5, init=1.0, eta0=0.1, learning_rate="constant", average=False)
    assert_allclose(model.partial_fit([[9.0]], sample_weight=[3.0]).offset_, 0.15)


@pytest.mark.parametrize("variant", [1, 2])
def test_passive_aggressive_rates_do_not_move_an_offset_to_a_quantile(variant, unchanged):
    model = OneClassMirrorDescent(learning_rate=PassiveAggressive(variant=variant))
    with unchanged(model, r"a loss of slope 1 or -1, 'hinge', 'absolute_error' or .*; got .* and OneClassLoss\("):
        model.partial_fit(X)


def test_adaptive_divergences_have_no_exact_steps(unchanged):
    model = OneClassMirrorDescent(divergence="adagrad").partial_fit(X)
    model.set_params(update="implicit")
    with unchanged(model, match="update must be 'explicit' with AdaGrad"):
        model.partial_fit(X)


@pytest.mark.parametrize("nu", [0.02, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_fit_flags_the_share_of_the_optimum(nu, weighted):
    """No row was flagged at nu=.02: averages from the first row, and a tol that was larger than the objective."""
    rows = Nystroem(gamma=0.05, n_components=50, random_state=0).fit_transform(load_digits().data[:900] / 16)
    weights = np.random.default_rng(0).integers(3, size=900).astype(float) if weighted else None
    model = OneClassMirrorDescent(nu=nu, random_state=0).fit(rows, sample_weight=weights)
    share = np.average(model.predict(rows) == -1, weights=weights)
    assert nu - 0.004 < share <= nu
    steps = OneClassMirrorDescent(nu=nu, max_iter=model.n_iter_, tol=None, random_state=0).fit(rows, None, weights)
    assert_array_equal(model.coef_, steps.coef_)  # only the offset differs
