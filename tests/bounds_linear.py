"""The bounds of linear models, see bounds.py."""

import copy

import numpy as np
from adversarial import Rows, kind, learn, some_weights
from raw import MirrorDescentClassifier, MirrorDescentRegressor, ScaleInvariantClassifier, ScaleInvariantRegressor
from scipy.optimize import minimize

from onlinebregman import (
    BurgRegressor,
    ForwardClassifier,
    ForwardRegressor,
    PerceptronClassifier,
    WinnowClassifier,
    merge,
)
from onlinebregman.constraints import Box, L2Ball, UpperBound
from onlinebregman.divergences import (
    AdaGrad,
    BinaryEntropy,
    Burg,
    DiagonalNewton,
    NormalizedAdaGrad,
    PNorm,
    RelativeEntropy,
    SimplexEntropy,
    SquaredEuclidean,
)
from onlinebregman.losses import HingeLoss, HuberLoss, LogisticLoss, QuantileLoss, SquaredLoss
from onlinebregman.penalties import L1, L2, ElasticNet

# --- first-order linear models ----------------------------------------------------------------------------------------

# divergence, signed, constraint; comparators are these sizes times what `comparator` draws
GEOMETRIES = {
    "euclidean": (SquaredEuclidean(), False, None),
    "ball": (SquaredEuclidean(), False, L2Ball(1.5)),
    "box": (SquaredEuclidean(), False, Box(-0.5, 1.0)),
    "p-norm": (PNorm(4.0), False, None),
    "entropy": (RelativeEntropy(), False, None),
    "entropy below": (RelativeEntropy(), False, UpperBound(1.0)),
    "simplex": (SimplexEntropy(1.5), False, None),
    "signed simplex": (SimplexEntropy(1.5), True, None),
    "burg": (Burg(), False, None),
    "burg below": (Burg(), False, UpperBound(1.0)),
    "binary": (BinaryEntropy(), False, None),
    "adagrad": (AdaGrad(), False, None),
    "normalized": (NormalizedAdaGrad(), False, None),
    "newton": (DiagonalNewton(), False, None),
}
LOSSES = [SquaredLoss(), HuberLoss(0.5), QuantileLoss(0.3), LogisticLoss(), HingeLoss()]


def comparator(rng, name, n):
    """Weights in the domain and within the constraint."""
    divergence, signed, constraint = GEOMETRIES[name]
    if divergence.total is not None:
        u = rng.dirichlet(np.full(n, rng.choice([0.1, 1.0]))) + 1e-12
        u *= divergence.total / u.sum()
        return u * rng.choice([-1.0, 1.0], size=n) * rng.choice([1.0, rng.uniform()]) if signed else u
    u = rng.normal(size=n) * rng.choice([0.0, 0.1, 1.0, 10.0])
    if divergence.lower == 0:
        u = np.clip(np.abs(u), 1e-6, 1 - 1e-6 if divergence.upper == 1 else None)
    return u if constraint is None else constraint.project(divergence, u)


def best_weights(name, loss, X, y, weights, start):
    """Nearly the best weights of the set for a smooth or other loss, by a few steps of a general method."""
    divergence, signed, constraint = GEOMETRIES[name]
    if signed or (divergence.total is not None):
        return start
    low = max(divergence.lower, -np.inf if constraint is None else constraint.lower) + 1e-6 * (divergence.lower == 0)
    high = min(divergence.upper, np.inf if constraint is None else constraint.upper)
    box = [(None if low == -np.inf else low, None if high == np.inf else high - 1e-6 * (high == divergence.upper))]
    u = minimize(
        lambda u: float((weights * loss.value(X @ u, y)).sum()),
        start,
        method="L-BFGS-B",
        bounds=box * len(start),
        options={"maxiter": 8},
    ).x
    return constraint.project(divergence, u) if isinstance(constraint, L2Ball) else u


