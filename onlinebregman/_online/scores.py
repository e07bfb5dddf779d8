"""The scores of a fitted model as a function of a row, in a form that can be written down elsewhere."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from .._kernels.rows.one_hot import OneHotMap
from .._kernels.rows.standardizer import Standardizer
from .._kernels.rows.thresholds import BINS, ThresholdMap
from ..losses import LogisticLoss, Loss, ModifiedHuberLoss, PoissonLoss
from ..losses._base import ResidualLoss
from .types import Values

_LINKS = {
    ResidualLoss.link: "identity",
    LogisticLoss.link: "sigmoid",
    PoissonLoss.link: "exp",
    ModifiedHuberLoss.link: "clip",
}


def link_of(loss: Loss) -> str | None:
    """The name of a loss's link; None for that of your own loss."""
    return _LINKS.get(type(loss).link)


def clipped(a: Values, low: Values, high: Values) -> Values:
    """An array, or a `Tensor`, with values in an interval."""
    return np.maximum(np.minimum(a, high), low)


def forward_divisor(z: Values, n: int, root: np.ndarray) -> Values:
    """1 + |R (z, 1)|^2, or 1 + |R z|^2, of each row z of n values, as a column."""
    image = z @ root[:, :n].T + root[:, n:].sum(axis=1)
    return 1.0 + (image * image).sum(axis=1, keepdims=True)


class Thresholds(NamedTuple):
    """The bins of columns at each resolution, and the pairs of columns; see `thresholds.pyx`."""

    lower: list[np.ndarray]  # of shape (n_features, n_bins): where they begin
    number: list[np.ndarray]  # of the same shape: their numbers
    different: np.ndarray  # of shape (n_features, n_resolutions): how many different values there were
    pairs: np.ndarray
    singles: bool  # whether there are indicators of single columns
    trees: tuple[np.ndarray, np.ndarray] | None  # the column and the cut of each node, see `trees.pyx`

    @classmethod
    def of(cls, row_map: ThresholdMap) -> Self:
        """Those of a map."""
        state = row_map.bins.get_state()
        lower, number = (np.split(state[name], np.cumsum(BINS)[:-1], axis=1) for name in ("lower", "number"))
        trees = row_map.bins.trees.nodes if row_map.grown else None
        return cls(lower, number, state["different"], row_map.pairs, bool(row_map.singles), trees)


