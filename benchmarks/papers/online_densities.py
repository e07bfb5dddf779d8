"""Forward against incremental off-line densities, and the minimax and last-step minimax ones.

T = 10 ... 10 000 rows, one coordinate. Gaussian: x = +-1 at random, all equal to 1, and the worst case that pushes
away from the prediction; Bernoulli: coins of probability 0.5, 0.1 and all ones; Poisson of mean 3. Prior as on the
slides, Gaussian mu_1 = 0, Bernoulli 1/2, and k = 0 for forward, minimax and last-step minimax; k = 1 for forward and
incremental off-line for comparison, as for k = 0 the latter cannot predict the first row (and with k = 1 it is
forward with k = 0). Regret is against the off-line density of the same prior; run i has seed i.
"""

import numpy as np
import pandas as pd

from onlinebregman import OnlineExponentialFamily

from ._experiment import COLORS, Claim, Tables, parallel

PAPER, PLACE = "W", "Bounds for the forward algorithm; minimax"
RUNS, FULL = 10, 100
OPEN = "the data; the slides give bounds, but no measurements."
WHY = "All results are as on the slides. Incremental off-line with k = 1 is forward with k = 0."
LENGTHS = (10, 30, 100, 300, 1000, 3000, 10_000)
STREAMS = {
    "gaussian": ("random signs", "all ones", "away from the forward prediction"),
    "bernoulli": ("coin 0.5", "coin 0.1", "all ones"),
    "poisson": ("mean 3",),
}


def rows_of(family, kind, n, rng):
    if kind == "random signs":
        return rng.choice([-1.0, 1.0], n)
    if kind == "all ones":
        return np.ones(n)
    if kind == "away from the forward prediction":
        x, total = np.empty(n), 0.0
        for t in range(n):
            x[t] = -1.0 if total > 0 else 1.0
            total += x[t]
        return x
    if kind.startswith("coin"):
        return (rng.uniform(size=n) < float(kind.split()[1])).astype(float)
    return rng.poisson(3.0, n).astype(float)


def strategies(family, n):
    def make(strategy, k, **options):
        return OnlineExponentialFamily(family=family, strategy=strategy, prior_weight=k, **options)

    found = {
        "forward": make("forward", 0.0),
        "forward, k = 1": make("forward", 1.0),
        "incremental off-line, k = 1": make("incremental_offline", 1.0),
    }
    if family == "gaussian":
        found["minimax"] = make("minimax", 0.0, horizon=n)
    if family == "bernoulli":
        found["last-step minimax"] = make("last_step_minimax", 0.0)
    return found


def regrets(family, seed):
    rows = []
    for kind in STREAMS[family]:
        for n in LENGTHS:
            x = rows_of(family, kind, n, np.random.default_rng(seed))[:, None]
            for name, model in strategies(family, n).items():
                rows.append((family, kind, seed, n, name, model.partial_fit(x).regret_))
    return rows


def run(runs: int, jobs: int) -> Tables:
    tasks = [(family, seed) for family in STREAMS for seed in range(runs)]
    rows = [row for part in parallel(regrets, tasks, jobs) for row in part]
    every = pd.DataFrame(rows, columns=["family", "stream", "run", "T", "strategy", "regret"])
    means = every.groupby(["family", "stream", "strategy", "T"], sort=False).regret.agg(["mean", "max"]).reset_index()
    return {"summary": means[means["T"] == 10_000], "curves": means}


def bound(family, n):
    """Of the slides, for the forward algorithm; X = 1."""
    return {"gaussian": (1 + np.log(n)) / 2, "bernoulli": np.log(n + 1) / 2 + 1}.get(family, np.nan)


def minimax_value(n):
    alpha, total = 1.0 / n, 0.0
    for _ in range(n):
        total += alpha
        alpha += alpha**2
    return total / 2


def verdict(tables: Tables) -> list[Claim]:
    curves = tables["curves"]
    claims = []
    for family, formula in ("gaussian", "X^2/2 (1 + ln T)"), ("bernoulli", "ln(T + 1)/2 + 1"):
        mine = curves[(curves.family == family) & (curves.strategy == "forward")]
        ratio = mine["max"] / mine["T"].map(lambda n, family=family: bound(family, n))
        claims.append(
            Claim(
                f"{family}, forward: regret <= {formula}",
                f"largest regret / bound {ratio.max():.4f}, over all streams and lengths",
                bool(ratio.max() <= 1 + 1e-9),
            )
        )
    mine = curves[(curves.family == "gaussian") & (curves.strategy == "minimax")]
    values = {n: minimax_value(n) for n in LENGTHS}
    ratio = mine["max"] / mine["T"].map(values)
    claims.append(
        Claim(
            "Gaussian, minimax: the same regret, X^2/2 sum alpha_t, on every stream of |x| = X",
            f"regret / value from {(mine['mean'] / mine['T'].map(values)).min():.6f} to {ratio.max():.6f}",
            bool(abs(ratio - 1).max() < 1e-6),
        )
    )
    n = 10_000
    less = values[n] - (np.log(n) - np.log(np.log(n))) / 2
    claims.append(
        Claim(
            "that is X^2/2 (ln T - ln ln T) + o(1)",
            f"T = {n}: {values[n]:.3f}, {less:+.3f} beyond it",
            bool(abs(less) < 0.5),
        )
    )
    table = curves.set_index(["family", "stream", "T", "strategy"])["max"]
    worst = {
        s: max(table["bernoulli", kind, n, s] for kind in STREAMS["bernoulli"])
        for s in ("forward", "last-step minimax")
    }
    claims.append(
        Claim(
            "Bernoulli: last-step minimax slightly better than forward",
            f"largest regrets at T = {n}: {worst['last-step minimax']:.4f}, forward {worst['forward']:.4f}",
            bool(worst["last-step minimax"] < worst["forward"]),
        )
    )
    for family in STREAMS:
        both = {
            name: max(table[family, kind, n, name] for kind in STREAMS[family])
            for name in ("forward, k = 1", "incremental off-line, k = 1")
        }
        forward, incremental = both.values()
        claims.append(
            Claim(
                f"(side by side, k = 1) {family}: forward beside incremental off-line",
                f"largest regrets at T = {n}: {forward:.2f} and {incremental:.2f}",
                None,
            )
        )
    return claims


def draw(figure, tables: Tables) -> None:
    curves = tables["curves"]
    shown = (("gaussian", "random signs"), ("bernoulli", "coin 0.1"), ("bernoulli", "all ones"), ("poisson", "mean 3"))
    names = list(dict.fromkeys(curves.strategy))
    for ax, (family, kind) in zip(figure.subplots(1, 4), shown, strict=True):
        for name, color in zip(names, COLORS, strict=False):
            line = curves[(curves.family == family) & (curves.stream == kind) & (curves.strategy == name)]
            style = "--" if name.startswith("incremental") else "-"
            ax.semilogx(line["T"], line["max"], style, color=color, label=name)
        ax.semilogx(LENGTHS, [bound(family, n) for n in LENGTHS], ":", color="#5A5A5A", label="bound of forward")
        ax.set(title=f"{family}, {kind}", xlabel="T")
        ax.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("regret, largest of the runs")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
