"""WinnowClassifier: its three kinds of weights in NumPy, mistakes and their bound, many irrelevant features."""

import numpy as np
import pytest

from onlinebregman import WinnowClassifier

kinds = pytest.mark.parametrize("weights", ["signed", "simplex", "positive"])


def sparse_target(rng, n, d, relevant=3, margin=0.3):
    """Rows of -1 and 1 whose label only a few of the features decide, and the weights that decide it, of norm 1."""
    u = np.zeros(d)
    u[rng.choice(d, size=relevant, replace=False)] = rng.choice([-1.0, 1.0], size=relevant) / relevant
    X = rng.choice([-1.0, 1.0], size=(4 * n, d))
    X = X[np.abs(X @ u) >= margin][:n]
    return X, np.where(X @ u > 0, 1, -1), u


# --- mistakes and their bound -----------------------------------------------------------------------------------------


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
