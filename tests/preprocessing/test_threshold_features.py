"""The transformer to indicators of bins: its forms of output, names, missing values, and pipelines.

The bins themselves are tested in tests/_kernels/rows/test_thresholds.py.
"""

import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from onlinebregman._kernels.learners.mapping import MapLearner
from onlinebregman._kernels.rows.thresholds import ThresholdMap
from scipy import sparse
from sklearn.preprocessing import KBinsDiscretizer

from onlinebregman import MirrorDescentRegressor, ThresholdFeatures
from onlinebregman.pipeline import make_online_pipeline

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows

COMPARE = {"<": np.less, "<=": np.less_equal, ">=": np.greater_equal, "=": np.equal}


def stream(rows=700, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=rows), rng.integers(4, size=rows), rng.exponential(size=rows)])
    X[rng.uniform(size=rows) < 0.1, 2] = np.nan
    return X


def holds(condition, row):
    """Whether a row satisfies a condition such as "1.5 <= x0 < 2"; bounds are rounded."""
    column = int(re.search(r"\bx(\d)\b", condition)[1])
    x, words = row[column], condition.split()
    if words[1] in ("missing", "unused"):
        return np.isnan(x) if words[1] == "missing" else False
    parts = [words[:3], words[2:]] if len(words) == 5 else [words]
    for left, sign, right in parts:
        left, right = (x if side == f"x{column}" else float(side) for side in (left, right))
        if not COMPARE[sign](left, right) and abs(left - right) > 2e-3 * abs(left):
            return False
    return True


def test_names_say_what_an_indicator_means():
    X = stream()
    features = ThresholdFeatures().fit(X)
    names = features.get_feature_names_out()
    assert len(names) == len(set(names)) == 3 * 85 + 3 * (7**2 + 13**2)
    indicators = features.transform(X)
    for i in range(0, 700, 7):
        for name in names[indicators[i].indices]:
            conditions = re.fullmatch(r"(.*) \((?:6|12|64)\)", name)[1]
            assert all(holds(condition, X[i]) for condition in conditions.split(", ")), (name, X[i])
    assert {"x1 = 2 (6)", "x1 unused 5 (6)", "x2 missing (64)", "x1 = 0, x2 missing (12)"} <= set(names)


def test_names_of_columns_are_those_of_the_frame():
    frame = pd.DataFrame(stream(), columns=["heat", "hour", "wind"])
    names = ThresholdFeatures(n_pairs=0).fit(frame).get_feature_names_out()
    assert [name.split()[0] for name in names[[84, 169, 254]]] == ["heat", "hour", "wind"]
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        ThresholdFeatures(n_pairs=0).fit(frame).get_feature_names_out(["a", "b", "c"])


def test_names_of_near_values_differ():
    X = (1e6 + np.arange(1000) / 256)[np.random.default_rng(0).permutation(1000), None]
    assert len(set(ThresholdFeatures().fit(X).get_feature_names_out())) == 85
    assert len(ThresholdFeatures().fit(X[:30]).get_feature_names_out()) == 85


def test_arrays_frames_and_sparse_matrices_have_the_same_numbers():
    X = stream()
    sparse_rows, dense = (ThresholdFeatures(sparse_output=kind).fit_transform(X) for kind in (True, False))
    assert sparse.issparse(sparse_rows) and sparse_rows.format == "csr" and sparse_rows.has_canonical_format
    assert_array_equal(sparse_rows.toarray(), dense)
    assert_array_equal(dense.sum(axis=1), 3 * 3 + 2 * 3)
    frame = ThresholdFeatures(sparse_output=False).set_output(transform="pandas").fit_transform(X)
    assert_array_equal(frame.to_numpy(), dense)
    assert frame.columns.is_unique
    with pytest.raises(ValueError, match="outputs a scipy sparse matrix"):
        ThresholdFeatures().set_output(transform="pandas").fit_transform(X)


def test_it_is_the_map_that_models_learn():
    X = stream()
    features = ThresholdFeatures(n_pairs=2, random_state=1).fit(X)
    assert features.pairs_.shape == (2, 2) and not features.pairs_.flags.writeable
    own = ThresholdMap(3, features.pairs_, allow_nan=True)
    MapLearner(own.n_outputs, {"row_map": own}).learn(X)
    assert_array_equal(features.transform(X).indices.reshape(700, -1), own.transform(X))
    assert ThresholdFeatures(n_pairs=0).fit(X).pairs_.shape == (0, 2)


def test_missing_values_are_nan_in_dense_rows():
    X = stream()
    features = ThresholdFeatures().fit(X)
    before = features.transform(X)
    for wrong, message in (
        (np.inf, "row 0, column 1.*Give NaN for missing values"),
        ("a", "Column 1 must hold numbers; got 'a' in row 0"),
    ):
        bad = X[:2].astype(object)
        bad[0, 1] = wrong
        for call in (features.partial_fit, features.fit, features.transform):
            with pytest.raises(ValueError, match=message):
                call(bad)
    with pytest.raises(ValueError, match="contains NaN"):
        features.partial_fit(sparse.csr_array(X))
    assert (features.transform(X) != before).nnz == 0


def test_a_pipeline_learns_thresholds_that_no_line_finds():
    """As the model with `thresholds` does; equal bins of the first rows are no better."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3)) * [1.0, 1e-3, 1e6]
    y = np.where(X[:, 0] > 0.3, np.where(X[:, 1] > 0, 1.0, -2.0), 4.0) + 0.1 * rng.normal(size=3000)
    linear = MirrorDescentRegressor(divergence="diagonal_newton")
    model = make_online_pipeline(ThresholdFeatures(), linear)
    for start in range(0, 2000, 50):
        model.partial_fit(X[start : start + 50], y[start : start + 50])
    method = (
        {"quantile_method": "averaged_inverted_cdf"} if "quantile_method" in KBinsDiscretizer().get_params() else {}
    )
    kbins = KBinsDiscretizer(64, **method).fit(X[:200])  # without it, newer versions of scikit-learn warn
    fixed = MirrorDescentRegressor(divergence="diagonal_newton").partial_fit(kbins.transform(X[:2000]), y[:2000])
    inside = MirrorDescentRegressor(divergence="diagonal_newton", thresholds="pairwise").partial_fit(X[:2000], y[:2000])
    assert model.score(X[2000:], y[2000:]) > 0.96
    assert inside.score(X[2000:], y[2000:]) > 0.96
    assert fixed.score(kbins.transform(X[2000:]), y[2000:]) < 0.9
