"""
Portfolios as mixtures of experts
=================================

A capital that is divided among assets in the shares w grows by the factor w.x on a day
with the price relatives x, the prices at its end divided by those at its beginning. Minus
the logarithm of the wealth is thus a sum of log losses -ln(w.x), and assets are experts:
what holds for mixtures of experts, on any sequence of rows, holds for the wealth.
"""

import matplotlib.pyplot as plt
import numpy as np

from onlinebregman import DensityMixture, ExpertMixtureClassifier
from onlinebregman.inspection import ExpertWeightsDisplay

# %%
# Three assets over 4000 days: two of them go up and down independently and end where they
# started; the third loses a little each day. If the capital is rebalanced each day to
# fixed shares it can gain even if no asset does.

rng = np.random.default_rng(2)
prices = np.zeros((4001, 2))  # their logarithms
for day in range(4000):
    prices[day + 1] = 0.97 * prices[day] + 0.06 * rng.normal(size=2)
relatives = np.exp(np.column_stack([np.diff(prices, axis=0), np.full(4000, -0.002)]))
names = ["first", "second", "losing"]

grid = [(i, j, 20 - i - j) for i in range(21) for j in range(21 - i)]
rebalanced = np.log(relatives @ np.array(grid).T / 20)  # of all shares in steps of 0.05
gains = {
    "best asset": np.log(relatives[:, relatives.prod(axis=0).argmax()]),
    "equal shares": np.log(relatives.mean(axis=1)),
    "best fixed shares, in hindsight": rebalanced[:, rebalanced.sum(axis=0).argmax()],
}

# %%
# **The universal portfolio** of Cover (1991) divides the capital equally among all fixed
# shares, and its wealth is the mean of theirs. That is the Bayes mixture of them: the
# logarithm of its wealth is at most that of their number below the best.

universal = DensityMixture(shuffle=False).fit(rebalanced)
wealths = np.exp(np.cumsum(rebalanced, axis=0))
gains["universal"] = np.diff(np.log(wealths.mean(axis=1)), prepend=0.0)
behind = universal.cumulative_loss_ - universal.expert_losses_.min()
print(f"{behind:.3f} <= ln {len(grid)} = {np.log(len(grid)):.3f}")

# %%
# **Exponentiated gradient** (Helmbold, Schapire, Singer and Warmuth, 1998) needs no grid:
# it changes one vector of shares by the gradient of -ln(w.x). Its steps do not depend on
# the scale of a day, so relatives divided by the largest of the day do, which are
# probabilities of a label that always comes.

largest = relatives.max(axis=1, keepdims=True)
eg = ExpertMixtureClassifier(strategy="eg", learning_rate=0.2, history=4000)
eg.partial_fit(relatives / largest, np.ones(4000, int), classes=[0, 1])
gains["EG"] = np.log((eg.weights_history_ * relatives).sum(axis=1))
behind = gains["best fixed shares, in hindsight"].sum() - gains["EG"].sum()
print(f"{behind:.3f} <= {eg.regret_bound_:.3f}")

# %%
# The legend shows the final value of a capital of 1.

figure, (upper, lower) = plt.subplots(2, 1, figsize=(7.5, 6), layout="constrained")
for style, (name, gain) in zip(["C0", "C1", "k", "C2", "C3--"], gains.items(), strict=True):
    wealth = np.exp(np.cumsum(gain))
    upper.plot(wealth, style, label=f"{name}: {wealth[-1]:.2f}", linewidth=1)
upper.set(yscale="log", ylabel="wealth", ylim=(0.3, 1000))
upper.margins(x=0)
upper.legend(loc="upper left", ncols=2)
ExpertWeightsDisplay.from_estimator(eg, names=names, kind="area", ax=lower)
lower.set(xlabel="days", ylabel="share of the capital")
lower.legend(loc="lower left")
plt.show()
