"""Every algorithm of the package in plain NumPy, as the papers write it: the theory, to be read from top to bottom.

Notation as in the guide: w are weights, f = grad F the mirror map of the potential F, theta = f(w), x a row, y its
target, a = w.x the prediction, L(a, y) the loss and L' its derivative by a, eta the learning rate, s the weight of a
row (where there is an eta, a part of it). Functions return the new weights; learners with more state than weights are
classes that `learn` a row; most `predict` it before. An intercept is b, or else the last coordinate, of value 1.

The code is for reading: input is not checked, overflow is not avoided, nothing is fast. The tests compare every
estimator with it. The page "References" of the documentation has the papers KW97, KB10, JKD07, TRW04, W and S18; those
whose squared loss is (a - y)^2, and not half of that (KW97, JKD07, TRW04), have half of these rates.

Examples
--------
>>> import numpy as np
>>> from onlinebregman import BurgRegressor, reference
>>> X, y = np.array([[1.0, -2.0], [0.5, 1.0]]), np.array([1.5, 1.0])
>>> theory = reference.MirrorDescent(reference.MIRRORS["burg"], reference.LOSSES["squared_error"], np.full(2, 0.5))
>>> for x, target in zip(X, y):
...     theory.learn(x, target, eta=0.1)
>>> model = BurgRegressor(eta0=0.1, learning_rate="constant").partial_fit(X, y)
>>> print(np.allclose(model.coef_, theory.w), np.allclose(model.intercept_, theory.b))
True True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray as Array
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from scipy.special import expit, logit, logsumexp, wrightomega, xlogy


# --- losses and mirror maps -------------------------------------------------------------------------------------------
class Loss(NamedTuple):
    """L(a, y), convex in the prediction a; L', at a kink a subgradient; L'' where it is needed."""

    value: Callable[[Any, Any], Any]
    derivative: Callable[[Any, Any], Any]
    curvature: Callable[[Any, Any], Any] = lambda a, y: 0.0


def matching_loss(H: Callable, h: Callable, dh: Callable, conjugate: Callable) -> Loss:
    """L(a, y) = D_H(a, h^-1(y)) = H(a) - y a + H*(y) of a transfer function h = H', so that L' = h(a) - y (W)."""
    return Loss(lambda a, y: H(a) - y * a + conjugate(y), lambda a, y: h(a) - y, lambda a, y: dh(a))


def _exp(z: Array) -> Array:  # finite at the end of a bracket, too
    return np.exp(np.minimum(z, 700.0))


def _residual(L: Callable, slope: Callable) -> Loss:  # of r = a - y
    return Loss(lambda a, y: L(a - y), lambda a, y: slope(a - y))


def _margin(L: Callable, slope: Callable) -> Loss:  # of m = y a
    return Loss(lambda a, y: L(y * a), lambda a, y: y * slope(y * a))


LOSSES = {
    "squared_error": Loss(lambda a, y: (a - y) ** 2 / 2, lambda a, y: a - y, lambda a, y: 1.0),  # matching, h(a) = a
    "log_loss": matching_loss(
        lambda a: np.logaddexp(0, a), expit, lambda a: expit(a) * expit(-a), lambda y: xlogy(y, y) + xlogy(1 - y, 1 - y)
    ),
    "poisson": matching_loss(_exp, _exp, _exp, lambda y: xlogy(y, y) - y),
    "gamma": Loss(lambda a, y: a - np.log(y) + y * _exp(-a) - 1, lambda a, y: 1 - y * _exp(-a)),
    "perceptron": _margin(lambda m: max(-m, 0.0), lambda m: -1.0 * (m <= 0.0)),  # half of D_H for h(a) = sgn a
    "hinge": _margin(lambda m: max(1 - m, 0.0), lambda m: -1.0 * (m < 1.0)),
    "squared_hinge": _margin(lambda m: max(1 - m, 0.0) ** 2, lambda m: -2 * max(1 - m, 0.0)),
    "modified_huber": _margin(
        lambda m: max(1 - m, 0.0) ** 2 if m >= -1 else -4 * m, lambda m: -np.clip(2 * (1 - m), 0.0, 4.0)
    ),
    "absolute_error": _residual(abs, np.sign),
    "quantile": _residual(lambda r: abs(r) / 2, lambda r: np.sign(r) / 2),  # the median
    "epsilon_insensitive": _residual(lambda r: max(abs(r) - 0.1, 0.0), lambda r: np.sign(r) * (abs(r) > 0.1)),
    "squared_epsilon_insensitive": _residual(
        lambda r: max(abs(r) - 0.1, 0.0) ** 2, lambda r: 2 * np.sign(r) * max(abs(r) - 0.1, 0.0)
    ),
    "huber": _residual(lambda r: r**2 / 2 - max(abs(r) - 1.35, 0) ** 2 / 2, lambda r: np.clip(r, -1.35, 1.35)),
}


