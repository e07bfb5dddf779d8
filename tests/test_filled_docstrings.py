"""The build installs Python files whose docstrings are complete, as editors read them without running the package."""

import ast
import inspect
import shutil
import subprocess
import sys
from pathlib import Path

import jedi
import pytest
from test_docs import public_names

import onlinebregman
from onlinebregman._online.docs import _NAMES

SOURCES = Path(__file__).parents[1] / "onlinebregman"
INSTALLED = Path(onlinebregman.__file__).parent
# Their types are declared once more in the class, for type checkers alone, and editors show this declaration.
DECLARED = {
    (f"ScaleInvariant{kind}", name)
    for kind in ("Regressor", "Classifier")
    for name in ("regret_bound", "worst_case_bound")
}


def fill(sources, folder):
    subprocess.run([sys.executable, SOURCES / "fill_docstrings.py", sources, folder], check=True)


@pytest.fixture(scope="session")
def filled(tmp_path_factory):
    """The package's Python files as the build writes them."""
    folder = tmp_path_factory.mktemp("filled") / "onlinebregman"
    fill(SOURCES, folder)
    jedi.settings.cache_directory = str(folder.parent / "cache")  # other processes write to the common one
    return folder


@pytest.fixture(scope="session")
def plain_python():
    """An environment in which no editable installation of the package takes precedence over `filled`."""
    return jedi.create_environment(sys.base_prefix, safe=False)


def without_docstrings(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body[0] = ast.Pass()
    return ast.dump(tree)


def test_only_docstrings_differ_from_the_sources(filled):
    paths = [path.relative_to(filled) for path in filled.rglob("*.py")]
    assert len(paths) > 100
    for path in paths:
        assert without_docstrings(filled / path) == without_docstrings(SOURCES / path)


def test_no_name_in_braces_is_left(filled):
    assert _NAMES.fullmatch("{tol, shuffle}")
    lines = [(path.name, line) for path in filled.rglob("*.py") for line in path.read_text("utf-8").splitlines()]
    assert [each for each in lines if _NAMES.fullmatch(each[1].strip())] == []


def test_entries_are_those_of_the_sources_and_not_of_an_installation(tmp_path):
    sources, folder = tmp_path / "onlinebregman", tmp_path / "filled"
    shutil.copytree(SOURCES, sources, ignore=lambda _, names: [name for name in names if name == "_kernels"])
    docs = sources / "_online" / "docs.py"
    docs.write_text(docs.read_text("utf-8").replace("\n    Rows.\n", "\n    Rows of another version.\n"), "utf-8")
    fill(sources, folder)
    assert "Rows of another version." in (folder / "parameter_free" / "regressor.py").read_text("utf-8")


def test_those_are_the_files_that_are_installed(filled):
    if INSTALLED == SOURCES:
        pytest.skip("an editable installation runs the sources")
    for path in filled.rglob("*.py"):
        assert (INSTALLED / path.relative_to(filled)).read_bytes() == path.read_bytes()


@pytest.mark.exhaustive
def test_editors_show_what_help_shows(filled, plain_python):
    folder = filled.parent
    project = jedi.Project(folder, sys_path=[str(folder)])
    public, seen = [each.values[0] for each in public_names()], set()
    for values in (public[i : i + 10] for i in range(0, len(public), 10)):  # jedi answers so many questions on a file
        lines, shown = [], {}  # a program that names everything, and the object that each of its lines ends with
        for number, value in enumerate(values):
            lines += [f"from {value.__module__} import {value.__name__} as it{number}", f"it{number}"]
            shown[len(lines)] = value
            for name, method in inspect.getmembers(value, inspect.isfunction) if inspect.isclass(value) else ():
                own = not name.startswith("_") and method.__module__.startswith("onlinebregman")
                if own and method not in seen and (value.__name__, name) not in DECLARED:
                    seen.add(method)  # what is inherited is looked up once
                    lines.append(f"it{number}.{name}")
                    shown[len(lines)] = method
        script = jedi.Script("\n".join(lines), path=folder / "it.py", project=project, environment=plain_python)
        for line, runtime in shown.items():
            docstrings = [each.docstring(raw=True) for each in script.infer(line, len(lines[line - 1]))]
            # Stand-ins for what older versions of scikit-learn lack are defined in several branches: jedi lists all.
            # If a method has none, `help` shows that of a base class, and editors show none.
            assert inspect.cleandoc(runtime.__doc__ or "") in docstrings, runtime
            assert len(docstrings) == 1 or runtime.__module__ == "onlinebregman._sklearn_compat"
