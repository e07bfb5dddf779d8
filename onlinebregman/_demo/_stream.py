"""Part 1: one pass over a stream with nothing tuned, beside stochastic gradient descent."""

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
from ._progress import Progress

# Chapters of Python's reference manual, which comes with Python.
CHAPTERS = ("compound", "types", "string-methods", "debugger", "formatstrings", "import", "execmodel")


@dataclass(frozen=True)
class StreamResult:
    """One stream: errors of rows predicted before they are learned, a share of the rows, or of the targets' variance.

    `sgd` is stochastic gradient descent on the rows as they come, `scaled_sgd` the same behind a scaler that learns the
    stream, too; NaN on text, which is not scaled. `seconds` is the processor time that ours took.
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
    """Paragraphs of Python's manual as TF-IDF, and the chapter that each is from."""
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


def learn_streams(progress: Progress, *, names: Sequence[str] = tuple(STREAMS)) -> list[StreamResult]:
    """One pass over each, rows in a random order, all parameters at their defaults."""
    results = []
    with progress.part("Streams with nothing to tune", 3 * len(names)):
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
            progress.advance(name)
            scaled_sgd = make_online_pipeline(StandardScaler(), clone(sgd))
            sgd_error = _error(sgd, X, y, numbers)
            progress.advance(name)
            scaled_error = np.nan if text else _error(scaled_sgd, X, y, numbers)
            progress.advance(name)
            n_classes = 0 if numbers else len(np.unique(y))
            results.append(
                StreamResult(name, X.shape[0], X.shape[1], n_classes, error, sgd_error, scaled_error, seconds)
            )
    return results


def _error(model, X, y: np.ndarray, numbers: bool) -> float:
    """Of one pass, a row at a time: the share of wrong labels, or of the variance that is not explained."""
    learn = model.partial_fit if numbers else partial(model.partial_fit, classes=np.unique(y))
    said = [y[0]]
    with np.errstate(all="ignore"):
        learn(X[:1], y[:1])
        for i in range(1, len(y)):
            said.append(model.predict(X[i : i + 1])[0])
            learn(X[i : i + 1], y[i : i + 1])
        return float(np.mean((said - y) ** 2) / np.var(y) if numbers else np.mean(said != y))
