"""Random Fourier features of rows: linear models of them are models of a shift-invariant kernel.

z_j = sqrt(2 / n) cos(omega_j.x + b_j) with omega_j from the Fourier transform of the kernel and b_j uniform: the mean
of z(x).z(x') is the kernel (Rahimi, Recht, "Random Features for Large-Scale Kernel Machines", 2007).
"""

import numpy as np

cimport cython
from libc.math cimport sqrt
from libc.string cimport memcpy

from onlinebregman._kernels.ops.exp cimport ob_cosines
from onlinebregman._kernels.ops.row cimport ob_add_rows
from onlinebregman._kernels.ops.state cimport Stateful
from onlinebregman._kernels.ops.state import aligned
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
        self.frequencies = np.array(frequencies, dtype=np.float64, order="C")
        omega = np.atleast_2d(self.frequencies.T)
        self.omega = aligned(omega.ravel()).reshape(omega.shape)
        self.phases = self.b = np.array(phases, dtype=np.float64)
        self.n_features, self.n_components = self.omega.shape[0], self.omega.shape[1]
        if self.n_features == 0 or self.n_components == 0 or self.b.shape[0] != self.n_components:
            raise ValueError(
                "frequencies must be of shape (n_components, n_features), neither of them 0, and phases of shape "
                f"(n_components,); got {np.shape(frequencies)} and {np.shape(phases)}"
            )
        self.arguments = self.frequencies, self.phases

    cdef void apply(self, const Row* row, double* z) noexcept nogil:
        cdef Py_ssize_t n = self.n_components
        memcpy(z, &self.b[0], n * sizeof(double))
        ob_add_rows(z, &self.omega[0, 0], row.index, row.x, row.n, n)
        ob_cosines(z, sqrt(2.0 / n), n)
