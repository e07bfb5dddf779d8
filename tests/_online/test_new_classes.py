"""handle_unknown="add": classifiers whose classes appear in the stream."""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import log_softmax, softmax
from sklearn.base import clone

from onlinebregman import (
    BayesMixture,
    ExpertMixtureClassifier,
    ForwardClassifier,
    LearningRateMixture,
    LearningRatePath,
    MirrorDescentClassifier,
    ParameterFreeClassifier,
    PerceptronClassifier,
    PNormClassifier,
    ScaleInvariantClassifier,
    WinnowClassifier,
)
from onlinebregman.persistence import load_model, save_model

ADD = {"handle_unknown": "add"}
GD = {"divergence": "squared_euclidean", "eta0": 0.3, **ADD}
EXPERTS = [("md", MirrorDescentClassifier(**ADD)), ("forward", ForwardClassifier(**ADD))]
MEMBERS = [
    PNormClassifier(loss="hinge"),
    MirrorDescentClassifier(standardize=True),
    ForwardClassifier(random_features=9, random_state=0),
]
MODELS = [
    MirrorDescentClassifier(**GD, learning_rate="sqrt", average=5),
    MirrorDescentClassifier(divergence="relative_entropy", signed=True, standardize=True, loss="squared_hinge", **ADD),
    MirrorDescentClassifier(multi_class="multinomial", standardize=True, class_weight={0: 2.0, 3: 0.5}, **ADD),
    PNormClassifier(**ADD),
    PerceptronClassifier(**ADD),
    WinnowClassifier(**ADD),
    ScaleInvariantClassifier(**ADD),
    ForwardClassifier(standardize=True, **ADD),
    ParameterFreeClassifier(members=MEMBERS, **ADD),
    LearningRateMixture(PNormClassifier(loss="hinge", **ADD), eta0s=3),
    LearningRatePath(MirrorDescentClassifier(**ADD), eta0s=3),
    BayesMixture(EXPERTS, **ADD),
    ExpertMixtureClassifier(EXPERTS, loss="brier", **ADD),
]
NAMES = [type(model).__name__ for model in MODELS]


def stream(n=80, d=4, k=5, seed=0):
    """Rows of one class, then of two, then of more, the last ones in neighbouring rows."""
    rng = np.random.default_rng(seed)
    X, t = rng.normal(size=(n, d)), np.arange(n)
    allowed = np.searchsorted([4, 20, 41, 42], t, side="right") + 1
    y = np.minimum((2.0 * X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k))).argmax(axis=1), k) % allowed
    y[[0, 4, 20, 41, 42]] = np.arange(k)
    return X, np.array([3, 1, 4, 0, 2])[y]


def outputs(model, X):
    return (model.predict_proba if hasattr(model, "predict_proba") else model.decision_function)(X)


def losses(model):
    names = [name for name in ("cumulative_loss_", "cumulative_losses_") if hasattr(model, name)]
    return np.hstack([getattr(model, name) for name in names]).tolist()


