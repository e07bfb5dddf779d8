"""Conversion of data sets to pandas, which is only imported on request."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch

from .._online.containers import needed


def add_frames(bunch: Bunch) -> Bunch:
    """Turn the arrays of a data set into pandas objects, with `frame` the two side by side.

    Columns of text become categories, and a data set without a target keeps None.
    """
    pd = needed("pandas", "as_frame=True")
    data = pd.DataFrame(bunch.data, columns=bunch.feature_names).infer_objects()
    texts = [name for name in data.columns if not pd.api.types.is_numeric_dtype(data[name])]
    bunch.data = data.astype(dict.fromkeys(texts, "category"))
    bunch.frame = bunch.data
    if bunch.target is not None:
        target = pd.Series(bunch.target, name="target")
        bunch.target = target if np.issubdtype(np.asarray(bunch.target).dtype, np.number) else target.astype("category")
        bunch.frame = pd.concat([bunch.data, bunch.target], axis=1)
    return bunch
