"""Speed of blocks beside the limits of the machine: one read of the data, rows in the cache, and BLAS.

    python benchmarks/peers/limits.py [--repeats 7] [--only first_calls ...]

As in `vectors.py` and `matrices.py`, both sides do the same work in turn, and ratios are the peer's time over ours.
First calls include validation and the allocation of a model, which take as long as in scikit-learn whatever the number
of rows; the rows of later calls take what is compared with three limits. `X @ w` reads the data once, and a row that is
learned has to be read, too; `predict` reads the rows one after the other, as learning does. A block in the cache,
learned as often as the large one, has no memory to wait for: it shows the latency of a row, from the weights to its
score, the step and the next weights. The next row has to wait for these, as its score by the old weights would be
rounded differently, depending on how the stream is cut into calls.

Powers of the p-norm are compared with a row of gradient descent, and the geometries with scikit-learn's gradient
descent, which takes neither exponentials nor quotients. These are vectorised, and limited by arithmetic: a power is a
logarithm, an exponential and a quotient, some 95 instructions for a register of numbers, where gradient descent takes
six; an explicit step of the p-norm takes one for each weight, an implicit one as many as Newton's method takes steps.
"""

import numpy as np
from _timing import compare, run
from matrices import blas_steps, noisy_pairs
from vectors import on_block, sgd, stream

from onlinebregman import BurgRegressor, EGRegressor, ImplicitGDRegressor, LogDetMetricLearner, PNormRegressor

ROWS = {20: 50_000, 100: 20_000, 1000: 5000}
CACHED = 320_000  # bytes, which fit into the second level of the cache


def gradient_descent():
    return ImplicitGDRegressor(eta0=0.01)


def first_calls(repeats):
    for width, rows in ROWS.items():
        (X, y), ones = stream(rows, width), np.ones(width)
        first = lambda X=X, y=y: gradient_descent().partial_fit(X, y)  # noqa: E731
        name = f"first call, ImplicitGD, d={width}"
        compare(f"{name}: SGDRegressor", first, lambda X=X, y=y: sgd().partial_fit(X, y), rows, repeats)
        compare(f"{name}: X @ w", first, lambda X=X, w=ones: X @ w, rows, repeats)


def later_calls(repeats):
    for width, rows in ROWS.items():
        (X, y), ones = stream(rows, width), np.ones(width)
        learn = on_block(gradient_descent(), X, y)
        few = CACHED // (8 * width)
        cached, times = on_block(gradient_descent(), X[:few], y[:few]), rows // few
        name = f"later call, ImplicitGD, d={width}"
        compare(f"{name}: SGDRegressor", learn, on_block(sgd(), X, y), rows, repeats)
        compare(f"{name}: X @ w", learn, lambda X=X, w=ones: X @ w, rows, repeats)
        model = gradient_descent().partial_fit(X, y)
        compare(f"{name}: predict", learn, lambda X=X, model=model: model.predict(X), rows, repeats)
        compare(
            f"{name}: {few} rows in the cache",
            learn,
            lambda cached=cached, times=times: [cached() for _ in range(times)],
            rows,
            repeats,
            peer_units=few * times,
        )


def geometries(repeats):
    X, y = stream(20_000, 100)
    models = {
        "EG simplex, explicit": EGRegressor(weights="simplex", update="explicit", eta0=0.01),
        "EG simplex, implicit": EGRegressor(weights="simplex", eta0=0.1),
        "Burg, implicit": BurgRegressor(eta0=0.1),
    }
    for name, model in models.items():
        compare(f"{name}, d=100: SGDRegressor", on_block(model, X, y), on_block(sgd(), X, y), len(y), repeats)
    for update in ("explicit", "implicit"):
        learn, plain = on_block(PNormRegressor(update=update), X, y), on_block(gradient_descent(), X, y)
        compare(f"p-norm, {update}, d=100: ImplicitGD", learn, plain, len(y), repeats)


def sparse_rows(repeats):
    for width in (10**4, 10**6):
        X, y = stream(20_000, width, density=50 / width)
        models = {
            "ImplicitGD": gradient_descent(),
            "EG simplex, explicit": EGRegressor(weights="simplex", update="explicit", eta0=0.01),
        }
        for name, model in models.items():
            learn, peer = on_block(model, X, y), on_block(sgd(), X, y)
            compare(f"CSR, 50 nonzeros, {name}, d={width:.0e}: SGDRegressor", learn, peer, len(y), repeats)


def logdet(repeats):
    for d, n, few in ((52, 10_000, 10_000), (1000, 512, 64)):
        X, pairs, targets = noisy_pairs(d, n)
        learner = LogDetMetricLearner().partial_fit_pairs(X, pairs[:10], targets[:10])
        learn = lambda m=learner, X=X, p=pairs, t=targets: m.partial_fit_pairs(X, p, t)  # noqa: E731
        peer = blas_steps(X, pairs[:few])
        compare(f"LogDet, d={d}: dsymv + dsyr", learn, peer, n, repeats, "us/pair", few)


if __name__ == "__main__":
    run(__doc__, first_calls, later_calls, geometries, sparse_rows, logdet)
