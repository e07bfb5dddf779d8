"""The error of an import from a source folder without compiled modules; other import errors are not changed."""

import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def sources(tmp_path):
    """A copy of the package's sources, with nothing compiled."""
    ignored = shutil.ignore_patterns("__pycache__", *(f"*{suffix}" for suffix in EXTENSION_SUFFIXES))
    return shutil.copytree(ROOT / "onlinebregman", tmp_path / "onlinebregman", ignore=ignored)


def import_error(package):
    """The last line of the error of importing it in its own folder."""
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import onlinebregman"],  # -S: ignore editable installations
        cwd=package.parent,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    return done.stderr.splitlines()[-1]


def test_the_error_names_the_source_folder_and_a_remedy(sources):
    error = import_error(sources)
    assert error.startswith(f"ImportError: onlinebregman was imported from its source folder, {sources},")
    assert "python -P" in error
    *_, prepare, _, install, _ = error.split("`")
    page = (ROOT / "docs" / "install.rst").read_text(encoding="utf-8")
    assert prepare in page and install in page


def test_an_installation_that_lacks_a_module_is_not_taken_for_it(sources):
    for source in sources.glob("_kernels/*/*.pyx"):  # an installation has no sources
        source.unlink()
    error = import_error(sources)
    assert "source folder" not in error and "_kernels" in error


def test_compiled_modules_that_do_not_load_are_not_taken_for_it(sources):
    for source in sources.glob("_kernels/*/*.pyx"):
        source.with_name(source.stem + EXTENSION_SUFFIXES[0]).write_bytes(b"")
    error = import_error(sources)
    assert error.startswith("ImportError") and "source folder" not in error
