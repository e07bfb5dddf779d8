"""The life cycle of all estimators: validate, begin or continue, learn; an error leaves the estimator unchanged.

A public method, such as those of `examples.py`, passes its arguments to `_fit`, `_partial_fit` or `_predict`. These
alone decide whether rows need validation. An estimator implements

    _check(call, *arguments) -> data            validate the arguments,
    _begin(data)                            bind a new model,
    _go_on(data, call)                      prepare a fitted model to learn more,
    _configure()                            pass the parameters to the learner,
    _learn(data, order=None, *, again=False) -> mean loss     learn the data, once.

Estimators that learn several kinds of examples (rows, pairs, triplets) have a `check` and a `learn` for each kind.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from itertools import repeat
from numbers import Integral
from operator import attrgetter
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
from scipy.sparse import csr_matrix, issparse, vstack
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, check_random_state

from .._kernels.learners.transaction import Validated
from .._kernels.rows.arrays import FIRST, has_absurd
from .._sklearn_compat import CallbackSupportMixin, Interval, StrOptions, all_or_nothing, validate_parameter_constraints
from . import validation
from .containers import sound_csr
from .docs import DocumentedMixin
from .threads import few_threads
from .types import RandomState
from .validation import check_finite, check_rows, check_weights, fitted, not_finite

# How `fit` goes through the rows: read by each `fit`, and by no other call
OF_FIT = frozenset(
    {"max_iter", "tol", "n_iter_no_change", "validation_fraction", "shuffle", "random_state", "warm_start", "verbose"}
)

SOME = 10  # values that tell what is absurd: of fewer, some are close by chance in many columns
LOOKS = (SOME, FIRST, 2 * FIRST)  # after how many rows they are looked at
OF_LABELS = 5.0  # times as far are values in columns that spoil models of labels, to which few rows matter

SCORES = (False,)  # the argument `linked` of a learner's `predict`: scores are wanted, not the link of them


def by_parameter(name: str) -> Any:
    """A setting that is the parameter of this name; classes without the parameter have a value of their own for it."""
    return property(attrgetter(name))


class Call(NamedTuple):
    """The kind of the current call."""

    first: bool  # whether the model is new
    partial: bool  # `partial_fit`, not `fit`


@dataclass(frozen=True)
class Examples:
    """Validated examples: instances, targets or labels, and weights; None if there are none.

    Those of classifiers also have the numbers of the classes, `classes`, and the labels of `new` classes, in the order
    of their first rows, whose numbers follow those of the known ones.
    """

    X: Any
    y: Any = None
    weights: Any = None
    classes: Any = None
    new: Sequence[Any] = ()

    def take(self, rows: np.ndarray) -> Examples:
        """Some of the examples."""
        y, weights, classes = (
            None if values is None else values[rows] for values in (self.y, self.weights, self.classes)
        )
        return Examples(self.X[rows], y, weights, classes)

    def __len__(self) -> int:
        return self.X.shape[0]


class Before(NamedTuple):
    """What a model has learned before it began again."""

    rows: int = 0
    losses: Any = 0.0  # of each output
    of_models: Any = 0.0  # of a mixture, those of each model
    bound: float = 0.0  # on its regret


class FirstRows(NamedTuple):
    """What a model has learned since it began, as long as these are the first rows of its stream.

    Nobody knows which values of the first rows are the absurd ones. As more rows become known, the robust scale of a
    column, or of the targets, see `_kernels/ops/robust.h`, may shrink to an interval beyond which some values lie that
    were learned. A model then begins again, as what it has learned is about these, or about a scale of theirs.
    """

    n: int = 0  # rows of the stream so far
    rows: Any = None  # an array or CSR of those that were learned since
    targets: np.ndarray | None = None  # theirs, if these are numbers

    def before_look(self, X: Any) -> bool:
        """Whether rows are an array, or CSR, none of which is the last one before a look."""
        return getattr(X, "ndim", 0) == 2 and not any(self.n < look <= self.n + X.shape[0] for look in LOOKS)

    def after(self, X: Any, y: Any) -> tuple[FirstRows | None, list[int]]:
        """The first rows after some more, with targets or None, and those of these after which the model begins again.

        None in their place if they are over.
        """
        n, last = self.n + X.shape[0], []
        sparse = issparse(X) or issparse(self.rows)
        rows: Any = csr_matrix(X, dtype=np.float64, copy=True) if sparse else np.array(X, dtype=np.float64)
        targets = None if y is None else np.array(y)
        if sparse:
            rows.sum_duplicates()  # the same rows, in whatever order
        if np.shape(self.rows)[1:] == X.shape[1:]:  # no columns were added
            rows = vstack([csr_matrix(self.rows), rows], "csr") if sparse else np.concatenate([self.rows, rows])
            targets = None if targets is None else np.concatenate([self.targets, targets])
        begun, known = 0, rows.shape[0] - X.shape[0]
        for end in (known + look - self.n for look in LOOKS if self.n < look <= n):
            some = (sound_csr(rows) if sparse else rows)[begun:end]  # those of a file may be anything
            if sparse:  # most columns have nothing to tell
                some = some[:, some.getnnz(axis=0) >= SOME].toarray()
            if targets is not None:
                some = np.column_stack([some, targets[begun:end]])
            if has_absurd(some, SOME, OF_LABELS if y is None else 1.0):
                begun = end
                last.append(end - known - 1)
        if begun:
            rows, targets = rows[begun:], None if targets is None else targets[begun:]
        if sparse:  # without the flags and sizes of integers that tell how it was made
            rows = csr_matrix((rows.data, rows.indices, rows.indptr), rows.shape)
        return (FirstRows(n, rows, targets) if 0 <= n < LOOKS[-1] else None), last


class NoBound(AttributeError, ValueError):
    """A bound, as an attribute or return value, that is not available."""


class LifeCycleMixin(DocumentedMixin):
    """`fit` and `partial_fit` of any kind of examples, each call in one transaction."""

    _early_stopping: Any = False
    _unmergeable: Any = "its state is more than weights and sums over rows"  # why it cannot be merged; None if it can
    _adds_up = False  # whether models are merged by adding statistics, so that one round suffices
    _parallel = False  # whether this is a merged model, for which there are no bounds except the mean of certificates
    _unbounded: str | None = None  # why there are no bounds on the rows so far
    _takes_sparse = False  # whether rows may be sparse
    _allow_nan = False  # whether NaN in dense rows is a missing value
    _reads_numbers = True  # whether the learner may be given arrays as they are
    _others: Any = ()  # estimators that learn the same rows

    shuffle: bool  # two parameters of estimators whose models depend on the order of the rows
    random_state: RandomState
    _learner: Any  # holds the learned state; usually compiled
    _state = "_learner"  # the attribute that a fitted estimator has: some hold what they have learned in another one
    n_features_in_: int
    _query = validation.check_query  # validated rows to predict for
    _threads: Any = nullcontext  # a context in which BLAS has no more threads than learning takes
    _matrices: Any = 0  # of as many rows as there are columns, that learning takes at least, with copies
    _fast_learner = "_learner"  # the attribute with the learner of rows that need no validation; None if there is none
    _watches: Any = False  # whether it begins again if its first rows turn out to have absurd values
    _first_rows: FirstRows | None = None  # None: these are over, or not watched
    _begin_again: Callable[[], None]  # replaces the learner by a new one
    _before = Before()
    _plain_targets: Any = None  # a method: y -> the learner's targets, or None if y needs validation; by default y

    # --- parameters: each call reads some, the others are read when learning starts and cannot change then ---------

    # By these rules scikit-learn validates parameters: each class has those that it adds, these are everybody's.
    _parameter_constraints: dict = {
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
        "n_jobs": [Interval(Integral, None, -1, closed="right"), Interval(Integral, 1, None, closed="left"), None],
        "delayed": ["boolean"],
        "handle_unknown": [StrOptions({"error", "add"})],
        "handle_new_features": [StrOptions({"error", "add"})],
    }
    # Those that may change in mid-stream: each class has those that it adds, these are everybody's, too.
    _read_at_each_call: tuple[str, ...] = ("n_jobs", "delayed", "handle_unknown", "handle_new_features")
    _warm_start: Any = False  # whether `fit` continues
    _started_with: dict[str, Any]  # the values of all when learning started

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):  # what its bases say of its own parameters
            code = cls.__init__.__code__
            own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            bases = [vars(base) for base in reversed(cls.__mro__)]
            rules = {name: rule for base in bases for name, rule in base.get("_parameter_constraints", {}).items()}
            cls._parameter_constraints = {name: rule for name, rule in rules.items() if name in own}
            cls._read_at_each_call = sum((base.get("_read_at_each_call", ()) for base in bases), ())

    def _validate_params(self) -> None:
        """As scikit-learn does, but without the parameters that are the very defaults."""
        defaults, own = type(self).__init__.__kwdefaults__ or {}, BaseEstimator.get_params(self, deep=False)
        changed = {name: value for name, value in own.items() if name not in defaults or value is not defaults[name]}
        validate_parameter_constraints(self._parameter_constraints, changed, caller_name=type(self).__name__)

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Those of scikit-learn, which reads the signature again for each validation, clone and copy."""
        return super()._get_param_names()  # type: ignore[misc]

    def _set_arguments(self, arguments: dict[str, Any]) -> None:
        """Set the arguments of a constructor, given by its `locals()`, as attributes."""
        del arguments["self"]
        vars(self).update(arguments)

    @classmethod
    @cache
    def _parameters_of_calls(cls) -> tuple[str, ...]:
        """Names of the parameters that have to be looked at again if they change between two calls."""
        changing = cls._read_at_each_call
        return tuple(name for name in cls._get_param_names() if name in changing or name not in OF_FIT)

    def _keep_parameters(self) -> None:
        """A run begins: keep its parameters, and copies of those that may change in place."""
        values = {name: getattr(self, name) for name in self._parameters_of_calls()}
        self._started_with = {
            name: clone(now, safe=False) if isinstance(now, list | tuple | dict) or hasattr(now, "get_params") else now
            for name, now in values.items()
        }
        self._unbounded = None

    def _check_kept(self) -> None:
        """ValueError if a parameter has changed that is only read when learning starts."""
        for name, before in self._started_with.items():
            if name not in self._read_at_each_call:
                self._check_same(name, getattr(self, name), before)

    def _check_same(self, name: str, now: Any, before: Any) -> None:
        if not same(now, before):
            raise ValueError(
                f"{name}={now!r} cannot take effect in mid-stream: this {type(self).__name__} started to learn with "
                f"{name}={before!r}. Set it back, or learn anew by "
                f"fit{' with warm_start=False' * bool(self._warm_start)}."
            )

    # --- the calls ---------------------------------------------------------------------------------------------------

    def __copy__(self) -> Self:
        """An independent model: it shares the parameters, but no object that learning changes in place."""
        attributes, names = vars(self), BaseEstimator.get_params(self, deep=False)
        shared = {id(value): value for name, value in attributes.items() if name in names or name == "_skl_callbacks"}
        copied = type(self).__new__(type(self))
        vars(copied).update(copy.deepcopy(dict(attributes), shared))
        return copied

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = self._takes_sparse
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return self._state in vars(self)

    def _fitted_state(self) -> Any:
        """What was learned, mostly the learner; NotFittedError if nothing was."""
        return fitted(self, vars(self).get(self._state))

    def _fit(
        self, *arguments, check: Callable | None = None, begin: Callable | None = None, learn: Callable | None = None
    ) -> Self:
        """The body of `fit` and similar methods, whose decorator has validated the parameters.

        With `begin`, which takes the place of `_begin`, it does not continue with a fitted model.
        """
        with all_or_nothing(self):
            warm = begin is None and self._warm_start and self.__sklearn_is_fitted__()
            call = Call(first=not warm, partial=False)
            if warm:
                self._check_kept()
                arguments = (self._by_name(arguments[0], True), *arguments[1:])
            data = (check or self._check)(call, *arguments)
            with self._threads():
                self._prepare(data, call, begin=begin)
                own = arguments[:2] if check is None else (data.X, data.y)
                self._learn_in_epochs(learn or self._learn, data, *own)
        return self

    def _partial_fit(self, X, y=None, sample_weight=None, classes=None, scores=None) -> Self:
        """The body of `partial_fit`: plain numbers go straight to the learner, all else is validated first.

        `scores`, if given, receives the scores of each row before it was learned.
        """
        own = self.__dict__  # in less time than by `vars`
        # the `_learner`, or the `_sampler` of a metric learner, or what learns with all experts of a mixture
        learner, first = own.get(self._fast_learner), own.get("_first_rows")
        if classes is not None and learner is not None and "classes_" in own:
            known, labels = own["classes_"].tolist(), classes.tolist() if type(classes) is np.ndarray else classes
            if type(labels) is list and labels == known and type(labels[0]) is type(labels[-1]) is type(known[0]):
                classes = None  # as in each call of a stream
        if learner is not None and classes is None:
            convert = self._plain_targets
            targets = y if convert is None else convert(y)
            fast = first is None or (sample_weight is None and first.before_look(X))  # some may have no weight
            # compiled: `AtomicLearner.learn_fast`, then `learn_block`, `loop` and, for each row, `learn_row`
            if fast and learner.learn_fast(own, X, targets, sample_weight, scores):
                if first is not None:
                    self._first_rows, _ = first.after(X, None if "classes_" in own else targets)
                return self
            if first is None and learner.learn_fast(own, self._translated(X), targets, sample_weight, scores):
                return self
        arguments = (X, y, sample_weight) if classes is None else (X, y, sample_weight, classes)
        learn: Any = self._learn
        return self._validate_and_learn(*arguments, learn=learn if scores is None else partial(learn, scores=scores))

    def _progressive_scores(self, X, y, sample_weight: np.ndarray | None) -> np.ndarray | None:
        """Learn rows in one pass, and return the scores of each before it was learned.

        Returns None, and learns nothing, if the learner has no such scores or that would raise an error.
        """
        if not self._learner.progressive:
            return None
        scores = np.empty((X.shape[0], self._learner.n_scores))
        try:
            self._partial_fit(X, y, sample_weight, scores=scores)
        except ValueError:
            return None
        return scores

    def _validate_and_learn(self, *arguments, check: Callable | None = None, learn: Callable | None = None) -> Self:
        """Learn more examples of any kind, in one transaction."""
        with all_or_nothing(self) as transaction:
            call = Call(first=not self.__sklearn_is_fitted__(), partial=True)
            validated = vars(self).get("_validated")
            changed = call.first or validated is None or not validated.are_those_of(vars(self))
            if changed:
                self._validate_params()
            if not call.first:
                self._check_kept() if changed else None
                arguments = (self._by_name(arguments[0], True), *arguments[1:])
            data = (check or self._check)(call, *arguments)
            if not call.first and len(data) == 1:
                transaction.add(*reversible(self._others))
            with self._threads():
                self._prepare(data, call, changed)
                (learn or self._learn)(data)
        return self

    def _predict(self, X, settings: tuple = (), by: str = "_learner") -> Any:
        """What the learner `by` predicts: of plain numbers straight away, all else is validated first.

        `settings` are the arguments of its `predict`, such as SCORES.
        """
        own = self.__dict__
        learner = own.get(by)
        # compiled: `AtomicLearner.predict_rows`, which calls `score_row` and `link_row` for each row
        predictions = None if learner is None else learner.predict_fast(own, X, *settings)
        if learner is not None and predictions is None:
            predictions = learner.predict_fast(own, self._translated(X), *settings)
        if predictions is not None:
            return predictions
        return self._predict_validated(self._query(X, finite=False, any_layout=True), settings)

    def _translated(self, X) -> Any:
        """Rows that are no plain numbers as the learner reads them; None if they are, or need validation."""
        return None if type(X) is np.ndarray else validation.opened(self, X)

    def _predict_validated(self, X, settings: tuple = ()) -> Any:
        """What the learner predicts for validated rows; an error names the first one that overflows."""
        predict = self._learner.predict
        predictions = predict(X, *settings)
        if predictions is None:
            check_finite(X, owner=self)
            self._refuse_prediction(X, next(i for i in range(X.shape[0]) if predict(X[i : i + 1], *settings) is None))
        return predictions

    def _by_name(self, X: Any, learning: bool) -> Any:
        """Rows with the columns of a fitted model, to which new ones may be added if it is `learning`."""
        return X

    def _refuse_prediction(self, X, row: int) -> NoReturn:
        """Raise the error for the first row whose prediction is not finite."""
        raise not_finite("prediction", row)

    def _prepare(self, data, call: Call, changed: bool = True, begin: Callable | None = None) -> None:
        """Begin or continue; `changed` tells whether parameters have changed since the last call."""
        if call.first:
            y, n_classes = getattr(data, "y", np.zeros((0, 1))), len(vars(self).get("classes_", ()))
            n_scores = y.shape[1] if np.ndim(y) == 2 else n_classes if n_classes > 2 else 1
            members = vars(self).get("estimators_", [self])
            validation.check_memory(self, vars(self).get("n_features_in_", 0), n_scores, members)
            (begin or self._begin)(data)
            self._keep_parameters()
            self._before, self._first_rows = Before(), FirstRows() if self._watches else None
        else:
            self._go_on(data, call)
        if changed:
            self._configure()
            valid = None if self._early_stopping else self  # partial_fit must see that and refuse
            named = "feature_names_in_" in vars(self) or not self._reads_numbers
            self._validated = Validated(valid, self._parameters_of_calls(), named)

    def _merged(self, parts: Sequence[Self], fractions: Sequence[float]) -> Self:
        """A new model merged from `parts`, copies of this one that have each learned a fraction of the rows."""
        raise NotImplementedError

    def _untrained(self, **start: Any) -> Self:
        """A copy of this model as it was before its first row."""
        model = copy.deepcopy(self)
        model._begin(self._like_first_rows(), **start)
        model._before, model._first_rows = Before(), None
        model._keep_parameters()
        model._configure()
        return model

    def _like_first_rows(self) -> Examples:
        """A row of which `_begin` makes what it made of the first ones."""
        return Examples(np.zeros((1, self.n_features_in_)), np.zeros(1))

    def _why_unbounded(self) -> str | None:
        """Why there are no bounds: they are for one run, under constant parameters, with the same columns and classes.

        None if there may be some.
        """
        return self._unbounded

    def _check_one_run(self, mixed: bool = False) -> None:
        """NoBound unless there are bounds; `mixed`: also of merged models."""
        if self._parallel and not mixed:
            raise NoBound("Bounds must be for one run over all rows; this model was merged from several.")
        self._fitted_state()
        if (why := self._why_unbounded()) is not None:
            raise NoBound(why)

    @property
    def _lost(self) -> float:
        """The loss before it began again, of all outputs."""
        return float(np.sum(self._before.losses))

    def _check(self, call: Call, X, y, sample_weight=None):
        """Validated rows, targets and weights."""
        X, y = check_rows(self, X, y=y, reset=call.first)
        return Examples(X, y, check_weights(sample_weight, len(y), allow_all_zero=call.partial))

    def _begin(self, data) -> None:
        """Bind a new model."""
        raise NotImplementedError

    def _go_on(self, data, call: Call) -> None:
        """Replace what learning changes in place by copies, except for a `_learner` that is called only once.

        One call of a learner can be undone; several, such as the epochs of a warm `fit`, cannot.
        """
        if not call.partial:
            self._copy_learner()

    def _copy_learner(self) -> None:
        """Replace the learner by a copy, which the present call may change in any way."""
        self._learner = copy.deepcopy(self._learner)

    def _configure(self) -> None:
        """Pass the parameters that may change between calls to the learner."""

    def _learn(
        self, data, order: np.ndarray | None = None, *, again: bool = False, scores: np.ndarray | None = None
    ) -> float:
        """Learn the data once, in the given order; `again`: whether this call has looked at them before.

        Returns the weighted mean loss of the rows before each was learned. `scores`, if given, receives their scores.
        """
        if self._first_rows is not None and not again:
            return self._learn_first(data, order, scores)
        weights = data.weights if data.weights is None or order is None else data.weights[order]
        total = (data.X.shape[0] if order is None else len(order)) if weights is None else weights.sum()
        if total == 0:
            return 0.0
        learner, before = self._learner, self._learner.cumulative_loss
        # compiled: `AtomicLearner.learn`, which learns all rows or none, as `learn_fast` does
        refused = learner.learn(data.X, data.y, data.weights, order, scores)
        if refused is not None:
            check_finite(data.X, owner=self)
            self._refuse(refused[0], refused[1], data)
        return (learner.cumulative_loss - before) / total

    def _learn_first(self, data, order: np.ndarray | None, scores: np.ndarray | None) -> float:
        """`_learn` of first rows: the model begins again after those that show that it has learned absurd values."""
        first: Any = self._first_rows
        rows = np.arange(data.X.shape[0]) if order is None else order
        weights = np.ones(data.X.shape[0]) if data.weights is None else data.weights
        places = np.flatnonzero(weights[rows] > 0)[: LOOKS[-1] - first.n]
        some = rows[places]
        self._first_rows, last = first.after(data.X[some], None if "classes_" in vars(self) else data.y[some])
        if not last:
            return self._learn(data, order, again=True, scores=scores)
        total = 0.0
        for number, part in enumerate(np.split(rows, places[last] + 1)):
            if number:
                self._begin_again()
            total += weights[part].sum() * self._learn(data, part, again=True, scores=scores)
        return float(total / weights[rows].sum())

    def _refuse(self, reason: str, row: int, data) -> None:
        """Raise the error for a row that the learner refused, with a remedy."""
        raise NotImplementedError

    def _learn_in_epochs(self, learn: Callable, data, X, y) -> None:
        """Learn the data in `fit`, by default for one epoch; X and y are the original arguments."""
        learn(data, next(self._orders(len(data))))

    def _shuffles(self) -> bool:
        """Whether `fit` learns rows in random order; `partial_fit` never does."""
        return "shuffle" in self._get_param_names() and self.shuffle

    def _orders(self, n: int, rows: np.ndarray | None = None) -> Iterator[np.ndarray | None]:
        """The order in which each epoch of `fit` learns n examples, or those of these numbers; None: as they come."""
        if not self._shuffles():
            return repeat(rows)
        return map(check_random_state(self.random_state).permutation, repeat(n if rows is None else rows))


