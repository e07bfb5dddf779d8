"""
Rows as dicts: with river, and in river
=======================================

Models of `river <https://riverml.xyz>`_ learn a dict at a time.
:func:`onlinebregman.river.to_river` makes such a model of any estimator, for river's
pipelines, metrics and evaluation; and models of river can be members of mixtures here.
"""

import matplotlib.pyplot as plt
import numpy as np
from river import compat, datasets, linear_model, metrics, preprocessing, tree

from onlinebregman import BayesMixture, ForwardClassifier, ParameterFreeClassifier
from onlinebregman.inspection import ExpertWeightsDisplay
from onlinebregman.river import to_river

# %%
# Each row is predicted, then learned. Features have names, and the labels are False and
# True, as river has them; nothing about the stream is declared.

regression = preprocessing.StandardScaler() | linear_model.LogisticRegression()
models = {
    "river: scaler | logistic regression": regression,
    "river: Hoeffding tree": tree.HoeffdingTreeClassifier(),
    "ParameterFreeClassifier": to_river(ParameterFreeClassifier()),
}
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for name, model in models.items():
    metric, errors = metrics.Accuracy(), []
    for x, y in datasets.Phishing():
        metric.update(y, model.predict_one(x))
        model.learn_one(x, y)
        errors.append(100 - 100 * metric.get())
    ax.plot(errors, label=f"{name}, {errors[-1]:.1f} %")
ax.set(xlabel="rows (websites)", ylabel="errors so far, %", ylim=(0, 40))
ax.legend()
plt.show()

# %%
# Mixtures of both
# ----------------
# The other way, river's own wrapper for scikit-learn makes its models members of a
# mixture, here one that adapts when the best member changes (`share`).

rows = list(datasets.Phishing())
X, labels = np.array([list(x.values()) for x, _ in rows]), np.array([y for _, y in rows])
tree_of_river = compat.River2SKLClassifier(tree.HoeffdingTreeClassifier())
sgd = compat.River2SKLClassifier(linear_model.LogisticRegression())
members = [
    ("Hoeffding tree", tree_of_river),
    ("SGD", sgd),
    ("forward", ForwardClassifier()),
]
mixture = BayesMixture(members, share=0.01, history=len(X))
for i in range(len(X)):
    mixture.partial_fit(X[i : i + 1], labels[i : i + 1], classes=[False, True])
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
ExpertWeightsDisplay.from_estimator(mixture, ax=ax)
plt.show()
