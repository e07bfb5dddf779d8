"""Matrix exponentiated gradient: a kernel learned online from distances."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from .._kernels.learners.spreads import SpreadLearner
from .._kernels.matrices.von_neumann import VonNeumannGeometry
from .._online.comparators import Comparators
from .._online.compiled import Spec
from .._online.estimator import Call, by_parameter
from .._online.examples import LearnsTargets
from .._online.merging import total
from .._online.mirror import MirrorEstimator
from .._online.regret import Certificate
from .._online.theory import TheoryRate, theory_rate
from .._online.types import MatrixLike, RandomState
from .._online.validation import check_symmetric, check_vector, check_weights, warn_caller
from .._sklearn_compat import StrOptions, fit_context
from ..divergences import VonNeumann
from ..divergences._numerics import EPS
from ..losses import resolve_loss
from ..schedules import LEARNING_RATES, LearningRate, Schedule
from ._base import Instances, KernelLearner
from ._instances import Rows, check_factors, factored


class _LogCertificate(Certificate):
    """The positions of the learner are log W."""

    divergence: VonNeumann

    def nearer_by(self, u: np.ndarray, intercept: np.float64) -> float:
        """tr(U log U) cancels; there is no intercept."""
        self.divergence.check_domain(u, closed=True)
        (start, _), (end, _) = self.learner.origin, self.learner.position
        constant, g = self.nearer_by_terms(start, end)
        return float(np.vdot(u, g)) + constant

    def nearer_by_terms(self, start: np.ndarray, end: np.ndarray) -> tuple[float, np.ndarray]:
        after, lost = _trace_of(end), self.learner.t * EPS * (1.0 + float(np.linalg.norm(end)))
        constant = _trace_of(start) - after if self.divergence.trace is None else 0.0  # both have that trace
        return constant + lost * after, end - start + lost * np.eye(len(end))


def _trace_of(log: np.ndarray) -> float:
    """tr W of a matrix with this logarithm."""
    return float(np.exp(np.linalg.eigvalsh(log)).sum())


class VonNeumannMirrorMixin(MirrorEstimator):
    """Mirror map of the von Neumann potential: f(W) = log W, on symmetric positive definite matrices.

    Their trace is `trace`; None for any trace.

    Attributes
    ----------
    divergence_ : VonNeumann
        The divergence of the estimator.
    """

    _certificate_type = _LogCertificate
    _trace: float | None

    def _partial_fit(self, *arguments, **more) -> Self:
        with self._threads():  # also on the fast path: each step is an eigendecomposition
            return super()._partial_fit(*arguments, **more)

    def _specify(self, n_features: int | None) -> Spec:
        return Spec(VonNeumann(trace=self._trace), resolve_loss(self._loss_parameter))

    def _make_geometry(self, prior: np.ndarray) -> VonNeumannGeometry:
        return VonNeumannGeometry(VonNeumann().mirror(prior), self._divergence.trace)

    def _dual(self, geometry: VonNeumannGeometry) -> np.ndarray:
        return geometry.log_coef

    def _geometry_at(self, theta: np.ndarray) -> VonNeumannGeometry:
        return VonNeumannGeometry(theta, self._divergence.trace)


class MEGKernelLearner(VonNeumannMirrorMixin, LearnsTargets, KernelLearner):
    """Kernel of trace one learned online by matrix exponentiated gradient (MEG).

    Each instance z with target y moves the kernel to W' = argmin D(W', W) + eta (z'W'z - y)^2 / 2 over the positive
    definite matrices of trace one, with the von Neumann divergence D:

        W' = exp(log W - c z z') / tr,    c = eta (a - y),

    a = z'Wz if explicit (the paper's linearised step), a = z'W'z if implicit (the exact step). For a pair of objects
    (a, b) z = (e_a - e_b) / sqrt(2), and z'Wz is half their squared distance in the feature space of W.

    The logarithm of W is stored, so that small eigenvalues are no problem. A step updates its eigendecomposition by
    rank one, O(d^2) plus one matrix product: several times faster than a new eigendecomposition.

    Parameters
    ----------
    eta0 : float
        Learning rate eta for the loss (a - y)^2 / 2, in units that depend on `scale_eta`.
    scale_eta : bool
        Divide the rate by the square of `spread_`, the largest |z|^2 so far: eta0 is then dimensionless, and one value
        suits instances of any norm. Pairs have spread one, so that nothing changes for them. One absurd row makes all
        later steps small: remove it. False: eta0 is eta.
    learning_rate : {"constant", "invscaling", "sqrt", "strongly_convex", "theory"} or Schedule
        Rate of instance t = 1, 2, ...: eta0, eta0 / t^power_t, eta0 / sqrt(t), or eta0 / t. "theory": the constant rate
        with the smallest loss bound under `data_bounds`, without eta0 and `scale_eta`. A schedule from
        `onlinebregman.schedules` is used directly, without eta0.
    power_t : float
        Exponent of "invscaling".
    data_bounds : dict or None
        Bounds on instances and comparators, for learning_rate="theory": "x", the largest spread of an instance (see
        `spread_`; 1 for pairs), and "loss", the cumulative loss of the best kernel, 0 if one fits all targets. Without
        "loss" the rate is the best one for a comparator whose loss equals the cost of learning.
    update : {"implicit", "explicit"}
        "implicit": the exact step, stable for every rate. "explicit": the step of the paper; its theory requires eta0
        <= 4, and eta0 = 4 is best if some kernel fits all targets.
    init : array-like of shape (n_features, n_features) or None
        Positive definite starting kernel, which is divided by its trace. None: the identity / n_features.
    {max_iter, tol, n_iter_no_change}
    shuffle : bool
        Shuffle the instances before each epoch of `fit`. `partial_fit` never shuffles.
    warm_start : bool
        Let `fit` continue from the current kernel and learning rate.
    {random_state}
    track_regret : bool
        Accumulate what `regret_bound` needs, from the row at which it is set.
    {verbose}

    Attributes
    ----------
    {kernel_, log_kernel_, components_}
    t_, n_updates_ : int
        Instances learned; those of weight zero do not count.
    n_collapsed_ : int
        Instances skipped because they carry no information about W: z = 0, pairs of an object with itself.
    spread_ : float
        Largest difference between the extreme eigenvalues of an instance so far: |z|^2 for rows, 1 for pairs.
    cumulative_loss_ : float
        Sum of weight * (a - y)^2 / 2 over all instances, each predicted before it was learned.
    {n_iter_}
    loss_curve_ : list of float
        Mean loss of each epoch of the last `fit`, each instance predicted before it was learned.
    theory_bound_ : float
        Under learning_rate="theory", the theorem's bound on `cumulative_loss_` minus the comparator's.
    weighted_loss_ : float
        Sum of rate times weight times loss before each step, since regret is tracked.
    {divergence_}
    n_features_in_ : int
        Number of features, which are the objects if instances are pairs.
    {feature_names_in_}

    Raises
    ------
    {ValueError}

    Warns
    -----
    ConvergenceWarning
        If a target is larger than that of any kernel of trace one (of a pair: 1), by its units or by an absurd value.

    See Also
    --------
    DefiniteBoost : A kernel from bounds on distances, all of them at once.

    Notes
    -----
    The default rate is based on experiments with pairs of 10 to 100 objects and normal rows with 10 and 52 features.
    With 30 % noise the loss of implicit steps was within 1.4 times that of the best rate from {1, 4, 16, ..., 1024};
    without noise the highest rates are best, with a loss of down to 0.4 times that of the default. Explicit steps need
    a rate of about the number of objects and diverge at four to ten times that.

    References
    ----------
    .. [1] K. Tsuda, G. Raetsch, M. K. Warmuth, "Matrix Exponential Gradient Updates for On-line Learning and Bregman
       Projection", NIPS 2004, sections 3 and 5. Its loss is (a - y)^2, so its eta is half of this one.

    Examples
    --------
    The kernel of ten objects, learned from the distances between them:

    >>> import numpy as np
    >>> from onlinebregman.kernel_learning import MEGKernelLearner
    >>> objects = np.random.default_rng(0).normal(size=(10, 2))
    >>> target = np.exp(-((objects[:, None] - objects) ** 2).sum(axis=2)) / 10
    >>> pairs = np.array(np.triu_indices(10, 1)).T
    >>> half_squared = 1 / 10 - target[tuple(pairs.T)]
    >>> learner = MEGKernelLearner(max_iter=20, random_state=0).fit_pairs(pairs, half_squared, n_objects=10)
    >>> bool(np.abs(learner.pairwise_distances()[tuple(pairs.T)] / 2 - half_squared).max() < 1e-3)
    True
    >>> learner.cumulative_loss_ < learner.loss_bound(target)
    True
    """

    _learner_type = SpreadLearner
    _trace = 1.0  # of W
    _track_regret = by_parameter("track_regret")
    _parameter_constraints: dict = {
        "learning_rate": [StrOptions({*LEARNING_RATES, "theory"}), Schedule],
        "update": [StrOptions({"implicit", "explicit"})],
    }

    def __init__(
        self,
        *,
        eta0: float = 64.0,
        scale_eta: bool = True,
        learning_rate: LearningRate | Literal["theory"] | Schedule = "constant",
        power_t: float = 0.5,
        data_bounds: dict[str, float] | None = None,
        update: Literal["implicit", "explicit"] = "implicit",
        init: ArrayLike | None = None,
        max_iter: int = 5,
        tol: float | None = None,
        n_iter_no_change: int = 5,
        shuffle: bool = True,
        warm_start: bool = False,
        random_state: RandomState = None,
        track_regret: bool = False,
        verbose: int = 0,
    ) -> None:
        self._set_arguments(locals())

    @fit_context(prefer_skip_nested_validation=True)
    def fit_pairs(
        self,
        pairs: ArrayLike,
        distances: ArrayLike,
        n_objects: int | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit from scratch (or continue, with `warm_start`): `max_iter` epochs over pairs of objects.

        Parameters
        ----------
        pairs : array-like of int of shape (n_pairs, 2)
            Two object numbers each, from 0 to n_objects - 1.
        distances : array-like of shape (n_pairs,)
            Half the squared distance each pair should have, (W_aa + W_bb) / 2 - W_ab, >= 0. W has trace one: with d
            objects they are of the order of 1 / d.
        n_objects : int or None, default=None
            Number of objects d. None: as many as the kernel has, with `warm_start`.
        sample_weight : array-like of shape (n_pairs,), default=None
            Multiplies the learning rate of each pair; a pair of weight 0 is ignored.

        Returns
        -------
        {self}
        """
        return self._fit(pairs, distances, n_objects, sample_weight, check=self._check_pairs)

    def partial_fit_pairs(
        self,
        pairs: ArrayLike,
        distances: ArrayLike,
        n_objects: int | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from these pairs of objects, once, in their order.

        Parameters
        ----------
        pairs, distances, n_objects, sample_weight
            As in `fit_pairs`; n_objects may be left out after the first call.

        Returns
        -------
        {self}
        """
        return self._validate_and_learn(pairs, distances, n_objects, sample_weight, check=self._check_pairs)

    def partial_fit_matrices(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from these symmetric instance matrices, of any rank, once, in their order; the prediction is tr(W X).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features, n_features)
            Symmetric matrices.
        y : array-like of shape (n_samples,)
            Targets of tr(W X).
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies the learning rate of each instance; one of weight 0 is ignored.

        Returns
        -------
        {self}
        """
        return self._validate_and_learn(X, y, sample_weight, check=self._check_matrices)

    def partial_fit_factors(
        self, factors: ArrayLike, y: ArrayLike, signs: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from instances of low rank, X = sum_k sign_k z_k z_k', once, in their order; the prediction is tr(W X).

        For a relative distance, z_1 of one pair and z_2 of another with signs 1 and -1, the target is how much farther
        apart the first pair should be. With up to four factors a step costs as many rank-one updates.

        Parameters
        ----------
        factors : array-like of shape (n_samples, rank, n_features)
            The z_k of each instance.
        y : array-like of shape (n_samples,)
            Targets of tr(W X).
        signs : array-like of shape (rank,) or (n_samples, rank), or None, default=None
            1 or -1 for each factor, of all instances or of each; 0 leaves a factor out. None: 1.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies the learning rate of each instance; one of weight 0 is ignored.

        Returns
        -------
        {self}
        """
        return self._validate_and_learn(factors, y, signs, sample_weight, check=self._check_factors)

    @property
    def n_collapsed_(self) -> int:
        """Instances skipped because they carry no information about W."""
        return self._fitted_state().n_collapsed

    @property
    def n_updates_(self) -> int:
        """Instances learned so far."""
        return self.t_

    # --- learning -------------------------------------------------------------------------------------------------

    _fast_learner = "_plain_learner"

    def _configure(self) -> None:
        super()._configure()
        self._plain_learner = PlainLearner(self._scaled)

    def _check(self, call: Call, X, y, sample_weight=None) -> Instances:
        return _weighted(*self._check_rows(call, X, y), sample_weight, call)

    def _check_pairs(self, call: Call, pairs, distances, n_objects, sample_weight) -> Instances:
        return _weighted(*self._check_object_pairs(call, pairs, distances, n_objects), sample_weight, call)

    def _check_matrices(self, call: Call, X, y, sample_weight) -> Instances:
        matrices = self._check_symmetric(call, X, "X")
        return _weighted(matrices, check_vector(y, len(matrices), "y", "matrices"), sample_weight, call)

    def _check_factors(self, call: Call, factors, y, signs, sample_weight) -> Instances:
        factors, signs = check_factors(factors, signs)
        self._check_size(factors.shape[2], "factors has rows of size", call)
        return _weighted(factored(factors, signs), check_vector(y, len(factors), "y", "instances"), sample_weight, call)

    def _begin(self, data: Instances) -> None:
        self._first = self._first_kernel()
        self._learner = self._make_learner(self._first)

    def _merged_learner(self, start, parts, fractions, row_map=None) -> SpreadLearner:
        mixed = super()._merged_learner(start, parts, fractions, row_map)
        statistics = start.statistics
        for name, value in statistics.items():
            values = [part.statistics[name] for part in parts]
            statistics[name] = max(values) if name in ("spread", "largest_weight") else total(value, values)
        mixed.statistics = statistics
        return mixed

    def _learn(self, data: Instances, order: np.ndarray | None = None, *, again: bool = False) -> float:
        """One pass over the instances; returns the mean loss before each was learned."""
        X, y, weights = data.X, data.y, data.weights
        learner, weight = self._learner, len(y) if weights is None else weights.sum()
        before = learner.cumulative_loss
        refused = learner.learn_instances(X, y, weights, order, self._scaled)
        if refused is not None:
            reason, row, spread = refused
            raise ValueError(
                f"Row {row} is too large: its spread {spread:g}, its target {y[row]:g} or the square of one of them "
                "overflows, or the sum of the losses. Scale the instances and their targets."
                if reason == "too large"
                else f"The step at row {row} (target {y[row]:g}) with eta0={self.eta0:g} is too large for floating "
                "point numbers; lower eta0 or scale the instances."
            )
        return (learner.cumulative_loss - before) / weight if weight > 0 else 0.0

    # --- bounds: all rest on tr(W(c) X) >= tr(W X) - c r^2 / 4 for instances whose extreme eigenvalues differ by <= r

    @property
    def spread_(self) -> float:
        """Largest difference between the extreme eigenvalues of an instance so far."""
        return self._fitted_state().spread

    def loss_bound(self, kernel: ArrayLike, comparator_loss: float = 0.0) -> float:
        """Bound on `cumulative_loss_` after the instances learned so far, for a constant rate eta.

        For every kernel U of trace one with the loss L_U = sum (tr(U X) - y)^2 / 2, and r the spread of the instances,

            explicit, h eta r^2 <= 4:    loss <= 4 / (4 - h eta r^2) L_U + D(U, W_1) / eta
            implicit, any eta:           loss <= (1 + h eta r^2 / 4) (L_U + D(U, W_1) / eta),

        where h is the largest sample weight, at least 1, and losses are multiplied by the weights of their instances.
        The first is Lemma 3.2 of the paper with the best constants for eta. The second follows from tr(W(c) X) >= tr(W
        X) - c r^2 / 4, on which the first is also based. Both are sums over instances, counted in every epoch; an
        instance of weight h is learned at h times the rate.

        Parameters
        ----------
        kernel : array-like of shape (n_features, n_features)
            U, symmetric positive semidefinite of trace one.
        comparator_loss : float, default=0.0
            L_U, each instance as often as it was learned; 0 if the targets are those of U. With `scale_eta`, an
            instance that was learned while `spread_` was smaller by a factor f counts f^2 times.

        Returns
        -------
        bound : float
            The bound; infinite for explicit steps with h eta r^2 = 4 and a positive comparator loss.

        Raises
        ------
        ValueError
            If U is not such a kernel, or the theory does not apply: rates that change, by their schedule or because
            parameters were set in mid-stream, or explicit steps with h eta r^2 > 4.
        """
        self._check_one_run()
        schedule = self._schedule()
        if not (schedule.is_power_law and schedule.power == 0):
            raise ValueError("There is a bound for constant rates only; use learning_rate='constant'.")
        if not 0 <= comparator_loss < np.inf:
            raise ValueError(f"comparator_loss must be a finite number >= 0; got {comparator_loss!r}.")
        rate = schedule.scale if self._scaled else schedule.scale * self.spread_**2  # eta r^2
        divergence = self.divergence_.divergence(self._comparator(kernel), self._first)
        if rate == 0:  # nothing has been learned
            return 0.0
        start = divergence * self.spread_**2 / rate
        fastest = self._learner.largest_weight * rate
        if self._update == "implicit":
            return (1 + fastest / 4) * (comparator_loss + start)
        if fastest > 4 * (1 + 1e-12):  # the square of a pair's length is 1 up to rounding
            raise ValueError(
                f"There is no bound for explicit steps with eta = {fastest:g} / spread^2, above 4 / spread^2, sample "
                "weights included; use a lower eta0 or update='implicit'."
            )
        if comparator_loss == 0:
            return start
        return start + (comparator_loss / (1 - fastest / 4) if fastest < 4 else np.inf)

    @property
    def theory_bound_(self) -> float:
        """The theorem's bound on `cumulative_loss_` minus a kernel's loss, under learning_rate="theory".

        It holds for all kernels and instances within the `data_bounds` they were learned with: L <= factor L_U +
        constant, and the bound is (factor - 1) data_bounds["loss"] + constant, with losses multiplied by the weights of
        their instances, and each instance counted as often as it was learned.

        The rate assumes weights of at most 1. Instances of larger weight, at most h, are learned at up to h times the
        rate, for which the bound is larger; for explicit steps it can be infinite.
        """
        self._fitted_state()
        if self.learning_rate != "theory":
            raise AttributeError("theory_bound_ requires learning_rate='theory' with its data_bounds")
        self._check_one_run()
        bounds = self.data_bounds or {}
        if "loss" not in bounds:
            raise AttributeError("theory_bound_ for the squared loss needs data_bounds['loss'], the comparator's loss")
        if self.spread_ > (1 + 1e-12) * bounds["x"]:
            raise AttributeError(
                f"theory_bound_ is for instances of spread data_bounds['x'] = {bounds['x']:g} at most, but one of "
                f"spread {self.spread_:g} was learned; raise it and fit again"
            )
        return self._theory().regret(bounds["loss"])

    def regret_bound(
        self, kernel: ArrayLike | None = None, *, largest_divergence: float | None = None, weighted: bool = False
    ) -> float:
        """Bound on the regret of this run against a kernel, or the best one, without assumptions on the data.

        For every positive semidefinite U of trace one

            sum eta_t (L_t(W_t) - L_t(U))  <=  D(U, W_1) - D(U, W_{T+1}) + S,

        with eta_t the rate of instance t times its weight, and S accumulated during the run: for explicit steps sum
        D(W_t, W_{t+1}), for implicit steps sum eta_t (L_t(W_t) - L_t(W_{t+1})) - D(W_{t+1}, W_t). With `weighted` this
        right side is the bound, and the left side starts with `weighted_loss_`; by default the terms of each instance
        are divided by its rate, and the left side starts with `cumulative_loss_`. With `scale_eta` losses are divided
        by the square of the spread at which they were learned; that of pairs is 1.

        Without a kernel the bound is the largest for all of them, that of the largest eigenvalue of log W_{T+1} - log
        W_1: the loss of the run minus it is at most that of the best kernel, which nobody has to know.

        Parameters
        ----------
        kernel : array-like of shape (n_features, n_features), default=None
            U, symmetric positive semidefinite of trace one. None: the best.
        {largest_divergence, weighted}

        Returns
        -------
        {bound}

        Raises
        ------
        {ValueError}
        """
        certificate = self._certificate(self._fitted_state(), mixed=weighted)
        kernels = Comparators(0.0, np.inf, 1.0, self._divergence.norm)
        U = None if kernel is None else self._comparator(kernel)
        return certificate.bound(U, kernels, weighted, largest_divergence)

    def _comparator(self, kernel: ArrayLike) -> np.ndarray:
        """A kernel to compare with: symmetric, positive semidefinite, of trace one."""
        U = check_symmetric(kernel, "kernel", self.n_features_in_)
        least, total = float(np.linalg.eigvalsh(U)[0]), float(np.trace(U))
        if not least >= -1e-12 * abs(total):
            raise ValueError(
                f"kernel has the eigenvalue {least:g}, but kernels to compare with must be positive semidefinite; "
                "project it (SquaredFrobenius().project_psd) and divide by its trace."
            )
        if not abs(total - 1) <= 1e-8:
            raise ValueError(
                f"kernel has the trace {total:.10g}, but kernels to compare with must have trace 1; divide by it."
            )
        return U

    @property
    def _scaled(self) -> bool:
        """Whether the rate is divided by the square of the spread."""
        return self.scale_eta and self.learning_rate != "theory"

    def _theory(self, rows: int = 0) -> TheoryRate:
        if self.init is not None:
            raise ValueError("learning_rate='theory' requires init=None.")
        return theory_rate(
            self.divergence_,
            self._learned_loss,
            self._update,
            self.data_bounds,
            self.n_features_in_,
            signed=False,
            fit_intercept=False,
            largest_weight=self._learner.largest_weight,
        )


class PlainLearner(NamedTuple):
    """Learns dense rows of weight 1 by the `_learner` of an estimator, at rates that depend on the rows."""

    scaled: bool

    def learn_fast(self, attributes: dict[str, Any], X, y, sample_weight, scores: None) -> bool:
        """Learn rows without validation; False if that is not safe, and nothing was learned."""
        if type(X) is not np.ndarray or sample_weight is not None:
            return False
        return attributes["_learner"].learn_instances_fast(attributes, Rows(X), y, self.scaled)


def _weighted(X: Rows, y: np.ndarray, sample_weight, call: Call) -> Instances:
    weights = check_weights(sample_weight, len(y), allow_all_zero=call.partial)
    largest = X.extremes[:, 1]
    too_large = np.flatnonzero((y > largest) & (largest > 0) & (weights is None or weights > 0))
    if len(too_large):
        row = too_large[0]
        warn_caller(
            f"{len(too_large)} of {len(y)} targets are larger than those of any kernel of trace one, and move the "
            f"kernel far: {y[row]:g} in row {row}, where {largest[row]:g} is the largest. Remove them, or divide all "
            "targets by the trace of the kernel that they are from.",
            ConvergenceWarning,
        )
    return Instances(X, y, weights)
