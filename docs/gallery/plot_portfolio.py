"""
What a portfolio becomes
========================

A capital that is dealt out anew each day by fixed weights can gain where no asset does.
Exponentiated gradient moves the weights after each day towards the best fixed ones, which
nobody knows beforehand; how much less it gains is bounded.
"""

import matplotlib.pyplot as plt
import numpy as np

from onlinebregman import EGPortfolio
from onlinebregman.experts import best_constant_portfolio
from onlinebregman.inspection import ExpertWeightsDisplay

# %%
# Three assets over 4000 days: two of them go up and down, each in its own way, and are
# where they were in the end; the third loses a little each day. In the legend is what a
# capital of 1 has become.

rng = np.random.default_rng(2)
prices = np.zeros((4001, 2))  # their logarithms
for day in range(4000):
    prices[day + 1] = 0.97 * prices[day] + 0.06 * rng.normal(size=2)
relatives = np.exp(np.column_stack([np.diff(prices, axis=0), np.full(4000, -0.002)]))
names = ["first", "second", "losing"]

model = EGPortfolio(learning_rate=0.2, history=4000).fit(relatives)
best = best_constant_portfolio(relatives)
wealth = {
    "EG": np.cumprod((model.weights_history_ * relatives).sum(axis=1)),
    "best fixed weights, in hindsight": np.cumprod(relatives @ best.weights),
    **{name: np.cumprod(relatives[:, number]) for number, name in enumerate(names)},
}

figure, (upper, lower) = plt.subplots(2, 1, figsize=(7.5, 6), layout="constrained")
for style, (name, curve) in zip(
    ("C3", "k--", "C0", "C1", "C2"), wealth.items(), strict=True
):
    upper.plot(curve, style, label=f"{name}: {curve[-1]:.2f}", linewidth=1)
upper.set(yscale="log", ylabel="wealth", ylim=(0.03, 2000))
upper.legend(loc="upper left", ncols=2)
ExpertWeightsDisplay.from_estimator(model, names=names, kind="area", ax=lower)
lower.set(xlabel="days", ylabel="share of the capital")
lower.legend(loc="lower left")
plt.show()

# %%
# The logarithm of the wealth is within a bound of that of the best fixed weights, for
# this very run:

print(f"{np.log(best.wealth / model.wealth_):.3f} <= {model.regret_bound_:.3f}")
