"""
The same person? A metric from comparisons
==========================================

Comparisons of rows without classes: pairs that are similar or not, and quadruplets, "these
two are closer than those two". The rows stand in one array (`preprocessor`), and examples
are row numbers. A threshold for the distance is calibrated on pairs that were kept.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_curve

from onlinebregman import LogDetMetricLearner

# %%
# Six measurements of each of 200 persons, in units of noise: only the first four of
# twenty columns are properties of the person.

rng = np.random.default_rng(0)
n_persons, n_each, n_columns = 200, 6, 20
person = np.repeat(np.arange(n_persons), n_each)
traits = rng.normal(size=(n_persons, n_columns)) * np.r_[np.full(4, 2.0), np.zeros(16)]
rows = traits[person] + rng.normal(size=(len(person), n_columns))


def draw_pairs(persons, n):
    """Half of the pairs are two measurements of one person."""
    first = rng.choice(np.flatnonzero(np.isin(person, persons)), n)
    same = (first // n_each) * n_each + rng.integers(n_each, size=n)
    pairs = np.column_stack(
        [first, np.where(rng.random(n) < 0.5, same, rng.permutation(first))]
    )
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return pairs, np.where(person[pairs[:, 0]] == person[pairs[:, 1]], 1, -1)


known, kept, new = np.split(np.arange(n_persons), [100, 130])
pairs, labels = draw_pairs(known, 3000)
judged, right_answers = draw_pairs(kept, 1000)
unseen, truth = draw_pairs(new, 4000)

# %%
# From pairs, whose distances should be below or above a bound (`loss="one_sided"`), and
# from quadruplets of a similar and another pair. `prior` is the metric to start from; that
# of the covariance divides columns by their deviations, and so hides those that matter.

settings = {"preprocessor": rows, "random_state": 0}
metrics = {
    f"pairs, prior={prior!r}": LogDetMetricLearner(
        prior=prior, loss="one_sided", **settings
    )
    for prior in ("covariance", "identity")
}
for metric in metrics.values():
    metric.fit_pairs(pairs, labels=labels)
similar, others = pairs[labels == 1], pairs[labels == -1]
n = min(len(similar), len(others))
quadruplets = np.hstack([similar[:n], others[:n]])
metrics["quadruplets"] = LogDetMetricLearner(**settings).fit_quadruplets(quadruplets)

figure, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
euclidean = -((rows[unseen[:, 0]] - rows[unseen[:, 1]]) ** 2).sum(axis=1)
ax.plot(*roc_curve(truth, euclidean)[:2], "k:", label="Euclidean")
for name, metric in metrics.items():
    ax.plot(*roc_curve(truth, metric.pair_score(unseen))[:2], label=name)
ax.set(xlabel="false positive rate", ylabel="true positive rate", title="pair_score")
ax.legend()
plt.show()

# %%
# The threshold that finds nine in ten similar pairs, from the pairs that were kept.

judge = metrics["quadruplets"].calibrate_threshold(
    judged, labels=right_answers, strategy="max_tnr", min_rate=0.9
)
found = judge.predict_pairs(unseen)
print(f"found: {np.mean(found[truth == 1] == 1):.0%} of the similar pairs,")
print(f"and {np.mean(found[truth == -1] == 1):.0%} of the others, of persons never seen")

distances = judge.pair_distance(unseen)
figure, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
bins = np.linspace(0, np.quantile(distances, 0.99), 40)
for label, name in ((1, "one person"), (-1, "two persons")):
    ax.hist(distances[truth == label], bins, alpha=0.6, label=name)
ax.axvline(judge.threshold_, color="k", label="threshold")
ax.set(xlabel="distance", ylabel="pairs", title="persons never seen")
ax.legend()
plt.show()
