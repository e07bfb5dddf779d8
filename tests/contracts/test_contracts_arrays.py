"""Contracts of the output of every public estimator: arrays computed on access are read-only, all are float64."""

import copy
import io
import pickle

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.utils import get_tags

from onlinebregman import ImplicitGDRegressor
from onlinebregman.linear_model._base import OnlineLinearModel


def made_afresh(model):
    """The arrays among the public attributes that are computed on access, by their names."""
    names = [name for name in dir(type(model)) if name.endswith("_") and not name.startswith("_")]
    values = {name: getattr(model, name, None) for name in names if name not in vars(model)}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def test_arrays_computed_on_access_are_read_only(estimator, rows, learn):
    """Changes of a copy would be lost: an error is better."""
    model = learn(estimator, *rows)
    arrays = made_afresh(model)
    for copied in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model)), joblib.load(saved(model))):
        for name, array in made_afresh(copied).items():
            with pytest.raises(ValueError, match="read-only"):
                array[...] = arrays[name]
    learn(model, *rows)  # arrays that were read do not prevent further learning


def saved(model):
    """A model in joblib's format."""
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return file


def test_such_arrays_are_found():
    model = ImplicitGDRegressor().partial_fit([[1.0, 2.0]], [3.0])
    assert list(made_afresh(model)) == ["coef_"]


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_rows_of_float32_are_answered_in_float64(estimator, rows, learn, outputs, layout):
    """Weights are float64 for rows of any type, and so are predictions, as in scikit-learn's SGD, but not `coef_`."""
    if layout == "csr" and not get_tags(estimator).input_tags.sparse:
        pytest.skip("takes no sparse rows")
    X, y = rows
    for learned in (X, X.astype(np.float32)):
        model = learn(copy.deepcopy(estimator), learned, y)
        narrow = X.astype(np.float32)
        wide = narrow.astype(np.float64)
        if layout == "csr":
            narrow, wide = sparse.csr_array(narrow), sparse.csr_array(wide)
        for name in outputs:
            if not hasattr(model, name) or (name == "predict" and (is_classifier(model) or is_outlier_detector(model))):
                continue
            said = getattr(model, name)(narrow)
            assert said.dtype == np.float64, name
            np.testing.assert_allclose(said, getattr(model, name)(wide), rtol=1e-12, atol=1e-12, err_msg=name)
        for name, array in made_afresh(model).items():
            single = name == "coef_" and isinstance(model, OnlineLinearModel) and learned.dtype == np.float32
            assert array.dtype.kind in "iUO" or array.dtype == (np.float32 if single else np.float64), name