@kind
def linear_certificates(rng):
    name, n, n_rows = rng.choice(list(GEOMETRIES)), int(rng.integers(1, 5)), 24
    divergence, signed, constraint = GEOMETRIES[name]
    loss, update = LOSSES[rng.integers(len(LOSSES))], rng.choice(["explicit", "implicit", "importance"])
    penalty = None
    if rng.uniform() < 0.3 and not signed and name not in ("simplex", "p-norm"):
        penalty = (L1(0.05), L2(0.5), ElasticNet(0.1, 0.5))[rng.integers(3)]
    model = MirrorDescentRegressor(
        divergence=divergence, signed=signed, constraint=constraint, loss=loss, update=update, penalty=penalty,
        eta0=10 ** rng.uniform(rng.choice([-60, -3]), -1 if update == "explicit" else 1), track_regret=True,
        learning_rate=rng.choice(["constant", "invscaling"]), fit_intercept=bool(rng.integers(2)),
    )  # fmt: skip
    u, rates, weights = comparator(rng, name, n), [], some_weights(rng, n_rows, 3.0)
    try:
        X, y, weights = learn(rng, model, loss, u, 0.3, n_rows, weights=weights, rates=rates)
    except ValueError:
        return  # an explicit step that leaves the domain at once, or overflows
    others = [comparator(rng, name, n) for _ in range(2)]
    comparators = [u, best_weights(name, loss, X, y, weights, u), *others]
    constant = np.ptp(rates) == 0 and rates[0] > 0
    in_ball = isinstance(constraint, L2Ball) and not model.fit_intercept
    for v in comparators:
        b = rng.uniform(-1, 1) * model.fit_intercept
        losses = weights * loss.value(X @ v + b, y)
        lost, bound = rates @ losses, model.regret_bound(v, b, weighted=True)
        yield model.weighted_loss_ - lost, bound, model.weighted_loss_ + lost + abs(bound)
        if constant or in_ball:
            largest = (np.linalg.norm(v) + 1.5) ** 2 / 2 * (1 + 1e-12) if in_ball else None
            lost, bound = losses.sum(), model.regret_bound(v, b, largest_divergence=largest)
            yield model.cumulative_loss_ - lost, bound, model.cumulative_loss_ + lost + abs(bound)
    if not constant:
        return
    radius = None if model._comparators().bounded else 1.5
    gap = model.regret_bound(radius=radius, largest_intercept=1.0 if model.fit_intercept else None)
    for v in comparators:
        b = rng.uniform(-1, 1) * model.fit_intercept
        if radius is not None:
            order = getattr(divergence, "q", 2.0 if divergence.lower < 0 else 1.0)
            v = np.maximum(v / max(1.0, np.linalg.norm(v, order) / 1.49), divergence.lower + 1e-9)
        lost = float((weights * loss.value(X @ v + b, y)).sum())
        lost += 0.0 if penalty is None else (weights > 0).sum() * penalty.value(v)
        yield model.cumulative_loss_ - lost, gap, model.cumulative_loss_ + lost + abs(gap)


def theory(rng, name, loss, penalty=None):
    """The rates and bounds of theorems, for one geometry and loss."""
    divergence, signed, constraint = GEOMETRIES[name]
    n, n_rows, update = int(rng.integers(1, 5)), 30, rng.choice(["explicit", "implicit", "importance"])
    squared = isinstance(loss, SquaredLoss)
    if penalty is not None and squared and update == "explicit":
        update = "implicit"
    weights = some_weights(rng, n_rows, rng.choice([0.3, 1.0, 3.0]))
    u = comparator(rng, name, n)
    b = 0.0 if penalty is not None else rng.choice([0.0, 0.5, -0.5])
    bounded = "below" in name
    limit = 3.0 if squared and (penalty is not None or bounded) else np.inf
    model = MirrorDescentRegressor(
        divergence=divergence, signed=signed, constraint=constraint, loss=loss, update=update, penalty=penalty,
        learning_rate="theory", fit_intercept=b != 0,
    )  # fmt: skip
    bounds = {"x": 1.0, "u": max(float(np.linalg.norm(u, getattr(divergence, "q", 2.0))), 1e-3), "intercept": abs(b)}
    if bounded or divergence.total is not None:
        del bounds["u"]
    start = np.full(n, 0.5)
    if bounded:
        bounds["divergence"] = max(divergence.divergence(u, start), 1e-3)
        model.set_params(init=0.5)
    bounds |= {"y": limit} if limit < np.inf else {}
    if squared and penalty is None:
        bounds["loss"] = 10.0 ** rng.uniform(-3, 4)
    elif penalty is None:
        bounds["n_rows"] = int(rng.choice([n_rows, 10]))
    model.set_params(data_bounds=bounds)
    size = divergence.row_size if not bounded else np.linalg.norm
    X, y, weights = learn(rng, model, loss, u, b, n_rows, weights=weights, row_size=size, limit=limit)
    theorem = model._theory(model.t_)
    comparators = [u] if bounded or divergence.total is not None else [u, -u, 0.5 * u, 0.0 * u]
    if constraint is not None:
        comparators = [v for v in comparators if constraint.contains(v)]
    if divergence.total is not None:
        comparators += [comparator(rng, name, n) for _ in range(3)]
    for v in comparators:
        paid = 0.0 if penalty is None else (weights > 0).sum() * penalty.value(v)
        lost = float((weights * loss.value(X @ v + b, y)).sum()) + paid
        size = model.cumulative_loss_ + lost
        yield model.cumulative_loss_ - theorem.factor * lost, theorem.constant, size
        if not squared or penalty is not None or lost <= bounds["loss"]:
            yield model.cumulative_loss_ - lost, model.theory_bound_, size


