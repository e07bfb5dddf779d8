cdef struct Field:            # or several that follow each other in memory
    char* at
    char* before              # a copy of it
    Py_ssize_t size           # bytes
    Py_ssize_t changing       # how many of them, from its start, the next call may change


cdef class State:
    cdef Field* each
    cdef Py_ssize_t n, size   # number of these pieces of memory, and bytes in all of them
    cdef dict places          # of each name, the piece of memory, where in it, the number of bytes, and what they are
    cdef dict given           # values to continue from, or None
    cdef unsigned char[::1] copies  # None until the first call

    cdef int add(self, str name, void* at, Py_ssize_t size, kind=*) except -1
    cdef int vector(self, str name, double[::1] values) except -1
    cdef int assign(self, str name, dict given) except -1
    cdef int expect(self, str name, Py_ssize_t n) except -1
    cdef int save(self) except -1
    cdef int allocate(self) except -1
    cdef void restore(self) noexcept nogil
    cdef dict values(self)
    cdef int continue_from(self, dict given) except -1


cdef class Stateful:
    cdef tuple arguments      # of the constructor
    cdef dict given           # the state to continue from, by name; empty for a new object
    cdef State fields         # what changes


cdef class Undoable(Stateful):
    cdef int save(self, Py_ssize_t n_rows) except -1
    cdef void restore(self) noexcept
    cdef void hold(self) noexcept nogil
    cdef void release(self) noexcept nogil
