"""Learning rates: eta_t = scale / t^power for the rows t = 1, 2, ..., or any other function of t, and of the loss.

Estimators compute the package's rates, which are all of that form, from the two numbers `scale` and `power`; the
classes name them as the theorems do. They call a subclass that defines `__call__`, or `rate` of a `LossSchedule`.
"""

from __future__ import annotations

import inspect
from typing import Any, Literal, NoReturn, get_args, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._objects import ParametricObject, check_parameter

__all__ = [
    "LEARNING_RATES",
    "Constant",
    "DiameterOverGradient",
    "InverseScaling",
    "LossSchedule",
    "Optimal",
    "PassiveAggressive",
    "Schedule",
    "StronglyConvex",
    "resolve_schedule",
]


class Schedule(ParametricObject):
    """Learning rate eta_t = scale / t^power, and base class of other rates.

    A subclass that defines `__call__(t)` has the rates that it returns, for an array of row numbers t = 1, 2, ... an
    array of positive numbers. They should depend on t alone, so that they are the same however a stream is cut. Rows of
    weight 0 are not counted.

    Parameters
    ----------
    scale : float
        eta_1 > 0.
    power : float, default=0.0
        How fast it decreases, >= 0.

    Attributes
    ----------
    scale, power : float
        The two numbers, for every schedule that does not define `__call__`.
    offset : float
        What is added to t, 0 but for `Optimal`.

    Examples
    --------
    >>> from onlinebregman.schedules import Schedule
    >>> Schedule(1.0, 0.5)(4)
    0.5
    >>> Schedule(1.0, 1.0)([1, 2, 4])
    array([1.  , 0.5 , 0.25])

    A rate that rises to 0.1 over the first hundred rows, then falls:

    >>> import numpy as np
    >>> from onlinebregman import ImplicitGDRegressor
    >>> class WarmUp(Schedule):
    ...     def __init__(self, rows):
    ...         self.rows = rows
    ...
    ...     def __call__(self, t):
    ...         return 0.1 * np.minimum(t / self.rows, np.sqrt(self.rows / t))
    >>> model = ImplicitGDRegressor(learning_rate=WarmUp(100))
    """

    offset: float = 0.0
    sees_loss = False  # whether the rates also depend on the losses of rows, as those of `LossSchedule` do
    sees_norm = False  # whether the rates also depend on the norms of rows
    is_power_law = True  # whether they are scale / t^power, and not those of a subclass's own `__call__`
    scale: float
    power: float

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.is_power_law = cls.is_power_law and cls.__call__ is Schedule.__call__

    def __init__(self, scale: float, power: float = 0.0) -> None:
        self.scale = check_parameter(scale, "scale", positive=True)
        self.power = check_parameter(power, "power", positive=False)

    @overload
    def __call__(self, t: float) -> float: ...
    @overload
    def __call__(self, t: ArrayLike) -> float | NDArray[np.float64]: ...
    def __call__(self, t):
        """eta_t, a float for a number t >= 1, an array of the same shape for an array of them."""
        t = np.asarray(t, dtype=np.float64)
        if not (t >= 1).all():
            raise ValueError(f"t must be a row number >= 1; got {t[~(t >= 1)].flat[0]:g}.")
        eta = self.scale / np.power(t + self.offset, self.power)
        return float(eta) if np.ndim(eta) == 0 else eta

    def rates(self, first: int, n: int) -> NDArray[np.float64]:
        """The rates of the rows first, ..., first + n - 1, shape (n,); ValueError if one is not positive and finite."""
        t = np.arange(first, first + n, dtype=np.float64)
        eta = np.array(np.broadcast_to(np.asarray(self(t), dtype=np.float64), t.shape))
        bad = ~((eta > 0) & (eta < np.inf))
        if bad.any():
            self._refuse(eta[bad][0], t[bad][0])
        return eta

    def _refuse(self, eta: float, t: float) -> NoReturn:
        raise ValueError(
            f"The learning rates of {self!r} must be positive finite numbers; got {eta:g} for row t = {t:.0f}."
        )

    def scaled(self, factor: float) -> Schedule:
        """The schedule with all rates multiplied by a positive factor.

        Examples
        --------
        >>> from onlinebregman.schedules import InverseScaling
        >>> InverseScaling(0.1).scaled(2.0)
        Schedule(scale=0.2, power=0.5)
        """
        return Schedule(factor * self.scale, self.power) if self.is_power_law else _Scaled(self, factor)

    def _parameters(self) -> dict[str, Any]:
        """The arguments of the constructor; if a subclass defines `__call__`, all attributes."""
        if type(self).__call__ is not Schedule.__call__:
            return vars(self)
        arguments = inspect.signature(type(self)).parameters
        return {name: value for name, value in vars(self).items() if name in arguments}


