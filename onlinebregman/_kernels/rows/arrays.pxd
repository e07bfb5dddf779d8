cdef struct View:             # of an array; valid as long as the array is
    char* at
    char type                 # of its values, as a format character; 0 unless they are numbers of this machine
    Py_ssize_t itemsize       # bytes of a value
    bint contiguous           # in C's order
    bint aligned              # to the size of a value, which memory not allocated by NumPy may not be
    int ndim
    Py_ssize_t[2] shape       # of the first two axes, for any others 1
    Py_ssize_t[2] strides     # bytes from one value to the next along them; an axis of one value has `itemsize`


cdef bint view(array, View* seen)
cpdef object as_float64(values)
cdef object float64_array(values, View* seen)
cdef object empty_float64(Py_ssize_t n, double** at)
