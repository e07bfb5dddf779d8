"""The parameter-free mixtures: against plain NumPy, errors of the default sets, in any units, and invalid arguments."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from replica import rows_that_end_on_kinks
from scipy import sparse
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.special import expit, log_expit, xlogy
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.utils import get_tags

from onlinebregman import (
    ForwardClassifier,
    ForwardRegressor,
    ImplicitGDRegressor,
    LearningRateMixture,
    LogDetMetricLearner,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    ParameterFreeClassifier,
    ParameterFreeRegressor,
)
from onlinebregman.losses import PoissonLoss, resolve_loss
from onlinebregman.reference import AdaHedge, ForwardRegression, stacked

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows


CLASSIFIERS = [
    MirrorDescentClassifier(eta0=0.3),
    MirrorDescentClassifier(loss="hinge"),
    ForwardClassifier(alpha=2.0, forgetting=0.99),
    MirrorDescentClassifier(eta0=0.01, loss="squared_hinge", learning_rate="constant"),
]
REGRESSORS = [
    ImplicitGDRegressor(eta0=0.1),
    ForwardRegressor(forgetting=0.95),
    ForwardRegressor(alpha=0.1, forward=False),
    MirrorDescentRegressor(divergence="relative_entropy", signed=True),
]


def rows(n_classes=2, n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    scores = X @ rng.normal(size=(d, n_classes)) + 0.3 * rng.normal(size=(n, n_classes))
    return X, scores.argmax(axis=1)


def targets(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, 5.0 + X @ np.arange(1.0, d + 1) + 0.2 * rng.normal(size=n)


class Calibration:
    """p_c ~ sigmoid(slope * score_c + offset), one Newton step a row on the sum of the classes' log losses."""

    def __init__(self):
        self.theta, self.precision = np.array([1.0, 0.0]), np.eye(2)

    def log_proba(self, scores):
        scores = np.column_stack([scores, np.ones(len(scores))]) @ self.theta
        logs = log_expit([-scores[0], scores[0]]) if len(scores) == 1 else log_expit(scores)
        return logs - np.logaddexp.reduce(logs)

    def learn(self, scores, y, weight):
        z = np.column_stack([scores, np.ones(len(scores))])
        p = expit(z @ self.theta)
        hits = np.array([y == 1]) if len(scores) == 1 else np.arange(len(scores)) == y
        self.precision = self.precision + weight * (z * (p * (1 - p))[:, np.newaxis]).T @ z
        step = np.linalg.solve(self.precision, weight * z.T @ (p - hits))
        with np.errstate(divide="ignore"):
            part = ((np.abs(z @ self.theta) + 10) / np.abs(z @ step)).min()  # no logit passes 10 on the other side of 0
        self.theta = self.theta - min(part, 1.0) * step


class Combinations:
    """Ridge regressions of one target each: two for numbers, and one more for classes."""

    def __init__(self, n, of_classes=False):
        self.each = [ForwardRegression(n, 1, 0.1, gamma=0.999), ForwardRegression(n, 1, 10.0)]
        self.each += [ForwardRegression(n, 1, 1.0, gamma=0.999)] * of_classes

    @property
    def coef(self):
        return np.array([each.w[:, 0] for each in self.each])

    def forward(self, x):
        return np.array([each.predict(x)[0] for each in self.each])

    def learn(self, xs, ys, weight):
        for each, x, y in zip(self.each, xs, ys, strict=True):
            each.learn(x, [y], weight)


def logits(logs):
    """Of two classes the log odds, else logarithms less the largest; one row for each."""
    return logs[..., 1:] - logs[..., :1] if logs.shape[-1] == 2 else logs - logs.max(axis=-1, keepdims=True)


def log_softmax(a):
    return log_expit(np.array([-a[0], a[0]])) if len(a) == 1 else a - np.logaddexp.reduce(a)


