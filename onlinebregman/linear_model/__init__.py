"""Linear models, learned row by row."""

from .burg import BurgRegressor
from .eg import EGRegressor
from .forward import ForwardRegressor
from .forward_classifier import ForwardClassifier
from .implicit_gd import ImplicitGDRegressor
from .mirror_descent import MirrorDescentClassifier, MirrorDescentRegressor
from .mistake_driven import PerceptronClassifier, WinnowClassifier
from .one_class import OneClassMirrorDescent
from .pnorm import PNormClassifier, PNormRegressor
from .scale_invariant import ScaleInvariantClassifier, ScaleInvariantRegressor

__all__ = [
    "BurgRegressor",
    "EGRegressor",
    "ForwardClassifier",
    "ForwardRegressor",
    "ImplicitGDRegressor",
    "MirrorDescentClassifier",
    "MirrorDescentRegressor",
    "OneClassMirrorDescent",
    "PNormClassifier",
    "PNormRegressor",
    "PerceptronClassifier",
    "ScaleInvariantClassifier",
    "ScaleInvariantRegressor",
    "WinnowClassifier",
]
