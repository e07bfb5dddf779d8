"""Fitted models for other libraries: the methods of several classes that convert them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from onnx import ModelProto


def to_sklearn(self: Any) -> BaseEstimator:
    """Convert the fitted model to estimators of scikit-learn alone, with the same predictions.

    Linear models become `LinearRegression`, `SGDClassifier` or, if their probabilities are a softmax,
    `LogisticRegression`, `OneClassMirrorDescent` becomes `SGDOneClassSVM`; with a link other than the identity a
    `TransformedTargetRegressor`. Metric learners become `NeighborhoodComponentsAnalysis` with their `components_`,
    and nearest neighbours in a metric a pipeline with `KNeighborsClassifier` or `KNeighborsRegressor`, several
    metrics a `VotingClassifier` or `VotingRegressor`. `standardize`, `random_features`, and values that count as
    the largest of their column so far, take preceding steps in a pipeline.

    Returns
    -------
    model : estimator of scikit-learn
        Fitted; predictions differ by rounding. Scale-invariant models and the divergence "diagonal_newton" are only
        the same for rows without values beyond the largest of their column so far, as these were standardised.

    Raises
    ------
    ValueError
        If scikit-learn has no such model.
    """
    from . import to_sklearn

    check_is_fitted(self)
    convert = {"linear": to_sklearn.linear, "metric": to_sklearn.metric, "neighbors": to_sklearn.neighbors}
    return convert[self._sklearn_form](self)


def to_onnx(self: Any, dtype: Literal["float64", "float32"] = "float64") -> ModelProto:
    """Convert the fitted model to ONNX, to predict without Python; requires the package onnx.

    The input is "X" of shape (n_samples, n_features). The outputs of a regressor are "prediction", those of a
    classifier or outlier detector "label", "scores" (`decision_function`), unless it has only probabilities, and
    "probabilities" if it has them. All steps from the row to the prediction are included (standardisation, missing
    values, bins of columns, random features, links, labels of any kind), in operators of ONNX without extensions.

    Parameters
    ----------
    dtype : {"float64", "float32"}, default="float64"
        Type of the numbers. In float64 predictions differ from those of the model by rounding only.

    Returns
    -------
    model : onnx.ModelProto
        To be saved with `onnx.save`, or run with `onnxruntime.InferenceSession(model.SerializeToString())`.

    Raises
    ------
    ImportError
        If onnx is not installed.
    ValueError
        If the model has a link that ONNX does not know, or predicts with update="aioli".
    """
    from . import to_onnx

    check_is_fitted(self)
    convert = {"linear": to_onnx.linear, "mixture": to_onnx.mixture}
    return convert[self._onnx_form](self, dtype)