def logarithms(model, calibration, x):
    if isinstance(model, MirrorDescentClassifier) and model.loss != "log_loss":
        return calibration.log_proba(np.ravel(model.decision_function(x)))
    return model.predict_log_proba(x)[0]


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("share", [0.0, 0.05])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("stacking", [False, True])
def test_the_classifier_is_bayes_rule_over_members_that_learn_alone(n_classes, share, weighted, stacking):
    X, y = rows(n_classes)
    classes = np.arange(n_classes)
    weights = np.random.default_rng(1).choice([0.0, 0.5, 2.0], size=60) if weighted else np.ones(60)
    weights[0] = 1.0
    mixture = ParameterFreeClassifier(members=CLASSIFIERS, share=share, stacking=stacking, memory=False)
    alone = [type(model)(**model.get_params()) for model in CLASSIFIERS]
    scales = [Calibration() for _ in alone]
    losses, v, total, counts = np.zeros(4), np.full(4, 0.25), 0.0, np.zeros(n_classes)
    stack, top = Combinations(4, True), AdaHedge(4, share, 1.0, [4 / 7, 1 / 7, 1 / 7, 1 / 7])
    for i in range(60):
        x, label = X[i : i + 1], y[i : i + 1]
        if i == 0:  # members have scores of 0 before the first row
            logs = np.full((4, n_classes), -np.log(n_classes))
        else:
            logs = np.array([logarithms(*pair, x) for pair in zip(alone, scales, strict=True)])
            assert_allclose(mixture.weights_, v, rtol=1e-8, atol=1e-14)
        p = v @ np.exp(logs)
        own = logits(np.log(p))
        apart = np.clip(logits(logs) - own, -10, 10)
        votes = np.exp(8 * logs) / np.exp(8 * logs).sum(axis=1, keepdims=True)
        votes = votes[:, 1:] - votes[:, :1] if n_classes == 2 else votes
        features, bases = [apart, apart, votes], [own, own, np.zeros(len(own))]
        combined = [stacked(m, m + x, b) for x, m, b in zip(features, bases, stack.coef, strict=True)]
        combined = np.array([log_softmax(a) for a in combined])
        u = top.v if stacking else np.array([1.0, 0.0, 0.0, 0.0])
        said = u @ np.vstack([p, np.exp(combined)])
        if i:
            assert_allclose(mixture.predict_proba(x)[0], said, rtol=1e-8, atol=1e-12)
        if i and stacking:
            assert_allclose(mixture.stacking_weights_, u, rtol=1e-7)
            assert_allclose(mixture.stacking_coef_, stack.coef, rtol=1e-7, atol=1e-12)
        if weights[i] > 0:
            seen = counts[counts > 0]
            part = top.share = share / np.mean(1 / seen) / seen.mean() if len(seen) > 1 else 0.0
            counts[y[i]] += weights[i]
            top.learn(-weights[i] * np.append(np.log(p[y[i]]), combined[:, y[i]]), -weights[i] * np.log(said[y[i]]))
            hit = np.arange(n_classes) == y[i]
            rises = (hit - np.exp(combined))[:, -len(own) :]
            gradients = np.array([x @ rise for x, rise in zip(features, rises, strict=True)])
            stack.learn(gradients, (stack.coef * gradients).sum(axis=1) + 1, weights[i])
            cost = -logs[:, y[i]]
            losses += weights[i] * cost
            total -= weights[i] * np.log(v @ np.exp(-cost))
            v = v * np.exp(-weights[i] * (cost - cost.min()))
            v = (1 - part) * v / v.sum() + part / 4
            for k, model in enumerate(alone):
                scores = np.ravel(model.decision_function(x)) if i else np.zeros(1 if n_classes == 2 else n_classes)
                scales[k].learn(scores, y[i], weights[i])
        for model in alone:
            model.partial_fit(x, label, classes=classes, sample_weight=weights[i : i + 1])
        mixture.partial_fit(x, label, classes=classes, sample_weight=weights[i : i + 1])
    assert_allclose(mixture.cumulative_losses_, losses, rtol=1e-9)
    if not weighted:  # a row of weight h is one row, whose mix loss is below h times the loss
        assert_allclose(mixture.cumulative_loss_, top.loss if stacking else total, rtol=1e-9)
        assert mixture.cumulative_loss_ - losses.min() <= mixture.regret_bound_
    for model, estimator in zip(alone, mixture.estimators_, strict=True):
        assert_array_equal(model.coef_, estimator.coef_)
        assert model.t_ == estimator.t_


