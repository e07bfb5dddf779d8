"""Parameter-free mixtures as graphs of ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from .graph import Graph
from .mixing import MixedClasses, MixedNumbers
from .side_by_side import check_one_output
from .to_onnx import flat, label, linked, scores_of


def mixture(model: Any, dtype: str) -> Any:
    """A parameter-free model."""
    check_one_output(model, ValueError)
    graph, mixer, v = Graph(dtype), model._fitted_mixer(), model.weights_
    members = [scores_of(graph, each._scores()) for each in model.estimators_]
    if is_classifier(model):
        scores = np.concatenate([np.expand_dims(each, 1) for each in members], axis=1)
        slopes, offsets = mixer.scaling[..., np.newaxis]
        p = flat(MixedClasses(mixer, v, scores * slopes + offsets).prediction)
        number = graph.add("ArgMax", p, axis=1, keepdims=0)
        outputs = {"label": label(graph, model, number), "probabilities": (p, graph.dtype, [len(model.classes_)])}
        return graph.model(model.n_features_in_, **outputs)
    mixed = MixedNumbers(mixer, v, np.concatenate(members, axis=1))
    prediction = flat(linked(model._learned_loss, mixed.prediction + mixed.origin))
    return graph.model(model.n_features_in_, prediction=(prediction, graph.dtype, []))
