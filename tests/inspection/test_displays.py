"""Displays draw the numbers of the models, raise errors for invalid input, and import matplotlib on drawing."""

import inspect
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from mixed_rows import mixed
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentClassifier, ScaleInvariantRegressor
from scipy import sparse
from scipy.special import log_softmax
from sklearn.linear_model import SGDRegressor

from onlinebregman import (
    BayesMixture,
    BurgRegressor,
    DensityMixture,
    EGRegressor,
    ExpertMixtureRegressor,
    ForwardRegressor,
    ImplicitGDRegressor,
    LearningRateMixture,
    LearningRatePath,
    LogDetMetricLearner,
    MetricKNeighborsClassifier,
    OnlineExponentialFamily,
    ParameterFreeClassifier,
    ParameterFreeRegressor,
    PerceptronClassifier,
)
from onlinebregman.inspection import (
    ContributionDisplay,
    ExpertWeightsDisplay,
    LearningRateDisplay,
    MetricDisplay,
    ProgressiveScoreDisplay,
    RegretDisplay,
    TermImportanceDisplay,
)
from onlinebregman.losses import resolve_loss
from onlinebregman.model_selection import offline_comparator, progressive_val_score


def stream(n=300, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ np.full(d, 1 / d) + 0.1 * rng.normal(size=n)


def drawn(line):
    return np.array(line.get_xdata()), np.array(line.get_ydata())


# --- regret -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learning_rate", ["constant", "invscaling"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_regret_of_a_linear_model_and_its_certificate(learning_rate, fit_intercept, ax):
    X, y = stream()
    model = EGRegressor(weights="simplex", learning_rate=learning_rate, eta0=0.5, fit_intercept=fit_intercept)
    best = offline_comparator(X, y, domain="simplex", fit_intercept=fit_intercept)
    display = RegretDisplay.from_estimator(
        model, X, y, coef=best.coef, intercept=best.intercept, n_points=7, ax=ax, line_kw={"linewidth": 3}
    )
    assert not hasattr(model, "t_")  # a clone was fitted
    assert display.ax_ is ax and display.figure_ is ax.figure and display.line_.get_linewidth() == 3

    rates = np.full(300, 0.5) if learning_rate == "constant" else 0.5 / np.arange(1, 301) ** 0.5
    unit = 0.5 if learning_rate == "constant" else 1.0
    model.set_params(track_regret=True)
    regrets, bounds = [], []
    for row in range(300):
        model.partial_fit(X[row : row + 1], y[row : row + 1])
        compared = rates[: row + 1] @ (X[: row + 1] @ best.coef + best.intercept - y[: row + 1]) ** 2 / 2
        regrets.append((model.weighted_loss_ - compared) / unit)
        bounds.append(model.regret_bound(best.coef, best.intercept, weighted=True) / unit)
    ends = np.arange(1, 8) * 300 // 7
    for line, values in ((display.line_, regrets), (display.bound_line_, bounds)):
        assert_array_equal(drawn(line)[0], ends)
        assert_allclose(drawn(line)[1], np.array(values)[ends - 1], rtol=1e-10, atol=1e-12)
    assert (display.regret <= display.bound).all()
    assert ("rates" in ax.get_ylabel()) == (learning_rate == "invscaling")


@pytest.mark.parametrize("learning_rate", ["constant", "invscaling"])
def test_the_bound_for_the_best_comparator(learning_rate, ax):
    X, y = stream()
    model = ImplicitGDRegressor(learning_rate=learning_rate, eta0=0.1)
    best_kw = {"radius": 1.0, "largest_intercept": 0.5}
    best = offline_comparator(X, y, fit_intercept=True)
    display = RegretDisplay.from_estimator(
        model, X, y, coef=best.coef, intercept=best.intercept, best_kw=best_kw, n_points=3, ax=ax, name="gd"
    )
    assert (
        display.best_bound_line_.get_label() == "gd: bound against the best"
        and display.best_bound_line_.get_linestyle() == ":"
    )
    assert_array_equal(drawn(display.best_bound_line_), (display.n_rows, display.best_bound))
    model.set_params(track_regret=True).partial_fit(X[:200], y[:200])
    assert display.best_bound[1] == model.regret_bound(**best_kw, weighted=learning_rate != "constant")
    assert (display.regret <= display.bound).all() and (display.bound <= display.best_bound).all()
    without = RegretDisplay.from_estimator(model, X, y, coef=best.coef, n_points=3, ax=ax)
    assert without.best_bound is None and without.best_bound_line_ is None


@pytest.mark.parametrize(("n_classes", "multi_class"), [(2, "ovr"), (3, "ovr"), (3, "multinomial")])
def test_the_regret_of_a_classifier_is_that_of_all_its_losses(n_classes, multi_class):
    X, _ = stream()
    labels = np.array(["a", "b", "c"])[:n_classes]
    numbers = np.argmax(X[:, :n_classes], axis=1)
    y, weights = labels[numbers], np.where(numbers == 0, 2.0, 1.0)
    model = MirrorDescentClassifier(
        divergence="squared_euclidean", learning_rate="constant", eta0=0.2, class_weight={"a": 2.0}
    ).set_params(multi_class=multi_class)
    display = RegretDisplay.from_estimator(model, sparse.csr_array(X), y, n_points=3)
    model.set_params(track_regret=True).partial_fit(X, y, classes=labels)
    u, b = model.coef_, model.intercept_
    if multi_class == "multinomial":
        lost = -log_softmax(X @ u.T + b, axis=1)[np.arange(300), numbers] @ weights
    else:
        targets = (y[:, np.newaxis] == (labels[1:] if n_classes == 2 else labels)).astype(float)
        lost = resolve_loss("log_loss").value(X @ u.T + b, targets).sum(axis=1) @ weights
        assert_allclose(display.bound[-1], model.regret_bound(u, b, weighted=True).sum() / 0.2, rtol=1e-9)
    assert_allclose(display.regret[-1], model.weighted_loss_.sum() / 0.2 - lost, rtol=1e-9)
    assert (display.regret <= display.bound).all()


def test_models_that_know_the_best_in_hindsight_have_a_regret():
    X, y = stream()
    for model, more in ((ForwardRegressor(), (y,)), (OnlineExponentialFamily(), ())):
        display = RegretDisplay.from_estimator(model, X, *more, n_points=3)
        model.partial_fit(X, *more)
        assert_allclose((display.regret[-1], display.bound[-1]), (model.regret_, model.regret_bound_))


def test_models_without_rates_and_mixtures_have_a_regret():
    X, y = stream()
    invariant = RegretDisplay.from_estimator(ScaleInvariantRegressor(), X, y, coef=np.full(4, 0.25), n_points=2)
    model = ScaleInvariantRegressor().partial_fit(X, y)
    lost = resolve_loss(model.loss).value(X @ np.full(4, 0.25), y).sum()
    assert_allclose(invariant.regret[-1], model.cumulative_loss_ - lost)
    assert_allclose(invariant.bound[-1], model.regret_bound(np.full(4, 0.25)))

    for mixture, losses in (
        (LearningRateMixture(eta0s=3), "cumulative_losses_"),
        (ExpertMixtureRegressor(strategy="average", learning_rate=0.1), "expert_losses_"),
    ):
        display = RegretDisplay.from_estimator(mixture, X, y, n_points=3, name="mixed")
        mixture.partial_fit(X, y)
        assert_allclose(display.regret[-1], mixture.cumulative_loss_ - getattr(mixture, losses).min())
        assert_allclose(display.bound[-1], mixture.regret_bound_)
        assert (display.regret <= display.bound).all()
        assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["mixed", "mixed: bound"]
    assert RegretDisplay.from_estimator(DensityMixture(), X).bound[-1] == DensityMixture().partial_fit(X).regret_bound_


def test_the_regret_of_predictions():
    X, y = stream(n=50)
    display = RegretDisplay.from_predictions(y, np.zeros(50), X[:, 0], loss="absolute_error")
    assert_allclose(drawn(display.line_)[1], np.cumsum(abs(y) - abs(X[:, 0] - y)))
    assert display.bound_line_ is None and display.ax_.get_legend() is None


@pytest.mark.parametrize(
    ("model", "more", "match"),
    [
        (SGDRegressor(), {}, "SGDRegressor has neither"),
        (BurgRegressor(update="gradient"), {}, "not a linear model with a certificate"),
        (ImplicitGDRegressor(standardize=True), {}, "standardize the rows beforehand"),
        (ImplicitGDRegressor(), {"intercept": 1.0}, "no coef; give both"),
        (ImplicitGDRegressor(fit_intercept=False), {"coef": np.ones(4), "intercept": 1.0}, "intercept"),
        (EGRegressor(weights="simplex"), {"coef": np.ones(4)}, "coef"),
        (LearningRateMixture(), {"coef": np.ones(4)}, "omit coef"),
        (LearningRateMixture(), {"best_kw": {}}, "omit coef and best_kw"),
        (ScaleInvariantRegressor(), {"best_kw": {}}, "bounds no regret against the best comparator; omit best_kw"),
        (ImplicitGDRegressor(), {"best_kw": {}}, "infinite over all comparators"),
        (PerceptronClassifier(), {}, "PerceptronClassifier has neither"),
        (ForwardRegressor(forward=False), {}, "ForwardRegressor has no bound on its regret: .* forward=False"),
        (LearningRatePath(), {}, "LearningRatePath has no bound on its regret"),
    ],
)
def test_regrets_that_have_no_certificate_are_refused(model, more, match):
    with pytest.raises(ValueError, match=match):
        RegretDisplay.from_estimator(model, *stream(n=10), **more)


# --- scores and rates ---------------------------------------------------------------------------------------------


def test_progressive_scores(ax):
    X, y = stream()
    display = ProgressiveScoreDisplay.from_estimator(
        ForwardRegressor(), X, y, scoring="neg_mean_squared_error", n_points=5, negate=True, windows=True, ax=ax
    )
    result = progressive_val_score(ForwardRegressor(), X, y, scoring="neg_mean_squared_error", n_points=5)
    assert_array_equal(drawn(display.line_), (result.n_rows, -result.curve))
    assert_array_equal(drawn(display.window_line_), (result.n_rows, -result.window_scores))
    assert ax.get_ylabel() == "mean_squared_error"
    assert ax.get_legend().get_texts()[0].get_text() == "ForwardRegressor"
    other = ProgressiveScoreDisplay.from_result(result, ax=ax, name="other")
    assert other.window_line_ is None and len(ax.lines) == 3
    with pytest.raises(ValueError, match="no window_scores"):
        ProgressiveScoreDisplay(n_rows=[1, 2], curve=[0.0, 1.0]).plot(windows=True)
    with pytest.raises(ValueError, match="has no partial_fit"):
        ProgressiveScoreDisplay.from_estimator(MetricDisplay, X, y)
    with pytest.raises(ValueError, match=r"got the class ForwardRegressor. Use ForwardRegressor\(\)"):
        ProgressiveScoreDisplay.from_estimator(ForwardRegressor, X, y)


def test_losses_by_rate(ax):
    X, y = stream()
    path = LearningRatePath(eta0s=[0.001, 0.1, 10.0]).fit(X, y)
    display = LearningRateDisplay.from_estimator(path, ax=ax)
    assert_array_equal(drawn(display.line_), (path.eta0s_, path.cumulative_losses_ / 300))
    assert_array_equal(drawn(display.best_), [[path.best_eta0_], [path.cumulative_losses_.min() / 300]])
    assert display.mixture_line_ is None and display.name == "ImplicitGDRegressor"
    mixture = LearningRateMixture(eta0s=3).fit(X, y)
    display = LearningRateDisplay.from_estimator(mixture, ax=ax)
    assert display.mixture_line_.get_ydata()[0] == mixture.cumulative_loss_ / 300
    with pytest.raises(ValueError, match=r"estimator must be a LearningRatePath or .*; got ForwardRegressor"):
        LearningRateDisplay.from_estimator(ForwardRegressor().fit(X, y))


# --- weights ------------------------------------------------------------------------------------------------------


def test_weights_of_mixtures_over_the_rows(ax):
    X, y = stream()
    experts = [("steep", ImplicitGDRegressor(eta0=1.0)), ("flat", ImplicitGDRegressor(eta0=1e-3))]
    model = ExpertMixtureRegressor(experts, strategy="average", learning_rate=0.1, history=20).fit(X, y)
    display = ExpertWeightsDisplay.from_estimator(model, ax=ax)
    assert [line.get_label() for line in display.lines_] == ["steep", "flat"]
    for line, weights in zip(display.lines_, model.weights_history_.T, strict=True):
        assert_array_equal(drawn(line), (np.arange(model.t_ - 19, model.t_ + 1), weights))

    mixture = LearningRateMixture(eta0s=[0.01, 1.0]).fit(X, y)
    display = ExpertWeightsDisplay.from_estimator(mixture, ax=ax)
    assert display.names == ["eta0 = 0.01", "eta0 = 1"]
    assert_array_equal(drawn(display.lines_[1]), (mixture.weights_history_t_, mixture.weights_history_[:, 1]))

    free = ParameterFreeClassifier(random_features=8).fit(X, y > 0)
    display = ExpertWeightsDisplay.from_estimator(free, ax=ax, n_shown=2)
    assert len(set(display.names)) == len(free.estimators_) == len(display.names)
    heaviest = np.sort(np.argsort(-free.weights_history_.mean(axis=0), kind="stable")[:2])
    assert [line.get_label() for line in display.lines_[:2]] == [display.names[number] for number in heaviest]
    assert_allclose(sum(drawn(line)[1] for line in display.lines_), 1.0)
    assert display.lines_[2].get_label() == f"{len(display.names) - 2} others"


def test_areas_are_stacked(ax):
    mixture = ExpertMixtureRegressor(history=300).fit(*stream())
    display = ExpertWeightsDisplay.from_estimator(mixture, kind="area", ax=ax)
    assert display.names == ["0", "1", "2", "3"] and not display.lines_
    tops = [area.get_datalim(ax.transData).y1 for area in display.areas_]
    assert_allclose(tops, np.cumsum(mixture.weights_history_, axis=1).max(axis=0), atol=1e-9)


@pytest.mark.parametrize(
    ("model", "more", "match"),
    [
        (ExpertMixtureRegressor(), {}, "set history > 0"),
        (ForwardRegressor(), {}, "take a mixture"),
        (ExpertMixtureRegressor(history=5), {"names": ["one"]}, "1 names for 4 experts"),
        (ExpertMixtureRegressor(history=5), {"kind": "bars"}, "kind must be .*; got 'bars'"),
        (ExpertMixtureRegressor(history=5), {"n_shown": 0}, "n_shown must be"),
    ],
)
def test_weights_that_cannot_be_drawn_are_refused(model, more, match):
    with pytest.raises(ValueError, match=match):
        ExpertWeightsDisplay.from_estimator(model.fit(*stream(n=10)), **more)


def test_weights_of_several_outputs_are_drawn_one_after_the_other():
    X, y = stream(n=10)
    model = ParameterFreeRegressor(random_features=0, thresholds=False).fit(X, np.c_[y, -y])
    with pytest.raises(ValueError, match="has 2 outputs, each with weights of its own; give one of weights_history_"):
        ExpertWeightsDisplay.from_estimator(model)


def test_a_mixture_without_a_row_is_refused():
    chance = np.array([[0.1, 0.9], [0.2, 0.8]])
    model = BayesMixture(history=3).partial_fit(chance, [0, 1], sample_weight=[0.0, 0.0], classes=[0, 1])
    with pytest.raises(ValueError, match="not stored any weights yet"):
        ExpertWeightsDisplay.from_estimator(model)


# --- all ----------------------------------------------------------------------------------------------------------


def test_curves_have_a_number_for_each_point():
    with pytest.raises(ValueError, match="regret must have a number for each of the 2 points; got 3"):
        RegretDisplay(n_rows=[1, 2], regret=[0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match=r"losses must be a vector .*; got shape"):
        LearningRateDisplay(eta0s=[1.0], losses=[[1.0]])
    with pytest.raises(ValueError, match="give a row for each"):
        ExpertWeightsDisplay(n_rows=[1, 2], weights=np.ones((3, 2)))


def test_class_methods_show_and_check_the_arguments_of_plot():
    assert [*inspect.signature(RegretDisplay.from_estimator).parameters][-3:] == ["ax", "name", "line_kw"]
    with pytest.raises(TypeError, match="unexpected keyword argument 'windows'"):
        RegretDisplay.from_estimator(None, None, windows=True)  # before anything is computed


def test_optional_packages_are_imported_when_they_are_needed():
    code = """
import sys
from onlinebregman import inspection
display = inspection.RegretDisplay(n_rows=[1, 2], regret=[0.0, 1.0])
assert not {"matplotlib", "dask", "distributed"} & sys.modules.keys()
sys.modules["matplotlib"] = None
for draw in (display.plot, lambda: inspection.RegretDisplay.from_estimator(None, None)):
    try:
        draw()
    except ImportError as error:
        assert "RegretDisplay requires matplotlib" in str(error) and "onlinebregman[plot]" in str(error)
    else:
        raise AssertionError
"""
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


# --- contributions ----------------------------------------------------------------------------------------------------


def test_the_contribution_of_a_column_by_its_values(ax):
    X = np.random.default_rng(0).uniform(size=(2000, 3))
    model = ParameterFreeRegressor(random_features=0).partial_fit(X, np.where(X[:, 1] > 0.5, 2.0, 0.0))
    display = ContributionDisplay.from_estimator(model, X, feature="x1", grid_resolution=30, ax=ax)
    (values,), contributions = display.values, display.contributions
    assert len(values) == 30 and values[[0, -1]].tolist() == [X[:, 1].min(), X[:, 1].max()]
    assert np.diff(contributions)[np.searchsorted(values, 0.5) - 1] > 0.8  # the rest is that of pairs
    assert_array_equal(display.line_.get_xydata().T, [values, contributions])
    assert display.missing is None and display.missing_line_ is None and ax.get_xlabel() == "x1"
    two = X[[0, -1]]
    of_two = ContributionDisplay.from_estimator(model, two, feature=1)
    for value, contribution in zip(of_two.values[0], of_two.contributions, strict=True):
        changed = np.insert(two[:, [0, 2]], 1, value, axis=1)
        assert contribution == pytest.approx(model.explain(changed).contributions[:, 1].mean())


def test_the_contribution_of_categories_and_missing_values(ax):
    X, y = mixed(600)
    model = ParameterFreeClassifier(random_features=0).fit(X, y)
    display = ContributionDisplay.from_estimator(model, X, feature="colour", ax=ax)
    (colours,) = display.values
    assert sorted(colours) == ["blue", "green", "red"] and colours[display.contributions.argmax()] == "red"
    assert display.contributions.min() < display.missing < display.contributions.max()
    assert [label.get_text() for label in ax.get_xticklabels()] == colours.tolist()
    assert "log odds of 1.0" in ax.get_ylabel()


@pytest.mark.parametrize(("n", "shown", "rotation"), [(8, 8, 0), (9, 9, 90), (100, 34, 90)])
def test_labels_have_room(n, shown, rotation):
    display = ContributionDisplay(names=["a"], values=[np.arange(n).astype(str)], contributions=np.zeros(n)).plot()
    labels = display.ax_.get_xticklabels()
    assert len(labels) == shown and {label.get_rotation() for label in labels} == {rotation}


def test_the_contribution_of_a_pair_is_that_of_all_its_terms(ax):
    X, y = mixed(600)
    model = ParameterFreeClassifier(random_features=0).fit(X, np.where(y > 0, "yes", "no"))
    display = ContributionDisplay.from_estimator(model, X[:1], feature=("shape", 0), ax=ax)
    explanation = model.explain(X[:1])
    terms = np.isin(explanation.terms, ["size", "shape", "size shape"])
    assert terms.sum() == 3
    assert_allclose(display.contributions, [[explanation.contributions[0, terms].sum()]])
    of_many = ContributionDisplay.from_estimator(model, X[:100], feature=("size", "shape"))
    assert of_many.contributions.shape == (32, 2) and of_many.mesh_.get_array().shape == (2, 32)


def test_the_contribution_to_the_score_of_a_class():
    X, y = stream()
    model = ParameterFreeClassifier(random_features=0).fit(X, np.digitize(y, [-0.2, 0.2]))
    first, last = (ContributionDisplay.from_estimator(model, X, feature=0, target=c).contributions for c in (0, 2))
    assert first[0] > first[-1] and last[0] < last[-1]


@pytest.mark.parametrize(
    "arguments, match",
    [
        ({"feature": 4}, "from 0 to 3"),
        ({"feature": "bias"}, "none of the columns"),
        ({"feature": (1, 1)}, "two different"),
        ({"feature": (0, 1, 2)}, "two different"),
        ({"feature": 1.0}, "integer from 0 to 3; got 1.0"),
        ({"feature": 0, "grid_resolution": 1}, "grid_resolution"),
        ({"feature": 0, "grid_resolution": 2.5}, "grid_resolution"),
        ({"feature": 0, "target": 3}, "target"),
        ({"feature": 0, "X": np.full((2, 4), np.nan), "target": 1}, "no values"),
    ],
)
def test_contributions_that_cannot_be_drawn_are_refused(arguments, match):
    X, y = stream()
    model = ParameterFreeClassifier(random_features=0).fit(X, np.digitize(y, [-0.2, 0.2]))
    with pytest.raises(ValueError, match=match):
        ContributionDisplay.from_estimator(model, **{"X": X, **arguments})


def test_models_that_explain_nothing_and_wrong_shapes_are_refused():
    X, y = stream()
    with pytest.raises(ValueError, match="no explain"):
        ContributionDisplay.from_estimator(ForwardRegressor().fit(X, y), X, feature=0)
    several = ParameterFreeRegressor(random_features=0, thresholds=False).fit(X, np.c_[y, y])
    for display, more in (TermImportanceDisplay, {}), (ContributionDisplay, {"feature": 0}):
        with pytest.raises(ValueError, match="has 2 outputs"):
            display.from_estimator(several, X, **more)
    for values, contributions in (([[0, 1]], [1.0]), ([[]], []), ([[0, 1], [0]], [1.0, 2.0])):
        with pytest.raises(ValueError, match="shape"):
            ContributionDisplay(names=["a"] * len(values), values=values, contributions=contributions)


# --- terms ------------------------------------------------------------------------------------------------------------


def checkered(seed=0):
    X = np.random.default_rng(seed).uniform(size=(1500, 3)).round(1)
    return X, np.where((X[:, 0] > 0.5) == (X[:, 2] > 0.5), 2.0, 0.0) + X[:, 1]


def test_the_largest_terms_in_order(ax):
    X, y = checkered()
    model = ParameterFreeRegressor().fit(X, y)
    display = TermImportanceDisplay.from_estimator(model, X[:300], max_terms=2, ax=ax)
    assert display.terms == ["x0 x2", "x1"] and display.ax_ is ax
    found = model.explain(X[:300])
    expected = [np.sqrt(np.mean(found.contributions[:, found.terms == name] ** 2)) for name in display.terms]
    assert_allclose(display.importances, expected, rtol=1e-12)
    assert [bar.get_width() for bar in display.bars_] == display.importances.tolist()
    assert [label.get_text() for label in ax.get_yticklabels()] == display.terms
    assert display.bars_[0].get_y() > display.bars_[1].get_y() and "prediction" in ax.get_xlabel()
    everything = TermImportanceDisplay.from_estimator(model, X[:300], max_terms=None)
    assert sorted(everything.terms) == sorted(set(found.terms) - {"bias"})
    for kind, terms in {"columns": found.terms[:3], "pairs": ["x0 x1", "x0 x2", "x1 x2"]}.items():
        chosen = TermImportanceDisplay.from_estimator(model, X[:300], kind=kind)
        assert chosen.terms == [name for name in everything.terms if name in terms]


def test_the_terms_of_a_class():
    X, y = checkered()
    model = ParameterFreeClassifier(random_features=0).fit(X, np.digitize(y, [1.0, 2.0]))
    found = model.explain(X[:100])
    for c in range(3):
        display = TermImportanceDisplay.from_estimator(model, X[:100], target=c, kind="columns")
        sizes = np.sqrt(np.mean(found.contributions[:, :3, c] ** 2, axis=0))
        assert_allclose(display.importances, np.sort(sizes)[::-1], rtol=1e-12)
        assert f"of {c}" in display.ax_.get_xlabel()


@pytest.mark.parametrize(
    "arguments, match",
    [
        ({"kind": "rows"}, "kind"),
        ({"max_terms": 0}, "max_terms"),
        ({"X": np.zeros((0, 3))}, "rows|minimum of 1"),
        ({"kind": "pairs"}, "no terms of pairs"),
    ],
)
def test_terms_that_cannot_be_ranked_are_refused(arguments, match):
    X, y = checkered()
    model = ParameterFreeRegressor(random_features=0, thresholds=False).fit(X[:50], y[:50])
    with pytest.raises(ValueError, match=match):
        TermImportanceDisplay.from_estimator(model, **{"X": X, **arguments})
    with pytest.raises(ValueError, match="no explain"):
        TermImportanceDisplay.from_estimator(ForwardRegressor().fit(X, y), X)
    with pytest.raises(ValueError, match="as many"):
        TermImportanceDisplay(terms=["a"], importances=[1.0, 2.0])


# --- ellipses of learned metrics --------------------------------------------------------------------------------------


def on(ellipse, n=12):
    """Points of an ellipse."""
    return ellipse.get_patch_transform().transform(
        np.column_stack([np.cos(t := np.linspace(0, 2 * np.pi, n)), np.sin(t)])
    )


def test_ellipses_are_the_circles_of_the_metric(ax):
    X, _ = stream()
    y = (X[:, 1] + X[:, 2] > 0).astype(int)
    learner = LogDetMetricLearner(random_state=0).fit(X, y)
    W = learner.get_mahalanobis_matrix()[np.ix_([2, 1], [2, 1])]
    display = MetricDisplay.from_estimator(learner, X, y, features=(2, 1), radius=0.7, ax=ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("feature 2", "feature 1")
    for label, ellipse, circle in zip([0, 1], display.ellipses_, display.circles_, strict=True):
        center = X[y == label].mean(axis=0)[[2, 1]]
        z = on(ellipse) - center
        squared = np.einsum("ij,jk,ik->i", z, W, z)
        assert_allclose(squared, 0.49 * np.sqrt(np.linalg.det(W)))  # the same area as the circle
        assert_allclose(np.linalg.norm(on(circle) - center, axis=1), 0.7)
        assert_array_equal(display.points_[label].get_data(), X[y == label][:, [2, 1]].T)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["0", "1", "learned metric", "Euclidean"]
    knn = MetricKNeighborsClassifier(random_state=0).fit(X, y)
    display = MetricDisplay.from_estimator(knn, ax=ax)
    assert_array_equal(display.metric, knn.metric_.get_mahalanobis_matrix()[:2, :2])
    assert_array_equal(display.centers, np.zeros((1, 2)))


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"metric": np.eye(3)}, "matrix of two features"),
        ({"metric": [[1.0, 1.0], [1.0, 1.0]]}, "not positive definite"),
        ({"metric": np.eye(2), "radius": 0.0}, "positive number"),
        ({"metric": np.eye(2), "X": np.ones((4, 3))}, "X must be rows of two features; got shape"),
        ({"metric": np.eye(2), "y": [0, 1]}, "labels of the rows X"),
    ],
)
def test_metrics_that_cannot_be_drawn_are_refused(arguments, match):
    with pytest.raises(ValueError, match=match):
        MetricDisplay(**arguments)


