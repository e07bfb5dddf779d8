"""Fixtures of several test files: the public estimators, suitable data for each, and exact comparison of models."""

import contextlib
import functools
import inspect
import signal

import numpy as np
import overhead
import pytest
from configurations import CHECKED_VARIANTS, FIRST, VARIANTS
from hypothesis import HealthCheck, settings
from scipy.special import expit
from sklearn.base import BaseEstimator, clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.validation import has_fit_parameter
from states import State

import onlinebregman
from onlinebregman._online.estimator import LifeCycleMixin

# The same examples in every run, so that failures can be reproduced.
settings.register_profile(
    "repeatable",
    max_examples=30,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")
overhead.shorten_the_search_for_data_frames()
overhead.shorten_what_is_done_around_examples()

# Methods that return a result for each row.
OUTPUTS = ("predict", "decision_function", "predict_proba", "transform", "score_samples")

# Checks that scikit-learn has but its generator leaves out; the second list is for transformers.
LEFT_OUT = ["check_param_validation", "check_dataframe_column_names_consistency", "check_inplace_ensure_writeable"]
LEFT_OUT_OF_TRANSFORMERS = [
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_global_output_transform_pandas",
    "check_set_output_transform_polars",
    "check_global_set_output_transform_polars",
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
    "check_get_feature_names_out_error",
]


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="every case of each test, and the tests marked as exhaustive")


def pytest_configure(config):
    config.option.all |= any("[" in name for name in config.invocation_params.args)  # a case that is named is run
    config.pluginmanager.register(overhead)


def public_estimators():
    """The classes of all public estimators, found by walking the package's public names."""
    values = (getattr(onlinebregman, name) for name in onlinebregman.__all__)
    return [value for value in values if inspect.isclass(value) and issubclass(value, BaseEstimator)]


def is_density(estimator):
    """Whether an estimator is a density, which learns rows without targets."""
    return get_tags(estimator).estimator_type == "density_estimator"


def configurations(limit=None):
    """An instance of every public estimator and of its variants, at most as many as `limit` says for its name."""
    for cls in public_estimators():
        variants = VARIANTS.get(cls.__name__, [])
        yield cls(**FIRST.get(cls.__name__, {}))
        for parameters in variants if limit is None else variants[: limit.get(cls.__name__, 0)]:
            yield cls(**parameters)


def expected_failures(estimator):
    """The checks of scikit-learn that an online learner cannot pass, with reasons."""
    order_free = type(estimator).__name__ == "ForwardRegressor" and estimator.standardize is False
    if not has_fit_parameter(estimator, "sample_weight") or order_free:
        return {}
    if is_density(estimator):  # the check compares no output of a density
        return {}
    reason = "compares shuffled rows: what a learner keeps of a stream depends on its order"
    kinds = ["dense", "sparse"] if get_tags(estimator).input_tags.sparse else ["dense"]
    failures = {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in kinds}
    if type(estimator).__name__ == "BurgRegressor" and estimator.update == "gradient":
        failures["check_sparsify_coefficients"] = "has negative values, which these steps do not accept"
    if get_tags(estimator).target_tags.positive_only and get_tags(estimator).target_tags.multi_output:
        failures["check_regressor_multioutput"] = "has negative targets"
    return failures


def is_online_learner(estimator):
    """Whether its `fit` runs epochs over the rows."""
    return {"shuffle", "max_iter"} <= set(estimator.get_params())


# Fixtures for some of the estimators: tests that use them run for those only.
SUITED = {
    "online": is_online_learner,
    "sparse_rows": lambda estimator: get_tags(estimator).input_tags.sparse,
    "weighted": lambda estimator: has_fit_parameter(estimator, "sample_weight"),
}


@functools.cache
def named_configurations():
    """Every configuration, with its name as a test id; tests get clones."""
    return [(estimator, repr(estimator)) for estimator in configurations()]


@functools.cache
def default_names():
    """The names of the default configurations."""
    return {repr(estimator) for estimator in configurations({})}


@functools.cache
def is_default(estimator):
    """Whether it is the default configuration of its class."""
    return repr(estimator) in default_names()


