"""The adapter that suits an estimator."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, is_classifier, is_regressor

from ._adapters import RiverAdapter, RiverAnomalyDetector, RiverClassifier, RiverRegressor


def to_river(estimator: BaseEstimator, **options: Any) -> RiverAdapter:
    """An estimator as a model of river: a classifier, a regressor, or an anomaly detector if it has `score_samples`.

    Parameters
    ----------
    estimator : estimator
        An unfitted estimator with `partial_fit`; a clone of it learns.
    **options : dict
        Parameters of the adapter: `RiverClassifier`, `RiverRegressor` or `RiverAnomalyDetector`.

    Returns
    -------
    model : RiverAdapter
        The model.

    Examples
    --------
    >>> from onlinebregman import ForwardClassifier
    >>> from onlinebregman.river import to_river
    >>> model = to_river(ForwardClassifier(standardize=True), classes=["cat", "dog"])
    >>> for x, y in [({"legs": 4, "sound": 0}, "cat"), ({"legs": 4, "sound": 1}, "dog")] * 20:
    ...     p = model.predict_proba_one(x)
    ...     model.learn_one(x, y)
    >>> model.predict_one({"legs": 4, "sound": 1})
    'dog'
    """
    for suits, kind in (
        (is_classifier(estimator), RiverClassifier),
        (is_regressor(estimator), RiverRegressor),
        (hasattr(estimator, "score_samples"), RiverAnomalyDetector),
    ):
        if suits and hasattr(estimator, "partial_fit"):
            return kind(estimator, **options)
    raise ValueError(
        "to_river takes a classifier or regressor with partial_fit, or an estimator with score_samples; got "
        f"{estimator!r}."
    )
