"""Many learning rates in one pass: the same models as alone, the best of them, and their mixture with its bound."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from onlinebregman._kernels.learners.hedge import Hedge
from onlinebregman._kernels.learners.mean_mixer import MeanMixer
from onlinebregman._kernels.losses.loss import SquaredLoss
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from scipy import sparse
from sklearn.base import is_classifier, is_regressor

from onlinebregman import (
    BurgRegressor,
    EGRegressor,
    ImplicitGDRegressor,
    LearningRateMixture,
    LearningRatePath,
    ParameterFreeClassifier,
    PerceptronClassifier,
)
from onlinebregman.reference import AdaHedge

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows

RATES = [0.01, 0.1, 1.0]
MODELS = [
    ImplicitGDRegressor(),
    EGRegressor(weights="simplex", average=True),
    BurgRegressor(update="implicit"),
    MirrorDescentRegressor(divergence="p_norm", loss="huber"),
]
CLASSIFIERS = [MirrorDescentClassifier(divergence="squared_euclidean"), PerceptronClassifier()]


def stream(seed=0, rows=60, n=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, n))
    return X, np.abs(X @ rng.dirichlet(np.ones(n))) + 0.1 * rng.normal(size=rows)


def labels(y):
    return np.array(["low", "middle", "high"])[np.digitize(y, [0.1, 0.6])]


@pytest.mark.parametrize("model", [*MODELS, *CLASSIFIERS], ids=str)
@pytest.mark.parametrize("make", [LearningRatePath, LearningRateMixture])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_each_rate_learns_what_it_learns_alone(model, make, layout, state):
    X, y = stream()
    y, first = (labels(y), {"classes": np.unique(labels(y))}) if is_classifier(model) else (y, {})
    together = make(model, eta0s=RATES).partial_fit(layout(X[:20]), y[:20], **first)
    together.partial_fit(layout(X[20:]), y[20:])
    for eta0, estimator in zip(RATES, together.estimators_, strict=True):
        alone = type(model)(**{**model.get_params(), "eta0": eta0}).partial_fit(layout(X), y, **first)
        assert estimator.eta0 == eta0
        assert state(estimator.coef_) == state(alone.coef_)
        assert (state(estimator.intercept_), estimator.t_) == (state(alone.intercept_), alone.t_)
        assert estimator.cumulative_loss_ == alone.cumulative_loss_


@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_a_path_of_classifiers_predicts_as_its_best(model):
    X, y = stream()
    path = LearningRatePath(model, eta0s=RATES).fit(X, labels(y))
    assert_array_equal(path.predict(X), path.best_estimator_.predict(X))
    assert_array_equal(path.decision_function(X), path.best_estimator_.decision_function(X))
    assert hasattr(path, "predict_proba") == hasattr(model, "predict_proba")
    assert path.score(X, labels(y)) == path.best_estimator_.score(X, labels(y))


def test_the_best_rate_is_the_one_with_the_smallest_progressive_loss():
    X, y = stream(rows=300)
    path = LearningRatePath(ImplicitGDRegressor(learning_rate="constant"), eta0s=[1e-4, 0.03, 100.0]).fit(X, y)
    losses = []
    for eta0 in path.eta0s_:
        model = ImplicitGDRegressor(learning_rate="constant", eta0=eta0)
        losses.append(model.partial_fit(X, y).cumulative_loss_)
    assert_array_equal(path.cumulative_losses_, losses)
    assert path.best_eta0_ == 0.03
    assert path.best_index_ == 1
    assert_array_equal(path.predict(X), path.estimators_[1].predict(X))


def test_rates_double_around_that_of_the_estimator():
    X, y = stream()
    path = LearningRatePath(ImplicitGDRegressor(eta0=0.5), eta0s=4).fit(X, y)
    assert_array_equal(path.eta0s_, [0.125, 0.25, 0.5, 1.0])
    assert len(LearningRatePath().fit(X, y).estimators_) == 16


@pytest.mark.parametrize("weighted", [False, True])
def test_the_mixture_equals_adahedge(weighted):
    X, y = stream(rows=200)
    weights = np.random.default_rng(1).choice([0.0, 0.5, 2.0], size=200) if weighted else np.ones(200)
    mixture = LearningRateMixture(eta0s=RATES).partial_fit(X, y, sample_weight=weights)
    models = [ImplicitGDRegressor(eta0=eta0, standardize=True) for eta0 in RATES]
    hedge = AdaHedge(3)
    for i in range(200):
        scores = np.array(
            [model.predict(X[i : i + 1])[0] if model.__sklearn_is_fitted__() else 0.0 for model in models]
        )
        if weights[i] > 0:
            loss, losses = ((a - y[i]) ** 2 / 2 for a in (hedge.v @ scores, scores))
            hedge.learn(weights[i] * losses, weights[i] * loss)
        for model in models:
            model.partial_fit(X[i : i + 1], y[i : i + 1], weights[i : i + 1])
    assert_allclose(mixture.cumulative_losses_, hedge.losses, rtol=1e-12)
    assert_allclose(mixture.cumulative_loss_, hedge.loss, rtol=1e-10)
    assert_allclose(mixture.regret_bound_, 2 * hedge.gap, rtol=1e-9)  # ln K / rate is the gap
    coefs = np.stack([model.coef_ for model in models])
    assert_allclose(mixture.coef_, mixture.weights_ @ coefs, rtol=1e-12)
    expected = X @ mixture.coef_ + mixture.weights_ @ [model.intercept_ for model in models]
    assert_allclose(mixture.predict(X), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("divergence", ["normalized_adagrad", "diagonal_newton", "adagrad"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_the_mixture_predicts_as_its_models_do_beyond_the_largest_values(divergence, layout):
    X, y = stream()
    model = LearningRateMixture(MirrorDescentRegressor(divergence=divergence), eta0s=RATES).partial_fit(layout(X), y)
    for x in layout(10 * X[:1]), layout(10 * X[:5]):
        assert_allclose(model.predict(x), model.weights_ @ [each.predict(x) for each in model.estimators_], rtol=1e-12)
    loss = model.cumulative_loss_ + (model.predict(layout(10 * X[:1]))[0] - 1.0) ** 2 / 2
    assert_allclose(model.partial_fit(layout(10 * X[:1]), [1.0]).cumulative_loss_, loss, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_classifiers_are_mixed_as_by_bayes_rule(n_classes, loss, state):
    """The same numbers as those of ParameterFreeClassifier for these members, without share and stacking."""
    X, y = stream(rows=300)
    y = labels(y) if n_classes == 3 else labels(y) == "low"
    model = MirrorDescentClassifier(divergence="squared_euclidean", loss=loss)
    mixture = LearningRateMixture(model, eta0s=RATES).fit(X, y)
    members = [MirrorDescentClassifier(**{**model.get_params(), "eta0": eta0}) for eta0 in RATES]
    reference = ParameterFreeClassifier(members=members, share=0.0, stacking=False, memory=False).fit(X, y)
    assert state(mixture.predict_proba(X)) == state(reference.predict_proba(X))
    assert state(mixture.weights_) == state(reference.weights_)
    assert_array_equal(mixture.predict(X), reference.predict(X))
    assert_array_equal(mixture.classes_, np.unique(y))
    assert mixture.cumulative_loss_ <= mixture.cumulative_losses_.min() + mixture.regret_bound_
    assert_allclose(mixture.regret_bound_, np.log(3), rtol=1e-12)
    assert mixture.score(X, y) == np.mean(mixture.predict(X) == y)
    if n_classes == 2 and loss == "log_loss":
        assert_allclose(mixture.cumulative_losses_, [model.cumulative_loss_ for model in mixture.estimators_])
    p = [model.predict_proba(X) for model in mixture.estimators_ if hasattr(model, "predict_proba")]
    if p:
        assert_allclose(mixture.predict_proba(X), np.tensordot(mixture.weights_, p, 1), rtol=1e-12)


def test_a_mixture_is_what_its_model_is():
    X, y = stream()
    classifier = LearningRateMixture(PerceptronClassifier(), eta0s=RATES)
    assert is_classifier(classifier) and not is_regressor(classifier)
    assert hasattr(classifier, "predict_proba")
    assert is_regressor(LearningRateMixture()) and not hasattr(LearningRateMixture(), "predict_proba")
    assert hasattr(LearningRateMixture(), "predict_interval") and not hasattr(classifier, "predict_interval")
    classifier.fit(X, labels(y))
    for name in ("coef_", "intercept_"):
        with pytest.raises(AttributeError, match="not a linear model"):
            getattr(classifier, name)
    classifier.partial_fit(X, labels(y))
    assert classifier.t_ == 120
    with pytest.raises(ValueError, match="'later' at row 0 is not one of the classes"):
        classifier.partial_fit(X[:1], ["later"])


@pytest.mark.parametrize("make", [LearningRatePath, LearningRateMixture])
@pytest.mark.parametrize("model", [ImplicitGDRegressor(), EGRegressor(weights="simplex", average=True)], ids=str)
@pytest.mark.parametrize("rows, bad", [(1, 0), (60, 0), (60, 37), (9000, 8500)])
def test_losses_that_add_up_to_infinity_are_refused(make, model, rows, bad, unchanged, state):
    X, y = stream(rows=rows)
    learned, alike = (make(model, eta0s=RATES).partial_fit(*stream(seed=1)) for _ in range(2))
    huge = y.copy()
    huge[bad] = 1e200
    with unchanged(learned, f"loss of row {bad} .*overflows"):
        learned.partial_fit(X, huge)
    with pytest.raises(ValueError, match=f"loss of row {bad} .*overflows"):
        make(model, eta0s=RATES).fit(X, huge)
    learned.partial_fit(X, y)
    alike.partial_fit(X, y)
    assert state(learned.predict(X)) == state(alike.predict(X))
    assert np.isfinite(learned.cumulative_losses_).all()


def test_losses_of_a_classifier_that_add_up_to_infinity_are_refused(unchanged):
    X, y = stream()
    model = LearningRatePath(MirrorDescentClassifier(divergence="squared_euclidean", loss="hinge"), eta0s=RATES).fit(
        X, labels(y)
    )
    weights = np.ones(60)
    weights[41:43] = 1e308
    with unchanged(model, "row 4[12]"):
        model.partial_fit(X * 1e-300, labels(y), sample_weight=weights)


def test_errors_say_what_to_do(unchanged):
    X, y = stream()
    with pytest.raises(ValueError, match="at least two different positive learning rates"):
        LearningRatePath(eta0s=[0.1, 0.1]).fit(X, y)
    with pytest.raises(ValueError, match="at least two different positive learning rates"):
        LearningRatePath(eta0s=[0.1, -1.0]).fit(X, y)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        LearningRatePath(MirrorDescentClassifier(divergence="squared_euclidean")).partial_fit(X, labels(y))
    X[3, 1] = np.nan
    model = LearningRatePath().fit(X[:3], y[:3])
    with unchanged(model, r"NaN \(row 3, column 1\)"):
        model.partial_fit(X, y)


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_holds_where_the_lead_changes_with_each_row(seed):
    """After rows whose gap is a rounding error, the rate is huge: the cost of a change of leader must be counted."""
    rng = np.random.default_rng(seed)
    mixer = MeanMixer(Hedge(2), SquaredLoss(), False, None, None)
    mixer.learn(np.array([[0.0, 1.0]]), np.array([0.4]))
    mixer.learn(rng.uniform(size=(5, 2)) * [0.1, 1.0], np.zeros(5))
    for _ in range(200):
        mixer.learn(np.array([[0.0, 1.0]]), np.array([1.0 - mixer.expert_losses.argmin()]))
    assert mixer.cumulative_loss <= mixer.expert_losses.min() + mixer.regret_bound() + 1e-9


def test_a_mixture_whose_loss_alone_adds_up_to_infinity_is_refused(unchanged):
    """Here the mixture loses more than its models, whose losses are all finite."""
    rng = np.random.default_rng(64)
    n = int(rng.integers(2, 8))
    X, y = rng.choice([-1.0, 1.0, 0.5], size=(n, 1)), rng.choice([-1.0, 1.0], size=n) * rng.uniform(0.5, 1, size=n)
    model = MirrorDescentRegressor(divergence="squared_euclidean", loss="absolute_error", fit_intercept=False)
    small = LearningRateMixture(model, eta0s=[1e-3, 1.0, 1.5]).fit(X, y)
    most = small.cumulative_losses_.max()
    assert small.cumulative_loss_ > 1.1 * most
    scale = 1.7e308 / most
    path = LearningRatePath(model, eta0s=[1e-3, 1.0, 1.5]).fit(X * np.sqrt(scale), y * scale)
    assert_allclose(path.cumulative_losses_, small.cumulative_losses_ * scale)
    mixture = LearningRateMixture(model, eta0s=[1e-3, 1.0, 1.5]).fit(X[:1], y[:1])
    with unchanged(mixture, rf"losses up to row {n - 1} \(target .*\) must be finite"):
        mixture.partial_fit(X * np.sqrt(scale), y * scale)
