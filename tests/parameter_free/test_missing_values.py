"""Missing values and categories for the parameter-free learners."""

import pickle

import numpy as np
import pytest
from mixed_rows import mixed, with_gaps
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.utils import get_tags

from onlinebregman import (
    ForwardClassifier,
    ForwardRegressor,
    ImplicitGDRegressor,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    ParameterFreeClassifier,
    ParameterFreeRegressor,
    ScaleInvariantClassifier,
    ScaleInvariantRegressor,
)

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows

MODELS = [ParameterFreeClassifier(random_features=16), ParameterFreeRegressor(random_features=16)]


@pytest.fixture(params=MODELS, ids=lambda model: type(model).__name__)
def model(request):
    return clone(request.param)


def learn(model, X, y, **options):
    first = isinstance(model, ParameterFreeClassifier) and not hasattr(model, "classes_")
    return model.partial_fit(X, y, **({"classes": [0, 1]} if first else {}), **options)


# --- missing values ---------------------------------------------------------------------------------------------------


def test_a_column_that_is_always_missing_is_as_one_that_is_always_zero(model):
    X, y = with_gaps()
    missing, zero = (np.insert(X, 2, value, axis=1) for value in (np.nan, 0.0))
    one, other = (learn(clone(model), rows, y) for rows in (missing, zero))
    assert_array_equal(one.predict(missing), other.predict(zero))


def test_what_is_no_missing_value_is_refused_and_named(model, learned):
    X, y = with_gaps(60)
    learn(model, X[:30], y[:30])
    before = learned(model)
    X[41, 2] = np.inf
    with pytest.raises(ValueError, match=r"contains infinity \(row 11, column 2\). Give NaN for missing values"):
        model.partial_fit(X[30:], y[30:])
    with pytest.raises(ValueError, match=r"contains infinity \(row 41, column 2\)"):
        model.predict(X)
    X[41, 2] = 0.0
    for call in (lambda rows: model.partial_fit(rows, y[30:]), model.predict):
        with pytest.raises(ValueError, match=r"contains NaN \(row .*\). Missing values may be NaN in dense rows"):
            call(sparse.csr_array(X[30:]))
    assert learned(model) == before


def test_missing_values_require_members_that_standardise():
    X, y = with_gaps(60)
    scaled = [ImplicitGDRegressor(standardize=True), ForwardRegressor(standardize=True)]
    plain = [ImplicitGDRegressor(), ForwardRegressor(standardize=True)]
    for model, allowed in (
        (ParameterFreeRegressor(), True),
        (ParameterFreeRegressor(standardize=False), False),
        (ParameterFreeRegressor(members=scaled), True),
        (ParameterFreeRegressor(members=plain), False),
    ):
        assert get_tags(model).input_tags.allow_nan is allowed
        if allowed:
            assert np.isfinite(model.partial_fit(X, y).predict(X)).all()
        else:
            with pytest.raises(ValueError, match=r"contains NaN \(row 0, column 0\)"):
                model.partial_fit(X, y)
    with pytest.raises(ValueError, match=r"contains NaN"):  # by itself a member has no missing values
        scaled[1].partial_fit(X, y)


# --- missing values that say something --------------------------------------------------------------------------------


def telling(model, effect, n=2000, seed=0):
    """Rows of which values are missing at random, and targets with an effect of that in column 0."""
    rng = np.random.default_rng(seed)
    X, gone = rng.normal(size=(n, 4)), rng.random((n, 4)) < 0.25
    y = X @ [0.6, -0.4, 0.3, 0.0] + effect * gone[:, 0]
    y = rng.random(n) < 1 / (1 + np.exp(-y)) if is_classifier(model) else y + rng.normal(size=n)
    X[gone] = np.nan
    return X, y.astype(float)


def score(model, rows):
    return np.diff(model.predict_log_proba(rows))[:, 0] if is_classifier(model) else model.predict(rows)


def progressive_loss(model, X, y):
    """Mean loss of the rows from 200 on, each predicted before it and at most 19 more were learned."""
    predictions = []
    for rows in np.split(np.arange(len(y)), np.arange(200, len(y), 20)):
        if rows[0] >= 200:
            predictions.append(model.predict_proba(X[rows])[:, 1] if is_classifier(model) else model.predict(X[rows]))
        learn(model, X[rows], y[rows])
    loss = log_loss if is_classifier(model) else mean_squared_error
    return loss(y[200:], np.concatenate(predictions))


def test_what_is_missing_has_an_effect_of_its_own(model):
    X, y = telling(model, 1.6)
    learned = progressive_loss(model, X, y)
    effect = np.diff(score(model, np.array([[0.0] * 4, [np.nan, 0.0, 0.0, 0.0]])))[0]
    assert 1.1 < effect < 2.1
    imputer = SimpleImputer(add_indicator=True)
    assert learned < 1.01 * progressive_loss(clone(model), imputer.fit_transform(X), y)


