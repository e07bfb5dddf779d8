"""The reproduced experiments of the papers: all are found, and the fastest one is run completely."""

import importlib
import sys
from pathlib import Path

import pytest

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
