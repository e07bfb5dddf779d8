"""Contributions of columns are drawn as a model explains them."""

import numpy as np
import pytest
from mixed_rows import mixed
from numpy.testing import assert_allclose, assert_array_equal

from onlinebregman import ForwardRegressor, ParameterFreeClassifier, ParameterFreeRegressor
from onlinebregman.inspection import ContributionDisplay, TermImportanceDisplay


def stream(n=300, d=4, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    return X, X.mean(axis=1)


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
