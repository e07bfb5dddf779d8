"""Rows of a stream, taken into a `metric_learning._memory.Reservoir` without the interpreter's lock.

It is asked for once in a while alone: for more random numbers, and where rows that a copy shares are replaced.
"""

import numpy as np

cimport cython
from libc.string cimport memcpy


def remember_rows(memory, uniforms, X, numbers):
    """Take in rows with the numbers of their classes.

    Parameters
    ----------
    memory : Reservoir
    uniforms : Uniforms
    X : ndarray of shape (n_rows, width)
    numbers : ndarray of intp of shape (n_rows,)
    """
    cdef Intake intake = Intake()
    cdef const double[:, ::1] rows = X
    cdef const Py_ssize_t[::1] of_class = numbers
    cdef Py_ssize_t i
    if not intake.open(memory, uniforms, rows.shape[1], of_class) or of_class.shape[0] != rows.shape[0]:
        raise ValueError(f"remembered rows must be of {rows.shape[1]} values, as those to come, and of their classes")
    with nogil:
        for i in range(rows.shape[0]):
            intake.remember(&rows[i, 0], of_class[i])
    intake.close()


@cython.auto_pickle(False)
cdef class Intake:
    """A reservoir, while it takes in rows."""

    cdef bint open(self, memory, uniforms, Py_ssize_t width, const Py_ssize_t[::1] numbers) except -1:
        """Get ready for rows of these classes; False if the memory is not what it says, or they are not the next."""
        cdef Py_ssize_t i, n_classes = len(memory.seen)
        self.uniforms, self.memory = uniforms, memory
        self.width, self.n, self.size = width, len(memory), memory.size
        for i in range(numbers.shape[0]):
            if not 0 <= numbers[i] <= n_classes:
                return False
            n_classes = max(n_classes, numbers[i] + 1)
        self.ahead = uniforms.ahead()
        self.seen = np.array(memory.seen + [0] * (n_classes - len(memory.seen)), dtype=np.intp)
        self.hold_memory()
        return self.counted()

    cdef int close(self) except -1:
        """Leave the reservoir as it has become."""
        cdef Py_ssize_t k
        self.uniforms.skip(self.used)
        self.memory.go_on(self.n, [self.seen[k] for k in range(self.seen.shape[0]) if self.seen[k]])
        return 0

    cdef bint counted(self) except -1:
        """Are as many rows of each class remembered as were seen, up to the most?"""
        cdef Py_ssize_t j, number, n_classes = self.seen.shape[0]
        cdef Py_ssize_t[::1] missing = np.empty(n_classes, dtype=np.intp)
        for number in range(n_classes):
            missing[number] = min(self.seen[number], self.size)
        for j in range(self.n):
            number = self.classes[j]
            if not 0 <= number < n_classes:
                return False
            missing[number] -= 1
        for number in range(n_classes):
            if missing[number] != 0:
                return False
        return True

    cdef int hold_memory(self) except -1:
        self.rows, self.classes, self.shared = self.memory.arrays()
        if self.rows.shape[1] != self.width or not 0 <= self.n <= self.rows.shape[0] == self.classes.shape[0]:
            raise ValueError(f"remembered rows must have {self.width} values each, and a class")
        return 0

    cdef int remember(self, const double* row, Py_ssize_t number) except -1 nogil:
        """Take a row in; see `Reservoir.add`."""
        cdef Py_ssize_t place = self.n, slot
        self.seen[number] += 1
        if self.seen[number] > self.size:
            slot = <Py_ssize_t> (self.uniform() * self.seen[number])
            if slot >= self.size:
                return 0
            place = -1
            while slot >= 0 and place + 1 < self.n:
                place += 1
                slot -= self.classes[place] == number
            if self.shared:
                with gil:
                    self.memory.own()
                    self.hold_memory()
        else:
            if self.n == self.rows.shape[0]:
                with gil:
                    self.memory.grow()
                    self.hold_memory()
                    if self.n >= self.rows.shape[0]:
                        raise ValueError("there must be room for a row more")
            self.n += 1
        memcpy(&self.rows[place, 0], row, self.width * sizeof(double))
        self.classes[place] = number
        return 0

    cdef double uniform(self) except -1.0 nogil:
        """The next number of the generator, from 0 to 1."""
        if self.used == self.ahead.shape[0]:
            with gil:
                self.uniforms.skip(self.used)
                self.ahead, self.used = self.uniforms.more(), 0
        self.used += 1
        if not 0 <= self.ahead[self.used - 1] < 1:
            raise ValueError(f"a random number must be at least 0 and below 1; got {self.ahead[self.used - 1]}")
        return self.ahead[self.used - 1]
