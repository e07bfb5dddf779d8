"""MEGKernelLearner: against a replica by scipy's expm and logm, laws, theory, pairs, factors, the embedding."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import density
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import expm, logm

from onlinebregman import EGRegressor
from onlinebregman.divergences import VonNeumann
from onlinebregman.kernel_learning import MEGKernelLearner, pair_rows
from onlinebregman.reference import von_neumann_step
from onlinebregman.schedules import InverseScaling

laws = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**32 - 1)
D = VonNeumann(trace=1.0).divergence


def symmetric(rng, *shape):
    matrices = rng.normal(size=shape)
    return (matrices + np.swapaxes(matrices, -1, -2)) / 2


def kernel_of(log_matrix):
    """exp(G) / tr exp(G), by scipy's Pade approximation: no eigendecomposition."""
    w = expm(log_matrix - np.linalg.eigvalsh(log_matrix)[-1] * np.eye(len(log_matrix)))
    return w / np.trace(w)


def replica(matrices, y, eta, update="explicit", start=None):
    """MEG on symmetric matrices: the W before each step, and the last one."""
    d = matrices.shape[1]
    log_w = -np.log(d) * np.eye(d) if start is None else logm(start / np.trace(start))
    path = [kernel_of(log_w)]
    for x, target, rate in zip(matrices, y, np.broadcast_to(eta, len(y)), strict=True):
        log_w = von_neumann_step(log_w, x, target, rate, 1.0, update)
        path.append(kernel_of(log_w))
    return path


def outer(rows):
    return rows[:, :, None] * rows[:, None, :]


def stream(rng, n=30, d=5, noise=0.1):
    """Rows, targets of a kernel with noise, and the kernel."""
    kernel, rows = density(rng, d), rng.normal(size=(n, d))
    return rows, np.einsum("ni,ij,nj->n", rows, kernel, rows) + noise * rng.normal(size=n), kernel


def state(learner):
    return learner.log_kernel_, learner.kernel_, learner.t_, learner.cumulative_loss_, learner.spread_


def assert_same_state(one, other):
    for a, b in zip(state(one), state(other), strict=True):
        assert_array_equal(a, b)


# --- the algorithm ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("update", "largest"), [("explicit", 1.0), ("implicit", 100.0)])
@laws
@given(seed=seeds, d=st.integers(1, 6), share=st.floats(0.01, 1.0))
def test_steps_equal_the_replica(update, largest, seed, d, share):
    eta0 = share * largest
    rows, y, _ = stream(np.random.default_rng(seed), n=10, d=d)
    learner = MEGKernelLearner(update=update, eta0=eta0, scale_eta=False).partial_fit(rows, y)
    path = replica(outer(rows), y, eta0, update)
    near = 1.0 if update == "explicit" else 100.0
    assert_allclose(learner.kernel_, path[-1], rtol=0, atol=1e-12 * near)
    losses = [(rows[t] @ path[t] @ rows[t] - y[t]) ** 2 / 2 for t in range(10)]
    assert learner.cumulative_loss_ == pytest.approx(sum(losses), rel=1e-11 * near)
    # of rows of length up to 6, near to the null space of the kernel too, where predictions are small
    expected = np.einsum("ni,ij,nj->n", rows, path[-1], rows)
    assert_allclose(learner.predict(rows), expected, rtol=1e-11 * near, atol=4e-11 * near)


@pytest.mark.parametrize("update", ["explicit", "implicit"])
def test_matrices_of_any_rank(update):
    rng = np.random.default_rng(0)
    matrices, y = symmetric(rng, 20, 4, 4), rng.normal(size=20)
    learner = MEGKernelLearner(update=update, eta0=0.7, scale_eta=False).partial_fit_matrices(matrices, y)
    assert_allclose(learner.kernel_, replica(matrices, y, 0.7, update)[-1], rtol=0, atol=1e-10)
    rows, y, _ = stream(rng)
    one = MEGKernelLearner(update=update).partial_fit(rows, y)
    other = MEGKernelLearner(update=update).partial_fit_matrices(outer(rows), y)
    assert_allclose(one.kernel_, other.kernel_, rtol=0, atol=1e-11)
    assert one.spread_ == pytest.approx(other.spread_, rel=1e-12)


