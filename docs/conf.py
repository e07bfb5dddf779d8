"""Sphinx configuration; how to build is said at the end of design.rst."""

import doctest
import functools
import os
import re
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

import numpydoc.docscrape_sphinx
from jinja2 import FileSystemBytecodeCache
from jinja2.sandbox import SandboxedEnvironment

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "onlinebregman"
author = "The onlinebregman developers"
copyright = "The onlinebregman developers"
release = installed_version("onlinebregman")
version = ".".join(release.split(".")[:2])

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.viewcode",
    "myst_parser",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "local_links",
    "mathml",
    "small_screens",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "gallery", "sg_execution_times.rst"]
default_role = "literal"  # docstrings put names between single backticks

smartquotes = False  # w' is not a quotation

html_theme = "pydata_sphinx_theme"
html_title = f"onlinebregman {release}"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 5,
    "secondary_sidebar_items": {"index": [], "**": ["page-toc"]},
    "navbar_start": ["navbar-logo", "version-switcher"],
    "navbar_end": ["theme-switcher"],
    "logo": {"text": project},
    "switcher": {
        "json_url": "https://onlinebregman.readthedocs.io/en/latest/_static/switcher.json",  # of the newest pages
        "version_match": os.environ.get("READTHEDOCS_VERSION", "stable"),
    },
    "check_switcher": False,  # which would need a network
}
html_math_renderer = "mathml"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 10,
    "abort_on_example_error": True,
    "within_subsection_order": "gallery_order.Order",
    "doc_module": ("onlinebregman",),
    "backreferences_dir": "generated/backreferences",
    "reference_url": {"onlinebregman": None},
}

if {"ONLINEBREGMAN_DOCS_LINKS", "READTHEDOCS"} & os.environ.keys():  # links to other projects' pages need a network
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }

toc_object_entries_show_parents = "hide"

maximum_signature_line_length = 80
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # the docstrings say the types
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
# numpydoc makes its template anew for each docstring, and would compile it each time
numpydoc.docscrape_sphinx.SandboxedEnvironment = functools.partial(
    SandboxedEnvironment, bytecode_cache=FileSystemBytecodeCache()
)

doctest_default_flags = doctest.NORMALIZE_WHITESPACE
# examples write files
doctest_global_setup = """
import os, tempfile
_folder, _back = tempfile.TemporaryDirectory(), os.getcwd()
os.chdir(_folder.name)
"""
doctest_global_cleanup = """
os.chdir(_back)
_folder.cleanup()
"""


def _skip_member(app, what, name, obj, skip, options):
    """Leave out what scikit-learn's base classes bring along, and attributes that the docstring lists already."""
    if skip or what not in ("class", "exception"):
        return None
    described_above = (isinstance(obj, property) and name.endswith("_")) or type(obj).__name__ == "_tuplegetter"
    inherited = (getattr(obj, "__module__", None) or "").startswith(("sklearn", "river.", "abc"))
    return True if described_above or inherited else None


def _show_formulas(app, what, name, obj, options, lines):
    """Docstrings set formulas off by indentation; here they become literal blocks, so that their lines stay apart."""
    shown = []
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and lines[i + 1].startswith("---"):  # the first section: its lines are numpydoc's
            return lines.__setitem__(slice(None), shown + lines[i:])
        if line.startswith("  ") and shown and not shown[-1] and not shown[-2].startswith(" "):
            shown += [".. code-block:: text", ""]
        shown.append(line)
    lines[:] = shown


def _escape(app, what, name, obj, options, lines):
    """Docstrings write |w|, coef_ and, in references, initials: none of them is meant as markup."""
    literal = False
    for i, line in enumerate(lines):
        literal = line == ".. code-block:: text" or (literal and (not line or line.startswith(" ")))
        if not literal and not line.lstrip().startswith((">>>", "...")):
            line = re.sub(r"^(\.\. \[[^]]+\] )(?=[A-Z]\. )", r"\1\\", line)
            lines[i] = re.sub(r"(?<!\\)\||(?<![`\w])[A-Za-z]\w*(?=_(?![`\w]))", _escaped, line)


def _escaped(match):
    return r"\|" if match[0] == "|" else match[0] + "\\"


def _leave_sidebar_out(app, pagename, templatename, context, doctree):
    """Pages without a section have nothing to show there."""
    env = app.env
    if pagename in env.toctree_includes.get(env.config.root_doc, ()) and pagename not in env.toctree_includes:
        context["sidebars"] = []


def setup(app):
    app.connect("html-page-context", _leave_sidebar_out)
    app.connect("autodoc-skip-member", _skip_member)
    app.connect("autodoc-process-docstring", _show_formulas, priority=400)  # before numpydoc
    app.connect("autodoc-process-docstring", _escape, priority=600)  # after it
