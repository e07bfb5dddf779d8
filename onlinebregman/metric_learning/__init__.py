"""Mahalanobis metrics learned online, as transformers."""

from .logdet import LogDetMetricLearner

__all__ = ["LogDetMetricLearner"]
