"""The results of `streams.py`: as lines, in a file, and as tables with what they amount to."""

import csv

import numpy as np
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
    """Put results on record at once, so that another run can go on from there."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if new:
            writer.writeheader()
        writer.writerow(found)


def show(results):
    """Tables in Markdown."""
    for numbers in (False, True):
        streams = list(dict.fromkeys(r["stream"] for r in results if ("Regressor" in r["learner"]) == numbers))
