"""scikit-learn's tests of this module, run on a metric learner of this package under the name of NCA."""

import numpy as np
import pytest
from sklearn import neighbors
from sklearn_shim.shim import load

from onlinebregman import LogDetMetricLearner

# a warning that only the settings of this package's tests turn into an error
pytestmark = pytest.mark.filterwarnings("ignore:All rows were of one class")


class Callback:
    """A function callback(transformation, n_iter), as one of scikit-learn's callbacks."""

    def __init__(self, function):
        self.function, self.n_iter = function, 0

    def setup(self, estimator, context):
        self.n_iter = 0

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **data):
        pass

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None, **data):
        if context.task_name == "epoch":
            self.n_iter += 1
            self.function(fitted_estimator.components_.ravel(), self.n_iter)


class NeighborhoodComponentsAnalysis(LogDetMetricLearner):
    """A matrix L as `init` is the metric L'L + 1e-6 I, of full rank; the names of `init` are those of `prior`."""

    def __init__(
        self,
        n_components=None,
        *,
        init="auto",
        warm_start=False,
        max_iter=50,
        tol=1e-5,
        callback=None,
        verbose=0,
        random_state=None,
    ):
        parameters = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        vars(self).update({**LogDetMetricLearner().get_params(), **parameters})
        del vars(self)["prior"]
        if callback is not None:
            self.set_callbacks(Callback(callback))

    @property
    def prior(self):
        if isinstance(self.init, str):
            return self.init
        return self.init.T @ self.init + 1e-6 * np.eye(self.init.shape[1])

    _parameter_constraints = {"prior": "no_validation"}


globals().update(load("test_nca", neighbors, (NeighborhoodComponentsAnalysis,)))
