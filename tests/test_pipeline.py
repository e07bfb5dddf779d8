"""OnlinePipeline: the single steps, undoing all of them, parameters, and scikit-learn's checks on instances."""

import copy

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import PCA, IncrementalPCA
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, Normalizer, PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from onlinebregman import ImplicitGDRegressor, LogDetMetricLearner, MirrorDescentClassifier
from onlinebregman.pipeline import OnlinePipeline, make_online_pipeline

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)) * [1.0, 5.0, 0.1, 1.0] + [0.0, 3.0, 0.0, -1.0]
Y = X @ [1.0, 0.2, 3.0, 0.0]
LABELS = np.where(X[:, 0] > 0.5 * X[:, 3], "high", "low")
FRAME = pd.DataFrame(X, columns=["a", "b", "c", "d"])


def chunks(*arrays, size=20):
    for start in range(0, len(arrays[0]), size):
        yield tuple(array[start : start + size] for array in arrays)


class Recorder(TransformerMixin, BaseEstimator):
    """A transformer that changes its state in place, and may fail afterwards."""

    def __init__(self, rng=None, fail=None):
        self.rng = rng
        self.fail = fail

    def fit(self, X, y=None):
        return self.partial_fit(X, y)

    def partial_fit(self, X, y=None, sample_weight=None):
        if not hasattr(self, "sums_"):
            self.sums_ = np.zeros(np.shape(X)[1])
        self.sums_ += np.asarray(X).sum(axis=0)
        self.y_, self.weights_ = y, sample_weight
        if self.rng is not None:
            self.rng.uniform()
        if self.fail is not None:
            raise self.fail
        return self

    def transform(self, X, scale=1.0):
        return np.asarray(X) * scale


class WithoutY(Recorder):
    """One whose `partial_fit` only takes rows."""

    def partial_fit(self, X):
        return super().partial_fit(X)


# --- one stream through all steps -------------------------------------------------------------------------------------


def test_each_step_learns_what_the_steps_before_it_make_of_a_chunk_and_of_its_labels():
    pipeline = make_online_pipeline(
        StandardScaler(), LogDetMetricLearner(random_state=0), SGDClassifier(random_state=0)
    )
    scaler, metric, classifier = (clone(step) for _, step in pipeline.steps)
    for rows, y in chunks(X, LABELS):
        assert pipeline.partial_fit(rows, y, classes=["high", "low"]) is pipeline
        scaled = scaler.partial_fit(rows).transform(rows)
        classifier.partial_fit(metric.partial_fit(scaled, y).transform(scaled), y, classes=["high", "low"])
    assert_array_equal(pipeline.predict(X), classifier.predict(metric.transform(scaler.transform(X))))
    assert pipeline.classes_.tolist() == ["high", "low"] and pipeline.n_features_in_ == 4


def test_y_and_classes_go_to_the_steps_that_take_them():
    pipeline = make_online_pipeline(WithoutY(), Recorder(), ImplicitGDRegressor())
    pipeline.partial_fit(X, Y, classes=[1, 2])  # a regressor does not accept it
    assert pipeline[0].y_ is None
    assert pipeline[1].y_ is Y
    with pytest.raises(ValueError, match="classes must be passed"):
        make_online_pipeline(StandardScaler(), SGDClassifier()).partial_fit(X, LABELS)


@pytest.mark.parametrize("nothing", ["passthrough", None])
def test_no_step_is_no_step(nothing):
    pipeline = OnlinePipeline([("none", nothing), ("scale", StandardScaler()), ("also", nothing)])
    pipeline.partial_fit(X[:20]).partial_fit(X[20:])
    if nothing == "passthrough":  # scikit-learn treats a last step None as not fitted
        assert_array_equal(pipeline.transform(X), StandardScaler().partial_fit(X[:20]).partial_fit(X[20:]).transform(X))
    assert pipeline["scale"].n_samples_seen_ == 60


