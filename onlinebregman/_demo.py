"""The demo, `python -m onlinebregman demo`: four applications of the package to real data, tables and a figure."""

from __future__ import annotations

import os
import platform
import re
import sys
import textwrap
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, SGDClassifier, SGDRegressor
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedShuffleSplit, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from threadpoolctl import threadpool_limits

from . import (
    EGRegressor,
    ImplicitGDRegressor,
    LogDetMetricLearner,
    MEGKernelLearner,
    ParameterFreeClassifier,
    ParameterFreeRegressor,
    __version__,
)
from .datasets import load_balance_scale
from .divergences import VonNeumann
from .model_selection import progressive_val_score
from .pipeline import make_online_pipeline

INSTALL_HINT = "No figure was drawn, because matplotlib is not installed. Install it: python -m pip install matplotlib"


def run_demo(output: Path, *, quick: bool = False) -> None:
    """Print the tables of all parts, each as soon as it is there, and draw the figure in `output`.

    Raises
    ------
    OSError
        Before anything is computed, if the figure cannot be written to `output`.
    """
    can_draw = _check_output(output)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # for terminals that cannot show ±
    start = time.perf_counter()
    with threadpool_limits(limits=1):
        learn_streams(quick)
        results = compare_metrics(quick), vary_rates(quick), learn_kernels(quick)
    _print(
        f"The demo took {time.perf_counter() - start:.0f} s with onlinebregman {__version__}, Python "
        f"{platform.python_version()}, NumPy {np.__version__} and scikit-learn {sklearn.__version__} on "
        f"{platform.system()} {platform.machine()}, BLAS on one thread. Random seeds are fixed: when it is repeated on "
        "the same machine, only the times change."
    )
    if can_draw:
        draw(output, *results)
    print(f"Figure: {output}" if can_draw else INSTALL_HINT)


# --- 1. streams -----------------------------------------------------------------------------------------------------

# Chapters of Python's reference manual, which is part of Python's standard library.
CHAPTERS = ("compound", "types", "string-methods", "debugger", "formatstrings", "import", "execmodel")


def load_manual(return_X_y: bool = True):
    """TF-IDF values of paragraphs of Python's manual, and the chapter of each."""
    paragraphs = [
        (paragraph, chapter)
        for chapter in CHAPTERS
        for paragraph in re.split(r"\n\s*\n", topics[chapter])
        if len(paragraph.split()) > 10
    ]
    words, chapters = zip(*paragraphs, strict=True)
    return TfidfVectorizer().fit_transform(words), np.array(chapters)


STREAMS = {
    "Python's manual": load_manual,
    "Diabetes": lambda return_X_y: load_diabetes(return_X_y=return_X_y, scaled=False),
    "WDBC": load_breast_cancer,
    "Wine": load_wine,
}


def learn_streams(quick: bool = False) -> dict[str, list[float]]:
    """Errors, in %, of rows predicted before they are learned: parameter-free, SGD, SGD on rows scaled online."""
    errors: dict[str, list[float]] = {}
    rows = []
    for name in list(STREAMS)[: 2 if quick else None]:
        X, y = STREAMS[name](return_X_y=True)
        order = np.random.RandomState(0).permutation(len(y))
        numbers = name == "Diabetes"
        ours: Any = ParameterFreeRegressor() if numbers else ParameterFreeClassifier()
        sgd = SGDRegressor(random_state=0) if numbers else SGDClassifier(random_state=0)
        models = [ours, sgd] if name == "Python's manual" else [ours, sgd, make_online_pipeline(StandardScaler(), sgd)]
        errors[name], seconds = [], []
        for model in models:
            start = time.thread_time()
            with np.errstate(all="ignore"):
                score = progressive_val_score(model, X[order], y[order], n_points=1).score
            seconds.append(time.thread_time() - start)
            errors[name].append(100 * (1 - score))
        cells = [f"{error:.1f}" if error < 1000 else "diverged" for error in errors[name]]
        classes = "regression" if numbers else str(len(np.unique(y)))
        speed = f"{1e6 * seconds[0] / len(y):.0f}"
        rows.append([name, f"{X.shape[0]} x {X.shape[1]}", classes, *cells, *[""] * (3 - len(cells)), speed])
    _print(
        "1. Streams: learning without tuning or scaling",
        "Each row of a stream is first predicted, then learned, in a single pass. Three models are compared, all with "
        "default parameters: ParameterFreeClassifier or ParameterFreeRegressor; SGDClassifier or SGDRegressor of "
        "scikit-learn; and the latter on rows that an online StandardScaler has standardised. Errors in %, lower is "
        "better: for classes the share of rows predicted wrongly; for regression the mean squared error relative to "
        "the variance of the targets. us/row: microseconds to predict and learn one row with the parameter-free model.",
        [["", "rows x columns", "classes", "parameter-free %", "SGD %", "scaled SGD %", "us/row"], *rows],
        f"Python's manual: which of {len(CHAPTERS)} chapters is a paragraph from? Features are TF-IDF values, which "
        "are not standardised.",
    )
    return errors


