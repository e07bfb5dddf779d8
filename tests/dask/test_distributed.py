"""DistributedOnline without a cluster: results and errors."""

import copy
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.linear_model import SGDRegressor
from sklearn.utils.estimator_checks import check_estimator

dask = pytest.importorskip("dask", reason="needs the extra dask: pip install onlinebregman[dask]")
pytest.importorskip("distributed", reason="needs the extra dask: pip install onlinebregman[dask]")

import dask.array as da  # noqa: E402

from onlinebregman import (  # noqa: E402
    EGRegressor,
    ForwardRegressor,
    ImplicitGDRegressor,
    LogDetMetricLearner,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    OnlineGaussian,
    ScaleInvariantRegressor,
    merge,
)
from onlinebregman.dask import DistributedOnline  # noqa: E402
from onlinebregman.losses import QuantileLoss  # noqa: E402
from onlinebregman.schedules import Constant, Schedule  # noqa: E402

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
y = X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * rng.normal(size=120)
labels = np.array(["a", "b", "c"])[(X[:, 0] > 0.3).astype(int) + (X[:, 1] > 0)]
LENGTHS = (40, 10, 30, 40)  # of the chunks
SUMS = ForwardRegressor(standardize=False, shuffle=False)  # exactly sums over rows


def lazy(*arrays, chunks=LENGTHS):
    made = [da.from_array(array, chunks=(chunks, *array.shape[1:])) for array in arrays]
    return made if len(made) > 1 else made[0]


def shards():
    return [slice(end - n, end) for n, end in zip(LENGTHS, np.cumsum(LENGTHS), strict=True)]


def by_hand(estimator, X, y, n_rounds, scaled):
    """theta = sum n_s theta_s / n, round by round, written from the formula."""
    given = {"classes": np.unique(y)} if is_classifier(estimator) else {}
    model = clone(estimator).partial_fit(X[:1], y[:1], sample_weight=[0.0], **given)
    schedule = model._schedule()
    for r in range(n_rounds):
        factor = 4 * ((r + 1 / 4) / (r + 1)) ** schedule.power if scaled else 1.0
        rate = {"learning_rate": Schedule(factor * schedule.scale, schedule.power)}
        own = {"learning_rate": model.learning_rate}
        parts = [copy.copy(model).set_params(**rate).partial_fit(X[s], y[s]).set_params(**own) for s in shards()]
        model = merge(parts, [len(X[s]) / len(X) for s in shards()], start=model)
    return model


@pytest.mark.parametrize("mixing", ["mean", "scaled"])
@pytest.mark.parametrize("learner", [EGRegressor(), ImplicitGDRegressor(eta0=0.2)])
def test_a_fit_is_what_its_formula_says(learner, mixing):
    model = DistributedOnline(learner, n_rounds=3, mixing=mixing).fit(*lazy(X, y))
    expected = by_hand(learner, X, y, 3, mixing == "scaled")
    assert_array_equal(model.estimator_.coef_, expected.coef_)
    assert model.estimator_.intercept_ == expected.intercept_
    assert model.estimator_.get_params() == learner.get_params()  # scaled rates only apply within shards
    assert (model.n_shards_, model.n_rounds_, model.estimator_.t_) == (4, 3, 360)


def test_a_schedule_and_a_rate_of_theory_are_scaled():
    for given in ({"learning_rate": Constant(0.1)}, {"learning_rate": "theory", "data_bounds": {"x": 5.0, "u": 2.0}}):
        estimator = MirrorDescentRegressor(divergence="squared_euclidean", **given)
        model = DistributedOnline(estimator, n_rounds=1).fit(*lazy(X, y)).estimator_
        mean = DistributedOnline(estimator, n_rounds=1, mixing="mean").fit(*lazy(X, y)).estimator_
        assert model.get_params()["learning_rate"] == given["learning_rate"]
        assert np.linalg.norm(model.coef_) > np.linalg.norm(mean.coef_)


