"""Scale-invariant learning without a rate: the kernel against a plain implementation, and the theorem."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from raw import ScaleInvariantClassifier, ScaleInvariantRegressor
from replica import MARGIN_LOSSES, learn, stream
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from onlinebregman.losses import LOSSES as OBJECTS
from onlinebregman.losses import EpsilonInsensitiveLoss
from onlinebregman.reference import LOSSES, ScaleInvariant

BOUNDED = [name for name, loss in OBJECTS.items() if loss.lipschitz < np.inf and name != "perceptron"]


class Replica(ScaleInvariant):
    """The formulas of the paper, with a last coordinate of value 1 for the intercept, and the losses."""

    def __init__(self, loss, n, fit_intercept=True):
        super().__init__(n + 1, LOSSES[loss], OBJECTS[loss].lipschitz, OBJECTS[loss].degree > 0)
        self.fit_intercept, self.total = float(fit_intercept), 0.0

    def learn(self, x, y, weight=1.0):
        x = np.r_[x, self.fit_intercept]
        self.total += weight * float(self.loss.value(self.predict(x), y))
        super().learn(x, y, weight)


def model_of(loss, **parameters):
    kind = ScaleInvariantClassifier if loss in MARGIN_LOSSES else ScaleInvariantRegressor
    return kind(loss=loss, **parameters)


def growing_stream(loss, rng, rows=80, n=5):
    """Rows whose sizes grow, some values 0."""
    X, y = stream(loss, rng, rows, n, density=0.7)
    return X * np.exp(rng.normal(size=n)) * np.exp(np.linspace(0, 2, rows))[:, np.newaxis], y


@pytest.mark.parametrize("loss", BOUNDED)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("layout", [np.array, sparse.csr_array])
def test_the_kernel_gives_the_numbers_of_the_formulas(loss, fit_intercept, layout):
    rng = np.random.default_rng(len(loss))
    X, y = growing_stream(loss, rng)
    weights = rng.choice([0.5, 1.0, 3.0], size=len(y))
    model, replica = model_of(loss, fit_intercept=fit_intercept), Replica(loss, 5, fit_intercept)
    for start, end in ((0, 1), (1, 2), (2, 30), (30, 80)):
        learn(model, layout(X[start:end]), y[start:end], weights[start:end])
    for row in zip(X, y, weights, strict=True):
        replica.learn(*row)
    w = replica.unit * replica.w(replica.M)
    assert_allclose(np.ravel(model.coef_), w[:5], rtol=1e-9, atol=1e-12)
    assert_allclose(model.intercept_, replica.origin + w[5], rtol=1e-9, atol=1e-12)
    assert_allclose(model.cumulative_loss_, replica.total, rtol=1e-9)
    x = 10 * X[-1:] if loss in (*MARGIN_LOSSES, "log_loss") else X[:3]
    scores = model.decision_function(layout(x)) if loss in MARGIN_LOSSES else model.predict(layout(x))
    rows = np.c_[x, np.full(len(x), float(fit_intercept))]
    expected = np.array([replica.predict(row) for row in rows])
    assert_allclose(scores, OBJECTS[loss].link(expected) if loss == "log_loss" else expected, rtol=1e-9)


@pytest.mark.parametrize("layout", [np.array, sparse.csr_array])
def test_a_column_of_zeros_keeps_its_wealth_and_bets_it_later(layout):
    rng = np.random.default_rng(3)
    X, y = growing_stream("absolute_error", rng)
    u = rng.normal(size=5)
    model = learn(model_of("absolute_error"), layout(X), y)
    wide = learn(model_of("absolute_error"), layout(np.c_[X, np.zeros(len(X))]), y)
    for bound in ("regret_bound", "worst_case_bound"):
        assert_allclose(getattr(wide, bound)(np.r_[u, 0.0]), getattr(model, bound)(u), rtol=1e-12)
    late = np.c_[X, np.where(np.arange(len(X)) < 40, 0.0, rng.normal(size=len(X)))]
    replica = Replica("absolute_error", 6)
    model = learn(model_of("absolute_error"), layout(late[:40]), y[:40])
    learn(model, layout(late[40:]), y[40:])
    for row in zip(late, y, strict=True):
        replica.learn(*row)
    assert_allclose(model.coef_, (replica.unit * replica.w(replica.M))[:6], rtol=1e-9)


@pytest.mark.parametrize("first", [9.9, -9.9, 10.1, 0.0])
def test_an_intercept_that_the_first_target_does_not_move_starts_at_0(first):
    X, y = np.zeros((300, 1)), np.r_[first, np.full(299, 30.0)]
    loss = EpsilonInsensitiveLoss(10.0)
    model = ScaleInvariantRegressor(loss=loss).partial_fit(X[:1], y[:1])
    assert_allclose(model.intercept_, first if abs(first) > 10 else 0.0, rtol=1e-15)
    model.partial_fit(X[1:], y[1:])
    for b in (0.0, 20.0, 30.0, -20.0):
        regret = model.cumulative_loss_ - loss.value(np.full(300, b), y).sum()
        assert regret <= model.regret_bound([0.0], b) <= model.worst_case_bound([0.0], b)


def test_a_first_target_whose_slope_underflows():
    model = ScaleInvariantRegressor(loss="huber").partial_fit(
        [[1.0], [1.0]], [1e-200, 1.0], sample_weight=[1e-150, 1.0]
    )
    assert model.t_ == 2


def test_bounds_that_are_none_are_refused():
    X, y = [[1.0], [2.0]], [1.0, 2.0]
    for model, match in (
        (ScaleInvariantRegressor().partial_fit(X, y, sample_weight=[1.0, 2.0]), "weights of at most 1"),
        (ScaleInvariantRegressor(average=True).partial_fit(X, y), "average"),
    ):
        with pytest.raises(ValueError, match=match):
            model.worst_case_bound([1.0])
    model = ScaleInvariantRegressor(fit_intercept=False).partial_fit(X, y)
    with pytest.raises(ValueError, match="intercept 0"):
        model.regret_bound([1.0], 1.0)
    classes = ScaleInvariantClassifier().partial_fit([[1.0], [2.0], [3.0]], [0, 1, 2], classes=[0, 1, 2])
    assert classes.worst_case_bound([1.0]).shape == classes.regret_bound([1.0]).shape == (3,)
    for name in ("weighted_loss_", "theory_bound_", "divergence_"):
        assert not hasattr(model, name)


def test_losses_of_unbounded_slope_are_refused():
    with pytest.raises(ValueError, match="must have a bounded slope; got SquaredLoss"):
        ScaleInvariantRegressor(loss="squared_error").partial_fit([[1.0]], [1.0])
    with pytest.raises(ValueError, match="'log_loss' or 'hinge'"):
        ScaleInvariantClassifier(loss="squared_hinge").partial_fit([[1.0], [2.0]], [0, 1], classes=[0, 1])


def test_weights_near_the_smallest_number_are_named():
    with pytest.raises(ValueError, match=r"not finite.*, or scale the sample weights"):
        ScaleInvariantRegressor().partial_fit([[1.0], [2.0], [-1.0]], [1.0, 5.0, 2.0], sample_weight=5e-324)


def test_rows_of_weight_above_one_count_no_more_than_what_was_seen():
    rows = [[1.0], [-1.0]], [0, 1], [0, 1]
    once = ScaleInvariantClassifier().partial_fit(*rows, sample_weight=[1.0, 1.0])
    heavy = ScaleInvariantClassifier().partial_fit(*rows, sample_weight=[1.0, 50.0])
    assert abs(heavy.coef_[0, 0]) <= 2 * abs(once.coef_[0, 0])


def test_class_weights_have_no_unit_and_rare_classes_of_large_weight_are_learned_in_one_pass():
    """Weights of 20 and 1 are those of 1 and 1/20: at most a fifth above the share of the optimum, where half was."""
    rng = np.random.default_rng(0)
    y = (rng.uniform(size=3000) < 0.05).astype(int)
    X = rng.normal(size=(3000, 5))
    X[:, :2] += 2 * y[:, np.newaxis]
    weights = {0: 1.0, 1: 20.0}
    optimum = LogisticRegression(class_weight=weights).fit(X, y).predict(X).mean()
    one = ScaleInvariantClassifier(class_weight=weights).partial_fit(X, y, classes=[0, 1])
    assert one.predict(X).mean() < 1.2 * optimum
    same = ScaleInvariantClassifier(class_weight={0: 1 / 20, 1: 1.0}).partial_fit(X, y, classes=[0, 1])
    assert_allclose(one.coef_, same.coef_, rtol=1e-9)
    fitted = ScaleInvariantClassifier(class_weight="balanced", random_state=0).fit(X, y)
    assert fitted.predict(X).mean() < 1.4 * optimum
