"""The demo: what the package is for, on data nobody here made up. `python -m onlinebregman demo` runs it."""

from ._run import run_demo

__all__ = ["run_demo"]
