"""Blocks of rows, read where they lie: C-contiguous float64 or float32 arrays, and canonical CSR matrices."""

import numpy as np
from scipy.sparse import csr_array, csr_matrix, issparse

cimport cython
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBuffer_Release, PyObject_GetBuffer
from libc.math cimport NAN
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

cdef extern from "ops/row.h":
    double ob_nonfinite(const double* a, Py_ssize_t n) noexcept nogil
    void OB_PREFETCH(const void* p) noexcept nogil
    bint ob_places(int32_t* place, const int32_t* column, Py_ssize_t n) noexcept nogil
    void ob_scatter(double* w, const double* v, const Py_ssize_t* index, Py_ssize_t n) noexcept nogil
    void ob_widen_values(double* x, const float* a, Py_ssize_t n) noexcept nogil
    void ob_widen_columns(Py_ssize_t* index, const int32_t* a, Py_ssize_t n) noexcept nogil

cdef type ndarray = np.ndarray

# From this many columns on the weights do not stay in a core's own cache, and each row's are asked for a row ahead.
cdef Py_ssize_t LARGE = 1 << 16


ctypedef fused Column:
    int32_t
    int64_t


cdef inline bint increasing(const Column* a, Py_ssize_t n) noexcept nogil:
    """Is each number larger than the one before?"""
    cdef Py_ssize_t i
    cdef Column descents = 0
    for i in range(n - 1):
        descents |= a[i] >= a[i + 1]
    return descents == 0


cdef inline bint all_below(const Column* a, Py_ssize_t n, Py_ssize_t bound) noexcept nogil:
    """Are all numbers from 0 to the bound, less one?"""
    cdef Py_ssize_t i
    cdef Column least = 0, largest = 0
    for i in range(n):
        least, largest = min(least, a[i]), max(largest, a[i])
    return least == 0 and (n == 0 or largest < bound)


cdef bint is_aligned(const Py_buffer* buffer) noexcept:
    """Can its values be read as what they are? Memory that NumPy has not laid out itself may begin anywhere."""
    return buffer.itemsize > 0 and <size_t> buffer.buf % <size_t> buffer.itemsize == 0


cpdef object in_doubles(values):
    """A plain array of numbers, or a list of int and float, copied to C-contiguous float64; None for all others."""
    if type(values) is list:
        for value in values:
            if type(value) is not float and type(value) is not int:
                return None
    elif type(values) is not ndarray or values.dtype.kind not in "fiu":
        return None
    try:
        return np.array(values, dtype=np.float64, order="C")
    except OverflowError:
        return None


