"""The same tests in less time: what takes long in the tools around them is left out."""

import gc

import numpy as np


def pytest_collection_finish(session):
    """The collected tests stay until the end, and need not be searched for garbage again and again."""
    gc.collect()
    gc.freeze()


def shorten_the_search_for_data_frames():
    """scikit-learn asks narwhals about each argument, which looks for methods of data frames in all of its bases."""
    try:
        from narwhals.stable.v2 import dependencies
    except ImportError:  # older versions of scikit-learn do without
        return
    for name in ("is_into_dataframe", "is_into_series"):
        setattr(dependencies, name, _knowing_arrays(getattr(dependencies, name)))


def _knowing_arrays(ask):
    return lambda value: type(value) not in (np.ndarray, list) and ask(value)