@pytest.mark.parametrize("model", MODELS, ids=NAMES)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_a_stream_may_be_cut_anywhere(model, make, tmp_path):
    """Also between copies and files; rows of weight 0 are ignored, and bring no classes."""
    X, y = stream()
    X, h = make(X), np.random.default_rng(1).choice([0.0, 1.0, 2.5], size=80)
    h[0], h[60] = 1.0, 0.0
    y[60] = 9
    whole = clone(model).partial_fit(X, y, sample_weight=h)
    assert set(whole.classes_) == set(y[h > 0]) and whole.predict(X).tolist() != y.tolist()
    for cuts in ([0, 1, 2, 3, 4, 5, 20, 21, 42, 43, 80], [0, 30, 80]):
        parts = clone(model)
        for start, end in pairwise(cuts):
            parts.partial_fit(X[start:end], y[start:end], sample_weight=h[start:end])
            if start == 4:
                save_model(parts, tmp_path / "model.zip")
                parts = load_model(tmp_path / "model.zip")
            parts = pickle.loads(pickle.dumps(parts)) if start % 2 else copy.deepcopy(parts)
        assert_array_equal(outputs(parts, X), outputs(whole, X))
        assert parts.t_ == whole.t_ and losses(parts) == losses(whole)
    if hasattr(whole, "predict_proba"):
        assert_allclose(whole.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("model", MODELS, ids=NAMES)
def test_a_call_learns_all_or_nothing(model, unchanged):
    X, y = stream()
    bad = X.copy()
    bad[70] = np.nan
    fitted = clone(model).partial_fit(X[:15], y[:15])
    with unchanged(fitted, "NaN"):
        fitted.partial_fit(bad, y)
    with unchanged(fitted, "NaN"):
        fitted.partial_fit(bad, y, sample_weight=np.ones(80))
    with unchanged(fitted, "strings and numbers"):
        fitted.partial_fit(X[:1], ["x"])
    expected = outputs(copy.deepcopy(fitted).partial_fit(X[15:], y[15:]), X)
    assert_array_equal(outputs(fitted.partial_fit(X[15:], y[15:]), X), expected)


@pytest.mark.parametrize("model", MODELS, ids=NAMES)
def test_classes_may_be_announced_and_there_may_be_one(model):
    X, y = stream()
    one = clone(model).partial_fit(X[:4], y[:4])
    assert one.classes_.tolist() == [3] and one.predict(X).tolist() == [3] * 80
    if hasattr(one, "predict_proba"):
        assert_array_equal(one.predict_proba(X), np.ones((80, 1)))
    one.partial_fit(X[4:6], [3, 3], classes=[7, 1])
    assert one.classes_.tolist() == [1, 3, 7]
    two = clone(model).partial_fit(X[:4], y[:4], classes=[3, 8])
    assert two.classes_.tolist() == [3, 8] and set(two.predict(X)) <= {3, 8}
    if hasattr(two, "decision_function"):
        assert two.decision_function(X).shape == (80,)
        assert_array_equal(two.predict(X) == 8, two.decision_function(X) > 0)
    for refused in (PerceptronClassifier(), PNormClassifier(), BayesMixture(EXPERTS)):
        with pytest.raises(ValueError, match="classes must be passed on the first call"):
            refused.partial_fit(X, y)
    with pytest.raises(ValueError, match="weight > 0, or all of its labels"):
        clone(model).partial_fit(X[:2], y[:2], sample_weight=[0, 0])


@pytest.mark.parametrize("model", [MODELS[i] for i in (0, 1, 3, 4, 5, 6)], ids=[NAMES[i] for i in (0, 1, 3, 4, 5, 6)])
def test_one_against_the_rest_is_a_learner_of_the_rows_since_the_first_of_its_class(model):
    """With what the rows before have told about the scales of columns."""
    X, y = stream()
    together = clone(model).set_params(**({"standardize": False} if "standardize" in model.get_params() else {}))
    alone = clone(together).set_params(handle_unknown="error")
    together.partial_fit(X, y)
    for number, label in enumerate(together.classes_):
        start = int(np.argmax(y == label))
        binary = clone(alone).partial_fit(X[start:], y[start:] == label, [False, True])
        assert_array_equal(together.coef_[number], binary.coef_[0])
        assert together.intercept_[number] == binary.intercept_[0]


@pytest.mark.parametrize("update", ["explicit", "implicit"])
def test_the_joint_loss_starts_each_class_at_its_prior(update):
    """Against plain NumPy, with rates 0.3 / sqrt(t) of all rows; implicit steps solve W' = W - eta g(W') x'."""
    X, y = stream()
    model = MirrorDescentClassifier(**GD, multi_class="multinomial", learning_rate="sqrt", update=update)
    model.partial_fit(X, y)
    W, loss = {}, 0.0
    for t, (x, label) in enumerate(zip(np.c_[X, np.ones(80)], y, strict=True), 1):
        W.setdefault(label, np.zeros(5))
        V, target = np.stack(list(W.values())), np.array([other == label for other in W])
        loss -= log_softmax(V @ x)[target][0]
        z, q = V @ x, 0.3 / np.sqrt(t) * (x @ x)
        for _ in range(200 if update == "implicit" else 0):
            z = 0.9 * z + 0.1 * (V @ x - q * (softmax(z) - target))
        V -= 0.3 / np.sqrt(t) * (softmax(z) - target)[:, np.newaxis] * x
        W = dict(zip(W, V, strict=True))
    assert_allclose(np.c_[model.coef_, model.intercept_], [W[label] for label in model.classes_], rtol=1e-6, atol=1e-7)
    assert model.cumulative_loss_ == pytest.approx(loss, rel=1e-7)


def test_what_experts_do_not_know_has_its_prior_probability():
    """Columns are those of the classes at the start; a later one is one of n, and does not change the weights."""
    rng = np.random.default_rng(0)
    P, y = rng.uniform(size=(30, 2)), rng.integers(2, size=30)
    mixture = BayesMixture(handle_unknown="add").partial_fit(P, y, [0, 1])
    weights, loss = mixture.weights_, mixture.cumulative_loss_
    mixture.partial_fit(P[:1], [5])
    assert mixture.cumulative_loss_ - loss == pytest.approx(np.log(3))
    assert_allclose(mixture.weights_, weights, rtol=1e-12)
    p = P[1:] @ weights
    assert_allclose(mixture.predict_proba(P[1:]), np.c_[(1 - p) * 2 / 3, p * 2 / 3, np.full(29, 1 / 3)], rtol=1e-9)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        BayesMixture(handle_unknown="add").partial_fit(P, y)
    stubborn = BayesMixture([("md", MirrorDescentClassifier())], handle_unknown="add").partial_fit(P, y, [0, 1])
    with pytest.raises(ValueError, match="Expert 'md' cannot learn row 0: The label 5"):
        stubborn.partial_fit(P[:1], [5])


def test_fit_knows_all_classes_and_the_first_call_decides(unchanged):
    X, y = stream()
    model = MirrorDescentClassifier(random_state=0, warm_start=True, max_iter=5, tol=None, **ADD).fit(X[:20], y[:20])
    assert model.classes_.tolist() == [1, 3] and model.coef_.shape == (2, 4)
    model.fit(X, y)  # a warm start adds the new classes before its epochs
    assert model.classes_.tolist() == [0, 1, 2, 3, 4] and model.score(X, y) > 0.5
    late = MirrorDescentClassifier().partial_fit(X, y, range(5)).set_params(handle_unknown="add")
    with unchanged(late, "must be 'add' when learning starts"):
        late.partial_fit(X[:1], [9])
    perceptron = PerceptronClassifier(**ADD).partial_fit(X[:20], y[:20])
    with pytest.raises(ValueError, match="one learner for both classes"):
        perceptron.mistake_bound(X[:20], y[:20], np.ones(4))


def test_the_difference_of_two_scores_does_not_overflow_in_silence():
    model = PerceptronClassifier(fit_intercept=False, **ADD).partial_fit([[1.0], [-1.0]] * 9, [0, 1] * 9)
    with pytest.raises(ValueError, match="score of row 1 is not finite"):
        model.decision_function([[1.0], [1.2e308 / np.abs(model.coef_).max()]])
