"""Calls that are interrupted at every line: they must leave either the model before the call or that after it.

Ctrl-C and exhausted memory may occur between any two lines. `interrupt` makes a call raise at a given line;
`assert_all_or_nothing` tries every line, each with a new model:

    def test_partial_fit_is_all_or_nothing(state):
        model = EGRegressor().partial_fit(X[:10], y[:10])
        assert_all_or_nothing(lambda: copy.deepcopy(model), lambda model: model.partial_fit(X[10:], y[10:]), state)

`state` is the fixture of conftest.py, or another function that returns the complete state of a model.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from threadpoolctl import threadpool_limits

import onlinebregman

PACKAGE = str(Path(onlinebregman.__file__).parent)


def interrupt(
    call: Callable[[], object],
    number: int,
    error: type[BaseException] = KeyboardInterrupt,
    *,
    files: tuple[str, ...] = (PACKAGE,),
) -> bool:
    """Run `call()`, and raise `error` when it comes to the number-th line (from 1); was there such a line?

    Lines are counted as they are run, in the Python files whose paths begin with one of `files`. Only one error is
    raised: what handles it is not disturbed.
    """
    return _run(call, number, error, files) >= number


def _run(call, number: float, error, files) -> int:
    """Run `call()` up to the given line; returns how many there were until then."""
    seen = 0

    def trace(frame, what, _):
        nonlocal seen
        if not frame.f_code.co_filename.startswith(files):
            return None
        if what == "line":
            seen += 1
            if seen == number:
                raise error  # after which Python does not trace any more
        return trace

    before = sys.gettrace()  # may be set by a coverage measurement
    sys.settrace(trace)
    try:
        call()
    except BaseException:  # it may have been replaced by another exception
        if seen < number:
            raise
    finally:
        sys.settrace(before)
    return seen


@threadpool_limits.wrap(limits=1)  # otherwise an interrupted call can leave fewer threads, and the next one fewer lines
def assert_all_or_nothing(
    make: Callable[[], object],
    call: Callable[[object], object],
    state: Callable[[object], object],
    error: type[BaseException] = KeyboardInterrupt,
    *,
    stride: int = 1,
    most: int | None = None,
    least: int = 10,
    files: tuple[str, ...] = (PACKAGE,),
) -> None:
    """Interrupt `call(model)` at every line (or every `stride`-th), each time with a fresh `make()`.

    `state(model)` has to be what it is before the call or after it, whatever the line. With `most` it is about so many
    lines: a half of them are the last ones, where results are bound, and the others are spread over the call. At least
    `least` lines have to be there to be interrupted, so that a call that does nothing is not taken for a sound one.
    """
    model = make()
    before = state(model)
    n_lines = _run(lambda: call(model), float("inf"), error, files)
    after = state(model)
    assert before != after, "the call changes nothing: there is nothing to be seen"
    assert n_lines >= least, f"there are only {n_lines} lines to be interrupted"
    numbers = list(range(1, n_lines + 1, stride))
    if most is not None and len(numbers) > most:
        last = numbers[-(most // 2) :]
        numbers = numbers[: -len(last) : -(-len(numbers) // (most - len(last)))] + last
    torn = []
    for number in numbers:
        model = make()
        assert interrupt(lambda model=model: call(model), number, error, files=files)
        if state(model) not in (before, after):
            torn.append(number)
    assert not torn, f"{len(torn)} of {len(numbers)} interrupted calls leave a torn model, at lines {torn}"
