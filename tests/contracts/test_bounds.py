"""No bound is exceeded on adversarial streams: see bounds.py, which runs many more of them."""

import os

import bounds
import pytest

STREAMS = int(os.environ.get("ONLINEBREGMAN_STREAMS", "50"))


@pytest.mark.parametrize("name", sorted(bounds.KINDS))
def test_no_bound_is_exceeded(name):
    compared, _, exceeded = bounds.run(name, range(STREAMS))
    assert compared > 0 and not exceeded


def test_what_exceeds_a_bound_is_found(monkeypatch):
    def wrong(rng):
        yield 0.5, 1.0, 0.0
        yield 1.0 + 1e-10, 1.0, 0.0  # by rounding
        if rng.uniform() < 0.5:
            yield 1.0 + 1e-6, 1.0, 1.0

    monkeypatch.setitem(bounds.KINDS, "mistakes", wrong)
    compared, worst, exceeded = bounds.run("mistakes", range(20))
    assert 40 < compared < 60 and worst == 1.0 + 1e-6 and len(exceeded) == compared - 40
    number, left, right = exceeded[0]
    assert bounds.run("mistakes", [number])[2] == [(number, left, right)] == [(number, 1.0 + 1e-6, 1.0)]
