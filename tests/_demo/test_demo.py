"""The demo: what it computes, prints and draws, at its quick size."""

import builtins
import io
import re
import subprocess
import sys
from contextlib import redirect_stderr
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from onlinebregman import __version__
from onlinebregman.__main__ import main
from onlinebregman._demo import _figure, _kernels, _metric, _regression, _report, _run, _stream
from onlinebregman.divergences import VonNeumann


@pytest.fixture(scope="module")
def computed_in_processes():
    """The result of a demo whose parts run in two processes, and what it says meanwhile."""
    with redirect_stderr(io.StringIO()) as said:
        return _run.compute(_run.QUICK, n_jobs=2), said.getvalue()


@pytest.fixture(scope="module")
def result(computed_in_processes):
    return computed_in_processes[0]


@pytest.fixture
def no_matplotlib(monkeypatch):
    real_import = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] == "matplotlib":
            raise ImportError("no matplotlib")
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)


# ------------------------------------------------------------------------------------------------ streams


def test_streams_with_nothing_to_tune(result):
    manual, diabetes = result.streams
    assert manual.n_classes == 7 and manual.n_samples > 300
    assert manual.ours < 1.05 * manual.sgd < 0.7 and np.isnan(manual.scaled_sgd)
    assert (diabetes.n_samples, diabetes.n_features, diabetes.n_classes) == (442, 10, 0)
    assert diabetes.ours < 0.7 < diabetes.scaled_sgd < diabetes.sgd


def test_stream_report(result):
    manual, diabetes = [row for row in _report.stream_report(result.streams).splitlines() if re.search(r"\d x \d", row)]
    assert "regression" in diabetes and "diverged" in diabetes
    assert f"{100 * result.streams[0].ours:.1f}" in manual


def test_chapters_are_those_of_the_manual():
    X, y = _stream.load_manual()
    assert X.shape[0] == len(y)
    assert set(y.tolist()) == set(_stream.CHAPTERS)


# ------------------------------------------------------------------------------------------------ metric


def test_metric_results(result):
    iris, balance = result.metric
    assert (iris.name, iris.n_samples, iris.n_features, iris.n_classes) == ("Iris", 150, 4, 3)
    assert balance.n_samples == 625
    for each in result.metric:
        assert each.plain_errors.shape == each.learned_errors.shape == (3,)
        assert (each.plain_errors >= 0).all() and (each.learned_errors < 0.3).all()
        assert each.n_better + each.n_worse <= 3
        assert_allclose(each.triplets_per_second * each.fit_seconds, each.n_triplets)
    # the metric helps where features interact
    assert balance.change < 0 and balance.n_better > balance.n_worse


def test_metric_pairs_do_not_depend_on_the_run_nor_the_process(result):
    (again,) = _metric.compare_metrics(names=["Iris"], n_splits=3)
    assert_array_equal(again.plain_errors, result.metric[0].plain_errors)
    assert_array_equal(again.learned_errors, result.metric[0].learned_errors)
    assert again.n_triplets == result.metric[0].n_triplets


def test_metric_report_is_honest_about_no_gain(result):
    won = replace(result.metric[0], name="A", plain_errors=np.array([0.2, 0.2]), learned_errors=np.array([0.1, 0.2]))
    same = replace(won, name="B", learned_errors=won.plain_errors)
    lost = replace(won, name="C", learned_errors=np.array([0.3, 0.3]))
    text = _report.metric_report([won, same, lost])
    assert "lowers the mean error on 1 of 3 data sets; it does not on B and C." in text
    rows = {row.split()[0]: row for row in text.splitlines() if row[:3] in ("  A", "  B", "  C")}
    assert "-5.0" in rows["A"] and "1 : 0" in rows["A"]
    assert "+0.0" in rows["B"] and "0 : 0" in rows["B"]
    assert "+10.0" in rows["C"] and "0 : 2" in rows["C"]
    assert "it does not on" not in _report.metric_report([won])


# ------------------------------------------------------------------------------------------------ regression


def test_diabetes_search(result):
    diabetes = result.diabetes
    assert (diabetes.n_samples, diabetes.n_features) == (442, 10)
    for name in "ImplicitGDRegressor", "EGRegressor (signed)":
        assert diabetes[name].r2 > 0.4
        assert (diabetes[name].coef < 0).any()
    assert (diabetes["BurgRegressor"].coef > 0).all()
    search = diabetes["EGRegressor (signed)"]
    assert search.n_settings == 2 * 2 * 3
    assert list(search.best_params) == ["eta0", "learning_rate", "total"]
    assert np.abs(search.coef).sum() <= search.best_params["total"] * (1 + 1e-9)
    assert_allclose(search.curve.max(), search.r2)
    assert search.rmse < 77  # the target's standard deviation
    assert diabetes[_regression.BATCH].best_params == {}


def test_search_counts_rates_that_blow_up():
    searched = _regression.tune_on_diabetes(etas=[1e-2, 1e3], n_epochs=5)
    sgd = searched["SGDRegressor"]
    assert sgd.n_settings == 4
    assert sgd.n_unusable == 2
    assert sgd.curve[0] > 0.3 and not sgd.curve[1] > 0
    assert (searched["BurgRegressor"].curve > -10).all()  # a bad rate, but nothing diverges