class Mirror(NamedTuple):
    """A mirror map f = grad F, its inverse f^-1 = grad F*, and the bound below which theta = f(w) stays."""

    f: Callable[[Array], Array]
    inverse: Callable[[Array], Array]
    bound: float = np.inf


def softmax(theta: Array) -> Array:
    """e^theta / sum e^theta."""
    v = np.exp(theta - theta.max())
    return v / v.sum()


def simplex(total: float = 1.0) -> Mirror:
    """The relative entropy on weights of sum `total`, which determine theta up to a constant (KW97)."""
    return Mirror(np.log, lambda theta: total * softmax(theta))


def p_norm(p: float | None = None) -> Mirror:
    """F = norm_q(w)^2 / 2, 1/p + 1/q = 1, with p = 2 ln n or at least 2 if it is not given (Gentile 2003; W)."""

    def gradient(v: Array, r: float) -> Array:  # of norm_r(v)^2 / 2
        unit = np.abs(v).max() or 1.0
        norm = unit * (np.abs(v / unit) ** r).sum() ** (1 / r) or 1.0
        return norm * np.sign(v) * np.abs(v / norm) ** (r - 1)

    def p_of(v: Array) -> float:
        return p or max(2.0, 2 * np.log(len(v)))

    return Mirror(lambda w: gradient(w, p_of(w) / (p_of(w) - 1)), lambda theta: gradient(theta, p_of(theta)))


MIRRORS = {
    "squared_euclidean": Mirror(lambda w: w, lambda theta: theta),  # F = sum w^2 / 2
    "relative_entropy": Mirror(np.log, _exp),  # F = sum w ln w - w
    "simplex_entropy": simplex(),
    "burg": Mirror(lambda w: -1 / w, lambda theta: -1 / theta, bound=0.0),  # F = -sum ln w
    "binary_entropy": Mirror(logit, expit),  # F = sum w ln w + (1 - w) ln(1 - w)
    "p_norm": p_norm(),
}


# --- mirror descent: KW97, KB10, W ------------------------------------------------------------------------------------
def implicit_step(eta: float, slope: Callable[[float], float], low: float = -np.inf, high: float = np.inf) -> float:
    """The root of c = eta slope(c) for an L' that falls with c: between 0 and the explicit step, eta slope(0).

    `low` and `high` end the domain. Where the slope jumps, at a kink of the loss, the step is passive-aggressive.
    """
    c = eta * slope(0.0)
    ends = max(min(c, 0.0), low), min(max(c, 0.0), high)
    return brentq(lambda c: c - eta * slope(c), *ends, xtol=1e-300, rtol=1e-15, maxiter=2000) if c != 0 else 0.0


def importance_step(eta: float, slope: Callable[[float], float]) -> float:
    """c(eta) of the flow dc/dh = slope(c) from c(0) = 0: many small steps in one (Karampatziakis and Langford 2011)."""
    return solve_ivp(lambda h, c: [slope(c[0])], (0.0, eta), [0.0], method="DOP853", rtol=1e-12, atol=1e-15).y[0, -1]


class MirrorDescent:
    """w' = argmin_v D(v, w) + eta L(v.x + b, y): f(w') = f(w) - c x with c = eta L'(a, y) (KB10, 1 and 2; W).

    a is the prediction before the step (explicit) or after it (implicit). For the intercept b, f is the identity.
    """

    def __init__(
        self, mirror: Mirror, loss: Loss, start: Array, update: str = "implicit", fit_intercept: bool = True
    ) -> None:
        self.mirror, self.loss, self.update, self.bias = mirror, loss, update, float(fit_intercept)
        self.theta, self.b = mirror.f(np.array(start, dtype=float)), 0.0

    @property
    def w(self) -> Array:
        """The weights."""
        return self.mirror.inverse(self.theta)

    def predict(self, x: Array, c: float = 0.0) -> float:
        """The score w(c).x + b(c) on the curve of all steps, w(c) = f^-1(theta - c x)."""
        return float(self.mirror.inverse(self.theta - c * x) @ x + self.b - self.bias * c)

    def learn(self, x: Array, y: float, eta: float) -> None:
        """Find c, and move there."""

        def slope(c: float) -> float:
            return float(self.loss.derivative(self.predict(x, c), y))

        if self.update == "explicit":
            c = eta * slope(0.0)
        elif self.update == "importance":
            c = importance_step(eta, slope)
        else:  # theta_i - c x_i stays below its bound
            ends = (1 - 1e-14) * (self.theta - self.mirror.bound)[x != 0] / x[x != 0]
            c = implicit_step(eta, slope, max(ends[ends < 0], default=-np.inf), min(ends[ends > 0], default=np.inf))
        self.theta, self.b = self.theta - c * x, self.b - self.bias * c


def implicit_gradient_step(w: Array, x: Array, y: float, eta: float) -> Array:
    """Implicit gradient descent on the squared loss, in closed form (KB10, section 3.1)."""
    return w - eta * (w @ x - y) / (1 + eta * x @ x) * x


