"""Fitted models as graphs of ONNX, in its operators of version 18."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector

from ..losses import Loss
from .scores import Scores, Thresholds, link_of

OPSET, IR_VERSION = 18, 8

Output = tuple[str, Any, list]  # a tensor, its dtype, and its shape after the first axis


class Graph:
    """Nodes and constants that are added one by one; tensors are known by their names.

    Parameters
    ----------
    dtype : {"float64", "float32"}
        Of all numbers with fractions.
    """

    def __init__(self, dtype: str) -> None:
        try:
            import onnx.helper
            import onnx.numpy_helper
        except ImportError as error:
            raise ImportError('to_onnx requires the package onnx: pip install "onlinebregman[onnx]"') from error
        if dtype not in ("float64", "float32"):
            raise ValueError(f"dtype must be 'float64' or 'float32'; got {dtype!r}.")
        self.onnx, self.dtype = onnx, np.dtype(dtype)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Any, dtype: Any = None) -> str:
        """The name of a constant, of the dtype of the graph unless another is given if it has fractions."""
        array, name = np.asarray(values), f"constant_{len(self.constants)}"
        if array.dtype.kind == "f":
            array = array.astype(dtype or self.dtype)
        elif array.dtype.kind == "U":
            array = array.astype(object)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: Any, **attributes: Any) -> str:
        """The name of what an operator gives for tensors, given by their names or as constants."""
        names = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        output = f"{operator}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, names, [output], **attributes))
        return output

    def clip(self, values: str, low: Any, high: Any) -> str:
        """Values, moved into an interval."""
        return self.add("Max", self.add("Min", values, high), low)

    def sum_of(self, operator: str, *tensors: str) -> str:
        """Of the values of each row, as a column."""
        return self.add(operator, *tensors, np.array([1]), keepdims=1)

    def model(self, n_features: int, **outputs: Output) -> Any:
        """The model with these outputs, by name."""
        helper = self.onnx.helper

        def described(name: str, dtype: Any, shape: list) -> Any:
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), ["n", *shape])

        infos = []
        for name, (tensor, kind, shape) in outputs.items():
            self.nodes.append(helper.make_node("Identity", [tensor], [name]))
            infos.append(described(name, kind, shape))
        given = [described("X", self.dtype, [n_features])]
        graph = helper.make_graph(self.nodes, "onlinebregman", given, infos, self.constants)
        opset = helper.make_opsetid("", OPSET)
        made = helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="onlinebregman")
        self.onnx.checker.check_model(made)
        return made


def linear(model: Any, dtype: str) -> Any:
    """A linear model: its scores, then predictions or labels and probabilities."""
    graph, form = Graph(dtype), model._scores()
    tensor = scores_of(graph, form)
    if is_classifier(model):
        links = {"sigmoid": sigmoid, "clip": _clipped}
        several = model._multilabel
        link = ("sigmoid" if several else "softmax") if model._link == "softmax" else link_of(model._learned_loss)
        of_two = len(form.coef) < len(model.classes_)  # one score for two classes
        probabilities = _softmax(graph, tensor, of_two) if link == "softmax" else None
        if link in links:
            n_classes = 0 if of_two else len(model.classes_)
            probabilities = links[link](graph, tensor) if several else _of_each(graph, links[link], tensor, n_classes)
        elif probabilities is None and model._learned_loss.probabilistic:
            raise ValueError(f"The probabilities of {model._learned_loss!r} have no form in ONNX.")
        return _classified(graph, model, tensor, of_two, probabilities)
    if is_outlier_detector(model):
        scores = flat(graph, tensor)
        inside = graph.add("Where", graph.add("GreaterOrEqual", scores, 0.0), np.array(1), np.array(-1))
        outputs: dict[str, Output] = {"label": (inside, np.int64, []), "scores": (scores, graph.dtype, [])}
        return graph.model(model.n_features_in_, **outputs)
    prediction = linked(graph, model._learned_loss, tensor)
    if np.ndim(model.intercept_) == 0:
        prediction = flat(graph, prediction)
    outputs = {"prediction": (prediction, graph.dtype, [len(form.coef)] * np.ndim(model.intercept_))}
    return graph.model(model.n_features_in_, **outputs)


def linked(graph: Graph, loss: Loss, scores: str) -> str:
    """The link of a loss, applied to scores."""
    link = link_of(loss)
    if link == "sigmoid":
        return sigmoid(graph, scores)
    nodes = {"identity": "Identity", "exp": "Exp"}
    if link not in nodes:
        raise ValueError(f"The link of {loss!r} has no form in ONNX.")
    return graph.add(nodes[link], scores)


def scores_of(graph: Graph, scores: Scores, z: str = "X") -> str:
    """Nodes of `Scores`, step by step, for the rows z."""
    if scores.thresholds is not None:
        weights = graph.add("Gather", scores.coef.T, _indicators(graph, scores.thresholds, z), axis=0)
        return graph.add("Add", graph.add("ReduceSum", weights, np.array([1]), keepdims=0), scores.intercept)
    if scores.allow_nan and scores.mean is not None:
        missing, columns = graph.add("IsNaN", z), np.zeros(0, int) if scores.missing is None else scores.missing
        z = graph.add("Where", missing, scores.mean[: len(scores.mean) - len(columns)], z)
        if len(columns):
            ones = graph.add("Gather", graph.add("Where", missing, 1.0, 0.0), np.maximum(columns, 0), axis=1)
            z = graph.add("Concat", z, graph.add("Mul", ones, np.where(columns < 0, 0.0, 1.0)), axis=1)
    if scores.mean is not None:
        z = graph.add("Sub", z, scores.mean)
    if scores.inverse is not None:
        z = graph.add("Mul", z, scores.inverse)
    if scores.limit is not None:
        z = graph.clip(z, -scores.limit, scores.limit)
    if scores.rescaled is not None:
        square, sums = scores.rescaled[0] ** 2, scores.rescaled[1]
        z = z if sums.ndim == 1 else graph.add("Unsqueeze", z, np.array([1]))
        divisor = graph.add("Add", graph.add("Max", graph.add("Mul", z, z), square), square * sums)
        z = graph.add("Mul", z, graph.add("Div", square * (1 + sums), divisor))
        if sums.ndim == 2:
            total = graph.add("ReduceSum", graph.add("Mul", z, scores.coef), np.array([2]), keepdims=0)
            return graph.add("Add", total, scores.intercept)
    if scores.features is not None:
        frequencies, phases = scores.features
        z = graph.add("Cos", graph.add("Add", graph.add("MatMul", z, frequencies.T), phases))
        z = graph.add("Mul", z, np.sqrt(2 / len(phases)))
    if scores.center is not None:
        z = graph.add("Sub", z, scores.center)
    a = graph.add("Add", graph.add("MatMul", z, scores.coef.T), scores.intercept)
    if scores.root is None:
        return a
    root, n = scores.root, scores.coef.shape[1]
    image = graph.add("Add", graph.add("MatMul", z, root[:, :n].T), root[:, n:].sum(axis=1))
    a = graph.add("Div", a, graph.add("Add", graph.sum_of("ReduceSumSquare", image), 1.0))
    return a if scores.base is None else graph.add("Add", a, scores.base)


def _indicators(graph: Graph, thresholds: Thresholds, rows: str) -> str:
    """The numbers of the indicators that are 1, in the order of `ThresholdMap`."""
    cells = graph.add("Unsqueeze", rows, np.array([2]))
    bins, indicators, start, width = [], [], 0, sum(lower.shape[1] + 1 for lower in thresholds.lower)
    for lower, number, different in zip(thresholds.lower, thresholds.number, thresholds.different.T, strict=True):
        d, size = lower.shape
        reached = graph.add("Cast", graph.add("GreaterOrEqual", cells, lower), to=graph.onnx.TensorProto.INT64)
        place = graph.add("ReduceSum", reached, np.array([2]), keepdims=0)
        place = graph.add("Sub", graph.add("Max", place, np.array(1)), np.array(1))
        known = graph.add("Gather", number.ravel(), graph.add("Add", place, size * np.arange(d)), axis=0)
        equal = graph.add("Cast", graph.add("Equal", cells, lower), to=graph.onnx.TensorProto.INT64)
        equal = graph.add("ReduceMax", equal, np.array([2]), keepdims=0)
        is_new = graph.add("And", graph.add("Equal", equal, np.array(0)), different < size)
        bins.append(graph.add("Where", is_new, different.astype(np.int64), known))
        bins[-1] = graph.add("Where", graph.add("IsNaN", rows), np.array(size), bins[-1])
        if thresholds.singles:
            indicators.append(graph.add("Add", bins[-1], start + width * np.arange(d)))
        start += size + 1
    sizes, start = [lower.shape[1] + 1 for lower in thresholds.lower[:-1]], width * d * thresholds.singles
    of_pair = sum(size**2 for size in sizes)
    for size, values in zip(sizes if len(thresholds.pairs) else [], bins, strict=False):
        left, right = (graph.add("Gather", values, side, axis=1) for side in thresholds.pairs.T)
        inside = graph.add("Add", graph.add("Mul", left, np.array(size)), right)
        indicators.append(graph.add("Add", inside, start + of_pair * np.arange(len(thresholds.pairs))))
        start += size**2
    if thresholds.trees is not None and len(thresholds.trees[0]):
        indicators.append(graph.add("Add", _leaves(graph, *thresholds.trees, rows), np.array(start)))
    return graph.add("Concat", *indicators, axis=1)


def _leaves(graph: Graph, columns: np.ndarray, cuts: np.ndarray, rows: str) -> str:
    """The leaves of rows in trees of so many nodes, numbered over all trees."""
    n_trees, n_nodes = columns.shape
    roots = n_nodes * np.arange(n_trees)
    node: Any = np.zeros((1, n_trees), np.int64)
    for level in range(n_nodes.bit_length()):
        at = graph.add("Add", node, roots)
        x = graph.add("Gather", rows, columns[:, 0], axis=1)
        if level > 0:
            x = graph.add("GatherElements", rows, graph.add("Gather", columns.ravel(), at, axis=0), axis=1)
        less = graph.add("Less", x, graph.add("Gather", cuts.ravel(), at, axis=0))
        child = graph.add("Where", less, np.array(1), np.array(2))
        node = graph.add("Add", graph.add("Mul", node, np.array(2)), child)
    return graph.add("Add", node, (n_nodes + 1) * np.arange(n_trees) - n_nodes)


def flat(graph: Graph, column: str) -> str:
    return graph.add("Squeeze", column, np.array([1]))


def sigmoid(graph: Graph, scores: str) -> str:
    """Not the operator, by which onnxruntime computes small values as 1 - (1 - p), so that shares of them are lost."""
    return graph.add("Reciprocal", graph.add("Add", graph.add("Exp", graph.add("Neg", scores)), 1.0))


def _clipped(graph: Graph, scores: str) -> str:
    """(h + 1) / 2 of the score h clipped to [-1, 1]."""
    return graph.add("Mul", graph.add("Add", graph.clip(scores, -1.0, 1.0), 1.0), 0.5)


def of_both(graph: Graph, probability: Any, score: str) -> str:
    """Probabilities of two classes from the score of the second."""
    return graph.add("Concat", probability(graph, graph.add("Neg", score)), probability(graph, score), axis=1)


def _of_each(graph: Graph, probability: Any, scores: str, n_classes: int) -> str:
    """Probabilities by one score per class, divided by their sum; of 0 classes: those of two by one score."""
    if n_classes == 0:
        return of_both(graph, probability, scores)
    p = probability(graph, scores)
    total = graph.sum_of("ReduceSum", p)
    return graph.add("Where", graph.add("Greater", total, 0.0), graph.add("Div", p, total), 1 / n_classes)


def _softmax(graph: Graph, scores: str, of_two: bool) -> str:
    return of_both(graph, sigmoid, scores) if of_two else graph.add("Softmax", scores, axis=1)


def _classified(graph: Graph, model: Any, scores: str, of_two: bool, probabilities: str | None) -> Any:
    """The model with the label of the largest score, the scores, and the probabilities, if any."""
    n_classes, several = len(model.classes_), model._multilabel
    if n_classes == 2 and not of_two and not several:
        scores, of_two = graph.add("MatMul", scores, np.array([[-1.0], [1.0]])), True
    scores = flat(graph, scores) if of_two else scores
    if several or of_two:
        number = graph.add("Cast", graph.add("Greater", scores, 0.0), to=graph.onnx.TensorProto.INT64)
    else:
        number = graph.add("ArgMax", scores, axis=1, keepdims=0)
    found = (number, np.int64, [n_classes]) if several else label(graph, model, number)
    outputs: dict[str, Output] = {"label": found, "scores": (scores, graph.dtype, [] if of_two else [n_classes])}
    if probabilities is not None:
        outputs["probabilities"] = (probabilities, graph.dtype, [n_classes])
    return graph.model(model.n_features_in_, **outputs)


def label(graph: Graph, model: Any, number: str) -> Output:
    """The output of the labels of these numbers."""
    classes = model.classes_
    labels = graph.constant(classes, classes.dtype)
    return graph.add("Gather", labels, number), classes.dtype if classes.dtype.kind in "biuf" else object, []
