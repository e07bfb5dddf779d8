"""Several learners that learn each row in lockstep: the scores of all, then the equations of all, then their steps.

For implicit steps on the logistic or the squared loss along which the score is linear. Each learner gets the same
numbers as by itself. Those with a `Descent` process a dense row in groups of four, and the equations of logistic losses
are solved in vector registers.
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, isfinite, isnan
from libc.stdlib cimport free

from onlinebregman._kernels.geometries.geometry cimport ADAPTIVE, LINEAR, Workspace, Workspaces, open_workspace
from onlinebregman._kernels.learners.descent cimport Descent, record_step, squared_step
from onlinebregman._kernels.learners.learner cimport Learner
from onlinebregman._kernels.learners.mirror_step cimport end_step, predict_row
from onlinebregman._kernels.learners.rule cimport Rule, scheduled_rate
from onlinebregman._kernels.learners.solver cimport Score, logistic_step
from onlinebregman._kernels.learners.run cimport BAD_TARGET, IMPLICIT, LEARNED, OVERFLOWED, Settings
from onlinebregman._kernels.losses.loss cimport SquaredLoss, logistic_value
from onlinebregman._kernels.ops.logistic cimport OB_LOCKSTEP, ob_logistic_losses, ob_logistic_steps
from onlinebregman._kernels.ops.pointers cimport resized
from onlinebregman._kernels.ops.row cimport ob_axpy4, ob_dot4, ob_sparse_axpy, ob_sparse_dot
from onlinebregman._kernels.ops.vector cimport ob_axpy, ob_dot
from onlinebregman._kernels.rows.rows cimport Row

cdef enum:
    VECTORS = 9               # of one number for each learner


cdef bint can_lockstep(Learner learner):
    """Whether it can learn rows in lockstep with others."""
    if learner.descent.run != NULL:
        return True
    return (
        learner.geometry.traits & (ADAPTIVE | LINEAR) == ADAPTIVE | LINEAR
        and (type(learner.loss) is SquaredLoss or learner.loss.logistic)
        and learner.settings.update == IMPLICIT
        and learner.settings.average_from == INFINITY
        and not learner.geometry.average.active
        and not learner.settings.track_regret
        and not learner.rule.sees_rows
    )


cdef inline void log_row(Learner learner, const Row* row) noexcept nogil:
    """Save what the row is about to change, unless everything is saved."""
    if not learner.before.complete:
        learner.before.log(learner.geometry, row)


cdef inline bint finite_after(Learner learner, const Row* row) noexcept nogil:
    """Whether the weights of the row are finite, if `check_all` does not check them."""
    return learner.before.complete or learner.before.finite(learner.geometry, row)


@cython.final
cdef class Lockstep:
    """Learners of a list that learn rows in lockstep.

    Parameters
    ----------
    most : int
        Largest number of learners.
    """

    def __cinit__(self, Py_ssize_t most):
        cdef Py_ssize_t k
        cdef double* vectors
        self.learners = <void**> resized(NULL, most * sizeof(void*))
        self.descents = <Descent*> resized(NULL, most * sizeof(Descent))
        self.index = <Py_ssize_t*> resized(NULL, most * sizeof(Py_ssize_t))
        self.scores = <Score*> resized(NULL, most * sizeof(Score))
        self.works = Workspaces()
        self.stride = (most + OB_LOCKSTEP - 1) // OB_LOCKSTEP * OB_LOCKSTEP
        self.memory = np.zeros(VECTORS * self.stride)
        vectors = &self.memory[0]
        self.y, self.a, self.value = vectors, vectors + self.stride, vectors + 2 * self.stride
        self.dloss, self.xSx = vectors + 3 * self.stride, vectors + 4 * self.stride
        self.base, self.eta, self.c = vectors + 5 * self.stride, vectors + 6 * self.stride, vectors + 7 * self.stride
        self.curvature = vectors + 8 * self.stride

    def __dealloc__(self):
        free(self.learners)
        free(self.descents)
        free(self.index)
        free(self.scores)

    cdef int gather(self, tuple learners, Py_ssize_t first, Py_ssize_t end, Py_ssize_t length) except -1:
        """Select those of some learners that can learn in lockstep; a call has begun, working vectors have a length."""
        cdef Py_ssize_t k
        cdef bint descending
        cdef Learner learner
        self.n = self.n_descents = 0
        self.logistic, self.complete = False, True
        for descending in (True, False):
            for k in range(first, end):
                each = learners[k]
                learner = each if type(each) is Learner else None
                if learner is not None and (learner.descent.run != NULL) == descending and can_lockstep(learner):
                    self.learners[self.n], self.index[self.n] = <void*> learner, k
                    self.descents[self.n] = learner.descent
                    self.logistic = self.logistic or learner.loss.logistic
                    self.complete = self.complete and learner.before.complete
                    self.n_descents += descending
                    self.n += 1
        if self.n == 1:  # it is faster by itself
            self.n = self.n_descents = 0
        return self.works.reserve(self.n - self.n_descents, length)

    cdef bint has(self, Py_ssize_t k) noexcept:
        """Whether the k-th learner was selected."""
        cdef Py_ssize_t i
        for i in range(self.n):
            if self.index[i] == k:
                return True
        return False

    cdef int learn_row(self, const Row* row, double weight, Py_ssize_t* refusing) noexcept nogil:
        """Learn a row of targets y and positive weight; its scores are in a. Returns the `Status`, sets `refusing`."""
        cdef Py_ssize_t k
        cdef int status
        for k in range(0 if self.complete else self.n):
            log_row(<Learner> self.learners[k], row)
        self.score_descents(row)
        for k in range(self.n_descents, self.n):
            status = self.predict(<Learner> self.learners[k], k, row)
            if status != LEARNED:
                refusing[0] = self.index[k]
                return status
        if self.logistic:
            ob_logistic_losses(self.value, self.dloss, self.curvature, self.a, self.y, self.stride)
        for k in range(self.n_descents):
            self.rate_descent(&self.descents[k], k, weight)
        for k in range(self.n_descents, self.n):
            self.update_metric(<Learner> self.learners[k], k, weight)
        if self.logistic:
            ob_logistic_steps(
                self.c, self.a, self.xSx, self.eta, self.y, self.dloss, self.curvature, self.stride
            )
        for k in range(self.n):
            if k < self.n_descents:
                status = self.record_descent(&self.descents[k], k, weight)
            else:
                status = self.move(<Learner> self.learners[k], k, weight)
            if status != LEARNED:
                refusing[0] = self.index[k]
                return status
        self.move_descents(row)
        for k in range(0 if self.complete else self.n):
            if not finite_after(<Learner> self.learners[k], row):
                refusing[0] = self.index[k]
                return OVERFLOWED
        return LEARNED

    # --- learners with a `Descent` ----------------------------------------------------------------------------------

    cdef void score_descents(self, const Row* row) noexcept nogil:
        """Compute the scores a, and their decrease per unit of c."""
        cdef Py_ssize_t k, d = self.n_descents, in_fours = d - d % 4 if row.index == NULL else 0
        cdef const Descent* m = self.descents
        cdef double square = ob_dot(row.x, row.x, row.n) if d else 0.0
        for k in range(0, in_fours, 4):
            ob_dot4(m[k].w, m[k + 1].w, m[k + 2].w, m[k + 3].w, row.x, row.n, self.a + k)
        for k in range(in_fours, d):
            self.a[k] = ob_dot(m[k].w, row.x, row.n) if row.index == NULL else \
                ob_sparse_dot(m[k].w, row.index, row.x, row.n)
        for k in range(d):
            self.a[k] += m[k].run.intercept
            self.xSx[k] = square + m[k].settings.fit_intercept

    cdef inline void rate_descent(self, const Descent* m, Py_ssize_t k, double weight) noexcept nogil:
        """Compute its loss and its rate."""
        self.base[k] = scheduled_rate(<Rule> m.rule, m.run.t + 1.0)
        self.eta[k] = weight * self.base[k]
        self.find_loss(k, m.logistic)

    cdef inline void find_loss(self, Py_ssize_t k, bint logistic) noexcept nogil:
        """Compute losses that `ob_logistic_losses` does not."""
        if not logistic:
            self.dloss[k] = self.a[k] - self.y[k]
            self.value[k] = 0.5 * self.dloss[k] * self.dloss[k]
        elif 0 < self.y[k] < 1:
            self.value[k] = logistic_value(self.a[k], self.y[k])

    cdef inline void find_step(self, const Settings* settings, Py_ssize_t k, bint logistic) noexcept nogil:
        """Compute steps that `ob_logistic_steps` does not."""
        if not logistic:
            self.c[k] = squared_step(settings, self.a[k], self.xSx[k], self.eta[k], self.y[k])
        elif isnan(self.c[k]):
            self.c[k] = logistic_step(self.a[k], self.xSx[k], self.eta[k], self.y[k])

    cdef inline int record_descent(self, const Descent* m, Py_ssize_t k, double weight) noexcept nogil:
        """Compute its step c, and update its state; `move_descents` updates the weights."""
        self.find_step(m.settings, k, m.logistic)
        return record_step(
            m, self.a[k], self.xSx[k], self.base[k], self.y[k], weight, self.c[k], self.value[k], NULL
        )

    cdef void move_descents(self, const Row* row) noexcept nogil:
        cdef Py_ssize_t k, d = self.n_descents, in_fours = d - d % 4 if row.index == NULL else 0
        cdef const Descent* m = self.descents
        cdef const double* c = self.c
        for k in range(0, in_fours, 4):
            ob_axpy4(m[k].w, m[k + 1].w, m[k + 2].w, m[k + 3].w, row.x, c + k, row.n)
        for k in range(in_fours, d):
            if row.index == NULL:
                ob_axpy(m[k].w, row.x, c[k], row.n)
            else:
                ob_sparse_axpy(m[k].w, row.index, row.x, c[k], row.n)

    # --- other learners ---------------------------------------------------------------------------------------------

    cdef int predict(self, Learner learner, Py_ssize_t k, const Row* row) noexcept nogil:
        """Compute the learner's score a."""
        cdef Py_ssize_t own = k - self.n_descents
        cdef int status
        open_workspace(&self.works.each[own], row)
        status = predict_row(
            learner.geometry, &learner.settings, &learner.run, &self.works.each[own], &self.scores[own], &self.a[k]
        )
        return BAD_TARGET if status == LEARNED and not learner.loss.admits(self.y[k]) else status

    cdef void update_metric(self, Learner learner, Py_ssize_t k, double weight) noexcept nogil:
        """Compute its loss and its rate; the geometry adds the row to its metric."""
        cdef Py_ssize_t own = k - self.n_descents
        cdef Score* score = &self.scores[own]
        self.find_loss(k, learner.loss.logistic)
        self.base[k] = scheduled_rate(learner.rule, learner.run.t + 1.0) * learner.geometry.adapt(
            &self.works.each[own], self.dloss[k], self.a[k], self.y[k], weight, True, &score.xSx, &score.intercept_xSx
        )
        self.xSx[k] = score.xSx + score.intercept_xSx
        self.eta[k] = weight * self.base[k]

    cdef int move(self, Learner learner, Py_ssize_t k, double weight) noexcept nogil:
        """Compute and make its step c."""
        cdef Py_ssize_t own = k - self.n_descents
        cdef Workspace* work = &self.works.each[own]
        self.find_step(&learner.settings, k, learner.loss.logistic)
        if not isfinite(self.c[k]):
            return OVERFLOWED
        learner.geometry.step(work, self.c[k])
        return end_step(
            learner.geometry, &learner.settings, &learner.run, work, weight, self.base[k], self.c[k],
            self.scores[own].intercept_xSx, weight * self.value[k], learner.loss.drift,
        )


cdef tuple divided(tuple learners, Py_ssize_t n, Py_ssize_t length, void** parts):
    """Learners that can all learn in lockstep, divided into n parts: one `Lockstep` each, also written to `parts`."""
    cdef Py_ssize_t k, first, end, total = len(learners)
    cdef Lockstep part
    found = []
    for k in range(n):
        first, end = k * total // n, (k + 1) * total // n
        part = Lockstep(end - first)
        part.gather(learners, first, end, length)
        parts[k] = <void*> part
        found.append(part)
    return tuple(found)
