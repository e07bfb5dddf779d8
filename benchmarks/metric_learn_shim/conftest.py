"""Marks the tests of metric-learn that are known to fail, and leaves out those of what is not here."""

from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from metric_learn_shim.failures import FAILURES, LEFT_OUT

MINE = Path(__file__).parent


def matches(item, patterns):
    name = item.nodeid.rpartition("/")[2]
    return [pattern for pattern in patterns if fnmatchcase(name, pattern)]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    mine = [item for item in items if item.path.parent == MINE]
    left_out = {item for item in mine if matches(item, LEFT_OUT)}
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    for item in mine:
        item.add_marker(pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning"))
        for pattern in matches(item, FAILURES):
            item.add_marker(pytest.mark.xfail(reason=FAILURES[pattern], strict=True))
