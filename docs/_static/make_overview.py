"""Draw overview.png, the figure of the README and of the first page: `python docs/_static/make_overview.py [FILE]`.

Every number in it is computed here, in a minute.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler

from onlinebregman import EGRegressor, ImplicitGDRegressor, ParameterFreeClassifier
from onlinebregman.pipeline import make_online_pipeline

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#6A6A6A"
STYLE = {
    "font.size": 10.5,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#444444",
    "lines.linewidth": 2.2,
    "legend.frameon": False,
}


def rates(axes: plt.Axes) -> None:
    """The mean squared error of one pass, each row predicted before it is learned, by the rate."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 20))
    y = X @ rng.normal(size=20) / np.sqrt(20) + 0.1 * rng.normal(size=1000)
    etas = np.geomspace(0.002, 20, 60)
    for update, colour in ("explicit", ORANGE), ("implicit", BLUE):
        errors = []
        for eta0 in etas:
            model = ImplicitGDRegressor(update=update, eta0=eta0, learning_rate="constant", fit_intercept=False)
            try:
                errors.append(2 * model.partial_fit(X, y).cumulative_loss_ / len(y))
            except ValueError:  # beyond the largest number there is
                errors.append(np.inf)
        axes.plot(etas, np.minimum(errors, 1e3), color=colour)
    axes.set(xscale="log", yscale="log", ylim=(0.02, 10), xlabel="learning rate", ylabel="mean squared error")
    axes.text(0.12, 2.2, "gradient step", color=ORANGE)
    axes.text(0.30, 0.054, "implicit step", color=BLUE)
    axes.set_title("Steps that cannot blow up")


def weights(axes: plt.Axes) -> None:
    """Weights of two divergences after 200 rows of 500 features, at the rates best for 2000 further rows."""
    rng = np.random.default_rng(0)
    truth = np.zeros(500)
    truth[[40, 120, 210, 300, 430]] = [0.35, 0.25, 0.15, 0.15, 0.1]
    X = rng.normal(size=(2200, 500))
    y = X @ truth + 0.05 * rng.normal(size=2200)
    shown = (
        ("Euclidean", ORANGE, lambda eta0: ImplicitGDRegressor(eta0=eta0, fit_intercept=False)),
        ("relative entropy", BLUE, lambda eta0: EGRegressor(weights="simplex", eta0=eta0, fit_intercept=False)),
    )
    axes.plot(
        np.flatnonzero(truth), truth[truth > 0], "o", color="black", mfc="none", ms=10, mew=1.2, label="true weights"
    )
    for name, colour, make in shown:
        models = [make(4.0**k).partial_fit(X[:200], y[:200]) for k in range(-6, 10)]
        error, coef = min(
            ((np.mean((model.predict(X[200:]) - y[200:]) ** 2), model.coef_) for model in models),
            key=lambda run: run[0],
        )
        print(f"{name}: error {error:.4f} of {np.var(y[200:]):.4f}")
        axes.plot(coef, "o", color=colour, ms=3.5, label=f"{name}, error {error:.3f}")
    axes.set(ylim=(-0.06, 0.58), xlabel="feature", ylabel="weight after 200 rows")
    axes.legend(loc="upper right", borderpad=0, borderaxespad=0, handletextpad=0.1, labelspacing=0.25)
    axes.set_title("A divergence for the weights")


def stream(axes: plt.Axes) -> None:
    """Errors so far on breast cancer, each row predicted before it is learned; a scaler learns it before SGD does."""
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]

    def errors(model) -> np.ndarray:
        wrong = []
        model.partial_fit(X[:1], y[:1], classes=[0, 1])
        for i in range(1, len(y)):
            wrong.append(model.predict(X[i : i + 1])[0] != y[i])
            model.partial_fit(X[i : i + 1], y[i : i + 1])
        return np.cumsum(wrong)

    def scaled(**parameters):
        return make_online_pipeline(StandardScaler(), SGDClassifier(random_state=0, **parameters))

    rates = [{"learning_rate": "constant", "eta0": eta0} for eta0 in 10.0 ** np.arange(-5, 2)]
    rates += [{"learning_rate": "invscaling", "eta0": eta0} for eta0 in 10.0 ** np.arange(-5, 2)]
    tuned = [errors(scaled(loss=loss, **rate)) for loss in ("hinge", "log_loss") for rate in rates]
    for run, colour, text, at in (
        (errors(scaled()), ORANGE, "StandardScaler, SGDClassifier:", 0.98),
        (min(tuned, key=lambda run: run[-1]), GREY, f"the same, best of {len(tuned)} settings:", 0.89),
        (errors(ParameterFreeClassifier()), BLUE, "ParameterFreeClassifier():", 0.80),
    ):
        axes.plot(np.arange(1, len(y)), run, color=colour)
        axes.text(0.02, at, f"{text} {run[-1]}", color=colour, transform=axes.transAxes, va="top")
        print(text, run[-1])
    axes.set(xlabel="rows seen", ylabel="rows predicted wrongly", ylim=(0, 50))
    axes.set_title("Nothing to scale or tune")


if __name__ == "__main__":
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("overview.png")
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(1, 3, figsize=(10, 3.1), layout="constrained")
        for draw, axes in zip((rates, weights, stream), panels, strict=True):
            draw(axes)
        figure.savefig(path, dpi=128)
    Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)  # a third of the size
