"""The speed-up of two threads that learn separate models over sequential learning.

    python benchmarks/threads.py [--least 0.1] [--repeats 5] [EGRegressor LogDetMetricLearner ...]

For every public estimator: a call that learns rows, 2000 or as many more as take `--least` seconds, takes `seconds`;
two of them in turn, and at once in two threads, the minimum of several repeats each. The ratio is 2 if nothing waits
for the GIL, on two cores that are otherwise idle; it is unreliable on busy ones. Also values that depend
less on other load: the CPU time of the two threads over that of two calls in turn, and how often a call gave
up the CPU to wait, in a thousand rows.
"""

import argparse
import resource
import sys
import threading
import time
import warnings
from pathlib import Path

from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parent / "peers"))

from calls import begun, estimators, stream


def once(estimator, X, y):
    begun(estimator, X, y).partial_fit(X, y)


def measured(call):
    """Seconds, CPU seconds, and voluntary context switches."""
    before, cpu, wall = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw, time.process_time(), time.perf_counter()
    call()
    switches = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before
    return time.perf_counter() - wall, time.process_time() - cpu, switches


def enough(estimator, least):
    """A number of rows that takes `least` seconds to learn."""
    rows, seconds = 500, 0.0
    while seconds < least and rows < 2_000_000:
        rows *= 4
        X, y = stream(estimator, rows)
        start = time.perf_counter()
        once(estimator, X, y)
        seconds = time.perf_counter() - start
    return X, y


def in_turn(*calls):
    for call in calls:
        call()


def at_once(*calls):
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--least", type=float, default=0.1)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'':28}{'seconds':>9}{'ratio':>8}{'CPU':>8}{'waits':>8}")
    for estimator in estimators():
        name = type(estimator).__name__
        if options.names and name not in options.names:
            continue
        X, y = enough(estimator, options.least)

        def call(estimator=estimator, X=X, y=y):
            once(estimator, X, y)

        alone = [measured(lambda: in_turn(call, call)) for _ in range(options.repeats)]
        both = [measured(lambda: at_once(call, call)) for _ in range(options.repeats)]
        (serial, cpu, _), (threads, cpu_both, waits) = (
            tuple(map(min, zip(*runs, strict=True))) for runs in (alone, both)
        )
        print(
            f"{name:28}{serial / 2:9.4f}{serial / threads:8.2f}{cpu_both / cpu:8.2f}{waits / 2 / len(X) * 1000:8.0f}",
            flush=True,
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
