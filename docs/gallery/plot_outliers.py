"""
Outliers on a stream
====================

Two detectors that learn a stream row by row, with the fraction of outliers as their only
parameter: :class:`~onlinebregman.OneClassMirrorDescent` on random features of a kernel,
and :class:`~onlinebregman.DensityOutlierDetector`, here with a Gaussian. Without an
estimator it standardises the columns first, by scikit-learn's scaler, row by row.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDOneClassSVM

from onlinebregman import DensityOutlierDetector, OneClassMirrorDescent, OnlineGaussian

# %%
# The regions of inliers
# ----------------------
# Rows around two centres, one pass. The one-class model finds both; the same objective is
# that of scikit-learn's `SGDOneClassSVM`, dashed.

rng = np.random.default_rng(0)
X = np.where(rng.uniform(size=(20_000, 1)) < 0.5, [2.0, 2.0], [-2.0, -2.0])
X = X + 0.5 * rng.normal(size=X.shape)
features = RBFSampler(gamma=0.5, n_components=200, random_state=0).fit(X)
Z = features.transform(X)
one_class = OneClassMirrorDescent(nu=0.05).partial_fit(Z)
sgd = SGDOneClassSVM(nu=0.05, average=True, random_state=0).partial_fit(Z)
density = OnlineGaussian(prior_weight=1.0)
gaussian = DensityOutlierDetector(density, nu=0.05).partial_fit(X)

axis = np.linspace(-5, 5, 100)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
scores = {
    "OneClassMirrorDescent": one_class.decision_function(features.transform(grid)),
    "DensityOutlierDetector": gaussian.decision_function(grid),
}
dashed = sgd.decision_function(features.transform(grid)).reshape(100, 100)
figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained", sharey=True)
for ax, (name, score) in zip(axes, scores.items(), strict=True):
    ax.scatter(*X[:500].T, s=3, color="0.6")
    ax.contour(axis, axis, score.reshape(100, 100), [0.0], colors="C0", linewidths=2)
    ax.set(title=name, aspect="equal")
axes[0].contour(axis, axis, dashed, [0.0], colors="C3", linestyles="--")
plt.show()

# %%
# The threshold
# -------------
# A threshold that was fitted once is wrong as soon as the stream changes. Here the rows
# widen from row 5,000 on; the share of rows that are predicted to be outliers before they
# are learned returns to 5 %.

stream = rng.normal(size=(20_000, 2))
stream[5_000:] *= 2.0
model, frozen = DensityOutlierDetector(density, nu=0.05), None
shares = {"online": [], "fitted once": []}
for start in range(0, len(stream), 250):
    rows = stream[start : start + 250]
    if start >= 2_000:
        if frozen is None:
            frozen = clone(model).fit(stream[:2_000])
        for name, each in (("online", model), ("fitted once", frozen)):
            shares[name].append(100 * np.mean(each.predict(rows) == -1))
    model.partial_fit(rows)
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
for name, share in shares.items():
    ax.plot(np.arange(2_000, 20_000, 250), share, label=name)
ax.axhline(5, color="k", linestyle=":")
ax.set(xlabel="rows", ylabel="predicted outliers, %", ylim=(0, None))
ax.legend()
plt.show()
