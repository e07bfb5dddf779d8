"""Learning with nothing to tune: mixtures in one pass over geometries, rates and losses."""

from .classifier import ParameterFreeClassifier
from .regressor import ParameterFreeRegressor

__all__ = ["ParameterFreeClassifier", "ParameterFreeRegressor"]
