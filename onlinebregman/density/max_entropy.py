"""Maximum entropy over a finite domain."""

from __future__ import annotations

from math import isfinite
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._online.containers import unmasked
from .._online.estimator import Call, Examples, OnlineEstimator
from .._online.validation import (
    FLOATS,
    check_dense_rows,
    check_draws,
    check_finite,
    check_learned,
    check_numbers,
    check_weights,
    is_finite,
    read_only,
    warn_caller,
)
from .._sklearn_compat import Interval, StrOptions, check_feature_names, fit_context
from ._base import Density
from ._domain import Features, RowIndex, distinct
from ._scaling import Scaling, iterative_scaling, lbfgs, newton

_BLOCK = 4096  # observations that are added at once


class MaxEntDensity(Density, OnlineEstimator):
    """The maximum-entropy distribution whose feature expectations match the observed averages.

    Over a finite domain of N points with features f_j, of all distributions with E_q[f_j] = Ehat[f_j], the average over
    observed points, the one of maximum entropy is the member

        q(x) = exp(sum_j lambda_j f_j(x)) / Z

    that maximises the likelihood of the observations. With `alpha`, expectations match to within this fraction of the
    range of each feature.

    Parameters
    ----------
    domain : array-like of shape (n_points, n_features)
        The points, float64 or float32 without a copy; equal rows are different points, each with its probability. None:
        the distinct rows seen so far.
    features : transformer
        Features of the points: a scikit-learn transformer, fitted on the domain. None: the columns of the domain.
    alpha : float
        Relaxed moment matching: L1 penalty of the multipliers, of features scaled to [0, 1] over the domain.
    solver : {"newton", "lbfgs", "iterative_scaling"}
        How the multipliers are found. "newton": Newton steps with the covariance of the features, a few passes over the
        domain with n_features_out^2 operations per point. "lbfgs": for thousands of features; many passes if they are
        correlated. "iterative_scaling": the parallel update lambda_j += ln(Ehat[f_j] / E_q[f_j]).
    scaling : {"largest_sum", "n_features"}
        The divisor with which iterative scaling makes the features, of range [0, 1], sum to at most 1: their largest
        sum at a point, or their number, as in the lecture. A smaller divisor gives longer steps.
    max_iter : int
        Largest number of iterations of each call.
    tol : float
        Stop when the guaranteed decrease of the mean log loss in a round of iterative scaling, the relative entropy
        RE(Ehat[f] || E_q[f]), is at most this; for "newton", after a step with an expected decrease of at most this.
        None: run `max_iter` iterations, or up to the precision of float64.

    Attributes
    ----------
    lambda_ : ndarray of shape (n_features_out,)
        Multipliers. -inf (inf) if a feature was only observed at its smallest (largest) value; see Notes.
    expectations_ : ndarray of shape (n_features_out,)
        E_q[f].
    empirical_expectations_ : ndarray of shape (n_features_out,)
        Ehat[f].
    log_loss_ : float
        Mean of -ln q over the observations (that are in the support).
    entropy_ : float
        Entropy of q.
    dual_gap_ : float
        Penalised log-loss minus entropy: sum lambda (E_q[f] - Ehat[f]) + alpha |lambda|, in scaled features; 0 at the
        optimum. If q matches the expectations to within alpha, an upper bound on the distance of both from the optimum.
    entropy_bound_ : float
        RE(Ehat[f] || E_q[f]), or its counterpart with `alpha`: the guaranteed decrease of the loss in the next round.
    domain_ : ndarray of shape (n_points, n_features)
        The points.
    probabilities_ : ndarray of shape (n_points,)
        q of all points.
    n_iter_ : int
        Iterations of the last call.
    n_features_in_ : int
        Number of columns of the domain.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of X, if it had any.

    See Also
    --------
    OnlineExponentialFamily : Families over numbers and counts.

    Notes
    -----
    *Zero empirical expectations.* If a feature was only observed at its smallest value, such as a non-negative feature
    whose average is 0, no finite multiplier matches the expectation: the likelihood increases as lambda_j -> -inf. The
    limit is returned: points with a larger value get probability 0, lambda_j is -inf, and the other multipliers are
    fitted on the remaining points (likewise for the largest value). These points return after a later observation with
    another value. With `alpha` > 0 multipliers stay finite. Expectations at other faces of the convex hull of the
    features have no finite optimum either; there the solver stops at `tol` with large multipliers.

    `partial_fit` adds observations to the empirical expectations and continues from the previous multipliers. Features
    are read in blocks of points, without a second copy.

    Multipliers need not be unique if features are linearly dependent; the distribution is.

    References
    ----------
    .. [1] R. Schapire, COS 511: Theoretical Machine Learning, lecture 20, 2018.
    .. [2] M. Dudik, S. Phillips, R. Schapire, "Maximum Entropy Density Estimation with Generalized Regularization",
       JMLR 8, 2007.

    Examples
    --------
    A die with mean 4.5:

    >>> import numpy as np
    >>> from onlinebregman import MaxEntDensity
    >>> die = MaxEntDensity(domain=[[1], [2], [3], [4], [5], [6]]).fit([[4], [5]])
    >>> die.probabilities_.round(3)
    array([0.054, 0.079, 0.114, 0.165, 0.24 , 0.347])
    >>> die.expectations_.round(6)
    array([4.5])
    """

    _unmergeable = "it solves for the expectations of all observations at once"
    _state = "_solved"
    _parameter_constraints: dict = {
        "domain": ["array-like", None],
        "features": "no_validation",
        "alpha": [Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions({"newton", "lbfgs", "iterative_scaling"})],
        "scaling": [StrOptions({"largest_sum", "n_features"})],
        "tol": [Interval(Real, 0, None, closed="neither"), None],
    }
    _read_at_each_call = ("alpha", "solver", "scaling", "max_iter", "tol")

    domain_: np.ndarray
    _index: tuple[np.ndarray, RowIndex] | None  # of the domain, and the domain that it was built from

    def __init__(
        self,
        domain: ArrayLike | None = None,
        *,
        features: object | None = None,
        alpha: float = 0.0,
        solver: Literal["iterative_scaling", "newton", "lbfgs"] = "newton",
        scaling: Literal["largest_sum", "n_features"] = "largest_sum",
        max_iter: int = 1000,
        tol: float | None = 1e-10,
    ) -> None:
        self._set_arguments(locals())

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to observed points, from multipliers of 0.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or of int of shape (n_samples,)
            Observed points: rows of the domain, or their numbers.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each observation counts; one of weight 0 is ignored.

        Returns
        -------
        {self}

        Raises
        ------
        ValueError
            If an observation is not a point of the domain; the estimator is then unchanged.
        """
        return self._fit(X, y, sample_weight)

    def partial_fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Add observed points, and continue from the previous multipliers.

        Parameters
        ----------
        {X, y, sample_weight}

        Returns
        -------
        {self}

        Raises
        ------
        {ValueError}
        """
        return self._validate_and_learn(X, y, sample_weight)

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Log-probability of points.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or of int of shape (n_samples,)
            Rows, or numbers of points of the domain.

        Returns
        -------
        log_probability : ndarray of shape (n_samples,)
            ln q; -inf for a row outside of the domain or the support.

        Raises
        ------
        ValueError
            If the number of a point does not exist.
        """
        check_learned(self)
        X, (domain, features, multipliers, log_z) = self._check_rows(X, reset=False), self._solved
        points = self._points(X, domain)
        known = points >= 0
        out = np.full(len(points), -np.inf)
        out[known] = features.log_density(points[known], multipliers, log_z)
        return out

    def sample(self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None) -> np.ndarray:
        """Draw points.

        Parameters
        ----------
        n_samples : int, default=1
            How many points.
        {random_state}

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Rows of the domain.
        """
        check_learned(self)
        domain, q = self._solved[0], self.probabilities_
        return domain[check_draws(n_samples, random_state).choice(len(q), size=n_samples, p=q / q.sum())]

    @read_only
    def probabilities_(self) -> np.ndarray:
        """q of all points, shape (n_points,)."""
        domain, features, multipliers, log_z = self._fitted_state()
        return np.exp(features.log_density(np.arange(len(domain)), multipliers, log_z))

    @property
    def entropy_(self) -> float:
        """Entropy of q."""
        self._fitted_state()
        return float(self._log_z - self._multipliers @ self._matched[1])

    @property
    def log_loss_(self) -> float:
        """Mean of -ln q over the observations."""
        self._fitted_state()
        return float(self._log_z - self._multipliers @ self._matched[0])

    @property
    def dual_gap_(self) -> float:
        """Penalised log-loss minus entropy; 0 at the optimum."""
        return self.log_loss_ + self._solved_alpha * float(np.abs(self._multipliers).sum()) - self.entropy_

    def _check(self, call: Call, X, y: None, sample_weight: ArrayLike | None) -> Examples:
        """Observations of positive weight, and their weights."""
        if call.first:
            self._read_domain()
        X = self._check_rows(X, reset=call.first)
        weights = check_weights(sample_weight, len(X), allow_all_zero=not call.first)
        if self._fixed:
            if X.ndim == 2 and self._index is None:
                self._index = self.domain_, RowIndex(self.domain_)
            self._refuse_unknown(X)
        if weights is None:
            return Examples(X, weights=np.ones(len(X)))
        return Examples(X[weights > 0], weights=weights[weights > 0])

    def _check_rows(self, X: ArrayLike, *, reset: bool) -> np.ndarray:
        """Rows of the domain's width, or numbers of points."""
        numbers = None if self.domain is None or getattr(X, "ndim", 1) != 1 else _as_numbers(X)
        if numbers is None:
            named = self._fixed and hasattr(self, "feature_names_in_")  # X must have the names of the domain
            X = check_dense_rows(self, X, reset=reset and not named)
            if reset and self._fixed and X.shape[1] != self.domain_.shape[1]:
                raise ValueError(
                    f"X has {X.shape[1]} columns, but the domain has {self.domain_.shape[1]}; observations must be "
                    "rows of the domain, or their numbers."
                )
            return X
        outside = (numbers < 0) | (numbers >= len(self.domain_))
        if outside.any():
            row = int(np.argmax(outside))
            raise ValueError(f"X[{row}] = {numbers[row]}: numbers of points must be from 0 to {len(self.domain_) - 1}.")
        return numbers.astype(np.intp)

    def _read_domain(self) -> None:
        """The points and their index; without a given domain they come with the rows."""
        self._fixed = self.domain is not None
        self._index = None  # built when observations are rows, not numbers
        if self.domain is None:
            if self.features is not None:
                raise ValueError("features need a domain; give domain, the points for which they are computed.")
            return
        domain = check_numbers(self.domain, "domain", dtype=FLOATS)
        check_finite(domain, "domain")
        check_feature_names(self, self.domain, reset=True)
        self.domain_, self.n_features_in_ = domain, domain.shape[1]

    def _points(self, X: np.ndarray, domain: np.ndarray) -> np.ndarray:
        """For each row the number of the equal point of the domain; -1 if there is none."""
        if X.ndim == 1:
            return X
        known = self._index  # read once, as other threads may extend the domain
        return (known[1] if known is not None and known[0] is domain else RowIndex(domain)).find(domain, X)

    def _refuse_unknown(self, X: np.ndarray) -> None:
        points = self._points(X, self.domain_)
        if (points < 0).any():
            row = int(np.argmax(points < 0))
            shown = ", ".join(f"{value:g}" for value in X[row, :5]) + (", ..." if X.shape[1] > 5 else "")
            raise ValueError(
                f"Row {row} of X, [{shown}], is not a point of the domain ({len(self.domain_)} rows); observations "
                "must equal rows of the domain exactly, or be their numbers."
            )

    def _begin(self, data: Examples) -> None:
        """Start without observations."""
        self._weight = 0.0
        self._observed: Any = None  # expectations minus the origin
        self._seen: tuple[np.ndarray, np.ndarray] | None = None  # smallest and largest features
        self._raw: np.ndarray | None = None  # multipliers of the unscaled features
        if self.domain is None:
            self.domain_ = np.empty((0, self.n_features_in_))
            return
        self._values = self.domain_
        if self.features is not None:
            points = self.domain if hasattr(self, "feature_names_in_") else self.domain_
            self.transformer_: Any = clone(self.features).fit(points)
            values = self.transformer_.transform(points)
            if issparse(values):
                raise ValueError(
                    "The features of the domain must be dense; got a sparse matrix. Set the transformer to dense "
                    "output."
                )
            values = check_numbers(values, "features of the domain", dtype=FLOATS)
            check_finite(values, "features of the domain")
            n_points = len(self.domain_)
            if len(values) != n_points:
                raise ValueError(f"The transformer gives {len(values)} rows of features for {n_points} points.")
            self._values = values

    def _learn(self, data: Examples, order: None = None, *, again: bool = False) -> None:
        if len(data):
            self._observe(data.X, data.weights)
            self._solve()

    def _observe(self, X: np.ndarray, weights: np.ndarray) -> None:
        """Add observations to the empirical expectations."""
        points = self._points(X, self.domain_)
        if not self._fixed and (points < 0).any():
            new = distinct(X[points < 0])  # unsorted
            self.domain_ = self._values = np.unique(np.vstack([self.domain_, new]), axis=0)
            self._index = self.domain_, RowIndex(self.domain_)
            points = self._points(X, self.domain_)
        if not self._weight:
            self._origin = self._values[points[0]].astype(np.float64)
        before, total = self._weight, np.zeros(self._values.shape[1])
        for start in range(0, len(points), _BLOCK):
            some = slice(start, start + _BLOCK)
            values = self._values[points[some]].astype(np.float64)
            ends = values if self._seen is None else np.vstack([*self._seen, values])
            self._seen = ends.min(axis=0), ends.max(axis=0)
            self._weight += float(weights[some].sum())
            with np.errstate(over="ignore", invalid="ignore"):
                total += weights[some] @ (values - self._origin)  # minus the origin, to avoid cancellation
        self._observed = (total if self._observed is None else before * self._observed + total) / self._weight
        self.empirical_expectations_: np.ndarray = self._origin + self._observed
        if not (self._weight < np.inf and is_finite(self.empirical_expectations_)):
            raise ValueError(
                "The weighted observations sum to infinity; scale the weights, or the features "
                "(sklearn.preprocessing.StandardScaler)."
            )

    def _solve(self) -> None:
        """Compute the multipliers for the empirical expectations, starting from the previous ones."""
        alpha = float(self.alpha)
        seen, last = self._seen if alpha == 0 else None, vars(self).get("_features")
        # those of the last call if the support is the same, which costs a pass over the domain
        features = last if last is not None and last.are(self._values, seen) else Features(self._values, seen)
        empirical = features.scale(self._observed, self._origin)
        total = features.largest_sum if self.scaling == "largest_sum" else np.count_nonzero(features.span)
        scaling = Scaling(float(total), empirical, alpha)
        free = features.free
        start = np.where(free, features.span * (0.0 if self._raw is None else self._raw), 0.0)
        solve = {"newton": newton, "lbfgs": lbfgs, "iterative_scaling": iterative_scaling}[self.solver]
        multipliers, self.n_iter_, log_z, expected = solve(features, scaling, start, self.tol, self.max_iter)
        if not (isfinite(log_z) and is_finite(multipliers)):
            raise ValueError(
                "The multipliers diverge: the expectations lie at a face of the convex hull of the features; "
                "relax the matching with alpha > 0."
            )
        self._features, self._multipliers, self._log_z, self._solved_alpha = features, multipliers, log_z, alpha
        self._solved = self.domain_, features, multipliers, log_z  # one object, as other threads may read it
        raw = np.divide(multipliers, features.span, out=np.zeros_like(multipliers), where=free)
        self.lambda_: np.ndarray = raw.copy()
        if features.limits.any():
            self.lambda_ = np.where(features.limits != 0, np.copysign(np.inf, features.limits), raw)
        self._raw = raw
        self.expectations_: np.ndarray = features.low + features.span * expected
        self._matched = empirical, expected  # of the scaled features
        self.entropy_bound_: float = scaling.step(expected, multipliers)[1]
        if not (is_finite(self.expectations_) and isfinite(self.dual_gap_)):
            raise ValueError(
                "The expectations of the features, or the log-loss, overflow; scale the features "
                "(sklearn.preprocessing.StandardScaler), or lower alpha."
            )
        if self.tol is not None and self.entropy_bound_ > self.tol:
            remedy = "raise max_iter" if self.n_iter_ >= self.max_iter else "use solver='newton'"
            warn_caller(
                f"MaxEntDensity stopped after {self.n_iter_} iterations, where another round would still reduce the "
                f"loss by {self.entropy_bound_:.3g} > tol={self.tol:g}; {remedy}, or relax the matching with alpha.",
                ConvergenceWarning,
            )


def _as_numbers(X: ArrayLike) -> np.ndarray | None:
    """X as numbers of points if it is a one-dimensional array of integers, otherwise None."""
    X = unmasked(X, "X")
    try:
        X = np.asarray(X)
    except ValueError:  # rows of different lengths: scikit-learn raises the error
        return None
    return X if X.ndim == 1 and X.size and X.dtype.kind in "iu" else None
