r"""
Explicit and implicit steps
===========================

The length of a gradient step is proportional to the learning rate. An implicit step,
:math:`w' = \operatorname{argmin} D(w', w) + \eta L(w')`, evaluates the loss at the new
weights, and never overshoots the target of its row.
"""

import matplotlib.pyplot as plt
import numpy as np

from onlinebregman import ImplicitGDRegressor
from onlinebregman.datasets import make_scaled_regression


def descent(update, eta0):
    return ImplicitGDRegressor(
        update=update, eta0=eta0, learning_rate="constant", fit_intercept=False
    )


# %%
# Left: a model that predicts 0 learns one row with target 1; the plot shows its
# prediction for this row after the step. Right: it learns 2000 rows of 20 features; the
# error is that of one pass, each row predicted before it is learned. The gradient step is
# best just below the rate at which it diverges. The implicit step works with any rate
# above 0.1, and a rate that is ten times too large costs almost nothing.

row, target = np.array([[1.0, 2.0]]), np.array([1.0])
X, y = make_scaled_regression(2000, 20, scale=2.0, random_state=0)
etas = np.geomspace(0.003, 30, 60)

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
for update, name, color in (("explicit", "gradient", "C1"), ("implicit", "implicit", "C0")):
    learned = [descent(update, eta0).partial_fit(row, target) for eta0 in etas]
    after = [model.predict(row)[0] for model in learned]
    left.plot(etas, after, color=color, label=f"{name} step")
    errors = []
    for eta0 in etas:
        try:
            model = descent(update, eta0).partial_fit(X, y)
        except ValueError:  # its message names the row at which the weights overflowed
            break
        errors.append(2 * model.cumulative_loss_ / len(y))
    right.plot(etas[: len(errors)], errors, color=color)
left.axhline(1, color="black", linestyle=":", label="target")
left.set(xscale="log", xlabel="learning rate")
left.set(ylim=(0, 3), ylabel="prediction after one row")
right.axhline(y.var(), color="black", linestyle=":", label="variance of the targets")
right.set(xscale="log", xlabel="learning rate")
right.set(yscale="log", ylim=(0.02, 30), ylabel="mean squared error of a pass")
left.legend(loc="upper left")
right.legend(loc="lower right")
plt.show()

# %%
# Other geometries also have implicit steps. For non-negative weights they cannot leave
# the domain: see :class:`~onlinebregman.EGRegressor` and
# :class:`~onlinebregman.BurgRegressor`.
