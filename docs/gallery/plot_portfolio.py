"""
An online portfolio
===================

A portfolio that is rebalanced each day to fixed weights can gain even if no asset does.
After each day, exponentiated gradient moves the weights towards the best fixed weights,
which are only known in hindsight; the difference in growth is bounded.
"""

import matplotlib.pyplot as plt
import numpy as np

from onlinebregman import EGPortfolio
from onlinebregman.experts import best_constant_portfolio
from onlinebregman.inspection import ExpertWeightsDisplay

# %%
# Three assets over 4000 days: two of them go up and down independently and end where they
# started; the third loses a little each day. The legend shows the final value of a
# capital of 1.

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
# The difference between the logarithms of the wealth of the best fixed weights and of the
# portfolio is bounded for this run:

print(f"{np.log(best.wealth / model.wealth_):.3f} <= {model.regret_bound_:.3f}")
