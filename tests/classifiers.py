"""Linear classifiers, and rows for them, that several tests run over."""

import numpy as np
import pytest
from raw import MirrorDescentClassifier

from onlinebregman import PerceptronClassifier, PNormClassifier, WinnowClassifier

CLASSIFIERS = [
    MirrorDescentClassifier(divergence="squared_euclidean", random_state=0),
    MirrorDescentClassifier(divergence="simplex_entropy", signed=True, loss="hinge", random_state=0),
    PNormClassifier(p=3.0, random_state=0),
    PerceptronClassifier(random_state=0),
    WinnowClassifier(random_state=0),
]
every = pytest.mark.parametrize("model", CLASSIFIERS, ids=repr)


def some_rows(n=60, n_classes=3, d=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    return rng.normal(size=(n, d)) + 1.5 * np.eye(n_classes, d)[y], y
