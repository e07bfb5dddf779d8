"""The tests in less time: few cases of each without `--all`, and less of what takes long in the tools around them.

With `--rest` there are the others: all cases but the few, and the laws with more examples.

A plugin of pytest, which conftest.py registers.
"""

import contextlib
import functools
import gc
import itertools
import math
import os
import random
import types
import zlib

import numpy as np
import pytest
from configurations import is_variant
from hypothesis import is_hypothesis_test, settings

# The most examples that a law is tested with for each of its parameters, such as losses, and for all of them.
MOST = int(os.environ.get("ONLINEBREGMAN_EXAMPLES", 10**6))
FEWEST, ALTOGETHER = 10, 400
# The same without `--all`, where as many cases are run as the root of their number.
FEWEST_OF_FEW, ALTOGETHER_OF_FEW = 4, 12
FEW = {id(None)}  # of these cases; and tests without parameters


def pytest_collection(session):
    """Nothing of what is collected is garbage, and to look for some while it grows takes as long as to collect it."""
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc):
    """The more parameters a law is tested for, the fewer examples each needs: they are different ones."""
    few = few_cases(metafunc)
    if not metafunc.config.option.all:
        metafunc._calls[:] = few
    FEW.update(map(id, few))
    law = metafunc.function
    if is_hypothesis_test(law):
        own = law._hypothesis_internal_use_settings
        few = (FEWEST_OF_FEW, ALTOGETHER_OF_FEW)
        fewest, altogether = (FEWEST, ALTOGETHER) if metafunc.config.option.all else few
        most = min(max(fewest, altogether // max(len(metafunc._calls), 1)), MOST)
        law._hypothesis_internal_use_settings = settings(own, max_examples=min(own.max_examples, most))


def few_cases(metafunc):
    """Cases in a list of all combinations: the name decides on the first, so that like tests take different ones.

    Of a test of estimators one for each of them is kept, but not for their variants, of scikit-learn's checks each.
    """
    definition, cases, kept = metafunc.definition, {}, []
    shim = definition.path.parent.name.endswith("_shim")
    for call in metafunc._calls:
        whose = [] if shim else [call.params.get(name) for name in ("estimator", "check")]
        if not (metafunc.config.option.all and any(map(is_variant, whose[:1]))):
            cases.setdefault(tuple(map(id, whose)), []).append(call)
    for some in cases.values():
        usual = [call for call in some if not call.marks] or some  # neither skipped nor expected to fail
        first, n = zlib.crc32((definition.nodeid + some[0].id).encode()), len(usual)
        most = math.ceil(math.sqrt(n)) if len(cases) == 1 else 1
        kept += [usual[(first + int(n * (0.618 * k % 1))) % n] for k in range(most)]  # not in even steps
    return kept


def pytest_collection_modifyitems(config, items):
    """The longest tests come first, as the last ones keep one processor only."""

    def is_left_out(item):
        few = not item.get_closest_marker("exhaustive") and id(getattr(item, "callspec", None)) in FEW
        return config.option.rest and few and not is_hypothesis_test(item.obj) if config.option.all else not few

    config.hook.pytest_deselected(items=list(filter(is_left_out, items)))
    items[:] = itertools.filterfalse(is_left_out, items)
    items.sort(key=lambda item: "test_the_scripts_run" not in item.name)


def pytest_terminal_summary(terminalreporter, config):
    if not config.option.all:
        terminalreporter.write_line("Of each test some cases were run: --all runs all.")


def pytest_collection_finish(session):
    """The collected tests stay until the end, and need not be searched for garbage again and again."""
    gc.freeze()
    gc.set_threshold(20_000)  # most that tests leave behind is no cycle
    gc.enable()


def pytest_itemcollected(item):
    """An expected failure is not reported: to look for its statement in the source would take longer than the test."""
    if item.get_closest_marker("xfail"):
        item.repr_failure = lambda raised: raised.exconly()


def shorten_what_is_done_around_examples():
    """hypothesis saves and restores the state of all random numbers three times for each, and reads sources again.

    Here the common generators start alike for each example, as always, and are not restored.
    """
    from hypothesis import control, core

    core.deterministic_PRNG = _same_random_numbers
    control.deprecate_random_in_strategy = lambda *_: contextlib.nullcontext()  # no strategy of ours draws any
    with contextlib.suppress(AttributeError, ImportError):  # other versions may lack these names, and take longer
        from hypothesis.internal import reflection

        sources = {"getsource": functools.cache(reflection.inspect.getsource)}
        reflection.inspect = types.SimpleNamespace(**vars(reflection.inspect) | sources)
        reflection._clean_source = functools.cache(reflection._clean_source)


def _same_random_numbers(seed=0):
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 -- what estimators without a random_state use
    return contextlib.nullcontext()
