"""The time to import the package, compared with `import sklearn.linear_model`, in fresh processes.

    python benchmarks/imports.py [--repeats 9]

CPU seconds, medians; both in each process, one after the other, as the package imports scikit-learn. Of an editable
installation this includes the check whether kernels have changed.
"""

import argparse
import statistics
import subprocess
import sys

BOTH = """
import time
start = time.process_time()
import sklearn.linear_model
between = time.process_time()
import onlinebregman
print(between - start, time.process_time() - start)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=9)
    runs = []
    for _ in range(parser.parse_args().repeats):
        done = subprocess.run([sys.executable, "-P", "-c", BOTH], capture_output=True, text=True, check=True)
        runs.append([float(value) for value in done.stdout.split()])
    peer, ours = (statistics.median(column) for column in zip(*runs, strict=True))
    ratio = statistics.median(ours / peer for peer, ours in runs)
    print(f"sklearn.linear_model {peer:.2f} s, onlinebregman {ours:.2f} s, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
