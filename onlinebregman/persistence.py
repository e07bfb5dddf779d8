"""Model files of skops, which contain numbers and names: loading executes no code from the file, and saving is atomic.

A file is a ZIP archive of `schema.json`, the tree of objects, and of their arrays. An object is written as its class
and the arguments of its constructor (as in its pickles), or its attributes; compiled ones together, see `Made`, as
skops takes minutes for a tree of 10^5 objects. On loading, only the classes in `TRUSTED` are looked up, those of
scikit-learn and NumPy that skops itself trusts, and those that the reader lists.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import pickle
import re
import secrets
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from . import pipeline  # noqa: F401  # the one of these packages that is not imported with the package itself
from ._online.containers import needed

__all__ = ["TRUSTED", "load_model", "save_model"]

_OF_MODELS = re.compile(
    r"onlinebregman\.(_kernels|_online|constraints|density|divergences|experts|kernel_learning|linear_model|losses|"
    r"metric_learning|model_selection|parameter_free|penalties|pipeline|preprocessing|schedules)\b"
)
_OTHERS = {  # they only keep numbers and each other
    "builtins": "dict frozenset",
    "numpy": "dtype",
    "scipy.sparse._csr": "csr_matrix",
    "sklearn._loss.loss": "HalfTweedieLoss HalfTweedieLossIdentity",
    "sklearn.calibration": "_CalibratedClassifier _SigmoidCalibration",
    "sklearn.gaussian_process.kernels": "CompoundKernel ConstantKernel DotProduct ExpSineSquared Exponentiation Matern "
    "PairwiseKernel Product RBF RationalQuadratic Sum WhiteKernel",
    "sklearn.neural_network._stochastic_optimizers": "AdamOptimizer SGDOptimizer",
}


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__name__}"


# The classes in the packages of which models consist; of compiled ones, those that can be saved
_OWN = {
    _name(cls): cls
    for name, module in sorted(sys.modules.items())
    if _OF_MODELS.match(name)
    for cls in vars(module).values()
    if isinstance(cls, type) and cls.__module__ == name
    if "._kernels." not in name or cls.__reduce__ is not object.__reduce__
}
_COMPILED = {name: cls for name, cls in _OWN.items() if "._kernels." in name}

#: The names of all classes that model files may contain, besides those that skops trusts.
TRUSTED = (
    f"{__name__}.Made",
    *_OWN,
    *(f"{module}.{name}" for module, names in _OTHERS.items() for name in names.split()),
)


def save_model(estimator: BaseEstimator, path: str | os.PathLike[str], *, extra: dict[str, Any] | None = None) -> None:
    """Write a model to a file of skops, which contains arrays and JSON, but no code; requires the package skops.

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
    ImportError
        If skops is not installed.
    TypeError
        If the model contains something that files cannot keep, such as a function without a name or an open file.

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
    skops, pickled = needed("skops.io", "A model file"), io.BytesIO()
    try:
        _Writer(pickled, pickle.HIGHEST_PROTOCOL).dump(estimator if extra is None else (estimator, extra))
        pickled.seek(0)
        data = skops.dumps(_Reader(pickled).load(), compression=zipfile.ZIP_DEFLATED)
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        raise TypeError(f"{type(estimator).__name__} cannot be saved as numbers and names: {error}") from error
    file = io.BytesIO(data)
    with zipfile.ZipFile(file, "a") as archive:
        archive.comment = version(__package__).encode()
    write_atomically(Path(os.path.realpath(path)), file.getbuffer())  # of what a link is to


def load_model(path: str | os.PathLike[str], *, trusted: Iterable[type | str] = (), return_extra: bool = False) -> Any:
    """Read a model that `save_model` wrote; requires the package skops.

    Parameters
    ----------
    path : str or path
        The file.
    trusted : iterable of classes or names, default=()
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
    ImportError
        If skops is not installed.
    ValueError
        If the file is damaged, of another version of this package, or names a class that is not trusted.

    Notes
    -----
    Accidental damage is detected by checksums. A maliciously crafted file with valid checksums cannot execute code, and
    compiled code checks whatever sizes or indexes its arrays, but its numbers can be arbitrary: only read files from
    sources that you trust. `skops.io.load` reads the same files, with `trusted=onlinebregman.persistence.TRUSTED`.

    Examples
    --------
    See `save_model`.
    """
    skops = needed("skops.io", "A model file")
    data = Path(path).read_bytes()
    try:
        found = skops.loads(data, trusted=[*TRUSTED, *trusted])
    except skops.exceptions.UntrustedTypesFoundException as error:
        raise ValueError(f"{path}: {error} If you trust them, add them to `trusted`.") from error
    except Exception as error:  # a damaged archive can raise anything
        raise ValueError(f"{path} {_why(data)} ({error!r}).") from error
    model, extra = found if isinstance(found, tuple) else (found, None)
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
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such folder", str(path.parent))
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


