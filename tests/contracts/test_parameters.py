"""Contracts of parameters: which may change in mid-stream, and that nothing else changes a model."""

import copy
import inspect
import pickle
from numbers import Integral

import numpy as np
import pytest
from configurations import public_estimators
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.utils import get_tags
from sklearn.utils._param_validation import Interval, StrOptions

import onlinebregman
from onlinebregman import (
    BayesMixture,
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
    MirrorDescentRegressor,
    ParameterFreeRegressor,
    PNormRegressor,
)
from onlinebregman._online.estimator import OF_FIT
from onlinebregman.constraints import L2Ball
from onlinebregman.losses import HuberLoss
from onlinebregman.penalties import L1
from onlinebregman.pipeline import OnlinePipeline

WITH_VARIANTS = False

# Values of parameters whose rules do not list any
OTHERS = {
    "bounds": (0.5, 2.0),
    "categorical_features": [0],
    "class_weight": {1: 5.0},
    "constraint": L2Ball(0.7),
    "data_bounds": {"y": (-50.0, 50.0)},
    "domain": np.eye(4),
    "estimator": PNormRegressor(),
    "estimators": [("p_norm", PNormRegressor())],
    "eta0s": [0.1, 0.2],
    "features": LogDetMetricLearner(),
    "init": 0.25,
    "members": [PNormRegressor()],
    "metric_learner": [LogDetMetricLearner(eta0=0.25)],
    "penalty": L1(0.25),
    "preprocessor": np.eye(4),
    "prior": np.full(4, 0.25),
    "prior_mean": 0.25,
    "verbose": 0,
}
# Values outside of the intervals of parameters, or of other types
BREAKING = {
    "alpha": [-0.1, np.nan, 10**400],
    "eta0": [0, 0.0, -1.0, np.nan, "0.1", 10**400],
    "forgetting": [0.0, 1.5],
    "history": [-1],
    "horizon": [0],
    "max_iter": [0],
    "memory_size": [0, 2**70],
    "n_impostors": [True],
    "n_jobs": [0, 1.5, "all"],
    "n_neighbors": [0],
    "n_pairs": [True],
    "p": [1.9, 1, -3.0, np.nan, None, [2.0]],
    "pairs_per_row": [2**70],
    "prior_weight": [10**400],
    "radius": [0.0],
    "random_features": [True],
    "share": [1.0, -0.1],
    "sum_bound": [0, -1.0, np.nan, np.inf, "1"],
    "signed": ["yes"],
    "tol": [-1.0],
    "total": [0.0, -1.0, np.nan, "1"],
    "trace": [0.0, -1.0, "one"],
    "track_regret": ["yes"],
    "upper_bound": [0, -1.0, np.nan, "1"],
    "variance": [0.0],
    "window_size": [0, 2.5],
}
# On what the next row changes: what `fit`, predictions and other threads read, or what depends on other parameters
NO_EFFECT = {*OF_FIT, "algorithm", "early_stopping", "handle_new_features", "handle_unknown", "intercept_scaling"}
NO_EFFECT |= {"l1_ratio", "n_components", "n_jobs", "n_neighbors", "preprocessor", "solver", "sparse_output", "weights"}
NAMES = sorted({name for cls in public_estimators() for name in cls._get_param_names()})


def another(estimator, name):
    """A valid value of a parameter other than its own."""
    value = getattr(estimator, name)
    if name == "init" and estimator._parameter_constraints[name] == ["array-like", None]:  # of a kernel
        return np.eye(6) / 6
    if name in OTHERS:
        return OTHERS[name]
    for rule in estimator._parameter_constraints[name]:
        options = []
        if isinstance(rule, StrOptions):
            options = sorted(rule.options)
        elif isinstance(rule, str) and rule == "boolean":
            options = [not value]
        elif isinstance(rule, Interval):
            options = [number for number in (3, 2) if rule.type is Integral] or [0.25, 3.0]
            options = [number for number in options if rule.is_satisfied_by(number)]
        for option in options:
            if option != value:
                return option
    raise NotImplementedError(f"give another value of {name} in OTHERS")


def kept_parameters(estimator):
    """Names of the parameters that are read when learning starts."""
    changing = getattr(estimator, "_read_at_each_call", estimator.get_params())
    return [name for name in estimator.get_params(deep=False) if name not in (*changing, *OF_FIT)]