def test_rows_that_do_not_vary_have_circles_of_radius_one():
    X, y = stream()
    learner = LogDetMetricLearner(random_state=0).fit(X, y > 0)
    assert MetricDisplay.from_estimator(learner, X[:1]).radius == 1.0


def test_wrong_features_and_models_are_refused():
    X, y = stream()
    learner = LogDetMetricLearner(random_state=0).fit(X, y > 0)
    for features, match in (
        ((0, 0), "two different columns"),
        ((0,), "two different columns"),
        (1, "two different columns"),
        ((0, 4), "a name, or an integer from 0 to 3; got 4"),
        ((0, 0.5), "a name, or an integer from 0 to 3; got 0.5"),
        (("name", 0), "'name' is none of the columns"),
    ):
        with pytest.raises(ValueError, match=match):
            MetricDisplay.from_estimator(learner, features=features)
    with pytest.raises(ValueError, match="has no get_mahalanobis_matrix"):
        MetricDisplay.from_estimator(ForwardRegressor().fit(X, y))


@pytest.mark.parametrize("kind", [LogDetMetricLearner, MetricKNeighborsClassifier])
def test_rows_are_those_of_the_fitted_features(kind):
    X, y = stream()
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = kind(random_state=0).fit(frame, y > 0)
    by_number = MetricDisplay.from_estimator(model, frame, y > 0, features=(2, 1))
    by_name = MetricDisplay.from_estimator(model, frame, y > 0, features=("c", "b"))
    assert_array_equal(by_name.X, X[:, [2, 1]])
    assert_array_equal(by_name.metric, by_number.metric)
    assert by_name.feature_names == ("c", "b")
    with pytest.raises(ValueError, match="order as they were in fit"):
        MetricDisplay.from_estimator(model, frame[list("dcba")], y > 0)


def test_rows_that_the_learner_does_not_accept_are_refused():
    X, y = stream()
    learner = LogDetMetricLearner(random_state=0).fit(X, y > 0)
    assert_array_equal(MetricDisplay.from_estimator(learner, sparse.csr_array(X), y > 0).X, X[:, :2])
    X_nan = X.copy()
    X_nan[7, 1] = np.nan
    for rows, labels, match in (
        (np.c_[X, X], y > 0, "X has 8 features, but LogDetMetricLearner is expecting 4"),
        (X[:, :2], y > 0, "X has 2 features, but LogDetMetricLearner is expecting 4"),
        (X[0], None, "Reshape your data"),
        (X, y[1:] > 0, "inconsistent numbers of samples"),
        (X, np.c_[y, y] > 0, "1d array"),
        (X_nan, y > 0, "NaN .row 7, column 1"),
    ):
        with pytest.raises(ValueError, match=match):
            MetricDisplay.from_estimator(learner, rows, labels)
