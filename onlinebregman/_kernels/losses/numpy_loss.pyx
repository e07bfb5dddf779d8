"""Any `Loss` object as a compiled loss, which calls its NumPy methods, at the speed of Python."""

import numpy as np

from libc.math cimport INFINITY, NAN, isfinite

from onlinebregman._kernels.losses.loss cimport Edge, Loss


cdef class NumPyLoss(Loss):
    """A loss computed by the methods of a `Loss` object."""

    cdef readonly object definition

    def __cinit__(self, definition):
        self.definition, self.kinked = definition, definition._kinked

    def _arguments(self):
        return (self.definition,)

    cdef double call(self, str method, tuple arguments) noexcept:
        if self.interrupt is not None:
            return NAN  # so that the loop ends
        try:
            return getattr(self.definition, method)(*arguments)
        except (ArithmeticError, ValueError):
            return NAN  # there is no such number, as where `math.exp` overflows at a trial step
        except BaseException as error:
            self.interrupt = error
            return NAN

    cdef double value(self, double a, double y) noexcept nogil:
        with gil:
            return self.call("value", (a, y))

    cdef double derivative(self, double a, double y) noexcept nogil:
        with gil:
            return self.call("derivative", (a, y))

    cdef bint next_edge(self, double a, double y, Edge* edge) noexcept nogil:
        with gil:
            try:
                return self._next_edge(a, y, edge)
            except (ArithmeticError, ValueError):  # then no step is found, and the row is refused
                pass
            except BaseException as error:
                self.interrupt = error
            edge.near = NAN
            return True

    cdef bint _next_edge(self, double a, double y, Edge* edge) except -1:
        edges = np.concatenate([np.ravel(self.definition.kinks(y)), np.ravel(self.definition.bends(y))])
        upwards = self.definition.derivative(a, y) < 0
        ahead = edges[edges >= a] if upwards else edges[edges <= a]
        if ahead.size == 0:
            return False
        edge.score = ahead.min() if upwards else ahead.max()
        left, right = self.definition.subdifferential(edge.score, y)
        edge.near, edge.far = (left, right) if upwards else (right, left)
        return True

    cdef double kink(self, double a, double y) noexcept nogil:
        with gil:
            return self.call("_nearest_kink", (a, y))

    cdef double slope_at_kink(self, double kink, double y) noexcept nogil:
        with gil:
            return self.call("_slope_at_kink", (kink, y))

    cdef double link(self, double a) noexcept nogil:
        if not isfinite(a):  # there is no prediction
            return NAN
        with gil:
            return self.call("link", (a,))

    cdef double curvature(self, double a, double y) noexcept nogil:
        with gil:
            return self.call("curvature", (a, y))

    cdef double self_concordance(self, double a) noexcept nogil:
        return INFINITY

    cdef bint admits(self, double y) noexcept nogil:
        with gil:
            try:
                self.definition.check_target(y)
            except ValueError:
                return False
            except BaseException as error:
                self.interrupt = error
                return False
            return True
