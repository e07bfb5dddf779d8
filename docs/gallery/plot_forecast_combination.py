"""
Tracking the best forecast
==========================

Four forecasters of one series are each good for some time. A mixture that weights them by
their past losses is nearly as good as the best of them; one that redistributes a part of
the weight after each row (fixed share) is nearly as good as the best *sequence* of
forecasters, which is much better here.
"""

import matplotlib.pyplot as plt
import numpy as np

from onlinebregman import ExpertMixtureRegressor
from onlinebregman.inspection import ExpertWeightsDisplay

rng = np.random.default_rng(0)
days = np.arange(1200)
series = np.sin(2 * np.pi * days / 180) + 0.1 * rng.normal(size=1200)
who = np.repeat([0, 2, 1, 3], 300)  # who is good when
errors = np.where(np.arange(4) == who[:, np.newaxis], 0.1, 0.6)
forecasts = series[:, np.newaxis] + errors * rng.normal(size=(1200, 4))

# %%
# The forecasts are the columns of `X`. `history` is the number of rows whose weights are
# stored.

names = ["one", "two", "three", "four"]
mixtures = {
    "best expert so far": ExpertMixtureRegressor(
        strategy="average", learning_rate=0.5, history=1200
    ),
    "fixed share": ExpertMixtureRegressor(
        strategy="average", learning_rate=0.5, share=0.01, history=1200
    ),
}
figure, panels = plt.subplots(3, 1, figsize=(8, 7), layout="constrained", sharex=True)
for (title, mixture), ax, color in zip(
    mixtures.items(), panels, ("C4", "C5"), strict=False
):
    ExpertWeightsDisplay.from_estimator(
        mixture.fit(forecasts, series), names=names, kind="area", ax=ax
    )
    ax.set(title=title, xlabel="")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    mixed = (mixture.weights_history_ * forecasts).sum(axis=1)
    panels[2].plot(
        np.cumsum((mixed - series) ** 2), color=color, linewidth=2.5, label=title
    )
for number, name in enumerate(names):
    panels[2].plot(
        np.cumsum((forecasts[:, number] - series) ** 2),
        color=f"C{number}",
        linewidth=1,
        label=name,
    )
panels[2].set(
    xlabel="days", ylabel="squared error, summed up", title="what it cost", ylim=(0, 330)
)
panels[2].legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()
