"""metric-learn's tests of this name, run on metric learners of this package."""

from metric_learn_shim.loading import load

globals().update(load("test_fit_transform"))
