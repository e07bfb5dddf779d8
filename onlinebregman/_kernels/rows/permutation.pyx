"""Orders of rows for shuffled epochs."""

import numpy as np

from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from onlinebregman._kernels.ops.mt19937 cimport ob_shuffle, ob_twister


def permutation(rng, rows):
    """`rng.permutation(rows)`, bit for bit and in the same state afterwards, in a quarter of the time for many rows.

    Of few rows it is made by `rng` itself: the state of a generator is read and set in the time of about 10,000 rows.

    Parameters
    ----------
    rng : RandomState
    rows : int or ndarray of intp of shape (n,)
    """
    cdef ob_twister twister
    cdef uint32_t[::1] key
    cdef Py_ssize_t[::1] order
    n = rows if isinstance(rows, int) else len(rows)
    if not 1 << 14 <= n <= 1 << 32:
        return rng.permutation(rows)
    state = rng.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        return rng.permutation(rows)
    permuted = np.arange(n, dtype=np.intp) if isinstance(rows, int) else np.array(rows, dtype=np.intp)
    words = state["state"]
    key, order, twister.pos = words["key"], permuted, words["pos"]
    memcpy(twister.key, &key[0], sizeof(twister.key))
    with nogil:
        ob_shuffle(&twister, &order[0], order.shape[0])
        memcpy(&key[0], twister.key, sizeof(twister.key))
    words["pos"] = twister.pos
    rng.set_state(state)
    return permuted
