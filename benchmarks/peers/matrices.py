"""Speed of the matrix learners compared with BLAS, LAPACK and NumPy, in one process, BLAS on one thread.

    python benchmarks/peers/matrices.py [--repeats 7] [--only logdet meg ...]

Each line does the same work with both, in turn, and prints the median times and the median of their ratios: the peer's
time over ours, so that above 1 we are faster. Ours is the complete method of the estimator: differences
of rows, checks, and the backup. The peers:

- one dsymv and one dsyr a pair, called from Python through SciPy (about 1 us of calling): the minimum of a LogDet step;
- ITML's projection as implemented in NumPy by metric-learn;
- `eigh`, scipy.linalg.eigh(driver="evd") of a d x d matrix, once for each step: what a straightforward implementation
  of von Neumann steps needs;
- a general solver of DefiniteBoost's dual.

Learners have learned before they are timed, and their targets are noisy, so that steps do not vanish.
"""

import time

import _tables as tables
import numpy as np
from _timing import compare, run
from scipy.linalg import eigh
from scipy.linalg.blas import dsymv, dsyr
from scipy.optimize import minimize

from onlinebregman import (
    DefiniteBoost,
    FrobeniusMetricLearner,
    LogDetMetricLearner,
    MEGKernelLearner,
    VonNeumannMetricLearner,
)
from onlinebregman.kernel_learning import pair_rows


def rbf_kernel(d):
    """A kernel of trace one between d random objects."""
    objects = np.random.default_rng(0).normal(size=(d, 3))
    return np.exp(-((objects[:, None] - objects) ** 2).sum(axis=2) / 2) / d


def distances(d, n):
    """n pairs of d objects, and half their squared distances in a kernel, with noise."""
    rng = np.random.default_rng(1)
    kernel, pairs = rbf_kernel(d), rng.integers(0, d, size=(n, 2))
    pairs[:, 1] = np.where(pairs[:, 0] == pairs[:, 1], (pairs[:, 0] + 1) % d, pairs[:, 1])
    a, b = pairs.T
    half = (kernel[a, a] + kernel[b, b]) / 2 - kernel[a, b]
    return pairs, half * rng.uniform(0.5, 1.5, size=n)


def differences(d, n):
    """Rows, pairs of them, and their squared distances in a random metric of trace d, with noise."""
    rng = np.random.default_rng(2)
    rows, factor = rng.normal(size=(n, d)), rng.normal(size=(d, d)) / np.sqrt(d)
    pairs = np.c_[np.arange(n), (np.arange(n) + 1) % n]
    return (
        rows,
        pairs,
        (((rows[pairs[:, 0]] - rows[pairs[:, 1]]) @ factor) ** 2).sum(axis=1) * rng.uniform(0.5, 1.5, size=n),
    )


def eigensolves(matrix, n):
    def work():
        for _ in range(n):
            eigh(matrix, driver="evd")

    return work


def meg(repeats):
    for d, n in ((52, 2000), (200, 300)):
        pairs, half = distances(d, n)
        learn = {}
        for update, eta0 in (("explicit", 4.0), ("implicit", 64.0)):
            model = MEGKernelLearner(update=update, eta0=eta0).partial_fit_pairs(pairs, half, d)
            learn[update] = lambda model=model, pairs=pairs, half=half: model.partial_fit_pairs(pairs, half)
            peer = eigensolves(model.kernel_, n)
            compare(f"MEG, pairs in a block, {update}, d={d}: eigh", learn[update], peer, n, repeats, "us/step")
        compare(
            f"MEG, pairs in a block, implicit, d={d}: explicit",
            learn["implicit"],
            learn["explicit"],
            n,
            repeats,
            "us/step",
        )
    pairs, half = distances(52, 300)
    model = MEGKernelLearner().partial_fit_pairs(pairs, half, 52)

    def one_by_one():
        for i in range(300):
            model.partial_fit_pairs(pairs[i : i + 1], half[i : i + 1])

    compare(
        "MEG, one pair a call, implicit, d=52: eigh",
        one_by_one,
        eigensolves(model.kernel_, 300),
        300,
        repeats,
        "us/step",
    )


def von_neumann(repeats):
    for d, n in ((52, 2000), (200, 300)):
        rows, pairs, targets = differences(d, n)
        for trace in (None, float(d)):
            learn = {}
            for update in ("explicit", "implicit"):
                model = VonNeumannMetricLearner(trace=trace, update=update, eta0=0.3, learning_rate="constant")
                model.partial_fit_pairs(rows, pairs, targets)
                learn[update] = lambda m=model, r=rows, p=pairs, y=targets: m.partial_fit_pairs(r, p, y)
                peer = eigensolves(model.get_mahalanobis_matrix(), n)
                name = f"von Neumann metric, trace {'free' if trace is None else 'given'}"
                compare(f"{name}, {update}, d={d}: eigh", learn[update], peer, n, repeats, "us/step")
            compare(f"{name}, implicit, d={d}: explicit", learn["implicit"], learn["explicit"], n, repeats, "us/step")


