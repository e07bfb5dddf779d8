"""Refused calls and rows of weight 0, in every layout: a model equals a twin that never saw them.

    python tests/fuzz_undo.py --cases 100000 --seed 0  # in about half an hour
    python tests/fuzz_undo.py --seed 0 --only 123      # the cases of one chain again, which a finding names

A case is a call that learns a few rows. Some of their weights are 0, at random places, and one row may have a value, a
target or a weight that is huge or not finite. Cases form chains, see fuzz.py: one model of a public estimator, and

    if it refuses a call, its twin never sees it, and a copy of the twin refuses one of the rows, too;
    if it learns a call of `partial_fit`, its twin learns the rows of positive weight, one after the other;
    after each call the states of both, and all they say about some rows, are equal bit for bit.
"""

import contextlib
import copy
import functools
import pickle
import random

import fuzz
import numpy as np
from configurations import OUTPUTS, configurations, default_names, rows_for
from fuzz import REFUSALS, SLOW, Chain, Finding, learned, shortened
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter
from sparse_rows import csr

from onlinebregman import (
    EGRegressor,
    ImplicitGDRegressor,
    LearningRateMixture,
    LearningRatePath,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    PNormClassifier,
    PNormRegressor,
)

# Learners side by side, and penalties whose steps sparse rows put off: what a call can undo without an error, too.
MORE = [
    LearningRatePath(PNormRegressor()),
    LearningRatePath(EGRegressor()),
    LearningRatePath(PNormClassifier()),
    LearningRatePath(MirrorDescentRegressor(penalty="elasticnet", alpha=0.01, l1_ratio=0.5)),
    LearningRateMixture(EGRegressor()),
    LearningRateMixture(PNormRegressor()),
    LearningRateMixture(ImplicitGDRegressor(standardize=True)),
    MirrorDescentClassifier(divergence="adagrad", penalty="l1", alpha=0.01, standardize=True),
    MirrorDescentRegressor(divergence="relative_entropy", signed=True, penalty="l1", alpha=0.01, average=True),
    MirrorDescentRegressor(divergence="diagonal_newton", thresholds="pairwise"),
    MirrorDescentClassifier(thresholds="no_interactions", average=True),
]
WRONG = [np.inf, -np.inf, np.nan, 1e308, -1e308, 1e200, -1e160, 1e100, 1e-300]
WIDTHS = (1, 1, 2, 5, 20)  # rows of several times as many columns, each with few values, are logged, not copied
LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "CSR": sparse.csr_array,
    "CSR of float32": lambda X: sparse.csr_matrix(X.astype(np.float32)),
    "CSR of 64 bits": lambda X: csr(X, np.int64, X.dtype),
    "CSR out of order": lambda X: out_of_order(sparse.csr_array(X)),
    "CSC": sparse.csc_array,
}


def out_of_order(X):
    """The same rows with their columns from the last to the first."""
    places = np.concatenate([np.arange(b - 1, a - 1, -1) for a, b in zip(X.indptr, X.indptr[1:], strict=False)])
    return sparse.csr_array((X.data[places], X.indices[places], X.indptr), shape=X.shape)


@functools.cache
def models():
    """For each configuration: its name and class, a pickled unfitted model, suitable rows, and what it accepts."""
    found = []
    for configuration in [*configurations(), *MORE]:
        model = shortened(configuration)
        X, y = rows_for(model, 3 if repr(configuration) in default_names() else 2)
        weighted, spread = has_fit_parameter(model, "sample_weight"), get_tags(model).input_tags.sparse
        found.append((" ".join(repr(model).split()), type(model), pickle.dumps(model), X, y, weighted, spread))
    return found


