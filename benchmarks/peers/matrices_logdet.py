"""Speed of LogDet and Frobenius steps beside BLAS, LAPACK and NumPy, in one process, BLAS on one thread.

    python benchmarks/peers/matrices_logdet.py [--repeats 7]

Each line does the same work with both, in turn, and prints the median times and the median of their ratios: the
peer's time over ours, so that above 1 we are faster. Ours is `partial_fit_pairs` with all that belongs to it: taking
differences, checks, and the copy to go back to. The peers are one dsymv and one dsyr a pair, called from Python through
SciPy (the least a step has to do, and about 1 us of calling), ITML's projection as metric-learn writes it in NumPy,
and one symmetric eigensolve (scipy.linalg.eigh, driver evd).
"""

import argparse
import platform
import time
import warnings

import numpy as np
import scipy
from scipy.linalg import eigh
from scipy.linalg.blas import dsymv, dsyr
from threadpoolctl import threadpool_limits

from onlinebregman import FrobeniusMetricLearner, LogDetMetricLearner, __version__


def seconds(work):
    start = time.thread_time()  # other processes on the machine do not count
    work()
    return time.thread_time() - start


def compare(name, ours, peer, units, repeats, peer_units=None, unit="us/pair"):
    """Run both in turn; print medians per unit of work and the ratio of each pair of runs."""
    ours(), peer()
    runs = np.array([(seconds(ours) / units, seconds(peer) / (peer_units or units)) for _ in range(repeats)])
    mine, theirs = 1e6 * np.median(runs, axis=0)
    print(f"{name:60s} {mine:10.3f} {theirs:10.3f} {unit:>8s} {np.median(runs[:, 1] / runs[:, 0]):9.2f}", flush=True)


def stream(d, n, seed=0):
    """Rows, pairs of them, and squared distances some of which are far from those of the identity."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(500, d))
    pairs = np.array([rng.choice(500, size=2, replace=False) for _ in range(n)])
    return X, pairs, rng.choice([0.2, 1.0, 3.0], size=n) * d


def blas_steps(X, pairs):
    """One dsymv and one dsyr for each pair."""
    Z = X[pairs[:, 0]] - X[pairs[:, 1]]
    W = np.asfortranarray(np.eye(X.shape[1]))

    def work():
        for z in Z:
            dsyr(-1e-9, dsymv(1.0, W, z), a=W, overwrite_a=True)

    return work


def itml_steps(X, pairs, targets):
    """ITML's projections as in metric-learn: v'Av by two products, then A += beta outer(Av, Av)."""
    Z = X[pairs[:, 0]] - X[pairs[:, 1]]

    def work():
        A, dual, bounds = np.eye(X.shape[1]), np.zeros(len(Z)), targets.copy()
        for i, v in enumerate(Z):
            distance = v.dot(A).dot(v)
            alpha = min(dual[i], 0.5 * (1.0 / distance - 1.0 / bounds[i]))
            dual[i] -= alpha
            beta = alpha / (1 - alpha * distance)
            bounds[i] = 1.0 / (1.0 / bounds[i] + alpha)
            Av = A.dot(v)
            A += np.outer(Av, Av * beta)

    return work


def logdet(repeats):
    for d, n in ((13, 20_000), (52, 10_000), (100, 5000), (200, 2000), (500, 2048), (1000, 2048), (2000, 512)):
        X, pairs, targets = stream(d, n)
        few = pairs[:128] if d >= 500 else pairs
        learner = LogDetMetricLearner().partial_fit_pairs(X, pairs[:10], targets[:10])
        learn = lambda: learner.partial_fit_pairs(X, pairs, targets)  # noqa: B023, E731
        compare(f"LogDet, block of {n} pairs, d={d}: dsymv + dsyr", learn, blas_steps(X, few), n, repeats, len(few))
        if d in (52, 100):
            compare(f"LogDet, block of {n} pairs, d={d}: ITML", learn, itml_steps(X, pairs, targets), n, repeats)
    for d, n in ((52, 1000), (1000, 64)):
        X, pairs, targets = stream(d, n)
        learner = LogDetMetricLearner().partial_fit_pairs(X, pairs[:10], targets[:10])

        def one_by_one():
            for i in range(n):  # noqa: B023
                learner.partial_fit_pairs(X, pairs[i : i + 1], targets[i : i + 1])  # noqa: B023

        compare(f"LogDet, one pair a call, d={d}: dsymv + dsyr", one_by_one, blas_steps(X, pairs), n, repeats)


def frobenius(repeats):
    for d, n in ((13, 5000), (52, 2000), (100, 1000), (200, 500), (500, 100)):
        X, pairs, _ = stream(d, n)
        near = np.random.default_rng(1).choice([0.0, 0.05, 0.2], size=n) * d  # nearly all steps shrink, and project
        learner = FrobeniusMetricLearner(eta0=1.0).partial_fit_pairs(X, pairs, near)
        W = learner.get_mahalanobis_matrix()
        solve = lambda: eigh(W, driver="evd")  # noqa: B023, E731
        name = f"Frobenius, block of {n} pairs, d={d}: one eigensolve"
        compare(name, lambda: learner.partial_fit_pairs(X, pairs, near), solve, n, repeats, 1)  # noqa: B023


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    print(
        f"onlinebregman {__version__}, SciPy {scipy.__version__}, NumPy {np.__version__}, "
        f"Python {platform.python_version()}, {platform.machine()}"
    )
    print(f"{'work: peer':60s} {'ours':>10s} {'peer':>10s} {'':8s} {'peer/ours':>9s}")
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        logdet(repeats)
        frobenius(repeats)
