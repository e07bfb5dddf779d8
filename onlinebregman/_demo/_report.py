"""The results as text."""

from __future__ import annotations

import os
import platform
import textwrap
from collections.abc import Sequence

import numpy as np
import sklearn

from .. import __version__
from ._kernels import NEAR, THEORY_ETA0, KernelResult, OnlineRun
from ._metric import MetricResult
from ._regression import N_LIBRARY, N_MIXED, RegressionResult, SearchResult, SharesResult
from ._stream import CHAPTERS, StreamResult

_WIDTH = 100


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns aligned: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
        return "  ".join([cells[0].ljust(widths[0]), *padded]).rstrip()

    return "\n".join("  " + line(row) for row in (header, ["-" * width for width in widths], *rows))


def section(title: str, introduction: str, *body: str) -> str:
    """A heading, an introduction, and further tables or paragraphs."""
    blocks = [block if "\n" in block else _paragraph(block) for block in body]
    return f"{title}\n{'=' * len(title)}\n" + "\n\n".join([_paragraph(introduction), *blocks])


def machine(seconds: float) -> str:
    """The machine, the versions, and the time of the demo."""
    cpus = os.cpu_count() or 1
    versions = f"Python {platform.python_version()}, NumPy {np.__version__} and scikit-learn {sklearn.__version__}"
    computer = f"{platform.system()} {platform.machine()}, {cpus} CPU{'s' * (cpus > 1)}, BLAS on one thread"
    return textwrap.fill(
        f"The demo took {seconds:.0f} s with onlinebregman {__version__}, {versions} on {computer}. Random seeds are "
        "fixed: when it is repeated on the same machine, only the times change.",
        _WIDTH,
    )


def stream_report(results: Sequence[StreamResult]) -> str:
    """Part 1 as text."""
    header = ["", "rows x columns", "classes", "parameter-free %", "SGD %", "scaled SGD %", "us/row"]
    rows = [
        [
            result.name,
            f"{result.n_samples} x {result.n_features}",
            str(result.n_classes or "regression"),
            *(_share(error) for error in (result.ours, result.sgd, result.scaled_sgd)),
            f"{1e6 * result.seconds / result.n_samples:.0f}",
        ]
        for result in results
    ]
    return section(
        "1. Streams: learning without tuning or scaling",
        "Each row of a stream is first predicted, then learned, in a single pass. Three models are compared, all with "
        "default parameters: ParameterFreeClassifier or ParameterFreeRegressor; SGDClassifier or SGDRegressor of "
        "scikit-learn; and the latter on rows that an online StandardScaler has standardised. Columns in % are errors, "
        "lower is better: for classes the share of rows predicted wrongly; for regression the mean squared error "
        "relative to the variance of the targets, so that always predicting their mean would give 100 %. us/row: "
        "microseconds to predict and learn one row with the parameter-free model, including the overhead of Python.",
        table(header, rows),
        f"Python's manual: which of {len(CHAPTERS)} chapters is a paragraph from? Features are TF-IDF values, which "
        "are not standardised.",
    )


def metric_report(results: Sequence[MetricResult]) -> str:
    """Part 2 as text."""
    header = ["", "data", "classes", "5-NN %", "with metric %", "change", "won : lost", "fit ms", "triplets/s"]
    rows = [
        [
            result.name,
            f"{result.n_samples} x {result.n_features}",
            str(result.n_classes),
            _percent(result.plain_errors),
            _percent(result.learned_errors),
            f"{round(100 * result.change, 1) + 0.0:+.1f}",
            f"{result.n_better} : {result.n_worse}",
            f"{1e3 * result.fit_seconds:.0f}",
            f"{result.triplets_per_second:,.0f}",
        ]
        for result in results
    ]
    better = [result.name for result in results if result.change < -1e-9]
    rest = [result.name for result in results if result.change >= -1e-9]
    return section(
        "2. Metric learning for nearest neighbours",
        "LogDetMetricLearner learns from labels which linear combinations of the features matter for distances. "
        "Compared are standardised features with 5 nearest neighbours (5-NN), and the same in the learned metric: "
        "make_pipeline(StandardScaler(), LogDetMetricLearner(), KNeighborsClassifier(5)), all with default parameters. "
        f"Errors are those on the test set of {len(results[0].plain_errors)} stratified 70/30 splits, mean ± standard "
        "deviation, and the change of the mean by the metric, in percentage points. won : lost: number of splits on "
        "which the metric has the lower : the higher error. fit ms: milliseconds to fit the pipeline with the metric. "
        "triplets/s: triplets of rows (two of one class, one of another) learned per second of that time.",
        table(header, rows),
        f"The metric lowers the mean error on {len(better)} of {len(results)} data sets"
        + (f"; it does not on {_listing(rest)}." if rest else "."),
    )