def test_the_order_of_columns_does_not_matter_where_members_end_on_kinks():
    X, y, order = rows_that_end_on_kinks("hinge", 0)
    members = [
        MirrorDescentClassifier(divergence=name, loss="hinge")
        for name in ("adagrad", "normalized_adagrad", "diagonal_newton")
    ]
    one, two = (ParameterFreeClassifier(members=members).fit(rows, y) for rows in (X, X[:, order]))
    assert_allclose(two.cumulative_losses_, one.cumulative_losses_, rtol=1e-9)
    assert_allclose(two.predict_proba(X[:, order]), one.predict_proba(X), rtol=1e-9)


HINGE = MirrorDescentClassifier(divergence="squared_euclidean", loss="hinge", eta0=0.1)


def with_large_rows(n_classes, size):
    """Rows, some of that size with other labels, and the first ones again."""
    X, y = rows(n_classes)
    return np.concatenate([X, X[:20] * size, X]), np.concatenate([y, y[::-1][:20], y])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_far_on_the_wrong_side_do_not_spoil_a_calibration(n_classes):
    """There the log loss has a slope and no curvature, so that Newton's step would be as long as the score is large."""
    X, y = with_large_rows(n_classes, 1e3)
    mixture = ParameterFreeClassifier(members=[HINGE]).partial_fit(X, y, classes=np.arange(n_classes))
    alone, scale, losses = clone(HINGE), Calibration(), []
    for i in range(len(y)):
        scores = np.ravel(alone.decision_function(X[i : i + 1])) if i else np.zeros(n_classes if n_classes > 2 else 1)
        losses.append(-scale.log_proba(scores)[y[i]])
        scale.learn(scores, y[i], 1.0)
        alone.partial_fit(X[i : i + 1], y[i : i + 1], classes=np.arange(n_classes))
    assert_allclose(mixture.cumulative_losses_, sum(losses), rtol=1e-8)
    assert np.mean(losses[-60:]) < 1.1 * np.log(n_classes)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("size", [1e80, 1e152])
