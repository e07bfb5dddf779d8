"""Docstrings in which entries shared by several classes are written once and referred to by name.

In the sections of a docstring a line of names in braces, such as `{tol, shuffle}`, stands for the entries of these
names. For a class they are taken from its nearest base class that describes them; for a method from the method of that
name in a base class, from the method without `partial_`, from `fit`, or from `plot` of a display; entries that nearly
all classes have are in `COMMON`. Functions use `described_by`. Defaults are taken from the signature, or the fields of
a dataclass. `{Returns}` below the sections stands for that section of the nearest of these relatives.

Docstrings are completed when a class is created, so that `help` shows them in full. The build does the same in the
files that it installs (`fill_docstrings.py`), for editors, which read them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

COMMON = """What most estimators have.

Parameters
----------
X : {array-like, sparse matrix} of shape (n_samples, n_features)
    Rows.
y : array-like of shape (n_samples,)
    Targets.
sample_weight : array-like of shape (n_samples,)
    Multiplies the learning rate of each row; a row of weight 0 is ignored.
classes : array-like of shape (n_classes,)
    All class labels. Needed by the first call, optional afterwards.
n_samples : int
    Number of rows.
coverage : float or array-like of shape (n_coverages,)
    Share of the targets that should be in their intervals or sets; 0 < coverage < 1. Or several shares.
power_t : float
    Exponent of "invscaling".
weighted : bool
    Multiply losses by the rates of their rows, too, as in `weighted_loss_`: for rates that change.
largest_divergence : float
    An upper bound on D(U, W_t) for all t and all these U. Not needed while the rate was constant.
shuffle : bool
    Learn the rows of `fit` in random order, so that it does not matter how they are sorted. False: in their own order,
    as `partial_fit` always does.
track_regret : bool
    Accumulate what `regret_bound` needs.
random_state : int, RandomState instance or None
    Source of randomness, for instance of `shuffle`. A number gives the same every time.

Attributes
----------
classes_ : ndarray of shape (n_classes,)
    Labels.
t_ : int
    Rows learned.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the features, if X had any.

Returns
-------
self : object
    The estimator.
bound : float
    The right side, from the row at which `track_regret` was set.
probabilities : ndarray of shape (n_samples, n_classes)
    They sum to 1; after indicators of several labels each is that of its label.

Raises
------
ValueError
    If regret was not tracked from one run, a rate increased in mid-stream, or the bound is infinite without one of the
    arguments.
"""

Function = TypeVar("Function", bound=Callable)

# A section ends at a blank line, unless the next line is indented and continues an entry.
_SECTION = re.compile(r"^(Parameters|Attributes|Returns|Raises)\n-+\n((?:.+\n?|\n(?= ))*)", re.MULTILINE)
_ENTRY = re.compile(r"^(\S.*)((?:\n+ .*)*)", re.MULTILINE)  # a first line, and the indented lines below
_NAMES = re.compile(r"\{([*\w]+(?:, [*\w]+)*)\}")


class DocumentedMixin:
    """Completes the docstrings of its subclasses and of their methods, and links to their pages.

    scikit-learn's HTML representation of an estimator links to the page.
    """

    _doc_link_module = "onlinebregman"
    _doc_link_template = "https://onlinebregman.readthedocs.io/en/stable/generated/onlinebregman.{name}.html"

    _doc_place = ""  # of the class in the package, such as "pipeline."

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        return {"name": self._doc_place + type(self).__name__}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__doc__:
            cls.__doc__ = _filled(cls.__doc__, [base.__doc__ for base in cls.__mro__[1:]], cls)
        for name, member in vars(cls).items():
            method = getattr(member, "fn", getattr(member, "__func__", member))  # unwrap available_if and classmethod
            if inspect.isfunction(method) and (doc := method.__doc__) and _NAMES.search(doc):
                method.__doc__ = _filled(doc, _docs_of_relatives(cls, name), method)


def described_by(*sources: Callable) -> Callable[[Function], Function]:
    """Decorator that fills in the docstring of a function from those of other functions and of classes."""

    def fill(function: Function) -> Function:
        if function.__doc__:
            function.__doc__ = _filled(function.__doc__, [source.__doc__ for source in sources], function)
        return function

    return fill


def _docs_of_relatives(cls: type, name: str) -> list[str | None]:
    """Docstrings of the methods that share arguments with a method, the nearest first."""
    relatives = [vars(base).get(name) for base in cls.__mro__[1:]]
    for other in dict.fromkeys((name.removeprefix("partial_"), "fit", "plot")):
        if other != name:
            relatives += [vars(base).get(other) for base in cls.__mro__]
    return [method.__doc__ for method in relatives if method is not None]


def _filled(doc: str, sources: list[str | None], function: Callable | type) -> str:
    """The docstring with the entries that it names, each from the first of the sources that has it."""
    defaults = _defaults(function)

    def entries(section: str, line: str, body: str) -> Iterator[str]:
        names = _NAMES.fullmatch(line)
        found = [line + body] if names is None else [_entry(section, name, sources) for name in names[1].split(", ")]
        for entry in dict.fromkeys(found):  # one entry may describe several names
            first = entry.partition("\n")[0]
            name = first.partition(" :")[0].partition(",")[0]
            if section == "Parameters" and name in defaults and "default=" not in first:
                entry = entry.replace(first, f"{first}, default=" + repr(defaults[name]).replace("'", '"'), 1)
            yield entry

    def filled(match: re.Match) -> str:
        section, body = match.groups()
        heading = match[0].removesuffix(body)
        return heading + _ENTRY.sub(lambda entry: "\n".join(entries(section, *entry.groups())), body)

    # what the first of the sources that says it returns
    found = [name for doc in (*sources, COMMON) if doc for section, name in _entries(doc) if section == "Returns"]
    returned = f"Returns\n-------\n{{{found[0]}}}"
    return _SECTION.sub(filled, inspect.cleandoc(doc).replace("{Returns}", returned))


def _entry(section: str, name: str, sources: list[str | None]) -> str:
    """The entry for a name; the name in braces, unchanged, if none of the sources has one."""
    described = (_entries(source) for source in (*sources, COMMON) if source)
    return next((entries[section, name] for entries in described if (section, name) in entries), f"{{{name}}}")


@cache
def _entries(doc: str) -> dict[tuple[str, str], str]:
    """The entries of a docstring, by section and name, without the defaults."""
    return {
        (section, name): line.partition(", default=")[0] + below
        for section, body in _SECTION.findall(inspect.cleandoc(doc))
        for line, below in _ENTRY.findall(body)
        for name in line.partition(" :")[0].split(", ")
        if not _NAMES.fullmatch(line)
    }


def _defaults(function: Callable | type) -> dict[str, Any]:
    """The defaults of a function's parameters, or of a class's fields.

    It takes a tenth of the time of `inspect.signature` at import.
    """
    fields = {}
    if isinstance(function, type):
        fields = dict(vars(function))
        function = function.__init__  # type: ignore[misc]
    function = inspect.unwrap(function)
    if not inspect.isfunction(function):
        return fields
    positional, defaults = function.__code__.co_varnames[: function.__code__.co_argcount], function.__defaults__ or ()
    return fields | dict(zip(reversed(positional), reversed(defaults), strict=False)) | (function.__kwdefaults__ or {})
