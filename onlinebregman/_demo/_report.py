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
from ._regression import N_HEAP, N_LIBRARY, RegressionResult, SearchResult, SharesResult
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
    """A heading, a paragraph, and tables or paragraphs after it."""
    blocks = [block if "\n" in block else _paragraph(block) for block in body]
    return f"{title}\n{'=' * len(title)}\n" + "\n\n".join([_paragraph(introduction), *blocks])


def machine(seconds: float) -> str:
    """What the demo ran on, and how long it took."""
    cpus = os.cpu_count() or 1
    versions = f"Python {platform.python_version()}, NumPy {np.__version__} and scikit-learn {sklearn.__version__}"
    computer = f"{platform.system()} {platform.machine()}, {cpus} CPU{'s' * (cpus > 1)}, BLAS on one thread"
    return textwrap.fill(
        f"Took {seconds:.0f} s with onlinebregman {__version__}, {versions} on {computer}. Seeds are fixed: on one "
        "machine only the times change.",
        _WIDTH,
    )


def stream_report(results: Sequence[StreamResult]) -> str:
    """Part 1 as text."""
    header = ["", "data", "classes", "nothing to tune %", "SGD %", "scaler, SGD %", "us/row"]
    rows = [
        [
            result.name,
            f"{result.n_samples} x {result.n_features}",
            str(result.n_classes or "numbers"),
            *(_share(error) for error in (result.ours, result.sgd, result.scaled_sgd)),
            f"{1e6 * result.seconds / result.n_samples:.0f}",
        ]
        for result in results
    ]
    return section(
        "1. Streams, with nothing to tune and nothing to scale",
        "One pass over the rows as they come, each predicted before it is learned: ParameterFreeClassifier and "
        "ParameterFreeRegressor against SGDClassifier and SGDRegressor, as they are and behind a StandardScaler that "
        "learns the stream, too; all parameters at their defaults. Errors in per cent of the rows; for numbers in per "
        "cent of their variance. us/row: microseconds to predict and learn a row, with all that Python adds.",
        table(header, rows),
        f"Python's manual: paragraphs as TF-IDF, from which of {len(CHAPTERS)} chapters each is.",
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
        "2. A metric learned online from labels, for nearest neighbours",
        "make_pipeline(StandardScaler(), LogDetMetricLearner(), KNeighborsClassifier(5)) against the same without the "
        f"metric, all parameters at their defaults. Test errors on {len(results[0].plain_errors)} stratified 70/30 "
        "splits, mean ± standard deviation; splits won and lost by the metric; time to fit the pipeline with the "
        "metric, and triplets learned in a second of that time.",
        table(header, rows),
        f"The metric lowers the mean error on {len(better)} of {len(results)} data sets"
        + (f"; it does not on {_listing(rest)}." if rest else "."),
    )


def regression_report(result: RegressionResult) -> str:
    """One task of part 3 as text."""
    if not isinstance(result, SharesResult):
        title = f"3a. Learning rates by GridSearchCV: {result.task}"
        words = (
            "Features and target are standardised inside the search; RMSE in the target's units. BurgRegressor has "
            "positive weights only, which this task does not ask for."
        )
        header = ["", "best setting", "R2", "RMSE", "unusable", "sum w", "sum |w|", "w < 0", "s"]
        rows = [
            [*_search_cells(search, 1.0, show_r2=True), *_weight_cells(search), _seconds(search)]
            for search in result.searches
        ]
    else:
        title = f"3b. Weights that must not be negative: {result.task}"
        words = (
            f"A heap of {N_HEAP} images of digits, of which only the mean image is seen: how many of each digit are in "
            f"it? Rows are pixels, features are {N_LIBRARY} other images of each digit; the weights of a digit's "
            "images add up to its share of the heap. Nothing is centred or scaled, no intercept. RMSE on pixels left "
            "out, in levels of ink from 0 to 16; misplaced: the part of the heap that the weights put under a wrong "
            "digit, which differs by some points from heap to heap."
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
        "Best setting: eta0 and learning_rate. Unusable: settings of the grid that blew up or are no better than "
        "predicting the mean. s: seconds for the search. The last row is the batch solution, which sees all rows at "
        "once and has no learning rate.",
    )


def kernel_report(result: KernelResult) -> str:
    """Part 4 as text."""
    rows = [["nothing yet: I / d", "", "", "", f"{100 * result.first_error:.1f}", ""]]
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
        f"4. A kernel between {d} Iris flowers of three species, learned from distances",
        "Target: Gaussian kernel of the standardised features, trace one; its distances are all the learners see. "
        "Total loss is the sum of (a - y)^2 over all pairs, each predicted before it was learned. 1-NN error in the "
        "feature space of the kernel, a mean over ten divisions into halves.",
        table(["", "learned from", "total loss", "bound", "1-NN %", "s"], rows),
        f"With the rate of the theorem, eta0={THEORY_ETA0:g}, the total loss ends at {share:.0f} % of its bound. The "
        "larger rate learns faster, but the theorem gives no bound for it.",
        f"DefiniteBoost is told only that {result.n_constraints} pairs, {result.n_constraints_across} of them of two "
        f"species, are nearer than {NEAR:g}/d. {result.n_rounds} rounds take the dual objective from "
        f"{objective[0]:.4g} to {objective[-1]:.4g}; the largest violation left is {violation:.0e}/d.",
    )


def _search_cells(search: SearchResult, scale: float, *, show_r2: bool) -> list[str]:
    best = search.best_params
    setting = ", ".join(f"{value:g}" if isinstance(value, float) else value for value in best.values())
    if "total" in best:
        setting = f"{best['eta0']:g}, {best['learning_rate']}, total={best['total']:g}"
    r2, rmse = f"{search.r2:.3f}", f"{scale * search.rmse:.2f} ± {scale * search.rmse_std:.2f}"
    if not search.usable:  # numbers without meaning, of any length
        r2, rmse = "< 0", "blown up"
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
    """A few for the table, the last among them."""
    n = len(run.n_pairs)
    return sorted({round(i) for i in np.linspace(0, n - 1, min(n, 4))})


def _paragraph(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def _share(error: float) -> str:
    """In per cent; of a model that blew up a number means nothing."""
    if np.isnan(error):
        return ""
    return f"{100 * error:.1f}" if error < 10 else "blown up"


def _percent(errors: np.ndarray) -> str:
    return f"{100 * errors.mean():.1f} ± {100 * errors.std(ddof=1):.1f}"


def _listing(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
