"""A learner declares its numbers once; how they are undone, copied, pickled and written to model files follows."""

import numpy as np

from libc.stdlib cimport free, realloc
from libc.string cimport memcpy


cdef class Fields:
    """Parts of an object's memory that keep their addresses: structs of doubles, arrays of them, and flags.

    Parameters
    ----------
    saved : dict, default=None
        A result of `values`, from which fields continue when they are declared.
    """

    def __cinit__(self, dict saved=None):
        self.names, self.saved, self.copies = [], saved, None

    def __dealloc__(self):
        free(self.each)

    cdef int add(self, str name, void* at, Py_ssize_t size) except -1:
        """Declare `size` bytes, after they have been initialised."""
        cdef const unsigned char[::1] value
        cdef Field* each = <Field*> realloc(self.each, (self.n + 1) * sizeof(Field))
        if each == NULL:
            raise MemoryError()
        self.each = each
        self.each[self.n] = Field(<char*> at, NULL, size, size)
        self.names.append(name)
        self.n, self.size = self.n + 1, self.size + size
        if self.saved is not None:
            value = np.ascontiguousarray(self.saved[name]).view(np.uint8)
            if value.shape[0] != size:  # from a damaged file
                raise ValueError(f"{name} must have {size} bytes; got {value.shape[0]}")
            memcpy(at, &value[0], size)
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
        """Copies of the fields, as arrays."""
        cdef Py_ssize_t k
        values = {}
        for k, name in enumerate(self.names):
            held = np.asarray(<unsigned char[:self.each[k].size]> <unsigned char*> self.each[k].at)
            values[name] = held.view(np.float64 if len(held) % sizeof(double) == 0 else np.intc).copy()
        return values
