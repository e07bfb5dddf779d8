"""
When to stop, and where to start
================================

Epochs over the same rows: `early_stopping` holds rows out and returns to the best epoch,
`learning_rate` says how the rate falls, and `coef_init` starts a run from the weights of
another model.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_classification

from onlinebregman import MirrorDescentClassifier

# %%
# Rows of many columns, whose labels are partly wrong, are soon learned by heart. The score
# of the held-out rows shows when. "adaptive" divides its rate by five instead of stopping;
# "optimal" falls with the number of rows; "pa1" is computed for each row. "adaptive" begins
# as "constant" does, whose line is drawn wider.

X, y = make_classification(2000, 200, n_informative=8, flip_y=0.15, random_state=1)
settings = {
    "constant": {"eta0": 0.1},
    "adaptive": {"eta0": 0.1},
    "optimal": {"eta0": None, "penalty": "l2", "alpha": 0.01},
    "pa1": {"eta0": 0.01, "loss": "hinge", "update": "explicit"},
}
figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for color, (learning_rate, others) in enumerate(settings.items()):
    model = MirrorDescentClassifier(
        divergence="squared_euclidean",
        learning_rate=learning_rate,
        early_stopping="best",
        validation_fraction=0.3,
        n_iter_no_change=5,
        max_iter=300,
        tol=1e-3,
        random_state=0,
        **others,
    ).fit(X, y)
    scores = np.array(model.validation_scores_)
    epochs, width = range(1, len(scores) + 1), 1.5 if color else 6
    ax.plot(epochs, scores, f"C{color}", label=learning_rate, linewidth=width)
    ax.plot(scores.argmax() + 1, scores.max(), f"C{color}o")
    print(f"{learning_rate:8} {model.n_iter_:2} epochs, best after {scores.argmax() + 1}")
ax.set(xlabel="epoch", ylabel="score of held-out rows", title="the best epoch is kept")
ax.legend()
plt.show()

# %%
# Weights of yesterday
# --------------------
# A model of the first digits, and a second writer whose strokes are paler: a run from the
# first model's weights needs fewer of the second writer's rows than one from 0.

images, digits = load_digits(return_X_y=True)
first = MirrorDescentClassifier(penalty="l1", alpha=1e-3, random_state=0).fit(
    images[:900] / 16, digits[:900]
)
pale, labels = (images[900:] / 16) ** 2, digits[900:]
start = {"coef_init": first.coef_, "intercept_init": first.intercept_}
sizes = [20, 40, 80, 160, 320]
figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for name, given in {"from 0": {}, "coef_init": start}.items():
    accuracy = [
        MirrorDescentClassifier(max_iter=5, tol=None, random_state=0)
        .fit(pale[:n], labels[:n], **given)
        .score(pale[400:], labels[400:])
        for n in sizes
    ]
    ax.plot(sizes, accuracy, ".-", label=name)
ax.set(xscale="log", xticks=sizes, xticklabels=sizes, ylabel="accuracy")
ax.set(xlabel="rows of the second writer", title="a run from other weights")
ax.minorticks_off()
ax.legend()
plt.show()

# %%
# Most of the first model's weights are exactly 0, and `sparsify` stores the others only.

print(f"{first.sparsify().coef_.nnz} of {first.densify().coef_.size} weights are not 0")
