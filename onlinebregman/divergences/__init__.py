"""Bregman divergences as small objects: the readable definition of each potential.

Vectors: `SquaredEuclidean`, `WeightedSquaredEuclidean`, `RelativeEntropy`, `SimplexEntropy`, `Burg`, `PNorm`,
`BinaryEntropy`. Adaptive divergences: `AdaGrad`, `NormalizedAdaGrad`, `DiagonalNewton`. Symmetric matrices:
`SquaredFrobenius`, `VonNeumann`, `LogDet`. `Conjugate`, `Scaled` and `Stacked` derive others from them;
`TwoDivergences` is the duality between two. For your own potential, subclass `Divergence` or `SeparableDivergence`.
"""

from ._base import DIVERGENCES, Divergence, SeparableDivergence, resolve_divergence
from .adaptive import AdaGrad, AdaptiveDivergence, DiagonalNewton, NormalizedAdaGrad
from .duality import Conjugate, Scaled, Stacked, TwoDivergences
from .entropies import BinaryEntropy, Burg, RelativeEntropy, SimplexEntropy
from .euclidean import SquaredEuclidean, WeightedSquaredEuclidean
from .matrices import LogDet, SquaredFrobenius, VonNeumann
from .pnorm import PNorm

__all__ = [
    "DIVERGENCES",
    "AdaGrad",
    "AdaptiveDivergence",
    "BinaryEntropy",
    "Burg",
    "Conjugate",
    "DiagonalNewton",
    "Divergence",
    "LogDet",
    "NormalizedAdaGrad",
    "PNorm",
    "RelativeEntropy",
    "Scaled",
    "SeparableDivergence",
    "SimplexEntropy",
    "SquaredEuclidean",
    "SquaredFrobenius",
    "Stacked",
    "TwoDivergences",
    "VonNeumann",
    "WeightedSquaredEuclidean",
    "resolve_divergence",
]
