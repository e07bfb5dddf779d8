"""
A kernel from distances
=======================

A kernel between fifty-two flowers, learned from distances of pairs, one pair at a time.
Matrix exponentiated gradient finds a kernel, a positive definite matrix of trace one,
that has these distances; its total loss has an a priori bound, and nearest neighbours in
the kernel recover the species.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from onlinebregman import MEGKernelLearner

X, y = load_iris(return_X_y=True)
rng = np.random.default_rng(0)
chosen = np.sort(rng.permutation(150)[:52])
species = y[chosen]
target = rbf_kernel(StandardScaler().fit_transform(X)[chosen]) / 52  # to be found
squared = np.diag(target)[:, np.newaxis] + np.diag(target) - 2 * target


def error(distances):
    """Of 1-NN, leaving one out."""
    nearest = (distances + np.diag(np.full(52, np.inf))).argmin(axis=1)
    return np.mean(species[nearest] != species)


# %%
# The learner gets random pairs and half their squared distances:

learner = MEGKernelLearner(random_state=0)
n_pairs, losses, errors = [], [], []
for stop in np.unique(np.geomspace(100, 30_000, 25).astype(int)):
    pairs = rng.integers(52, size=(stop - (n_pairs[-1] if n_pairs else 0), 2))
    pairs[:, 1] = (pairs[:, 0] + 1 + pairs[:, 1] % 51) % 52  # two different ones
    learner.partial_fit_pairs(pairs, squared[tuple(pairs.T)] / 2, n_objects=52)
    n_pairs.append(stop)
    losses.append(learner.cumulative_loss_)
    errors.append(error(learner.pairwise_distances()))

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(9.5, 3.4), layout="constrained")
left.plot(n_pairs, losses, label="total loss")
left.axhline(learner.loss_bound(target), color="black", linestyle="--", label="its bound")
left.set(xscale="log", xlabel="pairs", ylabel="total loss", ylim=(0, None))
left.legend()
middle.plot(n_pairs, errors, label="learned kernel")
middle.axhline(error(squared), color="black", linestyle=":", label="target kernel")
middle.set(xscale="log", xlabel="pairs", ylabel="error of 1-NN", ylim=(0, None))
middle.legend()
image = right.imshow(52 * learner.kernel_, vmin=0, vmax=1)
middles = [np.flatnonzero(species == k).mean() for k in range(3)]
right.set_xticks(middles, load_iris().target_names)
right.set(title="learned kernel, times 52", yticks=[])
figure.colorbar(image, ax=right)
plt.show()
