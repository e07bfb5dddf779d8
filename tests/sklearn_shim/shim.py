"""scikit-learn's names of linear models and of their parameters, for estimators of this package.

Each class maps names and parameters, and nothing else: explicit steps in the squared Euclidean geometry are SGD.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable
from types import ModuleType

import numpy as np
from scipy import sparse
from sklearn import linear_model

from onlinebregman import MirrorDescentClassifier, MirrorDescentRegressor, OneClassMirrorDescent
from onlinebregman.losses import (
    EpsilonInsensitiveLoss,
    HuberLoss,
    Loss,
    SquaredEpsilonInsensitiveLoss,
    SquaredLoss,
    resolve_loss,
)
from onlinebregman.penalties import ExplicitElasticNet, Penalty

WITH_EPSILON = {
    "huber": HuberLoss,
    "epsilon_insensitive": EpsilonInsensitiveLoss,
    "squared_epsilon_insensitive": SquaredEpsilonInsensitiveLoss,
}
# parameters that scikit-learn's estimators do not have
SAME = MirrorDescentClassifier(divergence="squared_euclidean", update="explicit", standardize=False).get_params()


def constructor(name: str, set_parameters: Callable) -> Callable:
    """`__init__` with the signature of the class of this name in scikit-learn."""
    signature = inspect.signature(getattr(linear_model, name).__init__)

    def __init__(self, *arguments, **named):
        given = signature.bind(self, *arguments, **named)
        given.apply_defaults()
        set_parameters(self, {name: value for name, value in given.arguments.items() if name != "self"})

    __init__.__signature__ = signature
    return __init__


class _Runs:
    """Warm starts as scikit-learn has them, and private names that its tests look for in models that average."""

    _offset = "intercept"  # what its initial value and its attribute begin with

    def _fit_warm(self, X, y, sample_weight, **start):
        # a warm start of scikit-learn begins a new run at the present weights; one of this package goes on with the run
        warm, self.warm_start = self.warm_start, False
        try:
            if warm and hasattr(self, "coef_"):
                now = {"coef_init": self.coef_, f"{self._offset}_init": getattr(self, f"{self._offset}_")}
                start = {name: now[name] if value is None else value for name, value in start.items()}
            return super().fit(X, y, sample_weight, **start)
        finally:
            self.warm_start = warm

    @property
    def coef_(self):
        return np.array(super().coef_)  # the tests write to it

    def _averaged(self):
        if not self.average:
            raise AttributeError("average=False")
        return self

    _average_coef = property(lambda self: self._averaged().coef_)
    _average_intercept = property(lambda self: getattr(self._averaged(), f"{self._offset}_"))


class _SGD(_Runs):
    """What classifiers and regressors share."""

    _parameter_constraints: dict = {}
    loss_functions = linear_model.SGDClassifier.loss_functions
    epsilon = 0.1

    def _set(self, parameters: dict) -> None:
        vars(self).update({**SAME, **parameters})

    @property
    def _loss_parameter(self) -> Loss:
        if self.loss in WITH_EPSILON:
            return WITH_EPSILON[self.loss](self.epsilon)
        return SquaredLoss() if self.loss == "squared_error" else resolve_loss(self.loss)

    def _penalty(self) -> Penalty | None:
        # explicit steps of the L2 part; those of an L1 part are the proximal ones of this package
        penalty = super()._penalty()
        return penalty if penalty is None else ExplicitElasticNet(penalty.alpha, penalty.l1_ratio)

    def _set_scaling(self, X) -> None:
        # scikit-learn learns the intercept of sparse rows at 0.01 of the rate
        self.intercept_scaling = 0.1 if sparse.issparse(X) else 1.0

    def partial_fit(self, X, y, *arguments, **named):
        self._set_scaling(X)
        return super().partial_fit(X, y, *arguments, **named)

    def fit(self, X, y, coef_init=None, intercept_init=None, sample_weight=None):
        self._set_scaling(X)
        return self._fit_warm(X, y, sample_weight, coef_init=coef_init, intercept_init=intercept_init)

    @property
    def intercept_(self):
        return np.atleast_1d(super().intercept_)

    _standard_coef = property(lambda self: self._averaged()._learner)
    _standard_intercept = property(lambda self: self._averaged()._learner)


class SGDClassifier(_SGD, MirrorDescentClassifier):
    __init__ = constructor("SGDClassifier", _SGD._set)

    _parameter_constraints = {"loss": "no_validation"}


class SGDRegressor(_SGD, MirrorDescentRegressor):
    __init__ = constructor("SGDRegressor", _SGD._set)

    _parameter_constraints = {"loss": "no_validation"}


class _PassiveAggressive:
    """PA-I for the loss itself, PA-II for its square, which is the same step on the loss with another rate."""

    alpha, l1_ratio, penalty, power_t = 0.0001, 0.15, None, 0.5

    def _set(self, parameters: dict) -> None:
        super()._set(parameters)
        vars(self).update(penalty=None, alpha=0.0001, l1_ratio=0.15, power_t=0.5)

    eta0 = property(lambda self: self.C)
    learning_rate = property(lambda self: "pa2" if self.loss.startswith("squared") else "pa1")

    @property
    def _loss_parameter(self) -> Loss:
        name = self.loss.removeprefix("squared_")
        return WITH_EPSILON[name](self.epsilon) if name in WITH_EPSILON else resolve_loss(name)


class PassiveAggressiveClassifier(_PassiveAggressive, SGDClassifier):
    __init__ = constructor("PassiveAggressiveClassifier", _PassiveAggressive._set)


class PassiveAggressiveRegressor(_PassiveAggressive, SGDRegressor):
    __init__ = constructor("PassiveAggressiveRegressor", _PassiveAggressive._set)


class Perceptron(SGDClassifier):
    def _set(self, parameters: dict) -> None:
        super()._set(parameters)
        vars(self).update(loss="perceptron", learning_rate="constant", power_t=0.5, average=False)

    __init__ = constructor("Perceptron", _set)


class SGDOneClassSVM(_Runs, OneClassMirrorDescent):
    _offset = "offset"
    alpha = property(lambda self: self.nu)  # the strength of the penalty, for learning_rate="optimal"
    penalty = property(lambda self: ExplicitElasticNet(self.nu, 0.0))

    def _set(self, parameters: dict) -> None:
        others = {"divergence": "squared_euclidean", "signed": False, "constraint": None, "n_iter_no_change": 5}
        vars(self).update(others, update="explicit", init=None, **parameters)

    __init__ = constructor("SGDOneClassSVM", _set)
    _parameter_constraints = {"learning_rate": "no_validation"}

    def fit(self, X, y=None, coef_init=None, offset_init=None, sample_weight=None):
        return self._fit_warm(X, y, sample_weight, coef_init=coef_init, offset_init=offset_init)

    @property
    def offset_(self):
        return np.atleast_1d(super().offset_)

    _standard_coef, _standard_intercept = _Runs._average_coef, _Runs._average_intercept


SHIMS = (
    SGDClassifier,
    SGDRegressor,
    PassiveAggressiveClassifier,
    PassiveAggressiveRegressor,
    Perceptron,
    SGDOneClassSVM,
)


def load(name: str, original: ModuleType = linear_model, shims: tuple[type, ...] = SHIMS) -> dict:
    """The tests of a module of scikit-learn's, which find the given classes in place of scikit-learn's."""
    spec = importlib.util.find_spec(f"{original.__name__}.tests.{name}")
    shimmed = ModuleType(original.__name__)
    vars(shimmed).update(vars(original))
    vars(shimmed).update({kind.__name__: kind for kind in shims})
    package, own = sys.modules["sklearn"], original.__name__.partition(".")[2]
    module = importlib.util.module_from_spec(spec)
    sys.modules[original.__name__] = shimmed
    setattr(package, own, shimmed)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.modules[original.__name__] = original
        setattr(package, own, original)
    return {name: test for name, test in vars(module).items() if name.startswith("test_")}
