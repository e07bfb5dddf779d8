"""The bounds of mixtures, densities, kernels and metrics, see bounds.py."""

import numpy as np
from adversarial import Rows, kind, some_weights, target
from raw import MirrorDescentClassifier
from scipy.special import xlogy

from onlinebregman import (
    BayesMixture,
    DensityMixture,
    ExpertMixtureClassifier,
    ExpertMixtureRegressor,
    FrobeniusMetricLearner,
    ImplicitGDRegressor,
    LearningRateMixture,
    LogDetMetricLearner,
    MatrixBurgRegressor,
    MEGKernelLearner,
    OnlineExponentialFamily,
    ParameterFreeClassifier,
    ParameterFreeRegressor,
    VonNeumannMetricLearner,
)
from onlinebregman.losses import SquaredLoss

# --- mixtures ---------------------------------------------------------------------------------------------------------


def best_sequence(losses, n_switches):
    """The smallest sum of losses over sequences of experts with at most this many switches."""
    best = np.full((n_switches + 1, losses.shape[1]), np.inf)
    best[:] = losses[0]
    for row in losses[1:]:
        switched = np.vstack(
            [np.full(losses.shape[1], np.inf), np.repeat(best.min(axis=1)[:-1, np.newaxis], losses.shape[1], axis=1)]
        )
        best = np.minimum(best, switched) + row
    return float(best.min())


OWN_RATES = {"ml_poly", "boa"}


def compare_experts(mixture, losses):
    """Against the best expert, and with a share against the best sequences; `losses` times the rows' weights."""
    regret = mixture.cumulative_loss_ - losses.sum(axis=0).min()
    yield regret, mixture.regret_bound_, mixture.cumulative_loss_
    if mixture.share:
        for m in (0, 1, 3):
            yield (
                mixture.cumulative_loss_ - best_sequence(losses, m),
                mixture.tracking_bound(m),
                mixture.cumulative_loss_,
            )


@kind
def expert_mixtures_of_numbers(rng):
    K, T, lo = int(rng.integers(2, 6)), 30, float(rng.normal())
    B, squared = float(10 ** rng.uniform(-2, 2)), bool(rng.integers(2))
    strategy = rng.choice(["average", "eg", "ml_poly", "boa", *["aggregating"] * squared])
    rate = "adaptive" if strategy in OWN_RATES else rng.choice(["adaptive", "theory", "number"])
    share = float(rng.choice([0.0, 0.05, 0.5])) if rate != "adaptive" else 0.0
    mixture = ExpertMixtureRegressor(
        strategy=strategy, loss="squared_error" if squared else "absolute_error", share=share,
        learning_rate=10 ** rng.uniform(-1, 1) / B**2 if rate == "number" else rate,
        data_bounds={"y": (lo, lo + B), "n_rows": T},
    )  # fmt: skip
    P = lo + B * (rng.uniform(size=(T, K)) if rng.integers(2) else rng.integers(2, size=(T, K)))
    y, weights = np.zeros(T), some_weights(rng, T, rng.choice([1.0, 3.0]))
    for t in range(T):
        forecast = mixture.predict(P[t : t + 1])[0] if t else P[t].mean()
        far = lo if forecast > lo + B / 2 else lo + B
        y[t] = rng.choice([far, far, P[t, rng.integers(K)], lo + B * rng.uniform()])
        mixture.partial_fit(P[t : t + 1], y[t : t + 1], sample_weight=weights[t : t + 1])

    def loss(a):
        return (a - y[:, np.newaxis]) ** 2 / 2 if squared else np.abs(a - y[:, np.newaxis])

    losses = weights[:, np.newaxis] * loss(P)
    yield from compare_experts(mixture, losses)
    if rate == "theory" and weights.max() <= 1 and not share and (strategy != "eg" or (weights == 1).all()):
        factor = {"average": 1.0, "aggregating": 0.25}.get(strategy) if squared else None
        theorem = B**2 * np.log(K) * factor if factor else (B**2 if squared else B) * np.sqrt(T * np.log(K) / 2)
        yield mixture.cumulative_loss_ - losses.sum(axis=0).min(), theorem, mixture.cumulative_loss_
    if strategy in {"eg", *OWN_RATES} and not share:
        for v in rng.dirichlet(np.full(K, 0.5), size=20):
            lost = float(weights @ loss((P @ v)[:, np.newaxis])[:, 0])
            yield mixture.cumulative_loss_ - lost, mixture.regret_bound_, mixture.cumulative_loss_ + lost


