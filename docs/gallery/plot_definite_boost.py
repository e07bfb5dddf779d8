"""
Boosting for matrices
=====================

Which kernel is nearest to the identity if pairs of similar objects must lie within a
given distance of each other? In each round, DefiniteBoost finds the most violated of
these inequalities, as AdaBoost finds the hypothesis with the largest edge, and makes a
multiplicative step: in each round the dual objective decreases by at least a known
factor.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from onlinebregman import DefiniteBoost

X, y = load_iris(return_X_y=True)
chosen = np.arange(0, 150, 3)
kernel = rbf_kernel(StandardScaler().fit_transform(X)[chosen])
a, b = np.triu_indices(50, 1)
similar = (1 - kernel)[a, b] < 0.2
pairs = np.column_stack([a, b])[similar]

# %%
# A round makes either a step in closed form, with an a priori guarantee, or a step after
# which its constraint holds exactly. With `projection="corrective"` all multipliers
# change at once, which takes two rounds here.

figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.8), layout="constrained")
for projection, color in (("approximate", "C0"), ("exact", "C1")):
    model = DefiniteBoost(projection=projection).fit_pairs(
        pairs, np.full(len(pairs), 0.2 / 50), n_objects=50
    )
    left.plot(
        model.dual_objective_, color=color, label=f"{projection}: {model.n_iter_} rounds"
    )
    if projection == "approximate":
        left.plot(
            model.dual_bound_,
            color=color,
            linestyle="--",
            label="what the theorem guarantees it",
        )
left.set(xlim=(0, 300), xlabel="rounds", ylabel="dual objective")
left.legend()
image = right.imshow(50 * model.kernel_, vmin=0, vmax=1)
right.set(title=f"kernel from {len(pairs)} similar pairs, times 50", yticks=[])
right.set(xticks=[8, 25, 42], xticklabels=load_iris().target_names)
figure.colorbar(image, ax=right)
plt.show()
