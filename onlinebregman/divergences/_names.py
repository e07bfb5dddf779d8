"""Names of the vector divergences, as the parameter `divergence` of an estimator."""

from __future__ import annotations

import math

from sklearn.exceptions import NotFittedError

from ._base import Divergence
from .adaptive import AdaGrad, DiagonalNewton, NormalizedAdaGrad
from .entropies import BinaryEntropy, Burg, RelativeEntropy, SimplexEntropy
from .euclidean import SquaredEuclidean
from .pnorm import PNorm

DIVERGENCES: dict[str, type[Divergence]] = {
    "squared_euclidean": SquaredEuclidean,
    "relative_entropy": RelativeEntropy,
    "simplex_entropy": SimplexEntropy,
    "burg": Burg,
    "binary_entropy": BinaryEntropy,
    "p_norm": PNorm,
    "adagrad": AdaGrad,
    "normalized_adagrad": NormalizedAdaGrad,
    "diagonal_newton": DiagonalNewton,
}


def resolve_divergence(divergence: str | Divergence, n_features: int | None = None) -> Divergence:
    """The divergence behind an estimator's parameter `divergence`.

    Parameters
    ----------
    divergence : {"squared_euclidean", "relative_entropy", "simplex_entropy", "burg", "binary_entropy", "p_norm", \
            "adagrad", "normalized_adagrad", "diagonal_newton"} or Divergence
        A name, for the divergence with its default parameters (total 1 on the simplex, and p = 2 ln n, at least 2), or
        a divergence, which is returned unchanged.
    n_features : int, default=None
        n; needed for "p_norm".

    Returns
    -------
    Divergence
        The divergence.

    Examples
    --------
    >>> from onlinebregman.divergences import resolve_divergence
    >>> resolve_divergence("burg")
    Burg()
    >>> round(resolve_divergence("p_norm", n_features=1000).p, 2)
    13.82
    """
    if isinstance(divergence, Divergence):
        return divergence
    if divergence not in DIVERGENCES:
        raise ValueError(
            f"divergence must be one of {', '.join(map(repr, DIVERGENCES))}, or a Divergence such as "
            f"onlinebregman.divergences.SimplexEntropy(total=2.0); got {divergence!r}."
        )
    if divergence == "p_norm":
        return PNorm(automatic_p(n_features))
    return DIVERGENCES[divergence]()


def automatic_p(n_features: int | None) -> float:
    """p = 2 ln n, at least 2: the p of the p-norm algorithm that behaves like exponentiated gradient."""
    if n_features is None:
        raise NotFittedError("p = 2 ln n depends on the number of features n, which is known once rows have been seen")
    return max(2.0, 2.0 * math.log(n_features))
