"""Models saved, sent or copied in mid-stream: the copy predicts and continues to learn the same."""

import contextlib
import copy
import inspect
import pickle
import pkgutil
from importlib import import_module

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from onlinebregman._kernels.geometries.adaptive import (
    AdaGradGeometry,
    AdaptiveGeometry,
    DiagonalNewtonGeometry,
    NormalisedAdaGradGeometry,
    NormalisedGeometry,
)
from onlinebregman._kernels.geometries.euclidean import EuclideanGeometry
from onlinebregman._kernels.geometries.geometry import Geometry
from onlinebregman._kernels.geometries.numpy_geometry import NumPyGeometry
from onlinebregman._kernels.geometries.pnorm import PNormGeometry
from onlinebregman._kernels.geometries.scale_invariant import ScaleInvariantGeometry
from onlinebregman._kernels.learners.forward import ForwardLearner
from onlinebregman._kernels.learners.hedge import Hedge, History
from onlinebregman._kernels.learners.learner import Learner
from onlinebregman._kernels.learners.linked_mixer import LinkedMixer
from onlinebregman._kernels.learners.mapping import MapLearner
from onlinebregman._kernels.learners.mean_mixer import MeanMixer
from onlinebregman._kernels.learners.mixer import AggregatingMixer, BrierMixer, LogMixer, OutputsMixer, Unmixed
from onlinebregman._kernels.learners.mixture import MixtureLearner
from onlinebregman._kernels.learners.multi_learner import MultiLearner
from onlinebregman._kernels.learners.multinomial import MultinomialLearner, ShareLoss
from onlinebregman._kernels.learners.outliers import OutlierLearner, ScoreQuantile
from onlinebregman._kernels.learners.quantile_tracker import QuantileTracker
from onlinebregman._kernels.learners.second_order import MatchingLearner
from onlinebregman._kernels.learners.softmax import AioliLearner, SoftmaxLearner
from onlinebregman._kernels.learners.spreads import SpreadLearner
from onlinebregman._kernels.learners.stack import Stack
from onlinebregman._kernels.learners.stacked_mixers import CentredMixer, ProbabilityMixer
from onlinebregman._kernels.losses.loss import (
    BoundLoss,
    DistanceLoss,
    EpsilonInsensitiveLoss,
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    Loss,
    MarginLoss,
    ModifiedHuberLoss,
    NumPyLoss,
    PoissonLoss,
    QuantileLoss,
    SquaredEpsilonInsensitiveLoss,
    SquaredHingeLoss,
    SquaredLoss,
    TweedieLoss,
    TwiceSquaredLoss,
)
from onlinebregman._kernels.matrices.frobenius import FrobeniusGeometry
from onlinebregman._kernels.matrices.logdet_blocked import BlockedLogDetGeometry
from onlinebregman._kernels.matrices.matrix import LogDetGeometry, MatrixGeometry
from onlinebregman._kernels.matrices.matrix_burg import MatrixBurgGeometry
from onlinebregman._kernels.matrices.neighbors import NeighborTriplets, TargetTriplets
from onlinebregman._kernels.matrices.reservoir import Percentiles, Reservoir
from onlinebregman._kernels.matrices.sampler import RandomPairs
from onlinebregman._kernels.matrices.von_neumann import VonNeumannGeometry
from onlinebregman._kernels.rows.fourier import FourierFeatures
from onlinebregman._kernels.rows.one_hot import OneHotMap
from onlinebregman._kernels.rows.standardizer import Standardizer
from onlinebregman._kernels.rows.thresholds import Bins, ThresholdMap
from sklearn.base import clone

import onlinebregman._kernels
from onlinebregman import LogDetMetricLearner
from onlinebregman import losses as losses_in_numpy
from onlinebregman._kernels.geometries import entropy as entropies
from onlinebregman._kernels.learners import density as densities
from onlinebregman._kernels.learners import rule as rules
from onlinebregman.divergences import SquaredEuclidean
from onlinebregman.kernel_learning._instances import Rows as RowInstances
from onlinebregman.metric_learning._memory import random_numbers
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


def through_joblib(model, folder):
    joblib.dump(model, folder / "model")
    return joblib.load(folder / "model")