def test_gaps_that_say_nothing_cost_little(model):
    X, y = telling(model, 0.0)
    without = clone(model).set_params(handle_new_features="add")  # then there are no indicators
    assert progressive_loss(model, X, y) < 1.01 * progressive_loss(without, X, y)


@pytest.mark.parametrize("kind", ["forward", "kernel", "scale_invariant", "normalized_adagrad", "diagonal_newton"])
def test_members_of_each_kind_have_indicators(model, kind):
    X, y = telling(model, 2.5)
    kinds = {"forward": (ForwardClassifier, ForwardRegressor)}
    kinds["scale_invariant"] = ScaleInvariantClassifier, ScaleInvariantRegressor
    kinds["kernel"] = ForwardClassifier, ForwardRegressor
    given = {"standardize": True} | ({} if kind in kinds else {"divergence": kind})
    given |= {"random_features": 32, "gamma": 0.1, "alpha": 0.1} if kind == "kernel" else {}
    member = kinds.get(kind, (MirrorDescentClassifier, MirrorDescentRegressor))[not is_classifier(model)](**given)
    model = learn(type(model)(members=[member]), X, y)
    assert np.diff(score(model, np.array([[0.0] * 4, [np.nan, 0.0, 0.0, 0.0]])))[0] > 1.0
    assert model.estimators_[0].coef_.shape[-1] == (32 if kind == "kernel" else 8)


@pytest.mark.parametrize("cut", [1, 7, 100])
def test_a_first_gap_may_come_at_any_time(model, cut, learned):
    X, y = telling(model, 1.0, 120)
    X[:45], weights = np.nan_to_num(X[:45]), np.ones(120)
    X[30], weights[30] = np.nan, 0.0
    X[:40, 3] = np.nan  # nothing is known of this column
    whole, parts = learn(clone(model), X, y, sample_weight=weights), clone(model)
    for start in range(0, len(X), cut):
        rows = slice(start, start + cut)
        learn(parts, X[rows], y[rows], sample_weight=weights[rows])
        if start % 3 == 0:
            parts = pickle.loads(pickle.dumps(parts))
    assert learned(parts) == learned(whole)


def test_a_refused_call_with_the_first_gap_changes_nothing(model, learned):
    X, y = telling(model, 1.0, 100)
    learn(model, np.nan_to_num(X[:50]), y[:50])
    before = learned(model)
    for X[90, 1], y[90], match in ((np.inf, 1.0, "infinity"), (0.0, np.nan, "NaN")):
        with pytest.raises(ValueError, match=match):
            model.partial_fit(X[50:], y[50:])
        assert learned(model) == before
        assert np.isfinite(model.predict(X[:50])).all()