@pytest.mark.parametrize("start", [lambda model: model, copy.copy, lambda model: pickle.loads(pickle.dumps(model))])
def test_what_is_read_when_learning_starts_cannot_change_in_mid_stream(
    estimator, rows, learn, learned, unchanged, start
):
    X, y = rows
    model = start(learn(clone(estimator), X[:20], y[:20]))
    whole = learned(learn(learn(clone(estimator), X[:20], y[:20]), X[20:], y[20:]))
    for name in kept_parameters(estimator):
        before, value = getattr(model, name), another(estimator, name)
        model.set_params(**{name: value})
        with unchanged(model, rf"(?s){name}=.* cannot take effect in mid-stream: .* with {name}=.*Set it back, or"):
            learn(model, X[20:], y[20:])
        model.set_params(**{name: before})
    assert learned(learn(model, X[20:], y[20:])) == whole


def test_fit_begins_anew_with_other_parameters(estimator, rows):
    X, y = rows
    for name in kept_parameters(estimator):
        if name in OTHERS or name == "strategy":  # not for all rows, or only together with others
            continue
        model = clone(estimator).fit(X, y).set_params(**{name: another(estimator, name)})
        try:
            clone(model).fit(X, y)
        except ValueError:  # nor are these
            continue
        model.fit(X, y)


def test_the_very_next_row_takes_up_other_parameters_on_every_path(estimator, rows, learn, learned):
    X, y = rows
    for name in set(estimator.get_params(deep=False)) - {*kept_parameters(estimator), "penalty", "random_state"}:
        fast, slow, same = (learn(learn(clone(estimator), X[:10], y[:10]), X[10:20], y[10:20]) for _ in range(3))
        for model in (fast, slow):
            model.set_params(**{name: another(estimator, name)})
        for part in (slice(20, 21), slice(21, None)):
            try:
                slow.partial_fit(X[part].tolist(), y[part].tolist())
            except ValueError as error:  # a value that does not suit the others
                assert "mid-stream" not in str(error)
                break
            fast.partial_fit(X[part], y[part])
            same.partial_fit(X[part], y[part])
        assert learned(fast) == learned(slow)
        assert learned(fast) != learned(same) or name in NO_EFFECT


def test_values_that_break_a_rule_are_refused_by_name_first_and_in_mid_stream(estimator, rows, learn, unchanged):
    X, y = rows
    stream = learn(clone(estimator), X, y)
    for name, rules in type(estimator)._parameter_constraints.items():
        breaking = [*BREAKING.get(name, ())]
        if any(isinstance(rule, StrOptions) for rule in rules):
            breaking += ["no such option", 17.5j]
        if any(isinstance(rule, Interval) for rule in rules) and None not in rules:
            breaking.append(None)
        for bad in breaking:
            said = f"'{name}' parameter of {type(estimator).__name__} must be"
            fresh = clone(estimator).set_params(**{name: bad})
            for method in (fresh.fit, lambda X, y, fresh=fresh: learn(fresh, X, y)):
                with unchanged(fresh, said):
                    method(X, y)
            good = getattr(stream, name)
            stream.set_params(**{name: bad})
            for rows_now in (X, X.tolist()) if name not in OF_FIT else ():
                with unchanged(stream, said):
                    stream.partial_fit(rows_now, y)
            with unchanged(stream, said):
                stream.fit(X, y)
            learn(stream.set_params(**{name: good}), X, y)


def test_nothing_but_parameters_changes_a_model(estimator, rows, learn, learned, output):
    X, y = rows
    own = set(estimator.get_params(deep=False))
    for name in dir(type(estimator)):
        value = inspect.getattr_static(type(estimator), name)
        assert name.startswith("_") or name in own or callable(value) or hasattr(value, "__get__"), name
    plain, marked = clone(estimator), clone(estimator)
    for name in NAMES:
        if name not in own and not isinstance(getattr(type(marked), name, None), property):
            assert not hasattr(type(marked), name)
            for value in ("explicit", 7.0) if name != "estimators" else ():
                setattr(marked, name, value)
    for model in (plain, marked):
        learn(learn(model, X[:20], y[:20]), X[20:], y[20:])
    assert learned(marked, without=NAMES) == learned(plain)
    assert output(marked, X).keys() == output(plain, X).keys()
    for name, values in output(marked, X).items():
        assert values.tobytes() == output(plain, X)[name].tobytes()
    if "max_iter" in own:
        plain, marked = (model.set_params(max_iter=2, tol=estimator.tol and 1e3) for model in (plain, marked))
    assert learned(marked.fit(X, y), without=NAMES) == learned(plain.fit(X, y))


