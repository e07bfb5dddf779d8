"""Learning rates: the shared power law, its named cases, and what estimators resolve."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from raw import MirrorDescentRegressor
from scipy import sparse
from sklearn.base import clone

from onlinebregman import (
    BurgRegressor,
    ImplicitGDRegressor,
    MEGKernelLearner,
    ParameterFreeRegressor,
    reference,
)
from onlinebregman.schedules import (
    LEARNING_RATES,
    Constant,
    DiameterOverGradient,
    InverseScaling,
    LossSchedule,
    Schedule,
    StronglyConvex,
    resolve_schedule,
)

laws = settings(max_examples=60, deadline=None)
positive = st.floats(1e-6, 1e6)
CASES = [
    (Constant(0.3), lambda t: 0.3 + 0 * t),
    (InverseScaling(0.7), lambda t: 0.7 / np.sqrt(t)),
    (InverseScaling(0.7, power_t=0.25), lambda t: 0.7 / t**0.25),
    (StronglyConvex(strong_convexity=4.0), lambda t: 1 / (4.0 * t)),
    (DiameterOverGradient(diameter=3.0, gradient_bound=5.0), lambda t: 3.0 / (5.0 * np.sqrt(t))),
    (Schedule(2.0, 1.5), lambda t: 2.0 / t**1.5),
]
every = pytest.mark.parametrize(("schedule", "formula"), CASES, ids=[repr(case[0]) for case in CASES])


@every
def test_formulas(schedule, formula):
    t = np.arange(1, 50).reshape(7, 7)
    assert_allclose(schedule(t), formula(t), rtol=1e-14)
    assert_allclose(schedule(t), schedule.scale / t.astype(float) ** schedule.power, rtol=1e-14)
    assert schedule(t).shape == t.shape
    assert isinstance(schedule(9), float) and schedule(9) == pytest.approx(formula(9), rel=1e-14)
    assert schedule(1) == schedule.scale


@every
def test_rows_count_from_one(schedule, formula):
    for t in (0, -1, np.nan, [1, 0]):
        with pytest.raises(ValueError, match="t must be a row number >= 1"):
            schedule(t)


@pytest.mark.parametrize("bad", [0, -0.1, np.nan, np.inf, np.float32(np.inf), 10**400, "0.1", None, True])
def test_bad_parameters(bad):
    for make, name in [
        (Constant, "eta0"),
        (InverseScaling, "eta0"),
        (StronglyConvex, "strong_convexity"),
        (lambda v: DiameterOverGradient(v, 1.0), "diameter"),
        (lambda v: DiameterOverGradient(1.0, v), "gradient_bound"),
        (Schedule, "scale"),
    ]:
        with pytest.raises(ValueError, match=f"{name} must be a positive finite number; got"):
            make(bad)


@pytest.mark.parametrize("bad", [-0.5, np.nan, np.inf, 10**400, "0.5", None])
def test_bad_powers(bad):
    with pytest.raises(ValueError, match="power_t must be a finite number >= 0; got"):
        InverseScaling(0.1, bad)


@laws
@given(positive, st.floats(0, 2))
def test_resolve_names(eta0, power_t):
    powers = {"constant": 0.0, "invscaling": power_t, "strongly_convex": 1.0, "sqrt": 0.5}
    assert set(powers) == set(LEARNING_RATES)
    for name, power in powers.items():
        schedule = resolve_schedule(name, eta0, power_t)
        assert (schedule.scale, schedule.power) == (eta0, power)
    # the named rates are those of the theorems
    assert_allclose(resolve_schedule("strongly_convex", eta0)(7), StronglyConvex(1 / eta0)(7), rtol=1e-14)
    assert_allclose(resolve_schedule("sqrt", eta0)(7), DiameterOverGradient(eta0, 1.0)(7), rtol=1e-14)


def test_resolve_objects_as_they_are():
    schedule = StronglyConvex(2.0)
    assert resolve_schedule(schedule, eta0=-1.0, power_t=None) is schedule


@pytest.mark.parametrize("bad", ["optimal", "", None, 0.1, ["constant"]])
def test_resolve_refuses_unknown_names(bad):
    with pytest.raises(ValueError, match="'constant', 'invscaling', 'strongly_convex', 'sqrt', or a Schedule"):
        resolve_schedule(bad, 0.1, 0.5)


# --- rates of the user's own ------------------------------------------------------------------------------------------


WITH_VARIANTS = False


class Power(Schedule):
    """The rates of InverseScaling, by its own `__call__`; without the constructor of the base class."""

    def __init__(self, eta0, power_t):
        self.eta0 = eta0
        self.power_t = power_t

    def __call__(self, t):
        return self.eta0 / t**self.power_t


class Table(Schedule):
    """Given rates, and the last of them from then on; the numbers of the base class's constructor do not count."""

    def __init__(self, *values):
        super().__init__(1e9, 3.0)
        self.values = values

    def __call__(self, t):
        return np.array(self.values)[np.minimum(np.asarray(t, dtype=int), len(self.values)) - 1]


