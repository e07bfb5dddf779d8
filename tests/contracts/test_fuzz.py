"""Arguments of every kind, valid or not, see fuzz.py; and former findings."""

import io

import fuzz
import fuzz_files
import fuzz_undo
import numpy as np
import pytest
from onlinebregman._kernels.geometries.adaptive import AdaGradGeometry
from onlinebregman._kernels.geometries.euclidean import EuclideanGeometry
from onlinebregman._kernels.geometries.pnorm import PNormGeometry
from onlinebregman._kernels.learners.density import ExponentialFamilyLearner, FullGaussianLearner
from onlinebregman._kernels.learners.forward import ForwardLearner
from onlinebregman._kernels.learners.hedge import Hedge, History
from onlinebregman._kernels.learners.learner import Learner
from onlinebregman._kernels.learners.mean_mixer import MeanMixer
from onlinebregman._kernels.learners.memory import LabelMemory
from onlinebregman._kernels.learners.mixer import AggregatingMixer, BrierMixer, LogMixer, Unmixed
from onlinebregman._kernels.learners.mixture import MixtureLearner
from onlinebregman._kernels.learners.multi_learner import MultiLearner
from onlinebregman._kernels.learners.softmax import AioliLearner, SoftmaxLearner
from onlinebregman._kernels.learners.stack import Stack
from onlinebregman._kernels.learners.stacked_mixers import CentredMixer, ProbabilityMixer
from onlinebregman._kernels.losses.loss import SquaredLoss
from onlinebregman._kernels.matrices.frobenius import FrobeniusGeometry
from onlinebregman._kernels.matrices.matrix import LogDetGeometry
from onlinebregman._kernels.matrices.matrix_burg import MatrixBurgGeometry
from onlinebregman._kernels.matrices.reservoir import Percentiles
from onlinebregman._kernels.matrices.von_neumann import VonNeumannGeometry
from onlinebregman._kernels.rows.fourier import FourierFeatures
from onlinebregman._kernels.rows.one_hot import OneHotMap
from onlinebregman._kernels.rows.standardizer import Standardizer
from onlinebregman._kernels.rows.thresholds import Bins
from scipy import sparse
from sklearn.exceptions import NotFittedError

from onlinebregman import (
    BayesMixture,
    DefiniteBoost,
    ExpertMixtureClassifier,
    ForwardClassifier,
    ForwardRegressor,
    ImplicitGDRegressor,
    LogDetMetricLearner,
    MetricKNeighborsClassifier,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    PerceptronClassifier,
    PNormRegressor,
    ScaleInvariantRegressor,
    WinnowClassifier,
)
from onlinebregman._online.estimator import LifeCycleMixin
from onlinebregman.kernel_learning import pair_rows
from onlinebregman.streams import ArrayBatches

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 4)), RNG.normal(size=30)


@pytest.mark.parametrize("part", range(10))
def test_no_call_crashes_or_changes_what_it_should_not(part):
    """1000 calls each; `python tests/fuzz.py` makes more."""
    assert not list(fuzz.findings(range(50 * part, 50 * (part + 1)), seed=16))


@pytest.mark.parametrize("part", range(5))
def test_a_refused_call_and_rows_of_weight_zero_leave_no_trace(part):
    """200 calls each; `python tests/fuzz_undo.py` makes more."""
    assert not list(fuzz.findings(range(10 * part, 10 * (part + 1)), seed=16, kind=fuzz_undo.UndoChain))


@pytest.mark.parametrize("part", range(3))
def test_files_with_other_numbers_neither_crash_nor_hang(part):
    """40 files each; `python tests/fuzz_files.py` makes more."""
    assert not list(fuzz.findings(range(40 * part, 40 * part + 2), seed=0, kind=fuzz_files.FileChain))


def test_the_comparison_with_twins_detects_faults(monkeypatch):
    """A refused call that leaves an attribute, and rows that are refused only together."""
    original = LifeCycleMixin._partial_fit

    def torn(self, *given, **more):
        try:
            return original(self, *given, **more)
        except ValueError:
            self.torn_ = 1
            raise

    def picky(self, X, *given, **more):
        if X.shape[0] == 3:
            raise ValueError("three rows")
        return original(self, X, *given, **more)

    fuzz_undo.models()
    for replacement, problem in ((torn, "another state"), (picky, "are learned one by one")):
        with monkeypatch.context() as patched:
            patched.setattr(LifeCycleMixin, "_partial_fit", replacement)
            found = " ".join(each for *_, each in fuzz.findings(range(10), seed=16, kind=fuzz_undo.UndoChain))
            assert problem in found


