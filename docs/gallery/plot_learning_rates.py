"""
All learning rates in one pass
==============================

:class:`~onlinebregman.LearningRatePath` learns one model at many rates, each row read
once, and keeps the best; :class:`~onlinebregman.LearningRateMixture` weighs them by their
losses so far, and needs no rate at all. Rows are predicted before they are learned, so
that no row is held out.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from onlinebregman import EGRegressor, ImplicitGDRegressor, LearningRateMixture
from onlinebregman.inspection import ExpertWeightsDisplay, LearningRateDisplay

X, y = load_diabetes(return_X_y=True)
X, y = StandardScaler().fit_transform(X), (y - y.mean()) / y.std()

# %%
# Two geometries have their best rates in different places; the dashed lines are what the
# mixtures of all rates lost. On the right the weights of the 24 members of the second
# mixture while it learns: the first rows are for large rates, later ones for smaller
# rates, which average over the noise.

models = [ImplicitGDRegressor(), EGRegressor(weights="signed", total=3.0)]
figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 4), layout="constrained")
for model in models:
    mixture = LearningRateMixture(model, eta0s=np.geomspace(1e-4, 30, 24)).fit(X, y)
    LearningRateDisplay.from_estimator(mixture, ax=left)
left.set(ylabel="mean loss of a pass", ylim=(0.25, 1.0))
left.legend(loc="upper center")
ExpertWeightsDisplay.from_estimator(mixture, kind="area", n_shown=5, ax=right)
right.legend(loc="lower right")
plt.show()
