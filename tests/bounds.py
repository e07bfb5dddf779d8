"""Every bound of the package on adversarial streams: none is ever exceeded.

    python tests/bounds.py --streams 10000 --seed 0    # of each kind
    python tests/bounds.py --streams 100000 --only mistakes

A kind is a function of a random generator that learns a stream of its own and yields (left, right, size): a loss or
regret, its bound, and the size of the sums that they are differences of, by which both are rounded. Streams repeat,
alternate or reverse rows, have rows of zeros and outliers, rows on which the present weights and the comparator are far
apart, with the target on the far side, and rows of weight 0 and above 1. Comparators are random ones, corners of their
set, the weights of the run, and those that are best for the stream.
"""

import argparse
import sys
import time
import zlib
from collections.abc import Iterable

import bounds_linear
import bounds_others
import numpy as np
from adversarial import KINDS

assert bounds_linear.kind is bounds_others.kind  # importing them fills in KINDS
ROUNDING = 1e-9


def run(name: str, streams: Iterable[int], seed: int = 0) -> tuple[int, float, list[tuple[int, float, float]]]:
    """The number of comparisons, the worst left / right, and (stream, left, right) of each bound that is exceeded."""
    compared, worst, exceeded = 0, -np.inf, []
    for number in streams:
        rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
        for left, right, size in KINDS[name](rng):
            compared += 1
            if not left <= right + ROUNDING * (abs(right) + size):
                exceeded.append((number, left, right))
            if right > 1e-6 * size:
                worst = max(worst, left / right)
    return compared, worst, exceeded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=sorted(KINDS), action="append")
    options, found = parser.parse_args(), 0
    for name in options.only or sorted(KINDS):
        start = time.perf_counter()
        compared, worst, exceeded = run(name, range(options.streams), options.seed)
        found += len(exceeded)
        seconds = time.perf_counter() - start
        print(f"{name}: {compared} comparisons, worst {worst:.6f}, {len(exceeded)} above ({seconds:.0f} s)", flush=True)
        for number, left, right in exceeded[:5]:
            print(f"    stream {number}: {left!r} > {right!r}", flush=True)
    sys.exit(found > 0)


if __name__ == "__main__":
    main()
