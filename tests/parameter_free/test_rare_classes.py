"""A class of one in a thousand: what its rows say about members is not lost in the thousand rows until the next one."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, xlogy

from onlinebregman import ParameterFreeClassifier

ONE_IN = 1000
N = 20_000


def stream(seed):
    """Rows and their probabilities of the rare class, which depend on three columns weakly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * N, 3))
    a = X @ (rng.choice([-0.5, 0.5], size=3) * rng.uniform(0.7, 1.3, size=3))
    p = expit(a + brentq(lambda b: expit(a + b).mean() - 1 / ONE_IN, -20.0, 0.0))
    return X, p, rng.random(2 * N) < p


def log_loss(p, q):
    return -np.mean(xlogy(p, q) + xlogy(1 - p, 1 - q))


def order(p, q):
    """The probability that a row of the rare class has a larger q than another one (AUC)."""
    p = p[np.argsort(q)]
    return np.cumsum(1 - p) @ p / (p.sum() * (1 - p).sum())


@pytest.mark.parametrize("n_common", [1, 2])
def test_rare_classes_are_told_apart(n_common):
    """Better than by their share alone, without and with combinations; common classes may be as tosses of a coin."""
    found = []
    for seed in range(6):
        X, p, rare = stream(seed)
        y = np.where(rare, 2, np.random.default_rng(seed).integers(n_common, size=2 * N))
        of_both = []
        for stacking in (False, True):
            model = ParameterFreeClassifier(
                stacking=stacking, memory=False, random_features=0, thresholds=False, shuffle=False
            )
            model.fit(X[:N], y[:N])
            q = model.predict_proba(X[N:])[:, -1]
            of_both.append((q.mean() / p[N:].mean(), log_loss(p[N:], q), order(p[N:], q)))
        found.append(of_both)
    (_, loss, auc), (share, stacked_loss, stacked_auc) = np.mean(found, axis=0)
    assert max(loss, stacked_loss) < log_loss(1 / ONE_IN, 1 / ONE_IN)
    assert stacked_auc > auc - 0.002 and stacked_loss < loss + 1e-5
    assert 1 / 1.15 < share < 1.15
