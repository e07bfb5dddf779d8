"""MirrorDescentRegressor and MirrorDescentClassifier: the named algorithms are choices of divergence, loss and step."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from replica import own
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import get_tags

from onlinebregman import (
    BurgRegressor,
    EGRegressor,
    ImplicitGDRegressor,
    PerceptronClassifier,
    PNormClassifier,
    PNormRegressor,
    WinnowClassifier,
)
from onlinebregman.constraints import Box, L2Ball, Simplex, UpperBound
from onlinebregman.divergences import BinaryEntropy, Burg, PNorm, RelativeEntropy, SimplexEntropy, SquaredEuclidean
from onlinebregman.losses import EpsilonInsensitiveLoss, HingeLoss, HuberLoss, LogisticLoss, PoissonLoss, SquaredLoss
from onlinebregman.losses._base import loss_names
from onlinebregman.schedules import InverseScaling

REGRESSION_LOSSES = loss_names("regression")


def some_rows(n=60, d=4, seed=0, loss="squared_error"):
    """Rows, and targets that the loss admits."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X @ np.linspace(-0.2, 0.4, d) + 0.3 * rng.normal(size=n)
    positive = {"poisson": np.floor(np.exp(y)), "tweedie": np.exp(y) * (y > -0.3), "gamma": np.exp(y)}
    return X, {**positive, "log_loss": (y > 0).astype(float)}.get(loss, y)


# --- the named estimators ---------------------------------------------------------------------------------------------

NAMED = {
    "gradient descent": (ImplicitGDRegressor(), {"divergence": "squared_euclidean"}),
    "EG, signed": (EGRegressor(), {"divergence": "simplex_entropy", "signed": True}),
    "EG, total 3": (EGRegressor(total=3.0), {"divergence": SimplexEntropy(total=3.0), "signed": True}),
    "EG, simplex": (EGRegressor(weights="simplex"), {"divergence": "simplex_entropy"}),
    "EG, positive": (EGRegressor(weights="positive"), {"divergence": "relative_entropy"}),
    "Burg": (BurgRegressor(), {"divergence": "burg"}),
    "Burg, bounded": (BurgRegressor(upper_bound=0.3), {"divergence": "burg", "constraint": UpperBound(0.3)}),
    "p-norm": (PNormRegressor(), {"divergence": "p_norm"}),
    "3-norm": (PNormRegressor(p=3.0), {"divergence": PNorm(3.0)}),
}


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"update": "explicit", "learning_rate": "sqrt"},
        {"update": "importance", "fit_intercept": False, "average": 7},
        {"track_regret": True, "learning_rate": InverseScaling(0.2, 0.3)},
    ],
    ids=str,
)
def test_the_named_estimators_are_general_ones(name, parameters):
    X, y = some_rows()
    named, chosen = NAMED[name]
    parameters = {"eta0": 0.05, "random_state": 0, "max_iter": 3, "tol": None, **parameters}
    named = clone(named).set_params(**parameters)
    general = MirrorDescentRegressor(**chosen).set_params(**parameters)
    weights = np.random.default_rng(1).choice([0.0, 0.5, 2.0], size=60)
    for rows in (X, sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))):
        for model in (named, general):
            model.fit(rows, y, sample_weight=weights).partial_fit(rows[:7], y[:7])
        assert_array_equal(named.coef_, general.coef_)
        assert named.intercept_ == general.intercept_
        assert named.loss_curve_ == general.loss_curve_
        assert named.cumulative_loss_ == general.cumulative_loss_
        assert named.weighted_loss_ == general.weighted_loss_
        assert_array_equal(named.predict(X), general.predict(X))
        if parameters.get("track_regret"):
            u = np.abs(named.coef_)
            u *= (named.divergence_.total or u.sum()) / u.sum()
            assert named.regret_bound(u, 0.1, weighted=True) == general.regret_bound(u, 0.1, weighted=True)


