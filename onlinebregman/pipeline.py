"""Pipelines that learn from a stream: `partial_fit` through all steps."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Self

from joblib import Memory
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, process_routing
from sklearn.utils.metaestimators import available_if

from ._online.containers import sound_csr
from ._online.docs import DocumentedMixin, described_by
from ._online.estimator import reversible
from ._sklearn_compat import all_or_nothing

__all__ = ["OnlinePipeline", "make_online_pipeline"]


class OnlinePipeline(DocumentedMixin, Pipeline):
    """Pipeline with `partial_fit`: all steps learn from one stream.

    A chunk of rows passes through the steps in order. Each transformer learns it with its own `partial_fit`, transforms
    it in its new state, and passes it on; the last step learns the result. Everything else works as in scikit-learn's
    `Pipeline`: `fit`, `predict`, `set_output`, parameters by the names of the steps, metadata routing.

    Three kinds of steps are possible: estimators with `partial_fit`; stateless transformers (whose tag `requires_fit`
    is False, such as `Normalizer` and `FunctionTransformer`); and fitted estimators inside a
    :class:`~sklearn.frozen.FrozenEstimator`, which do not change.

    Parameters
    ----------
    steps : list of tuples of (str, estimator)
        Names and estimators, the last of which may predict. "passthrough" or None stands for no step.
    transform_input : list of str or None, default=None
        As in `Pipeline`; only used by `fit`.
    memory : str, object with the joblib.Memory interface or None, default=None
        As in `Pipeline`; only used by `fit`.
    verbose : bool, default=False
        As in `Pipeline`; only used by `fit`.

    Attributes
    ----------
    named_steps : :class:`~sklearn.utils.Bunch`
        The steps by their names.
    classes_ : ndarray of shape (n_classes,)
        Labels, if the last step is a classifier.
    n_features_in_ : int
        Number of features of the first step.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features of the first step, if X had any.

    See Also
    --------
    make_online_pipeline : The same without naming the steps.
    onlinebregman.MetricKNeighborsClassifier : Keeps rows as they came, and maps them as such a pipeline does now.

    Notes
    -----
    A step receives each row as transformed by the state of the preceding steps at that time. Earlier rows are not
    transformed again, so let scalers learn some rows before the subsequent steps, or choose steps that forget old rows.

    The state of the steps is copied before each call, so that it can be restored if a row is rejected; for scalers this
    takes 5 to 30 microseconds. Estimators of this package, and pipelines of them, are not copied: they undo the call.

    `copy.copy` of a pipeline shares the steps, as in scikit-learn, so that they learn the rows of both. `copy.deepcopy`
    and `sklearn.base.clone` copy the steps.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> from onlinebregman import ImplicitGDRegressor
    >>> from onlinebregman.pipeline import OnlinePipeline
    >>> X = np.random.default_rng(0).normal(size=(1000, 3)) * [1.0, 10.0, 100.0]
    >>> y = X @ [3.0, 0.2, 0.01]
    >>> model = OnlinePipeline([("scale", StandardScaler()), ("regress", ImplicitGDRegressor())])
    >>> for start in range(0, 1000, 100):
    ...     model = model.partial_fit(X[start : start + 100], y[start : start + 100])
    >>> print(int(model["scale"].n_samples_seen_), f"{model.score(X, y):.2f}")
    1000 1.00
    """

    _doc_place = "pipeline."

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Let each step learn these rows once, transformed by the preceding steps; if one raises, no step changes.

        Parameters
        ----------
        X : array-like, or what else the first step takes
            Rows.
        y : array-like of shape (n_samples,), default=None
            Targets, for every step that takes them.
        classes : array-like of shape (n_classes,), default=None
            All class labels, for every step whose `partial_fit` accepts them: a classifier needs them in the first
            call. Ignored if no step does.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, for the last step; with metadata routing, for the steps that request them.
        **params : dict
            Parameters for the `partial_fit` of a step, as `step__parameter`; with metadata routing those that steps
            request, under their own names.

        Returns
        -------
        self : object
            The pipeline.

        Raises
        ------
        ValueError
            If a step has no `partial_fit`, or does not accept a parameter. Errors of a step are passed on. In each case
            all steps are in the state before the call.
        """
        self._check_steps()
        if self.transform_input is not None:
            raise ValueError(
                "transform_input is only for fit; set it to None, and pass the rows to be learned to partial_fit."
            )
        steps = [(name, step) for name, step in self.steps if step is not None and step != "passthrough"]
        for name, step in steps:
            check_online(step, f"Step {name!r}")
        parameters = self._parameters_of_steps(sample_weight, params)
        X = sound_csr(X) if issparse(X) else X  # the first step may pass it on to SciPy unchecked
        learning = [step for _, step in steps if not isinstance(step, FrozenEstimator)]
        with all_or_nothing(self, *reversible(learning), copied=learning):
            for number, (name, step) in enumerate(steps):
                to_learn, to_transform = parameters(name)
                learn_more(step, X, y, classes, **to_learn)
                if number + 1 < len(steps):
                    X = step.transform(X, **to_transform)
        return self

    def _check_steps(self) -> None:
        """Check the types of the steps, then as `Pipeline` does."""
        if not isinstance(self.steps, list) or not all(
            isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in self.steps
        ):
            raise ValueError(f"steps must be a list of tuples (name, estimator); got {self.steps!r}.")
        for name, step in self.steps:
            check_instance(step, f"Step {name!r}")
        self._validate_steps()

    def _parameters_of_steps(self, sample_weight, params: dict):
        """A function from a step's name to the arguments of its `partial_fit` and its `transform`."""
        if get_config()["enable_metadata_routing"]:
            weights = {} if sample_weight is None else {"sample_weight": sample_weight}
            routed = process_routing(self, "partial_fit", **weights, **params)
            return lambda name: (routed[name].partial_fit, routed[name].get("transform", {}))
        learning = {name: step for name, step in self.steps if learns(step)}
        given: dict[str, dict[str, Any]] = {name: {} for name in learning}
        for key, value in params.items():
            name, _, parameter = key.partition("__")
            if not parameter or name not in given:
                raise ValueError(
                    f"partial_fit does not take {key!r}; write parameters of a step as step__parameter, with one of "
                    f"the steps that learn: {', '.join(given) or 'none'}."
                )
            if not _takes(learning[name], parameter):
                raise ValueError(
                    f"partial_fit does not take {key!r}: that of step {name!r} ({_kind(learning[name])}) has no "
                    f"parameter {parameter!r}; omit it."
                )
            given[name][parameter] = value
        if sample_weight is not None:
            name, last = self.steps[-1]
            if name not in given or "sample_weight" not in parameters_of(last.partial_fit):
                raise ValueError(
                    f"The last step must accept sample_weight, but {name!r} ({_kind(last)}) does not; omit it, or pass "
                    "it to a step that does, as step__sample_weight."
                )
            given[name]["sample_weight"] = sample_weight
        return lambda name: (given.get(name, {}), {})

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata routing: what `Pipeline` routes, and the parameters of `partial_fit`.

        Returns
        -------
        routing : MetadataRouter
            The routing of parameters to steps.
        """
        router = super().get_metadata_routing()
        for name, (mapping, _) in router:
            mapping.add(caller="partial_fit", callee="partial_fit")
            if name != self.steps[-1][0]:
                mapping.add(caller="partial_fit", callee="transform")
        return router


def _for_sound_rows(name: str):
    """scikit-learn's method of this name, with a check of sparse rows, which it would pass on unchecked."""

    @available_if(lambda self: hasattr(super(OnlinePipeline, self), name))
    @functools.wraps(getattr(Pipeline, name))
    def method(self, X, *args, **params):
        return getattr(super(OnlinePipeline, self), name)(sound_csr(X) if issparse(X) else X, *args, **params)

    return method


