"""Exponential families P(x | theta) = exp(theta x - G(theta)) P_0(x) of one coordinate, by their mean mu = G'(theta).

The geometry is a `Divergence`: `conjugate` is F, the convex conjugate of the cumulant G, so that theta = f(mu), and the
relative entropy between two members is D_F(mu, mu~) = D_G(theta~, theta) (W, "Primal & Dual Parameters").
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, xlog1py, xlogy

from .._online.validation import first_true
from ..divergences import (
    BinaryEntropy,
    Burg,
    Divergence,
    RelativeEntropy,
    Scaled,
    SquaredEuclidean,
    WeightedSquaredEuclidean,
)


class Family(ABC):
    """One family. Methods work on arrays of any shape, a coordinate at a time."""

    name: str  # in the compiled learner
    conjugate: Divergence
    default_mean: float  # mu_1
    variance: float | np.ndarray = 1.0  # of a Gaussian; not used by other families
    shape = 1.0  # of a gamma distribution
    location = False  # whether the same number may be subtracted from x and mu
    _values: str  # description of possible x, for errors

    def potential(self, mu: np.ndarray) -> float:
        """F(mu), also for means on the boundary of the domain, which are limits of means of members."""
        return self.conjugate.potential(mu)

    @abstractmethod
    def log_density(self, x: np.ndarray, mu: np.ndarray) -> np.ndarray:
        """ln P(x | mu)."""

    def possible(self, x: np.ndarray, mu: np.ndarray) -> np.ndarray:
        """Whether x is possible under mean mu; on the boundary of the means only x = mu may be."""
        return np.ones(np.broadcast_shapes(x.shape, mu.shape), dtype=bool)

    @abstractmethod
    def log_base(self, x: np.ndarray) -> np.ndarray:
        """ln P_0(x)."""

    @abstractmethod
    def sample(self, rng: np.random.RandomState, mu: np.ndarray, n: int) -> np.ndarray:
        """Rows drawn independently, shape (n, len(mu))."""

    def _admits(self, x: np.ndarray) -> np.ndarray:
        return np.isfinite(x)

    def check(self, X: np.ndarray) -> None:
        """Raise ValueError unless all of X are possible values of the family."""
        if wrong := first_true(~self._admits(X)):
            row, column = wrong
            # the text that scikit-learn's checks expect
            sign = "Negative values in data: " if X[row, column] < 0 else ""
            raise ValueError(
                f"{sign}X has {X[row, column]:g} in row {row}, column {column}, but {self._values}; "
                "correct the value, or choose another family."
            )

    def check_mean(self, mean: np.ndarray) -> None:
        """Raise ValueError unless `mean` is the expectation of a member in every coordinate."""
        try:
            self.conjugate.check_domain(mean)
        except ValueError as error:
            raise ValueError(f"prior_mean must be the mean of a member of the family: {error}") from None


class Gaussian(Family):
    """Normal distributions of given variance, one or that of each coordinate: F = mu^2 / (2 variance)."""

    name = "gaussian"
    default_mean = 0.0
    location = True
    _values = "a Gaussian has finite values"

    def __init__(self, variance: float | np.ndarray) -> None:
        self.variance = variance
        self.conjugate = (
            WeightedSquaredEuclidean(1 / variance)
            if np.ndim(variance)
            else Scaled(SquaredEuclidean(), float(1 / variance))
        )

    def log_density(self, x: np.ndarray, mu: np.ndarray) -> np.ndarray:
        return -((x - mu) ** 2) / (2 * self.variance) - np.log(2 * np.pi * self.variance) / 2

    def log_base(self, x: np.ndarray) -> np.ndarray:
        return self.log_density(x, np.zeros(1))

    def sample(self, rng: np.random.RandomState, mu: np.ndarray, n: int) -> np.ndarray:
        return rng.normal(mu, np.sqrt(self.variance), size=(n, len(mu)))


class Bernoulli(Family):
    """Bernoulli distributions: G = ln(1 + e^theta), F = mu ln mu + (1 - mu) ln(1 - mu)."""

    name = "bernoulli"
    conjugate = BinaryEntropy()
    default_mean = 0.5
    _values = "Bernoulli rows are 0, 1, or probabilities in between"

    def log_density(self, x: np.ndarray, mu: np.ndarray) -> np.ndarray:
        return xlogy(x, mu) + xlog1py(1 - x, -mu)

    def possible(self, x: np.ndarray, mu: np.ndarray) -> np.ndarray:
        return ((mu > 0) | (x == 0)) & ((mu < 1) | (x == 1))

    def log_base(self, x: np.ndarray) -> np.ndarray:
        return np.zeros_like(x)

    def sample(self, rng: np.random.RandomState, mu: np.ndarray, n: int) -> np.ndarray:
        return (rng.uniform(size=(n, len(mu))) < mu).astype(np.float64)

    def _admits(self, x: np.ndarray) -> np.ndarray:
        return (x >= 0) & (x <= 1)


class Poisson(Family):
    """Poisson distributions: G = e^theta, F = mu ln mu - mu."""

    name = "poisson"
    conjugate = RelativeEntropy()
    default_mean = 1.0
    _values = "Poisson rows are counts: whole numbers, not negative"

    def log_density(self, x: np.ndarray, mu: np.ndarray) -> np.ndarray:
        return xlogy(x, mu) - mu - gammaln(x + 1)

    def possible(self, x: np.ndarray, mu: np.ndarray) -> np.ndarray:
        return (mu > 0) | (x == 0)

    def log_base(self, x: np.ndarray) -> np.ndarray:
        return -gammaln(x + 1)

    def sample(self, rng: np.random.RandomState, mu: np.ndarray, n: int) -> np.ndarray:
        return rng.poisson(mu, size=(n, len(mu))).astype(np.float64)

    def _admits(self, x: np.ndarray) -> np.ndarray:
        return (x >= 0) & (x == np.floor(x))


class Gamma(Family):
    """Gamma distributions of one given shape a: F = -a ln mu, a times the Burg entropy; a = 1: exponential."""

    name = "gamma"
    default_mean = 1.0
    _values = "gamma rows are positive, and exponential rows not negative"

    def __init__(self, shape: float) -> None:
        self.shape = shape
        self.conjugate = Scaled(Burg(), shape)

    def potential(self, mu: np.ndarray) -> float:
        return super().potential(mu) if mu.all() else np.inf

    def log_density(self, x: np.ndarray, mu: np.ndarray) -> np.ndarray:
        return self._tilted(x) - self.shape * (np.log(mu) + x / mu)

    def log_base(self, x: np.ndarray) -> np.ndarray:
        return self._tilted(x) - self.shape

    def _tilted(self, x: np.ndarray) -> np.ndarray:
        a = self.shape
        return a * np.log(a) - gammaln(a) + xlogy(a - 1, x)

    def sample(self, rng: np.random.RandomState, mu: np.ndarray, n: int) -> np.ndarray:
        return rng.gamma(self.shape, mu / self.shape, size=(n, len(mu)))

    def _admits(self, x: np.ndarray) -> np.ndarray:
        return (x >= 0) if self.shape == 1 else x > 0  # the others have density 0 or infinity at 0


FAMILIES = ("gaussian", "bernoulli", "poisson", "exponential", "gamma")


def make_family(name: str, variance: float | ArrayLike, shape: float, n_features: int) -> Family:
    """The family of that name."""
    if name == "gaussian":
        return Gaussian(_check_variance(variance, n_features))
    if name == "gamma":
        return Gamma(shape)
    return {"bernoulli": Bernoulli, "poisson": Poisson, "exponential": lambda: Gamma(1.0)}[name]()


def _check_variance(variance: float | ArrayLike, n_features: int) -> float | np.ndarray:
    one = isinstance(variance, Real)
    variance = np.array(variance, dtype=np.float64)
    if not one and variance.shape != (n_features,):
        raise ValueError(
            f"variance has shape {variance.shape}; give a number, or one for each of the {n_features} features."
        )
    with np.errstate(divide="ignore", over="ignore"):
        good = (variance > 0) & (variance < np.inf) & (1 / variance < np.inf)
    if not good.all():
        i = int(np.argmin(good))
        name = "variance" if one else f"variance[{i}]"
        raise ValueError(
            f"{name} = {variance.flat[i]:g}, but a variance and its inverse must be positive and finite; scale the "
            "features (sklearn.preprocessing.StandardScaler)."
        )
    return float(variance) if one else variance
