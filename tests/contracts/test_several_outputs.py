"""Several outputs are as many models of one: for every estimator that accepts them, with scikit-learn as the oracle.

scikit-learn's MultiOutput estimators learn each output with a clone; these learn all outputs from rows read once.
"""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.utils import get_tags

from onlinebregman.persistence import load_model, save_model

N = 3  # outputs


def has_several_outputs(estimator):
    """Whether a regressor accepts several outputs, or a classifier several labels."""
    tags = get_tags(estimator)
    return tags.classifier_tags.multi_label if is_classifier(estimator) else tags.target_tags.multi_output


def shares_a_matrix(estimator):
    """Whether outputs share a matrix, in whose sums they are columns, so that they agree up to rounding."""
    return hasattr(estimator, "forward")


@pytest.fixture
def several(rows, estimator):
    """Rows, dense and sparse, and several outputs: numbers or labels."""
    X, y = rows
    outputs = np.c_[y, y[::-1], 0.5 * y + 0.1]
    return [X, sparse.csr_array(X)], (X[:, :N] > 0.5).astype(np.int64) if is_classifier(estimator) else outputs


def models_of_one_output(estimator, X, Y):
    """scikit-learn's model of several outputs, which has learned the rows in one call."""
    if is_regressor(estimator):
        models, more = MultiOutputRegressor(clone(estimator)), {}
    else:
        models, more = MultiOutputClassifier(clone(estimator)), {"classes": [[0, 1]] * N}
    models.partial_fit(X, Y, **more)
    return models


@pytest.mark.only(where=has_several_outputs)
def test_outputs_are_as_many_models(estimator, several):
    layouts, Y = several
    same = assert_allclose if shares_a_matrix(estimator) else assert_array_equal
    for X in layouts:
        model, models = clone(estimator).partial_fit(X, Y), models_of_one_output(estimator, X, Y)
        parts = models.estimators_
        same(model.predict(X), models.predict(X))
        assert model.predict(X[:1]).shape == (1, N)
        if hasattr(model, "predict_proba"):
            same(model.predict_proba(X), np.transpose([part.predict_proba(X)[:, 1] for part in parts]))
            same(model.predict_log_proba(X), np.transpose([part.predict_log_proba(X)[:, 1] for part in parts]))
        assert_allclose(model.cumulative_loss_, sum(part.cumulative_loss_ for part in parts))
        assert_allclose(model.score(X, Y), models.score(X, Y))
        if hasattr(model, "coef_"):
            same(model.coef_, np.reshape([part.coef_ for part in parts], (N, -1)))
            assert_allclose(model.intercept_, np.ravel([part.intercept_ for part in parts]), rtol=1e-12, atol=1e-14)
        else:  # a mixture for each output
            for name in ("weights_", "weights_history_", "cumulative_losses_", "stacking_weights_", "stacking_coef_"):
                assert_array_equal(getattr(model, name), [getattr(part, name) for part in parts], err_msg=name)
            assert_allclose(model.regret_bound_, sum(part.regret_bound_ for part in parts))
            if is_regressor(model):
                ends = np.moveaxis([part.predict_interval(X) for part in parts], 0, -1)
                assert_array_equal(model.predict_interval(X), ends)
            assert model.best_index_ == np.sum([part.cumulative_losses_ for part in parts], axis=0).argmin()
            assert not hasattr(model, "feature_importances_")
            with pytest.raises(ValueError, match=r"3 outputs.*MultiOutput(Classifier|Regressor)"):
                model.explain(X)
            continue
        if is_classifier(model):
            assert model.predict(X).dtype == Y.dtype and model.classes_.tolist() == [0, 1, 2]
            same(model.decision_function(X), np.transpose([part.decision_function(X) for part in parts]))
            two = clone(estimator).partial_fit(X, Y[:, :2])  # labels, not the two classes of one output
            assert_array_equal(two.decision_function(X), model.decision_function(X)[:, :2])
            assert_array_equal(two.predict(X), model.predict(X)[:, :2])
        if getattr(model, "track_regret", False):
            u = np.full((N, model._learner.n_features), 0.1)
            expected = [part.regret_bound(row, weighted=True) for part, row in zip(parts, u, strict=True)]
            assert_array_equal(model.regret_bound(u, weighted=True), np.ravel(expected))
        if getattr(model, "update", "") == "aioli":
            u = np.full((N, 4), 0.1)
            assert_array_equal(
                model.regret_bound(u, [0.0, 0.1, 0.2]),
                [part.regret_bound(row, b) for part, row, b in zip(parts, u, (0.0, 0.1, 0.2), strict=True)],
            )


