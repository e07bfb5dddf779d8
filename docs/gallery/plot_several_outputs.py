"""
A network from a time series of many columns
============================================

Sensors that influence each other: the next values of all of them are predicted from the
present ones. That is one regression with as many outputs as columns, whose weights are the
network. The outputs are learned together, from rows that are read once.
"""

import matplotlib.pyplot as plt
import numpy as np

from onlinebregman import MirrorDescentClassifier, MirrorDescentRegressor

# %%
# Each of twelve sensors depends on itself and on two others.

rng = np.random.default_rng(0)
n_sensors, n_rows = 12, 5000
network = 0.5 * np.eye(n_sensors)
for row in network:
    row[rng.choice(np.flatnonzero(row == 0), 2, replace=False)] = rng.choice([-0.4, 0.4], 2)
network /= 1.1 * np.abs(np.linalg.eigvals(network)).max()
series = np.zeros((n_rows, n_sensors))
for t in range(1, n_rows):
    series[t] = network @ series[t - 1] + rng.normal(size=n_sensors)

# %%
# One pass, in which each value is predicted before it is learned. The noise alone has a
# variance of 1.

model = MirrorDescentRegressor(divergence="diagonal_newton", fit_intercept=False)
now, after = series[:-1], series[1:]
errors = np.zeros_like(after)
for start in range(0, len(now), 100):
    part = slice(start, start + 100)
    predicted = model.predict(now[part]) if start else 0.0
    errors[part] = after[part] - predicted
    model.partial_fit(now[part], after[part])
print(f"variance of the series {series.var():.2f}, of the errors {errors[1000:].var():.2f}")
print(f"largest error of a weight: {np.abs(model.coef_ - network).max():.2f}")

# %%
# Alarms are labels of the same rows, and several sensors may have one: an indicator matrix.

alarms = (np.abs(after) > 3).astype(int)
sizes = np.abs(now)
tagger = MirrorDescentClassifier().partial_fit(sizes[:4000], alarms[:4000])
chance = tagger.predict_proba(sizes[4000:])
found, other = chance[alarms[4000:] == 1].mean(), chance[alarms[4000:] == 0].mean()
print(f"probability of an alarm: {found:.2f} before alarms, {other:.2f} before other rows")

# %%
# The weights of all outputs are the rows of `coef_`.

figure, axes = plt.subplots(1, 2, figsize=(7, 3.5), layout="constrained")
for ax, title, weights in zip(
    axes, ("network", "coef_"), (network, model.coef_), strict=True
):
    image = ax.imshow(weights, cmap="RdBu", vmin=-0.6, vmax=0.6)
    ax.set(title=title, xlabel="from sensor", ylabel="to sensor", xticks=range(0, 12, 2))
figure.colorbar(image, ax=axes, label="weight")
plt.show()
