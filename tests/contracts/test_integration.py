"""The estimators inside scikit-learn, on its real data: pipelines, searches, routing, callbacks, joblib."""

import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import BaggingClassifier, BaggingRegressor, StackingRegressor, VotingClassifier
from sklearn.exceptions import ConvergenceWarning, UnsetMetadataPassedError
from sklearn.linear_model import LinearRegression, SGDClassifier, SGDRegressor
from sklearn.metrics import brier_score_loss, recall_score
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RepeatedKFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    train_test_split,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from onlinebregman import (
    BurgRegressor,
    EGRegressor,
    ImplicitGDRegressor,
    LogDetMetricLearner,
    MirrorDescentClassifier,
    PerceptronClassifier,
    PNormClassifier,
    WinnowClassifier,
)

CV = KFold(5, shuffle=True, random_state=0)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True, as_frame=True)


def standardised(regressor, *, both_signs=False):
    """Standardised rows and targets around a regressor; `both_signs` adds -x to x, for positive weights."""
    steps = [StandardScaler()]
    if both_signs:
        steps.append(make_union(FunctionTransformer(), FunctionTransformer(np.negative)))
    return TransformedTargetRegressor(make_pipeline(*steps, regressor), transformer=StandardScaler())


REGRESSORS = {
    "gd": lambda: standardised(ImplicitGDRegressor(random_state=0)),
    "eg": lambda: standardised(EGRegressor(total=3.0, random_state=0)),
    "burg": lambda: standardised(BurgRegressor(random_state=0), both_signs=True),
}
every = pytest.mark.parametrize("name", REGRESSORS)
CLASSIFIERS = {
    "logistic": MirrorDescentClassifier(divergence="squared_euclidean", random_state=0),
    "hinge": MirrorDescentClassifier(divergence="squared_euclidean", loss="hinge", random_state=0),
    "p-norm": PNormClassifier(random_state=0),
    "perceptron": PerceptronClassifier(random_state=0, average=True),
    "winnow": WinnowClassifier(random_state=0, average=True),
}
every_classifier = pytest.mark.parametrize("name", CLASSIFIERS)


# --- accuracy, against what a user would take instead -----------------------------------------------------------------


@every
def test_defaults_are_as_good_as_stochastic_gradient_descent_and_least_squares(name, diabetes):
    X, y = diabetes
    score = cross_val_score(REGRESSORS[name](), X, y, cv=CV).mean()
    dummy = cross_val_score(DummyRegressor(), X, y, cv=CV).mean()
    sgd = cross_val_score(standardised(SGDRegressor(random_state=0)), X, y, cv=CV).mean()
    least_squares = cross_val_score(LinearRegression(), X, y, cv=CV).mean()
    assert score > dummy + 0.4
    assert score > sgd - 0.02
    assert score > least_squares - 0.03


@every
def test_one_online_pass_beats_the_mean_and_stays_near_a_batch_fit(name, diabetes):
    X, y = diabetes
    model = REGRESSORS[name]()
    inner = model.regressor[-1]
    inner.set_params(max_iter=1, shuffle=False, tol=None)
    order = np.random.default_rng(0).permutation(len(y))
    model.fit(X.iloc[order], y.iloc[order])
    assert model.score(X, y) > 0.6 * LinearRegression().fit(X, y).score(X, y) > 0.3


