"""Fitted models as estimators of scikit-learn, whose fitted attributes are set."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, clone, is_classifier, is_outlier_detector
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import VotingClassifier, VotingRegressor
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier, SGDOneClassSVM
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, LabelBinarizer, LabelEncoder, MaxAbsScaler, StandardScaler

from ..losses import LOSSES
from .scores import link_of

# Of columns without a value so far, which are not clipped; a power of two
_UNLIMITED = 2.0**500


def linear(model: Any) -> BaseEstimator:
    """A linear model, after the steps that its scores take."""
    scores = model._scores()
    if scores.root is not None:
        raise ValueError(
            "scikit-learn has no model with forward predictions, which are shrunk by what is not known about the row; "
            "convert after set_params(forward=False)."
        )
    if scores.missing is not None:
        raise ValueError("The indicators of missing values of a member of a mixture cannot be converted.")
    if scores.thresholds is not None:
        raise ValueError("scikit-learn has no bins of columns as those of thresholds, and of pairs of columns.")
    steps, unit = [], np.ones(model.n_features_in_)  # the next step multiplies columns by their units
    if scores.inverse is not None:
        steps.append(_scaler(scores.mean, scores.inverse, model.n_samples_seen_))
        unit *= scores.inverse > 0
    if scores.limit is not None:
        limit = np.minimum(scores.limit, _UNLIMITED)
        steps.append(_clipping(limit))
        unit *= limit
    coef = scores.coef * unit if scores.features is None else scores.coef
    if scores.features is not None:
        frequencies, phases = scores.features
        sampler = RBFSampler(n_components=len(phases)).fit(np.zeros((1, len(unit))))
        steps.append(_set(sampler, random_weights_=(frequencies * unit).T, random_offset_=phases))
    convert = _linear_classifier if is_classifier(model) else _linear_regressor
    convert = _one_class if is_outlier_detector(model) else convert
    steps.append(convert(model, coef, scores.intercept))
    _set_names(steps[0], model)
    return make_pipeline(*steps) if len(steps) > 1 else steps[0]


def _set(estimator: Any, **attributes: Any) -> Any:
    """The estimator with these fitted attributes."""
    vars(estimator).update(attributes)
    return estimator


def _set_names(first: Any, model: Any) -> None:
    """Let the first step expect the features of the model."""
    while isinstance(first, Pipeline):
        first = first.steps[0][1]
    names = vars(model).get("feature_names_in_")
    for each in (getattr(first, "regressor_", first), *getattr(first, "estimators_", ())):
        _set(each, **({} if names is None else {"feature_names_in_": names}))


def _scaler(mean: np.ndarray | None, inverse: np.ndarray, n_rows: float) -> StandardScaler:
    scale = np.divide(1.0, inverse, out=np.ones(len(inverse)), where=inverse > 0)
    scaler = StandardScaler(with_mean=mean is not None)
    fitted = {"mean_": mean, "scale_": scale, "var_": scale**2}
    return _set(scaler, n_samples_seen_=n_rows, n_features_in_=len(scale), **fitted)


def _clipping(limit: np.ndarray) -> MaxAbsScaler:
    try:
        scaler = MaxAbsScaler(clip=True)
    except TypeError as error:
        raise ValueError("The model clips values, for which scikit-learn needs version 1.7 or later.") from error
    return _set(scaler, scale_=limit, max_abs_=limit, n_features_in_=len(limit), n_samples_seen_=0)


def _linear_regressor(model: Any, coef: np.ndarray, intercept: np.ndarray) -> BaseEstimator:
    single = np.ndim(model.intercept_) == 0
    regressor = _set(
        LinearRegression(),
        coef_=coef[0] if single else coef,
        intercept_=float(intercept[0]) if single else intercept,
        n_features_in_=coef.shape[1],
    )
    loss = model._learned_loss
    link = link_of(loss)
    if link == "identity":
        return regressor
    known = {"sigmoid": (logit, expit), "exp": (np.log, np.exp)}
    func, inverse = known.get(link or "", (np.asarray, loss.link))
    linked = TransformedTargetRegressor(LinearRegression(), func=func, inverse_func=inverse, check_inverse=False)
    linked.fit(csr_array((1, coef.shape[1])), np.full((1, *np.shape(model.intercept_)), 0.5))
    return _set(linked, regressor=regressor, regressor_=regressor)


def _linear_classifier(model: Any, coef: np.ndarray, intercept: np.ndarray) -> BaseEstimator:
    classifier: Any = LogisticRegression()
    if not model._multilabel and len(model.classes_) == len(coef) <= 2:
        if len(coef) == 1 or (model._learned_loss.probabilistic and model._link != "softmax"):
            raise ValueError(
                "scikit-learn has no linear classifier of one class, nor one with probabilities of two classes from a "
                "score for each; set handle_unknown='error'."
            )
        coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
    if model._link != "softmax":
        loss = model._learned_loss
        name = next((name for name, known in LOSSES.items() if known == loss), None)
        if name is None and loss.probabilistic:
            raise ValueError(f"scikit-learn has no classifier with the probabilities of {loss!r}.")
        classifier = SGDClassifier(loss=name or "hinge")
    fitted = {"classes_": model.classes_, "n_features_in_": coef.shape[1], "n_iter_": 1}
    if not model._multilabel:
        return _set(classifier, coef_=coef, intercept_=intercept, **fitted)
    of_each = fitted | {"classes_": np.arange(2)}
    several = [
        _set(clone(classifier), coef_=coef[k : k + 1], intercept_=intercept[k : k + 1], **of_each)
        for k in range(len(coef))
    ]
    labels = LabelBinarizer().fit(np.eye(len(coef), dtype=np.int64))
    del fitted["n_iter_"]
    return _set(OneVsRestClassifier(classifier), estimators_=several, label_binarizer_=labels, **fitted)


def _one_class(model: Any, coef: np.ndarray, intercept: np.ndarray) -> SGDOneClassSVM:
    return _set(SGDOneClassSVM(nu=model.nu), coef_=coef, offset_=-intercept, n_features_in_=coef.shape[1])


def metric(model: Any) -> NeighborhoodComponentsAnalysis:
    """A Mahalanobis metric, as the linear map to a space in which it is Euclidean."""
    components = np.array(model.components_)
    mapping = NeighborhoodComponentsAnalysis(n_components=len(components))
    _set_names(mapping, model)
    return _set(mapping, components_=components, n_features_in_=model.n_features_in_, n_iter_=0)


def neighbors(model: Any) -> Pipeline | VotingClassifier | VotingRegressor:
    """Nearest neighbours in the window, in one metric or in several that vote or are averaged."""
    pipelines = []
    for each in model.metric_learners_:
        steps = [] if isinstance(each, FunctionTransformer) else [_step(each)]
        rows = steps[0].transform(model.X_) if steps else model.X_
        searcher = model._search(
            min(model.n_neighbors, len(rows)), weights=model.weights, algorithm=model.algorithm, n_jobs=model.n_jobs
        )
        pipelines.append(make_pipeline(*steps, searcher.fit(rows, model.y_)))
        _set_names(pipelines[-1], model)
    if len(pipelines) == 1:
        return pipelines[0]
    named = [(f"metric{number}", each) for number, each in enumerate(pipelines)]
    if not is_classifier(model):
        return _set(VotingRegressor(named), estimators_=pipelines)
    labels, voting = LabelEncoder().fit(model.y_), VotingClassifier(named, voting="soft")
    return _set(voting, estimators_=pipelines, le_=labels, classes_=labels.classes_)


def _step(step: Any) -> Any:
    """A fitted estimator, or the steps of a pipeline, without those of this package."""
    if isinstance(step, Pipeline):
        return Pipeline([(name, _step(each)) for name, each in step.steps])
    return step.to_sklearn() if hasattr(step, "to_sklearn") else copy.deepcopy(step)
