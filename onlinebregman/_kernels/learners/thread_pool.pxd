# Runs task number `task` in worker number `worker`; 0 is the thread that runs the loop.
ctypedef void (*Task)(void* context, Py_ssize_t task, Py_ssize_t worker) noexcept nogil

cdef extern from "pythread.h":
    ctypedef void* PyThread_type_lock


cdef struct Job:              # shared state of the workers; protected by the lock
    PyThread_type_lock lock
    Task task
    void* context
    Py_ssize_t next, n        # the next task, and the number of tasks
    Py_ssize_t left           # tasks that are not finished
    bint awaited              # whether the loop waits for them
    PyThread_type_lock done   # released when they are finished
    bint over                 # whether no more tasks will come
    Py_ssize_t n_workers      # threads that have not ended
    PyThread_type_lock gone   # released by the last one when it ends


cdef struct Worker:
    Job* job
    Py_ssize_t number
    bint asleep               # whether it waits for `wake`
    PyThread_type_lock wake


cpdef Py_ssize_t n_threads(n_jobs) except -1


cdef class ThreadPool:
    cdef Job job
    cdef Worker* workers
    cdef Py_ssize_t n, most   # threads started, and the largest number of them

    cdef int reserve(self, Py_ssize_t most) except -1
    cdef void free_workers(self) noexcept
    cdef void start(self) noexcept nogil
    cdef void run(self, Task task, void* context, Py_ssize_t n) noexcept nogil
    cdef void wake_up(self, Py_ssize_t n) noexcept nogil
    cdef void stop(self) noexcept nogil
