"""`merge` of models that learned shards in parallel, for every public estimator, or the error with the reason."""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from raw import MirrorDescentRegressor
from replica import MIRRORS, Cosh, Replica, start_of
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDRegressor

from onlinebregman import (
    BurgRegressor,
    EGRegressor,
    ForwardClassifier,
    ForwardRegressor,
    ImplicitGDRegressor,
    LogDetMetricLearner,
    MatrixBurgRegressor,
    MEGKernelLearner,
    MirrorDescentClassifier,
    OnlineGaussian,
    merge,
)
from onlinebregman.constraints import Box
from onlinebregman.schedules import Schedule

# Why an estimator cannot be merged.
REFUSED = {
    "BayesMixture": "losses of one sequence",
    "DefiniteBoost": "all constraints at once",
    "DefiniteBoostMetricLearner": "at once",
    "DensityMixture": "losses of one sequence",
    "DensityOutlierDetector": "scores of one sequence",
    "ExpertMixtureClassifier": "losses of one sequence",
    "ExpertMixtureRegressor": "losses of one sequence",
    "LearningRateMixture": "losses of one sequence",
    "LearningRatePath": "at the rate that is found",
    "MaxEntDensity": "at once",
    "MetricKNeighborsClassifier": "window",
    "MetricKNeighborsRegressor": "window",
    "ParameterFreeClassifier": "losses of one sequence",
    "ParameterFreeMetricLearner": "first rows of one stream",
    "ParameterFreeRegressor": "losses of one sequence",
    "ScaleInvariantClassifier": "wealth",
    "ScaleInvariantRegressor": "wealth",
    "ThresholdFeatures": "values of one stream",
}


def reason_of(estimator):
    """Why models with these parameters cannot be merged; None if they can."""
    if getattr(estimator, "track_regret", False) and estimator.divergence_.adaptive:
        return REFUSED.get(type(estimator).__name__, "track_regret")
    if type(estimator).__name__.startswith("MirrorDescent") and estimator.thresholds is not None:
        return "bins of its own"
    if getattr(estimator, "forgetting", 1.0) != 1.0:
        return "the order of all rows"
    return REFUSED.get(type(estimator).__name__)


def mixes(estimator):
    return reason_of(estimator) is None


def begun(estimator, learn, X, y):
    """A model after rows of weight 0: it has learned nothing, but is ready for rows like these."""
    return learn(clone(estimator), X[:1], y[:1], sample_weight=np.zeros(1))


def assert_alike(outputs, expected):
    """Equal up to rounding; mapped rows by their inner products, as directions of eigenvalue 0 are arbitrary."""
    for name, values in outputs.items():
        pair = (values, expected[name])
        if name == "transform":
            pair = [each @ each.T for each in pair]
        assert_allclose(*pair, rtol=1e-9, atol=1e-10, err_msg=name)


@pytest.fixture
def shards(rows):
    """Four shards of unequal size."""
    X, y = rows
    ends = [0, 12, 20, 33, 40]
    return [(X[i:j], y[i:j]) for i, j in pairwise(ends)]


@pytest.fixture
def run(estimator, rows, shards, learn):
    """(start, parts, shares) of one round; models that are sums have no shares."""
    X, y = rows
    start = begun(estimator, learn, X, y)
    parts = [learn(copy.copy(start), *shard) for shard in shards]
    return start, parts, None if start._adds_up else [len(shard[0]) / len(X) for shard in shards]


@pytest.mark.only(where=lambda e: not mixes(e))
def test_what_cannot_be_merged_says_why(estimator, rows, learn):
    model = learn(estimator, *rows)
    name, why = type(estimator).__name__, reason_of(estimator)
    with pytest.raises(TypeError, match=f"{name} cannot be merged: .*{why}.*partial_fit"):
        merge([copy.copy(model)], [1.0], start=model)


@pytest.mark.only(where=mixes)
def test_a_mixture_of_equal_models_is_that_model(estimator, run, rows, output):
    (_, (part, *_), shares), (X, _) = run, rows
    mixed = merge([copy.copy(part) for _ in range(3)], shares and [0.5, 0.3, 0.2], start=part)
    assert_alike(output(mixed, X), output(part, X))
    assert mixed.t_ == part.t_ and mixed.cumulative_loss_ == pytest.approx(part.cumulative_loss_)