for _name in ("fit", "fit_transform", "fit_predict", "predict", "predict_proba", "predict_log_proba"):
    setattr(OnlinePipeline, _name, _for_sound_rows(_name))
for _name in ("decision_function", "score", "score_samples", "transform", "inverse_transform"):
    setattr(OnlinePipeline, _name, _for_sound_rows(_name))


@described_by(OnlinePipeline)
def make_online_pipeline(
    *steps: BaseEstimator | str | None,
    memory: str | Memory | None = None,
    transform_input: list[str] | None = None,
    verbose: bool = False,
) -> OnlinePipeline:
    """An `OnlinePipeline` of these steps, named after their types as by `make_pipeline`.

    Parameters
    ----------
    *steps : estimators
        The steps.
    {memory, transform_input, verbose}

    Returns
    -------
    pipeline : OnlinePipeline
        The pipeline.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from onlinebregman import LogDetMetricLearner
    >>> from onlinebregman.pipeline import make_online_pipeline
    >>> [name for name, _ in make_online_pipeline(StandardScaler(), LogDetMetricLearner()).steps]
    ['standardscaler', 'logdetmetriclearner']
    """
    return OnlinePipeline(make_pipeline(*steps).steps, memory=memory, transform_input=transform_input, verbose=verbose)


# --- one step ---------------------------------------------------------------------------------------------------------


