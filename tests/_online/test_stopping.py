"""The epoch at which `fit` stops by `tol`, for losses that are known exactly."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from onlinebregman import ImplicitGDRegressor, PerceptronClassifier
from onlinebregman._online.estimator import EpochEstimator, Examples


class Replay(EpochEstimator):
    """Epochs whose mean losses are given."""

    shuffle, verbose, random_state = False, 0, None

    def __init__(self, losses, tol, n_iter_no_change):
        self.losses, self.tol, self.n_iter_no_change, self.max_iter = losses, tol, n_iter_no_change, len(losses)

    def fit(self):
        losses = iter(self.losses)
        self._learn_in_epochs(lambda data, order, again: next(losses), Examples(np.zeros((1, 1))), None, None)
        return self


@pytest.mark.parametrize("patience", [1, 3])
def test_a_loss_that_does_not_change_stops_the_fit_even_at_tol_0(patience):
    """Rows of zeros change nothing: the first epoch sets the best loss, the next ones are not below it."""
    settings = {"max_iter": 20, "tol": 0.0, "n_iter_no_change": patience, "fit_intercept": False}
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = ImplicitGDRegressor(**settings).fit([[0.0], [0.0]], [1.0, 3.0])
        assert model.loss_curve_ == [2.5] * (1 + patience)
        classifier = PerceptronClassifier(**settings).fit([[0.0], [0.0]], ["a", "b"])
        assert classifier.n_iter_ == 1 + patience


@pytest.mark.parametrize(
    ("losses", "tol", "patience", "epochs"),
    [
        ([8.0, 7.0, 6.0, 5.0, 4.0], 1.0, 2, 3),  # falls by tol itself, which is not more than tol
        ([8.0, 6.5, 5.0, 3.5, 2.0], 1.0, 2, None),  # by more, each time
        ([8.0, 7.5, 6.5, 6.5, 6.5], 1.0, 2, 3),  # slowly: below the best of all by no more than tol, twice
        ([8.0, 9.0, 6.5, 9.0, 9.0], 1.0, 2, 5),  # a fall in between restarts the count
        ([8.0, 9.0, 9.0, 1.0, 1.0], 0.0, 2, 3),
        ([5.0, 9.0, 7.0, 6.0, 6.0], 1.0, 2, 3),  # below the epoch before, but not below the best
        ([8.0, 8.0, 8.0, 8.0, 8.0], None, 2, None),
    ],
)
def test_epochs_until_the_loss_has_converged(losses, tol, patience, epochs):
    model = Replay(losses, tol, patience)
    if epochs is None and tol is not None:
        with pytest.warns(ConvergenceWarning, match="before its loss converged"):
            model.fit()
    else:
        model.fit()
    assert model.n_iter_ == (epochs or len(losses))
    assert model.loss_curve_ == losses[: model.n_iter_]
