"""How time grows with rows, features, nonzeros, classes, members, pairs and matrices, each over three decades.

    python benchmarks/growth.py [--only rows ...] [--repeats 5] [--figure docs/_static/growth.png]

Each axis draws the time of one unit of work (a row or a pair) beside peers and one read of the data, `X @ w`, or the
products of matrices that a step needs, one after the other. A line ends where a block takes more than a second.
Models have learned a few rows before. BLAS runs on one thread. `speed/growth.py` times the same lines with asv.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.linalg.blas import dsymv, dsyr
from sklearn.linear_model import SGDClassifier, SGDRegressor
from threadpoolctl import threadpool_limits

from onlinebregman import (
    EGRegressor,
    ForwardClassifier,
    ForwardRegressor,
    FrobeniusMetricLearner,
    ImplicitGDRegressor,
    LearningRateMixture,
    LearningRatePath,
    LogDetMetricLearner,
    MirrorDescentClassifier,
    ParameterFreeRegressor,
    VonNeumannMetricLearner,
)

LONGEST = 1.0  # seconds of a block, after which a line is not continued


class Axis(NamedTuple):
    """What grows, its sizes, and the lines: name -> function of a size that returns work and the units it does."""

    of: str
    unit: str
    sizes: tuple[int, ...]
    lines: dict[str, Callable[[int], tuple[Callable[[], object], int]]]


def decades(start, stop, each=2):
    return tuple(np.unique(np.round(np.geomspace(start, stop, each * round(np.log10(stop / start)) + 1)).astype(int)))


def dense(rows, width):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, width))
    return X, np.abs(X @ rng.dirichlet(np.ones(width)))


def csr(rows, width, nonzeros):
    """Rows with exactly so many nonzeros, at sorted random columns."""
    rng = np.random.default_rng(0)
    indices = np.sort(
        rng.integers(width // nonzeros, size=(rows, nonzeros)) + np.arange(nonzeros) * (width // nonzeros)
    )
    indptr = np.arange(rows + 1, dtype=np.int32) * nonzeros
    X = sparse.csr_array(
        (rng.normal(size=rows * nonzeros), indices.ravel().astype(np.int32), indptr), shape=(rows, width)
    )
    return X, np.abs(rng.normal(size=rows))


def learns(model, X, y, **first):
    """The work of learning a block with a model that has learned ten rows."""
    model.partial_fit(X[:10], y[:10], **first)
    return (lambda: model.partial_fit(X, y)), len(y)


def regressors(*models):
    """Lines of models, by their names, over rows that `data` makes of a size."""

    def lines(data):
        named = {name: (lambda size, make=make: learns(make(), *data(size))) for name, make in models}

        def product(size):
            X, _ = data(size)
            w = np.ones(X.shape[1])
            return (lambda: X @ w), X.shape[0]

        return named | {"X @ w": product}

    return lines


def sgd():
    return SGDRegressor(learning_rate="constant", eta0=1e-4)


GD = "ImplicitGDRegressor", lambda: ImplicitGDRegressor(eta0=0.01)
EG = "EGRegressor", lambda: EGRegressor(eta0=0.1)
FORWARD = "ForwardRegressor", ForwardRegressor
FREE = "ParameterFreeRegressor", ParameterFreeRegressor
SGD = "SGDRegressor", sgd


def rows_of_classes(size):
    """The number of rows for so many classes: at least two of each."""
    return max(1000, 2 * size)


def of_classes(make):
    def line(size):
        X, _ = dense(rows_of_classes(size), 20)
        y = np.arange(len(X)) % size
        return learns(make(), X, y, classes=np.arange(size))

    return line


def scores(size, rows=1000):
    """One read of rows of 20 features for so many scores."""
    X, _ = dense(rows, 20)
    weights = np.ones((20, size))
    return (lambda: X @ weights), rows


def of_members(make):
    return lambda size: learns(make(np.geomspace(1e-4, 1.0, size)), *dense(1000, 20))


def one_by_one(size):
    X, y = dense(1000, 20)
    models = [sgd().partial_fit(X, y) for _ in range(size)]
    return (lambda: [model.partial_fit(X, y) for model in models]), len(y)


def pairs_of(n, width):
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(min(n, 1000) + 1, width))
    pairs = np.c_[np.arange(n) % (len(rows) - 1), np.arange(n) % (len(rows) - 1) + 1]
    return rows, pairs, rng.uniform(0.5, 1.5, size=n) * width * 2


def of_pairs(make, n=None):
    """The work of learning pairs: as many as the size, of 20 columns, or n, of as many columns as the size."""

    def line(size):
        rows, pairs, targets = pairs_of(n or size, size if n else 20)
        model = make().partial_fit_pairs(rows, pairs[:10], targets[:10])
        return (lambda: model.partial_fit_pairs(rows, pairs, targets)), len(pairs)

    return line


def products(n=None):
    """One dsymv and one dsyr for each pair, called through SciPy."""

    def line(size):
        rows, pairs, _ = pairs_of(n or size, size if n else 20)
        matrix = np.asfortranarray(np.eye(rows.shape[1]))

        def work():
            for a, b in pairs:
                z = rows[a] - rows[b]
                dsyr(1e-9, dsymv(1.0, matrix, z), a=matrix, overwrite_a=True)

        return work, len(pairs)

    return line


def eigensolves(n):
    def line(size):
        matrix = np.cov(np.random.default_rng(0).normal(size=(size, 2 * size)))
        return (lambda: [eigh(matrix, driver="evd") for _ in range(n)]), n

    return line


METRICS = {
    "LogDetMetricLearner": lambda: LogDetMetricLearner(random_state=0),
    "VonNeumannMetricLearner": lambda: VonNeumannMetricLearner(random_state=0),
    "FrobeniusMetricLearner": lambda: FrobeniusMetricLearner(random_state=0),
}

AXES = {
    "rows": Axis(
        "rows of 20 features", "row", decades(1e3, 1e6), regressors(GD, EG, FORWARD, FREE, SGD)(lambda n: dense(n, 20))
    ),
    "features": Axis(
        "features, 1000 dense rows",
        "row",
        decades(10, 1e4),
        regressors(GD, EG, FORWARD, FREE, SGD)(lambda d: dense(1000, d)),
    ),
    "nonzeros": Axis(
        "nonzeros of 100,000 features, CSR",
        "row",
        decades(10, 1e4),
        regressors(GD, EG, SGD)(lambda nnz: csr(1000, 100_000, nnz)),
    ),
    "classes": Axis(
        "classes, 20 features",
        "row",
        decades(2, 2000),
        {
            "one against the rest": of_classes(lambda: MirrorDescentClassifier(divergence="squared_euclidean")),
            "multinomial": of_classes(
                lambda: MirrorDescentClassifier(divergence="squared_euclidean", multi_class="multinomial")
            ),
            "ForwardClassifier": of_classes(ForwardClassifier),
            "SGDClassifier": of_classes(lambda: SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.01)),
            "X @ W": lambda size: scores(size, rows_of_classes(size)),
        },
    ),
    "members": Axis(
        "learning rates, 20 features",
        "row",
        decades(2, 2000),
        {
            "LearningRatePath": of_members(lambda rates: LearningRatePath(ImplicitGDRegressor(), eta0s=rates)),
            "LearningRateMixture": of_members(lambda rates: LearningRateMixture(ImplicitGDRegressor(), eta0s=rates)),
            "SGDRegressor, one by one": one_by_one,
            "X @ W": scores,
        },
    ),
    "pairs": Axis(
        "pairs of rows of 20 features",
        "pair",
        decades(1e2, 1e5),
        {name: of_pairs(make) for name, make in METRICS.items()} | {"dsymv + dsyr": products()},
    ),
    "matrices": Axis(
        "features of a metric",
        "pair",
        decades(2, 2000),
        {name: of_pairs(make, 100) for name, make in METRICS.items()}
        | {"dsymv + dsyr": products(100), "eigh": eigensolves(3)},
    ),
}


def microseconds(line, size, repeats):
    """The least time of a unit of work, in microseconds, and whether the next size would take too long."""
    work, units = line(int(size))
    times = []
    for _ in range(repeats):
        start = time.thread_time()
        work()
        times.append(time.thread_time() - start)
        if times[-1] > LONGEST:
            break
    return 1e6 * min(times) / units, min(times) > LONGEST / 2


def measure(axis, repeats):
    """name -> (sizes, microseconds) of the lines of an axis."""
    found = {}
    for name, line in axis.lines.items():
        sizes, times = [], []
        for size in axis.sizes:
            cost, too_long = microseconds(line, size, repeats)
            sizes.append(size), times.append(cost)
            if too_long:
                break
        found[name] = sizes, times
        print(f"{axis.of}, {name}: " + ", ".join(f"{n:g}: {t:.3g}" for n, t in zip(sizes, times, strict=True)))
    return found


def draw(path, results):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 4, figsize=(17, 8.5), layout="constrained")
    for panel, (key, lines) in zip(axes.flat, results.items(), strict=False):
        for name, (sizes, times) in lines.items():
            peer = name.startswith(("SGD", "eigh"))
            limit = "@" in name or "dsy" in name
            style = {"color": "black", "linestyle": ":"} if limit else {"linestyle": "--"} if peer else {"marker": "."}
            panel.loglog(sizes, times, label=name, **style)
        panel.set(xlabel=AXES[key].of, ylabel=f"µs a {AXES[key].unit}")
        panel.set_ylim(top=30 * panel.get_ylim()[1])  # space for the legend
        panel.grid(alpha=0.3)
        panel.legend(fontsize=8)
    for panel in axes.flat[len(results) :]:
        panel.set_axis_off()
        panel.text(
            0,
            0.9,
            "Solid: onlinebregman.\nDashed: what one would use instead.\nDotted: one read of the data, or the\n"
            "products of a step with BLAS, pair by pair\n(LogDet learns pairs in blocks).",
            va="top",
        )
    figure.savefig(path, dpi=90)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=AXES, default=list(AXES))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--figure", help="file to draw the lines to")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        results = {name: measure(AXES[name], options.repeats) for name in options.only}
    if options.figure:
        draw(options.figure, results)


if __name__ == "__main__":
    main()