def test_stateless_steps_are_told_the_features_once():
    pipeline = make_online_pipeline(
        Normalizer(), FunctionTransformer(np.square, feature_names_out="one-to-one"), StandardScaler()
    )
    pipeline.set_output(transform="pandas")
    for (rows,) in chunks(FRAME):
        pipeline.partial_fit(rows)
    expected = StandardScaler().fit(Normalizer().fit_transform(X) ** 2)
    np.testing.assert_allclose(pipeline[-1].mean_, expected.mean_, rtol=1e-12)
    assert pipeline.transform(FRAME).columns.tolist() == list("abcd")
    assert pipeline.feature_names_in_.tolist() == list("abcd")
    nameless = make_online_pipeline(Normalizer(), StandardScaler()).partial_fit(X)
    with pytest.raises(ValueError, match="X has 3 features, but Normalizer is expecting 4"):
        nameless.partial_fit(X[:, :3])


def test_a_frozen_step_stays_as_it_is(state):
    scaler = StandardScaler().fit(X[:20])
    before = state(scaler)
    pipeline = make_online_pipeline(FrozenEstimator(scaler), ImplicitGDRegressor()).partial_fit(X[20:], Y[20:])
    assert state(scaler) == before
    assert_array_equal(pipeline[1].coef_, ImplicitGDRegressor().partial_fit(scaler.transform(X[20:]), Y[20:]).coef_)
    with pytest.raises(NotFittedError):
        make_online_pipeline(FrozenEstimator(StandardScaler()), ImplicitGDRegressor()).partial_fit(X, Y)


def test_pipelines_may_be_steps():
    flat = make_online_pipeline(StandardScaler(), IncrementalPCA(2), ImplicitGDRegressor())
    nested = make_online_pipeline(make_online_pipeline(StandardScaler(), IncrementalPCA(2)), ImplicitGDRegressor())
    for rows, y in chunks(X, Y):
        flat.partial_fit(rows, y)
        nested.partial_fit(rows, y)
    assert_array_equal(flat.predict(X), nested.predict(X))


def test_names_of_features_pass_through():
    pipeline = make_online_pipeline(StandardScaler(), LogDetMetricLearner(random_state=0)).set_output(
        transform="pandas"
    )
    for rows, y in chunks(FRAME, LABELS):
        pipeline.partial_fit(rows, y)
    assert pipeline[1].feature_names_in_.tolist() == list("abcd")
    names = [f"logdetmetriclearner{i}" for i in range(4)]
    assert pipeline.get_feature_names_out().tolist() == pipeline.transform(FRAME).columns.tolist() == names
    with pytest.raises(ValueError, match="feature names should match"):
        pipeline.partial_fit(FRAME.rename(columns={"a": "z"}), LABELS)


# --- all steps or none ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "step", [PCA(), PolynomialFeatures(), make_pipeline(StandardScaler())], ids=lambda step: type(step).__name__
)
def test_a_step_that_cannot_learn_in_steps_is_named_before_any_has_moved(step, unchanged):
    pipeline = OnlinePipeline([("scale", StandardScaler()), ("odd", step), ("last", ImplicitGDRegressor())])
    with unchanged(pipeline, rf"Step 'odd' \({type(step).__name__}\) has no partial_fit.*FrozenEstimator"):
        pipeline.partial_fit(X, Y)
    with unchanged(OnlinePipeline([("last", LogisticRegression())]), r"Step 'last' \(LogisticRegression\)"):
        OnlinePipeline([("last", LogisticRegression())]).partial_fit(X, LABELS)


