"""MirrorDescentClassifier(multi_class="multinomial"): one loss of all scores, in every divergence."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentClassifier
from replica import Cosh, own
from scipy import sparse
from scipy.special import log_softmax, softmax
from softmax_replica import some_rows

from onlinebregman.constraints import L2Ball
from onlinebregman.divergences import SquaredEuclidean

seeds = st.integers(0, 2**32 - 1)
PLAIN = ("squared_euclidean", "relative_entropy", "simplex_entropy", "burg", "binary_entropy", "p_norm")
ADAPTIVE = ("adagrad", "normalized_adagrad", "diagonal_newton")


PlainEuclidean = own(SquaredEuclidean)
OWN = (Cosh(), PlainEuclidean())


def make(divergence, **parameters):
    parameters = {"eta0": 0.5, "learning_rate": "constant"} | parameters
    if isinstance(divergence, str) and divergence in ("relative_entropy", "simplex_entropy", "burg", "binary_entropy"):
        parameters = {"signed": True} | parameters
    return MirrorDescentClassifier(divergence=divergence, multi_class="multinomial", **parameters)


def positions(model):
    return [part.position for part in model._learner.learners]


def one_hot(y, k):
    return (np.arange(k) == y).astype(float)


# --- the steps --------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    seed=seeds,
    divergence=st.sampled_from([*PLAIN, *OWN]),
    k=st.sampled_from([3, 4, 9, 17]),
    update=st.sampled_from(["implicit", "explicit"]),
    eta0=st.sampled_from([0.01, 0.3, 20.0]),
    scale=st.sampled_from([0.1, 1.0, 10.0]),
    fit_intercept=st.booleans(),
    weight=st.sampled_from([1.0, 0.3, 4.0]),
)
def test_steps_are_those_of_the_formulas(seed, divergence, k, update, eta0, scale, fit_intercept, weight):
    """f(w_c') = f(w_c) - eta (p_c - y_c) x for all classes, p at the old weights or at the new ones."""
    X, y = some_rows(12, 5, k, seed)
    X *= scale
    if update == "explicit":
        eta0 = 1e-3 / scale if divergence == "burg" else min(eta0, 0.3) / max(scale, 1.0) ** 2
    model = make(divergence, update=update, eta0=eta0, fit_intercept=fit_intercept)
    model.partial_fit(X[:8], y[:8], classes=range(k))
    for x, label in zip(X[8:], y[8:], strict=True):
        before, loss = positions(model), model.cumulative_loss_
        scores = model.decision_function(x[None])[0]
        model.partial_fit(x[None], [label], sample_weight=[weight])
        after = positions(model)
        assert model.cumulative_loss_ - loss == pytest.approx(-weight * log_softmax(scores)[label], rel=1e-9, abs=1e-12)
        z = model.decision_function(x[None])[0] if update == "implicit" else scores
        steps = weight * eta0 * (softmax(z) - one_hot(label, k))
        values = np.r_[x, -x] if model.signed else x
        for (w, b), (new, new_b), c in zip(before, after, steps, strict=True):
            assert new_b - b == pytest.approx(-c * fit_intercept, rel=1e-6, abs=1e-9 * (1 + abs(b)))
            moved = model.divergence_.mirror(new) - model.divergence_.mirror(w) + c * values
            if divergence == "simplex_entropy":
                moved -= moved.mean()
            size = np.abs(model.divergence_.mirror(new)).max() + np.abs(c * values).max()
            assert_allclose(moved, 0.0, atol=1e-8 * (1 + size))


@settings(max_examples=40, deadline=None)
@given(
    seed=seeds,
    divergence=st.sampled_from(ADAPTIVE),
    k=st.sampled_from([3, 7, 16]),
    eta0=st.sampled_from([0.1, 1.0, 30.0]),
)
def test_implicit_steps_of_divergences_that_adapt_solve_their_equation(seed, divergence, k, eta0):
    """h (w_c' - w_c) = -rate (p_c - y_c) x at the new weights, with one rate for all."""
    X, y = some_rows(12, 5, k, seed)
    # no value larger than before: no weights are rescaled
    X[9:] = np.clip(X[9:], X[:9].min(axis=0), X[:9].max(axis=0)) * 0.99
    model = make(divergence, eta0=eta0, fit_intercept=False).partial_fit(X[:9], y[:9], classes=range(k))
    for x, label in zip(X[9:], y[9:], strict=True):
        before = model.coef_
        model.partial_fit(x[None], [label])
        slopes = softmax(model.decision_function(x[None])[0]) - one_hot(label, k)
        steps = ((model.coef_ - before) * model.metric_ / -x).mean(axis=1)
        assert_allclose((before - model.coef_) * model.metric_, np.outer(steps, x), atol=1e-9 * np.abs(steps).max())
        rate = steps[label] / slopes[label]
        assert rate > 0
        assert_allclose(steps, rate * slopes, atol=1e-7 * np.abs(steps).max() + 1e-11 * rate)


@pytest.mark.parametrize("k", [3, 10])
def test_the_compiled_path_and_the_numpy_path_are_one(k):
    X, y = some_rows(80, 4, k)
    for update in ("implicit", "explicit"):
        models = (make(F, update=update, eta0=3.0) for F in ("squared_euclidean", PlainEuclidean()))
        compiled, slow = (model.partial_fit(X, y, classes=range(k)) for model in models)
        assert_allclose(slow.coef_, compiled.coef_, rtol=1e-8)
        assert slow.cumulative_loss_ == pytest.approx(compiled.cumulative_loss_, rel=1e-8)


@pytest.mark.parametrize("divergence", [*PLAIN, *ADAPTIVE])
@pytest.mark.parametrize("size", [1e-6, 1e3, 1e6])
def test_hard_rows_and_rates(divergence, size):
    """The implicit step exists for every rate: scores end between those before and those without a loss."""
    X, y = some_rows(300, 6, 4)
    X[::7] *= 30.0
    model = make(divergence, eta0=size)
    model.partial_fit(X, y, classes=range(4))
    assert np.isfinite(model.coef_).all() and np.isfinite(model.cumulative_loss_)
    for row in range(20):
        before = log_softmax(model.decision_function(X[row : row + 1])[0])[y[row]]
        model.partial_fit(X[row : row + 1], y[row : row + 1])
        assert log_softmax(model.decision_function(X[row : row + 1])[0])[y[row]] >= before - 1e-9 * (1 + abs(before))


def test_penalties_constraints_and_averages():
    X, y = some_rows(50, 5, 3)
    model = make("squared_euclidean", update="explicit", penalty="l1", alpha=0.05, average=True)
    model.partial_fit(X, y, classes=range(3))
    W, b, total = np.zeros((3, 5)), np.zeros(3), np.zeros((3, 6))
    loss = 0.0
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        if t:
            loss -= log_softmax((total / t) @ np.r_[x, 1.0])[label]
        else:
            loss += np.log(3.0)
        g = 0.5 * (softmax(W @ x + b) - one_hot(label, 3))
        W, b = W - np.outer(g, x), b - g
        W = np.sign(W) * np.maximum(np.abs(W) - 0.5 * 0.05, 0.0)
        total += np.c_[W, b]
    assert_allclose(np.c_[model.coef_, model.intercept_], total / 50, rtol=1e-10, atol=1e-13)
    assert model.cumulative_loss_ == pytest.approx(loss, rel=1e-10)
    ball = make("squared_euclidean", constraint=L2Ball(0.5)).partial_fit(X, y, classes=range(3))
    assert_allclose(np.linalg.norm(ball.coef_, axis=1), 0.5, rtol=1e-9)


# --- as other losses --------------------------------------------------------------------------------------------------


def test_two_classes_are_the_logistic_loss(state):
    X, y = some_rows(50, 3, 2)
    one, other = (MirrorDescentClassifier(multi_class=how).partial_fit(X, y, [0, 1]) for how in ("ovr", "multinomial"))
    assert_array_equal(one.coef_, other.coef_)
    assert_array_equal(one.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize("first", [3, 2])
def test_the_metric_is_that_of_each_class_on_sparse_rows_too(first):
    """Which compute it once for all classes, unless it is another one, as of a class that appears later."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 5)) * (rng.random((90, 5)) < 0.6) * np.geomspace(1, 10, 90)[:, np.newaxis]
    y = rng.integers(3, size=90)
    y[:45] %= first
    models = []
    for rows in (X, sparse.csr_array(X)):
        model = MirrorDescentClassifier(divergence="diagonal_newton", multi_class="multinomial", handle_unknown="add")
        model.partial_fit(rows[:45], y[:45], classes=range(first))
        models.append(model.partial_fit(rows[45:], y[45:]))
    assert_allclose(models[1].coef_, models[0].coef_, rtol=1e-10)
    metrics = [np.array([learner.geometry.metric for learner in model._learner.learners]) for model in models]
    assert_allclose(metrics[1], metrics[0], rtol=1e-13)
    assert np.array_equal(metrics[1][0], metrics[1][2]) == (first == 3)


# --- what is refused --------------------------------------------------------------------------------------------------


def test_what_makes_no_sense_is_refused_with_a_reason(unchanged):
    X, y = some_rows(30, 4, 3)
    for wrong, said in [
        ({"loss": "hinge"}, r"'multinomial' requires loss='log_loss'.*HingeLoss.*Use multi_class='ovr'"),
        ({"update": "importance"}, "no update='importance', which is for losses of one score; use update='implicit'"),
        (
            {"learning_rate": "theory", "data_bounds": {"x": 9.0, "u": 1.0, "n_rows": 100}},
            "no learning_rate='theory', which is for losses of one score",
        ),
        ({"multi_class": "auto"}, "'multi_class' parameter of MirrorDescentClassifier must be"),
    ]:
        with unchanged(model := make("squared_euclidean").set_params(**wrong), said):
            model.partial_fit(X, y, classes=range(3))
    model = make("squared_euclidean").partial_fit(X, y, classes=range(3))
    with unchanged(model.set_params(update="importance"), "no update='importance'"):
        model.partial_fit(X, y)