def test_several_outputs_and_new_classes_have_gaps():
    X, y = telling(MODELS[1], 2.0)
    model = ParameterFreeRegressor(random_features=0, thresholds=False).partial_fit(X, np.column_stack([y, -y]))
    effects = np.diff(model.predict([[0.0] * 4, [np.nan, 0.0, 0.0, 0.0]]), axis=0)
    assert 1.4 < effects[0, 0] < 2.6
    assert -2.6 < effects[0, 1] < -1.4
    model = ParameterFreeClassifier(random_features=0, thresholds=False, handle_unknown="add")
    model.partial_fit(np.nan_to_num(X[:500]), y[:500] > 1)
    model.partial_fit(X[500:1000], np.clip(np.round(y[500:1000]), 0, 2)).partial_fit(
        X[1000:], np.clip(y[1000:] // 1, 0, 3)
    )
    gap, none = model.predict_proba([[np.nan, 0.0, 0.0, 0.0], [0.0] * 4])
    assert gap.shape == (4,)
    assert gap[2:].sum() > 2 * none[2:].sum()


def test_rows_that_are_predicted_together_have_gaps(model):
    X, y = telling(model, 1.6)
    model = clone(model).set_params(delayed=True)
    for start in range(0, 2000, 100):
        learn(model, X[start : start + 100], y[start : start + 100])
    assert 1.0 < np.diff(score(model, np.array([[0.0] * 4, [np.nan, 0.0, 0.0, 0.0]])))[0] < 2.1


# --- categories -------------------------------------------------------------------------------------------------------


def test_categories_are_learned(model):
    X, y = mixed(900)
    learn(model, X[:600], y[:600])
    assert np.mean((model.predict(X[600:]) > 0.5) != y[600:]) < 0.2
    assert model.is_categorical_.tolist() == [False, True, False, True, True]
    assert [None if known is None else set(known) for known in model.categories_] == [
        None,
        {"red", "green", "blue"},
        None,
        {"round", "square"},
        {True, False},
    ]
    assert model.feature_names_in_.tolist() == list(X.columns)
    assert learn(clone(model), with_gaps()[0], with_gaps()[1]).is_categorical_ is None


def test_a_new_category_may_come_at_any_time(model):
    X, y = mixed(1200)
    late = X["colour"].where(np.arange(1200) < 1000, "violet")
    X, y = X.assign(colour=late), np.where(late == "violet", 0.0, y)
    learn(model, X[:1000], y[:1000])
    before = model.predict(X[1000:])
    assert np.isfinite(before).all()
    model.partial_fit(X[1000:1100], y[1000:1100])
    assert model.categories_[1][-1] == "violet"
    after = model.predict(X[1100:])
    assert np.mean(after > 0.5) < 0.1 < np.mean(before > 0.5)


def test_a_refused_call_brings_no_categories(model, learned):
    X, y = mixed(60)
    learn(model, X[:30], y[:30])
    before = learned(model)
    new = X[30:].assign(colour="violet")
    for rows, targets in ((new.assign(size=np.inf), y[30:]), (new, np.full(30, np.nan))):
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            model.partial_fit(rows, targets)
        assert learned(model) == before


def test_rows_of_weight_zero_bring_no_categories(model, learned):
    X, y = mixed(60)
    ignored = X.copy()
    ignored.loc[::3, "colour"] = "violet"
    weights = np.where(np.arange(60) % 3 == 0, 0.0, 1.0)
    learn(model, ignored, y, sample_weight=weights)
    other = learn(clone(model), X[weights > 0], y[weights > 0])
    assert learned(model) == learned(other)


def test_what_does_not_fit_the_columns_is_named(model):
    X, y = mixed(60)
    numbers = learn(clone(model), X[["size", "weight"]], y)
    for call in (numbers.predict, lambda rows: numbers.partial_fit(rows, y)):
        with pytest.raises(ValueError, match="Column 'weight' must hold numbers; got 'heavy' in row 0"):
            call(X[["size", "weight"]].assign(weight="heavy"))
    learn(model, X, y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.partial_fit(X.rename(columns={"size": "length"}), y)
    with pytest.raises(ValueError, match="feature names should match"):  # text is of a column that nobody knows
        numbers.predict(X.rename(columns={"weight": "length"}))
    with pytest.raises(ValueError, match=r"got 1D array instead: .* of a data frame X\.iloc\[\[0\]\]"):
        model.predict(X.iloc[0])
    with pytest.raises(ValueError, match=r"X\['size'\] must be numeric; got dtype datetime64"):
        model.predict(X.assign(size=np.datetime64("2026-11-29", "s")))
    with pytest.raises(ValueError, match="must be dense"):
        model.predict(sparse.csr_array(np.ones((1, 5))))
    with pytest.raises(ValueError, match="require dense rows"):
        learn(clone(model).set_params(categorical_features=[0]), sparse.csr_array(np.ones((4, 5))), y[:4])
    learn(clone(model).set_params(categorical_features=None), X[["size", "sold"]], y)  # False and True are 0 and 1


@pytest.mark.parametrize("form", [np.asarray, lambda X: np.asarray(X).tolist()], ids=["array", "list"])
def test_rows_of_another_shape_are_refused_in_the_words_of_scikit_learn(model, form, learned):
    X, y = mixed(60)
    rows = form(X[["size", "shape", "weight"]])
    model.set_params(categorical_features=[1])
    learn(model, rows, y)
    before, name = learned(model), type(model).__name__
    narrow = [row[:2] for row in rows] if isinstance(rows, list) else rows[:, :2]
    for call in (model.predict, lambda given: learn(model, given, y[: len(given)])):
        with pytest.raises(ValueError, match=f"X has 2 features, but {name} is expecting 3 features as input"):
            call(narrow)
        with pytest.raises(ValueError, match=r"Expected 2D array, got 1D array .* Reshape your data"):
            call(rows[0])
    assert learned(model) == before


@pytest.mark.parametrize(
    "given, sparse_rows", [(None, True), ("from_dtype", True), ([0], False), (np.array([True, False]), False)], ids=str
)
def test_models_with_given_columns_of_categories_take_no_sparse_rows(model, given, sparse_rows):
    model.set_params(categorical_features=given)
    assert get_tags(model).input_tags.sparse is sparse_rows
    X, y = sparse.csr_array(np.eye(4, 2)), np.arange(4) % 2
    if sparse_rows:
        learn(model, X, y)
    else:
        with pytest.raises(ValueError, match="require dense rows"):
            learn(model, X, y)


@pytest.mark.parametrize("given", [{}, {"handle_new_features": "add"}], ids=str)
def test_a_new_fit_may_have_other_columns(model, given, learned):
    X, y = mixed(60)
    model.set_params(**given)
    expected = learned(clone(model).fit(X, y))
    assert learned(model.fit(X[["shape", "size"]], y).fit(X, y)) == expected
