"""Every public estimator that can be converted predicts the same in scikit-learn, and in ONNX."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from exported import LABELS, OwnLoss, X, Y
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.fixes import parse_version

from onlinebregman import (
    ForwardClassifier,
    ForwardRegressor,
    ImplicitGDRegressor,
    LogDetMetricLearner,
    MetricKNeighborsClassifier,
    MetricKNeighborsRegressor,
)
from onlinebregman._online import to_sklearn
from onlinebregman.pipeline import make_online_pipeline

OUTPUTS = {"prediction": "predict", "label": "predict", "scores": "decision_function"}
OUTPUTS |= {"probabilities": "predict_proba"}


def is_exact_everywhere(estimator, onnx):
    """Whether scores of rows outside of the range of those learned are converted, too."""
    is_rescaled = estimator.get_params().get("divergence") == "diagonal_newton"
    return onnx or not (is_rescaled or type(estimator).__name__.startswith("ScaleInvariant"))


def queries(estimator, X, onnx):
    """Rows that were learned, and rows far outside of their range."""
    return np.vstack([X, 3.0 * X[::-1]]) if is_exact_everywhere(estimator, onnx) else X


def assert_same(outputs, model, X):
    """`outputs` by the names of the methods of the model."""
    assert outputs
    for name, values in outputs.items():
        expected = getattr(model, name)(X)
        assert values.shape == expected.shape, name
        if expected.dtype.kind == "f":
            assert_allclose(values, expected, rtol=1e-9, atol=1e-12, err_msg=name)
        else:
            assert_array_equal(values, expected)


def sorts(estimator):
    """Whether it predicts several quantiles, which are sorted."""
    return len(getattr(estimator.get_params().get("loss"), "parts", ())) > 1


def has_form(estimator):
    """Whether scikit-learn has such a model: neither forward predictions nor those of AIOLI are linear."""
    if getattr(estimator, "update", None) == "aioli" or getattr(estimator, "thresholds", None) or sorts(estimator):
        return False
    return not getattr(estimator, "forward", False) or estimator.loss != "squared_error"


def clips(estimator):
    """Whether values count as at most a limit, for which scikit-learn's `MaxAbsScaler` has a parameter since 1.7."""
    return bool(estimator.get_params().get("standardize")) or estimator.get_params().get("divergence") in (
        "adagrad",
        "normalized_adagrad",
        "diagonal_newton",
    )


def converts(estimator):
    known = parse_version(sklearn.__version__) >= parse_version("1.7") or not clips(estimator)
    return hasattr(estimator, "to_sklearn") and has_form(estimator) and known


def reads_sparse(estimator):
    """Whether its counterpart in scikit-learn does, too, which centres dense rows alone."""
    if hasattr(estimator, "forgetting") and (estimator._standardizes or estimator._centred):
        return False
    return converts(estimator) and get_tags(estimator).input_tags.sparse and not hasattr(estimator, "metric_learner")


def converts_to_onnx(estimator):
    improper = getattr(estimator, "update", None) == "aioli"
    return hasattr(estimator, "to_onnx") and not improper and not sorts(estimator)


def sklearn_outputs(converted, model, X):
    names = [name for name in (*OUTPUTS.values(), "transform") if hasattr(model, name) and hasattr(converted, name)]
    return {name: np.asarray(getattr(converted, name)(X)) for name in names}


@pytest.mark.only(where=converts)
def test_the_same_in_scikit_learn(estimator, rows, learn):
    X, y = rows
    model = learn(estimator, X, y)
    converted = model.to_sklearn()
    assert type(converted).__module__.startswith("sklearn.") and b"onlinebregman" not in pickle.dumps(converted)
    Z = queries(model, X, onnx=False)
    assert hasattr(converted, "predict_proba") == hasattr(model, "predict_proba")
    assert_same(sklearn_outputs(converted, model, Z), model, Z)
    assert_same(sklearn_outputs(pickle.loads(pickle.dumps(converted)), model, Z), model, Z)


@pytest.mark.only(where=reads_sparse)
def test_sparse_rows_in_scikit_learn(estimator, rows, learn):
    X, y = rows
    X = sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    model = learn(estimator, X, y)
    if not is_exact_everywhere(model, onnx=False):
        X = 0.9 * X  # a value may be larger than before after division by a deviation that is smaller now
    for Z in (X, X.toarray()):
        if not (sparse.issparse(Z) and hasattr(model, "transform")):  # the map of scikit-learn reads dense rows alone
            assert_same(sklearn_outputs(model.to_sklearn(), model, Z), model, Z)


@pytest.mark.only(where=converts)
def test_scikit_learn_models_check_the_names_of_features(estimator, rows, learn):
    X, y = rows
    frame = pd.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])])
    model = learn(estimator, frame, y)
    converted = model.to_sklearn()
    assert_same(sklearn_outputs(converted, model, frame), model, frame)
    with pytest.raises(ValueError, match="feature names"):
        getattr(converted, "predict" if hasattr(converted, "predict") else "transform")(frame[frame.columns[::-1]])


@pytest.mark.only(where=lambda estimator: hasattr(estimator, "to_sklearn") and not has_form(estimator))
def test_what_scikit_learn_cannot_predict_is_refused(estimator, rows, learn, unchanged):
    model = learn(estimator, *rows)
    with unchanged(model, match=r"forward=False|update='aioli'|no bins|a model for each"):
        model.to_sklearn()


