"""Speed of the vector estimators beside what a user would pick instead, in one process, BLAS on one thread.

    python benchmarks/peers/vectors.py [--repeats 7]

Each line does the same work with both, in turn, and prints the median times and the median of their ratios: the
peer's time over ours, so that above 1 we are faster. `X @ w` is one read of the data, the floor of any method. river
is used if it is installed.
"""

import argparse
import platform
import time
import warnings

import numpy as np
import sklearn
from scipy import sparse
from sklearn.linear_model import SGDRegressor
from threadpoolctl import threadpool_limits

from onlinebregman import BurgRegressor, EGRegressor, ImplicitGDRegressor, __version__

try:
    from river import linear_model as river_models
except ImportError:
    river_models = None


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare(name, ours, peer, units, repeats, unit="us/row"):
    """Run both in turn; print medians per unit of work and the ratio of each pair of runs."""
    ours(), peer()
    pairs = np.array([(seconds(ours), seconds(peer)) for _ in range(repeats)])
    mine, theirs = 1e6 * np.median(pairs, axis=0) / units
    ratio = np.median(pairs[:, 1] / pairs[:, 0])
    print(f"{name:72s} {mine:10.3f} {theirs:10.3f} {unit:>8s} {ratio:9.2f}", flush=True)


def sgd():
    return SGDRegressor(max_iter=1, tol=None, shuffle=False, learning_rate="constant", eta0=1e-4)


def stream(rows, width, density=None):
    """Rows and non-negative targets of the size of the rows' entries."""
    rng = np.random.default_rng(0)
    if density is None:
        X = rng.normal(size=(rows, width))
        return X, np.abs(X @ rng.dirichlet(np.ones(width)))
    X = sparse.random_array((rows, width), density=density, format="csr", rng=rng, data_sampler=rng.standard_normal)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, np.abs(rng.normal(size=rows))


def calls(method, rows):
    """The work of calling a method for each row, as a function without arguments."""

    def work():
        for row in rows:
            method(*row)

    return work


def one_row(repeats):
    for width in (6, 20, 100):
        X, y = stream(2000, width)
        rows = [(X[i : i + 1], y[i : i + 1]) for i in range(len(y))]
        model, peer = ImplicitGDRegressor().partial_fit(X, y), sgd().partial_fit(X, y)
        learn, predict = calls(model.partial_fit, rows), calls(model.predict, [row[:1] for row in rows])
        name = f"one row, d={width}"
        compare(f"{name}, partial_fit: SGDRegressor", learn, calls(peer.partial_fit, rows), len(y), repeats)
        compare(f"{name}, predict: SGDRegressor", predict, calls(peer.predict, [x[:1] for x in rows]), len(y), repeats)
        if river_models is not None:
            dicts = [(dict(enumerate(x[0].tolist())), float(target[0])) for x, target in rows]
            online = river_models.LinearRegression()
            compare(f"{name}, partial_fit: river learn_one", learn, calls(online.learn_one, dicts), len(y), repeats)
    X, y = stream(200, 10**6, density=5e-5)
    rows = [(X[[i]], y[i : i + 1]) for i in range(len(y))]
    model, peer = ImplicitGDRegressor().partial_fit(X, y), sgd().partial_fit(X, y)
    name = "one row, CSR, 50 nonzeros, d=10^6, partial_fit"
    compare(f"{name}: SGDRegressor", calls(model.partial_fit, rows), calls(peer.partial_fit, rows), len(y), repeats)


def blocks(repeats):
    methods = {
        "ImplicitGD": lambda: ImplicitGDRegressor(eta0=0.01),
        "explicit GD": lambda: ImplicitGDRegressor(eta0=1e-4, update="explicit"),
        "EG simplex, explicit": lambda: EGRegressor(weights="simplex", update="explicit", eta0=0.01),
        "EG signed, explicit": lambda: EGRegressor(update="explicit", eta0=0.01),
        "Burg, explicit": lambda: BurgRegressor(update="explicit", eta0=1e-3),
        "EG simplex, implicit": lambda: EGRegressor(weights="simplex", eta0=0.1),
        "EG signed, implicit": lambda: EGRegressor(eta0=0.1),
        "Burg, implicit": lambda: BurgRegressor(eta0=0.1),
    }
    for width, rows in ((20, 50_000), (100, 20_000), (1000, 5000)):
        X, y = stream(rows, width)
        weights = np.ones(width)
        for name, make in methods.items():
            compare(
                f"block, {name}, d={width}: SGDRegressor",
                lambda make=make, X=X, y=y: make().partial_fit(X, y),
                lambda X=X, y=y: sgd().partial_fit(X, y),
                rows,
                repeats,
            )
        compare(
            f"block, ImplicitGD, d={width}: X @ w",
            lambda X=X, y=y: ImplicitGDRegressor(eta0=0.01).partial_fit(X, y),
            lambda X=X, weights=weights: X @ weights,
            rows,
            repeats,
        )
    X32 = X.astype(np.float32)
    compare(
        "block, ImplicitGD, d=1000, float32: the same in float64",
        lambda: ImplicitGDRegressor(eta0=0.01).partial_fit(X32, y),
        lambda: ImplicitGDRegressor(eta0=0.01).partial_fit(X, y),
        rows,
        repeats,
    )
    for width in (10**4, 10**6):
        X, y = stream(20_000, width, density=50 / width)
        for name in ("ImplicitGD", "EG simplex, implicit", "Burg, implicit"):
            # learned on beforehand: making 10^6 weights is not the work of a row
            model, peer = methods[name]().partial_fit(X[:10], y[:10]), sgd().partial_fit(X[:10], y[:10])
            compare(
                f"block, CSR, 50 nonzeros, {name}, d={width:.0e}: SGDRegressor",
                lambda model=model, X=X, y=y: model.partial_fit(X, y),
                lambda peer=peer, X=X, y=y: peer.partial_fit(X, y),
                20_000,
                repeats,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    print(
        f"onlinebregman {__version__}, scikit-learn {sklearn.__version__}, NumPy {np.__version__}, "
        f"Python {platform.python_version()}, {platform.machine()}"
    )
    print(f"{'work: peer':72s} {'ours':>10s} {'peer':>10s} {'':8s} {'peer/ours':>9s}")
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        one_row(repeats)
        blocks(repeats)