# --- 2. metric learning ---------------------------------------------------------------------------------------------

DATA_SETS = {
    "Iris": load_iris,
    "Balance Scale": load_balance_scale,
    "Wine": load_wine,
    "WDBC": load_breast_cancer,
    "Digits": load_digits,
}


def compare_metrics(quick: bool = False) -> dict[str, np.ndarray]:
    """Test errors, in %, of 5-NN without and with a learned metric, on stratified 70/30 splits: shape (2, n_splits)."""
    found, rows, n_splits = {}, [], 3 if quick else 10
    for name in list(DATA_SETS)[: 2 if quick else None]:
        X, y = DATA_SETS[name](return_X_y=True)
        errors, seconds = np.empty((2, n_splits)), 0.0
        splits = StratifiedShuffleSplit(n_splits, test_size=0.3, random_state=0).split(X, y)
        for k, (train, test) in enumerate(splits):
            plain = make_pipeline(StandardScaler(), KNeighborsClassifier(5)).fit(X[train], y[train])
            start = time.perf_counter()
            learned = make_pipeline(StandardScaler(), LogDetMetricLearner(random_state=k), KNeighborsClassifier(5))
            learned.fit(X[train], y[train])
            seconds += time.perf_counter() - start
            errors[:, k] = [100 * (1 - model.score(X[test], y[test])) for model in (plain, learned)]
        found[name], (before, after) = errors, errors
        cells = [f"{each.mean():.1f} ± {each.std(ddof=1):.1f}" for each in errors]
        change = round(float((after - before).mean()), 1) + 0.0
        won = f"{(after < before).sum()} : {(after > before).sum()}"
        data, milliseconds = f"{X.shape[0]} x {X.shape[1]}", f"{1e3 * seconds / n_splits:.0f}"
        rows.append([name, data, str(len(np.unique(y))), *cells, f"{change:+.1f}", won, milliseconds])
    _print(
        "2. Metric learning for nearest neighbours",
        "LogDetMetricLearner learns from labels which linear combinations of the features matter for distances. "
        "Compared are standardised features with 5 nearest neighbours (5-NN), and the same in the learned metric: "
        "make_pipeline(StandardScaler(), LogDetMetricLearner(), KNeighborsClassifier(5)), all with default parameters. "
        f"Errors are those on the test set of {n_splits} stratified 70/30 splits, mean ± standard deviation. won : "
        "lost: number of splits on which the metric has the lower : the higher error. fit ms: milliseconds to fit the "
        "pipeline with the metric.",
        [["", "data", "classes", "5-NN %", "with metric %", "change", "won : lost", "fit ms"], *rows],
    )
    return found


# --- 3. learning rates ----------------------------------------------------------------------------------------------

ETAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)


def vary_rates(quick: bool = False) -> dict[str, np.ndarray]:
    """Cross-validated R^2 of regression on diabetes by the learning rate; -inf where a fit failed."""
    X, y = load_diabetes(return_X_y=True)
    n_epochs = 10 if quick else 50
    common: Any = {"learning_rate": "invscaling", "power_t": 0.5, "max_iter": n_epochs, "tol": None, "random_state": 0}
    models = {
        "SGDRegressor": SGDRegressor(**common),
        "ImplicitGDRegressor": ImplicitGDRegressor(**common),
        "EGRegressor (signed)": EGRegressor(weights="signed", total=2.0, **common),
    }

    def score(model) -> float:
        scaled = make_pipeline(StandardScaler(), model)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # fits that fail have no score
            scores = cross_val_score(scaled, X, scale(y), cv=KFold(5, shuffle=True, random_state=0), scoring="r2")
        return float(np.nan_to_num(scores.mean(), nan=-np.inf))

    found = {
        name: np.array([score(clone(model).set_params(eta0=eta)) for eta in ETAS]) for name, model in models.items()
    }
    found["least squares"] = np.full(len(ETAS), score(LinearRegression()))
    rows = [[name, *(f"{r2:.3f}" if r2 > 0 else "< 0" for r2 in curve)] for name, curve in found.items()]
    _print(
        "3. Regression that withstands wrong learning rates",
        f"Diabetes: {len(X)} rows x {X.shape[1]} features, standardised in each of five folds, {n_epochs} epochs with "
        "the rate eta0 / sqrt(t). Cross-validated R2; < 0: the model has diverged, or is not better than predicting "
        "the mean. Implicit steps never pass the target of a row, and exponentiated gradient keeps the sum of all |w| "
        "at 2 or less; the last row is the batch solution, which has no rate.",
        [["R2 for eta0 =", *(f"{eta:g}" for eta in ETAS)], *rows],
    )
    return found


