"""The streams of the papers' synthetic experiments."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from .._objects import check_parameter
from .._online.docs import described_by

Stream = (
    tuple[NDArray[np.float64], NDArray[np.float64]]
    | tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
)


def _check_shape(n_samples: int, n_features: int) -> None:
    for name, value in (("n_samples", n_samples), ("n_features", n_features)):
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} must be an integer >= 1; got {value!r}.")


def make_positive_sphere(
    n_samples: int = 10_000,
    n_features: int = 100,
    *,
    noise: float = 0.0,
    coef: bool = False,
    random_state: int | np.random.RandomState | None = None,
) -> Stream:
    """Draw a stream of non-negative rows on the unit sphere with multiplicative noise.

    The weights u and the rows x are uniform on the part of the unit sphere where no coordinate is negative, and y =
    (u.x) (1 + noise Z) with Z uniform on [-1/2, 1/2]. This is the experiment of figures 1-4 of [1]_, with noise 0, 0.1,
    0.2 and 0.3, respectively.

    Parameters
    ----------
    n_samples : int, default=10_000
        Number of rows.
    n_features : int, default=100
        Number of features.
    noise : float, default=0.0
        Level of the noise, relative to u.x.
    coef : bool, default=False
        Return u as well.
    random_state : int, RandomState instance or None, default=None
        Determines the stream.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Rows.
    y : ndarray of shape (n_samples,)
        Targets.
    coef : ndarray of shape (n_features,)
        The weights u; only with `coef=True`.

    References
    ----------
    .. [1] P. Jain, B. Kulis, I. S. Dhillon, "Online Linear Regression using Burg Entropy", TR-07-08, UT Austin, 2007,
       section 5.

    Examples
    --------
    >>> from onlinebregman.datasets import make_positive_sphere
    >>> X, y, u = make_positive_sphere(3, 5, noise=0.1, coef=True, random_state=0)
    >>> X.shape, bool((X >= 0).all()), (X**2).sum(axis=1).round(12).tolist()
    ((3, 5), True, [1.0, 1.0, 1.0])
    >>> print((abs(y / (X @ u) - 1) <= 0.05).all())
    True
    """
    _check_shape(n_samples, n_features)
    check_parameter(noise, "noise", positive=False)
    rng = check_random_state(random_state)
    u = np.abs(rng.standard_normal(n_features))
    u /= np.linalg.norm(u)
    X = np.abs(rng.standard_normal((n_samples, n_features)))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (X @ u) * (1.0 + noise * rng.uniform(-0.5, 0.5, n_samples))
    return (X, y, u) if coef else (X, y)


@described_by(make_positive_sphere)
def make_scaled_regression(
    n_samples: int = 6_000,
    n_features: int = 20,
    *,
    scale: float = 1.0,
    noise: float = 0.1,
    total: float | None = None,
    coef: bool = False,
    random_state: int | np.random.RandomState | None = None,
) -> Stream:
    """Draw a linear regression stream whose scale distinguishes explicit from implicit steps.

    The weights w are uniform on [0, 1], the rows x on scale * [-1/2, 1/2], and y = w.x + scale * noise * Z with Z
    standard normal. With the learning rate 1 / sqrt(t) explicit and implicit gradient descent are equal at scale 1; the
    explicit one is worse at 2 and diverges at 2.5 (figure 1 of [1]_, which calls the 0.1 a variance). Its last panel
    has `noise=0` and 10,000 rows: the weights do not sum to one, so that exponentiated gradient on the simplex stays at
    a large loss.

    Parameters
    ----------
    {n_samples, n_features}
    scale : float, default=1.0
        Factor of the rows and of the noise.
    noise : float, default=0.1
        Standard deviation of the noise at scale 1.
    total : float or None, default=None
        Rescale the weights to this sum; None: no rescaling.
    coef : bool, default=False
        Return w as well.
    random_state : int, RandomState instance or None, default=None
        Determines the stream. The same seed at another scale gives the same rows and the same noise, scaled.

    Returns
    -------
    {X, y}
    coef : ndarray of shape (n_features,)
        The weights w; only with `coef=True`.

    References
    ----------
    .. [1] B. Kulis, P. L. Bartlett, "Implicit Online Learning", ICML 2010, section 6.

    Examples
    --------
    >>> from onlinebregman import ImplicitGDRegressor
    >>> from onlinebregman.datasets import make_scaled_regression
    >>> X, y = make_scaled_regression(200, scale=2.5, random_state=0)
    >>> for update in "implicit", "explicit":
    ...     model = ImplicitGDRegressor(eta0=1.0, learning_rate="sqrt", fit_intercept=False, update=update)
    ...     print(update, model.partial_fit(X, y).cumulative_loss_ < 1000)
    implicit True
    explicit False
    """
    _check_shape(n_samples, n_features)
    check_parameter(scale, "scale", positive=True)
    check_parameter(noise, "noise", positive=False)
    if total is not None:
        check_parameter(total, "total", positive=True)
    rng = check_random_state(random_state)
    w = rng.uniform(size=n_features)
    if total is not None:
        w *= total / w.sum()
    X = scale * rng.uniform(-0.5, 0.5, (n_samples, n_features))
    y = X @ w + scale * noise * rng.standard_normal(n_samples)
    return (X, y, w) if coef else (X, y)
