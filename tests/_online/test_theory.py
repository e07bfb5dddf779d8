"""Learning rates from the theorems: the gain of a single step, the bounds on runs, and the optimality of the rate."""

import copy
import pickle
from dataclasses import astuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from raw import MirrorDescentClassifier, MirrorDescentRegressor
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
from onlinebregman._online.theory import theory_rate
from onlinebregman.constraints import Simplex, UpperBound
from onlinebregman.divergences import Burg, PNorm, RelativeEntropy, SquaredEuclidean
from onlinebregman.losses import AbsoluteLoss, HuberLoss, SquaredLoss
from onlinebregman.penalties import L1, L2, Penalty

UPDATES = {  # L <= factor(k) L_u + price(k) M D, with the rate k / M
    "explicit": (lambda k: 1 / (1 - k), lambda k: 1 / k),
    "implicit": (lambda k: 1 + k, lambda k: 1 + 1 / k),
    "importance": (lambda k: 2 * k / -np.expm1(-2 * k), lambda k: 2 / -np.expm1(-2 * k)),
}


def test_a_path_of_rates_notes_weights_for_the_bound():
    X, y = np.eye(3), np.ones(3)
    one = ImplicitGDRegressor(learning_rate="theory", data_bounds={"x": 1.0, "u": 1.0, "loss": 1.0})
    path = LearningRatePath(one, eta0s=2).fit(X, y, [1.0, 5.0, 1.0])
    assert path.best_estimator_.theory_bound_ == one.partial_fit(X, y, [1.0, 5.0, 1.0]).theory_bound_


def test_the_theorem_with_class_weights():
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    model = MirrorDescentClassifier(
        divergence="squared_euclidean", learning_rate="theory", data_bounds={"x": 1.0, "u": 1.0, "n_rows": 4}
    )
    light = clone(model).partial_fit(X, y, classes=[0, 1]).theory_bound_
    heavy = model.set_params(class_weight={1: 3.0}).partial_fit(X, y, classes=[0, 1]).theory_bound_
    assert_allclose(heavy, (1 + 3.0**2) / 2 * light)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("fit_intercept", [False, True])
@settings(max_examples=60)
@given(x=st.floats(-2.0, 2.0), u=st.floats(-2.0, 2.0), loss=st.one_of(st.none(), st.floats(-6.0, 6.0)))
def test_the_rate_minimises_its_bound(update, fit_intercept, x, u, loss):
    bounds = {"x": 10**x, "u": 10**u, "intercept": 0.3} | ({} if loss is None else {"loss": 10**loss})
    rate = theory_rate(SquaredEuclidean(), SquaredLoss(), update, bounds, 4, signed=False, fit_intercept=fit_intercept)
    smoothness, distance = 100**x + fit_intercept, (100**u + 0.09) / 2
    factor, price = UPDATES[update]
    comparator_loss = smoothness * distance if loss is None else 10**loss

    def bound(k):
        return factor(k) * comparator_loss + price(k) * smoothness * distance

    k = rate.eta0 * smoothness
    # k = eta0 M is known to rounding, 1 - k to that times the factor
    rtol = 1e-12 + 1e-15 * rate.factor
    assert_allclose([rate.factor, rate.constant], [factor(k), price(k) * smoothness * distance], rtol=rtol)
    for other in np.r_[k * np.array([0.5, 0.99, 1.01, 2.0]), np.geomspace(1e-6, 0.999, 50)]:
        if update != "explicit" or other < 1:
            assert bound(k) <= bound(other) * (1 + 1e-9)
    if update == "explicit":
        assert_allclose(k, 1 / (1 + np.sqrt(comparator_loss / (smoothness * distance))), rtol=1e-5)
    elif update == "implicit":
        assert_allclose(k, np.sqrt(smoothness * distance / comparator_loss), rtol=1e-5)


