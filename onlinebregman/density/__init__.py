"""Densities: exponential families learned online, outlier detection by them, and maximum entropy."""

from .exponential_family import OnlineExponentialFamily
from .gaussian import OnlineGaussian
from .max_entropy import MaxEntDensity
from .outliers import DensityOutlierDetector

__all__ = ["DensityOutlierDetector", "MaxEntDensity", "OnlineExponentialFamily", "OnlineGaussian"]
