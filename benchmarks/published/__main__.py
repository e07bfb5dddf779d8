"""Published tables beside the package at its defaults, wins and losses.

    ONLINEBREGMAN_DATA=FOLDER python -m benchmarks.published [capymoa opera river metrics]

FOLDER has the folder `published`, with the files that the scripts name, and the data sets of the other benchmarks.
river's data come with river. Rows are predicted in the order of the file, each before it is learned; the first is only
learned.
"""

import sys
from importlib import import_module

NAMES = ("capymoa", "opera", "river", "metrics")

if __name__ == "__main__":
    print("| table | published | source | ours |\n| --- | --- | --- | --- |", flush=True)
    for name in sys.argv[1:] or NAMES:
        for row in import_module(f"benchmarks.published.{name}").rows():
            print(f"| {' | '.join(row)} |", flush=True)
