"""Transactions of estimators: a call that raises leaves them unchanged, and only one thread at a time can learn.

Python handles signals between any two of its bytecode instructions, but not within a compiled function. So entering and
leaving a transaction cannot be interrupted halfway.
"""

import copy
import threading

from cpython.dict cimport PyDict_Next, PyDict_Values
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from cpython.pyport cimport PY_SSIZE_T_MAX
from cpython.pythread cimport PyThread_get_thread_ident

cdef long main_thread = threading.main_thread().ident
cdef dict learning = {}  # id(vars(estimator)) of each estimator that is learning: (the thread in which it learns,)


cdef bint under_way(dict attributes):
    """Whether another thread is in a transaction of the estimator with these attributes."""
    if len(learning) == 0:
        return False
    claim = learning.get(id(attributes))
    return claim is not None and claim[0] != PyThread_get_thread_ident()


cdef class Validated:
    """The parameters that the calls of an estimator read, as they were validated and passed on last.

    They are not copied or saved with the estimator, which then validates them again.

    Parameters
    ----------
    estimator : object, default=None
    names : tuple of str, default=()
    named : bool, default=False
        Whether the estimator knows the names of features, which those of rows have to be compared with.
    """

    def __init__(self, estimator=None, tuple names=(), bint named=False):
        attributes = {} if estimator is None else vars(estimator)
        self.names, self.named = tuple([name for name in attributes if name in names]), named
        self.values = None if estimator is None else tuple([attributes[name] for name in self.names])
        own = {} if estimator is None else estimator.get_params(deep=False)  # no fitted attributes
        self.contents = [each for name in names if name in own for each in contents(own[name])]

    def __reduce__(self):
        return Validated, (None, (), self.named)

    cpdef bint are_those_of(self, dict attributes):
        """Whether the attributes of an estimator are these very objects, whose contents have not changed since.

        They are looked at in their order, in half the time that it takes to look them up.
        """
        cdef PyObject* name  # borrowed references, of which only the addresses are read
        cdef PyObject* value
        cdef Py_ssize_t place = 0, k = 0, n = len(self.names)
        while k < n and PyDict_Next(attributes, &place, &name, &value):
            if name == <PyObject*> self.names[k]:
                if value != <PyObject*> self.values[k]:
                    return False
                k += 1
        if self.values is None or k < n:  # a parameter is missing, or has come later
            return False
        try:
            for now, before in self.contents:
                if (PyDict_Values(now) if type(now) is not type(before) else now) != before:
                    return False
        except ValueError:  # arrays have been replaced, whose comparison is no truth value
            return False
        return True


def contents(value):
    """What may change in place in the value of a parameter, with copies: dictionaries, components, and lists of these.

    Of a component the values are compared, in a third of the time that it takes to look up each of its attributes.
    """
    if isinstance(value, dict):
        return [(value, value.copy())]
    if isinstance(value, (list, tuple)):
        found = [each for part in value for each in contents(part)]
        return found + [(value, value[:])] * (len(found) > 0 and isinstance(value, list))
    if hasattr(value, "get_params") and not isinstance(value, type):
        return [(vars(value), [*vars(value).values()]), *contents((*value.get_params(deep=False).values(),))]
    return []


cdef Validated validated(dict attributes):
    """What was validated last of the estimator with these attributes, or None."""
    return attributes.get("_validated")


cdef bint parameters_unchanged(dict attributes):
    """Whether the estimator with these attributes has the parameters that were validated last."""
    cdef Validated last = validated(attributes)
    return last is not None and last.are_those_of(attributes)


cdef bint unnamed(dict attributes):
    """Whether rows for the estimator with these attributes have no names of features to compare."""
    cdef Validated last = validated(attributes)
    return last is not None and not last.named


cdef Py_ssize_t work_between_checks() noexcept:
    """How many numbers a loop may process before it looks at the clock; only the main thread receives signals."""
    return WORK_BETWEEN_CHECKS if PyThread_get_thread_ident() == main_thread else PY_SSIZE_T_MAX


cdef object signal_raised():
    """The exception that a signal has raised, such as KeyboardInterrupt, or None."""
    try:
        PyErr_CheckSignals()
    except BaseException as error:
        return error
    return None


cdef int check_idle(bint busy) except -1:
    """Raise an error if a thread is learning."""
    if busy:
        raise RuntimeError(
            "This model is learning in another thread, or in the call that runs this code (of a loss, a schedule): it "
            "can predict, but not learn, be copied or be saved before that call has ended. Protect calls in other "
            "threads by a threading.Lock."
        )
    return 0


cdef class Transaction:
    """Context in which estimators learn.

    If its body raises, all attributes are restored, and what learns in place is rolled back.
    The body must bind other attributes to new objects, and may call each learner once at most.

    Parameters
    ----------
    *estimators : object
        Estimators that the body may change.
    copied : iterable of object, default=()
        Others that the body may change in any way: their attributes are copied together, without `estimators`, so that
        objects shared among them are still shared after they are restored.
    keep : tuple of str
        Attributes that are not restored.
    in_place : tuple of str
        Attributes that are learners, which learn in place.

    Raises
    ------
    RuntimeError
        On entry, if one of them is learning in another thread.
    """

    cdef tuple estimators, copied, keep, in_place
    cdef list before          # of each estimator: its attributes, a copy of them, and its learners with savepoints
    cdef list claimed

    def __init__(self, *estimators, copied=(), tuple keep=(), tuple in_place=()):
        self.estimators, self.copied, self.keep, self.in_place = estimators, tuple(copied), keep, in_place

    def __enter__(self):
        self.before, self.claimed = [], []
        try:
            self.add(*self.estimators)
            if self.copied:
                kept = {id(estimator): estimator for estimator in self.estimators}
                changed = [vars(estimator) for estimator in self.copied if id(estimator) not in kept]
                self.before += [(*pair, ()) for pair in zip(changed, copy.deepcopy(changed, kept))]
        except BaseException:
            self._leave()
            raise
        return self

    def add(self, *estimators):
        """Add estimators that the body may change."""
        cdef dict attributes
        for estimator in estimators:
            attributes = vars(estimator)
            own = (PyThread_get_thread_ident(),)
            claim = learning.setdefault(id(attributes), own)  # in one step, also without the GIL
            if claim is own:
                self.claimed.append(id(attributes))
            elif claim != own:
                raise _busy(estimator)
            savepoints = []
            self.before.append((attributes, dict(attributes), savepoints))
            for name in self.in_place:
                learner = attributes.get(name)
                if learner is not None:
                    savepoints.append((learner, learner.savepoint()))

    def __exit__(self, kind, error, trace):
        cdef dict attributes, before
        try:
            if kind is not None:
                for attributes, before, savepoints in self.before:
                    kept = {key: attributes[key] for key in self.keep if key in attributes}
                    attributes.clear()
                    attributes.update(before)
                    attributes.update(kept)
                    for learner, savepoint in savepoints:
                        learner.rollback(savepoint)
        finally:
            self._leave()
        return False

    def __del__(self):
        if self.claimed:  # Python does not call `__exit__` if a tracer raises at the end of the body
            self._leave()

    cdef object _leave(self):
        try:
            for _, _, savepoints in self.before:
                for learner, _ in savepoints:
                    learner.commit()
        finally:
            for key in self.claimed:
                del learning[key]
            self.before, self.claimed = [], []


def _busy(estimator):
    return RuntimeError(
        f"This {type(estimator).__name__} is learning in another thread. Protect calls that learn by a "
        "threading.Lock, or use a separate model in each thread."
    )
