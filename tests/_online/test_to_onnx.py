"""Models as graphs of ONNX: numbers of either size, and what cannot be converted."""

import sys

import numpy as np
import pytest
from exported import LABELS, RNG, OwnLoss, X, Y
from numpy.testing import assert_allclose
from raw import MirrorDescentClassifier, MirrorDescentRegressor

from onlinebregman import (
    ForwardClassifier,
    ForwardRegressor,
    ParameterFreeClassifier,
    ParameterFreeRegressor,
    PNormClassifier,
    WinnowClassifier,
)

pytest.importorskip("onnx", reason="which is an extra")
onnxruntime = pytest.importorskip("onnxruntime", reason="which is needed to run what is exported, for tests only")


def outputs(model, X, **options):
    session = onnxruntime.InferenceSession(model.to_onnx(**options).SerializeToString())
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {session.get_inputs()[0].name: X}), strict=True))


@pytest.mark.parametrize(
    "model",
    [
        ForwardRegressor(standardize=True),
        ForwardRegressor(standardize=True, random_features=30, random_state=0),
        MirrorDescentRegressor(divergence="diagonal_newton"),
        ParameterFreeRegressor(),
    ],
    ids=repr,
)
def test_numbers_in_single_precision(model):
    predictions = outputs(model.fit(X, Y), X.astype(np.float32), dtype="float32")["prediction"]
    assert predictions.dtype == np.float32
    assert_allclose(predictions, model.predict(X), atol=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_in_single_precision(n_classes):
    model = ParameterFreeClassifier().fit(X, LABELS % n_classes)
    p = outputs(model, X.astype(np.float32), dtype="float32")["probabilities"]
    assert_allclose(p, model.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "classes", [[0, 7], [-1.0, 2.0**24 + 1], np.array([-1.0, 2.0], np.float32), [False, True]], ids=str
)
def test_labels_keep_their_type(classes, dtype):
    model = WinnowClassifier().fit(X, np.array(classes)[LABELS % 2])
    label = outputs(model, X.astype(dtype), dtype=dtype)["label"]
    assert label.dtype == model.classes_.dtype and (label == model.predict(X)).all()


def test_small_probabilities_keep_their_digits():
    """The score of each class is far below 0, so that its share depends on digits that 1 - (1 - p) does not have."""
    model = PNormClassifier(fit_intercept=False).fit(X, LABELS)
    far = 50.0 * X[(model.decision_function(50.0 * X) < -40.0).all(axis=1)]
    assert len(far)
    assert_allclose(outputs(model, far)["probabilities"], model.predict_proba(far), rtol=1e-9)
    regressor = MirrorDescentRegressor(loss="log_loss").fit(X, LABELS / 2)
    assert_allclose(outputs(regressor, 50.0 * X)["prediction"], regressor.predict(50.0 * X), rtol=1e-9)


def test_mixtures_without_combinations_and_with_calibrated_members():
    members = [MirrorDescentClassifier(loss="hinge"), ForwardClassifier()]
    for options in ({"stacking": False}, {"members": members}):
        for y in (LABELS, LABELS % 2):
            model = ParameterFreeClassifier(**options).fit(X, y)
            assert_allclose(outputs(model, 2 * X)["probabilities"], model.predict_proba(2 * X), rtol=1e-9, atol=1e-12)
    for options in ({"stacking": False}, {"loss": "poisson"}):
        model = ParameterFreeRegressor(**options).fit(X, np.exp(Y / 5))
        assert_allclose(outputs(model, X)["prediction"], model.predict(X), rtol=1e-9)


@pytest.mark.parametrize("late", [False, True])  # whether values are only missing in rows to predict
@pytest.mark.parametrize("options", [{}, {"thresholds": False}, {"random_features": 0}], ids=str)
def test_missing_values(options, late):
    gaps = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
    gaps[0] = np.nan
    rows = X if late else gaps
    far = np.r_[gaps, 100.0 * gaps]
    for n_classes in (2, 3):
        model = ParameterFreeClassifier(random_state=0, **options).partial_fit(
            rows, LABELS % n_classes, np.arange(n_classes)
        )
        found = outputs(model, far)
        assert_allclose(found["probabilities"], model.predict_proba(far), rtol=1e-9, atol=1e-12)
        assert (found["label"] == model.predict(far)).all()
    model = ParameterFreeRegressor(random_state=0, **options).partial_fit(rows, Y)
    assert_allclose(outputs(model, far)["prediction"], model.predict(far), rtol=1e-9, atol=1e-12)
    single = outputs(model, gaps.astype(np.float32), dtype="float32")["prediction"]
    assert_allclose(single, model.predict(gaps), atol=1e-3)


def test_missing_values_of_models_that_refuse_them_stay_nan():
    for model in (ForwardRegressor(standardize=True), MirrorDescentRegressor(standardize=True)):
        assert np.isnan(outputs(model.fit(X, Y), np.full((1, 4), np.nan))["prediction"]).all()


def test_what_has_no_form():
    regressor = MirrorDescentRegressor(loss=OwnLoss(), divergence="squared_euclidean").fit(X, LABELS / 2)
    classifier = MirrorDescentClassifier(loss=OwnLoss(), divergence="squared_euclidean").fit(X, LABELS)
    for model, match in (
        (regressor, "link of OwnLoss.* has no form"),
        (classifier, "probabilities of OwnLoss.* have no form"),
        (ForwardClassifier(update="aioli").fit(X, LABELS % 2), "update='aioli'"),
    ):
        with pytest.raises(ValueError, match=match):
            model.to_onnx()
    with pytest.raises(ValueError, match="dtype must be 'float64' or 'float32'; got 'float16'"):
        ForwardRegressor().fit(X, Y).to_onnx(dtype="float16")


def test_without_onnx_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'onlinebregman\[onnx\]'"):
        ForwardRegressor().fit(X, Y).to_onnx()
