"""
Regret and its certificate
==========================

How much more does an online model lose than the best fixed weights, chosen in hindsight?
With `track_regret=True` a model accumulates a bound on this for its own run while it
learns, without assumptions on the data.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from onlinebregman import BayesMixture, EGRegressor, ImplicitGDRegressor
from onlinebregman.inspection import RegretDisplay
from onlinebregman.model_selection import offline_comparator

rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 20))
u = rng.dirichlet(np.full(20, 0.3))
y = X @ u + 0.3 * rng.normal(size=2000)
y[1000:1200] *= -1  # an adversary's 200 rows

# %%
# Regret against the best weights on the simplex. While the true weights differ from
# these, the regret *decreases*: the fixed weights lose more than the model, which adapts;
# afterwards the model has to adapt back. The certificates (dashed) hold throughout.

best = offline_comparator(X, y, domain="simplex")
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
models = {
    "EG": EGRegressor(
        weights="simplex", learning_rate="constant", eta0=0.1, fit_intercept=False
    ),
    "gradient descent": ImplicitGDRegressor(
        learning_rate="constant", eta0=0.005, fit_intercept=False
    ),
}
for name, model in models.items():
    RegretDisplay.from_estimator(model, X, y, coef=best.coef, ax=ax, name=name)
ax.axvspan(1000, 1200, color="0.9", zorder=0)
ax.set(title="against the best fixed weights", ylim=(None, 32))
ax.legend(loc="upper left", ncols=2)
plt.show()

# %%
# The certificate of the best weights can only be evaluated once these are known. Its
# largest value over *all* weights is known at every row (dotted): the loss of the model
# minus it is a lower bound on the loss of the best weights, without a
# second look at the rows. Here these are ten passes over the 442 patients of the diabetes
# data, and the weights are signed, with absolute values that sum to at most 1.5.

X_diabetes, y_diabetes = load_diabetes(return_X_y=True)
X_diabetes = np.tile(StandardScaler().fit_transform(X_diabetes), (10, 1))
y_diabetes = np.tile((y_diabetes - y_diabetes.mean()) / y_diabetes.std(), 10)
best = offline_comparator(X_diabetes, y_diabetes, domain="signed", total=1.5)
model = EGRegressor(
    total=1.5, learning_rate="constant", eta0=0.03, fit_intercept=False, track_regret=True
).partial_fit(X_diabetes, y_diabetes)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
RegretDisplay.from_estimator(
    model, X_diabetes, y_diabetes, coef=best.coef, best_kw={}, ax=ax
)
ax.set(title="against all signed weights")
plt.show()
least = model.cumulative_loss_ - model.regret_bound()
print(f"loss of the model {model.cumulative_loss_:.0f}")
print(f"loss of the best weights {best.cumulative_loss:.0f}, at least {least:.0f}")

# %%
# Mixtures have their own bound. Ten forecasters of rain differ in confidence; the log
# loss of a Bayes mixture is at most :math:`\ln 10` above that of the best of them, and
# with a fixed share there is a small additional cost per row.

logits = rng.normal(size=2000)
rain = rng.uniform(size=2000) < 1 / (1 + np.exp(-logits))
forecasts = 1 / (1 + np.exp(-logits[:, np.newaxis] * np.geomspace(0.2, 5.0, 10)))
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for mixture, name in (
    (BayesMixture(), "Bayes"),
    (BayesMixture(share=0.002), "fixed share"),
):
    RegretDisplay.from_estimator(mixture, forecasts, rain, ax=ax, name=name)
ax.set(title="against the best of ten forecasters")
plt.show()
