"""Adversarial streams, and the list of kinds of bounds that they are learned for: see bounds.py."""

import numpy as np

from onlinebregman.losses import HingeLoss, LogisticLoss

ROUNDING = 1e-9
KINDS = {}


def kind(function):
    KINDS[function.__name__.replace("_", " ")] = function
    return function


# --- streams ----------------------------------------------------------------------------------------------------------


def some_weights(rng, n, largest):
    """Weights of rows: all equal, or with zeros among them, and at least one that is not 0."""
    weights = largest * rng.choice([np.ones(n), rng.uniform(size=n), rng.choice([0.0, 1e-3, 1.0], size=n)])
    weights[0] = largest
    return weights


class Rows:
    """Rows one after the other, each from the present weights w and a comparator u."""

    def __init__(self, rng, n, *, positive=False):
        self.rng, self.n, self.positive = rng, n, positive
        self.manner = rng.choice(["random", "against", "alternating", "few", "crowd", "mixed"])
        self.few = rng.normal(size=(2, n)) * 10.0 ** rng.integers(-2, 2, size=(2, 1))

    def next(self, t, w, u):
        rng, n, manner = self.rng, self.n, self.manner
        if manner == "mixed":
            manner = rng.choice(["random", "against", "alternating", "few", "crowd", "zeros"])
        gap = np.asarray(w, dtype=float) - u
        if manner == "against" and np.isfinite(gap).all() and gap.any():
            x = gap * rng.choice([-1.0, 1.0]) / np.abs(gap).max()
            x = x if rng.uniform() < 0.5 else np.sign(x)
        elif manner == "alternating":
            x = self.few[0] * (-1.0) ** t
        elif manner == "few":
            x = self.few[rng.integers(2)]
        elif manner == "crowd":
            x = np.r_[1.0, 10.0 ** rng.uniform(-3, 0, n - 1)]
        elif manner == "zeros":
            x = np.zeros(n)
        else:
            x = rng.normal(size=n) * rng.choice([0.0, 1.0], size=n, p=[0.2, 0.8]) * rng.choice([1e-3, 1.0, 1.0, 30.0])
        return np.abs(x) if self.positive else x


def target(rng, loss, a, a_u):
    """A target on the far side of the comparator, a random one, or that of the comparator."""
    far = np.sign(a_u - a) or 1.0
    if isinstance(loss, LogisticLoss | HingeLoss):
        y = rng.choice([-far if rng.uniform() < 0.2 else (-1.0 if a > 0 else 1.0), rng.choice([-1.0, 1.0])])
        return (y + 1) / 2 if isinstance(loss, LogisticLoss) else y
    return a_u + rng.choice([0.0, far, 30.0 * far, 0.1 * rng.normal(), 3.0 * rng.normal()])


def learn(
    rng, model, loss, u, b, n_rows, *, weights, positive=False, row_size=None, limit=np.inf, more=None, rates=None
):
    """Let a linear model learn such a stream; rows of at most the size 1 by `row_size`, targets within the limit.

    The list `rates` receives that of each row, as the model tracks it. An explicit step that leaves the domain ends the
    stream before it.
    """
    rows, X, y = Rows(rng, len(u), positive=positive), np.zeros((n_rows, len(u))), np.zeros(n_rows)
    w, intercept = np.zeros(len(u)), 0.0
    for t in range(n_rows):
        x = rows.next(t, w, u)
        size = row_size(x) if row_size is not None else 0.0
        X[t] = x / size if size > 0 and (size > 1 or rng.uniform() < 0.5) else x
        y[t] = np.clip(target(rng, loss, X[t] @ w + intercept, X[t] @ u + b), -limit, limit)
        if positive:
            y[t] = abs(y[t])
        try:
            model.partial_fit(X[t : t + 1], y[t : t + 1], sample_weight=weights[t : t + 1], **(more or {}))
        except ValueError as error:
            if t == 0 or "the step" not in str(error):
                raise
            return X[:t], y[:t], weights[:t]
        more = None  # the labels are known
        w, intercept = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
        if rates is not None:
            rates.append(model._learner.tracked_rates[1])
    return X, y, weights
