"""Mahalanobis metrics learned online, as transformers, and neighbours in them."""

from .knn import MetricKNeighborsClassifier
from .logdet import LogDetMetricLearner

__all__ = ["LogDetMetricLearner", "MetricKNeighborsClassifier"]