def regression_report(result: RegressionResult) -> str:
    """One task of part 3 as text."""
    if not isinstance(result, SharesResult):
        title = f"3a. Tuning the learning rate: {result.task}"
        words = (
            "GridSearchCV chooses the learning rate and its schedule. Features and target are standardised in each "
            "fold. R2 and RMSE are cross-validated, RMSE ± its standard deviation over the folds in units of the "
            "target. This task has weights of both signs; BurgRegressor, whose weights are positive, cannot fit it as "
            "well."
        )
        header = ["", "best setting", "R2", "RMSE", "unusable", "sum w", "sum |w|", "w < 0", "s"]
        rows = [
            [*_search_cells(search, 1.0, show_r2=True), *_weight_cells(search), _seconds(search)]
            for search in result.searches
        ]
    else:
        title = f"3b. Non-negative weights: {result.task}"
        words = (
            f"Only the mean of {N_MIXED} images of digits is known: how many of them show each digit? Rows are the "
            f"pixels of the mean image, features are {N_LIBRARY} other images of each digit, and the weights of a "
            "digit's images sum to its estimated share. So weights should be positive, and sum to 1; nothing is "
            "centred or scaled, and there is no intercept. RMSE is that on the pixels of left-out folds, on the scale "
            "of 0 to 16 of the images. misplaced: half the sum of the absolute errors of the shares, that is the part "
            "of the images assigned to a wrong digit; it varies by a few percentage points with the choice of images."
        )
        header = ["", "best setting", "RMSE", "unusable", "sum w", "w < 0", "misplaced", "s"]
        rows = [
            [*_search_cells(search, 16.0, show_r2=False), *_share_cells(result, search), _seconds(search)]
            for search in result.searches
        ]
    return section(
        title,
        f"{result.n_samples} rows x {result.n_features} features, {result.n_epochs} epochs, 5 folds. {words}",
        table(header, rows),
        "best setting: eta0 and learning_rate with the largest R2. unusable: number of settings that diverged or are "
        "not better than predicting the mean. sum w, w < 0: sum of the weights, number of negative weights. s: "
        "seconds for the search. The last row is the batch solution, which uses all rows at once and has no learning "
        "rate.",
    )


