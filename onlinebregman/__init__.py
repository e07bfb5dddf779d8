"""Online learning with Bregman divergences, as scikit-learn estimators."""

from importlib.metadata import version

from . import _kernels  # noqa: F401  # imported first: it raises a clear error if nothing is compiled
from .density import DensityOutlierDetector, MaxEntDensity, OnlineExponentialFamily, OnlineGaussian
from .experts import BayesMixture, DensityMixture, EGPortfolio, ExpertMixtureClassifier, ExpertMixtureRegressor
from .kernel_learning import DefiniteBoost, MatrixBurgRegressor, MEGKernelLearner
from .linear_model import (
    BurgRegressor,
    EGRegressor,
    ForwardClassifier,
    ForwardRegressor,
    ImplicitGDRegressor,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    OneClassMirrorDescent,
    PerceptronClassifier,
    PNormClassifier,
    PNormRegressor,
    ScaleInvariantClassifier,
    ScaleInvariantRegressor,
    WinnowClassifier,
)
from .metric_learning import (
    DefiniteBoostMetricLearner,
    FrobeniusMetricLearner,
    LogDetMetricLearner,
    MetricKNeighborsClassifier,
    MetricKNeighborsRegressor,
    ParameterFreeMetricLearner,
    VonNeumannMetricLearner,
)
from .model_selection import LearningRateMixture, LearningRatePath
from .parameter_free import ParameterFreeClassifier, ParameterFreeRegressor
from .preprocessing import ThresholdFeatures

__version__ = version(__name__)

__all__ = [
    "BayesMixture",
    "BurgRegressor",
    "DefiniteBoost",
    "DefiniteBoostMetricLearner",
    "DensityMixture",
    "DensityOutlierDetector",
    "EGPortfolio",
    "EGRegressor",
    "ExpertMixtureClassifier",
    "ExpertMixtureRegressor",
    "ForwardClassifier",
    "ForwardRegressor",
    "FrobeniusMetricLearner",
    "ImplicitGDRegressor",
    "LearningRateMixture",
    "LearningRatePath",
    "LogDetMetricLearner",
    "MEGKernelLearner",
    "MatrixBurgRegressor",
    "MaxEntDensity",
    "MetricKNeighborsClassifier",
    "MetricKNeighborsRegressor",
    "MirrorDescentClassifier",
    "MirrorDescentRegressor",
    "OneClassMirrorDescent",
    "OnlineExponentialFamily",
    "OnlineGaussian",
    "PNormClassifier",
    "PNormRegressor",
    "ParameterFreeClassifier",
    "ParameterFreeMetricLearner",
    "ParameterFreeRegressor",
    "PerceptronClassifier",
    "ScaleInvariantClassifier",
    "ScaleInvariantRegressor",
    "ThresholdFeatures",
    "VonNeumannMetricLearner",
    "WinnowClassifier",
]
