"""Kernels between objects learned online, as regressors on z'Wz and transformers to an embedding."""

from ._instances import pair_rows
from .definite_boost import DefiniteBoost
from .matrix_burg import MatrixBurgRegressor
from .meg import MEGKernelLearner

__all__ = ["DefiniteBoost", "MEGKernelLearner", "MatrixBurgRegressor", "pair_rows"]
