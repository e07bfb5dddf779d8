"""
A map from a few sightings
==========================

Where does a species live? Height, rainfall and the distance to the river are known for
every place on the map, and there are 300 sightings. Of all distributions whose feature
expectations match the observed averages, the one of maximum entropy makes the fewest
additional assumptions.
"""

import matplotlib.pyplot as plt
import numpy as np

from onlinebregman import MaxEntDensity

rng = np.random.default_rng(0)
east, north = np.meshgrid(np.linspace(0, 1, 80), np.linspace(0, 1, 60))
height = np.exp(-((east - 0.7) ** 2 + (north - 0.6) ** 2) / 0.05)
height += 0.5 * np.exp(-((east - 0.2) ** 2 + (north - 0.8) ** 2) / 0.03)
rain = 0.5 + 0.5 * np.sin(3 * east + 2 * north)
river = np.abs(north - 0.3 - 0.1 * np.sin(7 * east))
places = np.column_stack([height.ravel(), rain.ravel(), river.ravel()])

likes = np.exp(-10 * (places[:, 0] - 0.4) ** 2 - 6 * places[:, 2])
sightings = rng.choice(len(places), size=300, p=likes / likes.sum())

# %%
# Squares of the features allow a preferred height. `alpha` lets averages differ by 0.5 %
# of the range of a feature, to account for the noise of 300 sightings, and keeps the
# multipliers of irrelevant features at 0.

model = MaxEntDensity(domain=np.hstack([places, places**2]), alpha=0.005).fit(sightings)

figure, panels = plt.subplots(1, 3, figsize=(10, 3.3), layout="constrained", sharey=True)
for ax, values, title in (
    (panels[0], height, "height, river, and the sightings"),
    (panels[1], likes.reshape(height.shape) / likes.sum(), "where it lives"),
    (panels[2], model.probabilities_.reshape(height.shape), "maximum entropy"),
):
    colors = "Greys" if ax is panels[0] else "viridis"
    ax.pcolormesh(east, north, values, cmap=colors, shading="nearest")
    ax.plot(
        east.ravel()[sightings], north.ravel()[sightings], "C1.", markersize=4, alpha=0.7
    )
    ax.contour(east, north, river, levels=[0.01], colors="C0")
    ax.set(title=title, xticks=[], yticks=[], aspect="equal")
names = ["height", "rain", "river", "height²", "rain²", "river²"]
print(
    {
        name: float(weight.round(1))
        for name, weight in zip(names, model.lambda_, strict=True)
    }
)
plt.show()
