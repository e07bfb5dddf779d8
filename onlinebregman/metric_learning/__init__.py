"""Mahalanobis metrics as transformers, most of them learned online, and nearest neighbours in them."""

from .definite_boost import DefiniteBoostMetricLearner
from .frobenius import FrobeniusMetricLearner
from .knn import MetricKNeighborsClassifier, MetricKNeighborsRegressor
from .logdet import LogDetMetricLearner
from .parameter_free import ParameterFreeMetricLearner
from .von_neumann import VonNeumannMetricLearner

__all__ = [
    "DefiniteBoostMetricLearner",
    "FrobeniusMetricLearner",
    "LogDetMetricLearner",
    "MetricKNeighborsClassifier",
    "MetricKNeighborsRegressor",
    "ParameterFreeMetricLearner",
    "VonNeumannMetricLearner",
]
