"""Sets of classes: of which probabilities they are made, and how often they hold the label."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from quantile_replica import Tracker
from sklearn.base import clone

from onlinebregman import LearningRateMixture, MirrorDescentClassifier, ParameterFreeClassifier, ParameterFreeRegressor
from onlinebregman.model_selection import progressive_val_predict

COVERAGES = [0.5, 0.8, 0.9, 0.95]
MEMBERS = [MirrorDescentClassifier(standardize=True), MirrorDescentClassifier(eta0=0.1, standardize=True)]


def small(**options):
    return ParameterFreeClassifier(members=MEMBERS, **options)


def labels(rng, X, n_classes=3):
    return (3 * X[:, : n_classes - 1] + rng.normal(size=(len(X), n_classes - 1)) > 0).sum(axis=1)


def shares(model, X, y):
    """How many labels are in their sets, by coverage."""
    sets = progressive_val_predict(model, X, y, method="predict_set", coverage=COVERAGES)
    return sets[np.arange(len(sets)), y[-len(sets) :]].mean(axis=0)


RATES = LearningRateMixture(MEMBERS[0], eta0s=[0.1, 1.0])
KINDS = {"stack": small(), "plain": small(stacking=False), "rates": RATES}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("drift", [False, True], ids=["steady", "drifting"])
def test_the_share_of_labels_in_their_sets_is_the_coverage(kind, drift):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    y = labels(rng, X)
    if drift:
        y[2000:] = (y[2000:] + 1) % 3
    assert shares(KINDS[kind], X, y) == pytest.approx(COVERAGES, abs=0.015)


def test_sets_hold_the_classes_that_are_probable_enough_and_are_nested():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 3))
    model = small().partial_fit(X[:500], labels(rng, X[:500]), classes=[0, 1, 2])
    sets, p = model.predict_set(X[500:], COVERAGES), model.predict_proba(X[500:])
    assert sets.shape == (100, 3, len(COVERAGES)) and sets.dtype == bool
    for k, coverage in enumerate(COVERAGES):
        assert_array_equal(sets[..., k], model.predict_set(X[500:], coverage))
        assert p[sets[..., k]].min() >= p[~sets[..., k]].max()
    assert (sets[..., :-1] <= sets[..., 1:]).all() and sets[..., -1].sum() > sets[..., 0].sum() > 0


@pytest.mark.parametrize("kind", ["stack", "plain", "rates"])
def test_the_threshold_is_that_of_the_labels_probabilities_before_their_rows_were_learned(kind):
    rng = np.random.default_rng(2)
    X, tracker, model = rng.normal(size=(200, 3)), Tracker(), clone(KINDS[kind])
    y, weights = labels(rng, X), np.tile([1.0, 0.0, 3.0, 0.1], 50)
    for i in range(200):
        if weights[i]:
            p = model.predict_proba(X[i : i + 1])[0, y[i]] if i else 1 / 3
            tracker.learn((-np.log(p)) ** 0.25)
        more = {} if i else {"classes": [0, 1, 2]}
        model = model.partial_fit(X[i : i + 1], y[i : i + 1], sample_weight=weights[i : i + 1], **more)
    surprise = (-np.log(model.predict_proba(X))) ** 0.25
    assert_array_equal(model.predict_set(X, 0.8), surprise <= tracker.radius(0.8))


def test_all_classes_until_a_row_was_predicted():
    model = small().partial_fit(np.ones((1, 2)), [0], classes=[0, 1], sample_weight=[0.0])
    assert model.predict_set(np.ones((2, 2)), 0.01).all()


def test_what_has_no_sets():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 2))
    several = small().partial_fit(X, X > 0)
    with pytest.raises(ValueError, match="MultiOutputClassifier"):
        several.predict_set(X)
    with pytest.raises(ValueError, match="coverage must be"):
        small().partial_fit(X, X[:, 0] > 0, classes=[False, True]).predict_set(X, 90)
    assert not hasattr(ParameterFreeRegressor(), "predict_set") and not hasattr(small(), "predict_interval")
