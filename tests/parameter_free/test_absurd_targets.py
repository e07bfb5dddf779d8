"""One absurd target, or some, do not spoil a mixture; what is learned of them follows the robust scale."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from onlinebregman._kernels.learners.hedge import Hedge
from onlinebregman._kernels.learners.linked_mixer import LinkedMixer
from onlinebregman._kernels.learners.stack import COMBINATIONS, Stack
from onlinebregman._kernels.learners.stacked_mixers import CentredMixer
from onlinebregman._kernels.losses.loss import SquaredLoss
from robust_replica import RobustScale
from scipy import sparse
from scipy.optimize import brentq
from sklearn.base import clone
from sklearn.linear_model import PoissonRegressor

from onlinebregman import ForwardRegressor, MirrorDescentRegressor, ParameterFreeRegressor, ScaleInvariantRegressor
from onlinebregman._online.compiled import make_loss
from onlinebregman.linear_model import ForwardClassifier, MirrorDescentClassifier, ScaleInvariantClassifier
from onlinebregman.losses import PoissonLoss, TweedieLoss, resolve_loss
from onlinebregman.model_selection import LearningRateMixture

COEF = np.array([1.0, -2.0, 0.5])
LOSSES = ["squared_error", "absolute_error", "huber", "epsilon_insensitive", "quantile"]


def stream(n=1000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X @ COEF, X @ COEF + rng.normal(size=n), rng


def few(loss, stacking=True):
    """A mixture of few members, so that it is fast."""
    members = [MirrorDescentRegressor(loss=loss, divergence="normalized_adagrad", eta0=eta) for eta in (3.0, 30.0)]
    members += [
        MirrorDescentRegressor(loss=loss, standardize=True),
        ForwardRegressor(),
        ForwardRegressor(forgetting=0.98),
    ]
    return ParameterFreeRegressor(members=members, loss=loss, stacking=stacking)


def distance(model, X, true):
    return float(np.sqrt(np.mean((model.predict(X[-500:]) - true[-500:]) ** 2)))


FIRST = {(0, 1): [1e6, 1e9], (0, 2): [1e9, -1e6], (1, 2): [100.0, 100.0], (0, 1, 2): [1e9, -1e6, 3e7], (2,): [-100.0]}
STREAMS = {
    "normal": lambda rng: rng.normal(size=400),
    "cauchy": lambda rng: 1e3 + rng.standard_cauchy(400),
    "counts": lambda rng: rng.poisson(0.05, size=400).astype(float),
    "constant": lambda rng: np.r_[np.full(50, 3.0), 4.0, np.full(30, 3.0), 1e9, 3.0 + rng.normal(size=60)],
    "labels": lambda rng: rng.integers(2, size=300).astype(float),
    "absurd start": lambda rng: np.r_[1e9, rng.normal(size=50), -1e6, rng.normal(size=50)],
    "shift": lambda rng: np.r_[rng.normal(size=100), 1e4 + rng.normal(size=300)],
}


@pytest.mark.parametrize("name", STREAMS)
def test_the_scale_is_that_of_its_definition(name):
    y = STREAMS[name](np.random.default_rng(0))
    mixer, scale = CentredMixer(Hedge(1), SquaredLoss(), None, None, None), RobustScale()
    for t in range(len(y)):
        mixer.learn(np.zeros((1, 1)), y[t : t + 1])
        scale.learn(y[t])
        names = ("n", "moves", "origin", "mean", "deviation", "usual", "votes", "lo", "hi")
        found = dict(zip(names, mixer.get_state()["scale"][:9], strict=True))
        assert found["deviation"] == pytest.approx(scale.deviation, rel=1e-9)
        if scale.known:
            interval = np.array([found["lo"], found["mean"], found["hi"]]) + found["origin"]
            assert_allclose(interval, [scale.lo, scale.mean, scale.hi], rtol=1e-7, atol=1e-6 * scale.deviation)


@pytest.mark.parametrize("name", ["counts", "labels"])
def test_rare_and_equal_targets_are_no_absurd_ones(name):
    scale = RobustScale()
    assert all(scale.learn(y) == y for y in STREAMS[name](np.random.default_rng(1)))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("stacking", [False, True])
@pytest.mark.parametrize(
    "rows, value", [([0], 1e9), ([1], -1e6), ([2], 1e6), ([10], 1e9), ([50], 1e4), ([60, 61], -1e9), *FIRST.items()]
)
def test_an_absurd_target_is_forgotten(loss, stacking, rows, value):
    X, true, y, _ = stream()
    level = -1.2816 if loss == "quantile" else 0.0
    clean = distance(few(loss, stacking).partial_fit(X, y), X, true + level)
    y[list(rows)] = value
    model = few(loss, stacking).partial_fit(X, y)
    assert distance(model, X, true + level) < 1.5 * clean + 0.1
    rounding = 1e-15 * model.cumulative_loss_
    assert model.cumulative_loss_ - model.cumulative_losses_.min() <= model.regret_bound_ + rounding
    assert model.cumulative_losses_.min() > 1e3 or np.abs(value).max() < 1e3  # of the true target


OTHERS = [MirrorDescentRegressor(), LearningRateMixture(MirrorDescentRegressor())]
OTHERS += [ForwardClassifier(), MirrorDescentClassifier(), ScaleInvariantClassifier()]
AGAIN = {"mixture": few("squared_error"), "one": ScaleInvariantRegressor(), "column": ForwardRegressor()}


@pytest.mark.parametrize("kind", [*AGAIN, "several"])
def test_beginning_again_depends_on_no_cut_and_is_undone(kind, learned):
    """Of one output or several, with rows of weight 0."""
    (X, _, y, _), weights = stream(60), np.where(np.arange(60) % 7 == 3, 0.0, 1.0)
    model = AGAIN.get(kind, AGAIN["mixture"])
    (X[:, 1] if kind == "column" else y)[:2] = FIRST[0, 1]
    y = np.column_stack([y, y[::-1], 2.0 * y]) if kind == "several" else y
    whole = clone(model).partial_fit(X, y, weights)
    for size in (1, 3, 7):
        cut = clone(model)
        for start in range(0, 60, size):
            cut.partial_fit(X[start : start + size], y[start : start + size], weights[start : start + size])
            cut = pickle.loads(pickle.dumps(cut)) if start < 12 else cut
        assert learned(cut) == learned(whole)
    refused = clone(model).partial_fit(X[:2], y[:2], weights[:2])
    bad = np.where(np.arange(60) == 30, np.inf, X.T).T
    with pytest.raises(ValueError, match="infinity"):
        refused.partial_fit(bad[2:], y[2:], weights[2:])
    assert learned(refused.partial_fit(X[2:], y[2:], weights[2:])) == learned(whole)
    moved = clone(model).partial_fit(X, 3.0 + 1e-3 * y, weights)
    assert_allclose((moved.predict(X[-5:]) - 3.0) / 1e-3, whole.predict(X[-5:]), rtol=1e-9)


def test_a_mixture_that_began_again_says_after_which_rows_and_who_is_best_since():
    X, _, y, _ = stream(60)
    y[:2] = FIRST[0, 1]
    model = few("squared_error").partial_fit(X, y)
    n = int(model.weights_history_t_[0]) - 1  # rows before
    since = few("squared_error").partial_fit(X[n:], y[n:])
    assert n == 10 and model.t_ == 60
    assert_array_equal(model.weights_history_, since.weights_history_)
    assert_array_equal(model.weights_history_t_, np.arange(n + 1, 61))
    assert model.best_index_ == since.best_index_ != model.cumulative_losses_.argmin()  # with the losses before
    assert model.best_estimator_ is model.estimators_[since.best_index_]


def test_bounds_include_what_was_lost_before_a_model_began_again():
    X, true, y, _ = stream()
    X[:2, 1] = y[:2] = FIRST[0, 1]
    model = ScaleInvariantRegressor(loss="absolute_error").partial_fit(X, y)
    bound = model.regret_bound(COEF * model.scale_, COEF @ model.mean_)
    assert model.t_ == len(X) and model.cumulative_loss_ - np.abs(y - X @ COEF).sum() <= bound * (1 + 1e-9)
    improper = ForwardClassifier(update="aioli", standardize=True).partial_fit(X, true > 0, classes=[False, True])
    assert improper.cumulative_loss_ - len(X) * np.log(2) <= improper.regret_bound(np.zeros(3))


@pytest.mark.parametrize("rows", FIRST)
@pytest.mark.parametrize("model", [*AGAIN.values(), *OTHERS], ids=str)
@pytest.mark.parametrize("where", ["column", "sparse", "target"])
def test_first_rows_that_turn_out_to_be_absurd_are_forgotten(model, where, rows):
    X, _, y, rng = stream()
    X *= rng.uniform(size=X.shape) < (0.7 if where == "sparse" else 1.0)
    true, made = X @ COEF, sparse.csr_array if where == "sparse" else np.asarray
    if of_labels := "Classifier" in str(model):
        true = y = 1 * (true > 0)
    options = {"classes": [0, 1]} if of_labels else {}
    clean = clone(model).partial_fit(X[40:], y[40:], **options)
    (y if where == "target" and not of_labels else X[:, 1])[list(rows)] = FIRST[rows]
    model = clone(model).partial_fit(made(X), y, **options)
    assert distance(model, X, true) < 1.3 * distance(clean, X, true) + 0.05
    assert getattr(model, "regret_", -1.0) <= getattr(model, "regret_bound_", 0.0)


def test_heavy_tails_are_no_absurd_values_of_models_of_labels():
    rng = np.random.default_rng(0)
    X, y = np.exp(2.0 * rng.normal(size=(60, 5))), rng.integers(2, size=60)
    assert MirrorDescentClassifier().partial_fit(X, y, classes=[0, 1])._before[0] == 0


@pytest.mark.parametrize("value, mean", [(9999.0, 0.0), (0.0, 1e6), (-1e300, 0.0)])
def test_sentinels_are_learned_as_the_ends_of_the_scale(value, mean):
    loss = "absolute_error" if value < -1e100 else "squared_error"
    X, true, y, rng = stream(1500)
    y += mean
    y[rng.random(1500) < 0.01] = value
    assert distance(few(loss).partial_fit(X, y), X, true + mean) < 0.5


def test_each_output_has_its_own_scale():
    X, true, y, _ = stream()
    spoiled = np.where(np.arange(len(y)) == 50, 1e9, y)
    model = few("squared_error").partial_fit(X, np.column_stack([spoiled, 1e12 * y]))
    assert distance(few("squared_error").partial_fit(X, spoiled), X, true) == pytest.approx(
        np.sqrt(np.mean((model.predict(X[-500:])[:, 0] - true[-500:]) ** 2)), rel=1e-9
    )


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
@pytest.mark.parametrize("rows, value", [([5, 50, 700], 1e6), *FIRST.items()])
def test_absurd_counts(loss, rows, value):
    X, true, _, rng = stream(1500)
    mean = np.exp(1.0 + 0.2 * true)
    y = rng.poisson(mean) + 1.0
    clean = ParameterFreeRegressor(loss=loss, random_features=0).partial_fit(X, y).predict(X[-500:])
    y[list(rows)] = np.abs(value)
    model = ParameterFreeRegressor(loss=loss, random_features=0).partial_fit(X, y)
    assert np.abs(np.log(model.predict(X[-500:]) / clean)).mean() < 0.1
    rounding = 1e-15 * model.cumulative_loss_
    assert model.cumulative_loss_ - model.cumulative_losses_.min() <= model.regret_bound_ + rounding


# --- counts, gamma and Tweedie targets --------------------------------------------------------------------------------


def stream_of(loss, mean, n=3000, seed=0, claims=0.5):
    """Rows, targets of this mean, weights (exposures of counts per unit of exposure), and the expected targets."""
    rng = np.random.default_rng(seed)
    X = np.c_[rng.normal(size=n), 0.01 * rng.normal(size=n) + 5, rng.uniform(0, 100, n), rng.random(n) < 0.3]
    expected = np.exp((X - X.mean(axis=0)) @ [0.5, 20.0, 0.01, 0.7])
    expected *= mean / expected.mean()
    if loss == "poisson":
        exposure = np.clip(rng.lognormal(-0.5, size=n), 0.01, 20.0)
        return X, rng.poisson(exposure * expected) / exposure, exposure, expected
    if loss == "gamma":
        return X, rng.gamma(2.0, expected / 2.0), np.ones(n), expected
    numbers = rng.poisson(claims * np.sqrt(expected / mean))
    return X, rng.gamma(np.maximum(numbers, 1), np.sqrt(expected * mean) / claims) * (numbers > 0), np.ones(n), expected


def progressive(model, X, y, weights, expected):
    """Total over the expected one, and mean deviance, of the last half."""
    predictions = np.full(len(y), np.nan)
    for rows in np.split(np.arange(len(y)), np.arange(1, len(y), 20)):
        if rows[0] > len(y) // 2:
            predictions[rows] = model.predict(X[rows])
        model.partial_fit(X[rows], y[rows], weights[rows])
    late = np.isfinite(predictions)
    losses = resolve_loss(model.loss).value(np.log(predictions[late]), y[late])
    return (weights * predictions)[late].sum() / (weights * expected)[late].sum(), (weights[late] * losses).mean()


@pytest.mark.parametrize(
    "loss, mean", [("poisson", 0.3), ("poisson", 20.0), ("gamma", 1.0), ("gamma", 1e3), ("tweedie", 100.0)]
)
def test_totals_are_right_and_the_deviance_that_of_a_second_order_model(loss, mean):
    rows = stream_of(loss, mean)
    total, deviance = progressive(ParameterFreeRegressor(loss=loss, random_features=32), *rows)
    _, expected = progressive(ForwardRegressor(loss=loss, standardize=True), *rows)
    assert deviance < 1.015 * expected
    assert abs(total - 1) < (0.1 if loss == "tweedie" else 0.04)


@pytest.mark.parametrize("mean", [1.0, 100.0])
def test_totals_do_not_remember_how_far_members_had_to_go(mean):
    rows = stream_of("tweedie", mean, seed=3, claims=0.15)
    total, _ = progressive(ParameterFreeRegressor(loss="tweedie", random_features=0, thresholds=False), *rows)
    assert abs(total - 1) < 0.1


def test_exposures_are_weights_of_rates():
    rng = np.random.default_rng(1)
    X, exposures = rng.normal(size=(6000, 3)), np.clip(rng.lognormal(size=6000), 0.01, 20.0)
    rates = rng.poisson(exposures * np.exp(X @ [0.5, -0.5, 0.0] + 1.0)) / exposures
    likeliest = PoissonRegressor(alpha=1e-9, max_iter=1000, tol=1e-9).fit(X, rates, exposures).predict(X)
    for model in (
        ForwardRegressor(loss="poisson", standardize=True, penalize_intercept=False),
        ParameterFreeRegressor(loss="poisson", random_features=0, thresholds=False),
    ):
        ratio = model.partial_fit(X, rates, exposures).predict(X) / likeliest
        assert abs(np.average(ratio, weights=exposures) - 1) < 0.02
        assert np.sqrt(np.average((ratio - 1) ** 2, weights=exposures)) < 0.06


def test_rows_of_several_counts_are_learned_by_first_order_members():
    X, y, _, _ = stream_of("poisson", 2.0, 100)
    model = ParameterFreeRegressor(loss="poisson", random_features=0).fit(X, np.c_[y, y])
    assert model.predict(X).shape == (100, 2)
    assert not any(isinstance(member, ForwardRegressor) for member in model.estimators_)


@pytest.mark.parametrize("loss", [PoissonLoss(), TweedieLoss(1.5)])
def test_combinations_make_implicit_second_order_steps(loss):
    """Two experts; forward predictions of (p - m) / unit, ridge regression of linearised targets."""
    rng = np.random.default_rng(0)
    scores, y = rng.normal(size=(60, 2)), rng.poisson(2.0, size=60).astype(float)
    mixer = LinkedMixer(Hedge(2), make_loss(loss), Stack(2, None, 0.0), None, None, True)
    state = [(alpha * np.eye(2), np.zeros(2)) for alpha, _ in COMBINATIONS[:2]]
    for s, target in zip(scores, y, strict=True):
        stats, unit = mixer.target_stats, mixer.units[0]
        p = np.clip(s + stats["shift"], stats["lo"], stats["hi"]) if stats["weight"] else np.zeros(2)
        m = p @ mixer.hedge.weights
        forecasts = [m]
        for j, ((A, b), (_, gamma)) in enumerate(zip(state, COMBINATIONS, strict=False)):
            x = (p - m) / unit if unit else np.zeros(2)
            A, b = gamma * A, gamma * b
            step, q = np.linalg.solve(A, b) @ x, x @ np.linalg.solve(A, x)
            forecast = m + unit * step / (1 + q)
            forecasts.append(np.clip(forecast, stats["lo"], stats["hi"]) if unit else m)
            if unit:
                a = m + unit * step
                z = brentq(
                    lambda z, a=a, q=q, target=target: z - a + q * loss.derivative(z, target),
                    a - 50,
                    a + 50,
                    xtol=1e-14,
                )
                h = loss.curvature(z, target)
                state[j] = A + h * np.outer(x, x), b + h * (z - loss.derivative(z, target) / h - m) / unit * x
        assert_allclose(mixer.predict(s[np.newaxis]), [[mixer.stack.hedge.weights @ forecasts]], rtol=1e-8)
        mixer.learn(s[np.newaxis], np.array([target]))
    for coef, (A, b) in zip(mixer.stack.coef, state, strict=True):
        assert_allclose(coef, np.linalg.solve(A, b), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("absurd", [[0], [0, 1], [2]])
def test_predictions_are_about_the_mean_of_targets_of_which_absurd_ones_are_forgotten(absurd):
    """As soon as more targets show which they were, those that were learned count as the scale's limit."""
    y = np.random.default_rng(0).poisson(5.0, size=40) + 1.0
    y[absurd] = 1e6
    mixer, scale = LinkedMixer(Hedge(2), make_loss(PoissonLoss()), None, None, None, True), RobustScale()
    mean = largest = spread = 0.0
    for n, target in enumerate(y):
        learned = scale.learn(target)
        if scale.known and len(scale.moves) <= 20 and largest > scale.hi:
            mean, largest, spread = scale.clip(mean), scale.hi, 1 / n
        mean, largest = mean + (learned - mean) / (n + 1), max(largest, learned)
        part = learned / (mean * (n + 1))
        spread = spread * (1 - part) ** 2 + part**2
        mixer.learn(np.zeros((1, 2)), np.array([target]))
        stats = mixer.target_stats
        assert_allclose([stats["lo"], stats["hi"]], np.log(mean) + np.log(spread) * np.array([1, -1]), rtol=1e-9)
    assert mean < 10.0


@pytest.mark.parametrize("loss, first, later", [("poisson", 2.0, 0.0), ("gamma", 1e-9, 1.0), ("tweedie", 5.0, 1e4)])
@pytest.mark.parametrize("n", [2, 30])
def test_equal_targets_say_nothing_about_the_size_of_losses(loss, first, later, n):
    """The losses of predictions that do not depend on members are 0, and no unit for the combinations."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.r_[np.full(n, first), np.where(np.arange(60 - n) % 3 == 1, first, later)]
    model = ParameterFreeRegressor(loss=loss, random_features=0, thresholds=False).partial_fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert model.cumulative_loss_ <= model.cumulative_losses_.min() + model.regret_bound_
