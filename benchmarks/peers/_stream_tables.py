"""The results of `streams.py`: as lines, in a file, and as tables with summaries."""

import csv

import numpy as np
from _tables import head, table
from _tables import row as line_of
from scipy.stats import rankdata

PLACE = ("stream", "learner", "columns")
LABELLED = {  # field -> (heading, form)
    "error": ("errors %", "{:10.2f}"),
    "log loss": ("log loss", "{:10.3f}"),
    "brier": ("Brier", "{:8.3f}"),
    "calibration": ("calibr.", "{:9.3f}"),
    "us": ("us/row", "{:9.1f}"),
}
NUMBERED = {"error": ("error", "{:10.3f}"), "us": ("us/row", "{:9.1f}")}
PEERS = ("SGD", "Vowpal", "river")
FIELDS = (*PLACE, "rows", "width", *LABELLED, "best member", "over best", "setting", "bins")


def heading(shown):
    widths = ((name, len(form.format(0.0))) for name, form in shown.values())
    return f"{'stream':31s}{'learner':25s}{'columns':12s}" + "".join(f"{name:>{width}s}" for name, width in widths)


def line(found, shown):
    shape = f"{found['stream']} ({found['rows']} x {found['width']})"
    figures = "".join(form.format(number(found, field)) for field, (_, form) in shown.items())
    setting = f"  {found['setting']}" if found.get("setting") else ""
    return f"{shape:31s}{found['learner']:25s}{found['columns']:12s}{figures}{setting}"


def number(found, field):
    return float(found.get(field) or "nan")


def append(path, found):
    """Store results at once, so that another run can continue from there."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if new:
            writer.writeheader()
        writer.writerow(found)


def show(results):
    """Tables in Markdown: results, summaries, and the reliability of probabilities."""
    for ours in ("ParameterFreeClassifier", "ParameterFreeRegressor"):
        streams = [result["stream"] for result in results if result["learner"] == ours]
        if not streams:
            continue
        print(f"\n### {ours}")
        found = {}  # learner -> stream -> the better of its results on raw and on scaled columns
        for result in sorted(results, key=lambda result: -number(result, "error")):
            if result["stream"] in streams:
                found.setdefault(result["learner"], {})[result["stream"]] = result
        peers = [name for name in found if name.startswith(PEERS) and not name.endswith("tuned")]
        table(
            "errors", streams, {name: row(found[name], streams, "error") for name in (ours, *sorted(peers))}, "{:.3g}"
        )
        amounts(ours, streams, found, peers)
        if "Classifier" in ours:
            probabilistic = [
                name for name in (ours, *sorted(peers)) if np.isfinite(row(found[name], streams, "brier")).all()
            ]
            for field in ("log loss", "brier", "calibration"):
                values = {name: row(found[name], streams, field) for name in probabilistic}
                table(field, streams, values, "{:.3f}")
            reliability({name: found[name] for name in probabilistic})
        listed("errors, all", results, streams, "error", "{:.3g}")
        listed("microseconds a row, all", results, streams, "us", "{:.1f}")


def row(of_learner, streams, field):
    return np.array([number(of_learner.get(stream, {}), field) for stream in streams])


def listed(title, results, streams, field, form):
    """Of every learner, on raw, scaled, and standardised columns."""
    found = {}
    for result in results:
        if result["stream"] in streams:
            name = f"{result['learner'].strip()}, {result['columns']}"
            found.setdefault(name, {})[result["stream"]] = result
    names = sorted(found, key=lambda name: "tuned" in name)
    table(title, streams, {name: row(found[name], streams, field) for name in names}, form, 48)


def amounts(ours, streams, found, peers):
    """Our errors over those of the best peer and of the best member, and mean ranks."""
    mine = row(found[ours], streams, "error")
    linear = [name for name in peers if "tree" not in name and "forest" not in name]
    tuned = [name for name in found if name.endswith("tuned")]
    ratios = {
        f"over the best {what}": mine / np.nanmin([row(found[name], streams, "error") for name in names], axis=0)
        for what, names in (("linear peer", linear), ("peer", peers), ("tuned peer", tuned))
        if names
    }
    ratios["loss over the best member's"] = row(found[ours], streams, "over best")
    if "Classifier" in ours:
        ratios["errors over the best member's"] = mine / row(found[ours], streams, "best member")
    table("ratios", streams, ratios, "{:.2f}")
    print()
    for name, values in ratios.items():
        known = values[np.isfinite(values)]
        counts = ", ".join(f"{(known <= most).sum()} at most {most}" for most in (0.6, 1.0, 1.05))
        print(f"- {name}: median {np.median(known):.3f}, largest {known.max():.3f}, of {len(known)} {counts}")
    names = [name for name in (ours, *peers) if np.isfinite(row(found[name], streams, "error")).all()]
    ranks = rankdata([row(found[name], streams, "error") for name in names], axis=0).mean(axis=1)
    print("- mean ranks: " + ", ".join(f"{name} {rank:.2f}" for rank, name in sorted(zip(ranks, names, strict=True))))


def reliability(found):
    """How often the labels of probabilities in each bin were right, over all streams, beside the mean probability."""
    bins = {
        name: sum(
            np.array([part.split(":") for part in result["bins"].split()], dtype=float) for result in rows.values()
        )
        for name, rows in found.items()
    }
    n_bins = len(next(iter(bins.values())))
    headings = [f"{k / n_bins:.1f} to {(k + 1) / n_bins:.1f}" for k in range(n_bins)]
    head("mean probability: part that was right (rows)", *headings, width=48)
    for name, counts in bins.items():
        cells = (f"{said / n:.2f}: {was / n:.2f} ({n:.0f})" if n else "" for n, said, was in counts)
        line_of(name, *cells, width=48)
