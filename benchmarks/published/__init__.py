"""Tables that others have published, and what the package reaches at its defaults: `python -m benchmarks.published`."""