def learns(step: Any) -> bool:
    """Whether `partial_fit` changes this estimator; it does not for frozen and stateless ones."""
    return hasattr(step, "partial_fit") and not isinstance(step, FrozenEstimator)


def last_step(estimator: Any) -> Any:
    """The last step of a pipeline; any other estimator itself."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def takes_classes(estimator: Any) -> bool:
    """Whether `partial_fit` of an estimator, or of a step of an `OnlinePipeline`, takes `classes`."""
    if isinstance(estimator, OnlinePipeline):
        return any(takes_classes(step) for _, step in estimator.steps)
    return learns(estimator) and "classes" in parameters_of(estimator.partial_fit)


def adds_classes(estimator: Any) -> bool:
    """Whether a classifier, or that at the end of a pipeline, needs no `classes`, as it adds labels when they come."""
    return getattr(last_step(estimator), "handle_unknown", "error") == "add"


def check_instance(estimator: Any, what: str) -> None:
    """Raise a ValueError if this is a class of estimators, and not one of them."""
    if isinstance(estimator, type):
        name = estimator.__name__
        raise ValueError(f"{what} must be an estimator; got the class {name}. Use {name}().")


def parameters_of(method: Callable) -> Mapping[str, inspect.Parameter]:
    """The parameters of a method by name; they may include `self` if it is not a bound method."""
    function = getattr(method, "__func__", None)
    return inspect.signature(method).parameters if function is None else _parameters_of(function)


@functools.cache
def _parameters_of(function: Callable) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


def check_online(step: Any, what: str) -> None:
    """Raise a ValueError if the estimator would have to learn, but has no `partial_fit`."""
    if not (learns(step) or isinstance(step, FrozenEstimator)) and get_tags(step).requires_fit:
        raise ValueError(
            f"{what} ({_kind(step)}) has no partial_fit and cannot learn incrementally; use an online estimator, or "
            "fit it beforehand and wrap it in sklearn.frozen.FrozenEstimator."
        )


def learn_more(
    step: Any, X: Any, y: ArrayLike | None = None, classes: ArrayLike | None = None, **parameters: Any
) -> None:
    """Let an estimator learn rows by `partial_fit`, with `y` and `classes` if it takes them.

    A stateless one only gets its first rows, for the names of the features.
    """
    moves = learns(step)
    if not moves and hasattr(step, "n_features_in_"):
        return
    method = step.partial_fit if moves else step.fit
    takes = parameters_of(method)
    if classes is not None and "classes" in takes:
        parameters["classes"] = classes
    if "y" in takes:
        parameters["y"] = y
    method(X, **parameters)


def copies_to_learn(estimators: list[BaseEstimator], n_rows: int) -> list[BaseEstimator]:
    """The estimators that learn the rows, to be bound when none has raised: copies, but of what undoes its only row."""
    kept = [estimator for estimator in estimators if not learns(estimator)]
    kept += reversible(estimators) if n_rows == 1 else []
    if all(estimator in kept for estimator in estimators):
        return estimators
    return copy.deepcopy(estimators, {id(estimator): estimator for estimator in kept})


def _takes(step, parameter: str) -> bool:
    """Whether `partial_fit` of a step takes a parameter other than rows and targets."""
    takes = parameters_of(step.partial_fit)
    if any(known.kind is known.VAR_KEYWORD for known in takes.values()):
        return True
    return parameter in takes and parameter not in ("X", "y")


def _kind(step) -> str:
    return step if isinstance(step, str) else type(step).__name__
