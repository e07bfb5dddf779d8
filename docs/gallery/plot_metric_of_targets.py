"""
Nearest neighbours for regression
=================================

:class:`~onlinebregman.MetricKNeighborsRegressor` learns its metric from real targets: a
row should be closer to neighbours whose targets are similar than to others. Five of
twenty features determine the target here. The Euclidean metric counts all of them alike,
the learned one finds those that matter.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1

from onlinebregman import MetricKNeighborsRegressor

X, y = make_friedman1(2000, n_features=20, noise=1.0, random_state=0)
models = {
    "Euclidean": MetricKNeighborsRegressor(metric_learner=["euclidean"], window_size=None),
    "learned metric": MetricKNeighborsRegressor(window_size=None, random_state=0),
}

# %%
# Each chunk is predicted before it is learned
# --------------------------------------------

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for name, model in models.items():
    errors = []
    for start in range(0, 2000, 200):
        chunk = slice(start, start + 200)
        if start:
            errors.append(np.sqrt(np.mean((model.predict(X[chunk]) - y[chunk]) ** 2)))
        model.partial_fit(X[chunk], y[chunk])
    left.plot(range(200, 2000, 200), errors, ".-", label=name)
left.axhline(1.0, color="grey", ls=":", label="noise")
left.set(xlabel="rows learned", ylabel="root mean squared error", ylim=(0, None))
left.legend()

weights = np.diag(models["learned metric"].metric_.get_mahalanobis_matrix())
right.bar(range(20), weights / weights.sum(), color="C1")
right.set(xlabel="feature", ylabel="share of squared distances", xticks=range(0, 20, 5))
plt.show()
