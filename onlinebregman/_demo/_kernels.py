"""Part 4: a kernel between 52 flowers, learned online from distances and from similar pairs."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from ..kernel_learning import DefiniteBoost, MEGKernelLearner

N_EACH = (17, 17, 18)
THEORY_ETA0 = 4.0  # 2 / r^2 for the loss (a - y)^2, which is 4 / r^2 for (a - y)^2 / 2; r = 1
NEAR = 0.2  # in units of 1 / d
N_DIVISIONS = 10


@dataclass(frozen=True)
class Flowers:
    """The objects: their labels, and the target kernel, of trace one."""

    labels: np.ndarray
    kernel: np.ndarray

    @property
    def distances(self) -> np.ndarray:
        """Half the squared distances in the feature space of the target kernel."""
        return half_squared_distances(self.kernel)


@dataclass(frozen=True)
class OnlineRun:
    """A run of MEGKernelLearner: total loss sum (a - y)^2 and 1-NN error at checkpoints."""

    eta0: float
    n_pairs: np.ndarray
    total_loss: np.ndarray
    errors: np.ndarray
    seconds: float


@dataclass(frozen=True)
class KernelResult:
    """The results of both learners, and the reference values."""

    n_objects: int
    target_error: float
    loss_bound: float
    runs: list[OnlineRun]
    n_constraints: int
    n_constraints_across: int
    n_rounds: int
    dual_objective: np.ndarray
    boost_error: float
    boost_violation: float
    boost_seconds: float
    first_error: float


def half_squared_distances(kernel: np.ndarray) -> np.ndarray:
    """(K_aa + K_bb - 2 K_ab) / 2 for all pairs of objects."""
    norms = np.diag(kernel)
    return (norms[:, None] + norms) / 2 - kernel


def choose_flowers() -> Flowers:
    """Draw 17, 17 and 18 Iris flowers of the three species; the target is a Gaussian kernel of their features."""
    X, y = load_iris(return_X_y=True)
    rng = np.random.RandomState(0)
    drawn = [rng.choice(np.flatnonzero(y == species), n, replace=False) for species, n in enumerate(N_EACH)]
    chosen = np.sort(np.concatenate(drawn))
    kernel = rbf_kernel(StandardScaler().fit_transform(X)[chosen])
    return Flowers(y[chosen], kernel / len(chosen))


def nearest_neighbour_error(kernel: np.ndarray, labels: np.ndarray) -> float:
    """Error of 1-NN in the feature space of a kernel, a mean over ten fixed splits into halves."""
    distances = half_squared_distances(kernel)
    rng = np.random.RandomState(0)
    errors = []
    for _ in range(N_DIVISIONS):
        train, test = np.array_split(rng.permutation(len(labels)), 2)
        nearest = train[np.argmin(distances[np.ix_(test, train)], axis=1)]
        errors.append(np.mean(labels[nearest] != labels[test]))
    return float(np.mean(errors))


def total_loss_bound(target: np.ndarray) -> float:
    """Bound on the total loss sum (a - y)^2 of THEORY_ETA0: D(U, I/d) / 2 for target U of trace one, r = 1."""
    eigenvalues = np.linalg.eigvalsh(target)
    eigenvalues = eigenvalues[eigenvalues > 0]
    return 0.5 * float(np.sum(eigenvalues * np.log(eigenvalues)) + np.log(len(target)))


def learn_kernels(*, checkpoints: Sequence[int], etas: Sequence[float]) -> KernelResult:
    """Learn the target kernel from random pairs, once for each rate, and from the pairs that are near."""
    flowers = choose_flowers()
    d = len(flowers.labels)
    runs = [_learn_online(flowers, eta0, checkpoints) for eta0 in etas]
    near, targets = _near_pairs(flowers)
    boost = DefiniteBoost(max_iter=2000)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the remaining violation is reported
        boost.fit_pairs(near, targets, n_objects=d)
    seconds = time.perf_counter() - start
    left, right = near.T
    return KernelResult(
        n_objects=d,
        target_error=nearest_neighbour_error(flowers.kernel, flowers.labels),
        loss_bound=total_loss_bound(flowers.kernel),
        runs=runs,
        n_constraints=len(near),
        n_constraints_across=int(np.sum(flowers.labels[left] != flowers.labels[right])),
        n_rounds=len(boost.dual_objective_) - 1,
        dual_objective=np.asarray(boost.dual_objective_),
        boost_error=nearest_neighbour_error(boost.kernel_, flowers.labels),
        boost_violation=float(np.max(half_squared_distances(boost.kernel_)[left, right] - targets)),
        boost_seconds=seconds,
        first_error=nearest_neighbour_error(np.eye(d) / d, flowers.labels),
    )


def _near_pairs(flowers: Flowers) -> tuple[np.ndarray, np.ndarray]:
    """All pairs nearer than 0.2 / d, and that bound for each."""
    d = len(flowers.labels)
    pairs = np.argwhere(np.triu(flowers.distances < NEAR / d, k=1))
    return pairs, np.full(len(pairs), NEAR / d)


def _learn_online(flowers: Flowers, eta0: float, checkpoints: Sequence[int]) -> OnlineRun:
    """One pass over a stream of random pairs, the same stream for every rate."""
    d = len(flowers.labels)
    rng = np.random.RandomState(0)
    learner = MEGKernelLearner(eta0=eta0, update="explicit")
    learned, losses, errors, seconds = 0, [], [], 0.0
    for checkpoint in checkpoints:
        pairs = _random_pairs(rng, d, checkpoint - learned)
        start = time.perf_counter()
        learner.partial_fit_pairs(pairs, flowers.distances[pairs[:, 0], pairs[:, 1]], n_objects=d)
        seconds += time.perf_counter() - start
        learned = checkpoint
        losses.append(2.0 * learner.cumulative_loss_)  # the learner counts (a - y)^2 / 2
        errors.append(nearest_neighbour_error(learner.kernel_, flowers.labels))
    return OnlineRun(eta0, np.array(checkpoints), np.array(losses), np.array(errors), seconds)


def _random_pairs(rng: np.random.RandomState, d: int, n: int) -> np.ndarray:
    """Random pairs of different objects, uniformly distributed."""
    first = rng.randint(d, size=n)
    return np.column_stack([first, (first + rng.randint(1, d, size=n)) % d])
