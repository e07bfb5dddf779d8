"""
A world that grows
==================

Digits whose classes and pixels appear one after the other: the class c is left out among
the first 120 c rows, and the columns of pixels come from the middle to the edges. The
models in colour are told nothing in advance: `handle_unknown="add"`,
`handle_new_features="add"`. The grey ones know all classes and all columns, which are 0
until they appear. Each row is predicted before it is learned; a label counts once it has
been seen.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from onlinebregman import ForwardClassifier, MirrorDescentClassifier

frame, labels = load_digits(return_X_y=True, as_frame=True)
order = np.random.default_rng(0).permutation(len(labels))
order = order[np.arange(len(labels)) >= 120 * labels.to_numpy()[order]]
frame, labels = frame.iloc[order] / 16, labels.to_numpy()[order]

# %%
# Blocks of 20 rows come with more and more columns.

middle_first = np.argsort(np.abs(np.arange(8) - 3.5), kind="stable")


def columns_at(row):
    """The columns of pixels that there are by now."""
    seen = set(middle_first[: 2 + min(row // 150, 6)])
    return [name for name in frame if int(name.split("_")[2]) in seen]


def errors(model, known):
    """Errors on the rows, each predicted before it was learned."""
    wrong = np.zeros(len(labels))
    for start in range(0, len(labels), 20):
        rows, y = frame.iloc[start : start + 20], labels[start : start + 20]
        rows = rows[columns_at(start)]
        if known:
            rows = rows.reindex(columns=frame.columns, fill_value=0.0)
        if start:
            seen = np.isin(y, labels[:start])
            wrong[start : start + 20] = (model.predict(rows) != y) & seen
        model.partial_fit(rows, y, classes=range(10) if known and not start else None)
    return wrong


grows = {"handle_unknown": "add", "handle_new_features": "add"}
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for number, kind in enumerate((ForwardClassifier, MirrorDescentClassifier)):
    for known in (True, False):
        model = kind() if known else kind(**grows)
        share = np.convolve(errors(model, known), np.full(100, 0.01), mode="valid")
        name = f"{kind.__name__}, {'all' if known else 'nothing'} announced"
        color, style = "0.6" if known else f"C{number}", ("-", "--")[known * number]
        ax.plot(np.arange(100, len(labels) + 1), share, style, label=name, color=color)
for label in range(1, 10):
    ax.axvline(np.argmax(labels == label), color="0.85", zorder=0)
ax.set(xlabel="rows (grey lines: a new class)", ylabel="errors in the last 100 rows")
ax.set_ylim(0)
fig.legend(loc="outside upper center", ncols=2)
plt.show()
