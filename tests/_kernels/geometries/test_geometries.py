"""The compiled kernels against NumPy code written from the formulas: every geometry x step x layout.

`Replica` is the reference. It updates whole vectors, adds the intercept as a Euclidean coordinate of feature 1, finds
implicit steps with a root finder of SciPy, and keeps averages as sums over all steps.
"""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sparse_rows import LAYOUTS

from onlinebregman import BurgRegressor, EGRegressor, ImplicitGDRegressor, reference
from onlinebregman.reference import LOSSES, simplex

POWERS = {"constant": 0.0, "sqrt": 0.5, "strongly_convex": 1.0, "invscaling": 0.3}


class Replica(reference.MirrorDescent):
    """With a schedule, an upper bound and averages; signed weights are EG+-."""

    def __init__(self, kind, n, *, eta0, power=0.0, update="implicit", fit_intercept=True, average=False, total=1.0):
        mirrors = {**reference.MIRRORS, "positive": reference.MIRRORS["relative_entropy"]}
        mirrors |= {"euclidean": mirrors["squared_euclidean"]} | dict.fromkeys(["simplex", "signed"], simplex(total))
        start = {"euclidean": 0.0, "positive": 1 / n, "burg": 1 / n, "simplex": total / n, "signed": total / (2 * n)}
        w = np.full(2 * n if kind == "signed" else n, start[kind])
        super().__init__(mirrors[kind], LOSSES["squared_error"], w, update, fit_intercept)
        self.kind, self.total, self.upper, self.eta0, self.power = kind, total, np.inf, eta0, power
        self.t, self.squares, self.steps = 0, 0.0, []
        self.average = int(average) or np.inf
        self.lowest = 0.0  # logarithm of the smallest weight so far, relative to the total

    def learn(self, x, y, weight=1.0):
        if weight == 0:
            return
        self.t += 1
        x = np.r_[x, -x] if self.kind == "signed" else np.asarray(x, dtype=np.float64)
        w, b = self.averaged
        self.squares += weight * (w @ x + b - y) ** 2 / 2  # of the predicting weights, which may be averages
        super().learn(x, y, weight * self.eta0 / self.t**self.power)
        if self.kind == "burg":
            self.theta = np.minimum(self.theta, -1 / self.upper)
        elif self.kind != "euclidean":
            self.lowest = min(self.lowest, self.theta.min() - (0 if self.kind == "positive" else self.theta.max()))
        if self.t >= self.average:
            self.steps.append((self.w, self.b))

    @property
    def averaged(self):
        steps = self.steps or [(self.w, self.b)]
        return np.mean([w for w, _ in steps], axis=0), np.mean([b for _, b in steps])

    @property
    def coef(self):
        w, n = self.averaged[0], len(self.theta) // 2
        return w[:n] - w[n:] if self.kind == "signed" else w

    @property
    def intercept(self):
        return self.averaged[1]


def estimator_of(kind, **parameters):
    if kind in ("euclidean", "burg"):
        parameters.pop("total", None)
        return {"euclidean": ImplicitGDRegressor, "burg": BurgRegressor}[kind](**parameters)
    return EGRegressor(weights=kind, **parameters)


kinds = pytest.mark.parametrize("kind", ["euclidean", "positive", "simplex", "signed", "burg"])


def stream(rng, rows, n, scale, *, density=1.0, noise=0.1, positive=False):
    """Rows, targets and a solution of the same scale, so that steps are neither tiny nor huge."""
    X = rng.uniform(1.0, 2.0, size=(rows, n)) if positive else rng.normal(size=(rows, n))
    X *= scale * (rng.uniform(size=(rows, n)) < density)
    X = X.astype(np.float32).astype(np.float64)  # exact in both kinds of floats
    return X, X @ rng.dirichlet(np.ones(n)) + noise * scale * rng.normal(size=rows)


def agree(model, replica, X, rtol):
    size = replica.total if replica.kind == "signed" else np.abs(replica.coef).max()  # scale of the weights
    signed = replica.kind in ("signed", "euclidean")
    exact = model.coef_.dtype == np.float64  # after float32 rows it is rounded
    of_coef, least = (rtol, 0.0) if exact else (rtol + 1.2e-7, 1.5e-45)
    assert_allclose(model.coef_, replica.coef, rtol=of_coef, atol=rtol * size if signed else least)
    assert_allclose(model.intercept_, replica.intercept, rtol=rtol, atol=rtol * (1 + size * np.abs(X).max()))
    assert_allclose(model.cumulative_loss_, replica.squares, rtol=100 * rtol)
    assert model.t_ == replica.t
    # the kernels' dot product against NumPy's, on the same numbers
    X64 = np.asarray(X, dtype=np.float64)
    terms = np.abs(X64) @ (np.full(X.shape[1], size) if replica.kind == "signed" else np.abs(model.coef_))
    terms += abs(model.intercept_)
    assert (np.abs(model.predict(X) - X64 @ model.coef_ - model.intercept_) <= (1e-14 if exact else 2e-7) * terms).all()


