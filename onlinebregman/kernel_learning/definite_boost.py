"""DefiniteBoost: the kernel nearest to a given one within bounds on distances, one violated constraint at a time."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, isfinite, log, log1p
from numbers import Real
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from .._kernels.matrices.von_neumann import VonNeumannGeometry
from .._online.estimator import Call
from .._online.types import MatrixLike
from .._online.validation import read_only, warn_caller
from .._sklearn_compat import Interval, StrOptions, fit_context
from ..divergences import VonNeumann
from ._base import Instances, KernelLearner
from ._constraints import Conditions, Constraints, check_senses
from ._instances import EPS, Array, Rows


def exact_step(
    geometry: VonNeumannGeometry,
    x: Array,
    sign: float,
    target: float,
    low: float,
    high: float,
    guess: float,
    scale: float,
    enough: float = -np.inf,
) -> float:
    """Root c of target - tr(W(c) X) between low and high, X = sign x, by safeguarded Newton.

    The function increases; it has to be negative at `low` and positive at `high`, which may be infinite. The residual
    is at most 1e-12 `scale`, save for what rounding G does to tr(W X). The search also ends when ln tr exp(G - c X) +
    c target, the dual objective of the projection, is below `enough`.
    """
    c, rounding = guess, 4 * EPS * abs(geometry.log_values[0])
    for _ in range(200):
        value, slope, grown = geometry.evaluate_row(x, sign * c)
        excess = target - sign * value
        if abs(excess) <= max(1e-12 * scale, rounding * np.sqrt(slope)) or grown + c * target < enough:
            break
        low, high = (low, c) if excess > 0 else (c, high)
        newton = c - excess / slope if slope > 0 else np.inf
        if high == np.inf:
            newton = min(newton, c + 4 * max(abs(c), abs(guess)))
        if not low < newton < high:
            newton = low + (high - low) / 2
            if not low < newton < high:
                break
        c = newton
    return c


@dataclass(eq=False)
class Solution:
    """A kernel, its constraints, and their multipliers.

    Rounds change a new solution in place; the solution that an estimator has bound is never changed.
    """

    geometry: VonNeumannGeometry
    constraints: Constraints = field(default_factory=lambda: Constraints([], np.empty((6, 0))))
    alpha: Array = field(default_factory=lambda: np.empty(0))
    log_dual: list[float] = field(default_factory=lambda: [0.0])
    log_bound: list[float] = field(default_factory=lambda: [0.0])
    n_iter: int = 0
    gap: float = 0.0
    violation: float = 0.0
    residual: float = 0.0
    found: Conditions = field(init=False, repr=False)  # values and violations of the constraints, during the rounds

    def extended(self, instances: Rows, bounds: Array, senses: Array) -> Solution:
        """The start of a solution with further constraints.

        It shares nothing that rounds change but the geometry, which is copied by the first one that does.
        """
        return Solution(
            self.geometry,
            self.constraints.extended(instances, bounds, senses),
            np.append(self.alpha, np.zeros(len(bounds))),
            self.log_dual.copy(),
            self.log_bound.copy(),
        )


@dataclass(frozen=True, kw_only=True)
class Bounds(Instances):
    """Instances, and bounds on tr(W X): upper (sense 1), lower (-1), or an equality (0)."""

    senses: Array


def _bounds(X: Rows, bounds: Array, sense) -> Bounds:
    return Bounds(X, bounds, senses=check_senses(sense, len(bounds)))


class DefiniteBoost(KernelLearner):
    """Kernel of trace one, nearest to a given one, under linear constraints (DefiniteBoost).

    Minimises the von Neumann divergence D(W, W_1) over the positive definite W of trace one with tr(W C_j) <= 0 for all
    j. A row z with the bound y is z'Wz <= y (or >= y, or = y), C = z z' - y I. For a pair of objects (a, b)
    z = (e_a - e_b) / sqrt(2), and z'Wz is half their squared distance in the feature space of W. The solution is

        W = exp(log W_1 - sum_j alpha_j C_j) / tr,    alpha_j >= 0 (of either sign where = y is wanted),

    and each round changes one alpha_j, see `selection`. A round on a row or pair updates the eigendecomposition of W by
    rank one; a round on a general matrix recomputes it.

    With diagonal C and selection="violation" this is AdaBoost: C_j = diag(y_i h_j(x_i)) for hypotheses h_j, the weights
    of the examples on the diagonal of W, and alpha_j the vote of h_j.

    Parameters
    ----------
    projection : {"approximate", "exact", "corrective"}
        "approximate": the closed form of the paper, which is the step of AdaBoost. "exact": until tr(W C_j) = 0. Exact
        needs fewer rounds, approximate less time. "corrective": all alpha_j at once, by up to 25 steps of L-BFGS-B on
        the dual objective. Fastest with many constraints or a small `tol`; Theorem 4.1 then does not apply to a round.
    selection : {"optimality", "violation"}
        Which alpha_j a round changes. "optimality": the one farthest from its optimality conditions, which is that of
        the most violated constraint unless an inactive constraint has alpha_j > 0. "violation", as in the paper: always
        that of the most violated constraint. Then no alpha_j of an inequality ever decreases, and learning stops as
        soon as all constraints hold to within `tol`; the kernel satisfies them, but need not be the nearest one. Not
        for "corrective", which changes all alpha_j.
    init : array-like of shape (n_features, n_features) or None
        W_1, positive definite, divided by its trace. None: the identity / n_features.
    max_iter : int
        Largest number of rounds of one call.
    tol : float
        Accuracy: stop when `kkt_residual_` <= tol; with selection="violation", when the violations in it are. Then
        tr(W C_j) <= tol * spread_j / n_features for all j, where spread_j, the distance of the extreme eigenvalues of
        C_j, is |z|^2 for rows and 1 for pairs.
    verbose : int
        Print the state of every hundredth round.

    Attributes
    ----------
    {kernel_, log_kernel_, components_}
    alpha_ : ndarray of shape (n_constraints,)
        Multipliers of the constraints, in the order they were added; 0 for inactive constraints.
    max_violation_ : float
        Largest tr(W C_j), of equalities |tr(W C_j)|, in units of y; negative if all constraints hold strictly.
    kkt_residual_ : float
        Largest distance of a constraint from its optimality conditions, dimensionless: with the relative violation v =
        tr(W C_j) n_features / spread_j it is max(v, min(-v, alpha_j spread_j)), for an equality |v|.
    dual_gap_ : float
        D(W, W_1) minus the lower bound that the dual objective gives for the solution, which is -sum alpha_j tr(W C_j).
        0 at the solution; negative while W is infeasible and closer to W_1 than the solution.
    dual_objective_ : ndarray of shape (n_rounds + 1,)
        n_features * tr exp(log W_1 - sum alpha C) after each round since learning started; decreasing from n_features,
        as in figure 3 of the paper. D(W, W_1) = -ln(dual_objective_[-1] / n_features) at the solution.
    dual_bound_ : ndarray of shape (n_rounds + 1,)
        Bound of Theorem 4.1 on `dual_objective_`: n_features times the product of the factors of the rounds.
    n_iter_ : int
        Rounds of the last call, including the final check.
    {divergence_}
    n_features_in_ : int
        Number of features, which are the objects if constraints are pairs.
    {feature_names_in_}

    Raises
    ------
    {ValueError}

    Warns
    -----
    ConvergenceWarning
        If the constraints are infeasible (then sum alpha_j C_j is positive definite, which proves it), or `max_iter`
        rounds were not enough. The kernel is usable nevertheless.

    See Also
    --------
    MEGKernelLearner : A kernel from distances themselves, online.

    Notes
    -----
    The constraints of all calls are stored, since the solution depends on each of them, and every round evaluates all
    of them: memory and time of a round grow with their number. A pair takes about 100 bytes (its row, bound, sense, the
    range of its eigenvalues, alpha), a dense row of d features 8 d more, a matrix 8 d^2 more.

    References
    ----------
    .. [1] K. Tsuda, G. Raetsch, M. K. Warmuth, "Matrix Exponential Gradient Updates for On-line Learning and Bregman
       Projection", NIPS 2004, sections 4 and 5. The step is the minimiser of the bound behind Theorem 4.1.

    Examples
    --------
    Objects 0 and 1 are similar, and so are 1 and 2:

    >>> from onlinebregman.kernel_learning import DefiniteBoost
    >>> model = DefiniteBoost().fit_pairs([[0, 1], [1, 2]], [0.05, 0.05], n_objects=4)
    >>> print(model.kernel_.round(2))
    [[0.22 0.13 0.07 0.  ]
     [0.13 0.15 0.13 0.  ]
     [0.07 0.13 0.22 0.  ]
     [0.   0.   0.   0.42]]

    Object 3 must also be far from object 0:

    >>> model = model.partial_fit_pairs([[0, 3]], [0.4], sense=">=")
    >>> print((model.pairwise_distances()[[0, 1, 0], [1, 2, 3]] / 2).round(2))
    [0.05 0.05 0.4 ]
    """

    _unmergeable = "it solves for all constraints at once"
    _state = "_solution"
    _parameter_constraints: dict = {
        "projection": [StrOptions({"approximate", "exact", "corrective"})],
        "selection": [StrOptions({"optimality", "violation"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }
    _read_at_each_call = ("projection", "selection", "max_iter", "tol", "verbose")

    def __init__(
        self,
        *,
        projection: Literal["approximate", "exact", "corrective"] = "approximate",
        selection: Literal["optimality", "violation"] = "optimality",
        init: ArrayLike | None = None,
        max_iter: int = 5000,
        tol: float = 1e-3,
        verbose: int = 0,
    ) -> None:
        self._set_arguments(locals())

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: ArrayLike, *, sense: ArrayLike | None = None) -> Self:
        """Find the kernel for these constraints alone.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows z.
        y : array-like of shape (n_samples,)
            Bounds of z'Wz.
        sense : {"<=", ">=", "=="}, array-like of them of shape (n_samples,), or None, default=None
            Whether the bound is an upper bound, a lower bound or an equality, for all rows or for each. None: "<=".

        Returns
        -------
        {self}
        """
        return self._fit(X, y, sense)

    def partial_fit(self, X: MatrixLike, y: ArrayLike, *, sense: ArrayLike | None = None) -> Self:
        """Add these constraints and continue from the current kernel to the solution for all constraints.

        Parameters
        ----------
        {X, y, sense}

        Returns
        -------
        {self}
        """
        return self._validate_and_learn(X, y, sense)

    @fit_context(prefer_skip_nested_validation=True)
    def fit_pairs(self, pairs: ArrayLike, distances: ArrayLike, n_objects: int, sense: ArrayLike | None = None) -> Self:
        """Find the kernel for these bounds on distances between objects alone.

        Parameters
        ----------
        pairs : array-like of int of shape (n_pairs, 2)
            Two object numbers each, from 0 to n_objects - 1.
        distances : array-like of shape (n_pairs,)
            Bounds on half the squared distances, (W_aa + W_bb) / 2 - W_ab, >= 0. W has trace one: with d objects they
            are of the order of 1 / d.
        n_objects : int
            Number of objects d.
        sense : {"<=", ">=", "=="}, array-like of them of shape (n_pairs,), or None, default=None
            "<=" for pairs that must be close, ">=" for pairs that must be far apart, "==" for exact distances, for all
            pairs or for each. None: "<=".

        Returns
        -------
        {self}
        """
        return self._fit(pairs, distances, n_objects, sense, check=self._check_pairs)

    def partial_fit_pairs(
        self, pairs: ArrayLike, distances: ArrayLike, n_objects: int | None = None, sense: ArrayLike | None = None
    ) -> Self:
        """Add these bounds on distances and continue to the solution for all constraints.

        Parameters
        ----------
        pairs, distances, n_objects, sense
            As in `fit_pairs`; n_objects may be left out after the first call.

        Returns
        -------
        {self}
        """
        return self._validate_and_learn(pairs, distances, n_objects, sense, check=self._check_pairs)

    def partial_fit_matrices(self, C: ArrayLike, sense: ArrayLike | None = None) -> Self:
        """Add constraints tr(W C_j) <= 0 and continue to the solution for all constraints.

        Parameters
        ----------
        C : array-like of shape (n_constraints, n_features, n_features)
            Symmetric matrices, of any rank and sign.
        sense : {"<=", ">=", "=="}, array-like of them of shape (n_constraints,), or None, default=None
            Whether tr(W C_j) must be at most 0, at least 0 or equal to 0, for all matrices or for each. None: "<=".

        Returns
        -------
        {self}
        """
        return self._validate_and_learn(C, sense, check=self._check_matrices)

    @property
    def divergence_(self) -> VonNeumann:
        """The divergence that is minimised."""
        return VonNeumann(trace=1.0)

    @read_only
    def alpha_(self) -> np.ndarray:
        """Multipliers of the constraints, shape (n_constraints,), in the order they were added."""
        return self._fitted_state().alpha

    @property
    def max_violation_(self) -> float:
        """Largest tr(W C_j), of equalities |tr(W C_j)|, in units of y."""
        return self._fitted_state().violation

    @property
    def kkt_residual_(self) -> float:
        """Largest distance of a constraint from its optimality conditions, dimensionless."""
        return self._fitted_state().residual

    @property
    def dual_gap_(self) -> float:
        """D(W, W_1) minus the lower bound that the dual objective gives for the solution."""
        return self._fitted_state().gap

    @read_only
    def dual_objective_(self) -> np.ndarray:
        """Dual objective after each round, shape (n_rounds + 1,)."""
        return np.exp(self._fitted_state().log_dual) * self.n_features_in_

    @read_only
    def dual_bound_(self) -> np.ndarray:
        """Guaranteed upper bound of the dual objective after each round, shape (n_rounds + 1,)."""
        return np.exp(self._fitted_state().log_bound) * self.n_features_in_

    @property
    def n_iter_(self) -> int:
        """Rounds of the last call, including the final check."""
        return self._fitted_state().n_iter

    # --- learning -------------------------------------------------------------------------------------------------

    def _check(self, call: Call, X, y, sense: ArrayLike | None = None) -> Bounds:
        return _bounds(*self._check_rows(call, X, y), sense)

    def _check_pairs(self, call: Call, pairs, distances, n_objects, sense) -> Bounds:
        return _bounds(*self._check_object_pairs(call, pairs, distances, n_objects), sense)

    def _check_matrices(self, call: Call, C, sense: ArrayLike | None) -> Bounds:
        matrices = self._check_symmetric(call, C, "C")
        return _bounds(matrices, np.zeros(len(matrices)), sense)

    def _begin(self, data: Bounds) -> None:
        geometry = VonNeumannGeometry(VonNeumann().mirror(self._first_kernel()), self.divergence_.trace)
        self._log_first = geometry.log_coef
        self._least_log = float(geometry.log_values[0])
        self._solution = Solution(geometry)

    def _learn(self, data: Bounds, order: None = None, *, again: bool = False) -> None:
        solution, rounds = self._extended(data), range(self.max_iter)
        solution.n_iter = next((i + 1 for i in rounds if self._round(solution, i)), self.max_iter)
        self._publish(solution)

    def _learn_in_epochs(self, learn: Callable, data: Bounds, X, y) -> None:
        solution = self._extended(data)
        current = {"current": lambda: {"_solution": copy.deepcopy(solution)}}
        solution.n_iter = self._run(lambda i: self._round(solution, i), self.max_iter, "round", X, y, **current)
        self._publish(solution)

    def _extended(self, data: Bounds) -> Solution:
        """The start of a solution with further constraints."""
        solution = self._solution.extended(data.X, data.y, data.senses)
        solution.found = self._conditions(solution)
        return solution

    def _infeasible(self, solution: Solution) -> bool:
        """Whether the constraints are proved to contradict each other.

        If some W satisfies them, tr exp(log W_1 - sum alpha C) >= exp(-D(W, W_1)), and D is at most -ln of the least
        eigenvalue of W_1.
        """
        return solution.log_dual[-1] < self._least_log - 1e-9

    @property
    def _only_violations(self) -> bool:
        """Whether a round only considers violated constraints, not the other optimality conditions."""
        return self.selection == "violation" and self.projection != "corrective"

    def _conditions(self, solution: Solution) -> Conditions:
        """Violations and residuals of the constraints; a ValueError if something overflowed."""
        constraints = solution.constraints
        found = constraints.conditions(solution.geometry.factor, solution.alpha)
        if not (found.finite and isfinite(solution.log_dual[-1]) and isfinite(solution.log_bound[-1])):
            size = np.maximum(np.abs(constraints.lows), np.abs(constraints.highs)) / constraints.spreads
            row = int(np.argmax(size))
            raise ValueError(
                f"The multipliers of the constraints overflow; constraint {row} is the most extreme one, with a bound "
                f"{size[row]:g} times the squared norm of its row. Remove it, or scale rows by some s and bounds by "
                "s^2."
            )
        return found

    def _round(self, solution: Solution, i: int) -> bool:
        """Change one multiplier, or all of them; True if learning can stop."""
        found = solution.found
        if self._only_violations:
            j, residual = found.worst, found.violations.item(found.worst)
        else:
            j, residual = found.farthest, found.residuals.item(found.farthest)
        if self.verbose and i % 100 == 0:
            print(
                f"[{type(self).__name__}] round {i}: optimality {residual:.3g}, largest violation "
                f"{solution.constraints.spreads[j] * found.violations.max() / self.n_features_in_:.3g}, "
                f"dual objective {self.n_features_in_ * np.exp(solution.log_dual[-1]):.6g}"
            )
        if residual <= self.tol or self._infeasible(solution):
            return True
        if not (self.projection == "corrective" and self._correct(solution)):
            self._move(solution, j, found.values.item(j))
        solution.found = self._conditions(solution)
        return False

    def _correct(self, solution: Solution) -> bool:
        """Lower the dual objective in all multipliers at once; False if that fails."""
        constraints, spreads = solution.constraints, solution.constraints.spreads

        def objective(scaled: Array) -> tuple[float, Array]:
            value, gradient = constraints.dual(scaled / spreads, self._log_first)
            return value, gradient / spreads

        def stop_if_infeasible(intermediate_result) -> None:
            if intermediate_result.fun < self._least_log - 1:
                raise StopIteration

        with np.errstate(over="ignore", invalid="ignore"):
            try:
                found = minimize(
                    objective,
                    solution.alpha * spreads,
                    jac=True,
                    method="L-BFGS-B",
                    bounds=[(None if free else 0, None) for free in constraints.equal],
                    callback=stop_if_infeasible,
                    options={"maxiter": 25, "ftol": 0.0, "gtol": self.tol / (2 * self.n_features_in_)},
                )
            except np.linalg.LinAlgError:  # a multiplier that was tried overflows
                return False
            if not found.fun < solution.log_dual[-1]:
                return False
            solution.alpha = found.x / spreads
            solution.geometry = VonNeumannGeometry(self._log_first - constraints.combined(solution.alpha), 1.0)
        solution.log_dual.append(float(found.fun))
        solution.log_bound.append(solution.log_bound[-1])
        return True

    def _move(self, solution: Solution, j: int, value: float) -> None:
        """G <- G - step C_j from tr(W C_j) = value spread / d, with the new dual objective and its bound."""
        if solution.geometry is self._solution.geometry:
            solution.geometry = copy.copy(solution.geometry)
        constraints, geometry = solution.constraints, solution.geometry
        bound, sign, low, high, spread, equal = constraints.table[:, j].tolist()
        x = constraints.prepared(j, geometry)  # G - step C_j is G - step sign x, up to a multiple of I
        r, bound, lowest, side = value * spread / self.n_features_in_, sign * bound, -solution.alpha.item(j), 1.0
        if equal:
            lowest = -inf
            if r < 0:  # then -C_j is violated
                r, low, high, sign, bound, side = -r, -high, -low, -sign, -bound, -1.0
        step, log_factor = approximate_step(r, low, high, self.tol * spread / self.n_features_in_, lowest)
        if self.projection == "exact":
            if r > 0:
                enough = self._least_log - 1 - solution.log_dual[-1]
                step = exact_step(geometry, x, sign, bound, 0.0, np.inf, step, spread, enough)
            else:
                step = lowest  # back to a multiplier of 0, if the constraint is then satisfied
                if sign * geometry.evaluate_row(x, sign * lowest)[0] > bound:
                    step = exact_step(geometry, x, sign, bound, lowest, 0.0, max(step, lowest / 2), spread)
        grown = geometry.move(x, sign * step)  # compiled: eigenvalues and vectors of G after a change of rank one
        solution.alpha[j] += side * step
        solution.log_dual.append(solution.log_dual[-1] + grown + step * bound)
        solution.log_bound.append(solution.log_bound[-1] + log_factor)

    def _publish(self, solution: Solution) -> None:
        """Bind the solution with its measures of convergence, and warn if it has not converged."""
        found, spreads = solution.found, solution.constraints.spreads
        del solution.found
        excesses = found.violations * spreads / self.n_features_in_
        worst = int(np.argmax(excesses))
        # 0 times infinity is 0
        values = np.where(solution.alpha == 0, 0.0, found.values * spreads / self.n_features_in_)
        solution.gap = float(-solution.alpha @ values)
        solution.violation = float(excesses[worst])
        solution.residual = float(found.residuals.max())
        self._solution = solution  # one assignment, as other threads may predict
        message = f"constraint {worst} is violated most, by {solution.violation:g}"
        if self._infeasible(solution):
            warn_caller(
                "The constraints cannot all be met by a kernel of trace one: weighted with alpha_ they contradict "
                f"each other, and {message}. Relax their bounds, or remove some.",
                ConvergenceWarning,
            )
        elif (residual := found.violations.max() if self._only_violations else solution.residual) > self.tol:
            warn_caller(
                f"{type(self).__name__} stopped after max_iter={self.max_iter} rounds with kkt_residual_={residual:g} "
                f"above tol={self.tol:g}; {message}. Raise max_iter or tol; if dual_objective_ keeps decreasing, the "
                "constraints are infeasible.",
                ConvergenceWarning,
            )


def approximate_step(r: float, low: float, high: float, margin: float, lowest: float) -> tuple[float, float]:
    """Step along C that minimises the bound behind Theorem 4.1, not below `lowest`, and the logarithm of that bound.

    With r = tr(W C) and the eigenvalues of C in [low, high], tr exp(log W - step C) is at most

        ((high - r) exp(-step low) + (r - low) exp(-step high)) / (high - low),

    least at step = ln((1 - r / low) / (1 - r / high)) / (high - low). The interval is widened to hold 0 and r with a
    `margin` inside it, which keeps both finite for constraints that no W, or only a singular one, satisfies.
    """
    margin = max(margin, 1e-12 * max(-low, high, abs(r)))  # bounds far beyond all eigenvalues
    low, high = min(low, -margin, r - margin), max(high, margin, r + margin)
    step = max((log1p(-r / low) - log1p(-r / high)) / (high - low), lowest)
    log_factor = np.logaddexp(log(high - r) - step * low, log(r - low) - step * high) - log(high - low)
    return step, float(log_factor)
