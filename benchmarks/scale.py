"""Streams larger than memory: rows per second from their source to a fitted model, and the memory used.

    python benchmarks/scale.py [--gigabytes 4] [--features 64] [--folder DIR] [--estimator ImplicitGDRegressor]

The same rows from an array in memory, from a memory map of the size given, and a part of them (`--part` rows, as they
are slow to write) from Parquet, CSV and SQLite, by `fit_stream`; each in a separate process, with one
thread of BLAS. Printed are rows and MB a second, the rate over that of `partial_fit` on arrays in memory, and the most
private memory (RssAnon) in addition to that at the start. Files need pandas and pyarrow.
"""

import argparse
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd

import onlinebregman
from onlinebregman.streams import ArrayBatches, fit_stream

SOURCES = ("memory", "memory, fit_stream", "memory map", "parquet", "csv", "sqlite")


def write(folder, n_rows, n_part, d):
    """Write the rows to files, unless they exist."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=d)
    if not (folder / "y.npy").exists():
        X = np.lib.format.open_memmap(folder / "X.npy", mode="w+", dtype=np.float64, shape=(n_rows, d))
        y = np.empty(n_rows)
        for start in range(0, n_rows, 100_000):
            block = rng.normal(size=(min(100_000, n_rows - start), d))
            X[start : start + len(block)] = block
            y[start : start + len(block)] = block @ truth + rng.normal(size=len(block))
        X.flush()
        np.save(folder / "y.npy", y)
    X, y = np.load(folder / "X.npy", mmap_mode="r")[:n_part], np.load(folder / "y.npy", mmap_mode="r")[:n_part]
    names = [f"x{i}" for i in range(d)]
    if not (folder / "rows.csv").exists():
        np.savetxt(
            folder / "rows.csv", np.c_[X, y], delimiter=",", header=",".join([*names, "y"]), comments="", fmt="%.9g"
        )
    if not (folder / "rows.db").exists():
        with sqlite3.connect(folder / "rows.db") as base:
            base.execute(f"CREATE TABLE rows ({', '.join(f'{name} REAL' for name in [*names, 'y'])})")
            base.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * (d + 1))})", np.c_[X, y].tolist())
    if not (folder / "rows.parquet").exists():
        try:
            import pyarrow as pa
            from pyarrow import parquet
        except ImportError:
            return
        parquet.write_table(pa.table({**dict(zip(names, X.T, strict=True)), "y": y}), folder / "rows.parquet")


def private():
    """Bytes of memory of this process that are not mapped from files."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return 1024 * int(line.split()[1])
    return 0


class Peak:
    """The most private memory while a block of code runs."""

    def __enter__(self):
        self.before = self.most = private()
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        while not self.done.wait(0.01):
            self.most = max(self.most, private())

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


def measure(source, folder, estimator, n_part):
    """Rows, seconds and bytes."""
    X, y = np.load(folder / "X.npy", mmap_mode="r"), np.load(folder / "y.npy", mmap_mode="r")
    if source.startswith("memory") and source != "memory map":
        X, y = np.array(X[:n_part]), np.array(y[:n_part])
    batches = {
        "memory, fit_stream": lambda: ArrayBatches(X, y),
        "memory map": lambda: ArrayBatches(X, y),
        "parquet": lambda: folder / "rows.parquet",
        "csv": lambda: folder / "rows.csv",
        "sqlite": lambda: pd.read_sql(
            "SELECT * FROM rows ORDER BY rowid", sqlite3.connect(folder / "rows.db"), chunksize=10_000
        ),
    }
    model = getattr(onlinebregman, estimator)().partial_fit(X[:100], y[:100])
    with Peak() as peak:
        start = time.perf_counter()
        if source == "memory":
            for first in range(0, len(y), 10_000):
                model.partial_fit(X[first : first + 10_000], y[first : first + 10_000])
            n_rows = len(y)
        else:
            target = None if source.startswith("memory") else "y"
            n_rows = fit_stream(model, batches[source](), target=target, warm_start=True).n_rows
        seconds = time.perf_counter() - start
    return n_rows, seconds, peak.most - peak.before


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=4.0)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--part", type=int, default=200_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--estimator", default="ImplicitGDRegressor")
    parser.add_argument("--source", choices=SOURCES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.source:
        print(*measure(options.source, options.folder, options.estimator, options.part))
        return
    n_rows = int(options.gigabytes * 2**30 / 8 / options.features)
    print(
        f"onlinebregman {onlinebregman.__version__}, {platform.machine()}: {options.estimator}, d = {options.features}"
    )
    print(f"{'source':20s} {'rows':>10s} {'rows/s':>12s} {'MB/s':>8s} {'of memory':>10s} {'MB above':>9s}")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        write(Path(folder), n_rows, options.part, options.features)
        in_memory = None
        for source in SOURCES:
            if source == "parquet" and not (Path(folder) / "rows.parquet").exists():
                continue
            command = [sys.executable, "-P", __file__, "--source", source, "--folder", folder]
            command += ["--estimator", options.estimator, "--part", str(options.part)]
            limits = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            said = subprocess.run(command, env=os.environ | limits, capture_output=True, text=True, check=True).stdout
            n, seconds, above = (float(word) for word in said.split())
            rate = n / seconds
            in_memory = in_memory or rate
            volume = 8e-6 * options.features * rate
            print(
                f"{source:20s} {n:10.0f} {rate:12.0f} {volume:8.0f} {rate / in_memory:10.2f} {above / 1e6:9.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
