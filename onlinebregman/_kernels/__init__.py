"""The compiled part: rows, geometries (mirror maps row by row), losses, and the one loop over rows."""

from importlib.util import find_spec
from pathlib import Path

# This package is imported before any of its modules, so errors that concern all of them are raised here.
_source = Path(__file__).with_name("learners") / "learner.pyx"
if find_spec(f"{__name__}.learners.learner") is None and _source.exists():
    raise ImportError(
        f"onlinebregman was imported from its source folder, {_source.parents[2]}, which has no compiled modules. "
        "To use an installed onlinebregman, run Python in another folder or with `python -P`; "
        "to work in this one, install it editable: `pip install meson-python Cython ninja numpy scipy`, then "
        "`pip install --no-build-isolation -Csetup-args=-Dfill_docstrings=false -e .`"
    )