@every_classifier
@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_classifiers_are_as_good_as_stochastic_gradient_descent(name, load):
    X, y = load(return_X_y=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    score = cross_val_score(make_pipeline(StandardScaler(), CLASSIFIERS[name]), X, y, cv=folds).mean()
    sgd = cross_val_score(make_pipeline(StandardScaler(), SGDClassifier(random_state=0)), X, y, cv=folds).mean()
    assert score > 0.95 and score > sgd - 0.015


@pytest.mark.exhaustive
def test_a_learned_metric_finds_the_features_that_matter():
    """Iris with thirty features of noise: the learned metric finds the neighbours, the Euclidean one does not."""
    X, y = load_iris(return_X_y=True)
    X = np.c_[X, np.random.default_rng(0).normal(size=(150, 30))]
    plain = make_pipeline(StandardScaler(), KNeighborsClassifier(5))
    learned = make_pipeline(StandardScaler(), LogDetMetricLearner(random_state=0), KNeighborsClassifier(5))
    folds = RepeatedKFold(n_splits=5, n_repeats=4, random_state=1)
    assert cross_val_score(learned, X, y, cv=folds).mean() > cross_val_score(plain, X, y, cv=folds).mean() + 0.04


# --- searches and cross-validation ------------------------------------------------------------------------------------


@pytest.mark.exhaustive
@every
def test_a_grid_search_over_rates_with_two_workers(name, diabetes):
    X, y = diabetes
    model = REGRESSORS[name]()
    step = model.regressor.steps[-1][0]
    grid = {
        f"regressor__{step}__eta0": [1e-4, 0.03, 0.3, 3.0],
        f"regressor__{step}__learning_rate": ["constant", "sqrt", "invscaling"],
    }
    search = GridSearchCV(model, grid, cv=3, n_jobs=2).fit(X, y)
    alone = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert search.best_params_ == alone.best_params_
    assert_array_equal(search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])
    scores = alone.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all() and len(scores) == 12
    assert search.best_score_ > scores[: len(grid[f"regressor__{step}__learning_rate"])].max()  # the rate matters
    assert search.best_score_ >= cross_val_score(model, X, y, cv=3).mean() - 0.02
    assert search.best_estimator_.predict(X).shape == y.shape


@every
def test_cross_validation_is_repeatable_and_the_same_with_two_workers(name, diabetes):
    X, y = diabetes
    one = cross_validate(REGRESSORS[name](), X, y, cv=CV, return_train_score=True)
    two = cross_validate(REGRESSORS[name](), X, y, cv=CV, return_train_score=True, n_jobs=2)
    assert_array_equal(one["test_score"], two["test_score"])
    assert_array_equal(one["train_score"], two["train_score"])
    assert_array_equal(
        cross_val_predict(REGRESSORS[name](), X, y, cv=CV), cross_val_predict(REGRESSORS[name](), X, y, cv=CV)
    )


@every
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_two_workers_of_joblib(name, backend, diabetes):
    X, y = diabetes
    models = [REGRESSORS[name]().fit(X[start:], y[start:]) for start in (0, 50, 100, 150)]
    with joblib.parallel_config(backend, n_jobs=2):
        parallel = joblib.Parallel()
        fitted = parallel(joblib.delayed(type(model).fit)(clone(model), X, y) for model in models)
        predicted = parallel(joblib.delayed(type(model).predict)(model, X) for model in models)
    for model, again, prediction in zip(models, fitted, predicted, strict=True):
        assert_array_equal(prediction, model.predict(X))
        assert_array_equal(again.predict(X), models[0].predict(X))


@every
def test_in_ensembles(name, diabetes):
    X, y = diabetes
    bag = BaggingRegressor(REGRESSORS[name](), n_estimators=4, random_state=0, n_jobs=2).fit(X, y)
    assert bag.score(X, y) > 0.45
    stack = StackingRegressor([("one", REGRESSORS[name]()), ("two", DummyRegressor())], cv=3).fit(X, y)
    assert stack.score(X, y) > 0.45


@pytest.mark.exhaustive
@every_classifier
def test_a_grid_search_over_the_rates_of_a_classifier(name):
    X, y = load_wine(return_X_y=True, as_frame=True)
    y = y.map(dict(enumerate(["barolo", "grignolino", "barbera"])))
    model = make_pipeline(StandardScaler(), CLASSIFIERS[name])
    grid = {f"{model.steps[-1][0]}__eta0": [1e-9, 0.01, 0.1, 1.0]}
    search, alone = (GridSearchCV(model, grid, cv=3, n_jobs=n_jobs).fit(X, y) for n_jobs in (2, None))
    assert search.best_params_ == alone.best_params_
    scores = alone.cv_results_["mean_test_score"]
    assert_array_equal(search.cv_results_["mean_test_score"], scores)
    assert search.best_score_ > 0.95
    if name in ("logistic", "hinge", "p-norm"):
        assert scores[0] < search.best_score_  # the rate matters
    assert set(search.predict(X)) == {"barolo", "grignolino", "barbera"}
    assert_array_equal(
        cross_val_predict(model, X, y, cv=3, method="decision_function"),
        cross_val_predict(model, X, y, cv=3, method="decision_function", n_jobs=2),
    )