def test_statistics_are_added_up_in_one_round():
    model = DistributedOnline(SUMS, n_rounds=5).fit(*lazy(X, y))
    assert_allclose(model.estimator_.coef_, clone(SUMS).fit(X, y).coef_, rtol=1e-10)
    assert model.n_rounds_ == 1
    density = DistributedOnline(OnlineGaussian()).fit(lazy(X))
    assert_allclose(density.estimator_.covariance_, OnlineGaussian().fit(X).covariance_, rtol=1e-10)
    assert_allclose(density.score_samples(lazy(X)).compute(), density.estimator_.score_samples(X))
    assert density.score(lazy(X)) == pytest.approx(density.estimator_.score(X))


@pytest.mark.parametrize("persist", [True, False])
def test_chunks_are_made_once_or_in_each_round(persist):
    made = []

    def make(block):
        if block.size:
            made.append(len(block))
        return block

    blocks = lazy(X).map_blocks(make, dtype=float, meta=np.empty((0, 4)))
    DistributedOnline(ImplicitGDRegressor(), n_rounds=3, persist=persist).fit(blocks, lazy(y))
    assert len(made) == (4 if persist else 4 + 1 + 3 * 4)


def test_classes_that_a_shard_lacks_are_found():
    order = np.argsort(labels, kind="stable")
    model = DistributedOnline(MirrorDescentClassifier(eta0=0.1), n_rounds=3).fit(*lazy(X[order], labels[order]))
    assert model.classes_.tolist() == ["a", "b", "c"]
    given = DistributedOnline(MirrorDescentClassifier(eta0=0.1), n_rounds=3)
    given.fit(*lazy(X[order], labels[order]), classes=["a", "b", "c"])
    assert_array_equal(given.estimator_.coef_, model.estimator_.coef_)


def test_weights_of_rows_are_those_of_shards():
    weights = rng.integers(0, 3, size=120).astype(float)
    model = DistributedOnline(SUMS).fit(*lazy(X, y, weights))
    assert_allclose(model.estimator_.coef_, clone(SUMS).fit(X, y, weights).coef_, rtol=1e-10)
    with pytest.raises(ValueError, match="All sample_weight are zero"):
        DistributedOnline(ForwardRegressor()).fit(*lazy(X, y, 0 * weights))
    for wrong, match in ((-1.0, "sample_weight: -1 at row 0"), (np.nan, r"NaN \(row 0\)")):
        with pytest.raises(ValueError, match=match) as error:
            DistributedOnline(ForwardRegressor()).fit(*lazy(X, y, np.full(120, wrong)))
        (note,) = error.value.__notes__  # of whichever chunk came first
        assert re.fullmatch(r"This was shard \d of 4, at the start\.", note)


def test_what_the_model_says_of_dask_collections_is_lazy():
    model = DistributedOnline(MirrorDescentClassifier(), n_rounds=1).fit(*lazy(X, labels))
    for name, shape in (("predict", (120,)), ("predict_proba", (120, 3)), ("decision_function", (120, 3))):
        said = getattr(model, name)(lazy(X))
        assert dask.is_dask_collection(said) and said.shape == shape and said.chunks[0] == LENGTHS
        assert_array_equal(said.compute(), getattr(model.estimator_, name)(X))
    assert model.score(*lazy(X, labels)) == model.score(X, labels) == model.estimator_.score(X, labels)
    metric = DistributedOnline(LogDetMetricLearner(random_state=0), n_rounds=1)
    mapped = metric.fit_transform(*lazy(X, labels))
    assert_allclose(mapped.compute(), metric.estimator_.transform(X), rtol=1e-12)
    assert not hasattr(metric, "predict_proba") and not hasattr(model, "transform")


def test_data_frames_keep_their_names():
    dd = pytest.importorskip("dask.dataframe")

    frame = pd.DataFrame(X, columns=list("pqrs")).assign(y=y)
    lazy_frame = dd.from_pandas(frame, npartitions=4)
    rows = lazy_frame[list("pqrs")]
    model = DistributedOnline(ImplicitGDRegressor(), n_rounds=2).fit(rows, lazy_frame["y"])
    assert model.feature_names_in_.tolist() == list("pqrs")
    ends = [len(part) for part in lazy_frame.partitions]
    same = DistributedOnline(ImplicitGDRegressor(), n_rounds=2).fit(*lazy(X, y, chunks=tuple(ends)))
    assert_array_equal(model.estimator_.coef_, same.estimator_.coef_)
    assert_array_equal(model.predict(rows).compute(), model.predict(frame[list("pqrs")]))
    unknown = DistributedOnline(ImplicitGDRegressor(), n_rounds=2).fit(rows.values, lazy_frame["y"].values)
    assert_array_equal(unknown.estimator_.coef_, model.estimator_.coef_)


