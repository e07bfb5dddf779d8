"""Speed of MaxEntDensity compared with the same optimum by SciPy and the same iterations by nltk, in one process.

    python benchmarks/peers/maximum_entropy.py [--repeats 3] [--only large]

Each line does the same work with both, in turn, and prints the median times and the median of their ratios: the peer's
time over ours, so that above 1 we are faster. SciPy's L-BFGS-B is given the definition (all scores, then one product
for the expectations) on features in [0, 1]; the optima are checked to be equal to 1e-6. nltk is
used if it is installed. `large` is the time and the memory of 10^6 points.
"""

import tracemalloc
from functools import partial

import _tables as tables
import numpy as np
from _timing import compare, run, seconds
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures

from onlinebregman import MaxEntDensity


def world(n_points, n_columns, degree=1, n_seen=2000):
    """Features, those of a transformer of correlated columns if `degree` > 1, and the numbers of observed points."""
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(n_points, n_columns)) @ (np.eye(n_columns) + 0.3)
    f = PolynomialFeatures(degree, include_bias=False).fit_transform(columns) if degree > 1 else columns
    f = MinMaxScaler().fit_transform(f)
    score = f @ rng.normal(scale=4.0, size=f.shape[1])
    return f, rng.choice(n_points, size=n_seen, p=np.exp(score - logsumexp(score)))


def by_scipy(f, seen):
    """Log-loss at the optimum."""
    mean = f[seen].mean(axis=0)

    def loss(multipliers):
        score = f @ multipliers
        log_z = logsumexp(score)
        return log_z - multipliers @ mean, np.exp(score - log_z) @ f - mean

    options = {"maxiter": 10**5, "maxfun": 10**6, "ftol": 1e-14, "gtol": 1e-7}
    return minimize(loss, np.zeros(f.shape[1]), jac=True, method="L-BFGS-B", options=options).fun


def optimum(repeats):
    for name, args in {
        "10^5 points, 20 features": (10**5, 20),
        "10^5 points, 20 columns and all products, 230": (10**5, 20, 2),
        "20 000 points, 7 columns and all products, 35": (20_000, 7, 2),
    }.items():
        f, seen = world(*args)
        peer = partial(by_scipy, f, seen)
        for solver in "newton", "lbfgs":
            model = MaxEntDensity(f, solver=solver)
            assert abs(model.fit(seen).log_loss_ - peer()) < 1e-6, (name, solver)
            compare(f"{name}, {solver}: SciPy's L-BFGS-B", partial(model.fit, seen), peer, 1000, repeats, "ms")


def rounds(repeats):
    """Iterative scaling, a round."""
    try:
        from nltk.classify import maxent
    except ImportError:
        return
    np.NINF = -np.inf  # noqa: NPY201 - nltk asks for this name, which NumPy 2 has no more
    f, seen = world(500, 10, n_seen=10)
    scaled = np.column_stack([f, 11 - f.sum(axis=1)]) / 11
    encoded = [list(enumerate(row)) for row in scaled.tolist()]

    class Encoding(maxent.MaxentFeatureEncodingI):
        C = 1.0

        def encode(self, featureset, label):
            return encoded[label]

        def labels(self):
            return range(len(f))

        def length(self):
            return scaled.shape[1]

    tokens = [({}, int(point)) for point in seen]

    def peer():
        maxent.train_maxent_classifier_with_gis(tokens, trace=0, encoding=Encoding(), max_iter=11)

    model = MaxEntDensity(f, solver="iterative_scaling", tol=None, max_iter=1000)
    line = "a round of scaling, 500 points, 10 observations: nltk's GIS"
    compare(line, partial(model.fit, seen), peer, 1000, repeats, "us", peer_units=10)


def large(repeats):
    """10^6 points and 20 features."""
    f, seen = world(10**6, 20)
    for solver, max_iter in ("newton", 100), ("lbfgs", 1000), ("iterative_scaling", 50):
        model = MaxEntDensity(f, solver=solver, max_iter=max_iter, tol=1e-10 if max_iter > 50 else None)
        took = np.median([seconds(partial(model.fit, seen)) for _ in range(repeats)])
        tracemalloc.start()
        model.fit(seen)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        work = f"10^6 points, 20 features, {solver}, {model.n_iter_} iterations to {model.entropy_bound_:.0e}"
        name = f"{work}, {peak / 1e6:.0f} MB above the domain"
        tables.row(name, f"{1000 * took:.3f}", "", "ms", "")


if __name__ == "__main__":
    run(__doc__, optimum, rounds, large)
