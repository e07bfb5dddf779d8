"""Linear models, learned row by row."""

from .burg import BurgRegressor
from .eg import EGRegressor
from .implicit_gd import ImplicitGDRegressor

__all__ = ["BurgRegressor", "EGRegressor", "ImplicitGDRegressor"]
