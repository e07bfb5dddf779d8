"""The loop of `fit`, over every public estimator that has one: epochs, order, tol, warm start, callbacks, verbose."""

import re
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import has_fit_parameter

from onlinebregman.losses import resolve_loss

needs_callbacks = pytest.mark.skipif(find_spec("sklearn.callback") is None, reason="scikit-learn without callbacks")


def learns_rows(online):
    """Whether the learner learns the rows as they are, and does not draw pairs of them."""
    return (is_regressor(online) or is_classifier(online)) and has_fit_parameter(online, "sample_weight")


def remembers_rows(online):
    """Whether it stores the rows of a call for later pairs: each once, in any number of epochs."""
    return hasattr(online, "memory_size")


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
@pytest.mark.parametrize("warm_start", [False, True])
def test_a_fit_that_breaks_off_leaves_the_model_as_it_was(online, rows, learn, warm_start, learned, output):
    X, y = rows
    learn(online.set_params(warm_start=warm_start, max_iter=5, tol=None), X, y)
    before, said = learned(online), output(online, X)
    recorder = Recorder(break_after=3)
    online.set_callbacks(recorder)
    with pytest.raises(RuntimeError, match="broken off"):
        online.fit(2 * X, y)
    assert recorder.epochs == 3 and recorder.events[-1] == "teardown"
    online.set_callbacks()
    for name, values in output(online, X).items():
        np.testing.assert_array_equal(values, said[name])
    assert learned(online, without=["_skl_callbacks"]) == before


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
def test_callbacks_are_called_for_every_epoch(online, rows, learned):
    X, y = rows
    online.set_params(max_iter=4, tol=None)
    recorder = Recorder()
    watched = clone(online).set_callbacks(recorder).fit(X, y)
    assert recorder.events[0] == "setup" and recorder.events[-1] == "teardown"
    assert recorder.epochs == 4
    begun = [event[1:] for event in recorder.events if event[0] == "begin"]
    ended = [event[1:] for event in recorder.events if event[0] == "end"]
    assert sorted(begun) == sorted(ended) and begun[0] == ended[-1]
    assert learned(watched, without=["_skl_callbacks"]) == learned(clone(online).fit(X, y))


@needs_callbacks
def test_a_callback_may_stop_the_fit(online, rows, learned):
    X, y = rows
    online.set_params(max_iter=50, tol=None)
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
