"""The same tests in less time: what takes long in the tools around them is left out."""

import gc


def pytest_collection_modifyitems(items):
    """The longest tests come first, as the last ones keep one processor only."""
    items.sort(key=lambda item: "test_the_scripts_run" not in item.name)


def pytest_collection_finish(session):
    """The collected tests stay until the end, and need not be searched for garbage again and again."""
    gc.collect()
    gc.freeze()


def pytest_itemcollected(item):
    """An expected failure is not reported: to look for its statement in the source would take longer than the test."""
    if item.get_closest_marker("xfail"):
        item.repr_failure = lambda raised: raised.exconly()


def shorten_the_search_for_data_frames():
    """scikit-learn asks narwhals about each argument, which looks for methods of data frames in all of its bases."""
    try:
        from narwhals.stable.v2 import dependencies
    except ImportError:  # older versions of scikit-learn do without
        return
    for name in ("is_into_dataframe", "is_into_series"):
        setattr(dependencies, name, _once_for_each_type(getattr(dependencies, name)))


def _once_for_each_type(ask):
    answers = {}

    def answer(value):
        kind = type(value)
        if kind not in answers:
            answers[kind] = ask(value)
        return answers[kind]

    return answer