@kind
def expert_mixtures_of_probabilities(rng):
    K, T, bayes = int(rng.integers(2, 6)), 30, bool(rng.integers(3) == 0)
    loss, strategy = rng.choice(["log_loss", "brier"]), rng.choice(["average", "eg", "ml_poly", "boa"])
    several = strategy == "average" or (loss == "brier" and strategy not in OWN_RATES)
    rate = rng.choice(["adaptive", "theory", "number"]) if several else "adaptive"
    share = float(rng.choice([0.0, 0.05, 0.5])) if bayes or rate != "adaptive" else 0.0
    if bayes:
        mixture, loss = BayesMixture(share=share), "log_loss"
    else:
        rate = 10 ** rng.uniform(-1, 1) if rate == "number" else rate
        mixture = ExpertMixtureClassifier(strategy=strategy, loss=loss, learning_rate=rate, share=share, n_rows=T)
    edge = rng.choice([1e-12, 1e-3, 0.2])
    P = np.clip(rng.choice([rng.uniform(size=(T, K)), rng.integers(2, size=(T, K))]), edge, 1 - edge)
    y, weights = np.zeros(T, int), some_weights(rng, T, rng.choice([1.0, 3.0]))
    for t in range(T):
        p = mixture.predict_proba(P[t : t + 1])[0, 1] if t else P[t].mean()
        y[t] = rng.choice([p < 0.5, p < 0.5, P[t, rng.integers(K)] > 0.5])
        more = {} if t else {"classes": [0, 1]}
        mixture.partial_fit(P[t : t + 1], y[t : t + 1], sample_weight=weights[t : t + 1], **more)

    def losses_of(P):
        right = np.where(y[:, np.newaxis] == 1, P, 1 - P)
        return weights[:, np.newaxis] * (-np.log(right) if loss == "log_loss" else (1 - right) ** 2)

    yield from compare_experts(mixture, losses_of(P))
    if (
        loss == "log_loss"
        and (bayes or (strategy == "average" and rate == "theory"))
        and weights.max() <= 1
        and not share
    ):
        yield mixture.cumulative_loss_ - losses_of(P).sum(axis=0).min(), np.log(K), mixture.cumulative_loss_
    if not bayes and strategy in {"eg", *OWN_RATES} and not share:
        for v in rng.dirichlet(np.full(K, 0.5), size=20):
            lost = losses_of((P @ v)[:, np.newaxis]).sum()
            yield mixture.cumulative_loss_ - lost, mixture.regret_bound_, mixture.cumulative_loss_ + lost


@kind
def density_mixtures(rng):
    K, T, share = int(rng.integers(2, 6)), 30, float(rng.choice([0.0, 0.05, 0.5]))
    mixture = DensityMixture(share=share)
    logs = 10 ** rng.uniform(-2, 2) * rng.normal(size=(T, K))
    weights = some_weights(rng, T, rng.choice([1.0, 3.0]))
    for t in range(T):
        if t and rng.uniform() < 0.7:  # small for the expert that leads
            logs[t, np.argmax(mixture.weights_)] = logs[t].min() - rng.exponential()
        mixture.partial_fit(logs[t : t + 1], sample_weight=weights[t : t + 1])
    size = np.abs(logs * weights[:, np.newaxis]).sum()
    for left, right, _ in compare_experts(mixture, -weights[:, np.newaxis] * logs):
        yield left, right, size


@kind
def mixtures_of_learners(rng):
    n, T, which = 2, 25, rng.integers(4)
    classes = {"classes": [0, 1]} if which >= 2 else {}
    model = (
        LearningRateMixture(ImplicitGDRegressor(), eta0s=4),
        ParameterFreeRegressor(random_features=2, random_state=0),
        LearningRateMixture(MirrorDescentClassifier(), eta0s=4),
        ParameterFreeClassifier(random_features=2, random_state=0),
    )[which]
    if which in (1, 3):
        model.set_params(stacking=bool(rng.integers(2)), share=float(rng.choice([0.0, 0.05])))
    rows, u, X, y = Rows(rng, n), rng.normal(size=n), np.zeros((T, n)), np.zeros(T)
    weights = some_weights(rng, T, rng.choice([1.0, 3.0]))
    for t in range(T):
        X[t] = rows.next(t, np.zeros(n), u)
        if classes:
            p = model.predict_proba(X[t : t + 1])[0, 1] if t else 0.5
            y[t] = rng.choice([p < 0.5, p < 0.5, X[t] @ u > 0])
        else:
            y[t] = target(rng, SquaredLoss(), model.predict(X[t : t + 1])[0] if t else 0.0, X[t] @ u)
        model.partial_fit(X[t : t + 1], y[t : t + 1], sample_weight=weights[t : t + 1], **classes)
        classes = classes and {"classes": None}  # they are known
    yield model.cumulative_loss_ - model.cumulative_losses_.min(), model.regret_bound_, model.cumulative_loss_


