"""Runs the four parts of the demo, prints the tables and draws the figure."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import threadpool_limits

from . import _figure, _report
from ._kernels import THEORY_ETA0, KernelResult, learn_kernels
from ._metric import DATA_SETS, MetricResult, compare_metrics
from ._regression import RegressionResult, SharesResult, tune_on_diabetes, tune_on_digits
from ._stream import STREAMS, StreamResult, learn_streams

INSTALL_HINT = "No figure was drawn, because matplotlib is not installed. Install it: python -m pip install matplotlib"


@dataclass(frozen=True)
class Size:
    """The data sets, grids and numbers of steps of a demo."""

    streams: tuple[str, ...]
    data_sets: tuple[str, ...]
    n_splits: int
    diabetes_etas: tuple[float, ...]
    diabetes_epochs: int
    digits_etas: tuple[float, ...]
    digits_epochs: int
    checkpoints: tuple[int, ...]


def _checkpoints(first: int, last: int, n: int) -> tuple[int, ...]:
    return tuple(round(float(f"{x:.2g}")) for x in np.geomspace(first, last, n))


FULL = Size(
    streams=tuple(STREAMS),
    data_sets=tuple(DATA_SETS),
    n_splits=10,
    diabetes_etas=(1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0),
    diabetes_epochs=50,
    digits_etas=(1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0),
    digits_epochs=200,
    checkpoints=_checkpoints(100, 20_000, 16),
)
QUICK = Size(
    streams=("Python's manual", "Diabetes"),
    data_sets=("Iris", "Balance Scale"),
    n_splits=3,
    diabetes_etas=(1e-2, 1.0),
    diabetes_epochs=10,
    digits_etas=(0.1, 10.0),
    digits_epochs=20,
    checkpoints=(100, 300, 1000),
)


@dataclass(frozen=True)
class DemoResult:
    """The results of the four parts; the third has two tasks."""

    streams: list[StreamResult]
    metric: list[MetricResult]
    diabetes: RegressionResult
    digits: SharesResult
    kernels: KernelResult
    seconds: float


def compute(size: Size, *, n_jobs: int = 1) -> DemoResult:
    """Run all parts, several side by side, each with BLAS on one thread; stderr hears which have ended."""
    start = time.perf_counter()
    parts = {
        "Streams without tuning": partial(learn_streams, names=size.streams),
        "Metric learning": partial(compare_metrics, names=size.data_sets, n_splits=size.n_splits),
        "Learning rates: diabetes": partial(tune_on_diabetes, etas=size.diabetes_etas, n_epochs=size.diabetes_epochs),
        "Learning rates: digits": partial(tune_on_digits, etas=size.digits_etas, n_epochs=size.digits_epochs),
        "Kernel learning": partial(learn_kernels, checkpoints=size.checkpoints, etas=(THEORY_ETA0, 10 * THEORY_ETA0)),
    }
    n_jobs = min(effective_n_jobs(n_jobs), len(parts))
    print(f"{len(parts)} parts, {n_jobs} at a time ...", file=sys.stderr, flush=True)
    results: list[Any] = []
    timed = Parallel(n_jobs, return_as="generator")(delayed(_timed)(part) for part in parts.values())
    for number, (title, (result, seconds)) in enumerate(zip(parts, timed, strict=True), 1):
        results.append(result)
        print(f"[{number}/{len(parts)}] {title}: {seconds:.1f} s", file=sys.stderr, flush=True)
    streams, metric, diabetes, digits, kernels = results
    return DemoResult(streams, metric, diabetes, digits, kernels, time.perf_counter() - start)


def _timed(part: Callable[[], Any]) -> tuple[Any, float]:
    """The result of a part, and the seconds that it took."""
    start = time.perf_counter()
    with threadpool_limits(limits=1):
        return part(), time.perf_counter() - start


def report(result: DemoResult) -> str:
    """All tables."""
    return "\n\n\n".join(
        [
            _report.stream_report(result.streams),
            _report.metric_report(result.metric),
            _report.regression_report(result.diabetes),
            _report.regression_report(result.digits),
            _report.kernel_report(result.kernels),
            _report.machine(result.seconds),
        ]
    )


def run_demo(output: Path, *, quick: bool = False) -> DemoResult:
    """Run the demo: progress on stderr, tables on stdout, the figure in `output`.

    Raises
    ------
    OSError
        Before anything is computed, if the figure cannot be written to `output`.
    """
    can_draw = _check_output(output)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # for terminals that cannot show ±
    result = compute(QUICK) if quick else compute(FULL, n_jobs=-1)
    print("\n" + report(result))
    if can_draw:
        note = "Data: Iris, Wine, WDBC, Digits and diabetes from scikit-learn; Balance Scale from the lever rule."
        _figure.draw(output, result.metric, result.diabetes, result.digits, result.kernels, note)
        print(f"\nFigure: {output}")
    else:
        print(f"\n{INSTALL_HINT}")
    return result


def _check_output(output: Path) -> bool:
    """Whether matplotlib is installed; OSError if it cannot write `output`."""
    try:
        formats = _figure.supported_formats()
    except ImportError:
        return False
    folder = output.absolute().parent
    if not folder.is_dir():
        raise OSError(f"--output {output}: there is no folder {folder}")
    if output.is_dir() or not os.access(folder, os.W_OK):
        raise OSError(f"--output {output}: cannot write a file there")
    if output.suffix.removeprefix(".").lower() not in formats:
        raise OSError(f"--output {output}: the name must end in one of {', '.join(f'.{f}' for f in sorted(formats))}")
    return True
