"""Several learners side by side: each row is read once and learned by all of them."""

import numpy as np

from libc.math cimport isfinite
from libc.stdlib cimport free, malloc

from onlinebregman._kernels.loop.descent cimport BLOCKED, INTERRUPTED, LEARNED, LOSS_OVERFLOWED, descent_step
from onlinebregman._kernels.geometries.geometry cimport Row
from onlinebregman._kernels.loop.learner cimport Learner, make_room, open_rows, plain_rows, reason
from onlinebregman._kernels.rows.rows cimport Rows
from onlinebregman._kernels.loop.transaction cimport under_way

cdef extern from "ops/row.h":
    double ob_dot(const double* a, const double* b, Py_ssize_t n) noexcept nogil
    void ob_dot4(const double* w0, const double* w1, const double* w2, const double* w3, const double* x, Py_ssize_t n,
                 double* dots) noexcept nogil
    void ob_axpy(double* w, const double* x, double c, Py_ssize_t n) noexcept nogil
    void ob_axpy4(double* w0, double* w1, double* w2, double* w3, const double* x, const double* c,
                  Py_ssize_t n) noexcept nogil



cdef struct Roster:           # what the loop over rows needs to know of the learners
    Py_ssize_t n
    void** learner
    double** weights
    double* dots              # each learner's w.x, and its step c
    double* steps


cdef int make_roster(Roster* team, list learners) except -1:
    """A roster of these learners; to be freed by the caller, even after an error."""
    cdef Learner learner
    cdef Py_ssize_t k, n = len(learners)
    team.n = n
    team.learner = <void**> malloc(n * sizeof(void*))
    team.weights = <double**> malloc(n * sizeof(double*))
    team.dots = <double*> malloc(2 * n * sizeof(double))
    if team.learner == NULL or team.weights == NULL or team.dots == NULL:
        raise MemoryError()
    team.steps = team.dots + n
    for k, learner in enumerate(learners):
        team.learner[k] = <void*> learner
        team.weights[k] = &learner.geometry.weights[0]
    return 0


cdef void free_roster(Roster* team) noexcept nogil:
    free(team.learner)
    free(team.weights)
    free(team.dots)


cdef int learn_row(Roster* team, Row* row, const double* y, Py_ssize_t stride, double weight,
                   double* seen) noexcept nogil:
    """Every learner learns the row, one after the other; learner k has the target y[k * stride]."""
    cdef Py_ssize_t k
    cdef int status
    cdef Row copy
    for k in range(team.n):
        copy = row[0]  # a geometry may turn it into another row
        status = (<Learner> team.learner[k])._one(&copy, y[k * stride], weight, NULL if seen == NULL else &seen[k])
        if status != LEARNED:
            return status
    return LEARNED


cdef int learn_plain_row(Roster* team, Row* row, const double* y, Py_ssize_t stride, double weight,
                         double* seen) noexcept nogil:
    """The same for a dense row and learners that are all plain, four of them in one pass over the row."""
    cdef Py_ssize_t k, n = row.n, in_fours = team.n - team.n % 4
    cdef double** w = team.weights
    cdef double slope
    cdef int status
    if weight == 0:
        return learn_row(team, row, y, stride, weight, seen)
    slope = ob_dot(row.x, row.x, n)
    for k in range(0, in_fours, 4):
        ob_dot4(w[k], w[k + 1], w[k + 2], w[k + 3], row.x, n, team.dots + k)
    for k in range(in_fours, team.n):
        team.dots[k] = ob_dot(w[k], row.x, n)
    for k in range(team.n):
        team.steps[k] = descent_step(
            &(<Learner> team.learner[k]).clockwork, &(<Learner> team.learner[k]).settings, team.dots[k], slope,
            y[k * stride], weight, NULL if seen == NULL else &seen[k], &status,
        )
        if status != LEARNED:
            return status
    for k in range(0, in_fours, 4):
        ob_axpy4(w[k], w[k + 1], w[k + 2], w[k + 3], row.x, team.steps + k, n)
    for k in range(in_fours, team.n):
        ob_axpy(w[k], row.x, team.steps[k], n)
    return LEARNED


