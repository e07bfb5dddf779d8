"""The state of learners and geometries: vectors, and numbers that are declared once, from which it follows how they are
undone, copied, pickled and written to model files."""

import numpy as np

from libc.stdlib cimport free, realloc
from libc.string cimport memcpy


def aligned(values, more=0, size=None):
    """A copy aligned to 64 bytes, a cache line and the widest vector register, which can grow by `more` in place.

    With a `size`, zeros follow up to it; pages of them take no time until they are used, even if all values are 0.
    """
    values = np.asarray(values)
    size = values.shape[0] if size is None else size
    buffer = np.zeros(size + more + 8)
    start = -(buffer.ctypes.data // 8) % 8
    if values.view(np.int64).any():  # compared as bits, to preserve -0.0
        buffer[start : start + values.shape[0]] = values
    return buffer[start : start + size]


def vector_of(values, size):
    """A copy of a vector of this size; the arrays of a file may be of any shape."""
    values = np.array(values, dtype=np.float64)
    if values.shape != (size,):
        raise ValueError(f"the arrays of a state must be of shape {(size,)}; got {values.shape}")
    return values


def average_of(weights, total, time, average_over):
    """The average of weights over a number of steps, from their sum up to when they last moved, and the time since."""
    with np.errstate(over="ignore"):
        average = (total + weights * time) / average_over
    if not np.isfinite(average).all():  # a sum of large weights overflows, not their average
        average = total / average_over + weights * (time / average_over)
    return average


cdef class Fields:
    """Parts of an object's memory that keep their addresses: doubles, structs and arrays of them, and integers.

    Parameters
    ----------
    saved : dict, default=None
        A result of `values`, from which fields continue when they are declared.
    """

    def __cinit__(self, dict saved=None):
        self.places, self.saved, self.copies = {}, saved, None

    def __dealloc__(self):
        free(self.each)

    cdef int add(self, str name, void* at, Py_ssize_t size) except -1:
        """Declare `size` bytes, after they have been initialised."""
        cdef Field* each
        if self.n > 0 and self.each[self.n - 1].at + self.each[self.n - 1].size == at:
            self.each[self.n - 1].size += size
            self.each[self.n - 1].changing += size
        else:
            each = <Field*> realloc(self.each, (self.n + 1) * sizeof(Field))
            if each == NULL:
                raise MemoryError()
            self.each = each
            self.each[self.n] = Field(<char*> at, NULL, size, size)
            self.n += 1
        self.size += size
        self.places[name] = self.n - 1, <char*> at - self.each[self.n - 1].at, size
        return 0 if self.saved is None else self.assign(name, self.saved)

    cdef int assign(self, str name, dict saved) except -1:
        """Set a field to its value among those of `values`."""
        cdef const unsigned char[::1] value
        cdef Py_ssize_t k, start, size
        k, start, size = self.places[name]
        value = number_of(name, saved, size)
        memcpy(self.each[k].at + start, &value[0], size)
        return 0

    cdef int expect(self, str name, Py_ssize_t n) except -1:
        """Before n doubles are allocated for a field: check that a value to continue from has this size."""
        if self.saved is not None:
            number_of(name, self.saved, n * <Py_ssize_t> sizeof(double))
        return 0

    cdef int save(self) except -1:
        """Copy what the next call may change."""
        cdef Py_ssize_t k
        if self.n > 0 and self.each[0].before == NULL:
            self.allocate()
        for k in range(self.n):
            memcpy(self.each[k].before, self.each[k].at, self.each[k].changing)
        return 0

    cdef int allocate(self) except -1:
        cdef Py_ssize_t k, start = 0
        self.copies = np.empty(self.size, dtype=np.uint8)
        for k in range(self.n):
            self.each[k].before = <char*> &self.copies[start]
            start += self.each[k].size
        return 0

    cdef void restore(self) noexcept nogil:
        """Undo the changes since `save`."""
        cdef Py_ssize_t k
        for k in range(self.n):
            memcpy(self.each[k].at, self.each[k].before, self.each[k].changing)

    cdef bytes packed(self):
        """All bytes."""
        return b"".join([self.each[k].at[:self.each[k].size] for k in range(self.n)])

    cdef int unpack(self, bytes packed) except -1:
        """Set them."""
        cdef Py_ssize_t k
        cdef const char* source = packed
        for k in range(self.n):
            memcpy(self.each[k].at, source, self.each[k].size)
            source += self.each[k].size
        return 0

    cdef dict values(self):
        """Copies of the fields: as arrays, or a single number as such."""
        cdef Py_ssize_t k, start, size
        cdef char* at
        values = {}
        for name, (k, start, size) in self.places.items():
            at = self.each[k].at + start
            if size == sizeof(double):
                values[name] = (<double*> at)[0]
            else:
                held = np.asarray(<unsigned char[:size]> <unsigned char*> at).view(type_of(size))
                values[name] = held[0] if len(held) == 1 else held.copy()
        return values

    cdef int continue_from(self, dict saved) except -1:
        """Set all fields to a result of `values`."""
        for name in self.places:
            self.assign(name, saved)
        return 0


cdef class Undoable:
    """Base class of the parts of learners."""

    cdef int save(self, Py_ssize_t n_rows) except -1:
        """Save what `restore` restores; the next call has `n_rows` rows."""
        return self.learned.save()

    cdef void restore(self) noexcept:
        """Undo the call."""
        self.learned.restore()


cdef number_of(str name, dict saved, Py_ssize_t size):
    """The bytes of a value among those of `values`; the arrays of a damaged file may be of any kind."""
    if name not in saved:
        raise ValueError(f"the numbers to continue from must contain {name}; got {sorted(saved)}")
    given = saved[name] if isinstance(saved[name], np.ndarray) else np.array(saved[name], dtype=type_of(size))
    if given.nbytes != size:
        raise ValueError(f"{name} must have {size} bytes; got {given.nbytes}")
    if given.dtype != type_of(size) or np.isnan(given).any():
        raise ValueError(f"{name} must be of {type_of(size)} and not NaN; got {given!r}")
    return np.ascontiguousarray(given).reshape(-1).view(np.uint8)


cdef type_of(Py_ssize_t size):
    return np.float64 if size % sizeof(double) == 0 else np.intc
