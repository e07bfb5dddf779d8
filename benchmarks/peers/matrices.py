"""Speed of the matrix learners beside one LAPACK eigendecomposition for each step, in one process, BLAS on one thread.

    python benchmarks/peers/matrices.py [--repeats 7] [--only meg ...]

Each line does the same work with both, in turn, and prints the median times and the median of their ratios: the peer's
time over ours, so that above 1 we are faster. `eigh` is scipy.linalg.eigh(driver="evd") of a d x d matrix, once for
each step, what a straightforward implementation of the papers costs at least. Learners have learned a block before
they are timed, and their targets are noisy, so that steps do not die out. One function makes one group of lines.
"""

import argparse
import platform
import time
import warnings

import numpy as np
import scipy
from scipy.linalg import eigh
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from onlinebregman import DefiniteBoost, MEGKernelLearner, VonNeumannMetricLearner, __version__
from onlinebregman.kernel_learning import pair_rows


def seconds(work):
    start = time.thread_time()  # other processes on the machine do not count
    work()
    return time.thread_time() - start


def compare(name, ours, peer, units, repeats, unit="us/step"):
    """Run both in turn; print medians per unit of work and the ratio of each pair of runs."""
    ours(), peer()
    pairs = np.array([(seconds(ours), seconds(peer)) for _ in range(repeats)])
    mine, theirs = 1e6 * np.median(pairs, axis=0) / units
    print(f"{name:72s} {mine:10.2f} {theirs:10.2f} {unit:>8s} {np.median(pairs[:, 1] / pairs[:, 0]):9.2f}", flush=True)


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
            compare(f"MEG, pairs in a block, {update}, d={d}: eigh", learn[update], peer, n, repeats)
        compare(f"MEG, pairs in a block, implicit, d={d}: explicit", learn["implicit"], learn["explicit"], n, repeats)
    pairs, half = distances(52, 300)
    model = MEGKernelLearner().partial_fit_pairs(pairs, half, 52)

    def one_by_one():
        for i in range(300):
            model.partial_fit_pairs(pairs[i : i + 1], half[i : i + 1])

    compare("MEG, one pair a call, implicit, d=52: eigh", one_by_one, eigensolves(model.kernel_, 300), 300, repeats)


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
                compare(f"{name}, {update}, d={d}: eigh", learn[update], peer, n, repeats)
            compare(f"{name}, implicit, d={d}: explicit", learn["implicit"], learn["explicit"], n, repeats)


def drift(repeats):
    """How far W is from exp(G) after more than 100 000 steps, G their sum."""
    for d in (5, 20):
        pairs, half = distances(d, 100_499)  # the last 499 steps since the eigendecomposition was made afresh
        model = MEGKernelLearner(update="explicit", eta0=4.0)
        start = time.thread_time()
        model.partial_fit_pairs(pairs, half, d)
        each = 1e6 * (time.thread_time() - start) / len(pairs)
        values, vectors = np.linalg.eigh(model.log_kernel_)
        gap = np.abs((vectors * np.exp(values)) @ vectors.T - model.kernel_).max()
        print(f"{f'MEG, 100 499 pairs, d={d}: largest entry of W - exp(log W)':72s} {each:10.2f} {gap:10.1e}  us/step")


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
        compare(f"{name}, to the optimum, {projection}: L-BFGS-B", learn, general_solver, 1, repeats, "us")
        found = float(np.log(model.dual_objective_[-1] / d))
        print(f"    {model.n_iter_} rounds, dual objective {found:.7f}, L-BFGS-B {best:.7f}")


GROUPS = {function.__name__: function for function in (meg, von_neumann, drift, definite_boost)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", nargs="*", choices=GROUPS, default=list(GROUPS))
    arguments = parser.parse_args()
    print(
        f"onlinebregman {__version__}, SciPy {scipy.__version__}, NumPy {np.__version__}, "
        f"Python {platform.python_version()}, {platform.machine()}"
    )
    print(f"{'work: peer':72s} {'ours':>10s} {'peer':>10s} {'':8s} {'peer/ours':>9s}")
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for group in arguments.only:
            GROUPS[group](arguments.repeats)
