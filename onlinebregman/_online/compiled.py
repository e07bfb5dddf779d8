"""Tables of the compiled divergences, losses and penalties; all others run on their own NumPy methods."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

import onlinebregman._kernels.losses.loss as compiled

from .. import losses
from .._kernels.geometries.adaptive import AdaGradGeometry, DiagonalNewtonGeometry, NormalisedAdaGradGeometry
from .._kernels.geometries.entropy import BinaryEntropyGeometry, BurgGeometry, EntropyGeometry, SimplexGeometry
from .._kernels.geometries.euclidean import EuclideanGeometry
from .._kernels.geometries.geometry import Geometry
from .._kernels.geometries.numpy_geometry import NumPyGeometry
from .._kernels.geometries.pnorm import PNormGeometry
from .._kernels.losses.loss import NumPyLoss
from ..constraints import Box, Constraint, L2Ball, UpperBound
from ..divergences import (
    AdaGrad,
    BinaryEntropy,
    Burg,
    DiagonalNewton,
    Divergence,
    NormalizedAdaGrad,
    PNorm,
    RelativeEntropy,
    SimplexEntropy,
    SquaredEuclidean,
)
from ..losses import Loss, SquaredLoss
from ..losses.margin import OneClassLoss
from ..penalties import L1, L2, ElasticNet, ExplicitElasticNet, Penalty

# Compiled geometry of a divergence class with a constraint class; it may be None for some parameters. Subclasses are
# not looked up here, as they may override any method.
_GEOMETRIES: dict[tuple[type, type], Callable[..., Geometry | None]] = {
    (SquaredEuclidean, NoneType): lambda w, signed, F, C: EuclideanGeometry(w, signed),
    (SquaredEuclidean, UpperBound): lambda w, signed, F, C: _below(EuclideanGeometry, w, signed, C),
    (SquaredEuclidean, L2Ball): lambda w, signed, F, C: EuclideanGeometry(w, signed, radius=C.radius),
    (RelativeEntropy, NoneType): lambda w, signed, F, C: EntropyGeometry(w, signed),
    (RelativeEntropy, UpperBound): lambda w, signed, F, C: _below(EntropyGeometry, w, signed, C),
    (Burg, NoneType): lambda w, signed, F, C: BurgGeometry(w, signed),
    (Burg, UpperBound): lambda w, signed, F, C: _below(BurgGeometry, w, signed, C),
    (BinaryEntropy, NoneType): lambda w, signed, F, C: BinaryEntropyGeometry(w, signed),
    (BinaryEntropy, UpperBound): lambda w, signed, F, C: _below(BinaryEntropyGeometry, w, signed, C),
    (SimplexEntropy, NoneType): lambda w, signed, F, C: SimplexGeometry(w, signed, size=F.total),
    (PNorm, NoneType): lambda w, signed, F, C: None if signed or F.p > 500 else PNormGeometry(w, F.p),
}


# Compiled geometry of an adaptive divergence; there is no NumPy alternative.
_ADAPTIVE: dict[type, type[Geometry]] = {
    AdaGrad: AdaGradGeometry,
    NormalizedAdaGrad: NormalisedAdaGradGeometry,
    DiagonalNewton: DiagonalNewtonGeometry,
}
# Pairs of a divergence and a penalty whose proximal step is compiled, with parameters `l1` and `l2`.
_PENALTIES: set[tuple[type, type]] = {
    *product((SquaredEuclidean, RelativeEntropy, Burg, BinaryEntropy), (L1, L2, ElasticNet)),
    (PNorm, L1),
    (SquaredEuclidean, ExplicitElasticNet),
}
# Compiled losses, and the attributes that are their parameters
_LOSSES: dict[type, tuple] = {
    losses.SquaredLoss: (compiled.SquaredLoss,),
    losses.LogisticLoss: (compiled.LogisticLoss,),
    losses.PoissonLoss: (compiled.PoissonLoss,),
    losses.TweedieLoss: (compiled.TweedieLoss, "power"),
    losses.HingeLoss: (compiled.HingeLoss, "margin"),
    OneClassLoss: (compiled.HingeLoss, "margin", "nu"),
    losses.SquaredHingeLoss: (compiled.SquaredHingeLoss,),
    losses.ModifiedHuberLoss: (compiled.ModifiedHuberLoss,),
    losses.AbsoluteLoss: (compiled.EpsilonInsensitiveLoss,),
    losses.EpsilonInsensitiveLoss: (compiled.EpsilonInsensitiveLoss, "epsilon"),
    losses.SquaredEpsilonInsensitiveLoss: (compiled.SquaredEpsilonInsensitiveLoss, "epsilon"),
    losses.QuantileLoss: (compiled.QuantileLoss, "quantile"),
    losses.HuberLoss: (compiled.HuberLoss, "epsilon"),
    losses.BoundLoss: (compiled.BoundLoss,),
}


def _below(geometry: type[Geometry], weights: np.ndarray, signed: bool, constraint: UpperBound) -> Geometry | None:
    """A geometry with one upper bound for all weights; None if the constraint has several."""
    return geometry(weights, signed, upper=constraint.bound) if np.ndim(constraint.bound) == 0 else None


class Spec(NamedTuple):
    """What a run is made of, by the parameters when it starts and by what the class of the estimator fixes."""

    divergence: Divergence
    loss: Loss = SquaredLoss()
    penalty: Penalty | None = None  # whose proximal step follows each step
    constraint: Constraint | None = None  # that weights are projected onto after each step
    signed: bool = False  # whether w+ and w- are learned, with w = w+ - w-
    init: np.ndarray | None = None  # the weights to start from, of linear models; None for those of the divergence
    source: str = "init"  # the parameter that gives `init`
    coef: np.ndarray | None = None  # of each learner, in place of `init`
    intercepts: tuple[float, ...] = ()

    def start(self, number: int) -> tuple[np.ndarray | None, float]:
        """The weights, None for those of the divergence, and the intercept that a learner starts from."""
        init = self.init if self.coef is None else self.coef[number]
        return init, self.intercepts[number] if self.intercepts else 0.0


def make_geometry(spec: Spec, weights: np.ndarray) -> Geometry:
    """The geometry that moves `weights` in the divergence of a run; signed ones are w+ followed by w-.

    Each step is followed by the proximal step of the penalty, and then by the projection onto the constraint. The loss
    matters for adaptive divergences only.
    """
    divergence, penalty, constraint, signed = spec.divergence, spec.penalty, spec.constraint, spec.signed
    if divergence.adaptive:
        return _make_adaptive(spec, weights)
    make = _GEOMETRIES.get((type(divergence), type(constraint)))
    if penalty is not None and (type(divergence), type(penalty)) not in _PENALTIES:
        make = None
    geometry = make and make(weights, signed, divergence, constraint)
    if geometry is None:
        if penalty is not None and penalty.explicit:
            raise ValueError(
                f"{penalty!r} has no step for {divergence!r} and {constraint!r}, but only for "
                f"divergence='squared_euclidean' with an UpperBound, L2Ball or no constraint; use ElasticNet."
            )
        return NumPyGeometry(weights, signed, divergence, constraint, penalty)
    if isinstance(penalty, ElasticNet):
        geometry.penalise(penalty.l1, penalty.l2, penalty.explicit)
    return geometry


def _make_adaptive(spec: Spec, weights: np.ndarray) -> Geometry:
    divergence, loss, penalty, constraint = spec.divergence, spec.loss, spec.penalty, spec.constraint
    if spec.signed:
        raise ValueError(f"signed must be False for {divergence!r}, whose weights can have any sign; got True.")
    if not (penalty is None or type(penalty) in (L1, L2, ElasticNet)):
        raise ValueError(
            f"{divergence!r} is adaptive and has no proximal step of {penalty!r}, as its metric is not known before "
            "the row; use L1, L2 or ElasticNet, or divergence='squared_euclidean'."
        )
    if not (constraint is None or type(constraint) in (UpperBound, Box)):
        raise ValueError(
            f"{divergence!r} is adaptive and has no projection onto {constraint!r}, which would change all weights in "
            "a different metric at each row; use UpperBound or Box, or divergence='squared_euclidean'."
        )
    if type(divergence) not in _ADAPTIVE:
        raise ValueError(
            f"{divergence!r} has no compiled form; use AdaGrad, NormalizedAdaGrad or DiagonalNewton, or your own "
            "divergence that is not adaptive."
        )
    upper: float | np.ndarray = np.inf
    if isinstance(constraint, UpperBound) and np.ndim(constraint.bound) == 0:
        upper, constraint = constraint.bound, None
    arguments: list[Any] = [weights, upper]
    if isinstance(divergence, NormalizedAdaGrad | DiagonalNewton):
        of_quantile = isinstance(loss, losses.QuantileLoss) and isinstance(divergence, NormalizedAdaGrad)
        deviation = 3 if of_quantile else 2 if loss.lipschitz < np.inf else 1  # see `NormalisedGeometry`
        arguments += [loss.degree > 0, (loss.degree in divergence.by_deviation) * deviation]
    if isinstance(divergence, DiagonalNewton):
        arguments += [divergence.curvature or loss.typical_curvature, loss.flat, loss.sigmoid]
    geometry = _ADAPTIVE[type(divergence)](*arguments)
    if constraint is not None:
        low, high = constraint.lower, constraint.upper
        geometry.confine(np.broadcast_to(low, weights.shape), np.broadcast_to(high, weights.shape))
    if isinstance(penalty, ElasticNet):
        geometry.penalise(penalty.l1, penalty.l2)
    return geometry


def make_loss(loss: Loss) -> compiled.Loss:
    """The compiled counterpart of `loss`, or one that calls its methods."""
    kind, *names = _LOSSES.get(type(loss), (None,))
    parameters = [getattr(loss, name) for name in names]
    if any(map(np.ndim, parameters)):  # of several quantiles
        raise ValueError(f"The loss must be one of a single output here; got {loss!r}. Use MirrorDescentRegressor.")
    return NumPyLoss(loss) if kind is None else kind(*parameters)
