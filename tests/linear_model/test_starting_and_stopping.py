"""Where `fit` starts and when it stops: given weights, held-out rows, and rates that fall when it would stop."""

import copy
import inspect
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentClassifier, MirrorDescentRegressor, ScaleInvariantRegressor
from scipy.sparse import csr_array, issparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

from onlinebregman import ImplicitGDRegressor, LogDetMetricLearner, OneClassMirrorDescent, PerceptronClassifier
from onlinebregman.schedules import Constant


def starts_anywhere(estimator):
    """Whether learning can start from given weights, and at other than the default ones."""
    parameters = estimator.get_params()
    given = "coef_init" in inspect.signature(estimator.fit).parameters and "init" in parameters
    return given and not parameters.get("standardize") and parameters.get("learning_rate") != "theory"


def stops_early(estimator):
    return "early_stopping" in estimator.get_params()


def one_epoch(estimator, **parameters):
    return clone(estimator).set_params(max_iter=1, tol=None, shuffle=False, **parameters)


@pytest.fixture
def line():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 4))
    return X, X @ [1.0, 2.0, 0.0, -1.0] + 0.1 * rng.normal(size=120)


@pytest.fixture
def labelled(line):
    X, y = line
    return X, np.digitize(y, [-1.0, 1.0])


# --- starting ---------------------------------------------------------------------------------------------------------


@pytest.mark.only(where=lambda e: starts_anywhere(e) and not getattr(e, "thresholds", None))  # they refuse
def test_given_weights_are_those_of_init(estimator, rows, learned):
    X, y = rows
    learning, own = one_epoch(estimator), ("_spec", "_prior")  # classes to come start from `init`
    learned_once = np.atleast_2d(one_epoch(estimator).fit(X, y).coef_)
    n, coef = len(learned_once), learned_once[:1]
    expected = one_epoch(estimator, init=coef[0]).fit(X, y)
    for of_each in [np.tile(coef, (n, 1))] + [coef[0]] * (n == 1):
        given = learning.fit(X, y, coef_init=of_each)
        assert learned(given, without=own) == learned(expected, without=own)
    assert learned(given, without=own) != learned(one_epoch(estimator).fit(X, y), without=own)
    sparse = learning.fit(csr_array(X), y, coef_init=np.tile(coef, (n, 1)))
    assert_allclose(sparse.coef_, expected.coef_, rtol=1e-9, atol=1e-12)


def test_each_class_starts_from_its_weights_and_intercept(labelled):
    X, y = labelled
    coef, intercept = np.arange(12.0).reshape(3, 4), [1.0, 2.0, 3.0]
    for multi_class in ("ovr", "multinomial"):
        model = MirrorDescentClassifier(divergence="squared_euclidean", multi_class=multi_class, eta0=1e-9)
        model = one_epoch(model).fit(X, y, coef_init=coef, intercept_init=intercept)
        assert_allclose(model.coef_, coef, atol=1e-6)
        assert_allclose(model.intercept_, intercept, atol=1e-6)


def test_a_held_intercept_is_that_given(line):
    X, y = line
    model = one_epoch(ImplicitGDRegressor(fit_intercept=False, track_regret=True)).fit(X, y, intercept_init=[2.5])
    assert model.intercept_ == 2.5
    assert_array_equal(model.predict(X), X @ model.coef_ + 2.5)
    with pytest.raises(ValueError, match=r"intercept must be that of the run, which learns none, 2\.5"):
        model.regret_bound(np.ones(4), weighted=True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"coef_init": np.ones(3)},
            r"Provided coef_init does not match dataset: its shape must be \(1, 4\); got \(3,\)",
        ),
        ({"coef_init": np.ones((4, 1))}, "Provided coef_init does not match dataset"),
        ({"intercept_init": np.ones(2)}, "Provided intercept_init does not match dataset"),
        ({"coef_init": [1.0, np.nan, 1.0, 1.0]}, "coef_init contains NaN"),
        ({"intercept_init": np.inf}, "intercept_init contains infinity"),
    ],
)
def test_bad_weights_are_refused_and_change_nothing(line, given, message, state):
    X, y = line
    model = ImplicitGDRegressor(random_state=0).fit(X, y)
    before = state(vars(model))
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, **given)
    assert state(vars(model)) == before


def test_models_without_weights_to_give_say_so(line):
    X, y = line
    with pytest.raises(ValueError, match="its weights are bets"):
        ScaleInvariantRegressor().fit(X, y, coef_init=np.ones(4))
    with pytest.raises(ValueError, match="coef_init and intercept_init are in units of the data"):
        MirrorDescentRegressor(standardize=True).fit(X, y, intercept_init=1.0)
    with pytest.raises(ValueError, match="coef_init must be > 0 for this estimator"):
        MirrorDescentRegressor(divergence="burg").fit(X, y, coef_init=np.zeros(4))
    theory = ImplicitGDRegressor(learning_rate="theory", data_bounds={"x": 9.0, "u": 9.0})
    with pytest.raises(ValueError, match="requires coef_init=None"):
        theory.fit(X, y, coef_init=np.ones(4))
    with pytest.raises(ValueError, match="requires intercept_init=None"):
        theory.fit(X, y, intercept_init=1.0)


