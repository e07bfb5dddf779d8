"""Mixtures of online estimators: division into calls, one pass, history, absurd forecasts, copies, bad input."""

import copy
import itertools
import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from onlinebregman._kernels.learners.hedge import Hedge, History
from onlinebregman._kernels.learners.mean_mixer import MeanMixer
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from onlinebregman import (
    BayesMixture,
    DensityMixture,
    EGRegressor,
    ExpertMixtureClassifier,
    ExpertMixtureRegressor,
    ForwardRegressor,
    ImplicitGDRegressor,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    OnlineExponentialFamily,
    OnlineGaussian,
    PerceptronClassifier,
    PNormClassifier,
)
from onlinebregman._kernels.losses import loss as compiled_losses
from onlinebregman.losses import QuantileLoss, SquaredLoss
from onlinebregman.pipeline import make_online_pipeline

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows


rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = X @ [1.0, -2.0, 0.0, 0.5] + 0.1 * rng.normal(size=60)
LABELS = np.where(Y > 0, "up", "down")
P = rng.uniform(0.01, 0.99, size=(60, 4))
REGRESSORS = [("gd", ImplicitGDRegressor()), ("eg", EGRegressor(total=5.0)), ("sgd", SGDRegressor(shuffle=False))]
CLASSIFIERS = [
    ("md", MirrorDescentClassifier(divergence="squared_euclidean")),
    ("sgd", SGDClassifier(loss="log_loss", shuffle=False)),
]


def test_experts_forecast_each_row_before_they_learn_it():
    model = ExpertMixtureRegressor(REGRESSORS[:2], strategy="average", learning_rate=0.01, history=100).partial_fit(
        X, Y
    )
    scores = []
    for _, expert in REGRESSORS[:2]:
        expert = clone(expert).partial_fit(X[:1], Y[:1])
        forecasts = []
        for t in range(1, 60):
            forecasts.append(expert.predict(X[t : t + 1])[0])
            expert.partial_fit(X[t : t + 1], Y[t : t + 1])
        scores.append(forecasts)
    forecasts = np.array(scores).T
    assert model.t_ == 59  # the first row is only learned: no expert could forecast it
    columns = ExpertMixtureRegressor(strategy="average", learning_rate=0.01, history=100).partial_fit(forecasts, Y[1:])
    assert model.weights_.tobytes() == columns.weights_.tobytes()
    assert model.cumulative_loss_ == columns.cumulative_loss_
    assert_allclose(model.predict(X), np.stack([e.predict(X) for e in model.estimators_], axis=1) @ model.weights_)


def test_frozen_experts_stand_still_and_forecast_the_first_row():
    fixed = LinearRegression().fit(X, Y)
    model = ExpertMixtureRegressor([("ols", FrozenEstimator(fixed)), ("zero", FrozenEstimator(fixed))]).fit(X, Y)
    assert model.t_ == 60
    assert_allclose(model.predict(X), fixed.predict(X))


def test_parameters_of_experts_have_names():
    model = ExpertMixtureRegressor([("gd", ImplicitGDRegressor()), ("eg", EGRegressor())])
    assert model.set_params(gd__eta0=0.5).get_params()["gd__eta0"] == 0.5
    search = GridSearchCV(clone(model), {"gd__eta0": [0.1, 1.0], "share": [0.0]}, cv=2).fit(X, Y)
    assert search.best_params_["gd__eta0"] in (0.1, 1.0)
    assert isinstance(model.set_params(eg=ImplicitGDRegressor()).estimators[1][1], ImplicitGDRegressor)


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [-0.1, 1.01])
def test_numbers_that_are_no_probabilities_are_refused(bad, unchanged):
    model = BayesMixture().fit(P, LABELS)
    wrong = P[:5].copy()
    wrong[3, 2] = bad
    with unchanged(model, rf"X must be probabilities, from 0 to 1; got {bad:g} at row 3, column 2"):
        model.partial_fit(wrong, LABELS[:5])
    with pytest.raises(ValueError, match="row 3, column 2"):
        model.predict_proba(wrong)