def all_finite(values):
    """Is it certain, at one look, that values are finite? False may mean that they are no array of floats, too."""
    cdef Py_buffer buffer
    cdef Py_ssize_t i, k, n
    cdef const float* a
    cdef float[8] sums
    cdef double total = NAN
    if type(values) is not ndarray:
        return False
    try:
        PyObject_GetBuffer(values, &buffer, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)
    except (BufferError, ValueError):
        return False
    if is_aligned(&buffer) and buffer.format == b"d":
        total = ob_nonfinite(<const double*> buffer.buf, buffer.len // buffer.itemsize)
    elif is_aligned(&buffer) and buffer.format == b"f":
        a, n, total = <const float*> buffer.buf, buffer.len // buffer.itemsize, 0.0
        memset(sums, 0, sizeof(sums))
        for i in range(0, n - n % 8, 8):
            for k in range(8):
                sums[k] += a[i + k] * 0.0
        for i in range(n - n % 8, n):
            sums[0] += a[i] * 0.0
        for k in range(8):
            total += sums[k]
    PyBuffer_Release(&buffer)
    return total == 0


cdef bint hold_doubles(values, Py_buffer* buffer):
    """Hold the buffer of numbers as float64, where they are or in a copy; False for all others: nothing is held."""
    cdef int attempt
    for attempt in range(2):
        if attempt == 1 or type(values) is not ndarray:
            values = in_doubles(values)
            if values is None:
                return False
        try:
            PyObject_GetBuffer(values, buffer, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)
        except (BufferError, ValueError):
            continue
        if buffer.format == b"d" and is_aligned(buffer):
            return True
        PyBuffer_Release(buffer)
    return False


cdef inline Py_ssize_t integer(const char* values, int size, Py_ssize_t i) noexcept nogil:
    return (<const int32_t*> values)[i] if size == 4 else <Py_ssize_t> (<const int64_t*> values)[i]


@cython.final
cdef class Rows:
    """A block of rows; `fetch` points a `Row` at one of them."""

    def __dealloc__(self):
        while self.held:
            self.held -= 1
            PyBuffer_Release(&self.buffers[self.held])
        free(self.memory)
        free(self.index)
        free(self.room)
        free(self.order_room)

    cdef bint take(self, array, int ndim):
        """Hold the buffer of one more aligned, C-contiguous array of plain numbers; False if it is something else."""
        cdef Py_buffer* buffer = &self.buffers[self.held]
        try:
            PyObject_GetBuffer(array, buffer, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)
        except (BufferError, TypeError, ValueError):
            return False
        self.held += 1
        return buffer.ndim == ndim and buffer.format != NULL and buffer.format[1] == 0 and is_aligned(buffer)

    cdef int allocate(self) except -1:
        """The memory to widen rows that are not float64 with Py_ssize_t for indices."""
        if self.value_size != sizeof(double):
            self.memory = malloc(max(self.widest, 1) * sizeof(double) + 64)
            if self.memory == NULL:
                raise MemoryError()
            self.x = <double*> ((<size_t> self.memory + 63) & ~<size_t> 63)
        if self.indices != NULL and self.index_size != sizeof(Py_ssize_t):
            self.index = <Py_ssize_t*> malloc(max(self.widest, 1) * sizeof(Py_ssize_t))
            if self.index == NULL:
                raise MemoryError()
        return 0

    cdef int make_room(self, bint filled) except -1:
        """The memory for a row that is changed before it is learned; `filled`: which has all columns then."""
        if self.z != NULL:
            return 0
        filled = filled and self.indices != NULL
        if filled:
            self.widest, self.stored = self.n_columns, self.n_rows * self.n_columns
        self.room = malloc((1 + filled) * max(self.widest, 1) * sizeof(double) + 64)
        if self.room == NULL:
            raise MemoryError()
        self.z = <double*> ((<size_t> self.room + 63) & ~<size_t> 63)
        if filled:
            self.filled = self.z + self.widest
        return 0

    cdef void fill(self, Row* row) noexcept nogil:
        """Make a sparse row dense, if there is room for it."""
        if self.filled != NULL:
            memset(self.filled, 0, self.n_columns * sizeof(double))
            ob_scatter(self.filled, row.x, row.index, row.n)
            row.x, row.index, row.n = self.filled, NULL, self.n_columns

    cdef int take_in_order(self, order) except -1:
        """Take the rows in this order, an array of intp, or in the one they are in if it is None."""
        cdef int held = self.held
        if order is not None:
            if not (self.take(order, 1) and self.buffers[held].format[0] in b"lq"
                    and self.buffers[held].itemsize == sizeof(Py_ssize_t)):
                raise TypeError("an order of rows has to be a C-contiguous array of intp")
            self.order = <const Py_ssize_t*> self.buffers[held].buf
        return 0

    cdef void fetch(self, Py_ssize_t i, Row* row) noexcept nogil:
        cdef Py_ssize_t start
        if self.indices == NULL:
            start, row.n = i * self.n_columns, self.n_columns
            row.index = NULL
        else:
            start = integer(self.indptr, self.index_size, i)
            row.n = integer(self.indptr, self.index_size, i + 1) - start
            if self.index == NULL:
                row.index = (<const Py_ssize_t*> self.indices) + start
            else:
                ob_widen_columns(self.index, (<const int32_t*> self.indices) + start, row.n)
                row.index = self.index
        if self.x == NULL:
            row.x = (<const double*> self.values) + start
        else:
            ob_widen_values(self.x, (<const float*> self.values) + start, row.n)
            row.x = self.x
        if self.entries != NULL and not self.increases(start, start + row.n):
            self.put_in_order(row)

    cdef void put_in_order(self, Row* row) noexcept nogil:
        """The row with its columns in order; values of one column are added up as they come, in their precision."""
        cdef Py_ssize_t k, n = 0
        cdef Entry* sorted_entries
        cdef double value
        cdef int32_t[FEW] place
        if find_places(<const int64_t*> row.index, row.n, place):
            for k in range(row.n):
                self.ordered_x[place[k]], self.ordered_index[place[k]] = row.x[k], row.index[k]
            row.x, row.index = self.ordered_x, self.ordered_index
            return
        for k in range(row.n):
            self.entries[k] = <Entry> row.index[k] << 32 | <Entry> k
        sorted_entries = by_digits(self.entries, self.other_entries, row.n, self.n_columns)
        for k in range(row.n):
            value = row.x[<uint32_t> sorted_entries[k]]
            if n > 0 and self.ordered_index[n - 1] == <Py_ssize_t> (sorted_entries[k] >> 32):
                value += self.ordered_x[n - 1]
                self.ordered_x[n - 1] = value if self.x == NULL else <double> <float> value
            else:
                self.ordered_index[n] = <Py_ssize_t> (sorted_entries[k] >> 32)
                self.ordered_x[n] = value
                n += 1
        row.x, row.index, row.n = self.ordered_x, self.ordered_index, n

    cdef int make_order(self) except -1:
        """The memory to put rows in order."""
        self.order_room = malloc(4 * max(self.widest, 1) * sizeof(double) + 64)
        if self.order_room == NULL:
            raise MemoryError()
        self.ordered_x = <double*> ((<size_t> self.order_room + 63) & ~<size_t> 63)
        self.ordered_index = <Py_ssize_t*> (self.ordered_x + self.widest)
        self.entries = <Entry*> (self.ordered_index + self.widest)
        self.other_entries = self.entries + self.widest
        return 0

    cdef void prefetch(self, Py_ssize_t i, const double* weights, Py_ssize_t per_feature) noexcept nogil:
        """Have the weights of row i brought near, if it is sparse and they may be far."""
        cdef Py_ssize_t b, k
        if self.indices == NULL or self.n_columns < LARGE:
            return
        for b in range(per_feature):
            for k in range(integer(self.indptr, self.index_size, i), integer(self.indptr, self.index_size, i + 1)):
                OB_PREFETCH(weights + b * self.n_columns + integer(self.indices, self.index_size, k))

    cdef bint increases(self, Py_ssize_t start, Py_ssize_t end) noexcept nogil:
        """Are these columns in range, and each larger than the one before?"""
        if start == end:
            return True
        if integer(self.indices, self.index_size, start) < 0:
            return False
        if integer(self.indices, self.index_size, end - 1) >= self.n_columns:
            return False
        if self.index_size == 4:
            return increasing((<const int32_t*> self.indices) + start, end - start)
        return increasing((<const int64_t*> self.indices) + start, end - start)

    cdef bint in_range(self, Py_ssize_t start, Py_ssize_t end) noexcept nogil:
        """Are these columns ones that there are?"""
        if self.index_size == 4:
            return all_below((<const int32_t*> self.indices) + start, end - start, self.n_columns)
        return all_below((<const int64_t*> self.indices) + start, end - start, self.n_columns)


cdef enum:
    DIGIT = 6                 # bits by which entries are sorted at a time
    FEW = 64                  # columns of which each is compared with each; a multiple of 16


def in_order(X):
    """A copy of a sound CSR matrix whose rows have their columns in order; equal ones stay as they come.

    By digits, which takes a quarter of the time that comparisons do: on short keys no branch has to be guessed.
    """
    indices = np.empty_like(X.indices)
    if X.indices.dtype == np.int32:
        places = sorted_places[int32_t](X.indices, X.indptr, indices, X.shape[1])
    else:
        places = sorted_places[int64_t](X.indices, X.indptr, indices, X.shape[1])
    return type(X)((X.data[places], indices, X.indptr.copy()), shape=X.shape)


cdef sorted_places(const Column[::1] given, const Column[::1] ends, Column[::1] columns, Py_ssize_t n_columns):
    """Write the columns in order, and return from where the values come."""
    cdef Py_ssize_t i, k, start, n, widest = 0, n_rows = ends.shape[0] - 1
    cdef Py_ssize_t[::1] places
    for i in range(n_rows):
        widest = max(widest, ends[i + 1] - ends[i])
    order = np.empty(given.shape[0], dtype=np.intp)
    room = np.empty((2, max(widest, 1)), dtype=np.uint64)
    cdef Entry[:, ::1] entries = room
    cdef int32_t[FEW] place
    cdef Entry* sorted_entries
    places = order
    with nogil:
        for i in range(n_rows):
            start, n = ends[i], ends[i + 1] - ends[i]
            if n and find_places(&given[start], n, place):
                for k in range(n):
                    columns[start + place[k]], places[start + place[k]] = given[start + k], start + k
                continue
            for k in range(n):
                entries[0, k] = <Entry> given[start + k] << 32 | <Entry> k
            sorted_entries = by_digits(&entries[0, 0], &entries[1, 0], n, n_columns)
            for k in range(n):
                columns[start + k] = <Column> (sorted_entries[k] >> 32)
                places[start + k] = start + <Py_ssize_t> <uint32_t> sorted_entries[k]
    return order


cdef inline bint find_places(const Column* columns, Py_ssize_t n, int32_t* place) noexcept nogil:
    """Where few columns, all different, belong; False for others."""
    cdef int32_t[FEW] narrow
    cdef Py_ssize_t k
    if n > FEW:
        return False
    memset(narrow, 0, sizeof(narrow))
    for k in range(n):
        narrow[k] = <int32_t> columns[k]
    return ob_places(place, narrow, n)


cdef Entry* by_digits(Entry* a, Entry* b, Py_ssize_t n, Py_ssize_t bound) noexcept nogil:
    """Sort entries of columns below the bound; they end in a or in b."""
    cdef Py_ssize_t[1 << DIGIT] begin
    cdef Py_ssize_t k, digit, total, count
    cdef int shift = 32
    while bound > 0:
        memset(begin, 0, sizeof(begin))
        for k in range(n):
            begin[(a[k] >> shift) & ((1 << DIGIT) - 1)] += 1
        total = 0
        for digit in range(1 << DIGIT):
            count, begin[digit] = begin[digit], total
            total += count
        for k in range(n):
            digit = (a[k] >> shift) & ((1 << DIGIT) - 1)
            b[begin[digit]] = a[k]
            begin[digit] += 1
        a, b = b, a
        shift += DIGIT
        bound >>= DIGIT
    return a


cdef Rows dense_rows(X):
    """Rows of a C-contiguous 2-D array of float64 or float32; None if it is something else."""
    cdef Rows rows = Rows.__new__(Rows)
    if not rows.take(X, 2) or rows.buffers[0].format[0] not in b"df":
        return None
    rows.values, rows.value_size = <const char*> rows.buffers[0].buf, rows.buffers[0].itemsize
    rows.n_rows, rows.n_columns = rows.buffers[0].shape[0], rows.buffers[0].shape[1]
    rows.widest, rows.stored = rows.n_columns, rows.n_rows * rows.n_columns
    rows.allocate()
    return rows


cdef Rows sparse_rows(X):
    """Rows of a CSR matrix of float64 or float32; None if it is something else.

    Rows whose columns do not increase are put in order when they are fetched.
    """
    cdef Rows rows = Rows.__new__(Rows)
    cdef Py_ssize_t i, start, end
    cdef bint ordered = True
    if not (rows.take(X.data, 1) and rows.take(X.indices, 1) and rows.take(X.indptr, 1)) or len(X.shape) != 2:
        return None
    if rows.buffers[0].format[0] not in b"df" or rows.buffers[1].itemsize != rows.buffers[2].itemsize:
        return None
    for i in range(1, 3):
        if rows.buffers[i].format[0] not in b"ilq" or rows.buffers[i].itemsize not in (4, 8):
            return None
    rows.values, rows.value_size = <const char*> rows.buffers[0].buf, rows.buffers[0].itemsize
    rows.indices, rows.index_size = <const char*> rows.buffers[1].buf, rows.buffers[1].itemsize
    rows.indptr = <const char*> rows.buffers[2].buf
    rows.n_rows, rows.n_columns = X.shape
    if rows.n_rows < 0 or rows.buffers[2].shape[0] != rows.n_rows + 1:
        return None
    start = integer(rows.indptr, rows.index_size, 0)
    rows.stored = integer(rows.indptr, rows.index_size, rows.n_rows) - start
    if start != 0 or rows.stored > rows.buffers[0].shape[0] or rows.stored > rows.buffers[1].shape[0]:
        return None
    for i in range(rows.n_rows):
        end = integer(rows.indptr, rows.index_size, i + 1)
        if not start <= end <= rows.stored:
            return None
        rows.widest = max(rows.widest, end - start)
        if not rows.increases(start, end):
            if not rows.in_range(start, end) or rows.n_columns >= <Py_ssize_t> 1 << 31:
                return None
            ordered = False
        start = end
    rows.allocate()
    if not ordered:
        rows.make_order()
    return rows


cdef Rows try_rows(X):
    """The rows of X if it is an array of numbers, or CSR as the kernels read it, and no subclass; else None."""
    cdef Rows rows
    if type(X) is ndarray:
        rows = dense_rows(X)
        if rows is None and X.ndim == 2:
            X = X.copy() if X.dtype == np.float32 else in_doubles(X)
            rows = None if X is None else dense_rows(X)
        return rows
    if type(X) is csr_matrix or type(X) is csr_array:
        return sparse_rows(X)
    return None


cdef Rows open_rows(X):
    """The rows of validated X, dense or CSR."""
    cdef Rows rows = sparse_rows(X) if issparse(X) else dense_rows(X)
    if rows is None:
        raise TypeError("X has to be a C-contiguous array of float64 or float32, or CSR in canonical format")
    return rows