# --- densities --------------------------------------------------------------------------------------------------------


@kind
def exponential_families(rng):
    n, T = int(rng.integers(1, 4)), 30
    coin, strategy = bool(rng.integers(2)), rng.choice(["forward", "last_step_minimax", "minimax"])
    if coin:
        model = OnlineExponentialFamily("bernoulli")
    else:
        model = OnlineExponentialFamily(
            strategy=strategy, prior_weight=0.0 if strategy == "minimax" else 10 ** rng.uniform(-2, 1), horizon=T,
            prior_mean=float(rng.normal()), variance=10 ** rng.uniform(-1, 1),
        )  # fmt: skip
    X = np.zeros((T, n))
    for t in range(T):
        mu = model.expectation_parameters_ if t else np.full(n, 0.5)
        X[t] = rng.choice([mu < 0.5, rng.integers(2, size=n), np.full(n, t % 2)])
        if not coin:
            X[t] = (2 * X[t] - 1) * 10 ** rng.choice([-1.0, 0.0, 2.0])
        model.partial_fit(X[t : t + 1])
        yield model.regret_, model.regret_bound_, abs(model.cumulative_loss_)
    if coin:  # against other coins
        p = np.clip(rng.uniform(size=n), 1e-6, 1 - 1e-6)
        lost = -float((xlogy(X, p) + xlogy(1 - X, 1 - p)).sum())
        yield model.cumulative_loss_ - lost, model.regret_bound_, lost


# --- matrices ---------------------------------------------------------------------------------------------------------


def some_matrix(rng, d, trace=None):
    """A positive definite matrix, of this trace or with eigenvalues up to 1."""
    values = np.maximum(rng.uniform(size=d) ** rng.choice([1, 5]), 1e-9)
    vectors = np.linalg.qr(rng.normal(size=(d, d)))[0]
    values = values if trace is None else trace * values / values.sum()
    U = (vectors * values) @ vectors.T
    return (U + U.T) / 2


def next_instance(rng, rows, t, W, U):
    """A row z, in a direction in which W and U are far apart or as in `Rows`, with a target; W may be a model."""
    if hasattr(W, "get_params"):
        z, a = next_instance(rng, rows, t, W.kernel_ if t else np.eye(len(U)) / len(U), U)
        return (z if t or z.any() else np.eye(len(U))[0]), a
    vectors = np.linalg.eigh(W - U)[1]
    z = vectors[:, rng.choice([0, -1])] if rng.uniform() < 0.5 else rows.next(t, vectors[:, 0], vectors[:, -1])
    z = z / (np.linalg.norm(z) or 1.0) * rng.choice([1.0, 1.0, rng.uniform()])
    far = np.sign(z @ U @ z - z @ W @ z) or 1.0
    return z, z @ U @ z + rng.choice([0.0, 0.0, 0.3 * far, 3.0 * far, 0.1 * rng.normal()])


