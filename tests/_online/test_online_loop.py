"""The loop of `fit`, over every public estimator that has one: epochs, order, tol, warm start, callbacks, verbose."""

import re
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from raw import MirrorDescentClassifier, MirrorDescentRegressor, ScaleInvariantRegressor
from scipy.special import log_softmax
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import has_fit_parameter

from onlinebregman import (
    ImplicitGDRegressor,
    MetricKNeighborsClassifier,
    OneClassMirrorDescent,
    PerceptronClassifier,
    PNormRegressor,
)
from onlinebregman._online.mirror import Examples, MirrorEstimator
from onlinebregman.losses import QuantileLoss, resolve_loss
from onlinebregman.penalties import ElasticNet

needs_callbacks = pytest.mark.skipif(find_spec("sklearn.callback") is None, reason="scikit-learn without callbacks")


def learns_rows(online):
    """Whether the learner learns the rows as they are, and does not draw pairs of them."""
    return (is_regressor(online) or is_classifier(online)) and has_fit_parameter(online, "sample_weight")


def remembers_rows(online):
    """Whether it stores the rows of a call for later pairs: each once, in any number of epochs."""
    return hasattr(online, "memory_size")


def shuffles(estimator):
    return "shuffle" in estimator.get_params()


def with_epochs(estimator, n):
    """The estimator with so many epochs, unless its `fit` is one pass."""
    return estimator.set_params(**{"max_iter": n, "tol": None} if hasattr(estimator, "max_iter") else {})


def losses_before(model, X, y):
    """The loss of each row under the weights as they are, the sum over the learners of quantiles or of classes."""
    if not hasattr(model, "coef_"):  # a quadratic form
        return (model.predict(X) - y) ** 2 / 2
    parameters = model.get_params()
    loss = resolve_loss(parameters.get("loss", "perceptron" if is_classifier(model) else "squared_error"))
    if is_regressor(model):
        scores = np.reshape(X @ model.coef_.T + model.intercept_, (len(X), -1))
        return sum(part.value(a, y) for part, a in zip(loss.parts, scores.T, strict=True))
    scores = X @ model.coef_.T + model.intercept_
    if parameters.get("multi_class") == "multinomial" and scores.shape[1] > 1:
        return -log_softmax(scores, axis=1)[y[:, None] == model.classes_]
    labels = model.classes_[-scores.shape[1] :]
    low, high = loss.labels
    targets = np.where(y[:, None] == labels, high, low)
    return loss.value(scores, targets).sum(axis=1)


class Recorder:
    """A callback that records its arguments, and stops or breaks the fit after a number of epochs."""

    def __init__(self, stop_after=None, break_after=None):
        self.stop_after, self.break_after = stop_after, break_after
        self.events, self.models = [], []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        self.events.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        self.events.append(("end", context.task_name, context.task_id))
        if context.task_name != "epoch":
            return False
        self.models.append(fitted_estimator)
        if len(self.models) == self.break_after:
            raise RuntimeError("broken off")
        return len(self.models) == self.stop_after

    @property
    def epochs(self):
        return sum(event[:2] == ("end", "epoch") for event in self.events)


# --- epochs and their order -------------------------------------------------------------------------------------------


@pytest.mark.only(where=lambda online: not remembers_rows(online))
def test_epochs_are_passes_over_the_rows_in_order(online, rows, learn, learned):
    X, y = rows
    fitted = clone(online).set_params(max_iter=3, shuffle=False, tol=None).fit(X, y)
    passes = clone(online)
    for _ in range(3):
        learn(passes, X, y)
    assert learned(fitted) == learned(passes)
    assert fitted.n_iter_ == 3 and len(fitted.loss_curve_) == 3


def test_every_epoch_is_shuffled_by_the_random_state(online, rows, learned):
    X, y = rows
    online.set_params(max_iter=3, shuffle=True, tol=None, random_state=7)
    one, two = clone(online).fit(X, y), clone(online).fit(X, y)
    assert learned(one) == learned(two)
    assert learned(clone(online).set_params(random_state=8).fit(X, y)) != learned(one)
    assert learned(clone(online).set_params(shuffle=False).fit(X, y)) != learned(one)


