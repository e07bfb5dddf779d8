"""Model files with valid checksums and other numbers: none crashes, hangs or takes memory, also when its model learns.

    python tests/fuzz_files.py --cases 10000 --seed 0      # all of it, in about ten minutes
    python tests/fuzz_files.py --seed 0 --only 123         # the cases of one chain again, which a finding names

A chain is a model and its file, in which one to three numbers, arrays, classes or parts are others in each case: counts
that are negative or huge, NaN, other shapes and dtypes, arrays and parts that are swapped. The file is refused by a
ValueError, or the model that it contains predicts, learns and is copied: any error may be raised, but nothing else.
"""

import contextlib
import io
import json
import pickle
import random
import resource
import signal
import tempfile
import traceback
import warnings
import zipfile
from pathlib import Path

import fuzz
import numpy as np
from fuzz_inputs import EXTREME, WHOLE
from scipy import sparse

from onlinebregman.persistence import load_model, save_model

SECONDS = 20  # of the processor, which a case may take
MEMORY = 1 << 29  # bytes that it may add to the peak of the process
CALLS = ("predict", "predict_proba", "score_samples", "decision_function", "transform", "partial_fit")
OTHER_DTYPES = ("f8", "f4", "i8", "i4", "u1", "?", "c16", "U3", "M8[s]")


def other_array(array, dice):
    """An array with other numbers, of another shape or dtype."""
    how = dice.randrange(6)
    if how == 0:
        return array.astype(dice.choice(OTHER_DTYPES))
    if how == 1:
        shapes = [(0,), (1,), (2,), (3, 2), (), (array.size + 1,), (max(array.size - 1, 0),)]
        return np.resize(array, dice.choice(shapes))
    if how == 2:
        return dice.choice([array.T, array.ravel(), array[..., None], array[None], array[:0] if array.ndim else array])
    array = np.array(array)
    values = EXTREME if array.dtype.kind in "fc" else [True, False] if array.dtype.kind == "b" else WHOLE
    places = [dice.randrange(array.size)] if how < 5 and array.size else slice(None)
    array.reshape(-1)[places] = np.asarray(dice.choice(values)).astype(array.dtype)
    return array


def other_text(text, dice):
    """JSON with another value somewhere: mostly a number for a number."""
    tree = json.loads(text)
    places, numbers = [], []

    def walk(node):
        for key, item in node.items() if isinstance(node, dict) else enumerate(node):
            places.append((node, key))
            if isinstance(item, int | float) or (key == "content" and isinstance(item, str)):
                numbers.append((node, key))
            elif isinstance(item, dict | list):
                walk(item)

    walk(tree)
    how = dice.randrange(8)
    if how < 5 and numbers:
        node, key = dice.choice(numbers)
        other = dice.choice((*WHOLE, *EXTREME, 2**53, 2**70, None, "x", True, [], 999))
        node[key] = json.dumps(other) if isinstance(node[key], str) else other
    elif how < 7:  # parts of the same kind, or any parts, are swapped
        (a, i), (b, j) = (dice.choice(places) for _ in "ab")
        a[i], b[j] = b[j], a[i]
    else:
        node, key = dice.choice(places)
        del node[key]
    return json.dumps(tree).encode()


class FileChain:
    """A model, and cases of its file."""

    def __init__(self, seed, number, tally=None, log=None):
        self.dice, self.tally, self.log = random.Random(f"{seed} {number}"), tally, log
        models = fuzz.models()
        self.name, _, _, pickled, self.X, self.y = models[number % len(models)]
        self.model = pickle.loads(pickled)

    def run(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model"
            save_model(self.model, file)
            with zipfile.ZipFile(file) as archive:
                parts = {name: archive.read(name) for name in archive.namelist()}
            for i in range(fuzz.CHAIN):
                with zipfile.ZipFile(file, "w") as archive:
                    for name, part in self.changed(parts).items():
                        archive.writestr(name, part)
                if self.log:
                    self.log(f"case {i}")
                yield i, self.problem(file)

    def changed(self, parts):
        parts = dict(parts)
        arrays = [name for name in parts if name.endswith(".npy")]  # in the order of the tree: names are addresses
        for _ in range(self.dice.choice((1, 1, 2, 3))):
            if not arrays or self.dice.random() < 0.5:
                with contextlib.suppress(RecursionError, ValueError):
                    parts["schema.json"] = other_text(parts["schema.json"], self.dice)
            elif self.dice.random() < 0.2:
                parts[self.dice.choice(arrays)] = parts[self.dice.choice(arrays)]
            else:
                name, out = self.dice.choice(arrays), io.BytesIO()
                array = np.load(io.BytesIO(parts[name]))
                with contextlib.suppress(Exception), np.errstate(all="ignore"):
                    if array.dtype == np.uint8:  # the text of compiled objects
                        np.save(out, np.frombuffer(other_text(array.tobytes(), self.dice), np.uint8))
                    else:
                        np.save(out, other_array(array, self.dice))
                    parts[name] = out.getvalue()
        return parts

    def problem(self, file):
        """What is wrong with a file; None if nothing is."""
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # which ends the process
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.use(load_model(file))
        except ValueError as error:
            if self.tally is not None:
                self.tally[f"{error}"[-90:]] += 1
        except Exception:
            return traceback.format_exc(limit=-4)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        return f"it took {grown >> 10} MB" if grown > MEMORY >> 10 else None

    def use(self, model):
        X, y = self.X, self.y
        for rows, targets in ((X[:1], y[:1]), (X, y), (sparse.csr_array(X), y)):
            for call in CALLS:
                with contextlib.suppress(Exception):
                    getattr(model, call)(*((rows, targets) if call == "partial_fit" else (rows,)))
        with contextlib.suppress(Exception):
            pickle.loads(pickle.dumps(model)).partial_fit(X, y)
        for name in dir(type(model)):
            if name.endswith("_") and not name.startswith("_"):
                with contextlib.suppress(Exception):
                    getattr(model, name)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
    fuzz.main(FileChain, fuzz.models, __doc__)
