"""Mixtures of experts: forecasts weighted according to their past losses, with regret bounds for every stream."""

from .bayes import BayesMixture
from .classifier import ExpertMixtureClassifier
from .density import DensityMixture
from .regressor import ExpertMixtureRegressor

__all__ = [
    "BayesMixture",
    "DensityMixture",
    "ExpertMixtureClassifier",
    "ExpertMixtureRegressor",
]
