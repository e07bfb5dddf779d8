"""The comparators of regret certificates: those within the constraint, and signed ones that can be split within it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from replica import own
from scipy import sparse

from onlinebregman import BurgRegressor
from onlinebregman._online.comparators import split
from onlinebregman.constraints import Box, Constraint, L1Ball, L2Ball, Simplex, UpperBound
from onlinebregman.divergences import BinaryEntropy, Burg, RelativeEntropy, SimplexEntropy, SquaredEuclidean


class Halfspace(Constraint):
    """A user-defined constraint: sum w <= total."""

    def __init__(self, total):
        self.total_weight = total

    def project(self, divergence, w):
        return divergence.project_halfspace(w, np.ones(len(w)), self.total_weight)

    def contains(self, w, *, tol=1e-10):
        return bool(np.sum(w) <= self.total_weight * (1 + tol))


CONSTRAINTS = {
    "none": None,
    "upper": UpperBound(0.5),
    "box": Box(0.05, 0.6),
    "simplex": Simplex(1.5),
    "l1": L1Ball(1.0),
    "l2": L2Ball(0.7),
    "own": Halfspace(1.2),
}
SIGNED = {
    "relative_entropy": RelativeEntropy(),
    "simplex_entropy": SimplexEntropy(1.5),
    "burg": Burg(),
    "binary_entropy": BinaryEntropy(),
}
PAIRS = [
    (divergence, constraint)
    for divergence in SIGNED
    for constraint in CONSTRAINTS
    if divergence != "simplex_entropy" or constraint in ("none", "upper", "box", "l2")
]


@pytest.mark.parametrize(("divergence", "constraint"), PAIRS)
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), update=st.sampled_from(["implicit", "explicit"]), fit_intercept=st.booleans())
def test_signed_comparators_are_split_within_the_constraint(divergence, constraint, seed, update, fit_intercept):
    divergence, constraint = SIGNED[divergence], CONSTRAINTS[constraint]
    rng, n = np.random.default_rng(seed), 3
    total = divergence.total
    # a comparator that is the difference of a point inside
    inside = rng.uniform(0.02, 0.5, size=2 * n) * rng.choice([1e-3, 1.0], size=2 * n)
    inside = inside if total is None else total * inside / inside.sum()
    if constraint is not None:
        inside = constraint.project(divergence, inside)
    u, b = inside[:n] - inside[n:], float(rng.normal()) * fit_intercept
    point = split(u, divergence, constraint)
    np.testing.assert_allclose(point[:n] - point[n:], u, atol=1e-12)
    assert (point >= 0).all() and (total is None or abs(point.sum() - total) < 1e-9)
    np.testing.assert_allclose(split(np.array([0.9]), BinaryEntropy(), None), [1.0, 0.1])  # within the domain
    assert constraint is None or constraint.contains(point)
    model = MirrorDescentRegressor(
        divergence=divergence,
        signed=True,
        constraint=constraint,
        update=update,
        eta0=0.02 if update == "explicit" else 1.0,
        learning_rate="constant",
        fit_intercept=fit_intercept,
        track_regret=True,
    )
    X, y = rng.normal(size=(12, n)), 2 * rng.normal(size=12)
    try:
        model.partial_fit(X, y)
    except ValueError:  # an explicit step that leaves Burg's domain
        assert update == "explicit" and isinstance(divergence, Burg)
        return
    left = model.weighted_loss_ - model.eta0 * ((X @ u + b - y) ** 2).sum() / 2
    assert left <= model.regret_bound(u, b, weighted=True) + 1e-8


@pytest.mark.parametrize(
    ("divergence", "constraint", "u", "message"),
    [
        (SquaredEuclidean(), UpperBound(1.0), [0.5, 2.0], r"coef\[1\] = 2 is not in UpperBound\(bound=1\.0\)"),
        (SquaredEuclidean(), UpperBound([9.0, 1.0]), [8.0, 1.5], r"coef\[1\] = 1\.5 is not in UpperBound"),
        (SquaredEuclidean(), Box(-1.0, 1.0), [-3.0, 2.0], r"coef\[0\] = -3 is not in Box\(lower=-1\.0, upper=1\.0\)"),
        (SquaredEuclidean(), L1Ball(1.0), [1.0, -1.0], r"sum abs\(coef\) = 2 is not in L1Ball\(radius=1\.0\)"),
        (SquaredEuclidean(), L2Ball(1.0), [3.0, 4.0], r"norm_2\(coef\) = 5 is not in L2Ball\(radius=1\.0\)"),
        (SquaredEuclidean(), Simplex(1.0), [1.0, 1.0], r"coef sums to 2, not in Simplex\(total=1\.0\)"),
        (SquaredEuclidean(), Simplex(1.0), [1.5, -0.5], r"coef\[1\] = -0\.5 is not in Simplex"),
        (RelativeEntropy(), Halfspace(1.0), [1.0, 1.0], r"coef = \[1\. 1\.\] is not in Halfspace\(total_weight=1\.0\)"),
    ],
    ids=str,
)
def test_comparators_outside_are_refused(divergence, constraint, u, message):
    X, y = np.eye(2), np.ones(2)
    model = MirrorDescentRegressor(divergence=divergence, constraint=constraint, track_regret=True, init=0.5)
    model.partial_fit(X, y)
    with pytest.raises(ValueError, match=f"comparators within the constraint: {message}"):
        model.regret_bound(u, weighted=True)
    edge = constraint.project(divergence, np.abs(u))
    assert np.isfinite(model.regret_bound(edge, 3.0, weighted=True))
    classifier = MirrorDescentClassifier(divergence=divergence, constraint=constraint, track_regret=True, init=0.5)
    classifier.partial_fit(X, [0, 1], classes=[0, 1, 2])
    with pytest.raises(ValueError, match=message):
        classifier.regret_bound([edge, edge, u], weighted=True)


@pytest.mark.parametrize(
    ("divergence", "constraint", "u", "message"),
    [
        (RelativeEntropy(), L1Ball(1.0), [1.0, -1.0], r"sum abs\(\(w\+, w-\)\) = 2 is not in L1Ball"),
        (RelativeEntropy(), UpperBound(1.0), [0.5, -2.0], r"\(w\+, w-\)\[3\] = 2 is not in UpperBound"),
        (RelativeEntropy(), L2Ball(1.0), [0.0, -2.0], r"norm_2\(\(w\+, w-\)\) = 2 is not in L2Ball"),
        (RelativeEntropy(), Simplex(1.0), [2.0, 0.5], r"\(w\+, w-\) sums to 2\.5, not in Simplex"),
        (SimplexEntropy(3.0), UpperBound(1.0), [0.5, -1.5], r"\(w\+, w-\)\[3\] = 1\.5 is not in UpperBound"),
        (BinaryEntropy(), None, [0.5, -1.5], "their domain is 0 < w < 1, their constraint None"),
        (RelativeEntropy(), Box(0.1, 0.5), [0.5, 0.0], r"\(w\+, w-\)\[1\] = 0 is not in Box"),
    ],
    ids=str,
)
def test_signed_comparators_out_of_reach_are_refused(divergence, constraint, u, message):
    X, y = np.eye(2), np.ones(2)
    model = MirrorDescentRegressor(divergence=divergence, constraint=constraint, signed=True, track_regret=True)
    model.partial_fit(X, y)
    with pytest.raises(
        ValueError, match=f"coef must be a difference of w\\+ and w- that this run could reach: {message}"
    ):
        model.regret_bound(u, weighted=True)


def test_burgs_upper_bound_is_a_constraint():
    X, y = np.eye(2), np.ones(2)
    model = BurgRegressor(upper_bound=1.0, track_regret=True).partial_fit(X, y)
    with pytest.raises(
        ValueError, match=r"at most upper_bound=1, under which rows were learned, .*; got coef\[1\] = 2"
    ):
        model.regret_bound([0.5, 2.0], weighted=True)
    assert np.isfinite(model.regret_bound([0.5, 1.0], weighted=True))


# --- weights that are kept off the edge of their domain ---------------------------------------------------------------


@pytest.mark.parametrize("divergence", [RelativeEntropy, SimplexEntropy, BinaryEntropy])
@pytest.mark.parametrize("update", ["explicit", "implicit", "importance"])
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), csr=st.booleans())
def test_the_certificate_holds_for_weights_at_the_floor(divergence, update, seed, csr):
    """Steps so long that f(w) - c x is no longer f of a float."""
    rng = np.random.default_rng(seed)
    X = np.abs(rng.normal(size=(8, 3))) * 10 ** rng.uniform(0, 3, size=(8, 1))
    y = -np.abs(rng.normal(size=8)) * 10 ** rng.uniform(0, 3)
    model = MirrorDescentRegressor(
        divergence=own(divergence)(),
        update=update,
        eta0=1.0,
        learning_rate="constant",
        fit_intercept=False,
        track_regret=True,
    )
    model.partial_fit(sparse.csr_matrix(X) if csr else X, y)
    losses = model.weighted_loss_
    for u in (np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0]), rng.dirichlet(np.ones(3))):
        left = losses - float(((X @ u - y) ** 2).sum()) / 2
        assert left <= model.regret_bound(u, weighted=True) + 1e-9 * (losses + ((X @ u - y) ** 2).sum())
