"""The base of all displays: data of a plot, axes, lines and legends."""

from __future__ import annotations

from inspect import Parameter, signature
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._online.containers import needed
from .._online.docs import DocumentedMixin

Array = NDArray[np.float64]
Style = dict[str, Any] | None


class Display(DocumentedMixin):
    """Holds the data of a plot; `plot` draws it. Subclasses are dataclasses.

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

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Class methods show the arguments of `plot`, which they pass on, among their own."""
        super().__init_subclass__(**kwargs)
        of_plot = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in [*signature(cls.plot).parameters.values()][1:]]
        functions: list[Any] = [member.__func__ for member in vars(cls).values() if isinstance(member, classmethod)]
        for function in functions:
            *own, last = signature(function).parameters.values()
            if last.name == "how":
                function.__signature__ = signature(function).replace(parameters=[*own, *of_plot])

    _vectors: ClassVar[tuple[str, ...]] = ()  # with a number for each point; None if there are none

    def __post_init__(self) -> None:
        n_points: int | None = None
        for key in self._vectors:
            if getattr(self, key) is not None:
                setattr(self, key, as_curve(key, getattr(self, key), n_points))
                n_points = len(getattr(self, key))

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
        **how : dict
            Arguments of `plot`.
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
        self.ax_ = self._pyplot().subplots()[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        return self.ax_

    def _line(self, x: ArrayLike, y: ArrayLike | None, style: Style = None, **usual: Any) -> Any:
        """A line through these points in a style other than the usual one; None without values."""
        return None if y is None else self.ax_.plot(x, y, **usual | (style or {}))[0]

    def _close(self, **labels: Any) -> Self:
        """Label the axes, and draw a legend if there are labels for it."""
        self.ax_.set(**labels)
        if self.ax_.get_legend_handles_labels()[0]:
            self.ax_.legend()
        return self

    @classmethod
    def _check(cls, how: dict[str, Any]) -> None:
        """Before anything is computed: is matplotlib there, and are these arguments of `plot`?"""
        cls._pyplot()
        signature(cls.plot).bind(cls, **how)

    @classmethod
    def _pyplot(cls) -> Any:
        """matplotlib's pyplot, which is imported on drawing."""
        return needed("matplotlib.pyplot", cls.__name__, "plot")


def column_number(feature: int | str, names: list[str]) -> int:
    """The number of a column."""
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"feature {feature!r} is none of the columns {names}.")
        return names.index(feature)
    if not (isinstance(feature, Integral) and 0 <= feature < len(names)):
        raise ValueError(f"feature must be a name, or an integer from 0 to {len(names) - 1}; got {feature!r}.")
    return int(feature)


def as_curve(name: str, values: ArrayLike, n_points: int | None = None) -> Array:
    """A vector of this many numbers; NaN is a gap."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"{name} must be a vector of at least one number; got shape {values.shape}.")
    if n_points not in (None, len(values)):
        raise ValueError(f"{name} must have a number for each of the {n_points} points; got {len(values)}.")
    return values
