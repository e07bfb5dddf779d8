"""Loss bounds of gradient descent, scaled exponentiated gradient and the p-norm algorithm.

Explicit steps with the rate of the bound (1 + c) L_u + (1 + c)/c M for c = 0.1, 0.3, 1, 3, 10, where M is X_2^2
U_2^2 (gradient descent), ln n X_inf^2 U_1^2 (EG on the simplex of total U_1) and (p - 1) X_p^2 U_q^2 with p = 2 ln
n. n = 200, T = 2000; run i has seed i. Streams: dense rows of +-1 and a sparse u, 3 of n ("sparse target"); sparse
rows, 3 nonzeros of n, and a dense u ("dense target"); both with noise 0.1, u >= 0 with sum 1, y = u.x + noise. The
bounds are the exact X and U of the stream.
"""

import numpy as np
import pandas as pd

from onlinebregman import EGRegressor, ImplicitGDRegressor, PNormRegressor

from ._experiment import COLORS, Claim, Tables, parallel

PAPER, PLACE = "W", "Bounds for linear regression with the squared loss"
RUNS, FULL = 10, 100
OPEN = (
    "everything except the bounds; and whether L is (a - y)^2 or half of it. With the half, as here, gradient "
    "descent and the p-norm algorithm have D(u, w_1) = U^2 / 2, half of the value on the slides; both bounds are "
    "tested."
)
WHY = "The bounds hold with a large margin, so that their order says little about the order of the losses."
N, T = 200, 2000
CS = (0.1, 0.3, 1.0, 3.0, 10.0)
P = 2 * np.log(N)
Q = P / (P - 1)
ALGORITHMS = ("gradient descent", "EG, scaled", "p-norm")
STREAMS = ("sparse target", "dense target")


def stream(kind, seed):
    rng = np.random.default_rng(seed)
    u = np.zeros(N)
    if kind == "sparse target":
        X = rng.choice([-1.0, 1.0], size=(T, N))
        u[rng.permutation(N)[:3]] = rng.uniform(0.5, 1, 3)
    else:
        X = np.zeros((T, N))
        for row in X:
            row[rng.permutation(N)[:3]] = rng.choice([-1.0, 1.0], 3)
        u = rng.uniform(0.5, 1, N)
    u /= u.sum()
    scale = np.std(X @ u)
    return X, X @ u + 0.1 * scale * rng.standard_normal(T), u


def losses_and_bounds(kind, seed):
    X, y, u = stream(kind, seed)
    best = ((X @ u - y) ** 2).sum() / 2
    rows = []
    for c in CS:
        k = c / (1 + c)
        plain = {"learning_rate": "constant", "update": "explicit", "fit_intercept": False}
        largest = np.abs(X).max()
        smoothness = {
            "gradient descent": (X**2).sum(axis=1).max(),
            "EG, scaled": largest**2 * u.sum(),  # of the relative entropy on the simplex of that total
            "p-norm": (P - 1) * (np.linalg.norm(X, P, axis=1) ** 2).max(),
        }
        price = {
            "gradient descent": smoothness["gradient descent"] * (u**2).sum(),
            "EG, scaled": np.log(N) * largest**2 * u.sum() ** 2,
            "p-norm": smoothness["p-norm"] * np.linalg.norm(u, Q) ** 2,
        }
        models = {
            "gradient descent": ImplicitGDRegressor(eta0=k / smoothness["gradient descent"], **plain),
            "EG, scaled": EGRegressor(weights="simplex", total=1.0, eta0=k / smoothness["EG, scaled"], **plain),
            "p-norm": PNormRegressor(p=P, eta0=k / smoothness["p-norm"], **plain),
        }
        for name, model in models.items():
            loss = model.partial_fit(X, y).cumulative_loss_
            half = 1.0 if name == "EG, scaled" else 0.5  # D(u, w_1) is at most U_1 ln n, or U^2 / 2
            tight = (1 + c) * best + (1 + c) / c * half * price[name]
            rows.append((kind, seed, name, c, loss, best, tight, (1 + c) * best + (1 + c) / c * price[name]))
    return rows


def run(runs: int, jobs: int) -> Tables:
    tasks = [(kind, seed) for kind in STREAMS for seed in range(runs)]
    rows = [row for part in parallel(losses_and_bounds, tasks, jobs) for row in part]
    every = pd.DataFrame(rows, columns=["stream", "run", "algorithm", "c", "loss", "loss of u", "bound", "slides"])
    means = every.groupby(["stream", "algorithm", "c"], sort=False)[["loss", "loss of u", "bound", "slides"]].mean()
    return {"summary": means.reset_index(), "every": every}


def verdict(tables: Tables) -> list[Claim]:
    every, means = tables["every"], tables["summary"]
    claims = []
    for name in ALGORITHMS:
        mine = every[every.algorithm == name]
        ratio = mine.loss / mine.slides
        tight = mine.loss / mine.bound
        found = f"in {(ratio <= 1).sum()} of {len(mine)} runs; loss / bound from {ratio.min():.3f} to {ratio.max():.3f}"
        within = f"; below the bound with D(u, w_1) itself in {(tight <= 1).sum()}"
        claims.append(Claim(f"{name}: loss below (1 + c) L_u + (1 + c)/c M", found + within, bool((ratio <= 1).all())))
    best = means.loc[means.groupby(["stream", "algorithm"]).loss.idxmin()].set_index(["stream", "algorithm"]).loss
    for kind, winner in zip(STREAMS, ("EG, scaled", "gradient descent"), strict=True):
        says = f"(no claim of the slides) {kind}: {winner} has the smallest M"
        found = "best mean losses " + ", ".join(f"{name} {best[kind, name]:.3g}" for name in ALGORITHMS)
        if kind == "dense target":
            found += "; EG starts from equal weights, near this u"
        claims.append(Claim(says, found, None))
    return claims


def draw(figure, tables: Tables) -> None:
    means = tables["summary"]
    for ax, kind in zip(figure.subplots(1, 2), STREAMS, strict=True):
        for name, color in zip(ALGORITHMS, COLORS, strict=False):
            line = means[(means.stream == kind) & (means.algorithm == name)]
            ax.loglog(line.c, line.loss, "o-", color=color, label=f"{name}, loss")
            ax.loglog(line.c, line.slides, "--", color=color, label="its bound")
        ax.axhline(line["loss of u"].iloc[0], color="#5A5A5A", linewidth=1, label="loss of u")
        ax.set(title=kind, xlabel="c", ylabel="cumulative loss")
        ax.spines[["top", "right"]].set_visible(False)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside right center", frameon=False)
