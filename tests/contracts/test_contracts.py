"""Contracts of every public estimator: scikit-learn's checks, and further ones for online learning.

Estimators are found automatically, see conftest.py. Contracts about their input are in test_contracts_input.py.
"""

import copy
import importlib
import inspect
import io
import pickle
import pkgutil
import threading
from importlib.util import find_spec

import joblib
import numpy as np
import pytest
from configurations import is_online_learner
from numpy.testing import assert_array_equal
from onlinebregman._kernels.learners.stacked_mixers import CentredMixer
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import estimator_checks, get_tags

import onlinebregman
from onlinebregman import ImplicitGDRegressor
from onlinebregman.linear_model._base import OnlineLinearModel
from onlinebregman.losses import QuantileLoss

AT_ONCE = ("DefiniteBoost", "MaxEntDensity")  # solve for all that has come, up to a tolerance
CUTS = ([1] * 40, [7, 33], [13, 1, 26], [40])


def pieces(cut, *arrays):
    """The arrays, cut into consecutive pieces of the given lengths."""
    ends = np.cumsum(cut)
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        yield tuple(array[start:end] for array in arrays)


# --- all public estimators are tested ---------------------------------------------------------------------------------


def modules():
    for info in pkgutil.walk_packages(onlinebregman.__path__, "onlinebregman."):
        names = info.name.split(".")
        left_out = {"dask"} | ({"river"} if find_spec("river") is None else set())  # dask has its own tests
        if not any(name.startswith("_") or name in left_out for name in names):
            yield importlib.import_module(info.name)


def test_every_estimator_of_a_public_module_is_a_public_name():
    found = {
        name: cls
        for module in modules()
        for name, cls in inspect.getmembers(module, inspect.isclass)
        if issubclass(cls, BaseEstimator)
        and cls.__module__ == module.__name__
        and "__init__" in vars(cls)  # others are base classes
        and not issubclass(cls, Pipeline)  # needs steps; stays in its module, with contracts in test_pipeline.py
    }
    assert found, "no estimators found: the walk over the package is broken"
    assert {name for name, cls in found.items() if getattr(onlinebregman, name, None) is not cls} == set()
    assert set(found) <= set(onlinebregman.__all__)


def test_public_names_exist_once():
    for module in (onlinebregman, *modules()):
        names = getattr(module, "__all__", [])
        assert len(names) == len(set(names)), module.__name__
        assert [name for name in names if not hasattr(module, name)] == [], module.__name__


# --- scikit-learn's own checks ----------------------------------------------------------------------------------------


def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")  # these checks mix frames and arrays
def test_scikit_learn_check_left_out_by_its_generator(estimator, left_out):
    getattr(estimator_checks, left_out)(type(estimator).__name__, estimator)


# --- online learning --------------------------------------------------------------------------------------------------


def test_partial_fit_returns_self_and_may_come_first(estimator, rows, learn, output):
    X, y = rows
    assert learn(estimator, X[:20], y[:20]) is estimator
    assert estimator.n_features_in_ == X.shape[1]
    if hasattr(estimator, "domain_"):
        X = X[:20]  # the others have probability 0
    for values in output(estimator, X).values():
        assert np.isfinite(values).all() and len(values) == len(X)


def test_fit_starts_over(estimator, rows, state):
    X, y = rows
    fresh = clone(estimator).fit(X, y)
    again = estimator.fit(2 * X[:30], y[:30]).partial_fit(X, y).fit(X, y)
    assert state(again) == state(fresh)


@pytest.mark.only(where=lambda estimator: type(estimator).__name__ not in AT_ONCE)
@pytest.mark.parametrize("cut", CUTS, ids=len)
def test_one_epoch_is_one_partial_fit_however_it_is_cut(estimator, rows, learn, cut, learned, output):
    X, y = rows
    parts = clone(estimator)
    for X_part, y_part in pieces(cut, X, y):
        learn(parts, X_part, y_part)
        parts = pickle.loads(pickle.dumps(parts)) if len(X_part) > 1 else copy.deepcopy(parts)
    whole = learn(clone(estimator), X, y)
    assert learned(parts) == learned(whole)
    for name, values in output(whole, X).items():
        assert_array_equal(values, output(parts, X)[name])
    if is_online_learner(estimator):
        estimator.set_params(max_iter=1, shuffle=False, tol=None).fit(X, y)
        assert learned(estimator) == learned(whole)


def mixes_numbers(estimator):
    """Whether models learn numbers side by side: only their mixer may give them other targets than the caller's."""
    return is_regressor(estimator) and hasattr(estimator, "_make_mixer")


def centres_targets(estimator):
    """Whether models learn targets minus their mean so far."""
    return type(estimator).__name__ == "ParameterFreeRegressor"