@pytest.mark.only(where=learns_rows)  # others draw from their random state besides shuffling
def test_a_shuffled_epoch_takes_the_permutations_of_the_random_state(online, rows, learn, learned):
    X, y = rows
    fitted = clone(online).set_params(max_iter=2, shuffle=True, tol=None, random_state=7).fit(X, y)
    by_hand, rng = clone(online), check_random_state(7)
    for _ in range(2):
        order = rng.permutation(len(y))
        learn(by_hand, X[order], y[order])
    assert learned(fitted) == learned(by_hand)


def test_a_random_state_object_goes_on_from_fit_to_fit(online, rows, learned):
    X, y = rows
    online.set_params(max_iter=2, tol=None, random_state=np.random.RandomState(3))
    first = learned(online.fit(X, y))
    assert learned(online.fit(X, y)) != first
    assert learned(clone(online).set_params(random_state=np.random.RandomState(3)).fit(X, y)) == first


# --- when it stops ----------------------------------------------------------------------------------------------------


def test_only_missing_convergence_is_reported(online, rows, learn):
    X, y = rows
    with pytest.warns(ConvergenceWarning, match=rf"{type(online).__name__} stopped at max_iter=2.*tol=0\.001"):
        clone(online).set_params(max_iter=2, tol=1e-3).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(online).set_params(max_iter=2, tol=None).fit(X, y)
        learn(clone(online), X, y)


@pytest.mark.only(where=lambda e: learns_rows(e) and not getattr(e, "thresholds", None))  # scores are of columns below
def test_the_loss_curve_is_the_mean_loss_before_each_row(online, rows, learn):
    X, y = rows
    weights = np.random.default_rng(0).uniform(0.5, 2, size=len(y))
    class_weight = online.get_params().get("class_weight") or {}
    counted = weights * [class_weight.get(label, 1.0) for label in y]
    online.set_params(max_iter=2, shuffle=False, tol=None)
    fitted, by_hand, losses = clone(online).fit(X, y, sample_weight=weights), clone(online), []
    for i in 2 * list(range(len(y))):
        row = slice(i, i + 1)
        losses.append(counted[i] * losses_before(by_hand, X[row], y[row])[0] if losses else None)
        learn(by_hand, X[row], y[row], sample_weight=weights[row])
    assert fitted.loss_curve_[1] == pytest.approx(sum(losses[len(y) :]) / counted.sum(), rel=1e-10)
    assert fitted.cumulative_loss_ == pytest.approx(sum(fitted.loss_curve_) * counted.sum(), rel=1e-10)


# --- warm start -------------------------------------------------------------------------------------------------------


def test_warm_start_goes_on_and_cold_start_begins_again(online, rows, learned):
    X, y = rows
    online.set_params(max_iter=2, shuffle=False, tol=None)
    once = learned(clone(online).fit(X, y))
    assert learned(clone(online).fit(X, y).fit(X, y)) == once
    twice = clone(online).set_params(warm_start=True).fit(X, y)
    assert learned(twice) == once
    t = twice.t_
    twice.fit(X, y)
    assert twice.t_ == 2 * t if learns_rows(online) else twice.t_ > t
    assert twice.n_iter_ == 2


def test_warm_start_keeps_the_width_of_the_rows(online, rows, unchanged):
    X, y = rows
    online.set_params(max_iter=1, warm_start=True).fit(X, y)
    with unchanged(online, "features"):
        online.fit(X[:, 1:], y)
    assert online.set_params(warm_start=False).fit(X[:, 1:], y).n_features_in_ == X.shape[1] - 1


