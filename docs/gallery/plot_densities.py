"""
Densities and their regret
==========================

The loss of a density is its negative log-likelihood for the next row. For a family whose
parameters are learned online, the regret grows with the logarithm of the number of rows,
and for a mixture of families the cost of not knowing which of :math:`K` is the best is at
most :math:`\\ln K`.
"""

import matplotlib.pyplot as plt
import numpy as np

from onlinebregman import DensityMixture, OnlineExponentialFamily, OnlineGaussian
from onlinebregman.inspection import ExpertWeightsDisplay, RegretDisplay

# %%
# The regret of coins
# -------------------
# Coins with three different probabilities, learned without prior information: the regret
# against the best probability in hindsight stays below :math:`\frac12 \ln(T + 1) + 1` for
# every coin.

rng = np.random.default_rng(0)
n_rows = np.unique(np.geomspace(1, 20_000, 100).astype(int))
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for chance in (0.5, 0.1, 0.001):
    tosses = rng.uniform(size=(20_000, 1)) < chance
    coin, regret, bound = OnlineExponentialFamily("bernoulli"), [], []
    for start, stop in zip([0, *n_rows], n_rows, strict=False):
        coin.partial_fit(tosses[start:stop])
        regret.append(coin.regret_)
        bound.append(coin.regret_bound_)
    RegretDisplay(n_rows=n_rows, regret=regret, name=f"a coin of chance {chance}").plot(ax)
ax.plot(n_rows, bound, "k--", label="bound")
ax.set(xscale="log", xlabel="tosses", ylabel="regret, nats")
ax.legend()
plt.show()

# %%
# Which family?
# -------------
# Waiting times, each of which is the sum of three exponential variables: a mixture of
# four densities recognises that they are gamma variables.

waits = rng.gamma(3.0, size=(150, 1))
families = [
    ("exponential", OnlineExponentialFamily("exponential")),
    ("gamma, shape 3", OnlineExponentialFamily("gamma", shape=3.0)),
    ("gamma, shape 10", OnlineExponentialFamily("gamma", shape=10.0)),
    ("normal", OnlineGaussian()),
]
mixture = DensityMixture(families, history=150).fit(waits)
figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.6), layout="constrained")
ExpertWeightsDisplay.from_estimator(mixture, ax=left)
grid = np.linspace(0.01, 10, 200)[:, np.newaxis]
right.hist(waits[:, 0], bins=25, density=True, color="0.85", label="waiting times")
for (name, _), model in zip(families, mixture.estimators_, strict=True):
    right.plot(grid, np.exp(model.score_samples(grid)), linewidth=1, label=name)
right.plot(grid, np.exp(mixture.score_samples(grid)), "k--", label="mixture")
right.set(xlabel="time", ylabel="density")
right.legend()
plt.show()
