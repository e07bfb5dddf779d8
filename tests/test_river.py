"""Estimators as models of river: its own checks, and that they learn what they learn from arrays."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler

pytest.importorskip("river", reason="which is an extra")

from river import checks, compat, datasets, evaluate, linear_model, metrics, optim, preprocessing

from onlinebregman import (
    BayesMixture,
    ExpertMixtureRegressor,
    ForwardClassifier,
    ForwardRegressor,
    ImplicitGDRegressor,
    LearningRateMixture,
    LearningRatePath,
    MEGKernelLearner,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    OnlineGaussian,
    ParameterFreeClassifier,
    ParameterFreeRegressor,
    WinnowClassifier,
)
from onlinebregman.pipeline import make_online_pipeline
from onlinebregman.river import RiverAnomalyDetector, RiverClassifier, RiverRegressor, to_river

RNG = np.random.default_rng(0)
X, NAMES = RNG.normal(size=(200, 4)), ["a", "b", "c", "d"]
Y, LABELS = X @ [1.0, -1.0, 2.0, 0.0], X[:, 0] > 0
ROWS = [dict(zip(NAMES, x, strict=True)) for x in X.tolist()]


class Frauds:
    """In place of river's data set of credit cards, which it downloads."""

    def take(self, n):
        rng = np.random.default_rng(1)
        for i in range(n):
            fraud = i % 20 == 19
            yield {f"V{j}": v for j, v in enumerate(rng.normal(size=28) + 3.0 * fraud)}, int(fraud)


MODELS = [
    RiverRegressor(ForwardRegressor(), n_features=30),
    RiverRegressor(MirrorDescentRegressor(), n_features=10_000, sparse=True),
    RiverClassifier(ForwardClassifier(handle_unknown="add"), n_features=30),
    RiverClassifier(MirrorDescentClassifier(), n_features=10_000, sparse=True),
    RiverAnomalyDetector(OnlineGaussian(), n_features=30),
    # random features and pairs are drawn for columns in their order, which is that of the features in the first row
    RiverRegressor(ParameterFreeRegressor(random_features=0, thresholds=False), n_features=10),
    RiverClassifier(ParameterFreeClassifier(random_features=0, thresholds=False), n_features=12),
    RiverClassifier(WinnowClassifier(), n_features=12),
]  # fmt: skip


# That an adapter keeps no rows takes thousands to see, and does not depend on its estimator.
FIRST = {type(model): model for model in reversed(MODELS)}


def named_checks():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(datasets, "CreditCard", Frauds)
        return [
            pytest.param(number, rule, id=f"{number}-{type(model.estimator).__name__}-{rule.__name__}")
            for number, model in enumerate(MODELS)
            for rule in checks.yield_checks(model)
            if FIRST[type(model)] is model or rule.__name__ != "check_bounded_memory_growth"
            if rule.__name__ != "check_init_has_default_params_for_tests"  # there is no default for the estimator
        ]


@pytest.mark.parametrize("number, rule", named_checks())
def test_checks_of_river(number, rule):
    rule(MODELS[number].clone())


def learned(model, targets=Y, rows=ROWS):
    for x, y in zip(rows, targets.tolist(), strict=True):
        model.learn_one(x, y)
    return model


@pytest.mark.parametrize(
    "given",
    [ForwardRegressor(), MirrorDescentRegressor(standardize=True), make_online_pipeline(ImplicitGDRegressor())],
    ids=repr,
)
@pytest.mark.parametrize("options", [{}, {"n_features": 6}, {"n_features": 6, "sparse": True}], ids=str)
def test_dicts_are_rows(given, options):
    model = learned(to_river(given, **options))
    Z = np.pad(X, ((0, 0), (0, options.get("n_features", 4) - 4)))
    Z = csr_array(Z) if options.get("sparse") else Z
    expected = clone(given).partial_fit(Z, Y).predict(Z)
    assert [model.predict_one(x) for x in ROWS] == expected.tolist()


