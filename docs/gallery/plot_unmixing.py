"""
What is in a spectrum
=====================

The light of a pixel is a mixture of known spectra, with proportions that are non-negative
and sum to one. Each wavelength is a row: the values of the known spectra are its
features, that of the pixel its target. Exponentiated gradient keeps weights on the
simplex, so that no constraint has to be imposed afterwards.
"""

import matplotlib.pyplot as plt
import numpy as np

from onlinebregman import EGRegressor, ImplicitGDRegressor

rng = np.random.default_rng(3)
wavelengths = np.linspace(0.4, 2.4, 200)
peaks, widths = rng.uniform(0.4, 2.4, (12, 3)), rng.uniform(0.05, 0.5, (12, 3))
heights = rng.uniform(0.2, 1.0, (12, 3))
bumps = heights * np.exp(
    -(((wavelengths[:, np.newaxis, np.newaxis] - peaks) / widths) ** 2)
)
spectra = bumps.sum(axis=2)  # a column for each material
shares = np.zeros(12)
shares[[1, 4, 8]] = [0.5, 0.35, 0.15]
pixel = spectra @ shares + 0.03 * rng.normal(size=200)

# %%
# Twelve materials are known, three are present. Ten passes over the 200 noisy
# wavelengths, learned one at a time; least squares with non-negative weights on all of
# them at once also misplaces 4 %.

settings = {"eta0": 64.0, "fit_intercept": False, "max_iter": 10, "tol": None}
settings["random_state"] = 0
models = {
    "gradient descent": ImplicitGDRegressor(**settings),
    "EG, non-negative": EGRegressor(weights="positive", **settings),
    "EG on the simplex": EGRegressor(weights="simplex", **settings),
}
figure, (left, right) = plt.subplots(
    1, 2, figsize=(8, 3.8), layout="constrained", width_ratios=[1, 1.4]
)
for number in range(12):
    style = {"color": "C0", "zorder": 3} if shares[number] else {"color": "0.85"}
    left.plot(wavelengths, spectra[:, number], **style)
left.plot(wavelengths, pixel, "k.", markersize=3, label="the pixel", zorder=5)
left.set(xlabel="wavelength, µm", ylabel="reflectance", ylim=(None, 2))
left.plot([], color="C0", label="in it")
left.plot([], color="0.85", label="not in it")
left.legend(loc="upper right")
materials = np.arange(12)
right.bar(materials, shares, width=0.9, color="0.85", label="true shares")
for shift, marker, (name, model) in zip(
    (-0.25, 0, 0.25), "sDo", models.items(), strict=True
):
    coef = model.fit(spectra, pixel).coef_
    missed = np.abs(coef - shares).sum() / 2
    label = f"{name}: {missed:.0%} misplaced"
    right.plot(materials + shift, coef, marker, markersize=5, label=label)
right.axhline(0, color="black", linewidth=0.8)
right.set(xlabel="material", ylabel="share", xticks=materials, ylim=(None, 0.85))
right.legend()
plt.show()