def through_memmap(model, folder):
    joblib.dump(model, folder / "model")
    return joblib.load(folder / "model", mmap_mode="r")


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


def learned_by(geometry, update="implicit", standardizer=None):
    """A learner and its geometry in mid-stream, with averaging if the geometry supports it."""
    learner, d = Learner(geometry, SquaredLoss()), geometry.n_features
    learner.configure(update=update, schedule=Constant(0.1), average=not geometry.per_feature > 2, track_regret=True)
    learner.map_by(standardizer)
    rows = np.random.default_rng(0).uniform(0.1, 1.0, size=(5, d))
    assert learner.learn(rows, np.ones(5)) is None and learner.t == 5
    return learner


def geometries():
    weights, matrix = np.full(4, 0.25), np.eye(3) / 4
    return {
        EuclideanGeometry: EuclideanGeometry(weights, True, 3.0, 2.0),
        entropies.EntropyGeometry: entropies.EntropyGeometry(weights, True),
        entropies.SimplexGeometry: entropies.SimplexGeometry(weights, False, 3.0, 2.0),
        entropies.BurgGeometry: entropies.BurgGeometry(weights),
        entropies.BinaryEntropyGeometry: entropies.BinaryEntropyGeometry(weights),
        PNormGeometry: PNormGeometry(weights, 3.0),
        LogDetGeometry: LogDetGeometry(matrix),
        BlockedLogDetGeometry: BlockedLogDetGeometry(matrix),
        FrobeniusGeometry: FrobeniusGeometry(matrix),
        VonNeumannGeometry: VonNeumannGeometry(matrix, 2.0),
        NumPyGeometry: NumPyGeometry(weights, True, SquaredEuclidean()),
        AdaGradGeometry: AdaGradGeometry(weights, 3.0),
        NormalisedAdaGradGeometry: NormalisedAdaGradGeometry(weights, 3.0, True, True),
        DiagonalNewtonGeometry: DiagonalNewtonGeometry(weights, 3.0, True, False, 0.5, True),
        ScaleInvariantGeometry: ScaleInvariantGeometry(4, 2.0, True),
    }


