"""Mahalanobis metrics learned online, as transformers, and neighbours in them."""

from .frobenius import FrobeniusMetricLearner
from .knn import MetricKNeighborsClassifier
from .logdet import LogDetMetricLearner

__all__ = ["FrobeniusMetricLearner", "LogDetMetricLearner", "MetricKNeighborsClassifier"]