class PowerUnlessLossIs(LossSchedule):
    """The rates of `Power`, but for rows whose loss is `bad`: they are refused."""

    def __init__(self, eta0, power_t, bad=np.inf):
        self.eta0, self.power_t, self.bad = eta0, power_t, bad

    def rate(self, t, loss):
        if loss >= self.bad:
            raise KeyError("such a loss")
        return self.eta0 / t**self.power_t


class Capped(LossSchedule):
    """eta0, but so much less that no step counts more than that of a row of this loss."""

    def __init__(self, eta0, usual):
        self.eta0, self.usual = eta0, usual

    def rate(self, t, loss):
        return self.eta0 * min(1.0, self.usual / max(loss, 1e-300)) / t**0.25


def takes_schedules(estimator):
    return Schedule in type(estimator)._parameter_constraints.get("learning_rate", [])


@pytest.mark.only(where=takes_schedules)
def test_they_are_called(estimator, rows, learn, output):
    X, y = rows
    estimator.set_params(learning_rate=InverseScaling(0.05, 0.25))
    expected = output(learn(estimator, X, y), X)
    found = output(learn(clone(estimator).set_params(learning_rate=Power(0.05, 0.25)), X, y), X)
    other = output(learn(clone(estimator).set_params(learning_rate=Power(0.1, 0.25)), X, y), X)
    seeing = output(learn(clone(estimator).set_params(learning_rate=PowerUnlessLossIs(0.05, 0.25)), X, y), X)
    for name, values in expected.items():
        assert_allclose(found[name], values, rtol=1e-9, atol=1e-9)
        assert_allclose(seeing[name], values, rtol=1e-9, atol=1e-9)
    assert any(not np.allclose(other[name], values, rtol=1e-6) for name, values in expected.items())


@pytest.mark.only(where=takes_schedules)
@pytest.mark.parametrize("schedule", [Table(0.05, 0.2, 0.1, 0.01, 0.07), Capped(0.1, 0.3)])
def test_cuts_copies_and_zero_weights_change_nothing(estimator, rows, learn, learned, schedule):
    X, y = rows
    estimator.set_params(learning_rate=schedule)
    if type(estimator).__name__.endswith("MetricLearner"):
        pytest.skip("draws its pairs by blocks of rows")
    whole, parts = learn(clone(estimator), X, y), clone(estimator)
    for start, end in [(0, 1), (1, 2), (2, 3), (3, 25), (25, 26), (26, 40)]:
        parts = learn(pickle.loads(pickle.dumps(copy.deepcopy(parts))), X[start:end], y[start:end])
        parts.partial_fit(X[:1], y[:1], sample_weight=[0.0])
    assert learned(parts) == learned(whole)


def test_a_wrong_number_of_rates_or_an_error_of_their_own_is_refused(unchanged):
    class TooMany(Schedule):
        def __init__(self):
            pass

        def __call__(self, t):
            return np.ones(len(t) + 1)

    class Fails(TooMany):
        def __call__(self, t):
            raise KeyError("no such rate")

    X = np.random.default_rng(0).normal(size=(10, 2))
    model = ImplicitGDRegressor().partial_fit(X, X[:, 0])
    for schedule, error, match in [(TooMany(), ValueError, "broadcast"), (Fails(), KeyError, "no such rate")]:
        model.set_params(learning_rate=schedule)
        with unchanged(model, match, error):
            model.partial_fit(X, X[:, 0])


def test_rates_that_one_member_refuses_leave_the_others_unchanged(unchanged):
    """Steps of the penalty that sparse rows have put off are not made by a call of dense rows that is refused."""
    X, y = sparse.random(20, 200, 0.02, format="csr", random_state=0), np.arange(20.0)
    first = MirrorDescentRegressor(divergence="squared_euclidean", penalty="l1", alpha=0.01)
    second = MirrorDescentRegressor(divergence="squared_euclidean", learning_rate=Table(*[0.1] * 25, 0.0))
    model = ParameterFreeRegressor(members=[first, second]).partial_fit(X, y)
    with unchanged(model, "must be positive finite numbers; got 0 for row t = 26"):
        model.partial_fit(X.toarray(), y)


def test_fixed_bounds_are_for_constant_rates():
    X = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]])
    model = MEGKernelLearner(learning_rate=Power(0.5, 0.0)).partial_fit(X, [0.1, 0.3])
    with pytest.raises(ValueError, match="constant rates only"):
        model.loss_bound(np.eye(3) / 3)


