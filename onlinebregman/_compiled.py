"""Which compiled geometry and loss stand for a `Divergence` and a `Loss`; all others run on their own NumPy methods."""

from __future__ import annotations

import numpy as np

from ._kernels.geometries.binary_entropy import BinaryEntropyGeometry
from ._kernels.geometries.burg import BurgGeometry
from ._kernels.geometries.entropy import EntropyGeometry, SimplexGeometry
from ._kernels.geometries.euclidean import EuclideanGeometry
from ._kernels.geometries.geometry import Geometry
from ._kernels.geometries.numpy_path import NumPyGeometry, NumPyLoss
from ._kernels.geometries.pnorm import PNormGeometry
from ._kernels.losses import loss as compiled_losses
from .constraints import Constraint, L2Ball, UpperBound
from .divergences import BinaryEntropy, Burg, Divergence, PNorm, RelativeEntropy, SimplexEntropy, SquaredEuclidean
from .losses import (
    AbsoluteLoss,
    BoundLoss,
    EpsilonInsensitiveLoss,
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    Loss,
    PoissonLoss,
    SquaredLoss,
)

_CLIPPED = {
    SquaredEuclidean: EuclideanGeometry,
    RelativeEntropy: EntropyGeometry,
    Burg: BurgGeometry,
    BinaryEntropy: BinaryEntropyGeometry,
}


def make_geometry(
    divergence: Divergence, weights: np.ndarray, doubled: bool = False, constraint: Constraint | None = None
) -> Geometry:
    """The geometry that moves `weights` in `divergence`, each step followed by the projection onto `constraint`.

    `doubled` weights are w+ and w-, one after the other, of a model with weights w+ - w-.
    """
    kind = type(divergence)  # a subclass may have changed anything
    if kind is SimplexEntropy and constraint is None:
        return SimplexGeometry(weights, doubled, size=divergence.total)
    if kind is SquaredEuclidean and type(constraint) is L2Ball:
        return EuclideanGeometry(weights, doubled, radius=constraint.radius)
    if kind is PNorm and divergence.p <= 500 and constraint is None and not doubled:
        return PNormGeometry(weights, divergence.p)
    if kind in _CLIPPED and constraint is None:
        return _CLIPPED[kind](weights, doubled)
    if kind in _CLIPPED and type(constraint) is UpperBound and np.ndim(constraint.bound) == 0:
        return _CLIPPED[kind](weights, doubled, upper=constraint.bound)
    return NumPyGeometry(weights, doubled, divergence, constraint)


def make_loss(loss: Loss) -> compiled_losses.Loss:
    """The compiled loss of the same numbers, or one that asks `loss`."""
    kind = type(loss)
    if kind in (SquaredLoss, LogisticLoss, PoissonLoss, BoundLoss):
        return getattr(compiled_losses, kind.__name__)()
    if kind in (AbsoluteLoss, EpsilonInsensitiveLoss):
        return compiled_losses.EpsilonInsensitiveLoss(0.0 if kind is AbsoluteLoss else loss.epsilon)
    if kind is HuberLoss:
        return compiled_losses.HuberLoss(loss.epsilon)
    if kind is HingeLoss:
        return compiled_losses.HingeLoss(loss.margin)
    if np.size(loss.kinks(1.0)):
        raise ValueError(
            f"{loss!r} has kinks, but a loss of your own has to be smooth; use HuberLoss, EpsilonInsensitiveLoss or "
            "HingeLoss, or a smooth version of it."
        )
    return NumPyLoss(loss)