@needs_callbacks
@pytest.mark.only(where=lambda estimator: shuffles(estimator) and hasattr(estimator, "set_callbacks"))
@pytest.mark.parametrize("warm_start", [False, True])
def test_a_fit_that_breaks_off_leaves_the_model_as_it_was(estimator, rows, learn, warm_start, learned, output):
    X, y = rows
    if "warm_start" in estimator.get_params():
        estimator.set_params(warm_start=warm_start)
    learn(with_epochs(estimator, 5), X, y)
    before, said = learned(estimator), output(estimator, X)
    recorder = Recorder(break_after=min(3, getattr(estimator, "max_iter", 1)))
    estimator.set_callbacks(recorder)
    with pytest.raises(RuntimeError, match="broken off"):
        estimator.fit(2 * X, y)
    assert recorder.epochs == recorder.break_after and recorder.events[-1] == "teardown"
    estimator.set_callbacks()
    for name, values in output(estimator, X).items():
        np.testing.assert_array_equal(values, said[name])
    assert learned(estimator, without=["_skl_callbacks"]) == before


@needs_callbacks
def test_a_first_fit_that_fails_leaves_no_attributes(online, rows):
    X, y = rows
    online.set_params(max_iter=5, tol=None).set_callbacks(Recorder(break_after=2))
    with pytest.raises(RuntimeError, match="broken off"):
        online.fit(X, y)
    assert [name for name in vars(online) if name.endswith("_") and not name.startswith("_")] == []
    assert not online.__sklearn_is_fitted__()


# --- callbacks and verbose --------------------------------------------------------------------------------------------


@needs_callbacks
@pytest.mark.only(where=lambda estimator: shuffles(estimator) and hasattr(estimator, "set_callbacks"))
def test_callbacks_are_called_for_every_epoch(estimator, rows, learned):
    X, y = rows
    with_epochs(estimator, 4)
    recorder = Recorder()
    watched = clone(estimator).set_callbacks(recorder).fit(X, y)
    assert recorder.events[0] == "setup" and recorder.events[-1] == "teardown"
    assert recorder.epochs == getattr(estimator, "max_iter", 1)
    begun = [event[1:] for event in recorder.events if event[0] == "begin"]
    ended = [event[1:] for event in recorder.events if event[0] == "end"]
    assert sorted(begun) == sorted(ended) and begun[0] == ended[-1]
    assert learned(watched, without=["_skl_callbacks"]) == learned(clone(estimator).fit(X, y))