@pytest.mark.only(where=mixes)
def test_models_that_began_without_rows_need_no_start(estimator, rows, shards, learn, output, state):
    estimator.set_params(**({"random_state": 0} if hasattr(estimator, "random_state") else {}))
    start = begun(estimator, learn, *rows)
    alone = [learn(clone(estimator), *shard) for shard in shards]
    before = [state(model) for model in alone]
    expected = merge([learn(copy.copy(start), *shard) for shard in shards], start=start)
    model = merge(alone)
    assert [state(each) for each in alone] == before
    for _ in range(2):
        assert_alike(output(model, rows[0]), output(expected, rows[0]))
        assert model.t_ == expected.t_ and model.cumulative_loss_ == pytest.approx(expected.cumulative_loss_)
        learn(model, *rows), learn(expected, *rows)


@pytest.mark.only(where=mixes)
def test_rows_add_up_and_the_mixture_goes_on(estimator, run, rows, learn, output, state):
    (start, parts, shares), (X, y) = run, rows
    before = [state(model) for model in (start, *parts)]
    mixed = merge(parts, shares, start=start)
    assert mixed.t_ == sum(part.t_ for part in parts)
    assert mixed.cumulative_loss_ == pytest.approx(sum(part.cumulative_loss_ for part in parts))
    assert [state(model) for model in (start, *parts)] == before
    learn(mixed, X, y)
    for values in output(mixed, X).values():
        assert np.isfinite(values).all()
    assert [state(model) for model in (start, *parts)] == before


@pytest.mark.only(where=lambda e: mixes(e) and getattr(e, "_adds_up", False) and not getattr(e, "standardize", False))
def test_statistics_add_up_to_those_of_one_pass(estimator, run, rows, learn, output):
    (start, parts, shares), (X, y) = run, rows
    if type(estimator).__name__ == "ForwardClassifier":
        pytest.skip("its metric depends on where the weights were")
    whole, mixed = learn(clone(estimator), X, y), merge(parts, shares, start=start)
    assert_alike(output(mixed, X), output(whole, X))
    if hasattr(whole, "offline_loss_"):  # whose sums are about another origin for each part
        assert mixed.offline_loss_ == pytest.approx(whole.offline_loss_)


@pytest.mark.only(where=mixes)
def test_a_mixture_claims_no_bound_of_a_single_run(estimator, run, learn):
    start, parts, shares = run
    mixed = merge(parts, shares, start=start)
    assert not hasattr(mixed, "theory_bound_") and not hasattr(mixed, "regret_bound_")
    with pytest.raises(ValueError, match="must be for one run"):
        mixed._check_one_run()