@every_classifier
def test_calibrated_probabilities(name):
    """Every classifier has probabilities by calibration, which are better than the class frequencies."""
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    model = CalibratedClassifierCV(make_pipeline(StandardScaler(), CLASSIFIERS[name]), cv=3).fit(X_train, y_train)
    p = model.predict_proba(X_test)[:, 1]
    assert brier_score_loss(y_test, p) < 0.25 * brier_score_loss(y_test, np.full(len(y_test), y_train.mean()))


def test_classifiers_in_ensembles():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    soft = VotingClassifier([("md", CLASSIFIERS["logistic"]), ("pn", CLASSIFIERS["p-norm"])], voting="soft").fit(X, y)
    assert soft.score(X, y) > 0.95
    bag = BaggingClassifier(CLASSIFIERS["perceptron"], n_estimators=5, random_state=0, n_jobs=2).fit(X, y)
    assert bag.score(X, y) > 0.95


def test_balanced_class_weights_find_the_rare_class():
    rng = np.random.default_rng(0)
    y = (rng.uniform(size=4000) < 0.03).astype(int)
    X = rng.normal(size=(4000, 5)) + 1.2 * y[:, None]
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    recall = {}
    for class_weight in (None, "balanced"):
        model = MirrorDescentClassifier(
            divergence="squared_euclidean", class_weight=class_weight, eta0=0.1, random_state=0
        ).fit(X_train, y_train)
        recall[class_weight] = recall_score(y_test, model.predict(X_test))
    assert recall["balanced"] > recall[None] + 0.1 and recall["balanced"] > 0.8


# --- pipelines, names, outputs ----------------------------------------------------------------------------------------


def test_feature_names_go_through_a_pipeline(diabetes):
    X, y = diabetes
    pipeline = make_pipeline(StandardScaler(), ImplicitGDRegressor(random_state=0)).set_output(transform="pandas")
    pipeline.fit(X, y)
    assert pipeline[-1].feature_names_in_.tolist() == X.columns.tolist()
    with pytest.raises(ValueError, match="feature names should match"):
        pipeline[-1].predict(X.iloc[:, ::-1])
    plain = make_pipeline(StandardScaler(), ImplicitGDRegressor(random_state=0)).fit(X, y)
    assert_array_equal(plain.predict(X), pipeline.predict(X))


def test_a_metric_learner_names_its_output():
    X, y = load_wine(return_X_y=True, as_frame=True)
    pipeline = make_pipeline(StandardScaler(), LogDetMetricLearner(random_state=0)).set_output(transform="pandas")
    out = pipeline.fit_transform(X, y)
    assert isinstance(out, pd.DataFrame) and out.shape == X.shape
    assert out.columns.tolist() == [f"logdetmetriclearner{i}" for i in range(13)]
    assert out.columns.tolist() == pipeline.get_feature_names_out().tolist()
    assert out.index.tolist() == X.index.tolist()
    plain = clone(pipeline).set_output(transform="default").fit_transform(X, y)
    assert_array_equal(out.to_numpy(), plain)


def test_a_pipeline_can_be_cloned_and_described(diabetes):
    X, y = diabetes
    pipeline = Pipeline([("scale", MinMaxScaler()), ("model", BurgRegressor(update="gradient", random_state=0))])
    pipeline.set_params(model__upper_bound=2.0).fit(X, y / 1000)
    again = clone(pipeline)
    assert again.get_params()["model__upper_bound"] == 2.0 and again["model"].update == "gradient"
    assert "upper_bound" in repr(again)
    assert "BurgRegressor" in pipeline._repr_html_()
    assert again.fit(X, y / 1000).score(X, y / 1000) == pipeline.score(X, y / 1000)


def test_a_stream_of_chunks_through_scalers_that_learn_too(diabetes):
    X, y = diabetes
    scaler, model = StandardScaler(), ImplicitGDRegressor(eta0=0.3)
    rows, target = np.tile(X.to_numpy(), (5, 1)), np.tile((y.to_numpy() - 150) / 77, 5)
    for start in range(0, len(rows), 17):
        chunk = slice(start, start + 17)
        model.partial_fit(scaler.partial_fit(rows[chunk]).transform(rows[chunk]), target[chunk])
    assert model.t_ == 5 * 442
    assert model.score(scaler.transform(rows), target) > 0.45


