"""PNormRegressor and PNormClassifier: the choice of p, and what they equal. Their steps: `test_reference.py`."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from sklearn.base import clone

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


@pytest.mark.parametrize("bad", [1.9, 1, 0.0, -3.0, np.nan, np.inf, "large", None, [2.0]], ids=repr)
@pytest.mark.parametrize("model", [PNormRegressor(), PNormClassifier()], ids=repr)
def test_a_p_that_cannot_be_is_refused(model, bad, unchanged):
    X, y = np.eye(3), np.array([0, 1, 0])
    with unchanged(model := clone(model).set_params(p=bad), r"'p' parameter|p = inf"):
        model.fit(X, y)


def test_the_named_estimators_are_general_ones():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 8)), rng.normal(size=60)
    for p, divergence in [("auto", "p_norm"), (3.0, PNorm(3.0))]:
        named, general = PNormRegressor(p=p, eta0=0.2), MirrorDescentRegressor(divergence=divergence, eta0=0.2)
        for model in (named, general):
            model.set_params(random_state=0, max_iter=3, tol=None).fit(X, y)
        assert_array_equal(named.coef_, general.coef_)
        assert named.loss_curve_ == general.loss_curve_
        labels = rng.integers(3, size=60)
        for loss in ("log_loss", "hinge"):
            named = PNormClassifier(p=p, loss=loss, random_state=0, max_iter=3, tol=None).fit(X, labels)
            general = MirrorDescentClassifier(
                divergence=divergence, loss=loss, random_state=0, max_iter=3, tol=None
            ).fit(X, labels)
            assert_array_equal(named.coef_, general.coef_)


# --- what it is good for ----------------------------------------------------------------------------------------------
