"""Several learners side by side: each row is read once and learned by all of them."""

import numpy as np

from libc.stdlib cimport free, malloc

from onlinebregman._kernels._geometry cimport Row
from onlinebregman._kernels._learner cimport (
    BLOCKED, LEARNED, OVERFLOWED, Learner, make_room, open_rows, plain_rows, reason
)
from onlinebregman._kernels._rows cimport Rows


cdef class Team:
    """Learners of the same number of features that learn the same rows: one for each class, or for each rate.

    It is all learners or none that learn the rows of a call.

    Parameters
    ----------
    learners : list of Learner
    """

    cdef readonly list learners

    def __init__(self, learners):
        self.learners = list(learners)

    def __reduce__(self):
        return type(self), (self.learners,)

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
        cdef Py_ssize_t row_number, k
        if "feature_names_in_" in attributes or not self.in_force(attributes):
            return False
        rows = plain_rows(X)
        if rows is None or rows.n_rows == 0 or rows.n_rows != targets.shape[0]:
            return False
        if rows.n_columns != (<Learner> self.learners[0]).geometry.n_features:
            return False
        return self._learn(rows, targets, None, None, None, &row_number, &k) == LEARNED

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
        cdef Py_ssize_t row_number = 0, k = 0
        status = self._learn(open_rows(X), targets, sample_weight, order, scores, &row_number, &k)
        return None if status == LEARNED else (reason(status), row_number)

    def predict(self, X, *, linked=True):
        """Predictions for validated rows, shape (n_rows, n_learners); see `Learner.predict`."""
        return np.stack([learner.predict(X, linked=linked) for learner in self.learners], axis=1)

    def predict_fast(self, dict attributes, X, linked=True):
        """See `Learner.predict_fast`."""
        columns = [learner.predict_fast(attributes, X, linked) for learner in self.learners]
        return None if any(column is None for column in columns) else np.stack(columns, axis=1)

    cdef int _learn(self, Rows rows, const double[:, ::1] targets, const double[::1] sample_weight,
                    const Py_ssize_t[::1] order, double[:, ::1] scores, Py_ssize_t* row_number,
                    Py_ssize_t* k) except -1:
        cdef Py_ssize_t n_learners = len(self.learners), i, room = 0
        cdef bint own_targets = targets.shape[1] > 1, whole = False
        cdef int status = LEARNED
        cdef double weight = 1.0
        cdef Row fetched, row
        cdef Learner learner
        cdef void** team = <void**> malloc(max(n_learners, 1) * sizeof(void*))
        if team == NULL:
            raise MemoryError()
        fetched.buffer = NULL
        try:
            for i, learner in enumerate(self.learners):
                team[i] = <void*> learner
                room = max(room, learner.geometry.room(rows.widest))
            make_room(&fetched, room)
            while True:
                for learner in self.learners:
                    learner._begin(rows, whole)
                with nogil:
                    status = LEARNED
                    for i in range(rows.n_rows):
                        row_number[0] = i if order is None else order[i]
                        rows.fetch(row_number[0], &fetched)
                        if sample_weight is not None:
                            weight = sample_weight[row_number[0]]
                        for k[0] in range(n_learners):
                            row = fetched  # a geometry may turn its copy into another row
                            status = (<Learner> team[k[0]])._row(
                                (<Learner> team[k[0]]).geometry, (<Learner> team[k[0]]).loss, &row,
                                targets[row_number[0], k[0] if own_targets else 0], weight,
                                NULL if scores is None else &scores[row_number[0], k[0]],
                            )
                            if status != LEARNED:
                                break
                        if status != LEARNED:
                            break
                    if status == LEARNED:
                        for k[0] in range(n_learners):
                            if not (<Learner> team[k[0]]).before.finite():
                                status, row_number[0] = OVERFLOWED, rows.n_rows - 1
                                break
                for learner in self.learners:
                    if status != LEARNED:
                        learner._go_back()
                    learner.before = None
                if status != BLOCKED:
                    return status
                whole = True
        finally:
            free(fetched.buffer)
            free(team)