def eg_step(w: Array, x: Array, y: float, eta: float, total: float = 1.0) -> Array:
    """w' ~ w e^(-eta (a - y) x) of sum `total`: EG (KW97)."""
    return total * softmax(np.log(w) - eta * (w @ x - y) * x)


def signed_halves(w: Array, total: float) -> Array:
    """(w+, w-) of sum `total` with w+ - w- = w: EG+- is EG on the rows (x, -x) from there (KW97)."""
    return np.r_[np.maximum(w, 0), np.maximum(-w, 0)] + (total - np.abs(w).sum()) / (2 * len(w))


def proximal_step(mirror: Mirror, theta: Array, l1: float, l2: float, soft: bool) -> Array:
    """f(v) of v = argmin D(v, w) + l1 sum |v| + l2 sum v^2 / 2, weight by weight: f(v) = f(w) - l1 sgn v - l2 v.

    `soft`: weights have any sign and f(0) = 0, which makes l1 a soft threshold on theta = f(w).
    """
    theta = theta - (np.sign(theta) * np.minimum(l1, np.abs(theta)) if soft else l1)
    return np.vectorize(lambda t: t - implicit_step(l2, lambda c: float(mirror.inverse(np.r_[t - c])[0])))(theta)


def perceptron_step(w: Array, x: Array, y: float, eta: float) -> Array:
    """w' = w + eta y x if y w.x <= 0, a mistake, with y = -1 or 1 (Rosenblatt 1958; W)."""
    return w + eta * y * x if y * (w @ x) <= 0 else w


def winnow_step(
    w: Array, b: float, x: Array, y: float, eta: float, total: float | None = None, balanced: bool = False
) -> tuple[Array, float]:
    """w' = w e^(eta y x), b' = b + eta y at a mistake (Littlestone 1988); normalised Winnow divides by the sum (W).

    Balanced Winnow learns (x, -x) with the weights (w+, w-), as EG+- does.
    """
    u, z = (np.subtract(*np.split(w, 2)), np.r_[x, -x]) if balanced else (w, x)
    if y * (u @ x + b) > 0:
        return w, b
    w = w * np.exp(eta * y * z)
    return (w if total is None else total * w / w.sum()), b + eta * y


class BurgGradient:
    """1/w' = 1/w + eta_t (a - y) x for x, y >= 0 and w <= B (JKD07, Algorithm 1).

    eta_t = min(eta_{t-1}, eta, 1 / (2 m B R^2)) with R the largest feature and m the largest sum of weights so far, or
    a bound on it; an intercept adds 1 to m B R^2. A weight above B is set to B.
    """

    def __init__(self, w: Array, B: float = 1.0, m: float = 0.0, fit_intercept: bool = False) -> None:
        self.w, self.b, self.B, self.m, self.bias = np.array(w, dtype=float), 0.0, B, m, float(fit_intercept)
        self.R, self.cap, self.rate = 0.0, np.inf, np.inf

    def learn(self, x: Array, y: float, eta: float) -> None:
        """Lower the rate, and move."""
        self.R, self.m = max(self.R, x.max(initial=0.0)), max(self.m, self.w[x > 0].sum())
        steepness = self.m * self.B * self.R**2 + self.bias
        self.cap = 1 / (2 * steepness) if steepness > 0 else np.inf
        self.rate = min(self.rate, eta, self.cap)
        c = self.rate * (self.w @ x + self.b - y)
        self.w, self.b = 1 / np.maximum(1 / self.w + c * x, 1 / self.B), self.b - self.bias * c


