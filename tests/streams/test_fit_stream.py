"""One pass over batches: the numbers of `partial_fit`, also if it is interrupted and resumed."""

import functools
import signal
import subprocess
import sys
import textwrap
import threading
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import d2_pinball_score, make_scorer, mean_squared_error, zero_one_loss
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from onlinebregman import (
    ForwardClassifier,
    ForwardRegressor,
    ImplicitGDRegressor,
    LogDetMetricLearner,
    MetricKNeighborsClassifier,
    MirrorDescentRegressor,
    OnlineGaussian,
    ParameterFreeClassifier,
    ParameterFreeRegressor,
)
from onlinebregman.losses import SquaredLoss
from onlinebregman.model_selection import progressive_val_score
from onlinebregman.persistence import load_model, save_model
from onlinebregman.pipeline import make_online_pipeline
from onlinebregman.streams import ArrayBatches, fit_stream

rng = np.random.default_rng(0)
X, y = rng.normal(size=(200, 3)), rng.normal(size=200)
LABELS = (y > 0).astype(int)
CASES = {
    "regressor": (ImplicitGDRegressor(), X, y, None),
    "classifier": (ForwardClassifier(), X, LABELS, [0, 1]),
    "mixture": (ParameterFreeClassifier(), X, LABELS, [0, 1]),
    "metric": (LogDetMetricLearner(random_state=0), X, LABELS, None),
    "neighbours": (MetricKNeighborsClassifier(random_state=0), X, LABELS, [0, 1]),
    "density": (OnlineGaussian(), X, None, None),
    "scaled metric": (make_online_pipeline(StandardScaler(), LogDetMetricLearner(random_state=0)), X, LABELS, None),
    "scaled density": (make_online_pipeline(StandardScaler(), OnlineGaussian()), X, None, None),
    "scaler": (make_online_pipeline(StandardScaler()), X, None, None),
}
case = pytest.mark.parametrize("name", list(CASES))


def answer(model):
    for method in ("predict_proba", "predict", "score_samples", "transform"):
        if hasattr(model, method):
            return np.asarray(getattr(model, method)(np.exp(0.1 * X[:20])))
    raise AssertionError


class Broken(Exception):
    pass


def breaking_off(batches, after):
    for number, batch in enumerate(batches):
        if number == after:
            raise Broken
        yield batch


@case
@pytest.mark.parametrize("prefetch", [0, 2])
def test_it_learns_what_partial_fit_learns(name, prefetch):
    estimator, rows, targets, classes = CASES[name]
    result = fit_stream(estimator, ArrayBatches(rows, targets, batch_size=30), classes=classes, prefetch=prefetch)
    model = clone(estimator)
    for start in range(0, 200, 30):
        part = slice(start, start + 30)
        given = {"classes": classes} if classes and not start else {}
        model.partial_fit(rows[part], None if targets is None else targets[part], **given)
    assert result.n_rows == 200 and np.array_equal(answer(result.estimator), answer(model))
    assert result.curve_rows.tolist() == [30, 60, 90, 120, 150, 180, 200]
    assert not hasattr(estimator, "n_features_in_")


@case
@pytest.mark.parametrize("after", [1, 3, 6])
def test_broken_off_and_resumed_it_has_the_numbers_of_a_run_in_one(name, after, tmp_path):
    estimator, rows, targets, classes = CASES[name]
    batches = ArrayBatches(rows, targets, batch_size=30)
    whole = fit_stream(estimator, batches, classes=classes)
    settings = {"classes": classes, "checkpoint": tmp_path / "run.zip", "checkpoint_every": 60}
    with pytest.raises(Broken):
        fit_stream(estimator, breaking_off(batches, after), **settings)
    resumed = fit_stream(estimator, batches, **settings)
    assert np.array_equal(answer(resumed.estimator), answer(whole.estimator))
    np.testing.assert_array_equal(resumed.curve, whole.curve)
    assert np.array_equal(resumed.curve_rows, whole.curve_rows) and resumed.n_rows == 200
    assert np.array_equal(answer(load_model(tmp_path / "run.zip")), answer(whole.estimator))


