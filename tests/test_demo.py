"""The demo: what it computes, prints and draws, at its quick size."""

import io
import signal
import subprocess
import sys
from contextlib import redirect_stdout

import numpy as np
import pytest
from numpy.testing import assert_allclose

from onlinebregman import __version__, _demo
from onlinebregman.__main__ import main

PARTS = ("learn_streams", "compare_metrics", "vary_rates", "learn_kernels")


@pytest.fixture(scope="module")
def computed():
    """The results of the parts, and what they print."""
    with redirect_stdout(io.StringIO()) as said:
        return [getattr(_demo, part)(quick=True) for part in PARTS], said.getvalue()


@pytest.fixture
def given(monkeypatch, computed):
    """The demo with given results; yields the arguments of each part."""
    calls = []
    for part, result in zip(PARTS, computed[0], strict=True):
        monkeypatch.setattr(_demo, part, lambda quick, result=result: calls.append(quick) or result)
    return calls


@pytest.fixture
def no_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)


def test_streams_with_nothing_to_tune(computed):
    (ours, sgd), (of_numbers, of_sgd, of_scaled_sgd) = computed[0][0].values()
    assert ours < 1.05 * sgd < 70
    assert of_numbers < 70 < of_scaled_sgd < of_sgd
    X, y = _demo.load_manual()
    assert X.shape[0] == len(y) > 300 and set(y.tolist()) == set(_demo.CHAPTERS)


def test_the_metric_helps_where_features_interact(computed):
    iris, balance = computed[0][1].values()
    assert iris.shape == balance.shape == (2, 3) and (iris < 30).all()
    assert (balance[1] < balance[0]).all()


def test_implicit_steps_and_exponentiated_gradient_withstand_large_rates(computed):
    sgd, implicit, eg, batch = computed[0][2].values()
    small = [eta < 1 for eta in _demo.ETAS]
    assert (sgd > 0).tolist() == small
    assert (implicit > 0.1).sum() > sum(small) and (eg > 0.1).sum() >= sum(small)
    assert 0.4 < max(sgd.max(), implicit.max(), eg.max()) < batch[0] + 0.01


def test_kernels_are_learned_within_the_bound(computed):
    found = computed[0][3]
    (theory_loss, _), (_, errors) = (curves for name, curves in found.items() if name.startswith("MEG"))
    assert (np.diff(theory_loss) >= 0).all() and 0 < theory_loss[-1] < found["bound"]
    assert found["target"] < errors[-1] < errors[0]


def test_what_kernels_are_compared_by():
    labels, kernel = _demo.choose_flowers()
    assert np.bincount(labels).tolist() == [17, 17, 18]
    assert_allclose(np.trace(kernel), 1.0)
    assert_allclose(_demo.half_squared_distances(kernel), (1 - 52 * kernel) / 52, atol=1e-15)


def test_the_report_fits_a_terminal_and_has_all_parts(computed):
    lines = computed[1].splitlines()
    headings = ("1. Streams", "2. Metric learning", "3. Regression", "4. Kernel learning")
    underlined = [lines[k - 1] for k, line in enumerate(lines) if set(line) == {"="}]
    assert [line for line in lines if line.startswith(headings)] == underlined
    assert max(map(len, lines)) <= 105
    (diabetes,) = (line for line in lines if line.startswith("Diabetes "))
    assert "regression" in diabetes and "diverged" in diabetes


def test_tables_align_columns():
    lines = _demo.table([["", "one", "b"], ["first", "1", "22"], ["x", "1000", ""]]).splitlines()
    assert lines == ["        one   b", "-----  ----  --", "first     1  22", "x      1000"]


def test_command_line(given, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    assert (tmp_path / "onlinebregman-demo.png").stat().st_size > 10_000
    assert "The demo took " in (said := capsys.readouterr().out) and "Figure: onlinebregman-demo.png" in said
    other = tmp_path / "other.svg"
    assert main(["demo", "--quick", "--output", str(other)]) == 0
    assert other.stat().st_size > 10_000 and "<image" not in other.read_text(encoding="utf-8")
    assert given == 4 * [False] + 4 * [True]


def test_command_line_without_matplotlib(given, no_matplotlib, tmp_path, capsys):
    assert main(["demo", "--output", str(tmp_path / "figure.png")]) == 0
    assert "pip install matplotlib" in capsys.readouterr().out
    assert not (tmp_path / "figure.png").exists()


@pytest.mark.parametrize(
    ("output", "message"), [("no/such/a.png", "no folder"), ("figure.xyz", "end in one of"), ("", "cannot write")]
)
def test_bad_output_is_found_before_the_work(given, tmp_path, capsys, output, message):
    assert main(["demo", "--output", str(tmp_path / output)]) == 1
    assert message in capsys.readouterr().err
    assert given == []


def test_interrupt(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(_demo, "learn_streams", lambda quick: signal.default_int_handler(signal.SIGINT, None))
    assert main(["demo", "--output", str(tmp_path / "figure.png")]) == 130
    assert "Interrupted" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["dance"], ["demo", "--outptu", "x.png"]])
def test_wrong_arguments(arguments, capsys):
    with pytest.raises(SystemExit) as error:
        main(arguments)
    assert error.value.code == 2
    assert "usage: python -m onlinebregman" in capsys.readouterr().err


def test_module_runs():
    said = subprocess.check_output([sys.executable, "-P", "-m", "onlinebregman", "--version"], text=True)
    assert said == f"onlinebregman {__version__}\n"
