"""Mixtures of experts: forecasts weighted according to their past losses, with regret bounds for every stream."""

from .classifier import BayesMixture, ExpertMixtureClassifier
from .density import DensityMixture
from .regressor import ExpertMixtureRegressor

__all__ = ["BayesMixture", "DensityMixture", "ExpertMixtureClassifier", "ExpertMixtureRegressor"]