def test_batches_without_random_access_are_skipped(tmp_path):
    settings = {"checkpoint": tmp_path / "run.zip", "checkpoint_every": 1}
    parts = [(X[i : i + 30], y[i : i + 30]) for i in range(0, 200, 30)]
    fit_stream(ImplicitGDRegressor(), parts[:3], **settings)
    other = [(X[i : i + 40], y[i : i + 40]) for i in range(0, 200, 40)]
    resumed = fit_stream(ImplicitGDRegressor(), iter(other), **settings)
    assert np.array_equal(resumed.estimator.coef_, ImplicitGDRegressor().partial_fit(X, y).coef_)
    for batches in (parts[:3], ArrayBatches(X[:90], y[:90])):
        with pytest.raises(ValueError, match="The stream has only 90 rows, and cannot be read from row 200 on"):
            fit_stream(ImplicitGDRegressor(), batches, **settings)
    assert fit_stream(ImplicitGDRegressor(), ArrayBatches(X, y), **settings).n_rows == 200


def test_rows_of_weight_0_have_no_score():
    result = fit_stream(ImplicitGDRegressor(), [(X[:5], y[:5], np.zeros(5)), (X, y)])
    assert np.isnan(result.curve[0]) and result.score == result.curve[1] > 0


@pytest.mark.parametrize("batches", [[(X,)], [X], (X, y)], ids=["one", "rows", "arrays"])
def test_batches_are_tuples(batches):
    with pytest.raises(ValueError, match=r"Batch 0 must be a tuple \(X, y\)"):
        fit_stream(ImplicitGDRegressor(), batches)


