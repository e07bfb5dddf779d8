"""Plots of online models, in the style of scikit-learn's displays; matplotlib is imported on plotting."""

from ._contributions import ContributionDisplay, TermImportanceDisplay
from ._curves import ExpertWeightsDisplay, LearningRateDisplay, ProgressiveScoreDisplay, RegretDisplay
from ._metrics import MetricDisplay

__all__ = [
    "ContributionDisplay",
    "ExpertWeightsDisplay",
    "LearningRateDisplay",
    "MetricDisplay",
    "ProgressiveScoreDisplay",
    "RegretDisplay",
    "TermImportanceDisplay",
]