def test_init_schedule_and_scaled_rate():
    rng = np.random.default_rng(1)
    rows, y, _ = stream(rng)
    init = 7 * density(rng, 5) + np.eye(5)
    rates = 0.3 / np.sqrt(np.arange(1, 31)) / np.maximum.accumulate((rows**2).sum(axis=1)) ** 2
    path = replica(outer(rows), y, rates, start=init)
    for learning_rate in ("invscaling", "sqrt", InverseScaling(0.3)):
        learner = MEGKernelLearner(eta0=0.3, learning_rate=learning_rate, update="explicit", init=init)
        assert_allclose(learner.partial_fit(rows, y).kernel_, path[-1], rtol=0, atol=1e-10)


@pytest.mark.parametrize("update", ["explicit", "implicit"])
def test_diagonal_instances_are_exponentiated_gradient(update):
    rng = np.random.default_rng(2)
    rows, y = rng.normal(size=(50, 6)), rng.normal(size=50)
    matrices = np.zeros((50, 6, 6))
    matrices[:, range(6), range(6)] = rows
    parameters = {"eta0": 0.5, "learning_rate": "constant", "update": update}
    vector = EGRegressor(weights="simplex", fit_intercept=False, **parameters).partial_fit(rows, y)
    learner = MEGKernelLearner(scale_eta=False, **parameters).partial_fit_matrices(matrices, y)
    assert_allclose(learner.kernel_, np.diag(vector.coef_), rtol=1e-10, atol=1e-14)
    assert learner.cumulative_loss_ == pytest.approx(vector.cumulative_loss_, rel=1e-10)


# --- what always holds ------------------------------------------------------------------------------------------------


@laws
@given(seeds, st.sampled_from(["explicit", "implicit"]), st.sampled_from([0.1, 100.0, 1e5]), st.integers(1, 5))
def test_stays_a_density_matrix(seed, update, eta0, d):
    """Large rates, repeated rows, targets that nothing attains."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(4, d))[rng.integers(0, 4, size=60)] * rng.choice([1e-3, 1.0, 30.0], size=(60, 1))
    learner = MEGKernelLearner(eta0=eta0, update=update).partial_fit(rows, rng.choice([0.0, -50.0, 1e3], size=60))
    kernel = learner.kernel_
    assert np.isfinite(learner.log_kernel_).all()
    assert_array_equal(kernel, kernel.T)
    assert np.trace(kernel) == pytest.approx(1.0, abs=1e-12)
    assert np.linalg.eigvalsh(kernel)[0] >= -1e-15
    assert (learner.predict(rows) >= 0).all()


def test_many_hard_steps_keep_the_logarithm():
    """After 20 000 pairs pushed to zero and back the kernel still is exp(log_kernel_), from a fresh eigensolve."""
    rng = np.random.default_rng(3)
    pairs = rng.integers(0, 4, size=(20_000, 2))
    learner = MEGKernelLearner(eta0=1000.0, update="explicit")
    learner.partial_fit_pairs(pairs, rng.choice([0.0, 0.5], size=len(pairs)), 4)
    assert np.trace(learner.kernel_) == pytest.approx(1.0, abs=1e-12)
    assert_allclose(learner.kernel_, expm(learner.log_kernel_), rtol=0, atol=1e-9)
    assert learner.t_ + learner.n_collapsed_ == len(pairs)


def test_bounds_of_the_theory():
    """The paper's: loss (a - y)^2 <= (r^2 / 2) D for eta = 2 / r^2, so half of both here; and rows of any length."""
    rows, y, kernel = stream(np.random.default_rng(4), n=300, noise=0.0)
    for scale_eta, update in ((True, "explicit"), (False, "explicit"), (True, "implicit"), (False, "implicit")):
        spread = (rows**2).sum(axis=1).max()
        learner = MEGKernelLearner(eta0=4.0 if scale_eta else 4 / spread**2, scale_eta=scale_eta, update=update)
        learner.partial_fit(rows, y)
        bound = learner.loss_bound(kernel)
        factor = 1 / 4 if update == "explicit" else 1 / 2
        assert bound == pytest.approx(factor * spread**2 * D(kernel, np.eye(5) / 5), rel=1e-9)
        assert bound / 40 < learner.cumulative_loss_ <= bound
    assert MEGKernelLearner(update="explicit", eta0=4.0).partial_fit(rows, y).loss_bound(kernel, 1.0) == np.inf
    with pytest.raises(ValueError, match=r"eta = 5 / spread\^2, above 4"):
        MEGKernelLearner(update="explicit", eta0=5.0).partial_fit(rows, y).loss_bound(kernel)
    with pytest.raises(ValueError, match="constant rates only"):
        MEGKernelLearner(learning_rate="sqrt").partial_fit(rows, y).loss_bound(kernel)
    for bad in (2 * kernel, np.eye(3) / 3, -kernel):
        with pytest.raises(ValueError):
            learner.loss_bound(bad)
    with pytest.raises(ValueError, match="comparator_loss"):
        learner.loss_bound(kernel, -1.0)


