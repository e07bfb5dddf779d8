# Memory that its owner frees, and objects in loops without the GIL.

from libc.stdlib cimport realloc

cdef extern from "Python.h":
    void* PyTuple_GET_ITEM(void* held, Py_ssize_t k) nogil  # a borrowed reference


cdef inline void* resized(void* memory, Py_ssize_t size) except NULL:
    """Memory of this size in bytes with the same content; NULL is none yet."""
    cdef void* at = realloc(memory, max(size, 1))
    if at == NULL:
        raise MemoryError()
    return at


cdef inline double* cache_line(void* memory) noexcept:
    """The first one that starts in the memory: of n numbers there, 64 bytes are not used."""
    return <double*> ((<size_t> memory + 63) & ~<size_t> 63)
