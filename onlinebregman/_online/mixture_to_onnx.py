"""Parameter-free mixtures as graphs of ONNX: when they predict, they are models with fixed weights.

See `stacked_mixers.pyx` and `stack.pyx` for the formulas. With s the members' scores and v their weights: in regression
p = clip(s + shift), m = v.p, and m + unit * forward prediction for the features (p - m) / unit; in classification
logits a, p = sum v softmax(a), softmax(log p + coef.(a - log p)), and softmax(coef.softmax(8 a)), of votes. What a
memory says of the next row is constant: all rows are predicted as that one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from .._kernels.learners.stacked_mixers import CONSTANTS
from .scores import Scores
from .side_by_side import check_one_output
from .to_onnx import Graph, Output, flat, label, linked, of_both, scores_of, sigmoid

TINY, FAR, VOTE_POWER, VOTES = CONSTANTS


def mixture(model: Any, dtype: str) -> Any:
    """A parameter-free model."""
    check_one_output(model, ValueError)
    graph = Graph(dtype)
    members = [scores_of(graph, each._scores()) for each in model.estimators_]
    if is_classifier(model):
        p = (_two_classes if model._fitted_mixer().of_two else _many_classes)(graph, model, members)
        number = graph.add("ArgMax", p, axis=1, keepdims=0)
        outputs = {"label": label(graph, model, number), "probabilities": (p, graph.dtype, [len(model.classes_)])}
        return graph.model(model.n_features_in_, **outputs)
    scores = graph.add("Concat", *members, axis=1)
    output: Output = flat(graph, linked(graph, model._learned_loss, _mixed(graph, model, scores))), graph.dtype, []
    return graph.model(model.n_features_in_, prediction=output)


def _column(weights: np.ndarray) -> np.ndarray:
    return weights[:, np.newaxis].copy()


def _mixed(graph: Graph, model: Any, scores: str) -> str:
    mixer = model._fitted_mixer()
    stats, memory, (unit, memory_unit) = mixer.target_stats, mixer.memory, mixer.units
    limits = stats["lo"], stats["hi"]
    p = graph.clip(graph.add("Add", scores, stats["shift"]), *limits)
    m = graph.add("MatMul", p, _column(model.weights_))
    if unit > 0.0:
        m = _combined(graph, mixer.stack, m, graph.add("Div", graph.add("Sub", p, m), unit), unit, limits)
    if memory is not None and memory.knows and memory_unit > 0.0:
        constant, of_m = (each / memory_unit for each in memory.features(stats["origin"]))
        x = graph.add("Add", graph.add("MatMul", m, of_m[np.newaxis]), constant)
        m = _combined(graph, memory.stack, m, x, memory_unit, limits)
    return graph.add("Add", m, stats["origin"])


def _combined(graph: Graph, stack: Any, m: str, x: str, unit: float, limits: tuple[float, float]) -> str:
    """The mixture of a forecast m and its combinations with the features x."""
    u, *others = stack.hedge.weights
    terms = [graph.add("Mul", m, u)]
    for weight, coef, root in zip(others, stack.coef, stack.inverse_roots(), strict=True):
        step = scores_of(graph, Scores(coef[np.newaxis], np.zeros(1), root=root), x)
        combined = graph.clip(graph.add("Add", m, graph.add("Mul", step, unit)), *limits)
        terms.append(graph.add("Mul", combined, weight))
    return graph.add("Sum", *terms)


def _log(graph: Graph, p: str) -> str:
    return graph.add("Log", graph.add("Max", p, max(TINY, float(np.finfo(graph.dtype).tiny))))


def _two_classes(graph: Graph, model: Any, members: list[str]) -> str:
    mixer = model._fitted_mixer()
    slopes, offsets = mixer.scaling
    logits = graph.add("Add", graph.add("Mul", graph.add("Concat", *members, axis=1), slopes), offsets)
    both = [graph.add("MatMul", sigmoid(graph, a), _column(model.weights_)) for a in (graph.add("Neg", logits), logits)]
    p = graph.add("Concat", *both, axis=1)
    if mixer.stack is not None:
        p = _stage_of_two(graph, mixer.stack, p, logits)
    if mixer.memory is not None and mixer.memory.knows:
        p = _stage_of_two(graph, mixer.memory.stack, p, mixer.memory.features()[0].T)
    return p


def _stage_of_two(graph: Graph, stack: Any, p: str, logits: Any) -> str:
    """The mixture of probabilities p of both classes and of the combinations of logits."""
    u, *others = stack.hedge.weights
    log_odds = graph.add("MatMul", _log(graph, p), np.array([[-1.0], [1.0]]))
    x = graph.clip(graph.add("Sub", logits, log_odds), -FAR, FAR)
    terms = [graph.add("Mul", p, u)]
    for j, (weight, coef) in enumerate(zip(others, stack.coef, strict=True)):
        if j == VOTES:
            x = graph.add("Tanh", graph.add("Mul", logits, 0.5 * VOTE_POWER))
        score = graph.add("MatMul", x, _column(coef))
        score = score if j == VOTES else graph.add("Add", log_odds, score)
        terms.append(graph.add("Mul", of_both(graph, sigmoid, score), weight))
    return graph.add("Sum", *terms)


def _many_classes(graph: Graph, model: Any, members: list[str]) -> str:
    """The axes are rows, members and classes."""
    mixer = model._fitted_mixer()
    each = []
    for scores, slope, offset, link in zip(members, *mixer.scaling, mixer.links, strict=True):
        a = graph.add("Add", graph.add("Mul", scores, slope), offset)
        a = a if link == "softmax" else _log(graph, sigmoid(graph, a))
        each.append(graph.add("Unsqueeze", a, np.array([1])))
    logits = graph.add("Concat", *each, axis=1)
    weighted = graph.add("Mul", graph.add("Softmax", logits, axis=2), _column(model.weights_))
    p = graph.sum_of("ReduceSum", weighted)  # of shape (n_samples, 1, n_classes)
    if mixer.stack is not None:
        p = _stage_of_many(graph, mixer.stack, p, logits)
    if mixer.memory is not None and mixer.memory.knows:
        p = _stage_of_many(graph, mixer.memory.stack, p, mixer.memory.features()[0][np.newaxis])
    return flat(graph, p)


def _stage_of_many(graph: Graph, stack: Any, p: str, logits: Any) -> str:
    """The same of three or more."""
    u, *others = stack.hedge.weights
    log_p = graph.add("Sub", _log(graph, p), graph.add("Log", graph.add("ReduceMax", p, np.array([2]))))
    largest = graph.add("ReduceMax", logits, np.array([2]))
    x = graph.clip(graph.add("Sub", graph.add("Sub", logits, largest), log_p), -FAR, FAR)
    terms = [graph.add("Mul", p, u)]
    for j, (weight, coef) in enumerate(zip(others, stack.coef, strict=True)):
        if j == VOTES:
            x = graph.add("Softmax", graph.add("Mul", logits, VOTE_POWER), axis=2)
        scores = graph.sum_of("ReduceSum", graph.add("Mul", x, _column(coef)))
        scores = scores if j == VOTES else graph.add("Add", log_p, scores)
        terms.append(graph.add("Mul", graph.add("Softmax", scores, axis=2), weight))
    return graph.add("Sum", *terms)
