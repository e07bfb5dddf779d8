"""Experts of this package learn in one pass with their weights: the same numbers as one after the other."""

import copy
import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from onlinebregman import (
    BayesMixture,
    DensityMixture,
    EGRegressor,
    ExpertMixtureClassifier,
    ExpertMixtureRegressor,
    ForwardRegressor,
    ImplicitGDRegressor,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    OnlineExponentialFamily,
    OnlineGaussian,
    PNormClassifier,
)
from onlinebregman.losses import QuantileLoss, SquaredLoss
from onlinebregman.pipeline import make_online_pipeline

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = {
    "classifier": np.where(X[:, 0] + 0.3 * rng.normal(size=60) > 0, "up", "down"),
    "regressor": X @ [0.0, 1.0, 2.0, 3.0] / 6,
    "density_estimator": None,
}
CLASSIFIERS = [
    ("log", MirrorDescentClassifier()),
    ("p-norm", PNormClassifier()),
    ("huber", MirrorDescentClassifier(loss="modified_huber")),
]
REGRESSORS = [
    ("md", MirrorDescentRegressor()),
    ("gd", ImplicitGDRegressor()),
    ("median", MirrorDescentRegressor(loss="absolute_error")),
    ("simplex", EGRegressor()),
]
DENSITIES = [
    ("full", OnlineGaussian(prior_weight=2.0)),
    ("diagonal", OnlineGaussian(covariance_type="diag")),
    ("unit", OnlineExponentialFamily()),
]
MIXTURES = [
    BayesMixture(CLASSIFIERS),
    BayesMixture(CLASSIFIERS, share=0.01),
    *(
        ExpertMixtureClassifier(CLASSIFIERS, strategy=strategy, loss=loss, learning_rate="adaptive")
        for strategy in ("average", "eg")
        for loss in ("log_loss", "brier")
    ),
    ExpertMixtureRegressor(REGRESSORS),
    ExpertMixtureRegressor(REGRESSORS, strategy="eg", loss="absolute_error"),
    ExpertMixtureRegressor(
        REGRESSORS, strategy="aggregating", learning_rate="theory", share=0.01, data_bounds={"y": (-3.0, 3.0)}
    ),
    DensityMixture(DENSITIES),
]


def kind_of(model):
    return get_tags(model).estimator_type


def learned(model, cuts, weights=None, apart=False):
    """`apart`: not in one pass."""
    model, y = clone(model), Y[kind_of(model)]
    for start, end in itertools.pairwise(cuts):
        given = {} if weights is None else {"sample_weight": weights[start:end]}
        if not start and y is not None and kind_of(model) == "classifier":
            given["classes"] = ["down", "up"]
        model.partial_fit(X[start:end], *(() if y is None else (y[start:end],)), **given)
        model._experts_learner = None if apart else model._experts_learner
    return model


def numbers(model):
    said = getattr(model, model._forecast_method)(X)
    losses = [expert.cumulative_loss_ for expert in model.estimators_]
    return [model.weights_, model.expert_losses_, [model.cumulative_loss_, model.regret_bound_, model.t_], losses, said]


def in_one_pass(model):
    learner = model._experts_learner
    return learner is not None and learner.ready(vars(model))


@pytest.mark.parametrize("weights", [None, rng.uniform(0.5, 2.0, size=60)], ids=["alone", "weighted"])
@pytest.mark.parametrize("model", MIXTURES, ids=lambda model: type(model).__name__)
def test_the_numbers_are_those_of_one_expert_after_the_other(model, weights):
    apart = learned(model, range(61), weights, apart=True)
    assert not in_one_pass(apart)
    for cuts in (range(61), [0, 60], [0, 1, 2, 30, 31, 60]):
        together = learned(model, cuts, weights)
        assert in_one_pass(together)
        given = vars(together), X, kind_of(model) == "regressor"
        assert len(together._experts_learner.predict_fast(*given)) == len(X)
        assert copy.deepcopy(together)._experts_learner.predict_fast(*given) is None
        for got, expected in zip(numbers(together), numbers(apart), strict=True):
            assert_array_equal(got, expected)


@pytest.mark.parametrize("parameters", [{"eta0": 0.1}, {"average": True}], ids=str)
def test_parameters_of_experts_may_change(parameters):
    apart = learned(MIXTURES[0], [0, 30], apart=True)
    model = learned(MIXTURES[0], [0, 30])
    for mixture in (model, apart):
        mixture.estimators_[0].set_params(**parameters)
        assert not in_one_pass(mixture)
        for row in range(30, 40):
            mixture.partial_fit(X[row : row + 1], Y["classifier"][row : row + 1])
            apart._experts_learner = None
    assert in_one_pass(model) == ("eta0" in parameters)
    assert_array_equal(model.weights_, apart.weights_)
    model.estimators_[1].set_params(class_weight={"up": 2.0})
    assert not in_one_pass(model)


class Halved(SquaredLoss):
    """With another link."""

    def link(self, a):
        return super().link(a) / 2


@pytest.mark.parametrize(
    "experts",
    [
        [("forward", ForwardRegressor())],
        [("averaged", MirrorDescentRegressor(average=True))],
        [("own", MirrorDescentRegressor(loss=Halved(), update="explicit"))],
        [("type", type("Own", (MirrorDescentRegressor,), {})())],
    ],
    ids=lambda experts: experts[0][0],
)
@pytest.mark.exhaustive
def test_experts_whose_scores_are_not_their_forecasts_learn_by_themselves(experts):
    model = ExpertMixtureRegressor([*experts, ("gd", ImplicitGDRegressor())])
    whole, rows = (learned(model, cuts) for cuts in ([0, 60], range(61)))
    assert not in_one_pass(whole)
    assert_array_equal(whole.weights_, rows.weights_)


QUANTILES = MirrorDescentRegressor(loss=QuantileLoss([0.1, 0.5, 0.9]))


@pytest.mark.parametrize(
    "expert",
    [
        QUANTILES,
        make_online_pipeline(StandardScaler(), QUANTILES),
        FrozenEstimator(clone(QUANTILES).partial_fit(X, Y["regressor"])),
        FrozenEstimator(MirrorDescentRegressor().partial_fit(X, X[:, :3])),
    ],
    ids=["compiled", "row by row", "frozen", "several outputs"],
)
def test_experts_of_several_outputs_are_refused_by_name(expert, unchanged):
    model = ExpertMixtureRegressor([*REGRESSORS, ("three", expert)])
    for method in (model.fit, model.partial_fit):
        with unchanged(model, "Expert 'three' must have one output; got 3 forecasts of each row"):
            method(X, Y["regressor"])