@pytest.mark.only(where=mixes_numbers)
def test_estimators_that_centre_targets_are_known(estimator, rows, learn):
    mixer = learn(estimator, *rows)._learner.mixer
    assert (type(mixer) is CentredMixer) == centres_targets(estimator)


@pytest.mark.only(where=centres_targets)
def test_a_constant_added_to_all_targets_is_added_to_all_predictions_but_the_first(estimator, rows, learn):
    """A constant of a million deviations, adding which does not round."""
    X, y = rows
    unit = 2.0 ** np.ceil(np.log2(y.std()))
    y, offset = unit * np.round(y / unit * 2.0**20) / 2.0**20, unit * 2.0**20
    assert_array_equal((y + offset) - offset, y)
    here, there = clone(estimator), clone(estimator)
    for row in range(len(X)):
        if row > 0:
            found, expected = (model.predict(X[row : row + 1])[0] for model in (there, here))
            assert abs(found - offset - expected) < 1e-9 * y.std()
        learn(here, X[row : row + 1], y[row : row + 1])
        learn(there, X[row : row + 1], y[row : row + 1] + offset)


# --- sample weights ---------------------------------------------------------------------------------------------------


@pytest.fixture
def weighted(estimator):
    """An estimator whose methods have sample_weight."""
    return estimator


def test_rows_of_weight_zero_are_left_out(weighted, rows, learn, learned):
    X, y = rows
    kept = np.random.default_rng(0).uniform(size=len(y)) < 0.6
    without = learn(clone(weighted), X[kept], y[kept])
    assert learned(learn(weighted, X, y, sample_weight=kept.astype(float))) == learned(without)


def layouts_of(X, y, estimator):
    """(layout, rows, targets) of the memory layouts that the estimator reads without a copy, and of Fortran order."""
    dense = [(np.asarray, X, y), (np.asfortranarray, X, y)]
    if not get_tags(estimator).input_tags.sparse:
        return dense
    wide = np.zeros((len(X), 10, X.shape[1]))  # of few values in columns of their own, which alone are backed up
    wide[range(len(X)), np.arange(len(X)) % 10] = X
    wide = wide.reshape(len(X), -1)
    return [*dense, (sparse.csr_array, X, y), (sparse.csr_array, wide, y)]


@pytest.mark.parametrize(
    "weights", [(0, 1, 1, 0, 1, 1), (1, 0, 0, 1, 1, 0), (1, 1, 0, 1, 0, 0)], ids=["first", "middle", "last"]
)
def test_undo_beside_rows_of_weight_zero(weighted, rows, learn, learned, output, weights):
    """A row that is refused while the block is learned: the model is a twin of one that never saw the call."""
    weights = np.array(weights, dtype=float)
    if is_online_learner(weighted):
        weighted.set_params(max_iter=2)
    for layout, X, y in layouts_of(*rows, weighted)[:: 3 if weights[0] else 1]:  # else one for each kind of backup
        model, twin = learn(clone(weighted), layout(X[:20]), y[:20]), learn(clone(weighted), layout(X[:20]), y[:20])
        before = learned(twin)
        for row in np.flatnonzero(weights)[[1, -1]]:
            for value, must_raise in ((np.inf, True), (1e308, False)):  # a large value can be learned by some
                bad = X[20:26].copy()
                bad[row, np.flatnonzero(bad[row])] = value
                for method in ("partial_fit", "fit"):
                    attempt = model if must_raise else copy.deepcopy(model)
                    try:
                        getattr(attempt, method)(layout(bad), y[20:26], sample_weight=weights)
                    except ValueError:
                        model = attempt
                        assert learned(model) == before
                    else:
                        assert not must_raise
        model = pickle.loads(pickle.dumps(model))
        for X_part, y_part, weights_part in pieces([3, 1, 8, 2], X[26:], y[26:], np.tile(weights, 3)[:14]):
            model.partial_fit(layout(X_part), y_part, sample_weight=weights_part)
            if weights_part.any():
                twin.partial_fit(layout(X_part[weights_part > 0]), y_part[weights_part > 0])
        for _ in range(2):
            assert learned(model) == learned(twin)
            results = output(twin, layout(X))
            for name, result in output(model, layout(X)).items():
                assert_array_equal(result, results[name])
            model.fit(layout(X[:30]), y[:30])
            twin.fit(layout(X[:30]), y[:30])


def test_weights_of_one_are_no_weights(weighted, rows, learn, learned):
    X, y = rows
    none = learn(clone(weighted), X, y)
    for ones in (np.ones(40), [1] * 40, np.ones(40, dtype=np.float32), 1.0):
        assert learned(learn(clone(weighted), X, y, sample_weight=ones)) == learned(none)
    if "max_iter" in weighted.get_params():
        weighted.set_params(max_iter=2)
    assert learned(clone(weighted).fit(X, y)) == learned(clone(weighted).fit(X, y, sample_weight=np.ones(40)))


