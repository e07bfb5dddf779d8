"""The public estimators and further configurations, which must satisfy every contract, and suitable data for each."""

import functools
import inspect

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, is_classifier, is_outlier_detector, is_regressor
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

import onlinebregman
from onlinebregman import (
    EGRegressor,
    ForwardClassifier,
    ForwardRegressor,
    ImplicitGDRegressor,
    LogDetMetricLearner,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    OnlineExponentialFamily,
    OnlineGaussian,
    PNormClassifier,
)
from onlinebregman.constraints import Box, L1Ball, UpperBound
from onlinebregman.losses import QuantileLoss, TweedieLoss

SGD = {"update": "explicit"}
ADD = {"handle_new_features": "add"}  # columns of data frames

# Without given experts these read the columns of X as probabilities, which arbitrary rows are not, or as log-densities,
# which may be -inf.
PROBABILISTIC = [("md", MirrorDescentClassifier(divergence="squared_euclidean")), ("p_norm", PNormClassifier())]
DENSITIES = [("full", OnlineGaussian(prior_weight=2.0)), ("unit", OnlineExponentialFamily())]
FIRST = {
    "BayesMixture": {"estimators": PROBABILISTIC},
    "DensityMixture": {"estimators": DENSITIES},
    "ExpertMixtureClassifier": {"estimators": PROBABILISTIC},
    "ThresholdFeatures": {"sparse_output": False, "n_pairs": 2},  # arrays, as of all others; few
}
# Further configurations of estimators, in addition to the default ones, that must satisfy every contract.
VARIANTS = {
    "BayesMixture": [{"estimators": PROBABILISTIC, "share": 0.05, "history": 9}],
    "BurgRegressor": [
        {"update": "gradient"},
        {"update": "explicit", "eta0": 0.01},
        {"upper_bound": 0.5, "average": True, **ADD},
    ],
    "DensityOutlierDetector": [{"estimator": OnlineGaussian(covariance_type="diag", prior_weight=1.0), "nu": 0.2}],
    "DensityMixture": [{"estimators": DENSITIES, "share": 0.05, "history": 9}],
    "EGRegressor": [{"weights": "simplex"}, {"weights": "positive"}, {"update": "explicit", "eta0": 0.1, "average": 5}],
    "ExpertMixtureClassifier": [
        {"estimators": PROBABILISTIC, "strategy": "eg", "loss": "brier", "learning_rate": "adaptive"}
    ],
    "ExpertMixtureRegressor": [
        {"estimators": [("gd", ImplicitGDRegressor()), ("eg", EGRegressor())], "loss": "absolute_error", "history": 9},
        {"strategy": "eg", "learning_rate": 0.5, "share": 0.01},
        {"strategy": "aggregating", "learning_rate": "theory", "share": 0.01, "data_bounds": {"y": (-100.0, 100.0)}},
        {"strategy": "boa", "history": 5},
    ],
    "ForwardClassifier": [
        {"forgetting": 0.9, "alpha": 0.1},
        {"fit_intercept": False},
        {"standardize": True, **ADD},
        {"penalize_intercept": False, "handle_unknown": "add", **ADD},
        {"update": "aioli", "radius": 3.0},
    ],
    "ForwardRegressor": [
        {"forward": False},
        {"alpha": 0.01, "fit_intercept": False},
        {"forgetting": 0.9, **ADD},
        {"standardize": False},
        {"penalize_intercept": False, "standardize": False},
        {"loss": "poisson", "standardize": True, **ADD},
        {"loss": "log_loss", "penalize_intercept": False, "forgetting": 0.99},
    ],
    "FrobeniusMetricLearner": [{"update": "explicit", "eta0": 0.01, "sampling": "random"}, {"sampling": "targets"}],
    "ImplicitGDRegressor": [
        {"update": "explicit", "eta0": 0.05},
        {"average": True},
        {"learning_rate": "sqrt", "fit_intercept": False},
        {"standardize": True, **ADD},
    ],
    "LearningRateMixture": [
        {"estimator": MirrorDescentClassifier()},
        {"estimator": MirrorDescentRegressor(loss="absolute_error"), "eta0s": 3},
    ],
    "LearningRatePath": [{"estimator": PNormClassifier(), "eta0s": 3}],
    "LogDetMetricLearner": [
        {"sampling": "random", "loss": "one_sided", "track_regret": True},
        {"n_components": 2, "margin": 1.0, "scale_eta": False, "eta0": 0.01},
    ],
    "MEGKernelLearner": [{"update": "explicit", "eta0": 0.5, "track_regret": True}],
    "MaxEntDensity": [{"solver": "iterative_scaling", "alpha": 0.1}, {"solver": "lbfgs"}, {"alpha": 0.01}],
    "MetricKNeighborsClassifier": [
        {"weights": "distance"},
        {"metric_learner": "auto", "random_state": 0},
        {"metric_learner": ["euclidean", LogDetMetricLearner(random_state=0)], "weights": "distance"},
    ],
    "MetricKNeighborsRegressor": [{"metric_learner": "auto", "weights": "distance", "random_state": 0}],
    "MirrorDescentClassifier": [
        {"divergence": "simplex_entropy", "signed": True, "average": True},
        {"divergence": "squared_euclidean", "loss": "hinge", "class_weight": {1: 2.0}},
        {"divergence": "p_norm", "loss": "perceptron", "update": "explicit"},
        {
            "divergence": "squared_euclidean",
            "learning_rate": "theory",
            "data_bounds": {"x": 5.0, "u": 2.0, "n_rows": 500},
            "update": "importance",
        },
        {"divergence": "diagonal_newton", "average": 3, "track_regret": True},
        {"divergence": "squared_euclidean", "loss": "squared_hinge", "standardize": True, "average": True},
        {"divergence": "squared_euclidean", "penalty": "elasticnet", "alpha": 0.01, "loss": "squared_hinge"},
        {"multi_class": "multinomial"},
        {"multi_class": "multinomial", "divergence": "relative_entropy", "signed": True, "average": True},
        {"multi_class": "multinomial", "divergence": "squared_euclidean", "penalty": "l1", "standardize": True},
        {"penalty": "l1", "alpha": 0.01},
        {"thresholds": "pairwise", "divergence": "diagonal_newton", "multi_class": "multinomial"},
        {"handle_unknown": "add", "multi_class": "multinomial", "divergence": "p_norm", **ADD},
        {"handle_unknown": "add", "loss": "squared_hinge", "standardize": True, **ADD},
        {"divergence": "squared_euclidean", "learning_rate": "optimal", "penalty": "l2", "eta0": None, **SGD},
        {"divergence": "squared_euclidean", "learning_rate": "pa2", "loss": "hinge", "eta0": 1.0, **SGD},
    ],
    "MirrorDescentRegressor": [
        {"divergence": "relative_entropy", "loss": "poisson", "constraint": UpperBound(2.0)},
        {"divergence": "simplex_entropy", "loss": "absolute_error", "signed": True},
        {"divergence": "burg", "loss": "huber", "update": "importance", "track_regret": True},
        {"divergence": "binary_entropy", "loss": "log_loss", "average": 3},
        {
            "divergence": "squared_euclidean",
            "learning_rate": "theory",
            "data_bounds": {"x": 5.0, "u": 1.0},
            "constraint": L1Ball(1.0),
        },
        {"divergence": "adagrad", "loss": "absolute_error", "constraint": UpperBound(2.0), "track_regret": True},
        {"divergence": "diagonal_newton", "update": "explicit", "eta0": 0.1, "average": True},
        {"divergence": "squared_euclidean", "standardize": True, "track_regret": True, "loss": "huber"},
        {"divergence": "squared_euclidean", "penalty": "elasticnet", "alpha": 0.01, "l1_ratio": 0.5},
        {"divergence": "relative_entropy", "signed": True, "penalty": "l1", "alpha": 0.01, "track_regret": True, **ADD},
        {"divergence": "p_norm", "penalty": "l1", "alpha": 0.01, "average": 3, **ADD},
        {"penalty": "elasticnet", "alpha": 0.01, "constraint": Box(-1.0, 1.0), "track_regret": True},
        {"thresholds": "pairwise", "average": 3},
        {"thresholds": "no_interactions", "divergence": "squared_euclidean", "track_regret": True, "loss": "huber"},
        {"loss": "gamma", "track_regret": True, **ADD},
        {"loss": TweedieLoss(1.5), "divergence": "squared_euclidean", "learning_rate": "adaptive", "average": True},
        {"loss": QuantileLoss([0.1, 0.5, 0.9]), "standardize": True, "divergence": "squared_euclidean"},
        {"loss": "epsilon_insensitive", "divergence": "squared_euclidean", "learning_rate": "pa1", "eta0": 1.0, **SGD},
    ],
    "OnlineExponentialFamily": [
        {"strategy": "incremental_offline", "prior_weight": 2.0, "prior_mean": 0.5, "variance": 2.0},
        {"strategy": "last_step_minimax", "variance": [0.5, 1.0, 2.0, 4.0]},
        {"family": "exponential"},
        {"family": "poisson", "strategy": "incremental_offline", "prior_weight": 1.0},
    ],
    "OnlineGaussian": [
        {"covariance_type": "diag"},
        {"strategy": "incremental_offline", "prior_weight": 3.0, "prior_covariance": 2.0},
    ],
    "ParameterFreeClassifier": [
        {"members": [MirrorDescentClassifier(loss="hinge"), PNormClassifier()]},
        {"members": [MirrorDescentClassifier(), ForwardClassifier()], "handle_unknown": "add"},
    ],
    "ParameterFreeRegressor": [{"members": [ImplicitGDRegressor(), ForwardRegressor(forward=False)]}],
    "OneClassMirrorDescent": [
        {"nu": 0.1, "divergence": "adagrad", "average": False, **ADD},
        {"divergence": "relative_entropy", "update": "implicit"},
    ],
    "PNormClassifier": [{"p": 3.0, "loss": "hinge", "track_regret": True, **ADD}],
    "PNormRegressor": [{"p": 3.0, "update": "explicit", "eta0": 0.03, **ADD}],
    "PerceptronClassifier": [{"average": True, "fit_intercept": False, **ADD}],
    "ScaleInvariantClassifier": [
        {"loss": "modified_huber", "average": 3},
        {"loss": "hinge", "fit_intercept": False, **ADD},
    ],
    "ScaleInvariantRegressor": [{"loss": "huber", "average": True, **ADD}, {"loss": "log_loss"}],
    "ThresholdFeatures": [{"sparse_output": False, "n_pairs": 0, "random_state": 3}],
    "VonNeumannMetricLearner": [{"trace": 2.0, "update": "explicit", "eta0": 0.1}],
    "WinnowClassifier": [{"weights": "simplex", "total": 2.0}, {"weights": "positive", "average": 5, **ADD}],
}
# The number of variants with which scikit-learn's checks are run, because they have tags or branches of their own.
CHECKED_VARIANTS = {
    "BurgRegressor": 1,
    "EGRegressor": 2,
    "ExpertMixtureRegressor": 1,
    "MirrorDescentClassifier": 1,
    "MirrorDescentRegressor": 1,
    "OnlineGaussian": 1,
}
# Methods that return a result for each row.
OUTPUTS = ("predict", "decision_function", "predict_proba", "transform", "score_samples")


