"""Regression on quadratic forms z'Wz in the LogDet divergence, by the explicit steps of JKD07."""

from __future__ import annotations

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags

from .._kernels.matrices.matrix_burg import MatrixBurgGeometry
from .._online.comparators import Comparators
from .._online.estimator import Call, Examples, by_parameter
from .._online.examples import LearnsTargets
from .._online.factors import factor
from .._online.mirror import MirrorEstimator
from .._online.theory import adaptive_rate_bound
from .._online.types import MatrixLike, RandomState
from .._online.validation import check_query, check_rows, check_symmetric, check_weights, dense, read_only
from .._sklearn_compat import Interval
from ..divergences import LogDet
from ..schedules import Constant, Schedule
from ._base import KernelTransformer

# Upper bound of the default init: an eigenvalue of 1 would be at the bound.
_LARGEST_START = 0.9
# Steps are projected onto W <= (1 - margin) I.
_MARGIN = 1e-8
# A rate that does not limit the adaptive one; finite, so that a row of zeros has a step.
_NO_LIMIT = 1e100


class MatrixBurgRegressor(MirrorEstimator, KernelTransformer, LearnsTargets):
    """Regression of targets y >= 0 on z'Wz, with 0 < W < I, by the matrix Burg gradient algorithm.

    Each row (z, y) moves W by the explicit step of the LogDet divergence,

        W'^-1 = W^-1 + c z z',    c = eta_t (z'Wz - y),

    the matrix version of `BurgRegressor` with update="gradient". The rate eta_t adapts: it starts at 1 / (2 R^4), R the
    largest norm(z) so far, and where W grows it is lowered as far as W < I requires,

        eta_t <= 0.9 / ((y - z'Wz) z'Nz),    N = (I - W)^-1 W = (W^-1 - I)^-1,

    where N moves by the same steps as W, N'^-1 = N^-1 + c z z', O(d^2) a row.

    Parameters
    ----------
    eta0 : float, default=float("inf")
        Upper limit of the rate for the loss (a - y)^2 / 2, in addition to those of the algorithm.
    init : array-like of shape (n_features, n_features) or None
        W to start from, symmetric with eigenvalues between 0 and 1, both excluded; None: I / n_features (0.9 I for one
        feature).
    {max_iter, tol, n_iter_no_change, shuffle, track_regret}
    warm_start : bool
        Let `fit` continue from the current W and rate.
    {random_state, verbose}

    Attributes
    ----------
    kernel_ : ndarray of shape (n_features, n_features)
        W.
    components_ : ndarray of shape (n_features, n_features)
        L' with W = L L'; rows are the principal directions, longest first.
    {t_, cumulative_loss_}
    eta_ : float
        Rate of the next step, before that row lowers it further.
    eta_history_ : ndarray of shape (n_changes, 2)
        Row number t and new rate, where the rate had decreased by a tenth or more since the last entry: at most a few
        hundred entries for a stream of any length.
    {n_iter_, loss_curve_}
    weighted_loss_ : float
        Sum of eta_t L_t(W_t), each before its step, since regret is tracked.
    n_projected_ : int
        Rows whose step was followed by a projection because W is at its bound in their direction.
    divergence_ : LogDet
        The divergence of the estimator.
    {n_features_in_, feature_names_in_}

    See Also
    --------
    BurgRegressor : The same for weights of features.
    LogDetMetricLearner : Implicit LogDet steps: any rate, no upper bound.

    Notes
    -----
    The rate never increases, so that unattainable targets, y > z'z, make it permanently small. As printed, the
    algorithm lets an eigenvalue of W reach 1, after which learning stops or W leaves its domain by rounding; here a
    step covers at most nine tenths of the distance to the bound (in W^-1 - I), and where W is within 1e-8 of the bound
    in the direction of a row, the step is projected onto W <= (1 - 1e-8) I instead, at the cost of an
    eigendecomposition. The paper has the rate 1 / (4 R^2) for the loss (a - y)^2; its proof needs tr((W X)^2) <= R^4,
    so that 1 / (4 R^4) is meant, which is 1 / (2 R^4) for the loss here.

    Its Theorem 2 then holds in this form: for every 0 < U < I, with eta_t the rate of row t, times its weight, and
    L_t the loss (a - y)^2 / 2,

        sum eta_t L_t(W_t)  <=  2 sum eta_t L_t(U) + D(U, W_0),

    where D is the LogDet divergence, as D(W, W') <= (c R^2)^2 / 2 for each step. For rows of length R at most from the
    first one on and the last rate eta, that is L <= L(U) / (eta R^4) + D(U, W_0) / eta. As printed, with R^2, and with
    -log det U in place of D(U, W_0), it does not hold. If steps were projected (`n_projected_`), it is for U <= (1 -
    1e-8) I. `loss_bound` is the bound for a run, `regret_bound` the sharper one computed from its steps.

    References
    ----------
    .. [1] P. Jain, B. Kulis, I. S. Dhillon, "Online Linear Regression using Burg Entropy", TR-07-08, UT Austin, 2007,
       Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import MatrixBurgRegressor
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(20000, 3))
    >>> Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    >>> W = np.diag([0.8, 0.3, 0.1])
    >>> model = MatrixBurgRegressor().partial_fit(Z, np.einsum("ni,ij,nj->n", Z, W, Z))
    >>> print(model.kernel_.round(2) + 0.0)
    [[0.8 0.  0. ]
     [0.  0.3 0. ]
     [0.  0.  0.1]]
    """

    _parameter_constraints: dict = {
        "eta0": [Interval(Real, 0, None, closed="right")],
        "init": ["array-like", None],
    }
    _track_regret = by_parameter("track_regret")
    _fixed_divergence = LogDet()
    _update = "gradient"

    def __init__(
        self,
        *,
        eta0: float = np.inf,
        init: ArrayLike | None = None,
        max_iter: int = 1,
        tol: float | None = None,
        n_iter_no_change: int = 5,
        shuffle: bool = True,
        track_regret: bool = False,
        warm_start: bool = False,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self._set_arguments(locals())

    def _make_geometry(self, init: np.ndarray) -> MatrixBurgGeometry:
        return MatrixBurgGeometry(init)

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Predict z'Wz.

        Parameters
        ----------
        {X}

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predictions, from 0 to z'z.
        """
        return self._predict_validated(dense(check_query(self, X)))

    @read_only
    def kernel_(self) -> np.ndarray:
        """W, shape (n_features, n_features): symmetric with eigenvalues between 0 and 1; a read-only copy."""
        return self._fitted_state().coef

    @read_only
    def components_(self) -> np.ndarray:
        """L' with W = L L', shape (n_features, n_features); rows are the principal directions, longest first."""
        return factor(self.kernel_)

    def loss_bound(self, kernel: ArrayLike, comparator_loss: float = 0.0) -> float:
        """Bound of Theorem 2 of the paper, corrected as in the Notes, on `cumulative_loss_` after the rows so far.

        For every symmetric U with eigenvalues above 0 and up to 1

            L  <=  2 eta_1 / eta_T L_U + D(U, W_0) / eta_T,

        the right side, with eta_1 and eta_T the first and the last rate, D the LogDet divergence, and losses multiplied
        by the weights of their rows.

        Parameters
        ----------
        kernel : array-like of shape (n_features, n_features)
            The matrix U to compare with.
        comparator_loss : float, default=0.0
            L_U, its loss over the rows that were learned.

        Returns
        -------
        bound : float
            Upper bound on `cumulative_loss_`.

        Raises
        ------
        ValueError
            If U is not such a matrix; after projected steps (`n_projected_`) its eigenvalues must be at most 1 - 1e-8.
        """
        self._check_one_run()
        divergence = self._divergence.divergence(self._comparator(kernel), self._first)
        return adaptive_rate_bound(self._learner.limit.range, divergence, comparator_loss)

    def regret_bound(
        self, kernel: ArrayLike | None = None, *, largest_divergence: float | None = None, weighted: bool = False
    ) -> float:
        """Bound on the regret of this run against a matrix, or the best one, without assumptions on the data.

        For every symmetric U with eigenvalues above 0 and up to 1

            sum eta_t (L_t(W_t) - L_t(U))  <=  D(U, W_1) - D(U, W_{T+1}) + sum D(W_t, W_{t+1}),

        with eta_t the rate of row t times its weight. With `weighted` this right side is the bound, and the left side
        starts with `weighted_loss_`; by default the terms of each row are divided by its rate, and the left side starts
        with `cumulative_loss_`.

        Without a matrix the bound is the largest for all of them, that of the sum of the positive eigenvalues of W_1^-1
        - W_{T+1}^-1: the loss of the run minus it is at most that of the best matrix, which nobody has to know.

        Parameters
        ----------
        kernel : array-like of shape (n_features, n_features), default=None
            U; after projected steps (`n_projected_`) its eigenvalues must be at most 1 - 1e-8. None: the best.
        {largest_divergence, weighted}

        Returns
        -------
        {bound}

        Raises
        ------
        {ValueError}
        """
        certificate = self._certificate(self._fitted_state(), mixed=weighted)
        matrices = Comparators(0.0, self._largest_eigenvalue(), None, self._divergence.norm)
        U = None if kernel is None else self._comparator(kernel)
        return certificate.bound(U, matrices, weighted, largest_divergence)

    def _comparator(self, kernel: ArrayLike) -> np.ndarray:
        """A validated matrix to compare with."""
        most = self._largest_eigenvalue()
        U = check_symmetric(kernel, "kernel", self.n_features_in_)
        values = np.linalg.eigvalsh(U)
        if not (values[0] > 0 and values[-1] <= most + 1e-12):
            raise ValueError(
                f"kernel has eigenvalues from {values[0]:g} to {values[-1]:g}, but those of matrices to compare with "
                f"must be above 0 and at most {most}."
            )
        return U

    def _largest_eigenvalue(self) -> float:
        """That of the matrices which bounds of this run compare with: projected steps end just below 1."""
        return 1 - _MARGIN if self.n_projected_ else 1.0

    @property
    def n_projected_(self) -> int:
        """Rows whose step was projected onto the bound."""
        return self._fitted_state().geometry.projected

    @property
    def eta_(self) -> float:
        """Rate of the next step."""
        return self._fitted_state().next_rate

    @read_only
    def eta_history_(self) -> np.ndarray:
        """Rows (t, rate) at which the rate had decreased by a tenth or more, shape (n_changes, 2)."""
        return self._fitted_state().limit.falls

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _schedule(self) -> Schedule:
        return Constant(min(float(self.eta0), _NO_LIMIT))

    def _begin(self, data: Examples) -> None:
        self._first = self._first_kernel(data.X.shape[1])
        self._learner = self._make_learner(self._first)

    def _first_kernel(self, d: int) -> np.ndarray:
        """The initial W."""
        if self.init is None:
            return np.eye(d) * min(1 / d, _LARGEST_START)
        init = check_symmetric(self.init, "init", d)
        values = np.linalg.eigvalsh(init)
        if not (values[0] > 0 and values[-1] < 1):
            raise ValueError(
                f"init has eigenvalues from {values[0]:g} to {values[-1]:g}, which must lie between 0 and 1; add a "
                "multiple of the identity, and divide by more than the largest one."
            )
        return init

    def _check(self, call: Call, X, y, sample_weight=None) -> Examples:
        X, y = check_rows(self, X, y=y, reset=call.first)
        if (y < 0).any():
            row = int(np.argmax(y < 0))
            raise ValueError(
                f"Negative values in data passed to {type(self).__name__}: y = {y[row]:g} at row {row}; z'Wz is never "
                "negative. Shift or clip the targets to y >= 0."
            )
        return Examples(dense(X), y, check_weights(sample_weight, len(y), allow_all_zero=call.partial))
