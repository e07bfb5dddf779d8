"""
Five of 500 features
====================

Gradient descent prefers weights with a small Euclidean norm, which are spread over all
features. Exponentiated gradient multiplies weights instead of adding to them: it quickly
finds a few large weights among many small ones, and its loss bound grows only with the
logarithm of the number of features.
"""

import matplotlib.pyplot as plt
import numpy as np

from onlinebregman import EGRegressor, ImplicitGDRegressor, LearningRatePath
from onlinebregman.inspection import ProgressiveScoreDisplay

rng = np.random.default_rng(0)
truth = np.zeros(500)
truth[[40, 120, 210, 300, 430]] = [0.3, -0.25, 0.2, 0.15, -0.1]
X = rng.normal(size=(1000, 500))
y = X @ truth + 0.1 * rng.normal(size=1000)

# %%
# Both learn the stream with 16 rates at once (:class:`~onlinebregman.LearningRatePath`),
# of which the best is shown. The only prior knowledge of EG is that the absolute values
# of the weights sum to at most 1.

models = {
    "gradient descent": ImplicitGDRegressor(fit_intercept=False),
    "exponentiated gradient": EGRegressor(weights="signed", total=1.0, fit_intercept=False),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained")
used = np.flatnonzero(truth)
left.plot(used, truth[used], "ko", fillstyle="none", markersize=10, label="true weights")
for (name, model), color in zip(models.items(), ("C1", "C0"), strict=True):
    best = LearningRatePath(model).fit(X, y).best_eta0_
    model.set_params(eta0=best)
    shown = {"ax": right, "negate": True, "name": name, "line_kw": {"color": color}}
    ProgressiveScoreDisplay.from_estimator(
        model, X, y, scoring="neg_mean_squared_error", **shown
    )
    after_200 = model.partial_fit(X[:200], y[:200]).coef_
    left.plot(after_200, ".", color=color, label=name)
left.set(xlabel="feature", ylabel="weight after 200 rows", ylim=(-0.32, 0.62))
left.legend(loc="upper right")
right.axhline(0.01, color="black", linestyle=":", label="noise")
right.set(yscale="log", ylabel="mean squared error so far", ylim=(None, 1))
right.legend(loc="upper right")
plt.show()
