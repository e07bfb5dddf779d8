"""A call learns all of its rows or none, also if it ends by Ctrl-C, a lack of memory, another thread, or a bad row."""

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from operator import methodcaller

import numpy as np
import pytest
from configurations import is_default
from interrupts import assert_all_or_nothing, interrupt
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    DensityMixin,
    RegressorMixin,
    TransformerMixin,
    clone,
    is_classifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import StandardScaler

from onlinebregman import (
    BayesMixture,
    DensityMixture,
    EGRegressor,
    ExpertMixtureClassifier,
    ExpertMixtureRegressor,
    ForwardClassifier,
    ForwardRegressor,
    ImplicitGDRegressor,
    LearningRateMixture,
    LogDetMetricLearner,
    MEGKernelLearner,
    MetricKNeighborsClassifier,
    OnlineGaussian,
    ParameterFreeRegressor,
    PNormClassifier,
    PNormRegressor,
    VonNeumannMetricLearner,
)
from onlinebregman._online.estimator import reversible
from onlinebregman._sklearn_compat import all_or_nothing
from onlinebregman.divergences import SquaredEuclidean
from onlinebregman.losses import SquaredLoss
from onlinebregman.pipeline import OnlinePipeline, make_online_pipeline

RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=(60, 4)), RNG.normal(size=60)


def other(parameters):
    """Other values of the parameters that are read at each call."""
    changes = {"eta0": lambda eta0: 0.1 if eta0 is None else eta0 / 2, "average": lambda average: not average}
    changes |= {"track_regret": lambda tracked: not tracked}
    return {name: change(parameters[name]) for name, change in changes.items() if name in parameters}


@pytest.mark.parametrize("error, most", [(KeyboardInterrupt, 40), (MemoryError, 10)])
def test_a_call_that_is_interrupted_leaves_the_model_of_before_or_of_after(estimator, rows, learn, state, error, most):
    X, y = rows
    model = learn(estimator, X[:-4], y[:-4])
    model.set_params(**other(model.get_params()))
    X, y = X[-4:].tolist(), y[-4:].tolist()  # lists of rows are validated

    def call(model):
        try:
            learn(model, X, y)
        except AttributeError as raised:  # scikit-learn's available_if converts a MemoryError
            assert isinstance(raised.__cause__, error)

    kept = pickle.dumps(model)  # copied in a fraction of the time
    assert_all_or_nothing(lambda: pickle.loads(kept), call, state, error, most=most)
    before = state(model)
    with pytest.raises(error), all_or_nothing(*reversible([model])):  # as an expert or a step, if another one raises
        learn(model, *(values[-5:-4] for values in rows))
        assert state(model) != before
        raise error
    assert state(model) == before


@pytest.mark.exhaustive  # some, and those of other parts, are below
@pytest.mark.only(where=is_default)
def test_an_interrupted_fit_keeps_the_previous_model(estimator, rows, learn, state):
    X, y = rows
    kept = pickle.dumps(learn(estimator, X[:20], y[:20]))
    fit = methodcaller("fit", X[:12], y[:12])
    assert_all_or_nothing(lambda: pickle.loads(kept), fit, state, MemoryError, most=16)


DIVERGING = {"average": False, "track_regret": False, "update": "explicit", "eta0": 1e300}


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    ("model", "changed", "target"),
    [
        (ImplicitGDRegressor(average=True, track_regret=True), DIVERGING, 1.0),
        (EGRegressor(average=3), DIVERGING, 1.0),
        (MirrorDescentRegressor(divergence="p_norm", track_regret=True), DIVERGING, 1.0),
        (MirrorDescentClassifier(divergence="p_norm", average=True), DIVERGING, 1.0),
        (ForwardRegressor(), {"forward": False}, 1e300),  # it limits features
        (ForwardRegressor(), {"forgetting": 0.5}, 1e300),
        (ForwardRegressor(standardize=False), {"forward": False}, 1.0),
        (ForwardRegressor(standardize=False), {"forgetting": 0.5}, 1.0),
        (ForwardRegressor(loss="poisson", standardize=False), {"forgetting": 0.5}, 1.0),
        (ForwardClassifier(standardize=False), {"forgetting": 0.5}, 1.0),
    ],
)
def test_parameters_of_a_refused_call_are_not_stored(model, changed, target, form, state):
    """A learner stores the parameters of its last call, but not those of a refused call, validated or not."""
    before = {name: model.get_params()[name] for name in changed}
    model = clone(model).fit(X, (Y > 0).astype(float))
    bad = form([[1.0, 2.0, 3.0, 4.0], [1e300, 1e300, 1e300, 1e300]])
    for parameters in [changed] if changed is DIVERGING else [changed, before, changed]:
        model.set_params(**parameters)
        was = state(model)
        for weights in (None, [1.0, 2.0]):
            with pytest.raises(ValueError):
                model.partial_fit(bad, [0.0, target], sample_weight=weights)
            assert state(model) == was
        with pytest.raises(ValueError, match="infinity"):
            model.partial_fit(np.full((1, 4), np.inf), [1.0])
        assert state(model) == was


