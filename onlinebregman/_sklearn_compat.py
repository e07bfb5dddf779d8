"""The only module that imports scikit-learn's private names, or names that not every supported version has."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.base import _fit_context, is_classifier
from sklearn.utils import _param_validation, metaestimators
from sklearn.utils._param_validation import StrOptions, validate_parameter_constraints
from sklearn.utils.metaestimators import _BaseComposition as BaseComposition
from sklearn.utils.validation import _check_feature_names as check_feature_names
from sklearn.utils.validation import _check_feature_names_in as check_feature_names_in

from ._kernels.learners.transaction import Transaction
from ._objects import is_finite_number

__all__ = [
    "BaseComposition",
    "CallbackSupportMixin",
    "Interval",
    "StrOptions",
    "all_or_nothing",
    "available_if",
    "check_feature_names",
    "check_feature_names_in",
    "fit_context",
    "for_other_rows",
    "response_method",
    "score_function",
    "validate_parameter_constraints",
]

Method = TypeVar("Method", bound=Callable)

if TYPE_CHECKING:  # scikit-learn does not state its types

    class CallbackSupportMixin:
        def _init_callback_context(self, **kwargs: Any) -> Any: ...

else:
    try:  # callbacks came with scikit-learn 1.9 and are still experimental there
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from sklearn.callback import CallbackSupportMixin
    except ImportError:

        class _NoCallbacks:
            """A callback context without callbacks: its methods do nothing."""

            def subcontext(self, **kwargs):
                return self

            def call_on_fit_task_begin(self, **kwargs):
                return None

            def call_on_fit_task_end(self, **kwargs):
                return False

        class CallbackSupportMixin:
            """Stand-in for scikit-learn below 1.9, which has no callbacks."""

            def _init_callback_context(self, **kwargs):
                return _NoCallbacks()


class Interval(_param_validation.Interval):
    """An interval of numbers that NumPy takes as such: True is no integer, an integer beyond all floats no real."""

    def is_satisfied_by(self, val: Any) -> bool:
        if self.type is Integral:
            return not isinstance(val, bool) and super().is_satisfied_by(val)
        return (not isinstance(val, Integral) or is_finite_number(int(val))) and super().is_satisfied_by(val)


# Attributes that scikit-learn's own fit context needs after an error, to tear down its callbacks.
_LEARN_IN_PLACE = ("_learner", "_sampler")
_CALLBACK_STATE = ("_callback_fit_ctx", "_skl_callbacks_to_teardown")


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Method], Method]:
    """Decorator of `fit`, which keeps its type: checks the parameters, and tears down callbacks."""
    return _fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)


def available_if(check: Callable[[Any], bool]) -> Callable[[Method], Method]:
    """Decorator of methods that exist only if `check(estimator)` is true; keeps their type."""
    return metaestimators.available_if(check)


# Context in which one thread changes estimators; if the body raises, all their attributes are restored. It must bind
# new objects instead of changing fitted arrays in place. Only `_learner` and `_sampler` may learn in place, by one call
# each. Estimators given as `copied` are copied beforehand, and may change in any way.
all_or_nothing = partial(Transaction, keep=_CALLBACK_STATE, in_place=_LEARN_IN_PLACE)


def for_other_rows(search, rows: np.ndarray, values: np.ndarray):
    """A k-NN estimator as fitted to as many other rows, which are float64, in a tenth of the time of `fit`.

    None if that would do more than keep the rows: build a tree, or find values that are not finite.
    """
    rows = np.ascontiguousarray(rows)
    if search._fit_method != "brute" or rows.shape != search._fit_X.shape or not np.isfinite(rows).all():
        return None
    search = copy.copy(search)
    search._fit_X, search._y = rows, values
    if is_classifier(search):
        search.classes_, search._y = np.unique(values, return_inverse=True)
    return search


def response_method(scorer):
    """The method, or the alternatives, that a scorer of scikit-learn reads; None for any other callable."""
    return getattr(scorer, "_response_method", None)


def score_function(scorer):
    """The metric behind a scorer of scikit-learn; any other callable itself."""
    return getattr(scorer, "_score_func", scorer)