@every_classifier
def test_a_stream_of_labelled_chunks(name):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X.iloc[order], y.iloc[order].map({0: "malignant", 1: "benign"})
    scaler, model = StandardScaler().set_output(transform="pandas"), clone(CLASSIFIERS[name])
    right = []
    for start in range(0, len(X), 10):
        rows, labels = X[start : start + 10], y[start : start + 10]
        scaled = scaler.partial_fit(rows).transform(rows)
        if start:
            right += (model.predict(scaled) == labels).tolist()
        model.partial_fit(scaled, labels, classes=["malignant", "benign"])
    assert np.mean(right) > 0.9
    assert model.feature_names_in_.tolist() == X.columns.tolist()
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(scaled.iloc[:, ::-1])


# --- sample weights and their routing ---------------------------------------------------------------------------------


def test_sample_weights_are_routed_where_they_are_requested(diabetes):
    X, y = diabetes
    weights = np.random.default_rng(0).choice([0.0, 1.0, 3.0], size=len(y))
    direct = ImplicitGDRegressor(random_state=0).fit(X, y, sample_weight=weights)
    with config_context(enable_metadata_routing=True):
        model = ImplicitGDRegressor(random_state=0).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(model).fit(X, y, sample_weight=weights)
        assert_array_equal(pipeline[-1].coef_, direct.coef_)
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            make_pipeline(ImplicitGDRegressor()).fit(X, y, sample_weight=weights)
        refused = make_pipeline(ImplicitGDRegressor().set_fit_request(sample_weight=False))
        with pytest.raises(TypeError, match="sample_weight"):
            refused.fit(X, y, sample_weight=weights)
        scored = clone(model).set_score_request(sample_weight=True)
        results = cross_validate(scored, X, y, cv=3, params={"sample_weight": weights})
        assert np.isfinite(results["test_score"]).all()
        requests = ImplicitGDRegressor().set_partial_fit_request(sample_weight=True).get_metadata_routing()
        assert requests.partial_fit.requests == {"sample_weight": True}


def test_classes_and_weights_are_routed_to_partial_fit():
    with config_context(enable_metadata_routing=True):
        model = MirrorDescentClassifier(divergence="squared_euclidean").set_partial_fit_request(
            classes=True, sample_weight=True
        )
        requests = model.get_metadata_routing().partial_fit.requests
        assert requests == {"classes": True, "sample_weight": True}
        X, y = load_iris(return_X_y=True)
        weights = np.random.default_rng(0).choice([0.0, 1.0, 3.0], size=len(y))
        routed = make_pipeline(
            MirrorDescentClassifier(divergence="squared_euclidean", random_state=0).set_fit_request(sample_weight=True)
        )
        routed.fit(X, y, sample_weight=weights)
        assert_array_equal(
            routed[-1].coef_,
            MirrorDescentClassifier(divergence="squared_euclidean", random_state=0).fit(X, y, weights).coef_,
        )


def test_weights_say_which_rows_count(diabetes):
    """Two populations in one stream: the one whose rows have the weight is learned."""
    X, y = diabetes
    X, y = StandardScaler().fit_transform(X), ((y - y.mean()) / y.std()).to_numpy()
    first = np.arange(len(y)) % 2 == 0
    target = np.where(first, y, -y)
    for group, sign in ((first, 1), (~first, -1)):
        model = ImplicitGDRegressor(random_state=0).fit(X, target, sample_weight=group.astype(float))
        assert model.score(X, sign * y) > 0.4 > 0 > model.score(X, -sign * y)


# --- callbacks and warnings -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def callback():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # callbacks are experimental, and warn
        return pytest.importorskip("sklearn.callback")


@every
def test_a_scoring_monitor_logs_the_score_of_every_epoch(name, callback, diabetes):
    X, y = StandardScaler().fit_transform(diabetes[0]), ((diabetes[1] - 152) / 77).to_numpy()
    model = clone(REGRESSORS[name]().regressor[-1]).set_params(max_iter=6, tol=None, shuffle=False)
    monitor = callback.ScoringMonitor(scoring="r2")
    model.set_callbacks(monitor)
    model.fit(X, y)
    log = [entry["r2"] for entry in monitor.get_logs().data if entry["task_name"] == "epoch"]
    expected = []
    by_hand = clone(model)
    by_hand.set_callbacks()
    for _ in range(6):
        expected.append(by_hand.partial_fit(X, y).score(X, y))
    assert log == expected


