"""Exponentiated gradient and Itakura-Saito steps where the best weights do not sum to one.

d = 20, w uniform on [0, 1], x uniform on [-1/2, 1/2], no noise, 10 000 rows; and the same with w divided by its sum,
for which the paper states that all methods are nearly equal. EG, explicit and implicit, is on the simplex, from 1/n;
run i has seed i.
"""

import pandas as pd

from onlinebregman import BurgRegressor, EGRegressor
from onlinebregman.datasets import make_scaled_regression

from ._experiment import COLORS, Claim, Tables, losses, parallel

PAPER, PLACE = "KB10", "Figure 1, last panel"
RUNS, FULL = 10, 50
OPEN = (
    "the rate (1/sqrt(t) is stated for the other panels), the starting weights of Itakura-Saito, and whether w <= "
    "1 is enforced (the bound of section 4.2 requires it). All combinations of start 1/n, 1/2, 1, rate 1/sqrt(t), "
    "10/sqrt(t), 1, with and without the projection onto w <= 1, were run, with the same rate for EG."
)
WHY = (
    "From 1/n at the rate 1/sqrt(t), steps are 400 times smaller than from 1 (they are proportional to w^2), and "
    "in 10 000 rows the weights hardly leave 1/n. Both claims hold from 1/n at ten times that rate, or at the "
    "constant rate 1. From 1/2 and 1 the first holds at every rate and the second at none: EG starts at 1/n, "
    "close to the optimum."
)
RATES = {"1/sqrt(t)": (1.0, "sqrt"), "10/sqrt(t)": (10.0, "sqrt"), "1": (1.0, "constant")}
STARTS = {"1/n": None, "1/2": 0.5, "1": 1.0}
BOUNDS = {"none": None, "w <= 1": 1.0}


def final(seed, optimum, rate):
    """Cumulative losses of all methods: (method, start, bound) -> curve."""
    X, y = make_scaled_regression(10_000, noise=0.0, total=1.0 if optimum == "sums to 1" else None, random_state=seed)
    eta0, schedule = RATES[rate]
    plain = {"eta0": eta0, "learning_rate": schedule, "fit_intercept": False}
    found = {}
    for update in ("explicit", "implicit"):
        model = EGRegressor(weights="simplex", total=1.0, update=update, **plain)
        found[f"EG, {update}", "1/n", "none"] = losses(model, X, y)
    for start, init in STARTS.items():
        for bound, upper in BOUNDS.items():
            model = BurgRegressor(init=init, upper_bound=upper, **plain)
            found["Itakura-Saito", start, bound] = losses(model, X, y)
    return found


def run(runs: int, jobs: int) -> Tables:
    tasks = [
        (seed, optimum, rate) for seed in range(runs) for optimum in ("unnormalised", "sums to 1") for rate in RATES
    ]
    rows = []
    for (seed, optimum, rate), found in zip(tasks, parallel(final, tasks, jobs), strict=True):
        for (method, start, bound), (ends, curve) in found.items():
            rows += [(optimum, rate, method, start, bound, seed, end, x) for end, x in zip(ends, curve, strict=True)]
    curves = pd.DataFrame(rows, columns=["optimum", "rate", "method", "start", "bound", "run", "rows", "loss"])
    by = ["optimum", "rate", "method", "start", "bound"]
    summary = curves[curves.rows == 10_000].groupby(by, sort=False).loss.mean().reset_index()
    curves = curves.groupby([*by, "rows"], sort=False).loss.mean().reset_index()
    return {"summary": summary, "curves": curves}


def verdict(tables: Tables) -> list[Claim]:
    table = tables["summary"].set_index(["optimum", "rate", "method", "start", "bound"]).loss
    eg = [table["unnormalised", "1/sqrt(t)", f"EG, {update}", "1/n", "none"] for update in ("explicit", "implicit")]
    found = f"{eg[0]:.0f} and {eg[1]:.0f}"
    alike = abs(eg[0] / eg[1] - 1) < 0.02
    claims = [
        Claim(
            "EG: a large loss (axis to 3000); explicit and implicit not to be told apart",
            found,
            bool(1000 < eg[0] < 3000 and alike),
        )
    ]
    for start in STARTS:
        for rate in RATES:
            here = {}
            for optimum in ("unnormalised", "sums to 1"):
                eg = max(table[optimum, rate, f"EG, {update}", "1/n", "none"] for update in ("explicit", "implicit"))
                here[optimum] = table[optimum, rate, "Itakura-Saito", start, "none"], eg
            far, near = here["unnormalised"], here["sums to 1"]
            held = table["unnormalised", rate, "Itakura-Saito", start, "w <= 1"]
            says = (
                "Itakura-Saito: near zero where EG is stuck, nearly identical to EG where w sums to 1 "
                f"[start {start}, rate {rate}]"
            )
            found = f"{far[0]:.1f} (w <= 1: {held:.1f}) beside EG's {far[1]:.0f}; {near[0]:.3g} beside {near[1]:.3g}"
            # within 5 of each other is one line on an axis to some hundreds
            claims.append(Claim(says, found, bool(far[0] < 0.05 * far[1] and near[0] < near[1] + 5)))
    return claims


def draw(figure, tables: Tables) -> None:
    curves = tables["curves"]
    axes = figure.subplots(1, 3)
    for ax, rate in zip(axes, RATES, strict=True):
        mine = curves[(curves.optimum == "unnormalised") & (curves.rate == rate) & (curves.bound == "none")]
        for (method, start), color in zip(
            [("EG, explicit", "1/n"), ("EG, implicit", "1/n"), *(("Itakura-Saito", start) for start in STARTS)],
            COLORS,
            strict=False,
        ):
            line = mine[(mine.method == method) & (mine.start == start)]
            style = "--" if method == "EG, implicit" else "-"
            ax.plot(line.rows, line.loss, style, color=color, label=f"{method}, from {start}")
        ax.set(
            title=f"rate {rate}"
            + ("\n(paper: EG high on an axis to 3000, Itakura-Saito near 0)" if rate == "1/sqrt(t)" else "")
        )
        ax.set(xlabel="rows", ylim=(-50, 3200))
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("cumulative loss, mean of the runs")
    axes[0].legend(frameon=False, loc="upper left")
