"""Limits on the length of lines and files, also for Cython, C and meson sources, which no linter checks."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(
    path
    for folder in ("onlinebregman", "tests", "benchmarks", "docs/_ext", "docs/gallery")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".pyx", ".pxd", ".h"} or path.name == "meson.build"
)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_lines_and_files_are_short(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert not [f"{n}: {line}" for n, line in enumerate(lines, 1) if len(line.partition("  # noqa: ")[0]) > 120]
    assert len(lines) <= 500


def test_there_are_sources():
    assert {".py", ".pyx", ".pxd", ".h", ".build"} <= {path.suffix for path in SOURCES}