@settings(max_examples=30)
@given(x=st.floats(-2.0, 2.0), u=st.floats(-2.0, 2.0), n_rows=st.integers(1, 10**6), slope=st.sampled_from([0.5, 2.0]))
def test_the_rate_for_losses_of_bounded_slope(x, u, n_rows, slope):
    rate = theory_rate(
        PNorm(3.0),
        HuberLoss(slope),
        "implicit",
        {"x": 10**x, "u": 10**u, "n_rows": n_rows},
        4,
        signed=False,
        fit_intercept=False,
    )

    def bound(eta):
        return 100**u / 2 / eta + eta * 2 * 100**x * slope**2 * n_rows / 2

    assert rate.factor == 1.0
    assert_allclose(rate.constant, bound(rate.eta0), rtol=1e-12)
    assert bound(rate.eta0) <= min(bound(0.99 * rate.eta0), bound(1.01 * rate.eta0))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"data_bounds": None}, r"needs data_bounds\['x'\]"),
        ({"data_bounds": {"x": 1.0}}, r"needs data_bounds\['u'\], a bound on the size of the comparator"),
        ({"data_bounds": {"x": 1.0, "u": 1.0}, "loss": "huber"}, r"needs data_bounds\['n_rows'\]"),
        ({"data_bounds": {"x": 1.0, "u": 1.0, "rows": 3}}, "must be among 'x', 'u', .*; got 'rows'"),
        ({"data_bounds": {"x": 0.0, "u": 1.0}}, r"data_bounds\['x'\] must be a positive finite number; got 0.0"),
        ({"data_bounds": {"x": 1.0, "u": -1.0}}, r"data_bounds\['u'\] must be a positive finite number; got -1.0"),
        ({"data_bounds": {"x": "3", "u": 1.0}}, r"data_bounds\['x'\] must be a positive finite number; got '3'"),
        ({"data_bounds": {"x": 1.0, "u": [3]}}, r"data_bounds\['u'\] must be a positive finite number; got \[3\]"),
        (
            {"data_bounds": {"x": 1.0, "u": 1.0}, "loss": "poisson"},
            r"squared or have a bounded slope .*; got PoissonLoss\(\)",
        ),
        ({"data_bounds": {"x": 1.0, "u": 1.0}, "divergence": "burg"}, r"Burg\(\) has no bound"),
        ({"data_bounds": {"x": 1.0, "u": 1.0}, "divergence": "relative_entropy"}, "has no bound"),
        ({"data_bounds": {"x": 1.0, "u": 1.0}, "divergence": "binary_entropy"}, r"BinaryEntropy\(\) has no bound on D"),
        ({"data_bounds": {"x": 1.0, "u": 1.0}, "signed": True}, "signed must be False for learning_rate=.theory"),
        (
            {"data_bounds": {"x": 1.0, "u": 1.0}, "divergence": "p_norm", "signed": True},
            "signed must be False for learning_rate=.theory",
        ),
        ({"data_bounds": {"x": 1.0, "u": 1.0}, "init": 0.5}, "init=None"),
    ],
    ids=str,
)
def test_theory_says_what_it_lacks(parameters, message, unchanged):
    X, y = np.eye(3), np.ones(3)
    parameters = {"divergence": "squared_euclidean", **parameters}
    model = MirrorDescentRegressor(learning_rate="theory", **parameters)
    with unchanged(model, message):
        model.partial_fit(X, y)
    going_on = MirrorDescentRegressor(**{k: v for k, v in parameters.items() if k != "data_bounds"})
    going_on.partial_fit(X, y).set_params(learning_rate="theory", data_bounds=parameters["data_bounds"])
    with unchanged(going_on, message):
        going_on.partial_fit(X, y)


def test_the_bound_belongs_to_theory():
    X, y = np.eye(3), np.ones(3)
    model = MirrorDescentRegressor(divergence="squared_euclidean")
    with pytest.raises(AttributeError, match="has not learned"):
        _ = model.theory_bound_
    with pytest.raises(AttributeError, match="requires learning_rate='theory'"):
        _ = model.partial_fit(X, y).theory_bound_
    model = MirrorDescentRegressor(
        divergence="squared_euclidean", learning_rate="theory", data_bounds={"x": 1.0, "u": 1.0}
    ).partial_fit(X, y)
    with pytest.raises(AttributeError, match=r"needs data_bounds\['loss'\]"):
        _ = model.theory_bound_


# --- weights below an upper bound -------------------------------------------------------------------------------------


def test_explicit_steps_beyond_the_domain_end_at_the_bound():
    """As for update="gradient": the weight is infinite, its projection the upper bound; the certificate holds."""
    X, y = np.array([[1.0, -1.0], [1.0, 1.0]]), np.array([5.0, 3.0])
    model = BurgRegressor(
        update="explicit", upper_bound=1.0, eta0=10.0, learning_rate="constant", fit_intercept=False, track_regret=True
    )
    coefs = [clone(model).partial_fit(X[:k], y[:k]).coef_ for k in (1, 2)]
    assert coefs[0][0] == 1.0 and 0 < coefs[0][1] < 0.02
    for u in ([1.0, 1e-3], [1.0, 1.0], [0.3, 0.7]):
        fitted = clone(model).partial_fit(X, y)
        regret = fitted.weighted_loss_ - 10 * ((X @ u - y) ** 2).sum() / 2
        assert regret <= fitted.regret_bound(u, weighted=True) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, r"needs data_bounds\['y'\], a bound on the absolute value of a target"),
        (
            {"update": "explicit", "data_bounds": {"x": 1.0}},
            r"needs data_bounds\['divergence'\], a bound on D\(u, w_1\)",
        ),
        ({"upper_bound": None}, r"Burg\(\) has no bound .* Burg and RelativeEntropy for bounded weights"),
        ({"update": "gradient"}, "update='gradient' has a rate and a bound of its own"),
        ({"init": 0.5, "data_bounds": {"x": 1.0}}, r"requires init=None, or data_bounds\['divergence'\]"),
    ],
    ids=str,
)
def test_what_a_bounded_run_lacks(parameters, message, unchanged):
    given_bounds = {"x": 1.0, "divergence": 1.0}
    model = BurgRegressor(**{"upper_bound": 1.0, "data_bounds": given_bounds, "learning_rate": "theory", **parameters})
    with unchanged(model, message):
        model.partial_fit(np.eye(3), np.ones(3))


