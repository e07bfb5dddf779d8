"""Plots of online models, in the style of scikit-learn's displays; matplotlib is imported on plotting."""

from ._contributions import ContributionDisplay
from ._importances import TermImportanceDisplay
from ._learning_rates import LearningRateDisplay
from ._metrics import MetricDisplay
from ._progressive import ProgressiveScoreDisplay
from ._regret import RegretDisplay
from ._weights import ExpertWeightsDisplay

__all__ = [
    "ContributionDisplay",
    "ExpertWeightsDisplay",
    "LearningRateDisplay",
    "MetricDisplay",
    "ProgressiveScoreDisplay",
    "RegretDisplay",
    "TermImportanceDisplay",
]
