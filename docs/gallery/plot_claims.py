"""
Claims: how many, how much, and how much at worst
=================================================

Losses for targets that are not symmetric. Most policies have no claim in a year, and the
others have positive, skewed costs: "poisson" learns the frequency, "gamma" the cost of a
claim, "tweedie" their product at once, and "quantile" the costs that are rarely exceeded.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import mean_tweedie_deviance

from onlinebregman import MirrorDescentRegressor
from onlinebregman.losses import QuantileLoss, TweedieLoss

# %%
# Age and power of a car, and the true rates of claims and costs of each.

rng = np.random.default_rng(0)
n = 40_000
X = rng.uniform(-1, 1, size=(n, 2))
frequency, severity = np.exp(X @ [-0.8, 0.5] - 0.7), np.exp(X @ [0.3, 0.9])
claims = rng.poisson(frequency)
cost = np.where(claims > 0, rng.gamma(2.0 * np.maximum(claims, 1), severity / 2), 0.0)
print(f"{np.mean(cost == 0):.0%} of the policies have no claim")

# %%
# One pass each, but for the costs per claim, which are learned in several epochs from the
# policies with claims, weighted by their number.

some = claims > 0
counts = MirrorDescentRegressor(loss="poisson").partial_fit(X, claims)
sizes = MirrorDescentRegressor(loss="gamma", random_state=0)
sizes.fit(X[some], cost[some] / claims[some], sample_weight=claims[some])
pure = MirrorDescentRegressor(loss=TweedieLoss(1.5)).partial_fit(X, cost)
squares = MirrorDescentRegressor().partial_fit(X, cost)
for name, model, true in (
    ("poisson", counts, [-0.8, 0.5]),
    ("gamma", sizes, [0.3, 0.9]),
    ("tweedie", pure, [-0.5, 1.4]),
):
    print(f"{name:8} weights {model.coef_.round(2)}, true {true}")

# %%
# The expected cost of a policy is the product of the first two, or the prediction of the
# third. Squared error predicts negative costs for some, for which there is no deviance.

floor = 1e-3
predicted = {
    "squared_error": np.maximum(squares.predict(X), floor),
    "poisson times gamma": counts.predict(X) * sizes.predict(X),
    "tweedie": pure.predict(X),
}
for name, mean in predicted.items():
    print(f"{name:20} deviance {mean_tweedie_deviance(cost, mean, power=1.5):.3f}")
print(f"{np.mean(squares.predict(X) < 0):.1%} of squared_error's predictions are negative")

# %%
# Quantiles of the cost of a claim, three in one model, that do not cross.

levels = [0.5, 0.9, 0.99]
worst = MirrorDescentRegressor(loss=QuantileLoss(levels))
worst.partial_fit(X[some], np.log(cost[some] / claims[some]))
power = np.linspace(-1, 1, 50)
rows = np.column_stack([np.zeros(50), power])
figure, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3.6), layout="constrained", subplot_kw={"xticks": [-1, 0, 1]}
)
left.plot(power, np.exp(rows @ [-0.5, 1.4] - 0.7), "k:", label="true")
left.plot(power, pure.predict(rows), label="tweedie")
left.plot(power, squares.predict(rows), label="squared_error")
left.set(xlabel="power of the car", ylabel="expected cost of a policy")
left.legend()
right.plot(X[some, 1][:1500], (cost / np.maximum(claims, 1))[some][:1500], ".", ms=2)
for level, curve in zip(levels, np.exp(worst.predict(rows)).T, strict=True):
    right.plot(power, curve, label=f"{level:.0%}")
right.set(
    xlabel="power of the car", ylabel="cost of a claim", yscale="log", ylim=(0.03, 20)
)
right.legend(title="below the line")
plt.show()
