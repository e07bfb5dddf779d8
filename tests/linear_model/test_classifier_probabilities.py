"""The linear classifiers: probabilities, and the losses that have them."""

import numpy as np
import pytest
from classifiers import some_rows
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentClassifier, MirrorDescentRegressor
from scipy.special import expit, log_expit
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier

from onlinebregman import PerceptronClassifier, PNormClassifier, WinnowClassifier
from onlinebregman.losses import HingeLoss, LogisticLoss
from onlinebregman.losses._base import loss_names


def test_probabilities_are_there_for_probabilistic_losses_alone():
    probabilistic = [
        MirrorDescentClassifier(divergence="squared_euclidean"),
        PNormClassifier(),
        MirrorDescentClassifier(divergence="squared_euclidean", loss=LogisticLoss()),
        PNormClassifier(loss="modified_huber"),
    ]
    others = [
        PerceptronClassifier(),
        WinnowClassifier(),
        MirrorDescentClassifier(divergence="squared_euclidean", loss="hinge"),
        PNormClassifier(loss="perceptron"),
        PNormClassifier(loss=HingeLoss(0.5)),
        MirrorDescentClassifier(divergence="squared_euclidean", loss="squared_hinge"),
        MirrorDescentClassifier(divergence="squared_euclidean", loss="no such loss"),
    ]
    for name in ("predict_proba", "predict_log_proba"):
        assert all(hasattr(model, name) for model in probabilistic)
        assert not any(hasattr(model, name) for model in others)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_of_the_modified_huber_loss_are_those_of_scikit_learn(n_classes):
    X, y = some_rows(n_classes=n_classes)
    model = MirrorDescentClassifier(divergence="squared_euclidean", loss="modified_huber").partial_fit(
        X, y, classes=range(n_classes)
    )
    theirs = SGDClassifier(loss="modified_huber").partial_fit(X, y, classes=range(n_classes))
    theirs.coef_, theirs.intercept_ = np.array(model.coef_), np.array(model.intercept_)
    for rows in (X, 30 * X):
        assert_allclose(model.predict_proba(rows), theirs.predict_proba(rows), rtol=1e-13, atol=1e-15)
        with np.errstate(divide="ignore"):
            assert_allclose(model.predict_log_proba(rows), theirs.predict_log_proba(rows), rtol=1e-12, atol=1e-14)
    assert (model.predict_proba(30 * X) == 0).any()


class Confident(LogisticLoss):
    """A user-defined loss with its own labels."""

    labels = (0.1, 0.9)


def test_a_loss_of_ones_own_states_its_labels_and_gives_probabilities():
    X, y = some_rows(n_classes=2)
    model = MirrorDescentClassifier(divergence="squared_euclidean", loss=Confident(), eta0=1.0).partial_fit(
        X, y, classes=[0, 1]
    )
    regressor = MirrorDescentRegressor(divergence="squared_euclidean", loss="log_loss", eta0=1.0).partial_fit(
        X, np.where(y == 1, 0.9, 0.1)
    )
    assert_allclose(model.coef_[0], regressor.coef_, rtol=1e-9)
    assert_allclose(model.predict_proba(X)[:, 1], (regressor.predict(X) - 0.1) / 0.8, rtol=1e-9)


@pytest.mark.parametrize("kind", [MirrorDescentRegressor.func, MirrorDescentClassifier.func, PNormClassifier])
def test_the_docstrings_list_the_losses(kind):
    names = ", ".join(map(repr, loss_names("regression" if kind is MirrorDescentRegressor.func else "classification")))
    assert "loss : {" + names.replace("'", '"') + "} or Loss" in kind.__doc__


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "model", [MirrorDescentClassifier(divergence="squared_euclidean"), PNormClassifier(average=True)], ids=repr
)
def test_probabilities_sum_to_one_and_order_as_the_scores(model, n_classes):
    X, y = some_rows(n_classes=n_classes)
    fitted = clone(model).partial_fit(X, y, classes=range(n_classes))
    p, scores = fitted.predict_proba(X), fitted.decision_function(X)
    assert p.shape == (60, n_classes) and (p > 0).all()
    assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
    if n_classes == 2:
        assert_allclose(p[:, 1], expit(scores), rtol=1e-14)
    else:
        assert_allclose(p, expit(scores) / expit(scores).sum(axis=1, keepdims=True), rtol=1e-14)
    assert_array_equal(fitted.classes_[p.argmax(axis=1)], fitted.predict(X))
    assert_allclose(fitted.predict_log_proba(X), np.log(p), rtol=1e-14, atol=3e-16)  # ln p is as accurate as p


def test_probabilities_far_out():
    X, y = some_rows(n_classes=2)
    parameters = {"divergence": "squared_euclidean", "fit_intercept": False, "init": [1.0, 0.0, 0.0, 0.0], "eta0": 1e-9}
    fitted, three = (
        MirrorDescentClassifier(**parameters).partial_fit(X[:1], y[:1], classes=range(n_classes))
        for n_classes in (2, 3)
    )
    far = np.array([[-600.0, 0, 0, 0], [-40.0, 0, 0, 0], [40.0, 0, 0, 0], [5000.0, 0, 0, 0]])
    p, logs = fitted.predict_proba(far), fitted.predict_log_proba(far)
    assert_allclose(p[:3, 0], expit([600.0, 40.0, -40.0]), rtol=1e-6)  # 1 - p would be 0 in the last place
    assert_allclose(logs[:3], log_expit(np.c_[-far[:3, 0], far[:3, 0]]), rtol=1e-6, atol=1e-15)
    assert_array_equal(p[3], [0.0, 1.0])
    assert_allclose(logs[3], [-5000.0, 0.0], rtol=1e-6)
    assert_allclose(three.predict_proba([[-1e6, 0, 0, 0]]), [[1 / 3, 1 / 3, 1 / 3]])  # all three are 0
    assert_allclose(three.predict_log_proba([[-1e6, 0, 0, 0]]), np.full((1, 3), -np.log(3)))