def test_labels_are_those_of_the_stream():
    words = np.where(LABELS, "yes", "no")
    model = learned(to_river(MirrorDescentClassifier(), classes=np.array(["no", "yes"])), words)
    expected = MirrorDescentClassifier().partial_fit(X, words, classes=["no", "yes"])
    assert [model.predict_one(x) for x in ROWS] == expected.predict(X).tolist()
    assert list(model.predict_proba_one(ROWS[0])) == ["no", "yes"]
    assert [*model.predict_proba_one(ROWS[0]).values()] == expected.predict_proba(X[:1])[0].tolist()
    assert set(learned(to_river(MirrorDescentClassifier()), LABELS).predict_proba_one(ROWS[0])) == {False, True}
    with pytest.raises(ValueError, match="'maybe' at row 0 is not one of the classes"):
        model.learn_one(ROWS[0], "maybe")


def test_labels_may_appear_later():
    model = to_river(ForwardClassifier(handle_unknown="add"))
    assert model.predict_one(ROWS[0]) is None and model.predict_proba_one(ROWS[0]) == {}
    for x in ROWS[:3]:
        model.learn_one(x, "one", w=2.0)
    assert model.predict_proba_one(ROWS[0]) == {"one": 1.0} and model.predict_one(ROWS[0]) == "one"
    model.learn_one(ROWS[3], "two")
    expected = ForwardClassifier(handle_unknown="add")
    expected.partial_fit(X[:4], ["one"] * 3 + ["two"], sample_weight=[2, 2, 2, 1])
    assert [*model.predict_proba_one(ROWS[9]).values()] == expected.predict_proba(X[9:10])[0].tolist()
    model.learn_one(ROWS[4], "three")
    assert set(model.predict_proba_one(ROWS[9])) == {"one", "two", "three"}


@pytest.mark.parametrize("n_rows", [0, 5])
def test_labels_without_probabilities(n_rows):
    model = learned(to_river(MirrorDescentClassifier(loss="hinge")), LABELS[:n_rows], ROWS[:n_rows])
    with pytest.raises(NotImplementedError):
        model.predict_proba_one(ROWS[0])


@pytest.mark.parametrize(
    "given",
    [
        LearningRateMixture(MirrorDescentClassifier(handle_unknown="add"), eta0s=3),
        LearningRatePath(MirrorDescentClassifier(handle_unknown="add"), eta0s=3),
        make_online_pipeline(StandardScaler(), ForwardClassifier(handle_unknown="add")),
    ],
    ids=lambda given: type(given).__name__,
)
@pytest.mark.parametrize("labels", [(3, 5), ("cat", "dog")])
def test_labels_may_appear_later_inside_another_estimator(given, labels):
    model = to_river(given)
    for i, x in enumerate(ROWS[:20]):
        model.learn_one(x, labels[i % 2])
    assert model.predict_one(ROWS[0]) in labels
    if hasattr(model.fitted, "predict_proba"):
        assert list(model.predict_proba_one(ROWS[0])) == list(labels)


def test_features_that_appear_later_get_reserved_columns():
    model = to_river(MirrorDescentRegressor(), n_features=3)
    model.learn_one({"a": 1.0}, 1.0)
    model.learn_one({"b": 1.0, "c": 2.0, "a": 0.0}, 1.0)
    assert model.columns == {"a": 0, "b": 1, "c": 2}
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=r"no column for the feature 'late': .* rows of 3 columns"):
        model.learn_one({"a": 1.0, "late": 2.0}, 1.0)
    assert pickle.dumps(model) == before
    assert model.predict_one({"a": 1.0, "late": 2.0}) == model.predict_one({"a": 1.0})  # nothing is known about it


