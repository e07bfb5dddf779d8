"""Features that appear later: columns of data frames, by name, and learners of more features.

A new feature has been 0 in all rows before, so that its weight is the initial one. A learner of more features is
therefore a new one, over whose numbers those of the present one are written: wherever an array of its state has an axis
of features, the first of them. Weights of a fixed total start at the mean weight instead, taken from all others in
proportion, w' = (n / m) w for m features after n.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from .._kernels.geometries.geometry import Geometry
from .._kernels.learners.atomic import AtomicLearner
from .._kernels.rows.fourier import FourierFeatures
from .._kernels.rows.one_hot import OneHotMap
from .._kernels.rows.rows import RowMap
from .._kernels.rows.standardizer import Standardizer
from .containers import frame_of_arrow
from .estimator import Examples, LifeCycleMixin


class GrowsFeatures(LifeCycleMixin):
    """A model that can go on with more features.

    Parameters
    ----------
    handle_new_features : {"error", "add"}
        What to do with columns of a data frame that are not among `feature_names_in_`. "error": raise an error. "add":
        add features, which count as 0 in all rows before; predictions ignore other columns. Columns are identified by
        their names, in any order, and none of the known ones may be missing.
    """

    handle_new_features: Literal["error", "add"] = "error"
    intercept_: Any

    def _by_name(self, X: Any, learning: bool) -> Any:
        X, names = frame_of_arrow(X), vars(self).get("feature_names_in_")
        if names is None or self.handle_new_features != "add" or not hasattr(X, "columns"):
            return X
        known, columns = names.tolist(), list(X.columns)
        if columns == known or not set(known) <= set(columns) or not all(isinstance(name, str) for name in columns):
            return X  # the same, or what validation refuses
        new = [name for name in columns if name not in set(known)]
        if learning and new:
            self._add_features(self.n_features_in_ + len(new))
            known += new
            self.feature_names_in_ = np.array(known, dtype=object)
        return X[known]

    def _add_features(self, m: int) -> None:
        """Continue with a copy of the learner that has m features."""
        self._copy_learner()
        row_map = self._learner.row_map
        if not (row_map is None or isinstance(row_map, Standardizer)) or getattr(self._learner, "features", None):
            raise ValueError(
                "Features can only be added where columns are learned themselves; set thresholds=None (False for a "
                "mixture), random_features=0 and categorical_features=None."
            )
        rows = np.zeros((1, m)) if row_map is None or row_map.centred else csr_array((1, m))
        self._grow(rows, m, n_features_in_=m)

    def _grow(self, rows: Any, m: int, **changed: Any) -> None:
        """Continue with a learner of m features, such as a new one of these rows, and with changed attributes."""
        twin = type(self).__new__(type(self))
        vars(twin).update(vars(self), **changed)
        twin._begin(Examples(rows, np.zeros((1, *np.shape(self.intercept_)))))
        twin._configure()
        vars(self).update(changed)
        self._unbounded = "Bounds are for a run with the same features, but some were added; call fit with all of them."
        self._take_from(twin, _Wider(self._learner.n_features, m, getattr(self, "_divergence", None)))
        self._configure()

    def _take_from(self, twin: Any, wider: _Wider) -> None:
        """Continue with what a new model of all features has, over which the present numbers are written."""
        self._learner = wider(self._learner, twin._learner)


class _Wider:
    """The state of objects with n features, written over that of new objects with m features."""

    def __init__(self, n: int, m: int, divergence: Any) -> None:
        self.n, self.m, self.total = n, m, getattr(divergence, "total", None)
        self.made: dict[int, Any] = {}  # objects may be shared

    def __call__(self, old: Any, new: Any) -> Any:
        if isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
            return self.array(old, new)
        if isinstance(old, dict) and isinstance(new, dict):
            wide = {key: self(value, new[key]) if key in new else self.padded(value) for key, value in old.items()}
            return wide | ({"least": min(old["least"], new["least"])} if "least" in old else {})
        if isinstance(old, tuple | list) and isinstance(new, tuple | list):
            return type(old)(self(*pair) for pair in zip(old, new, strict=True))
        if isinstance(old, AtomicLearner | Geometry | RowMap | FourierFeatures) and new is not None:
            if id(old) not in self.made:
                self.made[id(old)] = self.object(old, new)
            return self.made[id(old)]
        return new if (old, new) == (self.n, self.m) and isinstance(old, int) else old

    def array(self, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        """Arrays of any number of blocks of n or m numbers."""
        if old.shape == new.shape:
            return old
        wide = new.reshape(-1, self.m).copy()
        wide[:, : self.n] = old.reshape(len(wide), self.n)
        return wide.reshape(new.shape)

    def padded(self, value: Any) -> Any:
        """What a new object does not have is 0 for new features."""
        if not isinstance(value, np.ndarray) or value.size % self.n:
            return value
        return np.pad(value.reshape(-1, self.n), ((0, 0), (0, self.m - self.n))).reshape(-1)

    def object(self, old: Any, new: Any) -> Any:
        if isinstance(new, OneHotMap):
            return new.after(old)
        if type(old) is not type(new):
            raise ValueError("Features can only be added to a model whose parameters have not changed since it began.")
        if isinstance(old, Standardizer):
            return self.standardizer(old)
        if isinstance(old, FourierFeatures):  # what they are of rows in which the new features are 0 remains
            return FourierFeatures(np.c_[old.frequencies, new.frequencies[:, self.n :]], old.phases)
        if hasattr(old, "with_features") and old.features is None:
            return old.with_features(self.m, self(old.row_map, new.row_map))
        (kind, arguments), (_, others) = old.__reduce__(), new.__reduce__()
        if isinstance(old, Geometry) and self.total is not None:
            if old.average.active:
                raise ValueError("Features cannot be added to averages of weights of a fixed total; use average=False.")
            weights = np.full(np.size(others[0]), self.total / np.size(others[0]))
            return kind(self.array(old.state_weights * (self.n / self.m), weights), *others[1:-1])
        return kind(*self(arguments, others))

    def standardizer(self, old: Standardizer) -> Standardizer:
        """Its blocks of statistics are padded; all rows had the new features, as 0, which centred columns count."""
        kind, (_, *options, state) = old.__reduce__()
        wide = {name: self.padded(value) for name, value in state.items()}
        wide["weights"][self.n :] = state["weight"] * old.centred
        return kind(self.m, *options, wide)