def test_the_fuzzing_target_detects_faults(monkeypatch):
    """A refused call that changes the model, an answer that is NaN, a foreign error."""

    def torn(self, *_):
        self.torn_ = 1
        raise ValueError

    def alien(*_):
        raise KeyError("foreign")

    fuzz.models()  # fitted models
    for method, replacement in (("_partial_fit", torn), ("_partial_fit", alien)):
        with monkeypatch.context() as patched:
            patched.setattr(LifeCycleMixin, method, replacement)
            found = " ".join(problem for *_, problem in fuzz.findings(range(20), seed=16))
            assert ("has changed" if replacement is torn else "foreign") in found
    assert fuzz.has_nan((np.ones(2), [np.array([1.0, np.nan])])) and fuzz.has_nan(sparse.csr_array([[np.nan]]))


# --- found before -----------------------------------------------------------------------------------------------------


def test_pairs_of_many_objects_are_left_as_they_are():
    pairs = np.array([[1, 0], [5, 0], [0, 2]])
    before = pairs.copy()
    pair_rows(pairs, 2**32)
    assert np.array_equal(pairs, before)
    with pytest.raises(ValueError, match="n_objects must be an integer >= 1"):
        pair_rows(pairs, 2**70)


@pytest.mark.parametrize("y", [np.array(np.nan), np.float64(np.inf)])
def test_a_target_that_is_no_vector_and_not_finite(y, unchanged):
    model = ImplicitGDRegressor().partial_fit(X, Y)
    with unchanged(model, r"Input y contains (NaN|infinity) \(a single number\)"):
        model.partial_fit(X[:1], y)


def test_bounds_for_comparators_that_overflow():
    model = MirrorDescentRegressor(divergence="squared_euclidean", track_regret=True).partial_fit(X, Y)
    with pytest.raises(ValueError, match="bound for this comparator overflows"):
        model.regret_bound([1e300, 0.0, 0.0, 0.0], weighted=True)
    pnorm = PNormRegressor(p=3.0, track_regret=True).partial_fit(X, Y)
    with pytest.raises(ValueError, match="bound for this comparator overflows"):
        pnorm.regret_bound([1e300, 0.0, 0.0, 0.0], weighted=True)
    bets = ScaleInvariantRegressor().partial_fit(X, Y)
    for bound in (bets.regret_bound, bets.worst_case_bound):
        with pytest.raises(ValueError, match="Input coef contains NaN"):
            bound([np.nan, 0.0, 0.0, 0.0])
        with pytest.raises(ValueError, match="Input intercept contains NaN"):
            bound([0.0, 0.0, 0.0, 0.0], None)


def test_heavy_rows_under_the_theorems_rates():
    bounds = {"x": 5.0, "u": 1.0, "n_rows": 50}
    model = MirrorDescentRegressor(
        divergence="squared_euclidean", loss="absolute_error", learning_rate="theory", data_bounds=bounds
    ).partial_fit(X, Y)
    model.partial_fit(X[:1] / 1e9, Y[:1], sample_weight=[1e200])
    assert np.isfinite(model.coef_).all()
    model.set_params(average=True).partial_fit(X, Y)  # the new rates apply from here


def test_questions_before_the_first_row():
    for ask in ("regret_bound", "worst_case_bound"):
        with pytest.raises(NotFittedError):
            getattr(ScaleInvariantRegressor(), ask)(np.zeros(4))
    assert not hasattr(ImplicitGDRegressor(), "weighted_loss_")


