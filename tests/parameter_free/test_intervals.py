"""Conformal intervals of mixtures: against plain NumPy, their laws, and their coverage on any stream."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from onlinebregman._kernels.learners.hedge import Hedge
from onlinebregman._kernels.learners.mean_mixer import MeanMixer
from onlinebregman._kernels.learners.quantile_tracker import QuantileTracker
from onlinebregman._kernels.losses.loss import SquaredLoss
from quantile_replica import LEVELS, RATE, Tracker, chance, mean_of
from scipy.special import ndtri, stdtrit
from sklearn.base import clone

from onlinebregman import (
    ForwardRegressor,
    ImplicitGDRegressor,
    LearningRateMixture,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    ParameterFreeClassifier,
    ParameterFreeRegressor,
)
from onlinebregman.model_selection import progressive_val_predict

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows

ASKED = [0.001, 0.01, 0.055, 0.5, 0.9, 0.95, 0.99, 0.992, 0.999, 0.9999]
seeds = st.integers(0, 2**32 - 1)
MEMBERS = [ImplicitGDRegressor(eta0=0.1), ImplicitGDRegressor()]


def learner_of_errors():
    """A mixer of one expert that predicts 0, so that the targets are the errors."""
    return MeanMixer(Hedge(1), SquaredLoss(), False, QuantileTracker(), None)


def stream(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, 5.0 + X @ [1.0, 2.0, -1.0] + rng.normal(size=n) * np.exp(np.sin(np.arange(n) / 20))


# --- plain NumPy ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        ParameterFreeRegressor(members=MEMBERS),
        ParameterFreeRegressor(members=[*MEMBERS, ForwardRegressor()]),
        ParameterFreeRegressor(members=MEMBERS, loss="absolute_error", stacking=False),
        ParameterFreeRegressor(members=[MirrorDescentRegressor(loss="poisson")], loss="poisson"),
        LearningRateMixture(eta0s=3),
        LearningRateMixture(MirrorDescentRegressor(loss="log_loss"), eta0s=3),
    ],
    ids=str,
)
def test_radii_are_those_of_the_formula_for_errors_of_progressive_predictions(model):
    X, y = stream()
    loss = model.get_params().get("loss", getattr(model, "estimator", None) and model.estimator.loss)
    least, largest = {"poisson": (0, np.inf), "log_loss": (0, 1)}.get(loss, (-np.inf, np.inf))
    if largest == 1:
        y = (y > 5.0).astype(float)
    y = np.maximum(y, least)
    weights, tracker = np.tile([1.0, 0.0, 3.0, 0.1], 50), Tracker()
    for i in range(len(y)):
        if weights[i] and i and not (i == 1 and isinstance(model, ParameterFreeRegressor)):
            tracker.learn(abs(y[i] - model.predict(X[i : i + 1])[0]))
        elif weights[i] and i == 0 and isinstance(model, LearningRateMixture):
            tracker.learn(abs(y[0] - {"log_loss": 0.5}.get(loss, 0.0)))
        model = model.partial_fit(X[i : i + 1], y[i : i + 1], sample_weight=weights[i : i + 1])
    center = model.predict(X)
    for coverage in ASKED:
        lower, upper = model.predict_interval(X, coverage)
        radius = tracker.radius(coverage)
        assert_allclose(lower, np.maximum(center - radius, least), rtol=1e-9, atol=1e-9)
        assert_allclose(upper, np.minimum(center + radius, largest), rtol=1e-9, atol=1e-9)


@settings(max_examples=10)
@given(seeds)
def test_a_tracker_is_that_of_the_formula_for_errors_of_all_magnitudes(seed):
    rng = np.random.default_rng(seed)
    mixer, tracker = learner_of_errors(), Tracker()
    errors = 10.0 ** rng.uniform(-3, 3, size=300) * rng.choice([0.0, 1.0, 1.0], size=300)
    errors[100:200] *= rng.choice([0.0, 1e-3, 1e6])
    for block in np.split(errors, np.sort(rng.integers(0, 300, size=4))):
        if len(block):
            assert mixer.learn(np.zeros((len(block), 1)), block) is None
        for error in block:
            tracker.learn(error)
        found = [mixer.tracker.radius(coverage) for coverage in ASKED]
        assert_allclose(found, [tracker.radius(coverage) for coverage in ASKED], rtol=1e-10)


# --- coverage ---------------------------------------------------------------------------------------------------------


def errors_of(manner, rng, tracker, level):
    """The next error between 1e-3 and 1e3, by an adversary that knows the radii, or without one."""
    radii = np.clip(tracker.radii, 2e-3, 500)
    if manner == "just outside":
        return radii[level] * 1.0001
    if manner == "just inside":
        return radii[level] * 0.9999
    if manner == "between levels":
        return radii[rng.integers(len(LEVELS))] * rng.choice([0.9999, 1.0001])
    if manner == "alternating":
        return [1e-3, 1e3][tracker.n % 2]
    if manner == "jumps":
        return np.clip(10.0 ** [-2, 2, 0][tracker.n // 100 % 3] * abs(rng.standard_cauchy()), 1e-3, 1e3)
    if manner == "growing":
        return 1e-3 * 1e6 ** (tracker.n / 1000)
    return 1e3 / 1e6 ** (tracker.n / 1000)


@pytest.mark.parametrize(
    "manner", ["just outside", "just inside", "between levels", "alternating", "jumps", "growing", "shrinking"]
)
@pytest.mark.parametrize("level", [4, 49, 89, 98])
def test_the_share_of_misses_is_bounded_on_adversarial_streams(manner, level):
    rng, tracker, T = np.random.default_rng(level), Tracker(), 1000
    mixer = learner_of_errors()
    misses, ratios = np.zeros(len(LEVELS)), []
    for t in range(T):
        error = errors_of(manner, rng, tracker, level) if t else 1.0
        if t:
            assert abs(mixer.tracker.radius(LEVELS[level]) / tracker.radii[level] - 1) <= 1e-9
            ratios.append(error / tracker.unit)
        mixer.learn(np.zeros((1, 1)), np.array([error]))
        missed = tracker.learn(error)
        misses += missed * (t > 0)
    excess, wide = misses - (1 - LEVELS) * (T - 1), np.log(max(ratios) / min(ratios)) / RATE
    highest, lowest = tracker.highest, tracker.lowest
    assert (excess <= chance(T) + np.log(np.maximum(max(ratios) / np.exp(lowest), 1)) / RATE + 1 + 1e-6).all()
    assert wide > 0 and (np.diff(misses) <= 0).all()
    if (tracker.lowest > tracker.start - np.log(999)).all():
        each = 2 * (chance(T) + np.log(np.maximum(np.exp(highest) / min(ratios), 1)) / RATE + 2)
        assert (excess >= -np.cumsum(each) - 1e-6).all()


def test_after_perfect_predictions_intervals_recover():
    """Quantiles of errors of 0 do not fall without end."""
    mixer = learner_of_errors()
    mixer.learn(np.zeros((100_000, 1)), np.r_[1.0, np.zeros(99_999)])
    assert mixer.tracker.radius(0.9) < 1e-9
    errors = np.abs(np.random.default_rng(0).normal(size=100))
    mixer.learn(np.zeros((100, 1)), errors)
    assert mixer.tracker.radius(0.9) > np.quantile(errors, 0.7)


# --- the start, and errors --------------------------------------------------------------------------------------------


def test_intervals_are_infinite_until_a_prediction_was_checked():
    X, y = stream(3)
    model = ParameterFreeRegressor()
    for i in range(2):  # the first prediction, 0, says nothing
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        assert np.isinf(model.predict_interval(X)).all() == (i == 0)
    radius = abs(y[1] - y[0]) * mean_of(0.9) * stdtrit(1, 0.95) / ndtri(0.95)
    assert_allclose(np.diff(model.predict_interval(X), axis=0), np.full((1, 3), 2 * radius))
    others = LearningRateMixture().fit(X[:1], y[:1]).predict_interval(X)
    assert_allclose(np.diff(others, axis=0), np.full((1, 3), 2 * y[0] * radius / abs(y[1] - y[0])))


@pytest.mark.parametrize("coverage", [5e-324, 1e-300, np.float32(0.5), 1 - 2.0**-53])
def test_extreme_coverages(coverage):
    model = ParameterFreeRegressor(members=MEMBERS).fit(*stream(20))
    lower, upper = model.predict_interval(stream(20)[0], coverage)
    assert (upper >= lower).all() and np.isfinite([lower, upper]).all()


@pytest.mark.parametrize("coverage", [0, 1, -0.5, 1.5, 90, np.nan, "0.9", None])
def test_invalid_coverages(coverage):
    model = ParameterFreeRegressor(members=MEMBERS).fit(*stream(20))
    with pytest.raises(ValueError, match="coverage must be a number between 0 and 1"):
        model.predict_interval(stream(20)[0], coverage)


@pytest.mark.parametrize("model", [ParameterFreeRegressor(), LearningRateMixture()], ids=str)
def test_intervals_before_the_first_row(model):
    with pytest.raises(AttributeError, match="not fitted"):
        model.predict_interval(stream(5)[0])


# --- exchangeable rows, the first rows, and several coverages --------------------------------------------------------


@pytest.mark.parametrize("outputs", [(), (2,)])
def test_several_coverages_in_one_call(outputs):
    X, y = stream(60)
    y = np.c_[y, -y][:, : outputs[0]] if outputs else y
    asked = [0.5, 0.9, 0.99]
    for model in (ParameterFreeRegressor(members=MEMBERS), ForwardRegressor()):
        model.partial_fit(X, y)
        low, high = model.predict_interval(X, coverage=asked)
        assert low.shape == high.shape == (60, *outputs, 3)
        assert (np.diff(low) <= 0).all() and (np.diff(high) >= 0).all()
        for k, coverage in enumerate(asked):
            assert_array_equal(model.predict_interval(X, coverage), (low[..., k], high[..., k]))
        for wrong in ([], [0.5, 1.0], [[0.5]], "0.5", [None]):
            with pytest.raises(ValueError, match="coverage must be"):
                model.predict_interval(X, wrong)


@settings(max_examples=20)
@given(seeds, st.sampled_from([2, 5, 24]))
def test_the_share_of_misses_is_bounded_if_errors_come_in_blocks(seed, block):
    """Each block is predicted at once, and the adversary knows its radii."""
    rng, mixer, level = np.random.default_rng(seed), learner_of_errors(), 89
    mixer.configure(delayed=True)
    misses, T = 0, 1200
    for _ in range(0, T, block):
        radius = mixer.tracker.radius(0.9)
        errors = np.clip(radius * rng.choice([0.999, 1.001], size=block), 1e-2, 1e2)
        errors = errors * rng.choice([0.1, 1.0, 1.0]) if rng.random() < 0.5 else np.clip(errors, 1e-2, 1e2)
        misses += (errors > radius).sum()
        mixer.learn(np.zeros((block, 1)), errors)
    assert misses - 0.1 * T <= chance(T)[level] + np.log(1e4) / RATE + block


@pytest.mark.parametrize("noise", ["jumps", "heavy tails", "drift"])
def test_coverage_under_drift(noise):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    part = np.arange(3000) // 750
    w = rng.normal(size=(4, 3))[part] if noise == "drift" else np.ones((3000, 3))
    e = rng.standard_t(2, size=3000) if noise == "heavy tails" else rng.normal(size=3000)
    y, asked = (w * X).sum(axis=1) + e * (np.where(part % 2, 5.0, 0.5) if noise == "jumps" else 1.0), [0.5, 0.9, 0.99]
    model = ParameterFreeRegressor(random_features=0)
    lower, upper = progressive_val_predict(model, X, y, method="predict_interval", coverage=asked)
    inside = (lower <= y[1:, np.newaxis]) & (y[1:, np.newaxis] <= upper)
    assert inside[20:].mean(axis=0) == pytest.approx(asked, abs=0.015)
    if noise == "jumps":  # no fixed width is as narrow: that of the true errors has to be that of the louder half
        assert (upper - lower)[20:, 1].mean() < 0.8 * 2 * np.quantile(np.abs(y - X.sum(axis=1)), 0.9)


def test_the_first_intervals_are_wide_enough():
    """Rows 3 to 10 of streams of independent rows."""
    asked, hits = [0.9, 0.99], []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(10, 2)), 3 + rng.normal(size=(10, 1))
        model = ParameterFreeRegressor(members=MEMBERS)
        low, high = progressive_val_predict(model, X, y[:, 0], method="predict_interval", coverage=asked)
        hits.append(((low <= y[1:]) & (y[1:] <= high))[1:])
    assert np.mean(hits, axis=(0, 1)) == pytest.approx(asked, abs=0.02)


# --- sets of classes --------------------------------------------------------------------------------------------------


COVERAGES = [0.5, 0.8, 0.9, 0.95]
OF_LABELS = [MirrorDescentClassifier(standardize=True), MirrorDescentClassifier(eta0=0.1, standardize=True)]


def small(**options):
    return ParameterFreeClassifier(members=OF_LABELS, **options)


def labels(rng, X, n_classes=3):
    return (3 * X[:, : n_classes - 1] + rng.normal(size=(len(X), n_classes - 1)) > 0).sum(axis=1)


KINDS = {"stack": small(), "plain": small(stacking=False), "rates": LearningRateMixture(OF_LABELS[0], eta0s=[0.1, 1.0])}


def test_sets_hold_the_classes_that_are_probable_enough_and_are_nested():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 3))
    model = small().partial_fit(X[:500], labels(rng, X[:500]), classes=[0, 1, 2])
    sets, p = model.predict_set(X[500:], COVERAGES), model.predict_proba(X[500:])
    assert sets.shape == (100, 3, len(COVERAGES)) and sets.dtype == bool
    for k, coverage in enumerate(COVERAGES):
        assert_array_equal(sets[..., k], model.predict_set(X[500:], coverage))
        assert p[sets[..., k]].min() >= p[~sets[..., k]].max()
    assert (sets[..., :-1] <= sets[..., 1:]).all() and sets[..., -1].sum() > sets[..., 0].sum() > 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("drift", [False, True], ids=["steady", "drifting"])
def test_the_share_of_labels_in_their_sets_is_the_coverage(kind, drift):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    y = labels(rng, X)
    y[2000:] = (y[2000:] + drift) % 3
    sets = progressive_val_predict(KINDS[kind], X, y, method="predict_set", coverage=COVERAGES)
    assert sets[np.arange(len(sets)), y[-len(sets) :]].mean(axis=0) == pytest.approx(COVERAGES, abs=0.015)


@pytest.mark.parametrize("kind", KINDS)
def test_the_threshold_is_that_of_the_labels_probabilities_before_their_rows_were_learned(kind):
    rng = np.random.default_rng(2)
    X, tracker, model = rng.normal(size=(200, 3)), Tracker(), clone(KINDS[kind])
    y, weights = labels(rng, X), np.tile([1.0, 0.0, 3.0, 0.1], 50)
    for i in range(200):
        if weights[i]:
            p = model.predict_proba(X[i : i + 1])[0, y[i]] if i else 1 / 3
            tracker.learn((-np.log(p)) ** 0.25)
        more = {} if i else {"classes": [0, 1, 2]}
        model = model.partial_fit(X[i : i + 1], y[i : i + 1], sample_weight=weights[i : i + 1], **more)
    surprise = (-np.log(model.predict_proba(X))) ** 0.25
    assert_array_equal(model.predict_set(X, 0.8), surprise <= tracker.radius(0.8))


def test_all_classes_until_a_row_was_predicted():
    model = small().partial_fit(np.ones((1, 2)), [0], classes=[0, 1], sample_weight=[0.0])
    assert model.predict_set(np.ones((2, 2)), 0.01).all()


def test_what_has_no_sets():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 2))
    several = small().partial_fit(X, X > 0)
    with pytest.raises(ValueError, match="MultiOutputClassifier"):
        several.predict_set(X)
    with pytest.raises(ValueError, match="coverage must be"):
        small().partial_fit(X, X[:, 0] > 0, classes=[False, True]).predict_set(X, 90)
    assert not hasattr(ParameterFreeRegressor(), "predict_set") and not hasattr(small(), "predict_interval")
