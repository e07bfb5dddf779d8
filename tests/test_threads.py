"""BLAS has one thread where more would make it slower, and as many as before afterwards."""

import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from onlinebregman._online.threads import few_threads


def threads():
    return [library["num_threads"] for library in ThreadpoolController().select(user_api="blas").info()]


def test_small_matrices_have_one_thread():
    with threadpool_limits(2):
        before = threads()
        with few_threads(400):
            assert threads() == before
        with few_threads(399):
            assert set(threads()) <= {1}
            with few_threads(10):
                assert set(threads()) <= {1}
            assert set(threads()) <= {1}
        assert threads() == before
        with pytest.raises(ZeroDivisionError), few_threads(10):
            raise ZeroDivisionError
        assert threads() == before
