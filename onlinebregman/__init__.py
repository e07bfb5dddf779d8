"""Online learning with Bregman divergences, as scikit-learn estimators."""

from importlib.metadata import version

from .kernel_learning import DefiniteBoost, MEGKernelLearner
from .linear_model import BurgRegressor, EGRegressor, ImplicitGDRegressor
from .metric_learning import LogDetMetricLearner

__version__ = version(__name__)

__all__ = [
    "BurgRegressor",
    "DefiniteBoost",
    "EGRegressor",
    "ImplicitGDRegressor",
    "LogDetMetricLearner",
    "MEGKernelLearner",
]
