"""Types of arguments: array-likes, and rows, which may be sparse."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

MatrixLike = ArrayLike | sparse.spmatrix | sparse.sparray
RandomState = int | np.random.RandomState | None
