"""Checks of input that name the row, the value and the remedy."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y, validate_data

from .._kernels.learners.atomic import are_positive
from .._kernels.rows.arrays import Columns, all_finite
from .._kernels.rows.rows import in_order, open_rows
from .._sklearn_compat import Method
from .categories import check_no_text
from .containers import as_float, check_kind, columns_of_numbers, frame_of_arrow, is_missing, readable

FLOATS = (np.float64, np.float32)
_PAGES = "SC_PHYS_PAGES" in getattr(os, "sysconf_names", ()) and os.sysconf("SC_PHYS_PAGES")
MEMORY = float(_PAGES) * os.sysconf("SC_PAGE_SIZE") if _PAGES else np.inf  # bytes, of the machine
_NO_Y = object()  # the default of y; None is an error of the caller


class Overflow(ValueError):
    """Weights or losses that are not finite, in a model that diverges or on rows that are too large."""


def is_finite(values: np.ndarray) -> bool:
    """Whether all values are finite."""
    return all_finite(values) or bool(np.isfinite(values).all())


def first_true(mask: np.ndarray | np.bool_) -> tuple[int, ...] | None:
    """Index of the first value that is true; None if there is none."""
    return tuple(int(i) for i in np.argwhere(mask)[0]) if mask.any() else None


def _first_bad(values: np.ndarray, allow_nan: bool = False) -> tuple[int, ...] | None:
    """Index of the first value that is not finite, nor, with `allow_nan`, NaN; None if there is none."""
    if all_finite(values):  # one pass is enough in almost all cases
        return None
    return first_true(np.isinf(values) if allow_nan else ~np.isfinite(values))


def check_finite(X, name: str = "X", *, owner: Any = None) -> None:
    """Raise a ValueError that names the first row (and column) of X that is NaN or infinite.

    NaN in dense rows is a missing value if the estimator `owner` takes it, which those of experts are asked for.
    """
    if isinstance(X, np.ndarray) and all_finite(X):
        return
    allow_nan = getattr(owner, "_allow_nan", False)
    if isinstance(X, Columns):
        if all(_first_bad(column, allow_nan) is None for column in X.columns):
            return
        X = np.asarray(X)
    values = X.data if sparse.issparse(X) else X
    bad = _first_bad(values, allow_nan and not sparse.issparse(X))
    if bad is None:
        return
    value = "NaN" if np.isnan(values[bad]) else "infinity"
    if sparse.issparse(X):
        row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
        where = f"row {row}, column {int(X.indices[bad[0]])}"
    else:
        where = ", column ".join(f"row {i}" if number == 0 else str(i) for number, i in enumerate(bad[:2]))
    remedy = "Remove or impute such rows, for example with sklearn.impute.SimpleImputer."
    if name == "y":
        remedy = "Remove such rows."
    elif allow_nan:
        remedy = "Missing values may be NaN in dense rows." if value == "NaN" else "Give NaN for missing values."
    raise ValueError(f"Input {name} contains {value} ({where or 'a single number'}). {remedy}")


@contextmanager
def _finite_floats(values, name: str) -> Iterator[None]:
    """Context of a conversion to floats, in which an integer beyond the largest of them is infinite, an error."""
    try:
        yield
    except OverflowError:
        check_finite(np.vectorize(as_float, otypes=[np.float64])(np.asarray(values, dtype=object)), name)
        raise


def finite(what: str) -> Callable[[Method], Method]:
    """Decorator of methods that return a value for each row: one that is not finite is a ValueError naming its row."""

    def decorate(method: Method) -> Method:
        @wraps(method)
        def checked(self, *args, **kwargs):
            with np.errstate(over="ignore", invalid="ignore"):
                values = method(self, *args, **kwargs)
            bad = _first_bad(values)
            if bad is not None:
                raise not_finite(what, bad[0])
            return values

        return cast(Method, checked)

    return decorate


def too_large(name: str) -> ValueError:
    """The error for features up to a row, called `name`, whose deviation is not a finite number."""
    return ValueError(
        f"The means and deviations of the features of rows up to {name}, by which columns are standardised, are not "
        "finite. Scale features to below 1e300."
    )


def not_finite(what: str, row: int) -> ValueError:
    """The error for a row of which some value is not finite."""
    return ValueError(
        f"The {what} of row {row} is not finite in float64; remove the row, or scale the features as in the rows that "
        "were learned (sklearn.preprocessing.StandardScaler)."
    )


def a_number(bound: float) -> float:
    """A bound, which may be infinite; a ValueError if it is NaN, as its terms overflow."""
    if np.isnan(bound):
        raise ValueError("The bound for this comparator overflows; use a comparator with smaller weights.")
    return bound


def fitted(estimator, state):
    """The fitted state; NotFittedError, an AttributeError, if it is None, so that `hasattr` of attributes is False."""
    if state is None:
        raise NotFittedError(f"this {type(estimator).__name__} has not learned a row yet; call fit or partial_fit")
    return state


if TYPE_CHECKING:  # type checkers know properties by the name `property` alone
    from builtins import property as read_only
else:

    class read_only(property):
        """A property computed at each access; arrays are read-only, as changes to them would be lost."""

        def __get__(self, instance, owner=None):
            value = super().__get__(instance, owner)
            if isinstance(value, np.ndarray):
                value = value.view()
                value.flags.writeable = False
            return value


_SEEN: dict[int, tuple[np.ndarray, Any]] = {}  # names, by their ids, and the last columns of a frame with these


def _are_names(columns: Any, names: np.ndarray) -> bool:
    """Whether the columns of a frame have these names; slices of a frame share columns, whose names are read once."""
    _, seen = _SEEN.get(id(names)) or (names, type(columns)(names))
    alike = columns.equals(seen)
    if alike and columns is not seen:
        if len(_SEEN) > 64:
            _SEEN.clear()
        _SEEN[id(names)] = names, columns
    return alike


def rows_without_validation(estimator, X, any_layout: bool, reset: bool = False) -> Any:
    """Rows that validation would not change; None if they need validation, which takes longer than learning a row.

    These are arrays, and pandas' data frames of floating point numbers with the columns seen in `fit`. If `reset`, this
    is the first call, and these are arrays.
    """
    names, framed = None if reset else vars(estimator).get("feature_names_in_"), False
    if type(X) is np.ndarray:
        if names is not None:
            return None
    elif not reset and type(X).__name__ == "DataFrame" and type(X).__module__.partition(".")[0] == "pandas":
        columns, framed = X.columns, True
        numbered = names is None and columns.dtype.kind == "i"  # integers are not feature names
        if not numbered and not (names is not None and _are_names(columns, names)):
            return None
        separate = columns_of_numbers(X) if any_layout else None
        if separate is not None:
            return separate if X.shape[1] == estimator.n_features_in_ else None
        X = X.to_numpy()
    else:
        return None
    if type(X) is not np.ndarray or X.dtype not in FLOATS or X.ndim != 2 or not len(X):
        return None
    if X.shape[1] != (max(X.shape[1], 1) if reset else estimator.n_features_in_):
        return None
    if X.flags.aligned and (any_layout or X.flags.c_contiguous):
        return X
    return np.require(X, requirements="A" if any_layout else ["C", "A"]) if framed or any_layout else None


def opened(estimator, X) -> Any:
    """Rows as learners read them, whose names were compared; None if they need validation."""
    plain = rows_without_validation(estimator, X, any_layout=True)
    return None if plain is None else open_rows(plain)


def plain_vector(values, n: int, kinds: str) -> np.ndarray | None:
    """A vector of n values of these dtype kinds, aligned and contiguous; None if the values need validation."""
    if type(values) is list and all(type(value) in (int, float) for value in values):
        values = np.array(values)
    if type(values) is not np.ndarray or values.shape != (n,) or values.dtype.kind not in kinds:
        return None
    return np.require(values, None if "U" in kinds else np.float64, ["C", "A"])


def check_dense_rows(estimator, X, *, reset: bool) -> np.ndarray:
    """Rows as a C-contiguous float64 array, all finite."""
    return check_rows(estimator, X, reset=reset).astype(np.float64, copy=False)


def _validated(estimator, X, *targets, **options):
    """scikit-learn's `validate_data`, with an error that names text by row and column."""
    try:
        with _finite_floats(X, "X"):
            return validate_data(estimator, X, *targets, **options)
    except (TypeError, ValueError) as error:
        if "feature names" not in str(error):
            check_no_text(X)
        raise