def test_what_is_no_pipeline_is_refused_as_by_fit():
    with pytest.raises(TypeError, match="should be transformers"):
        make_online_pipeline(GaussianNB(), SGDClassifier()).partial_fit(X, LABELS, classes=np.unique(LABELS))
    with pytest.raises(ValueError, match=r"empty|not enough values"):  # which of the two depends on scikit-learn
        OnlinePipeline([]).partial_fit(X)


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize(
    "last, y, match",
    [
        (ImplicitGDRegressor(), [*Y[:4], np.inf], r"y contains infinity \(row 4\)"),
        (MirrorDescentClassifier(divergence="squared_euclidean"), ["high"] * 4 + ["new"], "'new' at row 4"),
        (SGDClassifier(random_state=0), [["high", "low"]] * 5, "1d array"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseEstimator) else "",
)
def test_a_refused_chunk_leaves_every_step_as_it_was(last, y, match, started, state):
    good = Y if isinstance(last, ImplicitGDRegressor) else LABELS
    kwargs = {} if good is Y else {"classes": ["high", "low"]}
    pipeline = make_online_pipeline(StandardScaler(), Recorder(), Normalizer(), MinMaxScaler(), last)
    if started:
        pipeline.partial_fit(X, good, **kwargs)
    steps, reference, before = list(pipeline.steps), copy.deepcopy(pipeline), state(pipeline)
    with pytest.raises(ValueError, match=match):
        pipeline.partial_fit(1000 * X[:5], y, **kwargs)
    assert state(pipeline) == before
    assert all(one is two for (_, one), (_, two) in zip(pipeline.steps, steps, strict=True))
    pipeline.partial_fit(X, good, **kwargs)  # continues as if the failed call had not happened
    assert state(pipeline) == state(reference.partial_fit(X, good, **kwargs))


def test_a_failure_half_way_restores_what_steps_share(state):
    rng = np.random.RandomState(0)
    pipeline = make_online_pipeline(Recorder(rng=rng), Recorder(rng=rng), Recorder(rng=rng, fail=RuntimeError("no")))
    before = state(np.random.RandomState(0).get_state())
    with pytest.raises(RuntimeError, match="no"):
        pipeline.partial_fit(X)
    assert pipeline[0].rng is pipeline[1].rng is pipeline[2].rng
    assert state(pipeline[0].rng.get_state()) == before
    assert not hasattr(pipeline[0], "sums_")


# --- parameters -------------------------------------------------------------------------------------------------------


def test_weights_are_for_the_last_step_and_parameters_for_the_step_they_name():
    weights = RNG.uniform(size=60)
    pipeline = make_online_pipeline(Recorder(), StandardScaler(), ImplicitGDRegressor())
    pipeline.partial_fit(X, Y, sample_weight=weights)
    scaled = StandardScaler().fit_transform(X)
    expected = ImplicitGDRegressor().partial_fit(scaled, Y, sample_weight=weights)
    assert pipeline[0].weights_ is None
    assert_array_equal(pipeline[2].coef_, expected.coef_)
    named = clone(pipeline).partial_fit(
        X, Y, recorder__sample_weight=weights, standardscaler__sample_weight=weights, sample_weight=weights
    )
    assert named[0].weights_ is weights
    assert_array_equal(named[1].mean_, StandardScaler().partial_fit(X, sample_weight=weights).mean_)


@pytest.mark.parametrize("key", ["alpha", "nothing__alpha", "normalizer__y", "passthrough__y", "implicitgdregressor__"])
def test_parameters_of_no_step_are_refused(key, unchanged):
    pipeline = make_online_pipeline(Normalizer(), "passthrough", StandardScaler(), ImplicitGDRegressor())
    with unchanged(pipeline, f"partial_fit does not take '{key}'.*steps that learn: standardscaler, implicitgd"):
        pipeline.partial_fit(X, Y, **{key: 1})


@pytest.mark.parametrize("last", [IncrementalPCA(2), Normalizer(), "passthrough"], ids=str)
def test_weights_that_the_last_step_does_not_take_are_refused(last, unchanged):
    pipeline = make_online_pipeline(StandardScaler(), last)
    with unchanged(pipeline, f"The last step must accept sample_weight, but '{pipeline.steps[-1][0]}'.* does not"):
        pipeline.partial_fit(X, Y, sample_weight=np.ones(60))


def test_transform_input_is_refused(unchanged):
    pipeline = make_online_pipeline(StandardScaler(), ImplicitGDRegressor(), transform_input=["X_val"])
    with unchanged(pipeline, "transform_input is only for fit"):
        pipeline.partial_fit(X, Y)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_metadata_reaches_the_steps_that_request_it(routing):
    weights = RNG.uniform(size=60)
    recorder = Recorder().set_partial_fit_request(sample_weight=True).set_transform_request(scale=True)
    scaler = StandardScaler().set_partial_fit_request(sample_weight=False)
    classifier = MirrorDescentClassifier(divergence="squared_euclidean").set_partial_fit_request(
        sample_weight="importance"
    )
    pipeline = make_online_pipeline(recorder, scaler, "passthrough", classifier)
    pipeline.partial_fit(
        X, LABELS, classes=["high", "low"], sample_weight=weights, importance=weights**2, scale=2.0
    ).partial_fit(X, LABELS)
    assert_array_equal(recorder.sums_, X.sum(axis=0) + X.sum(axis=0))
    assert recorder.weights_ is None  # none in the second call
    expected_scaler = StandardScaler().partial_fit(2.0 * X)
    expected = MirrorDescentClassifier(divergence="squared_euclidean").partial_fit(
        expected_scaler.transform(2.0 * X), LABELS, classes=["high", "low"], sample_weight=weights**2
    )
    expected.partial_fit(expected_scaler.partial_fit(X).transform(X), LABELS)
    assert_array_equal(classifier.coef_, expected.coef_)


def test_metadata_that_no_step_has_asked_for_is_refused(routing, state):
    pipeline = make_online_pipeline(StandardScaler(), ImplicitGDRegressor())
    before = state(pipeline)
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        pipeline.partial_fit(X, Y, sample_weight=np.ones(60))
    with pytest.raises(TypeError, match="unexpected argument"):
        pipeline.partial_fit(X, Y, other=1)
    assert state(pipeline) == before
    nested = make_online_pipeline(make_online_pipeline(Recorder().set_partial_fit_request(sample_weight=True)))
    weights = np.ones(60)
    assert nested.partial_fit(X, sample_weight=weights)[0][0].weights_ is weights


# --- scikit-learn -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pipeline",
    [
        make_online_pipeline(StandardScaler(), GaussianNB()),
        make_online_pipeline(Normalizer(), ImplicitGDRegressor(random_state=0)),
        make_online_pipeline(StandardScaler(), LogDetMetricLearner(random_state=0)),
    ],
    ids=lambda pipeline: pipeline.steps[-1][0],
)
def test_check_estimator(pipeline):
    reason = "fits its steps in place, as scikit-learn's Pipeline does"
    expected = dict.fromkeys(["check_dont_overwrite_parameters", "check_estimators_overwrite_params"], reason)
    results = check_estimator(pipeline, expected_failed_checks=expected, on_skip=None)
    assert sum(result["status"] == "passed" for result in results) > 30
    assert {result["check_name"] for result in results if result["status"] == "xfail"} == set(expected)


