"""Entries of docstrings are written once and filled in where they are named."""

import ast
import inspect
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from test_docs import public_names

import onlinebregman
from onlinebregman._online import docs
from onlinebregman._online.docs import _NAMES, DocumentedMixin, described_by

SOURCES = Path(__file__).parents[1] / "onlinebregman"


def docstrings():
    """All docstrings of the package as they are in the source."""
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                yield ast.get_docstring(node) or ""


def test_entries_are_written_once():
    """Lines that could be deleted if each parameter, attribute, return value and error were described once."""
    times = Counter(entry for doc in docstrings() for entry in {each.rstrip() for each in docs._entries(doc).values()})
    assert len(times) > 200
    copies = {entry: (n - 1) * len(entry.splitlines()) for entry, n in times.items() if n > 1}
    assert sum(copies.values()) < 100, sorted(copies.items(), key=lambda item: -item[1])


class Base(DocumentedMixin):
    """A base.

    Parameters
    ----------
    alpha : float or None
        First line.

        After a blank one.
    beta, gamma : str
        Both.

    Attributes
    ----------
    alpha : ndarray
        Fitted.
    """

    def fit(self, X, y=None):
        """Learn.

        Parameters
        ----------
        X : list
            Examples.
        {y}

        Returns
        -------
        {self}

        Raises
        ------
        ValueError
            If X is empty.
        """


class Derived(Base):
    """A derived one.

    Parameters
    ----------
    {beta, gamma}
    delta : int
        Its own.
    {alpha}

    Attributes
    ----------
    {alpha, n_features_in_}

    Examples
    --------
    {delta}
    """

    def __init__(self, *, alpha=None, beta="b", gamma="c", delta=0.001):
        pass

    def partial_fit(self, X, y=None):
        """Go on.

        Parameters
        ----------
        {X, y, unheard_of}

        Raises
        ------
        {ValueError}
        """


def test_a_class_takes_entries_from_its_bases_and_defaults_from_its_signature():
    assert inspect.getdoc(Derived) == inspect.cleandoc(
        """A derived one.

        Parameters
        ----------
        beta, gamma : str, default="b"
            Both.
        delta : int, default=0.001
            Its own.
        alpha : float or None, default=None
            First line.

            After a blank one.

        Attributes
        ----------
        alpha : ndarray
            Fitted.
        n_features_in_ : int
            Number of features.

        Examples
        --------
        {delta}
        """
    )


def test_a_method_takes_entries_from_fit_and_from_what_is_common():
    assert inspect.getdoc(Derived.partial_fit) == inspect.cleandoc(
        """Go on.

        Parameters
        ----------
        X : list
            Examples.
        y : array-like of shape (n_samples,), default=None
            Targets.
        {unheard_of}

        Raises
        ------
        ValueError
            If X is empty.
        """
    )
    assert "self : object\n    The estimator." in inspect.getdoc(Base.fit)


def test_fields_have_defaults_and_a_whole_section_is_that_of_a_relative():
    class Data(Base):
        """Data.

        Parameters
        ----------
        size : int
            Its size.
        """

        size: int = 3

        def fit(self, X, y=None):
            """Learn.

            {Returns}
            """

    assert "size : int, default=3\n" in Data.__doc__
    assert inspect.getdoc(Data.fit) == "Learn.\n\nReturns\n-------\nself : object\n    The estimator."


def test_a_function_takes_entries_from_what_it_is_described_by():
    @described_by(Derived, Base.fit)
    def function(alpha=2.0, X=()):
        """Do.

        Parameters
        ----------
        {alpha, X}
        """

    assert inspect.getdoc(function).splitlines()[4::4] == ["alpha : float or None, default=2.0", "X : list, default=()"]


def test_without_docstrings_there_is_nothing_to_fill_in():
    code = """if True:
        from importlib.machinery import SourceFileLoader as Loader
        code_of = Loader.get_code
        def without_docstrings(self, name):  # python -OO, for this package alone: it compiles all that is imported
            path, own = self.get_filename(name), name.startswith("onlinebregman")
            return compile(self.get_data(path), path, "exec", 0, True, 2) if own else code_of(self, name)
        Loader.get_code = without_docstrings
        import onlinebregman as o
        print(o.EGRegressor.__doc__, o.EGRegressor.fit.__doc__, o.EGRegressor(eta0=2.0))
    """
    run = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["None", "None", "EGRegressor(eta0=2.0)"]


# --- the files that the build installs, as editors read them ----------------------------------------------------------


INSTALLED = Path(onlinebregman.__file__).parent


def fill(sources, folder):
    subprocess.run([sys.executable, SOURCES / "fill_docstrings.py", sources, folder], check=True)


@pytest.fixture(scope="session")
def filled(tmp_path_factory):
    """The package's Python files as the build writes them."""
    folder = tmp_path_factory.mktemp("filled") / "onlinebregman"
    fill(SOURCES, folder)
    return folder


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


def texts_in(tree, prefix=""):
    """(qualified name, docstring) of the classes and functions of a file, as editors read them."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield prefix + node.name, ast.get_docstring(node)
        yield from texts_in(node, f"{prefix}{node.name}." if isinstance(node, ast.ClassDef) else prefix)


def test_files_say_what_help_says(filled):
    """One of their texts, as stand-ins for what older versions of scikit-learn lack are defined in several branches."""
    shown = {}
    for path in filled.rglob("*.py"):
        module = ".".join(path.relative_to(filled.parent).with_suffix("").parts).removesuffix(".__init__")
        for name, text in texts_in(ast.parse(path.read_text("utf-8"))):
            shown.setdefault((module, name), []).append(text)
    for value in (each.values[0] for each in public_names()):
        methods = (
            [method for _, method in inspect.getmembers(value, inspect.isfunction)] if inspect.isclass(value) else []
        )
        for each in (value, *methods):
            if each.__module__.startswith("onlinebregman") and each.__doc__ and "<locals>" not in each.__qualname__:
                assert inspect.cleandoc(each.__doc__) in shown[each.__module__, each.__qualname__], each
