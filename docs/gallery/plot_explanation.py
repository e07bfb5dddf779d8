"""
What a prediction is made of
============================

`explain` of :class:`~onlinebregman.ParameterFreeRegressor` says what each column, and each
pair of columns, contributes to a prediction; the contributions add up to it.
:class:`~onlinebregman.inspection.TermImportanceDisplay` finds the columns and pairs that
contribute most, and :class:`~onlinebregman.inspection.ContributionDisplay` plots what was
learned of a column, or of two, by their values.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from onlinebregman import ParameterFreeRegressor
from onlinebregman.inspection import ContributionDisplay, TermImportanceDisplay

# %%
# Bikes rented by the hour, made up so that the truth is known: commuters ride at 8 and at
# 17 on working days, others around 14 on days off; nobody likes frost; humidity does not
# matter. A thermometer fails now and then.

rng = np.random.default_rng(0)
n = 8000
X = pd.DataFrame(
    {
        "hour": rng.integers(24, size=n),
        "day": rng.choice(["working", "off"], size=n, p=[5 / 7, 2 / 7]),
        "temperature": rng.normal(10.0, 8.0, size=n),
        "humidity": rng.uniform(30.0, 100.0, size=n),
    }
)


def peak(center, width):
    return np.exp(-(((X["hour"] - center) / width) ** 2))


commuters = (X["day"] == "working") * (300 * peak(8, 1.5) + 350 * peak(17, 2))
others = 200 * (X["day"] == "off") * peak(14, 4)
frost = 100.0 * (X["temperature"] < 0)
y = 120 + commuters + others + 4 * X["temperature"] - frost + rng.normal(0, 20, size=n)
X.loc[rng.uniform(size=n) < 0.05, "temperature"] = np.nan

model = ParameterFreeRegressor().fit(X, y)
print(pd.Series(model.feature_importances_, X.columns).sort_values().round(3))

# %%
# What one prediction is made of: a frosty working day at eight.

row = pd.DataFrame(
    {"hour": [8], "day": ["working"], "temperature": [-3.0], "humidity": [60.0]}
)
explanation = model.explain(row)
parts = pd.Series(explanation.contributions[0], explanation.terms).sort_values(key=abs)
print(parts.round(0), f"\nsum: {parts.sum():.0f}, prediction: {model.predict(row)[0]:.0f}")

# %%
# The columns and pairs that matter most, the parts of that prediction, and what was learned
# of the temperature, and of the hour together with the kind of day.

figure, axes = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
TermImportanceDisplay.from_estimator(model, X[::20], ax=axes[0, 0])
axes[0, 0].set(title="All predictions")
axes[0, 1].barh(parts.index, parts, color=np.where(parts > 0, "C3", "C0"))
axes[0, 1].set(title="One prediction", xlabel="bikes")
display = ContributionDisplay.from_estimator(model, X, feature="temperature", ax=axes[1, 0])
ContributionDisplay.from_estimator(model, X, feature=("hour", "day"), ax=axes[1, 1])
plt.show()
