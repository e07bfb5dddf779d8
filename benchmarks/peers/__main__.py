"""All comparisons with other packages, on one page.

    python -m benchmarks.peers [vectors matrices ...] [--page benchmarks/peers/RESULTS.md] [--results FOLDER]
                               [--tuned] [--metric-learn PYTHON]

Each script runs in a separate process, with one thread of BLAS; the tables that it prints go to the page, below the
first line of its docstring. The page is not kept in the repository: `benchmarks/README.md` has what matters of it.
Speed is stated as ratios measured in one process. A script that fails is named on the page, with its error. If only
some scripts are given, the other parts of an existing page are unchanged, and so are those that were measured on other
processors.

The errors on streams, of batch learners and of k-NN, and intervals, take up to hours: their results are stored in
FOLDER, and not measured again. --tuned and --metric-learn are options of the first and the last, see `streams.py` and
`knn_uci.py`.
"""

import argparse
import ast
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
FIRST = ("streams", "generators", "batch", "intervals", "knn_uci")  # errors come before speed
SCRIPTS = sorted(
    (path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_")),
    key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name),
)
HEAD = """# Comparisons with other packages

Errors on streams, of batch learners and of k-NN in learned metrics, and intervals, then speed: medians of several runs,
both sides in turn in one process on one thread, and the median of the ratios; above 1, ours is faster. `python -m
benchmarks.peers` makes this page.
"""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def processor() -> str:
    """Its name and its widest vectors, which speed depends on."""
    about = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    name = re.search(r"^model name\s*: (.*)$", about, re.MULTILINE)
    vectors = [kind for kind in ("avx512f", "avx2") if kind in about.split()]
    return " with ".join([name[1] if name else platform.machine(), *vectors[:1]])


def section(name: str, arguments: list[str]) -> str:
    """Run a script; its part of the page."""
    path = HERE / f"{name}.py"
    start = time.perf_counter()
    done = subprocess.run(  # -P: the installed package, not the sources of the checkout
        [sys.executable, "-P", str(path), *arguments],
        env=os.environ | ONE_THREAD | {"PYTHONPATH": str(HERE)},
        capture_output=True,
        text=True,
    )
    failed = "" if done.returncode == 0 else f"\n\nfailed:\n\n```\n{done.stderr[-2000:]}\n```"
    print(f"{name}: {'FAILED' if failed else 'done'} in {time.perf_counter() - start:.0f} s", flush=True)
    title = ast.get_docstring(ast.parse(path.read_text())).splitlines()[0]
    machine = f"{processor()}, {os.cpu_count()} processors, {platform.system()}, {time.strftime('%Y-%m-%d')}"
    return f"## {title.rstrip('.')}\n\n`benchmarks/peers/{name}.py`, {machine}:\n\n{done.stdout.strip()}{failed}\n"


def parts(page: Path) -> dict[tuple[str, str], str]:
    """The parts of a page, by the names of the scripts and the processors."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    found = {}
    for part in text.split("\n## ")[1:]:
        name, _, machine = part.partition("benchmarks/peers/")[2].partition(".py`, ")
        found[name, re.split(r",? ?\d+ processors", machine)[0]] = f"## {part.rstrip()}\n"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[[], *SCRIPTS], default=[], metavar="NAME", help=", ".join(SCRIPTS))
    parser.add_argument("--page", type=Path, default=HERE / "RESULTS.md")
    parser.add_argument(
        "--results", type=Path, metavar="FOLDER", help="what was found on streams, by batch learners and by k-NN"
    )
    parser.add_argument("--tuned", action="store_true", help="tune SGD and Vowpal Wabbit on each stream, too")
    parser.add_argument("--metric-learn", metavar="PYTHON", help="an interpreter that has metric-learn")
    options = parser.parse_args()
    arguments: dict[str, list[str]] = {name: [] for name in SCRIPTS}
    if options.results:
        options.results.mkdir(parents=True, exist_ok=True)
        arguments["streams"] += ["--results", str(options.results / "streams.csv")]
        for name in ("generators", "batch", "intervals", "knn_uci"):
            arguments[name] += ["--results", str(options.results / f"{name}.json")]
    if options.tuned:
        arguments["streams"] += ["--tuned"]
    if options.metric_learn:
        arguments["knn_uci"] += ["--metric-learn", options.metric_learn]
    found = parts(options.page)
    for name in options.names or SCRIPTS:
        found[name, processor()] = section(name, arguments[name])
        page = "\n".join([HEAD, *(found[key] for name in SCRIPTS for key in sorted(found) if key[0] == name)])
        options.page.write_text(page, encoding="utf-8")
    print(f"-> {options.page}")


if __name__ == "__main__":
    main()
