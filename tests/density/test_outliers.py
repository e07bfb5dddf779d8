"""Densities as outlier detectors: rows are scored before they are learned, and the offset is a quantile of scores."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from onlinebregman._kernels.learners.outliers import ScoreQuantile
from sklearn.preprocessing import StandardScaler

from onlinebregman import DensityMixture, DensityOutlierDetector, ImplicitGDRegressor, MaxEntDensity, OnlineGaussian
from onlinebregman.density.outliers import UNSCORED

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 3)) * [1.0, 100.0, 0.01]


def test_scores_are_those_of_the_density_before_each_row():
    density, scores = OnlineGaussian(prior_weight=1.0), []
    model = DensityOutlierDetector(OnlineGaussian(prior_weight=1.0))
    for i, x in enumerate(X[:100, np.newaxis]):
        scores += [density.score_samples(x)[0]] if i >= UNSCORED else []
        if i >= 2:  # of the first two only the scale is learned
            density.partial_fit(x)
        model.partial_fit(x)
    assert (model.score_samples(X) == density.score_samples(X)).all()
    assert min(scores) <= model.offset_ <= np.median(scores)
    assert (model.decision_function(X) == model.score_samples(X) - model.offset_).all()
    assert model.t_ == 100


@pytest.mark.parametrize("weighted", [False, True])
def test_columns_are_standardised_by_default(weighted):
    """As by scikit-learn's scaler in a pipeline, which has the weighted statistics, in columns with any start."""
    rows = X[:100] * (np.arange(100)[:, np.newaxis] >= [0, 0, 40]) + [1e3, -1e5, 7.0]
    h = np.where(np.arange(100) % 7, RNG.integers(1, 4, size=100), 0) if weighted else np.ones(100)
    model, scaler, density = DensityOutlierDetector(), StandardScaler(), OnlineGaussian(prior_weight=1.0)
    scaled = np.flatnonzero(h)[2:]  # of the first two only the scale is learned
    for i, (x, weight) in enumerate(zip(rows[:, np.newaxis], h, strict=True)):
        model.partial_fit(x, sample_weight=[weight] if weighted else None)
        if i in scaled:
            scaler.partial_fit(x, sample_weight=[weight])
            density.partial_fit(scaler.transform(x), sample_weight=[weight])
    assert_allclose(model.score_samples(rows), density.score_samples(scaler.transform(rows)), rtol=1e-9)
    assert_allclose(model.estimator_.covariance_, density.covariance_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("nu", [0.0, 1.0, 1.5, np.nan])
def test_a_fraction_is_between_none_and_all(nu):
    with pytest.raises(ValueError, match="'nu' parameter of DensityOutlierDetector must be"):
        DensityOutlierDetector(nu=nu).partial_fit(X)


def test_impossible_rows_are_outliers_once_there_is_an_offset():
    """As long as it is minus infinity, for ten rows, no score is below it."""
    model = DensityOutlierDetector(MaxEntDensity(domain=[[0.0], [1.0], [2.0]])).partial_fit(
        [[0.0], [1.0]] * (UNSCORED // 2)
    )
    assert model.score_samples([[7.0]]) == [-np.inf]
    assert model.decision_function([[0.0], [7.0]]).tolist() == [np.inf, 0.0]
    assert model.predict([[0.0], [7.0]]).tolist() == [1, 1]
    model.partial_fit(RNG.integers(0, 3, size=(50, 1)).astype(float))
    assert model.decision_function([[7.0]]) == [-np.inf]
    assert model.predict([[0.0], [7.0]]).tolist() == [1, -1]


def test_only_densities_that_learn_online():
    with pytest.raises(ValueError, match="estimator must have the method score_samples; got ImplicitGDRegressor"):
        DensityOutlierDetector(ImplicitGDRegressor()).partial_fit(X)
    unlimited = DensityMixture([("one", OnlineGaussian())])
    with pytest.raises(ValueError, match="The density cannot learn row 20: "):
        DensityOutlierDetector(unlimited).partial_fit(np.r_[X[:20], np.full((1, 3), 1e308)])


STREAMS = {
    "absurd": lambda rng, X: np.concatenate([X[:1000], X[1000:1001] * 1e9, X[1001:]]),
    "shift": lambda rng, X: X + 20.0 * (np.arange(len(X)) >= 1000)[:, np.newaxis],
    "scale": lambda rng, X: X * np.where(np.arange(len(X)) < 1000, 1.0, 50.0)[:, np.newaxis],
    "far shift": lambda rng, X: X + 100.0 * (np.arange(len(X)) >= 1000)[:, np.newaxis],
    "small scale": lambda rng, X: X * np.where(np.arange(len(X)) < 1000, 1.0, 0.001)[:, np.newaxis],
    "cauchy": lambda rng, X: rng.standard_cauchy(X.shape),
    "lognormal": lambda rng, X: np.exp(2 * X),
}


@pytest.mark.parametrize("stream, nu", [*((stream, 0.1) for stream in STREAMS), ("small scale", 0.02)])
def test_the_share_of_outliers_is_nu_on_any_stream(stream, nu):
    rng = np.random.default_rng(1)
    rows = STREAMS[stream](rng, rng.normal(size=(4000, 3)))
    model, found = DensityOutlierDetector(nu=nu).partial_fit(rows[:2000]), []
    for row in rows[2000:, np.newaxis]:
        found.append(model.predict(row)[0] == -1)
        model.partial_fit(row)
    assert abs(np.mean(found) - nu) < 0.02 * np.sqrt(nu / 0.1)


@pytest.mark.parametrize("nu", [0.02, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
def test_fit_ends_with_the_quantile_of_the_scores_of_its_rows(nu, weighted):
    """Also with absurd rows among them; it is a fraction of the weight."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1000, 3)) * np.where(rng.random(1000) < 0.01, 1000.0, 1.0)[:, np.newaxis]
    weights = rng.integers(3, size=1000) if weighted else np.ones(1000)
    found = DensityOutlierDetector(nu=nu, random_state=0).fit(rows, sample_weight=weights).predict(rows) == -1
    assert nu - 0.003 < weights[found].sum() / weights.sum() <= nu


@pytest.mark.parametrize("row", [0, 1, 2, 300])
def test_an_absurd_row_does_not_spoil_the_density(row):
    absurd, clean = X[:500].copy(), X[:500]
    absurd[row] *= 1e9
    one, other = (DensityOutlierDetector().partial_fit(rows) for rows in (absurd, clean))
    assert abs(one.score_samples(clean) - other.score_samples(clean)).mean() < 0.5


def test_units_of_weights_do_not_matter():
    offsets = []
    for weight in (1.0, 8.0):
        quantile = ScoreQuantile(0.1)
        quantile.learn(X[:, :1], None, np.full(len(X), weight))
        offsets.append(quantile.offset)
    assert_allclose(*offsets)
