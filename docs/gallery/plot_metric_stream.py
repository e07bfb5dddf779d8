"""
A metric learned on a stream
============================

:class:`~onlinebregman.LogDetMetricLearner` learns from labelled rows which differences
between them matter: rows of the same class should be close to each other, rows of
different classes far apart. The error of nearest neighbours in the learned metric
decreases with the number of rows learned; only a bounded sample of them is stored.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from onlinebregman import LogDetMetricLearner
from onlinebregman.datasets import load_balance_scale
from onlinebregman.inspection import MetricDisplay


def error(X, y):
    """Of 5-NN, which looks for neighbours in the first half, on the other half."""
    half = len(y) // 2
    return 1 - KNeighborsClassifier(5).fit(X[:half], y[:half]).score(X[half:], y[half:])


def learn(X, y, n_chunks):
    """The metric of the first half of the rows, and the errors while it learns."""
    learner, n_rows, errors = LogDetMetricLearner(random_state=0), [0], [error(X, y)]
    for chunk in np.array_split(np.arange(len(y) // 2), n_chunks):
        learner.partial_fit(X[chunk], y[chunk])
        n_rows.append(n_rows[-1] + len(chunk))
        errors.append(error(learner.transform(X), y))
    return learner, n_rows, errors


# %%
# The errors fall
# ---------------
# The balance scale: two weights at two distances from the pivot, and the side to which it
# tips. The plot shows the metric in the two weights, for equal distances. It ignores
# whether both weights are larger, and separates rows by which weight is larger: the lever
# rule, learned from labels.

streams = {
    "digits": load_digits(return_X_y=True),
    "balance scale": load_balance_scale(return_X_y=True),
}
rng = np.random.default_rng(1)
figure, (left, right) = plt.subplots(
    1, 2, figsize=(9.5, 3.6), layout="constrained", width_ratios=[1.2, 1]
)
for name, (X, y) in streams.items():
    order = rng.permutation(len(y))
    Z = StandardScaler().fit_transform(X)
    learner, n_rows, errors = learn(Z[order], y[order], 30)
    left.plot(n_rows, errors, ".-", label=f"{name}: {errors[0]:.1%} to {errors[-1]:.1%}")
left.set(xlabel="rows that the metric has learned", ylabel="error of 5-NN", ylim=(0, None))
left.legend()
sides, level = np.array(["balanced", "left", "right"])[y], X[:, 1] == X[:, 3]
names = ("left weight, standardised", "right weight, standardised")
MetricDisplay.from_estimator(
    learner, Z[level], sides[level], features=(0, 2), feature_names=names, ax=right
)
right.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()

# %%
# Before and after
# ----------------
# All 625 cases in two dimensions: their principal components, and the two leading
# directions of the metric.

figure, panels = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained")
mapped = {
    "Euclidean": PCA(2).fit_transform(Z),
    "learned metric": learner.set_params(n_components=2).transform(Z),
}
for ax, (title, plane) in zip(panels, mapped.items(), strict=True):
    for side in ("balanced", "left", "right"):
        ax.plot(*plane[sides == side].T, ".", alpha=0.6, label=side)
    ax.set(title=title, xticks=[], yticks=[])
panels[0].legend()
plt.show()