# --- adaptive divergences, bets ---------------------------------------------------------------------------------------
class Adaptive:
    """w_i' = w_i - c x_i / h_i, the step in D_t(u, w) = sum h_i (u_i - w_i)^2 / 2, where h depends on g = L'(a, y).

        "adagrad"              h_i = sqrt(sum g^2 x_i^2)      (Duchi, Hazan, Singer 2011)
        "normalized_adagrad"   h_i = M_i sqrt(sum g^2 x_i^2)  and eta sqrt(t / sum_t,i x_i^2 / M_i^2) (Ross et al. 2013)
        "diagonal_newton"      h_i = M_i^2 + k sum x_i^2      the diagonal of the forward algorithm, k the curvature

    M_i is the largest |x_i|; when it grows, h_i w_i stays the same. For losses with L(r a, r y) = r^degree L(a, y) the
    last two are in units of the deviation of the targets, and the first row only moves the intercept, to its target.
    (Of losses of bounded slope the estimators limit targets to their robust scale, see `_kernels/ops/robust.h`, and the
    unit to twice their mean deviation there: the same where no target is far from the others.)
    Where a `flat` loss has no slope it has no curvature; that of the log loss is 4 k p (1 - p), p = (n_1 + 1/2) / (n +
    1) the share of the class so far.
    """

    def __init__(
        self, name: str, loss: Loss, w: Array, update: str, degree: int = 0, k: float = 1.0, flat: bool = False
    ) -> None:
        self.name, self.loss, self.update, self.degree, self.k, self.flat = name, loss, update, degree, k, flat
        self.w, self.N, self.y, self.s = np.array(w, dtype=float), 0.0, np.empty(0), np.empty(0)
        self.M, self.S, self.Q = np.zeros((3, len(w)))

    def h(self, M: Array, S: Array) -> Array:
        """The weights of the divergence: of the rows so far for h(M, S)."""
        return {"adagrad": np.sqrt(S), "normalized_adagrad": M * np.sqrt(S)}.get(self.name, M**2 + self.k * self.Q)

    def rate(self) -> float:
        """The factor of eta."""
        mean = np.average(self.y, weights=self.s)
        deviation = np.sqrt(np.average((self.y - mean) ** 2, weights=self.s)) if np.ptp(self.y) else abs(self.y[0])
        if self.name == "normalized_adagrad" and self.N > 0:
            return np.sqrt(self.s.sum() / self.N) * (deviation if self.degree > 0 else 1.0)
        return deviation if self.name == "diagonal_newton" and self.degree == 1 else 1.0

    def rescaled(self, x: Array) -> Array:
        """The weights with which x is predicted."""
        M, S = np.maximum(self.M, np.abs(x)), np.where(self.S > 0, self.S, 1.0)
        return self.w * np.divide(self.h(self.M, S), self.h(M, S), out=np.ones(len(x)), where=self.M > 0)

    def learn(self, x: Array, y: float, eta: float, s: float = 1.0) -> None:
        """Count the row, and move."""
        first = len(self.y) == 0 and x[-1] and self.degree > 0 and self.name != "adagrad" and self.update == "implicit"
        self.w, self.M = self.rescaled(x), np.maximum(self.M, np.abs(x))
        self.y, self.s, a = np.append(self.y, y), np.append(self.s, s), self.w @ x
        g = float(self.loss.derivative(a, y))
        self.S = self.S + s * (0.0 if first else g) ** 2 * x**2
        p = (self.s @ self.y + 0.5) / (self.s.sum() + 1)
        k = 4 * p * (1 - p) if self.loss is LOSSES["log_loss"] else not self.flat or (g != 0 and not first)
        self.Q = self.Q + s * k * x**2
        self.N += s * ((x / np.where(self.M > 0, self.M, 1.0)) ** 2).sum()
        h, rate = self.h(self.M, self.S), self.rate()
        q = np.divide(x, h, out=np.zeros(len(x)), where=h > 0)
        if first and g != 0 and rate > 0:  # at so high a rate an implicit step ends at the target
            q = np.r_[np.zeros(len(x) - 1), 2.0**40 * abs(y / g) / rate]
        eta = eta * s * rate
        c = implicit_step(eta, lambda c: float(self.loss.derivative(a - c * (q @ x), y)))
        self.w = self.w - (c if self.update == "implicit" else eta * g) * q


def penalty_flow(w: Array, time: Array, l1: float, l2: float) -> Array:
    """v(time) of v' = -(l1 sgn v + l2 v) from w, the limit of many small proximal steps in D_t; time = eta / h."""
    size = np.exp(-l2 * time) * np.abs(w) - l1 * (-np.expm1(-l2 * time) / l2 if l2 else time)
    return np.sign(w) * np.maximum(size, 0.0)


class ScaleInvariant:
    """ScInOL2: w_i = sgn(theta) min(|theta|, 1) W_i / (2 h), theta = G / h, h = sqrt(S + M^2) (Kempka et al. 2019, 2).

    G = -sum g x_i, S = sum g^2 x_i^2, M the largest |x_i| and W_i the wealth that the bets w_i have won, g = L'(a, y)
    over its bound. For losses in units of the target wealth has the unit of the second target, counted from the first.
    """

    def __init__(self, n: int, loss: Loss, lipschitz: float = 1.0, in_units: bool = False) -> None:
        self.loss, self.lipschitz = loss, lipschitz
        self.G, self.S, self.M = np.zeros((3, n))
        self.W, self.unit, self.origin, self.t = np.ones(n), float(not in_units), 0.0, 0

    def w(self, M: Array) -> Array:
        """The bets, if M are the largest |x_i|."""
        h = np.sqrt(np.where(M > 0, self.S + M**2, np.inf))
        return np.sign(self.G) * np.minimum(np.abs(self.G / h), 1.0) / (2 * h) * self.W

    def predict(self, x: Array) -> float:
        """The score, for which M includes x."""
        return float(self.origin + self.unit * (self.w(np.maximum(self.M, np.abs(x))) @ x))

    def learn(self, x: Array, y: float, s: float = 1.0) -> None:
        """Settle the bets."""
        g, M, self.t = float(self.loss.derivative(self.predict(x), y)), np.maximum(self.M, np.abs(x)), self.t + 1
        if self.t == 1 and self.unit == 0 and x[-1]:
            self.origin = y if g != 0 else 0.0
            return
        outcome = np.clip(-s * g / self.lipschitz * x, -M, M)
        self.W = self.W + (outcome * self.w(M) if self.unit else 0.0)
        self.unit = self.unit or abs(y - self.origin)
        self.G, self.S, self.M = self.G + outcome, self.S + outcome**2, np.maximum(M, max(s, 1.0) * np.abs(x))


