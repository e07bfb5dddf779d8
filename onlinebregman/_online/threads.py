"""How many threads BLAS may use: for small matrices more than one make it slower."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

_PAY_FROM = 400  # rows; below, more threads make an eigendecomposition slower


@cache
def _libraries() -> list:
    """Those of BLAS that are loaded."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


@contextmanager
def few_threads(d: int) -> Iterator[None]:
    """Context in which BLAS has one thread, if matrices of d rows are too small for more.

    The same as a limit of threadpoolctl, which takes ten times as long.
    """
    limited = [(library, n) for library in _libraries() if d < _PAY_FROM and (n := library.get_num_threads() or 1) > 1]
    for library, _ in limited:
        library.set_num_threads(1)
    try:
        yield
    finally:
        for library, n in limited:
            library.set_num_threads(n)
