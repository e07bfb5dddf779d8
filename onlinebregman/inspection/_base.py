"""Code shared by displays: axes to plot on, and checks of input."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._online.docs import DocumentedMixin

Array = NDArray[np.float64]


class Display(DocumentedMixin):
    """Holds the data of a plot; `plot` draws it.

    Parameters
    ----------
    name : str or None
        For the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of the plot.
    """

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or None
            Axes to plot on. None: a new figure.
        name : str or None
            For the legend. None: the name of the display, or of the class of the estimator.
        line_kw : dict or None
            Passed on to `Axes.plot`; overrides the defaults.
        bar_kw : dict or None
            Passed on to `Axes.barh`.
        estimator : fitted ParameterFreeRegressor or ParameterFreeClassifier
            The model whose predictions are explained.
        target : object
            With three or more classes, the label of the class whose score is explained.

        Returns
        -------
        display : object
            The display, drawn.
        """
        raise NotImplementedError

    def _open(self, ax: Any) -> Any:
        """The axes to draw on, with `ax_` and `figure_` set."""
        pyplot = self._pyplot()
        self.ax_ = pyplot.subplots()[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        return self.ax_

    def _explain(self) -> None:
        """Draw a legend if there are labels."""
        if self.ax_.get_legend_handles_labels()[0]:
            self.ax_.legend()

    @classmethod
    def _pyplot(cls) -> Any:
        """matplotlib's pyplot; class methods import it before they compute anything."""
        try:
            import matplotlib.pyplot as pyplot
        except ImportError as error:
            raise ImportError(
                f"{cls.__name__} requires matplotlib, which is not installed: `python -m pip install matplotlib`."
            ) from error
        return pyplot


def column_number(feature: int | str, names: list[str]) -> int:
    """The number of a column."""
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"feature {feature!r} is none of the columns {names}.")
        return names.index(feature)
    if not (isinstance(feature, Integral) and 0 <= feature < len(names)):
        raise ValueError(f"feature must be a name, or an integer from 0 to {len(names) - 1}; got {feature!r}.")
    return int(feature)


def as_curve(name: str, values: ArrayLike, like: Array | None = None) -> Array:
    """A vector of numbers, as long as another; NaN is a gap."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"{name} must be a vector of at least one number; got shape {values.shape}.")
    if like is not None and len(values) != len(like):
        raise ValueError(f"{name} must have a number for each of the {len(like)} points; got {len(values)}.")
    return values


def points(n_rows: int, n_points: int) -> NDArray[np.intp]:
    """At most this many row numbers, evenly spaced, up to the last."""
    n_points = min(n_points, n_rows)
    return np.arange(1, n_points + 1) * n_rows // n_points