def test_probabilities_that_do_not_add_up_are_refused(unchanged):
    p = rng.dirichlet(np.ones(3), size=(30, 2)).reshape(30, 6)
    model = BayesMixture().fit(p, np.arange(30) % 3)
    assert model.weights_.shape == (2,) and model.predict_proba(p).shape == (30, 3)
    p[4, 5] /= 2
    with unchanged(model, "probabilities of expert 1 at row 4 must sum to 1; got"):
        model.partial_fit(p, np.arange(30) % 3)
    with unchanged(BayesMixture(), "X must have 3 columns for each expert, one per class; got 4"):
        BayesMixture().fit(p[:, :4], np.arange(30) % 3)


@pytest.mark.parametrize("make", [BayesMixture, lambda: ExpertMixtureClassifier(strategy="eg", learning_rate=0.1)])
def test_all_experts_at_probability_zero(make, unchanged):
    model = make().fit(P, LABELS)
    wrong = P[:5].copy()
    wrong[2] = 0.0
    with unchanged(model, "give probability 0 to 'up', the label at row 2"):
        model.partial_fit(wrong, np.full(5, "up"))
    # experts whose weight is 0 do not help
    out = make().fit([[0.0, 0.5], [0.5, 0.5]], [1, 0])
    if isinstance(out, BayesMixture):
        with unchanged(out, "at row 1"):
            out.partial_fit([[0.5, 0.5], [1.0, 0.0]], [1, 1])


def test_a_tiny_weight_is_not_none():
    """ln v is stored: an expert of weight exp(-2000) gets all weight when all others give probability zero."""
    unlikely = np.column_stack([np.full(500, 1.0), np.full(500, 0.01)])
    model = BayesMixture().fit(np.r_[unlikely, [[0.0, 0.5]]], np.r_[np.ones(500, dtype=int), 0][::1] * 1)
    assert model.weights_.tolist() == [1.0, 0.0]
    model.partial_fit([[0.0, 0.5]], [1])
    assert model.weights_.tolist() == [0.0, 1.0]
    assert_allclose(model.cumulative_loss_, model.expert_losses_[1] + np.log(2))


class Refuses(BaseEstimator):
    """Learns a few rows, then raises, or forecasts `what`."""

    _estimator_type = "regressor"

    def __init__(self, what="raise"):
        self.what = what

    def fit(self, X, y):
        return self.partial_fit(X, y)

    def partial_fit(self, X, y):
        self.n_ = getattr(self, "n_", 0) + len(X)
        if self.n_ > {"raise": 40, "inf": 41}.get(self.what, 99):  # the infinite forecast may be the cause
            raise ValueError("no more rows")
        return self

    def predict(self, X):
        return np.full(len(X), float(self.what) if self.n_ > 40 else 0.0)


@pytest.mark.parametrize(
    "what, match", [("raise", "no more rows"), ("inf", r"expert 'refuses' must be finite; got inf at row 21")]
)
def test_when_an_expert_fails_all_are_as_they_were(what, match, unchanged):
    model = ExpertMixtureRegressor([("gd", ImplicitGDRegressor()), ("refuses", Refuses(what))], history=3)
    model.partial_fit(X[:20], Y[:20])
    with unchanged(model, match):
        model.partial_fit(X[20:], Y[20:])
    model.partial_fit(X[20:40], Y[20:40])