def test_the_score_of_quantiles_is_that_of_rows_in_memory():
    several = MirrorDescentRegressor(loss=QuantileLoss([0.2, 0.8]), divergence="squared_euclidean")
    model = DistributedOnline(several, mixing="mean", n_rounds=1).fit(*lazy(X, y))
    assert model.score(*lazy(X, y)) == pytest.approx(model.score(X, y))


def test_sparse_chunks_and_columns_in_chunks():
    dense = DistributedOnline(ImplicitGDRegressor()).fit(*lazy(X, y))
    rows = lazy(X).map_blocks(sparse.csr_matrix, meta=sparse.csr_matrix((0, 4)))
    model = DistributedOnline(ImplicitGDRegressor()).fit(rows, lazy(y))
    assert_allclose(model.estimator_.coef_, dense.estimator_.coef_, rtol=1e-12)
    assert_allclose(model.predict(rows).compute(), dense.predict(X), rtol=1e-12)
    columns = DistributedOnline(ImplicitGDRegressor()).fit(da.from_array(X, chunks=(LENGTHS, (3, 1))), lazy(y))
    assert_array_equal(columns.estimator_.coef_, dense.estimator_.coef_)


@pytest.mark.parametrize(
    "given, message",
    [
        (lambda: (lazy(X), lazy(y, chunks=(60, 60))), "y must have as many row chunks as X, 4; got 2"),
        (lambda: (lazy(X), lazy(y, chunks=(30, 20, 30, 40))), r"the row chunks of X; chunk \d has \d0 rows"),
        (lambda: (lazy(X), y), "must be dask collections together"),
        (lambda: (X, y[:-1]), "inconsistent numbers of samples"),
        (lambda: (lazy(X)[:, :, None], lazy(y)), "X has 3 dimensions"),
        (lambda: (lazy(X)[lazy(X)[:, 0] > 0], lazy(y)), r"y must have the row chunks of X; chunk \d has \d+ rows"),
    ],
)
def test_data_that_do_not_match_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        DistributedOnline(ImplicitGDRegressor()).fit(*given())


@pytest.mark.parametrize("given", [X, sparse.csr_matrix(X), pd.DataFrame(X, columns=list("pqrs"))], ids=repr)
def test_data_in_memory_are_one_shard_and_a_round_one_pass(given):
    model = DistributedOnline(ImplicitGDRegressor(), n_rounds=1).fit(given, y)
    expected = ImplicitGDRegressor().partial_fit(given, y)
    assert_allclose(model.estimator_.coef_, expected.coef_, rtol=1e-14)
    assert isinstance(model.predict(given), np.ndarray) and model.n_shards_ == 1


def test_chunks_without_rows_are_no_shards():
    chunks = (0, 40, 0, 10, 30, 40)
    model = DistributedOnline(ImplicitGDRegressor()).fit(*lazy(X, y, chunks=chunks))
    same = DistributedOnline(ImplicitGDRegressor()).fit(*lazy(X, y))
    assert_array_equal(model.estimator_.coef_, same.estimator_.coef_)
    assert model.n_shards_ == 4 and model.predict(lazy(X, chunks=chunks)).compute().shape == (120,)
    with pytest.raises(ValueError, match="0 sample"):
        DistributedOnline(ImplicitGDRegressor()).fit(*lazy(X[:0], y[:0], chunks=(0,)))


class Late(Schedule):
    def __call__(self, t):
        return self.scale / (np.asarray(t) + 9.0)


def test_wrong_parameters_are_refused():
    with pytest.raises(ValueError, match="mixing"):
        DistributedOnline(ImplicitGDRegressor(), mixing="both").fit(X, y)
    with pytest.raises(TypeError, match="no run has the mean of several wealths"):
        DistributedOnline(ScaleInvariantRegressor()).fit(X, y)
    with pytest.raises(TypeError, match="SGDRegressor cannot be merged: it is no estimator of onlinebregman"):
        DistributedOnline(SGDRegressor()).fit(X, y)
    with pytest.raises(TypeError, match="track_regret=True and NormalizedAdaGrad"):
        DistributedOnline(MirrorDescentRegressor(track_regret=True)).fit(X, y)
    with pytest.raises(ValueError, match="mixing must be 'mean' for rates other than scale / t"):
        DistributedOnline(ImplicitGDRegressor(learning_rate=Late(0.1))).fit(*lazy(X, y))


