"""All comparisons with other packages, one after the other, as one page.

    python -m benchmarks.peers [vectors matrices ...] [--page benchmarks/peers/RESULTS.md]

Each script runs in a process of its own, on one thread of BLAS; what it prints goes to the page, below what it says of
itself. Speed is stated as ratios measured in one process. A script that fails is named on the page, with its error.
"""

import argparse
import ast
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
SCRIPTS = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def section(name: str, heading: str) -> str:
    """Run a script; its part of the page."""
    path = HERE / f"{name}.py"
    start = time.perf_counter()
    done = subprocess.run(  # -P: not the sources of the checkout, but what is installed
        [sys.executable, "-P", str(path)],
        env=os.environ | ONE_THREAD | {"PYTHONPATH": str(HERE)},
        capture_output=True,
        text=True,
    )
    text = done.stdout if done.returncode == 0 else f"{done.stdout}\nfailed:\n{done.stderr[-2000:]}"
    print(f"{name}: {'done' if done.returncode == 0 else 'FAILED'} in {time.perf_counter() - start:.0f} s", flush=True)
    return f"## {heading}\n\n`benchmarks/peers/{name}.py`\n\n```\n{text.strip()}\n```\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[[], *SCRIPTS], default=[], metavar="NAME", help=", ".join(SCRIPTS))
    parser.add_argument("--page", type=Path, default=HERE / "RESULTS.md")
    options = parser.parse_args()
    docs = {name: ast.get_docstring(ast.parse((HERE / f"{name}.py").read_text())) for name in SCRIPTS}
    sections = [section(name, docs[name].splitlines()[0]) for name in options.names or SCRIPTS]
    machine = (
        f"{platform.machine()}, {os.cpu_count()} processors, {platform.system()}, Python {platform.python_version()}"
    )
    options.page.write_text("\n".join([f"# Beside other packages\n\nOn {machine}.\n", *sections]), encoding="utf-8")
    print(f"-> {options.page}")


if __name__ == "__main__":
    main()
