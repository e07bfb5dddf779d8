"""Maximum entropy as in species modelling (Schapire 2018, lecture 20; Dudik, Phillips, Schapire 2007), on real areas.

    ONLINEBREGMAN_DATA=FOLDER python benchmarks/papers/maximum_entropy.py [--figure FILE]

Where in California are homes dearest? The domain are the 20640 block groups of the census of 1990 (FOLDER holds
california.csv.gz), a sighting is one whose median home is worth more than $500,000, and the model is given 120 of the
965 sightings and what the census says of every area: age of the homes, rooms, bedrooms, people, income. It never learns
where an area is. Prints Markdown: the optimum by several solvers, on a part of the domain; and what relaxed moment
matching gains on the sightings that were held out. The figure (needs matplotlib) is a map of both.
"""

import argparse
import math
import platform
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
import scipy
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler

import onlinebregman
from onlinebregman import MaxEntDensity
from onlinebregman.datasets import load_dataset

N_GIVEN = 120
ALPHAS = (0.0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
ROUNDS = 100


def california():
    """Features of the areas, where they are, and which of them are sightings."""
    data = load_dataset("california", as_frame=True).frame
    homes = data.households
    features = {
        "age": data.housingMedianAge,
        "rooms": np.log(data.totalRooms / homes),
        "bedrooms": np.log(data.totalBedrooms / data.totalRooms),
        "people": np.log(data.population / homes),
        "income": np.log(data.medianIncome),
    }
    sightings = np.flatnonzero(data.target > 500_000)
    np.random.default_rng(0).shuffle(sightings)
    return np.column_stack(list(features.values())), data[["longitude", "latitude"]].to_numpy(), sightings


# --- the same optimum, by several solvers -----------------------------------------------------------------------------


def by_scipy(f, mean):
    """ln q by Newton steps in a trust region, from the definition: all features and the Hessian in memory."""

    def loss(multipliers):
        log_q = log_softmax(f @ multipliers)
        expected = np.exp(log_q) @ f
        return scipy.special.logsumexp(f @ multipliers) - multipliers @ mean, expected - mean

    def hessian(multipliers):
        q = np.exp(log_softmax(f @ multipliers))
        expected = q @ f
        return f.T @ (q[:, None] * f) - np.outer(expected, expected)

    found = minimize(
        loss,
        np.zeros(f.shape[1]),
        jac=True,
        hess=hessian,
        method="trust-exact",
        options={"gtol": 1e-13, "maxiter": 999},
    )
    return log_softmax(f @ found.x), found.nit


def by_nltk(f, points):
    """ln q after so many rounds of nltk's generalised iterative scaling; None where it is not installed."""
    try:
        from nltk.classify import maxent
    except ImportError:
        return None
    np.NINF = -np.inf  # noqa: NPY201 - nltk asks for this name, which NumPy 2 has no more

    constant = 1.01 * f.sum(axis=1).max()
    rows = np.column_stack([f / constant, 1 - f.sum(axis=1) / constant])
    encoded = [list(enumerate(row)) for row in rows.tolist()]

    class Encoding(maxent.MaxentFeatureEncodingI):
        C = 1.0

        def encode(self, featureset, label):
            return encoded[label]

        def labels(self):
            return range(len(rows))

        def length(self):
            return rows.shape[1]

    tokens = [({}, int(point)) for point in points]
    # its first iteration is number 1, and the one of number max_iter is not run
    model = maxent.train_maxent_classifier_with_gis(tokens, trace=0, encoding=Encoding(), max_iter=ROUNDS + 1)
    return log_softmax(rows @ model.weights() * math.log(2))


def compare_solvers(areas, sightings):
    part = np.arange(0, len(areas), 40)
    f = MinMaxScaler().fit_transform(areas[part])
    points = np.flatnonzero(np.isin(part, sightings))
    print(f"\nThe same optimum: {len(part)} areas, {f.shape[1]} features, {len(points)} sightings\n")
    optimum, n_steps = by_scipy(f, f[points].mean(axis=0))
    print(f"| solver | iterations | mean log-loss | max abs of ln q - ln q of SciPy |\n|---|---|---|---|\n"
          f"| SciPy, trust-exact | {n_steps} | {-optimum[points].mean():.10f} | |")  # fmt: skip

    def line(name, log_q, iterations):
        gap = np.abs(log_q - optimum).max()
        print(f"| {name} | {iterations} | {-log_q[points].mean():.10f} | {gap:.1e} |", flush=True)

    ours = partial(MaxEntDensity, domain=f)
    for solver, tol, max_iter in ("newton", 1e-10, 1000), ("lbfgs", 1e-16, 1000), ("iterative_scaling", None, 50_000):
        model = ours(solver=solver, tol=tol, max_iter=max_iter).fit(points)
        line(f"MaxEntDensity, {solver}", model.score_samples(f), model.n_iter_)
    early = ours(solver="iterative_scaling", tol=None, max_iter=ROUNDS).fit(points).score_samples(f)
    line("MaxEntDensity, iterative_scaling, stopped", early, ROUNDS)
    peer = by_nltk(f, points)
    if peer is None:
        print("\nnltk is not installed: not compared with its GIS.")
        return
    line("nltk, GIS, stopped", peer, ROUNDS)
    print(f"\nAfter {ROUNDS} rounds ln q differs from nltk's by {np.abs(early - peer).max():.1e} at most.")


# --- how well it finds the sightings that it was not given ------------------------------------------------------------


def relax(areas, sightings):
    """Gains over the uniform distribution, with all degrees of relaxation: (alphas, given, held out), chosen model."""
    given, held_out = sightings[:N_GIVEN], sightings[N_GIVEN:]
    quadratic = make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False))
    model = MaxEntDensity(areas, features=quadratic)
    search = GridSearchCV(model, {"alpha": ALPHAS[1:]}, cv=KFold(5, shuffle=True, random_state=0)).fit(given)
    chosen = search.best_params_["alpha"]
    others = np.setdiff1d(np.arange(len(areas)), given)
    print(
        f"\n{len(areas)} areas, {len(search.best_estimator_.lambda_)} features (linear, squares, products), "
        f"{len(given)} sightings given, {len(held_out)} held out; 5-fold cross-validation over the given ones chose "
        f"alpha = {chosen:g}\n"
    )
    print("| alpha | features in use | gain, given | gain, held out | AUC, held out | iterations | seconds |")
    print("|---|---|---|---|---|---|---|")
    uniform, gains = -np.log(len(areas)), []
    for alpha in ALPHAS:
        start = perf_counter()
        model.set_params(alpha=alpha).fit(given)
        took = perf_counter() - start
        gains.append((model.score(given) - uniform, model.score(held_out) - uniform))
        auc = roc_auc_score(np.isin(others, held_out), model.score_samples(others))
        used = np.count_nonzero(model.lambda_)
        values = f"{gains[-1][0]:.3f} | {gains[-1][1]:.3f} | {auc:.3f} | {model.n_iter_} | {took:.2f}"
        print(f"| {alpha:g} | {used} | {values} |", flush=True)
    print("\nGain: mean ln of how much more probable a sighting is than under the uniform distribution.")
    return np.array(gains), search.best_estimator_


