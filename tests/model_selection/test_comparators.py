"""The offline comparator: optimality conditions, other solvers, weights, sparse rows, errors."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from onlinebregman.model_selection import _comparators, offline_comparator

DOMAINS = ["all", "nonnegative", "simplex", "signed"]
every = pytest.mark.parametrize("domain", DOMAINS)
with_or_without = pytest.mark.parametrize("fit_intercept", [False, True])
laws = settings(max_examples=40, deadline=None)


def draw_stream(seed, *, hard=False):
    """(X, y, weights) of a random shape; if hard, with columns of very different sizes, equal, zero or constant."""
    rng = np.random.default_rng(seed)
    n_rows, n_features = rng.integers(1, 40), rng.integers(1, 12)
    X = rng.normal(size=(n_rows, n_features))
    if hard:
        X *= 10.0 ** rng.uniform(-4, 4, n_features)
        for kind in (X[:, 0], 0.0, 3.0):
            if rng.random() < 0.3:
                X[:, rng.integers(n_features)] = kind
    scale = np.maximum(np.abs(X).max(axis=0), 1e-9)
    y = X @ (rng.normal(size=n_features) / scale) + rng.normal(size=n_rows) * rng.choice([0.0, 0.1, 10.0])
    weights = rng.choice([0.0, 1.0, 2.5], size=n_rows)
    weights[0] = 1.0
    return X, y, weights


def violation(X, y, weights, domain, total, coef, intercept, fit_intercept):
    """The violation of the optimality conditions, relative to the sizes of their terms."""
    roots = np.sqrt(weights)
    size = np.linalg.norm(roots * y) + np.linalg.norm(roots * (X @ coef)) + 1e-300
    error = weights * (X @ coef + intercept - y)
    gradient = X.T @ error / (np.linalg.norm(roots[:, None] * X) * size + 1e-300)
    residuals = [abs(error.sum()) / (np.sqrt(weights.sum()) * size)] if fit_intercept else [float(intercept != 0)]
    if domain == "all":
        residuals.append(np.abs(gradient).max())
    elif domain == "nonnegative":
        residuals += [-gradient.min(), np.abs(gradient[coef > 0]).max(initial=0.0), -coef.min()]
    elif domain == "simplex":
        residuals += [gradient[coef > 0].max() - gradient.min(), -coef.min(), abs(coef.sum() / total - 1)]
    else:  # the smallest gradient.v of the ball is -total max |gradient|
        residuals += [gradient @ coef / total + np.abs(gradient).max(), np.abs(coef).sum() / total - 1]
    return max(residuals)


@every
@with_or_without
@laws
@given(st.integers(0, 10**6), st.sampled_from([0.03, 1.0, 30.0]), st.booleans())
def test_optimality_conditions(domain, fit_intercept, seed, total, hard):
    X, y, weights = draw_stream(seed, hard=hard)
    best = offline_comparator(X, y, domain=domain, total=total, fit_intercept=fit_intercept, sample_weight=weights)
    assert violation(X, y, weights, domain, total, best.coef, best.intercept, fit_intercept) < 1e-12
    assert best.cumulative_loss == pytest.approx(np.sum(weights * (X @ best.coef + best.intercept - y) ** 2) / 2)


@every
@with_or_without
def test_layouts_and_blocks(domain, fit_intercept):
    """More rows than fit into one block, sparse and in other forms."""
    rng = np.random.default_rng(2)
    X = np.where(rng.random((3000, 6)) < 0.3, rng.normal(size=(3000, 6)), 0.0)
    y = X @ rng.normal(size=6) + 1.0
    settings = {"domain": domain, "fit_intercept": fit_intercept}
    best = offline_comparator(X, y, **settings)
    assert violation(X, y, np.ones(3000), domain, 1.0, best.coef, best.intercept, fit_intercept) < 1e-12
    forms = [sparse.csr_matrix(X), sparse.csc_array(X), pd.DataFrame(X), np.asfortranarray(X)]
    for form in forms:
        for a, b in zip(best, offline_comparator(form, y.tolist(), **settings), strict=True):
            assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    assert_array_equal(offline_comparator(X, y, **settings).coef, best.coef)


def test_a_constant_feature_is_left_to_the_intercept():
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=100), np.full(100, 1e6)])
    best = offline_comparator(X, 2 * X[:, 0] + 5, fit_intercept=True)
    assert_allclose([*best.coef, best.intercept], [2.0, 0.0, 5.0], atol=1e-9)


def test_another_solver_takes_over_where_nnls_does_not_end(monkeypatch):
    X, y, _ = draw_stream(7)
    expected = [offline_comparator(X, y, domain=domain) for domain in DOMAINS]

    def give_up(*args, **kwargs):
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr(_comparators, "nnls", give_up)
    for domain, best in zip(DOMAINS, expected, strict=True):
        assert_allclose(offline_comparator(X, y, domain=domain).coef, best.coef, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"domain": "positive"}, "domain must be one of 'all', 'nonnegative', 'simplex', 'signed'; got 'positive'"),
        ({"domain": "simplex", "total": 0.0}, "must be a positive finite number"),
        ({"sample_weight": [1.0, -1.0, 0.0]}, "-1 at row 1"),
        ({"sample_weight": [0.0, 0.0, 0.0]}, "All sample_weight are zero"),
        ({"y": [1.0, np.nan, 2.0]}, r"Input y contains NaN \(row 1\)"),
        ({"X": [[1.0, 2.0], [1.0, np.inf], [0.0, 0.0]]}, r"Input X contains infinity \(row 1, column 1\)"),
        ({"X": [[1.0, 2.0]]}, "inconsistent numbers of samples"),
    ],
)
def test_errors(arguments, message):
    arguments = {"X": [[1.0, 2.0], [3.0, 4.0], [0.0, 1.0]], "y": [1.0, 2.0, 3.0], **arguments}
    with pytest.raises(ValueError, match=message):
        offline_comparator(arguments.pop("X"), arguments.pop("y"), **arguments)