def check_numbers(values, name: str, *, dtype=np.float64, **options) -> np.ndarray:
    """An aligned, C-contiguous array of numbers, by default of float64; not checked to be finite."""
    options |= {"dtype": dtype, "order": "C", "ensure_all_finite": False, "input_name": name}
    values = readable(values, name)
    with _finite_floats(values, name):
        values = check_array(values, **options)
    return np.require(values, requirements=["C", "A"])


def check_memory(model: Any, n_columns: int, n_scores: int, members: list[Any]) -> None:
    """MemoryError if the machine has no room for the numbers of a model's members, before others lose theirs."""
    needed, most = 0, 0
    for member in members:
        waves = getattr(member, "random_features", 0)  # whose frequencies are numbers for each column
        n, most = waves or n_columns, max(most, waves)
        needed += 8 * (getattr(member, "_matrices", 0) * n**2 + waves * n_columns + n * n_scores)
    if needed > MEMORY:
        raise MemoryError(
            f"{type(model).__name__} needs at least {needed / 2**30:,.1f} GiB for {n_columns:,} columns; this machine "
            f"has {MEMORY / 2**30:,.1f}. {'Set fewer random_features. ' * (most > n_columns)}Learn fewer "
            "(sklearn.decomposition.TruncatedSVD, FeatureHasher with fewer n_features), or a model whose memory is "
            'linear in them, such as MirrorDescentRegressor or, for OnlineGaussian, covariance_type="diag".'
        )