@every_classifier
@pytest.mark.filterwarnings("error")
def test_a_scoring_monitor_logs_the_accuracy_of_every_epoch(name, callback):
    """Callbacks get rows and labels as they were passed: with feature names and class names."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    X, y = StandardScaler().set_output(transform="pandas").fit_transform(X), y.map(dict(enumerate("abc")))
    model = clone(CLASSIFIERS[name]).set_params(max_iter=4, tol=None, shuffle=False)
    monitor = callback.ScoringMonitor(scoring="accuracy")
    model.set_callbacks(monitor)
    model.fit(X, y)
    log = [entry["accuracy"] for entry in monitor.get_logs().data if entry["task_name"] == "epoch"]
    by_hand = clone(model)
    by_hand.set_callbacks()
    assert log == [by_hand.partial_fit(X, y, classes=["a", "b", "c"]).score(X, y) for _ in range(4)]


def test_a_scoring_monitor_and_a_progress_bar_in_a_grid_search(callback, diabetes, capsys):
    pytest.importorskip("rich")
    X, y = diabetes
    model = make_pipeline(StandardScaler(), ImplicitGDRegressor(max_iter=5, tol=None, random_state=0))
    search = GridSearchCV(model, {"implicitgdregressor__eta0": [0.01, 0.1]}, cv=2)
    search.set_callbacks(callback.ProgressBar())
    search.fit(X, y)
    plain = GridSearchCV(model, {"implicitgdregressor__eta0": [0.01, 0.1]}, cv=2).fit(X, y)
    assert_array_equal(search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"])
    out = capsys.readouterr().out
    assert "GridSearchCV" in out and "Pipeline" in out
    regressor = ImplicitGDRegressor(max_iter=5, tol=None)
    regressor.set_callbacks(callback.ProgressBar())
    regressor.fit(X, y)
    out = capsys.readouterr().out
    assert "ImplicitGDRegressor" in out and "100%" in out


def test_a_callback_that_stops_the_fit_when_it_is_good_enough(callback, diabetes):
    X, y = StandardScaler().fit_transform(diabetes[0]), ((diabetes[1] - 152) / 77).to_numpy()

    class GoodEnough:
        def setup(self, estimator, context):
            self.scores = []

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
            if context.task_name == "epoch":
                self.scores.append(fitted_estimator.score(X, y))
                return self.scores[-1] > 0.45

    stop = GoodEnough()
    model = ImplicitGDRegressor(eta0=1e-4, learning_rate="constant", max_iter=1000, tol=None, random_state=0)
    model.set_callbacks(stop)
    model.fit(X, y)
    assert 1 < model.n_iter_ < 1000 and len(stop.scores) == model.n_iter_
    assert stop.scores[-1] > 0.45 >= stop.scores[-2]
    assert model.score(X, y) == stop.scores[-1]


def test_too_few_epochs_are_warned_about_and_enough_are_not(diabetes):
    X, y = diabetes
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        standardised(ImplicitGDRegressor(max_iter=3, random_state=0)).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in REGRESSORS:
            REGRESSORS[name]().fit(X, y)


def test_unscaled_rows_do_not_blow_up_the_implicit_step():
    """Spreads of the features from 0.5 to 15: a rate that is fine for implicit steps is too large for explicit ones."""
    X, y = load_diabetes(return_X_y=True)
    X, y = X * 10.0 ** np.linspace(1, 2.5, 10), (y - y.mean()) / y.std()
    model = ImplicitGDRegressor(
        eta0=0.01, learning_rate="constant", average=True, max_iter=20, tol=None, random_state=0
    )
    assert clone(model).fit(X, y).score(X, y) > 0.9 * LinearRegression().fit(X, y).score(X, y) > 0.4
    with pytest.raises(ValueError, match=r"diverge.*scale"):
        clone(model).set_params(update="explicit").fit(X, y)