class Scores(NamedTuple):
    """Scores of a row x, z @ coef.T + intercept with z computed by these steps, without those that are None.

    z = (x - mean) * inverse, 0 where x is NaN if `allow_nan`, clipped to [-limit, limit], x being followed by a 1 for
    each of the columns `missing` that is NaN, and by a 0 for the others and for -1; then times
    min(sqrt(f), p f), f = M^2 (1 + g) / (max(z^2, M^2) + M^2 g), for (M, g, p) = `rescaled`, which have a row for
    each of several scores; then the cosines of frequencies @ z + phases. In the end scores are divided by
    1 + |R (z, 1)|^2 for R = `root`, without the 1 if no intercept is learned; if there is a `center`, z - center takes
    the place of z, and what is divided are the differences of the scores from `base`.
    """

    coef: np.ndarray  # of shape (n_scores, n_inputs)
    intercept: np.ndarray
    mean: np.ndarray | None = None
    inverse: np.ndarray | None = None
    allow_nan: bool = False  # whether NaN is a missing value, which requires `mean`
    missing: np.ndarray | None = None
    limit: np.ndarray | None = None
    rescaled: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    features: tuple[np.ndarray, np.ndarray] | None = None
    root: np.ndarray | None = None
    center: np.ndarray | None = None
    base: np.ndarray | None = None
    thresholds: Thresholds | None = None  # z are indicators, and there are no other steps

    def image(self, z: Values) -> Values:
        """z of rows, an array or a `Tensor`, that are followed by the indicators of missing values."""
        if self.mean is not None:
            z = (np.where(np.isnan(z), self.mean, z) if self.allow_nan else z) - self.mean
        if self.inverse is not None:
            z = z * self.inverse
        if self.limit is not None:
            z = clipped(z, -self.limit, self.limit)
        if self.rescaled is not None:
            square, sums, most = self.rescaled[0] ** 2, *self.rescaled[1:]
            z = z if sums.ndim == 1 else np.expand_dims(z, 1)
            factor = square * (1 + sums) / (np.maximum(z * z, square) + square * sums)
            z = z * np.minimum(np.sqrt(factor), factor * most)
        if self.features is not None:
            frequencies, phases = self.features
            z = np.sqrt(2 / len(phases)) * np.cos(z @ frequencies.T + phases)
        return z if self.center is None else z - self.center

    def of_rows(self, rows: Values) -> Values:
        """The scores, of shape (n_rows, n_scores)."""
        z = self.image(rows)
        of_each = self.rescaled is not None and self.rescaled[1].ndim == 2  # z of each score
        a = ((z * self.coef).sum(axis=2) if of_each else z @ self.coef.T) + self.intercept
        if self.root is None:
            return a
        a = a / forward_divisor(z, self.coef.shape[1], self.root)
        return a if self.base is None else a + self.base

    @classmethod
    def of(cls, learner: Any, root: np.ndarray | None = None) -> Self:
        """The scores of a linear learner, or of several of the same rows."""
        row_map = learner.row_map
        if isinstance(row_map, ThresholdMap):
            thresholds = Thresholds.of(row_map)
            return cls(np.atleast_2d(learner.coef), np.atleast_1d(learner.intercept), thresholds=thresholds)
        scores = cls.of_images(learner, root)
        if row_map is None:
            return scores
        more = np.zeros(0)  # of indicators
        if isinstance(row_map, OneHotMap) and row_map.standardizer.n_features == row_map.n_features:
            missing = row_map.columns[row_map.n_features :]
            scores, row_map, more = scores._replace(missing=missing), row_map.standardizer, np.zeros(len(missing))
        if not isinstance(row_map, Standardizer):
            raise ValueError(
                "Models of rows with categories (categorical_features) cannot be converted; encode the categories as "
                "numbers before the model, for example with sklearn.preprocessing.OneHotEncoder."
            )
        ones = np.ones(row_map.n_features)
        if not row_map.scaled:  # columns are only limited: z = x - mean, and its image is z + mean
            state = row_map.get_state()
            reach = np.where(state["deviation"] > 0, row_map.limit * state["deviation"], -state["deviation"])
            reach[state["weights"] == 0] = np.inf
            mean, reach = np.r_[state["mean"], more], np.r_[reach, more + np.inf]
            steps: dict[str, Any] = {"mean": mean, "inverse": np.sign(reach), "allow_nan": row_map.allow_nan}
            steps["limit"] = np.where(reach > 0, reach, 1.0)
            if scores.center is None:
                return scores._replace(intercept=scores.intercept + scores.coef @ mean, **steps)
            return scores._replace(center=scores.center - mean, **steps)
        return scores._replace(
            mean=np.r_[row_map.mean, more] if row_map.centred else None,
            inverse=np.r_[row_map.in_units_of_data(ones, 0.0)[0], more + 1.0],
            allow_nan=row_map.allow_nan,
            limit=np.minimum(
                np.r_[row_map.limit * ones, more + np.inf], np.inf if scores.limit is None else scores.limit
            ),
        )

    @classmethod
    def of_images(cls, learner: Any, root: np.ndarray | None = None) -> Self:
        """The same, as a function of what the learner's map makes of rows."""
        steps: dict[str, Any] = {"root": root}
        features = getattr(learner, "features", None)
        learners = getattr(learner, "learners", [learner])
        limits: list[Any] = [getattr(each, "limits", None) or (np.inf, None, None) for each in learners]
        largest, sums, most = limits[0]
        if sums is not None:  # where no value was seen yet, the factor is 1 for all values
            if len(limits) > 1:
                largest, sums, most = (np.stack(each) for each in zip(*limits, strict=True))
            seen = largest < np.inf
            steps["rescaled"] = np.where(seen, largest, 1.0), np.where(seen, sums, 1e30), most
        elif np.min(largest) < np.inf:
            steps["limit"] = largest
        if features is not None:
            steps["features"] = 2 * np.pi * features.frequencies, 2 * np.pi * features.phases
        if root is not None and learner.centred:
            steps |= {"center": learner.mean, "base": learner.target_mean}
            return cls(np.atleast_2d(learner.coef), np.zeros(learner.n_scores), **steps)
        coef, intercept = np.atleast_2d(learner.coef), np.atleast_1d(learner.intercept)
        centre = getattr(learners[0], "centre", None)
        if centre is not None:  # of rows that the learner centres itself
            mean, limit = centre.limits
            steps |= {"mean": mean, "inverse": np.ones(len(mean)), "limit": limit, "allow_nan": centre.allow_nan}
            intercept = intercept + coef @ mean
        return cls(coef, intercept, **steps)
