"""The first targets and columns of a stream, of which nobody knows which values are the absurd ones.

As more become known their robust scale, see `ops/robust.h`, may shrink to an interval beyond which some that were
learned lie. A model then begins again, as what it has learned is about these: of targets at once, of columns, where one
value rarely spoils all, when OB_FIRST are known, as those of a few rows may be of one of two kinds.
"""

import numpy as np

from libc.math cimport isfinite

from onlinebregman._kernels.ops.robust cimport OB_FIRST, ob_robust, ob_robust_known, ob_robust_limit
from onlinebregman._kernels.ops.state cimport Stateful

cdef struct Watched:
    ob_robust scale
    double least, most        # that were learned

cdef double ENOUGH = 64.0     # rows, of values of which most are equal


cdef class FirstTargets(Stateful):
    """Finds values that were learned and have turned out to be absurd.

    Parameters
    ----------
    n : int
        Values of a row, at least 1.
    n_limited : int
        The first ones of these, of which those that are known to be absurd are learned as others.
    """

    cdef readonly Py_ssize_t n
    cdef Py_ssize_t n_limited
    cdef double rows
    cdef double[::1] memory   # a `Watched` of each

    def __cinit__(self, n, n_limited, state=None):
        self.n, self.n_limited = n, n_limited
        self.memory = np.zeros(n * sizeof(Watched) // sizeof(double))
        self.fields.add("rows", &self.rows, sizeof(self.rows))
        self.fields.vector("memory", self.memory)

    @property
    def over(self):
        """Whether these are no longer the first ones."""
        cdef Watched* each = <Watched*> &self.memory[0]
        return self.rows >= ENOUGH or all([each[k].scale.moves >= OB_FIRST for k in range(self.n)])

    def count(self, const double[::1] values):
        """Count the values of the next row; whether the model must begin again before it learns them."""
        cdef Watched* each = <Watched*> &self.memory[0]
        cdef double value, origin
        cdef bint due, again = False
        cdef Py_ssize_t k
        if values.shape[0] != self.n:
            raise ValueError(f"a row must have {self.n} values; got {values.shape[0]}")
        self.rows += 1.0
        for k in range(self.n):
            if isfinite(values[k]):
                value, origin = ob_robust_limit(&each[k].scale, values[k]), each[k].scale.origin
                value = value if k < self.n_limited else values[k]
                due = ob_robust_known(&each[k].scale) and (k < self.n_limited or each[k].scale.moves == OB_FIRST)
                if due and (each[k].least - origin < each[k].scale.lo or each[k].most - origin > each[k].scale.hi):
                    each[k].least = each[k].most = origin + each[k].scale.mean
                    again = True
                each[k].least = min(each[k].least, value) if each[k].scale.n > 1 else value
                each[k].most = max(each[k].most, value) if each[k].scale.n > 1 else value
        return again
