"""Types of arguments: array-likes, and rows, which may be sparse."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

MatrixLike = ArrayLike | sparse.spmatrix | sparse.sparray
Values = Any  # an array, or a `Tensor` of a graph, which takes the same functions
RandomState = int | np.random.RandomState | None