@pytest.mark.parametrize("given", [MirrorDescentRegressor(), ForwardRegressor(standardize=True)], ids=repr)
@pytest.mark.parametrize("sparse", [False, True])
def test_features_that_appear_later_are_added(given, sparse):
    """As if they had been 0 until then."""
    rows = [{name: x[name] for name in list(x)[: 1 + i // 6]} for i, x in enumerate(ROWS)]
    model = learned(to_river(given.set_params(handle_new_features="add"), sparse=sparse), rows=rows)
    announced = learned(to_river(given.set_params(handle_new_features="error"), n_features=4, sparse=sparse), rows=rows)
    assert model.columns == announced.columns and model.fitted.n_features_in_ == 4
    found, expected = ([each.predict_one(x) for x in ROWS] for each in (model, announced))
    assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("began", [False, True])
@pytest.mark.parametrize("given, options", [({}, {"n_features": 9}), ({"handle_new_features": "add"}, {})], ids=str)
def test_features_of_refused_rows_get_no_column(given, options, began):
    models = [to_river(MirrorDescentRegressor(**given), **options) for _ in range(2)]
    if began:
        for model in models:
            learned(model, Y[:5], ROWS[:5])
    refusing, twin = models
    for wrong in ({"late": "red"}, {"late": np.inf}, {"late": 1.0, "later": 10**400}):
        with pytest.raises(ValueError, match=r"late|infinity"):
            refusing.learn_one(ROWS[0] | wrong, 1.0)
        with pytest.raises(ValueError, match="must be numbers"):
            refusing.learn_one(ROWS[0] | {"late": 1.0}, "three")
    for model in models:
        learned(model, Y[5:], [x | {"new": 1.0} for x in ROWS[5:]])
    assert pickle.dumps(refusing.columns) == pickle.dumps(twin.columns) and len(twin.columns) == 5
    assert [refusing.predict_one(x) for x in ROWS] == [twin.predict_one(x) for x in ROWS]


@pytest.mark.parametrize("sparse", [False, True])
def test_the_first_row_may_have_no_features(sparse):
    rows, options = [{}, *ROWS[1:3], {}, ROWS[4]], {"n_features": 4, "sparse": sparse}
    model = learned(to_river(MirrorDescentRegressor(), **options), Y[:5], rows)
    Z = X[:5].copy()
    Z[[0, 3]] = 0.0
    expected = MirrorDescentRegressor().partial_fit(csr_array(Z) if sparse else Z, Y[:5])
    assert [model.predict_one(x) for x in [{}, *ROWS]] == expected.predict(np.r_[np.zeros((1, 4)), X]).tolist()
    with pytest.raises(ValueError, match="no column for the feature 'late'"):
        model.learn_one({"late": 1.0}, 1.0)


def test_missing_features():
    model = learned(to_river(MirrorDescentRegressor(), missing=0))
    assert [model.predict_one(x) for x in ROWS] == MirrorDescentRegressor().partial_fit(X, Y).predict(X).tolist()
    model = learned(to_river(MirrorDescentRegressor(), missing=2.0))
    assert model.predict_one({"a": 1.0, "d": 3.0}) == model.predict_one({"a": 1.0, "b": 2.0, "c": 2.0, "d": 3.0})
    with pytest.raises(ValueError, match=r"missing must be 0 with sparse=True; got 2\.0"):
        to_river(MirrorDescentRegressor(), missing=2.0, sparse=True)


@pytest.mark.parametrize("value", ["red", None, [1.0, 2.0]])
def test_values_that_are_not_numbers_are_named(value):
    model = learned(to_river(MirrorDescentRegressor()))
    before = pickle.dumps(model.fitted)
    with pytest.raises(ValueError, match=r"feature 'c' must be a number; got .*OneHotEncoder"):
        model.learn_one(ROWS[0] | {"c": value}, 1.0)
    assert pickle.dumps(model.fitted) == before


def test_only_online_estimators_are_adapted():
    with pytest.raises(ValueError, match="to_river takes a classifier or regressor with partial_fit"):
        to_river(LinearRegression())
    assert isinstance(to_river(OnlineGaussian()), RiverAnomalyDetector)
    assert isinstance(to_river(MEGKernelLearner()), RiverRegressor)


def test_pipelines_of_river():
    model = preprocessing.StandardScaler() | to_river(MirrorDescentClassifier())
    score = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.ROCAUC())
    assert score.get() > 0.94  # logistic regression by river's SGD: 0.9


def test_models_of_river_are_members_of_mixtures():
    rows = list(datasets.TrumpApproval().take(300))
    R, y = np.array([list(x.values()) for x, _ in rows]), np.array([y for _, y in rows])
    single = compat.River2SKLRegressor(linear_model.LinearRegression(optim.Adam(0.1)))
    mixture = ExpertMixtureRegressor([("river", single), ("forward", ForwardRegressor())]).partial_fit(R, y)
    assert mixture.cumulative_loss_ <= mixture.expert_losses_.min() + mixture.regret_bound_
    labels = LABELS.astype(int)
    classifier = compat.River2SKLClassifier(linear_model.LogisticRegression())
    bayes = BayesMixture([("river", classifier), ("ours", MirrorDescentClassifier(divergence="squared_euclidean"))])
    for i in range(len(X)):
        bayes.partial_fit(X[i : i + 1], labels[i : i + 1], classes=[0, 1])
    assert bayes.score(X, labels) > 0.9
