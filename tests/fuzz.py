"""Calls of every public estimator with valid and invalid arguments of every kind.

    python tests/fuzz.py --cases 1000000 --seed 0      # all of it, in about half an hour
    python tests/fuzz.py --seed 0 --only 123           # the cases of one chain again, which a finding names

Cases form chains: one model, and a sequence of calls. After each of them

    no crash, and no read behind the end of an array (see fuzz_inputs.py; under AddressSanitizer, of any memory);
    a call that raises raises ValueError or TypeError, and leaves the model bit for bit what it was;
    queries leave it unchanged, too; no result is NaN, and no array of the caller has changed.
"""

import argparse
import collections
import functools
import inspect
import json
import mmap
import os
import pickle
import random
import re
import sys
import time
import traceback
import warnings

import numpy as np
from configurations import configurations, rows_for
from fuzz_inputs import PARAMETERS, Inputs
from scipy import sparse
from sklearn.base import clone, is_classifier
from states import State

CHAIN = 20  # calls
REFUSALS = (ValueError, TypeError)
NO_METHODS = {
    "get_params",
    "set_params",
    "set_output",
    "get_metadata_routing",
    "fit_transform",
    "set_callbacks",
    "get_feature_names_out",
}
SLOW = {"DefiniteBoost", "DefiniteBoostMetricLearner", "MaxEntDensity"}  # these solve a problem in each call


CHANGING = ("fit", "partial_fit", "sparsify", "densify", "calibrate", "set_threshold")


@functools.cache
def methods(kind):
    """The public methods of a class: (name, names of parameters, does it learn)."""
    found = []
    for name, method in inspect.getmembers(kind, callable):
        # `score`, which asks `predict`
        theirs = (getattr(method, "__module__", None) or "sklearn.").startswith("sklearn.")
        if not theirs and not name.startswith("_") and name not in NO_METHODS and not name.endswith("_request"):
            names = [*inspect.signature(method).parameters][1:]
            found.append((name, names, name.startswith(CHANGING)))
    return found


def shortened(model):
    """A clone that learns in little time, the same in each run."""
    given = model.get_params(deep=False)
    short = {"random_state": 0, "memory_size": 5} | (
        {"max_iter": 2, "tol": None} if "n_iter_no_change" in given else {}
    )
    return clone(model).set_params(**{name: value for name, value in short.items() if name in given})


@functools.cache
def models():
    """For each configuration: its name, a pickled model that has learned some rows, and suitable rows."""
    found = []
    for model in configurations():
        model = shortened(model)
        X, y = rows_for(model, 2)
        name = " ".join(repr(model).split())
        unfitted = pickle.dumps(model)
        classes = {"classes": np.unique(y)} if is_classifier(model) else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.partial_fit(X[:12], y[:12], **classes)
        found.append((name, type(model).__name__, unfitted, pickle.dumps(model), X, y))
    return found


class Finding(Exception):
    """A finding: something that must not happen."""


def has_nan(value):
    if isinstance(value, tuple | list):
        return any(map(has_nan, value))
    value = value.data if sparse.issparse(value) else value
    return (
        isinstance(value, float | np.ndarray | np.generic)
        and np.asarray(value).dtype.kind == "f"
        and bool(np.isnan(value).any())
    )


def learned(model):
    """The complete state of the model, bit for bit."""
    return State(model)


def attributes(model):
    """The public fitted attributes, stored or computed on access."""
    names = {name for name in [*vars(model), *dir(type(model))] if name.endswith("_") and name[0] != "_"}
    for name in sorted(names):
        try:
            value = getattr(model, name)
        except (AttributeError, ValueError, TypeError):  # not available, or an error because it is not finite
            continue
        yield name, value


def shown(value):
    """What repr shows, of malformed sparse matrices as well."""
    try:
        return repr(value)
    except IndexError:
        return f"<{type(value).__name__} that cannot be shown>"