@pytest.mark.parametrize("parameter", ["foo", "X", "y", "", "sample_weight__foo"])
def test_a_parameter_that_a_step_does_not_take_is_refused(parameter, unchanged):
    pipeline = make_online_pipeline(StandardScaler(), ImplicitGDRegressor())
    key = f"standardscaler__{parameter}"
    message = rf"not take '{key}'" + (
        rf": that of step 'standardscaler' \(StandardScaler\) has no parameter '{parameter}'" * (parameter != "")
    )
    for fitted in (pipeline, clone(pipeline).partial_fit(X, Y)):
        with unchanged(fitted, message):
            fitted.partial_fit(X, Y, **{key: np.ones(60)})
    outer = make_online_pipeline(Recorder(), pipeline)  # a step that accepts any parameter raises its own error
    with pytest.raises(ValueError, match=message):
        outer.partial_fit(X, Y, **{f"onlinepipeline__{key}": np.ones(60)})


def test_make_online_pipeline_names_steps_as_make_pipeline_does():
    steps = (StandardScaler(), StandardScaler(), "passthrough", GaussianNB())
    pipeline = make_online_pipeline(*steps, memory="folder", verbose=True)
    assert [name for name, _ in pipeline.steps] == [name for name, _ in make_pipeline(*steps).steps]
    assert pipeline.memory == "folder" and pipeline.verbose and pipeline.transform_input is None
    assert type(pipeline[:2]) is OnlinePipeline
