"""ForwardRegressor on streams: callbacks, and rows that overflow."""

import re
from importlib.util import find_spec

import numpy as np
import pytest
from forward_replica import papers, some_rows
from numpy.testing import assert_array_equal
from scipy import sparse

from onlinebregman import ForwardClassifier, ForwardRegressor

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows

# --- streams ----------------------------------------------------------------------------------------------------------


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


SECOND_ORDER = {
    "softmax of two": lambda: ForwardClassifier(standardize=False, alpha=1e-3),
    "softmax of three": lambda: ForwardClassifier(standardize=False, alpha=1e-3),
    "aioli": lambda: ForwardClassifier(update="aioli"),
    "poisson": lambda: ForwardRegressor(standardize=False, loss="poisson"),
    "log loss": lambda: ForwardRegressor(standardize=False, loss="log_loss"),
}


@pytest.mark.parametrize("kind", SECOND_ORDER)
@pytest.mark.parametrize(
    ("row", "weight"),
    [([1e200, 1.0], 1.0), ([-1e308, 1.0], 1.0), ([1e156, 1e156], 1e10), ([1e-5, -1e160], 1.0), ([100.0, 1.0], 1e308)],
)
def test_rows_that_overflow_are_refused_by_other_losses_too(kind, row, weight, unchanged):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), np.arange(20) % (3 if kind == "softmax of three" else 2)
    model = SECOND_ORDER[kind]().fit(X, y)
    rows = np.vstack([X[:3], [row], X[:2]])
    for form in (rows, rows.tolist(), sparse.csr_array(rows)):
        with unchanged(model, "Row 3 .*overflow"):
            model.partial_fit(form, y[:6], sample_weight=[1.0, 1.0, 1.0, weight, 1.0, 1.0])


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
