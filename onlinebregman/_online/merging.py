"""Models that learned in parallel, mixed into one.

A copy of the model learns the n_s rows of each shard s of the data, n in all. The copies are combined in two ways.
Weights are averaged in the mirror space, which keeps them in the domain,

    theta = sum n_s theta_s / n,    theta_s = f(w_s).

For numbers of rows and sums over rows (losses, statistics, the state of an adaptive geometry) the increments on all
shards are added, q = q_0 + sum (q_s - q_0). Sums are taken in the order of the shards.

D(u, f^-1(theta)) = F(u) + F*(theta) - theta.u is convex in theta, so that D(u, w) <= sum n_s D(u, w_s) / n: the mean of
the regret certificates of the shards is one for the mixture, and the next round continues from it. Therefore the sums
of certificates are averaged like the weights.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from .._kernels.geometries.adaptive import AdaGradGeometry, AdaptiveGeometry, NormalisedGeometry
from .._kernels.geometries.geometry import Geometry
from .._kernels.learners.gradient_rate import GradientRate
from .._kernels.learners.learner import Learner
from .._kernels.rows.rows import RowMap
from .._kernels.rows.standardizer import Standardizer

# Smallest deviation of a column that is not constant, relative to its mean; the same as in the compiled standardizer.
_LEAST = 1e-14


def mean(fractions: Sequence[float], values: Sequence[Any]) -> Any:
    """sum fraction_s value_s, in order; values with a fraction of 0 are ignored, even if they are not finite."""
    return reduce(np.add, (fraction * value for fraction, value in zip(fractions, values, strict=True) if fraction > 0))


def total(start: Any, values: Sequence[Any]) -> Any:
    """start + sum (value_s - start): the increments of all added to the start."""
    return reduce(np.add, (value - start for value in values), start)


class Moments(NamedTuple):
    """The weight of some rows, their mean, and their scatter about it: sums of squares of columns, or a matrix.

    Where columns remember different rows, there is a weight for each.
    """

    weight: Any
    mean: Any
    scatter: Any


def pooled(start: Moments, parts: Sequence[Moments], square: Callable[[Any], Any] = np.square) -> Moments:
    """The moments of all rows: those of `start`, and those that each of `parts` has in addition."""
    center = next((part.mean for part in (start, *parts) if np.any(part.weight > 0)), start.mean)

    def about_center(moments: Moments) -> tuple[float, Any, Any]:
        offset = moments.mean - center
        return moments.weight, moments.weight * offset, moments.scatter + moments.weight * square(offset)

    sums = zip(*map(about_center, parts), strict=True)
    weight, first, second = (total(*pair) for pair in zip(about_center(start), sums, strict=True))
    if not np.any(weight > 0):
        return start
    offset = first / np.where(weight > 0, weight, 1.0)
    return Moments(weight if np.ndim(weight) else float(weight), center + offset, second - weight * square(offset))


# The intercept, and the sums of the regret certificate.
_BY_FRACTION = ("intercept", "weighted_loss", "slack", "rate_sum", "plain_slack", "plain_rows")
# All shards start with the same rate; the next round must not start with a larger one than any of them ended with.
# The largest weight is that of all rows.
_EXTREMES: dict[str, Callable] = {"first_rate": max, "last_rate": min, "rate_rose": max, "largest_weight": max}

# --- learners ---------------------------------------------------------------------------------------------------------


def merged_learner(
    start: Learner,
    parts: Sequence[Learner],
    fractions: Sequence[float],
    geometry: Geometry,
    row_map: RowMap | None = None,
) -> Learner:
    """A learner with the mixed geometry: `_BY_FRACTION` is averaged like the weights, everything else is added."""
    _, _, state = start.__reduce__()[1]
    rule, limit = state["rule"], state["limit"]
    if limit is not None:
        limit = merged_limit(limit, [part.limit for part in parts])
    rule = limit if rule is state["limit"] else copy.copy(rule)
    runs = [part.run for part in parts]
    run = {name: float(total(value, [each[name] for each in runs])) for name, value in state["run"].items()}
    run.update({name: float(mean(fractions, [each[name] for each in runs])) for name in _BY_FRACTION})
    learned = [each for each, fraction in zip(runs, fractions, strict=True) if fraction > 0]
    run.update({name: pick(each[name] for each in learned) for name, pick in _EXTREMES.items()})
    state.update(run=run, rule=rule, limit=limit, row_map=row_map)
    return type(start)(geometry, start.loss, state)


def merged_limit(start: GradientRate, parts: Sequence[GradientRate]) -> GradientRate:
    """The rule of the Burg gradient: the largest rows and sums of weights, and the rates that follow from them."""
    schedule, state, history = start.__reduce__()[1]
    states = [part.__reduce__()[1][1] for part in parts]
    picks: dict[str, Callable] = {"radius": max, "mass": max, "first_rate": max, "rate": min, "noted": min}
    state.update({name: pick(each[name] for each in states) for name, pick in picks.items()})
    return type(start)(copy.copy(schedule), state, history)


def merged_geometry(start: Learner, parts: Sequence[Learner], fresh: Geometry) -> Geometry:
    """Set the state of `fresh`, a new geometry with the mixed weights, from those of the parts."""
    geometries = [part.geometry for part in parts]
    fresh.upper = start.geometry.upper
    if any(geometry.averaging for geometry in geometries):
        fresh.start_averaging()
    state, first, *states = (geometry.get_state() for geometry in (fresh, start.geometry, *geometries))
    for name in fresh.row_sums:
        state[name] = total(first[name], [each[name] for each in states])
    if fresh.averaging:  # the sum of w = w+ - w- over all steps
        first_sum, *part_sums = (each.coef * each.run["averaged"] for each in (start, *parts))
        moved, sums = total(first_sum, part_sums), state["average_sum"]
        sums[:] = np.r_[moved, np.zeros_like(moved)] if fresh.is_signed else np.resize(moved, len(sums))
    fresh.set_state(state)
    return fresh


def merged_adaptive(start: Learner, parts: Sequence[Learner], fractions: Sequence[float]) -> AdaptiveGeometry:
    """D_t(u, w) = sum h (u - w)^2 / 2 has the dual h w: weights are averaged with weights h, whose sums are added.

    Sums in units of the largest value M so far are converted to the largest M of all parts.
    """
    before, geometries = start.geometry, [part.geometry for part in parts]
    metrics = [geometry.metric for geometry in geometries]
    largest = np.maximum.reduce(metrics)
    scaled = [np.divide(h, largest, out=np.zeros_like(h), where=largest > 0) for h in metrics]  # h^2 may overflow
    weight = mean(fractions, scaled)
    dual = mean(fractions, [h * g.state_weights for h, g in zip(scaled, geometries, strict=True)])
    w = np.divide(dual, weight, out=before.state_weights, where=weight > 0)

    fresh = type(before)(w, *before._arguments()[1:])
    if before.box is not None:
        fresh.confine(*before.box)
    fresh.penalise(before.l1, before.l2)
    state = merged_geometry(start, parts, fresh).get_state()
    states = [geometry.get_state() for geometry in (before, *geometries)]
    blocks, first, *others = (each["blocks"].reshape(-1, fresh.n_features) for each in (state, *states))
    if isinstance(before, AdaGradGeometry):
        blocks[1] = total(first[1], [other[1] for other in others])
    elif isinstance(before, NormalisedGeometry):
        blocks[2] = reciprocal = np.minimum.reduce([other[2] for other in others])  # 1 / M
        first_sum, *sums = (each[1] * (reciprocal / each[2]) ** 2 for each in (first, *others))
        blocks[1] = np.maximum(total(first_sum, sums), 0.0)
        targets = [_targets(each) for each in states]
        found = pooled(targets[0], targets[1:])
        state.update(target_weight=found.weight, target_mean=found.mean, target_spread=max(found.scatter, 0.0))
    fresh.set_state(state)
    return fresh


def _targets(state: dict[str, float]) -> Moments:
    return Moments(state["target_weight"], state["target_mean"], state["target_spread"])


def merged_standardizer(start: Standardizer | None, parts: Sequence[Standardizer]) -> Standardizer | None:
    """A standardizer with the statistics of all rows; where columns forgot some of the start's, those of the parts."""
    if start is None:
        return None
    kind, (n_features, centred, _, _, *options) = start.__reduce__()

    def moments(each: Standardizer) -> Moments:
        deviations, _, means, weights, _ = each.__reduce__()[1][2].reshape(5, -1)
        return Moments(weights, means, weights * deviations**2)

    before, after = moments(start), [moments(part) for part in parts]
    found = pooled(before, after)
    forgot = np.any([each.weight < before.weight for each in after] + [found.scatter < 0], axis=0)
    if forgot.any():
        alone = pooled(Moments(*np.zeros((3, n_features))), after)
        found = Moments(*(np.where(forgot, *pair) for pair in zip(alone, found, strict=True)))
    weights, means, squares = found
    deviations = np.sqrt(np.maximum(squares, 0.0) / np.where(weights > 0, weights, 1.0))
    units = deviations * (1.0 if centred else np.sqrt(weights))
    inverses = np.divide(1.0, units, out=np.zeros_like(units), where=deviations > _LEAST * abs(means))
    weight = float(total(start.n_samples_seen, [part.n_samples_seen for part in parts]))
    return kind(n_features, centred, np.r_[deviations, inverses, means, weights, 0.0 * weights], weight, *options)
