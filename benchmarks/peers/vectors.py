"""Speed of the vector estimators compared with alternatives, in one process, BLAS on one thread.

    python benchmarks/peers/vectors.py [--repeats 7] [--only blocks ...]

Each line does the same work with both, in turn, and prints the median times and the median of their ratios: the peer's
time over ours, so that above 1 we are faster. Blocks are learned by models that have learned a few rows before, as
validating parameters and allocating weights is not the work of a row. `X @ w` is one read of the data, a lower bound of
any method. river and vowpalwabbit are used if they are installed.
"""

import numpy as np
import pandas as pd
from _timing import compare, run
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import Perceptron, SGDClassifier, SGDRegressor
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor

from onlinebregman import (
    BurgRegressor,
    EGRegressor,
    ForwardClassifier,
    ImplicitGDRegressor,
    LearningRatePath,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    ParameterFreeClassifier,
    ParameterFreeRegressor,
    PerceptronClassifier,
    PNormRegressor,
    ScaleInvariantClassifier,
    ScaleInvariantRegressor,
)

try:
    from river import linear_model as river_models
    from river.preprocessing import StandardScaler
except ImportError:
    river_models = None
try:
    from vowpalwabbit import Workspace
except ImportError:
    Workspace = None


def sgd(**parameters):
    return SGDRegressor(max_iter=1, tol=None, shuffle=False, learning_rate="constant", eta0=1e-4, **parameters)


def sgd_classifier(loss="log_loss"):
    return SGDClassifier(loss=loss, learning_rate="constant", eta0=0.01)


def logistic():
    return MirrorDescentClassifier(divergence="squared_euclidean")


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


def on_block(model, X, y):
    """The work of learning a block with a fitted model."""
    if not hasattr(model, "coef_"):
        model.partial_fit(X[:10], y[:10])
    return lambda: model.partial_fit(X, y)


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
        if Workspace is not None:
            online = Workspace("--quiet --sgd --noconstant")
            texts = [f"{t} | " + " ".join(f"{i}:{v}" for i, v in enumerate(x[0])) for x, (t,) in rows]
            lines, parsed = [(text,) for text in texts], [(online.parse(text),) for text in texts]
            compare(f"{name}, partial_fit: vw learn, text", learn, calls(online.learn, lines), len(y), repeats)
            compare(f"{name}, partial_fit: vw learn, parsed", learn, calls(online.learn, parsed), len(y), repeats)
            for (example,) in parsed:
                online.finish_example(example)
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
        "p-norm, explicit": lambda: PNormRegressor(update="explicit", eta0=1e-4),
        "p-norm, p = 4, explicit": lambda: PNormRegressor(p=4.0, update="explicit", eta0=1e-4),
        "p-norm, implicit": lambda: PNormRegressor(eta0=0.1),
    }
    for width, rows in ((20, 50_000), (100, 20_000), (1000, 5000)):
        X, y = stream(rows, width)
        weights = np.ones(width)
        for name, make in methods.items():
            learn, peer = on_block(make(), X, y), on_block(sgd(), X, y)
            compare(f"block, {name}, d={width}: SGDRegressor", learn, peer, rows, repeats)
        learn, tracked = on_block(methods["ImplicitGD"](), X, y), on_block(ImplicitGDRegressor(track_regret=True), X, y)
        compare(f"block, ImplicitGD, d={width}: X @ w", learn, lambda X=X, w=weights: X @ w, rows, repeats)
        compare(f"block, ImplicitGD, d={width}, track_regret: without", tracked, learn, rows, repeats)
    learn, narrow = on_block(methods["ImplicitGD"](), X, y), on_block(methods["ImplicitGD"](), X.astype(np.float32), y)
    compare("block, ImplicitGD, d=1000, float32: the same in float64", narrow, learn, rows, repeats)
    for width in (10**4, 10**6):
        X, y = stream(20_000, width, density=50 / width)
        for name in ("ImplicitGD", "EG simplex, explicit", "Burg, explicit", "EG simplex, implicit", "Burg, implicit"):
            learn, peer = on_block(methods[name](), X, y), on_block(sgd(), X, y)
            compare(f"block, CSR, 50 nonzeros, {name}, d={width:.0e}: SGDRegressor", learn, peer, 20_000, repeats)


def penalties(repeats):
    """The same penalty on both sides, and our model with and without it."""
    plain = {"learning_rate": "constant", "eta0": 1e-4}
    for width, density in ((100, None), (10**4, 50e-4), (10**6, 50e-6)):
        X, y = stream(20_000, width, density)
        for divergence in ("squared_euclidean", "normalized_adagrad"):
            without = on_block(MirrorDescentRegressor(divergence=divergence, **plain), X, y)
            for penalty in ("l1", "elasticnet"):
                shared = {"penalty": penalty, "alpha": 1e-3}
                learn = on_block(MirrorDescentRegressor(divergence=divergence, **shared, **plain), X, y)
                kind = "block" if density is None else "block, CSR, 50 nonzeros"
                name = f"{kind}, {divergence}, {penalty}, d={width:g}"
                compare(f"{name}: SGDRegressor", learn, on_block(sgd(**shared), X, y), len(y), repeats)
                compare(f"{name}: without a penalty", learn, without, len(y), repeats)


