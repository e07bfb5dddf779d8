"""The epoch at which `fit` stops by `tol`, for losses that are known exactly."""

import warnings

import numpy as np
import pytest
from raw import MirrorDescentClassifier, MirrorDescentRegressor, ScaleInvariantRegressor
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from onlinebregman import ImplicitGDRegressor, OneClassMirrorDescent, PerceptronClassifier, PNormRegressor
from onlinebregman._online.mirror import Examples, MirrorEstimator
from onlinebregman.losses import QuantileLoss
from onlinebregman.penalties import ElasticNet


class Replay(MirrorEstimator):
    """Epochs whose mean losses are given."""

    shuffle, verbose, random_state, _learned_penalty = False, 0, None, None

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


@pytest.mark.parametrize(
    "model",
    [
        MirrorDescentRegressor(divergence="squared_euclidean", penalty="elasticnet", alpha=0.3, eta0=0.01),
        MirrorDescentClassifier(divergence="squared_euclidean", penalty="elasticnet", alpha=0.3, eta0=0.01),
        OneClassMirrorDescent(nu=0.3, penalty=ElasticNet(0.3), learning_rate="constant", eta0=0.003, average=False),
    ],
    ids=lambda model: type(model).__name__,
)
def test_tol_compares_the_objective_with_its_penalty(model, monkeypatch):
    """The weights shrink for longer than the loss falls, so that the loss alone would stop earlier."""
    rng = np.random.default_rng(0)
    X, start = rng.normal(size=(40, 3)), np.array([3.0, -2.0, 4.0])
    y = np.arange(40) % 3 if isinstance(model, MirrorDescentClassifier.func) else X @ [1.0, -1.0, 0.5]
    data = (X,) if isinstance(model, OneClassMirrorDescent) else (X, y)
    monkeypatch.setattr(type(model), "_tolerance", lambda model, data: model.tol)  # see below
    coef = np.tile(start, (3, 1)) if isinstance(model, MirrorDescentClassifier.func) else start
    model.set_params(shuffle=False, tol=0.02, n_iter_no_change=2, max_iter=200).fit(*data, coef_init=coef)
    expected = clone(model).set_params(max_iter=1, tol=None).fit(*data, coef_init=coef)
    objectives, losses, last = [], [], 0.0
    for _ in range(model.n_iter_):
        losses.append((expected.cumulative_loss_ - last) / 40)
        last = expected.cumulative_loss_
        offset = 0.3 * expected.offset_ if isinstance(model, OneClassMirrorDescent) else 0.0
        objectives.append(losses[-1] + ElasticNet(0.3).value(expected.coef_.ravel()) - offset)
        expected.partial_fit(*data)
    assert Replay(objectives, 0.02, 2).fit().n_iter_ == model.n_iter_
    assert Replay(losses, 0.02, 2).fit().n_iter_ < model.n_iter_


REGRESSORS = [
    ImplicitGDRegressor(),
    PNormRegressor(),
    MirrorDescentRegressor(),
    MirrorDescentRegressor(loss="absolute_error"),
    MirrorDescentRegressor(loss=QuantileLoss([0.1, 0.9])),
    ScaleInvariantRegressor(),
]


@pytest.mark.parametrize("model", REGRESSORS, ids=str)
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_the_number_of_epochs_does_not_depend_on_the_units_of_the_targets(model, n_outputs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X @ rng.normal(size=(3, n_outputs)) + 0.3 * rng.normal(size=(200, n_outputs))
    y = y[:, 0] if n_outputs == 1 or hasattr(getattr(model, "loss", None), "parts") else y
    epochs = [clone(model).set_params(random_state=0).fit(X, unit * y).n_iter_ for unit in (2.0**-10, 1.0, 2.0**10)]
    assert len(set(epochs)) == 1 and epochs[0] > 6


def test_losses_without_units_are_compared_as_they_are():
    """As by SGDClassifier: probabilities and labels have no units; and those of constant targets have none."""
    losses = MirrorDescentRegressor(loss="log_loss", random_state=0), MirrorDescentClassifier(random_state=0)
    X = np.random.default_rng(0).normal(size=(60, 3))
    for model in losses:
        model.fit(X, (X[:, 0] > 0).astype(int))
        assert model._tolerance(Examples(X, np.ones(60))) == model.tol
    assert ImplicitGDRegressor(fit_intercept=False).fit(X, np.zeros(60)).n_iter_ == 6
