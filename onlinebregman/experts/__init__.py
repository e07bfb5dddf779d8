"""Mixtures of experts: forecasts weighted according to their past losses, with regret bounds for every stream."""

from ._wealth import best_asset, best_constant_portfolio, buy_and_hold, universal_wealth, wealth
from .bayes import BayesMixture
from .classifier import ExpertMixtureClassifier
from .density import DensityMixture
from .portfolio import EGPortfolio
from .regressor import ExpertMixtureRegressor

__all__ = [
    "BayesMixture",
    "DensityMixture",
    "EGPortfolio",
    "ExpertMixtureClassifier",
    "ExpertMixtureRegressor",
    "best_asset",
    "best_constant_portfolio",
    "buy_and_hold",
    "universal_wealth",
    "wealth",
]
