"""ForwardRegressor on streams: any division into calls, copies, invalid rows, and the fast path."""

import copy
import pickle
import re
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest
from forward_replica import papers, some_rows
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from onlinebregman import ForwardClassifier
from onlinebregman.linear_model import forward as module
from onlinebregman.linear_model.forward import ForwardRegressor

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows

# --- streams ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 3, 8, 33])
@pytest.mark.parametrize("make", [np.asarray, np.float32, sparse.csr_array], ids=["dense", "float32", "sparse"])
@pytest.mark.parametrize("n_targets", [None, 2])
def test_a_stream_may_be_cut_anywhere(d, make, n_targets, learned):
    rng = np.random.default_rng(0)
    X, y = some_rows(60, d, n_targets)
    X[20:][rng.uniform(size=(40, d)) < 0.4] = 0.0  # zeros are skipped; rows without zeros are processed four at a time
    X, h = make(X), rng.choice([0.0, 1.0, 2.5], size=60)
    whole = ForwardRegressor().fit(X, y, h)
    one_by_one = [[i, i + 1] for i in range(60)]
    for cut in (one_by_one, [[0, 3], [3, 10], [10, 47], [47, 60]], [[0, 31], [31, 60]]):
        parts = ForwardRegressor()
        for start, end in cut:
            parts.partial_fit(X[start:end], y[start:end], h[start:end])
        assert learned(parts) == learned(whole)
    predictions = whole.predict(X)
    assert_array_equal(predictions, np.concatenate([whole.predict(X[start:end]) for start, end in one_by_one]))


def test_a_copy_made_in_mid_stream_goes_on_with_the_same_numbers(learned):
    X, y = some_rows(40, 6, 2)
    whole = ForwardRegressor(alpha=0.1).partial_fit(X, y)
    half = ForwardRegressor(alpha=0.1).partial_fit(X[:20], y[:20])
    for copied in (pickle.loads(pickle.dumps(half)), copy.deepcopy(half)):
        assert_array_equal(copied.predict(X), half.predict(X))
        assert learned(copied.partial_fit(X[20:], y[20:])) == learned(whole)
    assert half.t_ == 20


def test_warm_start_goes_on(learned):
    X, y = some_rows(40)
    model = ForwardRegressor(warm_start=True).fit(X[:25], y[:25]).fit(X[25:], y[25:])
    assert learned(model) == learned(ForwardRegressor().partial_fit(X, y))
    assert learned(model.set_params(warm_start=False).fit(X, y)) == learned(ForwardRegressor().fit(X, y))


def test_parameters_set_in_mid_stream(unchanged, learned):
    X, y = some_rows(40)

    def make():
        return ForwardRegressor(alpha=0.3).partial_fit(X[:20], y[:20])

    same, fast, slow = make().partial_fit(X[20:], y[20:]), make(), make()
    fast.set_params(forward=False).partial_fit(X[20:], y[20:])
    slow.set_params(forward=False).partial_fit(X[20:].tolist(), y[20:].tolist())
    assert learned(fast) == learned(slow) != learned(same)
    assert_array_equal(fast.coef_, same.coef_)
    assert fast.cumulative_loss_ != same.cumulative_loss_
    # parameters that determine the state are read when learning starts
    later = make().set_params(alpha=5.0, fit_intercept=False)
    with unchanged(later, r"alpha=5\.0 cannot take effect in mid-stream"):
        later.partial_fit(X[20:], y[20:])
    assert learned(later.fit(X, y)) == learned(ForwardRegressor(alpha=5.0, fit_intercept=False).fit(X, y))
    for wrong in ({"forward": "no"}, {"forward": None}):
        with unchanged(model := make().set_params(**wrong), "'forward' parameter of ForwardRegressor must be"):
            model.partial_fit(X, y)
    for wrong in ({"alpha": 0.0}, {"alpha": -1}, {"alpha": np.inf}, {"alpha": "1"}):
        for method in ("fit", "partial_fit"):
            with unchanged(model := ForwardRegressor(**wrong), "'alpha' parameter of ForwardRegressor must be"):
                getattr(model, method)(X, y)


