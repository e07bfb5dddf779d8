"""The state of what learns: numbers and vectors that are declared once, from which it follows how they are undone,
copied, pickled, written to model files and checked when they are read."""

import numpy as np

from libc.stdlib cimport free
from libc.string cimport memcpy

from onlinebregman._kernels.ops.pointers cimport resized


def aligned(values, more=0, size=None):
    """A copy aligned to 64 bytes, a cache line and the widest vector register, which can grow by `more` in place.

    With a `size`, zeros follow up to it; pages of them take no time until they are used, even if all values are 0.
    """
    values = np.asarray(values)
    size = values.shape[0] if size is None else size
    buffer = np.zeros(size + more + 8)
    start = -(buffer.ctypes.data // 8) % 8
    if values.view(np.int64).any():  # compared as bits, to preserve -0.0
        buffer[start : start + values.shape[0]] = values
    return buffer[start : start + size]


def vector_of(values, size):
    """A copy of a vector of this size; the arrays of a file may be of any shape."""
    values = np.array(values, dtype=np.float64)
    if values.shape != (size,):
        raise ValueError(f"the arrays of a state must be of shape {(size,)}; got {values.shape}")
    return values


def average_of(weights, total, time, average_over):
    """The average of weights over a number of steps, from their sum up to when they last moved, and the time since."""
    with np.errstate(over="ignore"):
        average = (total + weights * time) / average_over
    if not np.isfinite(average).all():  # a sum of large weights overflows, not their average
        average = total / average_over + weights * (time / average_over)
    return average


cdef class State:
    """Parts of an object's memory that keep their addresses: doubles, structs and arrays of them, and integers.

    Parameters
    ----------
    given : dict, default=None
        A result of `values`, from which fields continue when they are declared.
    """

    def __cinit__(self, dict given=None):
        self.places, self.given, self.copies = {}, given or None, None

    def __dealloc__(self):
        free(self.each)

    cdef int add(self, str name, void* at, Py_ssize_t size, kind=None) except -1:
        """Declare `size` bytes, after they have been initialised.

        `kind`: the names of the numbers of a struct, by which they are a dict; or "vector", which may be of one number.
        """
        if self.n > 0 and self.each[self.n - 1].at + self.each[self.n - 1].size == at:
            self.each[self.n - 1].size += size
            self.each[self.n - 1].changing += size
        else:
            self.each = <Field*> resized(self.each, (self.n + 1) * sizeof(Field))
            self.each[self.n] = Field(<char*> at, NULL, size, size)
            self.n += 1
        self.size += size
        self.places[name] = self.n - 1, <char*> at - self.each[self.n - 1].at, size, kind
        if self.given is not None:
            self.assign(name, self.given)
            del self.given[name]
        return 0

    cdef int vector(self, str name, double[::1] values) except -1:
        """Declare the numbers of an array that is never replaced."""
        return self.add(name, &values[0], values.shape[0] * sizeof(double), "vector")

    cdef int assign(self, str name, dict given) except -1:
        """Set a field to its value among those of `values`."""
        cdef const unsigned char[::1] value
        cdef Py_ssize_t k, start, size
        k, start, size, kind = self.places[name]
        if kind is None and size == sizeof(double) and type(given.get(name)) is float and given[name] == given[name]:
            (<double*> (self.each[k].at + start))[0] = given[name]
            return 0
        value = number_of(name, given, size, kind)
        memcpy(self.each[k].at + start, &value[0], size)
        return 0

    cdef int expect(self, str name, Py_ssize_t n) except -1:
        """Before n doubles are allocated for a field: check that a value to continue from has this size."""
        if self.given is not None:
            number_of(name, self.given, n * <Py_ssize_t> sizeof(double), None)
        return 0

    cdef int save(self) except -1:
        """Copy what the next call may change."""
        cdef Py_ssize_t k
        if self.n > 0 and self.each[0].before == NULL:
            self.allocate()
        for k in range(self.n):
            memcpy(self.each[k].before, self.each[k].at, self.each[k].changing)
        return 0

    cdef int allocate(self) except -1:
        cdef Py_ssize_t k, start = 0
        self.copies = np.empty(self.size, dtype=np.uint8)
        for k in range(self.n):
            self.each[k].before = <char*> &self.copies[start]
            start += self.each[k].size
        return 0

    cdef void restore(self) noexcept nogil:
        """Undo the changes since `save`."""
        cdef Py_ssize_t k
        for k in range(self.n):
            memcpy(self.each[k].at, self.each[k].before, self.each[k].changing)

    cdef dict values(self):
        """Copies of the fields by name: numbers, arrays, and dicts of the numbers of structs whose names are known."""
        cdef Py_ssize_t k, start, size
        cdef unsigned char* at
        values = {}
        for name, (k, start, size, kind) in self.places.items():
            at = <unsigned char*> self.each[k].at + start
            if kind is None and size == sizeof(double):  # most are, in a tenth of the time that an array takes
                values[name] = (<double*> at)[0]
                continue
            held = np.asarray(<unsigned char[:size]> at).view(type_of(size))
            if type(kind) is tuple:
                values[name] = dict(zip(kind, held.tolist(), strict=True))
            else:
                values[name] = held.item() if len(held) == 1 and kind is None else held.copy()
        return values

    cdef int continue_from(self, dict given) except -1:
        """Set all fields to a result of `values`."""
        for name in self.places:
            self.assign(name, given)
        return 0


cdef class Stateful:
    """Base class of what has a state: it is copied, pickled and written to files as the arguments of its constructor
    and what has changed since then, by name.

    All arguments are given by position, or a constructor sets `arguments` to those of a copy. The last parameter is
    `state`, if there is one, a result of `get_state` to continue from, which this class reads: fields continue from it
    when they are declared. What has no fixed place in memory, such as objects, a subclass adds to the result of
    `get_state`, and takes out of `given`.
    """

    def __cinit__(self, *arguments, **more):
        cdef Py_ssize_t n = len(arguments)
        self.given = {}
        if n > 0 and type(arguments[n - 1]) is dict:
            self.given, arguments = arguments[n - 1].copy(), arguments[:n - 1]
        self.arguments = tuple([np.array(value) if isinstance(value, np.ndarray) else value for value in arguments])
        self.fields = State(self.given)

    def __reduce__(self):
        state = self.get_state()
        return type(self), (*self.arguments, state) if state else self.arguments

    def get_state(self):
        """What rows and settings have changed, by name: copies of numbers and arrays, and objects."""
        return self.fields.values()


cdef class Undoable(Stateful):
    """Base class of the parts of learners."""

    cdef int save(self, Py_ssize_t n_rows) except -1:
        """Save what `restore` restores; the next call has `n_rows` rows."""
        return self.fields.save()

    cdef void restore(self) noexcept:
        """Undo the call."""
        self.fields.restore()

    cdef void hold(self) noexcept nogil:
        """Keep what predictions depend on as it is, as the next rows were predicted together, until `release`."""

    cdef void release(self) noexcept nogil:
        """Go on with what these rows have said."""


cdef number_of(str name, dict given, Py_ssize_t size, kind):
    """The bytes of a value among those of `values`; what is in a damaged file may be of any kind."""
    if name not in given:
        raise ValueError(f"the numbers to continue from must contain {name}; got {sorted(given)}")
    value = given[name]
    if type(kind) is tuple:
        if type(value) is not dict or value.keys() != set(kind):
            raise ValueError(f"{name} must have the numbers {kind}; got {value!r}")
        value = [value[part] for part in kind]
    value = value if isinstance(value, np.ndarray) else np.array(value, dtype=type_of(size))
    if value.nbytes != size:
        raise ValueError(f"{name} must have {size} bytes; got {value.nbytes}")
    if value.dtype != type_of(size) or (type(kind) is not tuple and np.isnan(value).any()):  # slacks may be undefined
        raise ValueError(f"{name} must be of {type_of(size)} and not NaN; got {value!r}")
    return np.ascontiguousarray(value).reshape(-1).view(np.uint8)


cdef type_of(Py_ssize_t size):
    return np.float64 if size % sizeof(double) == 0 else np.intc