@pytest.mark.only(where=converts_to_onnx)
@pytest.mark.parametrize("words", [False, True])
def test_the_same_in_onnx(estimator, rows, words):
    pytest.importorskip("onnx", reason="which is an extra")
    runtime = pytest.importorskip("onnxruntime", reason="which is needed to run what is exported, for tests only")
    X, y = rows
    if words:  # labels
        y = np.array(["a", "bc", "d"])[y] if is_classifier(estimator) else y
        estimator.set_params(**{"class_weight": {"bc": 2.0}} if getattr(estimator, "class_weight", None) else {})
    model = estimator.partial_fit(X, y, **{"classes": np.unique(y)} if is_classifier(estimator) else {})
    session = runtime.InferenceSession(model.to_onnx().SerializeToString())
    names = [output.name for output in session.get_outputs()]
    assert ("probabilities" in names) == hasattr(model, "predict_proba")
    Z = queries(model, X, onnx=True)
    assert_same(dict(zip([OUTPUTS[name] for name in names], session.run(None, {"X": Z}), strict=True)), model, Z)


@pytest.mark.only(where=lambda estimator: hasattr(estimator, "to_sklearn") or hasattr(estimator, "to_onnx"))
def test_only_fitted_models_are_converted(estimator):
    for name in ("to_sklearn", "to_onnx"):
        if hasattr(estimator, name):
            with pytest.raises(ValueError, match=r"not fitted|not learned"):
                getattr(clone(estimator), name)()


# --- which estimators of scikit-learn ---------------------------------------------------------------------------------


needs_clipping = pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.7"), reason="MaxAbsScaler clips since scikit-learn 1.7"
)


@needs_clipping
def test_each_becomes_the_model_that_a_user_would_choose():
    euclidean = {"divergence": "squared_euclidean"}
    assert type(ImplicitGDRegressor().fit(X, Y).to_sklearn()) is LinearRegression
    assert type(ForwardClassifier(standardize=False).fit(X, LABELS).to_sklearn()) is LogisticRegression
    hinge = MirrorDescentClassifier(loss="squared_hinge", **euclidean).partial_fit(X, LABELS, classes=range(3))
    assert repr(hinge.to_sklearn()) == repr(SGDClassifier(loss="squared_hinge"))
    poisson = ForwardRegressor(loss="poisson", standardize=False).fit(X, np.exp(Y / 5)).to_sklearn()
    assert type(poisson) is TransformedTargetRegressor and poisson.inverse_func is np.exp
    assert type(LogDetMetricLearner(random_state=0).fit(X, LABELS).to_sklearn()) is NeighborhoodComponentsAnalysis
    kinds = [type(step) for _, step in ImplicitGDRegressor(standardize=True).fit(X, Y).to_sklearn().steps]
    assert kinds == [StandardScaler, MaxAbsScaler, LinearRegression]


def test_weights_can_be_read_and_learned_further():
    model = MirrorDescentClassifier(divergence="squared_euclidean").partial_fit(X, LABELS, classes=range(3))
    converted = model.to_sklearn()
    assert_allclose(converted.coef_, model.coef_)
    assert not np.array_equal(converted.partial_fit(X, LABELS).coef_, model.coef_)


@needs_clipping
def test_several_labels_of_data_frames():
    frame, several = pd.DataFrame(X, columns=list("abcd")), np.eye(3, dtype=int)[LABELS]
    model = ForwardClassifier().fit(frame, several)
    converted = model.to_sklearn()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # about names of features
        assert (converted.predict(frame) == model.predict(frame)).all()
    assert converted.classes_.tolist() == [0, 1, 2]


@needs_clipping
def test_columns_that_were_constant_or_without_a_value():
    Z = X * [1.0, 1.0, 0.0, 0.0] + [0.0, 0.0, 0.0, 3.0]
    for model in (
        MirrorDescentRegressor(),  # clips to the largest value so far, of which the third column has none
        MirrorDescentRegressor(divergence="normalized_adagrad", standardize=True),
        ForwardRegressor(forward=False, standardize=True, random_features=8, random_state=0),
    ):
        model.partial_fit(Z, Y)
        assert_allclose(model.to_sklearn().predict(3 * X), model.predict(3 * X), rtol=1e-9)


def test_metrics_of_pipelines_and_several_metrics():
    learner = LogDetMetricLearner(random_state=0)
    names = np.array(["a", "b", "c"])[LABELS]
    for metric in (make_online_pipeline(StandardScaler(), learner), ["euclidean", learner]):
        model = MetricKNeighborsClassifier(metric_learner=metric, weights="distance").partial_fit(X, names, list("abc"))
        converted, Z = model.to_sklearn(), X + 0.1
        assert (converted.predict(Z) == model.predict(Z)).all()
        assert_allclose(converted.predict_proba(Z), model.predict_proba(Z), rtol=1e-9, atol=1e-12)
        model = MetricKNeighborsRegressor(metric_learner=metric, weights="distance").partial_fit(X, LABELS)
        assert_allclose(model.to_sklearn().predict(Z), model.predict(Z), rtol=1e-9, atol=1e-12)


def test_own_losses():
    model = MirrorDescentRegressor(loss=OwnLoss(), divergence="squared_euclidean").fit(X, LABELS / 2)
    assert_allclose(model.to_sklearn().predict(X), model.predict(X), rtol=1e-12)
    model = MirrorDescentClassifier(loss=OwnLoss(), divergence="squared_euclidean").fit(X, LABELS)
    with pytest.raises(ValueError, match="no classifier with the probabilities of OwnLoss"):
        model.to_sklearn()


def test_clipping_needs_a_recent_version(monkeypatch):
    monkeypatch.setattr(to_sklearn, "MaxAbsScaler", lambda: None)
    with pytest.raises(ValueError, match=r"version 1\.7 or later"):
        MirrorDescentRegressor().fit(X, Y).to_sklearn()
