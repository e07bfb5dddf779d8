"""Transformers that learn online."""

from .thresholds import ThresholdFeatures

__all__ = ["ThresholdFeatures"]