def suited_configurations(metafunc):
    """(configuration, name) of the estimators selected by the test's fixtures and its marks `only`."""
    wanted = [SUITED[name] for name in metafunc.fixturenames if name in SUITED]
    wanted += [mark.kwargs["where"] for mark in metafunc.definition.iter_markers("only") if len(mark.kwargs) == 1]
    with_variants = metafunc.config.option.all and getattr(metafunc.module, "WITH_VARIANTS", True)
    return [
        (estimator, name)
        for estimator, name in named_configurations()
        if all(suits(estimator) for suits in wanted) and (with_variants or name in default_names())
    ]


def pytest_generate_tests(metafunc):
    """`estimator`: every configuration; with `check`, each of scikit-learn's checks; with `left_out`, the others.

    A test marked `only(where=f)` is made for the estimators of which `f(estimator)` is true; one that is marked
    `only(where=f, name=values)`, for the pairs of an estimator and a value of which `f(estimator, value)` is true.
    A module whose tests do not depend on parameters says so: WITH_VARIANTS = False. Without `--all` there are default
    configurations only. Tests of other packages have estimators of their own.
    """
    if metafunc.definition.path.parent.name.endswith("_shim"):
        return
    checked = CHECKED_VARIANTS if metafunc.config.option.all else {}
    if "check" in metafunc.fixturenames:
        # every xfail here is strict: pyproject sets xfail_strict
        chosen = list(configurations(checked))
        mark = estimator_checks.parametrize_with_checks(chosen, expected_failed_checks=expected_failures)
        ids = functools.cache(mark.kwargs["ids"])
        metafunc.parametrize(mark.args[0], list(mark.args[1]), **mark.kwargs | {"ids": ids})
    elif "left_out" in metafunc.fixturenames:
        pairs = [
            (estimator, name)
            for estimator in configurations(checked)
            for name in LEFT_OUT + (LEFT_OUT_OF_TRANSFORMERS if hasattr(estimator, "transform") else [])
            if hasattr(estimator_checks, name)  # older versions lack some
        ]
        metafunc.parametrize("estimator, left_out", pairs, ids=[f"{estimator}-{name}" for estimator, name in pairs])
    elif "estimator" in metafunc.fixturenames:
        suited = suited_configurations(metafunc)
        paired = [mark for mark in metafunc.definition.iter_markers("only") if len(mark.kwargs) == 2]
        if not paired:
            values = [pytest.param(estimator, id=name) for estimator, name in suited]
            return metafunc.parametrize("estimator", values, indirect=True)
        (mark,) = paired
        ((name, values),) = ((key, given) for key, given in mark.kwargs.items() if key != "where")
        values = [
            pytest.param(estimator, value, id=f"{id}-{value}")
            for estimator, id in suited
            for value in values
            if mark.kwargs["where"](estimator, value)
        ]
        metafunc.parametrize(f"estimator, {name}", values, indirect=["estimator"])


@pytest.fixture
def no_validation(monkeypatch):
    """A function after whose call rows of linear models must go straight to the learner."""

    def refuse(*args, **kwargs):
        raise AssertionError("the slow path was taken")

    modules = "_online.estimator", "_online.labels", "_online.validation", "linear_model._base"
    return lambda: [monkeypatch.setattr(f"onlinebregman.{module}.check_rows", refuse) for module in modules]


@pytest.fixture
def estimator(request):
    """A fresh, unfitted estimator; with `random_state` set where there is one."""
    fresh = clone(request.param)
    if "random_state" in fresh.get_params():
        fresh.set_params(random_state=0)
    return fresh


@pytest.fixture
def in_order(monkeypatch):
    """Let `fit` of estimators of one pass learn rows in their order: for tests that compare it with loops over rows."""
    shuffles = LifeCycleMixin._shuffles
    monkeypatch.setattr(LifeCycleMixin, "_shuffles", lambda model: hasattr(model, "max_iter") and shuffles(model))


@pytest.fixture
def online(estimator):
    """A fresh estimator whose `fit` runs epochs over the rows."""
    return estimator


