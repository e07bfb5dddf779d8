"""Maximum entropy as in species modelling, on real areas.

Where in California are homes most expensive (Dudik, Phillips, Schapire 2007 model species)? The domain are the 20640
block groups of the census of 1990, a sighting is one whose median home is worth more than $500,000, and the model is
given 120 of the 965 sightings (shuffled with seed 0) and the census values of every area: age of the homes, rooms,
bedrooms, people, income. It does not know the location of an area. The optimum is found by several solvers, on every
40th area; and relaxed moment matching, its degree chosen by 5-fold cross-validation over the given sightings, is
compared with the others.
"""

import math
from functools import partial

import numpy as np
import pandas as pd
import scipy
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler

from onlinebregman import MaxEntDensity
from onlinebregman.datasets import load_dataset

from ._experiment import Claim, Tables

PAPER, PLACE = "S18", "Section 1: the example of species"
RUNS, FULL = 1, 1
OPEN = "the data; the lecture only describes the butterflies of an area, without numbers."
WHY = "Duality holds to the accuracy of the solvers."
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
    """(solver, iterations, mean log-loss, largest difference of ln q from SciPy's)."""
    part = np.arange(0, len(areas), 40)
    f = MinMaxScaler().fit_transform(areas[part])
    points = np.flatnonzero(np.isin(part, sightings))
    optimum, n_steps = by_scipy(f, f[points].mean(axis=0))
    rows = [("SciPy, trust-exact", n_steps, -optimum[points].mean(), 0.0)]

    def line(name, log_q, iterations):
        rows.append((name, iterations, -log_q[points].mean(), np.abs(log_q - optimum).max()))

    ours = partial(MaxEntDensity, domain=f)
    for solver, tol, max_iter in ("newton", 1e-10, 1000), ("lbfgs", 1e-16, 1000), ("iterative_scaling", None, 50_000):
        model = ours(solver=solver, tol=tol, max_iter=max_iter).fit(points)
        line(f"MaxEntDensity, {solver}", model.score_samples(f), model.n_iter_)
    early = ours(solver="iterative_scaling", tol=None, max_iter=ROUNDS).fit(points).score_samples(f)
    line("MaxEntDensity, iterative_scaling, stopped", early, ROUNDS)
    peer = by_nltk(f, points)
    if peer is not None:
        line("nltk, GIS, stopped", peer, ROUNDS)
    return pd.DataFrame(rows, columns=["solver", "iterations", "log-loss", "ln q apart"])


# --- how well it finds the sightings that it was not given ------------------------------------------------------------


def relax(areas, sightings):
    """Gains over the uniform distribution, with all degrees of relaxation; the chosen model."""
    given, held_out = sightings[:N_GIVEN], sightings[N_GIVEN:]
    quadratic = make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False))
    model = MaxEntDensity(areas, features=quadratic)
    search = GridSearchCV(model, {"alpha": ALPHAS[1:]}, cv=KFold(5, shuffle=True, random_state=0)).fit(given)
    others = np.setdiff1d(np.arange(len(areas)), given)
    uniform, rows = -np.log(len(areas)), []
    for alpha in ALPHAS:
        model.set_params(alpha=alpha).fit(given)
        auc = roc_auc_score(np.isin(others, held_out), model.score_samples(others))
        used = np.count_nonzero(model.lambda_)
        chosen = alpha == search.best_params_["alpha"]
        rows.append(
            (alpha, chosen, used, model.score(given) - uniform, model.score(held_out) - uniform, auc, model.n_iter_)
        )
    names = ["alpha", "chosen", "features in use", "gain, given", "gain, held out", "AUC, held out", "iterations"]
    return pd.DataFrame(rows, columns=names), search.best_estimator_


def run(runs: int, jobs: int) -> Tables:
    areas, places, sightings = california()
    gains, model = relax(areas, sightings)
    kind = np.zeros(len(areas), dtype=int)
    kind[sightings[:N_GIVEN]], kind[sightings[N_GIVEN:]] = 1, 2
    lift = (model.score_samples(areas) + np.log(len(areas))) / np.log(2)
    return {
        "summary": gains,
        "solvers": compare_solvers(areas, sightings),
        "map": pd.DataFrame({"longitude": places[:, 0], "latitude": places[:, 1], "lift": lift, "kind": kind}),
    }


