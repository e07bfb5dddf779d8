"""What the mixtures with nothing to tune share: their members, and who leads when."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import Tags, check_random_state

from .._kernels.loop.hedge import Hedge
from .._online.side_by_side import HedgedMixin
from .._online.types import RandomState
from .._online.validation import read_only
from .._sklearn_compat import Interval

# Up to this many features there are members with a matrix, which cost n_features^2 a row.
SECOND_ORDER = 128


class ParameterFree(HedgedMixin):
    """Many online models that learn the same rows in one pass, mixed by the losses they had.

    Parameters
    ----------
    members : sequence of estimators or None
        The models. None: those of the default set.
    share : float
        Part of all weight that is dealt out again after each row, so that the mixture follows a lead that changes:
        0 <= share < 1. A share of 0 has the smaller bound, where one member stays the best.
    standardize : bool
        Of the members of the default set: learn rows centred and in units of their columns' deviations so far. Streams
        that start with sparse rows are learned as they are.
    random_features : int
        Of the default set: models of this many random Fourier features as further members, of kernels of three widths,
        and one of twice as many, for up to 128 columns. Each costs the square of its number of features in time and
        memory: three of 128 and one of 256 some 20 microseconds a row and a megabyte. 0: linear members alone.
    random_state : int, RandomState instance or None
        For drawing the features. A number, as by default, for the same features every time.

    Attributes
    ----------
    cumulative_losses_ : ndarray of shape (n_members,)
        Losses of the models over all rows, each predicted before it was learned.
    """

    _parameter_constraints: dict = {
        "members": [Sequence, None],
        "share": [Interval(Real, 0, 1, closed="left")],
        "standardize": ["boolean"],
        "random_features": [Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    members: Sequence[Any] | None
    share: float
    standardize: bool
    random_features: int
    random_state: RandomState

    def _default_members(self, second_order: bool, sparse: bool) -> list[Any]:
        """The default set, with models that have a matrix or without, for rows that are sparse or dense."""
        raise NotImplementedError

    def _nonlinear(self, kind: type, scaled: dict[str, bool]) -> list[Any]:
        """Second-order models of random features, if any, for the kernels exp(-width |x - x'|^2 / n_features)."""
        rng, n = check_random_state(self.random_state), self.random_features
        return [
            kind(
                alpha=alpha,
                random_features=number,
                gamma=width / self.n_features_in_,
                random_state=int(rng.randint(2**31 - 1)),
                **scaled,
            )
            for width, number, alpha in ((0.1, n, 0.1), (0.3, n, 0.1), (1.0, n, 0.1), (0.3, 2 * n, 0.01))
            if n > 0
        ]

    def _make_estimators(self, X) -> list[Any]:
        members = self.members
        if members is None:
            members = self._default_members(X.shape[1] <= SECOND_ORDER, issparse(X))
        if len(members) == 0:
            raise ValueError("members is empty; give at least one model, or None for the default set.")
        for number, member in enumerate(members):
            if not isinstance(member, self._kinds):
                kinds = " or ".join(kind.__name__ for kind in self._kinds)
                raise ValueError(f"members[{number}] = {member!r} is not a {kinds}.")
        return [clone(member) for member in members]

    @read_only
    def cumulative_losses_(self) -> np.ndarray:
        """Losses of the models over all rows, each predicted before it was learned, shape (n_members,)."""
        return self._fitted_hedge().expert_losses

    def _make_hedge(self, rate: float | None) -> Hedge:
        return Hedge(len(self.estimators_), rate, self.share)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
