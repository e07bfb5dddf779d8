"""Threads for the tasks of a loop that runs without the GIL; they never acquire it.

Any idle thread takes the next task, and so does the loop itself: a thread that waits for a processor does not delay the
others. The threads end with the loop, so none exist when a process is forked or ends.
"""

from joblib.parallel import get_active_backend

from libc.stdlib cimport free

from onlinebregman._kernels.ops.pointers cimport resized

cdef extern from "pythread.h":
    int WAIT_LOCK
    unsigned long PYTHREAD_INVALID_THREAD_ID
    PyThread_type_lock PyThread_allocate_lock() nogil
    void PyThread_free_lock(PyThread_type_lock lock) nogil
    int PyThread_acquire_lock(PyThread_type_lock lock, int wait) nogil
    void PyThread_release_lock(PyThread_type_lock lock) nogil
    unsigned long PyThread_start_new_thread(void (*run)(void*) noexcept nogil, void* argument) nogil


cpdef Py_ssize_t n_threads(n_jobs) except -1:
    """The number of threads for an `n_jobs`, as joblib is configured.

    `joblib.effective_n_jobs` would speak of processes: it allows one, and warns, where no process may be started.
    """
    if n_jobs == 1:
        return 1
    _, configured = get_active_backend()
    backend, _ = get_active_backend(prefer="threads", require="sharedmem")
    return backend.effective_n_jobs(configured if n_jobs is None else n_jobs)


cdef PyThread_type_lock make_lock(bint held) except NULL:
    cdef PyThread_type_lock lock = PyThread_allocate_lock()
    if lock == NULL:
        raise MemoryError()
    if held:
        PyThread_acquire_lock(lock, WAIT_LOCK)
    return lock


cdef void free_lock(PyThread_type_lock lock) noexcept:
    if lock != NULL:
        PyThread_free_lock(lock)


cdef bint run_next(Job* job, Py_ssize_t worker) noexcept nogil:
    """Run the next task, if there is one; the lock is held before and after."""
    cdef Py_ssize_t task = job.next
    if task == job.n:
        return False
    job.next += 1
    PyThread_release_lock(job.lock)
    job.task(job.context, task, worker)
    PyThread_acquire_lock(job.lock, WAIT_LOCK)
    job.left -= 1
    return True


cdef void run_worker(void* argument) noexcept nogil:
    """Main function of a thread."""
    cdef Worker* self = <Worker*> argument
    cdef Job* job = self.job
    cdef bint last
    PyThread_acquire_lock(job.lock, WAIT_LOCK)
    while True:
        while run_next(job, self.number):
            pass
        if job.awaited and job.left == 0:
            job.awaited = False
            PyThread_release_lock(job.done)
        if job.over:
            break
        self.asleep = True
        PyThread_release_lock(job.lock)
        PyThread_acquire_lock(self.wake, WAIT_LOCK)
        PyThread_acquire_lock(job.lock, WAIT_LOCK)
    job.n_workers -= 1
    last = job.n_workers == 0
    PyThread_release_lock(job.lock)
    if last:
        PyThread_release_lock(job.gone)


cdef class ThreadPool:
    """Threads for the tasks of one loop at a time."""

    def __cinit__(self):
        self.job.lock, self.job.done, self.job.gone = make_lock(False), make_lock(True), make_lock(True)

    def __dealloc__(self):
        self.free_workers()
        free_lock(self.job.lock)
        free_lock(self.job.done)
        free_lock(self.job.gone)

    cdef void free_workers(self) noexcept:
        cdef Py_ssize_t k
        for k in range(self.most):
            free_lock(self.workers[k].wake)
        free(self.workers)
        self.workers, self.most = NULL, 0

    cdef int reserve(self, Py_ssize_t most) except -1:
        """Allocate exactly `most` workers."""
        if most == self.most:
            return 0
        self.free_workers()
        self.workers = <Worker*> resized(NULL, most * sizeof(Worker))
        while self.most < most:
            self.workers[self.most] = Worker(&self.job, self.most + 1, False, make_lock(True))
            self.most += 1
        return 0

    cdef void start(self) noexcept nogil:
        """Start the threads; fewer, if the system refuses."""
        self.n = 0
        self.job.next = self.job.n = self.job.left = 0
        self.job.over = self.job.awaited = False
        PyThread_acquire_lock(self.job.lock, WAIT_LOCK)
        while self.n < self.most:
            self.workers[self.n].asleep = False
            if PyThread_start_new_thread(run_worker, &self.workers[self.n]) == PYTHREAD_INVALID_THREAD_ID:
                break
            self.n += 1
        self.job.n_workers = self.n
        PyThread_release_lock(self.job.lock)

    cdef void run(self, Task task, void* context, Py_ssize_t n) noexcept nogil:
        """Run tasks 0 to n - 1, and return when all are finished."""
        cdef Job* job = &self.job
        cdef bint wait
        cdef Py_ssize_t k
        if self.n == 0:
            for k in range(n):
                task(context, k, 0)
            return
        PyThread_acquire_lock(job.lock, WAIT_LOCK)
        job.task, job.context, job.next, job.n, job.left = task, context, 0, n, n
        self.wake_up(min(self.n, n - 1))
        while run_next(job, 0):
            pass
        job.awaited = wait = job.left > 0
        PyThread_release_lock(job.lock)
        if wait:
            PyThread_acquire_lock(job.done, WAIT_LOCK)

    cdef void wake_up(self, Py_ssize_t n) noexcept nogil:
        """Wake those of the first n threads that wait."""
        cdef Py_ssize_t k
        for k in range(n):
            if self.workers[k].asleep:
                self.workers[k].asleep = False
                PyThread_release_lock(self.workers[k].wake)

    cdef void stop(self) noexcept nogil:
        """Wait for the threads to end."""
        if self.n == 0:
            return
        PyThread_acquire_lock(self.job.lock, WAIT_LOCK)
        self.job.over = True
        self.wake_up(self.n)
        PyThread_release_lock(self.job.lock)
        PyThread_acquire_lock(self.job.gone, WAIT_LOCK)
        self.n = 0
