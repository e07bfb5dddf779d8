"""Unit circles of a learned metric and of the Euclidean metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from .._online.types import MatrixLike
from .._online.validation import check_dense_rows, dense
from ._base import Array, Display, Style, column_number


@dataclass(kw_only=True, eq=False, repr=False)
class MetricDisplay(Display):
    """Points at the same learned distance from a centre: ellipses, with Euclidean circles of the same area.

    A short axis of the ellipse is a direction in which the metric separates rows, a long axis a direction that it
    treats as noise.

    Parameters
    ----------
    metric : array-like of shape (2, 2)
        W, positive definite; squared distances are z'Wz.
    centers : array-like of shape (n_centers, 2) or None
        The points; None: the origin.
    radius : float
        Of the circles.
    X : array-like of shape (n_samples, 2) or None
        Rows to draw as points.
    y : array-like of shape (n_samples,) or None
        Their labels.
    feature_names : sequence of str
        Names of the two coordinates.

    Attributes
    ----------
    {ax_, figure_}
    ellipses_, circles_ : list of matplotlib Ellipse
        Those of the metric, and of the Euclidean one.
    points_ : list of matplotlib Line2D
        The rows, one line per label.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import LogDetMetricLearner
    >>> from onlinebregman.inspection import MetricDisplay
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = X[:, 0] > 0  # the second is noise
    >>> display = MetricDisplay.from_estimator(LogDetMetricLearner(random_state=0).fit(X, y), X, y)
    >>> bool(display.metric[0, 0] > 2 * display.metric[1, 1])
    True
    """

    metric: ArrayLike
    centers: ArrayLike | None = None
    radius: float = 1.0
    X: ArrayLike | None = None
    y: ArrayLike | None = None
    feature_names: tuple[str, str] = ("feature 0", "feature 1")

    def __post_init__(self) -> None:
        self.metric = W = np.asarray(self.metric, dtype=np.float64)
        if W.shape != (2, 2) or not np.allclose(W, W.T):
            raise ValueError(f"metric must be a symmetric matrix of two features; got shape {W.shape}.")
        if not np.linalg.eigvalsh(W)[0] > 0:
            raise ValueError(
                "The metric is not positive definite: different rows have distance 0, and its circles are unbounded. "
                "Choose other features."
            )
        if not (np.isfinite(self.radius) and self.radius > 0):
            raise ValueError(f"radius must be a positive number; got {self.radius!r}.")
        self.centers = _rows_of_two("centers", np.zeros((1, 2)) if self.centers is None else self.centers)
        self.X = None if self.X is None else _rows_of_two("X", self.X)
        self.y = None if self.y is None else np.asarray(self.y)
        if self.y is not None and (self.X is None or len(self.X) != len(self.y)):
            raise ValueError("y are the labels of the rows X; give one for each.")

    def plot(self, ax: Any = None, *, point_kw: Style = None, ellipse_kw: Style = None) -> Self:
        """Plot rows, ellipses and circles.

        Parameters
        ----------
        {ax}
        point_kw : dict or None, default=None
            Passed on to `Axes.plot` for the rows.
        ellipse_kw : dict or None, default=None
            Passed on to `matplotlib.patches.Ellipse` for the learned metric.

        {Returns}
        """
        ax = self._open(ax)
        from matplotlib.patches import Ellipse

        self.points_, self.ellipses_, self.circles_ = [], [], []
        if self.X is not None:
            rows = np.asarray(self.X)
            labels = np.zeros(len(rows)) if self.y is None else np.asarray(self.y)
            for label in np.unique(labels):
                usual: dict[str, Any] = {"marker": ".", "linestyle": "", "alpha": 0.6, "zorder": 1}
                usual |= {} if self.y is None else {"label": str(label)}
                x, y = rows[labels == label].T
                self.points_.append(self._line(x, y, point_kw, **usual))
        values, directions = np.linalg.eigh(np.asarray(self.metric))
        widths = 2 * self.radius * np.sqrt(np.sqrt(values.prod()) / values)  # a circle has 2 radius twice
        angle = float(np.degrees(np.arctan2(directions[1, 0], directions[0, 0])))
        outline: dict[str, Any] = {"fill": False, "edgecolor": "black", "zorder": 3}
        learned = outline | {"linewidth": 2.0, "angle": angle, "label": "learned metric"} | (ellipse_kw or {})
        euclidean = outline | {"linewidth": 1.2, "linestyle": "--", "label": "Euclidean"}
        for center in np.asarray(self.centers):
            self.ellipses_.append(ax.add_patch(Ellipse(center, *widths, **learned)))
            self.circles_.append(ax.add_patch(Ellipse(center, 2 * self.radius, 2 * self.radius, **euclidean)))
            learned["label"] = euclidean["label"] = None  # one entry each in the legend
        ax.autoscale_view()
        ax.set_aspect("equal", adjustable="datalim")
        return self._close(xlabel=self.feature_names[0], ylabel=self.feature_names[1])

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: MatrixLike | None = None,
        y: ArrayLike | None = None,
        *,
        features: tuple[int | str, int | str] = (0, 1),
        radius: float | None = None,
        feature_names: tuple[str, str] | None = None,
        **how: Any,
    ) -> Self:
        """Plot the learned metric in two of its features.

        With more than two features, the plot shows points that differ from the centre only in these two: W restricted
        to their rows and columns.

        Parameters
        ----------
        estimator : fitted metric learner
            Any with `get_mahalanobis_matrix`, or a :class:`~onlinebregman.MetricKNeighborsClassifier`.
        X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            Rows to draw as points, with all features. Without them the centre is the origin.
        y : array-like of shape (n_samples,), default=None
            Their labels: the mean of each class is a centre; otherwise the mean of all rows.
        features : tuple of two int or str, default=(0, 1)
            The numbers or names of the two columns.
        radius : float or None, default=None
            Of the circles. None: half the standard deviation of the two columns, or 1 if there is none.
        feature_names : tuple of two str or None, default=None
            None: those seen by the learner, or column numbers.
        {**how}

        {Returns}
        """
        cls._check(how)
        check_is_fitted(estimator)
        learner = getattr(estimator, "metric_", estimator)
        if not hasattr(learner, "get_mahalanobis_matrix"):
            raise ValueError(f"{type(estimator).__name__} has no get_mahalanobis_matrix; give a metric learner.")
        W = learner.get_mahalanobis_matrix()
        known = list(getattr(estimator, "feature_names_in_", [f"feature {column}" for column in range(len(W))]))
        given: Any = features if np.ndim(features) == 1 else [features]
        chosen = [column_number(each, known) for each in given]
        if len(chosen) != 2 or chosen[0] == chosen[1]:
            raise ValueError(f"features must be two different columns; got {features!r}.")
        if feature_names is None:
            feature_names = (known[chosen[0]], known[chosen[1]])
        rows, centers = None, None
        if X is not None:
            rows = check_dense_rows(estimator, dense(X) if issparse(X) else X, reset=False)[:, chosen]
            check_consistent_length(rows, y)
            y = None if y is None else column_or_1d(y)
            labels = np.zeros(len(rows)) if y is None else y
            centers = [rows[labels == label].mean(axis=0) for label in np.unique(labels)]
        if radius is None:
            radius = 1.0 if rows is None else float(rows.std(axis=0).mean()) / 2 or 1.0
        return cls(
            metric=W[np.ix_(chosen, chosen)], centers=centers, radius=radius, X=rows, y=y, feature_names=feature_names
        ).plot(**how)


def _rows_of_two(name: str, rows: ArrayLike) -> Array:
    rows = np.asarray(rows, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise ValueError(f"{name} must be rows of two features; got shape {rows.shape}.")
    return rows
