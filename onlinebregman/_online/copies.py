"""Copies of models that go on learning."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Self


class OwnCopyMixin:
    """`copy.copy` gives a model of its own: it shares the parameters, and nothing that learning moves.

    What an estimator has learned is changed in place. A copy that shared a part of it, as Python's default does, would
    learn the rows of both, and go by counts and bounds of one.
    """

    get_params: Callable[..., dict[str, Any]]

    def __copy__(self) -> Self:
        attributes, names = vars(self), self.get_params(deep=False)
        shared = {id(value): value for name, value in attributes.items() if name in names or name == "_skl_callbacks"}
        copied = type(self).__new__(type(self))
        vars(copied).update(copy.deepcopy(dict(attributes), shared))
        return copied