def counted(name: str, before: str, doc: str) -> Any:
    """An attribute that is a number of the fitted learner, and of those before it."""
    of = attrgetter(f"_before.{before}")
    return property(lambda self: getattr(self._fitted_state(), name) + np.sum(of(self)).item(), doc=doc)


ROWS = counted("t", "rows", "Rows learned so far; rows of weight zero do not count.")
LOSS = counted("cumulative_loss", "losses", "Sum of weight * loss over all rows, each predicted before it was learned.")


class LearnsMatrix(LifeCycleMixin):
    """Learners of matrices with n_features_in_ rows."""

    _matrices: Any = 7

    def _threads(self) -> AbstractContextManager:
        return few_threads(vars(self).get("n_features_in_", np.inf))


class OnlineEstimator(LifeCycleMixin, CallbackSupportMixin, BaseEstimator):
    """An estimator whose `fit` is one pass over the examples, as one task for callbacks."""

    def _learn_in_epochs(self, learn: Callable, data, X, y) -> None:
        order = next(self._orders(len(data)))
        self._run(lambda _: learn(data, order) and False, 1, "epoch", X, y)

    def _run(
        self, body: Callable[[int], bool], n: int, task: str, X, y, current: Callable[[], dict[str, Any]] | None = None
    ) -> int:
        """Call `body(i)` for i < n as one callback task each, until it returns True or a callback asks to stop.

        Returns the number of tasks that were run. `current()` is what callbacks need to evaluate the current model, by
        default `_reconstruction_attributes`.
        """
        context, about, current = self._begin_tasks(n, X, y, current)
        for i in range(n):
            subcontext = context.subcontext(task_name=task)
            subcontext.call_on_fit_task_begin(**about)
            done = body(i)
            stop = subcontext.call_on_fit_task_end(**about, reconstruction_attributes=current)
            if done or stop:
                break
        context.call_on_fit_task_end(**about, reconstruction_attributes=current)
        return i + 1

    def _begin_tasks(self, n: int, X, y, current: Callable | None = None) -> tuple[Any, dict[str, Any], Callable]:
        """The context of `fit` with at most n tasks for callbacks, what they are given, and what returns the model."""
        context: Any = self._init_callback_context(max_subtasks=n)
        about = {"estimator": self, "X": X, "y": y, "metadata": {}}
        context.call_on_fit_task_begin(**about)
        return context, about, current or self._reconstruction_attributes

    def _reconstruction_attributes(self) -> dict[str, Any]:
        """Copies of the fitted attributes that change in place, for callbacks that evaluate the current model."""
        return {"_learner": copy.deepcopy(self._learner)} if "_learner" in vars(self) else {}


def reversible(estimators: Iterable[Any]) -> list[Any]:
    """The fitted estimators of this package among some, their experts and steps: a transaction can undo a call of each.

    What they are before their first call is copied in no time.
    """
    found: list[Any] = []
    for each in estimators:
        if isinstance(each, Pipeline):
            found += reversible(step for _, step in each.steps)
        elif isinstance(each, LifeCycleMixin) and each.__sklearn_is_fitted__():
            found += [each, *reversible(each._others)]
    return found


def same(now: Any, before: Any) -> bool:
    """Whether two values of a parameter mean the same."""
    if now is before:
        return True
    if hasattr(now, "get_params") and not isinstance(now, type) and type(now) is type(before):
        return same(now.get_params(deep=False), before.get_params(deep=False))
    if isinstance(now, dict) and isinstance(before, dict):
        return now.keys() == before.keys() and all(same(now[key], before[key]) for key in now)
    if isinstance(now, list | tuple) and isinstance(before, list | tuple):
        return len(now) == len(before) and all(map(same, now, before))
    if isinstance(now, np.ndarray) or isinstance(before, np.ndarray):
        return np.array_equal(now, before)
    return bool(now == before)