@kind
def theorems_for_the_squared_loss(rng):
    names = ["euclidean", "ball", "p-norm", "simplex", "signed simplex", "entropy below", "burg below"]
    yield from theory(rng, rng.choice(names), SquaredLoss())


@kind
def theorems_for_bounded_slopes(rng):
    names = ["euclidean", "ball", "p-norm", "simplex", "signed simplex", "entropy below", "burg below"]
    yield from theory(rng, rng.choice(names), LOSSES[rng.integers(1, len(LOSSES))])


@kind
def logarithmic_regret(rng):
    penalty = (L2(10 ** rng.uniform(-2, 1)), ElasticNet(10 ** rng.uniform(-2, 1), 0.5))[rng.integers(2)]
    yield from theory(rng, rng.choice(["euclidean", "ball", "box"]), LOSSES[rng.integers(len(LOSSES))], penalty)


@kind
def classifiers(rng):
    n, n_rows, n_classes = 3, 30, int(rng.integers(2, 5))
    joint = bool(rng.integers(2)) and n_classes > 2
    name = rng.choice(["euclidean", "ball", "p-norm", "simplex", "signed simplex", "entropy", "normalized", "adagrad"])
    divergence, signed, constraint = GEOMETRIES[name]
    loss = LogisticLoss() if joint else (LogisticLoss(), HingeLoss())[rng.integers(2)]
    model = MirrorDescentClassifier(
        divergence=divergence, signed=signed, constraint=constraint, loss=loss, fit_intercept=bool(rng.integers(2)),
        multi_class="multinomial" if joint else "ovr", learning_rate="constant", eta0=10 ** rng.uniform(-2, 1),
        track_regret=True,
    )  # fmt: skip
    rows, X, y, weights = Rows(rng, n), np.zeros((n_rows, n)), np.zeros(n_rows, int), some_weights(rng, n_rows, 2.0)
    u = np.array([comparator(rng, name, n) for _ in range(n_classes)])
    for t in range(n_rows):
        w = model.coef_[0] if t else np.zeros(n)
        X[t] = rows.next(t, w, u[0])
        y[t] = rng.integers(n_classes)
        if t and rng.uniform() < 0.7:  # the class with the smallest probability
            scores = np.atleast_1d(model.decision_function(X[t : t + 1])[0])
            y[t] = np.argmin(scores) if n_classes > 2 else scores[0] < 0
        more = {} if t else {"classes": range(n_classes)}
        model.partial_fit(X[t : t + 1], y[t : t + 1], sample_weight=weights[t : t + 1], **more)
    learners = model._learner.learners
    if any(part.tracked_rates[0] != part.tracked_rates[1] or part.tracked_rates[2] for part in learners):
        return
    u, b = u[: len(learners)], rng.normal(size=len(learners)) * model.fit_intercept
    scores = X @ u.T + b
    if joint:
        lost = np.logaddexp.reduce(scores, axis=1) - scores[np.arange(n_rows), y]
    else:
        lost = loss.value(scores, model._class_targets(y)).sum(axis=1)
    bound, lost = model.regret_bound(u, b).sum(), float(weights @ lost)
    yield model.cumulative_loss_ - lost, bound, model.cumulative_loss_ + lost + abs(bound)


@kind
def scale_invariant_models(rng):
    n, n_rows, classifies = int(rng.integers(1, 4)), 40, bool(rng.integers(2))
    loss = LogisticLoss() if classifies else (HuberLoss(0.5), QuantileLoss(0.3))[rng.integers(2)]
    model = (ScaleInvariantClassifier if classifies else ScaleInvariantRegressor)(
        loss=loss, fit_intercept=bool(rng.integers(2))
    )
    more, weights = ({"classes": [0.0, 1.0]} if classifies else {}), some_weights(rng, n_rows, 1.0)
    u = 10.0 ** rng.uniform(-2, 2) * rng.normal(size=n)
    X, y, weights = learn(rng, model, loss, u, 0.3 * model.fit_intercept, n_rows, weights=weights, more=more)
    for v in (u, np.zeros(n), 10 * rng.normal(size=n), np.ravel(model.coef_)):
        b = rng.normal() * model.fit_intercept
        lost = float((weights * loss.value(X @ v + b, y)).sum())
        certificate, bound = (float(np.ravel(f(v, b))[0]) for f in (model.regret_bound, model.worst_case_bound))
        yield model.cumulative_loss_ - lost, certificate, model.cumulative_loss_ + lost + abs(certificate)
        yield certificate, bound, model.cumulative_loss_ + lost + abs(bound)


