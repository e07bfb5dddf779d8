"""Shared code of the speed comparisons: both sides timed in turn in one process, and the command line of a script."""

import argparse
import platform
import time
import warnings

import _tables as tables
import numpy as np
import scipy
import sklearn
from threadpoolctl import threadpool_limits

import onlinebregman


def seconds(work):
    start = time.thread_time()  # other processes on the machine do not count
    work()
    return time.thread_time() - start


def compare(name, ours, peer, units, repeats, unit="us/row", peer_units=None):
    """Run both in turn; print medians per unit of work and the median of the ratios of each pair of runs."""
    ours(), peer()
    runs = np.array([(seconds(ours) / units, seconds(peer) / (peer_units or units)) for _ in range(repeats)])
    mine, theirs = 1e6 * np.median(runs, axis=0)
    tables.row(name, f"{mine:.3f}", f"{theirs:.3f}", unit, f"{np.median(runs[:, 1] / runs[:, 0]):.2f}")


def run(doc, *groups):
    """Print versions and machine, then the lines of the groups, which are functions of the number of repeats."""
    named = {group.__name__: group for group in groups}
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", nargs="*", choices=named, default=list(named))
    options = parser.parse_args()
    print(
        f"onlinebregman {onlinebregman.__version__}, scikit-learn {sklearn.__version__}, SciPy {scipy.__version__}, "
        f"NumPy {np.__version__}, Python {platform.python_version()}, {platform.machine()}"
    )
    tables.head("work: peer", "ours", "peer", "unit", "peer/ours")
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for name in options.only:
            named[name](options.repeats)
