"""The figure of the results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ._kernels import THEORY_ETA0, KernelResult
from ._metric import MetricResult
from ._regression import BATCH, NON_NEGATIVE_BATCH, RegressionResult, SharesResult

# Distinguishable with every kind of colour vision (after Okabe and Ito, and Tol), and by markers and dashes.
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#882255", "#5A5A5A"

STYLE: dict[Any, Any] = {
    "font.size": 11,
    "axes.titlesize": 13,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#444444",
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "legend.frameon": False,
    "legend.fontsize": 10,
    "svg.hashsalt": "onlinebregman",
}

FLAT = ("axes fraction", "data")
OFFSET: dict[str, Any] = {"textcoords": "offset points", "fontsize": 10}


def supported_formats() -> set[str]:
    """File formats that matplotlib can write; ImportError without matplotlib."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    return set(FigureCanvasAgg.get_supported_filetypes())


def draw(
    path: Path,
    metric: Sequence[MetricResult],
    diabetes: RegressionResult,
    digits: SharesResult,
    kernels: KernelResult,
    note: str,
) -> None:
    """Write the figure; ImportError without matplotlib."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with rc_context(STYLE):
        layout = ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.06, hspace=0.04, wspace=0.04)
        figure = Figure(figsize=(15, 7.6), dpi=150, layout=layout)
        left, middle, right = figure.subfigures(1, 3, squeeze=False, width_ratios=[1, 1, 1.05])[0]
        _draw_metric(left.subplots(), metric)
        tuning, shares = middle.subplots(2, 1, height_ratios=[1.1, 1])
        _draw_tuning(tuning, diabetes)
        _draw_shares(shares, digits)
        _draw_kernels(right.subplots(2, 1, sharex=True, height_ratios=[1, 1.25]), kernels)
        figure.supxlabel(note, fontsize=9, color=GREY, x=0.01, ha="left")
        figure.savefig(path)


def _draw_metric(axes, results: Sequence[MetricResult]) -> None:
    """A row for each data set: error without and with the metric, ± one standard deviation."""
    rows = np.arange(len(results))[::-1]
    for errors, shift, colour, marker, label in (
        ([result.plain_errors for result in results], 0.13, ORANGE, "s", "5-NN"),
        ([result.learned_errors for result in results], -0.13, BLUE, "o", "metric + 5-NN"),
    ):
        means = [100 * values.mean() for values in errors]
        spread = [100 * values.std(ddof=1) for values in errors]
        axes.errorbar(means, rows + shift, xerr=spread, fmt=marker, color=colour, ms=8, lw=1.6, capsize=3, label=label)
    axes.set_yticks(rows, [f"{result.name}\n{result.n_samples} x {result.n_features}" for result in results])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-0.5, len(results) - 0.5)
    axes.set_xlim(left=0)
    axes.grid(axis="x")
    axes.set_xlabel(f"test error, % (mean ± sd of {len(results[0].plain_errors)} splits)")
    axes.set_title("5-NN with a learned metric")
    axes.legend(loc="upper right")


def _draw_tuning(axes, result: RegressionResult) -> None:
    """Best R^2 against eta0, one line per method; crosses at the bottom mark values that are not positive."""
    shown: list[tuple[Any, ...]] = [
        ("SGDRegressor", "black", {"marker": "s", "ls": "--", "ms": 11, "mfc": "none", "mew": 1.8}),
        ("ImplicitGDRegressor", BLUE, {"marker": "o"}),
        ("EGRegressor (signed)", GREEN, {"marker": "^"}),
        ("BurgRegressor", ORANGE, {"marker": "D"}),
    ]
    for method, colour, style in shown:
        search = result[method]
        curve = np.where(search.curve > 0, search.curve, np.nan)
        axes.plot(search.etas, curve, color=colour, label=method, zorder=3, **{"lw": 2, "ms": 7, **style})
        lost = [eta for eta, value in zip(search.etas, search.curve, strict=True) if not value > 0]
        if lost:
            axes.plot(lost, np.zeros(len(lost)), "x", color=colour, ms=10, mew=2.5, clip_on=False, zorder=4)
            name = method.split()[0]
            axes.annotate(f"{name}: R² ≤ 0", (lost[0], 0), (-10, 8), color=colour, ha="right", **OFFSET)
    batch = result[BATCH].r2
    axes.axhline(batch, color=GREY, lw=1.4, ls=":", zorder=1)
    axes.annotate("least squares, all rows at once", (0.02, batch), (0, 11), xycoords=FLAT, color=GREY, **OFFSET)
    axes.set_xscale("log")
    axes.set_ylim(0, batch + 0.07)
    axes.grid()
    axes.set_xlabel("learning rate eta0")
    axes.set_ylabel("cross-validated R², best of other settings")
    axes.set_title(f"Tuning the learning rate: {result.task}")
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 0.1))


def _draw_shares(axes, result: SharesResult) -> None:
    """Bars for the true share of each digit, marks for the shares estimated by the methods."""
    digits = np.arange(len(result.shares))
    axes.bar(digits, 100 * result.shares, color="#D0D0D0", width=0.9, label="true share")
    shown: list[tuple[Any, ...]] = [
        ("SGDRegressor", "black", "s", {"mfc": "none", "mew": 1.5}),
        (NON_NEGATIVE_BATCH, GREY, "x", {"mew": 1.8}),
        ("EGRegressor (simplex)", GREEN, "^", {}),
        ("BurgRegressor", ORANGE, "D", {}),
    ]
    for (method, colour, marker, style), shift in zip(shown, (-0.3, -0.1, 0.1, 0.3), strict=True):
        search = result[method]
        if search.usable:
            label = f"{method.removesuffix(' (batch)')}: {100 * result.misplaced(search):.0f} % misplaced"
            shares = 100 * result.found_shares(search)
            axes.plot(digits + shift, shares, ls="", ms=6, color=colour, marker=marker, label=label, **style)
    axes.axhline(0, color="#444444", lw=0.8)
    axes.set_ylim(top=62)  # space for the legend
    axes.set_yticks([0, 10, 20, 30])
    axes.set_xticks(digits)
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y")
    axes.set_xlabel("digit")
    axes.set_ylabel("share, %")
    axes.set_title("Shares of digits, estimated from the mean image")
    axes.legend(loc="upper right", labelspacing=0.3)


def _draw_kernels(axes, result: KernelResult) -> None:
    """Above: total loss and its bound. Below: 1-NN error, and that of the target kernel."""
    losses, errors = axes
    for run in result.runs:
        theory = run.eta0 == THEORY_ETA0
        style = {"color": BLUE, "marker": "o"} if theory else {"color": GREEN, "marker": "^"}
        label = f"MEG, eta0 = {run.eta0:g}" + (" (the theorem's)" if theory else "")
        losses.plot(run.n_pairs, run.total_loss, lw=2, ms=5, label=label, **style)
        errors.plot(run.n_pairs, 100 * run.errors, lw=2, ms=5, **style)
    losses.axhline(result.loss_bound, color=BLUE, lw=1.4, ls="--")
    text = f"bound for eta0 = {THEORY_ETA0:g}"
    losses.annotate(text, (0.02, result.loss_bound), (0, -14), xycoords=FLAT, color=BLUE, **OFFSET)
    losses.set_ylim(0, 1.1 * result.loss_bound)
    losses.set_ylabel("total loss, sum of (a - y)²")
    losses.legend(loc="center left", bbox_to_anchor=(0.0, 0.5))
    losses.set_title(f"Kernel of {result.n_objects} flowers, from distances")

    for level, colour, dashes, text, shift in (
        (100 * result.boost_error, PURPLE, "-.", "DefiniteBoost", 5),
        (100 * result.target_error, GREY, ":", "target kernel", -14),
    ):
        errors.axhline(level, color=colour, lw=1.6, ls=dashes)
        errors.annotate(text, (0.02, level), (0, shift), xycoords=FLAT, color=colour, **OFFSET)
    errors.set_ylim(0, 100 * max(run.errors.max() for run in result.runs) + 5)
    errors.set_xscale("log")
    errors.set_ylabel("1-NN error, %")
    errors.set_xlabel("random pairs learned")
    for panel in axes:
        panel.grid()