def test_calibrations_of_scores_whose_squares_overflow(n_classes, size):
    X, y = with_large_rows(n_classes, size)
    hinge = clone(HINGE).set_params(update="explicit")
    mixture = ParameterFreeClassifier(members=[hinge, hinge]).partial_fit(X, y, classes=np.arange(n_classes))
    assert np.isfinite(mixture.cumulative_losses_).all()
    assert_allclose(mixture.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber", "quantile"])
@pytest.mark.parametrize("share", [0.0, 0.05])
@pytest.mark.parametrize("stacking", [False, True])
def test_the_regressor_is_adahedge_over_members_that_learn_alone(loss, share, stacking):
    X, y = targets()
    members = REGRESSORS if loss == "squared_error" else [MirrorDescentRegressor(loss=loss), *REGRESSORS]
    mixture = ParameterFreeRegressor(members=members, loss=loss, share=share, stacking=stacking, memory=False)
    alone = [type(model)(**model.get_params()) for model in members]
    for model in alone:
        model._learns_residuals = True  # targets minus the mean of those before
    n = len(alone)
    hedge, top, stack, residuals, moved = AdaHedge(n, share), AdaHedge(3, share), Combinations(n), [], 0.0
    value = resolve_loss(loss).value
    for i in range(60):
        x, before = X[i : i + 1], y[:i]
        a = np.zeros(n)
        if i:
            a = np.array([model.predict(x)[0] for model in alone]) + before.mean()
            a = np.clip(a, before.min(), before.max())
        mean = hedge.v @ a
        combined, scale = np.full(2, mean), 0.0
        if i > 1:
            scale = np.sqrt(np.mean(np.square(residuals)))
            apart = (a - mean) / scale
            combined = np.clip(mean + scale * stack.forward(apart), before.min(), before.max())
        said = top.v @ np.append(mean, combined) if stacking else mean
        if i:  # members and weights are learned without the offset of a quantile
            offset = mixture._fitted_mixer().target_stats["offset"]
            assert_allclose(mixture.predict(x)[0], said + offset, rtol=1e-8)
            moved += float(value(said + offset, y[i]) - value(said, y[i]))
        hedge.learn(value(a, y[i]), float(value(mean, y[i])))
        top.learn(value(np.append(mean, combined), y[i]), float(value(said, y[i])))
        if scale:
            stack.learn([apart, apart], np.full(2, (y[i] - mean) / scale), 1.0)
        if i:
            residuals.append(y[i] - mean)
        for model in alone:
            model.partial_fit(x, y[i : i + 1] - (before.mean() if i > 1 else y[i]))
        mixture.partial_fit(x, y[i : i + 1])
    assert_allclose(mixture.cumulative_losses_, hedge.losses, rtol=1e-9)
    assert_allclose(mixture.cumulative_loss_, (top.loss if stacking else hedge.loss) + moved, rtol=1e-8)
    assert (moved != 0) == (loss == "quantile")
    assert mixture.cumulative_loss_ - hedge.losses.min() <= mixture.regret_bound_
    if stacking:
        assert_allclose(mixture.stacking_coef_, stack.coef, rtol=1e-6, atol=1e-9)
        assert_allclose(mixture.stacking_weights_, top.v, rtol=1e-6)


def test_a_member_without_an_intercept_that_forgets_has_no_mean_of_targets():
    """What the mixture subtracts moves no other mean of its own."""
    X, y = targets()
    member = ForwardRegressor(fit_intercept=False, forgetting=0.9)
    mixture = ParameterFreeRegressor(members=[member], stacking=False, memory=False)
    for i in range(60):
        x, before = X[i : i + 1], y[:i]
        if i:
            expected = np.clip(member.predict(x) + before.mean(), before.min(), before.max())
            assert_allclose(mixture.predict(x), expected, rtol=1e-8)
        member.partial_fit(x, y[i : i + 1] - (before.mean() if i > 1 else y[i]))
        mixture.partial_fit(x, y[i : i + 1])


def test_the_history_does_not_grow_with_the_stream():
    X, y = rows(n=5000, d=2)
    model = ParameterFreeClassifier(members=CLASSIFIERS[:2])
    model.partial_fit(X[:50], y[:50], classes=[0, 1])
    assert_array_equal(model.weights_history_t_, np.arange(1, 51))
    for start in range(50, 5000, 99):
        model.partial_fit(X[start : start + 99], y[start : start + 99])
    t = model.weights_history_t_
    assert 64 <= len(t) <= 128
    assert len(np.unique(np.diff(t))) == 1
    whole = ParameterFreeClassifier(members=CLASSIFIERS[:2]).partial_fit(X, y, classes=[0, 1])
    assert_array_equal(whole.weights_history_, model.weights_history_)
    assert_allclose(model.weights_history_.sum(axis=1), 1.0)


@pytest.mark.parametrize("exponent", [-150, 120])
def test_combinations_do_not_depend_on_the_unit_of_the_target(exponent):
    X, y = targets()
    model = ParameterFreeRegressor(members=REGRESSORS[1:2] * 2 + [ForwardRegressor()]).fit(X, y)
    other = ParameterFreeRegressor(members=REGRESSORS[1:2] * 2 + [ForwardRegressor()]).fit(X, y * 2.0**exponent)
    assert_array_equal(other.predict(X) * 2.0**-exponent, model.predict(X))
    assert_array_equal(other.stacking_coef_, model.stacking_coef_)


def test_a_combination_that_overflows_is_refused(unchanged):
    X, y = targets()
    model = ParameterFreeRegressor(members=REGRESSORS[:2]).partial_fit(X, y)
    with unchanged(model, r"row 0 \(target 1e\+300\).*[Ss]cale features and targets"):
        model.partial_fit(X[:1], [1e300])


@pytest.mark.parametrize(
    "model",
    [
        ParameterFreeRegressor(members=[MirrorDescentRegressor()]),
        ParameterFreeRegressor(members=[MirrorDescentRegressor(loss="poisson")], loss="poisson"),
        ParameterFreeClassifier(members=[MirrorDescentClassifier()]),
        LearningRateMixture(MirrorDescentRegressor()),
    ],
    ids=str,
)
def test_sparse_rows_without_any_value_are_rows_of_zeros(model):
    zeros, targets = np.zeros((4, 5)), np.array([0.0, 1.0, 1.0, 0.0])
    sparse = clone(model).fit(csr_array(zeros), targets).partial_fit(csr_array(zeros[:1]), targets[:1])
    dense = clone(model).fit(zeros, targets).partial_fit(zeros[:1], targets[:1])
    assert_allclose(sparse.predict(csr_array(zeros)), dense.predict(zeros), rtol=1e-12)
    assert_allclose(sparse.cumulative_loss_, dense.cumulative_loss_, rtol=1e-12)


@pytest.mark.parametrize("exponents", [[-6, 6, 0], [3, -2, -6]])
def test_units_do_not_matter(exponents):
    rng = np.random.default_rng(0)
    X, w, units = rng.normal(size=(300, 3)), np.array([1.0, -2.0, 0.5]), 10.0 ** np.array(exponents)
    y = X @ w + 0.1 * rng.normal(size=300)
    here, there = (ParameterFreeRegressor().partial_fit(*data) for data in ((X, y), (X * units + 7 * units, 1e6 * y)))
    assert_allclose(there.predict(X * units + 7 * units), 1e6 * here.predict(X), rtol=1e-6)
    here, there = (ParameterFreeClassifier().fit(Z, y > 0) for Z in (X, X * units + 7 * units))
    assert_allclose(there.predict_proba(X * units + 7 * units), here.predict_proba(X), rtol=1e-6, atol=1e-9)


def test_sparse_rows_of_many_columns_have_no_second_order_members():
    X = sparse.random(200, 3000, density=0.01, random_state=0, format="csr")
    y = (X @ np.random.default_rng(1).normal(size=3000) > 0).astype(int)
    model = ParameterFreeClassifier().fit(X, y)
    assert not any(isinstance(estimator, ForwardClassifier) for estimator in model.estimators_)
    assert model.predict_proba(X).shape == (200, 2)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("kind", [ParameterFreeClassifier, ParameterFreeRegressor])
def test_random_features_are_those_of_four_members(kind):
    X, y = load_breast_cancer(return_X_y=True)
    for number, expected in ((32, [32, 32, 32, 64]), (0, [])):
        members = kind(random_features=number).fit(X[:50], y[:50]).estimators_
        assert [member.random_features for member in members if getattr(member, "random_features", 0)] == expected


def test_members_can_be_used_by_themselves():
    X, y = load_breast_cancer(return_X_y=True)
    model = ParameterFreeClassifier().fit(X, y)
    best = model.best_estimator_
    assert best.score(X, y) > 0.95
    assert best.coef_.shape == (1, 30)
    assert model.best_index_ == model.cumulative_losses_.argmin()
    assert model.t_ == best.t_ == len(y)


def test_class_weights_weigh_the_rows():
    X, y = load_breast_cancer(return_X_y=True)
    weighted = ParameterFreeClassifier(class_weight={0: 3.0}).partial_fit(X, y, classes=[0, 1])
    alike = ParameterFreeClassifier().partial_fit(X, y, classes=[0, 1], sample_weight=np.where(y == 0, 3.0, 1.0))
    assert_array_equal(weighted.predict_proba(X), alike.predict_proba(X))
    balanced = ParameterFreeClassifier(class_weight="balanced").fit(X, y)
    assert balanced.predict_proba(X)[:, 0].mean() > ParameterFreeClassifier().fit(X, y).predict_proba(X)[:, 0].mean()


@pytest.mark.parametrize(("seed", "weight"), [(4, 1e145), (39, 1e150)])
def test_combinations_survive_weights_beyond_all_scales(seed, weight):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    model = ParameterFreeClassifier(thresholds=False, random_features=0 if seed == 4 else 128)
    model.partial_fit(X[:20], y[:20], classes=[0, 1, 2], sample_weight=weight)
    for i in range(20, 60):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    assert np.isfinite(model.predict_proba(X)).all()


def with_text(X):
    return np.column_stack([X.astype(object), np.resize(["red", "blue"], len(X)).astype(object)])


@pytest.mark.parametrize("make", [np.asarray, with_text], ids=["dense", "categories"])
def test_features_whose_deviations_overflow_are_called_so(unchanged, make):
    """One absurd value is limited; a column of which no deviation can be computed is refused, by its name."""
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    huge = X.copy()
    huge[:3, 1] = 1.7e308, 1e307, -1.7e308
    for model, known, match in (  # rows without a deviation are not limited
        (ParameterFreeRegressor(), 1, r"Row 0 \(largest feature 1e\+307"),
        (ParameterFreeClassifier(), 2, "means and deviations of the features of rows up to row 0, .* are not finite"),
    ):
        model.fit(make(X), y)
        model.partial_fit(make(np.where(np.abs(X) == np.abs(X).max(), 1e300, X)), y)
        assert np.isfinite(model.predict(make(X))).all()
        model.fit(make(huge[:known]), y[:known])
        with unchanged(model, match):
            model.partial_fit(make(huge[known : known + 1]), y[known : known + 1])


def test_the_member_that_refuses_a_row_is_known():
    """Gradient descent members learn a dense row first, although other members stand between them in the list."""
    gentle, wild = (
        MirrorDescentRegressor(divergence="squared_euclidean", update="explicit", learning_rate="constant", eta0=eta)
        for eta in (1e-3, 1e300)
    )
    adaptive = MirrorDescentRegressor()
    model = ParameterFreeRegressor(members=[gentle, adaptive, gentle, wild, adaptive])
    model.partial_fit(np.zeros((3, 1)), [0.0, 1.0, 3.0])
    with pytest.raises(ValueError, match=r"row 0.*eta0=1e\+300"):
        model.partial_fit([[1e5], [1e5]], [9.0, 1.0])
    assert model._learner.refusing == 3


def test_errors_say_what_to_do():
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.raises(ValueError, match=r"members\[1\] must be of type .*; got LogDetMetricLearner"):
        ParameterFreeClassifier(members=[MirrorDescentClassifier(), LogDetMetricLearner()]).fit(X, y)
    with pytest.raises(ValueError, match=r"members\[0\] must be of type .*; got ImplicitGDRegressor"):
        ParameterFreeClassifier(members=[ImplicitGDRegressor()]).fit(X, y)
    for members in ([("name", ForwardRegressor())], [None], [5], "names", [ForwardRegressor]):
        with pytest.raises(ValueError, match=r"members\[0\] must be of type .*Regressor or .*; got "):
            ParameterFreeRegressor(members=members).fit(X, y)
    with pytest.raises(ValueError, match="members must hold at least one model"):
        ParameterFreeRegressor(members=[]).fit(X, y)
    with pytest.raises(ValueError, match="'share' parameter"):
        ParameterFreeClassifier(share=1.0).fit(X, y)
    with pytest.raises(AttributeError, match="ParameterFreeClassifier has not learned a row yet"):
        _ = ParameterFreeClassifier().weights_


@pytest.mark.parametrize("first", [np.array, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("cut", [1, 7, 120])
def test_members_that_map_rows_in_different_ways_learn_as_by_themselves(cut, first):
    """Rows as they are, standardised, indicators of columns and of pairs that share their bins; dense and sparse."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:240, :6], y[:240]
    make = partial(MirrorDescentClassifier, divergence="diagonal_newton")
    members = [
        make(standardize=False),
        make(thresholds="no_interactions"),
        make(standardize=True),
        make(thresholds=[(0, 1), (4, 2)]),
        ForwardClassifier(standardize=True),
        make(thresholds="pairwise", divergence="normalized_adagrad", average=3),
        make(thresholds="no_interactions", divergence="squared_euclidean", learning_rate="sqrt"),
        make(),
    ]
    mixture, alone = ParameterFreeClassifier(members=members), [clone(member) for member in members]
    for start in range(0, len(y), cut):
        rows = first(X[start : start + cut]) if start == 0 else X[start : start + cut]
        for model in (mixture, *alone):
            model.partial_fit(rows, y[start : start + cut], classes=[0, 1])
    for member, own in zip(mixture.estimators_, alone, strict=True):
        assert_array_equal(member.decision_function(X), own.decision_function(X))
    maps = [learner.row_map for learner in mixture._learner.learners]
    assert maps[1] is maps[6] and maps[2] is maps[4] is maps[7] and maps[0] is None
    assert len({id(maps[number].bins) for number in (1, 3, 5, 6)}) == 1


def test_rows_that_come_sparse_have_more_rates():
    X, y = load_breast_cancer(return_X_y=True)

    def rates(X):
        members = ParameterFreeClassifier(random_features=0, thresholds=False).fit(X, y[:50]).estimators_
        return [m.eta0 for m in members if isinstance(m, MirrorDescentClassifier) and m._link == "logistic"]

    dense, stored = rates(X[:50]), rates(sparse.csr_matrix(X[:50]))
    assert 0.3 in stored and 0.3 not in dense and len(stored) == 10 and len(dense) == 11


def test_tags_say_which_targets_are_admissible():
    assert not get_tags(ParameterFreeRegressor()).target_tags.positive_only
    assert not get_tags(ParameterFreeRegressor(loss="no such loss")).target_tags.positive_only
    for model in (
        *(ParameterFreeRegressor(loss=loss) for loss in ("poisson", "gamma", "log_loss", PoissonLoss())),
        ParameterFreeRegressor(loss="poisson", members=[ForwardRegressor(loss="poisson")]),
    ):
        assert get_tags(model).target_tags.positive_only
        with pytest.raises(ValueError, match="row 1"):
            model.fit(np.eye(3), [0.5, -1.0, 0.5])


# --- the best member may change ---------------------------------------------------------------------------------------


def stream(seed, labels, n_parts, n=4000, d=5):
    """Rows whose targets follow other coefficients in each part."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    a = (X * np.repeat(rng.normal(size=(n_parts, d)), n // n_parts, axis=0)).sum(axis=1)
    return X, (rng.random(n) < 1 / (1 + np.exp(-3 * a))) if labels else a + 0.3 * rng.normal(size=n)


def loss(labels, share, X, y):
    make = ParameterFreeClassifier if labels else ParameterFreeRegressor
    return make(share=share, random_features=0).fit(X, y).cumulative_loss_


@pytest.mark.parametrize("labels", [True, False])
def test_a_share_is_ahead_where_coefficients_change(labels):
    """Over several streams: which members lead before the first change, and so the gain, depends on the first rows."""
    streams = [stream(seed, labels, n_parts=4) for seed in range(8)]
    shared, alone = (np.array([loss(labels, share, X, y) for X, y in streams]) for share in (0.001, 0.0))
    assert shared.sum() < 0.97 * alone.sum()
    assert (shared < 1.01 * alone).all()


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_a_share_costs_little_where_nothing_drifts(seed, labels):
    X, y = stream(seed, labels, n_parts=1)
    assert loss(labels, 0.001, X, y) < 1.02 * loss(labels, 0.0, X, y)


# --- a class of one in a thousand -------------------------------------------------------------------------------------


ONE_IN = 1000
N = 20_000


def rare_stream(seed):
    """Rows and their probabilities of the rare class, which depend on three columns weakly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * N, 3))
    a = X @ (rng.choice([-0.5, 0.5], size=3) * rng.uniform(0.7, 1.3, size=3))
    p = expit(a + brentq(lambda b: expit(a + b).mean() - 1 / ONE_IN, -20.0, 0.0))
    return X, p, rng.random(2 * N) < p


def log_loss(p, q):
    return -np.mean(xlogy(p, q) + xlogy(1 - p, 1 - q))


def order(p, q):
    """The probability that a row of the rare class has a larger q than another one (AUC)."""
    p = p[np.argsort(q)]
    return np.cumsum(1 - p) @ p / (p.sum() * (1 - p).sum())


@pytest.mark.parametrize("n_common", [1, 2])
def test_rare_classes_are_told_apart(n_common):
    """Better than by their share alone, without and with combinations; common classes may be as tosses of a coin."""
    found = []
    for seed in range(6):
        X, p, rare = rare_stream(seed)
        y = np.where(rare, 2, np.random.default_rng(seed).integers(n_common, size=2 * N))
        of_both = []
        for stacking in (False, True):
            model = ParameterFreeClassifier(
                stacking=stacking, memory=False, random_features=0, thresholds=False, shuffle=False
            )
            model.fit(X[:N], y[:N])
            q = model.predict_proba(X[N:])[:, -1]
            of_both.append((q.mean() / p[N:].mean(), log_loss(p[N:], q), order(p[N:], q)))
        found.append(of_both)
    (_, loss, auc), (share, stacked_loss, stacked_auc) = np.mean(found, axis=0)
    assert max(loss, stacked_loss) < log_loss(1 / ONE_IN, 1 / ONE_IN)
    assert stacked_auc > auc - 0.002 and stacked_loss < loss + 1e-5
    assert 1 / 1.15 < share < 1.15
