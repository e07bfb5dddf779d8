"""Arguments of every kind for tests/fuzz.py: valid ones, and variations of them.

Contiguous arrays often end where an unreadable page begins: a kernel that reads one number too far crashes there,
with or without a sanitizer.
"""

import ctypes
import datetime
import mmap
import sys
import tempfile

import numpy as np
import pandas as pd
from scipy import sparse

NAN, INF = float("nan"), float("inf")
EXTREME = [NAN, INF, -INF, 0.0, -0.0, 5e-324, 1e-300, -1e-160, 1e-20, -1e6, 1e20, 1e155, -1e300, 1.7e308, -1.7e308, 0.5]
WHOLE = [0, 1, 2, 3, 5, 6, 7, 8, -1, -2, 10**8, -(10**8), 2**31 - 1, -(2**31), 2**31, 2**32, 2**40, 2**63 - 1, -(2**63)]
DTYPES = ["f4", "f2", "g", "i1", "i2", "i4", "i8", "u1", "u8", "?", "c16", "O", "U8", "S8", "M8[s]", "m8[s]", "V8"]
STRANGE = [
    None,
    0,
    1.5,
    NAN,
    "row",
    b"row",
    [],
    {},
    (),
    True,
    object(),
    [[]],
    [[[1.0]]],
    [1.0, [2.0]],
    datetime.date.max,
]
PARAMETERS = [
    None,
    -1,
    0,
    1,
    2,
    3,
    0.5,
    NAN,
    INF,
    -INF,
    1e300,
    1e-300,
    "bogus",
    True,
    False,
    [],
    (0.1, 2.0),
    b"",
    2**70,
]
PAGE = mmap.PAGESIZE


def _guarded(pages=4):
    """Memory of some pages, followed by an inaccessible page if the system supports that."""
    memory = mmap.mmap(-1, (pages + 1) * PAGE)
    if sys.platform == "linux":
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + pages * PAGE
        ctypes.CDLL(None).mprotect(ctypes.c_void_p(address), PAGE, 0)
    return memory, pages * PAGE


def _mapped(pages=4):
    """A file of some pages, mapped twice: writable and read-only."""
    with tempfile.TemporaryFile() as file:
        file.truncate(pages * PAGE)
        return np.memmap(file, np.uint8, "r+"), np.memmap(file, np.uint8, "r")


