"""Time by commit of each line of `growth.py`, at the ends and in between of its three decades."""

import sys
from pathlib import Path

from .estimators import OneThread

sys.path.insert(0, str(Path(__file__).parents[1]))

from growth import AXES, microseconds

LINES = {f"{name}: {line}": (axis, axis.lines[line]) for name, axis in AXES.items() for line in axis.lines}


class Growth(OneThread):
    """One block of work, at one, ten, a hundred and a thousand times the smallest size."""

    params = (list(LINES), (0, 1, 2, 3))
    param_names = ("line", "decade")

    def setup(self, name, decade):
        super().setup()
        axis, line = LINES[name]
        if any(microseconds(line, size, 1)[1] for size in axis.sizes[: 2 * decade : 2]):
            raise NotImplementedError("a block takes too long")  # how asv is told to skip
        self.work, _ = line(int(axis.sizes[2 * decade]))

    def time_block(self, name, decade):
        self.work()
