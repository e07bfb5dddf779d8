"""The mixtures against plain NumPy: members that learn alone, Bayes' rule, AdaHedge, shares, stacking, calibration."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from replica import rows_that_end_on_kinks
from scipy.sparse import csr_array
from scipy.special import expit, log_expit
from sklearn.base import clone

from onlinebregman import (
    ForwardClassifier,
    ForwardRegressor,
    ImplicitGDRegressor,
    LearningRateMixture,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    ParameterFreeClassifier,
    ParameterFreeRegressor,
)
from onlinebregman.losses import resolve_loss
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