def test_intervals_of_rows_that_are_longer_than_all_by_far():
    """The variance per share would be 0 / 0."""
    model = ForwardRegressor(standardize=False).partial_fit(X, np.zeros(30))
    low, high = model.predict_interval([[1e200, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    assert np.array_equal(low, [-np.inf, 0.0]) and np.array_equal(high, [np.inf, 0.0])
    assert np.array_equal(model.predict_interval([[1e200, 0.0, 0.0, 0.0]], 1e-300), [[-np.inf], [np.inf]])
    _, std = model.predict([[1e200, 0.0, 0.0, 0.0]], return_std=True)
    assert not np.isnan(std).any()


def test_the_head_of_a_memory_map_that_is_no_python(tmp_path):
    file = io.BytesIO()
    np.save(file, X)
    path = tmp_path / "X.npy"
    path.write_bytes(file.getvalue().replace(b"), }   ", b'), }  "(', 1))
    with pytest.raises(ValueError, match=r"X\.npy is not a \.npy file, or damaged|header"):
        ArrayBatches(path)


@pytest.mark.parametrize("form", [np.array, sparse.csr_matrix])
def test_rows_that_are_kept_are_the_models_own(form, state):
    rows = form([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]])
    model = DefiniteBoost().partial_fit(rows, [0.2, 0.3])
    before = state(model)
    (rows if isinstance(rows, np.ndarray) else rows.data)[...] = 7.0
    assert state(model) == before


@pytest.mark.parametrize("kind", [PerceptronClassifier, WinnowClassifier])
@pytest.mark.parametrize("scale", [1.0, 1e200, 1e300, 1e-320])
def test_bounds_on_mistakes_that_overflow(kind, scale):
    """Numbers, which may be infinite, or a ValueError."""
    y = (X[:, 0] > 0).astype(int)
    for eta0 in (1.0, 1e200):
        model = kind(eta0=eta0).fit(X, y)
        for u in (1.0, 1e155, 1e300, 1e-160, 1e-300, 5e-324):
            for intercept in (0.0, 1e200, 1e-200, np.inf, np.nan):
                try:
                    bound = model.mistake_bound(scale * X, y, [u, 0.0, 0.0, 0.0], intercept)
                except ValueError:
                    continue
                assert bound >= 0


def test_a_sparse_matrix_of_a_negative_number_of_rows():
    S = sparse.csr_array(X)
    S._shape, S.indptr = (-1, 4), S.indptr[:0]
    with pytest.raises(ValueError, match="malformed sparse matrix in CSR format"):
        ImplicitGDRegressor().partial_fit(X, Y).predict(S)


@pytest.mark.parametrize("number", [np.inf, np.nan, 2.0, 0, -1, "two"])
def test_a_number_of_neighbours_that_is_none(number):
    model = MetricKNeighborsClassifier().fit(X, Y > 0)
    with pytest.raises(ValueError, match="n_neighbors must be an integer >= 1, or None; got"):
        model.kneighbors(X[:2], number)
    assert model.kneighbors(X[:2], np.int64(3), False).shape == (2, 3)


@pytest.mark.parametrize("kind", [BayesMixture, ExpertMixtureClassifier])
def test_experts_that_have_learned_nothing(kind):
    model = kind([("forward", ForwardClassifier()), ("descent", MirrorDescentClassifier())])
    model.partial_fit(X, Y > 0, [False, True], np.zeros(30))
    with pytest.raises(NotFittedError, match="Expert 'forward' has not learned a row yet"):
        model.predict(X)


@pytest.mark.parametrize("scale", [1e250, 1e279, 1e300])
def test_steps_of_classes_at_rates_without_a_root_that_floats_can_hold(scale, unchanged):
    """The search for it did not end."""
    model = MirrorDescentClassifier(divergence="relative_entropy", signed=True, multi_class="multinomial", average=True)
    y = np.arange(30) % 3
    model.partial_fit(X, y, classes=range(3))
    with unchanged(model, "overflow|too large|scale"):
        model.partial_fit(X, y, sample_weight=np.full(30, scale))


def test_neighbours_drawn_by_forged_numbers_of_rows():
    """Their indices were outside of the stored rows."""
    model = LogDetMetricLearner(random_state=0).fit(X, Y > 0)
    kind, (*arguments, state) = model._sampler.__reduce__()
    state["class_counts"][0] += 10**6
    with pytest.raises(ValueError, match="stored rows must be"):
        kind(*arguments, state)


SQUARE = np.eye(3)
FORGED = {
    "weights for no feature": lambda: EuclideanGeometry(np.ones(0)),
    "half a pair of weights": lambda: EuclideanGeometry(np.ones(3), True),
    "sums of other weights": lambda: _with_state(EuclideanGeometry, average_sum=np.ones(2), stamp=np.ones(3)),
    "no stamps": lambda: _with_state(EuclideanGeometry, pending=1.0, l1=1.0),
    "no numbers": lambda: EuclideanGeometry(np.ones(3), state={}),
    "blocks of other weights": lambda: _with_state(AdaGradGeometry, blocks=np.ones(5)),
    "a box of other weights": lambda: _with_state(AdaGradGeometry, box=(np.ones(2), np.ones(2))),
    "a matrix that is a vector": lambda: FrobeniusGeometry(np.ones(3)),
    "a matrix that is a number": lambda: MatrixBurgGeometry(10**6),
    "more rows than the state has": lambda: LogDetGeometry(np.ones((6, 3))),
    "a logarithm that is a vector": lambda: VonNeumannGeometry(np.ones(9)),
    "phases": lambda: FourierFeatures(np.ones((4, 3)), np.ones(3)),
    "features of other rows": lambda: ForwardLearner(
        2, (), 1.0, True, FourierFeatures(SQUARE, np.ones(3)), True, False, False
    ),
    "no targets": lambda: ForwardLearner(2, (0,), 1.0, True, None, True, False, False),
    "a square that overflows": lambda: SoftmaxLearner(2**32, 3, 1.0, True, None, 1.0),
    "three classes": lambda: AioliLearner(2, 3, 1.0, True, None, 1.0, 1.0),
    "no class": lambda: SoftmaxLearner(2, 0, 1.0, True, None, 1.0),
    "one class of a mixer": lambda: ProbabilityMixer(Hedge(1), 1, ["softmax"], None, None, None),
    "too few states": lambda: ProbabilityMixer(
        Hedge(2), 2, ["softmax", "softmax"], None, None, None, {"calibrations": np.zeros(9)}
    ),
    "combinations of other experts": lambda: ProbabilityMixer(
        Hedge(2), 2, ["softmax", "softmax"], Stack(3, 1.0, 0.0), None, None
    ),
    "a memory of other classes": lambda: ProbabilityMixer(
        Hedge(1), 2, ["softmax"], None, None, LabelMemory(0.0, None, 3)
    ),
    "a label that is none": lambda: LabelMemory(
        0.0, None, 3, False, LabelMemory(0.0, None, 3).get_state() | {"label": 3.0}
    ),
    "combinations of other centred experts": lambda: CentredMixer(
        Hedge(2), SquaredLoss(), Stack(3, None, 0.0), None, None
    ),
    "no probabilities": lambda: ProbabilityMixer(Hedge(2), 2, ["softmax", "identity"], None, None, None),
    "weights of other combinations": lambda: Stack(2, None, 0.0, None, Hedge(2)),
    "combinations of no experts": lambda: Stack(0, None, 0.0),
    "proximal steps without stamps": lambda: _with_state(EuclideanGeometry, l1=1.0),
    "a unit below zero": lambda: PNormGeometry(
        np.ones(3), 3.0, True, PNormGeometry(np.ones(3), 3.0).get_state() | {"unit": -1.0}
    ),
    "numbers that are none": lambda: _with_state(EuclideanGeometry, clock=np.nan),
    "numbers of another kind": lambda: Stack(2, None, 0.0, None, None, {"factors": np.full((2, 5), -1)}),
    "far more features": lambda: ForwardLearner(
        10**6, *ForwardLearner(2, (), 1.0, True, None, True, False, False).__reduce__()[1][1:]
    ),
    "far more classes": lambda: SoftmaxLearner(
        2, 10**6, *SoftmaxLearner(2, 3, 1.0, True, None, 1.0).__reduce__()[1][2:]
    ),
    "far more experts": lambda: Hedge(10**6, *Hedge(2).__reduce__()[1][1:]),
    "statistics of one column": lambda: Standardizer(
        10**6, True, False, True, True, False, {**Standardizer(2, True).get_state(), "deviation": np.ones(1)}
    ),
    "values counted before there were any": lambda: _bins(-(10**9), 0),
    "fewer values than are kept": lambda: _bins(0, 5),
    "percentiles above all": lambda: Percentiles(None, [5.0, 452.0], 1),
    "percentiles that are none": lambda: Percentiles(None, [5.0], 1, {"found": np.array([np.nan])}),
    "a category before the first": lambda: OneHotMap([True], 3, None, False, {"owner": [[0, -1]]}),
    "no interval": lambda: History(2, None, {"weights": np.ones((5, 2)), "interval": 0}),
    "too much recorded": lambda: History(2, None, {"weights": np.ones((129, 2)), "interval": 1}),
    "recorded weights of other experts": lambda: Hedge(2, history=History(3)),
    "a prior of other experts": lambda: Hedge(2, prior=np.ones(3) / 3),
    "a prior of nothing": lambda: Hedge(2, prior=np.array([1.0, 0.0])),
    "an empty range": lambda: AggregatingMixer(Hedge(2), 1.0, 1.0),
    "other forecasts": lambda: AggregatingMixer(Hedge(2), 0.0, 1.0).predict(SQUARE),
    "no classes": lambda: BrierMixer(Hedge(2), False, 0),
    "sparse forecasts": lambda: LogMixer(Hedge(3), False, True).learn(sparse.csr_array(SQUARE)),
    "forecasts of other experts": lambda: LogMixer(Hedge(2), False, True).learn(SQUARE),
    "too few targets": lambda: MeanMixer(Hedge(3), SquaredLoss(), False, None, None).learn(SQUARE, np.ones(2)),
    "too few weights": lambda: MeanMixer(Hedge(3), SquaredLoss(), False, None, None).learn(
        SQUARE, np.ones(3), np.ones(2)
    ),
    "covariance": lambda: FullGaussianLearner(np.ones(3), 1.0, np.ones(3)),
    "variances": lambda: ExponentialFamilyLearner(np.ones(3), 1.0, "gaussian", "Forward", np.ones(2), 1.0, None),
    "learners of other rows": lambda: MultiLearner([_learner(np.ones(3)), _learner(np.ones(2))]),
    "links of other experts": lambda: MixtureLearner(
        [_learner(np.ones(3))], LogMixer(Hedge(2), False, False), None, ["identity"]
    ),
    "numbers as probabilities": lambda: MixtureLearner(
        [_learner(np.ones(3))], BrierMixer(Hedge(1), False, 2), None, ["identity"]
    ),
    "an unknown link": lambda: MixtureLearner(
        [_learner(np.ones(3))], LogMixer(Hedge(1), False, False), None, ["calibrated"]
    ),
    "no book": lambda: MixtureLearner([SoftmaxLearner(2, 3, 1.0, True, None, 1.0)], Unmixed(3), []),
    "columns": lambda: _learner(np.ones(3)).learn(X, Y),
    "columns to predict": lambda: _learner(np.ones(3)).predict(X),
    "columns to standardise": lambda: Standardizer(3, True).transform(X),
}


def _with_state(cls, **changes):
    return cls(np.ones(3), state=cls(np.ones(3)).get_state() | changes)


def test_averages_that_a_file_begins():
    """Without the sums of its geometry they crashed. Those of a certificate may have overflowed, and be no numbers."""
    kind, (geometry, loss, state) = _learner(np.ones(3)).__reduce__()
    state["run"]["plain_slack"] = np.nan
    learner = kind(geometry, loss, {**state, "settings": {**state["settings"], "average_from": 0.0}})
    assert learner.learn(SQUARE, np.ones(3)) is None and learner.predict(SQUARE).shape == (3,)


def test_an_infinite_prior_is_not_corrected_without_end():
    kind, (*arguments, state) = ForwardLearner(3, (), 1.0, True, None, True, True, True).__reduce__()
    state["factor"][-1] = np.inf
    assert kind(*arguments, state).learn(SQUARE, np.ones(3)) == ("overflowed", 1)


def _bins(counted, kept):
    return Bins(1, Bins(1).get_state() | {"kept": np.array([kept]), "counted": np.array([counted])})


def _learner(weights):
    return Learner(EuclideanGeometry(weights), SquaredLoss())


@pytest.mark.parametrize("forged", FORGED)
def test_lengths_that_do_not_fit(forged):
    """From a file with valid checksums: compiled code would read and write outside of its arrays."""
    with pytest.raises(ValueError, match=r"must|phase|columns|covariance"):
        FORGED[forged]()


def test_labels_beyond_those_that_were_learned():
    learner = SoftmaxLearner(4, 3, 1.0, True, None, 1.0)
    for label in (3.0, -1.0, np.nan, 1e300):
        assert learner.learn(X[:1], np.array([label]), None) == ("bad target", 0)
    assert learner.t == 0
