"""The format of an experiment of this folder, and shared code: parallel runs, stored results, checks of claims.

A file NAME.py whose name has no underscore in front is an experiment and has

    __doc__     its first line the title; then the protocol: what is done, with which parameters and seeds
    PAPER       "KB10": where it was printed, PLACE "figure 2" there
    OPEN        what the paper leaves open, and what was chosen
    WHY         the reason for the result
    RUNS, FULL  how often it is repeated, by default and in full (the paper's number where it tells one)
    run(runs, jobs) -> dict of data frames, by name
    verdict(tables) -> list of Claim
    draw(figure, tables), the paper's figure with the reported values

`run` only depends on its arguments and seeds, so that its tables can be stored: RESULTS/NAME/TABLE.csv, until the
code of the experiment is changed.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import json
import pkgutil
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import joblib
import numpy as np
import pandas as pd

import onlinebregman

Tables = dict[str, pd.DataFrame]

CONTRACT = ("PAPER", "PLACE", "OPEN", "WHY", "RUNS", "FULL", "run", "verdict", "draw")
RESULTS = Path(__file__).parent / "results"
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#5A5A5A", "#000000")


class Claim(NamedTuple):
    """A claim of a paper, the result here, and whether they agree."""

    says: str
    found: str
    holds: bool | None  # None: the paper makes no claim to compare with

    @property
    def verdict(self) -> str:
        return {True: "agrees", False: "differs", None: "-"}[self.holds]


def names() -> list[str]:
    """Names of all experiments, in alphabetical order."""
    found = pkgutil.iter_modules([str(Path(__file__).parent)])
    return sorted(module.name for module in found if not module.name.startswith("_"))


def load(name: str) -> ModuleType:
    experiment = importlib.import_module(f"{__package__}.{name}")
    missing = [part for part in CONTRACT if not hasattr(experiment, part)]
    if missing or not experiment.__doc__:
        raise TypeError(f"{name}.py is no experiment: it lacks {', '.join(missing or ['its docstring'])}.")
    return experiment


def parallel(function: Callable, tasks: Iterable[tuple], jobs: int) -> list:
    """[function(*task) for task in tasks] in `jobs` processes, with a line of progress."""
    tasks = list(tasks)
    calls = (joblib.delayed(function)(*task) for task in tasks)
    results = []
    for result in joblib.Parallel(n_jobs=jobs, return_as="generator")(calls):
        results.append(result)
        print(f"\r  {len(results)} of {len(tasks)}", end="", file=sys.stderr, flush=True)
    print("\r" + " " * 20 + "\r", end="", file=sys.stderr, flush=True)
    return results


def points(n: int, count: int = 100) -> np.ndarray:
    """Ends of `count` blocks that n rows are cut into."""
    return np.unique(np.linspace(0, n, count + 1).astype(int)[1:])


def losses(model, X: np.ndarray, y: np.ndarray, count: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and the cumulative loss after them, each row predicted before it is learned; NaN from a refusal on."""
    ends = points(len(y), count)
    found = np.full(len(ends), np.nan)
    for k, (start, end) in enumerate(zip(np.r_[0, ends[:-1]], ends, strict=True)):
        try:
            found[k] = model.partial_fit(X[start:end], y[start:end]).cumulative_loss_
        except ValueError:  # the explicit step left its domain, or diverged
            break
    return ends, found


def fingerprint(experiment: ModuleType) -> str:
    """A hash of the code of an experiment, without its docstring."""

    def describes(node: ast.stmt) -> bool:
        targets = {
            part.id
            for target in getattr(node, "targets", ())
            for part in ast.walk(target)
            if isinstance(part, ast.Name)
        }
        return getattr(node, "name", None) in ("verdict", "draw") or bool(
            targets & {"OPEN", "WHY", "FULL", "RUNS", "PAPER", "PLACE"}
        )

    _, *body = ast.parse(Path(experiment.__file__).read_text(encoding="utf-8")).body  # without the docstring
    source = "\n".join(ast.unparse(node) for node in body if not describes(node))
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def tables(name: str, runs: int | None, jobs: int, *, fresh: bool = False) -> tuple[Tables, dict]:
    """The results of an experiment and the facts of the run; stored ones if code and number of runs are the same."""
    experiment = load(name)
    runs = experiment.RUNS if runs is None else min(runs, experiment.FULL)
    key = {"runs": runs, "source": fingerprint(experiment), "version": onlinebregman.__version__}
    folder = RESULTS / name
    note = folder / "run.json"
    if not fresh and note.exists():
        known = json.loads(note.read_text())
        if known.items() >= key.items():
            return {table: pd.read_csv(folder / f"{table}.csv") for table in known["tables"]}, known
    start = time.perf_counter()
    found = experiment.run(runs, jobs)
    folder.mkdir(parents=True, exist_ok=True)
    for table, frame in found.items():
        frame.to_csv(folder / f"{table}.csv", index=False)
    known = {**key, "tables": list(found), "seconds": round(time.perf_counter() - start, 1)}
    note.write_text(json.dumps(known, indent=1))
    return {table: pd.read_csv(folder / f"{table}.csv") for table in found}, known


def markdown(frame: pd.DataFrame) -> str:
    """A table."""

    def cell(value) -> str:
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
        return text.replace("|", "\\|")

    rows = [frame.columns, ["---"] * frame.shape[1], *frame.itertuples(index=False)]
    return "\n".join("| " + " | ".join(cell(value) for value in row) + " |" for row in rows)
