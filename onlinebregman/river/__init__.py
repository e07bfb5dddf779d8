"""Estimators of this package as models of river, which learn rows given as dicts."""

from ._adapters import RiverAnomalyDetector, RiverClassifier, RiverRegressor, to_river

__all__ = ["RiverAnomalyDetector", "RiverClassifier", "RiverRegressor", "to_river"]
