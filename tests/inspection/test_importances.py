"""Terms are ranked by the contributions that a model explains."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from onlinebregman import ForwardRegressor, ParameterFreeClassifier, ParameterFreeRegressor
from onlinebregman.inspection import TermImportanceDisplay


def stream(seed=0):
    X = np.random.default_rng(seed).uniform(size=(1500, 3)).round(1)
    return X, np.where((X[:, 0] > 0.5) == (X[:, 2] > 0.5), 2.0, 0.0) + X[:, 1]


def test_the_largest_terms_in_order(ax):
    X, y = stream()
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
    X, y = stream()
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
    X, y = stream()
    model = ParameterFreeRegressor(random_features=0, thresholds=False).fit(X[:50], y[:50])
    with pytest.raises(ValueError, match=match):
        TermImportanceDisplay.from_estimator(model, **{"X": X, **arguments})
    with pytest.raises(ValueError, match="no explain"):
        TermImportanceDisplay.from_estimator(ForwardRegressor().fit(X, y), X)
    with pytest.raises(ValueError, match="as many"):
        TermImportanceDisplay(terms=["a"], importances=[1.0, 2.0])
