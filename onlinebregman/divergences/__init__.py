"""Geometry: Bregman divergences as small objects, the readable definition of each potential.

Vectors: `SquaredEuclidean`, `RelativeEntropy`, `SimplexEntropy`, `Burg`, `PNorm`, `BinaryEntropy`. Symmetric matrices:
`SquaredFrobenius`, `VonNeumann`, `LogDet`. For a potential of your own subclass `Divergence` or `SeparableDivergence`.
"""

from ._base import Divergence, SeparableDivergence
from ._names import DIVERGENCES, resolve_divergence
from .matrices import LogDet, SquaredFrobenius, VonNeumann
from .pnorm import PNorm
from .vectors import BinaryEntropy, Burg, RelativeEntropy, SimplexEntropy, SquaredEuclidean

__all__ = [
    "DIVERGENCES",
    "BinaryEntropy",
    "Burg",
    "Divergence",
    "LogDet",
    "PNorm",
    "RelativeEntropy",
    "SeparableDivergence",
    "SimplexEntropy",
    "SquaredEuclidean",
    "SquaredFrobenius",
    "VonNeumann",
    "resolve_divergence",
]
