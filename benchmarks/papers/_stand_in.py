"""A kernel in place of that of the 52 gyrB proteins of TRW04, which is not available.

The cosines of the spectra of coffees of three origins (20 each, `kernel_coffee_60`), 52 of them drawn with seed 0:
three classes and 52 objects, as in the paper, and divided by the trace.
"""

import numpy as np

from onlinebregman.datasets import load_dataset


def kernel() -> tuple[np.ndarray, np.ndarray]:
    """The target of trace one, and the classes."""
    data = load_dataset("kernel_coffee_60")
    chosen = np.sort(np.random.default_rng(0).permutation(60)[:52])
    target = data.data[:, :60].astype(float)[np.ix_(chosen, chosen)]
    return target / np.trace(target), np.unique(data.target, return_inverse=True)[1][chosen]


def distances(matrix: np.ndarray) -> np.ndarray:
    """Half the squared distances: tr(W X) of all pairs."""
    return np.add.outer(matrix.diagonal(), matrix.diagonal()) / 2 - matrix


def error(matrix: np.ndarray, classes: np.ndarray, divisions: int = 10) -> float:
    """1-NN error, mean over random divisions of the objects in halves (seeds 0, 1, ...)."""
    found, half = [], len(classes) // 2
    for seed in range(divisions):
        order = np.random.default_rng(seed).permutation(len(classes))
        train, test = order[:half], order[half:]
        nearest = distances(matrix)[np.ix_(test, train)].argmin(axis=1)
        found.append(np.mean(classes[train][nearest] != classes[test]))
    return float(np.mean(found))
