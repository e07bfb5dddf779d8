"""Every geometry x loss x step against plain NumPy written from the formulas."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from replica import GEOMETRIES, LOSSES, POSITIVE, Replica, agree, learn, model_of, start_of, stream
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sparse_rows import LAYOUTS

from onlinebregman import ParameterFreeClassifier
from onlinebregman.divergences import SimplexEntropy
from onlinebregman.losses import (
    AbsoluteLoss,
    BoundLoss,
    EpsilonInsensitiveLoss,
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    ModifiedHuberLoss,
    PoissonLoss,
    QuantileLoss,
    SquaredEpsilonInsensitiveLoss,
    SquaredHingeLoss,
    SquaredLoss,
    TweedieLoss,
)

# --- steps equal their replica ----------------------------------------------------------------------------------------


POWERS = {"constant": 0.0, "sqrt": 0.5, "strongly_convex": 1.0, "invscaling": 0.3}


@pytest.mark.parametrize("loss", LOSSES)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 20),
    rate=st.floats(-2.0, 1.0),
    learning_rate=st.sampled_from(list(POWERS)),
    update=st.sampled_from(["explicit", "implicit"]),
    fit_intercept=st.booleans(),
    average=st.sampled_from([False, True, 3]),
    weighted=st.booleans(),
    layout=st.sampled_from(list(LAYOUTS)),
    total=st.sampled_from([1.0, 0.3, 12.0]),
)
def test_a_few_steps_equal_the_replica(
    loss, seed, n, rate, learning_rate, update, fit_intercept, average, weighted, layout, total
):
    for divergence, signed in GEOMETRIES:
        rng = np.random.default_rng(seed)
        # a row of one feature brings its weight to 0, where theta = f(w) of the p-norm has lost half its digits
        layout = "dense" if loss == "perceptron" else layout
        X, y = stream(loss, rng, 6, n, density=0.6 if "csr" in layout else 1.0)
        X = X.astype(np.float32).astype(np.float64)  # exact in both kinds of floats
        start, made = start_of(divergence, rng, n, signed), divergence
        if divergence == "simplex_entropy" and not signed:
            start, made = total * start, SimplexEntropy(total)
        # explicit steps stay in the domain
        eta0 = 10**rate * (1.0 if update == "implicit" else 0.01 / (n * max(total, 1.0)))
        weights = rng.choice([0.0, 0.5, 1.0, 2.0], size=6) if weighted else None
        steps = {"update": update, "eta0": eta0, "signed": signed, "fit_intercept": fit_intercept, "average": average}
        model = model_of(made, loss, learning_rate=learning_rate, power_t=0.3, init=start, **steps)
        learn(model, LAYOUTS[layout](X), y, weights)
        replica = Replica(divergence, loss, w=start, power=POWERS[learning_rate], **steps)
        for i in range(6):
            replica.learn(X[i], y[i], 1.0 if weights is None else weights[i])
        lowest = replica.theta.min() - replica.theta.max() if divergence.endswith("entropy") else 0.0
        if lowest > -600:  # below, the weights stay at the smallest float
            agree(model, replica, 1e-12 * max(1.0, -lowest / 10), signs=signed or divergence not in POSITIVE)


# --- compiled losses are those of onlinebregman.losses ----------------------------------------------------------------

DEFINITIONS = [
    SquaredLoss(),
    LogisticLoss(),
    PoissonLoss(),
    TweedieLoss(1.2),
    TweedieLoss(2.0),
    AbsoluteLoss(),
    EpsilonInsensitiveLoss(0.4),
    SquaredEpsilonInsensitiveLoss(0.4),
    QuantileLoss(0.8),
    HuberLoss(0.7),
    BoundLoss(),
    SquaredHingeLoss(),
    ModifiedHuberLoss(),
    HingeLoss(),
    HingeLoss(margin=0.0),
    HingeLoss(margin=2.5),
]


def euclidean(loss, score, rate=1.0, **parameters):
    """A model of one weight, which is the score of the row [1]."""
    parameters = {"loss": loss, "eta0": rate, "learning_rate": "constant", "init": [score]} | parameters
    return MirrorDescentRegressor(divergence="squared_euclidean", **parameters)


def seen(loss, a, y):
    """Value, derivative and link at a score, computed from an explicit step of rate 1 on one row."""
    model = euclidean(loss, a, update="explicit")
    link = model.partial_fit([[1.0]], [y], sample_weight=[0.0]).predict([[1.0]])[0]
    model.partial_fit([[1.0]], [y])
    return model.cumulative_loss_, -model.intercept_, link


@pytest.mark.parametrize("loss", DEFINITIONS, ids=repr)
@settings(max_examples=25)
@given(data=st.data())
def test_compiled_losses_equal_their_definition(loss, data):
    targets = {
        LogisticLoss: st.sampled_from([0.0, 1.0, 0.25, 1e-9]),
        PoissonLoss: st.sampled_from([0.0, 1e-300, 0.5, 3.0, 1e6]),
        TweedieLoss: st.sampled_from([1e-300, 0.5, 3.0, 1e6]),
    }
    targets.update({kind: st.sampled_from([-1.0, 1.0]) for kind in (HingeLoss, SquaredHingeLoss, ModifiedHuberLoss)})
    y = data.draw(targets.get(type(loss), st.floats(-50, 50)))
    places = [0.0, *np.ravel(loss.kinks(y)), y, y + 0.7, y - 0.7]
    a = float(data.draw(st.one_of(st.floats(-40, 40), st.sampled_from(places).filter(lambda a: abs(a) < 100))))
    value, derivative, link = seen(loss, a, y)
    terms = float(loss.link(a)) + abs(y * a) + abs(y) if isinstance(loss, PoissonLoss) else 0.0  # terms that cancel
    assert_allclose(value, loss.value(a, y), rtol=1e-14, atol=1e-15 * (1 + terms))
    assert_allclose(derivative, loss.derivative(a, y), rtol=1e-14, atol=1e-15 * abs(y))
    assert_allclose(link, loss.link(a), rtol=1e-14)


# --- steps that are hard to find --------------------------------------------------------------------------------------


@pytest.mark.parametrize("update", ["implicit", "importance"])
@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_from_its_kink_the_exact_step_does_not_move(update, label):
    """The Perceptron at w = 0: 0 is a subgradient there for both labels, although the score is a mistake."""
    model = MirrorDescentClassifier(divergence="squared_euclidean", loss="perceptron", update=update)
    learn(model, [[1.0, 2.0]], [label])
    assert_array_equal(model.coef_, [[0.0, 0.0]])
    assert model.cumulative_loss_ == 0.0


@pytest.mark.parametrize("score", [30.0, 150.0, 500.0, 700.0])
@pytest.mark.parametrize("y", [0.0, 3.0])
def test_an_implicit_step_from_far_up_an_exponential(score, y):
    """The explicit step, an end of the bracket, is up to 10^304 times as long."""
    a = euclidean("poisson", score, fit_intercept=False).partial_fit([[1.0]], [y]).coef_[0]
    assert_allclose(score - a, np.exp(a) - y, rtol=1e-13 * score)


@pytest.mark.parametrize("update", ["explicit", "implicit", "importance"])
@pytest.mark.parametrize("score", [5.0, 20.0, 35.0])
@pytest.mark.parametrize("rate", [1e-3, 1.0, 1e12])
def test_both_labels_are_alike_far_out(update, score, rate):
    """h(a) - y is accurate where h(a) is close to y, in both tails."""

    def step(y):
        model = euclidean("log_loss", score if y else -score, rate, update=update)
        return -model.partial_fit([[1.0]], [y]).intercept_

    assert_allclose(-step(1.0), step(0.0), rtol=1e-13)
    assert step(0.0) > 0
    if update != "explicit" and rate * np.exp(-score) < 1e-12:
        assert_allclose(step(0.0), rate * expit(-score), rtol=1e-11)


@pytest.mark.parametrize("y", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("score", [-800.0, -40.0, -3.0, 0.0, 0.1, 25.0])
@pytest.mark.parametrize("rate", [1e-300, 1e-3, 1.0, 50.0, 1e8, 1e200])
def test_implicit_steps_on_the_log_loss_are_exact(y, score, rate):
    """c = rate (h(score - c) - y): both sides are compared."""
    a = euclidean("log_loss", score, rate, fit_intercept=False).partial_fit([[1.0]], [y]).coef_[0]
    if rate < 1e100:
        assert_allclose(
            score - a, rate * (expit(a) - y), rtol=1e-11, atol=1e-13 * max(abs(score), 1.0) * max(rate, 1.0)
        )
    elif 0 < y < 1:
        assert_allclose(expit(a), y, rtol=1e-12)
    else:
        assert (a > 400) if y else (a < -400)


def test_members_that_learn_in_lockstep_have_the_numbers_of_each_alone():
    """Equations solved together in registers; rates so large that some of them need the slower solver."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 7)) * (rng.uniform(size=(200, 7)) < 0.6)
    y = (X @ rng.normal(size=7) + rng.normal(size=200) > 0).astype(int)
    weights = rng.choice([0.0, 0.5, 2.0], size=200)
    members = [
        MirrorDescentClassifier(divergence=divergence, eta0=eta, learning_rate="constant")
        for divergence in ("squared_euclidean", "normalized_adagrad", "adagrad", "diagonal_newton")
        for eta in (1e-3, 0.1, 1.0, 30.0, 1e6, 1e250)
        if not (divergence == "squared_euclidean" and eta == 1e250)
    ]
    for rows in (X, sparse.csr_array(X)):
        model = ParameterFreeClassifier(members=members).partial_fit(rows, y, [0, 1], weights)
        for found, member in zip(model.estimators_, members, strict=True):
            alone = clone(member).partial_fit(rows, y, [0, 1], weights)
            assert_array_equal(found.coef_, alone.coef_)
            assert_array_equal(found.intercept_, alone.intercept_)
            assert found.cumulative_loss_ == alone.cumulative_loss_
