"""Published tables beside the package at its defaults, wins and losses.

    ONLINEBREGMAN_DATA=FOLDER python -m benchmarks.published [capymoa opera river metrics]

FOLDER has the folder `published`, with the files that the scripts name, and the data sets of the other benchmarks.
river's data come with river. Rows are predicted in the order of the file, each before it is learned; the first is only
learned.
"""

import argparse
from importlib import import_module

NAMES = ("capymoa", "opera", "river", "metrics")

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; default: all")
    names = parser.parse_args().names or NAMES
    print("| table | published | source | ours |\n| --- | --- | --- | --- |", flush=True)
    for name in names:
        for row in import_module(f"benchmarks.published.{name}").rows():
            print(f"| {' | '.join(row)} |", flush=True)