def drift(repeats):
    """The distance of W from exp(G) after more than 100 000 steps, G being their sum."""
    for d in (5, 20):
        pairs, half = distances(d, 100_499)  # the last 499 steps since the eigendecomposition was recomputed
        model = MEGKernelLearner(update="explicit", eta0=4.0)
        start = time.thread_time()
        model.partial_fit_pairs(pairs, half, d)
        each = 1e6 * (time.thread_time() - start) / len(pairs)
        values, vectors = np.linalg.eigh(model.log_kernel_)
        gap = np.abs((vectors * np.exp(values)) @ vectors.T - model.kernel_).max()
        name = f"MEG, 100 499 pairs, d={d}: largest entry of W - exp(log W), {gap:.1e}"
        tables.row(name, f"{each:.3f}", "", "us/step", "")


def definite_boost(repeats):
    d, n, rounds = 52, 980, 300
    pairs, _ = distances(d, n)
    kernel = rbf_kernel(d)
    a, b = pairs.T
    half = (kernel[a, a] + kernel[b, b]) / 2 - kernel[a, b]
    near = half <= np.median(half)
    bounds, senses = np.where(near, 1.05 * half, 0.95 * half), np.where(near, "<=", ">=")
    name = f"DefiniteBoost, d={d}, {n} pairs"
    for projection in ("approximate", "exact"):
        model = DefiniteBoost(projection=projection, max_iter=rounds, tol=1e-9)
        learn = lambda model=model: model.fit_pairs(pairs, bounds, d, senses)  # noqa: E731
        peer = eigensolves(learn().kernel_, rounds)
        compare(f"{name}, {rounds} rounds, {projection}: eigh", learn, peer, rounds, repeats, "us/round")
    rows, signs = pair_rows(pairs, d).toarray(), np.where(near, 1.0, -1.0)

    def dual(alpha):
        values, vectors = np.linalg.eigh(-(rows.T * (alpha * signs)) @ rows)
        weights = np.exp(values - values[-1])
        factor = vectors * np.sqrt(weights / weights.sum())
        gradient = signs * (bounds - ((rows @ factor) ** 2).sum(axis=1))
        return values[-1] + np.log(weights.sum() / d) + (alpha * signs) @ bounds, gradient

    def general_solver():
        options = {"ftol": 0.0, "gtol": 1e-5, "maxiter": 5000, "maxfun": 5000}
        return minimize(dual, np.zeros(n), jac=True, bounds=[(0, None)] * n, method="L-BFGS-B", options=options)

    best = general_solver().fun
    for projection in ("approximate", "exact", "corrective"):
        model = DefiniteBoost(projection=projection, tol=1e-3, max_iter=20_000)
        learn = lambda model=model: model.fit_pairs(pairs, bounds, d, senses)  # noqa: E731
        gap = float(np.log(learn().dual_objective_[-1] / d)) - best
        work = f"{name}, to the optimum + {gap:.0e}, {projection}, {model.n_iter_} rounds"
        compare(f"{work}: L-BFGS-B", learn, general_solver, 1, repeats, "us")


def noisy_pairs(d, n, seed=0):
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
        X, pairs, targets = noisy_pairs(d, n)
        few = pairs[:128] if d >= 500 else pairs
        learner = LogDetMetricLearner().partial_fit_pairs(X, pairs[:10], targets[:10])
        learn = lambda: learner.partial_fit_pairs(X, pairs, targets)  # noqa: B023, E731
        compare(
            f"LogDet, block of {n} pairs, d={d}: dsymv + dsyr",
            learn,
            blas_steps(X, few),
            n,
            repeats,
            "us/pair",
            len(few),
        )
        if d in (52, 100):
            compare(
                f"LogDet, block of {n} pairs, d={d}: ITML", learn, itml_steps(X, pairs, targets), n, repeats, "us/pair"
            )
    for d, n in ((52, 1000), (1000, 64)):
        X, pairs, targets = noisy_pairs(d, n)
        learner = LogDetMetricLearner().partial_fit_pairs(X, pairs[:10], targets[:10])

        def one_by_one():
            for i in range(n):  # noqa: B023
                learner.partial_fit_pairs(X, pairs[i : i + 1], targets[i : i + 1])  # noqa: B023

        compare(
            f"LogDet, one pair a call, d={d}: dsymv + dsyr", one_by_one, blas_steps(X, pairs), n, repeats, "us/pair"
        )


def frobenius(repeats):
    for d, n in ((13, 5000), (52, 2000), (100, 1000), (200, 500), (500, 100)):
        X, pairs, _ = noisy_pairs(d, n)
        near = np.random.default_rng(1).choice([0.0, 0.05, 0.2], size=n) * d  # nearly all steps shrink, and project
        learner = FrobeniusMetricLearner(eta0=1.0).partial_fit_pairs(X, pairs, near)
        W = learner.get_mahalanobis_matrix()
        solve = lambda: eigh(W, driver="evd")  # noqa: B023, E731
        name = f"Frobenius, block of {n} pairs, d={d}: one eigensolve"
        compare(name, lambda: learner.partial_fit_pairs(X, pairs, near), solve, n, repeats, "us/pair", 1)  # noqa: B023


if __name__ == "__main__":
    run(__doc__, logdet, frobenius, meg, von_neumann, drift, definite_boost)
