"""The C helpers give the same digits on every instruction set for which they are compiled."""

import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

OPS = Path(__file__).parents[3] / "onlinebregman" / "_kernels" / "ops"
HEADERS = sorted(OPS.glob("*.h"))
FUNCTION = re.compile(
    r"^(?:(?:OB_CLONES )?static (?:inline )?|OB_WIDE\()(double|int|void|uint32_t|int64_t|ptrdiff_t)(?: |, )"
    r"(ob_\w+)(?:\(|, \(.*?\),\s)([^()]*)\) \{",
    re.MULTILINE,
)
LEVELS = {"x86-64-v2": (), "x86-64-v3": ("avx2", "fma"), "x86-64-v4": ("avx512f", "avx512dq", "avx512vl")}
LEVELS["x86-64"] = ()  # without vectors of GNU C, as for other compilers
C_ONLY = "".join(f"#include <{name}.h>\n" for name in ("float", "math", "stddef", "stdint", "stdlib", "string"))
C_ONLY += "#undef __GNUC__\n"
# They compute groups of eight, the last one with what follows the values; without vectors, groups are of one
GROUPED = {"ob_secular", "ob_mean_square"}
pytestmark = pytest.mark.exhaustive


class Softmax(ctypes.Structure):
    """`ob_softmax` of n classes, padded to whole registers."""

    _fields_ = [(name, ctypes.c_ssize_t) for name in ("classes", "n", "y")] + [("e", ctypes.c_void_p)]
    _fields_ += [(name, ctypes.c_double) for name in ("largest", "rest", "total")]


class Quantile(ctypes.Structure):
    """`ob_quantile` in mid-stream."""

    _fields_ = [(name, ctypes.c_double) for name in ("depth", "slope", "trend")]


class Robust(ctypes.Structure):
    """`ob_robust`."""

    _fields_ = [(name, ctypes.c_double) for name in ("n", "moves", "origin", "mean", "deviation")]
    _fields_ += [(name, ctypes.c_double) for name in ("usual", "votes", "lo", "hi")] + [("first", ctypes.c_double * 20)]


RETURNED = {
    **{"double": ctypes.c_double, "int": ctypes.c_int, "uint32_t": ctypes.c_uint32, "int64_t": ctypes.c_int64},
    **{"ptrdiff_t": ctypes.c_ssize_t, "void": None},
}
LENGTHS = [0, 1, 5, 8, 17, 61]


def functions():
    """(result, name, parameters) of every helper in the headers."""
    for header in HEADERS:
        for result, name, parameters in FUNCTION.findall(header.read_text()):
            yield result, name, [" ".join(p.split()).replace("restrict ", "") for p in parameters.split(",")]


def wrappers():
    """C code that makes every helper callable from outside."""
    lines = [f'#include "{header.name}"' for header in HEADERS]
    for result, name, parameters in functions():
        names = ", ".join(re.findall(r"\w+$", p)[0] for p in parameters)
        lines.append(
            f"{result} open_{name}({', '.join(parameters)}) {{ {'return ' * (result != 'void')}{name}({names}); }}"
        )
    return "\n".join(lines)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """The helpers compiled for every instruction set that this processor has."""
    if not sys.platform.startswith("linux") or shutil.which("gcc") is None:
        pytest.skip("the helpers have clones with gcc on Linux only")
    flags = Path("/proc/cpuinfo").read_text().split()
    folder = tmp_path_factory.mktemp("levels")
    found = {}
    for level, needs in LEVELS.items():
        if not set(needs) <= set(flags):
            continue
        library = folder / f"{level}.so"
        (folder / "open.c").write_text(C_ONLY * (level == "x86-64") + wrappers())
        command = ["gcc", "-O3", "-std=gnu11", "-fPIC", "-shared", f"-march={level}", "-DOB_CLONES=", f"-I{OPS}"]
        command += ["-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-w"]
        subprocess.run([*command, str(folder / "open.c"), "-o", str(library), "-lm"], check=True)
        found[level] = ctypes.CDLL(str(library))
    if len(found) < 2:
        pytest.skip("this processor has one of the instruction sets only")
    return found