@pytest.mark.parametrize("loss", [SquaredLoss(), AbsoluteLoss()], ids=repr)
@pytest.mark.parametrize("update", ["explicit", "implicit"])
@pytest.mark.parametrize(("divergence", "power"), [(Burg(), 0), (RelativeEntropy(), 1)], ids=repr)
def test_rate_and_guarantee_in_other_units_of_columns(divergence, power, update, loss):
    """Rows times 4 and weights divided by 4 predict the same; D, and with it rates, is divided by 4^power."""

    def rate(unit):
        bounds = {"x": 0.3 * unit, "y": 2.0, "divergence": 0.7 / unit**power, "n_rows": 9}
        return theory_rate(divergence, loss, update, bounds, 5, signed=False, fit_intercept=False, upper=1.5 / unit)

    assert_allclose(astuple(rate(4.0)) * np.array([4.0**power, 1, 1, 1]), astuple(rate(1.0)), rtol=1e-9)


def test_signed_weights_are_refused(unchanged):
    model = MirrorDescentRegressor(
        divergence="relative_entropy",
        constraint=UpperBound(1.0),
        signed=True,
        learning_rate="theory",
        data_bounds={"x": 1.0, "y": 1.0, "divergence": 1.0},
    )
    with unchanged(model, "signed must be False for learning_rate='theory' with RelativeEntropy"):
        model.partial_fit(np.eye(3), np.ones(3))


# --- penalties that are strongly convex: a regret of O(log T) ---------------------------------------------------------


def penalised_model(penalty, **parameters):
    settings = {"divergence": "squared_euclidean", "fit_intercept": False, "learning_rate": "theory"}
    return MirrorDescentRegressor(penalty=penalty, **settings | parameters)


def test_the_bound_is_that_of_the_theorem():
    bounds = {"x": 2.0, "u": 0.1}
    model = penalised_model("l2", alpha=0.5, loss="absolute_error", data_bounds=bounds)
    X, y = np.full((100, 1), 2.0), np.full(100, 1e9)
    model.partial_fit(X[:1], y[:1])
    assert_allclose(model.theory_bound_, 0.5 * 0.01 / 2 + 4 / (2 * 0.5))
    model.partial_fit(X[1:], y[1:])
    assert_allclose(model.theory_bound_, 0.5 * 0.01 / 2 + 4 / (2 * 0.5) * (1 + np.log(100)))


class Cost(Penalty):
    def value(self, w):
        return float(np.sum(w))

    def prox(self, divergence, w, eta):
        return divergence.step(w, np.ones_like(w), eta)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": "l1"}, r"requires divergence='squared_euclidean' and an L2 part .*; got .* and L1"),
        ({"penalty": L2(0.0)}, "an L2 part of the penalty .* alpha > 0"),
        ({"penalty": Cost()}, r"an L2 part of the penalty .*; got .* and Cost\(\)"),
        ({"divergence": "p_norm", "penalty": L1(0.1)}, r"requires divergence='squared_euclidean' .*; got PNorm"),
        ({"fit_intercept": True}, "requires fit_intercept=False, since the intercept is not penalised; got True"),
        ({"loss": "poisson"}, r"squared or have a bounded slope .*; got PoissonLoss\(\)"),
        ({"update": "explicit"}, "for the squared loss requires update='implicit' or 'importance'"),
        ({"constraint": Simplex(1.0)}, "a constraint that contains 0, which bound its slope"),
        ({"init": 0.5, "data_bounds": {"x": 1.0, "y": 1.0, "divergence": 1.0}}, "init=None and a constraint"),
        ({"data_bounds": {"x": 1.0, "u": 1.0}}, r"needs data_bounds\['y'\]"),
        ({"data_bounds": {"x": 1.0, "y": 1.0}}, r"needs data_bounds\['u'\]"),
    ],
    ids=str,
)
def test_what_a_penalised_run_lacks(parameters, message, unchanged):
    settings = {"penalty": "l2", "alpha": 0.1, "data_bounds": {"x": 1.0, "u": 1.0, "y": 1.0}}
    model = penalised_model(**settings | parameters)
    with unchanged(model, message):
        model.partial_fit(np.eye(3), np.ones(3))


# --- after a change of parameters, columns or classes there is no bound -----------------------------------------------


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
