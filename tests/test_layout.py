"""What no linter checks: lengths, where C is declared, what compiled code may know, and who decides what."""

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = sorted(
    path
    for folder in ("onlinebregman", "tests", "benchmarks", "docs/_ext", "docs/gallery")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".pyx", ".pxd", ".h"} or path.name == "meson.build"
)
LONGEST = 800  # lines of a file, of a .pyx with its .pxd


def test_lines_and_files_are_short():
    assert {".py", ".pyx", ".pxd", ".h", ".build"} <= {path.suffix for path in SOURCES}
    found, lengths = [], Counter()
    for path in SOURCES:
        lines = path.read_text(encoding="utf-8").splitlines()
        lengths[path.with_suffix(".pyx") if path.suffix == ".pxd" else path] += len(lines)
        numbered = [(path.relative_to(ROOT), number, line) for number, line in enumerate(lines, 1)]
        found += [each for each in numbered if len(each[2].partition("  # noqa: ")[0]) > 120]
    assert found == []
    assert {path: length for path, length in lengths.items() if length > LONGEST} == {}


def test_functions_in_c_are_declared_beside_their_headers():
    cython = [path for path in SOURCES if path.suffix in {".pyx", ".pxd"}]
    declaring = [path for path in cython if 'extern from "ops/' in path.read_text(encoding="utf-8")]
    headers = sorted((ROOT / "onlinebregman" / "_kernels" / "ops").glob("*.h"))  # simd.h is for the others
    assert declaring == [path.with_suffix(".pxd") for path in headers if path.stem != "simd"] != []


def test_compiled_code_does_not_know_attributes_of_estimators():
    """It reads attributes by names that Python passes, and by itself only what was validated last."""
    known, by_name = set(), []
    for path in SOURCES:
        if path.suffix in {".pyx", ".pxd"}:
            code = re.sub(r'"""[\s\S]*?"""|#.*', "", path.read_text(encoding="utf-8"))
            known |= {name for name in re.findall(r'"(\w+)"', code) if name[0] == "_" or name[-1] == "_"}
            by_name += [(path.name, text) for text in re.findall(r"(?:\battributes|vars\(\w+\))(?:\[|\.get).*", code)]
    assert known == {"_validated", "_nearest_kink", "_slope_at_kink"}  # the last two are methods of losses
    assert [text for name, text in by_name if name != "transaction.pyx"] == []


def test_the_life_cycle_alone_decides_which_rows_need_no_validation():
    callers = {}
    for path in (ROOT / "onlinebregman").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", None) in ("learn_fast", "predict_fast"):
                callers.setdefault(node.func.attr, set()).add(path.name)
    assert callers == {"learn_fast": {"estimator.py"}, "predict_fast": {"estimator.py"}}