# --- streams ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("update", ["explicit", "implicit"])
def test_sample_weight_scales_the_rate(update):
    rows, y, _ = stream(np.random.default_rng(7))
    one = MEGKernelLearner(eta0=1.0, update=update).partial_fit(rows, y, np.full(30, 0.25))
    other = MEGKernelLearner(eta0=0.25, update=update).partial_fit(rows, y)
    assert_array_equal(one.kernel_, other.kernel_)
    assert one.cumulative_loss_ == pytest.approx(other.cumulative_loss_ / 4)
    unborn = MEGKernelLearner().partial_fit(rows, y, np.zeros(30))
    assert_allclose(unborn.kernel_, np.eye(5) / 5, rtol=1e-15)
    assert unborn.t_ == 0


def test_a_weight_that_vanishes_beside_the_scale_still_counts():
    """Its rate underflows: the row changes nothing, and its loss is counted."""
    learner = MEGKernelLearner().partial_fit(np.eye(3)[:2] * 1e20, [0.1, 0.2])
    before = learner.kernel_
    learner.partial_fit(np.eye(3)[:1], [0.3], sample_weight=[1e-300])
    assert np.isfinite(learner.cumulative_loss_) and learner.t_ == 3
    assert_allclose(learner.kernel_, before)


# --- pairs, embedding, neighbours -------------------------------------------------------------------------------------


def test_pairs_are_rows():
    rng = np.random.default_rng(10)
    pairs, distances = rng.integers(0, 6, size=(40, 2)), rng.random(40) / 6
    one = MEGKernelLearner(shuffle=False, max_iter=2).fit_pairs(pairs, distances, 6)
    rows = pair_rows(pairs, 6)
    other = MEGKernelLearner(shuffle=False, max_iter=2).fit(rows, distances)
    assert_same_state(one, other)
    assert one.n_collapsed_ == other.n_collapsed_ == 2 * (pairs[:, 0] == pairs[:, 1]).sum() > 0
    assert_allclose(one.pairwise_distances()[tuple(pairs.T)] / 2, one.predict(rows), atol=1e-14)
    assert_same_state(one.partial_fit_pairs(pairs, distances), other.partial_fit_pairs(pairs, distances, 6))
    twice = pair_rows([[0, 1], [2, 2]], 3).toarray() ** 2
    assert_allclose(twice, [[0.5, 0.5, 0], [0, 0, 0]])