@pytest.mark.parametrize(
    "model, match",
    [
        (ExpertMixtureRegressor([("a", ImplicitGDRegressor()), ("a", EGRegressor())]), "not unique"),
        (
            ExpertMixtureRegressor(strategy="average", share=0.1),
            "learning_rate must be a number or 'theory' with share = 0.1",
        ),
        (ExpertMixtureRegressor(strategy="average", learning_rate="theory"), "needs data_bounds with y"),
        (
            ExpertMixtureRegressor(
                strategy="average", learning_rate="theory", loss="absolute_error", data_bounds={"y": (0, 1)}
            ),
            "needs data_bounds with n_rows and y",
        ),
        (
            ExpertMixtureRegressor(strategy="average", learning_rate="theory", data_bounds={"y": (1, 0)}),
            "needs data_bounds with y",
        ),
        (ExpertMixtureRegressor(prior=[1.0, 2.0]), "one positive number for each of the 4 experts"),
        (ExpertMixtureRegressor(prior=[1.0, 0.0, 1.0, 1.0]), "one positive number"),
        (ExpertMixtureRegressor(prior=[1.0, np.nan, 1.0, 1.0]), "one positive number"),
    ],
)
def test_bad_parameters_are_refused(model, match, unchanged):
    for method in (model.fit, model.partial_fit):
        with unchanged(model, match):
            method(X, Y)


@pytest.mark.parametrize(
    "model, match",
    [
        (ExpertMixtureClassifier(strategy="eg"), "gradient of the log loss is unbounded"),
        (ExpertMixtureClassifier(strategy="eg", loss="brier"), "n_rows, the number of rows, must be given"),
        (ExpertMixtureClassifier(share=0.1, learning_rate="adaptive"), "must be a number or 'theory' with share = 0.1"),
        (
            BayesMixture([("p", PerceptronClassifier())]),
            "'p' must have the method predict_proba; got a PerceptronClassifier",
        ),
        (BayesMixture([("gd", ImplicitGDRegressor())]), "must have the method predict_proba"),
        (BayesMixture([("lr", LogisticRegression())]), "has no partial_fit"),
        (
            BayesMixture([("two", FrozenEstimator(DummyClassifier().fit(P, np.arange(60) % 2)))]),
            r"classes of expert 'two' must be those of the mixture, \['down', 'up'\]; got \[0, 1\]",
        ),
    ],
)
def test_bad_parameters_are_refused_by_classifiers(model, match, unchanged):
    with unchanged(model, match):
        model.fit(P, LABELS)
    with unchanged(model, match):
        model.partial_fit(P, LABELS, classes=["down", "up"])


def test_what_an_expert_refuses_is_said_with_its_name_and_the_row_of_the_mixture(unchanged):
    experts = [
        ("gd", ImplicitGDRegressor()),
        ("counts", MirrorDescentRegressor(divergence="squared_euclidean", loss="poisson")),
    ]
    counts = np.arange(60) % 4.0
    model = ExpertMixtureRegressor(experts).fit(X, counts)
    with unchanged(model, r"Expert 'counts' cannot learn row 5: .*-1"):
        model.partial_fit(X[:9], np.where(np.arange(9) == 5, -1.0, 1.0))


def test_labels_and_weights_that_do_not_fit_are_refused(unchanged):
    model = BayesMixture().partial_fit(P, LABELS, classes=["down", "up"])
    with unchanged(model, r"The label 'sideways' at row 1 is not one of the classes"):
        model.partial_fit(P[:2], ["up", "sideways"])
    with unchanged(model, "not the same as on the first call"):
        model.partial_fit(P[:2], ["up", "up"], classes=["up", "sideways"])
    with unchanged(BayesMixture(), "classes must be passed"):
        BayesMixture().partial_fit(P, LABELS)
    takes_none = ExpertMixtureRegressor([("refuses", Refuses())])
    with unchanged(takes_none, "expert Refuses does not accept it"):
        takes_none.partial_fit(X, Y, sample_weight=np.ones(60))


def test_losses_beyond_the_range_of_floats_are_refused(unchanged):
    model = ExpertMixtureRegressor().fit(X, Y)
    with unchanged(model, "The loss at row 1 .* must be finite"):
        model.partial_fit([[0.0] * 4, [1e300] * 4], [0.0, -1e300])