def check_draws(n_samples: int, random_state) -> np.random.RandomState:
    """The generator of samples, whose number is checked."""
    check_scalar(n_samples, "n_samples", Integral, min_val=0)
    return check_random_state(random_state)


def check_learned(estimator) -> None:
    """`check_is_fitted`, which makes tags first and takes longer than a row, only of estimators that are not."""
    if not estimator.__sklearn_is_fitted__():
        check_is_fitted(estimator)


def is_fitted(estimator) -> bool:
    """Whether an estimator, which may be one of another package, has learned."""
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def check_query(estimator, X, *, finite: bool = True, any_layout: bool = False):
    """Validated rows to predict for; NotFittedError if the estimator has not learned."""
    check_learned(estimator)
    return check_rows(estimator, estimator._by_name(X, False), reset=False, finite=finite, any_layout=any_layout)


def check_rows(
    estimator,
    X,
    *,
    reset: bool,
    y=_NO_Y,
    numeric: bool = True,
    multi_output: bool = False,
    finite: bool = True,
    any_layout: bool = False,
):
    """Rows as the kernels read them: C-contiguous float64 or float32, or canonical CSR, all finite if `finite`.

    With `any_layout` they are not copied if they are stored by columns: dense rows may have any layout, and those of
    large data frames are `Columns`. Kernels read the same numbers; sums by NumPy would depend on the layout.

    Returns X, or (X, y) if y is given: targets as float64, or unchanged labels if not `numeric`. With `multi_output`
    y may have several columns. `finite=False` saves a pass over X if the learner finds values that are not finite
    itself, in its predictions; it does not if rows may have weight 0.
    """
    plain = rows_without_validation(estimator, X, any_layout, reset)
    if plain is not None:
        plain_y = None if y is _NO_Y else plain_vector(y, len(plain), "fiu" if numeric else "iubU")
        if y is _NO_Y or plain_y is not None:
            if finite:
                check_finite(plain, owner=estimator)
            if y is not _NO_Y and numeric:
                check_finite(plain_y, "y")
            if reset:
                estimator.n_features_in_ = plain.shape[1]
                vars(estimator).pop("feature_names_in_", None)
            return plain if y is _NO_Y else (plain, plain_y)
    kwargs = {
        "accept_sparse": "csr" if estimator._takes_sparse else False,
        "dtype": FLOATS,
        "order": None if any_layout else "C",
        "ensure_all_finite": False,
    }
    X = frame_of_arrow(readable(X))
    targets: tuple = ()
    if y is not _NO_Y:
        targets = (check_targets_readable(y, labels=not numeric, multi_output=multi_output),)
        kwargs |= {"y_numeric": numeric, "multi_output": multi_output}
    columns = columns_of_numbers(X) if any_layout else None
    if columns is None:
        X = _validated(estimator, X, *targets, reset=reset, **kwargs)
        X, y = X if targets else (X, y)
    else:
        validate_data(estimator, X, *targets, reset=reset, skip_check_array=True)
        if targets:
            _, y = check_X_y(columns.columns[0].reshape(-1, 1), *targets, estimator=estimator, **kwargs)
        X = columns
    if sparse.issparse(X) and X.dtype not in FLOATS:  # as scikit-learn leaves sparse frames of booleans
        X = X.astype(np.float64)
    if not sparse.issparse(X):
        X = X if columns is not None else np.require(X, requirements="A" if any_layout else ["C", "A"])
    elif not X.has_canonical_format:
        X = in_order(X)
    if finite:
        check_finite(X, owner=estimator)
    if y is _NO_Y:
        return X
    return X, np.require(y, np.float64, ["C", "A"]) if numeric else y


