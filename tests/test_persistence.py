"""Models saved, sent or copied in mid-stream: the copy predicts and continues to learn the same."""

import contextlib
import copy
import functools
import inspect
import pickle
import pkgutil
from importlib import import_module

import joblib
import numpy as np
import pytest
from configurations import configurations, rows_for
from numpy.testing import assert_array_equal
from onlinebregman._kernels.geometries.adaptive import AdaptiveGeometry, NormalisedGeometry
from onlinebregman._kernels.geometries.euclidean import EuclideanGeometry
from onlinebregman._kernels.geometries.geometry import Geometry
from onlinebregman._kernels.geometries.pnorm import PNormGeometry
from onlinebregman._kernels.learners.density import ExponentialFamilyLearner, FullGaussianLearner
from onlinebregman._kernels.learners.forward import ForwardLearner
from onlinebregman._kernels.learners.hedge import Hedge
from onlinebregman._kernels.learners.learner import Learner
from onlinebregman._kernels.learners.linked_mixer import LinkedMixer
from onlinebregman._kernels.learners.mean_mixer import MeanMixer
from onlinebregman._kernels.learners.mixer import OutputsMixer
from onlinebregman._kernels.learners.multi_learner import MultiLearner
from onlinebregman._kernels.learners.multinomial import ShareLoss
from onlinebregman._kernels.learners.quantile_tracker import QuantileTracker
from onlinebregman._kernels.learners.rule import LossRates, OwnRates
from onlinebregman._kernels.learners.softmax import SoftmaxLearner
from onlinebregman._kernels.learners.stack import Stack
from onlinebregman._kernels.losses.loss import (
    DistanceLoss,
    Loss,
    MarginLoss,
    NumPyLoss,
    PoissonLoss,
    SquaredEpsilonInsensitiveLoss,
    SquaredLoss,
    TwiceSquaredLoss,
)
from onlinebregman._kernels.matrices.logdet_blocked import BlockedLogDetGeometry
from onlinebregman._kernels.matrices.matrix import MatrixGeometry
from onlinebregman._kernels.rows.one_hot import OneHotMap
from onlinebregman._kernels.rows.standardizer import Standardizer
from scipy.sparse import csr_matrix
from sklearn.base import clone, is_classifier

import onlinebregman._kernels
from onlinebregman import losses as losses_in_numpy
from onlinebregman._online.estimator import FirstRows
from onlinebregman.persistence import load_model, save_model
from onlinebregman.schedules import Constant

# --- the ways ---------------------------------------------------------------------------------------------------------


def through_pickle(model, folder):
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        model = pickle.loads(pickle.dumps(model, protocol))
    return model


def shifted(buffer):
    """The same bytes, read-only, at an unaligned address."""
    return memoryview(b"\0" + bytes(buffer))[1:]


def through_buffers(model, folder):
    """By a message whose arrays are sent out of band, and used in place."""
    buffers = []
    message = pickle.dumps(model, 5, buffer_callback=buffers.append)
    return pickle.loads(message, buffers=[shifted(buffer.raw()) for buffer in buffers])


def through_dask(model, folder):
    from distributed.protocol import deserialize, serialize

    header, frames = serialize(model)
    return deserialize(header, [shifted(frame) for frame in frames])


def through_skops(model, folder):
    import skops.io

    data = skops.io.dumps(model)
    return skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))


def through_joblib(model, folder, mmap_mode=None):
    joblib.dump(model, folder / "model")
    return joblib.load(folder / "model", mmap_mode)


def through_memmap(model, folder):
    return through_joblib(model, folder, "r")


def through_save_model(model, folder):
    save_model(model, folder / "model.zip")
    return load_model(folder / "model.zip")


def through_memmap_and_save_model(model, folder):
    return through_save_model(through_memmap(model, folder), folder)


def through_deepcopy(model, folder):
    return copy.deepcopy(model)


def through_copy(model, folder):
    return copy.copy(model)


WAYS = [
    through_pickle,
    through_buffers,
    through_dask,
    through_skops,
    through_joblib,
    through_memmap,
    through_save_model,
    through_memmap_and_save_model,
    through_deepcopy,
    through_copy,
]


