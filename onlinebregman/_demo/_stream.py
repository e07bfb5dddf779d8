"""Part 1: parameter-free models and stochastic gradient descent, in one pass over a stream."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pydoc_data.topics import topics

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.preprocessing import StandardScaler

from ..parameter_free import ParameterFreeClassifier, ParameterFreeRegressor
from ..pipeline import make_online_pipeline

# Chapters of Python's reference manual, which is part of Python's standard library.
CHAPTERS = ("compound", "types", "string-methods", "debugger", "formatstrings", "import", "execmodel")


@dataclass(frozen=True)
class StreamResult:
    """One stream: errors of rows predicted before they are learned, relative to the rows or the targets' variance.

    `sgd` is stochastic gradient descent on unscaled rows, `scaled_sgd` on rows standardised online, NaN for text, which
    is not standardised. `seconds` is the processor time of the parameter-free model, whose error is `ours`.
    """

    name: str
    n_samples: int
    n_features: int
    n_classes: int
    ours: float
    sgd: float
    scaled_sgd: float
    seconds: float


def load_manual(return_X_y: bool = True):
    """TF-IDF values of paragraphs of Python's manual, and the chapter of each."""
    paragraphs = [
        (paragraph, chapter)
        for chapter in CHAPTERS
        for paragraph in re.split(r"\n\s*\n", topics[chapter])
        if len(paragraph.split()) > 10
    ]
    words, chapters = zip(*paragraphs, strict=True)
    return TfidfVectorizer().fit_transform(words), np.array(chapters)


STREAMS = {
    "Python's manual": load_manual,
    "WDBC": load_breast_cancer,
    "Wine": load_wine,
    "Diabetes": lambda return_X_y: load_diabetes(return_X_y=return_X_y, scaled=False),
}


def learn_streams(*, names: Sequence[str] = tuple(STREAMS)) -> list[StreamResult]:
    """One pass over each stream, rows in random order, with default parameters."""
    results = []
    for name in names:
        X, y = STREAMS[name](return_X_y=True)
        order = np.random.RandomState(0).permutation(len(y))
        X, y = X[order], y[order]
        numbers, text = name == "Diabetes", name == "Python's manual"
        ours, sgd = (
            (ParameterFreeRegressor(), SGDRegressor(random_state=0))
            if numbers
            else (ParameterFreeClassifier(), SGDClassifier(random_state=0))
        )
        start = time.thread_time()
        error = _error(ours, X, y, numbers)
        seconds = time.thread_time() - start
        scaled_sgd = make_online_pipeline(StandardScaler(), clone(sgd))
        sgd_error = _error(sgd, X, y, numbers)
        scaled_error = np.nan if text else _error(scaled_sgd, X, y, numbers)
        n_classes = 0 if numbers else len(np.unique(y))
        results.append(StreamResult(name, X.shape[0], X.shape[1], n_classes, error, sgd_error, scaled_error, seconds))
    return results


def _error(model, X, y: np.ndarray, numbers: bool) -> float:
    """The error of one pass, row by row: the share of wrong labels, or the mean squared error over the variance."""
    learn = model.partial_fit if numbers else partial(model.partial_fit, classes=np.unique(y))
    predictions = [y[0]]
    with np.errstate(all="ignore"):
        learn(X[:1], y[:1])
        for i in range(1, len(y)):
            predictions.append(model.predict(X[i : i + 1])[0])
            learn(X[i : i + 1], y[i : i + 1])
        return float(np.mean((predictions - y) ** 2) / np.var(y) if numbers else np.mean(predictions != y))
