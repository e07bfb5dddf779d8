"""Mixing of models that learned shards in parallel, for every public estimator, or the error with the reason."""

import copy
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from raw import MirrorDescentRegressor
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import has_fit_parameter

from onlinebregman import LogDetMetricLearner, MEGKernelLearner
from onlinebregman.constraints import Box

# Why an estimator does not mix, where it does not.
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
    """Why models with these parameters cannot be mixed; None if they can."""
    if getattr(estimator, "track_regret", False) and estimator.divergence_.adaptive:
        return REFUSED.get(type(estimator).__name__, "track_regret")
    if type(estimator).__name__.startswith("MirrorDescent") and estimator.thresholds is not None:
        return "its own bins"
    if getattr(estimator, "forgetting", 1.0) != 1.0:
        return "no common order"
    return REFUSED.get(type(estimator).__name__)


def mixes(estimator):
    return reason_of(estimator) is None


def weighed(estimator):
    return has_fit_parameter(estimator, "sample_weight")


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
    """(start, parts, shares) of one round."""
    X, y = rows
    start = begun(estimator, learn, X, y)
    parts = [learn(copy.copy(start), *shard) for shard in shards]
    return start, parts, [len(shard[0]) / len(X) for shard in shards]


@pytest.mark.only(where=lambda e: not mixes(e))
def test_what_does_not_mix_says_why(estimator, rows, learn):
    model = learn(estimator, *rows)
    with pytest.raises(TypeError, match=f"{type(estimator).__name__} cannot be mixed.*{reason_of(estimator)}"):
        model._merged([copy.copy(model)], [1.0])


@pytest.mark.only(where=mixes)
def test_a_mixture_of_equal_models_is_that_model(estimator, run, rows, output):
    (_, (part, *_), _), (X, _) = run, rows
    mixed = part._merged([copy.copy(part) for _ in range(3)], [0.5, 0.3, 0.2])
    assert_alike(output(mixed, X), output(part, X))
    assert mixed.t_ == part.t_ and mixed.cumulative_loss_ == pytest.approx(part.cumulative_loss_)


@pytest.mark.only(where=mixes)
def test_one_shard_alone_is_a_pass_over_it(estimator, run, rows, output):
    (start, (part, *_), _), (X, _) = run, rows
    mixed = start._merged([part], [1.0])
    assert_alike(output(mixed, X), output(part, X))


@pytest.mark.only(where=lambda e: mixes(e) and not getattr(e, "_adds_up", False))
def test_a_share_of_nothing_counts_nothing(estimator, run, rows, output):
    (start, (part, *_), _), (X, _) = run, rows
    assert_alike(output(start._merged([part, copy.copy(start)], [1.0, 0.0]), X), output(part, X))


@pytest.mark.only(where=mixes)
def test_rows_add_up_and_the_mixture_goes_on(estimator, run, rows, learn, output, state):
    (start, parts, shares), (X, y) = run, rows
    before = [state(model) for model in (start, *parts)]
    mixed = start._merged(parts, shares)
    assert mixed.t_ == sum(part.t_ for part in parts)
    assert mixed.cumulative_loss_ == pytest.approx(sum(part.cumulative_loss_ for part in parts))
    assert [state(model) for model in (start, *parts)] == before
    learn(mixed, X, y)
    for values in output(mixed, X).values():
        assert np.isfinite(values).all()
    assert [state(model) for model in (start, *parts)] == before


@pytest.mark.only(where=mixes)
def test_the_same_parts_give_the_same_bits(estimator, run, state):
    start, parts, shares = run
    assert state(start._merged(parts, shares)) == state(start._merged([copy.copy(part) for part in parts], shares))


@pytest.mark.only(where=lambda e: mixes(e) and getattr(e, "_adds_up", False) and not getattr(e, "standardize", False))
def test_statistics_add_up_to_those_of_one_pass(estimator, run, rows, learn, output):
    (start, parts, shares), (X, y) = run, rows
    if type(estimator).__name__ == "ForwardClassifier":
        pytest.skip("its metric depends on where the weights were")
    whole, mixed = learn(clone(estimator), X, y), start._merged(parts, shares)
    assert_alike(output(mixed, X), output(whole, X))
    if hasattr(whole, "offline_loss_"):  # whose sums are about another origin for each part
        assert mixed.offline_loss_ == pytest.approx(whole.offline_loss_)


@pytest.mark.only(where=mixes)
def test_a_mixture_claims_no_bound_of_a_single_run(estimator, run, learn):
    start, parts, shares = run
    mixed = start._merged(parts, shares)
    assert not hasattr(mixed, "regret_bound_")
    with pytest.raises(ValueError, match="must be for one run"):
        mixed._check_one_run()


@pytest.mark.only(where=lambda e: mixes(e) and hasattr(e, "_dual") and "ad" not in str(getattr(e, "divergence", "")))
def test_weights_are_averaged_in_the_mirror_space(estimator, run):
    start, parts, shares = run
    first = [getattr(m._learner, "learners", [m._learner])[0].geometry for m in (start._merged(parts, shares), *parts)]
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
    mixed = start._merged([part, copy.copy(part)], [0.5, 0.5])
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
    assert 0 <= start._merged(parts, [0.5, 0.5]).coef_[0] <= 1
    monkeypatch.setattr(type(start), "_dual", lambda self, geometry: np.array([np.nan]))
    with pytest.raises(ValueError, match="mixed weights of parallel runs are not finite"):
        start._merged(parts, [0.5, 0.5])


def test_the_rates_of_a_mixture_span_those_of_its_shards():
    """The next round must not start with a larger rate than any of them ended with."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    start = MirrorDescentRegressor(divergence="squared_euclidean", learning_rate="invscaling", track_regret=True)
    start.partial_fit(X[:2], y[:2])
    parts = [copy.deepcopy(start).partial_fit(X[i:j], y[i:j]) for i, j in ((2, 6), (6, 30))]
    (first, early, _), (_, late, rose) = (part._learner.tracked_rates for part in parts)
    assert first > early > late and not rose
    assert start._merged(parts, [0.2, 0.8])._learner.tracked_rates == (first, late, False)


@pytest.mark.parametrize("divergence, sums", [("adagrad", 1), ("normalized_adagrad", 4)])
def test_sums_of_adaptive_geometries_are_those_of_all_rows(divergence, sums):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    start = MirrorDescentRegressor(divergence=divergence).partial_fit(X[:2], y[:2])
    parts = [copy.deepcopy(start).partial_fit(X[i:j], y[i:j]) for i, j in ((2, 6), (6, 30))]
    first, one, other, mixed = (
        each._learner.geometry.get_state() for each in (start, *parts, start._merged(parts, [0.2, 0.8]))
    )
    names = ("intercept_sum", "rows", "norms", "counted")[:sums]
    for name in names:
        assert one[name] > first[name]
    for name in start._learner.geometry.row_sums:
        assert mixed[name] == pytest.approx(one[name] + other[name] - first[name])
    assert set(names) == set(start._learner.geometry.row_sums) - {"of_class"}  # a sum of targets may fall


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
        mixed = start._merged([learn(copy.deepcopy(start), rows) for rows in shards], [0.5, 0.5])
        one = learn(start, np.concatenate(shards))
        assert mixed._learner.all_weight_one == one._learner.all_weight_one
        assert mixed._learner.largest_weight == one._learner.largest_weight
        if learn is metric or type(one) is MEGKernelLearner:
            assert mixed.n_collapsed_ == one.n_collapsed_ >= 3
