"""Metric learning in the von Neumann divergence: always positive definite, multiplicative in the eigenvalues."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from .._kernels.learners.learner import Learner
from .._online.estimator import by_parameter
from .._online.types import RandomState
from .._sklearn_compat import Interval, StrOptions
from ..kernel_learning.meg import VonNeumannMirrorMixin
from ..schedules import LearningRate, Schedule
from ._base import OnlineMetricLearner
from ._examples import Comparisons
from ._prior import Prior


class VonNeumannMetricLearner(VonNeumannMirrorMixin, OnlineMetricLearner):
    """Mahalanobis metric learned online with the von Neumann divergence.

    Each pair with difference z and target y moves the metric to W' = argmin D(W', W) + eta (z'W'z - y)^2 / 2,

        W' = exp(log W - c z z'),    c = eta (abar - y),

    where abar = z'W'z, the distance after the step. With `trace` W' is divided by its trace and multiplied by `trace`;
    with trace 1 this is matrix exponentiated gradient (MEG). W stays positive definite on any stream. Its logarithm is
    stored as an eigendecomposition, which a step updates by rank one: O(d^2) plus one matrix product.

    A triplet, anchor, similar and dissimilar row, is one instance of rank two, X = p p' - q q' with p the difference
    of the anchor to the dissimilar row and q that to the similar one; tr(W X) should be at least a margin.

    With labelled rows, pairs or triplets of each row with stored earlier rows are sampled internally.

    Parameters
    ----------
    {prior, loss}
    trace : float or None
        Trace of the metric, preserved by every step: steps move weight between directions, as exponentiated gradient
        does between features. The prior is scaled to it, and so are `bounds` computed from the prior; explicit targets
        must be distances that a metric of this trace can attain. None: any trace.
    update : {"implicit", "explicit"}
        "implicit": the exact step, stable for every rate. "explicit": the linearised step, abar = z'Wz, which diverges
        if the rate is too large.
    {eta0}
    scale_eta : bool
        Divide the rate by the square of the larger target (of the largest so far, for given ones, one that is far above
        all others left out; of the margin, for triplets) and multiply it by the mean eigenvalue of the prior: eta0 is
        then dimensionless, and one value suits data and metrics of any scale. False: eta0 is eta itself.
    {learning_rate, power_t, sampling, bounds, margin, pairs_per_row, memory_size, n_components, preprocessor}
    {max_iter, tol, n_iter_no_change, shuffle, track_regret, warm_start, random_state, verbose}

    Attributes
    ----------
    {components_, threshold_, bounds_, margin_, n_updates_, t_, n_collapsed_, cumulative_loss_, weighted_loss_, n_iter_}
    {loss_curve_, divergence_, n_features_in_, feature_names_in_}

    See Also
    --------
    LogDetMetricLearner : The same in the LogDet divergence, at a lower cost per pair.

    Notes
    -----
    Distances between rows, targets and bounds are squared throughout, unless stated otherwise.

    Among constant and sqrt rates with eta0 = 0.03, 0.1, ..., 10, the defaults had the lowest mean 5-NN error over eight
    standardised UCI sets, see benchmarks/defaults.py. Explicit steps need eta0 <= 1.

    References
    ----------
    .. [1] B. Kulis, P. L. Bartlett, "Implicit Online Learning", ICML 2010, section 5.
    .. [2] K. Tsuda, G. Raetsch, M. K. Warmuth, "Matrix Exponential Gradient Updates for On-line Learning and Bregman
       Projection", NIPS 2004.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from onlinebregman import VonNeumannMetricLearner
    >>> X, y = load_wine(return_X_y=True)
    >>> metric = VonNeumannMetricLearner(random_state=0)
    >>> model = make_pipeline(StandardScaler(), metric, KNeighborsClassifier(5))
    >>> print(f"{cross_val_score(model, X, y).mean():.2f}")
    0.97

    Pairs with target (squared) distances:

    >>> rows = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    >>> learner = VonNeumannMetricLearner(eta0=10.0, learning_rate="constant")
    >>> for _ in range(100):
    ...     learner = learner.partial_fit_pairs(rows, [[0, 1], [0, 2]], [4.0, 0.25])
    >>> print(learner.get_mahalanobis_matrix().round(2))
    [[4.   0.  ]
     [0.   0.25]]
    """

    _parameter_constraints: dict = {
        "trace": [Interval(Real, 0, None, closed="neither"), None],
        "update": [StrOptions({"implicit", "explicit"})],
    }

    _trace = by_parameter("trace")

    def __init__(
        self,
        *,
        prior: Prior = "identity",
        trace: float | None = None,
        loss: Literal["squared_error", "one_sided"] = "squared_error",
        update: Literal["implicit", "explicit"] = "implicit",
        eta0: float = 1.0,
        scale_eta: bool = True,
        learning_rate: LearningRate | Schedule = "sqrt",
        power_t: float = 0.5,
        sampling: Literal["neighbors", "random", "targets"] = "neighbors",
        bounds: tuple[float, float] | None = None,
        margin: float | None = None,
        pairs_per_row: int = 20,
        memory_size: int = 200,
        n_components: int | None = None,
        preprocessor: ArrayLike | Callable[[np.ndarray], ArrayLike] | None = None,
        max_iter: int = 5,
        tol: float | None = None,
        n_iter_no_change: int = 5,
        shuffle: bool = True,
        track_regret: bool = False,
        warm_start: bool = False,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self._set_arguments(locals())

    def _first_metric(self, data: Comparisons) -> np.ndarray:
        prior = super()._first_metric(data)
        return prior if self.trace is None else prior * (self.trace / np.trace(prior))

    def _make_learner(self, start: np.ndarray) -> Learner:
        self._unit = float(np.trace(start)) / len(start)
        return super()._make_learner(start)

    def _schedule(self) -> Schedule:
        schedule = super()._schedule()
        return schedule.scaled(self._unit) if self.scale_eta else schedule