@pytest.mark.filterwarnings("ignore:(divide by zero|invalid value):RuntimeWarning")
def test_an_expert_that_gives_nan_sleeps():
    model = BayesMixture([*CLASSIFIERS, ("nb", GaussianNB())])  # after the first row it knows only one class
    model.partial_fit(X[:2], LABELS[:2], classes=["down", "up"])
    assert np.isnan(clone(model.estimators_[2]).partial_fit(X[:1], LABELS[:1], ["down", "up"]).predict_proba(X)).all()
    assert_allclose(model.expert_losses_[2], model.cumulative_loss_)
    model = ExpertMixtureRegressor([("gd", ImplicitGDRegressor()), ("sleeps", Refuses("nan"))]).partial_fit(
        X[:41], Y[:41]
    )
    losses, loss = model.expert_losses_, model.cumulative_loss_
    model.partial_fit(X[41:], Y[41:])
    assert_allclose(model.expert_losses_ - losses, model.cumulative_loss_ - loss)
    assert_allclose(model.predict(X), model.estimators_[0].predict(X))


@pytest.mark.parametrize("y", [(-np.inf, np.inf), ("a", 1), (None, 1), (np.nan, 1), (0, 1e200), (0, 1e-200), 3])
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_bounds_of_theory_are_numbers(y, loss, unchanged):
    model = ExpertMixtureRegressor(
        strategy="average", learning_rate="theory", loss=loss, data_bounds={"y": y, "n_rows": 60}
    )
    with unchanged(model, "needs data_bounds with"):
        model.partial_fit(X, Y)


@pytest.mark.parametrize("n_rows", ["a", None, np.nan, np.inf, 0])
def test_the_number_of_rows_of_theory_is_a_number(n_rows, unchanged):
    model = ExpertMixtureRegressor(learning_rate="theory", strategy="eg", data_bounds={"y": (0, 1), "n_rows": n_rows})
    with unchanged(model, "n_rows positive; got"):
        model.partial_fit(X, Y)


@pytest.mark.parametrize("n_switches", [-1, 0.5, np.nan, "1", None])
def test_a_number_of_switches_is_a_whole_number(n_switches):
    model = BayesMixture(share=0.1).fit(P, LABELS)
    assert model.tracking_bound(np.int64(1)) == model.tracking_bound(1)
    with pytest.raises(ValueError, match=r"n_switches must be an integer >= 0; got"):
        model.tracking_bound(n_switches)


def test_a_subclass_may_override_any_method():
    class Own(ImplicitGDRegressor):
        def predict(self, X):
            return np.zeros(len(X))

    assert_allclose(ExpertMixtureRegressor([("own", Own())]).fit(X, Y).expert_losses_, [(Y[1:] ** 2).sum() / 2])


# --- experts that learn in one pass with the weights ------------------------------------------------------------------


TARGETS = {
    "classifier": np.where(X[:, 0] + 0.3 * rng.normal(size=60) > 0, "up", "down"),
    "regressor": X @ [0.0, 1.0, 2.0, 3.0] / 6,
    "density_estimator": None,
}
COMPILED_CLASSIFIERS = [
    ("log", MirrorDescentClassifier()),
    ("p-norm", PNormClassifier()),
    ("huber", MirrorDescentClassifier(loss="modified_huber")),
]
COMPILED_REGRESSORS = [
    ("md", MirrorDescentRegressor()),
    ("gd", ImplicitGDRegressor()),
    ("median", MirrorDescentRegressor(loss="absolute_error")),
    ("simplex", EGRegressor()),
]
DENSITIES = [
    ("full", OnlineGaussian(prior_weight=2.0)),
    ("diagonal", OnlineGaussian(covariance_type="diag")),
    ("unit", OnlineExponentialFamily()),
]
MIXTURES = [
    BayesMixture(COMPILED_CLASSIFIERS),
    BayesMixture(COMPILED_CLASSIFIERS, share=0.01),
    *(
        ExpertMixtureClassifier(COMPILED_CLASSIFIERS, strategy=strategy, loss=loss, learning_rate="adaptive")
        for strategy in ("average", "eg")
        for loss in ("log_loss", "brier")
    ),
    ExpertMixtureRegressor(COMPILED_REGRESSORS),
    ExpertMixtureRegressor(COMPILED_REGRESSORS, strategy="eg", loss="absolute_error"),
    ExpertMixtureRegressor(
        COMPILED_REGRESSORS, strategy="aggregating", learning_rate="theory", share=0.01, data_bounds={"y": (-3.0, 3.0)}
    ),
    DensityMixture(DENSITIES),
]