# --- 4. kernels -----------------------------------------------------------------------------------------------------

THEORY_ETA0 = 4.0  # 2 / r^2 for the loss (a - y)^2, which is 4 / r^2 for (a - y)^2 / 2; r = 1


def half_squared_distances(kernel: np.ndarray) -> np.ndarray:
    """(K_aa + K_bb - 2 K_ab) / 2 for all pairs of objects."""
    norms = np.diag(kernel)
    return (norms[:, None] + norms) / 2 - kernel


def choose_flowers() -> tuple[np.ndarray, np.ndarray]:
    """The species of 52 Iris flowers, and a Gaussian kernel of their features, of trace one."""
    X, y = load_iris(return_X_y=True)
    rng = np.random.RandomState(0)
    drawn = [rng.choice(np.flatnonzero(y == species), n, replace=False) for species, n in enumerate((17, 17, 18))]
    chosen = np.sort(np.concatenate(drawn))
    return y[chosen], rbf_kernel(StandardScaler().fit_transform(X)[chosen]) / len(chosen)


def nearest_neighbour_error(kernel: np.ndarray, labels: np.ndarray) -> float:
    """Error of 1-NN in the feature space of a kernel, in %, a mean over ten fixed splits into halves."""
    distances = np.maximum(half_squared_distances(kernel), 0.0)
    nearest, splits = KNeighborsClassifier(1, metric="precomputed"), ShuffleSplit(10, test_size=0.5, random_state=0)
    return 100 * float(1 - cross_val_score(nearest, distances, labels, cv=splits).mean())


def learn_kernels(quick: bool = False) -> dict[str, Any]:
    """Learn a kernel from random pairs, once for each of two rates."""
    labels, kernel = choose_flowers()
    d, distances = len(labels), half_squared_distances(kernel)
    ends = (100, 300, 1000) if quick else (100, 200, 500, 1000, 2000, 5000, 10_000, 20_000)
    error = nearest_neighbour_error(kernel, labels)
    bound = VonNeumann().divergence(kernel, np.eye(d) / d) / 2  # on the sum of (a - y)^2 at the rate THEORY_ETA0
    found: dict[str, Any] = {"ends": ends, "bound": bound, "target": error}
    rows = [["initial kernel I / d", "", "", "", f"{nearest_neighbour_error(np.eye(d) / d, labels):.1f}"]]
    for eta0 in (THEORY_ETA0, 10 * THEORY_ETA0):
        rng, learner, curves = np.random.RandomState(0), MEGKernelLearner(eta0=eta0, update="explicit"), []
        for n in np.diff((0, *ends)):
            first = rng.randint(d, size=n)
            second = (first + rng.randint(1, d, size=n)) % d
            learner.partial_fit_pairs(np.column_stack([first, second]), distances[first, second], n_objects=d)
            # the learner counts (a - y)^2 / 2
            curves.append((2 * learner.cumulative_loss_, nearest_neighbour_error(learner.kernel_, labels)))
        found[f"MEG, eta0 = {eta0:g}"] = np.transpose(curves)
        shown = f"{bound:.3f}" if eta0 == THEORY_ETA0 else "-"
        for k in sorted({0, len(ends) // 2, len(ends) - 1}):
            loss, error = curves[k]
            learned = [f"MEGKernelLearner(eta0={eta0:g})", f"{ends[k]:,} pairs"]
            rows.append([*learned, f"{loss:.3f}", shown, f"{error:.1f}"])
    rows.append(["target kernel", "", "", "", f"{found['target']:.1f}"])
    _print(
        "4. Kernel learning from distances",
        f"A kernel matrix of {d} Iris flowers is learned without their features, only from distances in a target "
        "kernel, a Gaussian one. MEGKernelLearner is told the distances of random pairs, one after the other. total "
        "loss: the sum of (a - y)^2, where a is the half squared distance predicted before a pair is learned and y "
        "that of the target; bound: the upper bound on it by the theorem, which is for the smaller rate. 1-NN %: error "
        "of the nearest neighbour classifier in the learned kernel, a mean over ten splits into halves.",
        [["", "learned from", "total loss", "bound", "1-NN %"], *rows],
    )
    return found


# --- text and figure ------------------------------------------------------------------------------------------------


def _print(*blocks: str | list[list[str]]) -> None:
    """Print a heading and the paragraphs and tables below it, or a paragraph alone."""
    if len(blocks) > 1:
        print(blocks[0], "=" * len(blocks[0]), sep="\n")
    for block in blocks[len(blocks) > 1 :]:
        text = textwrap.fill(block, 100, break_on_hyphens=False) if isinstance(block, str) else table(block)
        print(text, end="\n\n", flush=True)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns aligned below the header, the first row: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [rows[0], ["-" * width for width in widths], *rows[1:]]
    padded = ([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])] for line in lines)
    return "\n".join("  ".join(cells).rstrip() for cells in padded)