@pytest.mark.skipif(find_spec("sklearn.callback") is None, reason="scikit-learn without callbacks")
def test_fit_is_one_task_for_callbacks_and_breaks_off_cleanly():
    class Recorder:
        def __init__(self, break_off=False):
            self.break_off, self.tasks, self.losses = break_off, [], []

        def setup(self, estimator, context):
            pass

        teardown = setup

        def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
            self.tasks.append(context.task_name)

        def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
            self.losses.append(fitted_estimator.cumulative_loss_)
            if self.break_off:
                raise RuntimeError("broken off")

    X, y = some_rows()
    plain, recorder = ForwardRegressor().fit(X, y), Recorder()
    model = ForwardRegressor().set_callbacks(recorder).fit(X, y)
    assert recorder.tasks[1:] == ["epoch"] and recorder.losses == [plain.cumulative_loss_] * 2
    assert_array_equal(model.partial_fit(X, y).coef_, plain.partial_fit(X, y).coef_)
    broken = ForwardRegressor(warm_start=True).partial_fit(X, y)
    before = broken.coef_
    with pytest.raises(RuntimeError, match="broken off"):
        broken.set_callbacks(Recorder(break_off=True)).fit(X, y)
    assert_array_equal(broken.coef_, before)
    assert broken.t_ == 40


# --- rows that are not sound ------------------------------------------------------------------------------------------


def test_rows_that_overflow_are_refused_and_nothing_is_learned(unchanged):
    X, y = some_rows(10)
    model = papers().partial_fit(X, y)
    centred = ForwardRegressor().partial_fit(X, y)  # no value of a column is absurd to it
    for row, column in [(0, 0), (6, 3), (9, 1)]:
        for huge in (1e200, -1e308):
            bad = X.copy()
            bad[row, column] = huge
            for form in (bad, bad.tolist(), sparse.csr_array(bad)):
                said = re.escape(f"Row {row} (largest feature {abs(huge):g}, ") + ".*scale features and targets"
                with unchanged(model, said):
                    model.partial_fit(form, y)
                with unchanged(fresh := papers(), rf"Row {row} "):
                    fresh.partial_fit(form, y)
            with unchanged(model, rf"Row {row} \(.*" + re.escape(f"target {abs(huge):g})")):
                model.partial_fit(X, np.where(np.arange(10) == row, huge, y))
            with unchanged(centred, rf"Row {row} \(.*" + re.escape(f"target {abs(huge):g})")):
                centred.partial_fit(X, np.where(np.arange(10) == row, huge, y))
    with unchanged(model, "Row 4 "):
        model.partial_fit(X, y + 100, sample_weight=np.where(np.arange(10) == 4, 1e308, 1.0))
    # the numbers of the row are finite, those of the factor are not
    tiny = papers(alpha=1e-320, fit_intercept=False).partial_fit([[0.0]], [0.0])
    with unchanged(tiny, "Row 0 "):
        tiny.partial_fit(np.array([[1e-160]]), np.array([1e150]))


@pytest.mark.parametrize("sizes", [(1, 1), (1, 4), (4, 1), (1, 0, 1), (0, 1), (1, 0, 4)])
def test_calls_are_undone_wherever_the_factor_is(sizes, unchanged, learned):
    """A row is rotated into a second factor, which replaces the first; 0 stands for a row of weight 0."""
    X, y = some_rows(60)
    twin, model = ForwardRegressor(forgetting=0.9), ForwardRegressor(forgetting=0.9)
    start = 0
    for size in sizes * 3:
        end = start + max(size, 1)
        call = X[start:end], y[start:end], None if size else [0.0]
        for learner in (twin, model):
            learner.partial_fit(*call)
        coef, noise = model.coef_, model.noise_variance_
        kept = coef.copy(), np.copy(noise)
        with unchanged(model, "Row 0 "):
            model.partial_fit(X[:1], [1e200])
        for n in (1, 4, 1):
            savepoint = model._learner.savepoint()
            model.partial_fit(X[-n:], y[-n:])
            model._learner.rollback(savepoint)
            model._learner.commit()
            assert learned(model) == learned(twin)
            assert learned(pickle.loads(pickle.dumps(model))) == learned(twin)
        assert_array_equal(coef, kept[0])
        assert_array_equal(noise, kept[1])
        start = end
    assert learned(model.partial_fit(X, y)) == learned(twin.partial_fit(X, y))