def kind_of(model):
    return get_tags(model).estimator_type


def learned(model, cuts, weights=None, apart=False):
    """`apart`: not in one pass."""
    model, y = clone(model), TARGETS[kind_of(model)]
    for start, end in itertools.pairwise(cuts):
        given = {} if weights is None else {"sample_weight": weights[start:end]}
        if not start and y is not None and kind_of(model) == "classifier":
            given["classes"] = ["down", "up"]
        model.partial_fit(X[start:end], *(() if y is None else (y[start:end],)), **given)
        model._experts_learner = None if apart else model._experts_learner
    return model


def numbers(model):
    said = getattr(model, model._forecast_method)(X)
    losses = [expert.cumulative_loss_ for expert in model.estimators_]
    return [model.weights_, model.expert_losses_, [model.cumulative_loss_, model.regret_bound_, model.t_], losses, said]


def in_one_pass(model):
    learner = model._experts_learner
    return learner is not None and learner.ready(vars(model))


@pytest.mark.parametrize("weights", [None, rng.uniform(0.5, 2.0, size=60)], ids=["alone", "weighted"])
@pytest.mark.parametrize("model", MIXTURES, ids=lambda model: type(model).__name__)
def test_the_numbers_are_those_of_one_expert_after_the_other(model, weights):
    apart = learned(model, range(61), weights, apart=True)
    assert not in_one_pass(apart)
    for cuts in (range(61), [0, 60], [0, 1, 2, 30, 31, 60]):
        together = learned(model, cuts, weights)
        assert in_one_pass(together)
        given = vars(together), X, kind_of(model) == "regressor"
        assert len(together._experts_learner.predict_fast(*given)) == len(X)
        assert copy.deepcopy(together)._experts_learner.predict_fast(*given) is None
        for got, expected in zip(numbers(together), numbers(apart), strict=True):
            assert_array_equal(got, expected)


@pytest.mark.parametrize("parameters", [{"eta0": 0.1}, {"average": True}], ids=str)
def test_parameters_of_experts_may_change(parameters):
    apart = learned(MIXTURES[0], [0, 30], apart=True)
    model = learned(MIXTURES[0], [0, 30])
    for mixture in (model, apart):
        mixture.estimators_[0].set_params(**parameters)
        assert not in_one_pass(mixture)
        for row in range(30, 40):
            mixture.partial_fit(X[row : row + 1], TARGETS["classifier"][row : row + 1])
            apart._experts_learner = None
    assert in_one_pass(model) == ("eta0" in parameters)
    assert_array_equal(model.weights_, apart.weights_)
    model.estimators_[1].set_params(class_weight={"up": 2.0})
    assert not in_one_pass(model)


class Halved(SquaredLoss):
    """With another link."""

    def link(self, a):
        return super().link(a) / 2


@pytest.mark.parametrize(
    "experts",
    [
        [("forward", ForwardRegressor())],
        [("averaged", MirrorDescentRegressor(average=True))],
        [("own", MirrorDescentRegressor(loss=Halved(), update="explicit"))],
        [("type", type("Own", (MirrorDescentRegressor,), {})())],
    ],
    ids=lambda experts: experts[0][0],
)
@pytest.mark.exhaustive
def test_experts_whose_scores_are_not_their_forecasts_learn_by_themselves(experts):
    model = ExpertMixtureRegressor([*experts, ("gd", ImplicitGDRegressor())])
    whole, rows = (learned(model, cuts) for cuts in ([0, 60], range(61)))
    assert not in_one_pass(whole)
    assert_array_equal(whole.weights_, rows.weights_)