def _check_output(output: Path) -> bool:
    """Whether matplotlib is installed; OSError if it cannot write `output`."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError:
        return False
    formats, folder = FigureCanvasAgg.get_supported_filetypes(), output.absolute().parent
    if not folder.is_dir():
        raise OSError(f"--output {output}: there is no folder {folder}")
    if output.is_dir() or not os.access(folder, os.W_OK):
        raise OSError(f"--output {output}: cannot write a file there")
    if output.suffix.removeprefix(".").lower() not in formats:
        raise OSError(f"--output {output}: the name must end in one of {', '.join(f'.{f}' for f in sorted(formats))}")
    return True


# Distinguishable with every kind of colour vision (after Okabe and Ito, and Tol), and by markers and dashes.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#5A5A5A"


def draw(path: Path, metrics: dict[str, np.ndarray], rates: dict[str, np.ndarray], kernels: dict[str, Any]) -> None:
    """Draw the results of the last three parts; ImportError without matplotlib."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 8), dpi=150, layout="constrained")
    (left, right), (losses, errors) = figure.subplots(2, 2)
    places = -np.arange(len(metrics))
    for k, (label, color, marker) in enumerate((("5-NN", ORANGE, "s"), ("metric + 5-NN", BLUE, "o"))):
        means, spreads = np.transpose([(each[k].mean(), each[k].std(ddof=1)) for each in metrics.values()])
        style = {"color": color, "fmt": marker, "capsize": 3, "label": label}
        left.errorbar(means, places + 0.13 - 0.26 * k, xerr=spreads, **style)
    left.set_yticks(places, list(metrics))
    left.set(xlim=(0, None), xlabel="test error, % (mean ± sd of the splits)", title="5-NN with a learned metric")
    styles = (("black", "s--"), (BLUE, "o-"), (GREEN, "^-"), (GREY, ":"))
    for (name, curve), (color, line) in zip(rates.items(), styles, strict=True):
        right.plot(ETAS, np.maximum(curve, 0.0), line, color=color, label=name)
    right.set(xscale="log", xlabel="learning rate eta0", ylabel="cross-validated R²; 0: none, or diverged")
    right.set_title("Regression by the learning rate: diabetes")
    runs = [(name, value) for name, value in kernels.items() if name.startswith("MEG")]
    for (name, (loss, error)), (color, line) in zip(runs, ((BLUE, "o-"), (GREEN, "^-")), strict=True):
        losses.plot(kernels["ends"], loss, line, color=color, label=name)
        errors.plot(kernels["ends"], error, line, color=color, label=name)
    losses.axhline(kernels["bound"], color=BLUE, linestyle="--", label=f"bound for eta0 = {THEORY_ETA0:g}")
    errors.axhline(kernels["target"], color=GREY, linestyle=":", label="target kernel")
    losses.set(ylabel="total loss, sum of (a - y)²", title="A kernel of 52 flowers, learned from distances")
    errors.set(ylabel="1-NN error, %", title="Nearest neighbours in this kernel")
    for panel in (losses, errors):
        panel.set(xscale="log", xlabel="random pairs learned", ylim=(0, None))
    for panel in (left, right, losses, errors):
        panel.legend()
    figure.savefig(path)
