"""PNormRegressor and PNormClassifier: the choice of p, and what they equal. Their steps: `test_reference.py`."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from onlinebregman import PNormClassifier, PNormRegressor
from onlinebregman.divergences import PNorm


@pytest.mark.parametrize("n", [1, 2, 3, 50])
def test_the_automatic_p_is_twice_the_logarithm_of_the_number_of_features(n):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, n)), rng.normal(size=20)
    p = max(2.0, 2 * np.log(n))
    automatic, given_p = PNormRegressor().partial_fit(X, y), PNormRegressor(p=p).partial_fit(X, y)
    assert automatic.divergence_ == PNorm(p)
    assert_array_equal(automatic.coef_, given_p.coef_)
    classifier = PNormClassifier().partial_fit(X, (y > 0).astype(int), classes=[0, 1])
    assert classifier.divergence_ == PNorm(p)


def test_p_is_read_when_learning_starts(unchanged):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 4)), rng.normal(size=20)
    model = PNormRegressor(p=3.0)
    assert model.divergence_ == PNorm(3.0)
    assert not hasattr(PNormRegressor(), "divergence_")  # p depends on the number of features
    with unchanged(model.partial_fit(X, y).set_params(p=5.0), r"p=5\.0 cannot take effect in mid-stream"):
        model.partial_fit(X, y)
    assert model.divergence_ == PNorm(3.0)
    assert model.fit(X, y).divergence_ == PNorm(5.0)
