"""Factors L of a learned matrix W = L'L."""

from __future__ import annotations

import numpy as np
from scipy import linalg
from sklearn.utils.extmath import svd_flip


def factor(matrix: np.ndarray) -> np.ndarray:
    """L with W = L'L; rows are the principal directions, longest first."""
    values, vectors = linalg.eigh(matrix)
    vectors, _ = svd_flip(vectors[:, ::-1], None)
    return (vectors * np.sqrt(np.maximum(values[::-1], 0.0))).T


def balanced_factor(matrix: np.ndarray) -> np.ndarray:
    """L with W = L'L, by features scaled to W_ii = 1: distances keep their digits in whatever units."""
    scale = np.sqrt(np.maximum(matrix.diagonal(), 0.0))
    scale[scale == 0] = 1.0
    return factor(matrix / np.outer(scale, scale)) * scale
