"""Mixin of outlier detectors: inliers are the rows whose decision function is not negative."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import OutlierMixin

from .docs import DocumentedMixin
from .types import MatrixLike


class PredictsOutliers(OutlierMixin, DocumentedMixin):
    """Outlier detectors with a `decision_function`."""

    if TYPE_CHECKING:

        def decision_function(self, X: MatrixLike) -> np.ndarray: ...

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Predict whether rows are inliers.

        Parameters
        ----------
        {X}

        Returns
        -------
        y : ndarray of shape (n_samples,)
            1 for inliers, -1 for outliers.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)
