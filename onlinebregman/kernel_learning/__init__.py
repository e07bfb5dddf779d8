"""Kernels between objects learned online, as regressors on z'Wz and transformers to an embedding."""

from ._instances import pair_rows
from .definite_boost import DefiniteBoost
from .meg import MEGKernelLearner

__all__ = ["DefiniteBoost", "MEGKernelLearner", "pair_rows"]
