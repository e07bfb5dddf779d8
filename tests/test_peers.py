"""Comparisons with other packages that measure errors: the protocol of one pass, and the whole scripts on few rows."""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

PEERS = Path(__file__).parents[1] / "benchmarks" / "peers"


@pytest.fixture
def script(monkeypatch):
    """A script by its name, and how to run it; benchmarks are not installed."""
    monkeypatch.syspath_prepend(str(PEERS))

    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        importlib.import_module(name).main()

    return run


@pytest.mark.parametrize("how", [["-m", "benchmarks.peers.vectors"], ["benchmarks/peers/vectors.py"]])
def test_scripts_run_as_modules_and_as_files(how):
    done = subprocess.run([sys.executable, *how, "--help"], cwd=PEERS.parents[1], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("usage:"), done.stderr


class SaysWhatItLearnedLast:
    def partial_fit(self, row, y, classes=None):
        self.last = y

    def predict(self, row):
        return self.last


def test_each_row_is_predicted_before_it_is_learned_and_the_first_is_an_error(monkeypatch):
    pytest.importorskip("river")
    monkeypatch.syspath_prepend(str(PEERS))
    progressive = importlib.import_module("generators").progressive
    labels, numbers = np.array([0, 0, 1, 1, 0]), np.array([2.0, 5.0, 4.0])
    loss, us = progressive(SaysWhatItLearnedLast(), list(range(5)), labels, classes=[0, 1])
    assert loss.tolist() == [100, 0, 100, 0, 100] and us > 0
    loss, _ = progressive(SaysWhatItLearnedLast(), list(range(3)), numbers)
    assert loss.tolist() == [4.0, 9.0, 1.0]


def test_streams_drift_at_their_middle_and_are_those_of_their_seeds(monkeypatch):
    pytest.importorskip("river")
    monkeypatch.syspath_prepend(str(PEERS))
    generators = importlib.import_module("generators")
    streams = generators.LABELS | generators.NUMBERS | generators.OTHER_LABELS | generators.OTHER_NUMBERS
    for name, stream in streams.items():
        (X, dictionaries, y), (again, _, _) = (generators.table_of(stream(0, 60), 60) for _ in range(2))
        assert len(y) == len(dictionaries) == len(X) and (again == X).all(), name
        assert (generators.table_of(stream(1, 60), 60)[0] != X).any(), name
    assert sum("," in name for name in streams) >= 20
    X, _, y = generators.table_of(generators.LABELS["Mixed, abrupt"](0, 3000), 3000)
    still, _, of_still = generators.table_of(generators.LABELS["Mixed"](0, 3000), 1000)
    assert (X[:1000] == still).all() and (y[:1000] == of_still).all()
    conditions = np.column_stack([X[:, :2], X[:, 3] < 0.5 + 0.3 * np.sin(3 * np.pi * X[:, 2])])
    of_old_concept = (conditions.sum(axis=1) >= 2) == (y == 0)
    assert of_old_concept[:1000].all() and not of_old_concept[2000:].any()


def test_generators_are_learned_and_shown(script, capsys, tmp_path):
    pytest.importorskip("river")
    results = tmp_path / "results.json"
    for _ in range(2):  # the second time from the results
        script("generators", "--rows", "50", "--only", "Sine", "Mv", "--learners", "Param", "river, HAT",
               "--results", str(results))  # fmt: skip
        out = capsys.readouterr().out
        assert len(json.loads(results.read_text())) == 6
        assert out.count("mean rank") == 4 and out.count("| Sine, gradual ") == 3 and out.count("| Mv ") == 3
        assert "river, HAT is ahead of ours on " in out


def test_batch_learners_are_compared_on_the_same_rows(script, capsys, tmp_path, monkeypatch):
    monkeypatch.delenv("ONLINEBREGMAN_DATA", raising=False)
    results = tmp_path / "results.json"
    script("batch", "--only", "wdbc", "car", "--splits", "2", "--rows", "200", "--learners", "Param", "lin",
           "--results", str(results))  # fmt: skip
    out = capsys.readouterr().out
    assert "car is left out: ONLINEBREGMAN_DATA names no folder" in out and "| wdbc (200 x 30)" in out
    found = json.loads(results.read_text())
    model = make_pipeline(StandardScaler(), LogisticRegression())
    X, y = load_breast_cancer(return_X_y=True)
    X, y = (values[np.random.default_rng(0).permutation(len(y))] for values in (X, y))  # the order of streams.py
    errors = []
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(len(y))[:200]
        model.fit(X[order[:140]], y[order[:140]])
        errors.append(100 - 100 * model.score(X[order[140:]], y[order[140:]]))
    linear = found["wdbc; linear; 200 rows; 2 splits"]["error"]
    ours = found["wdbc; ParameterFree, one pass; 200 rows; 2 splits"]["error"]
    assert linear == pytest.approx(np.mean(errors)) and 0 < ours < 15
    ranks = [f"{1.0 + worse:.2f}" for worse in (ours > linear, linear > ours)]
    assert [cell.strip() for cell in re.search(r"all, 1 sets +\|(.*)\|", out)[1].split("|")] == ranks


def test_intervals_are_measured_on_the_last_two_thirds(script, capsys, tmp_path):
    results = tmp_path / "results.json"
    for _ in range(2):  # the second time from the results
        script(
            "intervals", "--rows", "90", "--only", "jumps", "--learners", "Param", "Forward", "--results", str(results)
        )
        out = capsys.readouterr().out
        known = json.loads(results.read_text())
        assert len(known) == 2 and out.count("| ParameterFreeRegressor ") == 3 and "| 99% " in out
    assert 70 < next(iter(known.values()))["coverages"]["0.9"] < 100


class AlwaysWide:
    def intervals(self, X, y, coverages):
        return np.stack([np.full((len(y), len(coverages)), bound) for bound in (-1.0, 1.0)])


def test_shares_and_widths_of_intervals(monkeypatch):
    monkeypatch.syspath_prepend(str(PEERS))
    measured = importlib.import_module("intervals").measured
    found = measured(
        AlwaysWide(), np.zeros((9, 1)), np.array([5.0, 5.0, 5.0, 0.0, 1.0, -1.0, 2.0, -2.0, 0.5]), [0.5, 0.9]
    )
    assert found["coverages"] == {"0.5": pytest.approx(200 / 3), "0.9": pytest.approx(200 / 3)}
    assert found["widths"] == {"0.5": 2.0, "0.9": 2.0}


# --- experiments of the papers ----------------------------------------------------------------------------------------


ROOT = Path(__file__).parents[1]
EXPERIMENTS = {path.stem for path in (ROOT / "benchmarks" / "papers").glob("[!_]*.py")}


@pytest.fixture(scope="module", params=["benchmarks.papers"])
def papers(request):
    """The module that finds experiments; benchmarks are not installed."""
    pytest.importorskip("pandas")
    sys.path.insert(0, str(ROOT))
    yield importlib.import_module(f"{request.param}._experiment")
    sys.path.remove(str(ROOT))


def test_all_are_found_and_keep_the_contract(papers):
    assert set(papers.names()) == EXPERIMENTS and len(EXPERIMENTS) >= 12
    main = importlib.import_module("benchmarks.papers.__main__")
    for name in papers.names():
        experiment = papers.load(name)
        assert experiment.PAPER in main.PAPERS and 1 <= experiment.RUNS <= experiment.FULL


@pytest.mark.parametrize("name", ["online_densities", "scaled_rows"])
def test_one_run_is_checked_drawn_and_stored(papers, name, monkeypatch, tmp_path):
    matplotlib = pytest.importorskip("matplotlib.figure")
    monkeypatch.setattr(papers, "RESULTS", tmp_path)
    experiment = papers.load(name)
    tables, note = papers.tables(name, 1, 1)
    claims = experiment.verdict(tables)
    assert note["runs"] == 1 and any(claim.holds for claim in claims)
    experiment.draw(matplotlib.Figure(), tables)
    monkeypatch.setattr(experiment, "run", None)  # not run again
    again, _ = papers.tables(name, 1, 1)
    assert all(again[table].equals(tables[table]) for table in tables)
    assert papers.markdown(tables["summary"]).count("\n") == len(tables["summary"]) + 1
