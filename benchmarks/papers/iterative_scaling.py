"""Iterative scaling converges, and each round lowers the log-loss by at least RE.

A domain of N = 200 points, n = 8 features, m = 50 observations drawn from a member of the family; features shifted
to a minimum of 0, divided by n times their maximum, and f_0 = 1 - sum, as in section 2.1; 100 000 rounds; run i has
seed i. The log-loss of each round is compared with that before minus RE(Ehat[f] || E_q[f]) (Theorem 4), and q with
the optimum found by Newton's method.
"""

import numpy as np
import pandas as pd
from scipy.special import log_softmax, rel_entr

from onlinebregman import MaxEntDensity

from ._experiment import COLORS, Claim, Tables, parallel

PAPER, PLACE = "S18", "Section 2: the algorithm and its convergence"
RUNS, FULL = 4, 20
OPEN = "the domain, the features and the sample; the lecture has no experiment."
WHY = (
    "The constants of section 2.1 make it slow: steps are proportional to the features divided by n times their "
    "maximum."
)
ROUNDS = np.unique(np.geomspace(1, 100_000, 81).round().astype(int))


def rounds(seed):
    rng = np.random.default_rng(seed)
    f = rng.normal(size=(200, 8))
    points = rng.choice(200, size=50, p=np.exp(log_softmax(f @ rng.normal(size=8) / 2)))
    scaled = f - f.min(axis=0)
    scaled /= 8 * scaled.max(axis=0)
    scaled = np.column_stack([scaled, 1 - scaled.sum(axis=1)])
    observed = scaled[points].mean(axis=0)
    best = MaxEntDensity(f, solver="newton", tol=1e-12).fit(points).score_samples(f)
    rows, violations, lam = [], 0, np.zeros(9)
    loss = np.log(200)
    for t in range(1, ROUNDS[-1] + 1):
        before, expected = loss, np.exp(log_softmax(scaled @ lam)) @ scaled
        promised = rel_entr(observed, expected).sum()
        lam += np.log(observed / expected)
        log_q = log_softmax(scaled @ lam)
        loss = -log_q[points].mean()
        violations += loss > before - promised + 1e-12  # rounding
        if t in ROUNDS:
            rows.append((seed, t, loss + best[points].mean(), before - loss, promised, np.abs(log_q - best).max()))
    ours = MaxEntDensity(f, solver="iterative_scaling", tol=None, max_iter=1000).fit(points)
    excess = float((best - ours.score_samples(f))[points].mean())
    return rows, (seed, violations, excess)


def run(runs: int, jobs: int) -> Tables:
    results = parallel(rounds, [(seed,) for seed in range(runs)], jobs)
    names = ["run", "round", "excess loss", "fall", "promised", "ln q apart"]
    curves = pd.DataFrame([row for rows, _ in results for row in rows], columns=names)
    summary = pd.DataFrame([line for _, line in results], columns=["run", "rounds below the promise", "class excess"])
    return {"summary": summary.merge(curves[curves["round"] == ROUNDS[-1]], on="run"), "curves": curves}


def verdict(tables: Tables) -> list[Claim]:
    lines, curves = tables["summary"], tables["curves"]
    broken = int(lines["rounds below the promise"].sum())
    first = curves[curves["round"] == 1000]
    return [
        Claim(
            "each round lowers the log-loss by RE(Ehat || E_q) or more",
            f"in all but {broken} of {len(lines) * ROUNDS[-1]} rounds",
            broken == 0,
        ),
        Claim(
            "p_t converges to q*",
            f"largest |ln p_t - ln q*| {first['ln q apart'].max():.2g} after 1000 rounds, "
            f"{lines['ln q apart'].max():.2g} after {ROUNDS[-1]}",
            bool((lines["ln q apart"] < 1e-3).all()),
        ),
        Claim(
            "(how fast, is not told)",
            f"excess log-loss at most {first['excess loss'].max():.2g}, then {lines['excess loss'].max():.2g}",
            None,
        ),
        Claim(
            "(the class divides features by 1.01 times their largest sum, not each by n times its maximum)",
            f"excess log-loss at most {lines['class excess'].max():.2g} after 1000 rounds",
            None,
        ),
    ]


def draw(figure, tables: Tables) -> None:
    curves = tables["curves"]
    left, right = figure.subplots(1, 2)
    for seed, line in curves.groupby("run"):
        shown = {"alpha": 0.6, "linewidth": 1}
        left.loglog(line["round"], line["excess loss"].clip(1e-16), color=COLORS[0], **shown)
        right.loglog(line["round"], line["fall"].clip(1e-17), color=COLORS[0], label="" if seed else "fall", **shown)
        right.loglog(
            line["round"],
            line["promised"].clip(1e-17),
            ":",
            color=COLORS[1],
            label="" if seed else "promised: RE",
            **shown,
        )
    left.set(title="log-loss beyond the optimum's (lecture: goes to 0)", xlabel="round")
    right.set(title="fall of the log-loss in a round, and what is promised of it", xlabel="round")
    right.legend(frameon=False)
    for ax in left, right:
        ax.spines[["top", "right"]].set_visible(False)