# --- the forward algorithm: Azoury and Warmuth 2001, W ----------------------------------------------------------------
class ForwardRegression:
    """x'(A + x x')^-1 b with A = alpha I + sum x x', b = sum y x: the matrix already has the row (Vovk 2001; W).

    With forgetting A <- gamma A + s x x'; without `forward`, on-line ridge regression.
    """

    def __init__(self, n: int, n_targets: int, alpha: float, forward: bool = True, gamma: float = 1.0) -> None:
        self.A, self.b, self.forward, self.gamma = alpha * np.eye(n), np.zeros((n, n_targets)), forward, gamma

    @property
    def w(self) -> Array:
        """The ridge weights of the rows so far, a column for each target."""
        return np.linalg.solve(self.A, self.b)

    def predict(self, x: Array, s: float = 1.0) -> Array:
        """The predictions of all targets."""
        return x @ np.linalg.solve(self.gamma * self.A + s * self.forward * np.outer(x, x), self.gamma * self.b)

    def learn(self, x: Array, y: Array, s: float = 1.0) -> None:
        """Add the row."""
        self.A, self.b = self.gamma * self.A + s * np.outer(x, x), self.gamma * self.b + s * np.outer(x, y)


class CentredForwardRegression:
    """y_ + z'(A + nu z z')^-1 b on sums about means, with a prior in the units of the columns; see `forward.pyx`."""

    def __init__(self, n: int, n_targets: int, alpha: float, forward: bool = True, gamma: float = 1.0) -> None:
        self.alpha, self.forward, self.gamma, self.d, self.n = alpha, forward, gamma, n, 0.0
        self.mean, self.S, self.p = np.zeros(n + n_targets), np.zeros((n + n_targets, n + n_targets)), np.zeros(n)

    def predict(self, x: Array, s: float = 1.0) -> Array:
        """The predictions of all targets."""
        d, on, n = self.d, self.p > 0, self.gamma * self.n
        z = (x - self.mean[:d])[on]
        A = self.gamma * (self.S[:d, :d] + np.diag(self.p))[np.ix_(on, on)]
        return self.mean[d:] + z @ np.linalg.solve(
            A + self.forward * (s * n / (n + s)) * np.outer(z, z), self.gamma * self.S[:d, d:][on]
        )

    def learn(self, x: Array, y: Array, s: float = 1.0) -> None:
        """Add the row; a prior that is off by more than a factor of two is set right."""
        v, n = np.r_[x, y] - self.mean, self.gamma * self.n
        self.n, self.S = n + s, self.gamma * self.S + s * n / (n + s) * np.outer(v, v)
        self.mean = self.mean + s / self.n * v
        p, right = self.gamma * self.p, self.alpha * np.diag(self.S)[: self.d] / self.n
        self.p = np.where((right > 2 * p) | (2 * right < p), right, p)


class ForwardNewton:
    """w' = argmin_u (u - w)'A (u - w) / 2 + L(o + u.x, y), A' = gamma A + L''(o + w'.x, y) x x': for other losses."""

    def __init__(self, A: Array, loss: Loss, gamma: float = 1.0) -> None:
        self.w, self.A, self.loss, self.gamma = np.zeros(len(A)), A, loss, gamma

    def learn(self, x: Array, y: float, s: float = 1.0, o: float = 0.0) -> None:
        """Step, then add the row; o is the part of its score that is known."""
        a, v = o + self.w @ x, np.linalg.solve(self.A, x)
        c = implicit_step(s, lambda c: float(self.loss.derivative(min(a - c * (x @ v), 700.0), y)))
        self.w, h = self.w - c * v, max(float(self.loss.curvature(a - c * (x @ v), y)), 1e-6)
        self.A = self.gamma * self.A + s * h * np.outer(x, x)


def odds_step(o: Array, n: Array, g: Array, s: float) -> Array:
    """Log odds of classes of weights n after a step with the slopes g = p - y: as ln (n + 2), if p are these shares."""
    return o - np.sign(g) * np.log1p(s * np.abs(g) / (n + 2.0))