class Chain:
    """A model, and a sequence of calls."""

    def __init__(self, seed, number, tally=None, log=None):
        self.dice = dice = random.Random(f"{seed}:{number}")
        self.tally, self.log = tally, log
        known = models()
        while True:
            name, kind, unfitted, fitted, X, y = known[dice.randrange(len(known))]
            if kind not in SLOW or dice.random() < 0.1:
                break
        self.name, self.kind = name, kind
        self.model = pickle.loads(unfitted if dice.random() < 0.15 else fitted)
        self.inputs = Inputs(dice, X, y)
        self.before = pickle.dumps(self.model)
        self.often = dice.choice((0.3, 1.0, 2.0))  # how many arguments are invalid
        self.step = ""

    def run(self):
        """Run the calls; yields the number of each and its fault, or None."""
        for i in range(CHAIN):
            try:
                self.act()
                problem = None
            except Finding as error:
                problem = str(error)
            yield i, problem
            if problem is not None:
                return

    def act(self):
        """One call, or a change of a parameter."""
        if self.dice.random() < 0.05:
            self.change_a_parameter()
        else:
            self.call()

    def call(self):
        """Call one method with one or more arguments of another kind."""
        dice, inputs = self.dice, self.inputs
        known = methods(type(self.model))
        learns = dice.random() < 0.6
        name, parameters, learns = dice.choice([entry for entry in known if entry[2] == learns] or known)
        inputs.begin()
        arguments = {}
        for parameter in parameters:
            value = inputs.sound(parameter, name)
            if value is not None or dice.random() < 0.1:
                arguments[parameter] = inputs.spoiled(value, parameter, self.often)
        self.step = name
        if self.log:
            self.log(f"{name}({', '.join(f'{key}={shown(value)}' for key, value in arguments.items())})")
        try:
            method = getattr(self.model, name)
        except AttributeError:  # predict_proba of a hinge loss
            return
        self.check(lambda: method(**arguments), learns)

    def change_a_parameter(self):
        """Change a parameter for one call that learns; then restore it."""
        model, inputs, dice = self.model, self.inputs, self.dice
        given = model.get_params(deep=False)
        name, value = dice.choice(sorted(given)), dice.choice(PARAMETERS)
        self.step = f"partial_fit with {name}={value!r}"
        if self.log:
            self.log(self.step)
        setattr(model, name, value)
        inputs.begin()
        X, y = inputs.X[inputs.rows], inputs.y[inputs.rows]
        try:
            self.before = pickle.dumps(model)
            self.check(lambda: model.partial_fit(X, y), learns=True)
        finally:
            setattr(model, name, given[name])
        self.before = pickle.dumps(model)

    def check(self, call, learns):
        """Make the call, and check its effects."""
        try:
            answer = call()
        except REFUSALS as error:
            self.note(error)
            learns = False  # nothing may have changed
        except Exception as error:
            expected = {
                "sample": (MemoryError, OverflowError),
                "kneighbors": AttributeError,
                "score": ZeroDivisionError,
            }  # too many; several metrics; scikit-learn's R^2 with weights of both signs and the sum 0
            if not isinstance(error, expected.get(self.step, ())):
                raise Finding(f"{self.step}: {error!r}\n{traceback.format_exc(limit=-3)}") from error
        else:
            self.look_at(answer, learns)
        after = pickle.dumps(self.model)
        if not learns and after != self.before and learned(pickle.loads(self.before)) != learned(pickle.loads(after)):
            raise Finding(f"{self.step}: the model has changed")
        self.before = after
        if not self.inputs.untouched():
            raise Finding(f"{self.step}: an array of the caller has changed")

    def look_at(self, answer, learns):
        """Check that no result and no attribute is NaN."""
        if not learns:
            if has_nan(answer) and self.step != "score":  # R^2 of one row is NaN, with a warning
                raise Finding(f"{self.step}: NaN in {answer!r}")
        elif self.dice.random() < 0.3:
            for name, value in attributes(self.model):
                if has_nan(value):
                    raise Finding(f"{self.step}: {name} = {value!r}")

    def note(self, error):
        if self.tally is not None:
            message = re.sub(r"[-+]?\b[\d.e+-]+\b|'[^']*'", "#", str(error))[:90]
            self.tally[f"{type(error).__name__}: {message}"] += 1


def findings(chains, seed, tally=None, log=None, at=None, slowest=None, kind=Chain):
    """(chain, number of the call, configuration, what is wrong) of all findings of some chains of a kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in chains:
            if at is not None:
                at[:8] = number.to_bytes(8, "little")
            began = time.process_time()
            chain = kind(seed, number, tally, log)
            for i, problem in chain.run():
                if problem is not None:
                    yield number, i, chain.name, problem
            if slowest is not None:
                slowest.append((time.process_time() - began, number, chain.name))
                slowest.sort(reverse=True)
                del slowest[8:]


def _in_a_process(chains, seed, kind):
    """The findings of some chains, a crash among them, each in a line of JSON; a crash costs the chain it is in."""
    at = mmap.mmap(-1, 8)
    chains = list(chains)
    while chains:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            tally, slowest = collections.Counter(), []
            with os.fdopen(write, "w") as pipe:
                for finding in findings(chains, seed, tally, at=at, slowest=slowest, kind=kind):
                    print(json.dumps(finding), file=pipe, flush=True)
                print(json.dumps({"tally": tally.most_common(), "slowest": slowest}), file=pipe)
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            yield from map(json.loads, pipe)
        _, status = os.waitpid(child, 0)
        if status == 0:
            return
        last = int.from_bytes(at[:8], "little")
        yield [last, -1, "", f"the process died of {os.waitstatus_to_exitcode(status)}"]
        chains = [number for number in chains if number > last]


def main(kind, models, description):
    """The command: chains of a kind, for which `models` makes what all processes share."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the chain to run, in this process, with its calls printed")
    parser.add_argument("--tally", action="store_true", help="how often each error was raised")
    options = parser.parse_args()
    if options.only is not None:
        for finding in findings([options.only], options.seed, log=lambda line: print(line, flush=True), kind=kind):
            print(*finding)
        return
    models()
    n_chains, tally, slowest, found = -(-options.cases // CHAIN), collections.Counter(), [], 0
    began = time.process_time(), os.times().children_user
    for start in range(0, n_chains, 1000):
        for line in _in_a_process(range(start, min(start + 1000, n_chains)), options.seed, kind):
            if isinstance(line, dict):
                tally.update(dict(line["tally"]))
                slowest = sorted(slowest + line["slowest"], reverse=True)[:8]
            else:
                found += 1
                print("chain {}, call {}: {}\n    {}".format(*line), flush=True)
    if options.tally:
        print(*(f"{n:8} {message}" for message, n in tally.most_common()), sep="\n")
    for seconds, number, name in slowest:
        print(f"chain {number}: {seconds:.2f} s  {name[:80]}")
    spent = time.process_time() - began[0] + os.times().children_user - began[1]
    print(f"{n_chains * CHAIN} cases, {found} findings, {1000 * spent / n_chains / CHAIN:.2f} ms of CPU a case")
    sys.exit(found > 0)


if __name__ == "__main__":
    main(Chain, models, __doc__)