# --- signals ----------------------------------------------------------------------------------------------------------


def sparse_zeros(n_rows, n_columns):
    index = np.tile(np.arange(n_columns, dtype=np.int32), n_rows)
    return sparse.csr_array(
        (np.zeros(len(index), np.float32), index, np.arange(0, len(index) + 1, n_columns, dtype=np.int32)),
        shape=(n_rows, 10 * n_columns),
    )


@pytest.mark.parametrize(
    "model, X",
    [
        (ImplicitGDRegressor(), np.zeros((10**6, 100), np.float32)),
        (ImplicitGDRegressor(), sparse_zeros(10**5, 200)),
        (EGRegressor(average=True), np.zeros((4 * 10**5, 100), np.float32)),
        (ForwardRegressor(), np.zeros((10**5, 60), np.float32)),
        (ForwardClassifier(), np.zeros((10**5, 60), np.float32)),
        (MEGKernelLearner(), np.eye(60)[np.arange(6 * 10**4) % 60]),
        (LearningRateMixture(), np.zeros((10**5, 100), np.float32)),
        (PNormRegressor(p=3.5), RNG.normal(size=(10**5, 4))),  # whose powers take as long as many other numbers
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_long_block_can_be_interrupted(model, X, soon, state):
    model, y = clone(model), np.full(len(X.indptr) - 1 if sparse.issparse(X) else len(X), 0.1)
    if is_classifier(model):
        y = np.arange(len(y)) % 2
        model.partial_fit(X[:2], y[:2], classes=[0, 1])
    model.partial_fit(X[:2], y[:2])
    before = state(model)
    with pytest.raises(KeyboardInterrupt), soon:
        model.partial_fit(X, y)
    assert state(model) == before


def test_the_metric_of_many_pairs_can_be_interrupted(soon, state):
    X, pairs = RNG.normal(size=(50, 120)), RNG.integers(50, size=(20_000, 2))
    model = LogDetMetricLearner().partial_fit_pairs(X, pairs[:5], np.ones(5))
    before = state(model)
    with pytest.raises(KeyboardInterrupt), soon:
        model.partial_fit_pairs(X, pairs, np.ones(len(pairs)))
    assert state(model) == before


class Raising(SquaredEuclidean):
    """A user-defined divergence that is interrupted in the middle of a step."""

    error = None

    def step(self, w, x, c):
        if self.error is not None:
            raise self.error
        return super().step(w, x, c)


class RaisingLoss(SquaredLoss):
    error = None

    def derivative(self, a, y):
        if self.error is not None:
            raise self.error
        return super().derivative(a, y)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("where", ["divergence", "loss"])
def test_what_interrupts_a_divergence_or_loss_in_python_comes_through(where, error, learned, monkeypatch):
    cls = {"divergence": Raising, "loss": RaisingLoss}[where]
    model = MirrorDescentRegressor(**{where: cls()}, update="explicit").partial_fit(X[:5], Y[:5])
    before = learned(model)
    monkeypatch.setattr(cls, "error", error())
    with pytest.raises(error):
        model.partial_fit(X, Y)
    monkeypatch.setattr(cls, "error", None)
    assert learned(model) == before


# --- threads ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        ImplicitGDRegressor(),
        ImplicitGDRegressor(average=True, track_regret=True),
        MirrorDescentClassifier(divergence="squared_euclidean"),
        ForwardClassifier(),
        ForwardRegressor(),
        LearningRateMixture(),
        LogDetMetricLearner(random_state=0),
        VonNeumannMetricLearner(random_state=0),
        MEGKernelLearner(),
        OnlinePipeline([("metric", LogDetMetricLearner(random_state=0)), ("model", ImplicitGDRegressor())]),
        ExpertMixtureRegressor([("gd", ImplicitGDRegressor()), ("eg", EGRegressor())]),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("form", [np.asarray, np.ndarray.tolist])
def test_threads_that_learn_one_model_take_turns_or_are_refused(model, form):
    model, X, y = clone(model), RNG.normal(size=(40, 6)), RNG.integers(2, size=40)
    classes = {"classes": [0, 1]} if is_classifier(model) else {}
    model.partial_fit(X, y, **classes)
    learns_each_row_once = not isinstance(model, OnlinePipeline) and not hasattr(model, "memory_size")
    updates = model.t_ if learns_each_row_once else None
    X, y = form(X), form(y)
    done, refused, other = [], [], []

    def learn():
        for _ in range(6):
            try:
                done.append(model.partial_fit(X, y))
            except RuntimeError as error:
                refused.append(str(error))
            except Exception as error:
                other.append(error)

    def predict():
        for _ in range(6):
            assert np.isfinite(model.predict(np.asarray(X))).all()

    threads = [threading.Thread(target=target) for target in (learn, learn, learn, predict)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not other and all("another thread" in message for message in refused)
    assert done
    if learns_each_row_once:
        assert model.t_ == updates + len(y) * len(done)
    copy.deepcopy(model).partial_fit(X, y)


def test_a_call_that_a_tracer_stops_at_its_end_lets_other_threads_learn():
    rows = np.eye(4)[:3]
    model = MEGKernelLearner().partial_fit(rows, [0.1, 0.2, 0.3])
    number = 1
    with ThreadPoolExecutor(1) as other:
        while interrupt(lambda: model.partial_fit(rows, [0.1, 0.2, 0.3]), number):
            other.submit(model.partial_fit, rows, [0.1, 0.2, 0.3]).result()
            number += 1
    assert number > 10


def test_a_model_that_learns_cannot_be_copied_but_predicts():
    X = np.zeros((2 * 10**6, 100), np.float32)
    y = np.zeros(len(X))
    model = ImplicitGDRegressor().partial_fit(X[:2], y[:2])
    messages = []
    thread = threading.Thread(target=model.partial_fit, args=(X, y))
    thread.start()
    while thread.is_alive():
        assert model.predict(X[:1]).item() == 0.0
        for action in (copy.deepcopy, lambda model: model.partial_fit(X[:1], y[:1])):
            try:
                action(model)
            except RuntimeError as error:
                messages.append(str(error))
    thread.join()
    assert messages and all("learning in another thread" in message for message in messages)


class Meddling(SquaredLoss):
    mixtures = []

    def value(self, a, y):
        while self.mixtures:
            with pytest.raises(RuntimeError, match="learning in another thread"):
                self.mixtures.pop().partial_fit(X, Y)
        return super().value(a, y)


def test_a_mixture_of_which_a_member_is_learning_lets_the_others_learn():
    model = ParameterFreeRegressor(members=[MirrorDescentRegressor(), MirrorDescentRegressor(loss=Meddling())])
    idle, busy = model.partial_fit(X, Y).estimators_
    Meddling.mixtures.append(model)
    busy.partial_fit(X[:1], Y[:1])
    assert not Meddling.mixtures and idle.partial_fit(X, Y).t_ == 120


# --- parts of meta-estimators, and those of other packages ------------------------------------------------------------


ROWS = RNG.lognormal(0.0, 0.2, size=(30, 3))
NUMBERS = ROWS @ [0.2, 0.5, 0.3]
LABELS = RNG.integers(2, size=30)

REGRESSORS = [("gd", ImplicitGDRegressor()), ("pipeline", make_online_pipeline(StandardScaler(), EGRegressor()))]
CLASSIFIERS = [
    ("md", MirrorDescentClassifier(divergence="squared_euclidean")),
    ("frozen", FrozenEstimator(PNormClassifier().fit(ROWS, LABELS))),
]
METRIC = make_online_pipeline(StandardScaler(), LogDetMetricLearner(random_state=0))
MEMBERS = ParameterFreeRegressor(members=[ForwardRegressor(), MirrorDescentRegressor()])
MIXED = make_online_pipeline(make_online_pipeline(StandardScaler(), MEMBERS))
MODELS = {  # besides the public estimators with their own parts
    "mixture of regressors": (ExpertMixtureRegressor(REGRESSORS, history=5), NUMBERS),
    "mixture of classifiers": (BayesMixture(CLASSIFIERS, share=0.1), LABELS),
    "pipeline": (make_online_pipeline(StandardScaler(), ImplicitGDRegressor(average=True)), NUMBERS),
    "pipeline of a mixture": (MIXED, NUMBERS),
    "mixture of a pipeline": (ExpertMixtureRegressor([("mixed", MIXED), *REGRESSORS]), NUMBERS),
    "neighbours": (MetricKNeighborsClassifier(metric_learner="auto", window_size=12, random_state=0), LABELS),
    "neighbours in a pipeline": (MetricKNeighborsClassifier(metric_learner=METRIC, random_state=0), LABELS),
}


@pytest.mark.parametrize(
    ("name", "method", "error"),
    [
        *((name, "partial_fit", KeyboardInterrupt) for name in MODELS),
        *((name, "fit", MemoryError) for name in MODELS if not name.startswith("pipeline")),  # which have another one
    ],
)
def test_an_interrupted_call_learns_all_of_its_rows_or_none(name, method, error, state):
    model, y = clone(MODELS[name][0]), MODELS[name][1]
    if "shuffle" in model.get_params():  # for all calls in the same order
        model.set_params(random_state=0)
    model.partial_fit(ROWS[:20], y[:20], **({"classes": [0, 1]} if y is LABELS else {}))
    rows = slice(20, 21) if method == "partial_fit" else slice(6)
    assert_all_or_nothing(
        lambda: copy.deepcopy(model),
        lambda model: getattr(model, method)(ROWS[rows], y[rows]),
        state,
        error,
        most=40 if method == "partial_fit" else 16,
        least=3,
    )


@pytest.mark.parametrize("name", ["pipeline of a mixture", "mixture of a pipeline"])
def test_mixtures_that_learn_a_row_are_not_copied(name, monkeypatch):
    model = clone(MODELS[name][0]).partial_fit(ROWS[:20], NUMBERS[:20])
    monkeypatch.setattr(ForwardRegressor, "__deepcopy__", pytest.fail, raising=False)
    model.partial_fit(ROWS[20:21], NUMBERS[20:21])


def test_the_helper_sees_a_torn_model(state):
    class Torn:
        def __init__(self):
            self.rows, self.loss = 0, 0.0

        def learn(self):
            self.rows += 1
            self.loss += 0.5
            return self

    with pytest.raises(AssertionError, match=r"1 of . interrupted calls leave a torn model, at lines \[3\]"):
        assert_all_or_nothing(Torn, lambda model: model.learn(), lambda m: dict(vars(m)), files=(__file__,), least=1)
    assert not interrupt(Torn, 100, files=(__file__,))


# --- parts of other packages ------------------------------------------------------------------------------------------


class Failing(BaseEstimator):
    """Learns in place, and fails in the middle of a given row."""

    def __init__(self, last=22, error=RuntimeError):
        self.last = last
        self.error = error

    def partial_fit(self, X, y=None):
        for _ in X:
            self.count_ = getattr(self, "count_", np.zeros(1))
            self.count_ += 1.0
            if self.count_[0] > self.last:
                raise self.error("the disk is full")
        return self

    def fit(self, X, y=None):
        return self.partial_fit(X, y)


class FailingRegressor(RegressorMixin, Failing):
    def predict(self, X):
        return np.full(len(X), self.count_[0])


class FailingClassifier(ClassifierMixin, Failing):
    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


class FailingDensity(DensityMixin, Failing):
    def score_samples(self, X):
        return np.full(len(X), -1.0)


class FailingScaler(TransformerMixin, Failing):
    def transform(self, X):
        return np.asarray(X) * 1.0


@pytest.mark.parametrize("error", [RuntimeError, ValueError, MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize(
    "model, y",
    [
        (ExpertMixtureRegressor([("gd", ImplicitGDRegressor()), ("failing", FailingRegressor())]), NUMBERS),
        (
            ExpertMixtureClassifier(
                [("md", MirrorDescentClassifier(divergence="squared_euclidean")), ("failing", FailingClassifier())]
            ),
            LABELS,
        ),
        (ExpertMixtureRegressor([("mixed", MIXED), ("failing", FailingRegressor())]), NUMBERS),
        (DensityMixture([("gaussian", OnlineGaussian(prior_weight=1.0)), ("failing", FailingDensity())]), None),
        (make_online_pipeline(StandardScaler(), FailingScaler(), ImplicitGDRegressor()), NUMBERS),
        (make_online_pipeline(StandardScaler(), FailingRegressor()), NUMBERS),
        (MetricKNeighborsClassifier(metric_learner=FailingScaler()), LABELS),
        (MetricKNeighborsClassifier(metric_learner=make_online_pipeline(StandardScaler(), FailingScaler())), LABELS),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_part_that_fails_in_mid_call_leaves_the_others_unchanged(model, y, error, state):
    model = clone(model)
    named = [name for name in model.get_params() if name.endswith("error")]
    model.set_params(**dict.fromkeys(named, error))
    extra = {"classes": [0, 1]} if y is LABELS else {}
    model.partial_fit(ROWS[:22], None if y is None else y[:22], **extra)
    before = state(model)
    for end in (23, 25):  # one row, or several of which the first fails
        with pytest.raises(error, match="the disk is full"):
            model.partial_fit(ROWS[22:end], None if y is None else y[22:end])
        assert named and state(model) == before
