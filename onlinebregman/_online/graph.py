"""Graphs of ONNX, in its operators of version 18, whose tensors take NumPy's functions as arrays do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from scipy.special import expit, log_expit

from .containers import needed
from .types import Values

OPSET, IR_VERSION = 18, 8

Output = tuple[Values, Any, list]  # a tensor, its dtype, and its shape after the first axis


class Graph:
    """Nodes and constants that are added one by one, for the rows X.

    Parameters
    ----------
    dtype : {"float64", "float32"}
        Of all numbers with fractions.
    """

    def __init__(self, dtype: str) -> None:
        self.onnx = needed("onnx", "to_onnx", "onnx")
        if dtype not in ("float64", "float32"):
            raise ValueError(f"dtype must be 'float64' or 'float32'; got {dtype!r}.")
        self.dtype = np.dtype(dtype)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.rows: Values = Tensor(self, "X")

    def constant(self, values: Any, dtype: Any = None) -> Values:
        """A constant, of the dtype of the graph unless another is given if it has fractions."""
        array, name = np.asarray(values), f"constant_{len(self.constants)}"
        if array.dtype.kind == "f":
            array = array.astype(dtype or self.dtype)
        elif array.dtype.kind == "U":
            array = array.astype(object)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return Tensor(self, name)

    def add(self, operator: str, *inputs: Any, **attributes: Any) -> Values:
        """What an operator gives for tensors, which may be constants."""
        names = [(each if isinstance(each, Tensor) else self.constant(each)).name for each in inputs]
        output = f"{operator}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, names, [output], **attributes))
        return Tensor(self, output)

    def model(self, n_features: int, **outputs: Output) -> Any:
        """The model with these outputs, by name."""
        helper = self.onnx.helper

        def described(name: str, dtype: Any, shape: list) -> Any:
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), ["n", *shape])

        infos = []
        for name, (tensor, kind, shape) in outputs.items():
            self.nodes.append(helper.make_node("Identity", [tensor.name], [name]))
            infos.append(described(name, kind, shape))
        given = [described("X", self.dtype, [n_features])]
        graph = helper.make_graph(self.nodes, "onlinebregman", given, infos, self.constants)
        opset = helper.make_opsetid("", OPSET)
        made = helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="onlinebregman")
        self.onnx.checker.check_model(made)
        return made


class Tensor(NDArrayOperatorsMixin):
    """A tensor of a graph, where NumPy's functions of it are nodes: a formula for arrays is one for graphs as well.

    Numbers beside tensors of fractions must have fractions, too.
    """

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name, self.dtype = graph, name, graph.dtype

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any) -> Values:
        if ufunc is expit:  # not Sigmoid, whose small values onnxruntime computes as 1 - (1 - p), with fewer digits
            return self.graph.add("Reciprocal", np.exp(-self) + 1.0)
        if ufunc is log_expit:
            return np.log(np.maximum(expit(self), np.finfo(self.dtype).tiny))
        return self.graph.add(OPERATORS[ufunc], *inputs)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: dict[str, Any]) -> Values:
        return FUNCTIONS[function](self.graph, *arguments, **options)

    def sum(self, axis: int, keepdims: bool = False) -> Values:
        return self.graph.add("ReduceSum", self, np.array([axis]), keepdims=int(keepdims))

    def max(self, axis: int, keepdims: bool = False) -> Values:
        return self.graph.add("ReduceMax", self, np.array([axis]), keepdims=int(keepdims))

    def astype(self, dtype: Any) -> Values:
        return self.graph.add("Cast", self, to=self.graph.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


OPERATORS: dict[np.ufunc, str] = {
    np.add: "Add",
    np.subtract: "Sub",
    np.multiply: "Mul",
    np.divide: "Div",
    np.negative: "Neg",
    np.matmul: "MatMul",
    np.maximum: "Max",
    np.minimum: "Min",
    np.exp: "Exp",
    np.log: "Log",
    np.sqrt: "Sqrt",
    np.cos: "Cos",
    np.isnan: "IsNaN",
    np.less: "Less",
    np.greater: "Greater",
    np.greater_equal: "GreaterOrEqual",
    np.equal: "Equal",
    np.bitwise_and: "And",
}
FUNCTIONS: dict[Any, Callable] = {
    np.where: lambda graph, condition, a, b: graph.add("Where", condition, a, b),
    np.concatenate: lambda graph, parts, axis: graph.add("Concat", *parts, axis=axis),
    np.expand_dims: lambda graph, a, axis: graph.add("Unsqueeze", a, np.array([axis])),
    np.squeeze: lambda graph, a, axis: graph.add("Squeeze", a, np.array([axis])),
    np.take: lambda graph, a, places, axis: graph.add("Gather", a, np.asarray(places), axis=axis),
}
