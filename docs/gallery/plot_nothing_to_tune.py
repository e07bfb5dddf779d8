"""
Nothing to tune
===============

On a stream there is no second pass in which to search for a learning rate, a schedule, a
scaler or a loss. :class:`~onlinebregman.ParameterFreeClassifier` learns with many
settings at once and mixes their predictions. Three unscaled streams, compared with
`SGDClassifier` at seven rates, behind a scaler where rows are dense.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import zero_one_loss
from sklearn.preprocessing import StandardScaler

from onlinebregman import ParameterFreeClassifier
from onlinebregman.inspection import ExpertWeightsDisplay, ProgressiveScoreDisplay
from onlinebregman.model_selection import progressive_val_score
from onlinebregman.pipeline import make_online_pipeline

# %%
# The streams: columns between 0.001 and 4000; word counts of two kinds of messages,
# weighted by TF-IDF; and rows whose true weights rotate slowly.

rng = np.random.default_rng(0)
cells, benign = load_breast_cancer(return_X_y=True)
order = rng.permutation(len(benign))

kinds = rng.integers(2, size=1500)
words = 1 / np.arange(5, 3005)
words = np.array([words, np.where(rng.uniform(size=3000) < 0.1, 3 * words, words)])
counts = rng.poisson(30 * words[kinds] / words.sum(axis=1)[kinds, np.newaxis])

rows, angles = rng.normal(size=(1500, 10)), np.linspace(0, 2 * np.pi, 1500)
turning = np.cos(angles) * rows[:, 0] + np.sin(angles) * rows[:, 1]
turning = turning > 0.3 * rng.normal(size=1500)

streams = {
    "raw columns": (cells[order], benign[order]),
    "TF-IDF": (TfidfTransformer().fit_transform(sparse.csr_array(counts)), kinds),
    "a truth that turns": (rows, turning.astype(int)),
}

# %%
# Rows arrive in chunks of twenty. Grey lines are the rates of `SGDClassifier`: the best
# rate differs from stream to stream.

figure, panels = plt.subplots(1, 3, figsize=(10, 3.9), layout="constrained", sharey=True)
for ax, (name, (X, y)) in zip(panels, streams.items(), strict=True):
    scores = {"scoring": zero_one_loss, "chunk_size": 20, "n_points": 40}
    for eta0 in 10.0 ** np.arange(-4, 3):
        sgd = SGDClassifier(
            loss="log_loss", learning_rate="invscaling", eta0=eta0, random_state=0
        )
        if not sparse.issparse(X):
            sgd = make_online_pipeline(StandardScaler(), sgd)
        label = "StandardScaler, SGDClassifier" if eta0 == 1 else None
        style = {"color": "0.7", "linewidth": 1, "label": label}
        ProgressiveScoreDisplay.from_estimator(sgd, X, y, ax=ax, **scores, line_kw=style)
    result = progressive_val_score(ParameterFreeClassifier(), X, y, **scores)
    style = {"color": "C0", "linewidth": 2.5, "label": "ParameterFreeClassifier()"}
    ProgressiveScoreDisplay.from_result(result, ax=ax, line_kw=style)
    ax.set(
        title=f"{name}: {result.score:.1%}", ylabel="part predicted wrongly", ylim=(0, 0.6)
    )
    ax.get_legend().remove()
figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
plt.show()

# %%
# The weights of the members on the rotating stream:

figure, ax = plt.subplots(figsize=(9, 3.6), layout="constrained")
ExpertWeightsDisplay.from_estimator(result.estimator, kind="area", n_shown=6, ax=ax)
ax.get_legend().remove()
figure.legend(loc="outside right center")
plt.show()