def check_output_shape(y: np.ndarray, shape: tuple[int, ...]) -> None:
    """Check that rows have targets of this shape, as those that were learned."""
    if y.shape[1:] != shape:
        expected = str(("n_samples", *shape)).replace("'", "")
        raise ValueError(
            f"y should be {1 + len(shape)}d, of shape {expected}, as when learning started; got shape {y.shape}. Set "
            "warm_start=False and fit again for other targets."
        )


def check_targets_readable(y, *, labels: bool, multi_output: bool = True):
    """Targets, or `labels`, of a supported type; errors name the row of a NaN or infinity, or models for columns."""
    if sparse.issparse(y):
        raise ValueError("y must be dense; got a sparse matrix. Use y.toarray().")
    y = readable(y, "y", labels=labels)
    values = np.asarray(y)
    if labels and values.ndim:
        y = _as_labels(y, values)
    elif values.ndim and values.dtype.kind in "OSU":
        with _finite_floats(values, "y"):
            y = values = _as_numbers(values)
    if values.dtype.kind == "f":  # scikit-learn's message does not name the row
        check_finite(values, "y")
    if not multi_output and values.ndim == 2 and values.shape[1] > 1:
        raise ValueError(
            f"y should be a 1d array, got an array of shape {values.shape} instead. Use a model for each column: "
            "MultiOutputClassifier or MultiOutputRegressor of sklearn.multioutput."
        )
    return y


def _as_labels(y: Any, values: np.ndarray) -> Any:
    """Labels, integers of pandas' own dtypes as such, not as float64; a ValueError names one that is missing."""
    if values.dtype != object:
        return values if values.dtype.kind in "iub" else y
    labels = values.ravel().tolist()
    for place, label in enumerate(labels):
        row = place // (len(labels) // len(values))
        if is_missing(label):
            raise ValueError(f"Input y contains a missing label, {label!r} (row {row}). Remove such rows.")
        if isinstance(label, str) != isinstance(labels[0], str):
            raise ValueError(
                f"Labels must be of one kind: got y = {label!r} in row {row} after {labels[0]!r}. Give all as text."
            )
    return as_own_numbers(values)


def as_own_numbers(labels: np.ndarray) -> np.ndarray:
    """Labels, or an array of their own dtype if they are an array of objects that are all numbers."""
    if labels.dtype != object or not all(isinstance(label, Real) for label in labels.flat):
        return labels
    return np.array(labels.tolist())


def _as_numbers(y: np.ndarray) -> np.ndarray:
    """Targets of objects or text as float64, in which None is NaN; a ValueError names the first that is no number."""
    try:
        return y.astype(np.float64)
    except (TypeError, ValueError):
        for row, target in enumerate(y):
            try:
                target.astype(np.float64) if isinstance(target, np.ndarray) else float(target)
            except (TypeError, ValueError):
                value = np.asarray(target).tolist()
                raise ValueError(
                    f"Targets must be numbers: could not convert y = {value!r} in row {row}. Remove or encode it; "
                    "labels are for classifiers."
                ) from None
        raise


