"""Bounds are for a run under constant parameters, with the same columns and classes: after a change there is none."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from raw import MirrorDescentClassifier
from sklearn.base import clone

from onlinebregman import (
    BurgRegressor,
    EGRegressor,
    ForwardRegressor,
    ImplicitGDRegressor,
    LearningRatePath,
    LogDetMetricLearner,
    MatrixBurgRegressor,
    MEGKernelLearner,
    PerceptronClassifier,
    ScaleInvariantRegressor,
    WinnowClassifier,
)
from onlinebregman._online.estimator import NoBound
from onlinebregman._online.mirror import _CONSTANT, MirrorEstimator

rng = np.random.default_rng(0)
X = np.abs(rng.normal(size=(40, 3)))
y = X @ [0.5, 0.3, 0.2]
U = np.full(3, 0.3)
KERNEL = np.eye(3) / 3

# What no bound depends on
NEUTRAL = {"track_regret", "early_stopping", "handle_new_features", "handle_unknown", "n_jobs"}
NEUTRAL |= {"n_components", "preprocessor", "penalty", "l1_ratio"}  # the last two are kept from the start on


def learners(kind=MirrorEstimator):
    for sub in kind.__subclasses__():
        yield sub
        yield from learners(sub)


@pytest.mark.parametrize("kind", sorted({k for k in learners() if "__init__" in vars(k)}, key=lambda k: k.__name__))
def test_every_parameter_of_calls_is_constant_or_neutral(kind):
    if any(hasattr(kind, name) for name in ("regret_bound", "loss_bound", "mistake_bound")):
        assert set(kind._get_param_names()) & set(kind._read_at_each_call) <= _CONSTANT | NEUTRAL


def linear(model):
    return [
        lambda: model.regret_bound(U, weighted=True),
        lambda: model.regret_bound(U),
        lambda: model.regret_bound(radius=1.0, largest_intercept=1.0),
    ]


def matrices(model):
    return [lambda: model.regret_bound(KERNEL, weighted=True), lambda: model.regret_bound()]


def mistakes(model):
    return [lambda: model.mistake_bound(X, np.ones(40, int), U)]


CONSTANT = {"learning_rate": "constant", "track_regret": True}
THEORY = {"learning_rate": "theory", "data_bounds": {"x": 5.0, "u": 1.0, "loss": 1.0}}
CASES = [  # model, its bounds, changes after which there are none
    (ImplicitGDRegressor(**CONSTANT), linear, [{"eta0": 0.1}, {"update": "explicit"}, {"fit_intercept": False}]),
    (ImplicitGDRegressor(**CONSTANT), linear, [{"learning_rate": "sqrt"}, {"average": True}, {"power_t": 1.0}]),
    (ImplicitGDRegressor(**THEORY), lambda model: [lambda: model.theory_bound_],
     [{"data_bounds": {"x": 5.0, "u": 1.0, "loss": 9.0}}, {"update": "explicit"}, {"fit_intercept": False}]),
    (BurgRegressor(update="gradient", fit_intercept=False, **CONSTANT),
     lambda model: [*linear(model)[:1], lambda: model.loss_bound(U)], [{"upper_bound": 2.0}, {"sum_bound": 9.0}]),
    (ScaleInvariantRegressor(), lambda model: [lambda: model.regret_bound(U), lambda: model.worst_case_bound(U)],
     [{"fit_intercept": False}, {"average": True}]),
    (PerceptronClassifier(), mistakes, [{"eta0": 0.1}, {"fit_intercept": False}]),
    (WinnowClassifier(), mistakes, [{"eta0": 0.03}, {"fit_intercept": False}]),
    (MEGKernelLearner(track_regret=True), lambda model: [*matrices(model), lambda: model.loss_bound(KERNEL)],
     [{"eta0": 1.0}, {"update": "explicit"}, {"scale_eta": False}, {"learning_rate": "sqrt"}]),
    (MatrixBurgRegressor(eta0=0.01, track_regret=True),
     lambda model: [*matrices(model), lambda: model.loss_bound(KERNEL)], [{"eta0": 0.001}]),
    (LogDetMetricLearner(track_regret=True), lambda model: matrices(model)[:1], [{"eta0": 0.1}, {"scale_eta": False}]),
]  # fmt: skip


def learned(model, rows=slice(None)):
    if isinstance(model, LogDetMetricLearner):
        return model.partial_fit_pairs(X, [[0, 1], [2, 3]], [0.1, 2.0])
    classifies = isinstance(model, PerceptronClassifier | WinnowClassifier)
    more = {"classes": [0, 1]} if classifies and not hasattr(model, "classes_") else {}
    return model.partial_fit(X[rows], np.ones(40, int)[rows] if classifies else y[rows], **more)


@pytest.mark.parametrize(("model", "bounds", "changes"), CASES, ids=lambda value: type(value).__name__)
def test_after_a_change_of_a_parameter_there_is_no_bound(model, bounds, changes):
    for change in changes:
        run = learned(clone(model))
        before = [bound() for bound in bounds(run)]
        name, kept = next(iter(change)), run.get_params()
        run.set_params(**change)
        for bound in bounds(run):  # it would be about parameters that no row was learned with
            with pytest.raises(NoBound, match=f"constant parameters, but {name} was changed|requires learning_rate"):
                bound()
        assert [bound() for bound in bounds(run.set_params(**kept))] == before
        learned(run.set_params(**change), slice(5)).set_params(**kept)
        again = learned(pickle.loads(pickle.dumps(copy.deepcopy(run))))
        for bound in bounds(again):
            with pytest.raises(NoBound, match=f"{name} was changed from .* after row .*; call fit, or clone"):
                bound()
        assert [bound() for bound in bounds(learned(clone(again)))] == before  # a new run


def test_neutral_parameters_and_what_changes_before_the_first_row():
    model = ImplicitGDRegressor(**CONSTANT).partial_fit(X[:1], y[:1], sample_weight=[0.0])
    model.set_params(eta0=0.1).partial_fit(X, y)
    other = clone(model).partial_fit(X, y)
    model.set_params(handle_new_features="add", warm_start=True, max_iter=3)
    assert model.regret_bound(U, weighted=True) == other.regret_bound(U, weighted=True)
    model.set_params(early_stopping=True, random_state=1)
    assert model.regret_bound(U, weighted=True) == other.regret_bound(U, weighted=True)


def test_data_bounds_that_are_changed_in_place_are_a_change():
    bounds = dict(THEORY["data_bounds"])
    model = ImplicitGDRegressor(learning_rate="theory", data_bounds=bounds).partial_fit(X, y)
    assert model.theory_bound_ > 0
    bounds["u"] = 1e-6
    with pytest.raises(NoBound, match="data_bounds was changed"):
        _ = model.theory_bound_
    assert not hasattr(model, "theory_bound_")


def test_the_theorem_is_not_about_averages():
    model = ImplicitGDRegressor(**THEORY, average=True).partial_fit(X, y)
    with pytest.raises(AttributeError, match="loss_ is that of their average; fit again with average=False"):
        _ = model.theory_bound_


def test_after_new_columns_there_is_no_bound():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for model in (ImplicitGDRegressor(**CONSTANT), EGRegressor(**CONSTANT), ScaleInvariantRegressor()):
        model.set_params(handle_new_features="add").partial_fit(frame, y)
        model.regret_bound(U / 2)
        model.partial_fit(frame.assign(d=1.0), y)
        with pytest.raises(NoBound, match="with the same features, but some were added"):
            model.regret_bound(np.full(4, 0.1))
    ridge = ForwardRegressor(handle_new_features="add").partial_fit(frame, y).partial_fit(frame.assign(d=1.0), y)
    assert not hasattr(ridge, "regret_bound_") and ridge.fit(frame, y).regret_bound_ > 0  # of a new run


@pytest.mark.parametrize("multi_class", ["ovr", "multinomial"])
def test_after_new_classes_there_is_no_bound(multi_class):
    model = MirrorDescentClassifier(divergence="p_norm", handle_unknown="add", multi_class=multi_class, **CONSTANT)
    model.partial_fit(X, np.arange(40) % 2, classes=[0, 1])
    model.regret_bound(U, weighted=True)
    model.partial_fit(X[:3], [0, 1, 2])
    for weighted in (False, True):
        with pytest.raises(NoBound, match="with the same classes, but some were added"):
            model.regret_bound(U, weighted=weighted)


def test_an_intercept_that_is_not_learned_is_that_of_all_comparators():
    model = MirrorDescentClassifier(divergence="squared_euclidean", fit_intercept=False, **CONSTANT)
    model.fit(X, np.arange(40) % 3, intercept_init=[0.1, 0.2, 0.3])
    assert np.isfinite(model.regret_bound(np.zeros((3, 3)), [0.1, 0.2, 0.3], weighted=True)).all()
    with pytest.raises(ValueError, match=r"intercept must be that of the run, which learns none, 0\.2; got 0\.1"):
        model.regret_bound(np.zeros((3, 3)), 0.1, weighted=True)
    with pytest.raises(ValueError, match="intercept must be a finite number; got nan"):
        model.regret_bound(np.zeros((3, 3)), np.nan, weighted=True)
    path = LearningRatePath(ImplicitGDRegressor(track_regret=True, fit_intercept=False), eta0s=3).fit(X, y)
    with pytest.raises(ValueError, match=r"learns none, 0\.0"):
        path.best_estimator_.regret_bound(np.zeros(3), 1.0, weighted=True)
    assert np.isfinite(path.best_estimator_.regret_bound(np.zeros(3), weighted=True))
