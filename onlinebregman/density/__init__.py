"""Densities: exponential families learned online, and maximum entropy over a finite domain."""

from .exponential_family import OnlineExponentialFamily
from .gaussian import OnlineGaussian
from .max_entropy import MaxEntDensity

__all__ = ["MaxEntDensity", "OnlineExponentialFamily", "OnlineGaussian"]