# --- rounds one by one ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("targets", [y, labels], ids=["regressor", "classifier"])
def test_rounds_one_by_one_are_a_fit(targets, learned):
    kind = MirrorDescentRegressor if targets is y else MirrorDescentClassifier
    first = {} if targets is y else {"classes": ["a", "b", "c"]}
    learner = kind(divergence="squared_euclidean", learning_rate="sqrt", standardize=True, track_regret=True)
    whole = DistributedOnline(learner, n_rounds=3).fit(*lazy(X, targets))
    model = DistributedOnline(learner).partial_fit(*lazy(X, targets), **first)
    model = pickle.loads(pickle.dumps(model)).partial_fit(*lazy(X, targets)).partial_fit(*lazy(X, targets))
    assert learned(model.estimator_) == learned(whole.estimator_)
    assert (model.n_rounds_, model.n_shards_, model.estimator_.t_) == (3, 4, 360)
    u = X[0] if targets is y else X[:3]
    assert_array_equal(model.estimator_.regret_bound(u, weighted=True), whole.estimator_.regret_bound(u, weighted=True))


def test_an_error_names_the_shard_and_leaves_the_model():
    model = DistributedOnline(ForwardRegressor(handle_new_features="add")).partial_fit(*lazy(X[:, :3], y))
    before = pickle.dumps(model)
    bad = np.where(np.arange(120) == 45, np.nan, y)
    with pytest.raises(ValueError, match="NaN") as error:
        model.partial_fit(*lazy(X[:, :3], bad))
    assert error.value.__notes__ == ["This was shard 1 of 4 (rows 40 to 49), in round 1."]
    frame = pd.DataFrame(X, columns=list("pqrs"))
    named = DistributedOnline(ForwardRegressor(handle_new_features="add")).fit(frame[["p"]], y)
    with pytest.raises(ValueError, match="the same n_features_in_: 1 in start, 4 in model 0"):
        named.partial_fit(frame, y)
    with pytest.raises(ValueError, match="All sample_weight are zero"):
        model.partial_fit(X[:, :3], y, np.zeros(120))
    assert pickle.dumps(model) == before
    with pytest.raises(ValueError, match="classes must be passed on the first call to partial_fit"):
        DistributedOnline(MirrorDescentClassifier()).partial_fit(*lazy(X, labels))


def test_statistics_of_more_rows_are_added_up():
    model = DistributedOnline(SUMS).partial_fit(*lazy(X[:60], y[:60], chunks=(30, 30)))
    model.partial_fit(X[60:], y[60:])
    assert_allclose(model.estimator_.coef_, clone(SUMS).fit(X, y).coef_, rtol=1e-10)
    assert (model.n_rounds_, model.n_shards_) == (2, 1)


def test_transformed_chunks_are_arrays_also_under_set_output():
    pytest.importorskip("pandas")
    learner = LogDetMetricLearner(random_state=0)
    rows, labels = da.from_array(X, chunks=(40, -1)), da.from_array((y > 0).astype(int), chunks=40)
    plain = DistributedOnline(learner, n_rounds=1).fit(rows, labels).transform(rows).compute()
    framed = DistributedOnline(clone(learner).set_output(transform="pandas"), n_rounds=1).fit(rows, labels)
    assert_array_equal(framed.transform(rows).compute(), plain)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [ImplicitGDRegressor, MirrorDescentClassifier, LogDetMetricLearner])
def test_scikit_learn_checks(kind):
    learner = kind(random_state=0)
    results = check_estimator(DistributedOnline(learner, n_rounds=2), on_fail=None, on_skip=None)
    failed = {result["check_name"] for result in results if result["status"] == "failed"}
    # compares shuffled rows: what a learner keeps of a stream depends on its order
    assert failed <= {f"check_sample_weight_equivalence_on_{rows}_data" for rows in ("dense", "sparse")}
