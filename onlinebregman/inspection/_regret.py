"""Regret and its bound over the rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, clone, is_classifier

from .._online.types import MatrixLike
from ..linear_model._base import _parts
from ..losses import Loss, resolve_loss
from ._base import Array, Display, as_curve, points


class RegretDisplay(Display):
    """Regret of a model against the best fixed comparator, and its bound, over the rows.

    Created by `from_estimator`, which lets a copy of a model learn a stream, or by `from_predictions`.

    Parameters
    ----------
    n_rows : array-like of shape (n_points,)
        Numbers of rows: the points.
    regret : array-like of shape (n_points,)
        Loss of the model minus that of the comparator, of all rows up to each point.
    bound : array-like of shape (n_points,) or None
        Upper bound on the regret.
    gap : array-like of shape (n_points,) or None
        Upper bound on the regret against the best comparator of each point (`optimality_gap`).
    regret_name : str
        Its name, for the axis.
    {name}

    Attributes
    ----------
    {ax_, figure_}
    line_ : matplotlib Line2D
        The regret.
    bound_line_ : matplotlib Line2D or None
        The bound, dashed.
    gap_line_ : matplotlib Line2D or None
        The gap, dotted.

    See Also
    --------
    sklearn.model_selection.LearningCurveDisplay : Scores by the number of rows, on rows that were held out.
    onlinebregman.model_selection.offline_comparator : The best fixed weights in hindsight.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import EGRegressor
    >>> from onlinebregman.inspection import RegretDisplay
    >>> from onlinebregman.model_selection import offline_comparator
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 10))
    >>> y = X @ rng.dirichlet(np.ones(10)) + 0.1 * rng.normal(size=1000)
    >>> best = offline_comparator(X, y, domain="simplex").coef
    >>> model = EGRegressor(weights="simplex", learning_rate="constant", eta0=0.1, fit_intercept=False)
    >>> display = RegretDisplay.from_estimator(model, X, y, coef=best, n_points=4)
    >>> print(display.n_rows, display.regret.round(2), display.bound.round(2))
    [ 250.  500.  750. 1000.] [0.83 0.91 0.98 1.05] [1.46 1.6  1.71 1.81]
    """

    def __init__(
        self,
        *,
        n_rows: ArrayLike,
        regret: ArrayLike,
        bound: ArrayLike | None = None,
        gap: ArrayLike | None = None,
        regret_name: str = "regret",
        name: str | None = None,
    ) -> None:
        self.n_rows = as_curve("n_rows", n_rows)
        self.regret = as_curve("regret", regret, self.n_rows)
        self.bound = None if bound is None else as_curve("bound", bound, self.n_rows)
        self.gap = None if gap is None else as_curve("gap", gap, self.n_rows)
        self.regret_name = regret_name
        self.name = name

    def plot(self, ax: Any = None, *, name: str | None = None, line_kw: dict[str, Any] | None = None) -> Self:
        """Plot the regret over the rows, its bound as a dashed line of the same colour, and the gap as a dotted one.

        Parameters
        ----------
        {ax, name, line_kw}

        Returns
        -------
        {display}
        """
        ax = self._open(ax)
        name = self.name if name is None else name
        several = self.bound is not None or self.gap is not None
        label = self.regret_name if name is None and several else name
        (self.line_,) = ax.plot(self.n_rows, self.regret, **{"label": label} | (line_kw or {}))
        self.bound_line_ = self.gap_line_ = None
        style = {"color": self.line_.get_color()}
        start = "" if name is None else f"{name}: "
        if self.bound is not None:
            (self.bound_line_,) = ax.plot(self.n_rows, self.bound, linestyle="--", label=f"{start}bound", **style)
        if self.gap is not None:
            (self.gap_line_,) = ax.plot(self.n_rows, self.gap, linestyle=":", label=f"{start}optimality gap", **style)
        ax.set(xlabel="rows", ylabel=self.regret_name)
        self._explain()
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: MatrixLike,
        y: ArrayLike | None = None,
        *,
        coef: ArrayLike | None = None,
        intercept: ArrayLike | None = None,
        gap_kw: dict[str, Any] | None = None,
        n_points: int = 100,
        ax: Any = None,
        name: str | None = None,
        line_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Let a copy of an estimator learn a stream, and plot its regret and its bound.

        For a linear model with `regret_certificate`, the bound is the certificate of the run, and the regret is against
        `coef`. With a constant rate both are divided by the rate; otherwise the regret is that of losses times rates,
        to which the certificate applies: those of the schedule, or what an adaptive divergence makes of them. For a
        mixture the regret is against its best member up to each point, and the bound is its `regret_bound_`;
        :class:`~onlinebregman.ForwardRegressor` has a `regret_` of its own. For
        :class:`~onlinebregman.dask.DistributedOnline` each point is the end of a round over the rows since the last,
        and the bound is the `regret_bound` of a constant rate; the last rows are left out if they are fewer than there
        are shards.

        Parameters
        ----------
        estimator : estimator object
            A linear model or a mixture of this package. It is not changed; an unfitted clone learns.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows in the order of the stream.
        y : array-like of shape (n_samples,), default=None
            Targets, if the model needs any.
        coef : array-like of shape (n_features,) or (n_classes, n_features), default=None
            Weights of the comparator of a linear model. None: the final weights of the model, in which case `intercept`
            must also be None. For the best weights see :func:`~onlinebregman.model_selection.offline_comparator`.
        intercept : float or array-like of shape (n_classes,), default=None
            Its intercept; 0 if only `coef` is given.
        gap_kw : dict, default=None
            Arguments of the model's `optimality_gap`, such as {"radius": 2.0}, or {} for none, to plot this, too: the
            bound for the best comparator up to each point, which is computed without knowing it. None: not plotted.
        n_points : int, default=100
            Largest number of points, evenly spaced.
        {ax, name, line_kw}

        Returns
        -------
        {display}

        Raises
        ------
        ValueError
            If there is no certificate for such a model or comparator, or no bound.
        """
        cls._pyplot()
        model = clone(estimator)
        if hasattr(model, "regret_certificate"):
            found = _against_weights(model, X, y, coef, intercept, gap_kw, n_points)
        elif any(hasattr(type(model), name) for name in _OF_THE_BEST):
            if coef is not None or intercept is not None or gap_kw is not None:
                raise ValueError(
                    f"{type(model).__name__} is compared with the best in hindsight; omit coef and gap_kw."
                )
            found = _against_the_best(model, X, y, n_points)
        else:
            raise ValueError(
                f"{type(model).__name__} has neither a regret_certificate nor a regret_bound_; compute the regret and "
                "give it to the constructor, or use from_predictions."
            )
        return cls(**found, name=type(model).__name__ if name is None else name).plot(ax, line_kw=line_kw)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        y_best: ArrayLike,
        *,
        loss: str | Loss = "squared_error",
        ax: Any = None,
        name: str | None = None,
        line_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Plot the regret of predictions that were made before their rows were learned.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Targets, in the order of the stream.
        y_pred : array-like of shape (n_samples,)
            Predictions; scores before the link, for a loss with a link.
        y_best : array-like of shape (n_samples,)
            Predictions of the comparator.
        loss : str or Loss, default="squared_error"
            As in :func:`~onlinebregman.losses.resolve_loss`; the squared one is (a - y)^2 / 2.
        {ax, name, line_kw}

        Returns
        -------
        {display}
        """
        value = resolve_loss(loss).value
        y_true = as_curve("y_true", y_true)
        lost, best = (
            value(as_curve(key, values, y_true), y_true) for key, values in (("y_pred", y_pred), ("y_best", y_best))
        )
        return cls(n_rows=np.arange(1, len(y_true) + 1), regret=np.cumsum(lost - best), name=name).plot(
            ax, line_kw=line_kw
        )


def _against_weights(model, X, y, coef, intercept, gap_kw, n_points: int) -> dict[str, Any]:
    """The certificate of a run of a linear model, at some of the rows."""
    parameters = model.get_params(deep=False)
    if "n_shards" in parameters:
        return _of_rounds(model, X, y, coef, intercept, gap_kw, n_points)
    if not hasattr(type(model), "coef_") or parameters.get("update") == "gradient":
        raise ValueError(
            f"{type(model).__name__} with these parameters is not a linear model with a certificate for its rates; "
            "compute the regret and give it to the constructor."
        )
    if parameters.get("standardize") == "auto":
        model.set_params(standardize=False)
    _check_comparator(parameters, coef, intercept)
    rated = "track_regret" in parameters  # the other models have no rates, and always a certificate
    if rated:
        model.set_params(track_regret=True)
    if gap_kw is not None and not rated:
        raise ValueError(f"{type(model).__name__} has no optimality_gap; omit gap_kw.")
    X, y = _indexable(X), np.asarray(y)
    ends = points(len(y), n_points)
    last, rates = _preview(clone(model), X, y, rated)
    if coef is None:
        coef, intercept = last.coef_, last.intercept_
    intercept = 0.0 if intercept is None else intercept
    constant = bool((rates == rates[0, 0]).all())
    unit = rates[0, 0] if constant else 1.0
    lost, bound, gap = np.transpose(
        [
            (
                np.sum(run.weighted_loss_ if rated else run.cumulative_loss_),
                np.sum(run.regret_certificate(coef, intercept)),
                0.0 if gap_kw is None else np.sum(run.optimality_gap(**{"weighted": not constant} | gap_kw)),
            )
            for run in _runs(model, X, y, ends)
        ]
    )
    losses = _losses_of(model, X, y, coef, intercept)
    best = np.cumsum((rates[:, : losses.shape[1]] * losses).sum(axis=1))[ends - 1]
    return {
        "n_rows": ends,
        "regret": (lost - best) / unit,
        "bound": bound / unit,
        "gap": None if gap_kw is None else gap,
        "regret_name": "regret" if constant else "regret, of losses times rates",
    }


def _check_comparator(parameters: dict[str, Any], coef, intercept) -> None:
    if parameters.get("standardize") is True:
        raise ValueError(
            "With standardize=True comparators are weights of columns whose scale changes with each row; set "
            "standardize=False, and standardize the rows beforehand (sklearn.preprocessing.StandardScaler)."
        )
    if parameters.get("thresholds") is not None:
        raise ValueError(
            "With thresholds comparators are weights of indicators, whose bins move with each row; give the rows "
            "of indicators to a model without thresholds."
        )
    if intercept is not None and coef is None:
        raise ValueError("There is an intercept, but no coef; give both, or neither.")


def _of_rounds(model, X, y, coef, intercept, gap_kw, n_points: int) -> dict[str, Any]:
    """The regret of a `DistributedOnline`, and its bound, at the ends of rounds, each over the rows since the last.

    All rounds have the same number of shards, and all shards of a round the same number of rows: the last rows, fewer
    than there are shards, are left out.
    """
    if not hasattr(type(model.estimator), "coef_") or gap_kw is not None:
        raise ValueError(
            f"{type(model).__name__} is compared with weights if its estimator is a linear model, and has no "
            "optimality_gap; compute the regret and give it to the constructor, or omit gap_kw."
        )
    _check_comparator(model.estimator.get_params(deep=False), coef, intercept)
    model.set_params(estimator__track_regret=True)
    X, y, n_shards = _indexable(X), np.asarray(y), model.n_shards or 1
    if len(y) < n_shards:
        raise ValueError(f"There must be a row for each of the {n_shards} shards; got {len(y)}.")
    ends = n_shards * points(len(y) // n_shards, n_points)
    if coef is None:
        *_, last = _runs(clone(model), X, y, ends)
        coef, intercept = last.estimator_.coef_, last.estimator_.intercept_
    intercept = 0.0 if intercept is None else intercept
    lost, bound = np.transpose(
        [(run.cumulative_loss_, np.sum(run.regret_certificate(coef, intercept))) for run in _runs(model, X, y, ends)]
    )
    schedule = model.estimator_._schedule()
    if not (schedule.is_power_law and schedule.power == 0):
        raise ValueError(f"The regret of rounds has a bound for constant rates only; got {schedule!r}.")
    best = np.cumsum(_losses_of(model.estimator_, X, y, coef, intercept).sum(axis=1))[ends - 1]
    share = 1 / n_shards if model.mixing == "mean" else 1.0
    return {"n_rows": ends, "regret": lost - best, "bound": bound / (share * schedule.scale)}


def _preview(model, X, y, rated: bool) -> tuple[Any, Array]:
    """The model after all rows, and the rate of each row in each of its learners, 1 for models without rates.

    Adaptive divergences change the rates of the schedule, and a `LossSchedule` has none by itself; their learners know
    that of the last row.
    """
    schedule = model.get_params(deep=False).get("learning_rate")
    of_losses = getattr(schedule, "sees_loss", schedule in ("pa1", "pa2"))
    if rated and (model.divergence_.adaptive or of_losses):
        runs = _runs(model, X, y, np.arange(1, len(y) + 1))
        return model, np.array([[part.tracked_rates[1] for part in _parts(run._learner)] for run in runs])
    *_, model = _runs(model, X, y, [len(y)])
    rates = model._schedule()(np.arange(1, len(y) + 1)) if rated else np.ones(len(y))
    return model, np.broadcast_to(rates[:, np.newaxis], (len(y), np.size(model.intercept_)))


# attributes of models that know the best in hindsight
_OF_THE_BEST = ("regret_", "expert_losses_", "cumulative_losses_")


def _against_the_best(model, X, y, n_points: int) -> dict[str, Any]:
    """The regret against the best in hindsight, of a mixture that of its members, at some of the rows."""
    X, y = _indexable(X), None if y is None else np.asarray(y)
    ends = points(X.shape[0], n_points)
    found = []
    try:
        for run in _runs(model, X, y, ends):
            found.append((_regret_of(run), run.regret_bound_))
    except AttributeError as error:
        raise ValueError(f"{type(model).__name__} has no bound on its regret: {error}.") from error
    regret, bound = np.transpose(found)
    return {"n_rows": ends, "regret": regret, "bound": bound}


def _regret_of(run) -> float:
    if hasattr(run, "regret_"):
        return run.regret_
    members = run.expert_losses_ if hasattr(run, "expert_losses_") else run.cumulative_losses_
    return run.cumulative_loss_ - members.min()


def _runs(model, X, y, ends) -> Iterator[Any]:
    """The model after each of these numbers of rows."""
    more = {"classes": np.unique(y)} if is_classifier(model) and y.ndim == 1 else {}
    for start, end in pairwise([0, *ends]):
        model.partial_fit(X[start:end], *(() if y is None else (y[start:end],)), **more)
        more = {}
        yield model


def _losses_of(model, X, y, coef, intercept) -> Array:
    """The losses of a fixed linear model on each row, in each of the model's learners, times the rows' weights."""
    scores = X @ np.atleast_2d(np.asarray(coef, dtype=np.float64)).T + intercept
    if not is_classifier(model):
        return model._learned_loss.value(scores, y.reshape(len(y), -1).astype(np.float64))
    codes = y if y.ndim == 2 else np.searchsorted(model.classes_, y)
    if getattr(model, "_joint", False):  # the log loss of the softmax
        losses = logsumexp(scores, axis=1, keepdims=True) - np.take_along_axis(scores, codes[:, np.newaxis], axis=1)
    else:
        losses = model._learned_loss.value(scores, model._class_targets(codes))
    if model._class_weight is not None:
        losses = losses * model._class_weights(codes, None, True).take(codes)[:, np.newaxis]
    return losses


def _indexable(X):
    """Rows that can be sliced: arrays and sparse matrices as they are."""
    return X.tocsr() if issparse(X) else np.asarray(X)