# --- estimators -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("through", WAYS)
def test_a_copy_made_in_mid_stream_goes_on_with_the_same_numbers(
    estimator, rows, learn, through, tmp_path, learned, output, state
):
    X, y = rows
    learn(estimator, X[:20], y[:20])
    copied = through(estimator, tmp_path)
    assert type(copied) is type(estimator) and state(copied.get_params()) == state(estimator.get_params())
    for name, values in output(estimator, X).items():
        assert_array_equal(output(copied, X)[name], values)
    public = [name for name in dir(type(estimator)) if name.endswith("_") and not name.startswith("_")]
    for name in public:  # computed attributes such as coef_
        assert hasattr(copied, name) == hasattr(estimator, name), name
        assert state(getattr(copied, name, None)) == state(getattr(estimator, name, None)), name
    before = state(estimator)
    copied.partial_fit(X[20:], y[20:])
    assert state(estimator) == before, "learning with the copy changed the original"
    estimator.partial_fit(X[20:], y[20:])
    assert learned(copied) == learned(estimator)


def test_a_copy_shares_parameters_and_nothing_that_learning_moves(estimator, rows, learn, state):
    X, y = rows
    names = set(estimator.get_params(deep=False))
    learn(estimator, X[:20], y[:20])
    copied = copy.copy(estimator)
    assert all(getattr(copied, name) is getattr(estimator, name) for name in names)
    before = state(copied)
    estimator.partial_fit(X[20:], y[20:])
    assert state(copied) == before


def test_an_estimator_that_has_learned_nothing_is_saved_as_it_is(estimator, tmp_path, rows, learn, learned, state):
    X, y = rows
    expected = learned(learn(clone(estimator), X, y))
    for through in WAYS:
        copied = through(estimator, tmp_path)
        assert state(copied) == state(estimator)
        assert learned(learn(copied, X, y)) == expected


# --- compiled classes -------------------------------------------------------------------------------------------------


def compiled_classes():
    modules = [
        import_module(info.name)
        for info in pkgutil.walk_packages(onlinebregman._kernels.__path__, "onlinebregman._kernels.")
    ]
    return [
        cls
        for module in modules
        for _, cls in inspect.getmembers(module, inspect.isclass)
        if cls.__module__ == module.__name__
    ]


def compiled_parts(value, found):
    """Add the compiled objects that a value consists of, the first of each class."""
    module = type(value).__module__
    if module.startswith("onlinebregman._kernels"):
        found.setdefault(type(value), value)
        value = value.__reduce__()[1]
    elif module.startswith("onlinebregman"):
        value = getattr(value, "__dict__", {})
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        compiled_parts(part, found)


@functools.cache
def examples():
    """An object of every compiled class that is saved: those of the configurations in mid-stream, and others."""
    found = {}
    for model in configurations():
        X, y = rows_for(model, 2)
        classes = {"classes": np.unique(y)} if is_classifier(model) else {}
        compiled_parts(clone(model).partial_fit(X, y, **classes), found)
    others = [
        *(kind(np.ones(4)) for kind in (Geometry, AdaptiveGeometry, NormalisedGeometry)),
        *(kind(np.eye(3)) for kind in (MatrixGeometry, BlockedLogDetGeometry)),
        *(kind(Constant(1.0)) for kind in (OwnRates, LossRates)),
        *(kind() for kind in (Loss, ShareLoss, DistanceLoss, MarginLoss, SquaredEpsilonInsensitiveLoss)),
        *(TwiceSquaredLoss(), NumPyLoss(losses_in_numpy.SquaredLoss())),
        LinkedMixer(Hedge(3), PoissonLoss(), Stack(3, None, 0.1), QuantileTracker(), None, True),
        OutputsMixer([MeanMixer(Hedge(3, 0.5, 0.1), SquaredLoss(), True, None, None) for _ in range(2)]),
        OneHotMap([True, False, False], 5, Standardizer(2, True)),
    ]
    return found | {type(other): other for other in others}


# Working memory, which is never saved.
NOT_SAVED = {
    "AtomicLearner",
    "AveragedGeometry",
    "Chunk",
    "DensityLearner",
    "Ensemble",
    "Team",
    "Factor",
    "GaussianLearner",
    "GradientRate",
    "Lockstep",
    "Memory",
    "Mixer",
    "RegretHedge",
    "RowMap",
    "Rows",
    "Rule",
    "State",
    "Stateful",
    "ThreadPool",
}
NOT_SAVED |= {"Blend", "LogLinkLoss", "Pass", "Sampler", "SecondOrderLearner", "Secular", "Snapshot"}
NOT_SAVED |= {"Centre", "ColumnBlocks", "Columns", "Query", "TableView", "Transaction", "Undoable", "Workspaces"}
# What predicts rows; parts of geometries, whose numbers are saved with these.
NOT_SAVED |= {"Average", "AverageBet", "EuclideanLazy", "Flow", "Lazy", "NumPyLazy", "PNormLazy", "Scorers"}


