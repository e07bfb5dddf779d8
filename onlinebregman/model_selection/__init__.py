"""Evaluation and selection of models on streams: progressive validation, many rates, offline comparators."""

from ._comparators import offline_comparator
from ._learning_rates import LearningRateMixture, LearningRatePath
from ._progressive import progressive_val_predict, progressive_val_score

__all__ = [
    "LearningRateMixture",
    "LearningRatePath",
    "offline_comparator",
    "progressive_val_predict",
    "progressive_val_score",
]
