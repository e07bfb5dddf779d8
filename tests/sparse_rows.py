"""Sparse rows of any types."""

import numpy as np
from scipy import sparse


def csr(X, index=np.int32, values=np.float64):
    X = sparse.csr_array(X, dtype=values)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X