class Made:
    """An object in files by what makes it: the compiled objects of a model and the number of one of them, or a class.

    The class is `list`, with all compiled objects as one text and an array for each dtype, as there are many, or
    `dict`, as dictionaries in files can only have text or whole numbers as keys.
    """

    of: tuple[Any, ...]

    def __new__(cls, kind: Any, *arguments: Any) -> Any:
        if isinstance(kind, list):
            return kind[arguments[0]]
        return _unpacked(*arguments) if kind is list else dict(*arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return Made, self.of


def _unpacked(text: np.ndarray, arrays: list[np.ndarray], others: list[Any]) -> list[Any]:
    """Objects, each after those of which it consists; the arrays have the numbers of all in the order of the text."""
    rest, made = {values.dtype.str: values for values in arrays}, list[Any]()
    kinds: dict[str, Any] = {"tuple": tuple, "dict": dict, "part": made.__getitem__, "other": others.__getitem__}

    def make(written: dict[str, Any]) -> Any:
        ((kind, value),) = written.items()
        if kind in rest:
            values, rest[kind] = np.split(rest[kind], [math.prod(value)])
            return values.reshape(value).copy()
        return kinds[kind](value) if kind in kinds else made.append(_COMPILED[kind](*value))

    json.loads(text.tobytes(), object_hook=make)
    return made


class _Writer(pickle.Pickler):
    """Pickles a model for `_Reader`, which makes of it what skops can write without losing anything."""

    def reducer_override(self, value: Any) -> Any:
        """Memory maps become arrays in memory, and compiled objects parts."""
        if type(value) is np.memmap:
            return np.array, (np.asarray(value),)
        if _name(type(value)) in _COMPILED:
            return Made, (type(value), *value.__reduce__()[1])
        return NotImplemented

    def persistent_id(self, value: Any) -> list[tuple[Any, Any]] | None:
        if isinstance(value, type) and value.__name__ != value.__qualname__:
            raise TypeError(f"the class {value.__qualname__} must be defined at the top of a module")
        if type(value) is dict and {type(key) for key in value} not in (set(), {str}, {int}):
            return list(value.items())
        return None


class _Reader(pickle.Unpickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.parts, self.texts = object.__new__(Made), list[Any]()
        self.arrays, self.others = list[np.ndarray](), list[Any]()

    def load(self) -> Any:
        """The model, whose compiled objects are in `parts`."""
        model, groups = super().load(), defaultdict[str, list[np.ndarray]](list)
        for values in self.arrays:
            groups[values.dtype.str].append(values.ravel())
        text = np.frombuffer(json.dumps(self.texts).encode(), np.uint8)
        self.parts.of = list, text, [np.concatenate(group) for group in groups.values()], self.others
        return model

    def find_class(self, module: str, name: str) -> Any:
        return self.part if (module, name) == (__name__, "Made") else super().find_class(module, name)

    def part(self, kind: type, *arguments: Any) -> Made:
        self.texts.append({_name(kind): self.written(list(arguments))})
        return _made(self.parts, len(self.texts) - 1)

    def persistent_load(self, pid: Any) -> Made:
        return _made(dict, pid)

    def written(self, value: Any) -> Any:
        kind = type(value)
        if kind in (str, float, int, bool, NoneType):
            return value
        if kind is dict:  # whose keys are text or whole numbers, or it would be `Made`
            return {"dict": [[key, self.written(each)] for key, each in value.items()]}
        if kind in (tuple, list):
            written = [self.written(each) for each in value]
            return written if kind is list else {"tuple": written}
        if kind is Made and value.of[0] is self.parts:
            return {"part": value.of[1]}
        if kind is np.ndarray and value.dtype.kind in "biuf" and value.flags.c_contiguous:
            self.arrays.append(value)
            return {value.dtype.str: value.shape}
        self.others.append(value)
        return {"other": len(self.others) - 1}


def _made(*of: Any) -> Made:
    made = object.__new__(Made)
    made.of = of
    return made


def _why(data: bytes) -> str:
    """Why a file cannot be read."""
    own = written_by = version(__package__)
    with suppress(Exception), zipfile.ZipFile(io.BytesIO(data)) as archive:
        written_by = "0.2 or before" if "model.json" in archive.namelist() else archive.comment.decode() or own
    if written_by != own:
        return f"was written by onlinebregman {written_by}, and {own} cannot read it: use that version, or learn again"
    return "is not a model, or damaged"