def public_estimators():
    """The classes of all public estimators, found by walking the package's public names."""
    values = (getattr(onlinebregman, name) for name in onlinebregman.__all__)
    return [value for value in values if inspect.isclass(value) and issubclass(value, BaseEstimator)]


def configurations(limit=None):
    """An instance of every public estimator and of its variants, at most as many as `limit` says for its name."""
    for cls in public_estimators():
        variants = VARIANTS.get(cls.__name__, [])
        yield cls(**FIRST.get(cls.__name__, {}))
        for parameters in variants if limit is None else variants[: limit.get(cls.__name__, 0)]:
            yield cls(**parameters)


@functools.cache
def default_names():
    """The names of the default configurations."""
    return {repr(estimator) for estimator in configurations({})}


@functools.cache
def is_default(estimator):
    """Whether it is the default configuration of its class."""
    return repr(estimator) in default_names()


@functools.cache
def named_configurations():
    """Every configuration, with its name as a test id; tests get clones."""
    return [(estimator, repr(estimator)) for estimator in configurations()]


def is_variant(estimator):
    """Whether it is another one of the configurations."""
    return not is_default(estimator) and repr(estimator) in [name for _, name in named_configurations()]


def is_density(estimator):
    """Whether an estimator is a density, which learns rows without targets."""
    return get_tags(estimator).estimator_type == "density_estimator"


