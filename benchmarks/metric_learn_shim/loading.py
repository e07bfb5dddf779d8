"""Loads the tests of metric-learn, with the classes of `shim.py` in place of metric-learn's.

metric-learn itself does not run with recent versions of scikit-learn. Its tests are in its source distribution:
`pip download metric-learn==0.7.0 --no-deps --no-binary :all:`, unpacked in a folder that the environment variable
ONLINEBREGMAN_METRIC_LEARN names; then `python -m pytest benchmarks/metric_learn_shim`. Private functions that they
import are placeholders, whose tests are left out. Where they compare the text of an error, that of this package must
contain it.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from metric_learn_shim import shim
from sklearn.metrics import get_scorer
from sklearn.utils import _testing as testing
from sklearn.utils.estimator_checks import check_estimator

FOLDER = Path(os.environ.get("ONLINEBREGMAN_METRIC_LEARN", "metric-learn-0.7.0"))
FOUND = (FOLDER / "test" / "test_utils.py").is_file()


class _Module(ModuleType):
    """A module in which every name that is not set is a placeholder."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__module__": self.__name__, "__init__": lambda self, *args, **kwargs: None})


def _modules() -> dict[str, ModuleType]:
    found = {name: _Module(name) for name in ("metric_learn", "test")}
    for name in ("_util", "base_metric", "constraints", "exceptions", "sdml", "sklearn_shims"):
        found[f"metric_learn.{name}"] = _Module(f"metric_learn.{name}")
    vars(found["metric_learn"]).update({kind.__name__: kind for kind in shim.SHIMS})
    for name in ("Covariance", "LFDA", "RCA", "RCA_Supervised"):
        setattr(found["metric_learn"], name, type(name, (shim.Placeholder,), {}))
    base = found["metric_learn.base_metric"]
    base.MahalanobisMixin = shim.MahalanobisMixin
    for name in ("PairsClassifierMixin", "TripletsClassifierMixin", "QuadrupletsClassifierMixin"):
        setattr(base, f"_{name}", getattr(shim, name))
    found["metric_learn.sdml"]._BaseSDML = shim.SDML
    found["numpy.core.numeric"] = ModuleType("numpy.core.numeric")
    vars(found["numpy.core.numeric"])["array_equal"] = np.array_equal  # of versions of numpy before 2
    found["metric_learn._util"].make_context = lambda estimator: f" by {type(estimator).__name__}"
    exceptions = found["metric_learn.exceptions"]
    exceptions.NonPSDError = exceptions.PreprocessorError = ValueError
    vars(found["metric_learn.sklearn_shims"]).update(
        set_random_state=testing.set_random_state,
        ignore_warnings=testing.ignore_warnings,
        assert_allclose_dense_sparse=testing.assert_allclose_dense_sparse,
        _get_args=testing._get_args,
        is_public_parameter=lambda name: not (name.startswith("_") or name.endswith("_")),
        get_scorer=get_scorer,
        SKLEARN_AT_LEAST_0_22=True,
    )
    return found


@contextmanager
def _no_warning(*expected, **match):
    """`pytest.warns(None)`, which recent versions of pytest do not have."""
    if expected == (None,):
        with warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always")
            yield record
    else:
        with pytest.warns(*expected, **match) as record:
            yield record


class _Text(str):
    """The text of an error, which equals each text that it contains: those of this package name more remedies."""

    __hash__ = str.__hash__

    def __eq__(self, other):
        return other in self


@contextmanager
def _raises(*expected, **match):
    """`pytest.raises`, after which the text of the error is one of these."""
    said = SimpleNamespace()
    with pytest.raises(*expected, **match) as record:
        yield said
    text = _Text(record.value)
    said.value = type("Said", (), {"__str__": lambda self: text, "args": (text,)})()


def _same(test):
    return test


def _parametrize(names, values, **more):
    return pytest.mark.parametrize(names, list(values), **more)


# what the tests know as pytest: without marks that are not registered here
MARKS = SimpleNamespace(parametrize=_parametrize, unit=_same, integration=_same)
PYTEST = SimpleNamespace(**{**vars(pytest), "warns": _no_warning, "raises": _raises, "mark": MARKS})


def _check_estimator(estimator):
    check_estimator(estimator, on_skip=None)


def _execute(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load(name: str) -> dict:
    """The tests of a file of metric-learn's, which find the classes above in place of metric-learn's."""
    if not FOUND:

        @pytest.mark.skip(reason="ONLINEBREGMAN_METRIC_LEARN names no source distribution of metric-learn 0.7.0")
        def test_metric_learn():
            raise NotImplementedError

        return {"test_metric_learn": test_metric_learn}
    with mock.patch.dict(sys.modules, {**_modules(), "pytest": PYTEST}):
        constraints = _execute("metric_learn.constraints", FOLDER / "metric_learn" / "constraints.py")
        sys.modules["metric_learn"].Constraints = constraints.Constraints
        _execute("test.test_utils", FOLDER / "test" / "test_utils.py")
        module = sys.modules["test.test_utils"]
        if name != "test_utils":
            module = _execute(f"test.{name}", FOLDER / "test" / f"{name}.py")
    sys.modules[module.__name__] = module  # for pickles of its classes
    module.check_estimator = _check_estimator
    fixture = type(pytest.fixture(lambda: None))
    return {
        name: value
        for name, value in vars(module).items()
        if name.startswith(("test_", "Test")) or isinstance(value, fixture)
    }