@needs_callbacks
def test_a_callback_may_stop_the_fit(online, rows, learned):
    X, y = rows
    online.set_params(max_iter=4, tol=None)
    stopped = clone(online).set_callbacks(Recorder(stop_after=2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stopped.fit(X, y)
    assert stopped.n_iter_ == 2 and len(stopped.loss_curve_) == 2
    assert learned(stopped, without=["_skl_callbacks"]) == learned(clone(online).set_params(max_iter=2).fit(X, y))


@needs_callbacks
def test_a_callback_sees_the_model_as_it_is_after_the_epoch(online, rows, output):
    X, y = rows
    online.set_params(max_iter=3, tol=None)
    recorder = Recorder()
    clone(online).set_callbacks(recorder).fit(X, y)
    for n, model in enumerate(recorder.models, start=1):  # read afterwards: each must have its own numbers
        reference = clone(online).set_params(max_iter=n).fit(X, y)
        for name, values in output(model, X).items():
            np.testing.assert_array_equal(values, output(reference, X)[name])


def test_verbose_prints_the_loss_of_every_epoch(online, rows, capsys):
    X, y = rows
    fitted = online.set_params(max_iter=3, tol=None, verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    for epoch, (line, loss) in enumerate(zip(lines, fitted.loss_curve_, strict=True), start=1):
        assert type(online).__name__ in line
        number = re.search(rf"epoch {epoch}\b.*?([0-9.e+-]+)$", line)
        assert float(number[1]) == pytest.approx(loss, rel=1e-4)
    online.set_params(verbose=0).fit(X, y)
    assert capsys.readouterr().out == ""


# --- losses that are known exactly ------------------------------------------------------------------------------------


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


RUNS = [  # losses, tol, patience, and epochs until they have converged
    ([8.0, 7.0, 6.0, 5.0, 4.0], 1.0, 2, 3),  # falls by tol itself, which is not more than tol
    ([8.0, 6.5, 5.0, 3.5, 2.0], 1.0, 2, None),  # by more, each time
    ([8.0, 7.5, 6.5, 6.5, 6.5], 1.0, 2, 3),  # slowly: below the best of all by no more than tol, twice
    ([8.0, 9.0, 6.5, 9.0, 9.0], 1.0, 2, 5),  # a fall in between restarts the count
    ([8.0, 9.0, 9.0, 1.0, 1.0], 0.0, 2, 3),
    ([5.0, 9.0, 7.0, 6.0, 6.0], 1.0, 2, 3),  # below the epoch before, but not below the best
    ([8.0, 8.0, 8.0, 8.0, 8.0], None, 2, None),
]


def test_epochs_until_the_loss_has_converged():
    for losses, tol, patience, epochs in RUNS:
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


# --- fit shuffles wherever a model depends on the order, partial_fit never does ---------------------------------------


# A solver, whose constraints contradict each other for these rows
EXCEPTIONS = {"DefiniteBoost"}


def passes(estimator):
    """Whether its `fit` is one pass over the rows themselves, shuffled."""
    others = {"MetricKNeighborsClassifier", "MetricKNeighborsRegressor", "ParameterFreeMetricLearner"}
    others.add("DensityOutlierDetector")  # its offset is, at the end, that of all rows
    return shuffles(estimator) and "max_iter" not in estimator.get_params() and type(estimator).__name__ not in others


def without_memory(estimator):
    """The estimator, if it has a memory without that: rows in random order, by `fit`, are not remembered."""
    return clone(estimator).set_params(**{"memory": False} if "memory" in estimator.get_params() else {})


@pytest.mark.only(where=lambda estimator: not shuffles(estimator) and type(estimator).__name__ not in EXCEPTIONS)
def test_a_model_that_depends_on_the_order_of_rows_shuffles_them(estimator, rows, output):
    X, y = rows
    order = np.random.default_rng(0).permutation(len(y))
    one, other = clone(estimator).fit(X, y), clone(estimator).fit(X[order], y[order])
    for name, values in output(one, X).items():
        np.testing.assert_allclose(values, output(other, X)[name], rtol=1e-8, atol=1e-8)


@pytest.mark.only(where=passes)
def test_fit_is_one_pass_over_the_rows_in_random_order(estimator, rows, learn, learned):
    X, y = rows
    order = check_random_state(3).permutation(len(y))
    estimator.set_params(random_state=3)
    alike = without_memory(estimator)
    assert learned(clone(alike).fit(X, y)) == learned(learn(clone(alike), X[order], y[order]))
    estimator.set_params(shuffle=False)
    assert learned(clone(estimator).fit(X, y)) == learned(learn(clone(estimator), X, y))


@pytest.mark.only(where=shuffles)
def test_shuffle_is_the_default(estimator):
    assert type(estimator)().shuffle is True


@pytest.mark.only(where=lambda estimator: shuffles(estimator) and (is_classifier(estimator) or is_regressor(estimator)))
def test_sorted_rows_are_learned_as_well_as_others(estimator, rows):
    """The mean scores of eight seeds differ by less than three standard errors."""
    X, y = (np.repeat(values, 2, axis=0) for values in rows)
    scores = np.empty((2, 8))
    for k, order in enumerate((np.argsort(y, kind="stable"), np.random.default_rng(0).permutation(len(y)))):
        for seed in range(scores.shape[1]):
            fitted = clone(estimator).set_params(random_state=seed).fit(X[order], y[order])
            scores[k, seed] = fitted.score(X, y)
    spread = scores.std(axis=1, ddof=1)
    assert abs(np.subtract(*scores.mean(axis=1))) <= 3 * np.hypot(*spread) / scores.shape[1] ** 0.5 + 1e-9


def test_the_window_holds_rows_of_all_classes_after_fit():
    X, y = load_iris(return_X_y=True)
    model = MetricKNeighborsClassifier(window_size=60, metric_learner=["euclidean"], random_state=0)
    with pytest.warns(UserWarning, match="only 60, drawn at random, are kept"):
        model.fit(X, y)
    assert model.score(X, y) > 0.9 and model.n_samples_seen_ == 150
    with pytest.warns(UserWarning, match="only the last 60 are kept"):
        model.set_params(shuffle=False).fit(X, y)
    assert_array_equal(model.X_, X[90:])
