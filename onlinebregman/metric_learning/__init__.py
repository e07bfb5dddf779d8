"""Mahalanobis metrics learned online, as transformers, and neighbours in them."""

from .knn import MetricKNeighborsClassifier
from .logdet import LogDetMetricLearner
from .von_neumann import VonNeumannMetricLearner

__all__ = ["LogDetMetricLearner", "MetricKNeighborsClassifier", "VonNeumannMetricLearner"]
