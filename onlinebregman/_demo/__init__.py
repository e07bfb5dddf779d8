"""The demo, `python -m onlinebregman demo`: four applications of the package, on real data."""

from ._run import run_demo

__all__ = ["run_demo"]