@kinds
@pytest.mark.parametrize("update", ["implicit", "explicit"])
@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 20),
    scale=st.sampled_from([0.03, 1.0, 7.0]),
    rate=st.floats(-2.5, 0.0),
    learning_rate=st.sampled_from(list(POWERS)),
    fit_intercept=st.booleans(),
    average=st.sampled_from([False, True, 3]),
    weighted=st.booleans(),
    layout=st.sampled_from(list(LAYOUTS)),
    total=st.sampled_from([1.0, 0.3, 12.0]),
    positive=st.booleans(),
)
def test_a_few_steps_equal_the_replica(
    kind, update, seed, n, scale, rate, learning_rate, fit_intercept, average, weighted, layout, total, positive
):
    rng = np.random.default_rng(seed)
    X, y = stream(rng, 6, n, scale, density=0.5 if "csr" in layout else 1.0, positive=positive)
    # explicit steps of this size stay in every domain; implicit steps can have any size
    size = max(scale, 1.0) ** 2 * (n + 3) * (total if kind in ("simplex", "signed") else 1.0)
    eta0 = 10.0**rate * (0.1 / size if update == "explicit" else 50.0)
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], size=6) if weighted else None
    model = estimator_of(
        kind,
        eta0=eta0,
        learning_rate=learning_rate,
        power_t=0.3,
        update=update,
        fit_intercept=fit_intercept,
        average=average,
        total=total,
    )
    replica = Replica(
        kind,
        n,
        eta0=eta0,
        power=POWERS[learning_rate],
        update=update,
        fit_intercept=fit_intercept,
        average=average,
        total=total,
    )
    model.partial_fit(LAYOUTS[layout](X), y, sample_weight=weights)
    for i in range(6):
        replica.learn(X[i], y[i], 1.0 if weights is None else weights[i])
    assume(replica.lowest > -600)  # below, weights underflow and stay at their floor
    agree(model, replica, X, rtol=1e-12 * max(1.0, -replica.lowest / 10))  # of e^z, for rounding in z


# --- the readable definition and the compiled step are one ------------------------------------------------------------


def egu(**parameters):
    """Explicit exponentiated gradient on free positive weights, of rate 1."""
    return EGRegressor(
        weights="positive", update="explicit", eta0=1.0, learning_rate="constant", fit_intercept=False, **parameters
    )


@pytest.mark.parametrize("update", ["implicit", "explicit"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_a_simplex_step_on_a_row_far_above_its_target(update, fit_intercept, layout):
    """All exponents -c x are below -709 here; only their differences matter."""
    x, y = np.array([100.0, 101.0, 102.5]), -50.0
    replica = Replica("simplex", 3, eta0=1.0, update=update, fit_intercept=fit_intercept)
    replica.learn(x, y)
    model = estimator_of(
        "simplex", eta0=1.0, learning_rate="constant", update=update, fit_intercept=fit_intercept
    ).partial_fit(LAYOUTS[layout](x[None]), [y])
    assert_allclose(model.coef_, replica.coef, rtol=1e-11)
    assert_allclose(model.intercept_, replica.intercept, rtol=1e-12)


# --- the vectorised exponential ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("span", [1.0, 30.0, 700.0])
def test_the_exponential_is_good_to_the_last_place(span, layout):
    """Rows of binary fractions have an exact prediction, so that c = eta (a - y) is exactly 1, and w' = exp(-x)."""
    rng = np.random.default_rng(int(span))
    x = np.ldexp(np.rint(np.ldexp(rng.uniform(-span, span, size=1001), 24)), -24)
    a = float(x.sum())  # 45 bits at most, whatever the order
    assert a == sum(map(float, x[::-1]))
    model = egu(init=1.0)
    model.partial_fit(LAYOUTS[layout](x[None]), [a - 1.0])
    exact = np.exp(-x.astype(np.longdouble))
    assert np.abs((model.coef_ - exact) / exact).max() <= 4e-16
    assert_allclose(model.coef_, np.exp(-x), rtol=5e-16)


def test_weights_never_reach_zero_and_a_large_exponent_is_an_error():
    model = egu(init=1.0)
    model.partial_fit([[900.0, 0.0]], [899.0])  # c = 1, a factor of e^-900
    assert model.coef_[0] == np.finfo(float).tiny and model.coef_[1] == 1.0
    before = model.coef_
    with pytest.raises(ValueError, match="row 0"):
        model.partial_fit([[0.0, 900.0]], [901.0])  # c = -1, a factor of e^900
    assert (model.coef_ == before).all()