@pytest.mark.only(where=lambda e: mixes(e) and hasattr(e, "_dual") and "ad" not in str(getattr(e, "divergence", "")))
def test_weights_are_averaged_in_the_mirror_space(estimator, run):
    start, parts, shares = run
    models = (merge(parts, shares, start=start), *parts)
    first = [getattr(model._learner, "learners", [model._learner])[0].geometry for model in models]
    if first[0].adaptive:
        assert "newton" in str(start.divergence)
        return
    with np.errstate(divide="ignore"):
        mixed, *thetas = (start._dual(geometry) for geometry in first)
    theta = sum(share * each for share, each in zip(shares, thetas, strict=True))
    if start._divergence.total is not None:  # up to a constant: on the simplex f(w) = log w is one of many
        mixed, theta = mixed - mixed.mean(), theta - theta.mean()
    if getattr(start._divergence, "trace", None) is not None:  # up to a multiple of the identity
        mixed, theta = (each - np.trace(each) / len(each) * np.eye(len(each)) for each in (mixed, theta))
    assert is_classifier(start) or len(thetas) == 4
    assert_allclose(mixed, theta, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("constraint", [None, Box(-0.3, 0.2)])
@pytest.mark.parametrize("penalty", [None, "l1", "l2"])
@pytest.mark.parametrize("divergence", ["squared_euclidean", "adagrad", "normalized_adagrad", "diagonal_newton"])
def test_penalties_and_boxes_stay_in_force(divergence, penalty, constraint):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.normal(size=60)
    model = MirrorDescentRegressor(divergence=divergence, eta0=0.5, penalty=penalty, alpha=0.3, constraint=constraint)
    start = begun(model, lambda each, *data, **more: each.partial_fit(*data, **more), X, y)
    part = copy.copy(start).partial_fit(sparse.csr_matrix(X[:30]), y[:30])  # with pending steps of the penalty
    mixed = merge([part, copy.copy(part)], [0.5, 0.5], start=start)
    assert_allclose(mixed.coef_, part.coef_, rtol=1e-12)
    mixed.partial_fit(X[30:], y[30:])
    assert constraint is None or constraint.contains(mixed.coef_)
    if penalty is not None:
        bare = clone(model).set_params(penalty=None)
        bare = begun(bare, lambda each, *data, **more: each.partial_fit(*data, **more), X, y)
        bare.partial_fit(X, y)
        assert np.abs(mixed.coef_).sum() < np.abs(bare.coef_).sum()


def test_weights_at_opposite_ends_stay_in_the_domain_and_what_has_no_mean_is_refused(monkeypatch):
    start = MirrorDescentRegressor(divergence="binary_entropy", update="explicit", eta0=1e4, fit_intercept=False)
    start.partial_fit([[1.0]], [0.5], sample_weight=[0.0])
    parts = [copy.copy(start).partial_fit([[1.0]] * 50, [target] * 50) for target in (-5.0, 5.0)]
    assert [float(part.coef_[0]) for part in parts] == pytest.approx([0.0, 1.0], abs=1e-6)
    assert 0 <= merge(parts, [0.5, 0.5], start=start).coef_[0] <= 1
    monkeypatch.setattr(type(start), "_dual", lambda self, geometry: np.array([np.nan]))
    with pytest.raises(ValueError, match="merged weights are not finite"):
        merge(parts, [0.5, 0.5], start=start)


def test_the_rates_of_a_mixture_span_those_of_its_shards():
    """The next round must not start with a larger rate than any of them ended with."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    start = MirrorDescentRegressor(divergence="squared_euclidean", learning_rate="invscaling", track_regret=True)
    start.partial_fit(X[:2], y[:2])
    parts = [copy.deepcopy(start).partial_fit(X[i:j], y[i:j]) for i, j in ((2, 6), (6, 30))]
    (first, early, _), (_, late, rose) = (part._learner.tracked_rates for part in parts)
    assert first > early > late and not rose
    assert merge(parts, [0.2, 0.8], start=start)._learner.tracked_rates == (first, late, False)


@pytest.mark.parametrize("divergence, sums", [("adagrad", 1), ("normalized_adagrad", 4)])
def test_sums_of_adaptive_geometries_are_those_of_all_rows(divergence, sums):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    start = MirrorDescentRegressor(divergence=divergence).partial_fit(X[:2], y[:2])
    parts = [copy.deepcopy(start).partial_fit(X[i:j], y[i:j]) for i, j in ((2, 6), (6, 30))]
    first, one, other, mixed = (
        each._learner.geometry.get_state() for each in (start, *parts, merge(parts, [0.2, 0.8], start=start))
    )
    names = ("intercept_sum", "rows", "norms", "counted")[:sums]
    for name in names:
        assert one[name] > first[name]
    for name in start._learner.geometry.row_sums:
        assert mixed[name] == pytest.approx(one[name] + other[name] - first[name])
    assert set(names) == set(start._learner.geometry.row_sums) - {"of_class"}  # a sum of targets may fall


def test_rows_before_a_model_began_again_are_counted():
    X, y = np.random.default_rng(0).normal(size=(2, 60, 3)), np.ones(60)
    X[0, 0, 1] = 9999.0  # which is learned, and turns out to be absurd
    again, once = (ForwardRegressor().partial_fit(rows, y * rows[:, 2]) for rows in X)
    assert again._before[0] > 0
    for models in ([again, once], [once, again]):
        merged = pickle.loads(pickle.dumps(merge(models)))
        assert merged.t_ == 120 and merged.cumulative_loss_ == pytest.approx(
            again.cumulative_loss_ + once.cumulative_loss_
        )


def test_counters_of_shards_are_those_of_all_rows():
    """The largest weight is a maximum; rows of other weights than 1 and instances left out add up."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))
    X[[2, 5, 7]] = 0.0
    y = X @ rng.normal(size=3)
    weights = rng.uniform(0.5, 3.0, size=12)
    pairs = np.array([[i, i - i % 3] for i in range(12)])

    def linear(model, rows):
        return model.partial_fit(X[rows], y[rows], sample_weight=weights[rows])

    def metric(model, rows):
        return model.partial_fit_pairs(X, pairs[rows], np.ones(len(rows)))

    for whole, learn in [
        (MirrorDescentRegressor(), linear),
        (MEGKernelLearner(), linear),
        (LogDetMetricLearner(), metric),
    ]:
        shards = [np.arange(k, k + 4) for k in (2, 6)]
        start = learn(whole, np.arange(2))
        mixed = merge([learn(copy.deepcopy(start), rows) for rows in shards], [0.5, 0.5], start=start)
        one = learn(start, np.concatenate(shards))
        assert mixed._learner.all_weight_one == one._learner.all_weight_one
        assert mixed._learner.largest_weight == one._learner.largest_weight
        if learn is metric or type(one) is MEGKernelLearner:
            assert mixed.n_collapsed_ == one.n_collapsed_ >= 3


# --- what is refused --------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=(30, 3)), RNG.normal(size=30)


def eg(rows=slice(0, 10), columns=3, **parameters):
    return EGRegressor(**parameters).partial_fit(X[rows, :columns], Y[rows])


def classifier(classes):
    return MirrorDescentClassifier().partial_fit(X[:3], classes[:1] * 3, classes=classes)


@pytest.mark.parametrize(
    ("models", "error", "message"),
    [
        (lambda: [], ValueError, "one fitted model or more; got none"),
        (lambda: [eg(), ForwardRegressor().fit(X, Y)], TypeError, "model 0 is a EGRegressor, model 1 a Forward"),
        (lambda: [SGDRegressor().fit(X, Y)], TypeError, "SGDRegressor cannot be merged: it is no estimator of"),
        (lambda: [eg(), EGRegressor()], NotFittedError, "Model 1, a EGRegressor, must be fitted"),
        (lambda: [eg(), eg(eta0=0.3)], ValueError, r"the same eta0: .* in model 0, 0\.3 in model 1"),
        (lambda: [eg(), eg(columns=2)], ValueError, "the same n_features_in_: 3 in model 0, 2 in model 1"),
        (
            lambda: [EGRegressor().fit(pd.DataFrame(X, columns=list(names)), Y) for names in ("abc", "abd")],
            ValueError,
            "the same feature_names_in_: .'a', 'b', 'c'. in model 0",
        ),
        (lambda: [classifier([0, 1]), classifier([0, 2])], ValueError, r"the same classes_: \[0, 1\] in .* \[0, 2\]"),
        (
            lambda: [ForwardRegressor(random_features=5).fit(X, Y) for _ in range(2)],
            ValueError,
            "the same random_features; with random_state=None each draws its own",
        ),
        (
            lambda: [MirrorDescentRegressor(standardize=True).fit(each, Y) for each in (X, sparse.csr_array(X))],
            ValueError,
            "begun with rows of one kind",
        ),
        (
            lambda: [LogDetMetricLearner(prior="covariance").fit(X, [0, 1] * 15)],
            ValueError,
            "prior='covariance' begin differently",
        ),
    ],
)  # fmt: skip
def test_models_that_differ_are_refused(models, error, message):
    with pytest.raises(error, match=message):
        merge(models())


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], r"one for each of 2 models; got shape \(1,\)"),
        ([1.0, -2.0], "0 or more, and not all 0; got -2 for model 1"),
        ([np.nan, 1.0], "must be finite, .* got nan for model 0"),
        ([0.0, 0.0], "got zeros only"),
    ],
)
def test_weights_that_are_not_valid_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        merge([eg(), eg()], weights)


