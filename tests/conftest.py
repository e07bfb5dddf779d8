"""Fixtures of several test files: the public estimators, suitable data for each, and exact comparison of models."""

import contextlib
import functools
import signal

import numpy as np
import overhead
import pytest
from configurations import CHECKED_VARIANTS, OUTPUTS, configurations, is_default, is_density, rows_for, suited
from hypothesis import HealthCheck, settings
from sklearn.base import clone, is_classifier
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.validation import has_fit_parameter
from states import State

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
overhead.shorten_what_is_done_around_examples()

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
    parser.addoption("--rest", action="store_true", help="those of --all that are not run without it")


def pytest_configure(config):
    # a case that is named is run
    config.option.all |= config.option.rest or any("[" in name for name in config.invocation_params.args)
    config.pluginmanager.register(overhead)


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
        pairs = suited(metafunc)
        paired = [mark for mark in metafunc.definition.iter_markers("only") if len(mark.kwargs) == 2]
        if not paired:
            values = [pytest.param(estimator, id=name) for estimator, name in pairs]
            return metafunc.parametrize("estimator", values, indirect=True)
        (mark,) = paired
        ((name, values),) = ((key, given) for key, given in mark.kwargs.items() if key != "where")
        values = [
            pytest.param(estimator, value, id=f"{id}-{value}")
            for estimator, id in pairs
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