class _Scaled(Schedule):
    """The rates of another schedule times a factor."""

    def __init__(self, schedule: Schedule, factor: float) -> None:
        self.schedule = schedule
        self.factor = factor

    def __call__(self, t):
        return self.factor * self.schedule(t)

    def __repr__(self) -> str:
        return f"{self.factor:g} * {self.schedule!r}"


class LossSchedule(Schedule):
    """Base class of learning rates that also depend on the loss of each row.

    A subclass defines `rate(t, loss)`, a positive number: the rate of row t, of loss L(a, y) at its prediction a by the
    weights that the step starts from, without the row's weight. Rates should depend on these two numbers alone, so that
    they are the same however a stream is cut. They are computed row by row, in Python.

    Examples
    --------
    Steps in proportion to the loss, up to a largest one, as of a passive-aggressive learner:

    >>> from onlinebregman import ImplicitGDRegressor
    >>> from onlinebregman.schedules import LossSchedule
    >>> class Passive(LossSchedule):
    ...     def __init__(self, largest):
    ...         self.largest = largest
    ...
    ...     def rate(self, t, loss):
    ...         return min(self.largest, 0.01 + loss)
    >>> model = ImplicitGDRegressor(learning_rate=Passive(0.5), fit_intercept=False)
    >>> print(model.partial_fit([[1.0], [1.0]], [0.2, 2.0]).coef_.round(3))
    [0.671]
    """

    sees_loss = True

    def __init__(self) -> None:
        pass

    def rate(self, t: float, loss: float) -> float:
        """The rate of row t = 1, 2, ..., which has this loss before it is learned.

        Parameters
        ----------
        t : float
        loss : float

        Returns
        -------
        eta : float
            A positive finite number.
        """
        raise NotImplementedError(f"{type(self).__name__} must define rate(t, loss)")

    def __call__(self, t):
        """Not defined: the rates depend on the rows."""
        raise TypeError(f"The learning rates of {self!r} depend on the losses of rows; call rate(t, loss).")

    def checked_rate(self, t: float, loss: float) -> float:
        """The rate of row t; ValueError if it is not positive and finite."""
        eta = float(self.rate(t, loss))
        if not 0 < eta < np.inf:
            self._refuse(eta, t)
        return eta

    def scaled(self, factor: float) -> Schedule:
        """The schedule with all rates multiplied by a positive factor."""
        return _ScaledLoss(self, factor)


class _ScaledLoss(_Scaled, LossSchedule):
    """The same for rates that depend on losses."""

    schedule: LossSchedule
    __call__ = LossSchedule.__call__

    def rate(self, t: float, loss: float) -> float:
        return self.factor * self.schedule.rate(t, loss)


class Constant(Schedule):
    """The same rate for every row: eta_t = eta0.

    Parameters
    ----------
    eta0 : float, default=0.1
        The rate, > 0.

    References
    ----------
    W, "How to prove relative loss bounds?".

    Examples
    --------
    >>> from onlinebregman.schedules import Constant
    >>> Constant(0.25)(100)
    0.25
    """

    eta0: float

    def __init__(self, eta0: float = 0.1) -> None:
        eta0 = check_parameter(eta0, "eta0", positive=True)
        vars(self).update(eta0=eta0, scale=eta0, power=0.0)


class InverseScaling(Schedule):
    """eta_t = eta0 / t^power_t; power_t = 1/2 has regret O(sqrt T) for every potential.

    Parameters
    ----------
    eta0 : float, default=0.1
        The first rate, > 0.
    power_t : float, default=0.5
        The exponent, >= 0.

    References
    ----------
    KB10, section 4.

    Examples
    --------
    >>> from onlinebregman.schedules import InverseScaling
    >>> InverseScaling(1.0)(100)
    0.1
    """

    eta0: float
    power_t: float

    def __init__(self, eta0: float = 0.1, power_t: float = 0.5) -> None:
        eta0 = check_parameter(eta0, "eta0", positive=True)
        power_t = check_parameter(power_t, "power_t", positive=False)
        vars(self).update(eta0=eta0, power_t=power_t, scale=eta0, power=power_t)