def rows_for(estimator, n_classes):
    """(X, y) of 40 suitable rows; y are numbers for a regressor, labels for a classifier, or distances of objects."""
    rng = np.random.default_rng(5)
    family = type(estimator).__module__.split(".")[1]
    if family == "kernel_learning":  # its estimators are regressors, too
        objects = np.array([rng.choice(6, size=2, replace=False) for _ in range(40)])
        X = (np.eye(6)[objects[:, 0]] - np.eye(6)[objects[:, 1]]) / np.sqrt(2)
        return X, np.where((objects < 3).all(axis=1) | (objects >= 3).all(axis=1), 0.1, 0.3)
    if is_density(estimator) or family == "preprocessing":  # which ignore y
        X = rng.normal(size=(40, 4))
        if get_tags(estimator).input_tags.positive_only:
            X = np.floor(np.abs(3 * X))  # counts
        return X, rng.integers(2, size=40)
    if is_classifier(estimator) or (family == "metric_learning" and not is_regressor(estimator)):
        y = rng.integers(n_classes, size=40)
        return rng.normal(size=(40, 4)) + 2.0 * np.eye(3, 4)[y], y
    if is_regressor(estimator):
        X = rng.normal(size=(40, 4))
        if get_tags(estimator).input_tags.positive_only:
            X = np.abs(X)
        y = X @ [0.1, 0.4, 0.2, 0.3] + 0.1 * rng.uniform(size=40)
        if get_tags(estimator).target_tags.positive_only and not get_tags(estimator).input_tags.positive_only:
            y = expit(y)  # counts, rates or probabilities
        return X, y
    if is_outlier_detector(estimator):  # which ignores y; rows on one side of the origin
        X = 1.0 + rng.uniform(size=(40, 4))
        return X, rng.integers(2, size=40)
    raise NotImplementedError(f"no data for estimators of onlinebregman.{family}; add them here")


@pytest.fixture
def rows(estimator, request):
    """Suitable rows: of three classes for the default configuration, of two for its variants."""
    return rows_for(estimator, 3 if is_default(request.node.callspec.params["estimator"]) else 2)


@pytest.fixture
def learn(rows):
    """`partial_fit`, with `classes` in a classifier's first call."""
    classes = np.unique(rows[1])

    def learn(estimator, X, y, **parameters):
        if is_classifier(estimator) and not hasattr(estimator, "classes_"):
            parameters["classes"] = classes
        return estimator.partial_fit(X, y, **parameters)

    return learn


@pytest.fixture(scope="session")
def state():
    """The complete state of an object, bit for bit, in a form that can be compared by ==."""
    return State


@pytest.fixture(scope="session")
def learned():
    """The same for the learned state of an estimator, without its parameters and attributes that only `fit` sets."""

    def learned(estimator, *, without=()):
        of_fit = {"n_iter_", "loss_curve_", "validation_scores_", "_started_with"}
        skip = of_fit.union(estimator.get_params(deep=False), without)
        return State({key: value for key, value in vars(estimator).items() if key not in skip})

    return learned


@pytest.fixture(scope="session")
def output():
    """The results of a fitted estimator for rows: predictions, scores and transformed rows, as available."""

    def output(estimator, X):
        methods = [name for name in OUTPUTS if hasattr(estimator, name)]
        assert methods, f"{estimator} neither predicts nor transforms"
        return {name: np.asarray(getattr(estimator, name)(X)) for name in methods}

    return output


@pytest.fixture(scope="session")
def outputs():
    """The names of the methods of an estimator that return a result for each row."""
    return OUTPUTS


@pytest.fixture(scope="session")
def is_online():
    """Whether `fit` runs epochs over the rows, so that one epoch equals one `partial_fit`."""
    return is_online_learner


@pytest.fixture(scope="session")
def unchanged(untouched):
    """Context: the block raises the given error, and leaves the estimator exactly as it was."""

    @contextlib.contextmanager
    def unchanged(estimator, match, error=ValueError):
        with untouched(estimator), pytest.raises(error, match=match) as raised:
            yield raised

    return unchanged


@pytest.fixture(scope="session")
def untouched():
    """Context: whatever is tried in the block leaves the estimators exactly as they were."""

    @contextlib.contextmanager
    def untouched(*estimators):
        before = [State(estimator) for estimator in estimators]
        yield
        assert [State(estimator) for estimator in estimators] == before

    return untouched


@pytest.fixture
def soon():
    """Context in which Ctrl-C comes after two milliseconds."""

    class Soon:
        def __enter__(self):
            signal.setitimer(signal.ITIMER_REAL, 0.002)

        def __exit__(self, *_):
            signal.setitimer(signal.ITIMER_REAL, 0.0)

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield Soon()
    signal.signal(signal.SIGALRM, before)
