"""Types of the public API: `make test` runs mypy over this file, which is not executed.

`fit` gives the estimator that it is called on, fitted attributes are arrays or numbers, and names with fixed choices
are checked. A `type: ignore` here marks an error that mypy must report, since unused ones are errors, too.
"""

from __future__ import annotations

from typing import assert_type

import numpy as np
from scipy import sparse

from onlinebregman import (
    BurgRegressor,
    EGRegressor,
    ImplicitGDRegressor,
    LogDetMetricLearner,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    OnlineGaussian,
)
from onlinebregman.divergences import Burg, resolve_divergence
from onlinebregman.losses import HuberLoss
from onlinebregman.schedules import InverseScaling

X, y = np.eye(3), np.arange(3.0)
rows = sparse.csr_array(X)

# fit and partial_fit keep the type of the estimator; that all are annotated so is seen in test_types.py
assert_type(BurgRegressor().fit(X, y), BurgRegressor)
assert_type(EGRegressor().fit(rows, y).partial_fit([[1.0, 2.0, 3.0]], [1.0]), EGRegressor)
assert_type(ImplicitGDRegressor().fit(X, y, sample_weight=[1, 2, 3]), ImplicitGDRegressor)
assert_type(MirrorDescentClassifier().fit(X, y), MirrorDescentClassifier)
assert_type(LogDetMetricLearner().fit(X, y).partial_fit_pairs(X, [[0, 1]], [1.0]), LogDetMetricLearner)
assert_type(OnlineGaussian().fit(X), OnlineGaussian)

# results and fitted attributes
model = EGRegressor().fit(X, y)
assert_type(model.predict(X), np.ndarray)
assert_type(model.coef_, np.ndarray)
assert_type(model.theory_bound_, float)
assert_type(model.regret_bound([1.0, 0.0, 0.0], weighted=True), float | np.ndarray)
assert_type(model.regret_bound(largest_intercept=1.0), float | np.ndarray)
assert_type(MirrorDescentClassifier().fit(X, y).predict_proba(X), np.ndarray)
assert_type(LogDetMetricLearner().fit(X, y).transform(rows), np.ndarray)
assert_type(OnlineGaussian().fit(X).score_samples(X), np.ndarray)
assert_type(resolve_divergence("burg").divergence([1.0], [2.0]), float)

# names with fixed choices, or objects
EGRegressor(weights="simplex", learning_rate=InverseScaling(0.1), update="explicit")
MirrorDescentRegressor(divergence=Burg(), loss=HuberLoss(), learning_rate="theory", data_bounds={"x": 1.0})
EGRegressor(weights="simples")  # type: ignore[arg-type]
ImplicitGDRegressor(update="gradient")  # type: ignore[arg-type]
LogDetMetricLearner(learning_rate="theory")  # type: ignore[arg-type]
OnlineGaussian(strategy="backward")  # type: ignore[arg-type]
EGRegressor(eta=0.1)  # type: ignore[call-arg]
