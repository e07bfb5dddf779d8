"""Annotations of the public API: choices are literals, and nearly everything is annotated."""

import inspect
import re
from typing import Literal, Self, get_args, get_origin, get_type_hints

import pytest
from sklearn.base import BaseEstimator
from test_docs import public_names

from onlinebregman._sklearn_compat import StrOptions

# names of losses and divergences are open: a table lists them, which grows with the package
OPEN = {("MirrorDescentRegressor", "loss"), ("MirrorDescentClassifier", "loss"), ("PNormClassifier", "loss")}
OPEN |= {("ParameterFreeRegressor", "loss")}
OPEN |= {("ScaleInvariantRegressor", "loss"), ("ScaleInvariantClassifier", "loss")}
OPEN |= {("MirrorDescentRegressor", "divergence"), ("MirrorDescentClassifier", "divergence")}
OPEN |= {("OneClassMirrorDescent", "divergence")}

CLASSES = [each.values[0] for each in public_names() if inspect.isclass(each.values[0])]
ESTIMATORS = [each for each in CLASSES if issubclass(each, BaseEstimator) and hasattr(each, "_parameter_constraints")]


def literals(annotation):
    """The strings that an annotation allows by name."""
    if get_origin(annotation) is Literal:
        return set(get_args(annotation))
    return set().union(*(literals(part) for part in get_args(annotation)))


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda each: each.__name__)
def test_names_with_fixed_choices_are_literals(kind):
    hints = get_type_hints(kind.__init__)
    allowed = {}
    for name in inspect.signature(kind).parameters:
        constraints = kind._parameter_constraints.get(name, [])
        options = [each.options for each in constraints if isinstance(each, StrOptions)]
        if options and (kind.__name__, name) not in OPEN:
            allowed[name] = set().union(*options)
    assert {name: literals(hints[name]) for name in allowed} == allowed


def test_what_learns_returns_the_estimator():
    learns = re.compile("(partial_)?fit(_pairs|_triplets|_quadruplets|_matrices)?")
    methods = [getattr(kind, name) for kind in ESTIMATORS for name in dir(kind) if learns.fullmatch(name)]
    own = [method for method in methods if method.__module__.startswith("onlinebregman")]
    returned = {method.__qualname__: inspect.signature(method).return_annotation for method in own}
    assert {name: said for name, said in returned.items() if said not in ("Self", Self)} == {} != returned


def test_public_functions_say_their_types():
    """At least 95 % of all functions, methods and properties have each parameter and what they return annotated."""
    functions = []
    for value in [each.values[0] for each in public_names()]:
        members = inspect.getmembers_static(value) if inspect.isclass(value) else [(value.__name__, value)]
        for name, member in members:
            function = (
                getattr(member, "fget", None) or getattr(member, "fn", None) or getattr(member, "__func__", member)
            )
            function = inspect.unwrap(function) if callable(function) else function
            public = name == "__init__" or not name.startswith("_")
            if public and inspect.isfunction(function) and function.__module__.startswith("onlinebregman"):
                functions.append(function)
    partly = []
    for function in functions:
        signature = inspect.signature(function)
        parameters = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
        untyped = [each.name for each in parameters if each.annotation is each.empty]
        if untyped or signature.return_annotation is signature.empty:
            partly.append(function.__qualname__)
    assert len(functions) > 500
    assert len(partly) <= 0.05 * len(functions), partly