def takes_one_output(estimator):
    return (is_classifier(estimator) or is_regressor(estimator)) and not has_several_outputs(estimator)


@pytest.mark.only(where=takes_one_output)
def test_others_name_the_remedy(estimator, rows, unchanged):
    X, Y = rows[0], (rows[0][:, :2] > 0.5).astype(np.int64)
    with unchanged(estimator, r"y should be (a )?1d.*(sklearn\.multioutput|for an indicator matrix)"):
        estimator.fit(X, Y)


@pytest.mark.exhaustive
@pytest.mark.only(where=has_several_outputs)
def test_outputs_are_learned_together_or_not_at_all(estimator, several, learned, unchanged, tmp_path):
    """Whatever the cut, with weights of zero, over copies and files, and after calls that were refused."""
    layouts, Y = several
    weights = np.arange(40) % 4 > 0
    for X in layouts:
        whole = clone(estimator).partial_fit(X[weights], Y[weights])
        model = clone(estimator).partial_fit(X[:20], Y[:20], sample_weight=1.0 * weights[:20])
        bad = 1.0 * Y[20:25]
        bad[3, 2] = np.nan
        with unchanged(model, r"y contains NaN \(row 3"):
            model.partial_fit(X[20:25], bad)
        if is_classifier(model):
            with unchanged(model, "indicator matrix of 0 and 1 for several labels; got 2 at row 20, column 1"):
                model.partial_fit(X, np.where(np.arange(40 * N).reshape(40, N) == 20 * N + 1, 2, Y))
            with unchanged(model, "classes must be the numbers of the columns of y, 0 to 2"):
                model.partial_fit(X, Y, classes=[0, 1])
        for wrong in (Y[:, 0], Y[:, :2]):
            with unchanged(model, r"y should be 2d, of shape \(n_samples, 3\)"):
                model.partial_fit(X, wrong)
        model = pickle.loads(pickle.dumps(model))
        for row in range(20, 30):  # the first one is validated, the others need not be
            if weights[row]:
                model.partial_fit(X[row : row + 1], Y[row : row + 1])
        save_model(model, tmp_path / "model")
        model = load_model(tmp_path / "model").partial_fit(X[30:], Y[30:], sample_weight=1.0 * weights[30:])
        assert learned(model) == learned(whole)


@pytest.mark.only(where=lambda estimator: has_several_outputs(estimator) and hasattr(estimator, "max_iter"))
def test_epochs_over_several_outputs(estimator, several):
    (X, _), Y = several
    estimator.set_params(max_iter=3, tol=None)
    kind = MultiOutputRegressor if is_regressor(estimator) else MultiOutputClassifier
    models = kind(clone(estimator)).fit(X, Y)
    assert_array_equal(estimator.fit(X, Y).predict(X), models.predict(X))
    if "early_stopping" in estimator.get_params():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator.set_params(early_stopping=True, validation_fraction=0.3).fit(X, Y)
        assert len(estimator.validation_scores_) == 3 and np.isfinite(estimator.validation_scores_).all()


@pytest.mark.only(where=has_several_outputs)
@pytest.mark.parametrize("form", ["to_sklearn", "to_onnx"])
def test_exports_of_several_outputs(estimator, several, form):
    """Whatever can be converted for one output can be for several."""
    (X, _), Y = several
    model = estimator.partial_fit(X, Y)
    if not hasattr(model, "coef_"):
        if form == "to_onnx":
            with pytest.raises((ValueError, ImportError), match=r"3 outputs|onnx"):
                model.to_onnx()
        return
    try:
        getattr(models_of_one_output(estimator, X, Y).estimators_[0], form)()
    except (ImportError, ValueError):
        return
    converted = getattr(model, form)()
    if form == "to_sklearn":
        assert_allclose(converted.predict(X), model.predict(X), rtol=1e-9, atol=1e-12)
        return
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(converted.SerializeToString())
    found = dict(zip([each.name for each in session.get_outputs()], session.run(None, {"X": X}), strict=True))
    assert_allclose(found.get("prediction", found.get("label")), model.predict(X), rtol=1e-9, atol=1e-12)
    if "probabilities" in found:
        assert_allclose(found["probabilities"], model.predict_proba(X), rtol=1e-9, atol=1e-12)
