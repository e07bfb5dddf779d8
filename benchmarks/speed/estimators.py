"""Time by commit, with asv: every public estimator, and the kernels of vectors and matrices over sizes.

    cd benchmarks && asv continuous main HEAD      # compare a commit with main
    cd benchmarks && asv run v0.2.0..main && asv publish && asv preview

`Estimators` finds all public estimators.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1] / "peers"))

from calls import BEFORE, begun, estimators, stream

from onlinebregman import (
    FrobeniusMetricLearner,
    ImplicitGDRegressor,
    LogDetMetricLearner,
    MirrorDescentRegressor,
    VonNeumannMetricLearner,
)
from onlinebregman.divergences import DIVERGENCES

ALL = {type(estimator).__name__: estimator for estimator in estimators()}
METRICS = {cls.__name__: cls for cls in (LogDetMetricLearner, FrobeniusMetricLearner, VonNeumannMetricLearner)}


class OneThread:
    def setup(self, *_):
        warnings.simplefilter("ignore")
        self.limits = threadpool_limits(1)

    def teardown(self, *_):
        self.limits.restore_original_limits()


class Estimators(OneThread):
    """100 rows of 20 features, in one block and one row a call; the model continues to learn."""

    params = list(ALL)
    param_names = ("estimator",)

    def setup(self, name):
        super().setup()
        X, y = stream(ALL[name], BEFORE + 100)
        self.model = begun(ALL[name], X, y)
        self.rows, self.targets = X[BEFORE:], None if y is None else y[BEFORE:]

    def time_block(self, name):
        self.model.partial_fit(self.rows, self.targets)

    def time_rows(self, name):
        for i in range(100):
            self.model.partial_fit(self.rows[i : i + 1], None if self.targets is None else self.targets[i : i + 1])


class Vectors(OneThread):
    """1000 rows by implicit steps on the squared loss, in every divergence."""

    params = (sorted(DIVERGENCES), ("dense, 100 features", "CSR, 50 of 10000"))
    param_names = ("divergence", "rows")

    def setup(self, divergence, rows):
        super().setup()
        rng = np.random.default_rng(0)
        if rows.startswith("dense"):
            self.X = rng.uniform(size=(1000, 100))
        else:
            self.X = sparse.random(1000, 10_000, density=0.005, format="csr", random_state=0)
        self.y = rng.uniform(size=1000)
        self.model = MirrorDescentRegressor(divergence=divergence, eta0=0.1, learning_rate="constant")
        self.model.partial_fit(self.X[:10], self.y[:10])

    def time_block(self, divergence, rows):
        self.model.partial_fit(self.X, self.y)


LAYOUTS = {
    "rows": lambda X: X,
    "columns": np.asfortranarray,
    "columns, float32": lambda X: np.asfortranarray(X, np.float32),
    "data frame": lambda X: pd.DataFrame({str(j): X[:, j].copy() for j in range(X.shape[1])}, copy=False),
}


class Layouts(OneThread):
    """50 000 rows of 64 features by implicit gradient descent, stored by rows or by columns."""

    params = list(LAYOUTS)
    param_names = ("layout",)

    def setup(self, layout):
        super().setup()
        X = np.random.default_rng(0).normal(size=(50_000, 64))
        self.X, self.y = LAYOUTS[layout](X), X[:, 0]
        self.model = ImplicitGDRegressor().partial_fit(self.X[:10], self.y[:10])

    def time_block(self, layout):
        self.model.partial_fit(self.X, self.y)

    def time_predict(self, layout):
        self.model.predict(self.X)


class Epochs(OneThread):
    """Three epochs of implicit gradient descent, shuffled or in order."""

    params = ((True, False), ((20_000, 20), (20_000, 100), (200_000, 20)))
    param_names = ("shuffle", "shape")

    def setup(self, shuffle, shape):
        super().setup()
        self.X = np.random.default_rng(0).normal(size=shape)
        self.model = ImplicitGDRegressor(max_iter=3, tol=None, shuffle=shuffle, random_state=0)

    def time_fit(self, shuffle, shape):
        self.model.fit(self.X, self.X[:, 0])


class Matrices(OneThread):
    """200 pairs of rows with targets."""

    params = (list(METRICS), (10, 50, 200))
    param_names = ("metric", "features")

    def setup(self, metric, features):
        super().setup()
        rng = np.random.default_rng(0)
        self.X, self.pairs = rng.normal(size=(400, features)), np.arange(400).reshape(200, 2)
        self.targets = rng.uniform(0.5, 2.0, size=200) * features
        self.model = METRICS[metric](random_state=0)

    def time_pairs(self, metric, features):
        self.model.partial_fit_pairs(self.X, self.pairs, self.targets)