@kind
def mistakes(rng):
    n, n_rows = int(rng.integers(1, 6)), 60
    weights = rng.choice(["perceptron", "signed", "simplex"])
    intercept = bool(rng.integers(2))
    if weights == "perceptron":
        model, u = PerceptronClassifier(eta0=10 ** rng.uniform(-2, 2), fit_intercept=intercept), rng.normal(size=n)
    else:
        model = WinnowClassifier(weights=weights, total=1.5, eta0=10 ** rng.uniform(-3, 0), fit_intercept=intercept)
        u = 1.5 * rng.dirichlet(np.full(n, 0.5))
        u = u * rng.choice([-1.0, 1.0], size=n) if weights == "signed" else u
    b, rows, X, y = rng.normal() * intercept, Rows(rng, n), [], []
    for t in range(n_rows):
        known = hasattr(model, "_learner")
        x = rows.next(t, model.coef_[0] if known else np.zeros(n), u)
        a = x @ u + b
        if abs(a) < 1e-3:  # too small a margin for a bound worth its name
            continue
        X.append(x)
        y.append(np.sign(a))
        model.partial_fit(np.array(X[-1:]), np.array(y[-1:]), **({} if known else {"classes": [-1.0, 1.0]}))
    if X:
        bound = model.mistake_bound(X, y, u, b)
        yield float(model.n_mistakes_[0]), bound, 1.0


@kind
def the_burg_gradient(rng):
    n, n_rows, upper = int(rng.integers(1, 6)), 40, float(rng.choice([0.3, 1.0, 10.0]))
    model = BurgRegressor(
        update="gradient", upper_bound=upper, eta0=10 ** rng.uniform(-2, 6), fit_intercept=bool(rng.integers(2)),
        learning_rate=rng.choice(["constant", "invscaling"]), track_regret=True,
    )  # fmt: skip
    u, b = upper * rng.uniform(1e-6, 1.0, size=n) ** rng.choice([1, 4]), rng.uniform() * model.fit_intercept
    weights = some_weights(rng, n_rows, 3.0)
    X, y, weights = learn(rng, model, SquaredLoss(), u, b, n_rows, weights=weights, positive=True)
    for v in (u, np.full(n, upper), upper * rng.uniform(1e-3, 1.0, size=n)):
        lost = float(weights @ (X @ v + b - y) ** 2 / 2)
        yield model.cumulative_loss_, model.loss_bound(v, b, lost), 0.0
        if model._learner.tracked_rates[0] == model._learner.tracked_rates[1]:
            bound = model.regret_bound(v, b)
            yield model.cumulative_loss_ - lost, bound, model.cumulative_loss_ + lost + abs(bound)


@kind
def rounds_over_shards(rng):
    """Copies of a model learn shards, and are mixed, as `DistributedOnline` does; with shards of any shares."""
    name, n, n_shards, n_rows = rng.choice([*GEOMETRIES][:-3]), int(rng.integers(1, 4)), int(rng.integers(1, 5)), 8
    divergence, signed, constraint = GEOMETRIES[name]
    loss, update = LOSSES[rng.integers(len(LOSSES))], rng.choice(["explicit", "implicit", "importance"])
    model = MirrorDescentRegressor(
        divergence=divergence, signed=signed, constraint=constraint, loss=loss, update=update,
        eta0=10 ** rng.uniform(-3, -1 if update == "explicit" else 1), fit_intercept=bool(rng.integers(2)),
        learning_rate="constant", track_regret=True,
    )  # fmt: skip
    model.partial_fit(np.zeros((1, n)), np.zeros(1), sample_weight=np.zeros(1))
    u, shards = comparator(rng, name, n), []
    for _ in range(3):
        shares = rng.dirichlet(np.ones(n_shards))
        parts = [copy.copy(model) for _ in shares]
        try:
            for part, share in zip(parts, shares, strict=True):
                weights = some_weights(rng, n_rows, 2.0)
                shards.append((share, *learn(rng, part, loss, u, 0.3, n_rows, weights=weights)))
        except ValueError:
            return  # an explicit step that leaves the domain at once, or overflows
        model = merge(parts, shares, start=model)
    for v in (u, comparator(rng, name, n), comparator(rng, name, n)):
        b = rng.uniform(-1, 1) * model.fit_intercept
        losses = [(share, float(weights @ loss.value(X @ v + b, y))) for share, X, y, weights in shards]
        lost, bound = model.eta0 * sum(share * each for share, each in losses), model.regret_bound(v, b, weighted=True)
        yield model.weighted_loss_ - lost, bound, model.weighted_loss_ + lost + abs(bound)