def test_predictions_that_overflow_are_refused(state):
    X, y = some_rows(10)
    for forward in (True, False):
        model = papers(forward=forward).partial_fit(X, 100 * y)
        before = state(model)
        bad = X.copy()
        bad[3] = 1e308 * np.sign(model.coef_)
        for form in (bad, bad.tolist(), sparse.csr_array(bad)):
            with pytest.raises(ValueError, match=r"The prediction for row 3 \(largest feature 1e\+308\) is not finite"):
                model.predict(form)
        assert state(model) == before


def test_unfitted_attributes_say_what_to_do():
    for name in ("coef_", "intercept_", "t_", "cumulative_loss_", "regret_", "regret_bound_"):
        assert not hasattr(ForwardRegressor(), name)
        with pytest.raises(AttributeError, match="call fit or partial_fit"):
            getattr(ForwardRegressor(), name)


# --- the fast path ----------------------------------------------------------------------------------------------------


@pytest.fixture
def no_validation(monkeypatch):
    """Any call of the slow path is an error from now on."""

    def refuse(*args, **kwargs):
        raise AssertionError("the slow path was taken")

    return lambda: monkeypatch.setattr(module, "check_rows", refuse)


@pytest.mark.parametrize("n_targets", [None, 1, 3])
def test_plain_arrays_go_straight_to_the_kernel(n_targets, no_validation, learned):
    X, y = some_rows(n_targets=n_targets)
    reference = ForwardRegressor().partial_fit(X.tolist(), y.tolist()).partial_fit(X.tolist(), y.tolist())
    predictions = reference.predict(X.tolist())
    fast = ForwardRegressor().partial_fit(X, y)
    no_validation()
    for i in range(len(y)):
        fast.partial_fit(X[i : i + 1], y[i : i + 1])
    assert learned(fast) == learned(reference)
    assert_array_equal(fast.predict(X), predictions)
    for form in (X.astype(np.float32), sparse.csr_array(X), sparse.csr_matrix(X), np.frombuffer(X).reshape(X.shape)):
        fast.partial_fit(form, y).predict(form)
    for form in (y.astype(np.float32), np.repeat(y, 2, axis=-1)[..., ::2] if n_targets else np.repeat(y, 2)[::2]):
        fast.partial_fit(np.asfortranarray(X), form).partial_fit(X.astype(int), form, np.ones(len(y)))
    fast.set_params(forward=False).predict(X)


@pytest.mark.parametrize("n_targets", [None, 2])
def test_what_is_not_a_plain_array_takes_the_slow_path(n_targets, no_validation):
    X, y = some_rows(n_targets=n_targets)
    fitted = ForwardRegressor().partial_fit(X, y)
    no_validation()
    for X_slow, y_slow in [
        (X.tolist(), y),
        (X, y.astype(str).tolist()),
        (X, np.c_[y, y]),
        (X, y[:, None]),
        (X[:, :3], y),
        (X.astype(bool), y),
        (X, y[:-1]),
        (X[:0], y[:0]),
    ]:
        with pytest.raises(AssertionError, match="slow path"):
            fitted.partial_fit(X_slow, y_slow)
    with pytest.raises(AssertionError, match="slow path"):
        fitted.set_params(forward=np.True_).partial_fit(X, y)


@pytest.mark.parametrize(
    "make", [papers, ForwardClassifier, partial(ForwardClassifier, standardize=True)], ids=range(3)
)
def test_forgetting_leaves_equal_and_empty_columns_alone(make):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 3))
    X[:, 1], X[:, 2] = X[:, 0], 0.0
    y = X[:, 0] + 0.1 * rng.normal(size=len(X)) if make is papers else (X[:, 0] > 0).astype(int)
    model = make(forgetting=0.99).fit(X, y)  # 0.99^60000 is less than 1e-261
    one = make(forgetting=0.99).fit(X[:, :1], y)
    assert_allclose(model.coef_.ravel()[:2].sum(), one.coef_.ravel()[0], rtol=1e-3)
    assert_allclose(model.predict(X[:100]), one.predict(X[:100, :1]), rtol=1e-3, atol=1e-3)
