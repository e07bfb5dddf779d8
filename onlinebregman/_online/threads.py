"""Numbers of threads: checks of `n_jobs`, and a limit for BLAS, which is slower with several on small matrices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

_PAY_FROM = 400  # number of rows from which several threads make an eigendecomposition faster


@cache
def _libraries() -> list:
    """The BLAS libraries that are loaded."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


@contextmanager
def few_threads(d: int) -> Iterator[None]:
    """Context in which BLAS uses one thread if matrices of d rows are too small for more.

    It does the same as a limit of threadpoolctl, in a tenth of the time.
    """
    libraries = _libraries() if d < _PAY_FROM else ()
    before = [(library, n) for library in libraries if (n := library.get_num_threads() or 1) > 1]
    try:
        for library, _ in before:
            library.set_num_threads(1)
        yield
    finally:
        for library, n in before:
            library.set_num_threads(n)