@pytest.mark.parametrize("kind", [ForwardRegressor, ForwardClassifier, OnlineGaussian])
def test_models_that_are_sums_have_no_weights(kind):
    with pytest.raises(ValueError, match=f"weights must be None for {kind.__name__}, whose models are sums"):
        merge([kind().fit(X, Y > 0)], [1.0])


def test_weights_are_those_of_the_average():
    models = [eg(slice(0, 10)), eg(slice(10, 30))]
    by_rows = merge(models)
    assert_allclose(by_rows.coef_, merge(models, [1.0, 2.0]).coef_, rtol=1e-14)
    assert_allclose(merge(models, [1e308, 1e308]).coef_, merge(models, [1, 1]).coef_, rtol=1e-14)
    assert_allclose(merge(models, [0.0, 3.0]).coef_, models[1].coef_, rtol=1e-12)
    assert not np.allclose(by_rows.coef_, merge(models, [1, 1]).coef_, rtol=1e-6)


def test_models_with_fewer_rows_than_the_start_are_refused():
    with pytest.raises(ValueError, match="must go on from start; model 0 has learned 10 rows, start 20"):
        merge([eg()], start=eg(slice(0, 20)))


def test_a_start_at_given_weights_is_kept():
    model = EGRegressor(track_regret=True).fit(X, Y, coef_init=np.full(3, 0.2), intercept_init=1.0)
    u = np.full(3, 0.3)
    assert_allclose(
        merge([model]).regret_bound(u, 0.5, weighted=True), model.regret_bound(u, 0.5, weighted=True), rtol=1e-12
    )