QUANTILES = MirrorDescentRegressor(loss=QuantileLoss([0.1, 0.5, 0.9]))


@pytest.mark.parametrize(
    "expert",
    [
        QUANTILES,
        make_online_pipeline(StandardScaler(), QUANTILES),
        FrozenEstimator(clone(QUANTILES).partial_fit(X, TARGETS["regressor"])),
        FrozenEstimator(MirrorDescentRegressor().partial_fit(X, X[:, :3])),
    ],
    ids=["compiled", "row by row", "frozen", "several outputs"],
)
def test_experts_of_several_outputs_are_refused_by_name(expert, unchanged):
    model = ExpertMixtureRegressor([*COMPILED_REGRESSORS, ("three", expert)])
    for method in (model.fit, model.partial_fit):
        with unchanged(model, "Expert 'three' must have one output; got 3 forecasts of each row"):
            method(X, TARGETS["regressor"])


# --- the history of the weights ---------------------------------------------------------------------------------------


@given(
    calls=st.lists(
        st.tuples(
            st.integers(1, 9), st.integers(1, 7), st.sampled_from(["go on", "go on", "refused", "pickled", "copied"])
        ),
        max_size=40,
    ),
    seed=st.integers(0, 10**6),
)
def test_the_last_rows_are_kept(calls, seed):
    rng, expected = np.random.default_rng(seed), np.empty((0, 2))
    model, plain = (ExpertMixtureRegressor(strategy="average", learning_rate=0.1) for _ in range(2))
    for n_rows, size, how in calls:
        X, y = rng.normal(size=(n_rows, 2)), np.zeros(n_rows)
        model.set_params(history=size)
        if how == "refused":
            with pytest.raises(ValueError, match="must be finite"):
                model.partial_fit(np.append(X, [[1e300, 1e300]], axis=0), np.append(y, 0.0))
            continue
        if how == "pickled":
            model = pickle.loads(pickle.dumps(model))
        if how == "copied":
            model = copy.deepcopy(model)
        model.partial_fit(X, y)
        for i in range(n_rows):
            before = plain.weights_ if len(expected) else np.full(2, 0.5)
            expected = np.append(expected, [before], axis=0)[-size if i == n_rows - 1 else 0 :]
            plain.partial_fit(X[i : i + 1], y[i : i + 1])
        assert_array_equal(model.weights_history_, expected)


@pytest.mark.parametrize("n_rows", [1, 3, 5000])
def test_a_row_is_written_once_and_moved_a_few_times(monkeypatch, n_rows):
    """Blocks of rows into a history of 1000: the values allocated do not grow with the number of rows."""
    allocated = []
    empty = np.empty

    def counted(shape, *args, **kwargs):
        allocated.append(np.prod(shape))
        return empty(shape, *args, **kwargs)

    mixer = MeanMixer(Hedge(2, 1.0, history=History(2, 1000)), compiled_losses.SquaredLoss(), False, None, None)
    X = np.random.default_rng(0).normal(size=(5000, 2))
    monkeypatch.setattr(np, "empty", counted)
    for start in range(0, 5000, n_rows):
        mixer.learn(X[start : start + n_rows], np.zeros(len(X[start : start + n_rows])))
    assert sum(allocated) < 6 * 2 * 1000
    assert mixer.hedge.history.weights.shape == (1000, 2)


def test_the_history_belongs_to_one_model():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    model = ExpertMixtureRegressor(history=50, strategy="average", learning_rate=0.1).partial_fit(X[:10], y[:10])
    other, known = copy.copy(model), model.weights_history_.copy()  # shares the learned state
    model.partial_fit(X[10:20], y[10:20])
    other.partial_fit(X[20:], y[20:])
    assert_array_equal(model.weights_history_[:10], known)
    assert_array_equal(other.weights_history_[:10], known)
    assert not np.array_equal(other.weights_history_, model.weights_history_)
    with pytest.raises(AttributeError, match="history > 0"):
        ExpertMixtureRegressor().fit(X, y).weights_history_  # noqa: B018