def examples():
    """An object of every compiled class that is saved, in mid-stream if it learns."""
    found = {kind: learned_by(geometry).geometry for kind, geometry in geometries().items()}
    found[Geometry] = Geometry(np.ones(4))
    found[AdaptiveGeometry], found[NormalisedGeometry] = AdaptiveGeometry(np.ones(4)), NormalisedGeometry(np.ones(4))
    found[MatrixGeometry] = MatrixGeometry(np.eye(2))
    found[MatrixBurgGeometry] = learned_by(MatrixBurgGeometry(np.eye(3) / 4), "gradient").geometry
    found[Learner] = learned_by(EuclideanGeometry(np.ones(4)))
    several = [rules.PowerLaw(0.5, 0.3), rules.ShiftedPowerLaw(0.5, 1.0, 3.0), rules.PassiveAggressive(1.0, 2.0, 0.5)]
    for rule in [*several, rules.OwnRates(Constant(1.0)), rules.LossRates(Constant(1.0))]:
        found[type(rule)] = rule
    for kind, geometry in (
        (rules.BurgRate, entropies.BurgGeometry(np.full(3, 0.2), False, 1.0)),
        (rules.MatrixBurgRate, MatrixBurgGeometry(np.eye(3) / 4)),
    ):
        found[kind] = learned_by(geometry, "gradient").limit
    found[SpreadLearner] = SpreadLearner(VonNeumannGeometry(np.eye(3)), SquaredLoss())
    found[SpreadLearner].configure(update="implicit", schedule=Constant(0.5))
    found[SpreadLearner].learn_instances(RowInstances(np.ones((2, 3))), np.array([1.0, 2.0]), None, None, True)
    found[MultiLearner] = MultiLearner([learned_by(EuclideanGeometry(np.ones(4))) for _ in range(3)])
    found[MultinomialLearner] = MultinomialLearner([learned_by(EuclideanGeometry(np.ones(4))) for _ in range(3)])
    found[ForwardLearner] = ForwardLearner(3, (2,), 0.5, True, None, True, True, True)
    found[ForwardLearner].configure(forward=False, forgetting=0.9)
    found[ForwardLearner].learn(np.ones((2, 3)), np.arange(4.0), None)
    found[SoftmaxLearner] = SoftmaxLearner(3, 5, 0.5, True, None, 0.5)
    found[SoftmaxLearner].configure(forgetting=0.9)
    found[SoftmaxLearner].learn(np.ones((2, 3)), np.array([4.0, 0.0]), None)
    found[AioliLearner] = AioliLearner(3, 2, 0.5, True, None, 0.5, 2.0)
    found[AioliLearner].configure(forgetting=0.9)
    found[AioliLearner].learn(np.ones((2, 3)), np.array([1.0, 0.0]), None)
    found[MatchingLearner] = MatchingLearner(3, PoissonLoss(), 0.5, True, None, 0.5)
    found[MatchingLearner].configure(forgetting=0.9)
    found[MatchingLearner].learn(np.ones((2, 3)), np.array([4.0, 0.0]), None)
    standardized = learned_by(EuclideanGeometry(np.ones(4)), standardizer=Standardizer(4, True))
    found[Standardizer] = standardized.row_map
    found[OneHotMap] = OneHotMap([True, False, False], 5, Standardizer(2, True))
    found[ThresholdMap] = ThresholdMap(4, [(0, 1), (2, 1)])
    found[Bins] = found[ThresholdMap].bins
    found[MapLearner] = MapLearner(found[ThresholdMap].n_outputs)
    found[MapLearner].map_by(found[ThresholdMap])
    found[MapLearner].learn(np.random.default_rng(0).normal(size=(20, 4)))
    found[densities.ExponentialFamilyLearner] = densities.ExponentialFamilyLearner(
        np.zeros(3), 1.0, "poisson", "Forward", np.ones(3), 1.0, None
    )
    found[densities.DiagonalGaussianLearner] = densities.DiagonalGaussianLearner(np.zeros(3), 2.0, np.ones(3))
    found[densities.FullGaussianLearner] = densities.FullGaussianLearner(np.zeros(3), 2.0, np.eye(3))
    for kind in (densities.ExponentialFamilyLearner, densities.DiagonalGaussianLearner, densities.FullGaussianLearner):
        found[kind].learn(np.arange(6.0).reshape(2, 3), None, np.array([1.0, 0.5]))
    density = densities.DiagonalGaussianLearner(np.zeros(3), 2.0, np.ones(3))
    found[OutlierLearner] = OutlierLearner([density], ScoreQuantile(0.1))
    found[OutlierLearner].map_by(Standardizer(3, True, clipped=False))
    found[OutlierLearner].learn(np.random.default_rng(0).normal(size=(20, 3)))
    found[ScoreQuantile] = found[OutlierLearner].quantile
    found[Hedge], found[History] = Hedge(3), History(3, 2, {"weights": np.ones((3, 3)) / 3, "interval": 1})
    for losses in np.array([[1.0, 2.0, 4.0]] * 3):
        found[Hedge].learn(losses, 2.0)
    rows = np.array([[0.5, 0.25, 0.25], [0.1, 0.2, 0.3]])
    found[MeanMixer] = MeanMixer(Hedge(3, 0.5, 0.1, prior=np.array([0.5, 0.3, 0.2])), SquaredLoss(), True, None, None)
    found[AggregatingMixer] = AggregatingMixer(Hedge(3, 0.5, 0.1), 0.0, 2.0)
    found[LogMixer] = LogMixer(Hedge(3, prior=np.array([0.5, 0.3, 0.2])), False, False)
    found[BrierMixer] = BrierMixer(Hedge(1), False, 3)
    for kind in (MeanMixer, AggregatingMixer, LogMixer, BrierMixer):
        found[kind].learn(rows, np.array([1.0, 2.0]))
    found[Unmixed] = Unmixed(3)
    found[FourierFeatures] = FourierFeatures(np.ones((4, 3)), np.arange(4.0))
    found[Stack], found[QuantileTracker] = Stack(3, None, 0.1), QuantileTracker()
    found[CentredMixer] = CentredMixer(Hedge(3), SquaredLoss(), found[Stack], found[QuantileTracker])
    found[LinkedMixer] = LinkedMixer(Hedge(3), PoissonLoss(), Stack(3, None, 0.1), QuantileTracker(), True)
    found[OutputsMixer] = OutputsMixer(
        [MeanMixer(Hedge(3, 0.5, 0.1), SquaredLoss(), True, None, None) for _ in range(2)]
    )
    found[ProbabilityMixer] = ProbabilityMixer(Hedge(2, 1.0, 0.1), 5, ["softmax", "calibrated"], None)
    learners = [found[SoftmaxLearner], MultiLearner([learned_by(EuclideanGeometry(np.ones(3))) for _ in range(5)])]
    found[MixtureLearner] = MixtureLearner(learners, found[ProbabilityMixer], [np.arange(5.0), np.eye(5)])
    found[MixtureLearner].learn(np.ones((2, 3)), np.array([4.0, 0.0]))
    found[Reservoir] = Reservoir(3, 2, random_numbers(0))
    found[Reservoir].learn(np.arange(12.0).reshape(4, 3), np.zeros(4))
    for kind, sampling in ((NeighborTriplets, "neighbors"), (TargetTriplets, "targets"), (RandomPairs, "random")):
        metric = LogDetMetricLearner(sampling=sampling, prior="variance", random_state=0)
        found[kind] = metric.partial_fit(np.arange(12.0).reshape(4, 3), [0, 0, 1, 0])._sampler
    found[Percentiles] = found[RandomPairs].bounds
    losses = [
        Loss,
        ShareLoss,
        SquaredLoss,
        DistanceLoss,
        BoundLoss,
        LogisticLoss,
        PoissonLoss,
        TweedieLoss,
        EpsilonInsensitiveLoss,
        SquaredEpsilonInsensitiveLoss,
        QuantileLoss,
        HuberLoss,
        MarginLoss,
        HingeLoss,
        SquaredHingeLoss,
        ModifiedHuberLoss,
        TwiceSquaredLoss,
    ]
    return found | {kind: kind() for kind in losses} | {NumPyLoss: NumPyLoss(losses_in_numpy.SquaredLoss())}