def test_no_compiled_class_is_left_out():
    assert {cls.__name__ for cls in compiled_classes()} - NOT_SAVED == {cls.__name__ for cls in examples()}


@pytest.mark.parametrize("cls", compiled_classes())
def test_an_object_made_without_its_constructor_is_refused_or_sound(cls):
    """Some protocols only call `__new__`: no method may access memory that was not allocated."""
    try:
        made = cls.__new__(cls)
    except TypeError as error:
        assert "needs weights" in str(error) or "argument" in str(error)
        return
    assert type(made) is cls
    for name in set(dir(made)) - set(dir(object)):
        with contextlib.suppress(AttributeError, TypeError, NotImplementedError):  # not memory errors
            getattr(made, name)()


@pytest.mark.parametrize("cls", [cls for cls in compiled_classes() if cls.__name__ not in NOT_SAVED])
def test_compiled_objects_are_rebuilt_by_their_constructors(cls, state):
    """In a form that every protocol supports, without other functions of the package."""
    made = examples()[cls]
    kind, arguments = made.__reduce__()
    assert kind is cls and isinstance(arguments, tuple)
    assert state(cls(*arguments)) == state(made)
    if isinstance(made, Geometry):
        assert made.coef().tobytes() == cls(*arguments).coef().tobytes()


@pytest.mark.parametrize("cls", [ForwardLearner, SoftmaxLearner, FullGaussianLearner, ExponentialFamilyLearner])
def test_numbers_of_another_size_are_refused(cls):
    """The arrays of a damaged file may be of any length."""
    kind, (*arguments, state) = examples()[cls].__reduce__()
    del state["row_map"]
    for name, number in state.items():
        value = np.atleast_1d(number)  # one number is stored as such
        for wrong in (value[:-1], np.r_[value, 0.0], value.astype(np.float16)):
            with pytest.raises(ValueError, match=f"{name} must have (4|{value.nbytes}) bytes; got {wrong.nbytes}"):
                kind(*arguments, {**state, name: wrong})


def test_first_rows_of_a_damaged_file_are_refused_or_replaced():
    X, y = np.ones((9, 3)), np.ones(9)
    damaged = csr_matrix(np.ones((3, 3)))
    damaged.indptr = np.array([0, 5, 0, 0])
    with pytest.raises(ValueError, match="malformed"):
        FirstRows(3, damaged, y[:3]).after(X, y)
    for rows in (np.ones(()), np.ones(3), np.ones((3, 3, 1)), None):
        assert FirstRows(3, rows, y).after(X, y)[0].n == 12
    assert FirstRows(40).after(X, y)[0] is FirstRows(-49).after(X, y)[0] is None


def test_steps_of_a_penalty_that_a_geometry_does_not_have_are_refused():
    damages = {"l1": 1.0}, {"pending": 1.0, "threshold_stamp": np.zeros(6)}
    for made, wrong in zip((BlockedLogDetGeometry(np.eye(3)), PNormGeometry(np.ones(3), 3.0)), damages, strict=True):
        kind, (*arguments, state) = made.__reduce__()
        with pytest.raises(ValueError, match=f"{kind.__name__} has no such proximal steps"):
            kind(*arguments, state | wrong)


def test_a_learner_needs_a_geometry_and_a_loss():
    for arguments in ((), (None, SquaredLoss()), (EuclideanGeometry(np.ones(2)), None), (SquaredLoss(), SquaredLoss())):
        with pytest.raises(TypeError, match=r"[Aa]rgument"):
            Learner(*arguments)
    learner = Learner(EuclideanGeometry(np.ones(2)), SquaredLoss())
    learner.loss = None
    for call in (
        lambda: learner.predict(np.ones((1, 2))),
        lambda: learner.learn(np.ones((1, 2)), np.ones(1)),
        lambda: MultiLearner([learner]).learn(np.ones((1, 2)), np.ones((1, 1))),
    ):
        with pytest.raises(TypeError, match="loss must be a Loss; got None"):
            call()
    learner.loss = SquaredLoss()
    assert learner.predict(np.ones((1, 2))).shape == (1,)


def test_a_multi_learner_needs_learners():
    with pytest.raises(ValueError, match="at least one learner"):
        MultiLearner([])
    for wrong in ([None], [SquaredLoss()]):
        with pytest.raises(TypeError, match="Learner"):
            MultiLearner(wrong)
