"""Part 2: a metric learned online from labels, for nearest neighbours."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..datasets import load_balance_scale
from ..metric_learning import LogDetMetricLearner

DATA_SETS = {
    "Iris": load_iris,
    "Wine": load_wine,
    "WDBC": load_breast_cancer,
    "Digits": load_digits,
    "Balance Scale": load_balance_scale,
}


@dataclass(frozen=True)
class MetricResult:
    """One data set: the test error of 5-NN on each split, without and with the learned metric.

    `fit_seconds` is the time to fit the pipeline with the metric and `n_triplets` the number of triplets learned, means
    over the splits.
    """

    name: str
    n_samples: int
    n_features: int
    n_classes: int
    plain_errors: np.ndarray
    learned_errors: np.ndarray
    fit_seconds: float
    n_triplets: float

    @property
    def triplets_per_second(self) -> float:
        """Triplets learned in a second of fitting the whole pipeline."""
        return self.n_triplets / self.fit_seconds

    @property
    def change(self) -> float:
        """Mean error with the metric minus that without."""
        return float(np.mean(self.learned_errors - self.plain_errors))

    @property
    def n_better(self) -> int:
        """Number of splits in which the metric has the smaller error."""
        return int(np.sum(self.learned_errors < self.plain_errors))

    @property
    def n_worse(self) -> int:
        """Number of splits in which the metric has the larger error."""
        return int(np.sum(self.learned_errors > self.plain_errors))


def compare_metrics(*, names: Sequence[str] = tuple(DATA_SETS), n_splits: int = 10) -> list[MetricResult]:
    """Compare 5-NN with and without a learned metric on stratified 70/30 splits, all parameters at their defaults."""
    results = []
    for name in names:
        X, y = DATA_SETS[name](return_X_y=True)
        splits = StratifiedShuffleSplit(n_splits, test_size=0.3, random_state=0).split(X, y)
        measured = []
        for seed, (train, test) in enumerate(splits):
            plain = make_pipeline(StandardScaler(), KNeighborsClassifier(5))
            learned = make_pipeline(StandardScaler(), LogDetMetricLearner(random_state=seed), KNeighborsClassifier(5))
            start = time.perf_counter()
            learned.fit(X[train], y[train])
            seconds = time.perf_counter() - start
            plain.fit(X[train], y[train])
            errors = [1.0 - model.score(X[test], y[test]) for model in (plain, learned)]
            measured.append([*errors, seconds, learned[1].n_updates_])
        plain_errors, learned_errors, seconds, n_triplets = np.array(measured).T
        results.append(
            MetricResult(
                name=name,
                n_samples=len(X),
                n_features=X.shape[1],
                n_classes=len(np.unique(y)),
                plain_errors=plain_errors,
                learned_errors=learned_errors,
                fit_seconds=float(np.mean(seconds)),
                n_triplets=float(np.mean(n_triplets)),
            )
        )
    return results