cdef class Team:
    """Learners of the same number of features that learn the same rows: one for each class, or for each rate.

    It is all learners or none that learn the rows of a call.

    Parameters
    ----------
    learners : list of Learner
    summed : bool, default=True
        Are they one model, whose loss is the sum of theirs?
    """

    cdef readonly list learners
    cdef bint summed

    def __cinit__(self, learners, bint summed=True):
        self.learners = [<Learner?> learner for learner in learners]
        if not self.learners:
            raise ValueError("a team needs at least one learner")
        self.summed = summed

    def __reduce__(self):
        return type(self), (self.learners, self.summed)

    @property
    def t(self):
        return self.learners[0].t

    @property
    def cumulative_losses(self):
        """Of each learner, shape (n_learners,)."""
        return np.array([learner.cumulative_loss for learner in self.learners])

    @property
    def cumulative_loss(self):
        return float(self.cumulative_losses.sum())

    @property
    def coef(self):
        return np.stack([learner.coef for learner in self.learners])

    @property
    def intercept(self):
        return np.array([learner.intercept for learner in self.learners])

    @property
    def failure(self):
        """See `Learner.failure`."""
        return next((learner.failure for learner in self.learners if learner.failure is not None), None)

    def mark(self):
        """See `Learner.mark`."""
        return [learner.mark() for learner in self.learners]

    def go_back(self, list marks):
        """See `Learner.go_back`."""
        for learner, mark in zip(self.learners, marks, strict=True):
            learner.go_back(mark)

    def commit(self):
        """See `Learner.commit`."""
        for learner in self.learners:
            learner.commit()

    def configure(self, **settings):
        """The same for all learners; see `Learner.configure`."""
        for learner in self.learners:
            learner.configure(**settings)

    def in_force(self, dict attributes):
        """See `Learner.in_force`."""
        return all(learner.in_force(attributes) for learner in self.learners)

    def learn_fast(self, dict attributes, X, const double[:, ::1] targets):
        """Learn without validation where that is safe, as `Learner.learn_fast`; False if nothing was learned."""
        cdef Rows rows
        cdef Py_ssize_t failed
        if "feature_names_in_" in attributes or not self.in_force(attributes) or under_way(attributes):
            return False
        if any((<Learner> learner).busy for learner in self.learners):
            return False
        rows = plain_rows(X)
        if rows is None or rows.n_rows == 0 or rows.n_rows != targets.shape[0]:
            return False
        if rows.n_columns != (<Learner> self.learners[0]).geometry.n_features:
            return False
        return self._learn(rows, targets, None, None, None, &failed) == LEARNED

    def learn(self, X, const double[:, ::1] targets, const double[::1] sample_weight=None,
              const Py_ssize_t[::1] order=None, double[:, ::1] scores=None):
        """Learn validated rows, in the order they come or in `order`.

        Parameters
        ----------
        X : ndarray or CSR of shape (n_rows, n_features)
        targets : ndarray of shape (n_rows, 1) or (n_rows, n_learners)
            One target for all learners, or one for each.
        sample_weight, order : ndarray of shape (n_rows,), default=None
        scores : ndarray of shape (n_rows, n_learners), default=None
            Receives each row's scores before it was learned (NaN where its weight is 0).

        Returns
        -------
        (reason, row) of what could not be learned, or None.
        """
        cdef Py_ssize_t failed = 0
        status = self._learn(open_rows(X), targets, sample_weight, order, scores, &failed)
        return None if status == LEARNED else (reason(status), failed)

    def predict(self, X, *, linked=True):
        """Predictions for validated rows, shape (n_rows, n_learners); see `Learner.predict`."""
        return np.stack([learner.predict(X, linked=linked) for learner in self.learners], axis=1)

    def predict_fast(self, dict attributes, X, linked=True):
        """See `Learner.predict_fast`."""
        columns = [learner.predict_fast(attributes, X, linked) for learner in self.learners]
        return None if any(column is None for column in columns) else np.stack(columns, axis=1)

    cdef int _learn(self, Rows rows, const double[:, ::1] targets, const double[::1] sample_weight,
                    const Py_ssize_t[::1] order, double[:, ::1] scores, Py_ssize_t* failed) except -1:
        cdef Py_ssize_t room = 0
        cdef const Py_ssize_t* permutation = NULL
        cdef bint whole = False, together
        cdef int status
        cdef Row row
        cdef Roster team
        cdef Py_ssize_t claimed = 0
        cdef Learner learner
        row.buffer = NULL
        team.learner, team.weights, team.dots = NULL, NULL, NULL
        if order is not None:
            permutation = &order[0]
        try:
            for learner in self.learners:
                learner._claim()
                claimed += 1
            make_roster(&team, self.learners)
            for learner in self.learners:
                room = max(room, learner.geometry.room(rows.widest))
            make_room(&row, room)
            while True:
                together = rows.indices == NULL
                for learner in self.learners:
                    learner._begin(rows, whole)
                    together = together and learner.plain
                with nogil:
                    status = self._loop(
                        &team, together, rows, targets, sample_weight, permutation, scores, &row, failed
                    )
                error = None
                for learner in self.learners:
                    error = error or learner._interruption()
                for learner in self.learners:
                    if status != LEARNED or error is not None:
                        learner._go_back(rows, permutation)
                    else:
                        learner._took(rows)
                        learner.order = order if learner.n_marks else None
                if error is not None:
                    raise error
                if status != BLOCKED:
                    return status
                whole = True
        finally:
            for learner in self.learners[:claimed]:
                learner._release()
            free(row.buffer)
            free_roster(&team)

    cdef int _loop(self, Roster* team, bint together, Rows rows, const double[:, ::1] targets,
                   const double[::1] sample_weight, const Py_ssize_t* order, double[:, ::1] scores, Row* row,
                   Py_ssize_t* failed) noexcept nogil:
        cdef Py_ssize_t i, j, k, stride = targets.shape[1] > 1
        cdef int status
        cdef double weight = 1.0, total = 0.0
        cdef double* seen = NULL
        for j in range(rows.n_rows):
            i = failed[0] = j if order == NULL else order[j]
            rows.fetch(i, row)
            if (<Learner> team.learner[0])._interrupted(row.n * team.n):
                return INTERRUPTED
            if rows.indices != NULL and j + 1 < rows.n_rows:
                for k in range(team.n):
                    (<Learner> team.learner[k])._ask_for(rows, j + 1 if order == NULL else order[j + 1])
            if sample_weight is not None:
                weight = sample_weight[i]
            if scores is not None:
                seen = &scores[i, 0]
            if together:
                status = learn_plain_row(team, row, &targets[i, 0], stride, weight, seen)
            else:
                status = learn_row(team, row, &targets[i, 0], stride, weight, seen)
            if status != LEARNED:
                return status
        for k in range(team.n):
            status = (<Learner> team.learner[k])._end()
            if status != LEARNED:
                return status
            total += (<Learner> team.learner[k]).clockwork.loss
        return LEARNED if isfinite(total) or not self.summed else LOSS_OVERFLOWED