class StronglyConvex(Schedule):
    """eta_t = 1/(H t) for H-strongly convex losses, with the squared Euclidean potential: regret O(log T).

    Parameters
    ----------
    strong_convexity : float, default=1.0
        H > 0, a lower bound on the curvature of every loss in every direction.

    References
    ----------
    KB10, theorem 4.5.

    Examples
    --------
    >>> from onlinebregman.schedules import StronglyConvex
    >>> StronglyConvex(strong_convexity=2.0)(5)
    0.1
    """

    def __init__(self, strong_convexity: float = 1.0) -> None:
        self.strong_convexity: float = check_parameter(strong_convexity, "strong_convexity", positive=True)
        super().__init__(1.0 / self.strong_convexity, 1.0)


class DiameterOverGradient(Schedule):
    """eta_t = D/(G sqrt t): regret O(D G sqrt T) on a set of diameter D with gradients no longer than G.

    Parameters
    ----------
    diameter : float
        D > 0, a bound on the distance between two points of the feasible set.
    gradient_bound : float
        G > 0, a bound on the norm of every gradient.

    References
    ----------
    KB10, section 4, after Zinkevich (2003).

    Examples
    --------
    >>> from onlinebregman.schedules import DiameterOverGradient
    >>> DiameterOverGradient(diameter=2.0, gradient_bound=4.0)(25)
    0.1
    """

    def __init__(self, diameter: float, gradient_bound: float) -> None:
        self.diameter: float = check_parameter(diameter, "diameter", positive=True)
        self.gradient_bound: float = check_parameter(gradient_bound, "gradient_bound", positive=True)
        super().__init__(self.diameter / self.gradient_bound, 0.5)


class Optimal(Schedule):
    """eta_t = 1 / (alpha (t_0 + t - 1)) with t_0 = alpha^(-3/4), for an L2 penalty of strength alpha.

    The heuristic of L. Bottou, by which scikit-learn's `learning_rate="optimal"` sets its rates: 1 / (alpha t), those
    of alpha-strongly convex objectives, from the row on at which they are alpha^(-1/4), a guess of the size of the
    weights for gradients of size 1. With the penalty the regret is O(log T): docs/regret.rst.

    Parameters
    ----------
    alpha : float, default=0.0001
        The strength of the penalty, > 0.

    References
    ----------
    L. Bottou, "Stochastic Gradient Descent Tricks", 2012, section 5.2.

    Examples
    --------
    >>> from onlinebregman.schedules import Optimal
    >>> Optimal(0.0001)([1, 1001]).round(1).tolist()
    [10.0, 5.0]
    """

    is_power_law = False

    def __init__(self, alpha: float = 0.0001) -> None:
        self.alpha: float = check_parameter(alpha, "alpha", positive=True)
        super().__init__(1.0 / self.alpha, 1.0)
        self.offset: float = 1.0 / (np.sqrt(1.0 / np.sqrt(self.alpha)) * self.alpha).item() - 1.0