def call(library, result, name, parameters, n, seed):
    """The result of a helper, and all arrays after the call; the same random arguments for the same seed."""
    rng = np.random.default_rng(seed)
    arguments, arrays = [], []
    for parameter in parameters:
        kind = parameter.rsplit(" ", 1)[0] + " *" * parameter.count("*")
        if "ob_softmax" in parameter:
            arrays.append(np.exp(-np.arange(n + 9.0)))
            e = arrays[-1].ctypes.data
            arrays.append(Softmax(n, -(-n // 8) * 8, 0, e, 0.5, arrays[-1][1:].sum(), arrays[-1].sum()))
            arguments.append(ctypes.byref(arrays[-1]))
        elif "ob_quantile" in parameter:
            arrays.append(Quantile(*rng.normal(size=3)))
            arguments.append(ctypes.byref(arrays[-1]))
        elif "ob_robust" in parameter:
            n = min(n, 20)  # numbers that it holds
            first = np.exp(rng.normal(size=20)).tolist()
            arrays.append(Robust(n, n, first[0], 0.5, 0.7, first[1], 1.0, -3.0, 4.0, (ctypes.c_double * 20)(*first)))
            arguments.append(ctypes.byref(arrays[-1]))
        elif "*" in parameter:
            types = {
                "char": np.float64,  # bytes of numbers of kind 'd'
                "int": np.intc,
                "double": np.float64,
                "float": np.float32,
                "int32_t": np.int32,
                "int64_t": np.int64,
                "ptrdiff_t": np.intp,
            }
            dtype = types[next(word for word in parameter.replace("*", " ").split() if word != "const")]
            size = 16 * (n + 4) ** 2  # also for helpers of matrices
            if np.dtype(dtype).kind == "i":
                values = np.arange(size) % max(n, 1)
            else:
                values = np.exp(rng.normal(size=size)) * np.where(rng.uniform(size=size) < 0.01, 1e-3, 1.0)
            array = np.ascontiguousarray(values, dtype=dtype)
            arrays.append(array)
            arguments.append(array.ctypes.data_as(ctypes.c_void_p))
        elif parameter in ("char kind", "ptrdiff_t step"):
            arguments.append(ctypes.c_char(b"d") if kind.startswith("char") else ctypes.c_ssize_t(8 * (n + 1)))
        elif kind.startswith("double"):
            arguments.append(ctypes.c_double(rng.uniform(0.1, 1.0)))
        elif kind.startswith(("ptrdiff_t", "int")):
            arguments.append(ctypes.c_ssize_t(n))
        else:
            raise NotImplementedError(f"{name} has a parameter {parameter!r}; say here what to pass")
    function = getattr(library, f"open_{name}")
    function.restype = RETURNED[result]
    returned = function(*arguments)
    for array in arrays:
        if isinstance(array, Softmax):
            array.e = None  # an address
    return (returned.hex() if result == "double" else returned), [bytes(array) for array in arrays]


def test_all_helpers_are_found():
    text = "".join(header.read_text() for header in HEADERS)
    assert {name for _, name, _ in functions()} == set(
        re.findall(r"^(?:(?:OB_CLONES )?static .*?(?=ob_\w+\()|OB_WIDE\(\w+, )(ob_\w+)", text, re.MULTILINE)
    )


@pytest.mark.parametrize("function", list(functions()), ids=lambda function: function[1])
def test_a_helper_gives_the_same_digits_on_every_instruction_set(libraries, function):
    base, *others = (found for level, found in libraries.items() if level != "x86-64" or function[1] not in GROUPED)
    for n in LENGTHS:
        for seed in range(5):
            expected = call(base, *function, n, seed)
            for other in others:
                assert call(other, *function, n, seed) == expected, f"n = {n}"