def test_values_of_the_rates_and_the_object():
    own = Power(0.5, 0.5)
    assert not own.is_power_law and not Table(1.0).is_power_law and InverseScaling().is_power_law
    assert_allclose(own.rates(3, 4), 0.5 / np.sqrt([3, 4, 5, 6]), rtol=1e-15)
    assert_allclose(own.scaled(4.0)(np.array([4.0])), [1.0], rtol=1e-15)
    assert own == Power(0.5, 0.5) != Power(0.5, 0.4) and repr(own) == "Power(eta0=0.5, power_t=0.5)"


# --- rules that see the loss ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("update", ["implicit", "explicit", "importance"])
def test_rates_may_depend_on_the_loss(update):
    """The steps of squared Euclidean descent at the rates of a replica; the loss is that of weight 1."""
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(60, 3)), rng.uniform(0.5, 2.0, size=60)
    y = X @ [1.0, -1.0, 2.0] + 3.0 * rng.standard_t(2, size=60)
    schedule, squared = Capped(0.2, 0.5), reference.LOSSES["squared_error"]
    replica = reference.MirrorDescent(reference.MIRRORS["squared_euclidean"], squared, np.zeros(3), update, False)
    for t, (x, target, h) in enumerate(zip(X, y, weights, strict=True), 1):
        replica.learn(x, target, h * schedule.rate(t, squared.value(replica.predict(x), target)))
    model = ImplicitGDRegressor(learning_rate=schedule, update=update, fit_intercept=False)
    model.partial_fit(X, y, sample_weight=weights)
    assert_allclose(model.coef_, replica.w, rtol=1e-10)
    assert not np.allclose(
        model.coef_, clone(model).set_params(learning_rate=InverseScaling(0.2, 0.25)).fit(X, y).coef_
    )


@pytest.mark.only(where=takes_schedules)
@pytest.mark.parametrize("bad", [0.0, -0.1, np.nan, np.inf])
def test_rates_that_are_not_positive_are_refused(estimator, rows, learn, unchanged, bad):
    """Also after steps that were made; an error of the rule itself is passed on."""
    X, y = rows
    learn(estimator, X[:20], y[:20])

    class Bad(LossSchedule):
        def rate(self, t, loss):
            return 0.01 if t < first else bad

    first = getattr(estimator, "t_", 20) + 10
    row = r"\d+" if type(estimator).__name__.endswith("MetricLearner") else first
    for schedule in (Table(*[0.01] * (first - 1), bad), Bad()):
        estimator.set_params(learning_rate=schedule)
        message = (
            rf"learning rates of .*{type(schedule).__name__}\(.*\) must be positive finite numbers; got {bad:g} for"
        )
        with unchanged(estimator, f"{message} row t = {row}"):
            learn(estimator, X[20:], y[20:])
    estimator.set_params(learning_rate=PowerUnlessLossIs(0.1, 0.0, bad=0.0))
    with unchanged(estimator, "such a loss", KeyError):
        learn(estimator, X[20:], y[20:])


def test_rules_that_see_the_loss_cap_the_rates_of_the_burg_gradient_too():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(50, 3))
    y = X @ [0.5, 0.2, 0.1]
    low = BurgRegressor(update="gradient", learning_rate=PowerUnlessLossIs(0.01, 0.5)).partial_fit(X, y)
    twin = BurgRegressor(update="gradient", learning_rate=Power(0.01, 0.5)).partial_fit(X, y)
    assert_allclose(low.coef_, twin.coef_, rtol=1e-12)
    assert np.isnan(low.set_params(update="implicit").partial_fit(X[:1], y[:1]).eta_)  # not known before the row
    twin.set_params(update="implicit", learning_rate="constant", eta0=0.5).partial_fit(X[:1], y[:1])
    assert twin.eta_ == 0.5 and len(twin.eta_history_) == 0  # the rates were the schedule's all along
    with pytest.raises(KeyError, match="such a loss"):
        low.set_params(update="gradient", learning_rate=PowerUnlessLossIs(0.01, 0.5, bad=0.0)).partial_fit(X, y)


def test_rules_that_see_the_loss_are_not_functions_of_t():
    rule = Capped(0.5, 0.5)
    assert rule.sees_loss and not rule.is_power_law and not Constant(1.0).sees_loss
    assert rule.scaled(4.0).rate(1.0, 1.0) == 1.0 and repr(rule) == "Capped(eta0=0.5, usual=0.5)"
    assert rule.scaled(4.0) == rule.scaled(4.0) != rule.scaled(2.0)
    with pytest.raises(TypeError, match="depend on the losses of rows"):
        rule(np.arange(3))
    with pytest.raises(NotImplementedError, match="must define rate"):
        LossSchedule().rate(1.0, 1.0)
