"""Model files that contain only numbers and names: loading executes no code from the file, and saving is atomic.

A file is a ZIP archive of `model.json`, the tree of objects, and of `0.npy`, `1.npy` and so on, its arrays. An object
is written as its decomposition by Python's pickle protocol (`__reduce_ex__`): a class, the arguments of its call, and
its state. Only classes of this package, scikit-learn's estimators and their parts, and those that the reader lists are
looked up on loading; NumPy's types of numbers and Python's are values only.
"""

from __future__ import annotations

import copyreg
import importlib
import inspect
import io
import json
import math
import os
import re
import secrets
import sys
import zipfile
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from ._sklearn_compat import is_part, module_of

__all__ = ["load_model", "save_model"]

FORMAT = 1
_NEW = getattr(copyreg, "__newobj__")  # noqa: B009  # `object.__reduce_ex__` returns it: cls.__new__(cls, *args)
_SPARSE = (sparse.csr_array, sparse.csr_matrix)
_GENERATORS = (np.random.Generator, np.random.RandomState)
_BIT_GENERATORS = {
    cls.__name__: cls
    for cls in (np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64)
}


def save_model(estimator: BaseEstimator, path: str | os.PathLike[str], *, extra: dict[str, Any] | None = None) -> None:
    """Write a model to a file that contains arrays and JSON, but no code.

    The file is written under a temporary name, flushed to disk and then renamed: after a crash the file is either the
    complete old one or the complete new one. The model that `load_model` returns continues with bitwise the same
    numbers.

    Parameters
    ----------
    estimator : estimator object
        An estimator of this package, fitted or not, with its components: scikit-learn's estimators, numbers, text,
        arrays. Your own losses, divergences and estimators can also be written; reading them requires `trusted`.
    path : str or path
        The file.
    extra : dict or None, default=None
        Additional data of the same kinds, for instance the position in the stream.

    Raises
    ------
    TypeError
        If the model contains something other than numbers, text, arrays and objects of classes, such as a function or
        an open file.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import ImplicitGDRegressor
    >>> from onlinebregman.persistence import load_model, save_model
    >>> model = ImplicitGDRegressor().partial_fit([[1.0, 2.0]], [3.0])
    >>> save_model(model, "model.zip")
    >>> again = load_model("model.zip")
    >>> np.array_equal(again.coef_, model.coef_), again.t_
    (True, 1)
    """
    writer = _Writer()
    tree = {
        "format": FORMAT,
        "onlinebregman": version("onlinebregman"),
        "model": writer.node(estimator, type(estimator).__name__),
        "extra": writer.node(extra, "extra"),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("model.json", json.dumps(tree, allow_nan=False))
        for number, array in enumerate(writer.arrays):
            with archive.open(f"{number}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    write_atomically(Path(path), buffer.getbuffer())


def load_model(path: str | os.PathLike[str], *, trusted: Iterable[type] = (), return_extra: bool = False) -> Any:
    """Read a model that `save_model` wrote.

    Parameters
    ----------
    path : str or path
        The file.
    trusted : iterable of classes, default=()
        Classes that the model may contain, other than those of this package, scikit-learn's estimators, their losses,
        optimisers and kernels, and types of numbers and text: your own losses, divergences or estimators.
    return_extra : bool, default=False
        Also return what was saved as `extra`.

    Returns
    -------
    estimator : estimator object
        The model.
    extra : dict or None
        What was saved as `extra`; only if `return_extra`.

    Raises
    ------
    ValueError
        If the file is damaged, of another version of the format, or names a class that is not trusted.

    Notes
    -----
    Accidental damage is detected by checksums. A maliciously crafted file with valid checksums cannot execute code, and
    compiled code checks the lengths of its arrays, but its numbers can be arbitrary: only read files from sources that
    you trust.

    Examples
    --------
    See `save_model`.
    """
    data = Path(path).read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            tree = json.loads(archive.read("model.json"))
            arrays = {name: archive.read(name) for name in archive.namelist() if name != "model.json"}
        written_as = tree["format"]
    except Exception as error:  # a damaged archive can raise anything
        raise ValueError(f"{path} is not a model, or damaged: {error!r}.") from error
    if written_as != FORMAT:
        raise ValueError(f"{path} is of format {written_as}; this version reads format {FORMAT}.")
    reader = _Reader(arrays, trusted)
    try:
        model, extra = reader.object(tree["model"]), reader.object(tree["extra"])
    except _NotTrustedError:
        raise
    except Exception as error:  # and so can its contents
        written_by, own = tree.get("onlinebregman"), version("onlinebregman")
        if written_by != own:
            raise ValueError(
                f"{path} was written by onlinebregman {written_by}, and cannot be read by {own} ({error!r}): read it "
                "with that version, or learn again."
            ) from error
        raise ValueError(f"{path} is damaged: {error!r}.") from error
    return (model, extra) if return_extra else model


def full_parameters(estimator: BaseEstimator) -> dict[str, str]:
    """The description of all parameters in full; the repr of the estimator is abbreviated."""
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        return {name: description(value) for name, value in estimator.get_params().items()}


def description(value: Any) -> str:
    """The repr of an object, without addresses, such as of random generators, which are others in the next run."""
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(value))


def write_atomically(path: Path, data: bytes | memoryview) -> None:
    """Write a file so that it has either its old contents or these bytes, but nothing in between."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if hasattr(os, "O_DIRECTORY"):  # also flush the folder, which holds the name
        folder = os.open(path.parent, os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class _NotTrustedError(ValueError):
    """A class that may not be instantiated."""


class _Writer:
    """Objects as JSON; an object that occurs again is a reference to its first occurrence."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []  # keeps objects alive, so that their ids stay unique

    def node(self, value: Any, where: str) -> Any:
        if value is None or type(value) in (bool, str):
            return value
        if type(value) is int:
            return value if abs(value) < 2**53 else {"int": str(value)}
        if type(value) is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if id(value) in self._numbers:
            return {"again": self._numbers[id(value)]}
        number = self._numbers[id(value)] = len(self._alive)
        self._alive.append(value)
        return {"number": number, **self._described(value, where)}

    def _described(self, value: Any, where: str) -> dict[str, Any]:
        def nodes(values: Iterable[Any]) -> list[Any]:
            return [self.node(item, f"{where}[{i}]") for i, item in enumerate(values)]

        if type(value) is np.memmap:  # of a model that joblib has loaded with mmap_mode
            value = np.asarray(value)
        if type(value) in (list, tuple, set, frozenset):
            return {type(value).__name__: nodes(value)}
        if type(value) is dict:
            return {"dict": [[self.node(k, where), self.node(v, f"{where}.{k}")] for k, v in value.items()]}
        if type(value) is np.ndarray and value.dtype.kind == "O":
            return {"objects": nodes(value.ravel().tolist()), "shape": value.shape}
        if type(value) is np.ndarray and value.dtype.fields is None:
            return {"array": self._kept(value), "writeable": bool(value.flags.writeable)}
        if isinstance(value, np.generic) and value.dtype.fields is None and value.dtype.kind != "O":
            return {"scalar": self._kept(np.asarray(value))}
        if isinstance(value, np.dtype) and value.fields is None:
            return {"dtype": value.str}
        if type(value) in _SPARSE:
            parts = nodes((value.data, value.indices, value.indptr))
            return {"sparse": type(value).__name__, "parts": parts, "shape": value.shape}
        if type(value) in _GENERATORS:
            state = value.get_state(legacy=False) if type(value) is np.random.RandomState else value.bit_generator.state
            return {"random": type(value).__name__, "state": self.node(_to_python(state), where)}
        if type(value) is bytes:
            return {"bytes": value.hex()}
        if isinstance(value, type):
            return {"class": _name_of(value)}
        return self._object(value, where)

    def _object(self, value: Any, where: str) -> dict[str, Any]:
        reduced = None if inspect.isroutine(value) else value.__reduce_ex__(4)
        if not isinstance(reduced, tuple) or any(part is not None for part in reduced[3:]):
            raise TypeError(f"{where} is {value!r}, which cannot be saved as numbers and names; use joblib or pickle.")
        function, args, *state = reduced
        if function is _NEW:
            function, *args = args
            made = "new"
        elif isinstance(function, type):
            made = "call"
        else:
            raise TypeError(
                f"{where} is {value!r}, which only the function {function!r} can reconstruct; use joblib or pickle."
            )
        node = {made: _name_of(function), "args": [self.node(item, where) for item in args]}
        if state and state[0] is not None:
            node["state"] = self.node(state[0], where)
        return node

    def _kept(self, array: np.ndarray) -> int:
        self.arrays.append(array)
        return len(self.arrays) - 1


class _Reader:
    def __init__(self, arrays: dict[str, bytes], trusted: Iterable[type]) -> None:
        self._arrays = arrays
        self._objects: dict[int, Any] = {}  # by number
        self._trusted = {_name_of(cls): cls for cls in (slice, *trusted)}

    def object(self, node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        if "again" in node:
            return self._objects[node["again"]]
        if "int" in node or "float" in node:
            return int(node["int"]) if "int" in node else float(node["float"])
        made: Any
        if "list" in node:  # it may contain itself
            made = self._objects[node["number"]] = []
            made.extend(self._all(node["list"]))
        elif "dict" in node:
            made = self._objects[node["number"]] = {}
            made.update((self.object(key), self.object(value)) for key, value in node["dict"])
        elif "new" in node or "call" in node:
            made = self._object(node)
        else:
            made = self._objects[node["number"]] = self._value(node)
        return made

    def _value(self, node: dict[str, Any]) -> Any:
        for kind in (tuple, set, frozenset):
            if kind.__name__ in node:
                return kind(self._all(node[kind.__name__]))
        if "objects" in node:
            array = np.empty(len(node["objects"]), dtype=object)
            array[:] = self._all(node["objects"])
            return array.reshape(node["shape"])
        if "array" in node:
            array = self._array(node["array"])
            array.flags.writeable = node["writeable"]
            return array
        if "scalar" in node:
            return self._array(node["scalar"])[()]
        if "dtype" in node:
            return np.dtype(node["dtype"])
        if "bytes" in node:
            return bytes.fromhex(node["bytes"])
        if "sparse" in node:
            kind = next(cls for cls in _SPARSE if cls.__name__ == node["sparse"])
            return kind(tuple(self._all(node["parts"])), shape=tuple(node["shape"]))
        if "random" in node:
            return self._generator(node)
        return _SCALARS.get(node["class"]) or self._class(node["class"])

    def _object(self, node: dict[str, Any]) -> Any:
        cls = self._class(node["new"] if "new" in node else node["call"])
        if "new" in node and cls.__module__.startswith("onlinebregman._kernels"):
            raise ValueError(f"{_name_of(cls)} must be created by its constructor, which checks its arguments")
        args = self._all(node["args"])
        made = self._objects[node["number"]] = cls.__new__(cls, *args) if "new" in node else cls(*args)
        if "state" in node:
            state = self.object(node["state"])
            if hasattr(made, "__setstate__"):
                made.__setstate__(state)
            else:
                attributes, slots = state if isinstance(state, tuple) else (state, None)
                vars(made).update(attributes or {})
                for name, value in (slots or {}).items():
                    object.__setattr__(made, name, value)
        return made

    def _all(self, nodes: list[Any]) -> list[Any]:
        return [self.object(node) for node in nodes]

    def _array(self, number: int) -> np.ndarray:
        return np.lib.format.read_array(io.BytesIO(self._arrays[f"{number}.npy"]), allow_pickle=False)

    def _generator(self, node: dict[str, Any]) -> Any:
        state = self.object(node["state"])
        bits = _BIT_GENERATORS[state["bit_generator"]]()
        if node["random"] == "RandomState":
            made = np.random.RandomState(bits)
            made.set_state(state)
            return made
        bits.state = state
        return np.random.Generator(bits)

    def _class(self, name: str) -> type:
        """The class of this name, if it is trusted."""
        if name in self._trusted:
            return self._trusted[name]
        module, _, qualified = name.partition(":")
        found: Any = None
        if module.partition(".")[0] in ("onlinebregman", "sklearn"):
            found = importlib.import_module(module)
            for part in qualified.split("."):
                found = vars(found)[part]
        own = isinstance(found, type) and found.__module__.partition(".")[0] == "onlinebregman"
        if not own and not (isinstance(found, type) and (issubclass(found, BaseEstimator) or is_part(found))):
            raise _NotTrustedError(
                f"The model contains a {name}, which is not trusted; if you trust it, add it to `trusted`."
            )
        return found


def _name_of(cls: type) -> str:
    return f"{module_of(cls)}:{cls.__qualname__}"


# Types that are values, such as a dtype: objects of them are not made by a call.
_SCALARS = {
    _name_of(cls): cls
    for cls in (bool, float, int, str, *vars(np).values())
    if isinstance(cls, type) and issubclass(cls, (bool, float, int, str, np.generic))
}


def _to_python(state: Any) -> Any:
    """The state of a random generator, with NumPy scalars converted to Python numbers."""
    if isinstance(state, dict):
        return {key: _to_python(value) for key, value in state.items()}
    return state.item() if isinstance(state, np.generic) else state