# --- the figure -------------------------------------------------------------------------------------------------------


def draw(path, areas, places, sightings, gains, model):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 6.6), dpi=130, layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=[1, 1, 1.1])
    lift = (model.score_samples(areas) + np.log(len(areas))) / np.log(2)
    order = np.argsort(lift)
    shown = left.scatter(*places[order].T, c=lift[order], s=3, cmap="viridis", vmin=-8, vmax=6, linewidths=0)
    label = "left: log2 of the probability, 0 under the uniform distribution"
    figure.colorbar(shown, ax=[left, middle], location="bottom", label=label, extend="both", shrink=0.6, aspect=40)
    left.scatter(*places[sightings[:N_GIVEN]].T, s=14, facecolors="none", edgecolors="#D55E00", linewidths=0.6)
    left.set_title(f"Model, and the {N_GIVEN} sightings it was given (rings)")
    middle.scatter(*places.T, s=3, color="#DDDDDD", linewidths=0)
    middle.scatter(*places[sightings[N_GIVEN:]].T, s=5, color="#D55E00", linewidths=0)
    middle.set_title(f"The {len(sightings) - N_GIVEN} sightings that were held out")
    for ax in left, middle:
        ax.set(xlabel="longitude", ylabel="latitude", aspect=1 / np.cos(np.radians(37)))
    middle.set_ylabel("")
    alphas = ALPHAS[1:]
    for column, (name, color, marker) in enumerate([("given", "#5A5A5A", "s"), ("held out", "#0072B2", "o")]):
        right.semilogx(alphas, gains[1:, column], color=color, marker=marker, label=name)
        right.axhline(gains[0, column], color=color, linestyle=":", linewidth=1)
        above = {"textcoords": "offset points", "xytext": (0, 4), "ha": "center"}
        right.annotate("alpha = 0", (alphas[3], gains[0, column]), color=color, **above)
    right.axvline(model.alpha, color="#009E73", linestyle="--", linewidth=1, label="chosen by cross-validation")
    right.set(xlabel="alpha: how far expectations may be off", ylabel="gain over the uniform distribution (nats)")
    right.set_title("Relaxed moment matching")
    right.legend(frameon=False, loc=(0.26, 0.2))
    for ax in left, middle, right:
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)
    print(f"\nFigure: {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figure", type=Path, help="where to draw the map (png, svg, pdf)")
    options = parser.parse_args()
    print(
        f"onlinebregman {onlinebregman.__version__}, SciPy {scipy.__version__}, NumPy {np.__version__}, "
        f"Python {platform.python_version()}"
    )
    areas, places, sightings = california()
    compare_solvers(areas, sightings)
    gains, model = relax(areas, sightings)
    if options.figure:
        draw(options.figure, areas, places, sightings, gains, model)


if __name__ == "__main__":
    main()
