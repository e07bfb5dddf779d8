"""Copies of models that continue to learn."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Self


class OwnCopyMixin:
    """`copy.copy` gives an independent model: it shares the parameters, but no object that learning changes.

    Learning changes fitted objects in place. A copy that shared some of them, as Python's default does, would learn the
    rows of both models.
    """

    get_params: Callable[..., dict[str, Any]]

    def __copy__(self) -> Self:
        attributes, names = vars(self), self.get_params(deep=False)
        shared = {id(value): value for name, value in attributes.items() if name in names or name == "_skl_callbacks"}
        copied = type(self).__new__(type(self))
        vars(copied).update(copy.deepcopy(dict(attributes), shared))
        return copied
