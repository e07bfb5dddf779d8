"""Learning rates from the theorems: the rate that minimises a relative loss bound, given bounds on the data.

All follow from the identity c (a_t - u.x_t) = D(u, w_t) - D(u, w_{t+1}) + D(w_t, w_{t+1}) and D(w, w(c)) <= M c^2 / 2,
with M the divergence's `smoothness` for rows of the size `x`. A row of weight h is a row of weight 1 at h times the
rate, so that a bound that holds for a rate and all lower ones also holds for rows with weights.

Burg and relative entropy have an M for bounded weights only. The projection that follows a step does not undo the
curvature that an implicit step has met above the bound, so that M is that of the largest weight the step can reach, and
increases with the rate (docs/regret.rst).

With a strongly convex penalty rates of 1 / (H t) have a regret of O(log T).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import expm1, inf, log, sqrt

import numpy as np
from scipy.optimize import minimize_scalar

from .._objects import is_finite_number
from ..divergences import Divergence, SquaredEuclidean
from ..losses import Loss
from ..penalties import ElasticNet, Penalty
from ..schedules import Constant, Schedule

KEYS = {
    "x": "the size of a row: its 2-norm (squared Euclidean), largest absolute value (relative entropy on the simplex) "
    "or p-norm; the distance of the extreme eigenvalues of an instance (von Neumann), z.z for rows z",
    "u": "the size of the comparator's weights: their 2-norm or q-norm; not for weights on the simplex or of one trace",
    "intercept": "the size of the comparator's intercept; 0 if left out",
    "loss": "the comparator's cumulative loss; for the squared loss",
    "n_rows": "the number of rows; for losses with bounded slope, without a penalty",
    "divergence": "D(u, w_1) of the comparator's weights, which replaces the bound on their size",
    "y": "the absolute value of a target; for implicit steps on the squared loss, within an upper bound on the weights "
    "or with a penalty",
}

# The rate that minimises a bound has an M at most this much larger than that of infinitesimal rates.
_STEEPEST = 1e12

# Squared loss: L <= factor(k) L_u + constant(k) M D, with the rate k / M.
_FACTORS = {
    "explicit": (lambda k: 1 / (1 - k), lambda k: 1 / k),  # k < 1
    "implicit": (lambda k: 1 + k, lambda k: 1 + 1 / k),
    "importance": (lambda k: -2 * k / expm1(-2 * k), lambda k: -2 / expm1(-2 * k)),
}


@dataclass(frozen=True)
class TheoryRate:
    """The rates eta0 / t^power and their guarantee: L <= factor L_u + constant, losses times the rows' weights.

    With a penalty R, L_u includes R(u) for each row.
    """

    eta0: float
    factor: float
    constant: float
    power: float = 0.0

    @property
    def schedule(self) -> Schedule:
        """The rates."""
        return Schedule(self.eta0, self.power) if self.power else Constant(self.eta0)

    def regret(self, comparator_loss: float) -> float:
        """The bound on L - L_u, given an upper bound on L_u."""
        return (self.factor - 1) * comparator_loss + self.constant if self.constant < inf else inf


def adaptive_rate_bound(rates: tuple[float, float], divergence: float, comparator_loss: float) -> float:
    """A bound on the loss of the Burg gradient, whose rate decreased from the first to the last of `rates`.

    JKD07, Theorems 1 and 2: as eta_t L_t(w_t) <= 2 eta_t L_t(u) + D(u, w_t) - D(u, w_{t+1}) for every row,
    L <= 2 eta_1 / eta_T L_u + D(u, w_1) / eta_T.
    """
    if not 0 <= comparator_loss < inf:
        raise ValueError(f"comparator_loss must be a finite number >= 0; got {comparator_loss!r}.")
    first, last = rates
    if first == 0:  # only rows of zeros, for which all weights predict the same
        return float(comparator_loss)
    return 2 * first / last * comparator_loss + divergence / last


def theory_rate(
    divergence: Divergence,
    loss: Loss,
    update: str,
    data_bounds: dict[str, float] | None,
    n_features: int,
    *,
    signed: bool,
    fit_intercept: bool,
    largest_weight: float = 1.0,
    rows: int = 0,
    upper: float = inf,
) -> TheoryRate:
    """The rate with the smallest bound for all comparators and rows within `data_bounds`.

    The rate is for rows of weight 1. The guarantee holds for weights up to `largest_weight` >= 1, and for `rows` rows
    if they are more than data_bounds["n_rows"]. Weights are projected to `upper`, which is infinite for none.
    """
    bounds = _check_bounds(data_bounds)
    smoothness = _smoothness(divergence, loss, update, bounds, n_features, upper, fit_intercept)
    flat = smoothness(0.0)
    distance = _distance(divergence, bounds, n_features, signed) + bounds.get("intercept", 0.0) ** 2 / 2
    if loss.curvature_range == (1.0, 1.0):  # the squared loss
        factor, price = _FACTORS[update]
        # without a bound on the comparator's loss, balance the two terms of the bound
        comparator = bounds.get("loss", flat * distance)

        def bound(scale: float, weight: float = 1.0) -> tuple[float, float]:
            """Factor and constant for rows of this weight at the rate scale / flat."""
            steepest = smoothness(scale / flat * weight)
            k = scale * weight * (steepest / flat)
            if k == inf or (update == "explicit" and k >= 1):
                return inf, inf
            return factor(k), weight * price(k) * (steepest * distance)

        def objective(scale: float) -> float:
            of_loss, constant = bound(scale)
            return of_loss * comparator + constant

        most = -1e-6 if update == "explicit" else 20.0
        scale = _best(objective, most, lambda scale: smoothness(scale / flat) / flat)
        return TheoryRate(scale / flat, *bound(scale, largest_weight))
    slope = loss.lipschitz
    if slope == inf:
        raise _unbounded_slope(loss)
    n_rows = _needed(bounds, "n_rows")
    rate = sqrt(2 * distance / (flat * n_rows)) / slope
    constant = slope * sqrt(2 * distance * flat * n_rows)

    def regret(part: float, weight: float = 1.0, more: float = 1.0) -> float:
        """The sum of distance / rate and of rate (weight slope)^2 M / 2 for each row, at this part of the rate."""
        steepest = smoothness(part * rate * weight)
        return (1 / part + part * weight * weight * (steepest / flat) * more) / 2 * constant

    part = 1.0
    if smoothness(rate) > flat:
        part = _best(regret, 0.0, lambda part: smoothness(part * rate) / flat)
    return TheoryRate(part * rate, 1.0, regret(part, largest_weight, max(rows / n_rows, 1.0)))


def penalised_rate(
    divergence: Divergence,
    loss: Loss,
    update: str,
    penalty: Penalty,
    data_bounds: dict[str, float] | None,
    n_features: int,
    *,
    signed: bool,
    fit_intercept: bool,
    around_zero: bool,
    largest_weight: float = 1.0,
    rows: int = 0,
) -> TheoryRate:
    """The rates 1 / (H t) for a penalty that is H-strongly convex (KB10, Theorem 4.5), and their guarantee for `rows`.

    `around_zero` says that weights start at 0 and that projections do not increase their 2-norm.
    """
    bounds = _check_bounds(data_bounds)
    strength = penalty.l2 if isinstance(penalty, ElasticNet) else 0.0
    if not isinstance(divergence, SquaredEuclidean) or strength == 0:
        raise ValueError(
            "With a penalty learning_rate='theory' requires divergence='squared_euclidean' and an L2 part of the "
            f"penalty (penalty='l2' or 'elasticnet', alpha > 0); got {divergence!r} and {penalty!r}. Use penalty=None, "
            "or another learning_rate."
        )
    if fit_intercept:
        raise ValueError(
            "With a penalty learning_rate='theory' requires fit_intercept=False, since the intercept is not penalised; "
            "got True. A column of ones has a penalised intercept."
        )
    x, slope = _needed(bounds, "x"), loss.lipschitz
    if loss.curvature_range == (1.0, 1.0):  # the squared loss
        if update == "explicit" or not around_zero:
            raise ValueError(
                "With a penalty learning_rate='theory' for the squared loss requires update='implicit' or "
                "'importance', init=None and a constraint that contains 0, which bound its slope."
            )
        # the 2-norm of the weights is at most that of the steps towards y, largest_weight y x / H
        slope = _needed(bounds, "y") * (1 + largest_weight * x * x / strength)
    if slope == inf:
        raise _unbounded_slope(loss)
    distance = _distance(divergence, bounds, n_features, signed)
    steps = (largest_weight * slope * x) ** 2 / (2 * strength) * (1 + log(max(rows, 1)))
    return TheoryRate(1 / strength, 1.0, strength * distance + steps, power=1.0)


def _unbounded_slope(loss: Loss) -> ValueError:
    return ValueError(
        f"The loss must be squared or have a bounded slope for learning_rate='theory'; got {loss!r}. Use another "
        "learning_rate, and choose eta0."
    )


def _best(bound: Callable[[float], float], most: float, steepening: Callable[[float], float]) -> float:
    """The minimum of a bound over scales of the rate up to exp(most), where M has not grown beyond all use."""
    least, reached, beyond = -20.0, -700.0, most
    if steepening(float(np.exp(most))) > _STEEPEST:
        while beyond - reached > 1e-3:
            middle = (reached + beyond) / 2
            reached, beyond = (middle, beyond) if steepening(float(np.exp(middle))) <= _STEEPEST else (reached, middle)
        least, most = reached - 40.0, reached
    options = {"xatol": 1e-10}
    found = minimize_scalar(lambda z: bound(float(np.exp(z))), bounds=(least, most), method="bounded", options=options)
    return float(np.exp(found.x))


def _smoothness(
    divergence: Divergence,
    loss: Loss,
    update: str,
    bounds: dict[str, float],
    n_features: int,
    upper: float,
    fit_intercept: bool,
) -> Callable[[float], float]:
    """M as a function of the rate, the intercept included."""
    x = _needed(bounds, "x")
    divergence.smoothness_below(x, upper)  # raises the error if there is none
    if update == "explicit" or not _needs_upper(divergence):
        slope = 0.0
    elif loss.curvature_range == (1.0, 1.0):
        # abs(w.x) <= upper sqrt(n) x, and implicit steps keep abs(b) below the sum of this and y
        largest = _needed(bounds, "y") + upper * sqrt(n_features) * x
        slope = 2 * largest if fit_intercept else largest
    else:
        slope = loss.lipschitz
    return lambda rate: divergence.smoothness_below(x, upper, rate * slope * x) + fit_intercept


def _needs_upper(divergence: Divergence) -> bool:
    """Whether M is for bounded weights only."""
    return type(divergence).smoothness_below is not Divergence.smoothness_below


def _check_bounds(data_bounds: dict[str, float] | None) -> dict[str, float]:
    for key, value in (data_bounds or {}).items():
        if key not in KEYS:
            raise ValueError(f"The keys of data_bounds must be among {', '.join(map(repr, KEYS))}; got {key!r}.")
        if not is_finite_number(value) or value < 0 or (value == 0 and key not in ("loss", "intercept", "y")):
            raise ValueError(f"data_bounds[{key!r}] must be a positive finite number; got {value!r}.")
    return {key: float(value) for key, value in (data_bounds or {}).items()}


def _needed(bounds: dict[str, float], key: str) -> float:
    if key not in bounds:
        raise ValueError(f"learning_rate='theory' needs data_bounds[{key!r}], a bound on {KEYS[key]}.")
    return bounds[key]


def _distance(divergence: Divergence, bounds: dict[str, float], n_features: int, signed: bool) -> float:
    """The largest D(u, w_1), with w_1 the default start."""
    if signed and divergence.lower < 0:
        raise ValueError(
            f"signed must be False for learning_rate='theory' with {divergence!r}, whose weights can have any sign; "
            "got True."
        )
    if signed and _needs_upper(divergence):
        raise ValueError(
            f"signed must be False for learning_rate='theory' with {divergence!r}; got True. Use SimplexEntropy."
        )
    if _needs_upper(divergence) or "divergence" in bounds:
        return _needed(bounds, "divergence")
    distance = divergence.largest_divergence(2 * n_features if signed else n_features, bounds.get("u", inf))
    if distance == inf:
        _needed(bounds, "u")
    return distance