def test_weights_are_of_the_rows_they_came_with_when_rows_are_shuffled(weighted, rows, learned):
    X, y = rows
    kept = np.arange(40) % 3 > 0
    if "max_iter" in weighted.get_params():
        weighted.set_params(max_iter=3, tol=None)
    a = clone(weighted).fit(X, y, sample_weight=kept.astype(float))
    spoiled = np.where(kept, y, np.roll(y, 1) if is_classifier(weighted) else 10**6).astype(y.dtype)
    assert learned(clone(weighted).fit(X, spoiled, sample_weight=kept.astype(float))) == learned(a)


def test_bad_weights_are_refused_and_change_nothing(weighted, rows, learn, unchanged):
    X, y = rows
    learn(weighted, X, y)
    for weights, match in [
        ([1.0, 1.0, -0.5], r"[Nn]egative.*row 2"),
        ([1.0, np.nan, 1.0], r"sample_weight contains NaN \(row 1\)"),
        ([1.0, 1.0, np.inf], r"sample_weight contains infinity \(row 2\)"),
        ([1.0, 1.0], r"sample_weight must have one weight for each of the \d+ rows; got 2"),
        ([[1.0], [1.0], [1.0]], "1D"),
        (["a", "b", "c"], "could not convert"),
    ]:
        with unchanged(weighted, match):
            weighted.partial_fit(X[:3], y[:3], sample_weight=weights)
        with unchanged(weighted, match):
            weighted.fit(X[:3], y[:3], sample_weight=weights)


def test_before_anything_is_learned_attributes_are_missing_and_say_why(estimator, rows, learn):
    """`divergence_` may follow from the parameters; what never exists, such as a bound of another kind, says that."""
    names = [name for name in dir(type(estimator)) if name.endswith("_") and not name.startswith("_")]
    assert {name for name in names if hasattr(estimator, name)} <= {"divergence_"}
    errors = {}
    for name in names:
        try:
            getattr(estimator, name)
        except AttributeError as error:
            errors[name] = error
    learn(estimator, *rows)
    for name, error in errors.items():
        assert isinstance(error, NotFittedError) or not hasattr(estimator, name), f"{name}: {error}"


# --- copies -----------------------------------------------------------------------------------------------------------


def test_a_clone_has_the_parameters_and_nothing_learned(estimator, rows, learn, learned, state, output):
    X, y = rows
    parameters = state(estimator.get_params())
    fresh = clone(learn(estimator, X, y))
    assert state(fresh.get_params()) == parameters
    assert set(vars(fresh)) == set(vars(clone(fresh)))
    with pytest.raises(Exception, match="fit"):
        output(fresh, X)
    assert learned(learn(fresh, X, y)) == learned(estimator)


def test_what_is_read_out_is_not_the_state_itself(estimator, rows, learn, learned, output):
    """Changing an array that was read from the model must not change the model, nor may learning change that array."""
    X, y = rows
    learn(estimator, X[:20], y[:20])
    expected = output(estimator, X)
    names = [name for name in dir(estimator) if name.endswith("_") and not name.startswith("_")]
    arrays = {name: value for name in names if isinstance(value := getattr(estimator, name, None), np.ndarray)}
    computed = {
        name: value for name, value in arrays.items() if isinstance(getattr(type(estimator), name, None), property)
    }
    kept = {name: value.copy() for name, value in computed.items()}
    estimator.partial_fit(X[20:], y[20:])
    for name, value in computed.items():
        assert_array_equal(value, kept[name], err_msg=name)
    reference = learn(clone(estimator), X[:20], y[:20])
    for name in computed:
        value = getattr(reference, name)
        if value.flags.writeable and value.dtype.kind == "f":
            value[...] = 7.0
    for name, values in output(reference, X).items():
        assert_array_equal(values, expected[name])


def test_reading_does_not_change_the_model(estimator, rows, learn, state, output):
    X, y = rows
    learn(estimator, X, y)
    output(estimator, X)
    before = state(estimator)
    output(estimator, X)
    repr(estimator)
    estimator._repr_html_()
    assert state(estimator) == before


# --- parameters -------------------------------------------------------------------------------------------------------


def test_numbers_of_numpy_are_those_of_python(estimator, rows, learn, output):
    """Those of single precision, which are compared with numbers in double precision."""
    numbers = {name: np.float32(value) for name, value in estimator.get_params().items() if type(value) is float}
    small, same = (
        learn(clone(estimator).set_params(**{name: kind(value) for name, value in numbers.items()}), *rows)
        for kind in (np.float32, float)
    )
    for name, values in output(small, rows[0]).items():
        assert_array_equal(values, output(same, rows[0])[name])


