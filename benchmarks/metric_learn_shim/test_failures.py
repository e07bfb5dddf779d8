"""How many of metric-learn's tests pass, and that each listed failure is one of them."""

import pytest
from metric_learn_shim.conftest import matches
from metric_learn_shim.failures import FAILURES
from metric_learn_shim.loading import FOUND


@pytest.mark.skipif(not FOUND, reason="ONLINEBREGMAN_METRIC_LEARN names no source distribution of metric-learn 0.7.0")
def test_each_listed_failure_is_a_test_and_most_pass(request):
    items = [item for item in request.session.items if item.path.parent == request.path.parent]
    if len({item.path for item in items}) < 10:
        pytest.skip("not all files of this folder have been selected")
    failing = [item for item in items if matches(item, FAILURES)]
    assert len(failing) <= 0.05 * len(items)
    assert [pattern for pattern in FAILURES if not any(matches(item, [pattern]) for item in failing)] == []
