# What a thread does of a loop: a task of this number, as the worker of that one, where 0 is who runs the loop.
ctypedef void (*Task)(void* context, Py_ssize_t task, Py_ssize_t worker) noexcept nogil

cdef extern from "pythread.h":
    ctypedef void* PyThread_type_lock


cdef struct Job:              # what workers share; the lock is held to read or change it
    PyThread_type_lock lock
    Task task
    void* context
    Py_ssize_t next, n        # the next task, of so many,
    Py_ssize_t left           # and how many are not done yet
    bint awaited              # does the loop wait for them?
    PyThread_type_lock done   # what it waits for
    bint over                 # are there no more tasks to come?
    Py_ssize_t n_workers      # threads that have not ended,
    PyThread_type_lock gone   # and what the last one says then


cdef struct Worker:
    Job* job
    Py_ssize_t number
    bint asleep               # does it wait
    PyThread_type_lock wake   # for this?


cdef class Crew:
    cdef Job job
    cdef Worker* workers
    cdef Py_ssize_t n, most   # that were started, and that can be

    cdef int reserve(self, Py_ssize_t most) except -1
    cdef void free_workers(self) noexcept
    cdef void start(self) noexcept nogil
    cdef void run(self, Task task, void* context, Py_ssize_t n) noexcept nogil
    cdef void wake_up(self, Py_ssize_t n) noexcept nogil
    cdef void stop(self) noexcept nogil
