"""The estimators against `onlinebregman.reference`, where the other tests do not use it: see there for the rest."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from raw import MirrorDescentRegressor

import onlinebregman
from onlinebregman import (
    DefiniteBoost,
    EGRegressor,
    ImplicitGDRegressor,
    MaxEntDensity,
    OnlineExponentialFamily,
    OnlineGaussian,
    PNormClassifier,
    PNormRegressor,
    WinnowClassifier,
    reference,
)
from onlinebregman.losses import LOSSES

DOCS = Path(__file__).parents[1] / "docs"
PUBLIC = {
    name: value
    for name, value in vars(reference).items()
    if getattr(value, "__module__", "") == reference.__name__ and not name.startswith("_")
}
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=30)
near = {"rtol": 1e-9, "atol": 1e-12}


def rows(seed, n=40, d=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ rng.dirichlet(np.ones(d)) + 0.1 * rng.normal(size=n)


# --- the module -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PUBLIC)
def test_every_formula_says_what_it_is_and_its_types_and_stands_in_the_guide(name):
    value = PUBLIC[name]
    for each in vars(value).values() if inspect.isclass(value) else [value]:
        function = getattr(each, "fget", each)
        own = inspect.isfunction(function) and function.__module__ == value.__module__  # not those of named tuples
        if own and re.fullmatch("[^_].*|__init__", function.__name__):
            hints = inspect.signature(function)
            assert function.__doc__ or function.__name__ == "__init__"
            assert hints.return_annotation is not hints.empty
            assert [p.name for p in hints.parameters.values() if p.annotation is p.empty and p.name != "self"] == []
    assert value.__doc__ and not value.__doc__.startswith(f"{name}(")  # a named tuple has a docstring of its own
    shown = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.rst"))
    assert re.search(rf"^.. literalinclude:: ../onlinebregman/reference.py\n   :pyobject: {name}$", shown, re.M)


def test_it_is_imported_only_when_asked_for():
    assert "reference" not in onlinebregman.__all__
    source = Path(inspect.getfile(onlinebregman)).read_text(encoding="utf-8")
    assert "reference" not in source


# --- losses -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", reference.LOSSES)
@given(a=st.floats(-5, 5), y=st.sampled_from([0.0, 0.3, 1.0]))
def test_losses(name, a, y):
    theirs, ours = reference.LOSSES[name], LOSSES[name]
    y = np.copysign(1.0, y - 0.5) if ours.flat and ours.degree == 0 else y  # a label
    y = max(y, 0.1) if name == "gamma" else y
    assert_allclose(theirs.value(a, y), ours.value(a, y), **near)
    if all(abs(a - kink) > 1e-9 for kink in np.ravel(ours.kinks(y))):
        assert_allclose(theirs.derivative(a, y), ours.derivative(a, y), **near)
    if name in ("squared_error", "log_loss", "poisson"):
        assert_allclose(theirs.curvature(a, y), ours.curvature(a, y), **near)


# --- vectors ----------------------------------------------------------------------------------------------------------


@few
@given(seed=seeds, eta=st.floats(0.01, 10.0), fit_intercept=st.booleans())
def test_implicit_gradient_descent(seed, eta, fit_intercept):
    X, y = rows(seed)
    model = ImplicitGDRegressor(eta0=eta, learning_rate="constant", fit_intercept=fit_intercept).partial_fit(X, y)
    w = np.zeros(5)
    for x, target in zip(np.c_[X, np.full(40, float(fit_intercept))], y, strict=True):
        w = reference.implicit_gradient_step(w, x, target, eta)
    assert_allclose(np.r_[model.coef_, model.intercept_], w, **near)


@few
@given(seed=seeds, eta=st.floats(0.01, 0.3), total=st.sampled_from([0.5, 1.0, 4.0]), signed=st.booleans())
def test_exponentiated_gradient(seed, eta, total, signed):
    X, y = rows(seed)
    weights = "signed" if signed else "simplex"
    model = EGRegressor(
        weights=weights, total=total, eta0=eta, learning_rate="constant", update="explicit", fit_intercept=False
    ).partial_fit(X, y)
    w = reference.signed_halves(np.zeros(4), total) if signed else np.full(4, total / 4)
    for x, target in zip(np.c_[X, -X] if signed else X, y, strict=True):
        w = reference.eg_step(w, x, target, eta, total)
    assert_allclose(model.coef_, np.subtract(*np.split(w, 2)) if signed else w, **near)


@pytest.mark.parametrize("loss", ["squared_error", "log_loss", "poisson"])
@pytest.mark.parametrize("divergence", [name for name in reference.MIRRORS if name != "p_norm"])
@settings(max_examples=10)
@given(seed=seeds, fit_intercept=st.booleans())
def test_importance_invariant_steps(divergence, loss, seed, fit_intercept):
    rng = np.random.default_rng(seed)
    X, start = rng.normal(size=(5, 3)), rng.dirichlet(np.ones(3))
    y = rng.choice([0.0, 1.0, 0.3], size=5)
    model = MirrorDescentRegressor(
        divergence=divergence, loss=loss, update="importance", eta0=1.0, learning_rate="constant", init=start,
        fit_intercept=fit_intercept,
    ).partial_fit(X, y)  # fmt: skip
    theory = reference.MirrorDescent(
        reference.MIRRORS[divergence], reference.LOSSES[loss], start, "importance", fit_intercept
    )
    for x, target in zip(X, y, strict=True):
        theory.learn(x, target, 1.0)
    assert_allclose(model.coef_, theory.w, rtol=1e-9, atol=1e-10)
    assert_allclose(model.intercept_, theory.b, rtol=1e-9, atol=1e-10)


@few
@given(
    seed=seeds,
    p=st.sampled_from([None, 2.0, 5.0]),
    update=st.sampled_from(["explicit", "implicit"]),
    loss=st.sampled_from(["squared_error", "hinge"]),
)
def test_p_norms(seed, p, update, loss):
    X, y = rows(seed)
    parameters = {"p": p or "auto", "eta0": 0.1, "learning_rate": "constant", "update": update}
    if loss == "hinge":
        y = np.where(y > 0, 1.0, -1.0)
        model = PNormClassifier(loss=loss, **parameters).partial_fit(X, y, classes=[-1.0, 1.0])
    else:
        model = PNormRegressor(**parameters).partial_fit(X, y)
    theory = reference.MirrorDescent(reference.p_norm(p), reference.LOSSES[loss], np.zeros(4), update)
    for x, target in zip(X, y, strict=True):
        theory.learn(x, target, 0.1)
    found = np.r_[np.ravel(model.coef_), model.intercept_]
    assert_allclose(found, np.r_[theory.w, theory.b], rtol=1e-9, atol=1e-10)


# --- kernels ----------------------------------------------------------------------------------------------------------


@few
@given(seed=seeds, d=st.integers(2, 6), rounds=st.integers(1, 30))
def test_definite_boost(seed, d, rounds):
    """Constraints tr(W C) <= 0 of equal spread of eigenvalues, which W = 0.7 A + 0.3 I / d satisfies."""
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(6, d, d))
    C = C + C.transpose(0, 2, 1)
    C /= np.ptp(np.linalg.eigvalsh(C), axis=1)[:, None, None]
    factor = rng.normal(size=(d, d))
    feasible = 0.7 * factor @ factor.T / (factor**2).sum() + 0.3 * np.eye(d) / d
    C -= np.tensordot(C, feasible, 2)[:, None, None] * np.eye(d)
    model = DefiniteBoost(selection="violation", tol=1e-9, max_iter=rounds).partial_fit_matrices(C)
    G = -np.log(d) * np.eye(d)
    for _ in model.dual_objective_[1:]:
        G = reference.definite_boost_step(G, C)
    assert_allclose(model.kernel_, reference.matrix_exp(G, 1.0), **near)


# --- densities --------------------------------------------------------------------------------------------------------


@few
@given(
    seed=seeds,
    family=st.sampled_from(["gaussian", "bernoulli", "poisson", "exponential"]),
    forward=st.booleans(),
    k=st.sampled_from([0.5, 2.0]),
)
def test_means_of_exponential_families(seed, family, forward, k):
    X = np.random.default_rng(seed).integers(0, 2, size=(20, 3)).astype(float)
    strategy = "forward" if forward else "incremental_offline"
    model = OnlineExponentialFamily(family, strategy=strategy, prior_weight=k, prior_mean=0.4).partial_fit(X)
    mu = np.full(3, 0.4)
    for t, x in enumerate(X):
        mu = reference.forward_mean(mu, x, k + forward + t)
    assert_allclose(model.expectation_parameters_, mu, **near)


@few
@given(seed=seeds, forward=st.booleans())
def test_gaussians_of_unknown_covariance(seed, forward):
    rng = np.random.default_rng(seed)
    X, s = rng.normal(size=(20, 2)), rng.uniform(0.5, 2.0, size=20)
    strategy = "forward" if forward else "incremental_offline"
    model = OnlineGaussian(strategy=strategy, prior_weight=2.0).partial_fit(X, sample_weight=s)
    mu, k = np.eye(3), 2.0 + forward
    for z, weight in zip(np.c_[X, np.ones(20)], s, strict=True):
        mu, k = reference.forward_mean(mu, np.outer(z, z), k, weight), k + weight
    assert_allclose(model.expectation_parameters_, mu, **near)


@few
@given(bits=st.lists(st.integers(0, 1), max_size=20), k=st.sampled_from([0.0, 3.0]))
def test_last_step_minimax(bits, k):
    model = OnlineExponentialFamily("bernoulli", strategy="last_step_minimax", prior_weight=k)
    model.partial_fit(np.c_[[*bits, 0.0]], sample_weight=[*np.ones(len(bits)), 0.0])
    expected = reference.last_step_minimax(k / 2 + sum(bits), k / 2 + len(bits) - sum(bits))
    assert_allclose(model.expectation_parameters_, expected, **near)


@few
@given(seed=seeds, T=st.integers(1, 30))
def test_gaussian_minimax(seed, T):
    X = np.random.default_rng(seed).normal(size=(T, 2))
    alpha, model = reference.minimax_rates(T), OnlineExponentialFamily(strategy="minimax", horizon=T)
    for t in range(1, T):
        model.partial_fit(X[t - 1 : t])
        assert_allclose(model.expectation_parameters_, alpha[t] * X[:t].sum(axis=0), **near)


@few
@given(seed=seeds, rounds=st.integers(1, 20))
def test_maximum_entropy(seed, rounds):
    rng = np.random.default_rng(seed)
    domain, seen = rng.uniform(size=(30, 3)) * [1.0, 10.0, 0.1], rng.integers(30, size=25)
    model = MaxEntDensity(domain, solver="iterative_scaling", tol=1e-300, max_iter=rounds).fit(seen)
    f = (domain - domain.min(axis=0)) / np.ptp(domain, axis=0)
    multipliers, C = np.zeros(3), 1.01 * f.sum(axis=1).max()
    for _ in range(rounds):
        q = reference.softmax(f @ multipliers)
        multipliers = multipliers + reference.scaling_step(f[seen].mean(axis=0), q @ f, C)[0]
    assert_allclose(np.exp(model.score_samples(domain)), reference.softmax(f @ multipliers), **near)


# --- others that no other test takes for its measure ------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["signed", "simplex", "positive"])
def test_winnow(weights):
    X, y = rows(0)
    y, n = np.where(y > 0, 1, -1), 8 if weights == "signed" else 4
    model, total = WinnowClassifier(weights=weights, eta0=0.3), None if weights == "positive" else 1.0
    w, b = np.full(n, 1 / n), 0.0
    for x, label in zip(X, y, strict=True):
        model.partial_fit(x[np.newaxis], [label], classes=[-1, 1])
        w, b = reference.winnow_step(w, b, x, label, 0.3, total, weights == "signed")
        assert_allclose(model.coef_[0], np.subtract(*np.split(w, 2)) if weights == "signed" else w, **near)
        assert_allclose(model.intercept_, [b], **near)
    assert model.n_mistakes_[0] > 2
