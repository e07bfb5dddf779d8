"""scikit-learn's tests of this module, run on estimators of this package."""

from sklearn_shim.shim import load

globals().update(load("test_sgd"))
