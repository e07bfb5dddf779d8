"""Mixin of mixtures: intervals for targets and sets of classes, from the errors of the predictions so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from .._kernels.learners.mixer import Mixer
from .._kernels.learners.stacked_mixers import surprises
from .._sklearn_compat import available_if
from ..losses import Loss
from .docs import DocumentedMixin
from .types import MatrixLike
from .weights import check_one_output


def check_coverage(coverage: Any) -> np.ndarray:
    """The argument `coverage` as an array, of several coverages of one dimension."""
    several = isinstance(coverage, Sequence | np.ndarray) and np.ndim(coverage) == 1 and len(coverage) > 0
    asked = np.asarray(coverage if several or isinstance(coverage, Real) else np.nan)
    if asked.dtype.kind not in "iuf" or not ((asked > 0) & (asked < 1)).all():
        raise ValueError(f"coverage must be a number between 0 and 1, such as 0.9, or several; got {coverage!r}.")
    return asked.astype(np.float64)


class ConformalMixin(DocumentedMixin):
    """Intervals and sets whose share of misses tends to the one asked for, whatever the rows (adaptive conformal)."""

    if TYPE_CHECKING:
        _learned_loss: Loss

        def predict(self, X: MatrixLike) -> np.ndarray: ...

        def predict_proba(self, X: MatrixLike) -> np.ndarray: ...

        def _of_outputs(self, value: Callable[[Mixer], Any]) -> Any: ...

    @available_if(lambda self: not is_classifier(self))
    def predict_interval(self, X: MatrixLike, coverage: ArrayLike = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Predict an interval for the target of each row, as the next one of the stream.

        The intervals are predictions plus or minus one radius, within the range of targets that the loss admits. The
        radius for each coverage is learned from the errors of the predictions of past rows, each made before the row
        was learned: it grows after an error outside of its interval and shrinks after one inside, less and less, so
        that it converges if rows come in random order, unless errors drift. So no distribution is assumed: if the
        interval of each row is predicted after the rows before were learned, or with `delayed` that of each call of
        `partial_fit` before that call, the share of the targets within their intervals tends to `coverage` for any
        sequence of rows, also if it drifts (see :ref:`coverage`). Intervals that are predicted further ahead than the
        errors they are learned from have no such guarantee, only that of errors as large as those. This holds for
        coverages of 1 to 99 % in whole percents, of 99.5 and of 99.9 %; in between, radii are interpolated, and the
        share is between those of the neighbours; beyond 99.9 % they are extrapolated.

        Parameters
        ----------
        {X, coverage}

        Returns
        -------
        lower, upper : ndarrays of shape (n_samples,) or (n_samples, n_outputs)
            With several coverages these have one more, last axis. Infinite until a row was predicted and then learned.
            Intervals of larger coverages include those of smaller ones. Weights of rows do not matter, except that rows
            of weight 0 are not counted.

        Raises
        ------
        ValueError
            If a prediction overflows, or `coverage` is not between 0 and 1.
        """
        asked = check_coverage(coverage)
        center = self.predict(X)
        center = center[..., np.newaxis] if asked.ndim else center
        radius = self._of_outputs(lambda mixer: mixer.tracker.radius(asked))
        least, largest = self._learned_loss.target_range
        with np.errstate(over="ignore"):
            return np.maximum(center - radius, least), np.minimum(center + radius, largest)

    @available_if(is_classifier)
    def predict_set(self, X: MatrixLike, coverage: ArrayLike = 0.9) -> np.ndarray:
        """Predict a set of classes that holds the label of each row, as the next one of the stream.

        A set has the classes whose probability is at least a threshold, which is learned from the probabilities that
        the labels of past rows had before these were learned, as the radius of an interval is from errors: see
        `predict_interval` of :class:`ParameterFreeRegressor`, for coverages and for the condition under which the share
        of labels in their sets tends to `coverage` for any sequence of rows. So a set is empty where no class is as
        probable as labels are in the share asked for: if more of the labels than that are predicted rightly. With
        `delayed`, where misses come at once, the share takes longer, and tends to be larger at first.

        Parameters
        ----------
        {X, coverage}

        Returns
        -------
        sets : ndarray of bool of shape (n_samples, n_classes)
            Which of `classes_` are in the set of each row. With several coverages there is one more, last axis; sets of
            larger coverages include those of smaller ones. All classes until a row was predicted and then learned.

        Raises
        ------
        ValueError
            If `coverage` is not between 0 and 1, or the model has learned several labels of each row.
        """
        asked = check_coverage(coverage)
        surprise = surprises(self.predict_proba(X))
        check_one_output(self, ValueError)
        surprise = surprise[..., np.newaxis] if asked.ndim else surprise
        return surprise <= self._of_outputs(lambda mixer: mixer.tracker.radius(asked))
