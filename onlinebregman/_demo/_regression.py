"""Part 3: learning rates chosen by grid search, for the three regressors and for stochastic gradient descent."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_digits
from sklearn.linear_model import LinearRegression, SGDRegressor
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from ..linear_model import BurgRegressor, EGRegressor, ImplicitGDRegressor

LEARNING_RATES = ("constant", "invscaling")
N_LIBRARY = 10  # images of each digit
N_MIXED = 500
BATCH = "least squares (batch)"
NON_NEGATIVE_BATCH = "non-negative l. s. (batch)"


@dataclass(frozen=True)
class SearchResult:
    """The grid search of one method.

    `curve` is the best cross-validated R^2 for each value of `eta0` (-inf where every fit failed), `n_unusable` the
    number of settings that are not better than predicting the mean, or failed. `coef` are the weights of the model
    refitted with the best setting. The batch method has no settings and an empty curve.
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
    """The searches on one task."""

    task: str
    n_samples: int
    n_features: int
    n_epochs: int
    searches: list[SearchResult]

    def __getitem__(self, method: str) -> SearchResult:
        return next(search for search in self.searches if search.method == method)


@dataclass(frozen=True)
class SharesResult(RegressionResult):
    """A task with groups of features, where the weights of a group should sum to its share.

    `groups` is the number of each feature's group and `shares` the true share of each group.
    """

    groups: np.ndarray
    shares: np.ndarray

    def found_shares(self, search: SearchResult) -> np.ndarray:
        """The share of each group under the weights that a search found."""
        return np.bincount(self.groups, weights=search.coef)

    def misplaced(self, search: SearchResult) -> float:
        """The part of the total that is assigned to a wrong group: half the sum of absolute errors of the shares."""
        return float(np.abs(self.found_shares(search) - self.shares).sum() / 2)


def tune_on_diabetes(*, etas: Sequence[float], n_epochs: int = 50) -> RegressionResult:
    """Search on diabetes: features and target are standardised, weights have any sign."""
    X, y = load_diabetes(return_X_y=True)
    methods: dict[str, tuple[BaseEstimator, dict[str, Any] | None]] = {
        "SGDRegressor": (SGDRegressor(), {}),
        "ImplicitGDRegressor": (ImplicitGDRegressor(), {}),
        "EGRegressor (signed)": (EGRegressor(weights="signed"), {"total": [1.0, 2.0, 4.0]}),
        "BurgRegressor": (BurgRegressor(), {}),
        BATCH: (LinearRegression(), None),
    }
    searches = _search_all(methods, X, y, etas, n_epochs, standardise=True)
    return RegressionResult("diabetes", len(X), X.shape[1], n_epochs, searches)


def mixture_of_digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The mean image of 500 images of digits, a library of other images, their digits, and the shares of the digits.

    The images are those of scikit-learn, drawn at random; the shares are those of first digits by Benford's law. The
    library has ten other images of each digit.

    Returns
    -------
    library : ndarray of shape (64, 100)
        An image in each column; values from 0 to 1.
    mean : ndarray of shape (64,)
    digits : ndarray of shape (100,)
    shares : ndarray of shape (10,)
        The share of each digit among the 500 images.
    """
    images, labels = load_digits(return_X_y=True)
    first_digits = np.log10(1 + 1 / np.arange(1, 10))
    counts = [0, *np.round(N_MIXED * first_digits).astype(int)]
    order = np.random.RandomState(0).permutation(len(labels))
    of_digit = [order[labels[order] == digit] for digit in range(10)]
    library = np.concatenate([rows[:N_LIBRARY] for rows in of_digit])
    mixture = np.concatenate([rows[N_LIBRARY:][:count] for rows, count in zip(of_digit, counts, strict=True)])
    shares = np.bincount(labels[mixture], minlength=10) / len(mixture)
    return images[library].T / 16, images[mixture].mean(axis=0) / 16, labels[library], shares


def tune_on_digits(*, etas: Sequence[float], n_epochs: int = 200) -> SharesResult:
    """Search on the mean image, as a mixture of the library's images, so that weights are >= 0.

    Rows are the pixels, features the images of the library; the weights of a digit's images sum to its share. Nothing
    is centred or scaled, and there is no intercept, as the signs and the sum of the weights would lose their meaning.
    """
    X, y, digits, shares = mixture_of_digits()
    methods: dict[str, tuple[BaseEstimator, dict[str, Any] | None]] = {
        "SGDRegressor": (SGDRegressor(), {}),
        "ImplicitGDRegressor": (ImplicitGDRegressor(), {}),
        "EGRegressor (simplex)": (EGRegressor(weights="simplex"), {}),
        "EGRegressor (positive)": (EGRegressor(weights="positive"), {}),
        "BurgRegressor": (BurgRegressor(), {}),
        NON_NEGATIVE_BATCH: (LinearRegression(positive=True), None),
    }
    searches = _search_all(methods, X, y, etas, n_epochs, standardise=False)
    return SharesResult("a mixture of digits", len(X), X.shape[1], n_epochs, searches, digits, shares)


def _search_all(methods, X, y, etas, n_epochs, *, standardise) -> list[SearchResult]:
    searches = []
    for name, (estimator, grid) in methods.items():
        estimator.set_params(fit_intercept=standardise)
        if grid is not None:
            estimator.set_params(max_iter=n_epochs, tol=None, random_state=0)
            grid = {"eta0": list(etas), "learning_rate": list(LEARNING_RATES), **grid}
        searches.append(_search(name, estimator, grid or {}, X, y, standardise))
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
        warnings.simplefilter("ignore")  # rates that diverge are counted below
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
