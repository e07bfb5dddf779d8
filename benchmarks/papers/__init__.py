"""The papers' experiments, rerun: `python -m benchmarks.papers`, one file an experiment."""
