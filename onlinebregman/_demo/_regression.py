"""Part 2: learning rates chosen by grid search, for the three regressors and for stochastic gradient descent."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression, SGDRegressor
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from ..datasets import load_dataset
from ..linear_model import BurgRegressor, EGRegressor, ImplicitGDRegressor
from ._progress import Progress

LEARNING_RATES = ("constant", "invscaling")
UNMIXING_DATA = "samson_scene_mean"
BATCH = "least squares (batch)"


@dataclass(frozen=True)
class SearchResult:
    """The grid search of one method.

    `curve` has the best cross-validated R^2 of each value of `eta0` (-inf where every fit failed), `n_unusable` counts
    the settings that are no better than predicting the mean, or did not fit at all. `coef` are the weights of the model
    refitted with the best setting. The batch method has no settings: an empty curve.
    """

    method: str
    best_params: dict
    r2: float
    rmse: float
    rmse_std: float
    etas: tuple[float, ...]
    curve: np.ndarray
    n_settings: int
    n_unusable: int
    coef: np.ndarray
    seconds: float

    @property
    def usable(self) -> bool:
        """Whether the best setting is better than predicting the mean."""
        return self.r2 > 0


@dataclass(frozen=True)
class RegressionResult:
    """The searches on one task; `groups` names each feature's group where groups make sense."""

    task: str
    n_samples: int
    n_features: int
    n_epochs: int
    searches: list[SearchResult]
    groups: list[str] | None = None

    def __getitem__(self, method: str) -> SearchResult:
        return next(search for search in self.searches if search.method == method)


def tune_on_diabetes(progress: Progress, *, etas: Sequence[float], n_epochs: int = 50) -> RegressionResult:
    """Search on diabetes: features and target standardised, weights of any sign make sense."""
    X, y = load_diabetes(return_X_y=True)
    methods = {
        "SGDRegressor": (SGDRegressor(), {}),
        "ImplicitGDRegressor": (ImplicitGDRegressor(), {}),
        "EGRegressor (signed)": (EGRegressor(weights="signed"), {"total": [1.0, 2.0, 4.0]}),
        "BurgRegressor": (BurgRegressor(), {}),
        BATCH: (LinearRegression(), None),
    }
    with progress.part("Learning rates: diabetes", len(methods)):
        searches = _search_all(progress, methods, X, y, etas, n_epochs, standardise=True)
    return RegressionResult("diabetes", *X.shape, n_epochs, searches)


def tune_on_unmixing(progress: Progress, *, etas: Sequence[float], n_epochs: int = 200) -> RegressionResult:
    """Search on the mean spectrum of the Samson scene: a mixture of library spectra, so that weights are >= 0.

    Rows are the bands, features the library's spectra. Nothing is centred or scaled, and there is no intercept: either
    would take the meaning from the signs and the sum of the weights.
    """
    data = load_dataset(UNMIXING_DATA)
    methods = {
        "SGDRegressor": (SGDRegressor(), {}),
        "ImplicitGDRegressor": (ImplicitGDRegressor(), {}),
        "EGRegressor (simplex)": (EGRegressor(weights="simplex"), {}),
        "EGRegressor (positive)": (EGRegressor(weights="positive"), {}),
        "BurgRegressor": (BurgRegressor(), {}),
        "non-negative l. s. (batch)": (LinearRegression(positive=True), None),
    }
    with progress.part("Learning rates: unmixing", len(methods)):
        searches = _search_all(progress, methods, data.data, data.target, etas, n_epochs, standardise=False)
    groups = [name.split("_")[0] for name in data.feature_names]
    return RegressionResult("unmixing", *data.data.shape, n_epochs, searches, groups)


def _search_all(progress, methods, X, y, etas, n_epochs, *, standardise) -> list[SearchResult]:
    searches = []
    for name, (estimator, grid) in methods.items():
        estimator.set_params(fit_intercept=standardise)
        if grid is not None:
            estimator.set_params(max_iter=n_epochs, tol=None, random_state=0)
            grid = {"eta0": list(etas), "learning_rate": list(LEARNING_RATES), **grid}
        searches.append(_search(name, estimator, grid or {}, X, y, standardise))
        progress.advance(name)
    return searches


def _search(name, estimator, grid, X, y, standardise) -> SearchResult:
    """GridSearchCV over a pipeline, five folds."""
    scale = StandardScaler if standardise else FunctionTransformer
    pipeline = make_pipeline(scale(), estimator)
    prefix = f"regressor__{pipeline.steps[-1][0]}__"
    search = GridSearchCV(
        TransformedTargetRegressor(pipeline, transformer=scale()),
        {prefix + key: values for key, values in grid.items()},
        scoring=["r2", "neg_root_mean_squared_error"],
        refit="r2",
        cv=KFold(5, shuffle=True, random_state=0),
    )
    start = time.perf_counter()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # rates that blow up are counted below
        search.fit(X, y)
    seconds = time.perf_counter() - start
    scores = search.cv_results_["mean_test_r2"]
    etas = tuple(grid.get("eta0", ()))
    at_eta = np.array([params.get(prefix + "eta0", np.nan) for params in search.cv_results_["params"]])
    usable = np.where(np.isfinite(scores), scores, -np.inf)
    curve = np.array([usable[at_eta == eta].max() for eta in etas])
    best = search.best_index_
    return SearchResult(
        method=name,
        best_params={key.removeprefix(prefix): value for key, value in search.best_params_.items()},
        r2=float(scores[best]),
        rmse=float(-search.cv_results_["mean_test_neg_root_mean_squared_error"][best]),
        rmse_std=float(search.cv_results_["std_test_neg_root_mean_squared_error"][best]),
        etas=etas,
        curve=curve,
        n_settings=len(scores),
        n_unusable=int(np.sum(~(scores > 0))),
        coef=search.best_estimator_.regressor_[-1].coef_,
        seconds=seconds,
    )
