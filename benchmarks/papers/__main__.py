"""Reproduce the experiments of the papers, and draw each figure together with the reported results.

    ONLINEBREGMAN_DATA=FOLDER python -m benchmarks.papers [NAME ...] [--jobs N] [--runs N | --full]

Tables go to benchmarks/papers/results/NAME, figures to benchmarks/papers/figures; an existing table is not
measured again. If all experiments are run, README.md of this folder is written.
"""

from __future__ import annotations

import argparse
import platform
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import onlinebregman

from ._experiment import Claim, load, markdown, names, tables

PAPERS = {
    "JKD07": "Jain, Kulis, Dhillon, *Online Linear Regression using Burg Entropy*, TR-07-08 (2007)",
    "KB10": "Kulis, Bartlett, *Implicit Online Learning*, ICML 2010",
    "TRW04": "Tsuda, Rätsch, Warmuth, *Matrix Exponential Gradient Updates for On-line Learning and Bregman "
    "Projection*, NIPS 2004",
    "W": "Warmuth, *Bregman divergences and on-line learning* (slides)",
    "S18": "Schapire, *COS 511 lecture 20: maximum entropy* (2018)",
    "Portfolios": "Cover, *Universal portfolios* (1991); Helmbold, Schapire, Singer, Warmuth, *On-line portfolio "
    "selection using multiplicative updates* (1998)",
}
FIGURES = Path(__file__).parent / "figures"
INTRODUCTION = """# The experiments of the papers, reproduced

Written by `python -m benchmarks.papers`, which repeats the experiments and compares each figure with the results of
the paper. The exact procedure, with all parameters and seeds, is described at the top of NAME.py. `--runs N` sets the
number of repetitions, `--full` uses the full number. Losses are (a - y)^2 / 2 unless stated otherwise. "agrees" and
"differs" are decided by the code, from the tables; rates and starting weights were not tuned for them unless stated;
"-" means that the paper makes no claim.
"""


def draw(name: str, experiment, found) -> Path:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 4.6), dpi=80, layout="constrained")
    experiment.draw(figure, found)
    FIGURES.mkdir(exist_ok=True)
    path = FIGURES / f"{name}.png"
    figure.savefig(path, metadata={"Software": None})
    return path


def section(name: str, experiment, claims: list[Claim], known: dict) -> str:
    """One section of the page of results."""
    title = experiment.__doc__.splitlines()[0].rstrip(".")
    lines = [f"### {experiment.PLACE}: {title}\n"]
    rows = [(claim.says, claim.found, claim.verdict) for claim in claims]
    lines.append(markdown(pd.DataFrame(rows, columns=["claim of the paper", "result here", "verdict"])))
    full = "" if known["runs"] >= experiment.FULL else f" of {experiment.FULL} in full"
    lines.append(f"\n![{experiment.PLACE}](figures/{name}.png)")
    lines.append(f"\n{experiment.WHY}\n\nNot specified in the paper, chosen here: {experiment.OPEN}\n")
    lines.append(f"`{name}.py`; repetitions: {known['runs']}{full}; {known['seconds']:.0f} s.\n")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"experiments: {', '.join(names())}; none means all")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--runs", type=int, help="repetitions; each experiment has a number of its own")
    parser.add_argument("--full", action="store_true", help="the full number of repetitions")
    parser.add_argument("--fresh", action="store_true", help="measure again what is known")
    options = parser.parse_args()
    if unknown := set(options.names) - set(names()):
        parser.error(f"there is no experiment {', '.join(sorted(unknown))}; there are: {', '.join(names())}")
    versions = (
        f"onlinebregman {onlinebregman.__version__}, scikit-learn {sklearn.__version__}, NumPy {np.__version__}, "
        f"Python {platform.python_version()}"
    )
    print(versions)
    sections: dict[str, list[str]] = {paper: [] for paper in PAPERS}
    for name in options.names or names():
        experiment = load(name)
        print(f"{name}: {experiment.__doc__.splitlines()[0]}", file=sys.stderr, flush=True)
        try:
            found, known = tables(
                name, experiment.FULL if options.full else options.runs, options.jobs, fresh=options.fresh
            )
        except FileNotFoundError as error:
            print(f"{name}: left out, its data are not there. {error}", file=sys.stderr)
            continue
        claims = experiment.verdict(found)
        sections[experiment.PAPER].append(section(name, experiment, claims, known))
        if "summary" in found:
            print(f"\n{markdown(found['summary'])}\n")
        for claim in claims:
            print(f"{name}: {claim.verdict}: {claim.says} -- {claim.found}", flush=True)
        print(f"{name}: {draw(name, experiment, found)} ({known['seconds']:.0f} s)\n", flush=True)
    if not options.names:
        parts = [INTRODUCTION]
        for paper, found_of_it in sections.items():
            if found_of_it:
                parts += [f"## {paper}\n\n{PAPERS[paper]}\n", *found_of_it]
        (Path(__file__).parent / "README.md").write_text("\n".join([*parts, versions + ".\n"]), encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    with threadpool_limits(1):
        main()