@pytest.mark.parametrize("plain", [True, False])
def test_rows_learned_without_a_history_leave_no_gap_in_it(plain):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    every = ExpertMixtureRegressor(history=30).fit(X, y).weights_history_
    model = ExpertMixtureRegressor(history=5).partial_fit(X[:10], y[:10])
    rows = (X[10:20], y[10:20]) if plain else (X[10:20].tolist(), y[10:20].tolist())
    model.set_params(history=0).partial_fit(*rows)
    assert not hasattr(model, "weights_history_")
    model.set_params(history=15).partial_fit(X[20:], y[20:])
    assert_array_equal(model.weights_history_, every[20:])


# --- absurd forecasts -------------------------------------------------------------------------------------------------


N, LOSSES = 1500, ["squared_error", "absolute_error"]


def stream(n_experts=3):
    rng = np.random.default_rng(0)
    y = 10.0 * rng.normal(size=N)
    return y[:, np.newaxis] + rng.normal(size=(N, n_experts)) * [1.0, 1.5, 2.0][:n_experts], y


def run(X, y, **parameters):
    """The model, and its root mean squared error over the last rows, each predicted before it was learned."""
    model = ExpertMixtureRegressor(**parameters).partial_fit(X[:500], y[:500])
    residuals = []
    for t in range(500, N):
        residuals.append(model.predict(X[t : t + 1])[0] - y[t])
        model.partial_fit(X[t : t + 1], y[t : t + 1])
    assert model.cumulative_loss_ - model.expert_losses_.min() <= model.regret_bound_ * (1 + 1e-12)
    return model, np.sqrt(np.mean(np.square(residuals)))


RATES = ["adaptive", 0.01, "theory"]
OTHERS = [*product(["ml_poly", "boa"], RATES[:1], LOSSES), *product(["aggregating"], RATES, LOSSES[:1])]


@pytest.mark.parametrize("n_experts", [2, 3])
@pytest.mark.parametrize("strategy, rate, loss", [*product(["average", "eg"], RATES, LOSSES), *OTHERS])
@pytest.mark.parametrize("rows, value", [([0], 1e4), ([10], 1e4), ([30], -1e9), (range(0, N, 100), 1e4)])
def test_an_absurd_forecast_is_forgotten(n_experts, strategy, loss, rate, rows, value):
    X, y = stream(n_experts)
    more = {"strategy": strategy, "loss": loss, "learning_rate": rate}
    if rate == "theory" or strategy == "aggregating":
        more["data_bounds"] = {"y": (-60.0, 60.0), "n_rows": N}
    clean = run(X, y, **more)[1]
    X[rows, 0] = value
    assert run(X, y, **more)[1] < 1.1 * clean


def test_the_forecast_of_a_row_does_not_follow_an_absurd_expert():
    X, y = stream()
    model, _ = run(X, y, strategy="average")
    expected = model.predict(X[:1])[0]
    assert model.weights_[0] > 0.9
    assert abs(model.predict([[1e6, X[0, 1], X[0, 2]]])[0] - expected) < 6.0


@pytest.mark.parametrize("strategy", ["ml_poly", "boa", "eg", "average"])
@pytest.mark.parametrize("delayed, of", [*product([False, True], ["target", "forecast"])])
@pytest.mark.parametrize("row, value", [(0, 500.0), (1, 1e4), (5, 1e9), (15, -1e9), (40, 1e9)])
def test_absurd_first_rows_do_not_stay_in_the_weights(strategy, delayed, row, value, of):
    X, y = stream()
    _, clean = run(X, y, strategy=strategy, delayed=delayed)
    (y if of == "target" else X[:, 0])[row] = value
    assert run(X, y, strategy=strategy, delayed=delayed)[1] < 1.1 * clean
