"""Online learning with Bregman divergences, as scikit-learn estimators."""

from importlib.metadata import version

from .kernel_learning import DefiniteBoost, MEGKernelLearner
from .linear_model import (
    BurgRegressor,
    EGRegressor,
    ForwardRegressor,
    ImplicitGDRegressor,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    PerceptronClassifier,
    PNormClassifier,
    PNormRegressor,
    WinnowClassifier,
)
from .metric_learning import (
    DefiniteBoostMetricLearner,
    LogDetMetricLearner,
    MetricKNeighborsClassifier,
    VonNeumannMetricLearner,
)
from .model_selection import LearningRateMixture, LearningRatePath

__version__ = version(__name__)

__all__ = [
    "BurgRegressor",
    "DefiniteBoost",
    "DefiniteBoostMetricLearner",
    "EGRegressor",
    "ForwardRegressor",
    "ImplicitGDRegressor",
    "LearningRateMixture",
    "LearningRatePath",
    "LogDetMetricLearner",
    "MEGKernelLearner",
    "MetricKNeighborsClassifier",
    "MirrorDescentClassifier",
    "MirrorDescentRegressor",
    "PNormClassifier",
    "PNormRegressor",
    "PerceptronClassifier",
    "VonNeumannMetricLearner",
    "WinnowClassifier",
]