class PassiveAggressive(LossSchedule):
    """The rates of the passive-aggressive algorithms, for a row x of loss L: as large as brings its loss to 0.

    PA-I: min(C, L / |x|^2). PA-II: L / (|x|^2 + 1 / 2C). They are for explicit steps in the squared Euclidean geometry
    on losses whose slope is 1 or -1 wherever there is a loss: "hinge", "absolute_error" and "epsilon_insensitive". An
    intercept moves at the same rate, but does not count in the norm, as in scikit-learn; in the implicit steps of a
    constant rate it does. These are PA-I on the loss itself, with eta0 = C, and PA-II on its square.

    Parameters
    ----------
    C : float, default=1.0
        Aggressiveness, > 0.
    variant : {1, 2}, default=1
        PA-I or PA-II.

    References
    ----------
    K. Crammer et al., "Online Passive-Aggressive Algorithms", JMLR 7, 2006, section 3.

    Examples
    --------
    >>> from onlinebregman.schedules import PassiveAggressive
    >>> first, second = PassiveAggressive(C=0.5), PassiveAggressive(C=0.5, variant=2)
    >>> first.rate_of_row(loss=3.0, square=4.0), second.rate_of_row(loss=3.0, square=4.0)
    (0.5, 0.6)
    """

    sees_norm = True

    def __init__(self, C: float = 1.0, variant: Literal[1, 2] = 1) -> None:
        if variant not in (1, 2):
            raise ValueError(f"variant must be 1 (PA-I) or 2 (PA-II); got {variant!r}.")
        self.C: float = check_parameter(C, "C", positive=True)
        self.variant: Literal[1, 2] = variant

    @property
    def largest(self) -> float:
        """An upper bound on the rates."""
        return self.C if self.variant == 1 else np.inf

    @property
    def smoothing(self) -> float:
        """What is added to the square of the norm."""
        return 0.0 if self.variant == 1 else 0.5 / self.C

    def rate_of_row(self, loss: float, square: float) -> float:
        """The rate of a row of this loss > 0 and this square of its norm."""
        return min(self.largest, loss / (square + self.smoothing))

    def scaled(self, factor: float) -> NoReturn:
        """Not available: the rates are those that bring the losses of rows to 0, up to C."""
        raise ValueError(
            f"The rates of {self!r} cannot be multiplied by a factor, here {factor:g}, as they are those that bring "
            "the losses of rows to 0; use another C, or another learning_rate."
        )


LearningRate = Literal["constant", "invscaling", "strongly_convex", "sqrt"]
LEARNING_RATES = get_args(LearningRate)
AggressiveRate = Literal["optimal", "pa1", "pa2"]  # of models with a penalty of strength alpha, and any loss


def resolve_schedule(
    learning_rate: LearningRate | AggressiveRate | Schedule,
    eta0: float = 0.1,
    power_t: float = 0.5,
    alpha: float | None = None,
) -> Schedule:
    """The schedule behind an estimator's parameters `learning_rate`, `eta0` and `power_t`.

    Parameters
    ----------
    learning_rate : {"constant", "invscaling", "strongly_convex", "sqrt", "optimal", "pa1", "pa2"} or Schedule
        eta0, eta0 / t^power_t, eta0 / t (eta0 = 1/H of `StronglyConvex`), eta0 / sqrt t (eta0 = D/G of
        `DiameterOverGradient`), those of `Optimal`, or of `PassiveAggressive` with C = eta0. A schedule is returned
        unchanged, and `eta0` and `power_t` are ignored.
    eta0 : float, default=0.1
        The first rate, > 0.
    power_t : float, default=0.5
        The exponent of "invscaling", >= 0.
    alpha : float, default=None
        The strength of the penalty, for "optimal".

    Returns
    -------
    Schedule
        Its `scale` is exactly eta0 when `learning_rate` is a name.

    Examples
    --------
    >>> from onlinebregman.schedules import Constant, resolve_schedule
    >>> resolve_schedule("sqrt", 0.5)
    InverseScaling(eta0=0.5, power_t=0.5)
    >>> resolve_schedule(Constant(0.2)).scale
    0.2
    """
    if isinstance(learning_rate, Schedule):
        return learning_rate
    if learning_rate == "optimal" and alpha is not None:
        if alpha == 0:
            raise ValueError(
                "alpha must be > 0 since learning_rate is 'optimal', whose rates are 1 / (alpha (t_0 + t))."
            )
        return Optimal(alpha)
    if learning_rate in ("pa1", "pa2"):
        return PassiveAggressive(eta0, 1 if learning_rate == "pa1" else 2)
    if not isinstance(learning_rate, str) or learning_rate not in LEARNING_RATES:
        raise ValueError(
            f"learning_rate must be one of {', '.join(map(repr, LEARNING_RATES))}, or a Schedule such as "
            f"onlinebregman.schedules.Constant(0.1); got {learning_rate!r}."
        )
    if learning_rate == "constant":
        return Constant(eta0)
    return InverseScaling(eta0, {"invscaling": power_t, "strongly_convex": 1.0, "sqrt": 0.5}[learning_rate])