def test_report_hides_numbers_of_diverged_models(result):
    bad = replace(result.diabetes.searches[0], r2=-1e20, rmse=1e22, coef=np.full(10, 1e21))
    text = _report.regression_report(replace(result.diabetes, searches=[bad, *result.diabetes.searches[1:]]))
    row = next(row for row in text.splitlines() if "SGDRegressor" in row)
    assert "diverged" in row and "0000" not in row


def test_the_mixture_of_digits():
    library, mean, digits, shares = _regression.mixture_of_digits()
    assert library.shape == (64, 100) and mean.shape == (64,)
    assert np.bincount(digits).tolist() == [10] * 10
    assert library.min() >= 0 and library.max() <= 1
    assert_allclose(shares, [0, *np.log10(1 + 1 / np.arange(1, 10))], atol=2e-3)
    assert shares[0] == 0
    labels = load_digits().target  # no image is in the library and in the mixture
    for digit in range(1, 10):
        assert 10 + round(shares[digit] * 500) <= (labels == digit).sum()


def test_digits_search(result):
    digits = result.digits
    assert (digits.n_samples, digits.n_features) == (64, 100)
    assert_allclose(digits["EGRegressor (simplex)"].coef.sum(), 1.0)
    for name in "EGRegressor (simplex)", "EGRegressor (positive)", "BurgRegressor":
        assert (digits[name].coef > 0).all()
        assert digits[name].r2 > 0.9
        assert digits.misplaced(digits[name]) < 0.25
    assert (digits["SGDRegressor"].coef < 0).any()


def test_misplaced_is_what_has_to_move(result):
    shares, digits = result.digits.shares, result.digits.groups
    right = replace(result.digits.searches[0], coef=shares[digits] / 10)
    assert_allclose(result.digits.misplaced(right), 0.0, atol=1e-15)
    ones_as_zeros = replace(right, coef=np.where(digits == 0, shares[1], shares[digits] * (digits != 1)) / 10)
    assert_allclose(result.digits.misplaced(ones_as_zeros), shares[1])
    diverged = replace(right, r2=-1.0)
    row = next(
        row
        for row in _report.regression_report(replace(result.digits, searches=[diverged])).splitlines()
        if "SGDRegressor" in row
    )
    assert "diverged" in row and "%" not in row


# ------------------------------------------------------------------------------------------------ kernels


def test_flowers_and_target_kernel():
    flowers = _kernels.choose_flowers()
    assert np.bincount(flowers.labels).tolist() == [17, 17, 18]
    assert flowers.kernel.shape == (52, 52)
    assert_allclose(np.trace(flowers.kernel), 1.0)
    assert np.linalg.eigvalsh(flowers.kernel).min() > -1e-12
    assert_allclose(flowers.distances, (1 - 52 * flowers.kernel) / 52, atol=1e-15)
    assert_array_equal(flowers.kernel, _kernels.choose_flowers().kernel)


def test_half_squared_distances():
    points = np.random.default_rng(0).normal(size=(6, 3))
    expected = ((points[:, None] - points) ** 2).sum(axis=-1) / 2
    assert_allclose(_kernels.half_squared_distances(points @ points.T), expected, atol=1e-12)


def test_nearest_neighbour_error_is_that_of_one_nearest_neighbour():
    flowers = _kernels.choose_flowers()
    rng, errors = np.random.RandomState(0), []
    for _ in range(10):
        train, test = np.array_split(rng.permutation(52), 2)
        model = KNeighborsClassifier(1, metric="precomputed")
        model.fit(flowers.distances[np.ix_(train, train)], flowers.labels[train])
        errors.append(1 - model.score(flowers.distances[np.ix_(test, train)], flowers.labels[test]))
    assert_allclose(_kernels.nearest_neighbour_error(flowers.kernel, flowers.labels), np.mean(errors))
    assert np.mean(errors) < 0.2


def test_loss_bound_is_half_the_divergence_from_the_start():
    flowers = _kernels.choose_flowers()
    divergence = VonNeumann().divergence(flowers.kernel, np.eye(52) / 52)
    assert_allclose(_kernels.total_loss_bound(flowers.kernel), divergence / 2, rtol=1e-6)


def test_random_pairs_are_of_two_objects_and_uniform():
    pairs = _kernels._random_pairs(np.random.RandomState(0), 4, 12_000)
    assert (pairs[:, 0] != pairs[:, 1]).all()
    counts = np.bincount(pairs[:, 0] * 4 + pairs[:, 1], minlength=16).reshape(4, 4)
    off_diagonal = counts[~np.eye(4, dtype=bool)]
    assert_allclose(off_diagonal, 1000, rtol=0.15)