def test_embedding():
    rows, y, _ = stream(np.random.default_rng(11))
    learner = MEGKernelLearner().partial_fit(rows, y)
    embedding = learner.transform(np.eye(5))
    assert_allclose(embedding @ embedding.T, learner.kernel_, atol=1e-15)
    assert_allclose((learner.transform(rows) ** 2).sum(axis=1), learner.predict(rows), rtol=1e-12)
    assert (np.diff((learner.components_**2).sum(axis=1)) <= 0).all()
    assert (np.take_along_axis(embedding, np.abs(embedding).argmax(axis=0)[None], axis=0) > 0).all()
    squared = ((embedding[:, None] - embedding) ** 2).sum(axis=2)
    assert_allclose(learner.pairwise_distances(), squared, atol=1e-14)
    assert_allclose(learner.pairwise_distances(squared=False) ** 2, squared, atol=1e-14)
    assert not learner.kernel_.flags.writeable and not learner.log_kernel_.flags.writeable  # copies


# --- factors ----------------------------------------------------------------------------------------------------------


@laws
@given(seeds, st.integers(1, 7), st.sampled_from(["explicit", "implicit"]), st.booleans())
def test_factors_equal_matrices(seed, rank, update, each):
    """Any rank, also above d, signs for all instances or for each, including zeros."""
    rng = np.random.default_rng(seed)
    d, n = 5, 12
    factors = rng.normal(size=(n, rank, d))
    signs = rng.choice([-1, 0, 1], size=(n, rank) if each else rank)
    matrices = np.einsum("nr,nri,nrj->nij", np.broadcast_to(signs, (n, rank)), factors, factors)
    y = np.tensordot(matrices, density(rng, d), 2)
    one = MEGKernelLearner(update=update, eta0=2.0).partial_fit_factors(factors, y, signs)
    other = MEGKernelLearner(update=update, eta0=2.0).partial_fit_matrices(matrices, y)
    assert_allclose(one.log_kernel_, other.log_kernel_, rtol=0, atol=1e-9)
    assert one.spread_ == pytest.approx(other.spread_, rel=1e-10)
    assert (one.t_, one.n_collapsed_) == (other.t_, other.n_collapsed_)
    assert one.cumulative_loss_ == pytest.approx(other.cumulative_loss_, rel=1e-9)


def test_the_papers_rate_has_its_bound():
    """eta r^2 = 4, the paper's eta = 2, where the squared length of a pair's row is 1 up to rounding."""
    model = MEGKernelLearner(update="explicit", eta0=4.0, learning_rate="constant", scale_eta=False)
    kernel = density(np.random.default_rng(0), 4)
    model.partial_fit_pairs([[0, 1], [2, 3]], [0.1, 0.1], 4)
    divergence = VonNeumann(trace=1.0).divergence(kernel, np.eye(4) / 4)
    assert model.loss_bound(kernel) == pytest.approx(divergence / 4, rel=1e-10)


def test_one_factor_is_a_row():
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(20, 4)), rng.random(20)
    one = MEGKernelLearner().partial_fit_factors(rows[:, None], y)
    assert_array_equal(one.log_kernel_, MEGKernelLearner().partial_fit(rows, y).log_kernel_)


def test_methods_mix_in_one_stream():
    """Rows, matrices and factors in turn give the same results as matrices only."""
    rng = np.random.default_rng(1)
    rows, y = rng.normal(size=(30, 2)), rng.random(30)  # of two features: the width does not tell the kinds apart
    mixed, plain = MEGKernelLearner(), MEGKernelLearner()
    for i in range(0, 30, 3):
        mixed.partial_fit(rows[[i]], y[[i]])
        mixed.partial_fit_matrices(rows[[i + 1], :, None] * rows[[i + 1], None], y[[i + 1]])
        mixed.partial_fit_factors(rows[None, [i + 2, i]], y[[i + 2]], [1, -1])
        mixed.predict(rows)
        difference = np.outer(rows[i + 2], rows[i + 2]) - np.outer(rows[i], rows[i])
        plain.partial_fit_matrices(
            [np.outer(rows[i], rows[i]), np.outer(rows[i + 1], rows[i + 1]), difference], y[i : i + 3]
        )
    assert_allclose(mixed.log_kernel_, plain.log_kernel_, rtol=0, atol=1e-9)


# --- rates from the theory --------------------------------------------------------------------------------------------


