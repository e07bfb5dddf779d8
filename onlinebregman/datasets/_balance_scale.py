"""The balance scale data set, which is defined by a rule."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from ._frames import add_frames

_DESCR = """\
Balance scale: 625 rows, 4 features, 3 classes (L 288, B 49, R 288)

A weight hangs on each arm of a balance; both weights and both distances from the pivot run over 1, ..., 5. By the
lever rule the scale tips to the side of the larger weight x distance (L, R) or stays balanced (B). The rows are all
5^4 cases. The data model the experiments of Siegler (1976) and are known as "Balance Scale" in the UCI repository.
"""


def load_balance_scale(*, return_X_y: bool = False, as_frame: bool = False) -> Bunch | tuple[Any, Any]:
    """Return the balance scale data: all 625 cases of the lever rule.

    The features are the weight and the distance on the left and on the right arm, each from 1 to 5. The class is B
    (balanced), L or R (tips to the left, right): the side where weight x distance is larger. No file is read; the rows
    are those of the UCI data set, the last feature changing fastest.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return `(data, target)` instead of a Bunch.
    as_frame : bool, default=False
        Return pandas objects; needs pandas.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        With `data` of shape (625, 4), `target` of shape (625,) with the classes 0, 1, 2, `feature_names`,
        `target_names` (the classes' letters), `frame` (with `as_frame=True`, else None) and `DESCR`.
    (data, target) : tuple, if `return_X_y`
        The two alone.

    References
    ----------
    .. [1] R. S. Siegler, "Three Aspects of Cognitive Development", Cognitive Psychology 8, 1976.

    Examples
    --------
    >>> from onlinebregman.datasets import load_balance_scale
    >>> scale = load_balance_scale()
    >>> scale.data.shape
    (625, 4)
    >>> weight, distance, other_weight, other_distance = scale.data[300]
    >>> print(weight * distance, other_weight * other_distance, scale.target_names[scale.target[300]])
    9.0 1.0 L
    """
    data = np.array(list(product(range(1, 6), repeat=4)), dtype=np.float64)
    torque = data[:, 0] * data[:, 1] - data[:, 2] * data[:, 3]
    target = np.select([torque == 0, torque > 0], [0, 1], default=2)
    bunch = Bunch(
        data=data,
        target=target,
        feature_names=["left_weight", "left_distance", "right_weight", "right_distance"],
        target_names=np.array(["B", "L", "R"]),
        frame=None,
        DESCR=_DESCR,
    )
    if as_frame:
        add_frames(bunch)
    return (bunch.data, bunch.target) if return_X_y else bunch
