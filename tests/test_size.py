"""What a reader has to take in is counted, and no count is above its number in `size.toml`.

    python tests/test_size.py        prints the counts, and lowers the numbers of the file to them; it raises none
    python tests/test_size.py calls  prints the calls and files of a first `fit`, in a process of its own

Who removes something lowers the numbers, which keeps it from growing back.
"""

import inspect
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.utils.fixes import parse_version

import onlinebregman

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "onlinebregman"
FILE = Path(__file__).with_name("size.toml")
HEADER = """\
# At most so much of each: see test_size.py. Numbers are lowered by `python tests/test_size.py`, and never raised.
"""
SKIPPED = {tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}
BUILT = {"_build", "generated", "auto_gallery"}  # by sphinx


def code_lines_of_python(text):
    """The number of lines with code: neither empty, nor of comments or docstrings."""
    lines, statement = set(), []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NEWLINE:
            if [part.type for part in statement] != [tokenize.STRING]:
                lines.update(*(range(part.start[0], part.end[0] + 1) for part in statement))
            statement = []
        elif token.type not in SKIPPED:
            statement.append(token)
    return len(lines)


def code_of_cython(text):
    """Its lines with code. A docstring begins a line; what is written in C has other comments."""
    text = re.sub(r'^ *[rR]?"""[\s\S]*?"""', "", text, flags=re.M)
    return [line for line in re.sub(r" *#.*", "", text).splitlines() if line.strip()]


def code_lines_of_c(text):
    text = re.sub(r"/\*[\s\S]*?\*/|//.*", "", text)
    return sum(bool(line.strip()) for line in text.splitlines())


def lines_of(folder, counts):
    """The lines of code in a folder, where `counts` has the counter of each kind of file."""
    files = [path for path in sorted(folder.rglob("*")) if path.suffix in counts]
    return sum(counts[path.suffix](path.read_text(encoding="utf-8")) for path in files)


def declarations(name):
    """The lines that declare a compiled class, struct or enum and what it inherits from."""
    for path in (PACKAGE / "_kernels").rglob("*.pxd"):
        text = "\n".join(code_of_cython(path.read_text(encoding="utf-8")))
        found = re.search(rf"^cdef (?:class|struct|enum) {name}(?:\((\w+)\))?:\n((?: .*\n?)*)", text, re.M)
        if found:
            return found[2].splitlines() + (declarations(found[1]) if found[1] else [])
    raise LookupError(f"no compiled {name} in {PACKAGE}: tell test_size.py what took its place")


def methods(name):
    """The C methods of a compiled class: what one who writes another such class has to know."""
    found = [re.match(r" +cp?def [\w* ]*?(\w+)\(", line) for line in declarations(name)]
    return {match[1] for match in found if match}


def flags(name):
    """The names of its attributes that are true or false: each of them is a mode."""
    found = [re.match(r" +(?:cdef )?(?:readonly |public )?bint ([\w, ]+)$", line) for line in declarations(name)]
    return {flag for match in found if match for flag in match[1].split(", ")}


def loops_over_rows():
    """The loops of compiled learners whose end is the number of rows of a call."""
    code = [
        line
        for path in (PACKAGE / "_kernels" / "learners").glob("*.p[yx]*")
        for line in code_of_cython(path.read_text(encoding="utf-8"))
    ]
    return [line for line in code if re.match(r" +(for|while)\b.*\brows\.n_rows\b", line)]


def longest_ancestry():
    """Most classes of the package that a public estimator consists of, itself included."""
    public = [getattr(onlinebregman, name) for name in onlinebregman.__all__]
    estimators = [each for each in public if inspect.isclass(each) and issubclass(each, BaseEstimator)]
    own = [[base for base in each.mro() if base.__module__.startswith("onlinebregman")] for each in estimators]
    return max(map(len, own))