class UndoChain(Chain):
    """A model with its twin, and a sequence of calls."""

    def __init__(self, seed, number, tally=None, log=None):
        self.dice = dice = random.Random(f"undo:{seed}:{number}")
        self.tally, self.log = tally, log
        known = models()
        while True:
            name, kind, unfitted, X, y, self.weighted, sparse_rows = known[dice.randrange(len(known))]
            if kind.__name__ not in SLOW or dice.random() < 0.1:
                break
        linear = ".kernel_learning." not in kind.__module__  # others have a matrix of the size of their rows
        layout = dice.choice([*LAYOUTS] if sparse_rows else [*LAYOUTS][:3])
        width = dice.choice(WIDTHS) if sparse_rows and linear else 1
        self.X, self.y = self.wide(X, width), y
        self.layout = LAYOUTS[layout]
        self.name = f"{name}, {layout}, {self.X.shape[1]} columns"
        self.first = {"classes": np.unique(y)} if is_classifier(pickle.loads(unfitted)) else {}
        self.model, self.twin = pickle.loads(unfitted), pickle.loads(unfitted)
        rows = np.array([dice.randrange(len(X)) for _ in range(dice.choice((2, 5, 12)))])
        for model in (self.model, self.twin):
            model.partial_fit(self.layout(self.X[rows]), y[rows], **self.first)

    def wide(self, X, times):
        """Rows of several times as many columns; the values of each are in random ones."""
        if times == 1:
            return X
        wide = np.zeros((len(X), times * X.shape[1]))
        for row, values in zip(wide, X, strict=True):
            row[self.dice.sample(range(len(row)), len(values))] = values
        return wide

    def act(self):
        """One call of the model, and what the twin learns of it; then the comparison."""
        X, y, weights = self.rows()
        method = "fit" if self.dice.random() < 0.1 else "partial_fit"
        if self.log:
            self.log(f"{method}(X, y, {weights}) with {X=}, {y=}")
        try:
            self.learn(self.model, X, y, weights, method)
        except REFUSALS as error:
            self.note(f"{method} refused: {type(error).__name__}")
            if self.log:
                self.log(f"    {error}")
            if method == "partial_fit" and self.dice.random() < 0.2:
                self.refuse_one_by_one(X, y, weights)
        else:
            self.note(f"{method} learned")
            self.follow(method, X, y, weights)
        self.compare(method)
        if self.dice.random() < 0.1:
            self.model = pickle.loads(pickle.dumps(self.model))

    def rows(self):
        """Some rows, their targets, and their weights or None; one of them may be wrong."""
        dice, n = self.dice, self.dice.choice((1, 2, 3, 5, 8))
        rows = np.array([dice.randrange(len(self.X)) for _ in range(n)])
        X, y, weights = self.X[rows], self.y[rows], None
        if self.weighted and dice.random() < 0.9:
            weights = np.array([dice.choice((0.0, 0.0, 1.0, 1.0, 0.3, 2.5)) for _ in range(n)])
        if dice.random() < 0.6:
            row, wrong, what = dice.randrange(n), dice.choice(WRONG), dice.random()
            if what < 0.1 and weights is not None:
                weights[row] = abs(wrong)
            elif what < 0.2 and y.dtype.kind == "f":
                y[row] = wrong
            else:
                filled = np.flatnonzero(X[row])
                X[row, filled if what < 0.5 else dice.choice([*filled, 0])] = wrong
        return X, y, weights

    def learn(self, model, X, y, weights, method="partial_fit"):
        more = {} if weights is None else {"sample_weight": weights}
        with np.errstate(all="ignore"):
            return getattr(model, method)(self.layout(X), y, **more)

    def follow(self, method, X, y, weights):
        """The twin learns the same: of `partial_fit` row by row, without those of weight 0.

        Those that solve a problem in each call get the rows in one. New labels become classes beside the weight 0, too.
        """
        known = getattr(self.twin, "classes_", y)
        kept = [i for i in range(len(y)) if weights is None or weights[i] != 0 or y[i] not in known]
        if type(self.model).__name__ in SLOW and method == "partial_fit":
            X, y, weights = X[kept], y[kept], None if weights is None else weights[kept]
            return self.learn(self.twin, X, y, weights) if kept else None
        if method == "fit":
            return self.learn(self.twin, X, y, weights, method)
        try:
            for i in kept:
                self.learn_one(self.twin, X, y, weights, i)
        except REFUSALS as error:
            raise Finding(f"rows that are learned together are refused one by one: {error}") from error

    def refuse_one_by_one(self, X, y, weights):
        with contextlib.suppress(*REFUSALS):
            twin = copy.deepcopy(self.twin)
            for i in range(len(y)):  # values that are not finite are refused beside the weight 0, too
                self.learn_one(twin, X, y, weights, i)
            raise Finding("rows that are refused together are learned one by one")

    def learn_one(self, model, X, y, weights, i):
        self.learn(model, X[i : i + 1], y[i : i + 1], None if weights is None else weights[i : i + 1])

    def compare(self, method):
        """The model and its twin have the same state, and give the same results for some rows."""
        if learned(self.model) != learned(self.twin):
            raise Finding(f"{method}: another state than that of the twin")
        rows = self.layout(self.X[self.dice.randrange(30) :][: self.dice.choice((1, 2, 6))])
        for name in OUTPUTS:
            if hasattr(self.model, name):
                found, expected = (result_of(model, name, rows) for model in (self.model, self.twin))
                if found != expected:
                    raise Finding(f"{method}: {name} differs from that of the twin")

    def note(self, what):
        if self.tally is not None:
            self.tally[what] += 1


def result_of(model, name, rows):
    """The bytes of a result, or the error."""
    try:
        return np.asarray(getattr(model, name)(rows)).tobytes()
    except REFUSALS as error:
        return str(error)


if __name__ == "__main__":
    fuzz.main(UndoChain, models, __doc__)
