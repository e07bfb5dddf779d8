"""Predictions of parameter-free mixtures from the scores of their members: the formulas of `stacked_mixers.pyx`.

When they predict, they are models with fixed weights, and what a memory says of the next row is constant: all rows are
predicted as that one. The scores are arrays, or tensors of a `Graph`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_expit

from .._kernels.learners.stacked_mixers import CONSTANTS
from .scores import clipped, forward_divisor
from .types import Values

TINY, FAR, VOTE_POWER, VOTES = CONSTANTS


class Combination(NamedTuple):
    """A linear combination of the experts for numbers, see `stack.pyx`: `forecast` is that of m, plus the step."""

    weight: float
    coef: np.ndarray
    divisor: Values  # of the forward algorithm
    step: Values
    forecast: Values


class MixedNumbers:
    """The mixture of p = clip(scores + shift): m = v.p, then its combinations with p, and those with the memory.

    Predictions are distances from `origin`, and `remembered` is the forecast that the memory corrects.
    """

    def __init__(self, mixer: Any, v: np.ndarray, scores: Values) -> None:
        stats, memory, (unit, memory_unit) = mixer.target_stats, mixer.memory, mixer.units
        self.origin, self.shift, self.limits = stats["origin"], stats["shift"], (stats["lo"], stats["hi"])
        self.p = clipped(scores + self.shift, *self.limits)
        self.m = self.prediction = np.expand_dims(self.p @ v, 1)
        self.combinations, self.corrections = [], []
        if unit > 0:
            self.combinations = self._combined(mixer.stack, (self.p - self.m) / unit, unit)
        self.remembered = self.prediction
        if memory is not None and memory.knows and memory_unit > 0:
            self.constant, self.of_forecast = memory.features(self.origin)
            x = self.constant / memory_unit + self.remembered * (self.of_forecast / memory_unit)
            self.corrections = self._combined(memory.stack, x, memory_unit)

    def _combined(self, stack: Any, x: Values, unit: float) -> list[Combination]:
        """The combinations of a stack with the prediction, which becomes their mixture."""
        u, *others = stack.hedge.weights
        found, forecast = [], self.prediction
        self.prediction = u * forecast
        for weight, coef, root in zip(others, stack.coef, stack.inverse_roots(), strict=True):
            divisor = forward_divisor(x, len(coef), root)
            step = unit * np.expand_dims(x @ coef, 1) / divisor
            found.append(Combination(weight, coef, divisor, step, clipped(forecast + step, *self.limits)))
            self.prediction = self.prediction + weight * found[-1].forecast
        return found


class MixedClasses:
    """The mixture of probabilities p, then of its combinations with the experts, and of those with the memory.

    The axes are rows, experts (of `prediction` a single one) and classes; `scores` are calibrated, one for two classes.
    """

    def __init__(self, mixer: Any, v: np.ndarray, scores: Values) -> None:
        logistic = np.array([link != "softmax" for link in mixer.links])[:, np.newaxis]
        if mixer.of_two:
            self.logits = of_both(scores)
        else:
            self.logits = np.where(logistic, log_expit(scores), scores) if logistic.any() else scores
        self.p = softmax(self.logits)
        self.forecast = self.prediction = v[np.newaxis] @ self.p
        self.stack: Stage | None = None
        self.memory: Stage | None = None
        if mixer.stack is not None:
            self.stack = Stage(mixer.of_two, self.prediction, self.logits, mixer.stack)
            self.prediction = self.stack.prediction
        if mixer.memory is not None and mixer.memory.knows:
            logits = mixer.memory.features()[0][np.newaxis]
            logits = of_both(logits) if mixer.of_two else logits
            self.memory = Stage(mixer.of_two, self.prediction, logits, mixer.memory.stack)
            self.prediction = self.memory.prediction


class Stage:
    """The mixture of a forecast p and of its combinations with experts, with logits a and coefficients b.

    These are softmax(log p + b.(a - log p)), and softmax(b.softmax(8 a)), of votes. The axes of `logits` and of their
    probabilities q are rows, p and its combinations, and classes.
    """

    def __init__(self, of_two: bool, forecast: Values, a: Values, stack: Any) -> None:
        def relative(logits: Values) -> Values:
            """To those of the first of two classes, or to the largest."""
            return logits - (np.take(logits, [0], axis=2) if of_two else logits.max(axis=2, keepdims=True))

        self.a, self.u, self.coef = a, stack.hedge.weights, stack.coef
        log_p = relative(log(forecast))
        self.x = clipped(relative(a) - log_p, -FAR, FAR)
        self.votes = softmax(VOTE_POWER * a)
        parts = [log_p, log_p + self.coef[:VOTES] @ self.x]
        if len(self.coef) > VOTES:
            parts.append(self.coef[VOTES:] @ self.votes)
        self.logits = np.concatenate(parts, axis=1)
        self.q = softmax(self.logits)
        self.prediction = self.u[np.newaxis] @ self.q


def of_both(scores: Values) -> Values:
    """Logits of two classes from the score of the second one."""
    return scores * np.array([0.0, 1.0])


def log(p: Values) -> Values:
    return np.log(np.maximum(p, max(TINY, float(np.finfo(p.dtype).tiny))))


def softmax(a: Values) -> Values:
    p = np.exp(a - a.max(axis=2, keepdims=True))
    return p / p.sum(axis=2, keepdims=True)
