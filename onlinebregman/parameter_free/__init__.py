"""Learning without parameters to tune: mixtures over geometries, learning rates and losses, in one pass."""

from .classifier import ParameterFreeClassifier
from .regressor import ParameterFreeRegressor

__all__ = ["ParameterFreeClassifier", "ParameterFreeRegressor"]