# --- second-order linear models ---------------------------------------------------------------------------------------


@kind
def the_forward_algorithm(rng):
    n, n_rows = int(rng.integers(1, 5)), 30
    model = ForwardRegressor(alpha=10 ** rng.uniform(-3, 2), fit_intercept=False, standardize=False)
    weights, u = some_weights(rng, n_rows, 3.0), rng.normal(size=n)
    X, y, weights = learn(rng, model, SquaredLoss(), u, 0.0, n_rows, weights=weights)
    A = (X * weights[:, np.newaxis]).T @ X + model.alpha * np.eye(n)
    for v in (u, np.linalg.solve(A, X.T @ (weights * y)), np.zeros(n)):
        lost = float(weights @ (X @ v - y) ** 2 / 2 + model.alpha / 2 * v @ v)
        yield model.cumulative_loss_ - lost, model.regret_bound_, model.cumulative_loss_ + lost + model.regret_bound_
    if (weights == 1).all():
        R = max(np.linalg.norm(X, axis=1))
        explicit = np.abs(y).max() ** 2 / 2 * n * np.log(1 + n_rows * R**2 / model.alpha / n)
        yield model.regret_bound_, explicit, explicit


@kind
def the_centred_forward_algorithm(rng):
    """Whatever the units of the columns, and when they move; penalties are right up to a factor of two."""
    n, n_rows = int(rng.integers(1, 5)), 30
    gamma = float(rng.choice([1.0, 0.9]))
    model = ForwardRegressor(alpha=10 ** rng.uniform(-3, 2), forgetting=gamma)
    model._make_standardizer = lambda *_: None  # the theorem is about the values that are learned: here, all of them
    units = 10 ** rng.uniform(-3, 3, size=(2, n))
    h, u = some_weights(rng, n_rows, 3.0), rng.normal(size=n)
    X = rng.normal(size=(n_rows, n)) * units[(np.arange(n_rows) > rng.integers(n_rows)).astype(int)]
    X[: rng.integers(n_rows), rng.integers(n)] = 1.0
    y = np.zeros(n_rows)
    for t in range(n_rows):
        a = model.predict(X[t : t + 1])[0] if t else 0.0
        y[t] = rng.choice([-np.sign(a), X[t] @ u, rng.normal()])
        model.partial_fit(X[t : t + 1], y[t : t + 1], sample_weight=h[t : t + 1])
    size = model.cumulative_loss_ + model.regret_bound_
    yield model.regret_, model.regret_bound_, size
    if gamma == 1:
        least, variances = model.cumulative_loss_ - model.regret_, model.scale_**2 * (np.ptp(X[h > 0], axis=0) > 0)
        for v in (u, model.coef_, np.zeros(n)):
            b = np.average(y - X @ v, weights=h)
            lost = float(h @ (X @ v + b - y) ** 2 / 2 + model.alpha * variances @ v**2)  # twice the penalty
            yield least, lost, size + lost


@kind
def aioli(rng):
    n, n_rows = int(rng.integers(1, 4)), 40
    model = ForwardClassifier(
        update="aioli", radius=10 ** rng.uniform(-1, 1), alpha=10 ** rng.uniform(-2, 1), fit_intercept=False
    )
    u = rng.normal(size=n)
    u *= model.radius / np.linalg.norm(u)
    weights = some_weights(rng, n_rows, rng.choice([1.0, 2.0]))
    rows, X, y = Rows(rng, n), np.zeros((n_rows, n)), np.zeros(n_rows, int)
    for t in range(n_rows):
        X[t] = rows.next(t, model.coef_[0] if t else np.zeros(n), u)
        p = model.predict_proba(X[t : t + 1])[0, 1] if t else 0.5
        y[t] = rng.choice([p < 0.5, X[t] @ u > 0, rng.integers(2)])
        more = {} if t else {"classes": [0, 1]}
        model.partial_fit(X[t : t + 1], y[t : t + 1], sample_weight=weights[t : t + 1], **more)
    for v in (u, -u, 0.5 * u, np.zeros(n)):
        lost = float(weights @ np.logaddexp(0, np.where(y == 1, -1, 1) * (X @ v)))
        bound = model.regret_bound(v)
        yield model.cumulative_loss_ - lost, bound, model.cumulative_loss_ + lost
