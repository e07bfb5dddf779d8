"""Online learning with Bregman divergences, as scikit-learn estimators."""

import importlib as _importlib
from importlib import metadata as _metadata
from types import ModuleType as _ModuleType

from . import _kernels  # noqa: F401  # imported first: it raises a clear error if nothing is compiled
from ._online.merging import merge
from .density import DensityOutlierDetector, MaxEntDensity, OnlineExponentialFamily, OnlineGaussian
from .experts import BayesMixture, DensityMixture, ExpertMixtureClassifier, ExpertMixtureRegressor
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

__version__ = _metadata.version(__name__)

__all__ = [
    "BayesMixture",
    "BurgRegressor",
    "DefiniteBoost",
    "DefiniteBoostMetricLearner",
    "DensityMixture",
    "DensityOutlierDetector",
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
    "merge",
]

_IMPORTED_WHEN_USED = ("dask", "datasets", "inspection", "persistence", "pipeline", "river", "streams")


def __getattr__(name: str) -> _ModuleType:
    if name in _IMPORTED_WHEN_USED:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_IMPORTED_WHEN_USED})