@kind
def matrix_exponentiated_gradient(rng):
    d, T, update = int(rng.integers(2, 5)), 25, rng.choice(["implicit", "explicit"])
    U, rows, theory = some_matrix(rng, d, 1.0), Rows(rng, d), bool(rng.integers(2))
    largest = float(rng.choice([1.0, 3.0])) if update == "implicit" else 1.0
    model = MEGKernelLearner(
        update=update, scale_eta=False, eta0=10 ** rng.uniform(rng.choice([-60, -2]), 0.59), track_regret=True,
        learning_rate="theory" if theory else "constant", data_bounds={"x": 1.0, "loss": 10 ** rng.uniform(-3, 3)},
    )  # fmt: skip
    Z, y, weights = np.zeros((T, d)), np.zeros(T), some_weights(rng, T, largest)
    for t in range(T):
        Z[t], y[t] = next_instance(rng, rows, t, model, U)
        model.partial_fit(Z[t : t + 1], y[t : t + 1], sample_weight=weights[t : t + 1])
    gap = model.regret_bound()
    for V in (U, some_matrix(rng, d, 1.0), np.diag(np.eye(d)[0])):
        lost = float(weights @ (np.einsum("ni,ij,nj->n", Z, V, Z) - y) ** 2 / 2)
        size, regret = model.cumulative_loss_ + lost, model.cumulative_loss_ - lost
        certificate = model.regret_bound(V, weighted=True) / model._learner.tracked_rates[0]
        yield regret, certificate, size + abs(certificate)
        yield certificate, gap, size + abs(gap)
        yield model.cumulative_loss_, model.loss_bound(V, lost), 0.0
        if theory and lost <= model.data_bounds["loss"]:
            yield regret, model.theory_bound_, size


@kind
def the_matrix_burg_gradient(rng):
    d, T = int(rng.integers(1, 5)), 25
    U, rows = some_matrix(rng, d) * (1 - 1e-8), Rows(rng, d)
    model = MatrixBurgRegressor(eta0=rng.choice([np.inf, 10 ** rng.uniform(-2, 1)]), track_regret=True)
    Z, y, weights = np.zeros((T, d)), np.zeros(T), some_weights(rng, T, 3.0)
    for t in range(T):
        Z[t], y[t] = next_instance(rng, rows, t, model, U)
        y[t] = abs(y[t])
        model.partial_fit(Z[t : t + 1], y[t : t + 1], sample_weight=weights[t : t + 1])
    for V in (U, some_matrix(rng, d) * (1 - 1e-8), (1 - 1e-8) * np.eye(d)):
        lost = float(weights @ (np.einsum("ni,ij,nj->n", Z, V, Z) - y) ** 2 / 2)
        yield model.cumulative_loss_, model.loss_bound(V, lost), 0.0
        if model._learner.tracked_rates[0] == model._learner.tracked_rates[1]:
            rate, gap = model._learner.tracked_rates[0], model.regret_bound()
            certificate, size = model.regret_bound(V, weighted=True) / rate, model.cumulative_loss_ + lost
            yield model.cumulative_loss_ - lost, certificate, size + abs(certificate)
            yield certificate, gap, size + abs(gap)


@kind
def metrics(rng):
    d, T, which = int(rng.integers(1, 5)), 25, rng.integers(4)
    trace = 1.5 if which == 3 else None
    more = {"update": rng.choice(["implicit", "explicit"])} if which else {}
    if which >= 2:
        more["trace"] = trace
    learner = (LogDetMetricLearner, FrobeniusMetricLearner, VonNeumannMetricLearner, VonNeumannMetricLearner)[which]
    model = learner(
        eta0=10 ** rng.uniform(rng.choice([-60, -2]), 1 if more.get("update") != "explicit" else -1),
        scale_eta=False, track_regret=True, learning_rate="constant", **more,
    )  # fmt: skip
    U, rows = some_matrix(rng, d, trace) * (1.0 if trace else 10 ** rng.uniform(-1, 1)), Rows(rng, d)
    Z, y, weights = [], [], []
    for t in range(T):
        W = model.get_mahalanobis_matrix() if Z else np.eye(d) * (trace or d) / d
        z, a = next_instance(rng, rows, t, W, U)
        if not z.any():
            continue
        Z.append(z), y.append(abs(a)), weights.append(float(rng.choice([0.0, 1.0, 3.0])) if Z[1:] else 1.0)
        model.partial_fit_pairs(np.array([z, np.zeros(d)]), [[0, 1]], y[-1:], weights[-1:])
    gap = model.regret_bound(radius=None if trace else 2.0)
    for V in (U, some_matrix(rng, d, trace), some_matrix(rng, d, trace or 1.9)):
        lost = float(np.array(weights) @ (np.einsum("ni,ij,nj->n", Z, V, Z) - y) ** 2 / 2)
        certificate = model.regret_bound(V, weighted=True) / model.eta0
        size = model.cumulative_loss_ + lost
        yield model.cumulative_loss_ - lost, certificate, size + abs(certificate)
        if trace or (np.trace(V) <= 2 and which != 1) or (np.linalg.norm(V) <= 2 and which == 1):
            yield certificate, gap, size + abs(gap)
