"""Speed of the forward algorithm compared with alternatives, in one process, BLAS on one thread.

    python benchmarks/peers/forward.py [--repeats 7] [--only blocks]

Each line does the same work with both, in turn, and prints the median times and the median of their ratios: the
peer's time over ours, so that above 1 we are faster. Sherman-Morrison is the textbook update of A^-1 in NumPy, with the
same predictions; the normal equations are solved once for a whole block, a lower bound for any method. The classifier
is compared with one dsymv and one dsyr a row and the scores of its classes, in BLAS without the cost of calling it.
river is used if it is installed.
"""

import _tables as tables
import numpy as np
from _timing import compare, run, seconds
from scipy.linalg.blas import dsymv, dsyr
from sklearn.linear_model import Ridge
from vectors import calls

from onlinebregman import ForwardClassifier, ForwardRegressor

try:
    from river import linear_model as river_models
except ImportError:
    river_models = None


class ShermanMorrison:
    """The forward algorithm by the inverse of A, which drifts on badly scaled rows."""

    def __init__(self, width):
        self.inverse, self.b = np.eye(width), np.zeros(width)

    def learn(self, x, y):
        v = self.inverse @ x
        self.inverse -= np.outer(v, v / (1.0 + v @ x))
        self.b += y * x

    def predict(self, x):
        v = self.inverse @ x
        return v @ self.b / (1.0 + v @ x)


def model():
    return ForwardRegressor(fit_intercept=False)


def stream(rows, width):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, width))
    return X, X @ rng.normal(size=width) + rng.normal(size=rows)


def row(width, repeats):
    X, y = stream(1000, width)
    ours, theirs = model().partial_fit(X, y), ShermanMorrison(width)
    rows, peer_rows = [(X[i : i + 1], y[i : i + 1]) for i in range(len(y))], list(zip(X, y.tolist(), strict=True))
    learn, predict = calls(ours.partial_fit, rows), calls(ours.predict, [row[:1] for row in rows])
    name = f"one row, d={width}"
    compare(f"{name}, learn: Sherman-Morrison in NumPy", learn, calls(theirs.learn, peer_rows), len(y), repeats)
    peer = calls(theirs.predict, [row[:1] for row in peer_rows])
    compare(f"{name}, predict: Sherman-Morrison in NumPy", predict, peer, len(y), repeats)
    few = [(X[: i + 1], y[: i + 1]) for i in range(900, 1000, 10)]
    refit = calls(Ridge(fit_intercept=False).fit, few)
    compare(f"{name} after 1000: Ridge on all", calls(ours.partial_fit, rows[:10]), refit, len(few), repeats)
    if river_models is not None:
        online = river_models.BayesianLinearRegression()
        dicts = [(dict(enumerate(x.tolist())), target) for x, target in peer_rows[:100]]
        compare(
            f"{name}, learn: river", calls(ours.partial_fit, rows[:100]), calls(online.learn_one, dicts), 100, repeats
        )


def block(width, rows, repeats):
    X, y = stream(rows, width)
    fitted, peer = model().fit(X, y), Ridge(fit_intercept=False)
    name = f"block, d={width}"

    def normal_equations():
        np.linalg.solve(X.T @ X + np.eye(width), X.T @ y)

    compare(f"{name}, fit: Ridge", lambda: model().fit(X, y), lambda: peer.fit(X, y), rows, repeats)
    compare(f"{name}, fit: normal equations", lambda: model().fit(X, y), normal_equations, rows, repeats)
    compare(f"{name}, predict: Ridge", lambda: fitted.predict(X), lambda: peer.predict(X), rows, repeats)


def one_row(repeats):
    for width in (5, 20, 100, 300):
        row(width, repeats)


def blocks(repeats):
    for width, rows in ((5, 100_000), (20, 50_000), (100, 10_000), (300, 2000)):
        block(width, rows, repeats)


def class_block(width, k, repeats):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, width))
    y = (X @ rng.normal(size=(width, k)) / width**0.5 + rng.gumbel(size=(3000, k))).argmax(axis=1)
    model = ForwardClassifier(fit_intercept=False).fit(X, y)

    def best(work, times):
        work()
        return 1e6 * min(seconds(work) for _ in range(repeats)) / times

    def one_size(call, n):
        A, x = np.eye(n, order="F"), X[0, :n].copy()
        return best(lambda: [call(A, x) for _ in range(2000)], 2000)

    def blas(call):
        return one_size(call, width) - one_size(call, 1)

    symv, syr = blas(lambda A, x: dsymv(1.0, A, x)), blas(lambda A, x: dsyr(1e-9, x, a=A, overwrite_a=1))
    scores = best(lambda: model.decision_function(X), 3000)
    ours, allowed = best(lambda: model.partial_fit(X, y), 3000), 1.5 * (symv + syr) + 3 * scores
    name = f"block, d={width}, {k} classes: 1.5 (dsymv + dsyr) + 3 scores"
    tables.row(name, f"{ours:.3f}", f"{allowed:.3f}", "us/row", f"{allowed / ours:.2f}")


def classes(repeats):
    for width in (50, 64, 100, 200):
        for k in (2, 3, 10, 26):
            class_block(width, k, repeats)


if __name__ == "__main__":
    run(__doc__, one_row, blocks, classes)