class Inputs:
    """Makes arguments; `dice` is a `random.Random`, which alone decides what comes.

    Parameters
    ----------
    dice : random.Random
    X, y : ndarray
        Rows that suit the estimator, and their targets.
    """

    guards = [_guarded() for _ in range(8)]
    maps = _mapped()

    def __init__(self, dice, X, y):
        self.dice, self.X, self.y = dice, X, y
        self.free = list(self.guards)
        self.given = []  # arrays of the caller, and copies of them
        self.n = 0

    # --- sound arguments, by the names of parameters --------------------------------------------------------------

    def begin(self):
        """Begin the next call, with a random number of rows."""
        self.free, self.given = list(self.guards), []
        self.n = self.dice.choice((1, 1, 2, 3, 5, 8))
        self.rows = np.array([self.dice.randrange(len(self.X)) for _ in range(self.n)])

    def sound(self, name, method):
        """A valid value of a parameter, or None if it is unknown here."""
        dice, n, d = self.dice, self.n, self.X.shape[1]
        if name in ("X", "Z", "Y", "C") and method.endswith("_matrices"):
            rows = self.X[self.rows]
            return np.einsum("ni,nj->nij", rows, rows)
        if name in ("X", "Y"):
            return self.X[self.rows]
        if name == "Z":
            return np.stack([self.X[self.rows], self.X[self.rows[::-1]]], axis=1)
        if name == "y":
            return self.y[self.rows]
        if name == "factors":
            return np.stack([self.X[self.rows], self.X[self.rows[::-1]]], axis=2)
        if name in ("sample_weight", "targets", "distances"):
            return None if dice.random() < 0.5 and name == "sample_weight" else np.array(self.some(n, 0.0, 2.0))
        if name in ("labels", "sense", "signs"):
            return None if dice.random() < 0.5 else np.array([dice.choice((-1, 1)) for _ in range(n)])
        if name in ("pairs", "triplets"):
            top = d if "fit_pairs" in method and self.X.shape[1] == 6 else n
            return np.array([self.some_whole(2 if name == "pairs" else 3, top) for _ in range(n)])
        if name == "n_objects":
            return d
        if name == "classes":
            return dice.choice((None, np.unique(self.y), np.unique(self.y)))
        if name == "coef":
            return np.array(self.some(d, -1.0, 1.0))
        if name in ("U", "kernel"):
            return np.diag(self.some(d, 0.1, 2.0))
        return {"n_samples": 3, "n_neighbors": 2, "random_state": 0, "n_switches": 1, "coverage": 0.9}.get(name)

    def some(self, n, low, high):
        return [self.dice.uniform(low, high) for _ in range(n)]

    def some_whole(self, n, top):
        return [self.dice.randrange(max(top, 1)) for _ in range(n)]

    # --- what becomes of them -------------------------------------------------------------------------------------

    def spoiled(self, value, name, often):
        """The value, or a random variation of it: another layout, type or numbers, or something else."""
        dice = self.dice
        if dice.random() < 0.01 * often:
            return dice.choice(STRANGE)
        if not isinstance(value, np.ndarray):
            value = dice.choice((*PARAMETERS, *WHOLE)) if dice.random() < 0.1 * often else value
            return value if not name.startswith("n_") or value not in (10**8, *WHOLE[12:]) else 10  # to limit memory
        if dice.random() < 0.25 * often:
            value = self.other_numbers(value)
        if dice.random() < 0.08 * often:
            value = np.asarray(self.other_shape(value))
        if value.ndim == 2 and name in ("X", "Y") and value.dtype.kind == "f" and dice.random() < 0.3:
            return self.sparse_rows(value, often)
        if dice.random() < 0.1 * often:
            value = self.other_type(value)
        return self.laid_out(value) if value.ndim and dice.random() < 0.5 else self.keep(value)

    def other_numbers(self, value):
        value, dice = np.array(value), self.dice
        if value.dtype.kind == "f" and dice.random() < 0.2:
            with np.errstate(all="ignore"):
                return value * 10.0 ** dice.choice((-300, -100, -20, -8, 8, 20, 100, 300))
        choice = EXTREME if value.dtype.kind == "f" else WHOLE
        flat = value.reshape(-1)
        for _ in range(dice.choice((1, 1, 2, 3)) if flat.size and value.dtype.kind in "fi" else 0):
            flat[dice.randrange(flat.size)] = dice.choice(choice)
        return value

    def other_shape(self, value):
        dice = self.dice
        how = dice.randrange(8) if value.ndim else 4
        if how == 0:
            return value[:0]
        if how == 1:
            return value[..., :-1]
        if how == 2:
            return np.concatenate([value, value], axis=dice.choice((0, -1)))
        if how == 3:
            return value[0] if len(value) else value
        if how == 4:
            return value[np.newaxis]
        if how == 5:
            return value[..., np.newaxis]
        return value[..., :0] if how == 6 else value[1:]

    def other_type(self, value):
        with np.errstate(all="ignore"):
            try:
                value = value.astype(self.dice.choice(DTYPES))
            except (TypeError, ValueError, OverflowError, RuntimeError):  # the last one of times as text
                return value.astype(object)
        if self.dice.random() < 0.3 and value.dtype.kind == "O" and value.size:
            value.reshape(-1)[self.dice.randrange(value.size)] = self.dice.choice(STRANGE)
        return value

    def laid_out(self, value):
        """The same numbers in another layout: strides of any sign, unaligned, read-only, memory-mapped, or a list."""
        how = self.dice.randrange(14)
        if how == 0:
            return self.keep(value[::-1].copy())[::-1]
        if how == 1:
            return self.keep(np.ascontiguousarray(value[..., ::-1]))[..., ::-1]
        if how == 2:
            return self.keep(np.repeat(value, 2, axis=0))[::2]
        if how == 3 and len(value):
            return np.broadcast_to(value[:1], value.shape)
        if how == 4:
            return np.asfortranarray(value)
        if how == 5 and value.dtype.kind not in "OV":
            bytes_ = np.frombuffer(b"\0" + value.tobytes(), dtype=np.uint8)[1:]
            return bytes_.view(value.dtype).reshape(value.shape) if value.size else value
        if how == 6:
            value = value.copy()
            value.flags.writeable = False
            return self.keep(value)
        if how == 7 and value.dtype.kind in "fiu" and 0 < value.nbytes <= self.maps[0].size:
            self.maps[0][-value.nbytes :] = np.frombuffer(value.tobytes(), np.uint8)
            return self.maps[1][-value.nbytes :].view(value.dtype).reshape(value.shape)
        if how == 8 and value.dtype.kind in "fiu":
            return value.astype(value.dtype.newbyteorder())
        if how == 9:
            return value.tolist()
        if how == 10 and value.ndim <= 2 and value.dtype.kind not in "VMm":
            return pd.DataFrame(value) if value.ndim == 2 else pd.Series(value, index=np.arange(len(value)) + 7)
        if how == 11 and value.dtype.kind in "fiu":
            return memoryview(np.ascontiguousarray(value))
        if how == 12:
            return value.view(type("Subclass", (np.ndarray,), {}))
        return self.keep(value)

    def keep(self, value):
        """Record an array of the caller, which must not change; if possible, before inaccessible memory."""
        if (
            self.free
            and value.dtype.kind in "fiu"
            and 0 < value.nbytes <= self.free[-1][1]
            and self.dice.random() < 0.7
        ):
            memory, end = self.free.pop()
            there = np.frombuffer(memory, value.dtype, value.size, end - value.nbytes).reshape(value.shape)
            there[...] = value
            value = there
        if value.dtype.kind not in "OV":
            self.given.append((value, value.tobytes()))
        return value

    def untouched(self):
        """Whether the caller's arrays are unchanged."""
        return all(value.tobytes() == before for value, before in self.given)

    # --- sparse rows ----------------------------------------------------------------------------------------------

    def sparse_rows(self, X, often):
        dice = self.dice
        kind = dice.choice(("csr", "csr", "csr", "csr", "csr", "csc", "coo", "bsr", "dia", "lil", "dok"))
        S = getattr(sparse, f"{kind}_{dice.choice(('array', 'matrix'))}")(X)
        if kind != "csr":
            return S
        parts = ("data", "indices", "indptr")
        if dice.random() < 0.2:
            S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
        if dice.random() < 0.1:  # out of order
            S.indices, S.data = S.indices[::-1].copy(), S.data[::-1].copy()
        for _ in range(dice.choice((1, 1, 2, 3)) if dice.random() < 0.35 * often else 0):
            part = dice.choice(parts)
            setattr(S, part, self.damaged(np.array(getattr(S, part)), part))
        for part in parts:
            array = getattr(S, part)
            if isinstance(array, np.ndarray) and array.dtype.kind in "fi" and dice.random() < 0.8:
                setattr(S, part, self.keep(array))
        if dice.random() < 0.2:
            S._has_canonical_format = S._has_sorted_indices = dice.random() < 0.7
        if dice.random() < 0.02 * often:
            S._shape = dice.choice(
                ((len(X) + 1, X.shape[1]), (len(X), X.shape[1] + 1), (2**40, 2**40), (-1, 3), (0, 0))
            )
        return S

    def damaged(self, array, part):
        dice = self.dice
        how = dice.randrange(9)
        if how < 4 and array.ndim == 1 and array.size and array.dtype.kind in "fi":
            if array.dtype.kind == "f":
                array[dice.randrange(array.size)] = dice.choice(EXTREME)
            else:
                array = array.astype(np.int64) if dice.random() < 0.5 else array
                limits = np.iinfo(array.dtype)
                array[dice.randrange(array.size)] = min(max(dice.choice(WHOLE), limits.min), limits.max)
            return array
        if how == 4:
            return array[: dice.randrange(4)] if array.ndim else array
        if how == 5:
            return np.concatenate([array, array]) if array.ndim else array
        if how == 6:
            return self.other_type(array)
        if how == 7:
            return dice.choice(
                (array[np.newaxis], array.reshape(-1)[:1], np.zeros((), array.dtype), np.repeat(array, 2)[::2])
            )
        return np.flip(array)
