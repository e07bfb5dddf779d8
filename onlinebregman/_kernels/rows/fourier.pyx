"""Random Fourier features of rows: linear models of them are models of a shift-invariant kernel.

z_j = sqrt(2 / n) cos(omega_j.x + b_j) with omega_j from the Fourier transform of the kernel and b_j uniform: the mean
of z(x).z(x') is the kernel (Rahimi, Recht, "Random Features for Large-Scale Kernel Machines", 2007).
"""

import numpy as np

cimport cython
from libc.math cimport sqrt

from onlinebregman._kernels.ops.exp cimport ob_cosines
from onlinebregman._kernels.ops.row cimport ob_dot4, ob_sparse_dot
from onlinebregman._kernels.ops.state cimport Stateful
from onlinebregman._kernels.ops.vector cimport ob_dot
from onlinebregman._kernels.rows.rows cimport Row


@cython.final
cdef class FourierFeatures(Stateful):
    """The map from rows to random Fourier features.

    Parameters
    ----------
    frequencies : ndarray of shape (n_components, n_features)
        omega / (2 pi).
    phases : ndarray of shape (n_components,)
        b / (2 pi).
    """

    def __cinit__(self, frequencies, phases):
        self.frequencies = self.omega = np.array(frequencies, dtype=np.float64, order="C")
        self.phases = self.b = np.array(phases, dtype=np.float64)
        self.n_components, self.n_features = self.omega.shape[0], self.omega.shape[1]
        if self.n_features == 0 or self.n_components == 0 or self.b.shape[0] != self.n_components:
            raise ValueError(
                "frequencies must be of shape (n_components, n_features), neither of them 0, and phases of shape "
                f"(n_components,); got {np.shape(frequencies)} and {np.shape(phases)}"
            )
        self.arguments = self.frequencies, self.phases

    cdef void apply(self, const Row* row, double* z) noexcept nogil:
        cdef Py_ssize_t j = 0, n = self.n_components, d = self.n_features
        cdef const double* w = &self.omega[0, 0]
        if row.index == NULL:
            while j + 4 <= n:
                ob_dot4(w + j * d, w + (j + 1) * d, w + (j + 2) * d, w + (j + 3) * d, row.x, row.n, z + j)
                j += 4
        while j < n:
            z[j] = ob_dot(w + j * d, row.x, row.n) if row.index == NULL else \
                ob_sparse_dot(w + j * d, row.index, row.x, row.n)
            j += 1
        for j in range(n):
            z[j] += self.b[j]
        ob_cosines(z, sqrt(2.0 / n), n)