def dense(X, dtype=None) -> np.ndarray:
    """Rows as a dense array, of their own dtype unless one is given."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=dtype)


def check_weights(sample_weight, n_rows: int, *, allow_all_zero: bool) -> np.ndarray | None:
    """Row weights as a float64 vector; None stays None. Negative weights are an error, zeros are no-ops."""
    if sample_weight is None:
        return None
    plain = plain_vector(sample_weight, n_rows, "fiu")
    if plain is not None:
        weights = plain
    elif np.isscalar(sample_weight):
        check_kind(np.asarray(sample_weight).dtype, "sample_weight")
        with _finite_floats(sample_weight, "sample_weight"):
            weights = np.full(n_rows, sample_weight, dtype=np.float64)
    else:
        weights = check_numbers(sample_weight, "sample_weight", ensure_2d=False)
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weights.ndim}D array.")
    if len(weights) != n_rows:
        raise ValueError(f"sample_weight must have one weight for each of the {n_rows} rows; got {len(weights)}.")
    if are_positive(weights):
        return weights
    check_finite(weights, "sample_weight")
    with np.errstate(over="ignore"):
        if not np.isfinite(weights.sum()):
            row = int(np.argmax(weights))
            raise ValueError(f"The sum of sample_weight overflows: {weights[row]:g} at row {row}; scale the weights.")
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise ValueError(
            f"Negative values in data passed to sample_weight: {weights[row]:g} at row {row}; use weights >= 0 (rows "
            "of weight 0 are ignored)."
        )
    if not allow_all_zero and not weights.any():
        raise ValueError(
            "All sample_weight are zero: there is no row to learn from; give at least one positive weight."
        )
    return weights


def check_vector(values, n: int, name: str, of: str) -> np.ndarray:
    """Finite numbers, float64, one for each of n pairs or instances, which `of` names."""
    plain = plain_vector(values, n, "fiu")
    values = check_numbers(values, name, ensure_2d=False) if plain is None else plain
    if values.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one number for each of the {of}; got shape {values.shape}.")
    check_finite(values, name)
    return values


def check_indices(pairs, n: int, name: str, what: str, width: int = 2) -> np.ndarray:
    """Pairs (triplets, quadruplets) of numbers below n as an integer array of shape (n_pairs, width)."""
    # the fast path: check_array takes longer than a step
    if type(pairs) is list and all(type(pair) in (list, tuple) and len(pair) == width for pair in pairs):
        pairs = np.array(pairs)
    if type(pairs) is not np.ndarray or pairs.ndim != 2 or not pairs.size or not pairs.flags.aligned:
        pairs = check_numbers(pairs, name, dtype=None)
    if pairs.shape[1] != width:
        group = ("pair is two", "triplet is three", "quadruplet is four")[width - 2]
        raise ValueError(f"{name} has {pairs.shape[1]} columns, but a {group} {what} numbers.")
    if pairs.dtype.kind not in "iu":
        raise ValueError(f"{name} has dtype {pairs.dtype}; give {what} numbers as integers.")
    outside = ((pairs < 0) | (pairs >= n)).any(axis=1)
    if outside.any():
        row = int(np.argmax(outside))
        raise ValueError(f"{name}[{row}] = {pairs[row].tolist()}: {what} numbers must be from 0 to {n - 1}.")
    return pairs.astype(np.intp, copy=False)


def check_symmetric(matrix, name: str, n_features: int | None = None) -> np.ndarray:
    """A finite symmetric matrix, of size n_features if given, float64; an asymmetry beyond rounding is named."""
    matrix = check_numbers(matrix, name)
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name} must be square; got shape {matrix.shape}.")
    check_finite(matrix, name)
    asymmetry = np.abs(matrix - matrix.T)
    if asymmetry.max() > 1e-10 * np.abs(matrix).max():
        i, j = np.unravel_index(np.argmax(asymmetry), asymmetry.shape)
        raise ValueError(
            f"{name} is not symmetric: entry [{i}, {j}] is {matrix[i, j]:g}, [{j}, {i}] is {matrix[j, i]:g}; use (A + "
            "A.T) / 2 if the difference is due to rounding."
        )
    if n_features is not None and len(matrix) != n_features:
        raise ValueError(f"{name} has {len(matrix)} rows and columns, but there are {n_features} features.")
    return (matrix + matrix.T) / 2


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points at the line outside the package that called it."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("onlinebregman.", "sklearn.")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