# --- stopping ---------------------------------------------------------------------------------------------------------


def held_out(estimator, X, y, fraction=0.25):
    """The rows that `early_stopping` learns and those it holds out."""
    split = StratifiedShuffleSplit if is_classifier(estimator) else ShuffleSplit
    rows, others = next(split(test_size=fraction, random_state=estimator.random_state).split(X, y))
    return np.sort(rows), others


@pytest.mark.only(where=stops_early)
@pytest.mark.parametrize("sparse", [False, True])
def test_rows_that_are_held_out_are_scored_and_not_learned(estimator, rows, learned, sparse):
    X, y = rows
    X = csr_array(X) if sparse else X
    weights = np.linspace(0.5, 2.0, len(y))
    learning = clone(estimator).set_params(max_iter=3, tol=None, shuffle=False)
    kept, others = held_out(estimator, X, y)
    stopped = clone(learning).set_params(early_stopping=True, validation_fraction=0.25).fit(X, y, weights)
    expected = learning.fit(X[kept], y[kept], weights[kept])
    assert learned(stopped) == learned(expected)
    assert stopped.loss_curve_ == expected.loss_curve_ and stopped.n_iter_ == 3
    of_rows = weights[others]
    if getattr(estimator, "class_weight", None) is not None:
        of_rows = of_rows * [estimator.class_weight.get(label, 1.0) for label in y[others].tolist()]
    assert stopped.validation_scores_[-1] == pytest.approx(expected.score(X[others], y[others], of_rows))
    assert expected.validation_scores_ is None


@pytest.mark.only(where=stops_early)
def test_partial_fit_refuses_early_stopping_at_the_start_and_in_mid_stream(estimator, rows, learn, state):
    X, y = rows
    with pytest.raises(ValueError, match="early_stopping should be False with partial_fit"):
        learn(clone(estimator).set_params(early_stopping=True), X, y)
    learn(estimator, X, y)
    for model in (estimator, clone(estimator).set_params(early_stopping="best", max_iter=2).fit(X, y)):
        model.set_params(early_stopping="best")
        before = state(vars(model))
        for n in (1, len(y)):
            with pytest.raises(ValueError, match="early_stopping should be False with partial_fit"):
                learn(model, X[:n], y[:n])
        assert state(vars(model)) == before
        learn(model.set_params(early_stopping=False), X, y)


@pytest.mark.parametrize("tol", [0.0, 1e-2])
def test_it_stops_when_the_score_no_longer_improves(labelled, tol):
    X, y = labelled
    model = MirrorDescentClassifier(early_stopping=True, n_iter_no_change=4, tol=tol, random_state=0).fit(X, y)
    best, stale, scores = -np.inf, 0, model.validation_scores_
    for number, score in enumerate(scores, 1):
        stale = 0 if score > best + tol else stale + 1
        best = max(best, score)
        assert (stale == 4) == (number == len(scores))
    assert model.n_iter_ == len(scores) < model.max_iter
    assert len(set(scores)) > 1


@pytest.mark.parametrize("kind", [MirrorDescentClassifier, PerceptronClassifier, ImplicitGDRegressor])
def test_the_best_model_is_kept_on_demand(labelled, kind, learned):
    X, y = labelled
    model = kind(early_stopping="best", random_state=1, max_iter=20, tol=None, validation_fraction=0.4).fit(X, y)
    best = int(np.argmax(model.validation_scores_))
    assert best + 1 < model.n_iter_ == 20
    until = kind(early_stopping=True, random_state=1, max_iter=best + 1, tol=None, validation_fraction=0.4).fit(X, y)
    assert learned(model) == learned(until)
    last = clone(model).set_params(early_stopping=True).fit(X, y)
    assert last.validation_scores_ == model.validation_scores_
    assert learned(last) != learned(model)


def test_rows_that_are_held_out_and_others_must_have_weight(line, unchanged):
    X, y = line
    model = ImplicitGDRegressor(early_stopping=True, random_state=0, validation_fraction=0.25)
    others = np.bincount(held_out(model, X, y)[1], minlength=len(y))
    with unchanged(model, "early_stopping holds out all rows of positive sample weight"):
        model.fit(X, y, sample_weight=others)
    with pytest.raises(ValueError, match="The sample weights for validation set are all zero"):
        model.fit(X, y, 1 - others)


@pytest.mark.only(where=stops_early)
def test_a_held_out_row_that_is_not_finite_has_the_number_of_the_caller(estimator, rows):
    X, y = rows
    X = X.copy()
    row = int(held_out(estimator, X, y)[1][1])
    X[row, 1] = np.inf
    model = clone(estimator).set_params(early_stopping=True, validation_fraction=0.25, max_iter=2)
    for given in (X, csr_array(X)):
        with pytest.raises(ValueError, match=rf"infinity \(row {row}, column 1\)"):
            model.fit(given, y)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("stopping", [True, "best"])