def rows_for(estimator, n_classes):
    """(X, y) of 40 suitable rows; y are numbers for a regressor, labels for a classifier, or distances of objects."""
    rng = np.random.default_rng(5)
    family = type(estimator).__module__.split(".")[1]
    if family == "kernel_learning":  # its estimators are regressors, too
        objects = np.array([rng.choice(6, size=2, replace=False) for _ in range(40)])
        X = (np.eye(6)[objects[:, 0]] - np.eye(6)[objects[:, 1]]) / np.sqrt(2)
        return X, np.where((objects < 3).all(axis=1) | (objects >= 3).all(axis=1), 0.1, 0.3)
    if is_density(estimator) or family == "preprocessing":  # which ignore y
        X = rng.normal(size=(40, 4))
        if get_tags(estimator).input_tags.positive_only:
            X = np.floor(np.abs(3 * X))  # counts
        return X, rng.integers(2, size=40)
    if is_classifier(estimator) or (family == "metric_learning" and not is_regressor(estimator)):
        y = rng.integers(n_classes, size=40)
        return rng.normal(size=(40, 4)) + 2.0 * np.eye(3, 4)[y], y
    if is_regressor(estimator):
        X = rng.normal(size=(40, 4))
        if get_tags(estimator).input_tags.positive_only:
            X = np.abs(X)
        y = X @ [0.1, 0.4, 0.2, 0.3] + 0.1 * rng.uniform(size=40)
        if get_tags(estimator).target_tags.positive_only and not get_tags(estimator).input_tags.positive_only:
            y = expit(y)  # counts, rates or probabilities
        return X, y
    if is_outlier_detector(estimator):  # which ignores y; rows on one side of the origin
        X = 1.0 + rng.uniform(size=(40, 4))
        return X, rng.integers(2, size=40)
    raise NotImplementedError(f"no data for estimators of onlinebregman.{family}; add them here")


def is_online_learner(estimator):
    """Whether its `fit` runs epochs over the rows."""
    return {"shuffle", "max_iter"} <= set(estimator.get_params())


# Fixtures for some of the estimators: tests that use them run for those only.
SUITED = {
    "online": is_online_learner,
    "sparse_rows": lambda estimator: get_tags(estimator).input_tags.sparse,
    "weighted": lambda estimator: has_fit_parameter(estimator, "sample_weight"),
}


def suited(metafunc):
    """(configuration, name) of the estimators selected by the test's fixtures and its marks `only`."""
    wanted = [SUITED[name] for name in metafunc.fixturenames if name in SUITED]
    wanted += [mark.kwargs["where"] for mark in metafunc.definition.iter_markers("only") if len(mark.kwargs) == 1]
    with_variants = metafunc.config.option.all and getattr(metafunc.module, "WITH_VARIANTS", True)
    return [
        (estimator, name)
        for estimator, name in named_configurations()
        if all(suits(estimator) for suits in wanted) and (with_variants or name in default_names())
    ]
