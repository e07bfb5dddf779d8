"""Reproduced experiments of the papers: `python -m benchmarks.papers`, one file per experiment."""