@pytest.mark.parametrize("size", [1e200, 1e308])
@pytest.mark.parametrize("form", [np.asarray, csr_array, np.asfortranarray])
def test_held_out_rows_that_overflow_are_refused_as_learned_ones_are(line, stopping, size, form):
    X, y = line[0].copy(), line[1]
    model = ImplicitGDRegressor(early_stopping=stopping, random_state=0, validation_fraction=0.25)
    row = int(held_out(model, X, y)[1][1])
    X[row, 1] = size
    with pytest.raises(ValueError, match=rf"overflow occurred at epoch #1\. .* row {row} is the largest"):
        model.fit(form(X), y)
    assert "validation_scores_" not in vars(model)


def test_scores_are_those_of_models_that_can_hold_out_rows(line):
    X, y = line
    assert ImplicitGDRegressor().fit(X, y).validation_scores_ is None
    for model in (OneClassMirrorDescent().fit(X), LogDetMetricLearner(random_state=0).fit(X, y > 0)):
        assert not hasattr(model, "validation_scores_")


# --- rates that fall when `fit` would stop ----------------------------------------------------------------------------


@pytest.mark.parametrize("early_stopping", [False, True])
def test_an_adaptive_rate_is_divided_by_five_each_time_fit_would_stop(line, early_stopping):
    X, y = line
    options = {"divergence": "squared_euclidean", "eta0": 0.1, "n_iter_no_change": 2, "early_stopping": early_stopping}
    model = MirrorDescentRegressor(learning_rate="adaptive", random_state=0, **options).fit(X, y)
    constant = MirrorDescentRegressor(learning_rate="constant", random_state=0, **options).fit(X, y)
    n = constant.n_iter_
    assert model.loss_curve_[:n] == constant.loss_curve_ and model.n_iter_ > n
    assert model._learner.next_rate == 0.1 / 5**8 <= 1e-6 < 0.1 / 5**7
    # so do the epochs by hand, with a schedule of this kind
    numbers, rng, rate, stale, best = np.arange(len(y)), np.random.RandomState(0), 0.1, 0, np.inf
    if not early_stopping:
        same = MirrorDescentRegressor(divergence="squared_euclidean")
        while rate > 0.1 / 5**9:
            same.set_params(learning_rate=Constant(rate))
            before = getattr(same, "cumulative_loss_", 0.0) if hasattr(same, "coef_") else 0.0
            order = rng.permutation(numbers)
            same.partial_fit(X[order], y[order])
            loss = (same.cumulative_loss_ - before) / len(y)
            stale, best = 0 if loss < best - model.tol else stale + 1, min(best, loss)
            if stale == 2 and rate <= 1e-6:
                break
            if stale == 2:
                rate, stale = 0.1 / 5 ** (round(np.log(0.1 / rate) / np.log(5)) + 1), 0
        assert_array_equal(same.coef_, model.coef_)
        assert same.t_ == model.t_


def test_an_adaptive_rate_begins_anew_with_each_fit(line):
    X, y = line
    model = ImplicitGDRegressor(learning_rate="adaptive", eta0=0.2, random_state=0).fit(X, y)
    assert model._learner.next_rate < 1e-5
    curve, coef = model.loss_curve_, model.coef_
    assert model.fit(X, y).loss_curve_ == curve
    assert_array_equal(model.coef_, coef)
    # a warm start, and `partial_fit`, go on at the rate that was reached
    last = model._learner.next_rate
    assert model.set_params(warm_start=True, max_iter=1).fit(X, y)._learner.next_rate == last
    assert model.partial_fit(X, y)._learner.next_rate == last
    assert ImplicitGDRegressor(learning_rate="adaptive", eta0=0.2).partial_fit(X, y)._learner.next_rate == 0.2


# --- the form of the weights ------------------------------------------------------------------------------------------


@pytest.mark.only(where=stops_early)
def test_sparse_weights_are_those_of_the_model_which_goes_on(estimator, rows, learn, output):
    X, y = rows
    learn(estimator, X, y)
    coef, before = estimator.coef_, output(estimator, X)
    sparse = copy.deepcopy(estimator).sparsify()
    assert issparse(sparse.coef_) and sparse.coef_.shape == np.atleast_2d(coef).shape
    again = pickle.loads(pickle.dumps(sparse))
    for model in (sparse, again):
        assert_array_equal(model.coef_.toarray(), np.atleast_2d(coef))
        for name, values in output(model, X).items():
            assert_array_equal(values, before[name])
    learn(estimator, X, y)
    learn(again, X, y)
    assert_array_equal(again.coef_.toarray(), np.atleast_2d(estimator.coef_))
    assert_array_equal(again.densify().coef_, estimator.coef_)
    assert not issparse(sparse.fit(X, y).coef_)
    with pytest.raises(NotFittedError):
        clone(estimator).sparsify()
