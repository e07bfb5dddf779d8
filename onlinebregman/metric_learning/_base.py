"""Base class of the metric learners: from labelled rows, pairs or comparisons to one learner that updates W."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from .._kernels.matrices.reservoir import Percentiles
from .._kernels.matrices.sampler import MOST_PER_ROW, NeighborTriplets, RandomPairs, TargetTriplets
from .._online.comparators import Comparators
from .._online.compiled import make_loss
from .._online.estimator import Call, Examples, by_parameter
from .._online.examples import LearnsTargets
from .._online.merging import total
from .._online.mirror import MirrorEstimator
from .._online.types import MatrixLike
from .._online.validation import (
    check_indices,
    check_rows,
    check_symmetric,
    check_vector,
    check_weights,
    dense,
    warn_caller,
)
from .._sklearn_compat import Interval, StrOptions, fit_context
from ..losses import BoundLoss, Loss, SquaredLoss
from ..schedules import LearningRate, Schedule
from ._examples import (
    Block,
    Comparisons,
    Pairs,
    check_bounds,
    check_flat,
    check_labels,
    check_similarity,
    check_size,
    differences,
    members,
    warn_of_labels,
)
from ._mahalanobis import MahalanobisTransformer
from ._memory import RemembersRows, numbers_of, random_numbers
from ._prior import MORE_PRIORS, PRIORS, Prior, prior_matrix

# A target that is larger than all others by this factor does not make their steps small
ABSURD = 5.0

SAMPLERS = {"random": RandomPairs, "neighbors": NeighborTriplets, "targets": TargetTriplets}


class OnlineMetricLearner(MahalanobisTransformer, RemembersRows, LearnsTargets, MirrorEstimator):
    """Metric learner on pairs, triplets and quadruplets; a mirror mixin gives it its geometry on symmetric matrices.

    Parameters
    ----------
    prior : {"identity", "variance", "covariance", "pca", "lda", "auto", "random"} or array-like
        Starting metric: the identity (scale the features), the inverse variances of the features, the inverse of the
        covariance (with correlations shrunk so that it exists), or a symmetric positive definite matrix, of shape
        (n_features, n_features). "pca": the identity on the `n_components` leading principal components, and a tenth of
        it on other directions; "lda": the same with the inverse covariance within classes and linear discriminants, of
        labelled rows; "auto": one of these, if `n_components` is small enough to select directions, or the identity;
        "random": with random eigenvectors. Rows of the first call are measured.
    loss : {"squared_error", "one_sided"}
        Loss of pairs: half the squared difference from the target, or the same only if a similar pair is farther apart
        than its target, or a dissimilar one closer. The loss of triplets and quadruplets is always one-sided.
    eta0 : float
        Learning rate eta, in units that depend on `scale_eta`.
    scale_eta : bool
        Divide the rate by the square of the larger target (of the largest so far, for given ones, one that is far above
        all others left out; of the margin, for triplets): eta0 is then dimensionless, and one value suits data of any
        scale. False: eta0 is eta itself.
    learning_rate : {"constant", "invscaling", "sqrt", "strongly_convex"} or Schedule
        Rate of instance t = 1, 2, ...: eta0, eta0 / t^power_t, eta0 / sqrt(t), or eta0 / t.
    sampling : {"neighbors", "random", "targets"}
        How pairs or triplets are sampled from labelled rows. "neighbors": triplets of the new row, one of its nearest
        stored rows of its class and one of its nearest stored rows of other classes, in the current metric. "random",
        as in the papers: pairs of the new row with random stored rows, alternately of its class and of another one.
        "targets", for regression: triplets as with "neighbors", of rows with real targets in place of labels; as of its
        class count the stored rows whose targets are nearest to its own, a fifth of them.
    bounds : tuple of (float, float) or None
        Target squared distances for similar and for dissimilar pairs, if only labels are given. None: the 5th and the
        95th percentile of squared distances in the prior metric, from a running sample of the stream.
    margin : float or None
        Margin of triplets and quadruplets, a squared distance. None: the median squared distance in the prior metric
        between the rows that should be closer, from a running sample of the stream.
    pairs_per_row : int
        Pairs or triplets drawn for each labelled row, at most 2^20.
    memory_size : int
        Number of rows stored for each class, or, with `sampling="targets"`, of all: a uniform sample of those seen.
    warm_start : bool
        Let `fit` continue from the current metric.
    random_state : int, RandomState instance or None
        For shuffling and for drawing pairs.

    Attributes
    ----------
    bounds_ : tuple of (float, float) or None
        Current target squared distances, for similar and for dissimilar pairs; None until they are needed.
    margin_ : float or None
        Current margin; None until it is needed.
    n_updates_, t_ : int
        Pairs, triplets and quadruplets learned.
    n_collapsed_ : int
        Those left out because two rows that they compare, and that are not to be closer, are equal.
    cumulative_loss_ : float
        Sum of the losses of all instances, each predicted before it was learned and, with `scale_eta`, divided by the
        divisor of its rate.
    weighted_loss_ : float
        Sum of rates times losses, since `track_regret` was set.
    loss_curve_ : list of float
        Mean loss of each epoch of the last `fit`, in units of squared distances, squared.
    """

    _parameter_constraints: dict = {
        "prior": [StrOptions({*PRIORS, *MORE_PRIORS}), "array-like"],
        "loss": [StrOptions({"squared_error", "one_sided"})],
        "sampling": [StrOptions(set(SAMPLERS))],
        "bounds": ["array-like", None],
        "margin": [Interval(Real, 0, None, closed="neither"), None],
        "pairs_per_row": [Interval(Integral, 1, MOST_PER_ROW, closed="both")],
        "memory_size": [Interval(Integral, 1, 2**62, closed="left")],
    }

    _read_at_each_call: tuple[str, ...] = ("loss",)

    _track_regret = by_parameter("track_regret")

    prior: Prior
    loss: Literal["squared_error", "one_sided"]
    eta0: float
    scale_eta: bool
    learning_rate: LearningRate | Schedule
    power_t: float
    sampling: Literal["neighbors", "random", "targets"]
    bounds: tuple[float, float] | None
    margin: float | None
    pairs_per_row: int
    memory_size: int
    track_regret: bool
    warm_start: bool

    # --- pairs ----------------------------------------------------------------------------------------------------

    @fit_context(prefer_skip_nested_validation=True)
    def fit_pairs(
        self,
        X: MatrixLike,
        pairs: ArrayLike | None = None,
        targets: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        labels: ArrayLike | None = None,
    ) -> Self:
        """Fit from scratch (or continue, with `warm_start`): `max_iter` epochs over pairs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_pairs, 2, n_features)
            Rows; or the pairs themselves, without `pairs`. With `preprocessor` also numbers of its rows, of shape
            (n_pairs, 2).
        pairs : array-like of int of shape (n_pairs, 2) or None, default=None
            Each pair as two row numbers of X.
        targets : array-like of shape (n_pairs,) or None, default=None
            The squared distance each pair should have, >= 0. None: `bounds_`, by the labels.
        sample_weight : array-like of shape (n_pairs,), default=None
            Multiplies the learning rate of each pair; a pair of weight 0 is ignored.
        labels : array-like of shape (n_pairs,) or None, default=None
            1 for similar pairs, -1 for dissimilar ones. With `loss="one_sided"` they determine whether the target is an
            upper or a lower bound.

        Returns
        -------
        {self}
        """
        arguments = X, pairs, targets, labels, sample_weight
        return self._fit(*arguments, check=self._check_pairs, learn=self._learn_pairs)

    def partial_fit_pairs(
        self,
        X: MatrixLike,
        pairs: ArrayLike | None = None,
        targets: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        labels: ArrayLike | None = None,
    ) -> Self:
        """Learn from these pairs, once, in their order.

        Parameters
        ----------
        {X, pairs, targets, sample_weight, labels}

        Returns
        -------
        {self}
        """
        arguments = X, pairs, targets, labels, sample_weight
        return self._validate_and_learn(*arguments, check=self._check_pairs, learn=self._learn_pairs)

    # --- comparisons ----------------------------------------------------------------------------------------------

    @fit_context(prefer_skip_nested_validation=True)
    def fit_triplets(
        self, X: MatrixLike, triplets: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit from scratch (or continue, with `warm_start`): `max_iter` epochs over relative comparisons.

        The squared distance to the dissimilar row should exceed that to the similar one by `margin_`. For any `loss`, a
        triplet that satisfies this causes no step; the loss of the others is half the squared shortfall.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_triplets, 3, n_features)
            Rows; or the triplets themselves, without `triplets`. With `preprocessor` also numbers of its rows, of shape
            (n_triplets, 3).
        triplets : array-like of int of shape (n_triplets, 3) or None, default=None
            Row numbers of X: an anchor, a similar row, a dissimilar row.
        sample_weight : array-like of shape (n_triplets,), default=None
            Multiplies the learning rate of each triplet; a triplet of weight 0 is ignored.

        Returns
        -------
        {self}
        """
        return self._fit(X, triplets, sample_weight, check=self._check_triplets, learn=self._learn_comparisons)

    def partial_fit_triplets(
        self, X: MatrixLike, triplets: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from these relative comparisons, once, in their order.

        Parameters
        ----------
        {X, triplets, sample_weight}

        Returns
        -------
        {self}
        """
        arguments = X, triplets, sample_weight
        return self._validate_and_learn(*arguments, check=self._check_triplets, learn=self._learn_comparisons)

    @fit_context(prefer_skip_nested_validation=True)
    def fit_quadruplets(
        self, X: MatrixLike, quadruplets: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit from scratch (or continue, with `warm_start`): `max_iter` epochs over comparisons of two pairs.

        For rows a, b, c and d, a and b should be closer than c and d, in squared distances by `margin_`. A triplet a,
        b, d is the quadruplet a, b, a, d.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_quadruplets, 4, n_features)
            Rows; or the quadruplets themselves, without `quadruplets`. With `preprocessor` also numbers of its rows, of
            shape (n_quadruplets, 4).
        quadruplets : array-like of int of shape (n_quadruplets, 4) or None, default=None
            Row numbers of X: two rows that should be closer than the other two.
        sample_weight : array-like of shape (n_quadruplets,), default=None
            Multiplies the learning rate of each quadruplet; a quadruplet of weight 0 is ignored.

        Returns
        -------
        {self}
        """
        return self._fit(X, quadruplets, sample_weight, check=self._check_quadruplets, learn=self._learn_comparisons)

    def partial_fit_quadruplets(
        self, X: MatrixLike, quadruplets: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from these comparisons of two pairs, once, in their order.

        Parameters
        ----------
        {X, quadruplets, sample_weight}

        Returns
        -------
        {self}
        """
        arguments = X, quadruplets, sample_weight
        return self._validate_and_learn(*arguments, check=self._check_quadruplets, learn=self._learn_comparisons)

    # --- results --------------------------------------------------------------------------------------------------

    @property
    def n_updates_(self) -> int:
        """Pairs, triplets and quadruplets learned so far."""
        return self.t_

    @property
    def n_collapsed_(self) -> int:
        """Pairs, triplets and quadruplets left out: no metric can separate equal rows."""
        self._fitted_state()
        return int(self._sampler.n_collapsed) + self._n_collapsed

    @property
    def bounds_(self) -> tuple[float, float] | None:
        """Current target squared distances, same class and different classes; None before they are known."""
        self._fitted_state()
        bounds = self._sampler.bounds.values
        return None if bounds is None else (bounds[0], bounds[1])

    @property
    def margin_(self) -> float | None:
        """Current margin between the squared distances of a comparison; None before it is known."""
        self._fitted_state()
        margin = self._sampler.margins.values
        return None if margin is None else margin[0]

    def _default_threshold(self) -> float | None:
        bounds = self.bounds_
        return None if bounds is None else float(np.sqrt((bounds[0] + bounds[1]) / 2))

    def _metric(self) -> np.ndarray:
        return self._fitted_state().coef

    def _squared_lengths(self, Z: np.ndarray) -> np.ndarray:
        lengths = self._learner.predict(np.ascontiguousarray(Z))
        return super()._squared_lengths(Z) if lengths is None else lengths  # one overflows: for the error message

    # --- learning -------------------------------------------------------------------------------------------------
    # `_sampler` learns rows with labels: it draws pairs or triplets, which `_learner` learns. So it is the learner that
    # `_partial_fit` gives plain rows to (`_fast_learner`); others come to `_learn`, after `_check` and `_begin`.

    def _begin(self, data: Comparisons) -> None:
        X = data.points
        self._check_n_components(X.shape[1])
        prior = self._first_metric(data)
        self._learner = self._make_learner(prior)
        bounds, margin = check_bounds(self.bounds), None if self.margin is None else [self.margin]
        self._sampler = SAMPLERS[self.sampling](
            X.shape[1],
            self.memory_size,
            random_numbers(self.random_state),
            self.pairs_per_row,
            None if np.array_equal(prior, np.eye(len(prior))) else prior,
            Percentiles(bounds, [5, 95], 2),
            Percentiles(margin, [50], 1),
        )
        self._labels = {}
        self._largest_targets, self._n_collapsed = (0.0, 0.0), 0
        self._begin_metric()

    def _go_on(self, data: Comparisons, call: Call) -> None:
        super()._go_on(data, call)
        if not call.partial:
            self._sampler = copy.deepcopy(self._sampler)

    def _configure(self) -> None:
        super()._configure()
        one_sided = self._draws_triplets or self.loss == "one_sided"
        loss = make_loss(BoundLoss() if one_sided else SquaredLoss())
        self._sampler.configure(loss=loss, one_sided=one_sided, scaled=self.scale_eta, plain_learner=self._learner)

    @property
    def _draws_triplets(self) -> bool:
        return isinstance(self._sampler, NeighborTriplets)

    @property
    def _learns_targets(self) -> bool:
        return isinstance(self._sampler, TargetTriplets)

    def _plain_targets(self, y) -> np.ndarray | None:
        return y if self._learns_targets else super()._plain_targets(y)

    def _like_first_rows(self) -> Comparisons:
        if isinstance(self.prior, str) and self.prior not in ("identity", "random"):
            raise ValueError(
                f"models with prior={self.prior!r} begin differently, each by its own first rows; begin one model, let "
                "copies of it learn on, and give it as start."
            )
        X = np.zeros((1, self.n_features_in_))
        return Comparisons(X, points=X)

    def regret_bound(
        self,
        U: ArrayLike | None = None,
        *,
        radius: float | None = None,
        largest_divergence: float | None = None,
        weighted: bool = False,
    ) -> float:
        """Bound on the regret of this run against a metric, or the best one, without assumptions on the data.

        For every positive definite U

            sum eta_t (L_t(W_t) - L_t(U))  <=  D(U, W_1) - D(U, W_{T+1}) + S,

        with eta_t the rate of instance t (its weight and scale included), L_t its loss, and S accumulated during the
        run, sum eta_t (L_t(W_t) - L_t(W_{t+1})) - D(W_{t+1}, W_t) for implicit steps. With `weighted` this right side
        is the bound, and the left side starts with `weighted_loss_`; by default the terms of each instance are divided
        by its rate, and the left side starts with `cumulative_loss_`.

        Without a metric the bound is the largest for all those within the radius, which nobody has to know. It is
        tr(U (f(W_{T+1}) - f(W_1))) for one multiple of a matrix of rank one, or of a projection of f(W_{T+1}) - f(W_1)
        in the Frobenius norm, plus terms without U.

        Parameters
        ----------
        U : array-like of shape (n_features, n_features), default=None
            The metric to compare with: symmetric positive semidefinite, positive definite for the LogDet divergence,
            and with the trace of the learner, if that is fixed. None: the best.
        radius : float, default=None
            Without U, compare with metrics of tr U <= radius only, or of Frobenius norm <= radius for
            `FrobeniusMetricLearner`. None if the learner has a fixed trace.
        {largest_divergence, weighted}

        Returns
        -------
        {bound}

        Raises
        ------
        {ValueError}
        """
        certificate, divergence = self._certificate(self._fitted_state(), mixed=weighted), self._divergence
        metrics = Comparators(0.0, np.inf, getattr(divergence, "trace", None), divergence.norm).within(radius)
        if U is not None:
            if radius is not None:
                raise ValueError(f"radius is for the best metric; omit it (got {radius}), or omit U.")
            values = np.linalg.eigvalsh(U := check_symmetric(U, "U", self.n_features_in_))
            if not values[0] >= -1e-12 * np.abs(values).max():
                raise ValueError(
                    f"U must be positive semidefinite; got a matrix with the eigenvalue {values[0]:g}. Project it "
                    "(SquaredFrobenius().project_psd)."
                )
        return certificate.bound(U, metrics, weighted, largest_divergence)

    def _merged(self, parts: Sequence[Self], fractions: Sequence[float]) -> Self:
        mixed = super()._merged(parts, fractions)
        second, largest = np.sort([part._largest_targets for part in parts], axis=None)[-2:]
        mixed._largest_targets = float(largest), float(second)
        mixed._sampler, mixed._labels = copy.deepcopy((parts[0]._sampler, parts[0]._labels))
        mixed._n_collapsed += total(self.n_collapsed_, [part.n_collapsed_ for part in parts]) - mixed.n_collapsed_
        return mixed

    def _first_metric(self, data: Comparisons) -> np.ndarray:
        """The initial metric, given the first examples."""
        labels = None if self.sampling == "targets" else data.labels
        return prior_matrix(self.prior, data.points, labels, self.n_components, self.random_state)

    @property
    def _loss_parameter(self) -> Loss:
        return BoundLoss() if self.loss == "one_sided" else SquaredLoss()

    def _learn_in_epochs(self, learn: Callable, data: Comparisons, X, y) -> None:
        super()._learn_in_epochs(learn, data, X, y)
        if learn != self._learn:
            return
        if self._learns_targets and np.ptp(data.y) == 0:
            warn_caller("All targets were equal, so that nothing was learned and the metric is unchanged.")
        elif not self._learns_targets and self._learner.t == 0 and len(self._labels) in (0, 1, len(data)):
            warn_of_labels()

    def _learn(self, data: Comparisons, order: np.ndarray | None = None, *, again: bool = False) -> float:
        """Learn rows with labels or targets, by pairs or triplets with earlier rows."""
        data, sampler = data.ordered(order), self._sampler
        if self._learns_targets:
            numbers = data.y
        else:
            numbers, taken = np.zeros(len(data)), data.weights > 0
            numbers[taken], self._labels = numbers_of(data.y[taken], self._labels)
        before = self._learner.cumulative_loss
        # compiled: `learn_labelled` makes instances z = x_i - x_j of each row, and `flush` has the learner learn them
        refused = sampler.learn_by(self._learner, data.X, numbers, data.weights, again)
        if refused is not None:
            reason, which = refused
            row = f"row {which if order is None else order[which]}"
            target = Examples(None, np.array([sampler.refused_target]))
            self._refuse(reason, 0, target, f"a {'triplet' if self._draws_triplets else 'pair'} of {row}")
        return (self._learner.cumulative_loss - before) / sampler.rate_sum if sampler.rate_sum else 0.0

    def _learn_pairs(self, data: Pairs, order: np.ndarray | None = None, *, again: bool = False) -> float:
        """Pairs with given targets; NaN stands for the current bounds."""
        data = data.ordered(order)
        z, targets, senses, weights = data.X, data.y, data.senses, data.weights
        if np.isnan(targets).any():
            near, scales = self._sampler.measured(z, weights, False, again).T
            targets = np.where(senses > 0, near, scales)
            weights = np.where(scales > 0, weights, 0.0)  # 0 for pairs before the bounds were known
        else:
            scales = self._scales(np.where(weights > 0, targets, 0.0), again)
        return self._learn_block(Block(z, targets, senses, weights, scales), order, data.weights)

    def _scales(self, targets: np.ndarray, again: bool) -> np.ndarray:
        """The largest target so far for each pair, its own included; of others not one that is far above the second."""
        largest, second = np.full((len(targets), 2), self._largest_targets).T
        if not again:
            before = np.maximum.accumulate(np.append(self._largest_targets[0], targets))
            largest = before[1:]
            second = np.maximum.accumulate(np.maximum(second, np.minimum(targets, before[:-1])))
            self._largest_targets = float(largest[-1]), float(second[-1])
        absurd = (largest > ABSURD * second) & (second > 0)
        return np.maximum(targets, np.where(absurd, second, largest))

    def _learn_comparisons(self, data: Comparisons, order: np.ndarray | None = None, *, again: bool = False) -> float:
        data = data.ordered(order)
        rows, weights = data.X, data.weights
        similar = np.ascontiguousarray(rows[:, rows.shape[1] // 2 :])
        margins = self._sampler.measured(similar, weights, True, again)[:, 0]
        return self._learn_block(Block(rows, margins, np.full(len(rows), -1.0), weights, margins), order, weights)

    def _learn_block(self, block: Block, order: np.ndarray | None, weights: np.ndarray) -> float:
        """Learn the instances that are not collapsed, and count the others of positive `weights`.

        Returns the weighted mean loss before each was learned.
        """
        d, before = self.n_features_in_, self._learner.cumulative_loss
        one_sided = block.rows.shape[1] > d or self.loss == "one_sided"
        targets = block.targets * block.senses if one_sided else block.targets
        with np.errstate(all="ignore"):  # the learner refuses what is not finite
            rates = np.where(self.scale_eta & (block.scales > 0), block.weights / block.scales**2, block.weights)
        collapsed = ~block.rows[:, :d].any(axis=1)  # equal rows, or a dissimilar row equal to the anchor
        rates[collapsed] = 0.0
        self._n_collapsed += int(np.count_nonzero(weights[collapsed]))
        self._learner.configure(loss=make_loss(BoundLoss() if one_sided else SquaredLoss()))
        refused = self._learner.learn(block.rows, targets, rates)
        if refused is not None:
            reason, which = refused
            row = f"row {which if order is None else order[which]}"
            self._refuse(reason, which, Examples(block.rows, block.targets), row)
        total = float(rates[~collapsed].sum())
        return (self._learner.cumulative_loss - before) / total if total else 0.0

    # --- checks ---------------------------------------------------------------------------------------------------

    def _check(self, call: Call, X, y, sample_weight=None) -> Comparisons:
        numeric = self.sampling == "targets" if call.first else self._learns_targets
        X, y = check_rows(self, self._by_number(X), y=y, reset=call.first, numeric=numeric)
        if not numeric:
            check_labels(y, ' Set sampling="targets" for real targets.')
        X, weights = check_size(dense(X)), self._check_weights(sample_weight, len(y), call.partial)
        points = X[weights > 0] if 0 < np.count_nonzero(weights) < len(y) else X
        return Comparisons(X, y, weights, points=points)

    def _check_weights(self, sample_weight, n: int, allow_all_zero: bool = True) -> np.ndarray:
        weights = check_weights(sample_weight, n, allow_all_zero=allow_all_zero)
        return np.ones(n) if weights is None else weights

    def _check_indexed(self, X, indices, width: int, name: str, call: Call) -> tuple[np.ndarray, np.ndarray]:
        """Validated rows, and row numbers of shape (n, width)."""
        if indices is None:
            X = members(self, X, width, name)
            indices = np.arange(len(X)).reshape(-1, width)
        check_flat(X, f"give them without {name}, or each row once, and the {name} as row numbers")
        check_flat(indices, f"give the {name} as X alone, or the rows as X, and the {name} as row numbers")
        X = check_size(dense(check_rows(self, self._by_number(X), reset=call.first), np.float64))
        return X, check_indices(indices, len(X), name, "row", width)

    def _check_triplets(self, call: Call, X, triplets, sample_weight) -> Comparisons:
        X, triplets = self._check_indexed(X, triplets, 3, "triplets", call)
        return self._comparisons(X, triplets[:, [0, 1, 0, 2]], sample_weight)

    def _check_quadruplets(self, call: Call, X, quadruplets, sample_weight) -> Comparisons:
        X, quadruplets = self._check_indexed(X, quadruplets, 4, "quadruplets", call)
        return self._comparisons(X, quadruplets, sample_weight)

    def _comparisons(self, X: np.ndarray, quadruplets: np.ndarray, sample_weight) -> Comparisons:
        a, b, c, d = quadruplets.T
        rows = np.concatenate([differences(X, d, c), differences(X, b, a)], axis=1)
        return Comparisons(rows, weights=self._check_weights(sample_weight, len(rows)), points=X)

    def _check_pairs(self, call: Call, X, pairs, targets, labels, sample_weight) -> Pairs:
        X, pairs = self._check_indexed(X, pairs, 2, "pairs", call)
        n = len(pairs)
        senses = np.zeros(n) if labels is None else check_similarity(labels, n)
        if labels is None and (targets is None or self.loss == "one_sided"):
            needed = (
                "targets or labels" if targets is None else 'labels, with loss="one_sided" also in addition to targets,'
            )
            raise ValueError(f"{needed} must be given; got none. Labels are 1 for similar, -1 for dissimilar pairs.")
        targets = np.full(n, np.nan) if targets is None else check_vector(targets, n, "targets", "pairs")
        if (targets < 0).any():
            row = int(np.argmax(targets < 0))
            raise ValueError(
                f"targets[{row}] = {targets[row]:g} is negative; give squared distances >= 0, or labels 1 and -1 as "
                "`labels`."
            )
        z = differences(X, pairs[:, 0], pairs[:, 1])
        return Pairs(z, targets, self._check_weights(sample_weight, n), points=X, senses=senses)