def rates(repeats):
    X, y = stream(20_000, 100)
    path, one = LearningRatePath(eta0s=16), ImplicitGDRegressor(max_iter=1, tol=None, shuffle=False)
    peers = [sgd() for _ in range(16)]
    name = "fit, 16 rates at once, d=100"
    compare(f"{name}: one rate", lambda: path.fit(X, y), lambda: one.fit(X, y), len(y), repeats)
    compare(f"{name}: 16 SGDRegressor", lambda: path.fit(X, y), lambda: [p.fit(X, y) for p in peers], len(y), repeats)


def classifiers(repeats):
    pairs = {
        "Perceptron: scikit-learn's": (PerceptronClassifier, Perceptron),
        "logistic, implicit: SGDClassifier": (logistic, sgd_classifier),
    }
    for width, rows in ((20, 50_000), (100, 20_000)):
        X, y = stream(rows, width)
        y = (y > np.median(y)).astype(int)
        single = [(X[i : i + 1], y[i : i + 1]) for i in range(500)]
        for name, makers in pairs.items():
            model, peer = (make().partial_fit(X[:10], y[:10], classes=[0, 1]) for make in makers)
            learn, peers = calls(model.partial_fit, single), calls(peer.partial_fit, single)
            compare(f"one row, d={width}, {name}", learn, peers, len(single), repeats)
            compare(f"block, d={width}, {name}", on_block(model, X, y), on_block(peer, X, y), rows, repeats)


def outputs(repeats):
    """Ten outputs: a model that reads rows once, beside scikit-learn's loop over clones of the same model.

    Then what reading and scoring a row takes of learning it with one output, which is all that outputs could share.
    """
    X, _ = stream(20_000, 20)
    Y = np.abs(X @ np.random.default_rng(1).dirichlet(np.ones(20), 10).T)
    regressors = (MirrorDescentRegressor(), ImplicitGDRegressor(), EGRegressor(), BurgRegressor(), PNormRegressor())
    labels = {"classes": [[0, 1]] * 10}
    cases = [(model, MultiOutputRegressor(model), Y, {}) for model in regressors]
    classifiers = (logistic(), ForwardClassifier(), ParameterFreeClassifier())
    indicators = (np.median(Y) < Y).astype(int)
    cases += [(model, MultiOutputClassifier(model), indicators, labels) for model in classifiers]
    for model, peer, targets, classes in cases:
        peer.partial_fit(X[:10], targets[:10], **classes)
        for cut in (1, 100, 10_000):
            n = min(len(X) if model is not classifiers[-1] else 1000, 50 * cut)
            chunks = [(X[i : i + cut], targets[i : i + cut]) for i in range(0, n, cut)]
            name = f"ten outputs, d=20, calls of {cut} rows, {type(model).__name__}: {type(peer).__name__}"
            compare(name, calls(model.partial_fit, chunks), calls(peer.partial_fit, chunks), n, repeats)
    for model in map(clone, regressors):
        learn = on_block(model, X, Y[:, 0])
        name = f"one output, d=20, {type(model).__name__}, read and scored: learned"
        compare(name, lambda model=model: model.predict(X), learn, len(X), repeats)


def adaptive(repeats):
    """Adaptive geometries, and bets: each with a square root and a division for every coordinate of a row."""
    names = ("adagrad", "normalized_adagrad", "diagonal_newton")
    methods = {name: lambda name=name: MirrorDescentRegressor(divergence=name) for name in names}
    methods["bets"] = lambda: ScaleInvariantRegressor(loss="huber")
    labels = {
        (name, loss): MirrorDescentClassifier(divergence=name, loss=loss)
        for name in names
        for loss in ("log_loss", "hinge")
    }
    labels["bets", "log_loss"] = ScaleInvariantClassifier()
    for width, rows in ((20, 50_000), (100, 20_000)):
        X, y = stream(rows, width)
        single = [(X[i : i + 1], y[i : i + 1]) for i in range(500)]
        for name, make in methods.items():
            model, peer = make().partial_fit(X, y), sgd().partial_fit(X, y)
            learn, plain = on_block(model, X, y), on_block(ImplicitGDRegressor(), X, y)
            compare(f"block, {name}, d={width}: ImplicitGD", learn, plain, rows, repeats)
            compare(f"block, {name}, d={width}: SGDRegressor", learn, on_block(sgd(), X, y), rows, repeats)
            compare(
                f"one row, {name}, d={width}: SGDRegressor",
                calls(model.partial_fit, single),
                calls(peer.partial_fit, single),
                len(single),
                repeats,
            )
    for width, density in ((100, None), (10**4, 50 / 10**4), (10**6, 50 / 10**6)):
        X, y = stream(20_000, width, density)
        classes = (y > np.median(y)).astype(int)
        kind = "block" if density is None else "block, CSR, 50 nonzeros"
        for (name, loss), model in labels.items():
            ours, theirs = (
                m.partial_fit(X[:10], classes[:10], classes=[0, 1]) for m in (clone(model), sgd_classifier(loss))
            )
            learn, peer = on_block(ours, X, classes), on_block(theirs, X, classes)
            label = f"{kind}, {name}, {loss.replace('_', ' ')}"
            compare(f"{label}, d={width:.0e}: SGDClassifier", learn, peer, len(y), repeats)
            if density is None and name != "bets":
                plain = on_block(ImplicitGDRegressor(), X, y)
                compare(f"{label}, d={width}: ImplicitGD", learn, plain, len(y), repeats)
                ours = clone(model).set_params(standardize=True).partial_fit(X[:10], classes[:10], classes=[0, 1])
                learn = on_block(ours, X, classes)
                compare(f"{label}, standardize, d={width}: ImplicitGD", learn, plain, len(y), repeats)
        for name, make in methods.items() if density is not None else ():
            learn, peer = on_block(make(), X, y), on_block(sgd(), X, y)
            compare(f"{kind}, {name}, d={width:.0e}: SGDRegressor", learn, peer, len(y), repeats)


