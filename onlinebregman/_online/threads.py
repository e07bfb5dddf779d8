"""How many threads BLAS may use: for small matrices more than one make it slower."""

from __future__ import annotations

from functools import cache

from threadpoolctl import ThreadpoolController

_PAY_FROM = 400  # rows; below, more threads make an eigendecomposition slower


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def few_threads(d: int):
    """Context in which BLAS has one thread, if matrices of d rows are too small for more."""
    return _controller().limit(limits=1 if d < _PAY_FROM else None, user_api="blas")