def test_a_model_that_began_again_since_the_start_is_refused():
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(200, 3)), rng.normal(size=200)
    rows[0, 1] = 1e9  # which is known to be absurd after ten rows
    start = ForwardRegressor().partial_fit(rows[:5], y[:5])
    parts = [copy.deepcopy(start).partial_fit(rows[s], y[s]) for s in (slice(5, 9), slice(5, 200))]
    with pytest.raises(ValueError, match=r"model 1 began again since, .* Let start learn forty rows or more"):
        merge(parts, start=start)


# --- the certificate of models that learn shards in parallel rounds ---------------------------------------------------


def sharded(rng, n, sizes=(5, 8, 3)):
    """Shards of unequal size, with weights of 0 among others."""
    shards, w = [], rng.normal(size=n)
    for rows in sizes:
        X = rng.normal(size=(rows, n)) * rng.choice([0.3, 1.0, 3.0])
        y = X @ w + 0.3 * rng.normal(size=rows)
        shards.append((X, y, rng.choice([0.0, 0.5, 1.0, 2.0], size=rows) + (np.arange(rows) == 0)))
    return shards


POTENTIALS = {  # F, given the number of features
    "squared_euclidean": lambda w, n: w @ w / 2,
    "relative_entropy": lambda w, n: (w * np.log(w) - w).sum(),
    "simplex_entropy": lambda w, n: (w * np.log(w)).sum(),
    "burg": lambda w, n: -np.log(w).sum(),
    "binary_entropy": lambda w, n: (w * np.log(w) + (1 - w) * np.log(1 - w)).sum(),
    "cosh": lambda w, n: np.cosh(w).sum(),
}


@pytest.mark.parametrize("update", ["explicit", "implicit"])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("name", POTENTIALS)
def test_it_is_that_of_a_replica_in_numpy(name, scaled, update):
    """The right side from the definitions: D by F and f, S by D and the losses, theta by its mean."""
    rng = np.random.default_rng(5)
    n, eta = 4, 0.02 * (3 if scaled else 1)
    F, f, inverse = POTENTIALS[name], MIRRORS[name].f, MIRRORS[name].inverse
    shards, first = sharded(rng, n), start_of(name, rng, n)

    def D(u, w):
        return F(u, n) - F(w, n) - f(w) @ (u - w)

    def both(u, b, w, c):
        return D(u, w) + (b - c) ** 2 / 2

    total = sum(h.sum() for *_, h in shards)
    theta, b, slack, lost = f(first), 0.0, 0.0, 0.0
    for _ in range(2):
        ends = []
        for X, y, h in shards:
            share = h.sum() / total
            each = Replica(name, "squared_error", update, first, eta0=eta)
            each.theta, each.b = theta, b
            for x, target, weight in zip(X, y, h, strict=True):
                before, old = (each.coef, each.b), (x @ each.coef + each.b - target) ** 2 / 2
                if weight > 0:
                    each.learn(x, target, weight)
                after, new = (each.coef, each.b), (x @ each.coef + each.b - target) ** 2 / 2
                lost += share * eta * weight * old
                gained = eta * weight * (old - new) - both(*after, *before)
                slack += share * (both(*before, *after) if update == "explicit" else gained)
            ends.append((share, each.theta, each.b))
        theta, b = (sum(share * value for share, value in zip(*pair, strict=True)) for pair in _by_share(ends))
    model = MirrorDescentRegressor(
        divergence=Cosh() if name == "cosh" else name,
        update=update,
        init=first,
        eta0=0.02,
        learning_rate=Schedule(eta, 0.0),
        track_regret=True,
    )
    (X, y, _), *_ = shards
    model.partial_fit(X[:1], y[:1], sample_weight=[0.0])
    for _ in range(2):
        parts = [copy.copy(model).partial_fit(X, y, sample_weight=h) for X, y, h in shards]
        model = merge(parts, [h.sum() / total for *_, h in shards], start=model)
    last = inverse(theta)
    assert_allclose(model.coef_, last, rtol=1e-9)
    assert_allclose(model.weighted_loss_, lost, rtol=1e-9)
    for _ in range(5):
        u, c = start_of(name, rng, n), float(rng.normal())
        expected = both(u, c, first, 0.0) - both(u, c, last, b) + slack
        assert_allclose(model.regret_bound(u, c, weighted=True), expected, rtol=1e-8)