@pytest.mark.parametrize(
    ("model", "change"),
    [
        (LearningRatePath(ImplicitGDRegressor()), lambda model: model.set_params(estimator__update="explicit")),
        (LearningRatePath(ImplicitGDRegressor()), lambda model: setattr(model.estimator, "init", 1.0)),
        (ParameterFreeRegressor(members=[ImplicitGDRegressor()]), lambda model: model.members.append(PNormRegressor())),
        (
            ParameterFreeRegressor(members=[ImplicitGDRegressor()]),
            lambda model: setattr(model.members[0], "average", True),
        ),
        (ExpertMixtureRegressor([("a", ImplicitGDRegressor())]), lambda model: model.set_params(a__eta0=0.125)),
        (ExpertMixtureRegressor([("a", ImplicitGDRegressor())]), lambda model: model.set_params(a=PNormRegressor())),
    ],
)
def test_components_cannot_change_in_mid_stream(model, change, unchanged):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9, 3)), rng.normal(size=9)
    model = clone(model).partial_fit(X, y).partial_fit(X[:1], y[:1])
    change(model)
    for each in (model, pickle.loads(pickle.dumps(model))):
        with unchanged(each, "cannot take effect in mid-stream"):
            each.partial_fit(X[:1], y[:1])


def test_members_of_mixtures_have_the_parameters_with_which_they_started(unchanged):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9, 3)), rng.normal(size=9)
    path = LearningRatePath(MirrorDescentRegressor()).fit(X, y)
    member = path.best_estimator_.set_params(loss=HuberLoss())
    with unchanged(member, r"loss=HuberLoss\(.*mid-stream: this MirrorDescentRegressor .*loss='squared_error'"):
        member.partial_fit(X, y)


def test_a_warm_start_does_not_change_them_either(unchanged):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9, 3)), rng.normal(size=9)
    model = MirrorDescentRegressor(warm_start=True, tol=None, max_iter=2).fit(X, y).set_params(loss="huber", max_iter=3)
    with unchanged(model, "learn anew by fit with warm_start=False"):
        model.fit(X, y)
    assert model.set_params(warm_start=False).fit(X, y).n_iter_ == 3


def test_settings_of_base_classes_are_those_of_the_parameters(estimator):
    for name in estimator.get_params(deep=False):
        setting = {"loss": "_loss_parameter", "standardize": "_standardizes"}.get(name, f"_{name}")
        value = inspect.getattr_static(type(estimator), setting, property())
        assert callable(value) or isinstance(value, property), f"{setting} is {value!r}, whatever {name} is"


def test_the_third_argument_of_partial_fit_is_that_of_scikit_learn(estimator):
    kinds = inspect.Parameter
    given = inspect.signature(estimator.partial_fit).parameters.values()
    by_place = [each.name for each in given if each.kind is kinds.POSITIONAL_OR_KEYWORD][2:]
    if is_classifier(estimator) and by_place:
        assert by_place in (["classes", "sample_weight"], ["classes"])
    else:
        assert by_place in (["sample_weight"], [])


def test_modules_are_there_and_nothing_leaks():
    assert onlinebregman.streams.fit_stream and onlinebregman.persistence.save_model
    assert not hasattr(onlinebregman, "version") and "streams" in dir(onlinebregman)


def test_the_message_for_missing_classes_names_both_remedies():
    with pytest.raises(ValueError, match="give all class labels, or set handle_unknown='add'"):
        MirrorDescentClassifier().partial_fit(np.eye(2), [0, 1])


@pytest.mark.only(where=is_classifier)
@pytest.mark.parametrize("kind", [list, np.asarray])
def test_the_known_classes_at_every_call_change_nothing(estimator, rows, learn, learned, kind, monkeypatch):
    X, y = rows
    X, whole = np.ascontiguousarray(X), learn(learn(clone(estimator), X[:30], y[:30]), X[30:39], y[30:39])
    model, classes = learn(clone(estimator), X[:30], y[:30]), kind(np.unique(y).tolist())
    with monkeypatch.context() as patch:
        if isinstance(model, MirrorDescentClassifier):  # they need no validation
            patch.setattr(MirrorDescentClassifier, "_check", None)
        model.partial_fit(X[30:39], y[30:39], classes=classes)
    assert learned(model) == learned(whole)


# --- objects that are not estimators, and models whose parameters were deleted ----------------------------------------


X = np.random.default_rng(0).normal(size=(20, 3))
Y = X @ [1.0, 2.0, 3.0]
LABELS = (Y > 0).astype(int)


def refused(unchanged, model, message, y=Y, **classes):
    for method in (model.fit, lambda X, y: model.partial_fit(X, y, **classes)):
        with unchanged(model, message):
            method(X, y)


@pytest.mark.parametrize("cls", [LearningRatePath, LearningRateMixture])
@pytest.mark.parametrize("wrong", ["zzz", 3, ImplicitGDRegressor, Ridge(), LogDetMetricLearner()])
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
