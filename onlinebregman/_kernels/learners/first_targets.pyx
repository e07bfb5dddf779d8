"""The first targets of a stream, among which nobody knows which are the absurd ones.

As more become known their robust scale, see `ops/robust.h`, may shrink to an interval beyond which some that were
learned lie. A model then begins again, as what it has learned is about these.
"""

from libc.math cimport INFINITY

from onlinebregman._kernels.ops.robust cimport OB_FIRST, ob_robust, ob_robust_known, ob_robust_limit
from onlinebregman._kernels.ops.state cimport Stateful

cdef double ENOUGH = 64.0     # targets of which most are equal


cdef class FirstTargets(Stateful):
    """Finds targets that were learned and have turned out to be absurd.

    Parameters
    ----------
    limited : bool
        Whether those that are known to be absurd are learned as others.
    """

    cdef bint limited
    cdef ob_robust scale
    cdef double[2] learned    # the least and the most

    def __cinit__(self, limited=False, state=None):
        self.limited, self.learned = limited, [INFINITY, -INFINITY]
        self.fields.add("scale", &self.scale, sizeof(self.scale))
        self.fields.add("learned", &self.learned, sizeof(self.learned))

    @property
    def over(self):
        """Whether these are no longer the first targets."""
        return self.scale.moves >= OB_FIRST or self.scale.n >= ENOUGH

    def count(self, double y):
        """Count the next target; whether the model must begin again before it learns it."""
        cdef double limit = ob_robust_limit(&self.scale, y), origin = self.scale.origin
        cdef bint absurd = ob_robust_known(&self.scale) and (
            self.learned[0] - origin < self.scale.lo or self.learned[1] - origin > self.scale.hi
        )
        if absurd:
            self.learned[0] = self.learned[1] = origin + self.scale.mean
        y = limit if self.limited else y
        self.learned[0], self.learned[1] = min(self.learned[0], y), max(self.learned[1], y)
        return absurd
