"""Learning rates with scikit-learn's names, and what else equals its SGD: penalties, intercepts, a float32 `coef_`."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from scipy import sparse
from sklearn.linear_model import SGDClassifier

from onlinebregman.constraints import Box
from onlinebregman.losses import QuantileLoss
from onlinebregman.penalties import L1, L2, ElasticNet, ExplicitElasticNet, Penalty
from onlinebregman.schedules import Optimal, PassiveAggressive, resolve_schedule

CLASSIFIER = {"divergence": "squared_euclidean", "loss": "hinge", "update": "explicit"}
REGRESSOR = {"divergence": "squared_euclidean", "loss": "epsilon_insensitive", "update": "explicit"}


@pytest.fixture
def stream():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    return X, np.sign(X @ rng.normal(size=5) + rng.normal(size=300))


def by_hand(X, y, loss, rate, fit_intercept, weights):
    """Passive-aggressive steps on a loss (value, slope) of score and target."""
    w, b, lost = np.zeros(X.shape[1]), 0.0, []
    for x, target, h in zip(X, y, weights, strict=True):
        value, slope = loss(w @ x + b, target)
        lost.append(value)
        if value > 0:
            step = h * rate(value, x @ x) * slope
            w, b = w - step * x, b - fit_intercept * step
    return w, b, np.array(lost)


def hinge(a, y):
    return max(1 - a * y, 0.0), -y


def insensitive(a, y):
    return max(abs(a - y) - 0.1, 0.0), np.sign(a - y)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("C", [0.05, 1.0])
@pytest.mark.parametrize("variant", [1, 2])
def test_passive_aggressive_steps(stream, variant, C, fit_intercept):
    X, y = stream
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    schedule = PassiveAggressive(C, variant)
    options = {"learning_rate": f"pa{variant}", "eta0": C, "fit_intercept": fit_intercept, "track_regret": True}
    for kind, loss, classes in (
        (MirrorDescentClassifier(**CLASSIFIER, **options), hinge, {"classes": [-1, 1]}),
        (MirrorDescentRegressor(**REGRESSOR, **options), insensitive, {}),
    ):
        w, b, lost = by_hand(X, y, loss, schedule.rate_of_row, fit_intercept, weights)
        model = kind.partial_fit(X, y, sample_weight=weights, **classes)
        assert_allclose(np.ravel(model.coef_), w, rtol=1e-9)
        assert_allclose(np.ravel(model.intercept_), b, rtol=1e-9, atol=1e-12)
        assert_allclose(model.cumulative_loss_, weights @ lost)
        # any u has its certificate, at these rates
        u = 0.3 * w
        of_u = [loss(a, target)[0] for a, target in zip(X @ u, y, strict=True)]
        rates = np.array([C if a == 0 else schedule.rate_of_row(a, x @ x) for a, x in zip(lost, X, strict=True)])
        certificate = model.regret_bound(u, weighted=True)
        assert np.sum(model.weighted_loss_) - (weights * rates) @ of_u <= certificate + 1e-9


def test_without_an_intercept_they_are_implicit_steps(stream):
    X, y = stream
    options = {"divergence": "squared_euclidean", "fit_intercept": False, "eta0": 0.3}
    for name, loss in (("pa1", "hinge"), ("pa2", "squared_hinge")):
        explicit = MirrorDescentClassifier(loss="hinge", update="explicit", learning_rate=name, **options)
        implicit = MirrorDescentClassifier(loss=loss, learning_rate="constant", **options)
        for model in (explicit, implicit):
            model.partial_fit(X, y, classes=[-1, 1])
        assert_allclose(explicit.coef_, implicit.coef_, rtol=1e-9)


@pytest.mark.parametrize("penalty", [L2(0.1), ElasticNet(0.1, 0.3), ExplicitElasticNet(0.1, 0.0)], ids=repr)
def test_optimal_rates_have_the_strength_of_a_penalty_object(stream, penalty):
    X, y = stream
    at_optimal, given = (
        MirrorDescentRegressor(**REGRESSOR, penalty=penalty, learning_rate=rate).partial_fit(X, y)
        for rate in ("optimal", Optimal(0.1))
    )
    assert_array_equal(at_optimal.coef_, given.coef_)
    if isinstance(penalty, L2):
        named = MirrorDescentRegressor(**REGRESSOR, penalty="l2", alpha=0.1, learning_rate="optimal").partial_fit(X, y)
        assert_array_equal(at_optimal.coef_, named.coef_)


class Cost(Penalty):
    def value(self, w):
        return float(np.abs(w).sum())

    def prox(self, divergence, w, eta):
        return L1(1.0).prox(divergence, w, eta)


def test_schedules():
    assert resolve_schedule("optimal", alpha=0.01) == Optimal(0.01) != Optimal(0.02)
    assert resolve_schedule("pa1", 0.5) == PassiveAggressive(0.5) != resolve_schedule("pa2", 0.5)
    assert not Optimal(0.01).is_power_law
    assert_allclose(Optimal(0.01).scaled(2.0)(3), 2 * Optimal(0.01)(3))
    assert repr(Optimal(0.01)) == "Optimal(alpha=0.01)"
    assert repr(PassiveAggressive(2.0, 2)) == "PassiveAggressive(C=2.0, variant=2)"
    assert_array_equal(Optimal(16.0)([1, 2]), [0.5, 0.5 / 9])
    with pytest.raises(ValueError, match=r"PassiveAggressive\(C=1.0, variant=2\) cannot be multiplied by a factor"):
        PassiveAggressive(variant=2).scaled(2.0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"learning_rate": "pa1", "update": "implicit"}, "requires update='explicit', for which these are the rates"),
        ({"learning_rate": "pa2", "divergence": "burg"}, "requires divergence='squared_euclidean'"),
        ({"learning_rate": "pa1", "divergence": "adagrad"}, "requires divergence='squared_euclidean'"),
        ({"learning_rate": "pa1", "loss": "squared_error"}, "a loss of slope 1 or -1"),
        ({"learning_rate": "pa1", "loss": QuantileLoss(0.9)}, "a loss of slope 1 or -1"),
        ({"learning_rate": PassiveAggressive(), "loss": "huber"}, "a loss of slope 1 or -1"),
        ({"learning_rate": "optimal", "alpha": 0.0}, "alpha must be > 0 since learning_rate is 'optimal'"),
        ({"learning_rate": "optimal", "penalty": L2(0.0)}, "alpha must be > 0 since learning_rate is 'optimal'"),
        ({"learning_rate": "optimal", "penalty": Cost()}, r"a penalty of known strength.*; got Cost\(\)"),
    ],
)
def test_what_they_are_not_for_is_refused(stream, parameters, message):
    X, y = stream
    with pytest.raises(ValueError, match=message):
        MirrorDescentRegressor(**{**REGRESSOR, **parameters}).partial_fit(X, y)
    with pytest.raises(ValueError, match="variant must be 1"):
        PassiveAggressive(variant=3)


def test_bounds_that_need_falling_rates_say_why_there_is_none(stream):
    X, y = stream
    model = MirrorDescentRegressor(**REGRESSOR, learning_rate="pa2", track_regret=True).partial_fit(X, y)
    with pytest.raises(ValueError, match="rates increase during the run; use weighted=True"):
        model.regret_bound(np.zeros(5))
    falling = MirrorDescentRegressor(**REGRESSOR, learning_rate="optimal", track_regret=True, fit_intercept=False)
    falling.partial_fit(X, y)
    losses = sum(insensitive(0.0, target)[0] for target in y)
    assert falling.cumulative_loss_ - losses <= falling.regret_bound(np.zeros(5), largest_divergence=1e4)


def regressor(**parameters):
    return MirrorDescentRegressor(**{"divergence": "squared_euclidean"} | parameters)


def some_rows(rng, rows, n):
    X = rng.normal(size=(rows, n)) * (rng.uniform(size=(rows, n)) < 0.3)
    return X, X @ np.linspace(1.0, 0.5, n) + 0.1 * rng.normal(size=rows)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("average", [False, 20])
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), alpha=st.sampled_from([0.0, 0.1, 2.0, 15.0]), labels=st.sampled_from([2, 3]))
def test_explicit_steps_of_the_penalty_are_scikit_learns(layout, average, seed, alpha, labels):
    """Also where they overshoot (eta alpha > 1), and with its intercept of sparse rows, at 0.01 of the rate."""
    rng = np.random.default_rng(seed)
    X, _ = some_rows(rng, 60, 5)
    y, X = rng.integers(labels, size=60), layout(X)
    fixed = {"loss": "log_loss", "eta0": 0.1, "power_t": 0.5, "learning_rate": "invscaling", "average": average}
    sgd = SGDClassifier(**fixed, penalty="l2", alpha=alpha, shuffle=False)
    scaling = 0.1 if sparse.issparse(X) else 1.0
    ours = MirrorDescentClassifier(
        **fixed,
        divergence="squared_euclidean",
        penalty=ExplicitElasticNet(alpha, 0.0),
        update="explicit",
        intercept_scaling=scaling,
    )
    for model in (sgd, ours):
        cut = 60 if average else 30  # scikit-learn's averages depend on how a stream is split into calls
        model.partial_fit(X[:cut], y[:cut], classes=np.arange(labels))
        if cut < 60:
            model.partial_fit(X[cut:], y[cut:])
    assert_allclose(ours.coef_, sgd.coef_, rtol=1e-9, atol=1e-12)
    assert_allclose(ours.intercept_, sgd.intercept_, rtol=1e-9, atol=1e-12)
    again = pickle.loads(pickle.dumps(ours)).partial_fit(X, y)
    assert_array_equal(again.coef_, ours.partial_fit(X, y).coef_)


@pytest.mark.parametrize("update", ["explicit", "implicit", "importance"])
def test_the_intercept_is_the_weight_of_a_feature(update):
    X, y = some_rows(np.random.default_rng(0), 50, 3)
    ours = regressor(update=update, eta0=0.1, intercept_scaling=0.3).partial_fit(X, y)
    wider = regressor(update=update, eta0=0.1, fit_intercept=False).partial_fit(np.c_[X, np.full(50, 0.3)], y)
    assert_allclose(np.r_[ours.coef_, ours.intercept_ / 0.3], wider.coef_, rtol=1e-12)


def test_what_has_no_certificate_says_so(unchanged):
    X, y = np.eye(3), np.ones(3)
    explicit, rate = (
        ExplicitElasticNet(0.1),
        {"learning_rate": "theory", "data_bounds": {"x": 1.0, "u": 1.0, "n_rows": 9}},
    )
    for parameters, message in (
        ({"penalty": explicit, "track_regret": True}, "has no certificate for track_regret=True; use ElasticNet"),
        ({"penalty": explicit, **rate}, "has no certificate for learning_rate='theory'"),
        ({"intercept_scaling": 0.1, "track_regret": True}, "intercept_scaling must be 1 for track_regret=True"),
        ({"intercept_scaling": 0.1, **rate}, "intercept_scaling must be 1 for learning_rate='theory'"),
        ({"intercept_scaling": 0.1, "divergence": "adagrad"}, "which adapts the rate of the intercept; got 0.1"),
        ({"penalty": explicit, "divergence": "adagrad"}, "has no proximal step of ExplicitElasticNet"),
        ({"penalty": explicit, "divergence": "burg"}, "but only for divergence='squared_euclidean'"),
        ({"penalty": explicit, "constraint": Box(-1.0, 1.0)}, "but only for divergence='squared_euclidean'"),
    ):
        model = regressor(**parameters)
        with unchanged(model, message):
            model.partial_fit(X, y)


def test_rows_of_float32_give_a_coef_of_float32():
    """Learning and predictions use float64; the next start decides again; a weight beyond float32 is not rounded."""
    X, y = some_rows(np.random.default_rng(0), 50, 3)
    narrow = X.astype(np.float32)
    model, wide = (regressor().partial_fit(rows, y) for rows in (narrow, narrow.astype(np.float64)))
    assert model.coef_.dtype == np.float32 and model.sparsify().coef_.dtype == np.float32
    model.densify().partial_fit(X, y)
    assert model.coef_.dtype == np.float32 and wide.partial_fit(narrow, y).coef_.dtype == np.float64
    wide = regressor().partial_fit(narrow.astype(np.float64), y).partial_fit(X, y)
    assert_array_equal(model.coef_, wide.coef_.astype(np.float32))
    assert_array_equal(model.predict(narrow), wide.predict(narrow))
    assert pickle.loads(pickle.dumps(model)).coef_.dtype == np.float32
    assert model.fit(X, y).coef_.dtype == np.float64
    assert regressor(init=1e39).partial_fit(np.zeros((1, 2), np.float32), [0.0]).coef_.tolist() == [1e39, 1e39]