def test_kernels_are_learned_within_the_bound(result):
    kernels = result.kernels
    theory, fast = kernels.runs
    assert (theory.eta0, fast.eta0) == (4.0, 40.0)
    assert (np.diff(theory.total_loss) >= 0).all()
    assert 0 < theory.total_loss[-1] < kernels.loss_bound
    assert kernels.target_error < fast.errors[-1] < fast.errors[0] < kernels.first_error
    assert kernels.n_constraints == 178
    assert kernels.boost_error < 0.25
    assert kernels.n_rounds > 0
    assert (np.diff(kernels.dual_objective) <= 1e-9).all()
    assert 52 * kernels.boost_violation < 1.01e-3  # the tolerance of DefiniteBoost


def test_near_pairs_are_all_of_them():
    flowers = _kernels.choose_flowers()
    pairs, targets = _kernels._near_pairs(flowers)
    near = {(a, b) for a in range(52) for b in range(a) if flowers.distances[a, b] < 0.2 / 52}
    assert {(b, a) for a, b in pairs.tolist()} == near
    assert_allclose(targets, 0.2 / 52)


# ------------------------------------------------------------------------------------------------ report and figure


def test_report_fits_a_terminal_and_has_all_parts(result):
    text = _run.report(result)
    for heading in (
        "1. Streams",
        "2. Metric learning",
        "3a. Tuning the learning rate",
        "3b. Non-negative weights",
        "4. Kernel learning",
        "The demo took ",
    ):
        assert f"\n{heading}" in "\n" + text
    assert max(map(len, text.splitlines())) <= 110


def test_table_aligns_columns():
    text = _report.table(["", "one", "b"], [["first", "1", "22"], ["x", "1000", ""]])
    assert text.splitlines() == ["          one   b", "  -----  ----  --", "  first     1  22", "  x      1000"]


def test_figure_without_matplotlib(no_matplotlib, result, tmp_path):
    with pytest.raises(ImportError):
        _figure.draw(tmp_path / "figure.png", result.metric, result.diabetes, result.digits, result.kernels, "")


# ------------------------------------------------------------------------------------------------ progress


def test_progress_is_a_line_for_each_part(computed_in_processes):
    first, *others = computed_in_processes[1].splitlines()
    assert first == "5 parts, 2 at a time ..."
    titles = "Streams without tuning", "Metric learning", "Learning rates: diabetes", "Learning rates: digits"
    expected = [rf"\[{k}/5\] {title}: \d+\.\d s" for k, title in enumerate((*titles, "Kernel learning"), 1)]
    assert all(re.fullmatch(pattern, line) for pattern, line in zip(expected, others, strict=True)), others


# ------------------------------------------------------------------------------------------------ command line


@pytest.fixture
def computed(monkeypatch, result):
    """The demo with given results; yields the arguments it was called with."""
    calls = []

    def compute(size, n_jobs=1):
        calls.append((size, n_jobs))
        return result

    monkeypatch.setattr(_run, "compute", compute)
    return calls


def test_command_line(computed, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    assert (tmp_path / "onlinebregman-demo.png").stat().st_size > 10_000
    assert "Figure: onlinebregman-demo.png" in capsys.readouterr().out
    other = tmp_path / "other.svg"
    assert main(["demo", "--quick", "--output", str(other)]) == 0
    assert other.stat().st_size > 10_000 and "<image" not in other.read_text(encoding="utf-8")
    assert computed == [(_run.FULL, -1), (_run.QUICK, 1)]


def test_command_line_without_matplotlib(computed, no_matplotlib, tmp_path, capsys):
    assert main(["demo", "--output", str(tmp_path / "figure.png")]) == 0
    assert "pip install matplotlib" in capsys.readouterr().out
    assert not (tmp_path / "figure.png").exists()


@pytest.mark.parametrize(
    ("output", "message"), [("no/such/a.png", "no folder"), ("figure.xyz", "end in one of"), ("", "cannot write")]
)
def test_bad_output_is_found_before_the_work(computed, tmp_path, capsys, output, message):
    assert main(["demo", "--output", str(tmp_path / output)]) == 1
    assert message in capsys.readouterr().err
    assert computed == []


def test_interrupt(monkeypatch, tmp_path, capsys):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(_run, "compute", interrupted)
    assert main(["demo", "--output", str(tmp_path / "figure.png")]) == 130
    assert "Interrupted" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["dance"], ["demo", "--outptu", "x.png"]])
def test_wrong_arguments(arguments, capsys):
    with pytest.raises(SystemExit) as error:
        main(arguments)
    assert error.value.code == 2
    assert "usage: python -m onlinebregman" in capsys.readouterr().err


def test_module_runs():
    done = subprocess.run(
        [sys.executable, "-P", "-m", "onlinebregman", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"onlinebregman {__version__}"


def test_full_size_is_what_the_readme_promises():
    assert _run.FULL.data_sets == ("Iris", "Wine", "WDBC", "Digits", "Balance Scale")
    assert _run.FULL.n_splits == 10
    assert _run.FULL.checkpoints[0] == 100 and _run.FULL.checkpoints[-1] == 20_000
    assert list(_run.FULL.checkpoints) == sorted(set(_run.FULL.checkpoints))