def test_a_process_that_is_killed_leaves_a_checkpoint_to_go_on_from(tmp_path):
    """SIGKILL while it learns and saves, repeated until it finishes."""
    script = tmp_path / "run.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, signal
            import numpy as np
            from onlinebregman import ForwardRegressor
            from onlinebregman.streams import fit_stream

            rng = np.random.default_rng(0)
            X, y = rng.normal(size=(2000, 3)), rng.normal(size=2000)

            def batches(until):
                for start in range(0, 2000, 100):
                    if start == until:
                        os.kill(os.getpid(), signal.SIGKILL)
                    yield X[start : start + 100], y[start : start + 100]

            for until in (700, 1500, -1):
                process = os.fork()
                if process == 0:
                    settings = {"checkpoint": "run.zip", "checkpoint_every": 100, "prefetch": 1}
                    result = fit_stream(ForwardRegressor(), batches(until), **settings)
                    print(result.estimator.coef_.tobytes().hex(), flush=True)
                    os._exit(0)
                print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), end=" ", flush=True)
                print(*[name for name in os.listdir() if "run.zip" in name and ".part" not in name], flush=True)
            """
        )
    )
    run = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True)
    rng = np.random.default_rng(0)
    reference = ForwardRegressor().partial_fit(rng.normal(size=(2000, 3)), rng.normal(size=2000))
    killed = f"{-signal.SIGKILL} run.zip"
    assert run.stdout.splitlines() == [killed, killed, reference.coef_.tobytes().hex(), "0 run.zip"], run.stderr


def test_progressive_scores_are_those_of_predictions_made_before_learning():
    batches = ArrayBatches(X, LABELS, batch_size=50)
    result = fit_stream(SGDClassifier(random_state=0), batches, classes=[0, 1], scoring=zero_one_loss)
    model, wrong = SGDClassifier(random_state=0), []
    for rows, targets in batches:
        if hasattr(model, "coef_"):
            wrong += list(model.predict(rows) != targets)
        model.partial_fit(rows, targets, classes=[0, 1])
    assert result.score == pytest.approx(np.mean(wrong)) and len(wrong) == 150


def test_the_loss_that_estimators_keep_costs_no_prediction():
    result = fit_stream(ImplicitGDRegressor(), ArrayBatches(X, y, batch_size=50))
    model = ImplicitGDRegressor().partial_fit(X, y)
    assert result.score == model.cumulative_loss_ / 200 == result.curve[-1]


def test_the_score_is_weighted_as_the_rows_are():
    weights = np.random.default_rng(2).uniform(size=len(X))
    weights[50:100] = weights[110:120] = 0
    parts = [(X[i : i + 50], y[i : i + 50], weights[i : i + 50]) for i in range(0, len(X), 50)]
    expected = progressive_val_score(ForwardRegressor(), parts, scoring=mean_squared_error).score
    assert fit_stream(ForwardRegressor(), parts, scoring=mean_squared_error).score == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"Rows have weights, but scoring = .* does not accept sample_weight"):
        fit_stream(ForwardRegressor(), parts, scoring=lambda estimator, X, y: 0.0)


def test_a_checkpoint_of_another_scoring_is_refused(tmp_path):
    def metric(y_true, y_pred):
        return np.abs(y_true - y_pred).max()

    def same(scoring):
        return functools.partial(scoring) if isinstance(scoring, functools.partial) else scoring

    ways = [None, "neg_mean_squared_error", mean_squared_error, metric, functools.partial(d2_pinball_score, alpha=0.3)]
    ways += [make_scorer(d2_pinball_score, alpha=0.3), functools.partial(d2_pinball_score, alpha=0.4)]
    for number, scoring in enumerate(ways):
        settings = {"checkpoint": tmp_path / f"{number}.zip"}
        fit_stream(ForwardRegressor(), ArrayBatches(X[:90], y[:90], batch_size=30), scoring=scoring, **settings)
        for other in ways:
            if other is not scoring:
                with pytest.raises(ValueError, match=r"is a checkpoint with scoring = .*; got .*Give the same scoring"):
                    fit_stream(ForwardRegressor(), ArrayBatches(X, y), scoring=other, **settings)
        batches = ArrayBatches(X, y, batch_size=30)
        whole = fit_stream(ForwardRegressor(), batches, scoring=scoring)
        resumed = fit_stream(ForwardRegressor(), batches, scoring=same(scoring), **settings)
        np.testing.assert_array_equal(resumed.curve, whole.curve)


def test_the_curve_does_not_grow_with_the_stream():
    result = fit_stream(ImplicitGDRegressor(), ((X[:1], y[:1]) for _ in range(3000)))
    assert 64 <= len(result.curve) == len(result.curve_rows) < 256
    assert (np.diff(result.curve_rows) == result.curve_rows[1] - result.curve_rows[0]).all()


@pytest.mark.parametrize("name", ["nowhere/run.zip", "."])
def test_a_checkpoint_that_cannot_be_written_is_refused_before_rows_are_read(name, tmp_path):
    read = []
    with pytest.raises(OSError, match="cannot be a checkpoint"):
        fit_stream(ImplicitGDRegressor(), (read.append(1) or (X, y) for _ in range(1)), checkpoint=tmp_path / name)
    assert not read


def test_an_error_names_the_rows_and_leaves_the_checkpoint(tmp_path):
    bad = X.copy()
    bad[130, 1] = np.nan
    settings = {"checkpoint": tmp_path / "run.zip", "checkpoint_every": 50}
    with pytest.raises(ValueError, match="Input X contains NaN") as caught:
        fit_stream(ImplicitGDRegressor(), ArrayBatches(bad, y, batch_size=50), **settings)
    assert "Row 30 is row 130 of the stream." in caught.value.__notes__
    model, course = load_model(tmp_path / "run.zip", return_extra=True)
    assert model.t_ == course["n_rows"] == 100
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("fit_stream")]


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    batches, file = ArrayBatches(X, y), tmp_path / "run.zip"
    fit_stream(ImplicitGDRegressor(eta0=0.5), batches, checkpoint=file)
    with pytest.raises(ValueError, match=r"is a checkpoint of ImplicitGDRegressor\(eta0=0.5\), not of"):
        fit_stream(ImplicitGDRegressor(), batches, checkpoint=file)
    assert fit_stream(ImplicitGDRegressor(), batches, checkpoint=file, resume=False).estimator.eta0 != 0.5
    save_model(ImplicitGDRegressor(), file)
    with pytest.raises(ValueError, match="is a model, but not a checkpoint"):
        fit_stream(ImplicitGDRegressor(), batches, checkpoint=file)


@pytest.mark.parametrize("place", [0, 20, 39])
def test_a_checkpoint_of_many_members_one_of_which_is_another(place, tmp_path):
    """The repr of a mixture omits most of them."""
    members = [ImplicitGDRegressor(eta0=eta) for eta in np.linspace(0.1, 1.0, 40)]
    settings, batches = {"checkpoint": tmp_path / "model.zip"}, ArrayBatches(X, y)
    fit_stream(ParameterFreeRegressor(members=members), batches, **settings)
    assert fit_stream(ParameterFreeRegressor(members=members), batches, **settings).n_rows == len(X)
    members[place] = ImplicitGDRegressor(eta0=3.0)
    with pytest.raises(ValueError, match="is a checkpoint of"):
        fit_stream(ParameterFreeRegressor(members=members), batches, **settings)


def stored(rows, kind):
    """Rows in the containers of a stream, or that are read from a file."""
    frame = pd.DataFrame(rows, columns=["a", "b", "c"]).assign(t=np.where(rows[:, 0] > 0, "u", "v"))
    match kind:
        case "arrays":
            return ArrayBatches(rows, rows[:, 0] > 0, batch_size=7)
        case "sparse":
            return ArrayBatches(sparse.csr_array(rows), rows[:, 0] > 0, batch_size=7)
        case "frames":
            return [frame[i : i + 7] for i in range(0, len(frame), 7)]
        case "lists":
            return [(row[None].tolist(), [row[0] > 0]) for row in rows]


@pytest.mark.parametrize("kind", ["arrays", "sparse", "frames", "lists"])
@pytest.mark.parametrize("changed", [0, 10, 29])
def test_rows_that_are_not_those_of_the_checkpoint_are_never_passed_over(kind, changed, tmp_path):
    settings = {"checkpoint": tmp_path / "model.zip", "classes": ["u", "v"] if kind == "frames" else [0, 1]}
    settings["target"] = "t" if kind == "frames" else None
    fit_stream(ForwardClassifier(), stored(X[:30], kind), **settings)
    other = X[:60].copy()
    other[changed] = other[changed, ::-1]
    with pytest.raises(ValueError, match=r"other rows than those that .* has learned.*--continue"):
        fit_stream(ForwardClassifier(), stored(other, kind), **settings)
    assert fit_stream(ForwardClassifier(), stored(X[:60], kind), **settings).n_rows == 60


def test_a_stream_of_another_container_is_the_same_stream(tmp_path):
    settings = {"checkpoint": tmp_path / "model.zip", "classes": ["u", "v"], "target": "t"}
    frames = pd.concat(stored(X, "frames")).reset_index(drop=True)
    frames.to_csv(tmp_path / "rows.csv", index=False)
    ways = [frames[:40], pyarrow.table(frames[:80])]
    if parse_version(sklearn.__version__) >= parse_version("1.7"):  # older ones do not see the names of new polars
        ways += [pl.DataFrame(frames[:120]).iter_slices(9)]
    executed = SimpleNamespace(to_arrow_reader=pyarrow.table(frames[:180]).to_reader)  # as by DuckDB
    ways += [pyarrow.table(frames[:160]).to_reader(11), executed, tmp_path / "rows.csv"]
    for way in ways:
        found = fit_stream(ForwardClassifier(), way, **settings)
    expected = ForwardClassifier().partial_fit(frames[["a", "b", "c"]], frames["t"], classes=["u", "v"])
    assert found.n_rows == 200 and np.array_equal(found.estimator.coef_, expected.coef_)


class Log:
    """A source whose positions are opaque."""

    def __init__(self, identity="topic 1"):
        self.identity, self.asked = identity, []

    def read(self, position):
        self.asked.append(position)
        for start in range(0 if position is None else int(position["offset"]), 200, 25):
            yield {"offset": str(start + 25)}, (X[start : start + 25], y[start : start + 25])


def test_a_source_that_knows_its_positions_is_read_from_there(tmp_path):
    settings = {"checkpoint": tmp_path / "model.zip", "checkpoint_every": 1}
    whole = fit_stream(ForwardRegressor(), Log()).estimator
    broken = Log()
    broken.read = lambda position: breaking_off(Log().read(position), 3)
    with pytest.raises(Broken):
        fit_stream(ForwardRegressor(), broken, **settings)
    with pytest.raises(ValueError, match="is a checkpoint of the source 'topic 1', not of 'topic 2'"):
        fit_stream(ForwardRegressor(), Log("topic 2"), **settings)
    with pytest.raises(ValueError, match="other rows than those"):
        fit_stream(ForwardRegressor(), ArrayBatches(X, y), **settings)
    log = Log()
    resumed = fit_stream(ForwardRegressor(), log, **settings)
    assert log.asked == [{"offset": "75"}] and resumed.n_rows == 200
    assert np.array_equal(resumed.estimator.coef_, whole.coef_)
    fit_stream(ForwardRegressor(), ArrayBatches(X, y), checkpoint=tmp_path / "arrays.zip")
    with pytest.raises(ValueError, match="is a checkpoint of the source '', not of 'topic 1'"):
        fit_stream(ForwardRegressor(), Log(), checkpoint=tmp_path / "arrays.zip")


def test_another_file_is_learned_besides_on_request(tmp_path):
    path = tmp_path / "model.zip"
    first = fit_stream(ForwardRegressor(), ArrayBatches(X[:80], y[:80]), checkpoint=path).estimator
    settings = {"checkpoint": path, "warm_start": True, "resume": False}
    both = fit_stream(first, ArrayBatches(X[80:], y[80:]), **settings)
    assert np.array_equal(both.estimator.coef_, ForwardRegressor().partial_fit(X, y).coef_) and both.n_rows == 120


def test_frames_need_a_target_that_they_have():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"must have a column 'y'; got a, b, c"):
        fit_stream(ForwardRegressor(), frame, target="y")
    with pytest.raises(ValueError, match="target is for frames"):
        fit_stream(ForwardRegressor(), [(X, y)], target="y")
    assert fit_stream(OnlineGaussian(), frame).n_rows == 200
    found = fit_stream(ForwardRegressor(), frame, target=-1).estimator
    assert found.feature_names_in_.tolist() == ["a", "b"]


def test_a_checkpoint_of_other_numbers_in_an_array(tmp_path):
    settings, batches = {"checkpoint": tmp_path / "model.zip"}, ArrayBatches(X, y)
    init = np.linspace(1.0, 2.0, X.shape[1])
    fit_stream(ImplicitGDRegressor(init=init), batches, **settings)
    assert fit_stream(ImplicitGDRegressor(init=init), batches, **settings).n_rows == len(X)
    with pytest.raises(ValueError, match="is a checkpoint of"):
        fit_stream(ImplicitGDRegressor(init=init + 1e-12), batches, **settings)


class OwnLoss(SquaredLoss):
    """A loss whose repr has its address."""

    __repr__ = object.__repr__


@pytest.mark.parametrize("name", ["random_state", "loss"])
def test_a_checkpoint_of_objects_at_other_addresses_is_resumed(name, tmp_path):
    first, second, third = (  # all are alive
        MirrorDescentRegressor(**{name: OwnLoss() if name == "loss" else np.random.RandomState(0)}) for _ in range(3)
    )
    settings = {"checkpoint": tmp_path / "model.zip", "trusted": [OwnLoss]}
    fit_stream(first, ArrayBatches(X[:80], y[:80]), **settings)
    resumed = fit_stream(second, ArrayBatches(X, y), **settings)
    expected = fit_stream(third, ArrayBatches(X, y)).estimator
    assert resumed.n_rows == 200 and np.array_equal(resumed.estimator.predict(X), expected.predict(X))
    for other in ({"eta0": 0.3}, {name: "squared_error" if name == "loss" else 0}):
        with pytest.raises(ValueError, match="is a checkpoint of"):
            fit_stream(clone(third).set_params(**other), ArrayBatches(X, y), **settings)


def test_a_fitted_model_continues_on_request():
    begun = ForwardClassifier().partial_fit(X[:100], LABELS[:100], classes=[0, 1])
    result = fit_stream(begun, ArrayBatches(X[100:], LABELS[100:]), warm_start=True)
    whole = ForwardClassifier().partial_fit(X, LABELS, classes=[0, 1])
    assert np.array_equal(result.estimator.predict_proba(X), whole.predict_proba(X)) and begun.t_ == 100


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="classes must be given"):
        fit_stream(ForwardClassifier(), ArrayBatches(X, LABELS))
    with pytest.raises(ValueError, match="has no partial_fit"):
        fit_stream(object(), ArrayBatches(X, y))


def test_a_stream_without_rows_leaves_no_checkpoint(tmp_path):
    path = tmp_path / "model.zip"
    with pytest.raises(ValueError, match="at least one row; got none"):
        fit_stream(ImplicitGDRegressor(), ArrayBatches(X[:0], y[:0]), checkpoint=path)
    assert not path.exists()


def test_progress_is_reported(capsys):
    fit_stream(ImplicitGDRegressor(), ArrayBatches(X, y, batch_size=10), verbose=True)
    shown = [line.split()[0] for line in capsys.readouterr().err.splitlines()]
    assert shown == ["rows", "10", "20", "40", "80", "160", "200"]
