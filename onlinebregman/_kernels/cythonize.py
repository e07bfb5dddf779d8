"""Translate the .pyx files that have changed, or that read a declaration that has, to C; called by the build.

One process a core translates its share of the files, in a quarter of the time that one process a file takes.
"""

import multiprocessing
import os
import sys
from pathlib import Path

from Cython.Build.Dependencies import create_dependency_tree
from Cython.Compiler import Options
from Cython.Compiler.Main import compile_multiple
from Cython.Compiler.Options import CompilationOptions

DIRECTIVES = {
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "freethreading_compatible": True,
}


def translate(sources: list[str], folder: Path) -> int:
    """Translate these files into the folder; the number of errors, of which the first ends it."""
    Options.fast_fail = True
    options = CompilationOptions(
        language_level=3,
        compiler_directives=DIRECTIVES,
        include_path=["."],
        output_file=str(folder),
        shared_utility_qualified_name="onlinebregman._kernels._cyutility",
    )
    return compile_multiple(sources, options).num_errors


def is_stale(source: str, output: Path) -> bool:
    """Whether the output is older than the source, this script, or a file of the package that the source reads."""
    read = {source, __file__, *create_dependency_tree().all_dependencies(source)}
    return not output.exists() or output.stat().st_mtime <= max(os.stat(path).st_mtime for path in read)


def main(root: str, folder: str, *sources: str) -> int:
    into, paths = Path(folder).resolve(), [os.path.relpath(Path(source).resolve(), root) for source in sources]
    os.chdir(root)
    stale = [path for path in paths if is_stale(path, into / Path(path).with_suffix(".c").name)]
    # the largest first, dealt out in turn, so that all processes have about as much to do
    stale.sort(key=lambda path: -os.stat(path).st_size)
    n = min(len(stale), os.cpu_count() or 1)
    with multiprocessing.Pool(max(n, 1)) as pool:
        errors = pool.starmap(translate, [(stale[i::n], into) for i in range(n)])
    return int(any(errors))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
