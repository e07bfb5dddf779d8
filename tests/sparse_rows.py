"""Sparse rows of any types, and the layouts that kernels read."""

import numpy as np
from scipy import sparse


def csr(X, index=np.int32, values=np.float64):
    X = sparse.csr_array(X, dtype=values)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X


LAYOUTS = {
    "dense": np.ascontiguousarray,
    "dense float32": lambda X: X.astype(np.float32),
    "csr": sparse.csr_array,
    "csr float32": lambda X: csr(X, values=np.float32),
    "csr, 64-bit indices": lambda X: csr(X, np.int64),
}
