"""Bounds on the regret of linear models: those of the certificate of each learner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._kernels.learners.learner import Learner
from .._kernels.learners.multi_learner import MultiLearner
from .._online.comparators import Comparators, split
from .._online.mirror import starting_weights
from .._online.validation import read_only
from ._base import OnlineLinearModel, parts_of


class RegretBoundsMixin(OnlineLinearModel):
    """Bounds on the regret of a run of a linear model, one for each learner.

    Attributes
    ----------
    weighted_loss_ : float or ndarray of shape (n_outputs,)
        Sum of rate times weight times loss of each row before it was learned, since regret is tracked.
    theory_bound_ : float
        Under learning_rate="theory", the theorem's bound on `cumulative_loss_` minus the comparator's.
    """

    @property
    def theory_bound_(self) -> float:
        """The theorem's bound on `cumulative_loss_` minus a comparator's loss, under learning_rate="theory".

        It holds for all comparators and rows within `data_bounds`, with losses multiplied by the weights of their rows
        and summed over all rows learned, in every epoch. With a penalty R the comparator's loss includes R(u) for each
        of these rows, as in the objective of the penalised problem. For the squared loss without a penalty L <= factor
        L_u + constant; the bound is (factor - 1) data_bounds["loss"] + constant.

        The rate assumes weights of at most 1. Rows of larger weight, at most h, are learned at up to h times the rate,
        for which the bound is larger; for explicit steps on the squared loss it can be infinite. More rows than
        data_bounds["n_rows"] are learned at the rate for that number, and the bound is larger, too.

        Raises AttributeError if the bound does not hold: if parameters, features or classes have changed during the
        run, or with `average`, since the theorem is about the weights themselves, not about their average.

        Of several outputs or classes each has its own comparator and bound; this is the sum of the bounds.
        """
        learner = self._fitted_state()
        if self._rate().learning_rate != "theory":
            raise AttributeError("theory_bound_ requires learning_rate='theory' with its data_bounds")
        self._check_one_run()
        if self._average:
            raise AttributeError(
                "theory_bound_ is for the weights before averaging, but cumulative_loss_ is that of their average; "
                "fit again with average=False"
            )
        theory, bounds = self._theory(learner.t), self.data_bounds or {}
        if theory.factor > 1 and "loss" not in bounds:
            raise AttributeError("theory_bound_ for the squared loss needs data_bounds['loss'], the comparator's loss")
        return self._lost + len(parts_of(learner)) * theory.regret(bounds.get("loss", 0.0))

    def _each(self, bound: Callable, *arguments: ArrayLike | None) -> Any:
        """bound(learner, its number, its entry of each argument) of each learner; their sum for a joint loss.

        A number for a model that consists of one learner.
        """
        parts = parts_of(self._fitted_state())
        n = len(parts)
        of_each = [
            [None] * n if argument is None else np.broadcast_to(np.asarray(argument, dtype=np.float64), n).tolist()
            for argument in arguments
        ]
        bounds = [bound(*each) for each in zip(parts, range(n), *of_each, strict=True)]
        if parts[0] is self._learner:
            return bounds[0]
        return np.array([sum(bounds)] if self._joint else bounds)

    @read_only
    def weighted_loss_(self) -> Any:
        """Sum of eta_t L_t(w_t), rate times weight times loss before each step; of each loss, if there are several."""
        return self._each(lambda part, number: part.run["weighted_loss"])

    def _each_bound(self, bound: Callable, coef: ArrayLike, *others: ArrayLike | None) -> Any:
        """A bound for each learner, from its row of coef and its entry of the others; see `_each`."""
        learner, coefs = self._fitted_state(), np.asarray(coef, dtype=np.float64)
        several = isinstance(learner, MultiLearner)
        coefs = (
            np.broadcast_to(coefs, (len(learner.learners), self._learner.n_features)) if several else coefs[np.newaxis]
        )
        return self._each(lambda part, number, *others: bound(part, number, coefs[number], *others), *others)

    def _comparators(self) -> Comparators:
        """The comparators of the certificate; of signed weights, their w+ followed by w-."""
        return Comparators.of(self._divergence, self._spec.constraint)

    def _comparator(self, coef: ArrayLike) -> np.ndarray:
        """The weights of the learner that correspond to a comparator; ValueError if it violates the constraint."""
        n, signed, constraint = self._learner.n_features, self._spec.signed, self._spec.constraint
        u = starting_weights(self._divergence, coef, n, signed, name="coef")
        if signed and not self._is_feasible(u):
            coef = np.broadcast_to(np.asarray(coef, dtype=np.float64), n)
            halves = split(coef, self._divergence, constraint)
            if halves is None or not self._is_feasible(halves):
                minimal = np.r_[np.maximum(coef, 0), np.maximum(-coef, 0)]
                why = f"their domain is {self._divergence.domain}, their constraint {constraint!r}"
                if constraint is not None and not constraint.contains(minimal):
                    why = constraint.why_not(minimal, "(w+, w-)")
                raise ValueError(f"coef must be a difference of w+ and w- that this run could reach: {why}.")
            u = halves
        elif constraint is not None and not constraint.contains(u):
            raise ValueError(
                f"The certificate is only for comparators within the constraint: {constraint.why_not(u, 'coef')}."
            )
        return u

    def _is_feasible(self, u: np.ndarray) -> bool:
        try:
            self._divergence.check_domain(u, closed=True)
        except ValueError:
            return False
        return self._spec.constraint is None or self._spec.constraint.contains(u)

    def _check_intercept(self, learner: Learner, intercept: float) -> None:
        """An intercept that is not learned must be that of the run."""
        if not np.isfinite(intercept):
            raise ValueError(f"intercept must be a finite number; got {intercept}.")
        held = learner.position[1]
        if not self._fit_intercept and abs(intercept - held) > 1e-12 * abs(held):
            raise ValueError(f"intercept must be that of the run, which learns none, {held!r}; got {intercept:g}.")

    def regret_bound(
        self,
        coef: ArrayLike | None = None,
        intercept: ArrayLike = 0.0,
        *,
        radius: ArrayLike | None = None,
        largest_intercept: ArrayLike | None = None,
        largest_divergence: ArrayLike | None = None,
        weighted: bool = False,
    ) -> float | np.ndarray:
        """Bound on the regret of this run against a comparator, or the best one, without assumptions on the data.

        For every linear model u = (coef, intercept) in the domain and within `constraint`

            sum eta_t h_t (L_t(w_t) - L_t(u))  <=  D(u, w_1) - D(u, w_{T+1}) + S,

        with h_t the weight of row t, eta_t the rate of a row of weight 1, and S accumulated during the run: for
        explicit steps sum D(w_t, w_{t+1}), for implicit steps sum eta_t h_t (L_t(w_t) - L_t(w_{t+1})) - D(w_{t+1},
        w_t). With a penalty R the right side also has sum eta_t (R(u) - R(w_{t+1})), minus the decrease of D by its
        steps. With `weighted` this right side is the bound; the left side starts with `weighted_loss_`.

        By default the terms of each row are divided by its rate, which bounds the regret itself. If rates never
        increase, as with "invscaling",

            sum h_t (L_t(w_t) - L_t(u))  <=  D(u, w_1) / eta_1 - D(u, w_{T+1}) / eta_T + B (1 / eta_T - 1 / eta_1) + S',

        with B = `largest_divergence`, and S' the sum of the terms of S, each divided by its eta_t. For eta_t ~ 1 /
        sqrt(t) both are of the order of sqrt(T). The left side starts with the cumulative loss if regret was tracked
        from the first row on, without `average`: the w_t are the weights before averaging.

        Without `coef` the bound is the largest for all comparators, computed from one pass: it is affine in u, so that
        its maximum is that of <u, f(w_{T+1}) - f(w_1)>. So the loss of the best comparator, which nobody has to know,
        is at least the cumulative loss minus it; with a penalty, that loss includes R(u) for each row. Comparators are
        the weights of the domain and within `constraint`. If there are arbitrarily large ones, a radius is needed.

        Parameters
        ----------
        coef : array-like of shape (n_features,) or (n_learners, n_features), default=None
            Weights of the comparator, in the form of `coef_`, for each output of a regressor and each learner of a
            classifier; one row for all of them is enough. None: the best comparator.
        intercept : float or array-like of shape (n_learners,), default=0.0
            Its intercept; must be 0 if none is learned.
        radius : float or array-like of shape (n_learners,), default=None
            Without `coef`, compare with weights of norm_p <= radius only: p = 2 in the squared Euclidean and adaptive
            geometries, p = q in that of the p-norm algorithm, and p = 1 for entropies. None for weights that are
            bounded.
        largest_intercept : float or array-like of shape (n_learners,), default=None
            Without `coef`, compare with intercepts of at most this size only. Not needed if none is learned.
        largest_divergence : float or array-like of shape (n_learners,), default=None
            An upper bound on all D(u, w_t) of the run, (intercept - intercept_t)^2 / 2 included: within L2Ball(r),
            without an intercept, (norm_2(u) + r)^2 / 2 in the squared Euclidean geometry; within a Box the larger of
            the divergences from its ends, summed over coordinates. Not needed while the rate was constant.
        {weighted}

        Returns
        -------
        bound : float or ndarray of shape (n_learners,)
            The right side, from the row at which `track_regret` was set: a number for a regressor of one output. A
            classifier has one learner for two classes, and otherwise one for each; with multi_class="multinomial" all
            classes share one loss and one bound.

        Raises
        ------
        ValueError
            If regret was not tracked, or not under constant parameters, with the same features and classes; if the
            comparator violates the constraint, a rate increased, the bound is infinite without one of the arguments, or
            `largest_divergence` is less than a divergence of the run.

        References
        ----------
        .. [1] B. Kulis, P. Bartlett, "Implicit Online Learning", ICML 2010, section 4.

        Examples
        --------
        >>> import numpy as np
        >>> from onlinebregman import EGRegressor
        >>> from onlinebregman.model_selection import offline_comparator
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(1000, 10))
        >>> y = X @ rng.dirichlet(np.ones(10)) + 0.1 * rng.normal(size=1000)
        >>> model = EGRegressor(
        ...     weights="simplex", learning_rate="constant", eta0=0.1, fit_intercept=False, track_regret=True
        ... ).partial_fit(X, y)
        >>> best = offline_comparator(X, y, domain="simplex")
        >>> print(f"{model.cumulative_loss_ - best.cumulative_loss:.2f} <= {model.regret_bound():.2f}")
        1.05 <= 6.72
        """

        def to_the_best(
            learner: Learner, number: int, radius: float | None, intercept: float | None, largest: float | None
        ) -> float:
            return self._certificate(learner, mixed=weighted).to_the_best(
                self._comparators().within(radius),
                weighted=weighted,
                largest_divergence=largest,
                fit_intercept=self._fit_intercept,
                largest_intercept=intercept,
            )

        if coef is None:
            return self._each(to_the_best, radius, largest_intercept, largest_divergence)
        if radius is not None or largest_intercept is not None:
            raise ValueError("radius and largest_intercept are for the best comparator; omit them, or omit coef.")

        def to_this(learner: Learner, number: int, coef: np.ndarray, intercept: float, largest: float | None) -> float:
            certificate, u = self._certificate(learner, mixed=weighted), self._comparator(coef)
            self._check_intercept(learner, intercept)
            return certificate.weighted(u, intercept) if weighted else certificate.unweighted(u, intercept, largest)

        return self._each_bound(to_this, coef, intercept, largest_divergence)
