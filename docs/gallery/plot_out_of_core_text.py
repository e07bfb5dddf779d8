"""
Text that does not fit in memory
================================

Messages arrive in chunks, are hashed into 65 536 columns and learned; models do not store
them. A row of 50 words takes a linear model microseconds, for any number of columns.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import zero_one_loss

from onlinebregman import MirrorDescentClassifier, ParameterFreeClassifier
from onlinebregman.inspection import ProgressiveScoreDisplay

# %%
# A generator takes the place of files: 20 chunks of 200 messages about two topics, which
# share most of their words. Frequent words are the same in both, as in real text.

rng = np.random.default_rng(0)
common = 1 / np.arange(10, 20_010)  # how often words come
chances = common + 0.2 * np.array([rng.permutation(common), rng.permutation(common)])
chances = np.cumsum(chances, axis=1) / chances.sum(axis=1, keepdims=True)
vectorizer = HashingVectorizer(n_features=2**16)


def message(topic, rng):
    return " ".join(
        f"w{word}" for word in chances[topic].searchsorted(rng.uniform(size=50))
    )


def chunks():
    rng = np.random.default_rng(1)
    for _ in range(20):
        y = rng.integers(2, size=200)
        yield vectorizer.transform([message(topic, rng) for topic in y]), y


# %%
# Each chunk is predicted before it is learned. `ParameterFreeClassifier` contains many
# models with many rates.

models = {
    "SGDClassifier()": SGDClassifier(random_state=0),
    "MirrorDescentClassifier(adagrad)": MirrorDescentClassifier(divergence="adagrad"),
    "ParameterFreeClassifier()": ParameterFreeClassifier(),
}
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, model in models.items():
    ProgressiveScoreDisplay.from_estimator(
        model, chunks(), scoring=zero_one_loss, classes=[0, 1], name=name, ax=ax
    )
ax.set(xlabel="messages", ylabel="part predicted wrongly so far")
plt.show()
