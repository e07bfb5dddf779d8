"""The cost of fixed share (`share`) on stationary streams, and its gain under drift.

    python benchmarks/drift.py [--only STREAM ...]

Losses of the parameter-free mixtures over whole streams, each row predicted before it is learned, relative to
those without a share: real sets in random order, two series in their order, and linear data whose coefficients are
redrawn three times. Data sets that scikit-learn does not include are read from the folder that
ONLINEBREGMAN_DATA names.
"""

import argparse
import os
import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from streams import BUNDLED, LABELS, NUMBERS, SERIES, load

from onlinebregman import ParameterFreeClassifier, ParameterFreeRegressor

SHARES = (0.0, 0.0001, 0.001, 0.01)


def abrupt(labels, seed=0, n=8000, d=10, n_parts=4):
    """Rows whose targets follow other coefficients in each part."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    coef = np.repeat(rng.normal(size=(n_parts, d)) / np.sqrt(d), n // n_parts, axis=0)
    a = (X * coef).sum(axis=1)
    return X, (rng.random(n) < 1 / (1 + np.exp(-6 * a))).astype(int) if labels else a + 0.1 * rng.normal(size=n)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=("labels", "numbers", *LABELS, *NUMBERS), metavar="STREAM")
    only = parser.parse_args().only
    warnings.simplefilter("ignore")
    print(f"{'stream':25s}" + "".join(f"{f'share={share:g}':>14s}" for share in SHARES))
    streams = [(f"abrupt changes, {kind}", kind == "labels", None) for kind in ("labels", "numbers")]
    streams += [(name + ", series" * (name in SERIES), name in LABELS, name) for name in LABELS + NUMBERS[::-1]]
    for title, labels, name in streams:
        if (name or ("labels" if labels else "numbers")) not in only:
            continue
        if name not in (None, *BUNDLED) and "ONLINEBREGMAN_DATA" not in os.environ:
            continue
        X, y = abrupt(labels) if name is None else load(name)
        make = ParameterFreeClassifier if labels else ParameterFreeRegressor
        losses = [make(share=share).fit(X, y).cumulative_loss_ for share in SHARES]
        print(f"{title:25s}" + "".join(f"{loss / losses[0]:14.3f}" for loss in losses), flush=True)


if __name__ == "__main__":
    main()