def nothing_to_tune(repeats):
    """A row predicted and learned, one row a call, beside river's pipelines."""
    if river_models is None:
        return
    X, y = stream(2000, 20)
    pairs = {
        ParameterFreeClassifier: (y > np.median(y), "predict_proba", river_models.LogisticRegression),
        ParameterFreeRegressor: (y, "predict", river_models.LinearRegression),
    }
    for kind, (target, method, peer_kind) in pairs.items():
        extra = {"classes": [False, True]} if kind is ParameterFreeClassifier else {}
        peer = StandardScaler() | peer_kind()
        forecast = getattr(peer, f"{method}_one")
        dicts = [(dict(enumerate(x)), t) for x, t in zip(X.tolist(), target.tolist(), strict=True)]

        def learn_peer(x, t, peer=peer, forecast=forecast):
            forecast(x)
            peer.learn_one(x, t)

        for settings in ({}, {"stacking": False}, {"random_features": 0}):
            model = kind(**settings).partial_fit(X, target, **extra)
            predict = getattr(model, method)

            def learn(x, t, model=model, predict=predict):
                predict(x)
                model.partial_fit(x, t)

            rows = [(X[i : i + 1], target[i : i + 1]) for i in range(len(y))]
            said = ", ".join(f"{name}={value}" for name, value in settings.items())
            name = f"one row, d=20, {kind.__name__}({said}), {method} and partial_fit: river"
            compare(name, calls(learn, rows), calls(learn_peer, dicts), len(y), repeats)


def epochs(repeats):
    """Three shuffled epochs, from the same start."""
    common = {"max_iter": 3, "tol": None, "random_state": 0}
    for n, width in ((20000, 20), (20000, 100), (2000, 1000), (500_000, 20), (100_000, 100)):
        X, y = stream(n, width)
        labels = y > np.median(y)
        pairs = {
            "implicit GD: SGDRegressor": (ImplicitGDRegressor(), sgd(), y),
            "logistic GD: SGDClassifier": (logistic(), sgd_classifier(), labels),
            "MirrorDescentClassifier(): SGDClassifier": (MirrorDescentClassifier(), sgd_classifier(), labels),
            "perceptron: Perceptron": (PerceptronClassifier(), Perceptron(), labels),
        }
        for name, (ours, peer, targets) in pairs.items():
            for shuffle in (True, False):
                ours.set_params(shuffle=shuffle, **common), peer.set_params(shuffle=shuffle, **common)
                work = [lambda model=model, X=X, y=targets: model.fit(X, y) for model in (ours, peer)]
                how = "shuffled" if shuffle else "in order"
                compare(f"fit, {how}, {n} rows, d={width}, {name}", *work, 3 * n, min(repeats, 5 if n < 10**5 else 3))


def columns(repeats):
    """Rows that are stored by columns, over the same rows stored by rows; the memory is measured by `columns.py`."""
    X, y = stream(100_000, 64)
    names = [f"x{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame({name: X[:, j].copy() for j, name in enumerate(names)}, copy=False)
    kinds = {"Fortran order": np.asfortranarray(X), "float32, Fortran order": np.asfortranarray(X, np.float32)}
    kinds["pandas, separate columns"] = frame
    for kind, kept in kinds.items():
        by_rows = X.astype(np.float32) if "32" in kind else X
        models = {}
        for name, model in (("implicit GD", ImplicitGDRegressor()), ("EG", EGRegressor())):
            models[name] = [clone(model).partial_fit(rows[:10], y[:10]) for rows in (kept, by_rows)]
        for name, (ours, plain) in models.items():
            work = lambda model, rows: lambda: model.partial_fit(rows, y)  # noqa: E731
            compare(f"block, {kind}, {name}: by rows", work(ours, kept), work(plain, by_rows), len(y), repeats)
            work = lambda model, rows: lambda: model.predict(rows)  # noqa: E731
            compare(f"predict, {kind}, {name}: by rows", work(ours, kept), work(plain, by_rows), len(y), repeats)


if __name__ == "__main__":
    run(__doc__, one_row, blocks, epochs, columns, penalties, rates, classifiers, outputs, adaptive, nothing_to_tune)
