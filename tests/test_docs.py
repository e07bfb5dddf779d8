"""The examples of README, user guide and docstrings are run, and work as written."""

import doctest
import importlib
import inspect
import pkgutil
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from configurations import public_estimators
from sklearn.base import BaseEstimator

import onlinebregman

README = Path(__file__).parents[1] / "README.md"
DOCS = README.parent / "docs"
DOCTEST_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks():
    """The Python blocks of these pages, padded so that the line numbers of errors are right."""
    for page in (README, README.parent / "CONTRIBUTING.md"):
        text = page.read_text(encoding="utf-8")
        for match in re.finditer(r"^```python\n(.*?)^```", text, re.M | re.S):
            first_line = text[: match.start(1)].count("\n")
            yield pytest.param("\n" * first_line + match[1], page, id=f"{page.name}:{first_line + 1}")


def public_modules():
    yield onlinebregman
    for info in pkgutil.walk_packages(onlinebregman.__path__, "onlinebregman."):
        left_out = {"__main__", "_demo", "_kernels"}
        left_out |= {room for room, needs in (("dask", "distributed"), ("river", "river")) if find_spec(needs) is None}
        if not left_out & set(info.name.split(".")):
            yield importlib.import_module(info.name)


def docstring_examples():
    """The examples of each docstring, which import everything they use, as readers copy them."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    for module in public_modules():
        for test in finder.find(module, module=module, globs={}):
            if test.examples:
                yield pytest.param(test, id=test.name.removeprefix("onlinebregman."))


def public_names():
    """(name, object) of the public classes and functions of the package, each once."""
    seen = {}
    for module in public_modules():
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__.startswith("onlinebregman"):
                seen.setdefault(f"{value.__module__}.{name}".removeprefix("onlinebregman."), value)
    return [pytest.param(value, id=name) for name, value in sorted(seen.items())]


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Examples may write files, and draw figures without a display."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")


def run_examples(test):
    """Run a doctest; returns its report, empty if all examples pass."""
    report = []
    doctest.DocTestRunner(optionflags=DOCTEST_FLAGS).run(test, out=report.append)
    return "".join(report)


@pytest.mark.parametrize("code, page", list(blocks()))
def test_each_block_of_code_runs_by_itself_and_prints_what_it_says(code, page, elsewhere, capsys):
    exec(compile(code, str(page), "exec"), {"__name__": page.stem})
    assert capsys.readouterr().out.splitlines() == re.findall(r"(?m)^print\(.*\)  # (.*)$", code)


def test_the_readme_is_short_and_says_how_to_start():
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 90
    assert "make demo" in text and "make test" in text


def test_every_benchmark_is_named():
    folder = README.parent / "benchmarks"
    text = (folder / "README.md").read_text(encoding="utf-8")
    scripts = [*folder.glob("[!_]*.py"), *folder.glob("peers/[!_]*.py")]
    assert [path for path in scripts if "__main__" in path.read_text() and f"{path.name}`" not in text] == []


def test_citation_and_list_of_versions_have_this_version():
    assert f"\nversion: {onlinebregman.__version__}\n" in (README.parent / "CITATION.cff").read_text(encoding="utf-8")
    stable = f'"name": "{onlinebregman.__version__.rpartition(".")[0]} (stable)"'
    assert stable in (DOCS / "_static" / "switcher.json").read_text(encoding="utf-8")


def test_the_readme_and_the_page_to_choose_by_have_the_same_problems():
    had = "; ".join(re.findall(r"(?m)^\| ([^|]+) \| (?:`|the same with)", README.read_text("utf-8"))).split("; ")
    page = (DOCS / "choosing.rst").read_text(encoding="utf-8")
    problems = re.findall(r"\* - :ref:`([^<]+) <([\w-]+)>`\n", page)
    assert [p for p, _ in problems] == sorted(had, key=page.index) and len(problems) <= 15
    sections = [page.split(f"\n.. _{label}:\n")[1].split("\n.. _")[0] for _, label in problems]
    assert all(re.search(r"(?m)^(>>>|\.\.\.) .*\n[^>.\n]", section) for section in sections)  # which prints


def test_every_public_estimator_is_among_those_to_choose_from():
    text = (DOCS / "choosing.rst").read_text(encoding="utf-8")
    assert [each for each in public_estimators() if f"~onlinebregman.{each.__name__}`" not in text] == []


def test_html_representations_link_to_the_pages_of_the_estimators():
    """That the pages are there is checked when they are built."""
    for cls in public_estimators():
        assert object.__new__(cls)._get_doc_link().endswith(f"/generated/onlinebregman.{cls.__name__}.html")


@pytest.mark.parametrize("test", list(docstring_examples()))
def test_the_examples_of_docstrings_hold(test, elsewhere):
    assert run_examples(test) == ""


def test_public_names_are_documented():
    for value in (each.values[0] for each in public_names()):
        doc = inspect.getdoc(value) or ""
        assert doc and not doc.isspace(), value
        assert len(doc.splitlines()[0]) < 120, value


def test_parameters_of_public_estimators_are_described_with_their_defaults():
    classes = [each.values[0] for each in public_names() if inspect.isclass(each.values[0])]
    for value in (each for each in classes if issubclass(each, BaseEstimator)):
        doc = inspect.getdoc(value)
        signature = inspect.signature(value)
        described = doc.split("Parameters\n----------")[1].split("\n----------")[0]
        assert "Examples\n--------" in doc and ">>>" in doc
        for name, parameter in signature.parameters.items():
            found = re.search(rf"^[\w, ]*\b{name}\b[\w, ]* : (.*)$", described, re.M)
            assert found, (value, name)
            if "default=" not in (line := found[1]):
                continue
            said, default = line.split("default=")[1].strip(), parameter.default
            same = said == f'"{default}"' if isinstance(default, str) else eval(said, {}) == default
            assert same, (value, name, said, default)


def test_public_methods_are_documented():
    """By docstrings of their own: where a class above has a text in the place of a property, that of str is taken."""
    foreign = {None, *(inspect.getdoc(kind) for kind in (str, tuple, int, float, bool))}
    for value in (each.values[0] for each in public_names() if inspect.isclass(each.values[0])):
        members = inspect.getmembers(value, lambda each: inspect.isfunction(each) or isinstance(each, property))
        own = {
            n: m for n, m in members if n[0] != "_" and "onlinebregman" in (getattr(m, "fget", None) or m).__module__
        }
        assert [name for name, member in own.items() if inspect.getdoc(member) in foreign] == [], value


def test_an_example_that_does_not_hold_is_noticed():
    """The tests above can fail: a wrong example is reported, whatever ran before it."""
    test = doctest.DocTestParser().get_doctest(">>> x = 1\n>>> x + 1\n3\n", {}, "wrong", None, 0)
    assert "Expected:\n    3\nGot:\n    2" in run_examples(test)
