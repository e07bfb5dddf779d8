"""Labels that come late: rows are predicted at their moments, and learned when their labels come."""

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from onlinebregman import ForwardRegressor, ImplicitGDRegressor, MirrorDescentClassifier, ParameterFreeRegressor
from onlinebregman.model_selection import progressive_val_predict, progressive_val_score

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X @ [1.0, 2.0, -1.0] + RNG.normal(size=60)


def by_hand(model, delay, moments, weights=None):
    """The predictions of each row by the model that has learned all labels that came before its moment."""
    comes, learned, said = moments + delay, set(), []
    for row in range(60):
        due = [i for i in np.argsort(comes, kind="stable").tolist() if comes[i] < moments[row] and i not in learned]
        if due:
            model.partial_fit(X[due], Y[due], None if weights is None else weights[due])
            learned |= set(due)
        if learned:
            said.append(model.predict(X[row : row + 1])[0])
    return np.array(said)


@pytest.mark.parametrize("delay", [0, 7, np.arange(60) % 5, RNG.integers(0, 20, size=60)], ids=str)
@pytest.mark.parametrize("times", [None, np.sort(RNG.uniform(0, 60, size=60))], ids=["rows", "times"])
def test_late_labels_are_learned_when_they_come(delay, times):
    moments = np.arange(60) if times is None else times
    for rows in (X, sparse.csr_matrix(X), pd.DataFrame(X, columns=list("abc"))):
        found = progressive_val_predict(ImplicitGDRegressor(), rows, Y, delay=delay, times=times)
        expected = by_hand(ImplicitGDRegressor(), delay, moments)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    result = progressive_val_score(ForwardRegressor(), X, Y, delay=delay, times=times, scoring="neg_mean_squared_error")
    found = progressive_val_predict(ForwardRegressor(), X, Y, delay=delay, times=times)
    assert_array_equal(result.predictions["predict"], found)
    assert result.score == -np.mean((found - Y[-len(found) :]) ** 2) and result.estimator.t_ == 60


def test_datetimes_weights_and_labels_that_never_come():
    days = np.datetime64("2024-01-01") + np.arange(60) * np.timedelta64(1, "D")
    weights = RNG.uniform(size=60)
    expected = by_hand(ImplicitGDRegressor(), 3, np.arange(60), weights)
    delays = timedelta(days=3), np.timedelta64(3, "D"), pd.Timedelta(days=3)
    for delay, times in zip(delays, (days.astype(object), days, pd.Series(days).dt.tz_localize("UTC")), strict=True):
        found = progressive_val_predict(ImplicitGDRegressor(), X, Y, sample_weight=weights, delay=delay, times=times)
        assert_array_equal(found, expected)
    some = np.where(np.arange(60) % 2, 0.0, np.inf)
    result = progressive_val_score(ImplicitGDRegressor(), X, Y, delay=some)
    assert result.estimator.t_ == 30 and result.n_scored == 58
    unknown = np.where(np.arange(60) % 2, np.timedelta64(0, "D"), np.timedelta64("NaT", "D"))
    assert progressive_val_score(ImplicitGDRegressor(), X, Y, delay=unknown, times=days).score == result.score


def test_methods():
    y = (Y > 0).astype(int)
    p = progressive_val_predict(MirrorDescentClassifier(), X, y, method="predict_proba", delay=3, classes=[0, 1])
    assert p.shape == (56, 2)
    model = ParameterFreeRegressor(random_features=0, delayed=True)
    ends = progressive_val_predict(model, X, Y, method="predict_interval", coverage=0.8, chunk_size=12)
    for i in range(0, 60, 12):
        if i:
            assert_array_equal(model.predict_interval(X[i : i + 12], 0.8), [end[i - 12 : i] for end in ends])
        model.partial_fit(X[i : i + 12], Y[i : i + 12])
    assert len(ends) == 2 and ends[0].shape == (48,) and (ends[0] <= ends[1]).all()


def test_errors():
    for wrong in (
        {"delay": -1},
        {"delay": [1, 2]},
        {"delay": timedelta(days=1)},
        {"delay": 1, "times": np.arange(60).astype("M8[D]")},
        {"times": np.arange(60)},
        {"delay": 1, "times": np.arange(60)[::-1]},
    ):
        with pytest.raises(ValueError, match=r"delay|times"):
            progressive_val_score(ImplicitGDRegressor(), X, Y, **wrong)
    with pytest.raises(ValueError, match="delay and times are for arrays"):
        progressive_val_score(ImplicitGDRegressor(), [(X, Y)], delay=1)
    with pytest.raises(ValueError, match="no method"):
        progressive_val_predict(ImplicitGDRegressor(), X, Y, method="predict_proba")