def _by_share(ends):
    shares, thetas, intercepts = zip(*ends, strict=True)
    return (shares, thetas), (shares, intercepts)


# --- other bounds -----------------------------------------------------------------------------------------------------


def mixed(*shares, rounds=1, model=None, rate=0.3):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10, 2)), rng.normal(size=10)
    model = ImplicitGDRegressor(eta0=rate, learning_rate="constant", track_regret=True) if model is None else model
    model.partial_fit(X[:1], y[:1], sample_weight=[0.0])
    for _ in range(rounds):
        model = merge([copy.copy(model).partial_fit(X, y) for _ in shares], shares, start=model)
    return model, X, y


def test_only_the_certificate_is_that_of_a_mixture():
    model, X, y = mixed(0.4, 0.6, rounds=2)
    assert pickle.loads(pickle.dumps(model)).regret_bound([1.0, 1.0], weighted=True) == model.regret_bound(
        [1.0, 1.0], weighted=True
    )
    for bound in (model.regret_bound, model.partial_fit(X, y).regret_bound, lambda u: model.regret_bound(radius=1.0)):
        with pytest.raises(ValueError, match="must be for one run over all rows"):
            bound([1.0, 1.0])
    model.set_params(eta0=0.4)
    later = merge([copy.copy(model).partial_fit(X, y) for _ in range(2)], start=model)
    for each in (model, later, later.set_params(eta0=0.3)):
        with pytest.raises(ValueError, match=r"eta0 was changed from 0\.3 to 0\.4|must be for one run") as error:
            each.regret_bound([1.0, 1.0], weighted=True)
        assert "eta0 was changed" in str(error.value)


# --- what has none ----------------------------------------------------------------------------------------------------


def test_a_run_that_was_not_tracked_and_other_bounds_are_refused():
    model, *_ = mixed(0.5, 0.5, model=ImplicitGDRegressor())
    with pytest.raises(ValueError, match="no regret certificate of this run; set track_regret=True"):
        model.regret_bound([1.0, 1.0], weighted=True)
    start = MatrixBurgRegressor(track_regret=True).partial_fit([[0.5, 0.1]], [0.1], sample_weight=[0.0])
    matrices = merge([copy.copy(start).partial_fit([[0.5, 0.1]], [0.1]) for _ in range(2)], [0.5, 0.5], start=start)
    assert np.isfinite(matrices.regret_bound(np.eye(2) / 2, weighted=True))
    with pytest.raises(ValueError, match="must be for one run"):
        matrices.loss_bound(np.eye(2) / 2)
    kept = BurgRegressor(update="gradient", eta0=1e6, learning_rate="constant", fit_intercept=False)
    kept.partial_fit([[0.5, 0.1]], [0.1])
    assert np.isfinite(kept.loss_bound([0.5, 0.5]))
    with pytest.raises(ValueError, match="must be for one run"):
        merge([copy.copy(kept)], [1.0], start=kept).loss_bound([0.5, 0.5])
