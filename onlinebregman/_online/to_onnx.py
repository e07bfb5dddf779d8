"""Fitted models as graphs of ONNX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import is_classifier, is_outlier_detector

from ..losses import Loss
from .graph import Graph, Output
from .mixing import MixedClasses, MixedNumbers
from .scores import Scores, Thresholds, clipped, link_of
from .types import Values
from .weights import check_one_output


def linear(model: Any, dtype: str) -> Any:
    """A linear model: its scores, then predictions or labels and probabilities."""
    graph, form = Graph(dtype), model._scores()
    scores = scores_of(graph, form)
    if is_classifier(model):
        of_two = len(form.coef) < len(model.classes_)  # one score for two classes
        return _classified(graph, model, scores, of_two, _probabilities(graph, model, scores, of_two))
    if is_outlier_detector(model):
        scores = np.squeeze(scores, axis=1)
        inside = np.where(scores >= 0.0, np.array(1), np.array(-1))
        outputs: dict[str, Output] = {"label": (inside, np.int64, []), "scores": (scores, graph.dtype, [])}
        return graph.model(model.n_features_in_, **outputs)
    prediction = linked(model._learned_loss, scores)
    if np.ndim(model.intercept_) == 0:
        prediction = np.squeeze(prediction, axis=1)
    outputs = {"prediction": (prediction, graph.dtype, [len(form.coef)] * np.ndim(model.intercept_))}
    return graph.model(model.n_features_in_, **outputs)


def mixture(model: Any, dtype: str) -> Any:
    """A parameter-free mixture."""
    check_one_output(model, ValueError)
    graph, mixer, v = Graph(dtype), model._fitted_mixer(), model.weights_
    members = [scores_of(graph, each._scores()) for each in model.estimators_]
    if is_classifier(model):
        scores = np.concatenate([np.expand_dims(each, 1) for each in members], axis=1)
        slopes, offsets = mixer.scaling[..., np.newaxis]
        p = np.squeeze(MixedClasses(mixer, v, scores * slopes + offsets).prediction, axis=1)
        number = graph.add("ArgMax", p, axis=1, keepdims=0)
        outputs = {"label": label(graph, model, number), "probabilities": (p, graph.dtype, [len(model.classes_)])}
        return graph.model(model.n_features_in_, **outputs)
    mixed = MixedNumbers(mixer, v, np.concatenate(members, axis=1))
    prediction = np.squeeze(linked(model._learned_loss, mixed.prediction + mixed.origin), axis=1)
    return graph.model(model.n_features_in_, prediction=(prediction, graph.dtype, []))


def linked(loss: Loss, scores: Values) -> Values:
    """The link of a loss, applied to scores."""
    links: dict[str | None, Callable] = {"identity": lambda a: a, "sigmoid": expit, "exp": np.exp}
    link = link_of(loss)
    if link not in links:
        raise ValueError(f"The link of {loss!r} has no form in ONNX.")
    return links[link](scores)


def scores_of(graph: Graph, scores: Scores) -> Values:
    """The `Scores` of the rows."""
    rows = graph.rows
    if scores.thresholds is not None:
        weights = graph.add("Gather", scores.coef.T, _indicators(graph, scores.thresholds), axis=0)
        return weights.sum(axis=1) + scores.intercept
    if scores.missing is not None:
        ones = np.take(np.where(np.isnan(rows), 1.0, 0.0), np.maximum(scores.missing, 0), axis=1)
        rows = np.concatenate([rows, ones * np.where(scores.missing < 0, 0.0, 1.0)], axis=1)
    return scores.of_rows(rows)


def _indicators(graph: Graph, thresholds: Thresholds) -> Values:
    """The numbers of the indicators that are 1, in the order of `ThresholdMap`."""
    cells = np.expand_dims(graph.rows, 2)
    bins, indicators, start, width = [], [], 0, sum(lower.shape[1] + 1 for lower in thresholds.lower)
    for lower, number, different in zip(thresholds.lower, thresholds.number, thresholds.different.T, strict=True):
        d, size = lower.shape
        reached = (cells >= lower).astype(np.int64).sum(axis=2)
        place = np.maximum(reached, np.array(1)) - np.array(1)
        known = graph.add("Gather", number.ravel(), place + size * np.arange(d), axis=0)
        is_new = ((cells == lower).astype(np.int64).max(axis=2) == np.array(0)) & (different < size)
        of_rows = np.where(is_new, different.astype(np.int64), known)
        bins.append(np.where(np.isnan(graph.rows), np.array(size), of_rows))
        if thresholds.singles:
            indicators.append(bins[-1] + (start + width * np.arange(d)))
        start += size + 1
    sizes, start = [lower.shape[1] + 1 for lower in thresholds.lower[:-1]], width * d * thresholds.singles
    of_pair = sum(size**2 for size in sizes)
    for size, values in zip(sizes if len(thresholds.pairs) else [], bins, strict=False):
        left, right = (np.take(values, side, axis=1) for side in thresholds.pairs.T)
        indicators.append(left * np.array(size) + right + (start + of_pair * np.arange(len(thresholds.pairs))))
        start += size**2
    if thresholds.trees is not None and len(thresholds.trees[0]):
        indicators.append(_leaves(graph, *thresholds.trees) + np.array(start))
    return np.concatenate(indicators, axis=1)


def _leaves(graph: Graph, columns: np.ndarray, cuts: np.ndarray) -> Values:
    """The leaves of rows in trees of so many nodes, numbered over all trees."""
    n_trees, n_nodes = columns.shape
    roots = n_nodes * np.arange(n_trees)
    node: Any = graph.constant(np.zeros((1, n_trees), np.int64))
    for level in range(n_nodes.bit_length()):
        at = node + roots
        x = np.take(graph.rows, columns[:, 0], axis=1)
        if level > 0:
            places = graph.add("Gather", columns.ravel(), at, axis=0)
            x = graph.add("GatherElements", graph.rows, places, axis=1)
        less = x < graph.add("Gather", cuts.ravel(), at, axis=0)
        node = node * np.array(2) + np.where(less, np.array(1), np.array(2))
    return node + ((n_nodes + 1) * np.arange(n_trees) - n_nodes)


def _probabilities(graph: Graph, model: Any, scores: Values, of_two: bool) -> Values | None:
    """Probabilities of the classes, by a score for each or by one for two; None of losses without."""
    softmax, several = model._link == "softmax", model._multilabel
    if softmax and not several:
        return _of_both(expit, scores) if of_two else graph.add("Softmax", scores, axis=1)
    links: dict[str | None, Callable] = {"sigmoid": expit, "clip": lambda h: 0.5 * (clipped(h, -1.0, 1.0) + 1.0)}
    link = links.get("sigmoid" if softmax else link_of(model._learned_loss))
    if link is None:
        if model._learned_loss.probabilistic:
            raise ValueError(f"The probabilities of {model._learned_loss!r} have no form in ONNX.")
        return None
    if several:
        return link(scores)
    if of_two:
        return _of_both(link, scores)
    p = link(scores)
    total = p.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, p / total, 1 / len(model.classes_))


def _of_both(probability: Callable[[Values], Values], score: Values) -> Values:
    """Probabilities of two classes from the score of the second."""
    return np.concatenate([probability(-score), probability(score)], axis=1)


def _classified(graph: Graph, model: Any, scores: Values, of_two: bool, probabilities: Values | None) -> Any:
    """The model with the label of the largest score, the scores, and the probabilities, if any."""
    n_classes, several = len(model.classes_), model._multilabel
    if n_classes == 2 and not of_two and not several:
        scores, of_two = scores @ np.array([[-1.0], [1.0]]), True
    scores = np.squeeze(scores, axis=1) if of_two else scores
    above = (scores > 0.0).astype(np.int64)
    if several:
        found = above, np.int64, [n_classes]
    else:
        found = label(graph, model, above if of_two else graph.add("ArgMax", scores, axis=1, keepdims=0))
    outputs: dict[str, Output] = {"label": found, "scores": (scores, graph.dtype, [] if of_two else [n_classes])}
    if probabilities is not None:
        outputs["probabilities"] = (probabilities, graph.dtype, [n_classes])
    return graph.model(model.n_features_in_, **outputs)


def label(graph: Graph, model: Any, number: Values) -> Output:
    """The output of the labels of these numbers."""
    classes = model.classes_
    labels = graph.constant(classes, classes.dtype)
    return graph.add("Gather", labels, number), classes.dtype if classes.dtype.kind in "biuf" else object, []