class ForwardSoftmax:
    """W' = argmin_U sum_c (u_c - w_c)'A (u_c - w_c) / 2 + L(o + U x, y), the log loss: w_c' = w_c - (p_c - y_c) A^-1 x.

    p are the probabilities at W', y is one-hot, and A' = gamma A + h x x' with h = (1 - sum p_c^2) / (k - 1).
    """

    def __init__(self, n: int, k: int, alpha: float, gamma: float = 1.0, odds: bool = True) -> None:
        self.W, self.A, self.gamma = np.zeros((k, n)), alpha * np.eye(n), gamma
        self.o, self.n, self.odds = np.zeros(k), np.zeros(k), odds

    def learn(self, x: Array, label: int, s: float = 1.0) -> None:
        """Step, then add the row."""
        v, y = np.linalg.solve(self.A, x), np.eye(len(self.W))[label]
        p = implicit_softmax(self.o + self.W @ x, y, s * float(x @ v))
        self.W = self.W - s * np.outer(p - y, v)
        self.o, self.n = odds_step(self.o, self.n, self.odds * (p - y), s), self.gamma * self.n + s * y
        self.A = self.gamma * self.A + s * max((1 - p @ p) / (len(p) - 1), 1e-6) * np.outer(x, x)


class Aioli(ForwardNewton):
    """w' = argmin_u (u - w)'A (u - w) / 2 + l(u) for the log loss, A' = gamma A + k x x' (Jezequel et al. 2020).

    l is L(z) + L'(z) (u.x - z) + k (u.x - z)^2 / 2 at the score z, a tie of both labels: k makes it at most L(u.x) for
    norm(u) <= radius. A = alpha I / 2 at the start.
    """

    def predict(self, x: Array) -> float:
        """The score of argmin_u of all l so far plus L(u.x, 1) + L(u.x, 0): the root of z = a - q tanh(z / 2)."""
        a, q = self.w @ x, x @ np.linalg.solve(self.A, x)
        return brentq(lambda z: z - a + q * np.tanh(z / 2), -abs(a) - 1, abs(a) + 1, xtol=1e-14, rtol=1e-14)

    def learn(self, x: Array, y: float, s: float = 1.0, radius: float = 1.0) -> None:
        """Add the row, and go to the minimum."""
        z = self.predict(x)
        k = s * self.loss.curvature(z, y) / (1 + max(radius * float(np.linalg.norm(x)) - abs(z), 0.0) / 2)
        more, b = k * np.outer(x, x), self.A @ self.w + (k * z - s * self.loss.derivative(z, y)) * x
        self.w, self.A = np.linalg.solve(self.A + more, b), self.gamma * self.A + more


def implicit_softmax(a: Array, y: Array, q: float) -> Array:
    """The root of p = softmax(a - q (p - y)): u + ln u = a + q y + ln q - m, u = q p, for the m at which sum p = 1."""
    t = a + q * y + np.log(q)
    ends = [t.max() - share - np.log(share) for share in (q, q / len(a))]
    return wrightomega(t - brentq(lambda m: wrightomega(t - m).sum() / q - 1, *ends, xtol=1e-300, rtol=1e-15)) / q


# --- mixtures of experts ----------------------------------------------------------------------------------------------
def share_update(v: Array, losses: Array, eta: float, prior: Array, share: float = 0.0) -> Array:
    """v_k' ~ v_k e^(-eta l_k), then the part `share` of all weight is distributed anew (Herbster and Warmuth 1998).

    l_k = L(p_k, y) is the exponentially weighted average of the predictions p_k, l_k = L'(v.p, y) p_k is EG, and
    l_k = -ln p_k(y) with eta = 1 is Bayes' rule. The mixture predicts v.p.
    """
    v = v * np.exp(-eta * (losses - losses.min()))
    return (1 - share) * v / v.sum() + share * prior


def aggregate(v: Array, p: Array, low: float, high: float) -> float:
    """(low + high) / 2 + (G(low) - G(high)) / (high - low): the Aggregating Algorithm on squared errors (Vovk 1990).

    G(y) = -ln(sum v_k e^(-eta (p_k - y)^2 / 2)) / eta with eta = 4 / (high - low)^2, at which v_k' ~ v_k e^(-eta l_k).
    """
    eta = 4 / (high - low) ** 2
    G_low, G_high = (-logsumexp(-eta * (p - end) ** 2 / 2, b=v) / eta for end in (low, high))
    return (low + high) / 2 + (G_low - G_high) / (high - low)


def bayes_mixture(log_v: Array, log_p: Array, log_prior: Array, share: float = 0.0, s: float = 1.0) -> Array:
    """ln v' for v_k' ~ v_k p_k(x)^s, in logarithms; the mixture's density is sum v_k p_k (W)."""
    log_v = log_v + s * log_p - logsumexp(log_v + s * log_p)
    return np.logaddexp(np.log1p(-share) + log_v, np.log(share) + log_prior) if share else log_v


