"""Write a copy of the package's Python files in which the docstrings are complete; called by the build.

In the sources an entry that several classes share is written once (see `_online/docs.py`) and filled in when a class is
created, which editors and type checkers do not see. Here the same code fills in classes that have the names, bases,
signatures and docstrings of the sources and nothing else, so that neither compiled modules nor scikit-learn is needed.
"""

import ast
import builtins
import inspect
import shutil
import sys
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

Definition = ast.ClassDef | ast.FunctionDef
DECORATORS = ("described_by", "list_losses")


class Sources:
    """The modules of the package, and stand-ins for what they define."""

    def __init__(self, folder: Path) -> None:
        # without the finder of an editable installation, which would take the modules from there, and build it
        sys.meta_path[:] = [finder for finder in sys.meta_path if isinstance(finder, type)]
        package = sys.modules["onlinebregman"] = types.ModuleType("onlinebregman")  # without running its __init__.py
        package.__path__ = [str(folder)]
        from onlinebregman._online.docs import DocumentedMixin, described_by
        from onlinebregman.losses._base import list_losses

        self.real = {"DocumentedMixin": DocumentedMixin, "described_by": described_by, "list_losses": list_losses}
        self.defined: dict[Definition, Any] = {}
        self.trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in python_files(folder)}

    def filled(self, path: Path) -> str:
        """The text of a file with complete docstrings."""
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        for node, doc in reversed([*self.changed(path, self.trees[path].body)]):
            quoted = node.body[0]
            first, indent = lines[quoted.lineno - 1], " " * quoted.col_offset
            quotes = first[quoted.col_offset :].partition('"""')[0] + '"""'
            text = textwrap.indent(doc if quotes[0] in "rR" else doc.replace("\\", "\\\\"), indent).lstrip()
            below = f"\n{indent}" if "\n" in doc else ""
            lines[quoted.lineno - 1 : quoted.end_lineno] = [f'{indent}{quotes}{text}{below}"""\n']
        return "".join(lines)

    def changed(self, path: Path, body: list[ast.stmt]) -> Iterator[tuple[Definition, str]]:
        """Definitions whose docstrings differ from those in the source, in its order, and these docstrings."""
        for node in body:
            if not isinstance(node, Definition):
                continue
            if not isinstance(node, ast.ClassDef) and not any(_is_ours(decorator) for decorator in node.decorator_list):
                continue
            found = self.define(path, node)
            defined: list[tuple[Definition, Any]] = [(node, found)]
            if isinstance(node, ast.ClassDef):
                defined += [(m, vars(found).get(m.name)) for m in node.body if isinstance(m, Definition)]
            for each, value in defined:
                doc = getattr(value, "__doc__", None)
                if doc and ast.get_docstring(each) not in (None, inspect.cleandoc(doc)):
                    yield each, inspect.cleandoc(doc)

    def define(self, path: Path, node: Definition) -> Any:
        """A class or function with the name, bases, signature and docstrings of a definition, and its decorators."""
        if node in self.defined:
            return self.defined[node]
        if isinstance(node, ast.ClassDef):
            bases = tuple(b for b in (self.find(path, base) for base in node.bases) if isinstance(b, type))
            functions = (m for m in node.body if isinstance(m, ast.FunctionDef) and m.name != "__init_subclass__")
            members = {m.name: self.define(path, m) for m in functions} | self.fields(node)
            value = types.new_class(
                node.name, bases, exec_body=lambda ns: ns.update(members, __doc__=ast.get_docstring(node))
            )
        else:
            value = self.function(path, node)
        for decorator in reversed(node.decorator_list):
            if not _is_ours(decorator):
                continue
            if isinstance(decorator, ast.Call):
                fill = self.find(path, decorator.func)(*(self.find(path, source) for source in decorator.args))
            else:
                fill = self.find(path, decorator)
            value = fill(value)
        self.defined[node] = value
        return value

    def function(self, path: Path, node: ast.FunctionDef) -> Any:
        """A function without a body; properties are not filled in."""
        if any(getattr(d, "id", None) == "property" for d in node.decorator_list):
            return property(doc=ast.get_docstring(node))
        defaults = [default for default in (*node.args.defaults, *node.args.kw_defaults) if default is not None]
        names = {each for default in defaults for each in ast.walk(default) if isinstance(each, ast.Name)}
        known = {each.id: self.find(path, each) for each in names if not hasattr(builtins, each.id)}
        plain = f"from __future__ import annotations\ndef {node.name}({ast.unparse(node.args)}): pass"
        exec(plain, known)  # in which annotations are not evaluated
        known[node.name].__doc__ = ast.get_docstring(node)
        return known[node.name]

    @staticmethod
    def fields(node: ast.ClassDef) -> dict[str, Any]:
        """The fields of a dataclass that have defaults."""
        if not any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
            return {}
        declared = {ast.unparse(n.target): n.value for n in node.body if isinstance(n, ast.AnnAssign)}
        literals = {name: value for name, value in declared.items() if isinstance(value, ast.Constant | ast.Tuple)}
        return {name: ast.literal_eval(value) for name, value in literals.items()}

    def find(self, path: Path, node: ast.expr) -> Any:
        """What a name stands for in a module, if the package defines it; None otherwise."""
        name = getattr(node, "id", None)
        if name in self.real:
            return self.real[name]
        for each in self.trees[path].body:
            if isinstance(each, Definition) and each.name == name:
                return self.define(path, each)
            if isinstance(each, ast.Assign) and getattr(each.targets[0], "id", None) == name:
                return ast.literal_eval(each.value) if isinstance(each.value, ast.Constant) else None
            if isinstance(each, ast.Import) and name == "np" == each.names[0].asname:
                return np  # of defaults such as np.inf
            if isinstance(each, ast.ImportFrom) and each.level:
                for alias in each.names:
                    if name == (alias.asname or alias.name):
                        above = path.parents[each.level - 1].joinpath(*(each.module or "").split("."))
                        files = (above.with_suffix(".py"), above / "__init__.py")
                        return next((self.find(f, ast.Name(alias.name)) for f in files if f in self.trees), None)
        return None


def _is_ours(decorator: ast.expr) -> bool:
    """Whether it is one of `DECORATORS`."""
    return getattr(getattr(decorator, "func", decorator), "id", None) in DECORATORS


def python_files(folder: Path) -> list[Path]:
    """The files of the package, apart from those of the kernels, and from this one."""
    return sorted({*folder.rglob("*.py")} - {*folder.glob("_kernels/**/*.py"), Path(__file__).resolve()})


def main(folder: str, target: str = "") -> None:
    """Write the files to the target, or list them if there is none."""
    root = Path(folder).resolve()
    if not target:
        return print(*python_files(root), sep="\n")
    shutil.rmtree(target, ignore_errors=True)
    sources = Sources(root)
    for path in sources.trees:
        copy = Path(target) / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(sources.filled(path), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