def calls_of(act):
    """(calls, files) of the package's Python functions. Comprehensions and annotations are calls to some versions."""
    package, calls = str(Path(onlinebregman.__file__).parent), []
    no_calls = re.compile("<.*(comp|expr)>|__annotate__")

    def count(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(package) and not no_calls.match(code.co_name):
            calls.append(code.co_filename)

    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
    return len(calls), len(set(calls))


def print_calls():
    """What a first call of two estimators does that are made of much and of most."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    y = X @ [1.0, 2.0, 3.0]
    print(*calls_of(lambda: onlinebregman.MirrorDescentRegressor(random_state=0).fit(X, y)))
    print(*calls_of(lambda: onlinebregman.ParameterFreeClassifier().partial_fit(X, y > 0, classes=[False, True])))


def counts_of_calls():
    """The same, in a process of its own, as what has been called before is remembered."""
    printed = subprocess.run([sys.executable, __file__, "calls"], capture_output=True, text=True, check=True).stdout
    fit, first_call = [map(int, line.split()) for line in printed.splitlines()]
    names = ["mirror_descent_fit_calls", "mirror_descent_fit_files"]
    names += ["parameter_free_partial_fit_calls", "parameter_free_partial_fit_files"]
    return dict(zip(names, [*fit, *first_call], strict=True))


def words_of_docs():
    """The words of all pages, without those that are made of docstrings and of examples."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "benchmarks").rglob("*.md")]
    pages += [page for page in (ROOT / "docs").rglob("*") if page.suffix in {".rst", ".md"}]
    return sum(len(page.read_text(encoding="utf-8").split()) for page in pages if not BUILT & set(page.parts))


def counts_of_texts():
    python = {".py": code_lines_of_python}
    cython = dict.fromkeys([".pyx", ".pxd"], lambda text: len(code_of_cython(text)))
    return {
        "package_lines": lines_of(PACKAGE, {**python, **cython, ".h": code_lines_of_c}),
        "test_lines": lines_of(ROOT / "tests", python),
        "words_of_docs": words_of_docs(),
        "learner_methods": len(methods("Learner")),
        "geometry_methods": len(methods("Geometry")),
        "mode_flags": sum(len(flags(name)) for name in ("Learner", "Geometry", "Settings", "RunState")),
        "traits": sum("=" in line for line in declarations("Trait")),  # one set, but modes as well
        "loops_over_rows": len(loops_over_rows()),
        "classes_of_an_estimator": longest_ancestry(),
    }


def limits():
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def assert_within_limits(counts):
    above = {name: f"{count} > {limits()[name]}" for name, count in counts.items() if count > limits()[name]}
    assert above == {}, "remove as much as you add: the numbers of size.toml are never raised; their counters are above"


def test_nothing_grows():
    assert_within_limits(counts_of_texts())


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.9"), reason="the numbers are those of newer versions"
)
def test_a_first_call_does_not_grow():
    assert_within_limits(counts_of_calls())


def test_what_is_counted():
    python = '"""A\ndocstring."""\n\nx = """a\nb"""  # c\n# d\n\ndef f():\n    "e"\n    "f"; y = 1\n'
    assert code_lines_of_python(python) == 4
    cython = '"""A\ndocstring."""\n# c\ncdef int f():  # d\n    r"""e"""\n    pass\n'
    assert code_of_cython(cython) == ["cdef int f():", "    pass"]
    assert code_lines_of_c("/* a\n b */\n\nint c; // d\n// e\n") == 1
    assert {"learn_row", "begin"} <= methods("Learner") and "track_regret" in flags("Settings")
    assert calls_of(lambda: None) == (0, 0) != calls_of(onlinebregman.MirrorDescentRegressor()._get_doc_link)


if __name__ == "__main__":
    if sys.argv[1:] == ["calls"]:
        print_calls()
    else:
        old, found = limits() if FILE.exists() else {}, counts_of_texts() | counts_of_calls()
        numbers = [f"{name} = {min(count, old.get(name, count))}" for name, count in found.items()]
        FILE.write_text("\n".join([HEADER.strip(), *numbers, ""]), encoding="utf-8")
        print(*(f"{name}: {count}, at most {limits()[name]}" for name, count in found.items()), sep="\n")