# --- threads ----------------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_threads_may_predict_with_one_model_at_once(estimator, rows, learn, output):
    X, y = rows
    learn(estimator, X, y)
    streams = [np.tile(X, (60, 1)), np.tile(X[::-1], (60, 1))]
    expected = [output(estimator, stream) for stream in streams]
    found = [[], []]
    start = threading.Barrier(2)

    def work(k):
        start.wait()
        for _ in range(3):
            found[k].append(output(estimator, streams[k]))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(2):
        assert len(found[k]) == 3
        for outputs in found[k]:
            for name, values in outputs.items():
                assert_array_equal(values, expected[k][name])


# --- arrays computed on access, and float32 ---------------------------------------------------------------------------


def made_afresh(model):
    """The arrays among the public attributes that are computed on access, by their names."""
    names = [name for name in dir(type(model)) if name.endswith("_") and not name.startswith("_")]
    values = {name: getattr(model, name, None) for name in names if name not in vars(model)}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def test_arrays_computed_on_access_are_read_only(estimator, rows, learn):
    """Changes of a copy would be lost: an error is better."""
    model = learn(estimator, *rows)
    arrays = made_afresh(model)
    for copied in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model)), joblib.load(saved(model))):
        for name, array in made_afresh(copied).items():
            with pytest.raises(ValueError, match="read-only"):
                array[...] = arrays[name]
    learn(model, *rows)  # arrays that were read do not prevent further learning


def saved(model):
    """A model in joblib's format."""
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return file


def test_such_arrays_are_found():
    model = ImplicitGDRegressor().partial_fit([[1.0, 2.0]], [3.0])
    assert list(made_afresh(model)) == ["coef_"]


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_rows_of_float32_are_answered_in_float64(estimator, rows, learn, outputs, layout):
    """Weights are float64 for rows of any type, and so are predictions, as in scikit-learn's SGD, but not `coef_`."""
    if layout == "csr" and not get_tags(estimator).input_tags.sparse:
        pytest.skip("takes no sparse rows")
    X, y = rows
    for learned in (X, X.astype(np.float32)):
        model = learn(copy.deepcopy(estimator), learned, y)
        narrow = X.astype(np.float32)
        wide = narrow.astype(np.float64)
        if layout == "csr":
            narrow, wide = sparse.csr_array(narrow), sparse.csr_array(wide)
        for name in outputs:
            if not hasattr(model, name) or (name == "predict" and (is_classifier(model) or is_outlier_detector(model))):
                continue
            said = getattr(model, name)(narrow)
            assert said.dtype == np.float64, name
            np.testing.assert_allclose(said, getattr(model, name)(wide), rtol=1e-12, atol=1e-12, err_msg=name)
        for name, array in made_afresh(model).items():
            single = name == "coef_" and isinstance(model, OnlineLinearModel) and learned.dtype == np.float32
            assert array.dtype.kind in "iUO" or array.dtype == (np.float32 if single else np.float64), name


# --- row by row -------------------------------------------------------------------------------------------------------


def goes_straight(estimator):
    """Whether it is linear, with one weight for all classes and one target for each row."""
    parameters = estimator.get_params()
    linear = type(estimator).__module__.startswith("onlinebregman.linear_model")
    return linear and not parameters.get("class_weight") and not isinstance(parameters.get("loss"), QuantileLoss)


@pytest.mark.only(where=goes_straight)
def test_plain_arrays_go_straight_to_the_kernel(estimator, rows, learned, output, no_validation):
    X, targets = rows
    pairs = []
    for kind in (int, float, str, object, np.uint8) if is_classifier(estimator) else (float,):
        fast, slow, y = clone(estimator), clone(estimator), targets.astype(kind)
        classes = [np.unique(y)] if is_classifier(estimator) else []
        fast.partial_fit(X[:1], y[:1], *classes).partial_fit(X[1:], y[1:])
        slow.partial_fit(X.tolist(), y.tolist(), *classes).partial_fit(X.tolist(), y.tolist())
        pairs.append((fast, slow, y, output(slow, X.tolist())))
    no_validation()
    for fast, slow, y, expected in pairs:
        for i in range(len(y)):
            assert fast.partial_fit(X[i : i + 1], y[i : i + 1]) is fast
        assert learned(fast) == learned(slow)
        for name, values in output(fast, X).items():
            assert_array_equal(values, expected[name])
        fast.partial_fit(X.astype(np.float32), y).partial_fit(np.asfortranarray(X), y).partial_fit(X.astype(int), y)
        fast.partial_fit(X, y, sample_weight=np.ones(len(y))).partial_fit(X[:1], y[:1].tolist())
        if get_tags(fast).input_tags.sparse:
            fast.partial_fit(sparse.csr_array(X), y)