# Working memory, which is never saved.
NOT_SAVED = {
    "AtomicLearner",
    "AveragedGeometry",
    "Chunk",
    "DensityLearner",
    "Ensemble",
    "Factor",
    "GaussianLearner",
    "GradientRate",
    "LearnerSavepoint",
    "Lockstep",
    "Mixer",
    "RowMap",
    "Rows",
    "Rule",
    "Savepoint",
    "State",
    "Stateful",
    "ThreadPool",
}
NOT_SAVED |= {
    "LogLinkLoss",
    "Pass",
    "RidgeLearner",
    "Sampler",
    "SecondOrderLearner",
    "Secular",
    "Snapshot",
    "TableView",
}
NOT_SAVED |= {"Centre", "ColumnBlocks", "Columns", "Transaction", "Undoable", "Validated", "Workspaces"}


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


@pytest.mark.parametrize(
    "cls", [ForwardLearner, SoftmaxLearner, densities.FullGaussianLearner, densities.ExponentialFamilyLearner]
)
def test_numbers_of_another_size_are_refused(cls):
    """The arrays of a damaged file may be of any length."""
    kind, (*arguments, state) = examples()[cls].__reduce__()
    del state["row_map"]
    for name, number in state.items():
        value = np.atleast_1d(number)  # one number is stored as such
        for wrong in (value[:-1], np.r_[value, 0.0], value.astype(np.float16)):
            with pytest.raises(ValueError, match=f"{name} must have {value.nbytes} bytes; got {wrong.nbytes}"):
                kind(*arguments, {**state, name: wrong})


def test_a_learner_needs_a_geometry_and_a_loss():
    for arguments in ((), (None, SquaredLoss()), (EuclideanGeometry(np.ones(2)), None), (SquaredLoss(), SquaredLoss())):
        with pytest.raises(TypeError, match=r"[Aa]rgument"):
            Learner(*arguments)
    learner = learned_by(EuclideanGeometry(np.ones(2)))
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