class AdaHedge:
    """v_k ~ e^(-eta c_k) of the costs c so far at eta = ln K / gap (de Rooij et al. 2014), or at a fixed rate.

    gap is the loss of the mixture beyond its mix losses -ln(sum v_k e^(-eta l_k)) / eta. So models that learn at
    several rates are mixed, and the members of a parameter-free model. With a share, a gap that is larger than what the
    last 1 / share rows cost becomes their mean cost, at the same weights.
    """

    def __init__(self, n: int, share: float = 0.0, rate: float | None = None, prior: Array | None = None) -> None:
        self.costs, self.losses = np.zeros(n) if prior is None else -np.log(prior), np.zeros(n)
        self.share, self.fixed, self.gap, self.loss = share, rate, 0.0, 0.0
        self.recent: list[float] = []

    @property
    def rate(self) -> float:
        """eta; infinite before there is a gap."""
        return self.fixed or (np.log(len(self.costs)) / self.gap if self.gap > 0 else np.inf)

    @property
    def v(self) -> Array:
        """The weights; at an infinite rate, those of the leaders."""
        lead = self.costs == self.costs.min()
        return softmax(-self.rate * self.costs) if self.rate < np.inf else lead / lead.sum()

    def potential(self, costs: Array) -> float:
        """-ln(mean e^(-eta c_k)) / eta."""
        least = costs.min()
        return least - (np.log(np.exp(-self.rate * (costs - least)).mean()) / self.rate if self.rate < np.inf else 0.0)

    def learn(self, losses: Array, loss: float) -> None:
        """Count the losses of the experts, and that of the mixture."""
        eta, costs = self.rate, self.costs + losses
        mix_loss = self.potential(costs) - self.potential(self.costs)
        shared = self.share and eta < np.inf and (self.fixed or self.gap > 1e-12 * self.loss)
        if shared:
            v = (1 - self.share) * softmax(-eta * costs) + self.share / len(costs)
            costs = self.potential(costs) - np.log(len(costs) * v) / eta
        self.costs, self.losses, self.loss = costs, self.losses + losses, self.loss + loss
        self.gap += max(loss - mix_loss, 0.0)
        if shared and not self.fixed:
            self.recent.append(loss)
            if len(self.recent) >= 1 / self.share:
                if 0 < sum(self.recent) < self.gap:
                    self.costs *= np.mean(self.recent) / self.gap
                    self.gap = float(np.mean(self.recent))
                self.recent = []


def stacked(m: Array, p: Array, b: Array) -> Array:
    """m + sum_k b_k (p_k - m): a combination of the members p of a mixture m, which parameter-free models mix with it.

    For numbers b follows by `ForwardRegression` of y - m on p - m, in units of the root of the mean of (y - m)^2; for
    classes, where m and p are log odds, by on-line Newton steps, which are ridge regression of b.g + 1 on g = dL/db.
    Once more for classes with votes as p and m = 0: of probabilities q the votes are q^8 / sum q^8.
    """
    return m + b @ (p - m)


def label_forecasts(y: Array, n_classes: int) -> tuple[Array, Array]:
    """Forecasts of the next label by what has followed the last one, and by recent ones, (n_c + s_c) / (n + 1).

    Each label counts as those that follow the same label, or all, times .999, or .9, for each of these after it. s_c
    are the shares of all labels. So a parameter-free model remembers labels, and corrects its forecasts by `stacked`.
    """
    shares = (np.bincount(y, minlength=n_classes) + 0.5) / (len(y) + n_classes / 2)
    followers = y[1:][y[:-1] == y[-1]]
    counts = [
        np.bincount(seen, f ** np.arange(len(seen))[::-1], n_classes) for seen, f in ((followers, 0.999), (y, 0.9))
    ]
    return tuple((n + shares) / (n.sum() + 1) for n in counts)


# --- matrices: z'Wz for rows z, tr(W X) for symmetric X; KB10, TRW04 --------------------------------------------------
def logdet_step(W: Array, z: Array, y: float, eta: float) -> Array:
    """W'^-1 = W^-1 + eta (a' - y) z z', a' = z'W'z the root of eta a a'^2 - (eta y a - 1) a' - a = 0 (KB10, 5)."""
    a, v = z @ W @ z, W @ z
    b = eta * y * a - 1
    root = np.sqrt(b**2 + 4 * eta * a**2)
    c = eta * ((b + root) / (2 * eta * a) if b >= 0 else 2 * a / (root - b)) - eta * y
    return W - c / (1 + c * a) * np.outer(v, v)


def logdet_step_any_rank(W: Array, X: Array, slope: Callable[[float], float], eta: float) -> Array:
    """W'^-1 = W^-1 + c X with c = eta L'(tr W'X): on the eigenvalues mu of X against W a Burg step.

    tr W'X = sum mu / (1 + c mu). X = p p' - q q' is a triplet: two squared distances to compare.
    """
    root = np.linalg.cholesky(W)
    mu = np.linalg.eigvalsh(root.T @ X @ root)
    ends = -(1 - 1e-9) / mu[mu != 0]
    low, high = max(ends[ends < 0], default=-np.inf), min(ends[ends > 0], default=np.inf)
    c = implicit_step(eta, lambda c: slope(float((mu / (1 + c * mu)).sum())), low, high)
    return np.linalg.inv(np.linalg.inv(W) + c * X)


