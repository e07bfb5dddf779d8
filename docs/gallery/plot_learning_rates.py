"""
All learning rates in one pass
==============================

:class:`~onlinebregman.LearningRatePath` learns one model with many learning rates,
reading each row once, and predicts with the best;
:class:`~onlinebregman.LearningRateMixture` weights them by their losses so far, without a
rate to choose. Rows are predicted before they are learned, so that no rows have to be
held out.
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
# The best rates of two geometries differ; the dashed lines are the losses of the mixtures
# of all rates. Right: the weights of the 24 members of the second mixture during
# learning: large rates are best for the first rows, smaller rates, which average over the
# noise, for later rows.

models = [ImplicitGDRegressor(), EGRegressor(weights="signed", total=3.0)]
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
for model in models:
    mixture = LearningRateMixture(model, eta0s=np.geomspace(1e-4, 30, 24)).fit(X, y)
    LearningRateDisplay.from_estimator(mixture, ax=left)
left.set(ylabel="mean loss of a pass", ylim=(0.25, 1.0))
left.legend(loc="upper center")
ExpertWeightsDisplay.from_estimator(mixture, kind="area", n_shown=5, ax=right)
right.get_legend().remove()
figure.legend(*right.get_legend_handles_labels(), loc="outside right center")
plt.show()
