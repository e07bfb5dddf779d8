"""
Intervals on a stream that drifts
=================================

`predict_interval` of :class:`~onlinebregman.ParameterFreeRegressor` gives intervals for a
share of the targets that is chosen when they are asked for. Their width follows from the
errors of past predictions alone, without a model of the noise, so that the share is kept
when the noise changes.
"""

import matplotlib.pyplot as plt
import numpy as np

from onlinebregman import ForwardRegressor, ParameterFreeRegressor

# %%
# Three columns, whose weights change at row 1000; the noise becomes five times as large at
# row 2000, and has heavy tails from row 3000 on.

rng = np.random.default_rng(0)
n = 4000
t, X = np.arange(n), rng.normal(size=(n, 3))
w = np.where(t[:, np.newaxis] < 1000, [1.0, 2.0, 0.0], [0.0, 2.0, -1.0])
noise = np.where(t < 3000, rng.normal(size=n), rng.standard_t(1.5, size=n))
y = (w * X).sum(axis=1) + np.where((t >= 2000) & (t < 3000), 5.0, 1.0) * noise

# %%
# Each interval is predicted before its row is learned. They are infinite before the first
# prediction was checked.

COVERAGES = (0.5, 0.8, 0.9, 0.99)


def progressive_intervals(model):
    found = np.full((len(COVERAGES), n, 2), [-np.inf, np.inf])
    for i in range(n):
        for k, coverage in enumerate(COVERAGES if i else ()):
            found[k, i] = np.ravel(model.predict_interval(X[i : i + 1], coverage))
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    return found


def hits(intervals):
    return (intervals[..., 0] <= y) & (y <= intervals[..., 1])


ours = progressive_intervals(ParameterFreeRegressor(random_features=0))
normal = progressive_intervals(ForwardRegressor())
for k, coverage in enumerate(COVERAGES):
    one, other = hits(ours)[k].mean(), hits(normal)[k].mean()
    print(f"asked {coverage:.0%}: {one:.1%}; normal model: {other:.1%}")

# %%
# Above, targets and their 90 % intervals; below, the share of targets within the last 200
# intervals, for four coverages. Dashed lines are the intervals of
# :class:`~onlinebregman.ForwardRegressor`, which assume that the noise is normal, with one
# variance.

last_rows = np.full(200, 1 / 200)
figure, (above, below) = plt.subplots(
    2, 1, figsize=(10, 7), layout="constrained", sharex=True
)
inside = hits(ours)[2]
above.fill_between(
    t[2:], *ours[2, 2:].T, color="C0", alpha=0.3, linewidth=0, label="90 % interval"
)
above.scatter(t[inside], y[inside], s=2, color="0.4", label="targets inside")
above.scatter(t[~inside], y[~inside], s=4, color="C3", label="targets outside")
above.set(ylim=(-20, 20), ylabel="y")
above.legend(loc="upper left", ncols=3)
for k, coverage in enumerate(COVERAGES):
    below.axhline(coverage, color="0.8", linewidth=1)
    for intervals, style in ((ours, "-"), (normal, "--")):
        share = np.convolve(hits(intervals)[k], last_rows, "valid")
        label = f"{coverage:.0%}" if style == "-" else None
        below.plot(t[199:], share, style, color=f"C{k}", label=label)
below.set(xlabel="row", ylabel="share within the last 200 intervals", ylim=(0, 1.02))
below.legend(loc="lower left", ncols=4, title="coverage asked")
plt.show()

# %%
# The mean width of the 90 % intervals in the four parts of the stream, and twice the
# quantile of the noise, for a model that knew the weights:

for start in range(0, n, 1000):
    part = slice(max(start, 2), start + 1000)
    width = np.diff(ours[2, part], axis=1).mean()
    best = 2 * np.quantile(np.abs(y - (w * X).sum(axis=1))[part], 0.9)
    print(f"rows {start} to {start + 999}: {width:.1f}, at best {best:.1f}")
