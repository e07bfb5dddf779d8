"""Models that learned in parallel, merged into one: `merge`, and what it does with learners of each kind.

A copy of the model learns the n_s rows of each shard s of the data, n in all. The copies are combined in two ways.
Weights are averaged in the mirror space, which keeps them in the domain,

    theta = sum n_s theta_s / n,    theta_s = f(w_s).

For numbers of rows and sums over rows (losses, statistics, the state of an adaptive geometry) the increments on all
shards are added, q = q_0 + sum (q_s - q_0). Sums are taken in the order of the shards.

D(u, f^-1(theta)) = F(u) + F*(theta) - theta.u is convex in theta, so that D(u, w) <= sum n_s D(u, w_s) / n: the mean of
the regret certificates of the shards is one for the merged model, and the next round continues from it. Therefore the
sums of certificates are averaged like the weights.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._kernels.geometries.adaptive import AdaGradGeometry, AdaptiveGeometry, NormalisedGeometry
from .._kernels.geometries.geometry import Geometry
from .._kernels.learners.learner import Learner
from .._kernels.learners.rule import GradientRate
from .._kernels.rows.rows import RowMap
from .._kernels.rows.standardizer import Standardizer
from .estimator import OF_FIT, Before, same

Model = TypeVar("Model", bound=BaseEstimator)

# Smallest deviation of a column that is not constant, relative to its mean; the same as in the compiled standardizer.
_LEAST = 1e-14


def merge(models: Sequence[Model], weights: ArrayLike | None = None, *, start: Model | None = None) -> Model:
    """One model from several that have learned different rows.

    Models that are sums over rows - :class:`~onlinebregman.ForwardRegressor`,
    :class:`~onlinebregman.ForwardClassifier`, :class:`~onlinebregman.OnlineExponentialFamily` and
    :class:`~onlinebregman.OnlineGaussian` - are added up: for the squared loss without `standardize`, and for
    densities, the result is that of one pass over all rows. Other models are averaged in the mirror (dual) space of
    their divergence, in which online steps are additive,

        theta = sum weight_s theta_s / sum weight_s,    theta_s = f(w_s),

    so that the mean stays in the domain. That is the mean of the weights for gradient descent, their geometric mean for
    exponentiated gradient, the mean of inverse matrices for LogDet metrics; of adaptive divergences the mean weighted
    by their metrics. What counts rows (`t_`, `cumulative_loss_`, the statistics of `standardize`, the sums of adaptive
    divergences) is added up. Merging is deterministic; the sums are taken in the order of the models.

    Parameters
    ----------
    models : sequence of fitted estimators
        Models of one class, with the same parameters, columns and classes. They are not changed.
    weights : array-like of shape (n_models,) or None, default=None
        Weights of the models that are averaged, 0 or more. None: the numbers of rows that they have learned. Models
        that are added up have none, as each row counts by its own `sample_weight`.
    start : fitted estimator or None, default=None
        The model from copies of which all have gone on to learn: its rows count once. None: each began without rows.

    Returns
    -------
    model : estimator
        A new model, which can go on learning. Bounds of theorems about one run do not hold for it.

    Raises
    ------
    TypeError
        If the models are of several classes, or of one that cannot be merged; the message says why.
    ValueError
        If there are no models, they differ in parameters, columns or classes, or weights are not valid.
    sklearn.exceptions.NotFittedError
        If a model has not been fitted.

    See Also
    --------
    onlinebregman.dask.DistributedOnline : Learns shards on a cluster, and merges in each round.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import ForwardRegressor, MirrorDescentRegressor, merge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(900, 3))
    >>> y = X @ [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=900)
    >>> shards = np.split(np.arange(900), 3)
    >>> model = merge([ForwardRegressor(standardize=False).partial_fit(X[s], y[s]) for s in shards])
    >>> np.allclose(model.coef_, ForwardRegressor(standardize=False).partial_fit(X, y).coef_)
    True

    Averages are better after several rounds, of which each goes on from the merged model:

    >>> from copy import deepcopy
    >>> model = merge([MirrorDescentRegressor().partial_fit(X[s], y[s]) for s in shards])
    >>> for _ in range(3):
    ...     model = merge([deepcopy(model).partial_fit(X[s], y[s]) for s in shards], start=model)
    >>> model.coef_.round(1), model.t_
    (array([1., 2., 3.]), 3600)
    """
    models = list(models)
    if not models:
        raise ValueError("models must be one fitted model or more; got none.")
    named = [(f"model {number}", model) for number, model in enumerate(models)]
    _check_alike([("start", start), *named] if start is not None else named)
    if start is None:
        start = models[0]._untrained()
        start._unbounded = next(filter(None, (model._why_unbounded() for model in models)), None)
    elif again := [name for name, model in named if model._before.rows > start._before.rows]:
        raise ValueError(
            f"models must go on from start; {again[0]} began again since, as its first targets or columns were absurd, "
            "and has lost what start knew. Let start learn forty rows or more."
        )
    merged = start._merged(models, _fractions(start, models, weights))
    merged._before = Before(*map(total, start._before, zip(*(model._before for model in models), strict=True)))
    return merged


def _check_alike(named: Sequence[tuple[str, Any]]) -> None:
    """That models are of one class that can be merged, fitted, and agree in what they began with."""
    first, one = named[0]
    for name, model in named:
        if type(model) is not type(one):
            raise TypeError(
                f"models must be of one class; {first} is a {type(one).__name__}, {name} a {type(model).__name__}. "
                "Merge those of each class, and average their predictions."
            )
        check_mergeable(model)
        check_is_fitted(model, msg=f"{name[0].upper()}{name[1:]}, a %(name)s, must be fitted; it has learned nothing.")
    facts = [_facts(model) for _, model in named]
    for (name, _), values in zip(named, facts, strict=True):
        for fact in facts[0] | values:
            expected, found = facts[0].get(fact), values.get(fact)
            if not same(found, expected):
                raise ValueError(
                    f"models must have the same {fact}: {_shown(expected)} in {first}, {_shown(found)} in {name}. "
                    "Begin all of them alike, for example as copies of one model."
                )


def check_mergeable(model: Any) -> None:
    """That an estimator, fitted or not, is one of those that can be merged."""
    name, reason = type(model).__name__, getattr(model, "_unmergeable", "it is no estimator of onlinebregman")
    if reason is not None:
        raise TypeError(f"{name} cannot be merged: {reason}. Let one model learn all rows by partial_fit.")


def _facts(model: Any) -> dict[str, Any]:
    """What models that are merged have in common: parameters, and what the first rows decide."""
    facts = {name: value for name, value in model.get_params(deep=False).items() if name not in OF_FIT}
    for name in ("n_features_in_", "feature_names_in_", "classes_"):
        if name in vars(model):
            facts[name] = getattr(model, name)
    return facts


def _shown(value: Any) -> str:
    return f"{value.tolist() if isinstance(value, np.ndarray) else value!r:.200}"


def _fractions(start: Any, models: Sequence[Any], weights: ArrayLike | None) -> list[float]:
    """The fractions of the models in the mean; by default, of the rows that they have learned since the start."""
    if weights is None:
        values = np.array([model.t_ - start.t_ for model in models], dtype=float)
        if (values < 0).any():
            number = int(np.argmin(values))
            raise ValueError(
                f"models must go on from start; model {number} has learned {models[number].t_} rows, start {start.t_}."
            )
        values = values if values.any() else np.ones(len(models))
    elif start._adds_up:
        raise ValueError(
            f"weights must be None for {type(start).__name__}, whose models are sums in which each row counts by its "
            "sample_weight."
        )
    else:
        values = np.asarray(weights, dtype=float)
        if values.shape != (len(models),):
            raise ValueError(f"weights must be one for each of {len(models)} models; got shape {values.shape}.")
        wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
        if len(wrong) or not values.any():
            what = f"{values[wrong[0]]:g} for model {wrong[0]}" if len(wrong) else "zeros only"
            raise ValueError(f"weights must be finite, 0 or more, and not all 0; got {what}.")
    values = values / values.max()  # the sum of the largest numbers would overflow
    return (values / values.sum()).tolist()


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
    """A learner with the merged geometry: `_BY_FRACTION` is averaged like the weights, everything else is added."""
    state = start.get_state()
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
    kind, (schedule, state) = start.__reduce__()
    rates = [part.get_state()["rates"] for part in parts]
    picks: dict[str, Callable] = {"radius": max, "mass": max, "first_rate": max, "rate": min, "noted": min}
    state["rates"].update({name: pick(each[name] for each in rates) for name, pick in picks.items()})
    return kind(copy.copy(schedule), state)


def merged_geometry(start: Learner, parts: Sequence[Learner], fresh: Geometry) -> Geometry:
    """Set the state of `fresh`, a new geometry with the merged weights, from those of the parts."""
    geometries = [part.geometry for part in parts]
    fresh.upper = start.geometry.upper
    if any(geometry.average.active for geometry in geometries):
        fresh.start_averaging()
    state, first, *states = (geometry.get_state() for geometry in (fresh, start.geometry, *geometries))
    for name in fresh.row_sums:
        state[name] = total(first[name], [each[name] for each in states])
    if fresh.average.active:  # the sum of w = w+ - w- over all steps
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
    fresh.penalise(before.lazy.l1, before.lazy.l2)
    state = merged_geometry(start, parts, fresh).get_state()
    states = [geometry.get_state() for geometry in (before, *geometries)]
    blocks, first, *others = (each["blocks"].reshape(-1, fresh.n_features) for each in (state, *states))
    if isinstance(before, AdaGradGeometry):
        blocks[1] = total(first[1], [other[1] for other in others])
    elif isinstance(before, NormalisedGeometry):
        blocks[2] = reciprocal = np.minimum.reduce([other[2] for other in others])  # 1 / M
        first_sum, *sums = (each[1] * (reciprocal / each[2]) ** 2 for each in (first, *others))
        blocks[1] = np.maximum(total(first_sum, sums), 0.0)
        targets = [Moments(each["target_weight"], each["target_mean"], each["target_spread"]) for each in states]
        found = pooled(targets[0], targets[1:])
        state.update(target_weight=found.weight, target_mean=found.mean, target_spread=max(found.scatter, 0.0))
    fresh.set_state(state)
    return fresh


def merged_standardizer(start: Standardizer | None, parts: Sequence[Standardizer]) -> Standardizer | None:
    """A standardizer with the statistics of all rows; where columns forgot some of the start's, those of the parts."""
    if start is None:
        return None
    if any(part.centred != start.centred for part in parts):
        raise ValueError(
            "models with standardize must have begun with rows of one kind: columns are centred after dense rows, and "
            "not after sparse ones. Begin with one kind, or give the start of all."
        )
    kind, (*arguments, _) = start.__reduce__()

    def moments(each: Standardizer) -> Moments:
        state = each.get_state()
        return Moments(state["weights"], state["mean"], state["weights"] * state["deviation"] ** 2)

    before, after = moments(start), [moments(part) for part in parts]
    found = pooled(before, after)
    forgot = np.any([each.weight < before.weight for each in after] + [found.scatter < 0], axis=0)
    if forgot.any():
        alone = pooled(Moments(*np.zeros((3, start.n_features))), after)
        found = Moments(*(np.where(forgot, *pair) for pair in zip(alone, found, strict=True)))
    weights, means, squares = found
    deviations = np.sqrt(np.maximum(squares, 0.0) / np.where(weights > 0, weights, 1.0))
    units = deviations * (1.0 if start.centred else np.sqrt(weights))
    inverses = np.divide(1.0, units, out=np.zeros_like(units), where=deviations > _LEAST * abs(means))
    state = {"deviation": deviations, "inverse": inverses, "mean": means, "weights": weights, "moved": 0.0 * weights}
    state["weight"] = float(total(start.n_samples_seen, [part.n_samples_seen for part in parts]))
    return kind(*arguments, start.get_state() | state)