def frobenius_step(W: Array, z: Array, y: float, eta: float, update: str = "implicit") -> Array:
    """W' = P(W - c z z') with P the projection onto the positive semidefinite matrices (KB10, section 5)."""
    c = eta * (z @ W @ z - y) / (1 + (update == "implicit") * eta * (z @ z) ** 2)
    values, vectors = np.linalg.eigh(W - c * np.outer(z, z))
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def matrix_exp(G: Array, trace: float | None = None) -> Array:
    """exp(G), or a multiple of it with that trace."""
    values, vectors = np.linalg.eigh(G)
    return (vectors * (np.exp(values) if trace is None else trace * softmax(values))) @ vectors.T


def von_neumann_step(G: Array, X: Array, y: float, eta: float, trace: float | None, update: str = "implicit") -> Array:
    """G' = G - eta (tr(W X) - y) X for W = exp(G) (over its trace: MEG): the new log W (TRW04, 4)."""
    step = implicit_step if update == "implicit" else lambda eta, slope: eta * slope(0.0)
    return G - step(eta, lambda c: float(np.vdot(matrix_exp(G - c * X, trace), X) - y)) * X


def matrix_burg_step(W: Array, z: Array, y: float, rate: float, R: float) -> tuple[Array, float]:
    """W'^-1 = W^-1 + eta_t (a - y) z z' with a = z'Wz and 0 < W < I, and eta_t (JKD07, Algorithm 2).

    eta_t = min(eta_{t-1}, 1 / (2 R^4)) with R the largest norm(z), and nine tenths of the rate at which W' reaches I.
    """
    a, rate = z @ W @ z, min(rate, 1 / (2 * R**4))
    if a < y:
        rate = min(rate, 0.9 / ((y - a) * (z @ np.linalg.inv(np.eye(len(z)) - W) @ W @ z)))
    return np.linalg.inv(np.linalg.inv(W) + rate * (a - y) * np.outer(z, z)), rate


def definite_boost_step(G: Array, C: Array) -> Array:
    """G' = G - alpha C_j for the constraint tr(W C_j) <= 0 that W = exp(G) / tr violates most, by r (TRW04, 13).

    alpha = ln((1 - r / low) / (1 - r / high)) / (high - low), with low < 0 < high the ends of C_j's eigenvalues.
    """
    values = np.tensordot(C, matrix_exp(G, 1.0), 2)
    r, (low, *_, high) = values.max(), np.linalg.eigvalsh(C[values.argmax()])
    return G - np.log((1 - r / low) / (1 - r / high)) / (high - low) * C[values.argmax()]


def mean_metric(metrics: Array, covariance: Array) -> Array:
    """The mean of metrics in units of their mean squared distance of two rows, 2 tr(W covariance)."""
    return np.mean([W / (2 * np.vdot(W, covariance)) for W in metrics], axis=0)


# --- densities: Azoury and Warmuth 2001, W, S18 -----------------------------------------------------------------------
def forward_mean(mu: Array, x: Array, k: float, s: float = 1.0) -> Array:
    """mu' = mu - s (mu - x) / (k + s) of an exponential family, k the weight of the rows before and of the prior (W).

    The prior has the weight k_1, k + 1 in the forward algorithm. A Gaussian of unknown covariance has mu = E z z' with
    z = (x, 1).
    """
    return mu - s / (k + s) * (mu - x)


def last_step_minimax(ones: float, zeros: float) -> float:
    """The probability of a one for which both outcomes give the same regret, if the row is the last one (W)."""
    grown = [xlogy(n + 1, n + 1) - xlogy(n, n) for n in (ones, zeros)]
    return expit(grown[0] - grown[1])


def minimax_rates(T: int) -> Array:
    """alpha_T = 1 / T, alpha_{t-1} = alpha_t + alpha_t^2: the Gaussian of mean alpha_t sum_{q<t} x_q (Takimoto, W)."""
    alpha = [1 / T]
    for _ in range(T - 1):
        alpha.append(alpha[-1] + alpha[-1] ** 2)
    return np.array(alpha[::-1])


def scaling_step(empirical: Array, expected: Array, C: float) -> tuple[Array, float]:
    """ln(Ehat f_j / E_q f_j), to add to lambda_j, for features over C and the dummy feature 1 - sum (S18, 2.4).

    q ~ e^(lambda.f) over all points; the log loss falls by RE(Ehat f || E_q f) or more.
    """
    p, q = (np.append(v, C - v.sum()) / C for v in (empirical, expected))
    step = np.log1p((p - q) / q)
    return (step[:-1] - step[-1]) / C, float((p * step - (p - q)).sum())
