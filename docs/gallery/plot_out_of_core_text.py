"""
Text that does not fit in memory
================================

Messages come in chunks, are hashed into 65 536 columns and learned; of the rows nothing is kept. One row of 50 words
takes microseconds, whatever the number of columns.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import zero_one_loss

from onlinebregman import MirrorDescentClassifier, ParameterFreeClassifier
from onlinebregman.inspection import ProgressiveScoreDisplay

# %%
# A generator stands for the files: 20 chunks of 200 messages about two topics, which share most of their words.
# Frequent words are the same in both, as they are in real text.

topics = np.random.default_rng(0).permuted(np.tile(1 / np.arange(10, 20_010), (2, 1)), axis=1)
common = 1 / np.arange(10, 20_010)
chances = np.cumsum(0.85 * common / common.sum() + 0.15 * topics / topics.sum(axis=1, keepdims=True), axis=1)
vectorizer = HashingVectorizer(n_features=2**16)


def chunks():
    rng = np.random.default_rng(1)
    for _ in range(20):
        y = rng.integers(2, size=200)
        texts = [" ".join(f"w{word}" for word in np.searchsorted(chances[topic], rng.uniform(size=50))) for topic in y]
        yield vectorizer.transform(texts), y


# %%
# Each chunk is predicted before it is learned. `ParameterFreeClassifier` has many models with many rates inside.

models = {
    "SGDClassifier()": SGDClassifier(random_state=0),
    "MirrorDescentClassifier(adagrad)": MirrorDescentClassifier(divergence="adagrad"),
    "ParameterFreeClassifier()": ParameterFreeClassifier(),
}
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, model in models.items():
    start = time.perf_counter()
    ProgressiveScoreDisplay.from_estimator(model, chunks(), scoring=zero_one_loss, classes=[0, 1], name=name, ax=ax)
    print(f"{name}: {time.perf_counter() - start:.1f} s, hashing included")
ax.set(xlabel="messages", ylabel="part predicted wrongly so far")
plt.show()