MISTAKES = {"loss": "perceptron", "update": "explicit", "learning_rate": "constant"}
WINNOW = {**MISTAKES, "eta0": 0.1}
NAMED_CLASSIFIERS = {
    "Perceptron": (PerceptronClassifier(), {"divergence": SquaredEuclidean(), **MISTAKES}),
    "Winnow, signed": (WinnowClassifier(total=2.0), {"divergence": SimplexEntropy(2.0), "signed": True, **WINNOW}),
    "Winnow, simplex": (WinnowClassifier(weights="simplex"), {"divergence": SimplexEntropy(), **WINNOW}),
    "Winnow, positive": (WinnowClassifier(weights="positive"), {"divergence": RelativeEntropy(), **WINNOW}),
    "p-norm": (PNormClassifier(), {"divergence": PNorm(2 * np.log(8))}),
    "3-norm, hinge": (PNormClassifier(p=3.0, loss="hinge"), {"divergence": PNorm(3.0), "loss": "hinge"}),
}


@pytest.mark.parametrize("name", NAMED_CLASSIFIERS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_named_classifiers_are_general_ones(name, n_classes):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 8)), rng.integers(n_classes, size=60)
    named, chosen = NAMED_CLASSIFIERS[name]
    parameters = {"random_state": 0, "max_iter": 3, "tol": None}
    named, general = clone(named).set_params(**parameters), MirrorDescentClassifier(**chosen, **parameters)
    for model in (named, general):
        model.fit(X, y)
    assert_array_equal(named.coef_, general.coef_)
    assert named.loss_curve_ == general.loss_curve_
    assert named.divergence_ == chosen["divergence"]


# --- any divergence, loss and step ------------------------------------------------------------------------------------

GEOMETRIES = [SquaredEuclidean(), RelativeEntropy(), SimplexEntropy(1.5), Burg(), BinaryEntropy(), PNorm(3.0)]


@pytest.mark.parametrize("update", ["implicit", "importance"])
@pytest.mark.parametrize("loss", ["absolute_error", "epsilon_insensitive", EpsilonInsensitiveLoss(1 / 3)], ids=str)
@pytest.mark.parametrize("divergence", GEOMETRIES, ids=repr)
def test_a_row_learned_again_right_away_changes_nothing(divergence, loss, update):
    """The first step brought its score to the kink, up to rounding, where there is no loss."""
    X, y = some_rows(40)
    model = MirrorDescentRegressor(divergence=divergence, loss=loss, update=update, eta0=50.0, learning_rate="constant")
    for i in range(40):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        coef, intercept = model.coef_, model.intercept_
        model.partial_fit(X[[i, i, i]], y[[i, i, i]])
        assert_allclose(model.coef_, coef, rtol=1e-9, atol=1e-12)
        assert_allclose(model.intercept_, intercept, rtol=1e-9, atol=1e-12)


# --- constraints ------------------------------------------------------------------------------------------------------


def test_a_start_outside_is_projected_and_an_impossible_constraint_refused(unchanged):
    X, y = some_rows()
    model = MirrorDescentRegressor(divergence="squared_euclidean", init=1.0, constraint=L2Ball(0.5)).partial_fit(
        X[:1], y[:1], sample_weight=[0.0]
    )
    assert_allclose(model.coef_, np.full(4, 0.25), rtol=1e-12)
    for bad in (Simplex(3.0), Box(0.6, 0.8), L2Ball(0.1)):  # of weights with the sum 1
        with unchanged(
            wrong := MirrorDescentRegressor(divergence="simplex_entropy", constraint=bad), "sum 1|total|project"
        ):
            wrong.partial_fit(X, y)


# --- targets, tags, parameters ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "loss, bad, domain",
    [
        ("gamma", 0.0, "y > 0"),
        ("log_loss", 1.5, "0 <= y <= 1"),
        (PoissonLoss(), -0.5, "y >= 0"),
        (HingeLoss(), 0.0, "y = -1 or 1"),
    ],
    ids=str,
)
def test_a_target_outside_the_domain_of_the_loss_is_refused_by_name(loss, bad, domain, unchanged, learned):
    X, _ = some_rows(10)
    y = np.ones(10)
    model = MirrorDescentRegressor(divergence="squared_euclidean", loss=loss).partial_fit(X, y)
    reference = clone(model).partial_fit(X, y).partial_fit(X, y)
    spoiled = y.copy()
    spoiled[6] = bad
    for rows in (X, X.tolist(), sparse.csr_array(X)):
        with unchanged(model, rf"Target y = {bad:g} at row 6 is outside the domain {domain}"):
            model.partial_fit(rows, spoiled)
        with unchanged(model, "at row 6"):
            model.fit(rows, spoiled)
    with unchanged(fresh := clone(model), "at row 6"):
        fresh.fit(X, spoiled)
    assert learned(model.partial_fit(X, y)) == learned(reference)


