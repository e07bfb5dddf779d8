"""A progress bar on a terminal, plain lines anywhere else."""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import contextmanager
from typing import TextIO

_BAR = 24
_CLEAR = "\r\x1b[K"


class Progress:
    """Shows how far the demo is, on stderr.

    Parameters
    ----------
    n_parts : int
        Number of parts that will be announced with `part`.
    stream : text stream or None, default=None
        Where to write; None means stderr.
    """

    def __init__(self, n_parts: int, stream: TextIO | None = None) -> None:
        self.n_parts = n_parts
        self.stream = sys.stderr if stream is None else stream
        self.live = self.stream.isatty()
        encoding = getattr(self.stream, "encoding", None) or "ascii"
        try:
            "█░".encode(encoding)
            self.full, self.empty = "█", "░"
        except UnicodeEncodeError:
            self.full, self.empty = "#", "."
        self.number = 0

    @contextmanager
    def part(self, title: str, n_steps: int):
        """Announce a part of `n_steps` steps; its body calls `advance` once a step."""
        self.number += 1
        self.title, self.n_steps, self.done = f"[{self.number}/{self.n_parts}] {title}", n_steps, 0
        self.start = time.perf_counter()
        if self.live:
            self._draw("")
        else:
            self._write(f"{self.title} ...\n")
        try:
            yield self
        except BaseException:
            self._write("\n" if self.live else "")
            raise
        seconds = time.perf_counter() - self.start
        self._write(f"{_CLEAR if self.live else ''}{self.title}: {seconds:.1f} s\n")

    def advance(self, what: str = "") -> None:
        """Count one more step; `what` describes it."""
        self.done = min(self.done + 1, self.n_steps)
        if self.live:
            self._draw(what)

    def _draw(self, what: str) -> None:
        filled = round(_BAR * self.done / max(self.n_steps, 1))
        bar = self.full * filled + self.empty * (_BAR - filled)
        line = f"{self.title} {bar} {self.done}/{self.n_steps} {what}"
        width = shutil.get_terminal_size().columns - 1
        self._write(_CLEAR + line[:width])

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()
