"""Errors of meta-estimators for objects that are not estimators, and models whose parameters were deleted."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.utils import get_tags

from onlinebregman import (
    BayesMixture,
    DefiniteBoostMetricLearner,
    DensityMixture,
    ExpertMixtureClassifier,
    ExpertMixtureRegressor,
    ForwardRegressor,
    ImplicitGDRegressor,
    LearningRateMixture,
    LearningRatePath,
    LogDetMetricLearner,
    MetricKNeighborsClassifier,
    MirrorDescentClassifier,
    OnlineGaussian,
    ParameterFreeRegressor,
    ThresholdFeatures,
)
from onlinebregman.pipeline import OnlinePipeline

X = np.random.default_rng(0).normal(size=(20, 3))
Y = X @ [1.0, 2.0, 3.0]
LABELS = (Y > 0).astype(int)


def refused(unchanged, model, message, y=Y, **classes):
    for method in (model.fit, lambda X, y: model.partial_fit(X, y, **classes)):
        with unchanged(model, message):
            method(X, y)


@pytest.mark.parametrize("cls", [LearningRatePath, LearningRateMixture])
@pytest.mark.parametrize("wrong", ["zzz", 3, ImplicitGDRegressor, Ridge()])
def test_learning_rates_of_what_is_no_model(cls, wrong, unchanged):
    model = cls(wrong)
    refused(unchanged, model, r"The 'estimator' parameter of \w+ must be an instance of .*OnlineLinear")
    assert get_tags(model).input_tags.sparse
    assert not hasattr(model, "predict_proba")
    assert model._repr_html_()
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("cls", [LearningRatePath, LearningRateMixture])
def test_what_is_learned_does_not_depend_on_a_parameter_set_after_learning_began(cls, unchanged):
    model = cls(ImplicitGDRegressor()).fit(X, Y)
    expected = model.predict(X)
    model.set_params(estimator="zzz")
    assert model.predict(X).tobytes() == expected.tobytes()
    with unchanged(model, "The 'estimator' parameter"):
        model.partial_fit(X, Y)
    path = (
        LearningRatePath(MirrorDescentClassifier(divergence="squared_euclidean"))
        .fit(X, LABELS)
        .set_params(estimator=None)
    )
    assert path.predict_proba(X).shape == (20, 2)


@pytest.mark.parametrize("cls", [LearningRatePath, LearningRateMixture, ParameterFreeRegressor])
def test_targets_that_are_missed_by_a_mixture_not_by_its_members(cls, unchanged):
    with unchanged(model := cls().fit(X, Y), f"This {cls.__name__} estimator requires y to be passed"):
        model.fit(X, None)


@pytest.mark.parametrize("wrong", ["zzz", 3, LogDetMetricLearner])
def test_neighbours_in_what_is_no_metric(wrong, unchanged):
    model = MetricKNeighborsClassifier(metric_learner=wrong)
    refused(unchanged, model, "The 'metric_learner' parameter .* must be an instance of", LABELS, classes=[0, 1])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("zzz", "The 'estimators' parameter of .* must be an instance of 'list'"),
        (3, "The 'estimators' parameter"),
        (ImplicitGDRegressor(), "The 'estimators' parameter"),
        ([], "non-empty list of"),
        ([("a", "zzz")], "non-empty list of"),
        ([ImplicitGDRegressor()], "non-empty list of"),
        ([(1, ImplicitGDRegressor())], "non-empty list of"),
        (
            [("a", ImplicitGDRegressor)],
            r"Expert 'a' must be .*; got the class ImplicitGDRegressor. Use ImplicitGDRegressor\(\)",
        ),
        ([("a", Ridge())], r"Expert 'a' \(Ridge\) has no partial_fit"),
    ],
)
def test_mixtures_of_what_are_no_experts(wrong, message, unchanged):
    refused(unchanged, ExpertMixtureRegressor(wrong), message)
    refused(unchanged, DensityMixture(wrong), message)
    for cls in (ExpertMixtureClassifier, BayesMixture):
        refused(unchanged, cls(wrong), message, LABELS, classes=[0, 1])
        assert get_tags(cls(wrong)).estimator_type == "classifier"


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("zzz", r"steps must be a list of tuples \(name, estimator\); got 'zzz'"),
        (3, "steps must be a list of tuples .*; got 3"),
        (None, "steps must be a list of tuples .*; got None"),
        ([ImplicitGDRegressor()], "must be a list of tuples"),
        ([(1, ImplicitGDRegressor())], "must be a list of tuples"),
        (
            [("a", ImplicitGDRegressor)],
            r"Step 'a' must be .*; got the class ImplicitGDRegressor. Use ImplicitGDRegressor\(\)",
        ),
        (
            [("s", LogDetMetricLearner), ("a", ImplicitGDRegressor())],
            "Step 's' must be .*; got the class LogDetMetricLearner",
        ),
    ],
)
def test_pipelines_of_what_are_no_steps(steps, message):
    with pytest.raises(ValueError, match=message):
        OnlinePipeline(steps).partial_fit(X, Y)


@pytest.mark.parametrize(
    "model",
    [
        ThresholdFeatures(n_pairs=True),
        ForwardRegressor(random_features=True),
        DefiniteBoostMetricLearner(n_impostors=True),
    ],
    ids=lambda model: type(model).__name__,
)
def test_true_is_no_integer(model, unchanged):
    refused(unchanged, model, "parameter of .* must be an int in the range .* Got True instead", LABELS)


@pytest.mark.parametrize(
    "model",
    [ForwardRegressor(alpha=10**400), LogDetMetricLearner(eta0=10**400), OnlineGaussian(prior_weight=10**400)],
    ids=lambda model: type(model).__name__,
)
def test_integers_beyond_all_floats_are_no_parameters(model, unchanged):
    refused(unchanged, model, "parameter of .* must be a float in the range .* Got 1000", LABELS)


def test_a_parameter_that_is_gone_is_missed_by_its_name():
    model = ForwardRegressor().fit(X, Y)
    expected = model.predict(X)
    del model.forward
    for method in (model.predict, lambda X: model.partial_fit(X, Y)):
        with pytest.raises(AttributeError, match="has no attribute 'forward'"):
            method(X)
    model.forward = True
    assert model.predict(X).tobytes() == expected.tobytes()
    assert isinstance(model, BaseEstimator)
