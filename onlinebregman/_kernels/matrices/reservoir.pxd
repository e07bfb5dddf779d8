cdef class Intake:
    cdef object uniforms, memory
    cdef const double[::1] ahead               # random numbers,
    cdef Py_ssize_t used                       # of which so many are used
    cdef double[:, ::1] rows                   # remembered
    cdef Py_ssize_t[::1] classes
    cdef Py_ssize_t[::1] seen                  # rows of each class so far
    cdef Py_ssize_t n, size, width             # rows that are remembered, at most of each class, and values of each
    cdef bint shared                           # with a copy of the memory?

    cdef bint open(self, memory, uniforms, Py_ssize_t width, const Py_ssize_t[::1] numbers) except -1
    cdef int close(self) except -1
    cdef bint counted(self) except -1
    cdef int hold_memory(self) except -1
    cdef int remember(self, const double* row, Py_ssize_t number) except -1 nogil
    cdef double uniform(self) except -1.0 nogil