def test_theory_rate_is_the_papers():
    """2b / (2 + r^2 b) for their loss is 4b / (2 + r^2 b) for half of it; b follows from the best kernel's loss."""
    parameters = {"update": "explicit", "learning_rate": "theory"}
    r, d, best = 1.5, 4, 0.7
    learner = MEGKernelLearner(data_bounds={"x": r, "loss": best}, **parameters).partial_fit(np.eye(d), np.zeros(d))
    eta = learner._schedule().scale
    rates = np.linspace(0.01, 0.99, 20_000) * 4 / r**2
    bounds = best / (1 - rates * r**2 / 4) + np.log(d) / rates
    assert eta == pytest.approx(rates[np.argmin(bounds)], rel=1e-3)
    assert learner.theory_bound_ == pytest.approx(bounds.min() - best, rel=1e-6)
    b = 2 * eta / (4 - r**2 * eta)
    assert eta == pytest.approx(4 * b / (2 + r**2 * b), rel=1e-12)
    perfect = MEGKernelLearner(data_bounds={"x": r, "loss": 0.0}, **parameters).partial_fit(np.eye(d), np.zeros(d))
    assert perfect._schedule().scale == pytest.approx(4 / r**2, rel=1e-5)
    assert perfect.theory_bound_ == pytest.approx(r**2 / 4 * np.log(d), rel=1e-5)
    # scale_eta is not for rates of the theory
    unscaled = MEGKernelLearner(scale_eta=False, data_bounds={"x": r, "loss": best}, **parameters)
    assert_array_equal(unscaled.partial_fit(np.eye(d), np.zeros(d)).kernel_, learner.kernel_)


def test_theory_says_what_it_lacks():
    rows, y = np.eye(3), np.ones(3) / 3
    with pytest.raises(ValueError, match=r"needs data_bounds\['x'\]"):
        MEGKernelLearner(learning_rate="theory").partial_fit(rows, y)
    with pytest.raises(ValueError, match="init"):
        MEGKernelLearner(learning_rate="theory", data_bounds={"x": 1.0}, init=np.eye(3)).partial_fit(rows, y)
    learner = MEGKernelLearner(learning_rate="theory", data_bounds={"x": 1.0}).partial_fit(rows, y)
    with pytest.raises(AttributeError, match="loss"):
        learner.theory_bound_  # noqa: B018
    with pytest.raises(AttributeError, match="theory"):
        MEGKernelLearner().partial_fit(rows, y).theory_bound_  # noqa: B018
    assert VonNeumann(2.0).smoothness(3.0) == 4.5
    with pytest.raises(ValueError, match="has no bound"):
        VonNeumann().smoothness(1.0)


def test_instances_beyond_the_bounds_of_the_theorem():
    rng, rows = np.random.default_rng(2), np.eye(3)
    learner = MEGKernelLearner(learning_rate="theory", data_bounds={"x": 1.0, "loss": 0.5})
    learner.partial_fit(2 * rows, rng.random(3))
    with pytest.raises(AttributeError, match="spread 4 was learned"):
        learner.theory_bound_  # noqa: B018


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (np.diag([1.5, -0.5]), "eigenvalue -0.5"),
        (np.eye(2), "trace 2"),
        (np.eye(4) / 4, "kernel has 4 rows and columns, but there are 2 features"),
        ([[0.5, 0.1], [0.0, 0.5]], "not symmetric"),
    ],
)
def test_comparators_that_are_no_kernels_are_refused(kernel, message):
    learner = MEGKernelLearner(track_regret=True).partial_fit(np.eye(2), [0.3, 0.7])
    for bound in (learner.loss_bound, learner.regret_bound):
        with pytest.raises(ValueError, match=message):
            bound(kernel)


def test_losses_that_overflow_are_refused():
    learner = MEGKernelLearner().partial_fit([[1.0, 0.0]], [1e153])
    before = learner.cumulative_loss_
    with pytest.raises(ValueError, match="Row 1 is too large"):
        learner.partial_fit([[1.0, 0.0], [0.0, 1.0]], [1e154, 1.3e154])
    assert learner.cumulative_loss_ == before
