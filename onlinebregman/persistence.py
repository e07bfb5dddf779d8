"""Model files of skops, which contain numbers and names: loading executes no code from the file, and saving is atomic.

A file is a ZIP archive of `schema.json`, the tree of objects, and of their arrays. An object is written as its class
and the arguments of its constructor (as in its pickles), or its attributes. On loading, only the classes in `TRUSTED`
are looked up, those of scikit-learn and NumPy that skops itself trusts, and those that the reader lists.
"""

from __future__ import annotations

import errno
import io
import os
import pickle
import re
import secrets
import sys
import zipfile
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from . import pipeline  # noqa: F401  # the one of these packages that is not imported with the package itself

__all__ = ["TRUSTED", "load_model", "save_model"]

_OF_MODELS = re.compile(
    r"onlinebregman\.(_kernels|_online|constraints|density|divergences|experts|kernel_learning|linear_model|losses|"
    r"metric_learning|model_selection|parameter_free|penalties|pipeline|preprocessing|schedules)\b"
)
_OTHERS = {  # they only keep numbers and each other
    "builtins": "frozenset",
    "numpy": "dtype",
    "scipy.sparse._csr": "csr_matrix",
    "sklearn._loss.loss": "HalfTweedieLoss HalfTweedieLossIdentity",
    "sklearn.calibration": "_CalibratedClassifier _SigmoidCalibration",
    "sklearn.gaussian_process.kernels": "CompoundKernel ConstantKernel DotProduct ExpSineSquared Exponentiation Matern "
    "PairwiseKernel Product RBF RationalQuadratic Sum WhiteKernel",
    "sklearn.neural_network._stochastic_optimizers": "AdamOptimizer SGDOptimizer",
}


def _own() -> list[str]:
    """The names of the classes in the packages of which models consist; of compiled ones, those that can be saved."""
    modules = [(name, module) for name, module in sorted(sys.modules.items()) if _OF_MODELS.match(name)]
    return [
        f"{name}.{cls.__name__}"
        for name, module in modules
        for cls in vars(module).values()
        if isinstance(cls, type) and cls.__module__ == name
        if "._kernels." not in name or cls.__reduce__ is not object.__reduce__
    ]


#: The names of all classes that model files may contain, besides those that skops trusts.
TRUSTED = (
    f"{__name__}.Pairs",
    *_own(),
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
    skops, pickled = _skops(), io.BytesIO()
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
    skops = _skops()
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


class Pairs:
    """A dictionary in files, which can only have text or whole numbers as keys: when it is made, it is one."""

    pairs: list[tuple[Any, Any]]

    def __new__(cls, pairs: Iterable[tuple[Any, Any]]) -> Any:
        return dict(pairs)

    def __reduce__(self) -> tuple[Any, ...]:
        return Pairs, (self.pairs,)


class _Writer(pickle.Pickler):
    """Pickles a model for `_Reader`, which makes of it what skops can write without losing anything."""

    def reducer_override(self, value: Any) -> Any:
        """Memory maps become arrays in memory."""
        return (np.array, (np.asarray(value),)) if type(value) is np.memmap else NotImplemented

    def persistent_id(self, value: Any) -> list[tuple[Any, Any]] | None:
        if isinstance(value, type) and value.__name__ != value.__qualname__:
            raise TypeError(f"the class {value.__qualname__} must be defined at the top of a module")
        if type(value) is dict and {type(key) for key in value} not in (set(), {str}, {int}):
            return list(value.items())
        return None


class _Reader(pickle.Unpickler):
    def persistent_load(self, pid: Any) -> Pairs:
        made: Pairs = object.__new__(Pairs)
        made.pairs = pid
        return made


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError('Model files require the package skops: pip install "onlinebregman[files]"') from error
    return skops.io


def _why(data: bytes) -> str:
    """Why a file cannot be read."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            old, written_by = "model.json" in archive.namelist(), archive.comment.decode()
    except Exception:
        old, written_by = False, ""
    own = version(__package__)
    if old or (written_by and written_by != own):
        writer = written_by or "0.2 or before"
        return f"was written by onlinebregman {writer}, and {own} cannot read it: use that version, or learn again"
    return "is not a model, or damaged"