def kernel_report(result: KernelResult) -> str:
    """Part 4 as text."""
    rows = [["initial kernel I / d", "", "", "", f"{100 * result.first_error:.1f}", ""]]
    for run in result.runs:
        bound = f"{result.loss_bound:.3f}" if run.eta0 == THEORY_ETA0 else "-"
        for i in _some_checkpoints(run):
            last = i == len(run.n_pairs) - 1
            rows.append(
                [
                    f"MEGKernelLearner(eta0={run.eta0:g})",
                    f"{run.n_pairs[i]:,} pairs",
                    f"{run.total_loss[i]:.3f}",
                    bound,
                    f"{100 * run.errors[i]:.1f}",
                    f"{run.seconds:.1f}" if last else "",
                ]
            )
    near = [
        f"{result.n_constraints} near pairs",
        "",
        "",
        f"{100 * result.boost_error:.1f}",
        f"{result.boost_seconds:.1f}",
    ]
    rows.append(["DefiniteBoost()", *near])
    rows.append(["target kernel", "", "", "", f"{100 * result.target_error:.1f}", ""])
    theory = next(run for run in result.runs if run.eta0 == THEORY_ETA0)
    share = 100 * theory.total_loss[-1] / result.loss_bound
    objective, d = result.dual_objective, result.n_objects
    violation = d * max(result.boost_violation, 0.0)
    return section(
        f"4. Kernel learning: {d} Iris flowers of three species, from distances of pairs",
        f"A kernel is a positive semidefinite {d} x {d} matrix; d = {d}. The learners are given distances of pairs of "
        "flowers in the target kernel, a Gaussian kernel of the standardised features scaled to trace one, but neither "
        "features nor species. MEGKernelLearner learns from a stream of random pairs: total loss is the sum of "
        "(a - y)^2, where a is the half squared distance predicted before a pair is learned and y that of the target; "
        "bound is the upper bound on it by the theorem. 1-NN %: error of the nearest neighbour classifier, with "
        "distances of the learned kernel, a mean over ten splits into halves. s: seconds.",
        table(["", "learned from", "total loss", "bound", "1-NN %", "s"], rows),
        f"With the theorem's rate, eta0={THEORY_ETA0:g}, the total loss is {share:.0f} % of its bound. The larger rate "
        "learns faster, but the theorem does not apply to it.",
        f"DefiniteBoost is only given that the half squared distances of {result.n_constraints} pairs are below "
        f"{NEAR:g}/d; {result.n_constraints_across} of these pairs are of different species. In {result.n_rounds} "
        f"rounds its dual objective falls from {objective[0]:.4g} to {objective[-1]:.4g}; the largest violation of a "
        f"constraint that remains is {violation:.0e}/d.",
    )


def _search_cells(search: SearchResult, scale: float, *, show_r2: bool) -> list[str]:
    best = search.best_params
    setting = ", ".join(f"{value:g}" if isinstance(value, float) else value for value in best.values())
    if "total" in best:
        setting = f"{best['eta0']:g}, {best['learning_rate']}, total={best['total']:g}"
    r2, rmse = f"{search.r2:.3f}", f"{scale * search.rmse:.2f} ± {scale * search.rmse_std:.2f}"
    if not search.usable:  # the numbers may be of any length
        r2, rmse = "< 0", "diverged"
    unusable = f"{search.n_unusable} of {search.n_settings}" if best else ""
    return [search.method, setting, *([r2] if show_r2 else []), rmse, unusable]


def _weight_cells(search: SearchResult) -> list[str]:
    if not search.usable:
        return ["-", "-", "-"]
    w = search.coef
    return [f"{w.sum():.2f}", f"{np.abs(w).sum():.2f}", str(int(np.sum(w < 0)))]


def _share_cells(result: SharesResult, search: SearchResult) -> list[str]:
    if not search.usable:
        return ["-", "-", "-"]
    w = search.coef
    return [f"{w.sum():.2f}", str(int(np.sum(w < 0))), f"{100 * result.misplaced(search):.1f} %"]


def _seconds(search: SearchResult) -> str:
    return f"{search.seconds:.1f}" if search.best_params else ""


def _some_checkpoints(run: OnlineRun) -> list[int]:
    """Up to four checkpoints for the table, the last one included."""
    n = len(run.n_pairs)
    return sorted({round(i) for i in np.linspace(0, n - 1, min(n, 4))})


def _paragraph(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def _share(error: float) -> str:
    """The error in per cent; no number if the model has diverged."""
    if np.isnan(error):
        return ""
    return f"{100 * error:.1f}" if error < 10 else "diverged"


def _percent(errors: np.ndarray) -> str:
    return f"{100 * errors.mean():.1f} ± {100 * errors.std(ddof=1):.1f}"


def _listing(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