def test_tags_say_which_targets_are_admissible():
    def is_for_positive_targets(loss):
        return get_tags(MirrorDescentRegressor(loss=loss)).target_tags.positive_only

    assert {loss for loss in REGRESSION_LOSSES if is_for_positive_targets(loss)} == {
        "poisson",
        "log_loss",
        "tweedie",
        "gamma",
    }
    assert is_for_positive_targets(PoissonLoss()) and is_for_positive_targets(LogisticLoss())
    assert not is_for_positive_targets(HuberLoss(0.3)) and not is_for_positive_targets("no such loss")
    assert get_tags(MirrorDescentRegressor()).input_tags.sparse
    assert get_tags(MirrorDescentClassifier()).classifier_tags.multi_class


@pytest.mark.parametrize(
    "parameters, match",
    [
        ({"divergence": SquaredEuclidean}, "'divergence' parameter"),
        ({"loss": SquaredLoss}, "'loss' parameter"),
        ({"constraint": "simplex"}, "'constraint' parameter"),
        ({"divergence": "burg", "init": 0.0}, r"init\[0\] = 0"),
        ({"divergence": "binary_entropy", "init": 1.0}, r"init must be between 0 and 1 .*; got init\[0\] = 1"),
    ],
    ids=str,
)
def test_parameters_that_cannot_be_are_refused(parameters, match, unchanged):
    X, y = some_rows()
    with unchanged(model := MirrorDescentRegressor(**{"divergence": "squared_euclidean", **parameters}), match):
        model.partial_fit(X, y)
    with unchanged(model, match):
        model.fit(X, y)


@pytest.mark.parametrize(
    "divergence", ["relative_entropy", "simplex_entropy", "burg", "binary_entropy", own(BinaryEntropy)()]
)
@pytest.mark.parametrize("update", ["explicit", "implicit", "importance"])
@pytest.mark.parametrize("n", [1, 7, 20])
def test_signed_weights_score_exactly_0_before_the_first_row(divergence, update, n):
    """The sum of w+ x and -w- x over pairs of equal weights would be a rounding error, whose sign might be right."""
    X = np.arange(1, n + 1)[None] / 10
    settings = {
        "divergence": divergence,
        "signed": True,
        "update": update,
        "fit_intercept": False,
        "track_regret": True,
    }
    model = MirrorDescentRegressor(**settings).partial_fit(X, [0.0])
    assert model.cumulative_loss_ == 0 and model.predict(X) == 0
    if update == "explicit":
        models = [MirrorDescentClassifier(loss="perceptron", **settings) for _ in range(2)]
        down, up = (model.partial_fit(X, [label], classes=[0, 1]) for label, model in enumerate(models))
        assert_allclose(down.coef_, -up.coef_, rtol=1e-14)
        assert np.all(up.coef_ > 0)


@pytest.mark.parametrize("n", [1, 2, 3, 50])
def test_the_automatic_p_is_twice_the_logarithm_of_the_number_of_features(n):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, n)), rng.normal(size=20)
    p = max(2.0, 2 * np.log(n))
    assert not hasattr(PNormRegressor(), "divergence_")  # p depends on the number of features
    automatic, given_p = PNormRegressor().partial_fit(X, y), PNormRegressor(p=p).partial_fit(X, y)
    assert automatic.divergence_ == PNorm(p)
    assert_array_equal(automatic.coef_, given_p.coef_)
    classifier = PNormClassifier().partial_fit(X, (y > 0).astype(int), classes=[0, 1])
    assert classifier.divergence_ == PNorm(p)