def verdict(tables: Tables) -> list[Claim]:
    solvers, gains = tables["solvers"].set_index("solver"), tables["summary"]
    ends = solvers[~solvers.index.str.contains("stopped")]["ln q apart"]
    chosen, bare = gains[gains.chosen].iloc[0], gains[gains.alpha == 0].iloc[0]
    claims = [
        Claim(
            "maximum entropy and maximum likelihood have one solution, which iterative scaling finds",
            f"ln q of all solvers at most {ends.max():.1e} apart",
            bool(ends.max() < 1e-4),
        ),
        Claim(
            "(relaxation helps where sightings are few)",
            f"gain over uniform on held-out sightings {chosen['gain, held out']:.3f} nats at the alpha chosen "
            f"({chosen.alpha:g}), {bare['gain, held out']:.3f} without; on the given ones {chosen['gain, given']:.3f} "
            f"and {bare['gain, given']:.3f}",
            None,
        ),
    ]
    if "nltk, GIS, stopped" in solvers.index:
        apart = abs(
            solvers.loc["nltk, GIS, stopped", "log-loss"]
            - solvers.loc["MaxEntDensity, iterative_scaling, stopped", "log-loss"]
        )
        claims.append(
            Claim(f"(nltk's GIS) the same iterates after {ROUNDS} rounds", f"log-loss {apart:.1e} apart", None)
        )
    return claims


def draw(figure, tables: Tables) -> None:
    figure.set_size_inches(15, 6.6)
    areas, gains = tables["map"].sort_values("lift"), tables["summary"]
    left, middle, right = figure.subplots(1, 3, width_ratios=[1, 1, 1.1])
    shown = left.scatter(
        areas.longitude, areas.latitude, c=areas.lift, s=3, cmap="viridis", vmin=-8, vmax=6, linewidths=0
    )
    label = "left: log2 of the probability, 0 under the uniform distribution"
    figure.colorbar(shown, ax=[left, middle], location="bottom", label=label, extend="both", shrink=0.6, aspect=40)
    given, held_out = areas[areas.kind == 1], areas[areas.kind == 2]
    left.scatter(given.longitude, given.latitude, s=14, facecolors="none", edgecolors="#D55E00", linewidths=0.6)
    left.set_title(f"Model, and the {len(given)} sightings it was given (rings)")
    middle.scatter(areas.longitude, areas.latitude, s=3, color="#DDDDDD", linewidths=0)
    middle.scatter(held_out.longitude, held_out.latitude, s=5, color="#D55E00", linewidths=0)
    middle.set_title(f"The {len(held_out)} sightings that were held out")
    for ax in left, middle:
        ax.set(xlabel="longitude", ylabel="latitude", aspect=1 / np.cos(np.radians(37)))
    middle.set_ylabel("")
    relaxed, bare = gains[gains.alpha > 0], gains[gains.alpha == 0].iloc[0]
    for name, color, marker in ("given", "#5A5A5A", "s"), ("held out", "#0072B2", "o"):
        right.semilogx(relaxed.alpha, relaxed[f"gain, {name}"], color=color, marker=marker, label=name)
        right.axhline(bare[f"gain, {name}"], color=color, linestyle=":", linewidth=1)
        above = {"textcoords": "offset points", "xytext": (0, 4), "ha": "center"}
        right.annotate("alpha = 0", (relaxed.alpha.iloc[3], bare[f"gain, {name}"]), color=color, **above)
    chosen = gains[gains.chosen].alpha.iloc[0]
    right.axvline(chosen, color="#009E73", linestyle="--", linewidth=1, label="chosen by cross-validation")
    right.set(xlabel="alpha: how far expectations may be off", ylabel="gain over the uniform distribution (nats)")
    right.set_title("Relaxed moment matching")
    right.legend(frameon=False, loc=(0.26, 0.2))
    for ax in left, middle, right:
        ax.spines[["top", "right"]].set_visible(False)
